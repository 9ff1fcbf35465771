"""Whole nano-dollars, as the runtime counts: exact in any order, and rounded once, at the door, to the safe side."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import z3

from failstop.models.claim import OURS, Answer, Claim, all_of, prove
from failstop.models.theories.executions import compare
from failstop.models.theories.natural import Induction, real, whole
from failstop.runtime.money import NANO_PER_USD, nano_down, nano_up

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from failstop.models.theories.executions import Execution

NAME = "nano-dollars"

CEILING_NANO = z3.Int("ceiling_nano")
cost_nano, ledger, true_total = whole("cost_nano"), whole("ledger"), real("true_total")


def _over(spent: z3.ArithRef, cost: z3.ArithRef) -> z3.BoolRef:
    return spent + cost > CEILING_NANO


def _told_ledger(count: int, model: z3.ModelRef) -> str:
    costs = [str(model.eval(cost_nano(n), model_completion=True)) for n in range(count + 1)]
    return f"ceiling {model.eval(CEILING_NANO, model_completion=True)}; costs {', '.join(costs)}"


def _spend_exactly(n: z3.ArithRef) -> list[z3.BoolRef]:
    true_cost = z3.ToReal(cost_nano(n))
    truly_over = true_total(n) + true_cost > CEILING_NANO
    return [
        ledger(n + 1) == z3.If(_over(ledger(n), cost_nano(n)), ledger(n), ledger(n) + cost_nano(n)),
        true_total(n + 1) == z3.If(truly_over, true_total(n), true_total(n) + true_cost),
    ]


EXACT = Induction(
    holds=lambda n: z3.And(
        z3.ToReal(ledger(n)) == true_total(n),
        ledger(n) <= CEILING_NANO,
        _over(ledger(n), cost_nano(n)) == (true_total(n) + z3.ToReal(cost_nano(n)) > CEILING_NANO),
    ),
    start=(ledger(0) == 0, true_total(0) == 0),
    unfold=_spend_exactly,
    fixed=(CEILING_NANO >= 0,),
    show=_told_ledger,
)
"""After any number of costs the ledger is the true total, and it refuses exactly what is truly over."""


def either_over_or_within(spent: z3.ExprRef, limit: z3.ExprRef) -> Answer:
    """Ask whether two numbers of one kind are always one of the two: over a limit or within it."""
    within, over = spent <= limit, spent > limit
    return prove(
        z3.Xor(within, over), tell=lambda model: f"spent {model[spent]}, limit {model[limit]}: neither, or both"
    )


def _whole_compare() -> Answer:
    return either_over_or_within(*z3.Ints("spent limit"))


def order_of_whole_numbers(at_least: int = 0) -> Answer:
    """Ask whether two neighbours in a row of costs change the total, or whether both fit, by changing places."""
    spent, first, second = z3.Ints("spent first second")
    forth, back = (spent + first) + second, (spent + second) + first
    fits = z3.And(spent + first <= CEILING_NANO, forth <= CEILING_NANO)
    fits_back = z3.And(spent + second <= CEILING_NANO, back <= CEILING_NANO)
    return prove(z3.And(forth == back, fits == fits_back), first >= at_least, second >= at_least)


# The conversion at the door, of n / d dollars. Rounded up it is -(-n * 10^9 // d), rounded down n * 10^9 // d,
# where q = x // d is the whole number with q * d <= x < q * d + d.

NUMERATOR, DENOMINATOR, QUOTIENT, UPWARD, DOWNWARD = z3.Ints("n d q up down")
TRUE_NANO = NUMERATOR * NANO_PER_USD
"""The true nano-dollars times d."""


def _is_floor(quotient: z3.ArithRef, number: z3.ArithRef) -> z3.BoolRef:
    return z3.And(quotient * DENOMINATOR <= number, number < quotient * DENOMINATOR + DENOMINATOR)


RATIO = (NUMERATOR >= 0, DENOMINATOR > 0)
ROUNDED_UP = (*RATIO, _is_floor(QUOTIENT, -TRUE_NANO), UPWARD == -QUOTIENT)
ROUNDED_DOWN = (*RATIO, _is_floor(DOWNWARD, TRUE_NANO))


def _told_conversion(model: z3.ModelRef) -> str:
    shown = (each for each in (NUMERATOR, DENOMINATOR, UPWARD, DOWNWARD) if model[each] is not None)
    return ", ".join(f"{each} = {model[each]}" for each in shown)


def rounds_up(given: tuple[z3.BoolRef, ...] = ROUNDED_UP) -> Answer:
    """Ask whether a cost is never too low, and too high by less than a nano-dollar."""
    nano = UPWARD * DENOMINATOR
    bounds = (nano >= TRUE_NANO, nano < TRUE_NANO + DENOMINATOR)
    return all_of([prove(bound, *given, tell=_told_conversion) for bound in bounds])


def rounds_down(given: tuple[z3.BoolRef, ...] = ROUNDED_DOWN) -> Answer:
    """Ask whether a ceiling is never too high, and too low by less than a nano-dollar."""
    nano = DOWNWARD * DENOMINATOR
    bounds = (nano <= TRUE_NANO, nano + DENOMINATOR > TRUE_NANO)
    return all_of([prove(bound, *given, tell=_told_conversion) for bound in bounds])


def positive_stays_positive(given: tuple[z3.BoolRef, ...] = ROUNDED_UP) -> Answer:
    """Ask whether a cost above zero can become zero."""
    return prove(UPWARD >= 1, NUMERATOR > 0, *given, tell=_told_conversion)


TRUE_CEILING = z3.Real("true_ceiling")
true_cost_of, true_sum, charged = real("true_cost"), real("true_sum"), whole("charged")


def _told_sums(count: int, model: z3.ModelRef) -> str:
    true_costs = [str(model.eval(true_cost_of(n), model_completion=True)) for n in range(count)]
    costs = [str(model.eval(cost_nano(n), model_completion=True)) for n in range(count)]
    ceilings = [model.eval(each, model_completion=True) for each in (TRUE_CEILING, CEILING_NANO)]
    return f"true costs {true_costs} charged as {costs}; true ceiling {ceilings[0]} held as {ceilings[1]}"


ROUNDED = Induction(
    holds=lambda n: z3.And(
        true_sum(n) <= z3.ToReal(charged(n)), z3.Implies(charged(n) <= CEILING_NANO, true_sum(n) <= TRUE_CEILING)
    ),
    start=(true_sum(0) == 0, charged(0) == 0),
    unfold=lambda n: [
        true_sum(n + 1) == true_sum(n) + true_cost_of(n),
        charged(n + 1) == charged(n) + cost_nano(n),
    ],
    given=lambda n: [true_cost_of(n) >= 0, true_cost_of(n) <= z3.ToReal(cost_nano(n))],
    fixed=(z3.ToReal(CEILING_NANO) <= TRUE_CEILING,),
    show=_told_sums,
)
"""What rounds_up and rounds_down prove of each is enough for the sum: what fits as it is held has fitted truly."""

AMOUNTS: tuple[float | str, ...] = (
    *(0, 1, 10**9, 0.1, 1e-9, 5e-324, 1e-320, 2.0**-30, math.nextafter(1.0, 0.0), math.nextafter(1.0, 2.0)),
    *("0", "0.10", "1e-9", "1e-30", "0.0000000005", "0.0000000015", "0.9999999999", "1234.0000000001"),
    *(n / 7 for n in range(100)),
    *(f"0.{n:012}" for n in range(0, 10**6, 9973)),
)


def conversions(up: Callable[[float | str], int] = nano_up) -> Iterator[Execution]:
    """Convert real amounts at the runtime's door and compare with the exact fraction, rounded up and down."""
    for amount in AMOUNTS:
        true = Fraction(amount) * NANO_PER_USD
        yield f"{amount!r} dollars, up and down", (up(amount), nano_down(amount)), (math.ceil(true), math.floor(true))


def claims() -> list[Claim]:
    """Give what is true of whole nano-dollars."""
    return [
        _ours("G1", "the ledger is the true total, and refuses exactly what is truly over", EXACT.ask),
        _ours("G6", "every whole number is either over a ceiling or within it, never neither", _whole_compare),
        _ours("G1", "the order of costs changes neither their total nor whether they fit", order_of_whole_numbers),
        _ours("G1", "a cost is rounded up, by less than a nano-dollar", rounds_up),
        _ours("G1", "a ceiling is rounded down, by less than a nano-dollar", rounds_down),
        _ours("G1", "no cost above zero becomes zero", positive_stays_positive),
        _ours("G1", "costs that fit as they are held fit truly", ROUNDED.ask),
        _ours("G1", "the runtime converts real amounts so", lambda: compare(conversions()), "count"),
    ]


def _ours(guarantee: str, sentence: str, ask: Callable[[], Answer], kind: str = "integer") -> Claim:
    return Claim(guarantee, OURS, NAME, kind, sentence, ask)
