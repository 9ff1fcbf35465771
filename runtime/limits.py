"""The ceilings of one chain, validated when they are made (G6)."""

from __future__ import annotations

import contextlib
import dataclasses
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from failstop.runtime.exact import Number, is_finite, plain, ratio, spelled
from failstop.runtime.money import MAX_CEILING, Amount, Money, nano_down
from failstop.runtime.stops import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

UNLIMITED = -1
"""How the pure cores say that a ceiling does not exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The ceilings of a chain; None means no ceiling and 0 means none allowed, at every field.

    max_cost_usd: dollars, rounded down to a nano-dollar (G1). max_steps: dispatches, failed ones and retries included
    (G2). max_tool_calls: dispatches of kind "tool". max_retries: retry dispatches in the whole chain (G3). max_seconds:
    from the chain's start to the last admission (G5). max_repeats: how often one and the same action may come in a row;
    it counts the actions of a planner (AgentLoop, ExecutionContext.turn), not bare calls.
    Raises ConfigurationError that names the field and the value (G6).
    """

    max_cost_usd: Amount | None = None
    max_steps: int | None = None
    max_tool_calls: int | None = None
    max_retries: int | None = None
    max_seconds: float | Decimal | None = None
    max_repeats: int | None = None

    def __post_init__(self) -> None:
        if self.max_cost_usd is not None:
            object.__setattr__(self, "max_cost_usd", Money(nano_down(self.max_cost_usd, "max_cost_usd")))
        for field in ("max_steps", "max_tool_calls", "max_retries", "max_repeats"):
            object.__setattr__(self, field, _checked_count(field, getattr(self, field)))
        if self.max_seconds is not None:
            object.__setattr__(self, "max_seconds", _checked_seconds(self.max_seconds, "max_seconds"))
        if self.max_repeats is not None and self.max_steps is not None and self.max_repeats > self.max_steps:
            expected = f"at most max_steps ({self.max_steps}); above it the step ceiling always comes first"
            raise ConfigurationError("max_repeats", self.max_repeats, expected)

    @classmethod
    def from_mapping(cls, given: Mapping[str, object]) -> Limits:
        """Make limits from parsed configuration; an unknown name is refused, never ignored.

        max_seconds may also be the text of a Decimal, as to_mapping gives one.
        """
        known = [field.name for field in dataclasses.fields(cls)]
        for name, value in given.items():
            if name not in known:
                raise ConfigurationError(str(name), value, f"one of the limits {', '.join(known)}")
        seconds = given.get("max_seconds")
        if isinstance(seconds, str):
            # What is no number stays a text, and is refused as one.
            with contextlib.suppress(InvalidOperation):
                given = {**given, "max_seconds": Decimal(seconds)}
        return cls(**given)  # type: ignore[arg-type]  # the constructor checks each value

    def to_mapping(self) -> dict[str, object]:
        """Give the limits as JSON can say them; from_mapping reads them back equal."""
        return {
            "max_cost_usd": None if self.max_cost_nano == UNLIMITED else spelled(self.max_cost_nano, 9),
            "max_steps": self.max_steps,
            "max_tool_calls": self.max_tool_calls,
            "max_retries": self.max_retries,
            "max_seconds": str(self.max_seconds) if isinstance(self.max_seconds, Decimal) else self.max_seconds,
            "max_repeats": self.max_repeats,
        }

    @property
    def max_cost_nano(self) -> int:
        """The cost ceiling in nano-dollars, or UNLIMITED."""
        return self.max_cost_usd.nano if isinstance(self.max_cost_usd, Money) else UNLIMITED

    @property
    def max_ns(self) -> int:
        """The time limit in nanoseconds, rounded down, or UNLIMITED."""
        return UNLIMITED if self.max_seconds is None else seconds_to_ns(self.max_seconds, "max_seconds")


ExecutionConfig = Limits
"""The paper's name for the limits of a chain."""


def count_or_unlimited(value: int | None) -> int:
    """Give a count ceiling as the pure cores read it."""
    return UNLIMITED if value is None else value


def seconds_to_ns(value: object, field: str) -> int:
    """Whole nanoseconds in a finite, non-negative number of seconds, rounded down; raises ConfigurationError."""
    numerator, denominator = ratio(_checked_seconds(value, field))
    return numerator * 10**9 // denominator


def _checked_seconds(value: object, field: str) -> Number:
    number = plain(value)
    if number is None or isinstance(number, str):
        raise ConfigurationError(field, value, "a number of seconds: int, float or Decimal")
    if not is_finite(number) or number < 0:
        raise ConfigurationError(field, value, "a finite number of seconds, zero or more")
    if number > MAX_CEILING // 10**9:
        raise ConfigurationError(field, value, f"at most {MAX_CEILING // 10**9} seconds; None for no ceiling")
    return number


def _checked_count(field: str, value: object) -> int | None:
    number = plain(value)
    if value is None:
        return None
    if not isinstance(number, int):
        raise ConfigurationError(field, value, "a whole number (int), or None for no ceiling")
    if not 0 <= number <= MAX_CEILING:
        raise ConfigurationError(field, value, f"0 to {MAX_CEILING}, or None for no ceiling")
    return number
