"""The proofs about rounded totals: that they can fail, and that their traces are true by exact fractions."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from failstop.models.claim import PROVED, REFUTED
from failstop.models.theories import floats
from failstop.models.theories import rounding as theory
from failstop.models.theories.natural import nothing

WRONG = {
    "errors of any size": replace(theory.DRIFT, given=nothing),
    "a drift as of one addition": replace(theory.DRIFT, holds=lambda n: theory.drift(n) <= theory.ERROR_MOST),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_sum_is_refuted_by_a_small_case(name):
    """It is shown with at most four additions."""
    answer = WRONG[name].ask()
    assert answer.status == REFUTED, answer.told


def test_the_float_itself_does_not_see_that_it_is_over():
    """Asked by the rounded sum instead of the true one, accepted costs always fit."""
    assert theory.true_total_fits(over=floats.refused).status == PROVED


def test_the_solvers_trace_is_over_by_exact_fractions():
    """The costs it tells are added up here, without the solver."""
    lines = theory.true_total_fits().told.split("\nand ten")[0].splitlines()
    limit = float(lines[0].removeprefix("ceiling "))
    costs = [float(line.split()[2]) for line in lines[1:-1]]
    assert len(costs) == 2
    assert costs[0] + costs[1] <= limit
    assert sum(map(Fraction, costs)) > Fraction(limit)
    assert floats.excess_of(1.0, [0.1] * 10) > 0


def test_neighbours_half_as_far_apart_are_refuted():
    """The bound on one addition is no larger than it must be."""
    answer = theory.one_addition(neighbours=theory.NEIGHBOURS / 2)
    assert answer.status == REFUTED
    assert "is rounded to" in answer.told


def test_one_addition_meets_the_bound():
    """It is off by exactly half of what lies between neighbours."""
    exact = Fraction(64.0) + Fraction(theory.HALF)
    assert exact - Fraction(64.0 + theory.HALF) == Fraction(theory.HALF)
