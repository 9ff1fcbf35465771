"""Cost as published (G1, T3): what a call cost is checked after it ran, and what passes the ceiling is not recorded.

Modelled: a chain context that refuses at entry once it is aborted, and `_commit_cost` as it is printed. The paper
bounds the costs that providers report; here they report each call in full and at once, so reported and billed are the
same. By its own definition the total cost of a chain is the sum of the costs of its calls, recorded or not. It names a
protocol that reserves first among later work and does not describe it; that one is not meant here.
"""

from __future__ import annotations

from typing import NamedTuple

from failstop.models.claim import PUBLISHED
from failstop.models.specification import Goal, Invariant, Law, Specification

NEW = 0
RUNNING = 1
RECORDED = 2
NOT_RECORDED = 3
HALTED = 4


class Limits(NamedTuple):
    """The ceiling."""

    max_cost: int


class Chain(NamedTuple):
    """What the context keeps."""

    accumulated: int
    aborted: bool


class Call(NamedTuple):
    """One call; `bill` is what it really cost."""

    phase: int
    bill: int


class Totals(NamedTuple):
    """Sums over all calls."""

    billed: int


def start() -> Chain:
    """A chain begins."""
    return Chain(0, False)


def admissible(limits: Limits) -> bool:
    """The ceiling is one unit at least; at zero the same happens with the first call."""
    return limits.max_cost >= 1


def commit(limits: Limits, world: Chain, cost: int) -> tuple[Chain, bool]:
    """Record a cost as the printed `_commit_cost` does: (state, recorded)."""
    projected = world.accumulated + cost
    if projected > limits.max_cost:
        return world._replace(aborted=True), False
    return world._replace(accumulated=projected), True


def asks(world: Chain, call: Call) -> tuple[Chain, Call] | None:
    """A call asks, and runs unless the chain is aborted."""
    if call.phase != NEW:
        return None
    return world, call._replace(phase=HALTED if world.aborted else RUNNING)


def returns(limits: Limits, world: Chain, call: Call, cost: int) -> tuple[Chain, Call] | None:
    """A call returns, and its cost is committed."""
    if call.phase != RUNNING or cost < 0:
        return None
    after, recorded = commit(limits, world, cost)
    return after, Call(RECORDED if recorded else NOT_RECORDED, cost)


def billed(call: Call) -> int:
    """What a call really cost."""
    return call.bill


def no_negative_bill(call: Call) -> bool:
    """No call is billed below zero."""
    return call.bill >= 0


def the_ledger_stays_below(limits: Limits, world: Chain) -> bool:
    """What is recorded never passes the ceiling."""
    return world.accumulated <= limits.max_cost


def total_cost_stays_below(limits: Limits, total_after: Totals) -> bool:
    """The total cost of the calls of a chain never passes the ceiling."""
    return total_after.billed <= limits.max_cost


def later_calls_are_halted(world: Chain, call_after: Call) -> bool:
    """Once a commit passed the ceiling, every call that asks later is told HALT and does not run."""
    return not world.aborted or call_after.phase == HALTED


def the_ceiling_is_reached(limits: Limits, world: Chain) -> bool:
    """The ceiling can be spent to the last unit."""
    return world.accumulated == limits.max_cost


COST = Specification(
    name="published cost",
    whose=PUBLISHED,
    promise="The total cost of a chain never passes its ceiling.",
    limits=Limits,
    world=Chain,
    start=start,
    call=Call,
    new=Call(NEW, 0),
    actions=(asks, returns),
    totals=Totals,
    terms=(billed,),
    given=(admissible,),
    invariants=(Invariant("G1", no_negative_bill), Invariant("G1", the_ledger_stays_below)),
    laws=(
        # A promise that may be false is a law and no invariant, so that no proof here can rest on it.
        Law("T3", total_cost_stays_below),
        Law("halt", later_calls_are_halted, (asks,)),
    ),
    goals=(Goal("G1", the_ceiling_is_reached),),
    words={"phase": ("new", "running", "recorded", "not recorded", "halted")},
    max_depth=5,
    callers=2,
)

SPECIFICATIONS = (COST,)
