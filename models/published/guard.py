"""The step guard as published (G2): it counts first and then checks, lest the ceiling be passed by one.

Modelled: `AgentStepGuard.step` as it is printed, one locked step, beside the order that the paper warns of: check
first, then count, both under one lock. How many steps that makes depends on when the agent asks, which the paper does
not show. Asked before each step, as T6 has it of every check and as the package's example does, it admits one step less
than its ceiling, and the other order admits exactly the ceiling. Asked after each step, it is exact, and the other
order admits one too many, as the paper says.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from failstop.models.claim import PUBLISHED
from failstop.models.specification import Goal, Invariant, Law, Specification


class Limits(NamedTuple):
    """The ceiling."""

    max_steps: int


class Guard(NamedTuple):
    """What the guard keeps, and ghosts: how many steps the agent really took, and whether it was told to stop."""

    current_step: int
    taken: int
    stopped: bool


def start() -> Guard:
    """A guard begins."""
    return Guard(0, 0, False)


def admissible(limits: Limits) -> bool:
    """The ceiling is one step at least."""
    return limits.max_steps >= 1


def counted_first(limits: Limits, current: int) -> tuple[int, bool]:
    """The printed order: (counter, whether to go on)."""
    return current + 1, current + 1 < limits.max_steps


def checked_first(limits: Limits, current: int) -> tuple[int, bool]:
    """The order that the paper warns of: (counter, whether to go on)."""
    if current >= limits.max_steps:
        return current, False
    return current + 1, True


def asks_and_steps(limits: Limits, world: Guard) -> Guard:
    """The agent asks the guard, which counts and then checks, and takes a step if it may."""
    current, more = counted_first(limits, world.current_step)
    return Guard(current, world.taken + 1 if more else world.taken, not more)


def steps_and_asks(limits: Limits, world: Guard) -> Guard | None:
    """The agent takes a step and asks the guard, which counts and then checks, whether to go on."""
    if world.stopped:
        return None
    current, more = counted_first(limits, world.current_step)
    return Guard(current, world.taken + 1, not more)


def asks_checked_and_steps(limits: Limits, world: Guard) -> Guard:
    """The agent asks the guard, which checks and then counts, and takes a step if it may."""
    current, more = checked_first(limits, world.current_step)
    return Guard(current, world.taken + 1 if more else world.taken, not more)


def steps_and_asks_checked(limits: Limits, world: Guard) -> Guard | None:
    """The agent takes a step and asks the guard, which checks and then counts, whether to go on."""
    if world.stopped:
        return None
    current, more = checked_first(limits, world.current_step)
    return Guard(current, world.taken + 1, not more)


def within_the_ceiling(limits: Limits, world: Guard) -> bool:
    """No more steps are taken than the ceiling says."""
    return world.taken <= limits.max_steps


def one_less(limits: Limits, world: Guard) -> bool:
    """Asked before each step, it admits one step less than the ceiling and never more."""
    counted = world.current_step if world.current_step < limits.max_steps else limits.max_steps - 1
    return world.taken == counted


def one_more(limits: Limits, world: Guard) -> bool:
    """Checking first and asked after each step, it admits one step more than the ceiling and never more than that."""
    extra = 1 if world.stopped else 0
    return world.taken == world.current_step + extra and world.current_step <= limits.max_steps


def counted_is_taken(world: Guard) -> bool:
    """The counter is the number of steps taken."""
    return world.current_step == world.taken


def stopped_at_the_ceiling_only(limits: Limits, after: Guard) -> bool:
    """The agent is told to stop only when it has taken as many steps as the ceiling says."""
    return not after.stopped or after.taken >= limits.max_steps


def stopped_in_time(limits: Limits, world: Guard) -> bool:
    """An agent that was not told to stop is below the ceiling."""
    return world.stopped or world.taken < limits.max_steps


def a_refusal_is_for_good(world: Guard, after: Guard) -> bool:
    """Once a step was refused, every later one is refused."""
    return not world.stopped or (after.stopped and after.taken == world.taken)


def stopped_is_full(limits: Limits, world: Guard) -> bool:
    """A guard that has refused has counted up to its ceiling."""
    return not world.stopped or world.current_step >= limits.max_steps


def the_ceiling_is_reached(limits: Limits, world: Guard) -> bool:
    """As many steps are taken as the ceiling says."""
    return limits.max_steps > 1 and world.taken == limits.max_steps


def one_too_many(limits: Limits, world: Guard) -> bool:
    """Checking first and asked after each step, the ceiling is passed by one, as the paper warns."""
    return world.taken == limits.max_steps + 1


ASKED_BEFORE = Specification(
    name="published step guard, asked before each step",
    whose=PUBLISHED,
    promise="Exactly as many steps are admitted as the ceiling says.",
    limits=Limits,
    world=Guard,
    start=start,
    actions=(asks_and_steps,),
    given=(admissible,),
    invariants=(
        Invariant("G2", within_the_ceiling),
        Invariant("G2", one_less),
        Invariant("G2", stopped_is_full),
    ),
    laws=(Law("G2", stopped_at_the_ceiling_only), Law("halt", a_refusal_is_for_good)),
    max_depth=4,
    callers=1,
)

ASKED_AFTER = replace(
    ASKED_BEFORE,
    name="published step guard, asked after each step",
    actions=(steps_and_asks,),
    invariants=(
        Invariant("G2", within_the_ceiling),
        Invariant("G2", counted_is_taken),
        Invariant("G2", stopped_in_time),
    ),
    laws=(Law("G2", stopped_at_the_ceiling_only),),
    goals=(Goal("G2", the_ceiling_is_reached),),
)

CHECKED_BEFORE = replace(
    ASKED_BEFORE,
    name="the order that the published step guard avoids, asked before each step",
    actions=(asks_checked_and_steps,),
    invariants=(
        Invariant("G2", within_the_ceiling),
        Invariant("G2", counted_is_taken),
        Invariant("G2", stopped_is_full),
    ),
    goals=(Goal("G2", the_ceiling_is_reached),),
)

CHECKED_AFTER = replace(
    ASKED_BEFORE,
    name="the order that the published step guard avoids, asked after each step",
    promise="One step too many is taken.",
    actions=(steps_and_asks_checked,),
    invariants=(Invariant("G2", one_more),),
    laws=(),
    goals=(Goal("G2", one_too_many),),
)

SPECIFICATIONS = (ASKED_BEFORE, ASKED_AFTER, CHECKED_BEFORE, CHECKED_AFTER)
