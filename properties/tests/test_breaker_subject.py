"""The schedules of a circuit breaker: ours can always be explained, and wrong ones cannot."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time

import pytest

from failstop.properties.linearizable import Begin, End, first_gap
from failstop.properties.references.breaker import Ask, BreakerReference, Look, Settle
from failstop.properties.references.chain import DONE, Advance
from failstop.properties.scenario import Scenario
from failstop.properties.scenarios import catalogue
from failstop.properties.scenarios.breaker import DEEP, SCENARIOS
from failstop.properties.schedules.explorer import Reach, explore
from failstop.properties.subject import Lane, NotOffered
from failstop.properties.subjects.breaker import BreakerSubject, Call, GiveUp
from failstop.properties.subjects.chain import LetPass
from failstop.properties.subjects.moved_time import moved_time
from failstop.properties.subjects.still import StillClock
from failstop.properties.target import Refused
from failstop.properties.targets.failstop import FailstopTarget
from failstop.properties.targets.veronica import VeronicaCore
from failstop.properties.tests.searching import by_name, caught, searched
from failstop.runtime.clock import NS_PER_SECOND
from failstop.runtime.cores import breaker as core
from failstop.runtime.cores.breaker import CLOSED, FAILURE, NEITHER, PROBE, PROBE_OUT, PROBING, SUCCESS
from failstop.runtime.policies import breaker
from failstop.runtime.policies.breaker import CircuitBreaker

pytestmark = pytest.mark.once

QUICK = by_name(SCENARIOS)
ALL = by_name(SCENARIOS + DEEP)
TIMES = ("time", "time_ns", "monotonic", "monotonic_ns")

admit, report = core.admit, core.report


@pytest.mark.parametrize("name", ALL)
def test_every_schedule_of_our_breaker_can_be_explained(name):
    """Searched to its end, with more than one schedule."""
    search = searched(ALL[name])
    assert search.violation is None
    assert search.finished
    assert search.schedules > 1


def test_the_scenarios_have_names_of_their_own():
    """Whoever asks for one by its name gets it."""
    assert all(catalogue.every()[name] is scenario for name, scenario in ALL.items())


@pytest.mark.parametrize("name", ["probe-at-the-cooldown", "herd-at-the-cooldown"])
def test_a_call_that_is_decided_on_and_then_noted_is_found(name, monkeypatch):
    """Each of the two sections has the lock, but between them it is free, and both callers are the probe."""

    def check(self, context):
        with self._lock:
            now = self._clock.now_ns()
            state, verdict, permit = admit(self._state, self._settings, now)
        with self._lock:
            self._state = state
        if permit != core.NO_PERMIT:
            return breaker.PolicyDecision(True, "breaker", "", None, permit)
        return breaker._denial(verdict, state[3] - now)

    monkeypatch.setattr(CircuitBreaker, "check", check)
    caught(ALL[name])


@pytest.mark.parametrize("name", ["trip", "trip-of-three"])
def test_two_failures_that_are_counted_as_one_are_found(name, monkeypatch):
    """The count is read in one section and written in another."""

    def end(self, decision, outcome):
        with self._lock:
            state = self._state
        with self._lock:
            self._state = report(state, self._settings, decision.permit, outcome, self._clock.now_ns())

    monkeypatch.setattr(CircuitBreaker, "_end", end)
    caught(ALL[name])


@pytest.mark.parametrize("name", ["stale-success", "stale-failure", "probe-after-its-lease"])
def test_a_breaker_that_counts_results_of_another_generation_is_found(name, monkeypatch):
    """A result from before the breaker opened, or from a probe whose lease is over, says nothing of now."""

    def wrong(state, settings, permit, outcome, now):
        return report(state, settings, state[1], outcome, now)

    monkeypatch.setattr(core, "report", wrong)
    caught(ALL[name])


def test_a_probe_whose_slot_is_never_free_again_is_found(monkeypatch):
    """Nobody hears of the probe, so nobody is ever let in again."""

    def wrong(state, settings, now):
        return (state, PROBE_OUT, core.NO_PERMIT) if state[0] == PROBING else admit(state, settings, now)

    monkeypatch.setattr(core, "admit", wrong)
    caught(ALL["probe-never-heard-of"])


def test_a_breaker_that_lets_everybody_in_while_a_probe_is_out_is_found(monkeypatch):
    """Half-open is not closed."""

    def wrong(state, settings, now):
        return (state, PROBE, state[1]) if state[0] == PROBING else admit(state, settings, now)

    monkeypatch.setattr(core, "admit", wrong)
    assert (
        "was let in although a probe was out, its lease lasted for another 10 s"
        in caught(ALL["probe-at-the-cooldown"]).told
    )


def test_a_failed_probe_after_which_nothing_cools_down_is_found(monkeypatch):
    """The next probe goes at once."""

    def wrong(state, settings, permit, outcome, now):
        return report(state, settings, permit, NEITHER if state[0] == PROBING else outcome, now)

    monkeypatch.setattr(core, "report", wrong)
    assert "was let in although the breaker was open for another 1 s" in caught(ALL["failing-probe"]).told


def test_a_cancelled_probe_that_closes_the_breaker_is_found(monkeypatch):
    """It says nothing of whether what is called has recovered."""

    def wrong(state, settings, permit, outcome, now):
        return report(state, settings, permit, SUCCESS if outcome == NEITHER else outcome, now)

    monkeypatch.setattr(core, "report", wrong)
    caught(ALL["cancelled-probe"])


def test_a_probe_that_is_given_up_and_keeps_its_slot_is_found(monkeypatch):
    """It was never dispatched, and nothing will be heard of it."""
    monkeypatch.setattr(CircuitBreaker, "release", lambda self, context, decision: None)
    caught(ALL["probe-given-up"])


def test_failures_that_are_counted_though_not_in_a_row_are_found(monkeypatch):
    """A success between them begins the count anew."""

    def wrong(state, settings, permit, outcome, now):
        return state if state[0] == CLOSED and outcome == SUCCESS else report(state, settings, permit, outcome, now)

    monkeypatch.setattr(core, "report", wrong)
    caught(ALL["failures-in-a-row"])


def test_a_breaker_that_shows_another_state_than_it_has_is_found(monkeypatch):
    """It is looked at when all is over."""
    monkeypatch.setattr(CircuitBreaker, "state", breaker.BreakerState.CLOSED)
    assert "('closed',)" in caught(ALL["trip"]).told


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda self, stub: "value", "was told 'done'"),
        (lambda self, stub: (stub(), stub()), "was told 'admitted'"),
    ],
)
def test_a_stub_that_is_not_run_once_is_found(wrong, told):
    """Not at all, though the call was not refused, or twice."""

    class Guarded:
        call = lose = wrong

    class Target(FailstopTarget):
        def breaker(self, *settings):
            return Guarded()

    for exact, move in itertools.product((True, False), (Call(), Call(hangs=True))):
        search = explore(Scenario("one", "", "G4", (), BreakerSubject(), ((move,),)), Target(), Reach(), exact=exact)
        assert search.violation is not None, move
        assert told in search.violation.told


def history(*calls):
    """One lane after another: (lane, action, answer)."""
    return [event for lane, action, answer in calls for event in (Begin(lane, action), End(lane, answer))]


TRIPPED = (
    (0, Ask("slow"), "admitted"),
    (0, Ask("a"), "admitted"),
    (0, Settle("a", FAILURE), DONE),
)
COOLED = (*TRIPPED, (0, Advance(NS_PER_SECOND), DONE))
PROBING_NOW = (*COOLED, (0, Ask("b"), "admitted"))


@pytest.mark.parametrize(
    ("calls", "exact", "ceilings"),
    [
        ((*TRIPPED, (0, Ask("b"), "breaker")), True, True),
        ((*TRIPPED, (0, Ask("b"), "admitted")), False, False),
        ((*TRIPPED, (0, Advance(NS_PER_SECOND - 1), DONE), (0, Ask("b"), "admitted")), False, False),
        (((0, Ask("a"), "breaker"), (0, Ask("b"), "denied")), False, True),
        ((*COOLED, (0, Ask("b"), "breaker")), False, True),
        ((*PROBING_NOW, (0, Ask("c"), "admitted")), False, False),
        ((*PROBING_NOW, (0, Advance(10 * NS_PER_SECOND), DONE), (0, Ask("c"), "admitted")), True, True),
        ((*PROBING_NOW, (0, Settle("b", NEITHER), DONE), (0, Ask("c"), "admitted")), True, True),
        ((*PROBING_NOW, (0, Settle("slow", SUCCESS), DONE), (0, Ask("c"), "admitted")), False, False),
        (
            (
                *PROBING_NOW,
                (0, Settle("slow", FAILURE), DONE),
                (0, Advance(NS_PER_SECOND), DONE),
                (0, Ask("c"), "admitted"),
            ),
            False,
            False,
        ),
        ((*TRIPPED, (0, Settle("slow", SUCCESS), DONE), (0, Ask("c"), "admitted")), False, False),
        ((*PROBING_NOW, (0, Settle("b", SUCCESS), DONE), (0, Look(), ("closed",))), True, True),
        ((*PROBING_NOW, (0, Look(), ("half-open",))), True, True),
        ((*COOLED, (0, Look(), ("half-open",))), True, True),
        ((*COOLED, (0, Look(), ("open",))), False, False),
    ],
)
def test_what_is_explained(calls, exact, ceilings):
    """The published promise allows every refusal, but nobody while it cools down and no second probe."""
    assert (first_gap(BreakerReference(1, 1, 10, exact=True), history(*calls), 1) is None) is exact
    assert (first_gap(BreakerReference(1, 1, 10, exact=False), history(*calls), 1) is None) is ceilings


def test_what_comes_late_may_count_where_ceilings_are_promised():
    """While it is closed again, to count an old failure or not are both readings of "in a row"."""
    closed = (*PROBING_NOW, (0, Settle("b", SUCCESS), DONE), (0, Settle("slow", FAILURE), DONE))
    counted = (*closed, (0, Advance(NS_PER_SECOND), DONE), (0, Ask("c"), "admitted"), (0, Look(), ("half-open",)))
    assert first_gap(BreakerReference(1, 1, 10, exact=False), history(*counted), 1) is None
    assert first_gap(BreakerReference(1, 1, 10, exact=True), history(*counted), 1) is not None


def test_moves_inside_of_a_call_are_made_before_it_ends():
    """So one lane alone can bring about a result that comes too late."""
    slow = Call(inside=(Call(fails=True), LetPass(NS_PER_SECOND), Call(inside=(Call(),))))
    seen = []
    instrument = BreakerSubject().open(FailstopTarget())
    instrument.play(slow, Lane(0, seen.append))
    instrument.look(Lane(0, seen.append))
    answers = [event.answer for event in seen if isinstance(event, End)]
    assert answers == ["admitted", "admitted", DONE, DONE, "admitted", "breaker", DONE, DONE, ("closed",)]
    assert first_gap(BreakerReference(1, 1, 10, exact=True), seen, 1) is None


def test_time_that_is_moved_is_told_and_let_go_of():
    """Whatever happened in between."""
    clock = StillClock(5 * NS_PER_SECOND)
    before = [getattr(time, name) for name in TIMES]
    with pytest.raises(ZeroDivisionError), moved_time(clock):
        clock.advance_ns(NS_PER_SECOND)
        assert (time.monotonic(), time.monotonic_ns()) == (6.0, 6 * NS_PER_SECOND)
        assert (time.time(), time.time_ns()) == (clock.wall_ns() / NS_PER_SECOND, clock.wall_ns())
        with pytest.raises(RuntimeError, match="already"), moved_time(clock):
            pass
        raise ZeroDivisionError
    assert [getattr(time, name) for name in TIMES] == before


class RealTime(FailstopTarget):
    """A target whose clock cannot be injected: it reads the machine's."""

    real_time = True

    def breaker(self, failure_threshold, recovery_s, probe_lease_s, clock):
        if not failure_threshold:
            raise Refused("configuration")
        return super().breaker(failure_threshold, recovery_s, probe_lease_s, breaker.SystemClock())


