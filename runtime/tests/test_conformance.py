"""The monitor: every way to break a limit shows in a log made by hand, and an obedient run shows nothing."""

from __future__ import annotations

import contextlib
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from failstop.runtime.audit.canonical import jsonable
from failstop.runtime.audit.conformance import Breach, check_run
from failstop.runtime.audit.event_fields import ReplayError
from failstop.runtime.audit.log import AuditLog, Event, load
from failstop.runtime.chain.context import ExecutionContext
from failstop.runtime.clock import VirtualClock
from failstop.runtime.cores import ledger as core
from failstop.runtime.limits import Limits
from failstop.runtime.money import Money
from failstop.runtime.stops import Denied, Stop


class Log:
    """A log made by hand: each method adds one event and gives its number."""

    def __init__(self, limits=None, *, tools=None, autonomous="READ", start=True):
        self.events = []
        self.calls = 0
        self.now_ns = 0
        if start:
            terms = {"limits": (limits or Limits()).to_mapping(), "autonomous": autonomous, "tools": tools or {}}
            self.record("start", {"run": "r", "goal": "", **terms})

    def record(self, kind, data, /):
        """Any event."""
        self.events.append(Event(len(self.events), kind, jsonable(dict(data))))
        return self.events[-1].seq

    def admit(self, held=0, *, asked=None, context="r", tool=False, retry=False, name="t", call=None):
        """A dispatch, in the root unless said otherwise."""
        self.calls += 1
        return self.record(
            "admit",
            {
                "call": self.calls if call is None else call,
                "context": context,
                "call_kind": "tool" if tool else "llm",
                "name": name,
                "asked_nano": held if asked is None else asked,
                "held_nano": held,
                "retry": retry,
                "at_ns": self.now_ns,
            },
        )

    def settle(self, cost, *, held=None, call=None, known=True):
        """The end of the last call, unless said otherwise."""
        call = self.calls if call is None else call
        given_up = {"call": call, "held_nano": cost if held is None else held, "cost_nano": cost}
        return self.record("settle", {**given_up, "outcome": "ok", "cost_known": known, "error": None, "at_ns": 0})

    def release(self, held=0, *, call=None, tool=False, retry=False):
        """The last call never began."""
        call = self.calls if call is None else call
        return self.record(
            "release", {"call": call, "held_nano": held, "call_kind": "tool" if tool else "llm", "retry": retry}
        )

    def dispatch(self, held=0, **options):
        """A dispatch and its end."""
        seq = self.admit(held, **options)
        self.settle(held)
        return seq

    def stop(self, ceiling, context="r"):
        """A stop by some ceiling."""
        numbers = {"limit": None, "used": None, "detail": "", "at_ns": self.now_ns}
        return self.record("stop", {"context": context, "ceiling": ceiling, **numbers})

    def child(self, name, parent="r", limits=None, **more):
        """A context under another."""
        given = None if limits is None else limits.to_mapping()
        return self.record("child", {"context": name, "parent": parent, "limits": given, **more})

    def turn(self, fingerprint, context="r"):
        """A planner's turn."""
        return self.record("turn", {"context": context, "fingerprint": fingerprint, "at_ns": 0})

    def step(self, number, *calls):
        """The calls of a turn, as (tool, args)."""
        asked = [{"tool": tool, "args": args} for tool, args in calls]
        return self.record("step", {"n": number, "reasoning": "", "calls": asked})

    def ask(self, call_id, tool, args, expires_ns=-1, tier=None):
        """A question to a person."""
        tier = tier or ("IRREVERSIBLE" if tool == "wipe" else "EXTERNAL")
        shown = {"tool": tool, "tier": tier, "args": args, "digest": "d", "reason": ""}
        return self.record("approval", {"request": f"r:{call_id}", **shown, "expires_ns": expires_ns})

    def answer(self, call_id, approved=True):
        """The answer."""
        return self.record("decision", {"request": f"r:{call_id}", "approved": approved, "by": "person"})

    def result(self, call_id, tool):
        """A call returned."""
        return self.record("tool_result", {"call_id": call_id, "tool": tool, "value": None})

    def breaches(self):
        """What the monitor says, in short."""
        return [(breach.guarantee, breach.seq) for breach in check_run(self.events)]


def only(log):
    """The one breach of a log."""
    (breach,) = check_run(log.events)
    return breach


# G1


def test_money_held_above_the_ceiling_is_found():
    """Committed and reserved together, whether the dispatches were at once or one after the other (G1)."""
    log = Log(Limits(max_cost_usd=Money(100)))
    log.dispatch(60)
    log.admit(40)
    assert log.breaches() == []
    seq = log.admit(1)
    assert only(log) == Breach("G1", seq, "$0.000000101 committed or held in 'r', limit $0.0000001", 100, 101)


