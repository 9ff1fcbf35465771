"""A gated call runs only if a person said yes to that very call, once, in time."""

from __future__ import annotations

import asyncio
import itertools
import threading
from pathlib import Path
from typing import Any, cast

import pytest

from failstop.runtime.agent.approval import ApprovalError, ApprovalRequest, ApprovalRequired, Grant, StandingAnswers
from failstop.runtime.agent.outcome import Outcome
from failstop.runtime.agent.planner import Action, Seen, ToolCall
from failstop.runtime.agent.tools import Tool
from failstop.runtime.audit.conformance import check_run
from failstop.runtime.audit.log import load
from failstop.runtime.clock import NS_PER_SECOND, VirtualClock
from failstop.runtime.cores import grant as core
from failstop.runtime.limits import Limits
from failstop.runtime.policies.pipeline import PolicyContext, PolicyDecision, PolicyPipeline
from failstop.runtime.policies.retry import RetryContainer
from failstop.runtime.risk import RiskTier, shell_tier
from failstop.runtime.stops import ConfigurationError, Denied, TimeStop
from failstop.runtime.tests.scripted import FACES, Scripted, World, dies

RESUMES = [
    lambda loop, run, answers: loop.resume(run, answers),
    lambda loop, run, answers: asyncio.run(loop.aresume(run, answers)),
]
PHASES = (core.PENDING, core.APPROVED, core.DENIED, core.USED, core.EXPIRED)


def decisions(folder: Path) -> list[tuple[bool, str]]:
    """Read the decisions from the only log in the folder."""
    (path,) = folder.iterdir()
    return [(event.data["approved"], event.data["by"]) for event in load(path).events if event.kind == "decision"]


def two(first: dict[str, Any], second: dict[str, Any]) -> Action:
    """Pay twice in one step."""
    return Action(calls=(ToolCall("pay", first), ToolCall("pay", second)))


# The core ------------------------------------------------------------------------------------------------------------


def test_a_grant_is_used_only_from_approved_in_time_and_for_the_same_call() -> None:
    """Over every state: the one way to a dispatch."""
    for phase, expires, same, now in itertools.product(PHASES, (-1, 5), (False, True), (4, 5, 6)):
        _, verdict = core.use((phase, expires), same, now)
        in_time = expires == -1 or now < expires
        assert (verdict == core.GRANTED) == (phase == core.APPROVED and in_time and same)


def test_a_grant_is_used_at_most_once() -> None:
    """Whatever is asked of a used grant, it stays used."""
    state, _ = core.answer(core.requested(-1), True, 0)
    state, first = core.use(state, True, 0)
    assert first == core.GRANTED
    assert core.use(state, True, 0) == (state, core.USED)
    assert core.answer(state, True, 0) == (state, core.USED)
    assert core.expire(state, 0) == (state, core.USED)


def test_only_the_first_answer_counts() -> None:
    """A no cannot be turned into a yes, nor the reverse."""
    for first, second in ((True, False), (False, True)):
        state, taken = core.answer(core.requested(-1), first, 0)
        assert taken == core.GRANTED
        assert core.answer(state, second, 0)[0] == state


def test_an_answer_at_the_very_moment_of_expiry_is_late() -> None:
    """The last good moment is the one before."""
    assert core.answer(core.requested(5), True, 4)[1] == core.GRANTED
    assert core.answer(core.requested(5), True, 5) == ((core.EXPIRED, 5), core.EXPIRED)


def test_an_expired_grant_stays_expired_if_the_clock_steps_back() -> None:
    """Expiry is a latch."""
    state, _ = core.answer(core.requested(5), True, 0)
    state, _ = core.use(state, True, 9)
    assert core.use(state, True, 0) == (state, core.EXPIRED)


def test_another_call_spoils_the_grant() -> None:
    """After drift not even the approved call runs on it."""
    state, _ = core.answer(core.requested(-1), True, 0)
    state, verdict = core.use(state, False, 0)
    assert verdict == core.DRIFTED
    assert core.use(state, True, 0)[1] == core.DENIED


def test_an_exact_answer_beats_a_standing_one_both_ways() -> None:
    """Over every pair (field case 2)."""
    for exact, standing in itertools.product((core.NO_ANSWER, core.YES, core.NO), repeat=2):
        assert core.ruling(exact, standing) == (standing if exact == core.NO_ANSWER else exact)


@pytest.mark.parametrize("answer", [1, "true", [True], None])
def test_a_grant_takes_only_an_explicit_true_for_a_yes(answer: object) -> None:
    """Whoever answers it."""
    request = ApprovalRequest("r:1.1", "r", "pay", RiskTier.IRREVERSIBLE, {}, "digest", "why")
    grant = Grant(request, VirtualClock().now_ns)
    grant.answer(answer)
    assert grant.use("digest") == core.DENIED


def test_two_threads_cannot_use_one_grant_both() -> None:
    """However many race for it, one dispatch comes of it."""
    request = ApprovalRequest("r:1.1", "r", "pay", RiskTier.IRREVERSIBLE, {}, "digest", "why")
    grant = Grant(request, VirtualClock().now_ns)
    grant.answer(True)
    start = threading.Barrier(8)
    verdicts: list[int] = []

    def race() -> None:
        start.wait(timeout=10)
        verdicts.append(grant.use("digest"))

    threads = [threading.Thread(target=race) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10)
        assert not thread.is_alive()
    assert sorted(verdicts) == [core.GRANTED] + [core.USED] * 7


# Pausing and going on ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", FACES)
def test_a_gated_call_pauses_the_run_and_does_not_happen(run: Any) -> None:
    """The witness is the side effect, not the report."""
    world = World()
    result = run(world.loop(), Scripted(Action.use("pay", to="ann", usd=5)))
    assert result.outcome is Outcome.NEEDS_APPROVAL
    assert world.done == []
    (request,) = result.pending
    assert (request.tool, request.tier, request.args) == ("pay", RiskTier.IRREVERSIBLE, {"to": "ann", "usd": 5})
    assert request.reason == "IRREVERSIBLE is above what the run may do alone, WRITE"


