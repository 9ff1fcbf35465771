"""Dollars become nano-dollars: a cost is rounded up, a ceiling down, and what is no amount is refused (G1, G6).

Two things at the door make CrossHair pick one value where it could reason about all: a number is copied by its base
type's own method, and a refusal spells the value. Where a contract is about the arithmetic behind them, the real code
is run by `_behind_the_door` without the two. The contracts about floats, decimals and text use the door as it is.
"""

from __future__ import annotations

import math
from decimal import Decimal  # noqa: TC003 - CrossHair reads annotations as it runs
from fractions import Fraction
from types import FunctionType
from typing import TYPE_CHECKING, Any

from failstop.runtime import money
from failstop.runtime.stops import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST = 10**400
"""The first number of dollars that nobody has: no cost can be so large."""


def a_cost_rounds_up_by_less_than_a_nano_dollar(numerator: int, denominator: int) -> bool:
    """For any ratio of dollars; a negative one is refused, and one that is too large to count.

    pre: denominator > 0
    post: _
    """
    nano = _behind_the_door("_ceiling", (numerator, denominator))
    if nano is None:
        return numerator < 0 or numerator > (_MOST - 1) * denominator
    return numerator >= 0 and 0 <= nano * denominator - numerator * money.NANO_PER_USD < denominator


def a_ceiling_rounds_down_by_less_than_a_nano_dollar(numerator: int, denominator: int) -> bool:
    """For any ratio of dollars; a negative one is refused, and one above the largest ceiling.

    pre: denominator > 0
    post: _
    """
    nano = _behind_the_door("nano_down", (numerator, denominator))
    if nano is None:
        return numerator < 0 or numerator * money.NANO_PER_USD > money.MAX_CEILING * denominator
    return numerator >= 0 and 0 <= numerator * money.NANO_PER_USD - nano * denominator < denominator


def a_ceiling_is_never_above_the_largest(numerator: int, denominator: int) -> bool:
    """So that every sum of a chain stays a number that the cores were read for.

    pre: denominator > 0
    post: _
    """
    nano = _behind_the_door("nano_down", (numerator, denominator))
    return nano is None or 0 <= nano <= money.MAX_CEILING


def whole_dollars_are_exact(dollars: int) -> bool:
    """As a cost; a negative amount and one too large to count are refused.

    post: _
    """
    nano = _behind_the_door("nano_up", dollars)
    return nano == (dollars * money.NANO_PER_USD if 0 <= dollars < _MOST else None)


def money_is_taken_as_it_is(nano: int) -> bool:
    """Unless it is negative, above what a ceiling can be, or too large to count.

    post: _
    """
    given = money.Money(nano)
    up, down = _behind_the_door("nano_up", given), _behind_the_door("nano_down", given)
    countable = 0 <= nano < _MOST * money.NANO_PER_USD
    return up == (nano if countable else None) and down == (nano if 0 <= nano <= money.MAX_CEILING else None)


def money_adds_and_subtracts_exactly(one: int, other: int) -> bool:
    """Below zero as well, and a subtraction undoes an addition.

    post: _
    """
    total = money.Money(one) + money.Money(other)
    return total.nano == one + other and total - money.Money(other) == money.Money(one)


def money_is_ordered_as_its_nano_dollars(one: int, other: int) -> bool:
    """Equal, below and above.

    post: _
    """
    left, right = money.Money(one), money.Money(other)
    return (left < right, left == right, left > right) == (one < other, one == other, one > other)


def no_float_is_charged_below_its_value(amount: float) -> bool:
    """Nor given as a ceiling above it; NaN, infinity and what is negative are refused.

    post: _
    """
    up, down = _read(money.nano_up, amount), _read(money.nano_down, amount)
    if not math.isfinite(amount) or amount < 0:
        return up is None and down is None
    exact = Fraction(amount) * money.NANO_PER_USD
    return up is not None and exact <= up < exact + 1 and (down is None or exact - 1 < down <= exact)


def no_decimal_is_charged_below_its_value(amount: Decimal) -> bool:
    """Nor given as a ceiling above it, whatever the precision of the context is.

    post: _
    """
    up, down = _read(money.nano_up, amount), _read(money.nano_down, amount)
    if not amount.is_finite() or amount < 0:
        return up is None and down is None
    if amount > money.MAX_CEILING:
        return down is None
    exact = Fraction(amount) * money.NANO_PER_USD
    return up is not None and exact <= up < exact + 1 and (down is None or exact - 1 < down <= exact)


def text_is_an_amount_or_refused(text: str) -> bool:
    """Nothing else comes of it, and no text is a negative amount.

    post: _
    """
    up, down = _read(money.nano_up, text), _read(money.nano_down, text)
    return (up is None or up >= 0) and (down is None or (up is not None and 0 <= down <= up))


class _Refused(Exception):  # noqa: N818 - in the place of ConfigurationError, and spells nothing
    pass


def _read(door: Callable[..., int], amount: object) -> int | None:
    try:
        return door(amount)
    except (ConfigurationError, _Refused):
        return None


def _behind_the_door(function: str, amount: object) -> int | None:
    """Run the module's own code on a number, `Money` or a ratio as a pair; what is replaced stands above."""
    names: dict[str, Any] = {**vars(money), "plain": _same, "ConfigurationError": _Refused}
    if isinstance(amount, tuple):
        names |= {"is_finite": _same, "ratio": _same}
    for name in ("nano_up", "nano_down", "_ceiling", "_ratio", "_countable"):
        real = vars(money)[name]
        names[name] = FunctionType(real.__code__, names, name, real.__defaults__)
    return _read(lambda value: names[function](value, "amount"), amount)


def _same(value: object) -> object:
    return value