def test_each_dispatch_too_many_is_a_breach_of_its_own():
    """Sixteen at once with room for five are eleven breaches."""
    log = Log(Limits(max_cost_usd=Money(5)))
    seqs = [log.admit(1) for _ in range(16)]
    assert log.breaches() == [("G1", seq) for seq in seqs[5:]]


def test_a_dispatch_that_holds_less_than_it_asked_for_is_found():
    """Its bound would not be covered (G1)."""
    log = Log(Limits(max_cost_usd=Money(100)))
    seq = log.admit(5, asked=10)
    assert only(log) == Breach("G1", seq, f"a dispatch holds {Money(5)} where it must hold {Money(10)}", 10, 5)


def test_a_dispatch_without_an_estimate_must_hold_all_that_is_left_and_run_alone():
    """Unknown is not free (G1)."""
    obedient = Log(Limits(max_cost_usd=Money(100)))
    obedient.dispatch(30)
    obedient.admit(70, asked=-1)
    assert obedient.breaches() == []
    log = Log(Limits(max_cost_usd=Money(100)))
    log.dispatch(30)
    short = log.admit(60, asked=-1)
    beside = log.admit(10, asked=-1)
    assert log.breaches() == [("G1", short), ("G1", beside)]


def test_a_dispatch_without_an_estimate_and_without_a_ceiling_holds_nothing():
    """There is nothing that could run out."""
    log = Log()
    log.admit(0, asked=-1)
    log.admit(0, asked=-1)
    assert log.breaches() == []


def test_a_call_of_unknown_cost_that_is_not_charged_all_it_held_is_found():
    """It may have spent it all (G1)."""
    log = Log(Limits(max_cost_usd=Money(100)))
    log.admit(50)
    seq = log.settle(10, held=50, known=False)
    assert (only(log).guarantee, only(log).seq, only(log).limit, only(log).used) == ("G1", seq, 50, 10)


@pytest.mark.parametrize("again", [Log.settle, Log.release])
def test_a_call_that_ends_twice_is_found(again):
    """Its reservation would be given back twice (G1)."""
    log = Log()
    log.admit(5)
    log.settle(5)
    seq = again(log, 5)
    assert log.breaches() == [("G1", seq)]


@pytest.mark.parametrize("end", [Log.settle, Log.release])
def test_a_call_that_was_never_admitted_is_found_when_it_ends(end):
    """It was dispatched past the ledger (G1)."""
    log = Log()
    seq = end(log, 5, call=9)
    assert log.breaches() == [("G1", seq)]


@pytest.mark.parametrize("end", [lambda log: log.settle(2, held=7), lambda log: log.release(7)])
def test_a_call_that_gives_up_more_than_it_held_is_found(end):
    """Room would appear from nothing (G1)."""
    log = Log(Limits(max_cost_usd=Money(100)))
    log.admit(5)
    seq = end(log)
    assert log.breaches() == [("G1", seq)]


def test_two_calls_of_one_number_are_found():
    """One of them would never be settled (G1)."""
    log = Log()
    log.admit(5, call=1)
    seq = log.admit(5, call=1)
    assert log.breaches() == [("G1", seq)]


def test_a_dispatch_after_a_call_cost_more_than_it_held_is_found():
    """The overrun itself is allowed to happen once, and ends the chain (G1, halt)."""
    log = Log(Limits(max_cost_usd=Money(100)))
    log.admit(10)
    log.settle(11, held=10)
    log.stop("cost")
    assert log.breaches() == []
    seq = log.admit(1)
    assert log.breaches() == [("halt", seq)]
    unlimited = Log()
    unlimited.admit(10)
    unlimited.settle(11, held=10)
    unlimited.admit(1)
    assert unlimited.breaches() == []


# G2, G3, G5, halt


def test_dispatches_above_the_step_limit_are_found_with_their_number():
    """Failed ones count (G2)."""
    log = Log(Limits(max_steps=2))
    log.dispatch()
    log.dispatch()
    seqs = [log.dispatch(), log.dispatch()]
    breaches = check_run(log.events)
    assert [(breach.seq, breach.limit, breach.used) for breach in breaches] == [(seqs[0], 2, 3), (seqs[1], 2, 4)]
    assert str(breaches[0]) == f"G2 at event {seqs[0]}: 3 dispatches in 'r', limit 2"


def test_a_released_dispatch_does_not_count():
    """It never began (G2)."""
    log = Log(Limits(max_steps=1, max_tool_calls=1, max_retries=1))
    log.admit(tool=True, retry=True)
    log.release(tool=True, retry=True)
    log.admit(tool=True, retry=True)
    assert log.breaches() == []


