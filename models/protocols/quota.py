"""A tenant's quota: the runs of an hour and the money of a day, for any number of runs, and for any hour and any day.

Which hour and which day is left open, as a constant of which nothing is known: what is proved of that one window holds
for every window, the current one and those that are over. What has to be trusted, and is tested elsewhere: that the
shell makes each step atomic, begins the windows that have come in the same step, closes each ticket once, and that a
run costs at most its hold when nobody learns its bill. A ticket that is lost stays as it is.
"""

from __future__ import annotations

from typing import NamedTuple

from failstop.models.claim import OURS
from failstop.models.specification import Goal, Invariant, Law, Specification
from failstop.runtime.cores import quota as core

NEW = 0
RUNNING = 1
ENDED = 2
RELEASED = 3
REFUSED = 4


class Limits(NamedTuple):
    """The ceilings, of which a negative one is none; and any one hour and any one day, to speak of."""

    max_runs: int
    max_spend: int
    hour: int
    day: int


class Tenant(NamedTuple):
    """The core's state: the latest windows, and what is used in them."""

    hour: int
    runs: int
    day: int
    spent: int
    reserved: int


class Run(NamedTuple):
    """One run: the windows in which it started, what it held and was charged, and its real bill."""

    phase: int
    verdict: int
    hour: int
    day: int
    held: int
    charged: int
    bill: int


class Totals(NamedTuple):
    """Sums over the runs that started in that one hour, or on that one day."""

    runs: int
    held: int
    charged: int
    billed: int
    excess: int


def start() -> Tenant:
    """A tenant is seen for the first time."""
    return Tenant(0, 0, 0, 0, 0)


def roll(world: Tenant, hour: int, day: int) -> Tenant:
    """The clock is read."""
    return tenant(core.roll(quota(world), hour, day))


def forget(world: Tenant, hour: int, day: int) -> Tenant | None:
    """A tenant that has used no money is forgotten with the hour, and comes again."""
    if hour <= world.hour or day < world.day:
        return None
    rolled = tenant(core.roll(quota(world), hour, day))
    if rolled.spent > 0 or rolled.reserved > 0:
        return None
    return tenant(core.roll(quota(start()), hour, day))


def begin(limits: Limits, world: Tenant, call: Run, asked: int) -> tuple[Tenant, Run] | None:
    """A run asks to start."""
    if call.phase != NEW or asked < core.NO_BOUND:
        return None
    state, verdict, held = core.start(quota(world), (limits.max_runs, limits.max_spend), asked)
    phase = RUNNING if verdict == core.STARTED else NEW if verdict == core.CONTENDED else REFUSED
    return tenant(state), Run(phase, verdict, world.hour, world.day, held, 0, 0)


def returns(world: Tenant, call: Run, cost: int) -> tuple[Tenant, Run] | None:
    """A run ends and says what it cost."""
    if call.phase != RUNNING or cost < 0:
        return None
    state = core.settle(quota(world), call.day, call.held, cost)
    return tenant(state), call._replace(phase=ENDED, charged=cost, bill=cost)


def fails(world: Tenant, call: Run, bill: int) -> tuple[Tenant, Run] | None:
    """A run ends and nobody learns its bill."""
    if call.phase != RUNNING or bill < 0 or bill > call.held:
        return None
    state = core.settle(quota(world), call.day, call.held, call.held)
    return tenant(state), call._replace(phase=ENDED, charged=call.held, bill=bill)


def release(world: Tenant, call: Run) -> tuple[Tenant, Run] | None:
    """A run is given back because nothing ran."""
    if call.phase != RUNNING:
        return None
    state = core.release(quota(world), call.hour, call.day, call.held)
    return tenant(state), call._replace(phase=RELEASED)


def runs(limits: Limits, call: Run) -> int:
    """One for a run that started in that hour and was not given back."""
    return 1 if has_started(call) and call.hour == limits.hour else 0