def test_a_target_in_real_time_is_moved_as_well():
    """While the breaker is open under test, and no longer."""
    before = time.monotonic
    search = explore(ALL["probe-at-the-cooldown"], RealTime(), Reach(), exact=True)
    assert search.finished
    assert search.schedules > 1
    with pytest.raises(Refused):
        BreakerSubject(threshold=0).open(RealTime())
    assert time.monotonic is before


def test_a_target_without_a_breaker_is_told():
    """It is not judged by what it does not offer, nor by moves that it cannot make."""
    with pytest.raises(NotOffered, match="breaker"):
        BreakerSubject().open(object())
    pytest.importorskip("veronica_core")
    instrument = BreakerSubject().open(VeronicaCore())
    with pytest.raises(NotOffered, match="given up"):
        instrument.play(GiveUp(), Lane(0, lambda event: None))
    instrument.close()


_FRESH = """
import json
from failstop.properties.scenarios.breaker import SCENARIOS
from failstop.properties.schedules.explorer import Reach, explore, replay
from failstop.properties.subject import NotOffered
from failstop.properties.targets.veronica import VeronicaCore

told = {}
for scenario in SCENARIOS:
    try:
        search = explore(scenario, VeronicaCore(), Reach(), exact=False)
    except NotOffered as missing:
        told[scenario.name] = str(missing)
        continue
    told[scenario.name] = "holds" if search.finished and search.schedules > 1 else search.stuck
    if search.violation is not None:
        again = replay(scenario, VeronicaCore(), search.violation.schedule, exact=False)
        told[scenario.name] = again.told
print(json.dumps(told))
"""


def test_what_veronica_core_does():
    """One probe at a time, but a result from before the trip ends the probe of another; in a process of its own."""
    pytest.importorskip("veronica_core")
    run = subprocess.run([sys.executable, "-c", _FRESH], capture_output=True, text=True, timeout=100, check=True)
    told = json.loads(run.stdout)
    probe_out = "was let in although a probe was out"
    found = {name: probe_out if probe_out in text else text for name, text in told.items()}
    late = dict.fromkeys(("failing-probe", "stale-success", "stale-failure", "cancelled-probe"), probe_out)
    held = dict.fromkeys(
        ("trip", "failures-in-a-row", "probe-at-the-cooldown", "probe-never-heard-of", "probe-after-its-lease"), "holds"
    )
    assert found == {**held, **late, "probe-given-up": "its calls cannot be given up"}
