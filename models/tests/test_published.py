"""The published protocols: which of their promises are proved, which are refuted, and in how many steps."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest

from failstop.models.claim import PROVED, PUBLISHED, REFUTED
from failstop.models.induction import Proofs
from failstop.models.protocols import breaker as our_breaker
from failstop.models.protocols import budget as our_budget
from failstop.models.protocols import grant as our_grant
from failstop.models.protocols import ledger as our_ledger
from failstop.models.protocols import pipeline as our_pipeline
from failstop.models.protocols import steps as our_steps
from failstop.models.published import (
    approval,
    breaker,
    budget,
    configuration,
    container,
    cost,
    deadline,
    guard,
    halting,
    loop,
    overshoot,
    pipeline,
    retries,
    steps,
)

pytestmark = pytest.mark.once

MODULES = (
    *(approval, breaker, budget, configuration, container, cost, deadline),
    *(guard, halting, loop, overshoot, pipeline, retries, steps),
)
SPECIFICATIONS = [spec for module in MODULES for spec in module.SPECIFICATIONS]

REFUTED_IN_STEPS = {
    (cost.COST, cost.total_cost_stays_below): 2,
    (budget.BUDGET, budget.a_refusal_halts): 2,
    (steps.STEPS, steps.successes_stay_within): 4,
    (steps.STEPS, steps.steps_stay_within): 3,
    (guard.ASKED_BEFORE, guard.stopped_at_the_ceiling_only): 1,
    (retries.RETRIES, retries.total_calls_stay_within): 2,
    (container.CONTAINER, container.total_retries_stay_within): 5,
    (breaker.BREAKER, breaker.one_test_request): 8,
    (breaker.BREAKER, breaker.closed_by_its_test): 6,
    (breaker.BREAKER, breaker.no_trap): 6,
    (breaker.WALL_CLOCK, breaker.open_denies): 4,
    (breaker.WALL_CLOCK, breaker.open_tests_in_time): 5,
    (deadline.DEADLINE, deadline.halted_once_late): 2,
    (configuration.CONFIGURATION, configuration.counts_are_whole): 1,
    (configuration.CONFIGURATION, configuration.no_truth_values): 1,
    (pipeline.PIPELINE, pipeline.the_slot_is_given_back): 2,
    (pipeline.PIPELINE, pipeline.a_half_open_breaker_tests): 3,
    (approval.APPROVAL, approval.runs_as_approved): 3,
    (approval.APPROVAL, approval.runs_once): 4,
}
"""Everything else that is claimed of a published protocol is proved."""

OURS_PROVE = {
    cost.total_cost_stays_below: (our_ledger.LEDGER, our_ledger.passed_by_the_excess_only),
    budget.a_refusal_halts: (our_budget.BUDGET, our_budget.a_refusal_is_for_good),
    steps.successes_stay_within: (our_ledger.LEDGER, our_ledger.within_the_steps),
    steps.steps_stay_within: (our_ledger.LEDGER, our_ledger.steps_are_dispatches),
    guard.stopped_at_the_ceiling_only: (our_steps.STEPS, our_steps.admitted_whenever_possible),
    retries.total_calls_stay_within: (our_ledger.LEDGER, our_ledger.calls_are_operations_and_retries),
    container.total_retries_stay_within: (our_ledger.LEDGER, our_ledger.within_the_retries),
    breaker.one_test_request: (our_breaker.BREAKER, our_breaker.one_probe_at_a_time),
    breaker.closed_by_its_test: (our_breaker.BREAKER, our_breaker.closed_by_its_probe_only),
    breaker.no_trap: (our_breaker.BREAKER, our_breaker.no_state_is_a_trap),
    deadline.halted_once_late: (our_ledger.LEDGER, our_ledger.in_time),
    pipeline.the_slot_is_given_back: (our_pipeline.PIPELINE, our_pipeline.a_denied_probe_frees_its_slot),
    approval.runs_as_approved: (our_grant.GRANT, our_grant.only_what_was_approved),
    approval.runs_once: (our_grant.GRANT, our_grant.used_once),
}
"""For a refuted promise the one that the runtime's own protocol keeps; clocks and types are its shell's business."""


def name_of(spec, function):
    return spec.name, spec.formulas[function].sentence


def claims_of(specifications):
    return [claim for spec in specifications for claim in Proofs(spec).claims()]


def claim_of(spec, function):
    sentence = spec.formulas[function].sentence
    return next(claim for claim in Proofs(spec).claims() if claim.sentence == sentence)


REFUTED_NAMES = {name_of(*key) for key in REFUTED_IN_STEPS}


@pytest.mark.parametrize("claim", claims_of(SPECIFICATIONS), ids=lambda claim: f"{claim.protocol}: {claim.sentence}")
def test_each_published_promise_has_its_verdict(claim):
    """It is proved, or refuted if it stands in the table; none is left unknown, and none takes long."""
    answer = claim.ask()
    expected = REFUTED if (claim.protocol, claim.sentence) in REFUTED_NAMES else PROVED
    assert answer.status == expected, answer.told
    assert claim.whose == PUBLISHED
    assert answer.seconds < 10


@pytest.mark.parametrize(
    ("spec", "function", "length"),
    [(*key, length) for key, length in REFUTED_IN_STEPS.items()],
    ids=lambda value: getattr(value, "__name__", getattr(value, "name", None)),
)
def test_each_refutation_is_the_shortest_story_and_ends_with_what_it_broke(spec, function, length):
    """The trace has so many steps, one for each number, and the broken promise is its last line."""
    lines = claim_of(spec, function).ask().told.splitlines()
    numbers = [int(line.split(".")[0]) for line in lines if re.match(r"\d+\. ", line)]
    assert numbers == list(range(length + 1))
    assert lines[-1] == f"broken: {spec.formulas[function].sentence}"


@pytest.mark.parametrize("function", OURS_PROVE, ids=lambda function: function.__name__)
def test_ours_keeps_the_promise_that_was_refuted(function):
    """For each refuted promise that a core can keep, the runtime's own protocol proves the like of it."""
    assert claim_of(*OURS_PROVE[function]).ask().status == PROVED