def test_tool_calls_and_retries_above_their_limits_are_found():
    """Each counted apart from the rest (G2, G3)."""
    log = Log(Limits(max_tool_calls=1, max_retries=1))
    log.dispatch(tool=True)
    log.dispatch()
    log.dispatch(retry=True)
    assert log.breaches() == []
    tool, retry = log.dispatch(tool=True), log.dispatch(retry=True)
    assert log.breaches() == [("G2", tool), ("G3", retry)]


def test_a_limit_of_zero_allows_none():
    """Zero is a limit and not the lack of one."""
    for limits, guarantee in (
        (Limits(max_cost_usd=0), "G1"),
        (Limits(max_steps=0), "G2"),
        (Limits(max_tool_calls=0), "G2"),
        (Limits(max_retries=0), "G3"),
        (Limits(max_seconds=0), "G5"),
    ):
        log = Log(limits)
        seq = log.admit(1, tool=True, retry=True)
        assert log.breaches() == [(guarantee, seq)]


def test_a_dispatch_at_or_after_the_deadline_is_found():
    """The instant itself is too late (G5)."""
    log = Log(Limits(max_seconds=1))
    log.now_ns = 10**9 - 1
    log.dispatch()
    assert log.breaches() == []
    log.now_ns = 10**9
    seq = log.dispatch()
    assert only(log) == Breach("G5", seq, "1000000000 ns at a dispatch in 'r', limit 1000000000", 10**9, 10**9)


def test_a_dispatch_after_a_stop_is_found_however_much_room_is_left():
    """The first stop is final (halt)."""
    log = Log(Limits(max_steps=100))
    log.dispatch()
    log.stop("halt")
    log.stop("steps")
    first, second = log.dispatch(), log.dispatch()
    detail = "a dispatch after 'r' was stopped by halt"
    assert check_run(log.events) == [Breach("halt", first, detail), Breach("halt", second, detail)]


def test_a_dispatch_in_a_closed_context_is_found():
    """Its chain may go on in others (halt)."""
    log = Log()
    log.child("c")
    log.record("close", {"context": "c"})
    log.dispatch()
    assert log.breaches() == []
    seq = log.dispatch(context="c")
    assert log.breaches() == [("halt", seq)]


def test_a_call_in_flight_at_a_stop_may_settle():
    """It was dispatched before (halt)."""
    log = Log(Limits(max_cost_usd=Money(10)))
    log.admit(5)
    log.stop("halt")
    log.settle(5)
    assert log.breaches() == []


# Children


def test_children_draw_from_their_root():
    """A dispatch anywhere counts at the top."""
    log = Log(Limits(max_steps=2))
    log.child("c")
    log.child("c/1", parent="c")
    log.dispatch(context="c")
    log.dispatch(context="c/1")
    seq = log.dispatch(context="c/1")
    assert log.breaches() == [("G2", seq)]


def test_a_childs_own_limits_are_kept_too():
    """Narrower ones bind it and what is under it, not its parent."""
    log = Log(Limits(max_steps=10, max_cost_usd=Money(100)))
    log.child("c", limits=Limits(max_steps=1, max_cost_usd=Money(50)))
    log.child("c/1", parent="c")
    log.dispatch(20)
    log.dispatch(10, context="c/1")
    seq = log.dispatch(10, context="c")
    log.dispatch(20)
    assert only(log) == Breach("G2", seq, "2 dispatches in 'c', limit 1", 1, 2)


def test_without_an_estimate_a_child_holds_what_its_narrowest_ceiling_has_left():
    """Neither less, nor more than its own limit (G1)."""
    for held, expected in ((50, []), (49, ["G1"]), (51, ["G1"])):
        log = Log(Limits(max_cost_usd=Money(100)))
        log.child("c", limits=Limits(max_cost_usd=Money(50)))
        log.admit(held, asked=-1, context="c")
        assert [guarantee for guarantee, _ in log.breaches()] == expected


def test_a_childs_stop_binds_the_child_and_its_children_only():
    """The parent has its own."""
    log = Log()
    log.child("c", limits=Limits(max_steps=1))
    log.child("c/1", parent="c")
    log.stop("steps", context="c")
    log.dispatch()
    assert log.breaches() == []
    seq = log.dispatch(context="c/1")
    assert log.breaches() == [("halt", seq)]


def test_a_childs_deadline_runs_from_its_own_beginning():
    """If the log says when that was (G5)."""
    log = Log()
    log.child("c", limits=Limits(max_seconds=1), at_ns=10**9)
    log.now_ns = 2 * 10**9 - 1
    log.dispatch(context="c")
    assert log.breaches() == []
    log.now_ns = 2 * 10**9
    seq = log.dispatch(context="c")
    assert log.breaches() == [("G5", seq)]


