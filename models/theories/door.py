"""What may become a limit or an amount: the real door, tried with everything that is no number of the kind (G6).

Behind the door there are whole numbers only, about which `nano_dollars` proves that none is neither over a ceiling nor
within it. That the door lets nothing else in cannot be put to the solver, because it asks values for their types; so
every kind of value is really handed in, at every limit.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from failstop.models.claim import OURS, Claim
from failstop.models.theories.executions import compare
from failstop.runtime.limits import Limits
from failstop.runtime.money import MAX_CEILING, nano_up
from failstop.runtime.stops import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from failstop.models.theories.executions import Execution

NAME = "the door"

COUNTS = ("max_steps", "max_tool_calls", "max_retries", "max_repeats")
LIMITS = ("max_cost_usd", "max_seconds", *COUNTS)


class Pretender(float):
    """Not a number, which says of itself that it is within every bound."""

    def __lt__(self, other: object) -> bool:
        return False

    def __le__(self, other: object) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = float.__hash__


NO_AMOUNTS: tuple[Any, ...] = (
    *(math.nan, math.inf, -math.inf, Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), Pretender("nan")),
    *(-1, -1e-9, -5e-324, Decimal("-0.1"), -(10**30)),
    *(True, False, "much", "", b"1", [1], (1,), {"usd": 1}, 1j, object(), Fraction(-1, 3)),
)
"""What no limit and no amount may be made of; text is looked at below, since an amount may be text."""

NO_COUNTS: tuple[Any, ...] = (*NO_AMOUNTS, 2.5, 2.0, Decimal(2), "2", Fraction(2), MAX_CEILING + 1)
"""What nothing that counts may be made of: fractions, and whole numbers that are no int."""

AMOUNTS: tuple[Any, ...] = (None, 0, 1, 5, MAX_CEILING // 10**9)
"""What every limit may be made of."""


def refusals(make: Callable[..., Any] = Limits) -> Iterator[Execution]:
    """Hand in what may not come in; each must be refused by an error that names the limit."""
    for field in LIMITS:
        for value in NO_COUNTS if field in COUNTS else NO_AMOUNTS:
            yield f"{field} of {type(value).__name__} {value!r:.30}", outcome(make, field, value), f"refused {field}"


def admissions(make: Callable[..., Any] = Limits) -> Iterator[Execution]:
    """Hand in what may come in."""
    for field in LIMITS:
        for value in AMOUNTS:
            yield f"{field} of {value!r}", outcome(make, field, value), "made"


def costs(convert: Callable[..., Any] = nano_up) -> Iterator[Execution]:
    """Report what is no cost; each must be refused, and none may become a number of nano-dollars."""

    def report(**given: Any) -> Any:
        return convert(given["cost"], "cost")

    for value in (*NO_AMOUNTS, None):
        yield f"a cost of {type(value).__name__} {value!r:.30}", outcome(report, "cost", value), "refused cost"


def outcome(make: Callable[..., Any], field: str, value: Any) -> str:
    """Say whether it was made, or refused by an error that names the field."""
    try:
        make(**{field: value})
    except ConfigurationError as error:
        return f"refused {field}" if str(error).startswith(field) else f"refused without its name: {error}"
    return "made"


def claims() -> list[Claim]:
    """Give what was tried at the door."""

    def of(sentence: str, tried: Callable[[], Iterator[Execution]]) -> Claim:
        return Claim("G6", OURS, NAME, "count", sentence, lambda: compare(tried()))

    return [
        of("no limit is made of NaN, infinity, less than zero, a truth value, or a fraction where it counts", refusals),
        of("zero, every whole number of a limit's kind, and no limit at all can be made", admissions),
        of("no cost is made of NaN, infinity, less than zero, a truth value, or of nothing", costs),
    ]
