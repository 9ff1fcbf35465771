"""The proofs of Theorems 1, 2 and 5 about how calls multiply: that each of them can fail."""

from __future__ import annotations

from dataclasses import replace

import pytest
import z3

from failstop.models.claim import REFUTED
from failstop.models.theories import amplification as theory
from failstop.models.theories.natural import SMALL, nothing


def test_the_published_numbers_are_computed():
    """64 and 84 calls at three layers of three retries, 27 at two; 31 agents."""
    assert (theory.product_of((3, 3, 3)), theory.all_nodes((3, 3, 3)), theory.product_of((2, 2, 2))) == (64, 84, 27)
    assert theory.agent_count(5, 2) == 31


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