def test_children_of_one_name_are_judged_by_what_they_share():
    """They cannot be told apart, so nothing is claimed of either alone."""
    log = Log(Limits(max_steps=3))
    for _ in range(2):
        log.child("c", limits=Limits(max_steps=1, max_repeats=1))
    log.record("close", {"context": "c"})
    log.turn("f", context="c")
    log.turn("f", context="c")
    for _ in range(3):
        log.dispatch(context="c")
    assert log.breaches() == []
    seq = log.dispatch(context="c")
    assert log.breaches() == [("G2", seq)]


# Loops


def test_a_dispatch_of_an_action_that_came_too_often_in_a_row_is_found():
    """Judged by the calls, whatever the runtime took for their fingerprints: key order does not matter (loop)."""
    log = Log(Limits(max_repeats=2))
    for number, args in enumerate([{"a": 1, "b": 2}, {"b": 2, "a": 1}], start=1):
        log.step(number, ("t", args))
        log.turn(f"fingerprint {number}")
        log.dispatch()
    assert log.breaches() == []
    log.step(3, ("t", {"a": 1, "b": 2}))
    log.turn("fingerprint 3")
    seq = log.dispatch()
    assert only(log) == Breach("loop", seq, "a dispatch of an action that came 3 times in a row, limit 2", 2, 3)


def test_alternating_actions_are_no_repetition():
    """Only exact repetition in a row is (loop)."""
    log = Log(Limits(max_repeats=1))
    for number in range(1, 7):
        log.step(number, ("t", {"n": number % 2}))
        log.dispatch()
    assert log.breaches() == []


def test_a_context_without_steps_is_judged_by_its_turns():
    """A child's too, by its own limit or else its parent's (loop)."""
    log = Log(Limits(max_repeats=2))
    log.child("c", limits=Limits(max_repeats=1))
    log.child("d", limits=None)
    expected = []
    for context, limit in (("r", 2), ("c", 1), ("d", 2)):
        for count in range(1, 4):
            log.turn("f", context=context)
            seq = log.dispatch(context=context)
            if count > limit:
                expected.append(("loop", seq))
    assert log.breaches() == expected


def test_a_repetition_that_is_stopped_is_no_breach():
    """Dispatches of other threads may lie between the turn and its stop."""
    log = Log(Limits(max_repeats=1))
    log.turn("f")
    log.dispatch()
    log.turn("f")
    log.dispatch()
    log.stop("repeats")
    assert log.breaches() == []


def test_a_stop_one_turn_too_late_does_not_cover_the_dispatches_before_it():
    """An off-by-one in the runtime shows (loop)."""
    log = Log(Limits(max_repeats=1))
    for _ in range(2):
        log.turn("f")
        seq = log.dispatch()
    log.turn("f")
    log.stop("repeats")
    assert log.breaches() == [("loop", seq)]


# Approval

TOOLS = {"look": "READ", "send": "EXTERNAL", "wipe": "IRREVERSIBLE", "shell": "rule"}


def gated(tool="send", args=None):
    """A log of one gated call that waits."""
    log = Log(tools=TOOLS)
    log.step(1, (tool, args or {"to": "ann"}))
    return log


def made(log, tool="send", call_id="1.1"):
    """Make the call: dispatched, then its result."""
    return log.dispatch(tool=True, name=tool), log.result(call_id, tool)


def test_an_approved_call_is_no_breach():
    """Asked, answered, made once; beside one that needs nobody and one that was denied."""
    log = Log(tools=TOOLS)
    log.step(1, ("send", {"to": "ann"}), ("look", {}), ("wipe", {}))
    log.ask("1.1", "send", {"to": "ann"}, expires_ns=10)
    log.ask("1.3", "wipe", {})
    log.answer("1.1")
    log.answer("1.3", approved=False)
    made(log)
    made(log, "look", "1.2")
    log.record("tool_error", {"call_id": "1.3", "tool": "wipe", "error": "no", "unknown": False, "seen": "refused"})
    assert log.breaches() == []


def test_a_gated_call_that_nobody_was_asked_about_is_found():
    """At its dispatch and at its result (approval)."""
    log = gated()
    assert log.breaches() == []
    admitted, result = made(log)
    assert log.breaches() == [("approval", admitted), ("approval", result)]


@pytest.mark.parametrize("approved", [False, None])
def test_a_gated_call_made_without_a_yes_is_found(approved):
    """Denied, or not answered (approval)."""
    log = gated()
    log.ask("1.1", "send", {"to": "ann"})
    if approved is not None:
        log.answer("1.1", approved=approved)
    admitted, result = made(log)
    assert log.breaches() == [("approval", admitted), ("approval", result)]


