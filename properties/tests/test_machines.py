"""The machines find what is wrong with a runtime, say it in the shortest program, and find nothing in ours."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import settings

from failstop.properties.evidence import GUARANTEES, HOLDS, INCONCLUSIVE, NOT_OFFERED, VIOLATED
from failstop.properties.machines import check
from failstop.properties.machines.check import check_machines
from failstop.properties.machines.machine import DEEP, QUICK, Played, run
from failstop.properties.machines.moves import MACHINES
from failstop.properties.machines.program import read
from failstop.properties.machines.replaying import first_difference, replayed
from failstop.properties.subject import NotOffered
from failstop.properties.subjects.chain import Call, ChainSubject, CloseIt, HaltIt, LetPass
from failstop.properties.targets import load
from failstop.properties.targets.failstop import ContextSession, FailstopTarget
from failstop.runtime.chain.accounts import Account
from failstop.runtime.chain.dispatch import Dispatch
from failstop.runtime.chain.ledger import Ledger
from failstop.runtime.cores import breaker, budget, grant, ledger, quota
from failstop.runtime.limits import Limits
from failstop.runtime.policies import guard

pytestmark = pytest.mark.once

TARGET = "failstop"


@pytest.fixture(scope="module")
def sound():
    """The records of our own runtime, quick."""
    return {record.subject: record for record in check_machines(load(TARGET), TARGET, "quick", None)}


@pytest.mark.parametrize("name", MACHINES)
def test_our_runtime_goes_as_every_reference_says(sound, name):
    """The effort is what was really played: about a hundred programs, or its share, of up to thirty moves."""
    record = sound[name]
    assert (record.verdict, record.layer) == (HOLDS, "machines"), record.detail
    assert record.effort["examples"] >= 100 * MACHINES[name].share
    assert record.effort["steps"] > 10 * record.effort["examples"]
    assert record.effort["seconds"] > 0


def test_quick_is_the_same_each_time():
    """Two runs play the same programs, so that what passed on one machine passes on the next."""
    efforts = []
    for _ in range(2):
        played = Played()
        run(MACHINES["grant"], load(TARGET), "quick", None, played)
        efforts.append((played.examples, played.steps, played.moves))
    assert efforts[0] == efforts[1]


def test_the_profiles_leave_the_users_alone():
    """They are registered under names of ours and none is loaded; deep is more than quick."""
    assert repr(settings()) not in {repr(settings.get_profile(name)) for name in (QUICK, DEEP)}
    assert settings.get_profile(DEEP).max_examples > settings.get_profile(QUICK).max_examples
    assert settings.get_profile(QUICK).derandomize


def _last_step_forgotten(state, bounds, asked, tool, retry, now, admit=ledger.admit):
    after, verdict = admit(state, bounds, asked, tool, retry, now)
    if verdict == ledger.ADMITTED and after[2] == bounds[1]:
        after = (*after[:2], state[2], *after[3:])
    return after, verdict


def _fourth_step_forgotten(state, bounds, asked, tool, retry, now, admit=ledger.admit):
    after, verdict = admit(state, bounds, asked, tool, retry, now)
    if verdict == ledger.ADMITTED and after[2] == 4 and not retry:
        after = (*after[:2], 3, *after[3:])
    return after, verdict


def _retry_not_counted(state, bounds, asked, tool, retry, now, admit=ledger.admit):
    return admit(state, bounds, asked, tool, False, now)


def _deadline_one_late(state, bounds, asked, tool, retry, now, admit=ledger.admit):
    deadline = bounds[4] + 1 if bounds[4] >= 0 else -1
    return admit(state, (*bounds[:4], deadline), asked, tool, retry, now)


def _held_in_flight_forgotten(state, bounds, asked, tool, retry, now, admit=ledger.admit):
    after, verdict = admit((state[0], 0, *state[2:]), bounds, asked, tool, retry, now)
    return (after[0], after[1] + state[1], *after[2:]), verdict


def _half_given_back(state, bounds, held, cost, settle=ledger.settle):
    return settle(state, bounds, (held + 1) // 2, min(cost, (held + 1) // 2) if cost <= held else cost)


def _overrun_goes_on(state, bounds, held, cost, settle=ledger.settle):
    return (*settle(state, bounds, held, cost)[:5], state[5])


def _closed_admits(verdict, closed):
    return verdict


def _halt_is_not_final(state, code, stop=ledger.stop):
    return state if code == ledger.HALTED else stop(state, code)


def _child_draws_on_nothing_else(self, owner, name, limits, *, named):
    return self if limits is None else Ledger(self.chain, (Account(name, limits, self.now_ns()),))


_LIMITED_CHILD = (("/1", Limits()),)

CHAIN_BUGS = {
    "last-step-forgotten": (ledger, "admit", _last_step_forgotten, "G2", 1),
    "fourth-step-forgotten": (ledger, "admit", _fourth_step_forgotten, "G2", 4),
    "retry-not-counted": (ledger, "admit", _retry_not_counted, "G3", 1),
    "deadline-one-late": (ledger, "admit", _deadline_one_late, "G5", 1),
    "held-in-flight-forgotten": (ledger, "admit", _held_in_flight_forgotten, "G1", 1),
    "half-given-back": (ledger, "settle", _half_given_back, "G1", 1),
    "overrun-goes-on": (ledger, "settle", _overrun_goes_on, "G1", 1),
    "closed-admits": (ledger, "unless_closed", _closed_admits, "halt", 2),
    "halt-is-not-final": (ledger, "stop", _halt_is_not_final, "halt", 2),
    "child-draws-on-nothing-else": (Ledger, "child", _child_draws_on_nothing_else, "G2", 1),
}
"""Where it is planted, the guarantee that it breaks, and the moves of the shortest program that shows it."""


def _found(name, *machines):
    records = list(check_machines(load(name), name, "quick", None, machines))
    assert [record.verdict for record in records] == [VIOLATED] * len(machines), records
    return records


@pytest.mark.parametrize("bug", CHAIN_BUGS)
def test_a_planted_bug_is_told_in_the_shortest_program(monkeypatch, bug):
    """It names the guarantee, the printed test fails and its word replays, ten times of ten; without the bug not."""
    place, attribute, wrong, guarantee, length = CHAIN_BUGS[bug]
    with monkeypatch.context() as planted:
        planted.setattr(place, attribute, wrong)
        (record,) = _found(TARGET, MACHINES["chain"])
        word = record.replay.removeprefix("failstop replay ")
        subject, moves = read(word)[1:]
        assert (record.guarantee, len(moves)) == (guarantee, length), record.about["program"]
        again = [replayed(word) for _ in range(10)]
        assert set(again) == {first_difference(TARGET, subject, moves)}
        assert again[0] is not None
        assert again[0] in record.detail
        namespace = {}
        exec(record.about["program"], namespace)  # noqa: S102 - it is meant to be pasted and run
        with pytest.raises(AssertionError):
            namespace["test_found"]()
    assert replayed(word) is None
    namespace["test_found"]()


def _budget_spends_beyond(state, limit, amount, spend=budget.spend):
    return spend(state, limit + 1 if limit >= 0 else limit, amount)


def _grant_used_twice(state, same, now_ns, use=grant.use):
    return state, use(state, same, now_ns)[1]


def _quota_day_never_ends(state, hour, day, roll=quota.roll):
    return roll(state, hour, state[2] or day)


def _breaker_never_opens(state, config, now, admit=breaker.admit):
    return admit((breaker.CLOSED, *state[1:]), config, now)


def _step_given_back_twice(self, context, decision):
    self._taken = guard.give_back(self._taken)


PART_BUGS = {
    "budget": (budget, "spend", _budget_spends_beyond, 1),
    "steps": (guard.AgentStepGuard, "release", _step_given_back_twice, 4),
    "quota": (quota, "roll", _quota_day_never_ends, 3),
    "quota-set-back": (quota, "roll", _quota_day_never_ends, 3),
    "policies": (breaker, "admit", _breaker_never_opens, 3),
    "breaker": (breaker, "admit", _breaker_never_opens, 2),
    "pipeline": (breaker, "admit", _breaker_never_opens, 2),
    "context": (Dispatch, "release", lambda self: self.fail(RuntimeError("it was made")), 3),
    "grant": (grant, "use", _grant_used_twice, 2),
    "approval": (ContextSession, "call", ContextSession._dispatch, 1),
    "audit": ("failstop.properties.targets.failstop_parts.FileLog", "append", lambda self, kind, data: 0, 1),
}


@pytest.mark.parametrize("name", PART_BUGS)
def test_each_machine_finds_a_bug_of_its_own(monkeypatch, name):
    """Its program is the shortest, and its word replays to the same difference."""
    place, attribute, wrong, length = PART_BUGS[name]
    target = f"{place}.{attribute}" if isinstance(place, str) else (place, attribute)
    monkeypatch.setattr(*(target if isinstance(target, tuple) else (target,)), wrong)
    (record,) = _found(TARGET, MACHINES[name])
    word = record.replay.removeprefix("failstop replay ")
    assert len(read(word)[2]) == length, record.about["program"]
    assert record.guarantee == MACHINES[name].guarantee
    assert replayed(word) in record.detail


def test_every_machine_has_a_bug_that_it_finds():
    """A machine that is added here is shown to be able to fail, too."""
    assert {"chain", *PART_BUGS} == set(MACHINES)


def test_what_deep_found_is_tried_first_by_quick(monkeypatch, tmp_path):
    """The database remembers the program; once the bug is gone it is forgotten, and other machines' are not touched."""
    machine = replace(MACHINES["chain"], share=0.05)
    with monkeypatch.context() as planted:
        planted.setattr(ledger, "stop", _halt_is_not_final)
        played = Played()
        assert run(machine, load(TARGET), "deep", tmp_path, played).program is not None
        again = Played()
        assert run(replace(machine, share=0.01), load(TARGET), "quick", tmp_path, again).program is not None
        assert again.examples < played.examples
    kept = tmp_path / TARGET / "chain"
    assert list(kept.iterdir())
    assert run(replace(machine, share=0.01), load(TARGET), "quick", tmp_path, Played()).program is None


