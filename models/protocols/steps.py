"""The step guard of one agent: any number of calls take steps, give them back, and somebody begins anew meanwhile.

The core counts; the era, by which a call from before a reset gives nothing back, is the shell's (AgentStepGuard), and
is modelled here as it is there: a call keeps the era as its permit, and a release takes the permit away. Which era is
spoken of is left open, as a constant of which nothing is known, so what is proved holds for each. What has to be
trusted, and is tested elsewhere: that the shell makes each step atomic.
"""

from __future__ import annotations

from typing import NamedTuple

from failstop.models.claim import OURS
from failstop.models.specification import Goal, Invariant, Law, Specification
from failstop.runtime.cores import steps as core

NEW = 0
ADMITTED = 1
GIVEN_BACK = 2
REFUSED = 3

NO_PERMIT = -1


class Limits(NamedTuple):
    """The ceiling, of which a negative one is none; and any one era, to speak of."""

    max_steps: int
    era: int


class Guard(NamedTuple):
    """The core's counter, and how often the guard has begun anew."""

    taken: int
    era: int


class Call(NamedTuple):
    """One call that asks for a step; its permit is the era in which it got one."""

    phase: int
    era: int
    permit: int


class Totals(NamedTuple):
    """Sums over the calls of that one era."""

    taken: int


def start() -> Guard:
    """A guard begins."""
    return Guard(0, 0)


def check(limits: Limits, world: Guard, call: Call) -> tuple[Guard, Call] | None:
    """A call asks for its step."""
    if call.phase != NEW:
        return None
    taken, admitted = core.step(world.taken, limits.max_steps)
    after = Call(ADMITTED, world.era, world.era) if admitted else Call(REFUSED, world.era, NO_PERMIT)
    return world._replace(taken=taken), after


def release(world: Guard, call: Call) -> tuple[Guard, Call]:
    """A call gives its step back, whether it has one or not."""
    taken = core.give_back(world.taken) if call.permit == world.era else world.taken
    phase = GIVEN_BACK if call.phase == ADMITTED else call.phase
    return world._replace(taken=taken), Call(phase, call.era, NO_PERMIT)


def reset(world: Guard) -> Guard:
    """The guard begins anew."""
    return Guard(0, world.era + 1)


def give_back_nothing(world: Guard) -> Guard | None:
    """A step is given back by mistake when none is taken."""
    if world.taken != 0:
        return None
    return world._replace(taken=core.give_back(world.taken))


def taken(limits: Limits, call: Call) -> int:
    """One for a call that got its step in that era and did not give it back."""
    return 1 if call.phase == ADMITTED and call.era == limits.era else 0


def well_formed(world: Guard) -> bool:
    """Neither the steps nor the eras are ever below zero."""
    return world.taken >= 0 and world.era >= 0


def permits_are_of_their_era(world: Guard, call: Call) -> bool:
    """A call has a permit if, and only if, it has a step, and both are of the era in which it asked, which has come."""
    permit = call.era if call.phase == ADMITTED else NO_PERMIT
    return call.permit == permit and (call.phase == NEW or 0 <= call.era <= world.era) and call.phase <= REFUSED


def steps_are_counted(limits: Limits, world: Guard, total: Totals) -> bool:
    """The counter is the number of calls that got a step in this era and did not give it back."""
    if world.era < limits.era:
        return total.taken == 0
    return world.era > limits.era or world.taken == total.taken


def within_the_steps(limits: Limits, total: Totals) -> bool:
    """No more calls than the ceiling says have a step, whichever era it is."""
    return limits.max_steps < 0 or total.taken <= limits.max_steps


def admitted_whenever_possible(limits: Limits, world: Guard, total: Totals, call_after: Call) -> bool:
    """A call gets a step if, and only if, fewer calls of this era have one than the ceiling says."""
    if world.era != limits.era:
        return True
    return (call_after.phase == ADMITTED) == (limits.max_steps < 0 or total.taken < limits.max_steps)


def a_step_counts_once(world: Guard, after: Guard, call_after: Call) -> bool:
    """A step that is taken counts one; a refusal counts nothing."""
    return after == world._replace(taken=world.taken + (1 if call_after.phase == ADMITTED else 0))


def given_back_once(limits: Limits, world: Guard, after: Guard, call: Call) -> bool:
    """Only a step of this era that the call still has is given back, and only once."""
    if world.era != limits.era:
        return True
    gives = call.phase == ADMITTED and call.era == world.era
    return after == world._replace(taken=world.taken - (1 if gives else 0))


def nothing_comes_of_nothing(world: Guard, after: Guard) -> bool:
    """Giving back what nobody has taken opens no room for one step more."""
    return after == world


def the_steps_are_reached(limits: Limits, total: Totals) -> bool:
    """As many calls run as the ceiling says, and not one fewer."""
    return limits.max_steps > 1 and total.taken == limits.max_steps


def one_too_many_is_refused(call: Call) -> bool:
    """A call is refused because all steps are taken."""
    return call.phase == REFUSED


def a_step_from_before_a_reset_comes_back(limits: Limits, world: Guard, total: Totals, call: Call) -> bool:
    """A call of an earlier era gives its step back, while all steps of this one stay taken."""
    full = world.era == limits.era and 0 < limits.max_steps == total.taken
    return full and call.phase == GIVEN_BACK and call.era < world.era


STEPS = Specification(
    name="steps",
    whose=OURS,
    promise="Exactly as many steps are admitted as the ceiling says, by any number of calls.",
    limits=Limits,
    world=Guard,
    start=start,
    call=Call,
    new=Call(NEW, 0, NO_PERMIT),
    actions=(check, release, reset, give_back_nothing),
    totals=Totals,
    terms=(taken,),
    trusted=(
        "each step is atomic",
        "a call keeps the era of its permit, and gives a step back no more after that",
    ),
    invariants=(
        Invariant("G2", well_formed),
        Invariant("G2", permits_are_of_their_era),
        Invariant("G2", steps_are_counted),
        Invariant("G2", within_the_steps),
    ),
    laws=(
        Law("G2", admitted_whenever_possible, (check,)),
        Law("G2", a_step_counts_once, (check,)),
        Law("G2", given_back_once, (release,)),
        Law("G2", nothing_comes_of_nothing, (give_back_nothing,)),
    ),
    goals=(
        Goal("G2", the_steps_are_reached),
        Goal("G2", one_too_many_is_refused),
        Goal("G2", a_step_from_before_a_reset_comes_back),
    ),
    outcomes={"phase": (ADMITTED, GIVEN_BACK, REFUSED)},
    words={"phase": ("new", "admitted", "given back", "refused")},
)
