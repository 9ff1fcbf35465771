"""What a float ledger loses by rounding: where the true total passes the ceiling, and how far it can drift (G1)."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import z3

from failstop.models.claim import PUBLISHED, Answer, Claim, all_of, prove
from failstop.models.theories.floats import (
    COST,
    DOWN,
    FIRST,
    LIMIT,
    SECOND,
    SPENT,
    THIRD,
    UP,
    after,
    is_amount,
    one_of,
    passes,
    plus,
    refused,
    story,
    to_float,
    trace,
    value,
)
from failstop.models.theories.natural import Induction, real

if TYPE_CHECKING:
    from collections.abc import Callable

NAME = "rounding"

TENTHS = tuple(n / 10 for n in range(1, 10))
BELOW_USD, NEIGHBOURS, HALF = 128.0, 2.0**-46, 2.0**-47
"""Sums below 128 dollars: neighbouring floats are at most 2^-46 apart, so a sum rounds by at most 2^-47."""


def true_total_fits(over: Callable[..., z3.BoolRef] = passes) -> Answer:
    """Ask whether two accepted costs can truly be over the ceiling; and replay ten tenths that fit into a dollar."""
    given = (one_of(FIRST, TENTHS), one_of(SECOND, TENTHS), one_of(LIMIT, TENTHS))
    taken = z3.And(z3.Not(refused(value(0.0), FIRST, LIMIT)), z3.Not(refused(FIRST, SECOND, LIMIT)))
    fits = z3.Implies(taken, z3.Not(over(FIRST, SECOND, LIMIT)))
    two = prove(fits, *given, tell=_two_costs)
    return two._replace(told=f"{two.told}\nand ten costs of a tenth:\n{story(1.0, [0.1] * 10)}" if two.told else "")


def _two_costs(model: z3.ModelRef) -> str:
    return trace(LIMIT, FIRST, SECOND, model=model)


def ten_tenths() -> Answer:
    """Ask the theory for what Python's floats say of ten tenths: all accepted, one ulp under the dollar."""
    spent = value(0.0)
    for _ in range(10):
        spent = after(spent, value(0.1), value(1.0))
    return prove(spent == value(math.nextafter(1.0, 0.0)))


def order_is_free() -> Answer:
    """Ask whether three costs that fit one way also fit the other way round."""
    given = [one_of(LIMIT, [0.6]), *(one_of(each, TENTHS[:3]) for each in (FIRST, SECOND, THIRD))]
    forth, back = plus(plus(FIRST, SECOND), THIRD), plus(plus(THIRD, SECOND), FIRST)
    same = z3.fpGT(forth, LIMIT) == z3.fpGT(back, LIMIT)

    def tell(model: z3.ModelRef) -> str:
        forth_told = trace(LIMIT, FIRST, SECOND, THIRD, model=model)
        return f"{forth_told}\nthe other way round: {trace(LIMIT, THIRD, SECOND, FIRST, model=model)}"

    return prove(same, *given, tell=tell)


ERROR_MOST = z3.Real("half")
drift, error = real("drift"), real("error")


def _told_drift(count: int, model: z3.ModelRef) -> str:
    errors = [str(model.eval(error(n), model_completion=True)) for n in range(count)]
    return f"{count} additions that err by {errors}, each at most {model.eval(ERROR_MOST, model_completion=True)}"


DRIFT = Induction(
    holds=lambda n: z3.And(drift(n) <= z3.ToReal(n) * ERROR_MOST, -drift(n) <= z3.ToReal(n) * ERROR_MOST),
    start=(drift(0) == 0,),
    unfold=lambda n: [drift(n + 1) == drift(n) + error(n)],
    given=lambda n: [error(n) <= ERROR_MOST, -error(n) <= ERROR_MOST],
    show=_told_drift,
)
"""n additions, each off by at most so much, are off by at most n times as much."""


def one_addition(neighbours: float = NEIGHBOURS) -> Answer:
    """Ask whether a sum below 128 dollars is rounded to one of two neighbours, no further apart than 2^-46."""
    amounts = (is_amount(SPENT), is_amount(COST))
    low, high = z3.fpAdd(DOWN, SPENT, COST), z3.fpAdd(UP, SPENT, COST)
    near = z3.Or(z3.fpEQ(plus(SPENT, COST), low), z3.fpEQ(plus(SPENT, COST), high))
    apart = z3.fpLEQ(z3.fpSub(UP, high, low), value(neighbours))
    below = z3.fpLEQ(high, value(BELOW_USD))
    return all_of([prove(near, *amounts, tell=_told_sum), prove(apart, *amounts, below, tell=_told_sum)])


def _told_sum(model: z3.ModelRef) -> str:
    spent, cost = (to_float(model.eval(each, model_completion=True)) for each in (SPENT, COST))
    return f"{spent!r} + {cost!r} is rounded to {spent + cost!r}"


def nearest_halves() -> Answer:
    """Ask whether the nearer of two neighbours, the one rounding takes, is off by at most half."""
    low, true, high, rounded = z3.Reals("low true high rounded")
    gap = z3.And(rounded - true <= (high - low) / 2, true - rounded <= (high - low) / 2)
    to_low = z3.And(rounded == low, true - low <= high - true)
    to_high = z3.And(rounded == high, high - true <= true - low)
    return prove(gap, low <= true, true <= high, z3.Or(to_low, to_high))


def drift_is_bounded() -> Answer:
    """Ask for the bound on one addition and for that on n of them; and show one addition that meets it."""
    proof = all_of([one_addition(), nearest_halves(), DRIFT.ask()])
    off = Fraction(64.0) + Fraction(HALF) - Fraction(64.0 + HALF)
    told = f"10^9 additions below 128 dollars drift by at most {1e9 * HALF:.2g}; 64.0 + 2^-47 alone is off by {off}"
    return proof._replace(told=proof.told or told)


def claims() -> list[Claim]:
    """Give what is true, and what is not, of rounded totals."""
    return [
        _published("the true total of the accepted costs is at most the ceiling", true_total_fits),
        _published("ten tenths add up to less than one dollar, and are accepted under it", ten_tenths, "trace"),
        _published("whether costs fit does not depend on their order", order_is_free),
        _published("n additions below 128 dollars drift by at most n * 2^-47 dollars", drift_is_bounded),
    ]


def _published(sentence: str, ask: Callable[[], Answer], kind: str = "float") -> Claim:
    return Claim("G1", PUBLISHED, NAME, kind, sentence, ask)
