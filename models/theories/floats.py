"""What floating-point dollars do to a ceiling, and what integer nano-dollars do not (G1, G6).

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

from failstop.models.amplification import compare
from failstop.models.claim import OURS, PUBLISHED, Answer, Claim, all_of, find, prove
from failstop.models.sums import Induction
from failstop.runtime.money import NANO_PER_USD, nano_down, nano_up

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from failstop.models.amplification import Execution

DOUBLE = z3.Float64()
NEAREST, UP, DOWN = z3.RNE(), z3.RTP(), z3.RTN()

SPENT, COST, NEXT, LIMIT = z3.FPs("spent cost next limit", DOUBLE)
FIRST, SECOND, THIRD = z3.FPs("first second third", DOUBLE)

TENTHS = tuple(n / 10 for n in range(1, 10))
EPSILON = 1e-9
"""The published guard."""
BELOW_USD, NEIGHBOURS, HALF = 128.0, 2.0**-46, 2.0**-47
"""Sums below 128 dollars: neighbouring floats are at most 2^-46 apart, so a sum rounds by at most 2^-47."""


def _value(number: float) -> z3.FPNumRef:
    return z3.FPVal(number, DOUBLE)


def one_of(variable: z3.FPRef, values: Iterable[float]) -> z3.BoolRef:
    """Keep a trace readable: only these values."""
    return z3.Or([variable == _value(value) for value in values])


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
    return z3.fpLT(number, _value(0.0))


def raises(number: z3.FPRef) -> z3.BoolRef:
    """Check in full as published: isnan, isinf, < 0."""
    return z3.Or(z3.fpIsNaN(number), z3.fpIsInf(number), below_zero(number))


def is_amount(number: z3.FPRef) -> z3.BoolRef:
    """Say what an amount is: finite, and zero or more."""
    finite = z3.Or(z3.fpIsNormal(number), z3.fpIsSubnormal(number), z3.fpIsZero(number))
    return z3.And(finite, z3.fpGEQ(number, _value(0.0)))


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


def _trace(limit: z3.FPRef, *costs: z3.FPRef, model: z3.ModelRef, guard: float = 0.0) -> str:
    values = [to_float(model.eval(each, model_completion=True)) for each in (limit, *costs)]
    return story(values[0], values[1:], guard)


# G6: what is no number.


def ceiling_trips() -> Answer:
    """Ask whether a cost above the whole ceiling is refused, after a cost that passed the check `cost < 0`."""
    spent = after(_value(0.0), FIRST, LIMIT)
    later = after(spent, SECOND, LIMIT)
    trips = z3.And(refused(spent, SECOND, LIMIT), refused(later, THIRD, LIMIT))
    dear = (one_of(SECOND, [5.0]), one_of(THIRD, [5.0]), one_of(LIMIT, [1.0]))
    return prove(trips, z3.Not(below_zero(FIRST)), *dear, tell=_nan_trace)


def _nan_trace(model: z3.ModelRef) -> str:
    return _trace(LIMIT, FIRST, SECOND, THIRD, model=model)


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

    first = prove(sane(_value(0.0)), *checked)
    step = prove(sane(after(SPENT, COST, LIMIT)), *checked, sane(SPENT), tell=_told_spent)
    return all_of([first, step])


def _told_spent(model: z3.ModelRef) -> str:
    spent, cost, limit = (to_float(model.eval(each, model_completion=True)) for each in (SPENT, COST, LIMIT))
    return f"spent {spent!r}, cost {cost!r}, ceiling {limit!r}: the next accumulator is no amount within it"


# G1: what is rounded.


def true_total_fits(over: Callable[..., z3.BoolRef] = passes) -> Answer:
    """Ask whether two accepted costs can truly be over the ceiling; and replay ten tenths that fit into a dollar."""
    given = (one_of(FIRST, TENTHS), one_of(SECOND, TENTHS), one_of(LIMIT, TENTHS))
    taken = z3.And(z3.Not(refused(_value(0.0), FIRST, LIMIT)), z3.Not(refused(FIRST, SECOND, LIMIT)))
    fits = z3.Implies(taken, z3.Not(over(FIRST, SECOND, LIMIT)))
    two = prove(fits, *given, tell=_two_costs)
    return two._replace(told=f"{two.told}\nand ten costs of a tenth:\n{story(1.0, [0.1] * 10)}" if two.told else "")


def _two_costs(model: z3.ModelRef) -> str:
    return _trace(LIMIT, FIRST, SECOND, model=model)


def ten_tenths() -> Answer:
    """Ask the theory for what Python's floats say of ten tenths: all accepted, one ulp under the dollar."""
    spent = _value(0.0)
    for _ in range(10):
        spent = after(spent, _value(0.1), _value(1.0))
    return prove(spent == _value(math.nextafter(1.0, 0.0)))


