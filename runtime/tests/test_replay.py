"""Replay: the run from its log alone, whatever its end was; never a number that the log does not have."""

from __future__ import annotations

import contextlib
import dataclasses

import pytest

from failstop.runtime.agent.loop import AgentLoop
from failstop.runtime.agent.planner import Action, ToolCall
from failstop.runtime.agent.tools import RiskTier, Tool, ToolRegistry
from failstop.runtime.audit.canonical import canonical, jsonable
from failstop.runtime.audit.conformance import check_run
from failstop.runtime.audit.log import AuditLog, Event, load
from failstop.runtime.audit.replay import (
    Counters,
    Recorded,
    RecordedFailure,
    ReplayedStop,
    ReplayError,
    ReplayMiss,
    replay,
    story,
)
from failstop.runtime.chain.context import ExecutionContext
from failstop.runtime.clock import VirtualClock
from failstop.runtime.limits import Limits
from failstop.runtime.stops import Stop
from failstop.runtime.tests.scripted import Scripted

LIMITS = Limits(max_cost_usd="0.00001", max_steps=5)


def admit(call, held, *, tool=True, retry=False):
    """An admission in the root context."""
    return "admit", {
        "call": call,
        "context": "r",
        "call_kind": "tool" if tool else "llm",
        "name": "search",
        "asked_nano": held,
        "held_nano": held,
        "retry": retry,
        "at_ns": call,
    }


def settle(call, held, cost):
    """The end of a call."""
    known = {"outcome": "ok", "cost_known": True, "error": None, "at_ns": 9}
    return "settle", {"call": call, "held_nano": held, "cost_nano": cost, **known}


START = (
    "start",
    {"run": "r", "goal": "find", "limits": LIMITS.to_mapping(), "autonomous": "READ", "tools": {"search": "READ"}},
)
APPROVAL = (
    "approval",
    {
        "request": "r:2.1",
        "tool": "send",
        "tier": "EXTERNAL",
        "args": {"to": "ann"},
        "digest": "d",
        "expires_ns": -1,
        "reason": "EXTERNAL is above what the run may do alone",
    },
)
WHOLE = [
    START,
    ("step", {"n": 1, "reasoning": "look", "calls": [{"tool": "search", "args": {"q": "x"}}]}),
    ("turn", {"context": "r", "fingerprint": "f", "at_ns": 0}),
    admit(1, 500),
    settle(1, 500, 300),
    ("tool_result", {"call_id": "1.1", "tool": "search", "value": ["a", b"\xff"]}),
    ("step", {"n": 2, "reasoning": "", "calls": [{"tool": "send", "args": {"to": "ann"}}, {"tool": "no", "args": {}}]}),
    APPROVAL,
    ("resume", {}),
    ("decision", {"request": "r:2.1", "approved": True, "by": "person"}),
    admit(2, 100),
    settle(2, 100, 100),
    ("tool_error", {"call_id": "2.1", "tool": "send", "error": "OSError: no", "unknown": True, "seen": "error"}),
    ("tool_error", {"call_id": "2.2", "tool": "no", "error": "no tool", "unknown": False, "seen": "unknown_tool"}),
    admit(3, 50, retry=True),
    ("release", {"call": 3, "held_nano": 50, "call_kind": "tool", "retry": True}),
    admit(4, 70, tool=False, retry=True),
    ("stop", {"context": "r", "ceiling": "cost", "limit": 10000, "used": 400, "detail": "", "at_ns": 9}),
    ("budget_stop", {"ceiling": "cost", "limit": 10000, "used": 400, "detail": ""}),
    ("finish", {"outcome": "budget_stop", "value": None, "steps": 3, "spent_nano": 400, "error": None}),
]


def events(*told):
    """Events as a log gives them back."""
    return [Event(seq, kind, jsonable(data)) for seq, (kind, data) in enumerate(told)]


def without(index, name):
    """The whole log but for one field of one event."""
    changed = [(kind, dict(data)) for kind, data in WHOLE]
    del changed[index][1][name]
    return events(*changed)


def with_field(index, **fields):
    """The whole log with a field of one event changed."""
    changed = [(kind, dict(data)) for kind, data in WHOLE]
    changed[index][1].update(fields)
    return events(*changed)


# The run