@pytest.mark.parametrize("run", FACES)
def test_an_approved_run_goes_on_where_it_was(run: Any) -> None:
    """The very call runs, and the planner is asked for its next action with the result."""
    world = World()
    loop = world.loop()
    planner = Scripted(Action.use("look"), Action.use("pay", to="ann"), lambda h: Action.finish(h.last[0].value))
    paused = run(loop, planner)
    result = loop.resume(paused.run, {paused.pending[0].id: True})
    assert (result.outcome, result.value, result.run_id) == (Outcome.COMPLETED, "pay done", paused.run_id)
    assert world.done == [("look", {}), ("pay", {"to": "ann"})]
    assert result.snapshot.steps == 2
    assert result.pending == ()


def test_a_run_paused_on_one_face_goes_on_on_the_other() -> None:
    """A paused run belongs to no thread and no event loop."""
    world = World()
    loop = world.loop()
    paused = asyncio.run(loop.arun(Scripted(Action.use("pay"), Action.use("send")), "goal"))
    again = loop.resume(paused.run, {paused.pending[0].id: True})
    result = asyncio.run(loop.aresume(again.run, {again.pending[0].id: True}))
    assert result.outcome is Outcome.COMPLETED
    assert world.names == ["pay", "send"]


def test_a_denied_call_is_an_observation() -> None:
    """The planner learns of it and can do something else."""
    world = World()
    loop = world.loop()
    paused = loop.run(Scripted(Action.use("pay"), Action.use("look")), "goal")
    result = loop.resume(paused.run, {paused.pending[0].id: False})
    assert result.outcome is Outcome.COMPLETED
    assert result.trace[0].observations[0].seen is Seen.REFUSED
    assert result.trace[0].observations[0].error == "a person said no"
    assert world.names == ["look"]


@pytest.mark.parametrize(
    ("ceiling", "expected"),
    [
        (RiskTier.READ, ["look"]),
        (RiskTier.WRITE, ["look"]),
        (RiskTier.EXTERNAL, ["look", "send"]),
        (RiskTier.IRREVERSIBLE, ["look", "send", "pay"]),
    ],
)
def test_exactly_what_is_above_the_autonomous_ceiling_waits(ceiling: RiskTier, expected: list[str]) -> None:
    """A tier equal to the ceiling runs alone."""
    world = World()
    world.loop(autonomous=ceiling).run(Scripted(*map(Action.use, ("look", "send", "pay"))), "goal")
    assert world.names == expected


@pytest.mark.parametrize(
    ("command", "runs"), [("ls -l | sort", True), ("ls; rm x", False), ("ls\nrm x", False), ("ls | sh", False)]
)
def test_a_command_whose_tail_is_risky_waits_as_a_whole(command: str, runs: bool) -> None:
    """The loop asks the rule, and no safe beginning runs ahead of the answer (field case 7)."""
    world = World()
    world.add("shell", tier=shell_tier({"ls": RiskTier.READ, "sort": RiskTier.READ}))
    result = world.loop().run(Scripted(Action.use("shell", command=command)), "goal")
    assert result.outcome is (Outcome.COMPLETED if runs else Outcome.NEEDS_APPROVAL)
    assert world.names == ["shell"] * runs


@pytest.mark.parametrize("ceiling", [1, True, "WRITE", None])
def test_a_ceiling_that_is_not_a_tier_is_refused(ceiling: object) -> None:
    """True is not a tier (G6)."""
    with pytest.raises(ConfigurationError, match="autonomous"):
        World().loop(autonomous=ceiling)


@pytest.mark.parametrize("seconds", [float("nan"), -1, True, "60"])
def test_an_expiry_that_is_no_time_is_refused(seconds: object) -> None:
    """Nothing about a gate is guessed (G6)."""
    with pytest.raises(ConfigurationError, match="grant_seconds"):
        World().loop(grant_seconds=seconds)


# A grant is for the very call (field cases 1, 3, 4, 6) ---------------------------------------------------------------


def test_a_yes_to_one_argument_opens_no_other() -> None:
    """edit(path=b) is asked about although edit(path=a) was approved, and does not run (field case 1)."""
    world = World()
    loop = world.loop()
    paused = loop.run(Scripted(Action.use("pay", to="ann"), Action.use("pay", to="bob")), "goal")
    again = loop.resume(paused.run, {paused.pending[0].id: True})
    assert again.outcome is Outcome.NEEDS_APPROVAL
    assert again.pending[0].args == {"to": "bob"}
    assert world.done == [("pay", {"to": "ann"})]


@pytest.mark.parametrize(
    "other",
    [
        ToolCall("edit", {"path": "b"}),
        ToolCall("edit", {"path": "A"}),
        ToolCall("edit", {"path": "a "}),
        ToolCall("edit", {"path": b"a"}),
        ToolCall("edit", {"path": ["a"]}),
        ToolCall("edit", {"path": "a", "force": True}),
        ToolCall("edit", {}),
        ToolCall("pay", {"path": "a"}),
    ],
    ids=str,
)
@pytest.mark.parametrize("run", FACES)
def test_a_yes_opens_no_call_that_differs_in_anything(run: Any, other: ToolCall) -> None:
    """A value, a type, an argument more or less, another tool: it waits, and the old answer's id does not fit it."""
    world = World()
    world.add("edit", tier=RiskTier.EXTERNAL)
    loop = world.loop()
    paused = run(loop, Scripted(Action.use("edit", path="a"), Action(calls=(other,))))
    answers = {paused.pending[0].id: True}
    again = loop.resume(paused.run, answers)
    assert again.outcome is Outcome.NEEDS_APPROVAL
    assert (again.pending[0].tool, again.pending[0].args) == (other.tool, other.args)
    with pytest.raises(ApprovalError):
        loop.resume(again.run, answers)
    assert world.done == [("edit", {"path": "a"})]


