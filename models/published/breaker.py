"""The circuit breaker as published (G4): three states, a count of failures, and a slot for one test request.

Modelled: each method as one locked step. The paper prints the way out of OPEN and describes the rest; how a result is
recorded it does not show, so that is taken from the version of the package that it is about (3.4.2): any success or
failure is counted for the state of that moment, whichever request it belongs to, and frees the slot. A caller may go
away without a result: cancelled, killed, or denied by a later policy after the breaker has let it through; the paper
says nothing of those. In `WALL_CLOCK` the clock may also be set, since what the paper prints is `time.time()` (the
package reads a monotonic clock). Of the time of the last failure only what has passed since then matters, so that is
what is kept. Where the clock is not set, G4 itself is proved, and so is that each HALF_OPEN state lets one request
through. That one request at a time tests, which is what the slot is for, and that it decides, do not follow from that.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from failstop.models.claim import PUBLISHED
from failstop.models.specification import Goal, Invariant, Law, Specification

CLOSED = 0
OPEN = 1
HALF_OPEN = 2

IDLE = 0
RUNNING = 1
TESTING = 2
DENIED = 3
GONE = 4


class Limits(NamedTuple):
    """The settings."""

    threshold: int
    recovery: int


class Breaker(NamedTuple):
    """What the breaker keeps, what its clock says since the last failure, and a ghost: how long that really is."""

    state: int
    failures: int
    slot_taken: bool
    clock_says: int
    really_since: int


class Caller(NamedTuple):
    """One caller, who asks again when its request is over."""

    phase: int


class Totals(NamedTuple):
    """Sums over all callers: test requests that really run."""

    testing: int


def start() -> Breaker:
    """A breaker begins."""
    return Breaker(CLOSED, 0, False, 0, 0)


def admissible(limits: Limits) -> bool:
    """The threshold is one failure at least, and recovery takes some time."""
    return limits.threshold >= 1 and limits.recovery >= 1


def asks(limits: Limits, world: Breaker, call: Caller) -> tuple[Breaker, Caller] | None:
    """A caller asks the breaker, and its request runs if it may."""
    if call.phase != IDLE and call.phase != DENIED:
        return None
    over = world.clock_says >= limits.recovery
    after = world._replace(state=HALF_OPEN) if world.state == OPEN and over else world
    if after.state == OPEN or (after.state == HALF_OPEN and after.slot_taken):
        return after, Caller(DENIED)
    if after.state == HALF_OPEN:
        return after._replace(slot_taken=True), Caller(TESTING)
    return after, Caller(RUNNING)


def succeeds(world: Breaker, call: Caller) -> tuple[Breaker, Caller] | None:
    """A request succeeds, and the breaker is told."""
    if call.phase != RUNNING and call.phase != TESTING:
        return None
    after = world._replace(slot_taken=False)
    return after if world.state == OPEN else after._replace(state=CLOSED, failures=0), Caller(IDLE)


def fails(limits: Limits, world: Breaker, call: Caller) -> tuple[Breaker, Caller] | None:
    """A request fails, and the breaker is told."""
    if call.phase != RUNNING and call.phase != TESTING:
        return None
    failures = world.failures + 1
    opens = world.state == HALF_OPEN or failures >= limits.threshold
    after = Breaker(OPEN if opens else world.state, failures, False, 0, 0)
    return after, Caller(IDLE)


def goes_away(world: Breaker, call: Caller) -> tuple[Breaker, Caller] | None:
    """A caller goes away, and the breaker is told nothing."""
    if call.phase != RUNNING and call.phase != TESTING:
        return None
    return world, Caller(GONE)


def time_passes(world: Breaker, time: int) -> Breaker | None:
    """Time passes."""
    if time < 1:
        return None
    return world._replace(clock_says=world.clock_says + time, really_since=world.really_since + time)


def clock_is_set(world: Breaker, by: int) -> Breaker:
    """Somebody sets the clock."""
    return world._replace(clock_says=world.clock_says + by)


def testing(call: Caller) -> int:
    """One for a test request that runs."""
    return 1 if call.phase == TESTING else 0


def well_formed(world: Breaker) -> bool:
    """A breaker is closed, open or half-open, and only a half-open one has a test request out."""
    return CLOSED <= world.state <= HALF_OPEN and (world.state == HALF_OPEN or not world.slot_taken)


def clock_is_true(world: Breaker) -> bool:
    """What the clock says has passed has really passed."""
    return world.clock_says == world.really_since


def open_denies(limits: Limits, world: Breaker, call_after: Caller) -> bool:
    """An open breaker denies every request until the recovery time has passed since the last failure."""
    waits = world.state == OPEN and world.really_since < limits.recovery
    return not waits or call_after.phase == DENIED


def open_tests_in_time(limits: Limits, world: Breaker, call_after: Caller) -> bool:
    """Once the recovery time has passed since the last failure, whoever asks an open breaker may test."""
    waits = world.state != OPEN or world.really_since < limits.recovery
    return waits or call_after.phase == TESTING


def never_straight_to_closed(world: Breaker, after: Breaker) -> bool:
    """No open breaker closes without being half-open first."""
    return world.state != OPEN or after.state != CLOSED


def one_at_a_time(world: Breaker, call_after: Caller) -> bool:
    """While the slot of a half-open breaker is taken, every other request is denied."""
    return world.state != HALF_OPEN or not world.slot_taken or call_after.phase == DENIED


def one_test_request(total_after: Totals) -> bool:
    """No two test requests ever run at once."""
    return total_after.testing <= 1


def closed_by_its_test(world: Breaker, after: Breaker, call: Caller) -> bool:
    """A half-open breaker is closed only by the success of its test request."""
    return world.state != HALF_OPEN or after.state != CLOSED or call.phase == TESTING


def no_trap(world: Breaker, total: Totals, call_after: Caller) -> bool:
    """Whoever asks a half-open breaker while no test request runs may test."""
    return world.state != HALF_OPEN or total.testing > 0 or call_after.phase == TESTING


def tests(total: Totals) -> bool:
    """A test request runs."""
    return total.testing == 1


BREAKER = Specification(
    name="published breaker",
    whose=PUBLISHED,
    promise="An open breaker denies until its recovery time has passed; then exactly one request tests.",
    limits=Limits,
    world=Breaker,
    start=start,
    call=Caller,
    new=Caller(IDLE),
    actions=(asks, succeeds, fails, goes_away, time_passes),
    totals=Totals,
    terms=(testing,),
    given=(admissible,),
    invariants=(Invariant("G4", well_formed), Invariant("G4", clock_is_true)),
    laws=(
        # A promise that may be false is a law and no invariant, so that no proof here can rest on it.
        Law("G4", open_denies, (asks,)),
        Law("G4", open_tests_in_time, (asks,)),
        Law("G4", never_straight_to_closed),
        Law("G4", one_at_a_time, (asks,)),
        Law("G4", one_test_request, (asks,)),
        Law("G4", closed_by_its_test, (succeeds,)),
        Law("G4", no_trap, (asks,)),
    ),
    goals=(Goal("G4", tests),),
    words={
        "state": ("CLOSED", "OPEN", "HALF_OPEN"),
        "phase": ("idle", "running", "testing", "denied", "gone"),
    },
    max_depth=8,
    callers=2,
)

WALL_CLOCK = replace(
    BREAKER,
    name="published breaker on a wall clock",
    promise="An open breaker denies until its recovery time has passed, and no longer.",
    actions=(asks, succeeds, fails, goes_away, time_passes, clock_is_set),
    invariants=(Invariant("G4", well_formed),),
    laws=(Law("G4", open_denies, (asks,)), Law("G4", open_tests_in_time, (asks,))),
    goals=(),
    max_depth=6,
    callers=1,
)

SPECIFICATIONS = (BREAKER, WALL_CLOCK)