def test_a_run_is_rebuilt_from_its_events():
    """Goal, limits, turns with what came of each call, approvals, stops, counters, outcome."""
    run = replay(events(*WHOLE))
    assert (run.run, run.goal, run.limits, run.outcome, run.error) == ("r", "find", LIMITS, "budget_stop", None)
    first, second = run.turns
    assert (first.number, first.reasoning) == (1, "look")
    assert (first.calls[0].tool, first.calls[0].args, first.calls[0].seen) == ("search", {"q": "x"}, "ok")
    assert first.calls[0].value == ["a", {"$bytes": "\\xff"}]
    assert [(call.seen, call.error, call.unknown) for call in second.calls] == [
        ("error", "OSError: no", True),
        ("unknown_tool", "no tool", False),
    ]
    assert second.calls[0].approval == run.approvals[0]
    assert (run.approvals[0].approved, run.approvals[0].by, run.approvals[0].expires_ns) == (True, "person", -1)
    assert run.stops == (ReplayedStop("r", "cost", 10000, 400, ""),)
    assert run.counters == Counters(committed_nano=400, reserved_nano=70, steps=3, tool_calls=2, retries=1, in_flight=1)
    assert (run.truncated_at, run.mended) == (None, 0)


def test_a_log_replays_the_same_from_the_file(tmp_path):
    """And once it was cut and gone on with, it says so."""
    with AuditLog.create(tmp_path, "r") as log:
        for kind, data in WHOLE:
            log.record(kind, data)
    assert replay(load(log.path)) == replay(events(*WHOLE))
    log.path.write_bytes(log.path.read_bytes()[:-5])
    AuditLog.open(log.path).close()
    run = replay(load(log.path))
    assert (run.outcome, run.mended, run.truncated_at) == ("interrupted", 1, None)


def test_a_log_cut_at_any_event_replays_to_all_that_came_before():
    """Interrupted, or waiting for a person, but never an error once the start is there."""
    for length in range(1, len(WHOLE)):
        run = replay(events(*WHOLE[:length]))
        waiting = 8 <= length < 10
        assert run.outcome == ("needs_approval" if waiting else "interrupted")
        assert run.value is None
        assert len(run.observed) == sum(kind in {"tool_result", "tool_error"} for kind, _ in WHOLE[:length])
        assert run.counters.in_flight == sum(
            {"admit": 1, "settle": -1, "release": -1}.get(kind, 0) for kind, _ in WHOLE[:length]
        )


def test_a_log_cut_at_any_byte_replays_to_a_prefix(tmp_path):
    """Where it was cut is in the run; a call whose result is lost is there without one."""
    with AuditLog.create(tmp_path, "r") as log:
        for kind, data in WHOLE:
            log.record(kind, data)
    content = log.path.read_bytes()
    first_line = content.index(b"\n") + 1
    cut = tmp_path / "cut.jsonl"
    whole = replay(events(*WHOLE))
    for length in range(first_line, len(content), 7):
        cut.write_bytes(content[:length])
        run = replay(load(cut))
        end = content[:length].rfind(b"\n") + 1
        assert run.truncated_at == (None if end == length else end)
        assert [turn.number for turn in run.turns] == [turn.number for turn in whole.turns][: len(run.turns)]


def test_a_planner_that_failed_is_in_the_run():
    """With its error, and the run's own."""
    failed = ("finish", {"outcome": "failed", "value": None, "steps": 0, "spent_nano": 0, "error": "ValueError: x"})
    run = replay(events(START, ("planner_error", {"error": "ValueError: x"}), failed))
    assert (run.outcome, run.error, run.planner_errors) == ("failed", "ValueError: x", ("ValueError: x",))


def test_events_of_kinds_that_say_nothing_of_the_run_are_passed_over():
    """A later version may record more."""
    assert replay(events(START, ("weather", {"n": "?"}))).outcome == "interrupted"


# What the log does not have


@pytest.mark.parametrize(
    "index", [index for index, (kind, _) in enumerate(WHOLE) if kind in {"start", "admit", "settle"}]
)
def test_a_missing_counter_is_an_error_that_names_it(index):
    """Never 0 and never unlimited (field case 11)."""
    kind, data = WHOLE[index]
    needed = set(data) & {"call", "held_nano", "cost_nano", "limits", "run", "goal", "call_kind", "retry"}
    if kind == "settle":
        needed.discard("held_nano")
    for name in needed:
        with pytest.raises(ReplayError, match=rf"event {index} \({kind}\): {name}"):
            replay(without(index, name))


