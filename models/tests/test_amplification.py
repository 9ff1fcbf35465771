"""Theorems 1, 2 and 5 about how calls multiply, and that each of their proofs and counts can fail."""

from __future__ import annotations

from dataclasses import replace

import pytest
import z3

from failstop.models import amplification as theory
from failstop.models.claim import PROVED, PUBLISHED, REFUTED, UNKNOWN, solve
from failstop.models.sums import SMALL, nothing
from failstop.runtime.chain.context import ExecutionContext
from failstop.runtime.clock import VirtualClock
from failstop.runtime.limits import Limits

REFUTED_AS_PUBLISHED = {
    "all calls, tool calls too, are the product of (1 + r_i)": (
        "L = 2, r = (1, 1): 2 + 4 = 6 calls, the product says 4; "
        "at the published L = 3, r = (3, 3, 3): 4 + 16 + 64 = 84 calls, the product says 64"
    ),
    "for every K >= 1 the agents are (K^(D+1) - 1) / (K - 1)": (
        "K = 1, D = 1: (1^2 - 1) / (1 - 1) = 0 / 0, and the agents are 2"
    ),
    "at most R retries bound all calls at 1 + R": "2 operations, R = 0, retries [0, 0]: 2 calls, and 1 + R is 1",
}
INDUCTIONS = {
    "rounds": theory.ROUNDS,
    "nested": theory.NESTED,
    "nodes": theory.NODES,
    "around": theory.AROUND,
    "spawning": theory.SPAWNING,
    "quotient": theory.QUOTIENT,
    "budget": theory.OPERATIONS_AND_BUDGET,
}


@pytest.mark.parametrize("claim", theory.claims(), ids=lambda claim: f"{claim.whose}: {claim.sentence}")
def test_each_claim_has_its_answer(claim):
    """Ours are proved; of the published ones exactly three are refuted, each by numbers one can check by hand."""
    answer = claim.ask()
    if claim.whose == PUBLISHED and claim.sentence in REFUTED_AS_PUBLISHED:
        assert (answer.status, answer.told) == (REFUTED, REFUTED_AS_PUBLISHED[claim.sentence])
    else:
        assert answer.status == PROVED, answer.told
    assert answer.seconds < 5


def test_every_refuted_wording_is_a_claim():
    """None of the three was renamed without its numbers."""
    assert set(REFUTED_AS_PUBLISHED) <= {claim.sentence for claim in theory.claims() if claim.whose == PUBLISHED}


def test_the_published_numbers_are_counted():
    """64 and 84 calls at three layers of three retries, 27 at two; 1240 calls of 31 agents."""
    assert (theory.product_of((3, 3, 3)), theory.all_nodes((3, 3, 3)), theory.product_of((2, 2, 2))) == (64, 84, 27)
    run = theory.SpawningAgents(spawned=5, depth=2, steps=10, tries=3)
    assert (run.agents, run.calls, theory.agent_count(5, 2)) == (31, 1240, 31)


@pytest.mark.parametrize("name", INDUCTIONS)
def test_what_a_proof_assumes_can_be(name):
    """Three layers, depths or operations satisfy it, so nothing is proved from a contradiction."""
    induction = INDUCTIONS[name]
    facts = [fact for n in range(3) for fact in [*induction.given(z3.IntVal(n)), *induction.unfold(z3.IntVal(n))]]
    assert solve(*induction.fixed, *induction.start, *facts)[0] == z3.sat


def with_width(factor):
    """Give the nested proof with layers that multiply by something else than 1 + r."""
    return replace(
        theory.NESTED,
        unfold=lambda n: [
            theory.product(n + 1) == theory.product(n) * factor(theory.retries(n)),
            *theory._layer(n)[1:],
        ],
    )


WRONG = {
    "the product of r": with_width(lambda retries: retries),
    "the product of 2 + r": with_width(lambda retries: 2 + retries),
    "the sum of the layers": replace(
        theory.NESTED,
        unfold=lambda n: [theory.product(n + 1) == theory.product(n) + theory.retries(n), *theory._layer(n)[1:]],
    ),
    "retries below zero": replace(theory.NESTED, given=nothing),
    "one more round": replace(
        theory.ROUNDS, holds=lambda n: theory.at_most(n) <= z3.If(n == 0, 0, (n - 1) * theory.EACH)
    ),
    "rounds of any size": replace(theory.ROUNDS, given=nothing),
    "all calls without the product": replace(
        theory.NODES, holds=lambda n: theory.nodes(n) == theory.prefix_products(n) - theory.product(n) + 1
    ),
    "attempts that are no calls": replace(
        theory.AROUND, holds=lambda n: theory.around_nodes(n) == (1 + theory.OUTER) * theory.prefix_products(n)
    ),
    "K to the D": replace(
        theory.SPAWNING, holds=lambda n: (theory.SPAWNED - 1) * theory.agents(n) == theory.power(n) - 1
    ),
    "K = 1 makes one agent": replace(
        theory.SPAWNING, holds=lambda n: z3.Implies(theory.SPAWNED == 1, theory.agents(n) == 1)
    ),
    "K from 1": replace(theory.QUOTIENT, fixed=(theory.SPAWNED >= 1,)),
    "one operation less": replace(
        theory.OPERATIONS_AND_BUDGET,
        holds=lambda n: z3.Implies(theory.used(n) <= theory.BUDGET, theory.calls(n) <= n - 1 + theory.BUDGET),
    ),
    "no budget": replace(theory.OPERATIONS_AND_BUDGET, holds=lambda n: theory.calls(n) <= n + theory.BUDGET),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_formula_is_refuted_by_a_small_case(name):
    """It is shown with at most four layers, depths or operations."""
    answer = WRONG[name].ask()
    assert answer.status == REFUTED, answer.told
    assert answer.questions <= SMALL + 3


def test_counting_finds_a_wrong_product():
    """The product of r says 0 where one call is made."""
    answer = theory.compare(theory.nested_executions(formula=lambda layers: theory.product_of(layers) - 1))
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
