"""The pipeline: the first denial wins, and what it leaves behind is nothing."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from failstop.runtime.clock import VirtualClock
from failstop.runtime.policies.breaker import BreakerState, CircuitBreaker
from failstop.runtime.policies.budget import BudgetEnforcer
from failstop.runtime.policies.guard import AgentStepGuard
from failstop.runtime.policies.pipeline import UNKNOWN_COST, PolicyContext, PolicyDecision, PolicyPipeline
from failstop.runtime.stops import ConfigurationError, Degradation, HaltedStop
from failstop.runtime.tests.racing import race

CALL = PolicyContext("chain", "search", "tool", 10)


class Scripted:
    """A policy that answers as told and writes down what it is asked, into a diary that several can share."""

    policy_type = "scripted"

    def __init__(self, name="p", diary=None, *, allow=True, raises=None, release_raises=None, degradation=None):
        self.name = name
        self.diary = [] if diary is None else diary
        self.answer = allow
        self.raises = raises
        self.release_raises = release_raises
        self.degradation = degradation

    def check(self, context):
        """See RuntimePolicy."""
        self.diary.append(("check", self.name))
        if self.raises is not None:
            raise self.raises
        return PolicyDecision(self.answer, self.name, f"{self.name} says so", self.degradation, self.name)

    def release(self, context, decision):
        """See RuntimePolicy."""
        assert (context, decision.permit) == (CALL, self.name)
        self.diary.append(("release", self.name))
        if self.release_raises is not None:
            raise self.release_raises

    def report(self, context, decision, error, cost_nano):
        """See RuntimePolicy."""
        assert (context, decision.permit) == (CALL, self.name)
        self.diary.append(("report", self.name, error, cost_nano))
        if self.raises is not None:
            raise self.raises

    def reset(self):
        """See RuntimePolicy."""
        self.diary.append(("reset", self.name))


class Hollow:
    """It has the name of a policy and nothing else."""

    policy_type = "hollow"


def pipeline_of(*scripts):
    """A pipeline of scripted policies named a, b, c, ... and their common diary."""
    diary = []
    return PolicyPipeline(
        Scripted(name, diary, **script) for name, script in zip("abcdefgh", scripts, strict=False)
    ), diary


@pytest.mark.parametrize("make", [lambda: AgentStepGuard(1), lambda: BudgetEnforcer("1"), lambda: CircuitBreaker(1)])
def test_an_allowance_carries_the_name_of_its_policy_and_no_reason(make):
    """As a denial does; there is nothing to explain."""
    policy = make()
    decision = policy.check(CALL)
    assert (decision.allowed, decision.policy_type, decision.reason) == (True, policy.policy_type, "")


class TestFirstDenialWins:
    """Order, and what the caller is told."""

    def test_a_call_that_every_policy_allows_is_allowed(self):
        """No policies, or eight that agree."""
        assert PolicyPipeline().evaluate(CALL).allowed
        pipeline, diary = pipeline_of(*[{}] * 8)
        decision = pipeline.evaluate(CALL)
        assert decision.allowed
        assert decision.policy_type == "pipeline"
        assert diary == [("check", name) for name in "abcdefgh"]

    def test_the_first_denial_answers_and_later_policies_are_not_asked(self):
        """The second of three denies; the third would too."""
        pipeline, diary = pipeline_of({}, {"allow": False}, {"allow": False})
        decision = pipeline.evaluate(CALL)
        assert (decision.allowed, decision.policy_type, decision.reason) == (False, "b", "b says so")
        assert ("check", "c") not in diary

    @pytest.mark.parametrize("answer", [None, 0, 1, "yes", "false"])
    def test_only_an_explicit_true_allows(self, answer):
        """A truthy answer is not an allowance."""
        pipeline, _ = pipeline_of({"allow": answer})
        assert pipeline.evaluate(CALL).allowed is not True

    def test_a_denial_carries_its_degradation(self):
        """The caller can act on it."""
        cheaper = Degradation("fallback", fallback_model="small")
        pipeline, _ = pipeline_of({}, {"allow": False, "degradation": cheaper})
        assert pipeline.evaluate(CALL).degradation is cheaper

    def test_the_first_advice_of_an_allowance_reaches_the_caller(self):
        """An allowing policy may advise too."""
        first, second = Degradation("trim"), Degradation("fallback")
        pipeline, _ = pipeline_of({}, {"degradation": first}, {"degradation": second})
        assert pipeline.evaluate(CALL).degradation is first

    def test_what_is_no_policy_is_refused_at_the_door(self):
        """A missing method would only show once a call is denied."""
        for alien in (None, object(), "budget"):
            with pytest.raises(ConfigurationError, match="policies"):
                PolicyPipeline([alien])

    @pytest.mark.parametrize("alien", [object(), Hollow()])
    def test_what_is_no_policy_is_shown(self, alien):
        """The name of the argument and the very thing."""
        with pytest.raises(ConfigurationError) as caught:
            PolicyPipeline([alien])
        assert (caught.value.field, caught.value.value) == ("policies", alien)


class TestRollback:
    """A denial leaves no trace (T6)."""

    @pytest.mark.parametrize("position", range(4))
    def test_a_denial_gives_back_what_earlier_policies_took_last_first(self, position):
        """At any position; the denying policy and those after it are not asked to give back."""
        scripts = [{"allow": index != position} for index in range(4)]
        pipeline, diary = pipeline_of(*scripts)
        assert not pipeline.evaluate(CALL).allowed
        released = [name for what, name in diary if what == "release"]
        assert released == list(reversed("abcd"[:position]))

    @pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), HaltedStop(), asyncio.CancelledError()])
    def test_a_policy_that_raises_does_not_allow_and_leaves_no_trace(self, error):
        """Ordinary errors and BaseExceptions alike reach the caller after the rollback."""
        pipeline, diary = pipeline_of({}, {}, {"raises": error})
        with pytest.raises(type(error)) as caught:
            pipeline.evaluate(CALL)
        assert caught.value is error
        assert diary[-2:] == [("release", "b"), ("release", "a")]

    def test_a_policy_that_answers_nothing_does_not_allow(self):
        """None is no decision."""
        diary = []
        broken = Scripted("broken", diary)
        broken.check = lambda context: None
        with pytest.raises(AttributeError):
            PolicyPipeline([Scripted("a", diary), broken]).evaluate(CALL)
        assert diary[-1] == ("release", "a")

    def test_a_release_that_raises_does_not_keep_the_others(self):
        """The first failure is raised once all have given back."""
        failure = RuntimeError("stuck")
        pipeline, diary = pipeline_of({}, {"release_raises": failure}, {"allow": False})
        with pytest.raises(RuntimeError) as caught:
            pipeline.evaluate(CALL)
        assert caught.value is failure
        assert diary[-2:] == [("release", "b"), ("release", "a")]

    def test_a_failing_rollback_does_not_hide_why_it_was_needed(self):
        """The policy's own error comes out, with a note on the rollback."""
        pipeline, _ = pipeline_of({"release_raises": RuntimeError("stuck")}, {"raises": KeyboardInterrupt()})
        with pytest.raises(KeyboardInterrupt) as caught:
            pipeline.evaluate(CALL)
        assert "stuck" in caught.value.__notes__[0]

    def test_real_policies_are_as_before_after_a_denial(self):
        """Budget, steps and the breaker's probe slot all come back, whatever their order."""
        for order in itertools.permutations(range(3)):
            clock = VirtualClock()
            budget, guard = BudgetEnforcer("1"), AgentStepGuard(1)
            breaker = CircuitBreaker(1, 1, clock=clock)
            with pytest.raises(ZeroDivisionError):
                breaker.call(lambda: 1 // 0)
            clock.advance_ns(10**9)
            policies = [(budget, guard, breaker)[index] for index in order]
            assert not PolicyPipeline([*policies, Scripted(allow=False)]).evaluate(CALL).allowed
            assert (budget.reserved.nano, guard.current_step) == (0, 0)
            assert breaker.state is BreakerState.HALF_OPEN
            assert PolicyPipeline(policies).evaluate(CALL).allowed


class TestEnds:
    """release and report after an allowance."""

    def test_release_gives_back_once_last_first(self):
        """A second release, or a report after it, does nothing."""
        pipeline, diary = pipeline_of({}, {})
        decision = pipeline.evaluate(CALL)
        del diary[:]
        pipeline.release(decision)
        pipeline.release(decision)
        pipeline.report(decision, None, 1)
        assert diary == [("release", "b"), ("release", "a")]

    def test_report_reaches_every_policy_once(self):
        """With the error and the cost as they were given."""
        pipeline, diary = pipeline_of({}, {})
        decision = pipeline.evaluate(CALL)
        del diary[:]
        error = ValueError()
        pipeline.report(decision, error, UNKNOWN_COST)
        pipeline.report(decision, error, UNKNOWN_COST)
        pipeline.release(decision)
        assert sorted(diary) == [("report", "a", error, -1), ("report", "b", error, -1)]

    def test_a_report_that_raises_does_not_keep_it_from_the_others(self):
        """The last policy's bookkeeping fails; the first still learns."""
        diary = []
        broken = Scripted("b", diary)
        pipeline = PolicyPipeline([Scripted("a", diary), broken])
        decision = pipeline.evaluate(CALL)
        broken.raises = RuntimeError("report")
        with pytest.raises(RuntimeError, match="report"):
            pipeline.report(decision, None, 5)
        assert diary[-1] == ("report", "a", None, 5)

    def test_a_denial_can_be_released_and_reported_without_effect(self):
        """It took nothing."""
        pipeline, diary = pipeline_of({"allow": False})
        decision = pipeline.evaluate(CALL)
        pipeline.release(decision)
        pipeline.report(decision, None, 0)
        assert diary == [("check", "a")]

    def test_reset_reaches_every_policy(self):
        """In order."""
        pipeline, diary = pipeline_of({}, {})
        pipeline.reset()
        assert diary == [("reset", "a"), ("reset", "b")]


class TestThreads:
    """The pipeline keeps no state of its own, so only its policies are shared."""

    def test_racing_calls_pass_together_what_the_tightest_policy_admits(self):
        """A guard of 8 behind a budget of 5 holds: 5 pass, and the steps of the denied ones are back."""
        for _ in range(20):
            budget, guard = BudgetEnforcer("0.00000005"), AgentStepGuard(8)
            pipeline = PolicyPipeline([guard, budget])
            allowed = race(8, lambda _, pipeline=pipeline: pipeline.evaluate(CALL).allowed)
            assert sum(allowed) == 5
            assert (guard.current_step, budget.reserved.nano) == (5, 50)

    def test_a_decision_released_by_many_threads_goes_back_once(self):
        """Whoever is first."""
        for _ in range(20):
            guard = AgentStepGuard(10)
            pipeline = PolicyPipeline([guard])
            pipeline.evaluate(CALL)
            decision = pipeline.evaluate(CALL)
            race(4, lambda _, pipeline=pipeline, decision=decision: pipeline.release(decision))
            assert guard.current_step == 1