@pytest.mark.parametrize(
    ("index", "name", "value"),
    [
        *((3, "held_nano", wrong) for wrong in (None, "5", 5.0, True, -1, {"$int": "0x1"}, float("nan"))),
        *((4, "cost_nano", wrong) for wrong in (None, "5", -1)),
        *((4, "call", wrong) for wrong in (None, 7, "1")),
        *((19, "steps", wrong) for wrong in (None, -1, "3")),
        *((19, "spent_nano", wrong) for wrong in (None, 0.5)),
        *((17, "limit", wrong) for wrong in ("5", 5.0, True)),
        *((9, "approved", wrong) for wrong in (None, 1, "true")),
        *((9, "request", wrong) for wrong in (None, "other")),
        *((7, "expires_ns", wrong) for wrong in (None, "1", -2)),
        *((1, "n", wrong) for wrong in (None, 0, "1")),
        *((6, "n", wrong) for wrong in (1,)),
        *((1, "calls", wrong) for wrong in (None, {}, ["search"], [{"tool": "search"}], [{"args": {}}])),
        *((5, "call_id", wrong) for wrong in (None, "9.9")),
        *((13, "call_id", wrong) for wrong in ("2.1",)),
        *((12, "unknown", wrong) for wrong in (None, 0)),
        *((10, "call_kind", wrong) for wrong in (None, 5)),
        *((10, "retry", wrong) for wrong in (None, 0)),
    ],
)
def test_a_field_that_cannot_be_read_is_an_error_that_names_it(index, name, value):
    """Of a wrong type, out of range, or at odds with the events before (field case 11)."""
    with pytest.raises(ReplayError, match=rf"event {index} \(.*\): .*{name}"):
        replay(with_field(index, **{name: value}))


FIELDS = [(index, name) for index, (_, data) in enumerate(WHOLE) for name in data]


def accounts(run):
    """What a run may not get wrong: its limits, what was counted and spent, and what a person said."""
    said = [(asked.request, asked.tool, asked.digest, asked.expires_ns, asked.approved) for asked in run.approvals]
    return run.limits, run.counters, said


@pytest.mark.parametrize(("index", "name"), FIELDS, ids=str)
def test_no_lost_field_changes_what_was_spent_counted_or_approved(index, name):
    """Every field of every event, missing and null: refused, or nothing rests on it; never 0 or unlimited."""
    for told in (without(index, name), with_field(index, **{name: None})):
        try:
            run = replay(told)
        except ReplayError:
            continue
        assert accounts(run) == accounts(replay(events(*WHOLE)))


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *(("start", "limits"), ("admit", "call"), ("admit", "held_nano"), ("admit", "retry"), ("admit", "call_kind")),
        *(("settle", "call"), ("settle", "cost_nano"), ("release", "call"), ("finish", "steps")),
        *(("finish", "spent_nano"), ("approval", "request"), ("approval", "digest"), ("approval", "expires_ns")),
        *(("decision", "request"), ("decision", "approved")),
    ],
)
def test_what_spending_steps_and_approvals_rest_on_must_be_there(kind, name):
    """Missing or null in any event of its kind, it is an error that names it (field case 11)."""
    places = [index for index, (told, _) in enumerate(WHOLE) if told == kind]
    assert places
    for index in places:
        for told in (without(index, name), with_field(index, **{name: None})):
            with pytest.raises(ReplayError, match=rf"event {index} \({kind}\): {name}"):
                replay(told)


@pytest.mark.parametrize(("index", "name"), FIELDS, ids=str)
def test_no_lost_field_turns_a_breach_into_obedience(index, name):
    """The audit of a log that breaks its step limit: an error, or the breach, whatever field is gone."""
    limits = {**LIMITS.to_mapping(), "max_steps": 1}
    broken = [(kind, dict(data)) for kind, data in WHOLE]
    broken[0][1]["limits"] = limits
    breaches = {breach.guarantee for breach in check_run(events(*broken))}
    assert "G2" in breaches
    for change in ({}, {name: None}):
        changed = [(kind, dict(data)) for kind, data in broken]
        del changed[index][1][name]
        changed[index][1].update(change)
        try:
            assert breaches <= {breach.guarantee for breach in check_run(events(*changed))}
        except ReplayError:
            continue


