"""The deadline as published (G5): a timer sets a flag, and calls look at the flag.

Modelled: a timer that fires at some time after the deadline, which nothing printed bounds, and the check of the flag
when a call asks. The promise is that every new call is halted once the time has passed. Calls in flight are none of
it, as the paper says, and a call that was let through in time and starts late is taken to be in flight.
"""

from __future__ import annotations

from typing import NamedTuple

from failstop.models.claim import PUBLISHED
from failstop.models.specification import Goal, Invariant, Law, Specification

NEW = 0
RUNNING = 1
HALTED = 2


class Limits(NamedTuple):
    """The time limit."""

    timeout: int


class Chain(NamedTuple):
    """Whether the token is cancelled, and the time since the chain began."""

    cancelled: bool
    elapsed: int


class Call(NamedTuple):
    """One call."""

    phase: int


def start() -> Chain:
    """A chain begins."""
    return Chain(False, 0)


def admissible(limits: Limits) -> bool:
    """There is a time limit."""
    return limits.timeout >= 1


def time_passes(world: Chain, time: int) -> Chain | None:
    """Time passes."""
    if time < 1:
        return None
    return world._replace(elapsed=world.elapsed + time)


def timer_fires(limits: Limits, world: Chain) -> Chain | None:
    """The timer fires, at the deadline or at some time after it, and cancels the token."""
    if world.cancelled or world.elapsed < limits.timeout:
        return None
    return world._replace(cancelled=True)


def asks(world: Chain, call: Call) -> tuple[Chain, Call] | None:
    """A call asks, and runs unless the token is cancelled."""
    if call.phase != NEW:
        return None
    return world, Call(HALTED if world.cancelled else RUNNING)


def cancelled_late_only(limits: Limits, world: Chain) -> bool:
    """The token is cancelled only once the time limit has passed."""
    return not world.cancelled or world.elapsed >= limits.timeout


def halted_once_cancelled(world: Chain, call_after: Call) -> bool:
    """Once the token is cancelled, every new call is halted."""
    return not world.cancelled or call_after.phase == HALTED


def cancelled_for_good(world: Chain, after: Chain) -> bool:
    """A cancelled token stays cancelled."""
    return not world.cancelled or after.cancelled


def halted_once_late(limits: Limits, world: Chain, call_after: Call) -> bool:
    """Once more time has passed than the limit, every new call is halted."""
    return world.elapsed <= limits.timeout or call_after.phase == HALTED


def halts(world: Chain, call: Call) -> bool:
    """A call is halted in a cancelled chain."""
    return world.cancelled and call.phase == HALTED


DEADLINE = Specification(
    name="published deadline",
    whose=PUBLISHED,
    promise="Once the time has passed, every new call is halted.",
    limits=Limits,
    world=Chain,
    start=start,
    call=Call,
    new=Call(NEW),
    actions=(asks, timer_fires, time_passes),
    given=(admissible,),
    invariants=(Invariant("G5", cancelled_late_only),),
    laws=(
        Law("G5", halted_once_cancelled, (asks,)),
        Law("G5", cancelled_for_good),
        Law("G5", halted_once_late, (asks,)),
    ),
    goals=(Goal("G5", halts),),
    words={"phase": ("new", "running", "halted")},
    max_depth=4,
    callers=2,
)

SPECIFICATIONS = (DEADLINE,)
