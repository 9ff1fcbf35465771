"""The spending limit that stays shut once it has refused: plain spends, and holds for calls that reserve first.

A reset begins a new period. What calls in flight hold then stays held, and is charged to the new period.
"""

from __future__ import annotations

from typing import NamedTuple

from failstop.models.claim import OURS
from failstop.models.specification import Goal, Invariant, Law, Specification
from failstop.runtime.cores import budget as core

NEW = 0
HOLDING = 1
ENDED = 2
RELEASED = 3
REFUSED = 4


class Limits(NamedTuple):
    """The limit; a negative one is none."""

    limit: int


class Budget(NamedTuple):
    """The core's state, and beside it the world: what was really paid in this period, in how many times, over what."""

    spent: int
    reserved: int
    calls: int
    shut: bool
    paid: int
    times: int
    over: int


class Call(NamedTuple):
    """One call that reserves."""

    phase: int
    verdict: int
    held: int


class Totals(NamedTuple):
    """Sums over all calls."""

    held: int


def start() -> Budget:
    """Nothing is spent."""
    return Budget(0, 0, 0, False, 0, 0, 0)


def spend(limits: Limits, world: Budget, amount: int) -> Budget | None:
    """Somebody spends an amount, if the budget lets them."""
    if amount < 0:
        return None
    state = core.spend(budget(world), limits.limit, amount)
    after = with_budget(world, state)
    if after.shut:
        return after
    return after._replace(paid=world.paid + amount, times=world.times + 1)


def hold(limits: Limits, world: Budget, call: Call, asked: int) -> tuple[Budget, Call] | None:
    """A call asks to reserve."""
    if call.phase != NEW or asked < core.NO_ESTIMATE:
        return None
    state, verdict, held = core.hold(budget(world), limits.limit, asked)
    after = with_budget(world, state)
    if verdict == core.ADMITTED:
        return after, Call(HOLDING, verdict, held)
    if verdict == core.CONTENDED:
        return after, call._replace(verdict=verdict, held=held)
    return after, call._replace(phase=REFUSED, verdict=verdict, held=held)


def settle(limits: Limits, world: Budget, call: Call, cost: int) -> tuple[Budget, Call] | None:
    """A call ends with its cost, be it more than it held or less."""
    if call.phase != HOLDING or cost < 0:
        return None
    after = with_budget(world, core.settle(budget(world), limits.limit, call.held, cost))
    over = cost - call.held if cost > call.held else 0
    return (
        after._replace(paid=world.paid + cost, times=world.times + 1, over=world.over + over),
        call._replace(phase=ENDED),
    )


def give_back(world: Budget, call: Call) -> tuple[Budget, Call] | None:
    """A call provably never starts."""
    if call.phase != HOLDING:
        return None
    return with_budget(world, core.release(budget(world), call.held)), call._replace(phase=RELEASED)


def reset(world: Budget) -> Budget:
    """A new period begins."""
    return with_budget(world, core.reset(budget(world)))._replace(paid=0, times=0, over=0)


def held(call: Call) -> int:
    """What a call holds."""
    return call.held if call.phase == HOLDING else 0


def well_formed(call: Call) -> bool:
    """A call holds nothing below zero."""
    return call.held >= 0


def all_is_recorded(world: Budget) -> bool:
    """What was really paid in this period is on record, in full and counted."""
    return world.spent == world.paid and world.calls == world.times and world.paid >= 0 and world.over >= 0


def reserved_is_held(world: Budget, total: Totals) -> bool:
    """What is reserved is what calls hold."""
    return world.reserved == total.held


def within_the_limit(limits: Limits, world: Budget) -> bool:
    """What is spent and held passes the limit by no more than calls cost beyond what they held."""
    return limits.limit < 0 or world.spent + world.reserved <= limits.limit + world.over


def holds_fit(limits: Limits, world: Budget) -> bool:
    """What is held alone fits into the limit."""
    return limits.limit < 0 or world.reserved <= limits.limit


def open_without_overrun(limits: Limits, world: Budget) -> bool:
    """A limited budget that is open has no overrun behind it."""
    return limits.limit < 0 or world.shut or world.over == 0


def spent_if_it_fits(limits: Limits, world: Budget, after: Budget, amount: int) -> bool:
    """An amount is spent if, and only if, the budget is open and it fits; else it shuts and records nothing."""
    fits = limits.limit < 0 or world.spent + world.reserved + amount <= limits.limit
    if world.shut or not fits:
        return after == world._replace(shut=True)
    return after == world._replace(
        spent=world.spent + amount, calls=world.calls + 1, paid=world.paid + amount, times=world.times + 1
    )


def a_refusal_is_for_good(world: Budget, after: Budget) -> bool:
    """A shut budget stays shut until a new period begins."""
    return after.shut or not world.shut