def test_a_yes_is_for_once() -> None:
    """The same call again is a new question."""
    world = World()
    loop = world.loop()
    paused = loop.run(Scripted(Action.use("pay", to="ann"), Action.use("pay", to="ann")), "goal")
    again = loop.resume(paused.run, {paused.pending[0].id: True})
    assert again.outcome is Outcome.NEEDS_APPROVAL
    assert again.pending[0].id != paused.pending[0].id
    assert world.names == ["pay"]


def test_a_file_rewritten_after_the_approval_does_not_run(tmp_path: Path) -> None:
    """The digest covers what the arguments name, and is taken again at dispatch (field case 3)."""
    script = tmp_path / "script.sh"
    script.write_text("echo hello")
    world = World()
    world.add("run_file", tier=RiskTier.EXTERNAL, digest_of=lambda args: Path(args["path"]).read_bytes())
    loop = world.loop()
    paused = loop.run(Scripted(Action.use("run_file", path=str(script))), "goal")
    script.write_text("rm -rf /")
    result = loop.resume(paused.run, {paused.pending[0].id: True})
    assert world.done == []
    assert result.trace[0].observations[0].error == "the call is not the one that was approved any more"


def test_a_file_left_alone_after_the_approval_runs(tmp_path: Path) -> None:
    """The check for drift is not simply a no."""
    script = tmp_path / "script.sh"
    script.write_text("echo hello")
    world = World()
    world.add("run_file", tier=RiskTier.EXTERNAL, digest_of=lambda args: Path(args["path"]).read_bytes())
    loop = world.loop()
    paused = loop.run(Scripted(Action.use("run_file", path=str(script))), "goal")
    loop.resume(paused.run, {paused.pending[0].id: True})
    assert world.names == ["run_file"]


def test_a_file_gone_at_dispatch_does_not_run(tmp_path: Path) -> None:
    """What cannot be read again is not what was approved."""
    script = tmp_path / "script.sh"
    script.write_text("echo hello")
    world = World()
    world.add("run_file", tier=RiskTier.EXTERNAL, digest_of=lambda args: Path(args["path"]).read_bytes())
    loop = world.loop()
    paused = loop.run(Scripted(Action.use("run_file", path=str(script))), "goal")
    script.unlink()
    loop.resume(paused.run, {paused.pending[0].id: True})
    assert world.done == []


def test_a_call_whose_digest_cannot_be_taken_is_refused_and_not_asked_about() -> None:
    """A person is never asked for a yes that would cover nothing."""
    world = World()
    world.add("run_file", tier=RiskTier.EXTERNAL, digest_of=lambda args: Path(args["path"]).read_bytes())
    result = world.loop().run(Scripted(Action.use("run_file", path="/nonexistent")), "goal")
    assert result.outcome is Outcome.COMPLETED
    assert result.trace[0].observations[0].seen is Seen.REFUSED
    assert world.done == []


@pytest.mark.parametrize("parallel", [False, True])
def test_an_earlier_call_of_the_same_step_cannot_change_what_a_later_one_was_approved_for(
    parallel: bool, tmp_path: Path
) -> None:
    """The digest is taken at each dispatch, and nothing of the step runs beside it (field case 3)."""
    script = tmp_path / "script.sh"
    script.write_text("echo hello")
    world = World()
    world.add("write", tier=RiskTier.WRITE, does=script.write_text)
    world.add("run_file", tier=RiskTier.EXTERNAL, digest_of=lambda args: Path(args["path"]).read_bytes())
    loop = world.loop()
    calls = (ToolCall("write", {"data": "rm"}), ToolCall("run_file", {"path": str(script)}))
    paused = loop.run(Scripted(Action(calls=calls, parallel=parallel)), "goal")
    assert world.done == [], "nothing of a step runs before all its questions are answered"
    loop.resume(paused.run, {paused.pending[0].id: True})
    assert world.names == ["write"]


@pytest.mark.parametrize("resume", RESUMES)
def test_in_a_parallel_step_no_call_runs_beside_one_whose_approval_covers_a_file(resume: Any) -> None:
    """All of them run, one after the other, with the digest taken again in between (field case 3)."""
    order: list[str] = []
    world = World()
    world.add("other", does=lambda: order.append("other"))
    world.add(
        "run_file",
        tier=RiskTier.EXTERNAL,
        digest_of=lambda _: order.append("digest"),
        does=lambda: order.append("run_file"),
    )
    loop = world.loop()
    calls = (ToolCall("other"), ToolCall("run_file"), ToolCall("other"))
    paused = loop.run(Scripted(Action(calls=calls, parallel=True)), "goal")
    result = resume(loop, paused.run, {paused.pending[0].id: True})
    assert result.outcome is Outcome.COMPLETED
    assert order == ["digest", "other", "digest", "run_file", "other"]


def test_what_was_shown_is_what_runs_whatever_the_planner_keeps_hold_of() -> None:
    """The planner edits the arguments after it was asked about them (field case 4)."""
    world = World()
    args: dict[str, Any] = {"amount": 1, "to": ["ann"]}
    loop = world.loop()
    paused = loop.run(Scripted(Action(calls=(ToolCall("pay", args),))), "goal")
    args["amount"] = 1000
    args["to"].append("mallory")
    assert paused.pending[0].args == {"amount": 1, "to": ["ann"]}
    loop.resume(paused.run, {paused.pending[0].id: True})
    assert world.done == [("pay", {"amount": 1, "to": ["ann"]})]


