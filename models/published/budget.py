"""The budget as published (G1, T3): `BudgetEnforcer.spend` refuses what does not fit, and remembers only that it did.

Modelled: `spend` as it is printed, one locked step. That a violation halts all later calls is said of chains; `spend`
is introduced as the identical pattern for use without one, so the same sentence is asked of it here.
"""

from __future__ import annotations

from typing import NamedTuple

from failstop.models.claim import PUBLISHED
from failstop.models.specification import Goal, Invariant, Law, Specification


class Limits(NamedTuple):
    """The limit."""

    limit: int


class Budget(NamedTuple):
    """What the budget keeps; `accepted` is what the last spend was told."""

    spent: int
    exceeded: bool
    accepted: bool


def start() -> Budget:
    """A budget begins."""
    return Budget(0, False, True)


def admissible(limits: Limits) -> bool:
    """The limit is one unit at least."""
    return limits.limit >= 1


def spends(limits: Limits, world: Budget, amount: int) -> Budget | None:
    """Somebody spends."""
    if amount < 1:
        return None
    projected = world.spent + amount
    if projected > limits.limit:
        return Budget(world.spent, True, False)
    return Budget(projected, world.exceeded, True)


def within_the_limit(limits: Limits, world: Budget) -> bool:
    """What was accepted never passes the limit in all."""
    return world.spent <= limits.limit


def recorded_if_accepted(world: Budget, after: Budget, amount: int) -> bool:
    """What is accepted is recorded in full, and what is refused is not recorded."""
    return after.spent == world.spent + (amount if after.accepted else 0)


def a_refusal_halts(world: Budget, after: Budget) -> bool:
    """Once the budget has refused to spend, it refuses all later spending too."""
    return not world.exceeded or not after.accepted


def the_limit_is_reached(limits: Limits, world: Budget) -> bool:
    """The limit can be spent to the last unit."""
    return world.spent == limits.limit


BUDGET = Specification(
    name="published budget",
    whose=PUBLISHED,
    promise="No more than the limit is accepted, and a violation halts everything later.",
    limits=Limits,
    world=Budget,
    start=start,
    actions=(spends,),
    given=(admissible,),
    invariants=(Invariant("G1", within_the_limit),),
    laws=(Law("G1", recorded_if_accepted), Law("halt", a_refusal_halts)),
    goals=(Goal("G1", the_limit_is_reached),),
    max_depth=4,
    callers=1,
)

SPECIFICATIONS = (BUDGET,)
