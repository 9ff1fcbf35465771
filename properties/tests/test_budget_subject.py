"""The schedules of a budget that stands alone: ours can always be explained, and wrong ones cannot."""

from __future__ import annotations

import pytest

from failstop.properties.linearizable import Begin, End, first_gap
from failstop.properties.references.budget import BudgetReference, Check, Look, Spend
from failstop.properties.scenarios import catalogue
from failstop.properties.scenarios.budget import DEEP, SCENARIOS
from failstop.properties.subject import NotOffered
from failstop.properties.subjects.budget import BudgetSubject
from failstop.properties.targets.veronica import VeronicaCore
from failstop.properties.tests.searching import by_name, caught, searched, without_its_lock
from failstop.runtime.cores import budget as core
from failstop.runtime.policies import budget
from failstop.runtime.policies.budget import BudgetEnforcer

ALL = by_name(SCENARIOS + DEEP)


@pytest.mark.parametrize("name", ALL)
def test_every_schedule_of_our_budget_can_be_explained(name):
    """Searched to its end, with more than one schedule."""
    search = searched(ALL[name])
    assert search.violation is None
    assert search.finished
    assert search.schedules > 1


@pytest.mark.parametrize("name", ["last-cent-held", "release-against-report"])
def test_it_can_be_interrupted_at_every_line(name):
    """Not only where it takes a lock, so that what it does without one is seen."""
    search = searched(ALL[name], (budget.__name__,))
    assert search.violation is None
    assert search.finished
    assert search.schedules > searched(ALL[name]).schedules


def test_the_scenarios_have_names_of_their_own():
    """Whoever asks for one by its name gets it."""
    assert all(catalogue.every()[name] is scenario for name, scenario in ALL.items())


def test_holds_without_the_lock_are_found(monkeypatch):
    """A hold is given back while another is read, which overwrites it."""
    monkeypatch.setattr(BudgetEnforcer, "__init__", without_its_lock(BudgetEnforcer.__init__))
    caught(ALL["release-against-report"], (budget.__name__,))


def test_a_spend_that_looks_and_then_writes_is_found(monkeypatch):
    """Each of the two has the lock, but between them it is free."""

    def spend(self, amount):
        with self._lock:
            after = core.spend(self._state, self._limit, amount.nano)
        with self._lock:
            self._state = after
        return not after[3]

    monkeypatch.setattr(BudgetEnforcer, "spend", spend)
    caught(ALL["last-cent-spent"])
    caught(ALL["hold-against-spend"])


def test_a_hold_that_looks_and_then_takes_is_found(monkeypatch):
    """Two calls get the last cent."""

    def check(self, context):
        with self._lock:
            after, verdict, held = core.hold(self._state, self._limit, context.reserve_nano)
        with self._lock:
            self._state = after
        if verdict == core.ADMITTED:
            return budget.PolicyDecision(True, "budget", "", None, held)
        return self._denial(after, verdict)

    monkeypatch.setattr(BudgetEnforcer, "check", check)
    caught(ALL["last-cent-held"])
    caught(ALL["no-estimate-against-hold"])


def test_a_hold_that_ends_twice_is_found(monkeypatch):
    """Given back and settled at once, it gives back what it did not hold."""

    def release(self, context, decision):
        with self._lock:
            self._state = core.release(self._state, decision.permit or 6)

    monkeypatch.setattr(BudgetEnforcer, "release", release)
    caught(ALL["release-against-report"])


def test_a_reset_that_forgets_calls_in_flight_is_found(monkeypatch):
    """What they hold is charged to the new period."""
    monkeypatch.setattr(core, "reset", lambda state: core.INITIAL)
    caught(ALL["budget-reset-against-report"])


def test_an_overrun_that_leaves_the_budget_open_is_found(monkeypatch):
    """A call that costs more than it held is the last one."""
    right = core.settle
    monkeypatch.setattr(core, "settle", lambda state, limit, held, cost: right(state, -1, held, cost))
    caught(ALL["overrun-against-hold"])


def test_a_target_of_ceilings_may_refuse_but_not_let_in():
    """Not exact, a refusal is always explained and shuts nothing, and what is beyond the limit is never let in."""
    reference = BudgetReference(10, exact=False)
    spent = [Begin(0, Spend(11)), End(0, False), Begin(0, Spend(4)), End(0, True)]
    assert first_gap(reference, spent, 1) is None
    assert first_gap(BudgetReference(10, exact=True), spent, 1).place == 3
    held = [*spent, Begin(0, Check("a", 6)), End(0, "denied"), Begin(0, Check("b", 6)), End(0, "admitted")]
    assert first_gap(reference, held, 1) is None
    assert first_gap(reference, [*held, Begin(0, Spend(1)), End(0, True)], 1).place == 9
    assert first_gap(reference, [*held, Begin(0, Check("c", 1)), End(0, "admitted")], 1).place == 9


def test_what_is_held_is_seen():
    """An observer sees spent, reserved, calls and whether it is shut, and nothing else explains."""
    reference = BudgetReference(10, exact=True)
    held = [Begin(0, Check("a", 6)), End(0, "admitted"), Begin(0, Look())]
    assert first_gap(reference, [*held, End(0, (0, 6, 0, False))], 1) is None
    assert first_gap(reference, [*held, End(0, (0, 5, 0, False))], 1).place == 3


def test_a_target_without_a_budget_of_its_own_is_told():
    """It is not judged by what it does not offer."""
    with pytest.raises(NotOffered, match="budget"):
        BudgetSubject(10).open(VeronicaCore())