def test_an_approver_cannot_edit_what_it_is_shown() -> None:
    """An attempt raises, and so is a no (field case 4)."""

    def meddles(request: ApprovalRequest) -> bool:
        request.args["amount"] = 1000  # type: ignore[index]  # the point
        return True

    world = World()
    world.loop(approver=meddles).run(Scripted(Action.use("pay", amount=1)), "goal")
    assert world.done == []


def test_a_forced_edit_of_what_is_shown_changes_nothing_of_what_runs() -> None:
    """The request and the trace are copies; the run's own value is out of reach (field case 4)."""
    world = World()
    loop = world.loop()
    paused = loop.run(Scripted(Action.use("pay", amount=1)), "goal")
    for shown in (paused.pending[0].args, paused.trace[0].action.calls[0].args):
        dict.__setitem__(cast("dict[str, int]", shown), "amount", 1000)
    loop.resume(paused.run, {paused.pending[0].id: True})
    assert world.done == [("pay", {"amount": 1})]


def test_no_hook_of_a_tool_can_change_what_runs() -> None:
    """What judges the tier and what takes the digest edit a copy each (field case 4)."""

    def meddles(args: Any) -> RiskTier:
        args["amount"] = 1000
        args["to"].append("mallory")
        return RiskTier.IRREVERSIBLE

    world = World()
    world.add("wire", tier=meddles, digest_of=meddles)
    loop = world.loop()
    paused = loop.run(Scripted(Action.use("wire", amount=1, to=["ann"])), "goal")
    assert paused.pending[0].args == {"amount": 1, "to": ["ann"]}
    loop.resume(paused.run, {paused.pending[0].id: True})
    assert world.done == [("wire", {"amount": 1, "to": ["ann"]})]


def test_a_forged_digest_opens_nothing() -> None:
    """What was asked about is compared with what is about to run."""

    def forges(request: ApprovalRequest) -> bool:
        object.__setattr__(request, "digest", "forged")
        return True

    world = World()
    world.loop(approver=forges).run(Scripted(Action.use("pay", amount=1)), "goal")
    assert world.done == []


def test_a_question_to_a_person_names_the_tool_and_the_request() -> None:
    """Of each one that waits."""
    one, two = (
        ApprovalRequest(f"r:1.{number}", "r", tool, RiskTier.IRREVERSIBLE, {}, "digest", "why")
        for number, tool in ((1, "pay"), (2, "send"))
    )
    asked = ApprovalRequired((one, two))
    assert str(asked) == "waiting for a person: pay (r:1.1), send (r:1.2)"
    assert asked.args == ((one, two),)


def test_a_standing_answer_that_was_never_given_can_be_forgotten() -> None:
    """Nothing happens."""
    answers = StandingAnswers()
    answers.forget("pay")
    assert answers.for_tool("pay") == core.NO_ANSWER


def test_the_digest_tells_calls_apart_by_their_arguments() -> None:
    """And not by the order of their keys."""
    world = World()
    calls = [{"to": "ann", "usd": 1}, {"usd": 1, "to": "ann"}, {"to": "ann", "usd": 2}, {"to": "ann", "usd": "1"}]
    step = Action(calls=tuple(ToolCall("pay", args) for args in calls))
    paused = world.loop().run(Scripted(step), "goal")
    digests = [request.digest for request in paused.pending]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3


def test_a_tool_that_edits_its_arguments_does_not_edit_the_record() -> None:
    """It gets a copy of its own, and so does its retry."""
    world = World()
    seen: list[int] = []

    def greedy(rows: list[int]) -> None:
        seen.append(len(rows))
        rows.clear()
        if len(seen) == 1:
            raise OSError("try again")

    world.add("greedy", does=greedy, retries=RetryContainer(1, clock=world.clock))
    result = world.loop().run(Scripted(Action.use("greedy", rows=[1, 2])), "goal")
    assert result.trace[0].observations[0].ok
    assert result.trace[0].action.calls[0].args == {"rows": [1, 2]}
    assert seen == [2, 2]


def test_an_argument_that_cannot_be_frozen_cannot_be_approved() -> None:
    """An object could be changed between the yes and the call."""

    class Account:
        owner = "ann"

    world = World()
    result = world.loop().run(Scripted(Action.use("pay", to=Account())), "goal")
    assert result.outcome is Outcome.COMPLETED
    assert result.trace[0].observations[0].error == "an argument holds a Account; only plain data can be approved"
    assert world.done == []


@pytest.mark.parametrize("parallel", [False, True])
def test_answers_given_in_reverse_order_never_cross(parallel: bool) -> None:
    """Two risky calls in one step: yes to the first, no to the second (field case 6)."""
    world = World()
    loop = world.loop()
    step = Action(calls=two({"to": "ann"}, {"to": "bob"}).calls, parallel=parallel)
    paused = loop.run(Scripted(step), "goal")
    ann, bob = paused.pending
    assert (ann.args["to"], bob.args["to"]) == ("ann", "bob")
    result = loop.resume(paused.run, {bob.id: False, ann.id: True})
    assert world.done == [("pay", {"to": "ann"})]
    assert [seen.seen for seen in result.trace[0].observations] == [Seen.OK, Seen.REFUSED]


@pytest.mark.parametrize("approved", ["ann", "bob"])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("parallel", [False, True])
def test_answers_given_one_by_one_in_any_order_never_cross(
    parallel: bool, order: tuple[int, int], approved: str
) -> None:
    """Each in a resume of its own, the first asked first or last (field case 6)."""
    world = World()
    loop = world.loop()
    paused = loop.run(Scripted(Action(calls=two({"to": "ann"}, {"to": "bob"}).calls, parallel=parallel)), "goal")
    requests = paused.pending
    for place in order:
        result = loop.resume(paused.run, {requests[place].id: requests[place].args["to"] == approved})
    assert result.outcome is Outcome.COMPLETED
    assert world.done == [("pay", {"to": approved})]


