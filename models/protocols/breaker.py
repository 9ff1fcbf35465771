"""The circuit breaker: generations, one probe at a time under a lease, a monotonic clock, any number of calls.

A probe whose lease is over may still run beside the next one: nobody can know whether it is lost. A reset by hand
closes the breaker at once, also beside a probe that is out. What a shell adds is that each permit is reported once.
"""

from __future__ import annotations

from typing import NamedTuple

from failstop.models.claim import OURS
from failstop.models.specification import Goal, Invariant, Law, Specification
from failstop.runtime.cores import breaker as core

NEW = 0
OUT = 1
OVER = 2
DENIED = 3


class Settings(NamedTuple):
    """Failures in a row that open it; how long it cools down; how long a probe may be unheard of."""

    threshold: int
    recovery: int
    lease: int


class Breaker(NamedTuple):
    """The core's state, and beside it the world.

    era: how often it opened, closed, was reset or let a probe through. streak: failures in a row that count while it is
    closed. opened_at: when it opened, or -1 while it is closed. resets: how often it was reset by hand.
    """

    mode: int
    generation: int
    failures: int
    until: int
    now: int
    era: int
    streak: int
    opened_at: int
    resets: int


class Call(NamedTuple):
    """One call; era, resets: the breaker's when it was let through; lease_until: when its slot, as a probe, is lost."""

    phase: int
    verdict: int
    permit: int
    probe: bool
    era: int
    resets: int
    lease_until: int


def start() -> Breaker:
    """The breaker is closed."""
    return Breaker(core.CLOSED, 0, 0, 0, 0, 0, 0, -1, 0)


def ask(limits: Settings, world: Breaker, call: Call) -> tuple[Breaker, Call] | None:
    """A call asks to be let through."""
    if call.phase != NEW:
        return None
    state, verdict, permit = core.admit(breaker(world), limits, world.now)
    if verdict == core.ADMITTED:
        return with_breaker(world, state), Call(OUT, verdict, permit, False, world.era, world.resets, -1)
    if verdict == core.PROBE:
        after = with_breaker(world, state)._replace(era=world.era + 1)
        return after, Call(OUT, verdict, permit, True, world.era + 1, world.resets, world.now + limits.lease)
    return with_breaker(world, state), call._replace(phase=DENIED, verdict=verdict, permit=permit)


def end(limits: Settings, world: Breaker, call: Call, outcome: int) -> tuple[Breaker, Call] | None:
    """A call succeeds, fails, or neither, late or not."""
    if call.phase != OUT or outcome < core.SUCCESS or outcome > core.NEITHER:
        return None
    after = with_breaker(world, core.report(breaker(world), limits, call.permit, outcome, world.now))
    ended = call._replace(phase=OVER)
    if call.era != world.era or world.mode == core.OPEN:
        return after, ended
    if after.mode != world.mode:
        opened = world.now if outcome == core.FAILURE else world.opened_at
        since = -1 if after.mode == core.CLOSED else opened
        return after._replace(era=world.era + 1, streak=0, opened_at=since), ended
    if outcome == core.FAILURE:
        return after._replace(streak=world.streak + 1), ended
    return after._replace(streak=0 if outcome == core.SUCCESS else world.streak), ended


def reset(world: Breaker) -> Breaker:
    """The breaker is reset by hand."""
    after = with_breaker(world, core.reset(breaker(world)))
    return after._replace(era=world.era + 1, streak=0, opened_at=-1, resets=world.resets + 1)


def tick(world: Breaker, later: int) -> Breaker | None:
    """Time passes."""
    if later < world.now:
        return None
    return world._replace(now=later)


def makes_sense(limits: Settings) -> bool:
    """At least one failure opens it, and a lease is longer than nothing."""
    return limits.threshold >= 1 and limits.recovery >= 0 and limits.lease >= 1


def well_formed(world: Breaker) -> bool:
    """The breaker is closed, open or probing, and remembers when it opened unless it is closed."""
    known = world.mode == core.CLOSED or world.mode == core.OPEN or world.mode == core.PROBING
    since = world.opened_at == -1 if world.mode == core.CLOSED else 0 <= world.opened_at <= world.now
    return known and since and world.era >= 0 and world.resets >= 0 and world.now >= 0


def failures_are_those_in_a_row(limits: Settings, world: Breaker) -> bool:
    """A closed breaker counts the failures in a row of its own time, and has fewer than open it."""
    return world.mode != core.CLOSED or (world.failures == world.streak and 0 <= world.streak < limits.threshold)


def keeps_what_it_needs_only(world: Breaker) -> bool:
    """A closed breaker keeps no time, and one that is not closed no failures: neither comes back later."""
    return world.until == 0 if world.mode == core.CLOSED else world.failures == 0


def every_change_is_a_generation(world: Breaker) -> bool:
    """Each opening, closing, reset and probe begins a new generation."""
    return world.generation == world.era


