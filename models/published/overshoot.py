"""How far the published cost check lets real cost pass the ceiling, exactly (G1).

The same protocol as in `cost`, and one check more in its favour: nothing enters once the ceiling is recorded in full,
as the package does. Real cost is then at most the ceiling less one, and as much as a call may cost for each of the most
calls that were ever in flight at once; and that much can be reached.
"""

from __future__ import annotations

from typing import NamedTuple

from failstop.models.claim import PUBLISHED
from failstop.models.specification import Goal, Invariant, Specification

NEW = 0
RUNNING = 1
RECORDED = 2
NOT_RECORDED = 3


class Limits(NamedTuple):
    """The ceiling, and the most that any call costs."""

    max_cost: int
    most: int


class Chain(NamedTuple):
    """What the context keeps, and ghosts: how many calls are in flight, and the most that ever were."""

    accumulated: int
    aborted: bool
    in_flight: int
    at_once: int


class Call(NamedTuple):
    """One call; `bill` is what it really cost, `most` what it may cost from when it runs."""

    phase: int
    bill: int
    most: int


class Totals(NamedTuple):
    """Sums over all calls: billed, billed but not recorded, what those not recorded may cost at most, how many run."""

    billed: int
    unrecorded: int
    at_most: int
    running: int
    lost: int


def start() -> Chain:
    """A chain begins."""
    return Chain(0, False, 0, 0)


def admissible(limits: Limits) -> bool:
    """The ceiling is not negative, and calls cost something."""
    return limits.max_cost >= 0 and limits.most >= 1


def asks(limits: Limits, world: Chain, call: Call) -> tuple[Chain, Call] | None:
    """A call asks, and runs unless the chain is aborted or its ceiling is recorded in full."""
    if call.phase != NEW or world.aborted or world.accumulated >= limits.max_cost:
        return None
    at_once = world.at_once + 1 if world.in_flight == world.at_once else world.at_once
    after = world._replace(in_flight=world.in_flight + 1, at_once=at_once)
    return after, Call(RUNNING, 0, limits.most)


def returns(limits: Limits, world: Chain, call: Call, cost: int) -> tuple[Chain, Call] | None:
    """A call returns, and its cost is committed."""
    if call.phase != RUNNING or cost < 0 or cost > call.most:
        return None
    after = world._replace(in_flight=world.in_flight - 1)
    projected = world.accumulated + cost
    if projected > limits.max_cost:
        return after._replace(aborted=True), call._replace(phase=NOT_RECORDED, bill=cost)
    return after._replace(accumulated=projected), call._replace(phase=RECORDED, bill=cost)


def billed(call: Call) -> int:
    """What a call really cost."""
    return call.bill


def unrecorded(call: Call) -> int:
    """What a call cost and nobody recorded."""
    return call.bill if call.phase == NOT_RECORDED else 0


def at_most(call: Call) -> int:
    """The most that is not on record of a call."""
    return call.most if call.phase == RUNNING or call.phase == NOT_RECORDED else 0


def running(call: Call) -> int:
    """One for a call in flight."""
    return 1 if call.phase == RUNNING else 0


def lost(call: Call) -> int:
    """One for a call whose cost was not recorded."""
    return 1 if call.phase == NOT_RECORDED else 0


def well_formed(limits: Limits, call: Call) -> bool:
    """A call that runs may cost the most; it is billed that at most."""
    if not NEW <= call.phase <= NOT_RECORDED:
        return False
    if call.phase == NEW:
        return call.bill == 0 and call.most == 0
    if call.phase == RUNNING and call.bill != 0:
        return False
    return call.most == limits.most and 0 <= call.bill <= call.most


def the_ledger_stays_below(limits: Limits, world: Chain) -> bool:
    """What is recorded never passes the ceiling."""
    return 0 <= world.accumulated <= limits.max_cost


def counted_at_once(world: Chain, total: Totals) -> bool:
    """The calls in flight are counted, and the most at once are no fewer."""
    return world.in_flight == total.running and world.in_flight <= world.at_once


def losses_abort(world: Chain, total: Totals) -> bool:
    """Once a cost is not recorded, the chain is aborted."""
    return world.aborted or total.lost == 0


def billed_is_recorded_or_not(world: Chain, total: Totals) -> bool:
    """Real cost is what was recorded and what was not."""
    return total.billed == world.accumulated + total.unrecorded


def each_may_cost_the_most(limits: Limits, world: Chain, total: Totals) -> bool:
    """What is not on record is the most of each call in flight or lost, at most."""
    return total.at_most == limits.most * (world.in_flight + total.lost)


def entered_below_the_ceiling(limits: Limits, world: Chain, total: Totals) -> bool:
    """The last call entered below the ceiling, and all that were in flight then add the most at most."""
    if world.at_once == 0:
        return world.accumulated == 0 and total.lost == 0
    left = world.accumulated + limits.most * (world.in_flight + total.lost)
    return left <= limits.max_cost - 1 + limits.most * world.at_once


def passed_by_what_is_in_flight(limits: Limits, world: Chain, total: Totals) -> bool:
    """Real cost is at most the ceiling less one plus the most of each of the most calls at once."""
    return total.billed == 0 or total.billed <= limits.max_cost - 1 + limits.most * world.at_once


def the_bound_is_reached(limits: Limits, world: Chain, total: Totals) -> bool:
    """The bound is tight, with two calls at once."""
    return (
        limits.max_cost == 1
        and limits.most == 2
        and world.at_once == 2
        and total.billed == limits.max_cost - 1 + limits.most * world.at_once
    )


OVERSHOOT = Specification(
    name="published cost, exactly",
    whose=PUBLISHED,
    promise="Real cost passes the ceiling by what the calls in flight at once may cost.",
    limits=Limits,
    world=Chain,
    start=start,
    call=Call,
    new=Call(NEW, 0, 0),
    actions=(asks, returns),
    totals=Totals,
    terms=(billed, unrecorded, at_most, running, lost),
    at_most=(("unrecorded", "at_most"),),
    given=(admissible,),
    invariants=(
        Invariant("G1", well_formed),
        Invariant("G1", the_ledger_stays_below),
        Invariant("G1", counted_at_once),
        Invariant("G1", losses_abort),
        Invariant("G1", billed_is_recorded_or_not),
        Invariant("G1", each_may_cost_the_most),
        Invariant("G1", entered_below_the_ceiling),
        Invariant("G1", passed_by_what_is_in_flight),
    ),
    goals=(Goal("G1", the_bound_is_reached),),
    words={"phase": ("new", "running", "recorded", "not recorded")},
    max_depth=5,
    callers=2,
)

SPECIFICATIONS = (OVERSHOOT,)