@pytest.mark.parametrize("change", [{"max_steps": "5"}, {"max_steps": -1}, {"max_cost_usd": True}, {"max_stepz": 5}])
def test_limits_that_cannot_be_read_are_an_error(change):
    """Each by its own name."""
    limits = {**LIMITS.to_mapping(), **change}
    with pytest.raises(ReplayError, match=f"event 0 .*limits.*{next(iter(change))}"):
        replay(with_field(0, limits=limits))


@pytest.mark.parametrize("name", LIMITS.to_mapping())
def test_a_limit_that_is_missing_is_not_taken_for_none(name):
    """A limit left out of the log would read like a ceiling that never was (field case 11)."""
    limits = {key: value for key, value in LIMITS.to_mapping().items() if key != name}
    with pytest.raises(ReplayError, match=name):
        replay(with_field(0, limits=limits))


def test_a_call_admitted_twice_under_one_number_is_an_error():
    """One of the two reservations would be lost from the sums."""
    with pytest.raises(ReplayError, match="in flight already"):
        replay(events(START, admit(1, 5), admit(1, 5)))


def test_a_log_without_a_start_or_altered_gives_no_run(tmp_path):
    """Its limits are not known, or none of it can be trusted."""
    with pytest.raises(ReplayError, match="start"):
        replay(events(*WHOLE[1:]))
    with pytest.raises(ReplayError, match="start"):
        replay([])
    with AuditLog.create(tmp_path, "r") as log:
        log.record(*START)
    log.path.write_bytes(log.path.read_bytes().replace(b"find", b"lose"))
    with pytest.raises(ReplayError, match="altered"):
        replay(load(log.path))


# Recorded results


def recorded(*results):
    """A player of one call made again and again with these results."""
    told = [START]
    for number, (kind, data) in enumerate(results, start=1):
        told.append(
            ("step", {"n": number, "reasoning": "", "calls": [{"tool": "t", "args": {"b": {1, 2}, "a": b"x"}}]})
        )
        told.append((kind, {"call_id": f"{number}.1", "tool": "t", **data}))
    return Recorded(replay(events(*told)))


def test_equal_calls_give_their_results_in_order_and_then_a_miss():
    """A, then B, then an explicit miss and never A again (field case 10)."""
    player = recorded(("tool_result", {"value": "A"}), ("tool_result", {"value": "B"}))
    args = {"a": b"x", "b": frozenset({2, 1})}
    assert player.result("t", args) == "A"
    assert player.result("t", args) == "B"
    for _ in range(2):
        with pytest.raises(ReplayMiss, match="no more often"):
            player.result("t", args)


def test_a_call_that_was_not_recorded_is_a_miss():
    """Another tool, other arguments, or arguments that only look alike."""
    player = recorded(("tool_result", {"value": "A"}))
    for tool, args in (("u", {"a": b"x", "b": {1, 2}}), ("t", {}), ("t", {"a": "x", "b": {1, 2}}), ("t", {"a": b"x"})):
        with pytest.raises(ReplayMiss, match="never"):
            player.result(tool, args)


def test_a_recorded_failure_fails_again_and_a_result_of_none_is_a_result():
    """In their places among the results."""
    error = {"error": "OSError: no", "unknown": False, "seen": "error"}
    player = recorded(("tool_error", error), ("tool_result", {"value": None}))
    args = {"a": b"x", "b": {1, 2}}
    with pytest.raises(RecordedFailure, match="OSError: no"):
        player.result("t", args)
    assert player.result("t", args) is None


def test_results_are_played_in_the_order_they_were_recorded():
    """Of equal calls made at once, the first to be recorded comes first."""
    calls = [{"tool": "t", "args": {}}, {"tool": "t", "args": {}}]
    late = ("tool_result", {"call_id": "1.2", "tool": "t", "value": "second"})
    first = ("tool_result", {"call_id": "1.1", "tool": "t", "value": "first"})
    player = Recorded(replay(events(START, ("step", {"n": 1, "reasoning": "", "calls": calls}), late, first)))
    assert [player.result("t", {}), player.result("t", {})] == ["second", "first"]


# The story


