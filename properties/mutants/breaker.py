"""The circuit breaker (G4)."""

# ruff: noqa: ARG001 - a wrong variant forgets to look

from __future__ import annotations

from typing import TYPE_CHECKING

from failstop.properties.mutants.mutant import Function, Method, Mutant
from failstop.runtime.cores import breaker as core
from failstop.runtime.cores.breaker import (
    CLOSED,
    NEITHER,
    PROBE,
    PROBE_OUT,
    PROBING,
    SUCCESS,
    Settings,
    State,
    admit,
    report,
)
from failstop.runtime.policies.breaker import CircuitBreaker, _denial
from failstop.runtime.policies.pipeline import PolicyDecision

if TYPE_CHECKING:
    from failstop.runtime.policies.pipeline import PolicyContext


def _stale_results_count(state: State, settings: Settings, permit: int, outcome: int, now: int) -> State:
    _, generation, _, _ = state
    return report(state, settings, generation, outcome, now)


def _slot_never_freed(state: State, settings: Settings, now: int) -> tuple[State, int, int]:
    mode, _, _, _ = state
    if mode == PROBING:
        return state, PROBE_OUT, -1
    return admit(state, settings, now)


def _all_let_in(state: State, settings: Settings, now: int) -> tuple[State, int, int]:
    mode, generation, _, _ = state
    if mode == PROBING:
        return state, PROBE, generation
    return admit(state, settings, now)


def _lease_begun_anew(state: State, settings: Settings, now: int) -> tuple[State, int, int]:
    after, verdict, permit = admit(state, settings, now)
    if verdict == PROBE_OUT:
        mode, generation, failures, _ = after
        after = (mode, generation, failures, now + settings[2])
    return after, verdict, permit


def _no_answer_is_a_yes(state: State, settings: Settings, permit: int, outcome: int, now: int) -> State:
    if outcome == NEITHER:
        return report(state, settings, permit, SUCCESS, now)
    return report(state, settings, permit, outcome, now)


def _success_changes_nothing(state: State, settings: Settings, permit: int, outcome: int, now: int) -> State:
    mode, _, _, _ = state
    if mode == CLOSED and outcome == SUCCESS:
        return state
    return report(state, settings, permit, outcome, now)


def _decided_then_noted(self: CircuitBreaker, context: PolicyContext) -> PolicyDecision:
    with self._lock:
        now = self._clock.now_ns()
        state, verdict, permit = core.admit(self._state, self._settings, now)
    with self._lock:
        self._state = state
    if permit != core.NO_PERMIT:
        return PolicyDecision(True, "breaker", "", None, permit)
    return _denial(verdict, state[3] - now)


def _counted_without_the_lock(self: CircuitBreaker, decision: PolicyDecision, outcome: int) -> None:
    permit, decision.permit = decision.permit, None
    if isinstance(permit, int):
        state = self._state
        state = core.report(state, self._settings, permit, outcome, self._clock.now_ns())
        self._state = state


def _probe_not_given_back(self: CircuitBreaker, context: PolicyContext, decision: PolicyDecision) -> None:
    decision.permit = None


MUTANTS = (
    Mutant(
        "stale-result-counts",
        "G4",
        "The result of a call from before the breaker opened counts for it now.",
        (Function(report, _stale_results_count),),
        first=("late-success",),
    ),
    Mutant(
        "probe-slot-never-freed",
        "G4",
        "A probe that is never heard of keeps its slot for ever.",
        (Function(admit, _slot_never_freed),),
        first=("lost-probe",),
    ),
    Mutant(
        "half-open-lets-all-in",
        "G4",
        "While a probe is out, everybody is let in.",
        (Function(admit, _all_let_in),),
        concurrent=True,
        first=("one-probe",),
    ),
    Mutant(
        "lease-begun-anew-by-the-refused",
        "G4",
        "Each caller that is refused for a probe gives that probe another lease.",
        (Function(admit, _lease_begun_anew),),
        first=("lost-probe",),
    ),
    Mutant(
        "no-answer-closes-the-breaker",
        "G4",
        "A probe that was cancelled, or never dispatched, closes the breaker as a success does.",
        (Function(report, _no_answer_is_a_yes),),
        first=("probe-that-says-nothing",),
    ),
    Mutant(
        "failures-not-in-a-row",
        "G4",
        "A success between two failures does not begin the count anew.",
        (Function(report, _success_changes_nothing),),
        first=("success-between-failures",),
    ),
    Mutant(
        "two-probes-at-once",
        "G4",
        "A call is decided on under the lock, and the probe is noted in a second section.",
        (Method(CircuitBreaker, "check", _decided_then_noted),),
        concurrent=True,
        first=("one-probe",),
    ),
    Mutant(
        "results-counted-without-the-lock",
        "G4",
        "Two results that come at once are counted as one.",
        (Method(CircuitBreaker, "_end", _counted_without_the_lock),),
        concurrent=True,
        traced=(__name__,),
        first=("failures-at-once",),
    ),
    Mutant(
        "undispatched-probe-keeps-its-slot",
        "G4",
        "A probe that another policy denied is not given back.",
        (Method(CircuitBreaker, "release", _probe_not_given_back),),
        first=("probe-denied-by-the-second",),
    ),
)