def test_a_failing_call_was_made_all_the_same():
    """Its effect may have happened (approval)."""
    log = gated("shell")
    log.ask("1.1", "shell", {"to": "ann"})
    log.answer("1.1", approved=False)
    seq = log.record("tool_error", {"call_id": "1.1", "tool": "shell", "error": "", "unknown": True, "seen": "error"})
    assert log.breaches() == [("approval", seq)]


def test_a_yes_for_one_call_does_not_cover_another():
    """Approval is not by tool name: the second call was never asked about (approval)."""
    log = Log(tools=TOOLS)
    log.step(1, ("send", {"to": "ann"}))
    log.ask("1.1", "send", {"to": "ann"})
    log.answer("1.1")
    made(log)
    log.step(2, ("send", {"to": "bob"}))
    admitted, result = made(log, call_id="2.1")
    assert log.breaches() == [("approval", admitted), ("approval", result)]


def test_an_approval_used_twice_is_found():
    """Two dispatches, or two results of one call (approval)."""
    log = gated()
    log.ask("1.1", "send", {"to": "ann"})
    log.answer("1.1")
    made(log)
    admitted, result = made(log)
    assert log.breaches() == [("approval", admitted), ("approval", result)]


def test_a_request_that_shows_another_call_is_found():
    """What is shown must be what the planner asked for: other arguments, another tool, no such call (approval)."""
    log = gated()
    seqs = [log.ask("1.1", "send", {"to": "bob"}), log.ask("1.1", "wipe", {"to": "ann"}), log.ask("9.1", "send", {})]
    assert log.breaches() == [("approval", seq) for seq in seqs]


def test_a_dispatch_by_an_expired_approval_is_found():
    """The instant itself is too late (approval)."""
    for now_ns, expected in ((99, []), (100, ["approval"])):
        log = gated()
        log.ask("1.1", "send", {"to": "ann"}, expires_ns=100)
        log.answer("1.1")
        log.now_ns = now_ns
        made(log)
        assert [guarantee for guarantee, _ in log.breaches()] == expected


def asked_twice(*expires_ns):
    """A log of one gated call for each expiry, approved in that order."""
    log = Log(tools=TOOLS)
    log.step(1, *[("send", {"n": number}) for number in range(len(expires_ns))])
    for number, expiry in enumerate(expires_ns):
        log.ask(f"1.{number + 1}", "send", {"n": number}, expires_ns=expiry)
        log.answer(f"1.{number + 1}")
    return log


@pytest.mark.parametrize("expires_ns", [(50, 150), (150, 50), (50, -1), (-1, 50)])
def test_an_approval_that_was_never_used_does_not_stand_for_one_that_was(expires_ns):
    """A policy refused the one call, and the other was dispatched in time: no breach, whichever was asked first."""
    log = asked_twice(*expires_ns)
    late = 1 if expires_ns[0] == 50 else 2
    refused = {"call_id": f"1.{late}", "tool": "send", "error": "not now", "unknown": False, "seen": "refused"}
    log.record("tool_error", refused)
    log.now_ns = 100
    made(log, call_id=f"1.{3 - late}")
    assert log.breaches() == []


@pytest.mark.parametrize("expires_ns", [(50, 150), (150, 50)])
def test_calls_may_be_dispatched_in_another_order_than_they_were_asked_in(expires_ns):
    """Each while its own approval was good (approval)."""
    log = asked_twice(*expires_ns)
    log.now_ns = 40
    log.dispatch(tool=True, name="send")
    log.now_ns = 100
    log.dispatch(tool=True, name="send")
    log.result("1.1", "send")
    log.result("1.2", "send")
    assert log.breaches() == []


def test_a_call_made_after_its_own_approval_expired_is_found_though_another_was_good():
    """Its result says which call the dispatch was of (approval)."""
    log = asked_twice(150, 50)
    log.now_ns = 100
    log.dispatch(tool=True, name="send")
    seq = log.result("1.2", "send")
    assert log.breaches() == [("approval", seq)]


def test_a_dispatch_after_the_result_of_the_only_approved_call_is_found():
    """Its approval was used up by then (approval)."""
    log = asked_twice(-1)
    log.result("1.1", "send")
    seq = log.dispatch(tool=True, name="send")
    assert log.breaches() == [("approval", seq)]