def test_a_story_is_numbered_plain_and_narrow():
    """To the letter, for a run with everything in it."""
    assert story(replay(events(*WHOLE))) == [
        ' 1  run "r": "find"',
        " 2  limits: max_cost_usd 0.000010000, max_steps 5",
        ' 3  turn 1: "look"',
        ' 4    1.1 calls "search" with {"q":"x"}',
        ' 5      -> ["a",{"$bytes":"\\\\xff"}]',
        " 6  turn 2",
        ' 7    2.1 calls "send" with {"to":"ann"}',
        ' 8      approved by "person" (EXTERNAL)',
        ' 9      -> error: "OSError: no" (its effect may have happened)',
        '10    2.2 calls "no" with {}',
        '11      -> unknown_tool: "no tool"',
        '12  stopped "r": cost, limit $0.00001, used $0.0000004',
        "13  steps 3, tool calls 2, retries 1",
        "14  spent $0.0000004",
        "15  in flight 1, holding $0.00000007",
        "16  outcome: budget_stop",
    ]


def test_a_story_cannot_be_forged_by_what_it_tells():
    """No line breaks, no escape sequences, no line wider than a terminal."""
    evil = "x\n99  outcome: completed\x1b[2J\u202e\x7f" + "y" * 200
    told = [(kind, {**data}) for kind, data in WHOLE]
    told[0][1].update(run=evil, goal=evil)
    told[1][1].update(reasoning=evil, calls=[{"tool": evil, "args": {evil: evil}}])
    told[5][1].update(value=evil)
    told[9][1].update(by=evil)
    told[7][1].update(request=f"{evil}:2.1", tier=evil)
    told[9][1].update(request=f"{evil}:2.1")
    told[12][1].update(error=evil, seen=evil)
    told[17][1].update(context=evil, ceiling=evil, detail=evil)
    told[19][1].update(outcome=evil, value=evil)
    lines = story(replay(events(*told)))
    assert len(lines) == 16
    for line in lines:
        assert line.isascii()
        assert line.isprintable()
        assert len(line) <= 80


def test_the_story_of_an_unfinished_run_says_so():
    """An unanswered question, a call without a result, where the log ends."""
    run = dataclasses.replace(replay(events(*WHOLE[:8])), truncated_at=77, mended=2)
    told = "\n".join(story(run))
    for phrase in ("has not answered", "nothing on record", "at byte 77", "2 times", "outcome: needs_approval"):
        assert phrase in told
    assert "outcome: interrupted" in "\n".join(story(replay(events(*WHOLE[:3]))))


# The runtime itself


def agent(folder, **limits):
    """A loop with a tool of each kind, on a clock that stands still until it is slept on."""
    tools = [
        Tool(name="look", fn=lambda q: (q, b"x", {1}), tier=RiskTier.READ, cost="0.01"),
        Tool(name="send", fn=lambda to: to, tier=RiskTier.EXTERNAL, cost=0, reserve="0.5"),
        Tool(name="boom", fn=lambda: 1 / 0, tier=RiskTier.WRITE, reserve="0.1", retries=2),
        Tool(name="once", fn=lambda: 1 / 0, tier=RiskTier.WRITE, cost=0, idempotent=False),
    ]
    return AgentLoop(ToolRegistry(tools), Limits(**limits), clock=VirtualClock(7), audit_folder=folder)


def agrees(result, folder):
    """The log is whole, breaks no limit and tells the run as the run itself does."""
    found = load(folder / f"{result.run_id}.jsonl")
    assert found.whole
    assert check_run(found.events) == []
    run = replay(found)
    assert run.outcome == result.outcome.value
    assert run.value == jsonable(result.value)
    kept = {field.name for field in dataclasses.fields(Counters)} - {"in_flight"}
    assert run.counters == Counters(**{name: getattr(result.snapshot, name) for name in kept})
    told = [(turn.number, turn.reasoning, [call.tool for call in turn.calls]) for turn in run.turns]
    assert told == [
        (turn.number, turn.action.reasoning, [call.tool for call in turn.action.calls]) for turn in result.trace
    ]
    seen = {call.call_id: (call.seen, call.value, call.error, call.unknown) for call in run.observed}
    assert seen == {
        came.call_id: (came.seen.value, jsonable(came.value), came.error, came.unknown)
        for turn in result.trace
        for came in turn.observations
        if turn.action.calls
    }
    assert len(story(run)) > 5
    return run