def test_equal_calls_in_one_step_have_a_grant_each() -> None:
    """A yes to the first of two equal calls is not a yes to the second."""
    world = World()
    loop = world.loop()
    paused = loop.run(Scripted(two({"to": "ann"}, {"to": "ann"})), "goal")
    first, second = paused.pending
    loop.resume(paused.run, {first.id: True, second.id: False})
    assert world.names == ["pay"]


def test_a_grant_of_one_run_is_nothing_to_another() -> None:
    """The same call of another run has another request and another digest."""
    world = World()
    loop = world.loop()
    one = loop.run(Scripted(Action.use("pay")), "goal", run_id="one")
    other = loop.run(Scripted(Action.use("pay")), "goal", run_id="other")
    assert one.pending[0].digest != other.pending[0].digest
    with pytest.raises(ApprovalError):
        loop.resume(other.run, {one.pending[0].id: True})
    assert world.done == []


# Answers -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [None, "false", "true", 1, 0, [True], False])
def test_only_an_explicit_true_approves(answer: object, tmp_path: Path) -> None:
    """1 and "true" are not a yes, on resume and from an approver, and that is on record (field case 5)."""
    world = World()
    loop = world.loop(audit_folder=tmp_path / "asked")
    paused = loop.run(Scripted(Action.use("pay")), "goal")
    loop.resume(paused.run, {paused.pending[0].id: answer})
    world.loop(audit_folder=tmp_path / "told", approver=lambda _: answer).run(Scripted(Action.use("pay")), "goal")
    assert world.done == []
    assert decisions(tmp_path / "asked") == [(False, "person")]
    assert decisions(tmp_path / "told") == [(False, "approver")]


@pytest.mark.parametrize("run", FACES)
@pytest.mark.parametrize("error", [EOFError(), TimeoutError("no one there"), KeyError("x"), StopIteration()])
def test_an_approver_that_breaks_denies(run: Any, error: Exception, tmp_path: Path) -> None:
    """Whatever it raises, it has not said yes (field case 5)."""

    def breaks(_: ApprovalRequest) -> bool:
        raise error

    world = World()
    result = run(world.loop(approver=breaks, audit_folder=tmp_path), Scripted(Action.use("pay")))
    assert result.outcome is Outcome.COMPLETED
    assert world.done == []
    ((approved, by),) = decisions(tmp_path)
    assert not approved
    assert type(error).__name__ in by


@pytest.mark.parametrize("run", FACES)
@pytest.mark.parametrize(
    "end", [None, "false", "true", 1, False, EOFError(), TimeoutError("no one there"), KeyError("x")], ids=repr
)
def test_an_awaited_approver_approves_by_nothing_but_true(run: Any, end: object, tmp_path: Path) -> None:
    """What it returns or raises once it was awaited is judged as strictly, and is on record (field case 5)."""

    async def approver(_: ApprovalRequest) -> Any:
        await asyncio.sleep(0)
        if isinstance(end, Exception):
            raise end
        return end

    world = World()
    result = run(world.loop(approver=approver, audit_folder=tmp_path), Scripted(Action.use("pay")))
    assert result.outcome is Outcome.COMPLETED
    assert world.done == []
    assert [approved for approved, _ in decisions(tmp_path)] == [False]


@pytest.mark.parametrize("answer", [None, "false", "true", 1, 0, [True], False])
def test_a_harness_approves_by_nothing_but_true(answer: object, tmp_path: Path) -> None:
    """Action by action it is as strict (field case 5)."""
    world = World()
    with world.loop(audit_folder=tmp_path).start("goal") as run:
        with pytest.raises(ApprovalRequired) as asked:
            run.perform(Action.use("pay"))
        assert run.answer({asked.value.requests[0].id: answer})[0].seen is Seen.REFUSED
    assert world.done == []
    assert decisions(tmp_path) == [(False, "person")]


@pytest.mark.parametrize("run", FACES)
def test_an_approver_that_is_still_awaited_at_the_deadline_denies(run: Any, tmp_path: Path) -> None:
    """Its silence is not a yes: the run ends by its ceiling, and the denial is on record (field case 5)."""
    world = World()

    async def silent(_: ApprovalRequest) -> bool:
        world.clock.advance_ns(5 * NS_PER_SECOND)
        await asyncio.Event().wait()
        return True

    loop = world.loop(Limits(max_seconds=3), approver=silent, audit_folder=tmp_path)
    result = run(loop, Scripted(Action.use("pay")))
    assert result.outcome is Outcome.BUDGET_STOP
    assert isinstance(result.stop, TimeStop)
    assert world.done == []
    assert [approved for approved, _ in decisions(tmp_path)] == [False]


@pytest.mark.parametrize("run", FACES)
def test_an_approver_that_says_true_approves_without_a_pause(run: Any, tmp_path: Path) -> None:
    """It sees what a person would see."""
    asked = []

    def approver(request: ApprovalRequest) -> bool:
        asked.append((request.tool, request.args))
        return True

    world = World()
    result = run(world.loop(approver=approver, audit_folder=tmp_path), Scripted(Action.use("pay", to="ann")))
    assert result.outcome is Outcome.COMPLETED
    assert world.names == ["pay"]
    assert asked == [("pay", {"to": "ann"})]
    assert decisions(tmp_path) == [(True, "approver")]


def test_an_approver_may_be_awaited() -> None:
    """On the asyncio face it may take its time without holding the loop."""

    async def approver(_: ApprovalRequest) -> bool:
        await asyncio.sleep(0)
        return True

    world = World()
    asyncio.run(world.loop(approver=approver).arun(Scripted(Action.use("pay")), "goal"))
    assert world.names == ["pay"]