class _Broken(FailstopTarget):
    """A target whose adapter breaks."""

    name = "broken"

    def quota(self, max_runs_per_hour, max_nano_per_day, clock):
        raise ZeroDivisionError("no such luck")


class _Bare:
    """A target that offers no parts."""

    name, promises, real_time, exact = "bare", {}, False, True

    def versions(self):
        return {}

    def open(self, limits, world):
        raise NotOffered("it opens nothing")


def test_what_a_target_lacks_is_not_offered_and_what_breaks_is_inconclusive():
    """Neither is shown as kept, and none claims to have played anything that it did not."""
    for record in check_machines(_Bare(), "bare", "quick", None):
        assert (record.verdict, record.effort["steps"]) == (NOT_OFFERED, 0), record
        assert record.guarantee in GUARANTEES
    (record,) = check_machines(_Broken(), "broken", "quick", None, [MACHINES["quota"]])
    assert record.verdict == INCONCLUSIVE
    assert "no such luck" in record.detail


def test_a_move_that_never_ends_is_told(monkeypatch):
    """The harness is not hung by it, and says in which program it was."""
    hung = check.threading.Event()
    monkeypatch.setattr(check, "STILL_S", 0.2)
    monkeypatch.setattr(ContextSession, "close", lambda self: hung.wait())
    try:
        (record,) = check_machines(load(TARGET), TARGET, "quick", None, [MACHINES["chain"]])
    finally:
        hung.set()
    assert record.verdict == INCONCLUSIVE
    assert "did not end" in record.detail
    assert "CloseIt(" in record.detail


