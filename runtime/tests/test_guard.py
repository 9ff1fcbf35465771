"""The step guard admits exactly its limit."""

from __future__ import annotations

import pytest

from failstop.runtime.cores import steps as core
from failstop.runtime.policies import guard as shell
from failstop.runtime.policies.guard import AgentStepGuard
from failstop.runtime.policies.pipeline import PolicyContext
from failstop.runtime.stops import ConfigurationError
from failstop.runtime.tests.racing import race, slowed

CALL = PolicyContext()


class TestCore:
    """The pure steps."""

    def test_every_small_count_and_limit_keeps_the_bound(self):
        """Exhaustive: admitted exactly below the limit, never past it, and give_back undoes a step."""
        for limit in range(-1, 6):
            for taken in range(7):
                after, admitted = core.step(taken, limit)
                assert admitted == (limit < 0 or taken < limit)
                assert after == taken + admitted
                assert core.give_back(after) == taken or not admitted

    def test_a_step_is_never_given_back_below_none(self):
        """Total on zero."""
        assert core.give_back(0) == 0


class TestGuard:
    """The shell on one thread."""

    @pytest.mark.parametrize("limit", [0, 1, 2, 25])
    def test_exactly_max_steps_steps_are_admitted(self, limit):
        """25 admits 25, not 24; 0 admits none."""
        guard = AgentStepGuard(limit)
        assert [guard.step() for _ in range(limit + 3)] == [True] * limit + [False] * 3
        assert guard.current_step == limit

    def test_only_none_is_unlimited(self):
        """No count stops it."""
        guard = AgentStepGuard(None)
        assert all(guard.step() for _ in range(1000))

    @pytest.mark.parametrize("limit", [-1, True, 2.0, float("nan"), "25", 10**400])
    def test_a_limit_that_is_no_count_is_refused(self, limit):
        """By name, at construction (G6)."""
        with pytest.raises(ConfigurationError, match="max_steps"):
            AgentStepGuard(limit)

    def test_the_last_result_survives_a_refused_step(self):
        """It is what a stopped agent can still show."""
        guard = AgentStepGuard(1)
        guard.step("draft")
        guard.step("better draft")
        guard.step()
        assert guard.last_result == "better draft"

    def test_reset_begins_anew(self):
        """Steps and result are gone."""
        guard = AgentStepGuard(1)
        guard.step("old")
        guard.reset()
        assert (guard.current_step, guard.last_result) == (0, None)
        assert guard.step()


class TestPolicy:
    """The guard in a pipeline."""

    def test_a_released_step_can_be_taken_again_once(self):
        """A second release of the same permit gives nothing back."""
        guard = AgentStepGuard(2)
        guard.check(CALL)
        decision = guard.check(CALL)
        assert not guard.check(CALL).allowed
        guard.release(CALL, decision)
        guard.release(CALL, decision)
        assert guard.current_step == 1

    def test_a_reported_step_stays_taken_even_if_the_call_failed(self):
        """Failures count (G2)."""
        guard = AgentStepGuard(1)
        guard.report(CALL, guard.check(CALL), ValueError(), 0)
        assert not guard.check(CALL).allowed

    def test_a_permit_from_before_a_reset_gives_nothing_back(self):
        """Its step is gone already."""
        guard = AgentStepGuard(2)
        old = guard.check(CALL)
        guard.reset()
        guard.check(CALL)
        guard.release(CALL, old)
        assert guard.current_step == 1

    def test_a_denial_takes_nothing_and_says_the_limit(self):
        """Releasing it changes nothing."""
        guard = AgentStepGuard(1)
        guard.check(CALL)
        denial = guard.check(CALL)
        assert (denial.allowed, denial.policy_type, denial.reason) == (False, "steps", "all 1 steps are taken")
        guard.release(CALL, denial)
        assert guard.current_step == 1


def test_a_step_from_before_several_resets_is_not_given_back():
    """Every reset begins an era of its own."""
    guard = AgentStepGuard(9)
    guard.reset()
    old = guard.check(CALL)
    guard.reset()
    guard.check(CALL)
    guard.release(CALL, old)
    assert guard.current_step == 1


def test_racing_threads_are_admitted_exactly_the_limit(monkeypatch):
    """16 threads, 3 steps each, 25 admitted in all; many rounds."""
    slowed(monkeypatch, shell, "step")
    for _ in range(20):
        guard = AgentStepGuard(25)
        admitted = race(16, lambda _, guard=guard: sum(guard.step() for _ in range(3)))
        assert sum(admitted) == 25


def test_racing_checks_and_releases_lose_no_step(monkeypatch):
    """Every thread takes two and gives one back."""
    slowed(monkeypatch, shell, "step", "give_back")

    def work(guard):
        guard.check(CALL)
        guard.release(CALL, guard.check(CALL))

    for _ in range(10):
        guard = AgentStepGuard(None)
        race(16, lambda _, guard=guard: work(guard))
        assert guard.current_step == 16
