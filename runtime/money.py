"""Money as an exact count of nano-dollars (1 USD = 10**9), converted once, at the door.

Costs and reservations are rounded up and ceilings down, so a rounding error can only make a limit tighter (G1, G6).
A float is taken at its exact binary value: ``0.1`` is a little more than a tenth and costs 100000001 nano-dollars.
Write prices as text or ``Decimal`` ("0.10") to say a tenth.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import TypeAlias

from failstop.runtime.exact import is_finite, plain, ratio, spelled
from failstop.runtime.stops import ConfigurationError

NANO_PER_USD = 10**9
MAX_CEILING = 2**63 - 1
"""The largest ceiling, in nano-dollars, nanoseconds or counts; about 9.2 billion dollars or 292 years."""

_MAX_TEXT = 64
_MAX_EXPONENT = 400
# Every float is below it, so whatever a call reports is charged in full; and every sum can still be written down.
_MAX_USD = 10**_MAX_EXPONENT
_MAX_NANO = _MAX_USD * NANO_PER_USD


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
        return f"{'-' if self.nano < 0 else ''}${spelled(abs(self.nano), 2)}"


Amount: TypeAlias = Money | Decimal | str | int | float
"""What is accepted as money: dollars as ``Decimal``, text, int or float, or ``Money`` itself."""


def nano_up(value: Amount, field: str = "cost") -> int:
    """Nano-dollars of a cost or reservation, never below its true value; raises ConfigurationError naming `field`."""
    if type(value) is Money:
        return _countable(value.nano, value, field)
    if type(value) is int and 0 <= value < _MAX_USD:
        return value * NANO_PER_USD
    if type(value) is float or type(value) is str:
        return _cached_up(value, field)
    return _ceiling(value, field)


def nano_down(value: Amount, field: str = "ceiling") -> int:
    """Nano-dollars of a ceiling, never above its true value; raises ConfigurationError naming `field`."""
    if type(value) is Money:
        nano = _countable(value.nano, value, field)
    else:
        numerator, denominator = _ratio(value, field)
        nano = numerator * NANO_PER_USD // denominator
    if nano > MAX_CEILING:
        raise ConfigurationError(field, value, f"at most {Money(MAX_CEILING)}; leave it out (None) for no ceiling")
    return nano


def _ceiling(value: object, field: str) -> int:
    numerator, denominator = _ratio(value, field)
    return _countable(-(-numerator * NANO_PER_USD // denominator), value, field)


# Prices repeat: the same few texts and floats come with every call.
_cached_up = lru_cache(maxsize=1024, typed=True)(_ceiling)


def _ratio(value: object, field: str) -> tuple[int, int]:
    number = plain(value)
    if number is None:
        raise ConfigurationError(field, value, "an amount in dollars: Decimal, text such as '0.25', int or float")
    if isinstance(number, str):
        number = _decimal(number, field)
    if not is_finite(number):
        raise ConfigurationError(field, value, "a finite amount in dollars")
    numerator, denominator = ratio(number)
    if numerator < 0:
        raise ConfigurationError(field, value, "zero or more")
    return numerator, denominator


def _decimal(text: str, field: str) -> Decimal:
    if len(text) > _MAX_TEXT:
        raise ConfigurationError(field, text[:_MAX_TEXT] + "...", f"at most {_MAX_TEXT} characters")
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ConfigurationError(field, text, "a number of dollars such as '0.25'") from None


def _countable(nano: int, given: object, field: str) -> int:
    if nano < 0:
        raise ConfigurationError(field, given, "zero or more")
    if nano >= _MAX_NANO:
        raise ConfigurationError(field, given, f"below 1e{_MAX_EXPONENT} dollars")
    return nano
