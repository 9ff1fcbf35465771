"""What a path of ledgers decides about one call, for a path of any length: the ledgers are asked one after another.

A child with limits of its own has a ledger under its parent's. Its call must pass all ledgers up to the root, or none.
"""

from __future__ import annotations

from typing import NamedTuple

from failstop.models.claim import OURS
from failstop.models.specification import Goal, Invariant, Law, Specification
from failstop.runtime.cores import ledger as core


class NoLimits(NamedTuple):
    """No constants."""


class Asked(NamedTuple):
    """What the path came to so far; beside it, what really was said and left, and of one ledger, whichever it is.

    stop: the first stop that any ledger gave, or 0. waits: some ledger says to wait. some: what is left at one of the
    limited ledgers, or -1; least: that of the one with the least.
    """

    verdict: int
    left: int
    asked: int
    stop: int
    waits: bool
    limited: bool
    some: int
    least: int


class Answered(NamedTuple):
    """How a call was answered in the end."""

    answered: bool
    verdict: int
    closed: bool


def start() -> Asked:
    """Nobody was asked yet."""
    return Asked(core.ADMITTED, core.NO_CEILING, 0, 0, False, False, -1, -1)


def ask_next(
    world: Asked, stop: int, waits: bool, ceiling: int, spent: int, reserved: int, remember: bool
) -> Asked | None:
    """The next ledger is asked: it stops the call, says to wait, or lets it through, and may have something left."""
    if stop < core.ADMITTED or stop > core.CLOSED or (waits and stop != core.ADMITTED):
        return None
    verdict = core.CONTENDED if waits else stop
    rest = what_is_left(ceiling, spent, reserved)
    its = core.left((spent, reserved, 0, 0, 0, stop), (ceiling, -1, -1, -1, -1))
    return Asked(
        core.joined(world.verdict, verdict),
        core.narrower(world.left, its),
        world.asked + 1,
        stop if world.stop == 0 else world.stop,
        world.waits or waits,
        world.limited or rest >= 0,
        rest if remember and rest >= 0 else world.some,
        rest if rest >= 0 and (world.least < 0 or rest < world.least) else world.least,
    )


def answer(world: Asked, call: Answered, closed: bool) -> tuple[Asked, Answered] | None:
    """The call is answered."""
    if call.answered or world.asked == 0:
        return None
    return world, Answered(True, core.unless_closed(world.verdict, closed), closed)


def well_formed(world: Asked) -> bool:
    """What is remembered of the ledgers makes sense."""
    stops = world.stop == 0 or core.COST <= world.stop <= core.CLOSED
    some = world.some == -1 or 0 <= world.least <= world.some
    return stops and some and world.least >= -1 and world.limited == (world.least >= 0) and world.asked >= 0


def the_highest_stop_wins(world: Asked) -> bool:
    """A stop of any ledger stops the call, and the one nearest to the root is told."""
    return world.stop == 0 or world.verdict == world.stop


def a_wait_gives_way_to_a_stop(world: Asked) -> bool:
    """A call waits if, and only if, some ledger says so and none stops it."""
    return (world.verdict == core.CONTENDED) == (world.stop == 0 and world.waits)


def let_through_by_all(world: Asked) -> bool:
    """A call is let through if, and only if, every ledger lets it through."""
    return (world.verdict == core.ADMITTED) == (world.stop == 0 and not world.waits)


def the_least_that_is_left(world: Asked) -> bool:
    """What a path has left is what the ledger with the least has left, and no bound if no ledger has one."""
    return world.left == world.least and (world.some < 0 or world.left <= world.some)


def a_stop_is_told_of_a_closed_context_too(world: Asked, call_after: Answered) -> bool:
    """A closed context is told of the stop of its ledgers, or else that it was closed; an open one is told as it is."""
    stopped = world.verdict != core.ADMITTED and world.verdict != core.CONTENDED
    return call_after.verdict == (core.CLOSED if call_after.closed and not stopped else world.verdict)


def all_let_through(world: Asked, call: Answered) -> bool:
    """Several ledgers let a call through."""
    return world.asked > 1 and call.answered and call.verdict == core.ADMITTED


def one_stops_where_another_waits(world: Asked) -> bool:
    """One ledger stops a call that a higher one would let wait."""
    return world.asked > 1 and world.waits and world.verdict == core.STEPS


def what_is_left(ceiling: int, spent: int, reserved: int) -> int:
    """What of a ceiling is neither spent nor reserved; none of it if that is more, and -1 if there is no ceiling."""
    used_up = 0 <= ceiling < spent + reserved
    return 0 if used_up else -1 if ceiling < 0 else ceiling - spent - reserved


PATH = Specification(
    name="path",
    whose=OURS,
    promise="A call is let through if all ledgers up to the root let it; a stop beats a wait, the root's comes first.",
    limits=NoLimits,
    world=Asked,
    start=start,
    call=Answered,
    new=Answered(False, 0, False),
    actions=(ask_next, answer),
    ghosts=(
        "asked",
        "stop",
        "waits",
        "limited",
        "some",
        "least",
    ),
    trusted=("every ledger of the path is asked, from the root down, in one step",),
    invariants=(
        Invariant("halt", well_formed),
        Invariant("halt", the_highest_stop_wins),
        Invariant("halt", a_wait_gives_way_to_a_stop),
        Invariant("happy-path", let_through_by_all),
        Invariant("G1", the_least_that_is_left),
    ),
    laws=(Law("halt", a_stop_is_told_of_a_closed_context_too, (answer,)),),
    goals=(Goal("happy-path", all_let_through), Goal("halt", one_stops_where_another_waits)),
    outcomes={"verdict": (core.ADMITTED, core.COST, core.CLOSED, core.CONTENDED), "stop": (core.ADMITTED, core.COST)},
    at_once=((core, "joined"), (core, "narrower"), (core, "left")),
    callers=1,
)
