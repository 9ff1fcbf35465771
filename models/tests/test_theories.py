"""The verdict on every claim of every theory, and the numbers that each refutation tells."""

from __future__ import annotations

import re

import pytest

from failstop.models import catalogue
from failstop.models.claim import OURS, PROVED, PUBLISHED, REFUTED
from failstop.models.theories import (
    amplification,
    door,
    epsilon,
    executions,
    nano_dollars,
    not_a_number,
    rounding,
    sums,
)

THEORIES = (amplification, door, epsilon, executions, nano_dollars, not_a_number, rounding, sums)
CLAIMS = [claim for theory in THEORIES for claim in theory.claims()]

REFUTED_AS_PUBLISHED = {
    amplification.product_as_total: [
        "L = 2, r = (",
        "; at the published L = 3, r = (3, 3, 3): 4 + 16 + 64 = 84 calls, the product says 64",
    ],
    amplification.QUOTIENT_ALWAYS.ask: ["K = 1, D = 1: (1^2 - 1) / (1 - 1) = 0 / 0, and the agents are 2"],
    amplification.ONE_AND_BUDGET.ask: ["2 operations, R = "],
    not_a_number.ceiling_trips: [
        "ceiling 1.0",
        "1. cost nan accepted, accumulator nan",
        "2. cost 5.0 accepted, accumulator nan",
        "3. cost 5.0 accepted, accumulator nan",
    ],
    not_a_number.sign_check_is_enough: ["nan < 0 is False"],
    rounding.true_total_fits: [
        "true total over the ceiling by ",
        "10. cost 0.1 accepted, accumulator 0.9999999999999999\ntrue total over the ceiling by 5.55e-17",
    ],
    rounding.order_is_free: ["ceiling 0.6", "the other way round: "],
    epsilon.guard_keeps_the_ceiling: [
        "ceiling 1.0, guard 1e-09",
        "2. cost 1e-09 accepted, accumulator 1.000000001",
        "true total over the ceiling by 1e-09",
        "in costs of 1e-10, 10 calls more are accepted than fit",
    ],
}


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim.protocol}, {claim.whose}: {claim.sentence}")
def test_each_claim_has_its_answer(claim):
    """Ours are proved; of the published ones exactly eight are refuted, each by numbers one can check by hand."""
    answer = claim.ask()
    wanted = REFUTED_AS_PUBLISHED.get(claim.ask) if claim.whose == PUBLISHED else None
    assert answer.status == (PROVED if wanted is None else REFUTED), answer.told
    assert [part for part in wanted or [] if part not in answer.told] == []
    assert answer.seconds < 8


def test_everything_that_is_refuted_is_claimed_as_published():
    """None of the eight is only a function that nobody asks."""
    assert set(REFUTED_AS_PUBLISHED) <= {claim.ask for claim in CLAIMS if claim.whose == PUBLISHED}


def test_two_layers_are_enough_to_pass_the_product():
    """Whichever the solver chooses, the calls it tells are those of both layers, and more than the product."""
    first, second, outer, product, total, said = numbers(
        r"r = \((\d), (\d)\): (\d+) \+ (\d+) = (\d+) calls, the product says (\d+);", amplification.product_as_total()
    )
    assert (outer, product) == (1 + first, (1 + first) * (1 + second))
    assert total == outer + product > said == product


def test_two_operations_are_enough_to_pass_one_and_the_budget():
    """Whichever the solver chooses, it keeps to the budget and makes one call more than the formula allows."""
    budget, first, second, calls, said = numbers(
        r"R = (\d+), retries \[(\d+), (\d+)\]: (\d+) calls, and 1 \+ R is (\d+)", amplification.ONE_AND_BUDGET.ask()
    )
    assert first + second <= budget
    assert calls == 2 + first + second > said == 1 + budget


def test_three_costs_fit_in_one_order_only():
    """Whichever the solver chooses, the same three costs are all accepted one way and not the other way round."""
    ways = rounding.order_is_free().told.split("the other way round: ")
    costs = [re.findall(r"cost (\S+)", way) for way in ways]
    assert costs[0] == costs[1][::-1]
    assert sorted("refused" in way for way in ways) == [False, True]


def numbers(pattern, answer):
    """Give the whole numbers that an answer tells."""
    return map(int, re.search(pattern, answer.told).groups())


def test_the_catalogue_finds_every_theory():
    """By the name that its claims bear, after the specifications, and in an order that does not change."""
    assert catalogue.names() == [*catalogue.specifications(), *(theory.NAME for theory in THEORIES)]
    for theory in THEORIES:
        assert {claim.protocol for claim in catalogue.claims_of(theory.NAME)} == {theory.NAME}
    assert len(set(catalogue.names())) == len(catalogue.names())


def test_both_ways_of_counting_money_are_judged():
    """Floats as published and nano-dollars as ours, each under G1 and under G6."""
    money = (not_a_number, rounding, epsilon, nano_dollars)
    assert {(claim.whose, claim.guarantee) for theory in money for claim in theory.claims()} == {
        (whose, guarantee) for whose in (OURS, PUBLISHED) for guarantee in ("G1", "G6")
    }