def test_a_request_that_shows_a_milder_tool_than_the_run_began_with_is_found():
    """A person would have said yes to something else (approval)."""
    log = gated("wipe")
    seq = log.ask("1.1", "wipe", {"to": "ann"}, tier="WRITE")
    log.answer("1.1")
    made(log, "wipe")
    assert log.breaches() == [("approval", seq)]
    rule = gated("shell")
    rule.ask("1.1", "shell", {"to": "ann"}, tier="WRITE")
    assert rule.breaches() == []


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 8), st.integers(0, 8), st.booleans()), max_size=7))
def test_no_order_of_dispatches_in_time_is_called_a_breach(calls):
    """Expiries, dispatch times and refusals at random, each call within its own approval (approval)."""
    log = asked_twice(*(expiry for expiry, _, _ in calls))
    for number, (expiry, at_ns, refused) in sorted(enumerate(calls, start=1), key=lambda call: call[1][1]):
        if at_ns < expiry and not refused:
            log.now_ns = at_ns
            made(log, call_id=f"1.{number}")
    assert log.breaches() == []


def test_the_first_answer_counts():
    """A later yes does not overrule a no, and one to nothing is found (approval)."""
    log = gated("shell")
    log.ask("1.1", "shell", {"to": "ann"})
    log.answer("1.1", approved=False)
    log.answer("1.1", approved=True)
    nothing = log.answer("7.7")
    _, result = made(log, "shell")
    assert log.breaches() == [("approval", nothing), ("approval", result)]


def test_a_run_that_may_do_more_alone_needs_fewer_answers():
    """Gated is what lies above the run's own tier."""
    log = Log(tools=TOOLS, autonomous="EXTERNAL")
    log.step(1, ("send", {}), ("wipe", {}))
    made(log)
    assert log.breaches() == []
    assert [guarantee for guarantee, _ in (made(log, "wipe", "1.2"), log.breaches())[1]] == ["approval", "approval"]


# A log that was sealed anew


def ended(log, steps, spent, outcome="completed"):
    """The end of a run."""
    return log.record("finish", {"outcome": outcome, "value": None, "steps": steps, "spent_nano": spent, "error": None})


@pytest.mark.parametrize(
    "after",
    [
        lambda log: log.admit(0, context="other"),
        lambda log: log.record("close", {"context": "r"}),
        lambda log: log.child("c"),
        lambda log: log.stop("steps", context="other"),
        lambda log: log.settle(1, call=1),
        lambda log: log.release(1, call=1),
        lambda log: log.record("charge", {"context": "r", "name": "planner", "cost_nano": 0, "at_ns": 0}),
        lambda log: ended(log, 2, 12),
    ],
)
@pytest.mark.parametrize("spend", ["settle", "charge"])
def test_a_cost_that_should_have_stopped_the_chain_and_did_not_is_found(spend, after):
    """Its stop is written in one go with it; a settlement that was raised later has none (halt)."""
    log = Log(Limits(max_cost_usd=Money(10)))
    log.child("other")
    log.admit(1)
    log.admit(1)
    if spend == "settle":
        seq = log.settle(12, held=1)
    else:
        seq = log.record("charge", {"context": "r", "name": "planner", "cost_nano": 12, "at_ns": 0})
    assert log.breaches() == []
    after(log)
    assert ("halt", seq) in log.breaches()
    log.events.insert(seq + 1, Event(seq, "stop", {"context": "r", "ceiling": "cost"}))
    assert ("halt", seq) not in log.breaches()


def test_every_limit_on_the_way_up_owes_its_stop():
    """A child's overrun stops the child, and the parent too if it has a ceiling (halt)."""
    log = Log(Limits(max_cost_usd=Money(10)))
    log.child("c", limits=Limits(max_cost_usd=Money(5)))
    log.admit(1, context="c")
    seq = log.settle(2, held=1)
    log.stop("cost", context="c")
    assert log.breaches() == []
    log.record("close", {"context": "c"})
    assert only(log).seq == seq
    assert "'r'" in only(log).detail


def test_totals_that_the_calls_never_came_to_are_found():
    """A settlement or a dispatch was removed, or one was raised or lowered (audit)."""
    for steps, spent in ((2, 8), (1, 5), (1, 9), (3, 5), (2, 4)):
        log = Log(Limits(max_cost_usd=Money(100)))
        log.dispatch(3)
        log.dispatch(2)
        seq = ended(log, steps, spent)
        assert log.breaches() == [("audit", seq)]


def test_the_totals_are_those_at_the_end_and_not_what_settles_later():
    """A call that was left behind at the deadline settles after it; one that never began is taken back."""
    log = Log(Limits(max_cost_usd=Money(100)))
    log.dispatch(3)
    log.admit(5)
    log.admit(5)
    log.release(5)
    log.record("close", {"context": "r"})
    ended(log, 2, 3)
    log.settle(5, call=2)
    assert log.breaches() == []


