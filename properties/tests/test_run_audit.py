"""A log judged: altered, empty, beyond its limits, or without what a judgement rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from failstop.properties.evidence import HOLDS, INCONCLUSIVE, VIOLATED, worst
from failstop.properties.run_audit import audit, retell
from failstop.runtime.agent.loop import AgentLoop
from failstop.runtime.agent.planner import Action
from failstop.runtime.agent.tools import RiskTier, Tool, ToolRegistry
from failstop.runtime.audit.log import AuditLog, load
from failstop.runtime.chain.context import ExecutionContext
from failstop.runtime.limits import Limits
from failstop.runtime.tests.scripted import Scripted

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

START = {"run": "run", "goal": "none", "limits": Limits(max_steps=1).to_mapping(), "autonomous": "WRITE", "tools": {}}


def admit(call: int) -> dict[str, Any]:
    """Say that a call was let in."""
    told = {"call": call, "context": "run", "call_kind": "tool", "name": "search", "retry": False}
    return {**told, "asked_nano": 0, "held_nano": 0, "at_ns": 0}


def settle(call: int) -> dict[str, Any]:
    """Say that it ended."""
    told = {"call": call, "held_nano": 0, "cost_nano": 0, "outcome": "ok", "cost_known": True}
    return {**told, "error": None, "at_ns": 0}


def written(folder: Path, *events: tuple[str, dict[str, Any]]) -> Path:
    """Write a log."""
    log = AuditLog.create(folder, "run")
    for kind, data in events:
        log.record(kind, data)
    log.close()
    return folder / "run.jsonl"


def test_a_run_beyond_its_limits_is_violated_where_it_is(tmp_path: Path) -> None:
    """The log is whole and the run is not right; the two are two records."""
    path = written(
        tmp_path,
        ("start", START),
        ("admit", admit(1)),
        ("settle", settle(1)),
        ("admit", admit(2)),
        ("settle", settle(2)),
        finish(2),
    )
    verdicts = {record.guarantee: record.verdict for record in audit(path)}
    assert verdicts["audit"] == HOLDS
    assert verdicts["G2"] == VIOLATED
    assert verdicts["G1"] == HOLDS
    (broken,) = [record for record in audit(path) if record.verdict == VIOLATED]
    assert broken.replay == f"failstop audit {path}"


def finish(steps: int = 1) -> tuple[str, dict[str, Any]]:
    """Say that the run came to its end."""
    return "finish", {"outcome": "completed", "value": None, "steps": steps, "spent_nano": 0, "error": None}


WHOLE = (("start", START), ("admit", admit(1)), ("settle", settle(1)), finish())


def verdicts_of(path: Path, pin: str | None = None) -> tuple[str, str]:
    """Give the worst verdict of the audit, and that of the replay."""
    return worst(record.verdict for record in audit(path, pin)), retell(path, pin).verdict


def test_a_whole_log_of_an_obedient_run_holds(tmp_path: Path) -> None:
    """Judged and told alike."""
    path = written(tmp_path, *WHOLE)
    assert verdicts_of(path) == (HOLDS, HOLDS)
    assert retell(path).detail == "replayed to completed after 1 steps and 0 retries"


@pytest.mark.parametrize("content", [b"", b"garbage without an end", b'{"seq":0,"kind":"sta'])
def test_a_file_without_a_whole_event_proves_nothing(tmp_path: Path, content: bytes) -> None:
    """A run that was killed before its first event did nothing wrong, and nothing right."""
    path = tmp_path / "run.jsonl"
    path.write_bytes(content)
    (record,) = audit(path)
    assert record.verdict == INCONCLUSIVE
    assert record.detail.startswith("there is no whole event")
    assert ("cut off" in record.detail) == bool(content)
    assert retell(path).verdict == INCONCLUSIVE


@pytest.mark.parametrize("content", [b"garbage\n", b"\n", b"{}\n", b"\x00\xff\n\n"])
def test_garbage_is_no_log(tmp_path: Path, content: bytes) -> None:
    """A line that no writer sealed was altered, and judged and told alike."""
    path = tmp_path / "run.jsonl"
    path.write_bytes(content)
    assert verdicts_of(path) == (VIOLATED, VIOLATED)


def test_a_log_that_was_cut_holds_up_to_there_and_says_so(tmp_path: Path) -> None:
    """A run that was killed did nothing that is not on record; the audit and the replay agree."""
    path = written(tmp_path, *WHOLE)
    content = path.read_bytes()
    ends = {place + 1 for place, byte in enumerate(content[:-1]) if byte == ord("\n")}
    for length in sorted({*range(0, len(content), 29), *ends, len(content) - 1}):
        path.write_bytes(content[:length])
        told = HOLDS if length >= min(ends) else INCONCLUSIVE
        assert verdicts_of(path) == (told, told)
        assert told == INCONCLUSIVE or all("ends before the run did" in record.detail for record in audit(path))
        torn = length > 0 and not content[:length].endswith(b"\n")
        assert {"; cut off in the middle" in record.detail for record in audit(path)} == {torn}


def test_a_log_without_its_tail_says_that_it_ends_before_the_run(tmp_path: Path) -> None:
    """Each guarantee is judged up to there; what is on record and breaks one is found."""
    path = written(tmp_path, *WHOLE[:-1], ("admit", admit(2)))
    records = {record.guarantee: record for record in audit(path)}
    assert records["G2"].verdict == VIOLATED
    assert {record.verdict for name, record in records.items() if name != "G2"} == {HOLDS}
    up_to = ", up to where the log ends before the run did: killed, or its end was removed"
    assert records["audit"].detail == "4 events, unaltered" + up_to
    assert records["G1"].detail == "nothing on record breaks it" + up_to
    told = retell(path)
    assert told.verdict == VIOLATED
    assert "G2: G2 at event 3: 2 dispatches in 'run', limit 1" in told.detail
    assert told.about["outcome"] == "interrupted"


def test_a_run_that_waits_for_a_person_is_not_over(tmp_path: Path) -> None:
    """What it will do with the answer is not on record, and that is said."""
    asked = {"request": "run:1.1", "tool": "send", "tier": "EXTERNAL", "args": {}, "digest": "d", "expires_ns": -1}
    step = ("step", {"n": 1, "reasoning": "", "calls": [{"tool": "send", "args": {}}]})
    path = written(tmp_path, ("start", START), step, ("approval", {**asked, "reason": ""}))
    assert verdicts_of(path) == (HOLDS, HOLDS)
    assert audit(path)[0].detail.endswith("up to where the run waits for a person")


def test_a_pin_finds_whole_events_that_were_cut_off(tmp_path: Path) -> None:
    """And the command that shows it again has the pin."""
    path = written(tmp_path, *WHOLE)
    pin = load(path).head
    assert verdicts_of(path, pin) == (HOLDS, HOLDS)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    assert verdicts_of(path, pin) == (VIOLATED, VIOLATED)
    assert audit(path, pin)[0].replay == f"failstop audit {path} --pin {pin}"


def test_a_log_that_was_sealed_anew_and_contradicts_itself_is_violated(tmp_path: Path) -> None:
    """Its hashes are right, and its totals are not."""
    path = written(tmp_path, *WHOLE[:-1], finish(steps=7))
    (broken,) = [record for record in audit(path) if record.verdict == VIOLATED]
    assert broken.guarantee == "audit"
    assert "contradicts itself" in broken.detail
    assert retell(path).verdict == VIOLATED


def test_a_context_without_a_loop_is_judged_by_its_own_log(tmp_path: Path) -> None:
    """By the limits it was opened with; it is over once it was closed."""
    log = AuditLog.create(tmp_path, "run")
    context = ExecutionContext(Limits(max_steps=2), audit=log, name="alone")
    context.call(lambda: None, cost=0)
    assert "ends before the run did" in audit(log.path)[0].detail
    context.close()
    log.close()
    assert "ends before the run did" not in audit(log.path)[0].detail
    assert verdicts_of(log.path) == (HOLDS, HOLDS)
    assert retell(log.path).about["outcome"] == "closed"


def test_a_log_without_its_start_cannot_be_judged(tmp_path: Path) -> None:
    """Without the limits nobody can say whether they were kept."""
    verdicts = [record.verdict for record in audit(written(tmp_path, ("admit", admit(1))))]
    assert verdicts == [HOLDS, INCONCLUSIVE]


def test_what_cannot_be_rebuilt_is_not_told(tmp_path: Path) -> None:
    """A story from a log that lacks its start would be made up."""
    record = retell(written(tmp_path, ("admit", admit(1))))
    assert record.verdict == INCONCLUSIVE
    assert "story" not in record.about


@pytest.mark.parametrize(
    ("forge", "guarantee"),
    [
        (lambda kind, data: {**data, "cost_nano": 2 * 10**9} if kind == "settle" else data, "halt"),
        (lambda kind, data: None if kind == "settle" else data, "audit"),
        (lambda kind, data: {**data, "outcome": "budget_stop"} if kind == "finish" else data, "audit"),
        (lambda kind, data: {**data, "steps": 1} if kind == "finish" else data, "audit"),
        (lambda kind, data: {**data, "tier": "WRITE"} if kind == "approval" else data, "approval"),
        (lambda kind, data: {**data, "limits": Limits().to_mapping()} if kind == "start" else data, "audit"),
    ],
    ids=["a raised cost", "no costs", "another outcome", "fewer steps", "a milder tier", "no limits"],
)
def test_a_forged_log_of_a_real_run_is_violated(
    forge: Callable[[str, dict[str, Any]], dict[str, Any] | None], guarantee: str, tmp_path: Path
) -> None:
    """Whoever rewrites events and all hashes after them leaves a log that loads, and that contradicts itself."""
    loop = AgentLoop(
        ToolRegistry([Tool(name="pay", fn=lambda n: n, tier=RiskTier.IRREVERSIBLE, cost="0.1")]),
        Limits(max_cost_usd=1),
        audit_folder=tmp_path / "real",
        approver=lambda _: True,
    )
    loop.run(Scripted(Action.use("pay", n=1), Action.use("pay", n=2), Action.finish()), "pay", run_id="run")
    honest = tmp_path / "real" / "run.jsonl"
    assert verdicts_of(honest) == (HOLDS, HOLDS)
    told = [(event.kind, forge(event.kind, dict(event.data))) for event in load(honest).events]
    forged = written(tmp_path, *((kind, data) for kind, data in told if data is not None))
    assert load(forged).problem is None
    assert guarantee in {record.guarantee for record in audit(forged) if record.verdict == VIOLATED}
    assert retell(forged).verdict == VIOLATED


def test_the_log_of_a_sub_agent_says_where_its_dispatches_are(tmp_path: Path) -> None:
    """It has none of its own, so that it broke no limit is not to be read from it alone."""

    def loop(*tools: Tool) -> AgentLoop:
        return AgentLoop(ToolRegistry(tools), Limits(max_steps=9), audit_folder=tmp_path)

    def delegate(context: ExecutionContext) -> str:
        look = Tool(name="look", fn=lambda: 1, tier=RiskTier.READ, cost=0)
        return str(loop(look).run(Scripted(Action.use("look")), "inner", run_id="inner", parent=context).outcome)

    outer = loop(Tool(name="delegate", fn=delegate, tier=RiskTier.READ, cost=0, with_context=True))
    outer.run(Scripted(Action.use("delegate")), "outer", run_id="outer")
    told = {name: {one.guarantee: one for one in audit(tmp_path / f"{name}.jsonl")} for name in ("inner", "outer")}
    assert told["outer"]["G2"].detail == "nothing on record breaks it"
    assert told["inner"]["G2"].detail.endswith("; its dispatches and costs are in the log of the run of 'outer'")