def test_a_run_of_the_loop_replays_to_what_it_was(tmp_path):
    """At its pause and at its end: parallel, gated, failing, retried, unknown and empty actions."""
    script = Scripted(
        Action(
            calls=(ToolCall("look", {"q": {1, "\ud800"}}), ToolCall("look", {"q": 2})), parallel=True, reasoning="a\nb"
        ),
        Action.use("boom"),
        Action(calls=(ToolCall("send", {"to": "ann"}), ToolCall("send", {"to": "bob"}), ToolCall("no", {}))),
        Action(calls=()),
        Action.use("once"),
        Action(finished=True, value={"done": (1, b"\xff")}, cost="0.2"),
    )
    loop = agent(tmp_path, max_cost_usd=5, max_steps=30, max_retries=9, max_repeats=3)
    paused = loop.run(script, "try all", run_id="r")
    assert agrees(paused, tmp_path).outcome == "needs_approval"
    ended = loop.resume(paused.run, {"r:3.1": True, "r:3.2": False})
    run = agrees(ended, tmp_path)
    assert run.outcome == "completed"
    assert [(approval.tool, approval.approved) for approval in run.approvals] == [("send", True), ("send", False)]
    assert run.counters.retries == 2
    player = Recorded(run)
    assert player.result("send", {"to": "ann"}) == "ann"
    assert player.result("look", {"q": {"\ud800", 1}})[1] == {"$bytes": "x"}


@pytest.mark.parametrize(
    ("limits", "ceiling"),
    [
        ({"max_steps": 3}, "steps"),
        ({"max_cost_usd": "0.02"}, "cost"),
        ({"max_tool_calls": 2}, "tool_calls"),
        ({"max_repeats": 2}, "repeats"),
    ],
)
def test_a_run_that_is_stopped_replays_to_its_stop(tmp_path, limits, ceiling):
    """With the ceiling, its limit and what was used of it."""
    actions = [Action(calls=(ToolCall("look", {"q": 1}),), reasoning=str(number)) for number in range(9)]
    result = agent(tmp_path, **limits).run(Scripted(*actions), "go on", run_id="r")
    run = agrees(result, tmp_path)
    assert run.outcome == "budget_stop"
    assert [stop.ceiling for stop in run.stops] == [ceiling]
    assert (run.stops[0].limit, run.stops[0].used) == (result.stop.limit, result.stop.used)


def nested(levels):
    """A list so many levels deep."""
    return [] if levels == 0 else [nested(levels - 1)]


@pytest.mark.parametrize(
    "calls",
    [
        *((ToolCall("send", {"to": nested(levels)}),) for levels in (35, 36, 37, 38, 39, 60)),
        tuple(ToolCall("send", {"to": "x" * 250_000 + str(number)}) for number in range(18)),
        (ToolCall("send", {"to": [["x" * 200_000] * 30]}), ToolCall("look", {"q": 1})),
        (ToolCall("x" * 300_000, {}), ToolCall("\ud800", {}), ToolCall("look", {"q": 1})),
    ],
    ids=lambda calls: f"{len(calls)} calls",
)
def test_a_huge_call_takes_no_other_calls_place_in_the_log(calls, tmp_path):
    """Nor its own tool's name: however large the action, the log is judged and replayed call by call."""
    loop = agent(tmp_path)
    result = loop.run(Scripted(Action(calls=calls), Action.finish()), "g", run_id="r")
    while result.pending:
        result = loop.resume(result.run, {request.id: True for request in result.pending})
    log = load(tmp_path / "r.jsonl")
    assert check_run(log.events) == []
    run = replay(log)
    assert run.outcome == result.outcome == "completed"
    assert [call.args for call in run.turns[0].calls] == [jsonable(call.args) for call in calls]
    assert run.turns[0].calls[-1].tool == calls[-1].tool
    assert {call.seen for call in run.turns[0].calls} <= {"ok", "unknown_tool"}


class Silent(BaseException):
    """An error that cannot be looked at."""

    def __str__(self):
        raise Silent

    __repr__ = __str__