def test_an_outcome_of_a_stop_without_a_stop_is_found():
    """Whether the loop's own word for it is on record or not (audit)."""
    log = Log()
    log.dispatch()
    seq = ended(log, 1, 0, "budget_stop")
    assert log.breaches() == [("audit", seq)]
    told = Log()
    told.dispatch()
    seq = told.record("budget_stop", {"ceiling": "steps", "limit": 1, "used": 1, "detail": ""})
    ended(told, 1, 0, "budget_stop")
    assert told.breaches() == [("audit", seq)]


def test_a_close_is_no_stop_where_a_loop_would_have_said_so():
    """Every run is closed at its end; only a context that nobody loops over tells no more (audit)."""
    for steps, expected in ((0, []), (1, ["audit"])):
        log = Log()
        for number in range(1, steps + 1):
            log.step(number, ("t", {}))
        log.record("close", {"context": "r"})
        ended(log, 0, 0, "budget_stop")
        assert [guarantee for guarantee, _ in log.breaches()] == expected


def test_a_run_that_was_stopped_or_closed_may_say_so():
    """By its own ceiling, by a deadline that is told a moment later, or since its context was closed."""
    for ceiling, before in (
        ("steps", lambda log: log.stop("steps")),
        ("time", lambda _: None),
        ("closed", lambda log: log.record("close", {"context": "r"})),
    ):
        log = Log()
        before(log)
        log.record("budget_stop", {"ceiling": ceiling, "limit": 1, "used": 1, "detail": ""})
        ended(log, 0, 0, "budget_stop")
        assert log.breaches() == []


def test_a_sub_agents_log_has_no_ledger_to_compare_its_end_with():
    """Its dispatches and its stop are in its parent's log."""
    log = Log()
    log.record("budget_stop", {"ceiling": "steps", "limit": 1, "used": 1, "detail": ""})
    ended(log, 7, 99, "budget_stop")
    assert log.breaches() == []


@pytest.mark.parametrize("context", ["r", "c"])
def test_a_dispatch_after_the_end_is_found(context):
    """In any context, unless that was just being closed by another thread (halt)."""
    log = Log()
    log.child("c")
    ended(log, 0, 0)
    seq = log.dispatch(context=context)
    assert log.breaches() == [("halt", seq)]
    log.record("close", {"context": context})
    assert log.breaches() == []
    seq = log.dispatch(context=context)
    assert log.breaches() == [("halt", seq)]


def test_a_chain_opened_with_other_limits_than_the_run_says_is_found():
    """Whoever raises a ceiling in the start of a log must raise it in the ledger's own word too (audit)."""
    for limits, expected in ((Limits(max_steps=9), []), (Limits(max_steps=5), ["audit"])):
        log = Log(Limits(max_steps=9))
        log.record("open", {"context": "r", "limits": limits.to_mapping(), "at_ns": 0})
        assert [guarantee for guarantee, _ in log.breaches()] == expected


# The log of a context without a loop


def test_a_context_without_a_loop_is_judged_by_the_limits_it_was_opened_with(tmp_path):
    """Its chain's first event tells them."""
    with AuditLog.create(tmp_path, "c") as audit, ExecutionContext(Limits(max_steps=3), audit=audit, name="c") as made:
        for _ in range(3):
            made.call(lambda: None, cost=0)
    events = load(audit.path).events
    assert check_run(events) == []
    log = Log(start=False)
    log.record("open", {"context": "c", "limits": Limits(max_steps=1).to_mapping(), "at_ns": 0})
    log.dispatch(context="c")
    seq = log.dispatch(context="c")
    assert log.breaches() == [("G2", seq)]


def test_a_log_of_two_chains_is_not_judged():
    """Their calls have the same numbers (audit)."""
    log = Log(start=False)
    for name in ("a", "b"):
        log.record("open", {"context": name, "limits": Limits().to_mapping(), "at_ns": 0})
    with pytest.raises(ReplayError, match="second chain"):
        check_run(log.events)


# What cannot be judged


@pytest.mark.parametrize(
    "spoil",
    [
        lambda log: log.admit(context="unknown"),
        lambda log: log.admit(-1, asked=0),
        lambda log: log.admit(0, asked=-2),
        lambda log: log.record("settle", {"call": 1}),
        lambda log: log.record("stop", {"context": "r"}),
        lambda log: log.child("c", parent="unknown"),
        lambda log: log.record("child", {"context": "c", "parent": "r"}),
        lambda log: log.record("turn", {"context": "r"}),
        lambda log: log.record("step", {"n": 1}),
        lambda log: log.record("step", {"n": 1, "calls": [5]}),
        lambda log: log.record("approval", {"request": "r:1.1"}),
        lambda log: log.record("decision", {"request": "r:1.1", "approved": 1}),
        lambda log: log.record("tool_error", {"call_id": "1.1", "tool": "t"}),
    ],
)
def test_an_event_that_cannot_be_read_is_an_error_and_no_verdict(spoil):
    """To pass over it would be to pass it."""
    log = Log()
    spoil(log)
    with pytest.raises(ReplayError, match="event 1"):
        check_run(log.events)


