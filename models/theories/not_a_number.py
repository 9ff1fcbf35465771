"""What a float ledger does once a cost is no number, and which checks keep such costs out (G6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import z3

from failstop.models.claim import PUBLISHED, Answer, Claim, all_of, prove
from failstop.models.theories.floats import (
    COST,
    FIRST,
    LIMIT,
    SECOND,
    SPENT,
    THIRD,
    after,
    below_zero,
    is_amount,
    one_of,
    raises,
    refused,
    to_float,
    trace,
    value,
)

if TYPE_CHECKING:
    from collections.abc import Callable

NAME = "not a number"


def ceiling_trips() -> Answer:
    """Ask whether a cost above the whole ceiling is refused, after a cost that passed the check `cost < 0`."""
    spent = after(value(0.0), FIRST, LIMIT)
    later = after(spent, SECOND, LIMIT)
    trips = z3.And(refused(spent, SECOND, LIMIT), refused(later, THIRD, LIMIT))
    dear = (one_of(SECOND, [5.0]), one_of(THIRD, [5.0]), one_of(LIMIT, [1.0]))
    return prove(trips, z3.Not(below_zero(FIRST)), *dear, tell=_nan_trace)


def _nan_trace(model: z3.ModelRef) -> str:
    return trace(LIMIT, FIRST, SECOND, THIRD, model=model)


def nan_stays() -> Answer:
    """Ask whether any cost and any limit end the state in which nothing is refused."""
    stays = z3.And(z3.Not(refused(SPENT, COST, LIMIT)), z3.fpIsNaN(after(SPENT, COST, LIMIT)))
    first = z3.Implies(z3.fpIsNaN(COST), z3.fpIsNaN(after(SPENT, COST, LIMIT)))
    return all_of([prove(first), prove(stays, z3.fpIsNaN(SPENT))])


def sign_check_is_enough(check: Callable[[z3.FPRef], z3.BoolRef] = below_zero) -> Answer:
    """Ask whether what passes the check is a number at all."""
    told = "{0!r} < 0 is False, and {0!r} > ceiling is False for every ceiling"
    return prove(
        z3.Not(z3.fpIsNaN(COST)), z3.Not(check(COST)), tell=lambda model: told.format(to_float(model.eval(COST)))
    )


def full_check(check: Callable[[z3.FPRef], z3.BoolRef] = raises) -> Answer:
    """Ask whether what passes the published check is an amount, and every amount passes."""
    return prove(
        z3.Not(check(COST)) == is_amount(COST), tell=lambda model: f"cost {to_float(model.eval(COST))!r} is misjudged"
    )


def accumulator_keeps_sane(check: Callable[[z3.FPRef], z3.BoolRef] = raises) -> Answer:
    """Ask whether checked costs keep the accumulator an amount within the ceiling: from zero, and from any such."""
    checked = (z3.Not(check(COST)), is_amount(LIMIT))

    def sane(spent: z3.FPRef) -> z3.BoolRef:
        return z3.And(is_amount(spent), z3.fpLEQ(spent, LIMIT))

    first = prove(sane(value(0.0)), *checked)
    step = prove(sane(after(SPENT, COST, LIMIT)), *checked, sane(SPENT), tell=_told_spent)
    return all_of([first, step])


def _told_spent(model: z3.ModelRef) -> str:
    spent, cost, limit = (to_float(model.eval(each, model_completion=True)) for each in (SPENT, COST, LIMIT))
    return f"spent {spent!r}, cost {cost!r}, ceiling {limit!r}: the next accumulator is no amount within it"


def claims() -> list[Claim]:
    """Give what is true, and what is not, of floats that are no numbers."""
    return [
        _published("a float ceiling trips once costs that are not below zero have passed it", ceiling_trips),
        _published("once the accumulator is NaN no cost is ever refused", nan_stays, "lemma"),
        _published("what passes the check cost < 0 is a number", sign_check_is_enough),
        _published("what passes isnan, isinf and < 0 is finite and zero or more, and only that", full_check),
        _published("costs so checked keep the accumulator finite and within the ceiling", accumulator_keeps_sane),
    ]


def _published(sentence: str, ask: Callable[[], Answer], kind: str = "float") -> Claim:
    return Claim("G6", PUBLISHED, NAME, kind, sentence, ask)
