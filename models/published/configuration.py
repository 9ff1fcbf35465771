"""Configuration as published (G6): a limit is refused if it is NaN, infinite or negative, and made otherwise.

Modelled: the printed validation of one limit; the paper says that the other limits are validated in the same way. That
NaN, infinite and negative limits cannot be made is its guarantee, and proved. It goes on to say that invalid
configurations raise when they are made. What else is invalid it does not say; here that is what its own declaration of
the fields excludes, a count of steps or retries that is no whole number, and a truth value, which Python takes for one.
"""

from __future__ import annotations

from typing import NamedTuple

from failstop.models.claim import PUBLISHED
from failstop.models.specification import Goal, Invariant, Law, Specification

NAN = 0
INFINITE = 1
WHOLE = 2
FRACTION = 3
TRUTH_VALUE = 4


class Nothing(NamedTuple):
    """A protocol without limits."""


class Limit(NamedTuple):
    """One limit: whether it was made, whether it counts something, what its value is, and whether it is below zero."""

    made: bool
    is_count: bool
    value: int
    negative: bool


def start() -> Limit:
    """Nothing is configured."""
    return Limit(False, False, WHOLE, False)


def configures(is_count: bool, value: int, negative: bool) -> Limit | None:
    """Somebody makes a configuration with this limit."""
    if value < NAN or value > TRUTH_VALUE:
        return None
    if negative and (value == NAN or value == TRUTH_VALUE):
        return None
    if value == NAN or value == INFINITE:
        return Limit(False, is_count, value, negative)
    if negative:
        return Limit(False, is_count, value, negative)
    return Limit(True, is_count, value, negative)


def finite(world: Limit) -> bool:
    """A limit that is made is neither NaN nor infinite."""
    return not world.made or not (world.value == NAN or world.value == INFINITE)


def not_negative(world: Limit) -> bool:
    """A limit that is made is not negative."""
    return not world.made or not world.negative


def valid_ones_are_made(after: Limit) -> bool:
    """A limit that is a finite number and not negative is made."""
    return after.made or after.negative or after.value == NAN or after.value == INFINITE


def counts_are_whole(after: Limit) -> bool:
    """A limit that is made and counts something is no fraction."""
    return not after.made or not after.is_count or after.value != FRACTION


def no_truth_values(after: Limit) -> bool:
    """A limit that is made is no truth value."""
    return not after.made or after.value != TRUTH_VALUE


def is_made(world: Limit) -> bool:
    """A limit is made."""
    return world.made


CONFIGURATION = Specification(
    name="published configuration",
    whose=PUBLISHED,
    promise="A context with invalid limits cannot be made.",
    limits=Nothing,
    world=Limit,
    start=start,
    actions=(configures,),
    invariants=(Invariant("G6", finite), Invariant("G6", not_negative)),
    laws=(Law("G6", valid_ones_are_made), Law("G6", counts_are_whole), Law("G6", no_truth_values)),
    goals=(Goal("G6", is_made),),
    words={"value": ("NaN", "infinite", "a whole number", "a fraction", "a truth value")},
    max_depth=2,
    callers=1,
)

SPECIFICATIONS = (CONFIGURATION,)