def held(limits: Limits, call: Run) -> int:
    """What a run that started on that day still holds."""
    return call.held if call.phase == RUNNING and call.day == limits.day else 0


def charged(limits: Limits, call: Run) -> int:
    """What a run that started on that day was charged."""
    return call.charged if call.phase == ENDED and call.day == limits.day else 0


def billed(limits: Limits, call: Run) -> int:
    """What a run that started on that day really cost."""
    return call.bill if call.phase == ENDED and call.day == limits.day else 0


def excess(limits: Limits, call: Run) -> int:
    """What a run that started on that day did cost beyond its hold."""
    beyond = call.phase == ENDED and call.day == limits.day and call.charged > call.held
    return call.charged - call.held if beyond else 0


def well_formed(call: Run) -> bool:
    """A run holds nothing below zero, and costs no more than it is charged."""
    return call.held >= 0 and 0 <= call.bill <= call.charged and NEW <= call.phase <= REFUSED


def windows_are_counted_from_zero(world: Tenant) -> bool:
    """No window comes before the one in which a new tenant begins."""
    return world.hour >= 0 and world.day >= 0


def started_in_no_later_window(world: Tenant, call: Run) -> bool:
    """No run has started in a window that has not come."""
    return not has_started(call) or (call.hour <= world.hour and call.day <= world.day)


def runs_are_counted(limits: Limits, world: Tenant, total: Totals) -> bool:
    """The current hour's counter is the number of runs that started in it and were not given back."""
    if world.hour < limits.hour:
        return total.runs == 0
    return world.hour > limits.hour or world.runs == total.runs


def within_the_runs(limits: Limits, total: Totals) -> bool:
    """No more runs start in an hour, and are not given back, than its limit says, whichever hour it is."""
    return limits.max_runs < 0 or total.runs <= limits.max_runs


def money_is_counted(limits: Limits, world: Tenant, total: Totals) -> bool:
    """The current day's books hold what its own runs were charged and still hold, and nothing of another day."""
    if world.day < limits.day:
        return total.held == 0 and total.charged == 0
    return world.day > limits.day or (world.spent == total.charged and world.reserved == total.held)


def every_bill_is_charged(total: Totals) -> bool:
    """Every dollar that a run really cost is charged to the day in which it started."""
    return total.billed <= total.charged


def within_the_money(limits: Limits, total: Totals) -> bool:
    """The runs of a day cost and hold no more than its limit and what runs did cost beyond their holds, for ever."""
    return limits.max_spend < 0 or total.billed + total.held <= limits.max_spend + total.excess


def charges_within_the_money(limits: Limits, total: Totals) -> bool:
    """The same holds of what the runs of a day are charged, which may be more than they cost."""
    return limits.max_spend < 0 or total.charged + total.held <= limits.max_spend + total.excess


def windows_move_forward(world: Tenant, after: Tenant) -> bool:
    """Neither the hour nor the day ever goes back."""
    return after.hour >= world.hour and after.day >= world.day


def only_a_later_window_begins_anew(world: Tenant, after: Tenant, hour: int, day: int) -> bool:
    """A later hour begins with no runs and a later day with no money used; an earlier one, or the same, is ignored."""
    if hour > world.hour and day > world.day:
        return after == Tenant(hour, 0, day, 0, 0)
    if hour > world.hour:
        return after == world._replace(hour=hour, runs=0)
    if day > world.day:
        return after == world._replace(day=day, spent=0, reserved=0)
    return after == world


def forgetting_loses_nothing(after: Tenant, hour: int, day: int) -> bool:
    """A tenant that was forgotten comes back to what its windows would have come to."""
    return after == Tenant(hour, 0, day, 0, 0)


def started_whenever_possible(limits: Limits, world: Tenant, call_after: Run, asked: int) -> bool:
    """A run starts if, and only if, the hour has room for it and the day has the money."""
    fits = limits.max_spend < 0 or world.spent + world.reserved + least(asked) <= limits.max_spend
    return (call_after.phase == RUNNING) == (has_room(limits, world) and fits)


