"""What floating-point dollars do to a ceiling and whole nano-dollars do not, and that each of these checks can fail."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest
import z3

from failstop.models import floats as theory
from failstop.models.amplification import compare
from failstop.models.claim import OURS, PROVED, PUBLISHED, REFUTED, solve
from failstop.models.sums import nothing

REFUTED_AS_PUBLISHED = {
    "a float ceiling trips once costs that are not below zero have passed it": [
        "ceiling 1.0",
        "1. cost nan accepted, accumulator nan",
        "2. cost 5.0 accepted, accumulator nan",
        "3. cost 5.0 accepted, accumulator nan",
    ],
    "what passes the check cost < 0 is a number": ["nan < 0 is False"],
    "the true total of the accepted costs is at most the ceiling": [
        "true total over the ceiling by ",
        "10. cost 0.1 accepted, accumulator 0.9999999999999999\ntrue total over the ceiling by 5.55e-17",
    ],
    "whether costs fit does not depend on their order": ["ceiling 0.6", "3. cost 0.3 refused", "3. cost 0.1 accepted"],
    "with a guard of 1e-9 the total stays at most the ceiling": [
        "ceiling 1.0, guard 1e-09",
        "2. cost 1e-09 accepted, accumulator 1.000000001",
        "true total over the ceiling by 1e-09",
        "in costs of 1e-10, 10 calls more are accepted than fit",
    ],
}


@pytest.mark.parametrize("claim", theory.claims(), ids=lambda claim: f"{claim.whose}: {claim.sentence}")
def test_each_claim_has_its_answer(claim):
    """Ours are proved; of the published ones exactly five are refuted, each by numbers one can check by hand."""
    answer = claim.ask()
    wanted = REFUTED_AS_PUBLISHED.get(claim.sentence) if claim.whose == PUBLISHED else None
    assert answer.status == (PROVED if wanted is None else REFUTED), answer.told
    assert [part for part in wanted or [] if part not in answer.told] == []
    assert answer.seconds < 8


def test_every_refuted_wording_is_a_claim():
    """None of the five was renamed without its numbers."""
    assert set(REFUTED_AS_PUBLISHED) <= {claim.sentence for claim in theory.claims() if claim.whose == PUBLISHED}


def test_the_told_floats_are_the_floats_of_the_solver():
    """Also those that cannot be written in a few digits, and those without a sign or a value."""
    for number in (0.1, 5e-324, 1e308, -0.0, math.inf, -math.inf):
        assert repr(theory.to_float(theory._value(number))) == repr(number)
    assert math.isnan(theory.to_float(theory._value(math.nan)))


class TestNoNumbers:
    """What the proofs about NaN rest on."""

    def test_the_sign_check_alone_does_not_keep_the_accumulator_sane(self):
        """A NaN cost passes it."""
        answer = theory.accumulator_keeps_sane(check=theory.below_zero)
        assert answer.status == REFUTED
        assert "cost nan" in answer.told

    @pytest.mark.parametrize(
        ("name", "check"),
        [
            ("nan", lambda number: z3.Or(z3.fpIsInf(number), theory.below_zero(number))),
            ("inf", lambda number: z3.Or(z3.fpIsNaN(number), theory.below_zero(number))),
            ("cost -", lambda number: z3.Or(z3.fpIsNaN(number), z3.fpIsInf(number))),
            ("0.0 is", lambda number: z3.Or(theory.raises(number), z3.fpEQ(number, theory._value(0.0)))),
        ],
    )
    def test_no_part_of_the_full_check_is_idle(self, name, check):
        """Without isnan, isinf or the sign, something else passes; refusing zero refuses an amount."""
        answer = theory.full_check(check=check)
        assert answer.status == REFUTED
        assert name in answer.told

    def test_a_check_for_nan_makes_the_sign_check_enough(self):
        """What then passes is a number."""
        assert theory.sign_check_is_enough(check=theory.raises).status == PROVED


class TestRounding:
    """What the proofs about rounded sums rest on."""

    def test_the_float_itself_does_not_see_that_it_is_over(self):
        """Asked by the rounded sum instead of the true one, accepted costs always fit."""
        assert theory.true_total_fits(over=theory.refused).status == PROVED

    def test_the_solvers_trace_is_over_by_exact_fractions(self):
        """The costs it tells are added up here, without the solver."""
        lines = theory.true_total_fits().told.split("\nand ten")[0].splitlines()
        limit = float(lines[0].removeprefix("ceiling "))
        costs = [float(line.split()[2]) for line in lines[1:-1]]
        assert len(costs) == 2
        assert costs[0] + costs[1] <= limit
        assert sum(map(Fraction, costs)) > Fraction(limit)
        assert theory.excess_of(1.0, [0.1] * 10) > 0

    def test_neighbours_half_as_far_apart_are_refuted(self):
        """The bound on one addition is no larger than it must be."""
        answer = theory.one_addition(neighbours=theory.NEIGHBOURS / 2)
        assert answer.status == REFUTED
        assert "is rounded to" in answer.told

    def test_one_addition_meets_the_bound(self):
        """It is off by exactly half of what lies between neighbours."""
        exact = Fraction(64.0) + Fraction(theory.HALF)
        assert exact - Fraction(64.0 + theory.HALF) == Fraction(theory.HALF)

    def test_three_tenths_do_not_fit_into_three_tenths(self):
        """The error goes either way."""
        assert "3. cost 0.1 refused" in theory.story(0.3, [0.1] * 3)

    def test_a_total_within_the_ceiling_is_told_as_such(self):
        """The replay can also find nothing wrong."""
        assert theory.story(1.0, [0.5, 0.25]).endswith("true total within the ceiling")


INDUCTIONS = {
    "drift": theory.DRIFT,
    "one chain": theory.ONE_CHAIN,
    "many chains": theory.MANY_CHAINS,
    "many reached": theory.MANY_REACHED,
    "exact": theory.EXACT,
    "rounded": theory.ROUNDED,
}
WRONG = {
    "errors of any size": replace(theory.DRIFT, given=nothing),
    "a drift as of one addition": replace(theory.DRIFT, holds=lambda n: theory.drift(n) <= theory.ERROR_MOST),
    "a guard that permits nothing": replace(theory.ONE_CHAIN, holds=lambda n: theory.total(n) <= theory.CEILING),
    "chains that pass their guard": replace(theory.MANY_CHAINS, given=nothing),
    "one guard for all chains": replace(
        theory.MANY_CHAINS,
        holds=lambda n: theory.all_chains(n) <= z3.ToReal(n) * theory.CEILING + theory.GUARD,
    ),
    "a guard that is never used up": replace(
        theory.MANY_REACHED,
        holds=lambda n: z3.Implies(n > 0, theory.all_chains(n) < n * (theory.CEILING + theory.GUARD)),
    ),
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


@pytest.mark.parametrize("name", INDUCTIONS)
def test_what_a_proof_assumes_can_be(name):
    """Three additions, costs or chains satisfy it, so nothing is proved from a contradiction."""
    induction = INDUCTIONS[name]
    facts = [fact for n in range(3) for fact in [*induction.given(z3.IntVal(n)), *induction.unfold(z3.IntVal(n))]]
    assert solve(*induction.fixed, *induction.start, *facts)[0] == z3.sat


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_sum_is_refuted_by_a_small_case(name):
    """It is shown with at most four additions, costs or chains."""
    answer = WRONG[name].ask()
    assert answer.status == REFUTED, answer.told


class TestWholeNumbers:
    """What the proofs about whole nano-dollars rest on."""

    def test_a_float_can_be_neither_over_nor_within(self):
        """The same question about floats is refuted."""
        answer = theory.either_over_or_within(theory.SPENT, theory.LIMIT)
        assert answer.status == REFUTED
        assert "NaN" in answer.told

    def test_order_matters_if_a_cost_may_be_below_zero(self):
        """A refund in between makes room."""
        assert theory.order_of_whole_numbers(at_least=-1).status == REFUTED

    @pytest.mark.parametrize("ask", [theory.rounds_up, theory.positive_stays_positive])
    def test_a_cost_rounded_down_is_refuted(self, ask):
        """It may be too low, and zero."""
        down = (*theory.RATIO, theory._is_floor(theory.UPWARD, theory.TRUE_NANO))
        answer = ask(given=down)
        assert answer.status == REFUTED
        assert "up = " in answer.told

    def test_a_ceiling_rounded_up_is_refuted(self):
        """It may be too high."""
        up = (*theory.RATIO, theory._is_floor(-theory.DOWNWARD, -theory.TRUE_NANO))
        assert theory.rounds_down(given=up).status == REFUTED

    def test_a_conversion_to_the_nearest_is_found(self):
        """Of the real amounts there is one that it makes zero."""
        answer = compare(theory.conversions(up=lambda amount: round(Fraction(amount) * 10**9)))
        assert answer.status == REFUTED

    def test_a_conversion_by_floating_point_is_found(self):
        """The ceiling of a float product is not the ceiling of the product."""
        answer = compare(theory.conversions(up=lambda amount: math.ceil(float(amount) * 1e9)))
        assert answer.status == REFUTED


def test_each_claim_says_whose_it_is():
    """Both ways of counting money are judged under G1 and under G6."""
    assert {(claim.whose, claim.guarantee) for claim in theory.claims()} == {
        (whose, guarantee) for whose in (OURS, PUBLISHED) for guarantee in ("G1", "G6")
    }