def test_every_refuted_promise_is_looked_for_and_every_protocol_has_its_own_name():
    """No entry of the table is about a claim that nobody makes, and no claim is ambiguous."""
    made = Counter((claim.protocol, claim.sentence) for claim in claims_of(SPECIFICATIONS))
    assert set(made) >= REFUTED_NAMES
    assert len(REFUTED_NAMES) == len(REFUTED_IN_STEPS)
    assert set(made.values()) == {1}


def test_nothing_false_is_an_invariant():
    """Refuted promises are laws: a proof by induction takes all invariants for granted before a step."""
    for spec, function in REFUTED_IN_STEPS:
        assert function not in [invariant.holds for invariant in spec.invariants]
        assert function in [law.holds for law in spec.laws]


def records_too_much(world: cost.Chain, call: cost.Call, cost_: int) -> tuple[cost.Chain, cost.Call] | None:
    """A cost is recorded without a look at the ceiling."""
    if call.phase != cost.RUNNING or cost_ < 0:
        return None
    return world._replace(accumulated=world.accumulated + cost_), cost.Call(cost.RECORDED, cost_)


def spends_unchecked(world: budget.Budget, amount: int) -> budget.Budget | None:
    """Somebody spends without a look at the limit."""
    if amount < 1:
        return None
    return budget.Budget(world.spent + amount, False, True)


def retries_unchecked(world: retries.Chain, call: retries.Call) -> tuple[retries.Chain, retries.Call] | None:
    """An attempt fails and is repeated without a look at the budget."""
    if call.phase != retries.TRIED:
        return None
    return world._replace(retries_used=world.retries_used + 1), call._replace(retries=call.retries + 1)


