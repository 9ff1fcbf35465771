"""What a call reserves before it runs and what it is charged after: unknown is never free (G1)."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

from failstop.runtime.cores.ledger import NO_ESTIMATE
from failstop.runtime.money import Amount, Money, nano_up
from failstop.runtime.stops import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable

Cost: TypeAlias = "Amount | Callable[[Any], Any] | None"
"""Dollars known beforehand, or a function from the call's value to dollars, or None: never known."""

_AMOUNTS = (Money, Decimal, str, int, float)


def asked_for(reserve: Amount | None, cost: Cost) -> int:
    """Nano-dollars to reserve, or NO_ESTIMATE: the stated bound, at least the cost where that is known beforehand.

    Raises ConfigurationError for a bound of zero on a call whose cost is only read afterwards: it would hold nothing
    against a cost it may well have.
    """
    known = NO_ESTIMATE if cost is None or callable(cost) else nano_up(cost, "cost")
    if reserve is None:
        return known
    bound = nano_up(reserve, "reserve")
    if bound == 0 and callable(cost):
        raise ConfigurationError("reserve", reserve, "more than zero, since the cost is read only after the call")
    return max(bound, known)


def charged_for(cost: Cost, value: object, held: int) -> tuple[int, bool]:
    """Nano-dollars to charge a call that returned, and whether its cost was known; if not, all that it held."""
    if cost is None:
        return held, False
    if not callable(cost):
        return nano_up(cost), True
    try:
        reported = cost(value)
        if isinstance(reported, _AMOUNTS):
            return nano_up(reported), True
    except Exception:  # noqa: BLE001 - a report that cannot be read leaves the cost unknown, whatever broke in it
        return held, False
    return held, False