@pytest.mark.parametrize("run", FACES)
@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1)])
def test_an_approver_that_is_interrupted_ends_the_run(run: Any, error: BaseException, tmp_path: Path) -> None:
    """Ctrl-C at the prompt is not a yes, nothing runs, and the denial is on record (field case 5)."""

    def interrupted(_: ApprovalRequest) -> bool:
        raise error

    world = World()
    result = run(world.loop(approver=interrupted, audit_folder=tmp_path), Scripted(Action.use("pay")))
    assert result.outcome is Outcome.FAILED
    assert result.error is error
    assert world.done == []
    assert [approved for approved, _ in decisions(tmp_path)] == [False]


# Standing answers (field case 2) -------------------------------------------------------------------------------------


def test_no_to_the_call_beats_always_for_the_tool() -> None:
    """The operator said always, and no to this one."""
    world = World()
    loop = world.loop()
    paused = loop.run(Scripted(two({"to": "ann"}, {"to": "bob"})), "goal")
    loop.standing.always("pay")
    loop.resume(paused.run, {paused.pending[1].id: False})
    assert world.done == [("pay", {"to": "ann"})]


def test_yes_to_the_call_beats_never_for_the_tool() -> None:
    """The mirror image."""
    world = World()
    loop = world.loop()
    paused = loop.run(Scripted(two({"to": "ann"}, {"to": "bob"})), "goal")
    loop.standing.never("pay")
    loop.resume(paused.run, {paused.pending[1].id: True})
    assert world.done == [("pay", {"to": "bob"})]


@pytest.mark.parametrize(("exact", "ran"), [(False, "ann"), (True, "bob")])
def test_an_answer_to_the_call_stands_whatever_is_said_of_its_tool_afterwards(exact: bool, ran: str) -> None:
    """Bob is answered for first; then the opposite is said for the whole tool, which decides ann (field case 2)."""
    world = World()
    loop = world.loop()
    paused = loop.run(Scripted(two({"to": "ann"}, {"to": "bob"})), "goal")
    loop.resume(paused.run, {paused.pending[1].id: exact})
    (loop.standing.never if exact else loop.standing.always)("pay")
    assert loop.resume(paused.run, {}).outcome is Outcome.COMPLETED
    assert world.done == [("pay", {"to": ran})]


def test_no_to_a_call_beats_always_that_was_said_before_it() -> None:
    """Always lets the first one run; the second is asked about, being in doubt, and denied (field case 2)."""
    world = World()

    def fails() -> None:
        raise OSError("reply lost")

    world.add("wire", does=fails, tier=RiskTier.IRREVERSIBLE, idempotent=False)
    loop = world.loop()
    loop.standing.always("wire")
    paused = loop.run(Scripted(Action.use("wire"), Action.use("wire")), "goal")
    result = loop.resume(paused.run, {paused.pending[0].id: False})
    assert world.names == ["wire"]
    assert result.trace[1].observations[0].error == "a person said no"


def test_a_standing_answer_decides_later_calls_of_its_tool_and_of_no_other(tmp_path: Path) -> None:
    """Always for pay is nothing to send, and the record says that it was standing."""
    world = World()
    standing = StandingAnswers()
    standing.always("pay")
    loop = world.loop(standing=standing, audit_folder=tmp_path)
    result = loop.run(Scripted(Action.use("pay"), Action.use("send")), "goal")
    assert world.names == ["pay"]
    assert [request.tool for request in result.pending] == ["send"]
    assert decisions(tmp_path) == [(True, "standing")]


def test_never_denies_without_asking_the_approver() -> None:
    """And forgetting it asks again."""
    world = World()
    asked = []

    def approver(request: ApprovalRequest) -> bool:
        asked.append(request.tool)
        return True

    loop = world.loop(approver=approver)
    loop.standing.never("pay")
    loop.run(Scripted(Action.use("pay")), "goal")
    assert (world.done, asked) == ([], [])
    loop.standing.forget("pay")
    loop.run(Scripted(Action.use("pay")), "goal")
    assert (world.names, asked) == (["pay"], ["pay"])


# Resuming ------------------------------------------------------------------------------------------------------------


def test_requests_left_open_wait_on() -> None:
    """Nothing of a step runs before its last question is answered."""
    world = World()
    loop = world.loop()
    paused = loop.run(Scripted(two({"to": "ann"}, {"to": "bob"})), "goal")
    ann, bob = paused.pending
    again = loop.resume(paused.run, {bob.id: True})
    assert [request.id for request in again.pending] == [ann.id]
    assert world.done == []
    loop.resume(again.run, {ann.id: True})
    assert world.done == [("pay", {"to": "ann"}), ("pay", {"to": "bob"})]


def test_an_answer_cannot_be_taken_back_on_the_next_resume() -> None:
    """Once answered, a request is not waiting any more."""
    world = World()
    loop = world.loop()
    paused = loop.run(Scripted(two({"to": "ann"}, {"to": "bob"})), "goal")
    ann, bob = paused.pending
    loop.resume(paused.run, {bob.id: False})
    with pytest.raises(ApprovalError):
        loop.resume(paused.run, {bob.id: True})
    loop.resume(paused.run, {ann.id: True})
    assert world.done == [("pay", {"to": "ann"})]


def test_a_run_cannot_be_resumed_twice() -> None:
    """The second resume is an error and nothing runs again."""
    world = World()
    loop = world.loop()
    paused = loop.run(Scripted(Action.use("pay")), "goal")
    answers = {paused.pending[0].id: True}
    loop.resume(paused.run, answers)
    for later in (answers, {}):
        with pytest.raises(ApprovalError, match="resumed already"):
            loop.resume(paused.run, later)
    assert world.names == ["pay"]


def test_an_unknown_request_is_an_error_that_changes_nothing() -> None:
    """A mistyped id neither approves nor spoils the pause."""
    world = World()
    loop = world.loop()
    paused = loop.run(Scripted(Action.use("pay")), "goal")
    with pytest.raises(ApprovalError, match="nothing with the id"):
        loop.resume(paused.run, {paused.pending[0].id: True, "another": True})
    assert world.done == []
    assert loop.resume(paused.run, {paused.pending[0].id: True}).outcome is Outcome.COMPLETED


