"""The schedules of a step guard that stands alone: ours can always be explained, and wrong ones cannot."""

from __future__ import annotations

import pytest

from failstop.properties.linearizable import Begin, End, first_gap
from failstop.properties.references.steps import Check, Look, Step, StepsReference
from failstop.properties.scenarios import catalogue
from failstop.properties.scenarios.steps import DEEP, SCENARIOS
from failstop.properties.subject import NotOffered
from failstop.properties.subjects.steps import StepsSubject
from failstop.properties.targets.veronica import VeronicaCore
from failstop.properties.tests.searching import by_name, caught, searched, without_its_lock
from failstop.runtime.cores.steps import give_back, step
from failstop.runtime.policies import guard
from failstop.runtime.policies.guard import AgentStepGuard

ALL = by_name(SCENARIOS + DEEP)


@pytest.mark.parametrize("name", ALL)
def test_every_schedule_of_our_guard_can_be_explained(name):
    """Searched to its end, with more than one schedule."""
    search = searched(ALL[name])
    assert search.violation is None
    assert search.finished
    assert search.schedules > 1


@pytest.mark.parametrize("name", ["give-back-against-check", pytest.param("given-back-twice", marks=pytest.mark.once)])
def test_it_can_be_interrupted_at_every_line(name):
    """Not only where it takes a lock, so that what it does without one is seen."""
    search = searched(ALL[name], (guard.__name__,))
    assert search.violation is None
    assert search.finished
    assert search.schedules > searched(ALL[name]).schedules


def test_the_scenarios_have_names_of_their_own():
    """Whoever asks for one by its name gets it."""
    assert all(catalogue.every()[name] is scenario for name, scenario in ALL.items())


def test_a_guard_without_its_lock_is_found(monkeypatch):
    """One step is given back twice at once: both see a permit that is not used yet."""
    monkeypatch.setattr(AgentStepGuard, "__init__", without_its_lock(AgentStepGuard.__init__))
    caught(ALL["given-back-twice"], (guard.__name__,))


def taken_without_a_lock(self, result=None):
    """Compare, and then count."""
    taken, admitted = step(self._taken, self._limit)
    self._taken = taken
    return admitted


def test_a_step_that_compares_and_then_counts_is_found(monkeypatch):
    """Two agents see the last step before one of them takes it, which shows only where every line is a point."""
    monkeypatch.setattr(AgentStepGuard, "step", taken_without_a_lock)
    assert searched(ALL["last-step-of-a-guard"]).violation is None
    assert "was told True" in caught(ALL["last-step-of-a-guard"], (__name__,)).told


def test_a_check_that_looks_and_then_counts_is_found(monkeypatch):
    """Each of the two has the lock, but between them it is free."""

    def check(self, context):
        with self._lock:
            taken, admitted = step(self._taken, self._limit)
            era = self._era
        with self._lock:
            self._taken = taken
        return guard.PolicyDecision(admitted, "steps", "", None, era)

    monkeypatch.setattr(AgentStepGuard, "check", check)
    caught(ALL["give-back-against-check"])


def test_a_step_that_goes_back_after_a_reset_is_found(monkeypatch):
    """It was one of those that are forgotten, so it makes room for one too many."""

    def release(self, context, decision):
        with self._lock:
            if decision.permit is not None:
                self._taken = give_back(self._taken)
            decision.permit = None

    monkeypatch.setattr(AgentStepGuard, "release", release)
    caught(ALL["reset-against-give-back"])


def test_a_step_that_goes_back_twice_is_found(monkeypatch):
    """One permit, one step."""

    def release(self, context, decision):
        with self._lock:
            if decision.permit == self._era:
                self._taken = give_back(self._taken)

    monkeypatch.setattr(AgentStepGuard, "release", release)
    caught(ALL["given-back-twice"])


def test_a_result_that_is_lost_is_found(monkeypatch):
    """What an agent had when it was stopped is kept, though its step was refused."""
    right = AgentStepGuard.step

    def forgetful(self, result=None):
        with self._lock:
            before = self._last_result
            admitted = right(self, result)
            if not admitted:
                self._last_result = before
        return admitted

    monkeypatch.setattr(AgentStepGuard, "step", forgetful)
    caught(ALL["last-result"])


def test_a_target_of_ceilings_may_refuse_but_not_let_in():
    """Not exact, a refusal is always explained, and a step beyond the limit never."""
    taken = [Begin(0, Step()), End(0, False), Begin(0, Check("a")), End(0, "denied"), Begin(0, Step()), End(0, True)]
    assert first_gap(StepsReference(1, exact=False), taken, 1) is None
    assert first_gap(StepsReference(1, exact=True), taken, 1).place == 1
    assert first_gap(StepsReference(1, exact=False), [*taken, Begin(0, Step()), End(0, True)], 1).place == 7
    assert first_gap(StepsReference(1, exact=False), [*taken, Begin(0, Check("b")), End(0, "admitted")], 1).place == 7


def test_what_is_taken_is_seen():
    """An observer sees the steps and the newest result, and nothing else explains."""
    taken = [Begin(0, Step("half a page")), End(0, True), Begin(0, Look())]
    assert first_gap(StepsReference(1, exact=True), [*taken, End(0, (1, "half a page"))], 1) is None
    assert first_gap(StepsReference(1, exact=True), [*taken, End(0, (1, None))], 1).place == 3


def test_a_target_without_a_guard_of_its_own_is_told():
    """It is not judged by what it does not offer."""
    with pytest.raises(NotOffered, match="steps"):
        StepsSubject(1).open(VeronicaCore())