def order_is_free() -> Answer:
    """Ask whether three costs that fit one way also fit the other way round."""
    given = [one_of(LIMIT, [0.6]), *(one_of(each, TENTHS[:3]) for each in (FIRST, SECOND, THIRD))]
    forth, back = plus(plus(FIRST, SECOND), THIRD), plus(plus(THIRD, SECOND), FIRST)
    same = z3.fpGT(forth, LIMIT) == z3.fpGT(back, LIMIT)

    def tell(model: z3.ModelRef) -> str:
        forth_told = _trace(LIMIT, FIRST, SECOND, THIRD, model=model)
        return f"{forth_told}\nthe other way round: {_trace(LIMIT, THIRD, SECOND, FIRST, model=model)}"

    return prove(same, *given, tell=tell)


ERROR_MOST = z3.Real("half")
drift, error = (z3.Function(name, z3.IntSort(), z3.RealSort()) for name in ("drift", "error"))


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
    apart = z3.fpLEQ(z3.fpSub(UP, high, low), _value(neighbours))
    below = z3.fpLEQ(high, _value(BELOW_USD))
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


# G1: what an epsilon permits.


def guard_keeps_the_ceiling() -> Answer:
    """Ask whether a chain that has spent its ceiling refuses every cost of 10^-6 to 10^-9 under the guard."""
    guarded = z3.fpAdd(NEAREST, LIMIT, _value(EPSILON))
    spent = z3.And(one_of(LIMIT, [1.0]), one_of(FIRST, [1.0]), one_of(SECOND, [1e-6, 1e-7, 1e-8, 1e-9]))
    truly_over = z3.fpGT(z3.fpAdd(DOWN, FIRST, SECOND), LIMIT)
    answer = prove(z3.Implies(truly_over, refused(FIRST, SECOND, guarded)), spent, tell=_guarded_trace)
    more = f"in costs of 1e-10, {calls_above(1.0, 1e-10)} calls more are accepted than fit"
    return answer._replace(told=f"{answer.told}\n{more}" if answer.told else "")


def _guarded_trace(model: z3.ModelRef) -> str:
    return _trace(LIMIT, FIRST, SECOND, model=model, guard=EPSILON)


def calls_above(limit: float, cost: float, guard: float = EPSILON) -> int:
    """Count the calls that are accepted when the ceiling is spent already."""
    spent, calls = limit, 0
    while not spent + cost > limit + guard:
        spent, calls = spent + cost, calls + 1
    return calls


CEILING, GUARD = z3.Reals("C epsilon")
total, paid, chain, all_chains = (
    z3.Function(name, z3.IntSort(), z3.RealSort()) for name in ("total", "paid", "chain", "all_chains")
)


def _told_guard(count: int, model: z3.ModelRef) -> str:
    told = [f"C = {model.eval(CEILING, model_completion=True)}, epsilon = {model.eval(GUARD, model_completion=True)}"]
    for name, each in (("costs", paid), ("chains", chain)):
        told.append(f"{name} {[str(model.eval(each(n), model_completion=True)) for n in range(count)]}")
    return "; ".join(told)


ONE_CHAIN = Induction(
    holds=lambda n: total(n) <= CEILING + GUARD,
    start=(total(0) == 0,),
    unfold=lambda n: [
        total(n + 1) == z3.If(total(n) + paid(n) > CEILING + GUARD, total(n), total(n) + paid(n)),
    ],
    given=lambda n: [paid(n) >= 0],
    fixed=(CEILING >= 0, GUARD > 0),
    show=_told_guard,
)
MANY_CHAINS = Induction(
    holds=lambda n: all_chains(n) <= z3.ToReal(n) * (CEILING + GUARD),
    start=(all_chains(0) == 0,),
    unfold=lambda n: [all_chains(n + 1) == all_chains(n) + chain(n)],
    given=lambda n: [chain(n) <= CEILING + GUARD],
    fixed=(CEILING >= 0, GUARD > 0),
    show=_told_guard,
)
"""n chains pass their ceilings by at most n epsilons together."""
MANY_REACHED = Induction(
    holds=lambda n: all_chains(n) == z3.ToReal(n) * CEILING + z3.ToReal(n) * GUARD,
    start=MANY_CHAINS.start,
    unfold=MANY_CHAINS.unfold,
    given=lambda n: [chain(n) == CEILING + GUARD],
    fixed=MANY_CHAINS.fixed,
    show=_told_guard,
)


