"""Numbers at the door: read as their base types read them, compared and spelled as integers.

A subclass may answer anything when it is compared or converted, so it is copied before it is looked at.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TypeAlias, cast

Number: TypeAlias = int | float | Decimal

_MOST_DIGITS = 400
_LEAST_DIGITS = 40
_BILLION = 10**9


def plain(value: object) -> Number | str | None:
    """Copy a number or a text as its base type reads it; None for a bool or anything else."""
    kind = type(value)
    if kind is bool:
        return None
    if issubclass(kind, int):
        return int.__index__(cast("int", value))
    if issubclass(kind, float):
        return float.__float__(cast("float", value))
    if issubclass(kind, Decimal):
        return Decimal(cast("Decimal", value))
    if issubclass(kind, str):
        return str.__str__(cast("str", value))
    return None


def is_finite(number: Number) -> bool:
    """Say whether a number is neither infinite nor no number at all."""
    if isinstance(number, Decimal):
        return number.is_finite()
    # math.isfinite overflows on a huge int.
    return isinstance(number, int) or math.isfinite(number)


def ratio(number: Number) -> tuple[int, int]:
    """Give a finite number as numerator and denominator: exactly, unless it is far above or below all that is counted.

    The exact ratio of Decimal("1e999999999") would not fit into memory.
    """
    if isinstance(number, Decimal) and number:
        sign = -1 if number < 0 else 1
        if number.adjusted() > _MOST_DIGITS:
            return sign * 10**_MOST_DIGITS, 1
        if number.adjusted() < -_LEAST_DIGITS:
            return sign, 10**_LEAST_DIGITS
    return number.as_integer_ratio()


def spelled(billionths: int, places: int) -> str:
    """Spell a count of billionths as a decimal number with no digit lost and at least so many decimal places."""
    whole, rest = divmod(abs(billionths), _BILLION)
    digits = f"{rest:09d}"
    kept = digits[:places] + digits[places:].rstrip("0")
    return f"{'-' if billionths < 0 else ''}{whole}{'.' if kept else ''}{kept}"