def permits_say_when(world: Breaker, call: Call) -> bool:
    """A permit carries the time in which it was given, none is from the future, and a call without one is no probe."""
    if call.phase == NEW or call.phase == DENIED:
        return call.permit == core.NO_PERMIT and not call.probe
    return call.permit == call.era and call.era <= world.era and call.resets <= world.resets


def closed_in_a_probes_era(world: Breaker, call: Call) -> bool:
    """A probe is only ever current while the breaker is probing."""
    return (
        call.phase == NEW or call.phase == DENIED or call.era != world.era or call.probe == (world.mode == core.PROBING)
    )


def stays_open(limits: Settings, world: Breaker) -> bool:
    """After opening, the breaker stays open for the recovery time."""
    return world.mode != core.OPEN or world.until >= world.opened_at + limits.recovery


def probes_after_the_recovery(limits: Settings, world: Breaker) -> bool:
    """A probe goes only once the recovery time has passed."""
    return world.mode != core.PROBING or world.now >= world.opened_at + limits.recovery


def a_lease_keeps_the_slot(world: Breaker, call: Call) -> bool:
    """A probe that is out keeps the slot until its lease is over, unless the breaker is reset by hand."""
    leased = call.phase == OUT and call.probe and world.now < call.lease_until and call.resets == world.resets
    return not leased or (world.mode == core.PROBING and call.era == world.era and world.until == call.lease_until)


def one_probe_each_era(call: Call, other: Call) -> bool:
    """No two probes have the same permit."""
    both = call.probe and other.probe
    return not both or call.era != other.era


def one_probe_at_a_time(world: Breaker, call: Call, other: Call) -> bool:
    """No two probes are out at once within their leases, unless the breaker was reset by hand between them."""
    both = call.phase == OUT and other.phase == OUT and call.probe and other.probe
    leased = world.now < call.lease_until and world.now < other.lease_until
    return not (both and leased and call.resets == world.resets and other.resets == world.resets)


def no_state_is_a_trap(limits: Settings, world: Breaker) -> bool:
    """No wait ends later than the recovery time or the lease from now, whichever is longer, whatever was lost."""
    if world.mode == core.CLOSED:
        return True
    return world.until <= world.now + limits.recovery or world.until <= world.now + limits.lease


def nothing_before_the_recovery(limits: Settings, world: Breaker, call_after: Call) -> bool:
    """Once it has opened, nothing is let through until the recovery time has passed."""
    return call_after.phase != OUT or world.opened_at < 0 or world.now >= world.opened_at + limits.recovery


def let_through_whenever_possible(world: Breaker, call_after: Call) -> bool:
    """A call is let through if, and only if, it is closed, or its cooldown or the probe's lease is over."""
    closed = world.mode == core.CLOSED
    over = world.now >= world.until
    return (call_after.phase == OUT) == (closed or over) and call_after.probe == (not closed and over)


def denied_for_what_is_so(world: Breaker, after: Breaker, call_after: Call) -> bool:
    """A denial says whether it cools down or a probe is out, and changes nothing."""
    if call_after.phase != DENIED:
        return True
    return after == world and call_after.verdict == (core.COOLING if world.mode == core.OPEN else core.PROBE_OUT)


def a_permit_of_a_closed_breaker_changes_nothing(world: Breaker, after: Breaker, call_after: Call) -> bool:
    """To let a call through a closed breaker changes nothing."""
    return world.mode != core.CLOSED or (after == world and call_after.verdict == core.ADMITTED)


def stale_results_change_nothing(world: Breaker, after: Breaker, call: Call) -> bool:
    """A result of a call that was let through before the last change is stale, and changes nothing."""
    return call.era == world.era or after == world


def opened_by_failures_in_a_row(limits: Settings, world: Breaker, after: Breaker, call: Call, outcome: int) -> bool:
    """A closed breaker opens if, and only if, a current failure is the last of the threshold in a row."""
    if world.mode != core.CLOSED:
        return True
    last = call.era == world.era and outcome == core.FAILURE and world.streak + 1 >= limits.threshold
    return after.mode == (core.OPEN if last else core.CLOSED)


def closed_by_its_probe_only(world: Breaker, after: Breaker, call: Call, outcome: int) -> bool:
    """A breaker that is not closed closes if, and only if, the current probe succeeds."""
    if world.mode == core.CLOSED:
        return True
    current = call.probe and call.era == world.era
    return (after.mode == core.CLOSED) == (current and outcome == core.SUCCESS)


def a_failed_probe_opens_for_as_long_again(
    limits: Settings, world: Breaker, after: Breaker, call: Call, outcome: int
) -> bool:
    """A probe that fails opens the breaker for the recovery time again."""
    current = call.probe and call.era == world.era
    return (
        not current
        or outcome != core.FAILURE
        or (after.mode == core.OPEN and after.until == world.now + limits.recovery)
    )


