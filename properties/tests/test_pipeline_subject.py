"""The schedules of a pipeline of two policies: ours can always be explained, and wrong ones cannot."""

from __future__ import annotations

import pytest

from failstop.properties.linearizable import Begin, End, Withdraw, first_gap
from failstop.properties.references.breaker import Ask, Look, Settle
from failstop.properties.references.chain import DONE
from failstop.properties.references.pipeline import GiveBack, PipelineReference, Take
from failstop.properties.scenarios import catalogue
from failstop.properties.scenarios.pipeline import DEEP, SCENARIOS
from failstop.properties.subject import Lane, NotOffered
from failstop.properties.subjects.breaker import Call
from failstop.properties.subjects.pipeline import PipelineInstrument, PipelineSubject
from failstop.properties.target import Refused
from failstop.properties.targets.veronica import VeronicaCore
from failstop.properties.tests.searching import by_name, caught, searched
from failstop.runtime.cores.breaker import FAILURE
from failstop.runtime.cores.steps import give_back, step
from failstop.runtime.policies import guard, pipeline
from failstop.runtime.policies.breaker import CircuitBreaker
from failstop.runtime.policies.guard import AgentStepGuard
from failstop.runtime.policies.pipeline import PolicyDecision, PolicyPipeline

pytestmark = pytest.mark.once

ALL = by_name(SCENARIOS + DEEP)


@pytest.mark.parametrize("name", ALL)
def test_every_schedule_of_our_pipeline_can_be_explained(name):
    """Searched to its end, with more than one schedule."""
    search = searched(ALL[name])
    assert search.violation is None
    assert search.finished
    assert search.schedules > 1


def test_the_scenarios_have_names_of_their_own():
    """Whoever asks for one by its name gets it."""
    assert all(catalogue.every()[name] is scenario for name, scenario in ALL.items())


@pytest.mark.parametrize("name", ["denied-step-goes-back", "last-step-of-a-denied-call", *by_name(DEEP)])
def test_a_step_that_does_not_go_back_is_found(name, monkeypatch):
    """The breaker denies the call, and its step stays taken."""

    def evaluate(self, context):
        taken = []
        for policy in self._policies:
            decision = policy.check(context)
            if not decision.allowed:
                return decision
            taken.append((policy, context, decision))
        return PolicyDecision(True, "pipeline", "", None, taken)

    monkeypatch.setattr(PolicyPipeline, "evaluate", evaluate)
    caught(ALL[name])


def test_a_step_that_goes_back_a_call_later_is_found(monkeypatch):
    """What a denied call held is given back when the next one comes, so it holds beyond its end."""
    right, kept = PolicyPipeline.evaluate, pipeline._release_all

    def evaluate(self, context):
        late = vars(self).setdefault("late", [])
        monkeypatch.setattr(pipeline, "_release_all", late.extend)
        before, late[:] = list(late), []
        kept(before)
        return right(self, context)

    monkeypatch.setattr(PolicyPipeline, "evaluate", evaluate)
    caught(ALL["last-step-of-a-denied-call"])


def test_a_step_that_goes_back_twice_is_found(monkeypatch):
    """Once for the denial, and once more: it makes room for one too many."""

    def release(self, context, decision):
        with self._lock:
            self._taken = give_back(give_back(self._taken))

    monkeypatch.setattr(AgentStepGuard, "release", release)
    caught(ALL["denied-step-goes-back"])


def test_a_breaker_that_is_asked_although_there_is_no_step_is_found(monkeypatch):
    """The probe's slot is taken by a call that is denied for another reason."""
    right = PolicyPipeline.evaluate

    def evaluate(self, context):
        decision = right(self, context)
        if decision.policy_type == "steps":
            self._policies[1].check(context)
        return decision

    monkeypatch.setattr(PolicyPipeline, "evaluate", evaluate)
    caught(ALL["probe-without-a-step"])


def test_a_breaker_that_never_hears_how_a_call_ended_is_found(monkeypatch):
    """Two failures do not trip it, and a probe keeps its slot."""
    monkeypatch.setattr(CircuitBreaker, "report", lambda *of_a_call: None)
    caught(ALL["report-against-evaluate"])


def test_a_step_of_a_dispatched_call_that_goes_back_is_found(monkeypatch):
    """What was dispatched stays counted."""

    def report(self, context, decision, error, cost_nano):
        self.release(context, decision)

    monkeypatch.setattr(AgentStepGuard, "report", report)
    caught(ALL["report-against-evaluate"])