def test_two_threads_cannot_resume_one_pause_both() -> None:
    """One of them goes on, the others are told that there is nothing to answer."""
    world = World()
    loop = world.loop()
    paused = loop.run(Scripted(Action.use("pay")), "goal")
    start = threading.Barrier(4)
    refused = []

    def race() -> None:
        start.wait(timeout=10)
        try:
            loop.resume(paused.run, {paused.pending[0].id: True})
        except ApprovalError as error:
            refused.append(error)

    threads = [threading.Thread(target=race) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10)
        assert not thread.is_alive()
    assert world.names == ["pay"]
    assert len(refused) == 3


# Expiry --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("waited_s", "expected"), [(59, ["pay"]), (60, []), (61, [])])
def test_a_yes_that_comes_too_late_is_none(waited_s: int, expected: list[str], tmp_path: Path) -> None:
    """The limit itself is too late, and the record says that it was expiry."""
    world = World()
    loop = world.loop(grant_seconds=60, audit_folder=tmp_path)
    paused = loop.run(Scripted(Action.use("pay")), "goal")
    world.clock.advance_ns(waited_s * NS_PER_SECOND)
    loop.resume(paused.run, {paused.pending[0].id: True})
    assert world.names == expected
    assert decisions(tmp_path) == [(True, "person") if expected else (False, "expiry")]


def test_a_question_that_nobody_answers_expires(tmp_path: Path) -> None:
    """Resumed without an answer after its time, the call is denied and the run goes on."""
    world = World()
    loop = world.loop(grant_seconds=60, audit_folder=tmp_path)
    paused = loop.run(Scripted(Action.use("pay")), "goal")
    assert loop.resume(paused.run, {}).outcome is Outcome.NEEDS_APPROVAL
    world.clock.advance_ns(60 * NS_PER_SECOND)
    result = loop.resume(paused.run, {})
    assert result.outcome is Outcome.COMPLETED
    assert result.trace[0].observations[0].error == "the approval expired"
    assert decisions(tmp_path) == [(False, "expiry")]


def test_a_yes_not_used_in_time_is_none() -> None:
    """The first call of the step takes so long that the second one's approval runs out."""
    world = World()
    world.add("slow", does=lambda: world.clock.advance_ns(61 * NS_PER_SECOND))
    loop = world.loop(grant_seconds=60)
    step = Action(calls=(ToolCall("slow"), ToolCall("pay")))
    paused = loop.run(Scripted(step), "goal")
    result = loop.resume(paused.run, {paused.pending[0].id: True})
    assert world.names == ["slow"]
    assert result.trace[0].observations[1].error == "the approval expired"


class SlowToAdmit:
    """A policy that takes a minute over each call of "look"."""

    policy_type = "slow"

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock

    def check(self, context: PolicyContext) -> PolicyDecision:
        """See RuntimePolicy."""
        if context.name == "look":
            self._clock.advance_ns(60 * NS_PER_SECOND)
        return PolicyDecision(True, self.policy_type)

    def release(self, *_: Any) -> None:
        """Took nothing."""

    def report(self, *_: Any) -> None:
        """Learns nothing."""

    def reset(self) -> None:
        """Keeps nothing."""


@pytest.mark.parametrize("run", FACES)
def test_a_yes_that_runs_out_while_an_earlier_call_beside_it_waits_to_be_admitted_is_none(
    run: Any, tmp_path: Path
) -> None:
    """An approval is spent when its own call is about to be admitted, not when its batch is."""
    world = World()
    policies = PolicyPipeline([SlowToAdmit(world.clock)])
    action = Action(calls=(ToolCall("look"), ToolCall("pay")), parallel=True)
    options = {"grant_seconds": 60, "approver": lambda _: True, "audit_folder": tmp_path}
    result = run(world.loop(policies=lambda: policies, **options), Scripted(action))
    assert world.names == ["look"]
    assert result.trace[0].observations[1].error == "the approval expired"
    (path,) = tmp_path.iterdir()
    assert check_run(load(path).events) == []


def test_without_an_expiry_a_question_waits_for_ever() -> None:
    """grant_seconds=None."""
    world = World()
    loop = world.loop(grant_seconds=None)
    paused = loop.run(Scripted(Action.use("pay")), "goal")
    world.clock.advance_ns(10**9 * NS_PER_SECOND)
    loop.resume(paused.run, {paused.pending[0].id: True})
    assert world.names == ["pay"]


# What a yes does not cover -------------------------------------------------------------------------------------------


def test_a_yes_is_for_one_dispatch_and_not_for_its_retries() -> None:
    """A call that a person approved is not repeated by itself, whatever the tool says of retries."""
    world = World()

    def fails() -> None:
        raise OSError("reply lost")

    world.add("wire", does=fails, tier=RiskTier.IRREVERSIBLE, retries=3)
    loop = world.loop(approver=lambda _: True)
    loop.run(Scripted(Action.use("wire")), "goal")
    assert world.names == ["wire"]


def test_a_call_in_doubt_is_not_repeated_blindly() -> None:
    """The effect may have happened though the call raised; the same again waits for a person (field case 38)."""
    world = World()

    def commits_and_fails(to: str) -> None:
        raise OSError(f"reply of {to} lost")

    world.add("post", does=commits_and_fails, tier=RiskTier.WRITE, idempotent=False)
    planner = Scripted(Action.use("post", to="ann"), Action.use("post", to="bob"), Action.use("post", to="ann"))
    result = world.loop().run(planner, "goal")
    assert result.outcome is Outcome.NEEDS_APPROVAL
    assert result.pending[0].reason == "an equal call raised, and nobody knows whether its effect happened"
    assert world.done == [("post", {"to": "ann"}), ("post", {"to": "bob"})]
    assert all(turn.observations[0].unknown for turn in result.trace[:2])