def opened_for_the_recovery(limits: Settings, world: Breaker, after: Breaker) -> bool:
    """A breaker that opens by failures does so for exactly the recovery time."""
    opens = world.mode == core.CLOSED and after.mode == core.OPEN
    return not opens or after.until == world.now + limits.recovery


def a_probe_that_did_not_run_frees_its_slot(world: Breaker, after: Breaker, call: Call, outcome: int) -> bool:
    """A probe that neither succeeds nor fails leaves the slot to the next one at once."""
    current = call.probe and call.era == world.era
    return not current or outcome != core.NEITHER or (after.mode == core.OPEN and after.until <= world.now)


def reset_closes(after: Breaker) -> bool:
    """A reset closes the breaker, without a failure."""
    return after.mode == core.CLOSED and after.failures == 0


def it_opens(world: Breaker) -> bool:
    """A breaker opens."""
    return world.mode == core.OPEN


def a_probe_closes_it(world: Breaker, call: Call) -> bool:
    """A probe closes the breaker."""
    return world.mode == core.CLOSED and call.probe and call.phase == OVER and world.resets == 0


def a_lost_probe_is_followed(world: Breaker, call: Call, other: Call) -> bool:
    """After a probe is lost, another goes."""
    both = call.phase == OUT and other.phase == OUT and call.probe and other.probe
    return both and world.resets == 0 and call.era > other.era


def a_stale_success_comes(world: Breaker, call: Call) -> bool:
    """A call from before the opening ends while the breaker is open."""
    return world.mode == core.OPEN and call.phase == OVER and call.era == world.era - 1 and not call.probe


def breaker(world: Breaker) -> core.State:
    """The core's part of the state."""
    return (world.mode, world.generation, world.failures, world.until)


def with_breaker(world: Breaker, state: core.State) -> Breaker:
    """The same world with another state of the core."""
    return world._replace(mode=state[0], generation=state[1], failures=state[2], until=state[3])


BREAKER = Specification(
    name="breaker",
    whose=OURS,
    promise="An open breaker lets nothing through until it has cooled down, then one probe in each lease.",
    limits=Settings,
    world=Breaker,
    start=start,
    call=Call,
    new=Call(NEW, 0, -1, False, 0, 0, -1),
    actions=(ask, end, reset, tick),
    given=(makes_sense,),
    ghosts=(
        "era",
        "streak",
        "opened_at",
        "resets",
        "probe",
        "lease_until",
    ),
    trusted=(
        "each step is atomic, and each permit is reported once",
        "the clock never steps back",
    ),
    invariants=(
        Invariant("G4", well_formed),
        Invariant("G4", failures_are_those_in_a_row),
        Invariant("G4", keeps_what_it_needs_only),
        Invariant("G4", every_change_is_a_generation),
        Invariant("G4", permits_say_when),
        Invariant("G4", closed_in_a_probes_era),
        Invariant("G4", stays_open),
        Invariant("G4", probes_after_the_recovery),
        Invariant("G4", a_lease_keeps_the_slot),
        Invariant("G4", one_probe_each_era),
        Invariant("G4", one_probe_at_a_time),
        Invariant("G4", no_state_is_a_trap),
    ),
    laws=(
        Law("G4", nothing_before_the_recovery, (ask,)),
        Law("G4", let_through_whenever_possible, (ask,)),
        Law("G4", denied_for_what_is_so, (ask,)),
        Law("G4", a_permit_of_a_closed_breaker_changes_nothing, (ask,)),
        Law("G4", stale_results_change_nothing, (end,)),
        Law("G4", opened_by_failures_in_a_row, (end,)),
        Law("G4", closed_by_its_probe_only, (end,)),
        Law("G4", a_failed_probe_opens_for_as_long_again, (end,)),
        Law("G4", opened_for_the_recovery, (end,)),
        Law("G4", a_probe_that_did_not_run_frees_its_slot, (end,)),
        Law("G4", reset_closes, (reset,)),
    ),
    goals=(
        Goal("G4", it_opens),
        Goal("G4", a_probe_closes_it),
        Goal("G4", a_lost_probe_is_followed),
        Goal("G4", a_stale_success_comes),
    ),
    words={
        "mode": ("closed", "open", "probing"),
        "phase": ("new", "out", "over", "denied"),
        "verdict": ("let through", "probe", "cooling", "probe out"),
        "outcome": ("success", "failure", "neither"),
    },
    outcomes={
        "mode": (core.CLOSED, core.OPEN, core.PROBING),
        "phase": (OUT, OVER, DENIED),
        "verdict": (core.ADMITTED, core.PROBE, core.COOLING, core.PROBE_OUT),
        "outcome": (core.SUCCESS, core.FAILURE, core.NEITHER),
    },
)
