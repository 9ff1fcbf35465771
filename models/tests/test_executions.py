"""Counting real executions: each published number is counted, and a formula that is wrong is found."""

from __future__ import annotations

from failstop.models.claim import REFUTED, UNKNOWN
from failstop.models.theories import executions as theory
from failstop.models.theories.amplification import product_of
from failstop.runtime.chain.context import ExecutionContext
from failstop.runtime.clock import VirtualClock
from failstop.runtime.limits import Limits


def test_the_published_numbers_are_counted():
    """64 and 84 calls at three layers of three retries, 27 at two; 1240 calls of 31 agents."""
    nested = theory.NestedRetries((3, 3, 3)).calls
    assert (nested[-1], sum(nested), theory.NestedRetries((2, 2, 2)).calls[-1]) == (64, 84, 27)
    run = theory.SpawningAgents(spawned=5, depth=2, steps=10, tries=3)
    assert (run.agents, run.calls) == (31, 1240)


def test_counting_finds_a_wrong_product():
    """The product of r says 0 where one call is made."""
    answer = theory.compare(theory.nested_executions(formula=lambda layers: product_of(layers) - 1))
    assert (answer.status, answer.questions) == (REFUTED, 1)
    assert answer.told == "retries (0,), innermost and all calls: counted (1, 1), the formula says (0, 0)"


def test_counting_finds_a_wrong_number_of_agents():
    """One depth too few is seen as soon as an agent spawns."""
    answer = theory.compare(theory.spawning_executions(formula=lambda spawned, depth: spawned**depth))
    assert answer.status == REFUTED
    assert answer.told.startswith("K = 1, D = 1, S = 1, r = 0, agents and calls: counted (2, 2)")


def test_counting_finds_a_retry_beyond_the_budget():
    """If R - 1 were allowed, the first retry at R = 1 would be one too many."""
    answer = theory.compare(theory.contained_executions(allowed=lambda budget: max(budget - 1, 0)))
    assert answer.status == REFUTED
    assert answer.told == "retries (1,), R = 1, retries and bound: counted (1, True), the formula says (0, True)"


def test_without_a_budget_the_same_layers_retry_more():
    """What contains them is the chain's ceiling and not the containers."""
    layers = (3, 3, 3)
    free = theory.NestedRetries(layers)
    with ExecutionContext(Limits(max_retries=2), clock=VirtualClock()) as context:
        contained = theory.NestedRetries(layers, context)
    assert (contained.retries, sum(contained.calls), contained.operations) == (2, 5, 3)
    assert (free.retries, context.snapshot().retries) == (63, 2)


def test_nothing_run_is_unknown():
    """An empty list of executions proves nothing."""
    assert theory.compare([]).status == UNKNOWN