def test_a_published_runtime_is_held_to_what_it_promises_and_no_more():
    """A call from within the last call is one too many for it; what it does not offer is said to be not offered."""
    pytest.importorskip("veronica_core")
    records = {each.subject: each for each in check_machines(load("veronica-core"), "veronica-core", "quick", None)}
    chain = records.pop("chain")
    assert (chain.verdict, chain.guarantee) == (VIOLATED, "G2")
    _, subject, moves = read(chain.replay.removeprefix("failstop replay "))
    assert (subject, moves) == (ChainSubject(Limits(max_steps=1)), (Call(inside=(Call(),)),))
    assert records.pop("breaker").verdict == HOLDS
    assert {each.verdict for each in records.values()} == {NOT_OFFERED}


def test_a_tree_with_limits_of_its_own_goes_as_the_reference_says():
    """Grandchildren, narrower children and their deadlines, in one program that uses them all."""
    subject = ChainSubject(
        Limits(max_steps=8, max_cost_usd="0.00000001"),
        1,
        (("/2", Limits(max_steps=2, max_cost_usd="0.000000004")), ("/2/1", Limits(max_retries=1)), ("/1/1", Limits())),
    )
    moves = [
        Call("/2", None, 2, inside=(Call("/2/1", 3, 3), Call("/1/1"))),
        LetPass(3),
        Call("/2/1", 1, 1, True, 1, 1),
        CloseIt("/2/1"),
        Call("/2/1"),
        Call(reserve=None),
        HaltIt("/2"),
        Call("/1/1"),
    ]
    assert first_difference(TARGET, subject, moves) is None