@pytest.mark.parametrize("error", [Silent(), ValueError(Silent()), OSError(5, Silent())], ids=["itself", "1", "2"])
def test_an_error_that_cannot_be_looked_at_is_on_record_all_the_same(error, tmp_path):
    """Of a tool, and of the planner: by its type, and the log is whole."""

    def fail():
        raise error

    loop = AgentLoop(ToolRegistry([Tool(name="t", fn=fail, tier=RiskTier.READ)]), Limits(), audit_folder=tmp_path)
    for number, planner in enumerate((Scripted(Action.use("t"), Action.finish()), Scripted(error))):
        result = loop.run(planner, "g", run_id=f"r{number}")
        run = agrees(result, tmp_path)
        told = run.observed[0].error if run.observed else run.planner_errors[0]
        assert told.startswith(type(error).__name__)


@pytest.mark.parametrize("text", ["x" * 300_000, "\ud800"], ids=["huge", "half a character"])
def test_a_text_that_json_cannot_hold_as_it_is_is_read_as_it_was_spelled(text, tmp_path):
    """Goal, reasoning, an unknown tool's name and error: an honest log is never refused for its texts."""
    action = Action(calls=(ToolCall(text, {}),), reasoning=text)
    result = agent(tmp_path).run(Scripted(action, Action.finish()), text, run_id="r")
    run = replay(load(tmp_path / "r.jsonl"))
    assert run.outcome == result.outcome == "completed"
    assert run.goal == run.turns[0].reasoning == run.turns[0].calls[0].tool == canonical(text)


def test_a_run_that_failed_replays_to_its_error(tmp_path):
    """The planner's own, in its place."""
    run = agrees(agent(tmp_path).run(Scripted(Action.use("once"), ValueError("no idea")), "fail", run_id="r"), tmp_path)
    assert run.outcome == "failed"
    assert run.error == run.planner_errors[0] == "ValueError: no idea"


@pytest.mark.parametrize(
    ("limits", "closes", "outcome"),
    [
        (Limits(max_steps=9), True, "closed"),
        (Limits(max_steps=9), False, "interrupted"),
        (Limits(max_steps=1), False, "budget_stop"),
        (Limits(max_steps=1), True, "budget_stop"),
    ],
)
def test_a_context_without_a_loop_replays_to_its_counters_and_stops(limits, closes, outcome, tmp_path):
    """Named by the context; there are no turns."""
    with AuditLog.create(tmp_path, "c") as log:
        context = ExecutionContext(limits, audit=log, name="c", clock=VirtualClock())
        for _ in range(2):
            with contextlib.suppress(Stop):
                context.call(lambda: None, cost="0.01")
        if closes:
            context.close()
    run = replay(load(log.path))
    assert (run.run, run.goal, run.turns, run.limits, run.outcome) == ("c", "", (), limits, outcome)
    counted = context.snapshot()
    assert (run.counters.steps, run.counters.committed_nano) == (counted.steps, counted.committed_nano)
    assert counted.steps == min(limits.max_steps, 2)
    assert [stop.ceiling for stop in run.stops] == ["steps"] * (outcome == "budget_stop")
    assert story(run)[0].endswith('run "c"')


def test_a_log_of_two_chains_gives_no_run():
    """Whose counters would they be?"""
    opened = ("open", {"context": "c", "limits": LIMITS.to_mapping(), "at_ns": 0})
    with pytest.raises(ReplayError, match="second chain"):
        replay(events(opened, opened))


def test_a_sub_agents_log_replays_beside_its_parents(tmp_path):
    """Its ledger is in the parent's log; its turns are in its own."""
    inner = agent(tmp_path, max_steps=4)

    def delegate(context, **_):
        return inner.run(
            Scripted(Action.use("look", q=1), Action.finish("sub")), "sub", run_id="sub", parent=context
        ).value

    outer = AgentLoop(
        ToolRegistry([Tool(name="delegate", fn=delegate, tier=RiskTier.READ, cost=0, with_context=True)]),
        Limits(max_steps=9, max_cost_usd=1),
        clock=VirtualClock(7),
        audit_folder=tmp_path,
    )
    result = outer.run(Scripted(Action.use("delegate"), Action.finish()), "delegate", run_id="r")
    run = agrees(result, tmp_path)
    assert run.counters.steps == 2
    sub = load(tmp_path / "sub.jsonl")
    assert sub.whole
    assert check_run(sub.events) == []
    assert (replay(sub).outcome, replay(sub).value, replay(sub).counters) == ("completed", "sub", Counters())