def started_in_full(limits: Limits, world: Tenant, after: Tenant, call_after: Run, asked: int) -> bool:
    """A run that starts is counted once and holds what it asked for; one without a bound all that is left."""
    if call_after.phase != RUNNING:
        return True
    left = 0 if limits.max_spend < 0 else limits.max_spend - world.spent - world.reserved
    hold = left if asked < 0 else asked
    counted = after == world._replace(runs=world.runs + 1, reserved=world.reserved + hold)
    return counted and call_after.held == hold and call_after.verdict == core.STARTED


def refused_for_what_is_so(limits: Limits, world: Tenant, after: Tenant, call_after: Run, asked: int) -> bool:
    """A refusal changes nothing, and says truly which limit it is that has no room left."""
    if call_after.phase != REFUSED:
        return True
    spends_too_much = limits.max_spend >= 0 and world.spent + least(asked) > limits.max_spend
    reason = core.SPEND if has_room(limits, world) and spends_too_much else core.RUNS
    truly = spends_too_much or not has_room(limits, world)
    return truly and call_after.verdict == reason and call_after.held == 0 and after == world


def kept_out_only_by_runs_in_flight(limits: Limits, world: Tenant, after: Tenant, call_after: Run, asked: int) -> bool:
    """A run is told to wait if, and only if, it would start if the runs in flight cost nothing."""
    room = has_room(limits, world) and limits.max_spend >= 0
    fits_alone = world.spent + least(asked) <= limits.max_spend
    fits = world.spent + world.reserved + least(asked) <= limits.max_spend
    waits = call_after.verdict == core.CONTENDED
    if waits != (room and fits_alone and not fits):
        return False
    return not waits or (after == world and call_after.phase == NEW and call_after.held == 0)


def charged_what_it_cost(world: Tenant, after: Tenant, call: Run, cost: int) -> bool:
    """A run is charged what it cost on the day in which it started; a day that is over is closed, another untouched."""
    if call.day != world.day:
        return after == world
    return after == world._replace(spent=world.spent + cost, reserved=world.reserved - call.held)


def charged_all_that_it_held(world: Tenant, after: Tenant, call: Run) -> bool:
    """A run of which nobody knows the bill is charged all that it held, on the day in which it started."""
    if call.day != world.day:
        return after == world
    return after == world._replace(spent=world.spent + call.held, reserved=world.reserved - call.held)


def given_back_where_it_was_taken(world: Tenant, after: Tenant, call: Run) -> bool:
    """A run is given back to its own hour and its money to its own day; windows that are over get nothing."""
    runs_left = world.runs - (1 if call.hour == world.hour else 0)
    reserved_left = world.reserved - (call.held if call.day == world.day else 0)
    return after == world._replace(runs=runs_left, reserved=reserved_left)


def the_runs_are_reached(limits: Limits, total: Totals) -> bool:
    """As many runs start in an hour as its limit allows."""
    return limits.max_runs > 1 and total.runs == limits.max_runs


def the_money_is_reached(limits: Limits, total: Totals) -> bool:
    """The runs of a day really cost its whole limit, to the last nano-dollar."""
    return limits.max_spend > 0 and total.billed == limits.max_spend and total.excess == 0


def the_excess_is_reached(limits: Limits, total: Totals) -> bool:
    """The bound with overruns is tight: limit and excess are spent exactly."""
    return limits.max_spend > 0 and total.excess > 0 and total.billed == limits.max_spend + total.excess


def the_hour_is_full(call: Run) -> bool:
    """A run is refused because the hour is full."""
    return call.phase == REFUSED and call.verdict == core.RUNS


def the_money_is_spent(limits: Limits, call: Run) -> bool:
    """A run is refused because the day's money is spent."""
    return limits.max_spend > 0 and call.verdict == core.SPEND


def runs_in_flight_hold_the_money(call: Run) -> bool:
    """A run has to wait because runs in flight hold the money."""
    return call.verdict == core.CONTENDED


