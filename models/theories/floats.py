"""Floating-point dollars as published: how a float ledger checks a cost, adds it up and compares it with its ceiling.

Floats are read in the solver's IEEE-754 theory. The true sum of one addition is not put into numbers: it lies above a
float exactly when the sum rounded up does, and below when the sum rounded down does. Longer traces are replayed on
real floats, and their true totals are fractions.
"""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from typing import TYPE_CHECKING

import z3

if TYPE_CHECKING:
    from collections.abc import Iterable

DOUBLE = z3.Float64()
NEAREST, UP, DOWN = z3.RNE(), z3.RTP(), z3.RTN()

SPENT, COST, LIMIT = z3.FPs("spent cost limit", DOUBLE)
FIRST, SECOND, THIRD = z3.FPs("first second third", DOUBLE)


def value(number: float) -> z3.FPNumRef:
    """Give a float to the solver."""
    return z3.FPVal(number, DOUBLE)


def one_of(variable: z3.FPRef, values: Iterable[float]) -> z3.BoolRef:
    """Keep a trace readable: only these values."""
    return z3.Or([variable == value(each) for each in values])


def plus(spent: z3.FPRef, cost: z3.FPRef) -> z3.FPRef:
    """Add as Python does."""
    return z3.fpAdd(NEAREST, spent, cost)


def passes(spent: z3.FPRef, cost: z3.FPRef, limit: z3.FPRef) -> z3.BoolRef:
    """Say whether the true sum is over the limit; for one addition of two floats that are exact."""
    return z3.fpGT(z3.fpAdd(UP, spent, cost), limit)


def refused(spent: z3.FPRef, cost: z3.FPRef, limit: z3.FPRef) -> z3.BoolRef:
    """Decide as published: projected > limit."""
    return z3.fpGT(plus(spent, cost), limit)


def after(spent: z3.FPRef, cost: z3.FPRef, limit: z3.FPRef) -> z3.FPRef:
    """Give the accumulator after a cost: as before if it was refused."""
    return z3.If(refused(spent, cost, limit), spent, plus(spent, cost))


def below_zero(number: z3.FPRef) -> z3.BoolRef:
    """Check as published: number < 0."""
    return z3.fpLT(number, value(0.0))


def raises(number: z3.FPRef) -> z3.BoolRef:
    """Check in full as published: isnan, isinf, < 0."""
    return z3.Or(z3.fpIsNaN(number), z3.fpIsInf(number), below_zero(number))


def is_amount(number: z3.FPRef) -> z3.BoolRef:
    """Say what an amount is: finite, and zero or more."""
    finite = z3.Or(z3.fpIsNormal(number), z3.fpIsSubnormal(number), z3.fpIsZero(number))
    return z3.And(finite, z3.fpGEQ(number, value(0.0)))


def to_float(number: z3.FPNumRef) -> float:
    """Give the float that the solver means."""
    if number.isNaN():
        return math.nan
    bits = z3.simplify(z3.fpToIEEEBV(number)).as_long()
    return float(struct.unpack("<d", struct.pack("<Q", bits))[0])


# Replaying a trace on real floats.


def story(limit: float, costs: Iterable[float], guard: float = 0.0) -> str:
    """Spend the costs as published and tell each step, then the true total of what was accepted."""
    spent, accepted, lines = 0.0, [], [f"ceiling {limit!r}" + (f", guard {guard!r}" if guard else "")]
    for number, cost in enumerate(costs, 1):
        projected = spent + cost
        verdict = "refused"
        if not projected > limit + guard:
            spent, verdict = projected, "accepted"
            accepted.append(cost)
        lines.append(f"{number}. cost {cost!r} {verdict}, accumulator {spent!r}")
    return "\n".join([*lines, _told_total(limit, accepted)])


def excess_of(limit: float, costs: Iterable[float]) -> Fraction:
    """Give by how much the costs pass the limit, exactly."""
    return sum(map(Fraction, costs), Fraction(0)) - Fraction(limit)


def _told_total(limit: float, accepted: list[float]) -> str:
    if not all(map(math.isfinite, accepted)):
        return f"accepted without a true total; the numbers among it are {sum(filter(math.isfinite, accepted))!r}"
    excess = excess_of(limit, accepted)
    return f"true total over the ceiling by {float(excess):.3g}" if excess > 0 else "true total within the ceiling"


def trace(limit: z3.FPRef, *costs: z3.FPRef, model: z3.ModelRef, guard: float = 0.0) -> str:
    """Replay the limit and the costs that the solver has found."""
    values = [to_float(model.eval(each, model_completion=True)) for each in (limit, *costs)]
    return story(values[0], values[1:], guard)
