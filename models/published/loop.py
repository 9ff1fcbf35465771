"""Loop detection as published: the exact repetition of an action, by its fingerprint, and nothing less exact.

Modelled: equal actions in a row are counted before the action is dispatched, and the run is stopped as soon as they are
more than allowed; an agent that alternates between two actions is not flagged, as the text says. The rule is sound,
and it is the one of the runtime's core.
"""

from __future__ import annotations

from typing import NamedTuple

from failstop.models.claim import PUBLISHED
from failstop.models.specification import Goal, Invariant, Law, Specification
from failstop.runtime.cores import repeats as core


class Limits(NamedTuple):
    """How often an action may come in a row."""

    max_repeats: int


class Loop(NamedTuple):
    """What the budget keeps, and ghosts: how often the last action was dispatched in a row, whether the run stopped."""

    repeats: int
    last: int
    in_a_row: int
    stopped: bool


def start() -> Loop:
    """A run begins."""
    return Loop(0, 0, 0, False)


def admissible(limits: Limits) -> bool:
    """An action may be dispatched once at least."""
    return limits.max_repeats >= 1


def acts(limits: Limits, world: Loop, action: int) -> Loop | None:
    """The agent asks for an action, which is dispatched unless it came too often in a row."""
    if world.stopped or action < 1:
        return None
    same = action == world.last
    repeats = world.repeats + 1 if same else 1
    if repeats > limits.max_repeats:
        return Loop(repeats, action, world.in_a_row, True)
    return Loop(repeats, action, world.in_a_row + 1 if same else 1, False)


def counted_as_dispatched(world: Loop) -> bool:
    """What a running loop counts is what was dispatched in a row."""
    return world.in_a_row >= 0 and (world.stopped or world.repeats == world.in_a_row)


def no_more_in_a_row(limits: Limits, world: Loop) -> bool:
    """No action is dispatched more often in a row than allowed."""
    return world.in_a_row <= limits.max_repeats


def stopped_for_a_repetition_only(limits: Limits, world: Loop, after: Loop, action: int) -> bool:
    """A run is stopped only for an action that was just dispatched as often as allowed."""
    return not after.stopped or (action == world.last and world.in_a_row == limits.max_repeats)


def alternation_is_not_flagged(world: Loop, after: Loop, action: int) -> bool:
    """An action other than the last one is always dispatched."""
    return action == world.last or (not after.stopped and after.in_a_row == 1)


def the_core_says_the_same(limits: Limits, world: Loop, after: Loop, action: int) -> bool:
    """The core of the runtime counts and answers the same."""
    run, dispatched = core.turn(world.repeats, action == world.last, limits.max_repeats)
    return run == after.repeats and dispatched != after.stopped


def the_ceiling_is_reached(limits: Limits, world: Loop) -> bool:
    """An action is dispatched as often in a row as allowed."""
    return limits.max_repeats == 2 and world.in_a_row == 2


def stops(world: Loop) -> bool:
    """A run is stopped."""
    return world.stopped


LOOP = Specification(
    name="published loop detection",
    whose=PUBLISHED,
    promise="No action is dispatched more often in a row than allowed, and nothing else is stopped.",
    limits=Limits,
    world=Loop,
    start=start,
    actions=(acts,),
    given=(admissible,),
    invariants=(Invariant("loop", counted_as_dispatched), Invariant("loop", no_more_in_a_row)),
    laws=(
        Law("loop", stopped_for_a_repetition_only),
        Law("loop", alternation_is_not_flagged),
        Law("loop", the_core_says_the_same),
    ),
    goals=(Goal("loop", the_ceiling_is_reached), Goal("loop", stops)),
    max_depth=4,
    callers=1,
)

SPECIFICATIONS = (LOOP,)