def a_run_ends_after_its_day(world: Tenant, call: Run) -> bool:
    """A run ends on another day than it started, with a bill."""
    return call.phase == ENDED and call.bill > 0 and call.day < world.day


def the_next_day_has_its_own_money(limits: Limits, world: Tenant, call: Run, other: Run) -> bool:
    """Two runs each cost the whole limit, because each has a day of its own."""
    spent = call.bill == limits.max_spend and other.bill == limits.max_spend and limits.max_spend > 0
    return spent and call.day < other.day and world.spent == limits.max_spend


def quota(world: Tenant) -> core.State:
    """The state as the core takes it."""
    return (world.hour, world.runs, world.day, world.spent, world.reserved)


def tenant(state: core.State) -> Tenant:
    """The state as the core gives it."""
    return Tenant(state[0], state[1], state[2], state[3], state[4])


def has_started(call: Run) -> bool:
    """Whether a run started and was not given back."""
    return call.phase == RUNNING or call.phase == ENDED


def has_room(limits: Limits, world: Tenant) -> bool:
    """Whether the hour has room for one more run."""
    return limits.max_runs < 0 or world.runs < limits.max_runs


def least(asked: int) -> int:
    """The least with which a run can start: what it asks for, or anything at all if it has no bound."""
    return 1 if asked < 0 else asked


QUOTA = Specification(
    name="quota",
    whose=OURS,
    promise="However many runs a tenant starts, no hour has more of them and no day costs more than its limit.",
    limits=Limits,
    world=Tenant,
    start=start,
    call=Run,
    new=Run(NEW, 0, 0, 0, 0, 0, 0),
    actions=(roll, forget, begin, returns, fails, release),
    totals=Totals,
    terms=(runs, held, charged, billed, excess),
    at_most=(("billed", "charged"),),
    ghosts=(
        "charged",
        "bill",
    ),
    trusted=(
        "each step is atomic, and begins the windows that have come",
        "each ticket is closed once",
        "a run costs no more than it holds when nobody learns its bill",
    ),
    invariants=(
        Invariant("quota", well_formed),
        Invariant("quota", windows_are_counted_from_zero),
        Invariant("quota", started_in_no_later_window),
        Invariant("quota", runs_are_counted),
        Invariant("quota", within_the_runs),
        Invariant("quota", money_is_counted),
        Invariant("quota", every_bill_is_charged),
        Invariant("quota", within_the_money),
        Invariant("quota", charges_within_the_money),
    ),
    laws=(
        Law("quota", windows_move_forward),
        Law("quota", only_a_later_window_begins_anew, (roll,)),
        Law("quota", forgetting_loses_nothing, (forget,)),
        Law("quota", started_whenever_possible, (begin,)),
        Law("quota", started_in_full, (begin,)),
        Law("quota", refused_for_what_is_so, (begin,)),
        Law("quota", kept_out_only_by_runs_in_flight, (begin,)),
        Law("quota", charged_what_it_cost, (returns,)),
        Law("quota", charged_all_that_it_held, (fails,)),
        Law("quota", given_back_where_it_was_taken, (release,)),
    ),
    goals=(
        Goal("quota", the_runs_are_reached),
        Goal("quota", the_money_is_reached),
        Goal("quota", the_excess_is_reached),
        Goal("quota", the_hour_is_full),
        Goal("quota", the_money_is_spent),
        Goal("quota", runs_in_flight_hold_the_money),
        Goal("quota", a_run_ends_after_its_day),
        Goal("quota", the_next_day_has_its_own_money),
    ),
    words={
        "phase": ("new", "running", "ended", "given back", "refused"),
        "verdict": ("started", "no run left", "no money left", "wait"),
    },
    outcomes={
        "phase": (RUNNING, ENDED, RELEASED, REFUSED),
        "verdict": (core.STARTED, core.RUNS, core.SPEND, core.CONTENDED),
        "asked": (core.NO_BOUND, 0),
        "cost": (0,),
        "bill": (0,),
    },
)
