"""The proofs about whole nano-dollars: that each of them can fail, and that floats fail them."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest
import z3

from failstop.models.claim import REFUTED
from failstop.models.theories import floats
from failstop.models.theories import nano_dollars as theory
from failstop.models.theories.executions import compare
from failstop.models.theories.natural import nothing

WRONG = {
    "a ledger that adds refused costs": replace(
        theory.EXACT,
        unfold=lambda n: [
            theory.ledger(n + 1) == theory.ledger(n) + theory.cost_nano(n),
            *theory._spend_exactly(n)[1:],
        ],
    ),
    "a ledger that loses a nano-dollar": replace(
        theory.EXACT,
        unfold=lambda n: [
            theory.ledger(n + 1) == theory.ledger(n) + z3.If(theory.cost_nano(n) == 1, 0, theory.cost_nano(n)),
            *theory._spend_exactly(n)[1:],
        ],
    ),
    "a ledger that refuses what just fits": replace(
        theory.EXACT,
        holds=lambda n: (
            (theory.ledger(n) + theory.cost_nano(n) >= theory.CEILING_NANO)
            == (theory.true_total(n) + z3.ToReal(theory.cost_nano(n)) > theory.CEILING_NANO)
        ),
    ),
    "costs of any rounding": replace(theory.ROUNDED, given=nothing),
    "a ceiling rounded up": replace(theory.ROUNDED, fixed=(theory.CEILING_NANO < theory.TRUE_CEILING + 1,)),
    "a sum that is exact": replace(theory.ROUNDED, holds=lambda n: theory.true_sum(n) == z3.ToReal(theory.charged(n))),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_sum_is_refuted_by_a_small_case(name):
    """It is shown with at most four costs."""
    answer = WRONG[name].ask()
    assert answer.status == REFUTED, answer.told


def test_a_float_can_be_neither_over_nor_within():
    """The same question about floats is refuted."""
    answer = theory.either_over_or_within(floats.SPENT, floats.LIMIT)
    assert answer.status == REFUTED
    assert "NaN" in answer.told


def test_order_matters_if_a_cost_may_be_below_zero():
    """A refund in between makes room."""
    assert theory.order_of_whole_numbers(at_least=-1).status == REFUTED


@pytest.mark.parametrize("ask", [theory.rounds_up, theory.positive_stays_positive])
def test_a_cost_rounded_down_is_refuted(ask):
    """It may be too low, and zero."""
    down = (*theory.RATIO, theory._is_floor(theory.UPWARD, theory.TRUE_NANO))
    answer = ask(given=down)
    assert answer.status == REFUTED
    assert "up = " in answer.told


def test_a_ceiling_rounded_up_is_refuted():
    """It may be too high."""
    up = (*theory.RATIO, theory._is_floor(-theory.DOWNWARD, -theory.TRUE_NANO))
    assert theory.rounds_down(given=up).status == REFUTED


def test_a_conversion_to_the_nearest_is_found():
    """Of the real amounts there is one that it makes zero."""
    answer = compare(theory.conversions(up=lambda amount: round(Fraction(amount) * 10**9)))
    assert answer.status == REFUTED


def test_a_conversion_by_floating_point_is_found():
    """The ceiling of a float product is not the ceiling of the product."""
    answer = compare(theory.conversions(up=lambda amount: math.ceil(float(amount) * 1e9)))
    assert answer.status == REFUTED