def test_a_guard_that_looks_and_then_counts_is_found(monkeypatch):
    """Each of the two has the lock, but between them it is free."""

    def check(self, context):
        with self._lock:
            taken, admitted = step(self._taken, self._limit)
            era = self._era
        with self._lock:
            self._taken = taken
        return guard.PolicyDecision(admitted, "steps", "", None, era)

    monkeypatch.setattr(AgentStepGuard, "check", check)
    caught(ALL["step-given-up"])


def test_a_call_that_is_given_up_and_keeps_its_step_is_found(monkeypatch):
    """It was never dispatched."""
    monkeypatch.setattr(PolicyPipeline, "release", lambda self, decision: None)
    caught(ALL["step-given-up"])


def begun(lane, call):
    """A call asks: the three parts of its admission are asked for at once."""
    return [Begin(lane, Take(call)), Begin(lane, Ask(call)), Begin(lane, GiveBack(call))]


ADMITTED = [Withdraw(0), End(0, "held"), End(0, "admitted")]
DENIED = [End(0, "held"), End(0, "breaker"), End(0, DONE)]
NO_STEP = [Withdraw(1), Withdraw(1), End(1, "steps")]
TRIPPED = [*begun(0, "a"), *ADMITTED, Begin(0, Settle("a", FAILURE)), End(0, DONE)]


def test_a_step_that_is_held_for_a_moment_keeps_others_out():
    """Of two steps one is dispatched, and the other is held by a call that the breaker is about to deny."""
    during = [*TRIPPED, *begun(0, "b"), *begun(1, "c"), *NO_STEP, *DENIED]
    reference = PipelineReference(2, 1, 1, 10, exact=True)
    assert first_gap(reference, [*during, Begin(0, Look()), End(0, (1, "open"))], 2) is None
    assert first_gap(reference, [*during, Begin(0, Look()), End(0, (2, "open"))], 2) is not None


def test_a_step_that_nobody_holds_any_more_keeps_nobody_out():
    """The hold ends within the call that took it."""
    after = [*TRIPPED, *begun(0, "b"), *DENIED, *begun(1, "c"), *NO_STEP]
    gap = first_gap(PipelineReference(2, 1, 1, 10, exact=True), after, 2)
    assert gap is not None
    assert gap.event == End(1, "steps")


def test_a_step_that_nobody_asked_for_keeps_nobody_out():
    """A refusal for want of steps needs somebody who has taken them."""
    early = [*TRIPPED, *begun(1, "c"), *NO_STEP, *begun(0, "b"), *DENIED]
    gap = first_gap(PipelineReference(2, 1, 1, 10, exact=True), early, 2)
    assert gap is not None
    assert gap.event == End(1, "steps")


def test_a_target_of_ceilings_may_refuse_but_not_let_in():
    """Not exact, policies may stand in any order and refuse, and a dispatch without a step is never explained."""
    reference = PipelineReference(1, 1, 1, 10, exact=False)
    refused = [*begun(0, "a"), *DENIED, *begun(1, "b"), Withdraw(1), Withdraw(1), End(1, "denied")]
    assert first_gap(reference, [*refused, *begun(0, "c"), *ADMITTED, *begun(0, "d"), *DENIED], 2) is None
    beyond = [*refused, *begun(0, "c"), *ADMITTED, *begun(0, "d"), *ADMITTED]
    assert first_gap(reference, beyond, 2) is not None
    open_ = [*TRIPPED, *begun(0, "b"), *ADMITTED]
    assert first_gap(PipelineReference(9, 1, 1, 10, exact=False), open_, 2) is not None


def test_a_refusal_by_no_policy_of_the_pipeline_is_told():
    """Only targets that promise mere ceilings may deny for reasons of their own."""

    class Denying:
        def call(self, stub):
            raise Refused("denied")

    seen = []
    PipelineInstrument(Denying(), None, None).play(Call(), Lane(0, seen.append))
    assert first_gap(PipelineReference(9, 1, 1, 10, exact=True), seen, 1) is not None
    assert first_gap(PipelineReference(9, 1, 1, 10, exact=False), seen, 1) is None


def test_a_target_without_a_pipeline_is_told():
    """It is not judged by what it does not offer."""
    with pytest.raises(NotOffered, match="pipeline"):
        PipelineSubject(1).open(VeronicaCore())
