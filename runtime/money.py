"""Money as an exact count of nano-dollars (1 USD = 10**9), converted once, at the door.

Costs and reservations are rounded up and ceilings down, so a rounding error can only make a limit tighter (G1, G6).
A float is taken at its exact binary value: ``0.1`` is a little more than a tenth and costs 100000001 nano-dollars.
Write prices as text or ``Decimal`` ("0.10") to say a tenth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import TypeAlias

from failstop.runtime.stops import ConfigurationError

NANO_PER_USD = 10**9
MAX_CEILING = 2**63 - 1
"""The largest ceiling, in nano-dollars, nanoseconds or counts; about 9.2 billion dollars or 292 years."""

_MAX_TEXT = 64
_MAX_EXPONENT = 400
_MIN_EXPONENT = -40


@dataclass(frozen=True, slots=True, order=True)
class Money:
    """An exact amount in nano-dollars; below zero only as a difference, which no limit, reserve or cost accepts."""

    nano: int

    def __post_init__(self) -> None:
        if type(self.nano) is not int:
            raise ConfigurationError("nano", self.nano, "a whole number (int) of nano-dollars; Money.of takes dollars")

    @classmethod
    def of(cls, usd: Amount) -> Money:
        """Convert an amount in dollars, rounded up to a nano-dollar; raises ConfigurationError."""
        return cls(nano_up(usd))

    def __add__(self, other: Money) -> Money:
        return Money(self.nano + other.nano)

    def __sub__(self, other: Money) -> Money:
        return Money(self.nano - other.nano)

    def __str__(self) -> str:
        sign = "-" if self.nano < 0 else ""
        dollars, rest = divmod(abs(self.nano), NANO_PER_USD)
        return f"{sign}${dollars}.{_at_least_cents(f'{rest:09d}')}"


Amount: TypeAlias = Money | Decimal | str | int | float
"""What is accepted as money: dollars as ``Decimal``, text, int or float, or ``Money`` itself."""


def nano_up(value: Amount, field: str = "cost") -> int:
    """Nano-dollars of a cost or reservation, never below its true value; raises ConfigurationError naming `field`."""
    if type(value) is Money:
        return _not_negative(value.nano, value, field)
    if type(value) is int and value >= 0:
        return value * NANO_PER_USD
    if type(value) is float or type(value) is str:
        return _cached_up(value, field)
    return _ceiling(value, field)


def nano_down(value: Amount, field: str = "ceiling") -> int:
    """Nano-dollars of a ceiling, never above its true value; raises ConfigurationError naming `field`."""
    if type(value) is Money:
        nano = _not_negative(value.nano, value, field)
    else:
        numerator, denominator = _ratio(value, field)
        nano = numerator * NANO_PER_USD // denominator
    if nano > MAX_CEILING:
        raise ConfigurationError(field, value, f"at most {Money(MAX_CEILING)}; leave it out (None) for no ceiling")
    return nano


def _ceiling(value: object, field: str) -> int:
    numerator, denominator = _ratio(value, field)
    return -(-numerator * NANO_PER_USD // denominator)


# Prices repeat: the same few texts and floats come with every call.
_cached_up = lru_cache(maxsize=1024, typed=True)(_ceiling)


def _ratio(value: object, field: str) -> tuple[int, int]:
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise ConfigurationError(field, value, "an amount in dollars: Decimal, text such as '0.25', int or float")
    if isinstance(value, int):
        return _not_negative(value, value, field), 1
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ConfigurationError(field, value, "a finite amount in dollars")
        _not_negative(value, value, field)
        return value.as_integer_ratio()
    return _decimal_ratio(_decimal(value, field) if isinstance(value, str) else value, value, field)


def _decimal(text: str, field: str) -> Decimal:
    if len(text) > _MAX_TEXT:
        raise ConfigurationError(field, text[:_MAX_TEXT] + "...", f"at most {_MAX_TEXT} characters")
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ConfigurationError(field, text, "a number of dollars such as '0.25'") from None


def _decimal_ratio(value: Decimal, given: object, field: str) -> tuple[int, int]:
    if not value.is_finite():
        raise ConfigurationError(field, given, "a finite amount in dollars")
    if value < 0:
        raise ConfigurationError(field, given, "zero or more")
    # Exponents are bounded first: the exact ratio of Decimal("1e999999999") would not fit into memory.
    if value.adjusted() > _MAX_EXPONENT:
        raise ConfigurationError(field, given, f"below 1e{_MAX_EXPONENT} dollars")
    if value and value.adjusted() < _MIN_EXPONENT:
        return 1, 10**-_MIN_EXPONENT
    return value.as_integer_ratio()


def _not_negative(number: int | float, given: object, field: str) -> int:  # noqa: PYI041 - both occur, said plainly
    if number < 0:
        raise ConfigurationError(field, given, "zero or more")
    return number  # type: ignore[return-value]  # a float caller ignores the result


def _at_least_cents(digits: str) -> str:
    return digits[:2] + digits[2:].rstrip("0")