def asks_and_runs(world: breaker.Breaker, call: breaker.Caller) -> tuple[breaker.Breaker, breaker.Caller] | None:
    """A caller runs, whatever the breaker says."""
    if call.phase != breaker.IDLE:
        return None
    return world, breaker.Caller(breaker.RUNNING)


def runs_although_cancelled(world: deadline.Chain, call: deadline.Call) -> tuple[deadline.Chain, deadline.Call] | None:
    """A call runs, whatever the token says."""
    if call.phase != deadline.NEW:
        return None
    return world, deadline.Call(deadline.RUNNING)


def configures_anything(is_count: bool, value: int, negative: bool) -> configuration.Limit:
    """Any limit is made."""
    return configuration.Limit(True, is_count, value, negative)


def passes_the_budget(world: pipeline.Pipeline, call: pipeline.Call) -> tuple[pipeline.Pipeline, pipeline.Call] | None:
    """A call passes the budget, which is not asked."""
    if call.phase != pipeline.PASSED_BREAKER:
        return None
    return world, call._replace(phase=pipeline.PASSED_BUDGET)


def forgets_the_halt(world: halting.Chain, call: halting.Call) -> tuple[halting.Chain, halting.Call] | None:
    """A call is let through, whether the chain is aborted or not."""
    if call.phase != halting.NEW:
        return None
    return world, halting.Call(halting.ADMITTED)


def runs_at_once(world: approval.Run, arguments: int) -> approval.Run | None:
    """The gated tool runs."""
    if arguments < 1:
        return None
    return world._replace(runs=world.runs + 1)


def forgets_the_last(limits: loop.Limits, world: loop.Loop, action: int) -> loop.Loop | None:
    """The agent asks for an action, and no repetition is counted."""
    if world.stopped or action < 1:
        return None
    return loop.Loop(1, action, world.in_a_row + 1 if action == world.last else 1, limits.max_repeats < 1)


MUTANTS = (
    (cost.COST, cost.returns, records_too_much, cost.the_ledger_stays_below),
    (budget.BUDGET, budget.spends, spends_unchecked, budget.within_the_limit),
    (retries.RETRIES, retries.fails, retries_unchecked, retries.total_retries_stay_within),
    (breaker.BREAKER, breaker.asks, asks_and_runs, breaker.open_denies),
    (deadline.DEADLINE, deadline.asks, runs_although_cancelled, deadline.halted_once_cancelled),
    (configuration.CONFIGURATION, configuration.configures, configures_anything, configuration.finite),
    (configuration.CONFIGURATION, configuration.configures, configures_anything, configuration.not_negative),
    (pipeline.PIPELINE, pipeline.asks_budget, passes_the_budget, pipeline.total_cost_stays_within),
    (halting.HALTING, halting.asks, forgets_the_halt, halting.subsequent_calls_are_halted),
    (approval.APPROVAL, approval.calls, runs_at_once, approval.nothing_runs_unapproved),
    (loop.LOOP, loop.acts, forgets_the_last, loop.no_more_in_a_row),
)


@pytest.mark.parametrize(
    ("spec", "action", "mutant", "function"),
    MUTANTS,
    ids=lambda value: getattr(value, "__name__", getattr(value, "name", None)),
)
def test_what_is_proved_of_a_published_protocol_can_fail(spec, action, mutant, function):
    """With a step that forgets what the protocol does, the promise is refuted by a trace."""
    actions = tuple(mutant if each is action else each for each in spec.actions)
    laws = tuple(law._replace(of=actions if law.of else ()) for law in spec.laws if law.holds is function)
    # The other invariants would be taken for granted, and what is wrong with one could hide behind another.
    invariants = spec.invariants if laws else tuple(each for each in spec.invariants if each.holds is function)
    broken = replace(spec, actions=actions, invariants=invariants, laws=laws, goals=())
    assert claim_of(broken, function).ask().status == REFUTED
