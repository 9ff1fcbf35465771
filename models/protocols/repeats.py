"""Loop detection: actions come one after another, from any number of callers of a chain, and each counts in one step.

An action is a number here, and two are the same if their numbers are; for the shell it is a digest of what is to be
done. What has to be trusted, and is tested elsewhere: that the shell counts under its ledger's lock, and that a digest
is the same for the same action only. Beside the core's state are kept what really came in a row, what of it was let
through, and for how long no two actions in a row were the same.
"""

from __future__ import annotations

from typing import NamedTuple

from failstop.models.claim import OURS
from failstop.models.specification import Goal, Invariant, Law, Specification
from failstop.runtime.cores import repeats as core

NOTHING = -1


class Limits(NamedTuple):
    """How often one action may come in a row; a negative limit is none."""

    max_repeats: int


class Row(NamedTuple):
    """The shell's state, and beside it the world.

    run: the core's count. last: the last action. asked, dispatched: how often that one came in a row, and was let
    through. changes: how many actions in a row each differed from the one before; refused: how many of these were
    not let through. allowed: the last answer.
    """

    run: int
    last: int
    asked: int
    dispatched: int
    changes: int
    refused: int
    allowed: bool


def start() -> Row:
    """Nothing was done yet."""
    return Row(0, NOTHING, 0, 0, 0, 0, True)


def turn(limits: Limits, world: Row, action: int) -> Row | None:
    """An action is about to be dispatched."""
    if action < 0:
        return None
    same = action == world.last
    run, allowed = core.turn(world.run, same, limits.max_repeats)
    asked = world.asked + 1 if same else 1
    dispatched = (world.dispatched if same else 0) + (1 if allowed else 0)
    changes = 0 if same else world.changes + 1
    refused = 0 if same else world.refused + (0 if allowed else 1)
    return Row(run, action, asked, dispatched, changes, refused, allowed)


def well_formed(world: Row) -> bool:
    """Nothing is counted below zero, and no more is let through than came."""
    return 0 <= world.dispatched <= world.asked and world.changes >= 0


def counts_what_came(world: Row) -> bool:
    """The count is how often the last action really came in a row."""
    return world.run == world.asked


def within_the_repeats(limits: Limits, world: Row) -> bool:
    """No action is let through more often in a row than the limit says."""
    return limits.max_repeats < 0 or world.dispatched <= limits.max_repeats


def let_through_up_to_the_limit(limits: Limits, world: Row) -> bool:
    """Of an action that comes in a row, as many are let through as the limit says, and all if they are fewer."""
    if limits.max_repeats < 0 or world.asked <= limits.max_repeats:
        return world.dispatched == world.asked
    return world.dispatched == limits.max_repeats


def alternating_is_no_loop(limits: Limits, world: Row) -> bool:
    """As long as no action is the same as the one before, A-B-A-B too, none is refused, unless none is allowed."""
    return limits.max_repeats == 0 or world.refused == 0


def let_through_whenever_possible(limits: Limits, after: Row) -> bool:
    """An action is let through if, and only if, with it no more of the same come in a row than the limit says."""
    return after.allowed == (limits.max_repeats < 0 or after.asked <= limits.max_repeats)


def another_action_begins_anew(limits: Limits, world: Row, after: Row, action: int) -> bool:
    """An action other than the last one is let through whatever came before, and counts as the first of its kind."""
    if action == world.last:
        return after.run == world.run + 1
    return after.run == 1 and after.allowed == (limits.max_repeats != 0)


def the_limit_is_reached(limits: Limits, world: Row) -> bool:
    """An action is let through as often in a row as the limit says."""
    return limits.max_repeats > 1 and world.dispatched == limits.max_repeats and world.allowed


def one_too_many_is_refused(limits: Limits, world: Row) -> bool:
    """An action that comes once more is refused."""
    return limits.max_repeats > 1 and world.asked == limits.max_repeats + 1 and not world.allowed


def alternating_passes_the_limit(limits: Limits, world: Row) -> bool:
    """Actions that alternate come more often than the limit says, and none is refused."""
    return limits.max_repeats > 0 and world.changes > limits.max_repeats + 2 and world.allowed


REPEATS = Specification(
    name="repeats",
    whose=OURS,
    promise="No action is let through more often in a row than the limit says, and alternating ones always are.",
    limits=Limits,
    world=Row,
    start=start,
    actions=(turn,),
    ghosts=(
        "asked",
        "dispatched",
        "changes",
        "refused",
    ),
    trusted=(
        "an action is counted under the lock of its ledger",
        "a digest is the same for the same action only",
    ),
    invariants=(
        Invariant("loop", well_formed),
        Invariant("loop", counts_what_came),
        Invariant("loop", within_the_repeats),
        Invariant("loop", let_through_up_to_the_limit),
        Invariant("loop", alternating_is_no_loop),
    ),
    laws=(
        Law("loop", let_through_whenever_possible, (turn,)),
        Law("loop", another_action_begins_anew, (turn,)),
    ),
    goals=(
        Goal("loop", the_limit_is_reached),
        Goal("loop", one_too_many_is_refused),
        Goal("loop", alternating_passes_the_limit),
    ),
    outcomes={"allowed": (False, True)},
    words={"last": ("A", "B", "C", "D", "E")},
)
