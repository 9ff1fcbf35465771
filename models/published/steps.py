"""Steps as published (G2, T4): checked under a lock, run outside of it, and counted under the lock after a success.

Modelled: the check and the count as they are printed, each one locked step; between them the call runs, and a call that
fails is not counted, since the paper counts successful calls only. The paper promises that successful operations stay
within the ceiling (G2), and that all steps do (T4), where the steps of a chain are its calls by its own definition.
"""

from __future__ import annotations

from typing import NamedTuple

from failstop.models.claim import PUBLISHED
from failstop.models.specification import Goal, Invariant, Law, Specification

NEW = 0
RUNNING = 1
SUCCEEDED = 2
FAILED = 3
HALTED = 4


class Limits(NamedTuple):
    """The ceiling."""

    max_steps: int


class Chain(NamedTuple):
    """What the context keeps, and ghosts: how many calls are in flight, and the most that ever were."""

    step_count: int
    aborted: bool
    in_flight: int
    at_once: int


class Call(NamedTuple):
    """One call."""

    phase: int


class Totals(NamedTuple):
    """Sums over all calls."""

    succeeded: int
    dispatched: int
    running: int


def start() -> Chain:
    """A chain begins."""
    return Chain(0, False, 0, 0)


def admissible(limits: Limits) -> bool:
    """The ceiling is one step at least."""
    return limits.max_steps >= 1


def asks(limits: Limits, world: Chain, call: Call) -> tuple[Chain, Call] | None:
    """A call is checked against the step ceiling, and runs if it is below."""
    if call.phase != NEW:
        return None
    if world.aborted or world.step_count >= limits.max_steps:
        return world._replace(aborted=True), Call(HALTED)
    at_once = world.at_once + 1 if world.in_flight == world.at_once else world.at_once
    return world._replace(in_flight=world.in_flight + 1, at_once=at_once), Call(RUNNING)


def succeeds(world: Chain, call: Call) -> tuple[Chain, Call] | None:
    """A running call succeeds, and is counted."""
    if call.phase != RUNNING:
        return None
    return world._replace(step_count=world.step_count + 1, in_flight=world.in_flight - 1), Call(SUCCEEDED)


def fails(world: Chain, call: Call) -> tuple[Chain, Call] | None:
    """A running call fails, and is not counted."""
    if call.phase != RUNNING:
        return None
    return world._replace(in_flight=world.in_flight - 1), Call(FAILED)


def succeeded(call: Call) -> int:
    """One for a call that ran and succeeded."""
    return 1 if call.phase == SUCCEEDED else 0


def dispatched(call: Call) -> int:
    """One for a call that runs or ran."""
    return 1 if RUNNING <= call.phase <= FAILED else 0


def running(call: Call) -> int:
    """One for a call in flight."""
    return 1 if call.phase == RUNNING else 0


def successes_are_counted(world: Chain, total: Totals) -> bool:
    """The step counter is the number of calls that succeeded."""
    return world.step_count == total.succeeded


def counted_at_once(world: Chain, total: Totals) -> bool:
    """The calls in flight are counted, and the most at once are no fewer."""
    return world.in_flight == total.running and world.in_flight <= world.at_once


def the_last_entered_below(limits: Limits, world: Chain) -> bool:
    """The last call entered below the ceiling, and those in flight then may still be counted."""
    if world.at_once == 0:
        return world.step_count == 0
    return world.step_count + world.in_flight <= limits.max_steps - 1 + world.at_once


def passed_by_what_is_in_flight(limits: Limits, world: Chain, total: Totals) -> bool:
    """Successful operations are at most the ceiling less one plus the most calls at once."""
    return total.succeeded == 0 or total.succeeded <= limits.max_steps - 1 + world.at_once


def holds_for_one_at_a_time(limits: Limits, world: Chain, total: Totals) -> bool:
    """As long as no two calls are ever in flight at once, successful operations stay within the ceiling."""
    return world.at_once > 1 or total.succeeded <= limits.max_steps


def successes_stay_within(limits: Limits, total_after: Totals) -> bool:
    """Successful operations never pass the step ceiling."""
    return total_after.succeeded <= limits.max_steps


def steps_stay_within(limits: Limits, after: Chain, total_after: Totals) -> bool:
    """With no two calls in flight at once, the steps of a chain, failed ones too, stay within the ceiling."""
    return after.at_once > 1 or total_after.dispatched <= limits.max_steps


def later_calls_are_halted(world: Chain, call_after: Call) -> bool:
    """Once a call was refused, every call that asks later is told HALT and does not run."""
    return not world.aborted or call_after.phase == HALTED


def the_bound_is_reached(limits: Limits, world: Chain, total: Totals) -> bool:
    """The bound is tight, with two calls at once."""
    return world.at_once == 2 and total.succeeded == limits.max_steps + 1


STEPS = Specification(
    name="published steps",
    whose=PUBLISHED,
    promise="No more than the step ceiling succeed, or are taken.",
    limits=Limits,
    world=Chain,
    start=start,
    call=Call,
    new=Call(NEW),
    actions=(asks, succeeds, fails),
    totals=Totals,
    terms=(succeeded, dispatched, running),
    given=(admissible,),
    invariants=(
        Invariant("G2", successes_are_counted),
        Invariant("G2", counted_at_once),
        Invariant("G2", the_last_entered_below),
        Invariant("G2", passed_by_what_is_in_flight),
        Invariant("G2", holds_for_one_at_a_time),
    ),
    laws=(
        # A promise that may be false is a law and no invariant, so that no proof here can rest on it.
        Law("G2", successes_stay_within),
        Law("T4", steps_stay_within),
        Law("halt", later_calls_are_halted, (asks,)),
    ),
    goals=(Goal("G2", the_bound_is_reached),),
    words={"phase": ("new", "running", "succeeded", "failed", "halted")},
    max_depth=5,
    callers=2,
)

SPECIFICATIONS = (STEPS,)