def guard_is_bounded() -> Answer:
    """Ask for the bound on one chain and on n, and whether both are met."""
    met = find(*ONE_CHAIN.fixed, *ONE_CHAIN.start, *ONE_CHAIN.unfold(z3.IntVal(0)), total(1) == CEILING + GUARD)
    return all_of([ONE_CHAIN.ask(), met._replace(told=""), MANY_CHAINS.ask(), MANY_REACHED.ask()])


# Ours: whole nano-dollars.

CEILING_NANO = z3.Int("ceiling_nano")
cost_nano, ledger = (z3.Function(name, z3.IntSort(), z3.IntSort()) for name in ("cost_nano", "ledger"))
true_total = z3.Function("true_total", z3.IntSort(), z3.RealSort())


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


# Ours: the conversion at the door, of n / d dollars. Rounded up it is -(-n * 10^9 // d), rounded down n * 10^9 // d,
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
true_cost_of, true_sum = (z3.Function(name, z3.IntSort(), z3.RealSort()) for name in ("true_cost", "true_sum"))
charged = z3.Function("charged", z3.IntSort(), z3.IntSort())


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
    """Give what is true of floating-point dollars as published, and of whole nano-dollars."""
    return [*_of_no_numbers(), *_of_rounding(), *_of_whole_numbers()]


def _of_no_numbers() -> Iterator[Claim]:
    yield _published("G6", "a float ceiling trips once costs that are not below zero have passed it", ceiling_trips)
    yield _published("G6", "once the accumulator is NaN no cost is ever refused", nan_stays, "lemma")
    yield _published("G6", "what passes the check cost < 0 is a number", sign_check_is_enough)
    yield _published("G6", "what passes isnan, isinf and < 0 is finite and zero or more, and only that", full_check)
    yield _published(
        "G6", "costs so checked keep the accumulator finite and within the ceiling", accumulator_keeps_sane
    )


def _of_rounding() -> Iterator[Claim]:
    yield _published("G1", "the true total of the accepted costs is at most the ceiling", true_total_fits)
    yield _published("G1", "ten tenths add up to less than one dollar, and are accepted under it", ten_tenths, "trace")
    yield _published("G1", "whether costs fit does not depend on their order", order_is_free)
    yield _published("G1", "n additions below 128 dollars drift by at most n * 2^-47 dollars", drift_is_bounded)
    yield _published("G1", "with a guard of 1e-9 the total stays at most the ceiling", guard_keeps_the_ceiling)
    yield _published("G1", "with a guard n chains spend at most n * guard more than their ceilings", guard_is_bounded)


def _of_whole_numbers() -> Iterator[Claim]:
    yield _ours("G1", "the ledger is the true total, and refuses exactly what is truly over", EXACT.ask)
    yield _ours("G6", "every whole number is either over a ceiling or within it, never neither", _whole_compare)
    yield _ours("G1", "the order of costs changes neither their total nor whether they fit", order_of_whole_numbers)
    yield _ours("G1", "a cost is rounded up, by less than a nano-dollar", rounds_up)
    yield _ours("G1", "a ceiling is rounded down, by less than a nano-dollar", rounds_down)
    yield _ours("G1", "no cost above zero becomes zero", positive_stays_positive)
    yield _ours("G1", "costs that fit as they are held fit truly", ROUNDED.ask)
    yield _ours("G1", "the runtime converts real amounts so", lambda: compare(conversions()), "count")


def _published(guarantee: str, sentence: str, ask: Callable[[], Answer], kind: str = "float") -> Claim:
    return Claim(guarantee, PUBLISHED, "floats", kind, sentence, ask)


def _ours(guarantee: str, sentence: str, ask: Callable[[], Answer], kind: str = "integer") -> Claim:
    return Claim(guarantee, OURS, "floats", kind, sentence, ask)