def held_if_it_fits(limits: Limits, world: Budget, after: Budget, call_after: Call, asked: int) -> bool:
    """A call holds what it asked for if, and only if, that fits, or else nothing; without an estimate all, alone."""
    left = limits.limit - world.spent
    if limits.limit < 0:
        fits = True
        wanted = 0
        if asked > 0:
            wanted = asked
    elif asked < 0:
        fits = world.reserved == 0 and left > 0
        wanted = left
    else:
        fits = world.reserved + asked <= left
        wanted = asked
    if world.shut or not fits:
        return call_after.phase != HOLDING and call_after.held == 0 and after.reserved == world.reserved
    return (
        call_after.phase == HOLDING
        and call_after.held == wanted
        and after == world._replace(reserved=world.reserved + wanted)
    )


def kept_out_only_by_other_holds(limits: Limits, world: Budget, after: Budget, call_after: Call, asked: int) -> bool:
    """A call is kept out for now if, and only if, it would fit without what others hold; then nothing is shut."""
    contended = call_after.phase == NEW and call_after.verdict == core.CONTENDED and after == world
    alone = world.spent + (asked if asked >= 0 else 1) <= limits.limit
    refused = call_after.phase == REFUSED and call_after.verdict == core.REFUSED and after == world._replace(shut=True)
    if call_after.phase == HOLDING:
        return True
    if asked < 0 and not world.shut:
        return contended if world.reserved > 0 else refused
    return contended if alone and not world.shut else refused


def an_overrun_shuts(limits: Limits, world: Budget, after: Budget, call: Call, cost: int) -> bool:
    """A cost above what was held shuts a limited budget, and nothing else that is settled does."""
    return after.shut == (world.shut or (limits.limit >= 0 and cost > call.held))


def given_back_whole(world: Budget, after: Budget, call: Call) -> bool:
    """A call that never started gives back its hold and changes nothing else."""
    return after == world._replace(reserved=world.reserved - call.held)


def begun_anew(world: Budget, after: Budget) -> bool:
    """A new period begins with nothing spent, open, and with what is still held."""
    return after == Budget(0, world.reserved, 0, False, 0, 0, 0)


def the_limit_is_reached(limits: Limits, world: Budget) -> bool:
    """The whole limit is spent, to the last nano-dollar, without an overrun."""
    return limits.limit > 0 and world.paid == limits.limit and world.over == 0 and world.times > 1


def the_overrun_is_reached(limits: Limits, world: Budget) -> bool:
    """Limit and overrun are spent exactly."""
    return limits.limit > 0 and world.over > 0 and world.paid == limits.limit + world.over


def kept_out(call: Call) -> bool:
    """A call is kept out for now."""
    return call.phase == NEW and call.verdict == core.CONTENDED


def budget(world: Budget) -> core.State:
    """The core's part of the state."""
    return (world.spent, world.reserved, world.calls, world.shut)


def with_budget(world: Budget, state: core.State) -> Budget:
    """The same world with another state of the core."""
    return world._replace(spent=state[0], reserved=state[1], calls=state[2], shut=state[3])


BUDGET = Specification(
    name="budget",
    whose=OURS,
    promise="Spent and held pass the limit by overruns alone; once it refused or overran, it is shut until a reset.",
    limits=Limits,
    world=Budget,
    start=start,
    call=Call,
    new=Call(NEW, 0, 0),
    actions=(spend, hold, settle, give_back, reset),
    totals=Totals,
    terms=(held,),
    ghosts=(
        "paid",
        "times",
        "over",
    ),
    trusted=(
        "each step is atomic, and each hold is settled or given back once",
        "a call that is given back never ran",
    ),
    invariants=(
        Invariant("G1", well_formed),
        Invariant("G1", all_is_recorded),
        Invariant("G1", reserved_is_held),
        Invariant("G1", within_the_limit),
        Invariant("G1", holds_fit),
        Invariant("G1", open_without_overrun),
    ),
    laws=(
        Law("G1", spent_if_it_fits, (spend,)),
        Law("halt", a_refusal_is_for_good, (spend, hold, settle, give_back)),
        Law("G1", held_if_it_fits, (hold,)),
        Law("G1", kept_out_only_by_other_holds, (hold,)),
        Law("G1", an_overrun_shuts, (settle,)),
        Law("G1", given_back_whole, (give_back,)),
        Law("G1", begun_anew, (reset,)),
    ),
    goals=(Goal("G1", the_limit_is_reached), Goal("G1", the_overrun_is_reached), Goal("G1", kept_out)),
    words={
        "phase": ("new", "holding", "ended", "released", "refused"),
        "verdict": ("let through", "refused", "wait"),
    },
    outcomes={
        "phase": (HOLDING, ENDED, RELEASED, REFUSED),
        "verdict": (core.ADMITTED, core.REFUSED, core.CONTENDED),
        "asked": (core.NO_ESTIMATE, 0),
        "amount": (0,),
        "cost": (0,),
        "shut": (False, True),
    },
)
