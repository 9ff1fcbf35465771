"""The ceilings of one chain, validated when they are made (G6)."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

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
    from the chain's start to the last admission (G5). max_repeats: dispatches of one and the same action in a row.
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
            _check_count(field, getattr(self, field))
        if self.max_seconds is not None:
            seconds_to_ns(self.max_seconds, "max_seconds")
        if self.max_repeats is not None and self.max_steps is not None and self.max_repeats > self.max_steps:
            expected = f"at most max_steps ({self.max_steps}); above it the step ceiling always comes first"
            raise ConfigurationError("max_repeats", self.max_repeats, expected)

    @classmethod
    def from_mapping(cls, given: Mapping[str, object]) -> Limits:
        """Make limits from parsed configuration; an unknown name is refused, never ignored."""
        known = [field.name for field in dataclasses.fields(cls)]
        for name, value in given.items():
            if name not in known:
                raise ConfigurationError(str(name), value, f"one of the limits {', '.join(known)}")
        return cls(**given)  # type: ignore[arg-type]  # the constructor checks each value

    def to_mapping(self) -> dict[str, object]:
        """Give the limits as JSON can say them; from_mapping reads them back equal."""
        return {
            "max_cost_usd": None if self.max_cost_nano == UNLIMITED else str(Decimal(self.max_cost_nano).scaleb(-9)),
            "max_steps": self.max_steps,
            "max_tool_calls": self.max_tool_calls,
            "max_retries": self.max_retries,
            "max_seconds": None if self.max_seconds is None else float(self.max_seconds),
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
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ConfigurationError(field, value, "a number of seconds: int, float or Decimal")
    if not _is_finite(value) or value < 0:
        raise ConfigurationError(field, value, "a finite number of seconds, zero or more")
    if value > MAX_CEILING // 10**9:
        raise ConfigurationError(field, value, f"at most {MAX_CEILING // 10**9} seconds; None for no ceiling")
    if 0 < value < 1e-12:  # noqa: PLR2004 - far below a nanosecond; the exact ratio of Decimal("1e-999999") is huge
        return 0
    numerator, denominator = value.as_integer_ratio()
    return numerator * 10**9 // denominator


def _is_finite(value: float | Decimal) -> bool:
    # math.isfinite overflows on a huge int.
    if isinstance(value, Decimal):
        return value.is_finite()
    return isinstance(value, int) or math.isfinite(value)


def _check_count(field: str, value: object) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigurationError(field, value, "a whole number (int), or None for no ceiling")
    if not 0 <= value <= MAX_CEILING:
        raise ConfigurationError(field, value, f"0 to {MAX_CEILING}, or None for no ceiling")