def test_a_log_without_limits_is_judged_only_by_limits_that_are_given():
    """A context without a loop records no start."""
    log = Log(start=False)
    log.child("c", parent="top")
    log.dispatch(context="c")
    seq = log.dispatch(context="top")
    with pytest.raises(ReplayError, match="limits"):
        check_run(log.events)
    assert [breach.seq for breach in check_run(log.events, Limits(max_steps=1))] == [seq]
    assert check_run([], Limits()) == []
    with pytest.raises(ReplayError, match="tier"):
        check_run(Log(tools={"t": "MILD"}).events)


# The runtime itself


def act(context, kind, amount):
    """Do one thing to a context, as an agent that swallows everything would."""
    try:
        if kind == "turn":
            context.turn(f"f{amount % 2}")
        elif kind == "fail":
            context.call(lambda: 1 / 0, cost=lambda _: Money(0), reserve=Money(amount + 1), retries=1, kind="tool")
        elif kind == "lie":
            context.call(lambda: None, cost=lambda _: Money(amount * 2), reserve=Money(amount + 1), wait=False)
        else:
            context.call(lambda: None, cost=None if kind == "unknown" else Money(amount), kind="tool", wait=False)
    except (Stop, Denied, ZeroDivisionError):
        pass


@st.composite
def some_limits(draw):
    """Low ceilings, so that most runs meet one; more repeats than steps would be refused."""
    steps = draw(st.none() | st.integers(0, 8))
    return Limits(
        max_cost_usd=draw(st.none() | st.integers(0, 30).map(Money)),
        max_steps=steps,
        max_tool_calls=draw(st.none() | st.integers(0, 5)),
        max_retries=draw(st.none() | st.integers(0, 2)),
        max_seconds=draw(st.none() | st.integers(0, 9)),
        max_repeats=draw(st.none() | st.integers(0, 3 if steps is None else min(3, steps))),
    )


DEEDS = st.tuples(
    st.integers(0, 3), st.sampled_from(["known", "unknown", "fail", "lie", "turn", "child"]), st.integers(0, 9)
)


@settings(max_examples=100, deadline=None)
@given(some_limits(), st.lists(DEEDS, max_size=20))
def test_the_runtime_obeys_its_limits_whatever_is_done_to_it(limits, deeds):
    """Contexts, children with narrower limits, failing, lying and repeating calls, and time that passes."""
    log, clock = Log(limits), VirtualClock(5)
    contexts = [ExecutionContext(limits, clock=clock, audit=log, name="r")]
    for which, kind, amount in deeds:
        context = contexts[which % len(contexts)]
        clock.advance_ns(amount * 10**8)
        if kind == "child":
            with contextlib.suppress(Stop):
                contexts.append(context.create_child(Limits(max_steps=amount) if amount % 2 else None))
        else:
            act(context, kind, amount)
    contexts[0].close()
    assert check_run(log.events) == []


def test_threads_under_one_context_obey_its_limits(tmp_path):
    """Their order in the log is the order at the ledger."""
    limits = Limits(max_cost_usd=Money(40), max_steps=30, max_retries=3)
    with AuditLog.create(tmp_path, "r") as log:
        context = ExecutionContext(limits, clock=VirtualClock(), audit=log, name="r")
        threads = [
            threading.Thread(target=lambda: [act(context, kind, 3) for kind in ("known", "fail", "known") * 4])
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
            assert not thread.is_alive()
        context.close()
    found = load(log.path)
    assert found.whole
    assert check_run(found.events, limits) == []
    assert any(event.kind == "stop" for event in found.events)


def test_a_runtime_without_one_of_its_checks_is_found(monkeypatch):
    """The monitor judges a real run whose admission was broken on purpose."""
    strict = core.admit
    monkeypatch.setattr(core, "admit", lambda state, bounds, *rest: strict(state, (bounds[0], -1, *bounds[2:]), *rest))
    log = Log(Limits(max_steps=2))
    context = ExecutionContext(Limits(max_steps=2), clock=VirtualClock(), audit=log, name="r")
    for _ in range(4):
        context.call(lambda: None, cost=0)
    monkeypatch.undo()
    assert [guarantee for guarantee, _ in log.breaches()] == ["G2", "G2"]