@pytest.mark.parametrize(
    "error", [Denied("inner", "no"), ConfigurationError("x", 1, "y"), OSError()], ids=["denied", "configuration", "os"]
)
def test_whatever_a_tool_raised_its_call_is_in_doubt(error: Exception) -> None:
    """A denial or a refused limit raised from inside the tool does not prove that nothing happened (field case 38)."""
    world = World()

    def fails() -> None:
        raise error

    world.add("post", does=fails, tier=RiskTier.WRITE, idempotent=False)
    result = world.loop().run(Scripted(Action.use("post"), Action.use("post")), "goal")
    assert result.trace[0].observations[0].seen is Seen.ERROR
    assert result.trace[0].observations[0].unknown
    assert result.pending[0].in_doubt


async def loses_its_reply_awaited() -> None:
    """Do it, then raise."""
    await asyncio.sleep(0)
    raise OSError("reply lost")


def loses_its_reply() -> None:
    """Do it, then raise."""
    raise OSError("reply lost")


@pytest.mark.parametrize("run", FACES)
@pytest.mark.parametrize(
    ("fn", "isolate"),
    [(loses_its_reply, None), (loses_its_reply_awaited, None), (loses_its_reply, "thread"), (dies, "process")],
)
def test_however_the_reply_was_lost_the_call_is_in_doubt(run: Any, fn: Any, isolate: Any, tmp_path: Path) -> None:
    """Plain, awaited, on a thread or in a process that died: unknown, charged, and not made again (field case 38)."""
    tool = Tool(name="post", fn=fn, tier=RiskTier.WRITE, cost="0.25", idempotent=False, isolate=isolate)
    world = World()
    world.tools.register(tool)
    loop = world.loop(Limits(max_cost_usd=1), audit_folder=tmp_path)
    result = run(loop, Scripted(Action.use("post"), Action.use("post")))
    assert result.outcome is Outcome.NEEDS_APPROVAL
    assert result.pending[0].in_doubt
    assert result.snapshot.committed_nano == 250_000_000
    (path,) = tmp_path.iterdir()
    assert [event.data["unknown"] for event in load(path).events if event.kind == "tool_error"] == [True]


def test_a_standing_yes_does_not_cover_a_call_in_doubt() -> None:
    """Always means each call that the planner wants, not the same effect twice."""
    world = World()

    def fails() -> None:
        raise OSError("reply lost")

    world.add("wire", does=fails, tier=RiskTier.IRREVERSIBLE, idempotent=False)
    loop = world.loop()
    loop.standing.always("wire")
    result = loop.run(Scripted(Action.use("wire"), Action.use("wire")), "goal")
    assert result.outcome is Outcome.NEEDS_APPROVAL
    assert world.names == ["wire"]


def test_a_call_in_doubt_is_not_repeated_later_in_the_same_step() -> None:
    """The planner asked for it twice; after the first one raised, the second is refused (field case 38)."""
    world = World()

    def fails() -> None:
        raise OSError("reply lost")

    world.add("post", does=fails, tier=RiskTier.WRITE, idempotent=False)
    step = Action(calls=(ToolCall("post"), ToolCall("post")))
    result = world.loop().run(Scripted(step), "goal")
    assert world.names == ["post"]
    assert [seen.seen for seen in result.trace[0].observations] == [Seen.ERROR, Seen.REFUSED]


def test_a_call_in_doubt_stays_in_doubt_until_an_equal_one_returns() -> None:
    """A denial says nothing about the effect; a return does."""
    world = World()
    replies: list[Any] = [OSError("lost"), None, None]

    def post() -> None:
        reply = replies.pop(0)
        if reply is not None:
            raise reply

    world.add("post", does=post, tier=RiskTier.WRITE, idempotent=False)
    loop = world.loop()
    first = loop.run(Scripted(*[Action.use("post")] * 4), "goal")
    second = loop.resume(first.run, {first.pending[0].id: False})
    assert second.outcome is Outcome.NEEDS_APPROVAL
    result = loop.resume(second.run, {second.pending[0].id: True})
    assert result.outcome is Outcome.COMPLETED
    assert world.names == ["post"] * 3


# Driven by a harness -------------------------------------------------------------------------------------------------


def test_a_harness_performs_actions_and_answers_by_itself() -> None:
    """The same gate, action by action."""
    world = World()
    with world.loop().start("goal") as run:
        assert run.perform(Action.use("look"))[0].value == "look done"
        with pytest.raises(ApprovalRequired) as asked:
            run.perform(Action.use("pay"))
        (request,) = asked.value.requests
        assert run.pending == (request,)
        assert run.answer({request.id: True})[0].value == "pay done"
        with pytest.raises(ApprovalError):
            run.answer({request.id: True})
    assert world.names == ["look", "pay"]


def test_answers_for_several_actions_are_given_one_action_at_a_time() -> None:
    """Two actions wait at once; a mix of answers is refused and changes nothing."""
    world = World()
    run = world.loop().start("goal")
    for to in ("ann", "bob"):
        with pytest.raises(ApprovalRequired):
            run.perform(Action.use("pay", to=to))
    ann, bob = run.pending
    with pytest.raises(ApprovalError, match="several actions"):
        run.answer({ann.id: True, bob.id: True})
    run.answer({bob.id: True})
    assert world.done == [("pay", {"to": "bob"})]
    assert run.close().outcome is Outcome.FAILED


def test_a_closed_run_takes_no_answers() -> None:
    """What waited is dropped; nothing runs any more."""
    world = World()
    loop = world.loop(Limits(max_steps=9))
    paused = loop.run(Scripted(Action.use("pay")), "goal")
    assert paused.run.close().outcome is Outcome.FAILED
    with pytest.raises(ApprovalError):
        loop.resume(paused.run, {paused.pending[0].id: True})
    assert world.done == []
