"""The retry container as published (T6): a loop of its own for every call of `execute`.

Modelled: `RetryContainer.execute` as it is printed, its attempts counted by the loop and by nothing else, one execution
at a time, as the paper says of its lock. The text introduces it as a budget of the whole chain, and T6 bounds the total
of the retries by it. Among its limitations the paper says that a container outside of a chain context bounds retries
only locally: what is proved here is that it bounds those of each execution, and that this is all.
"""

from __future__ import annotations

from typing import NamedTuple

from failstop.models.claim import PUBLISHED
from failstop.models.specification import Goal, Invariant, Law, Specification

NEW = 0
TRIED = 1
SUCCEEDED = 2
RAISED = 3


class Limits(NamedTuple):
    """The ceiling of the container."""

    max_retries: int


class Container(NamedTuple):
    """What executions share: whether one holds the lock."""

    busy: bool


class Call(NamedTuple):
    """One execution: how often it was tried again."""

    phase: int
    retries: int


class Totals(NamedTuple):
    """Sums over all executions."""

    retries: int


def start() -> Container:
    """A container begins."""
    return Container(False)


def admissible(limits: Limits) -> bool:
    """The ceiling is not negative."""
    return limits.max_retries >= 0


def begins(world: Container, call: Call) -> tuple[Container, Call] | None:
    """An execution takes the lock and is tried for the first time."""
    if call.phase != NEW or world.busy:
        return None
    return Container(True), call._replace(phase=TRIED)


def fails(limits: Limits, world: Container, call: Call) -> tuple[Container, Call] | None:
    """An attempt fails, and is repeated unless it was the last of the loop."""
    if call.phase != TRIED:
        return None
    if call.retries >= limits.max_retries:
        return Container(False), call._replace(phase=RAISED)
    return world, call._replace(retries=call.retries + 1)


def succeeds(call: Call) -> tuple[Container, Call] | None:
    """An attempt succeeds, and the lock is free again."""
    if call.phase != TRIED:
        return None
    return Container(False), call._replace(phase=SUCCEEDED)


def retries(call: Call) -> int:
    """How often an execution was tried again."""
    return call.retries


def each_stays_within(limits: Limits, call: Call) -> bool:
    """The retries of each single execution never pass the ceiling of the container."""
    return 0 <= call.retries <= limits.max_retries


def total_retries_stay_within(limits: Limits, total_after: Totals) -> bool:
    """All retries through a container never pass its ceiling."""
    return total_after.retries <= limits.max_retries


def the_ceiling_is_reached(limits: Limits, total: Totals) -> bool:
    """An execution can be tried again as often as the ceiling says."""
    return limits.max_retries > 1 and total.retries == limits.max_retries


CONTAINER = Specification(
    name="published retry container",
    whose=PUBLISHED,
    promise="All retries through a container stay within its ceiling.",
    limits=Limits,
    world=Container,
    start=start,
    call=Call,
    new=Call(NEW, 0),
    actions=(begins, fails, succeeds),
    totals=Totals,
    terms=(retries,),
    given=(admissible,),
    invariants=(Invariant("G3", each_stays_within),),
    laws=(Law("T6", total_retries_stay_within),),
    goals=(Goal("G3", the_ceiling_is_reached),),
    words={"phase": ("new", "tried", "succeeded", "raised")},
    max_depth=6,
    callers=2,
)

SPECIFICATIONS = (CONTAINER,)
