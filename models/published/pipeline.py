"""The pipeline as published (T6): policies are asked in order, each under its own lock, and the first denial wins.

Modelled: a breaker that is half-open, a budget and a step guard, in this order, each check one locked step as printed.
T6 says that each of them checks and commits under its own lock before the call is dispatched; taken at its word, the
bounds hold, for the costs that calls announce. The retries of T6 are in `container`. What a denied call leaves behind
the paper does not say. It does say that a half-open breaker lets a request test, and there the slot for it is kept by a
call that the budget denies and that never runs. Where the breaker is asked last, as in the paper's example, no later
policy of the pipeline can deny what it let through.
"""

from __future__ import annotations

from typing import NamedTuple

from failstop.models.claim import PUBLISHED
from failstop.models.specification import Goal, Invariant, Law, Specification

NEW = 0
PASSED_BREAKER = 1
PASSED_BUDGET = 2
DISPATCHED = 3
REPORTED = 4
DENIED = 5


class Limits(NamedTuple):
    """The ceilings of the budget and of the guard."""

    max_cost: int
    max_steps: int


class Pipeline(NamedTuple):
    """What the policies keep: whether the breaker is still half-open and its slot taken, and what was committed."""

    half_open: bool
    slot_taken: bool
    spent: int
    steps: int


class Call(NamedTuple):
    """One call: what it announces to cost, and whether it holds the slot of the breaker."""

    phase: int
    cost: int
    tests: bool


class Totals(NamedTuple):
    """Sums over all calls: cost and number of those dispatched, what those hold that may be, and tests alive."""

    cost: int
    dispatched: int
    committed: int
    testing: int


def start() -> Pipeline:
    """The breaker has just become half-open."""
    return Pipeline(True, False, 0, 0)


def admissible(limits: Limits) -> bool:
    """The ceilings are one unit and one step at least."""
    return limits.max_cost >= 1 and limits.max_steps >= 1


def asks_breaker(world: Pipeline, call: Call, cost: int) -> tuple[Pipeline, Call] | None:
    """A call that announces its cost asks the breaker."""
    if call.phase != NEW or cost < 1:
        return None
    if world.half_open and world.slot_taken:
        return world, Call(DENIED, cost, False)
    return world._replace(slot_taken=world.half_open), Call(PASSED_BREAKER, cost, world.half_open)


def asks_budget(limits: Limits, world: Pipeline, call: Call) -> tuple[Pipeline, Call] | None:
    """A call that passed the breaker asks the budget."""
    if call.phase != PASSED_BREAKER:
        return None
    projected = world.spent + call.cost
    if projected > limits.max_cost:
        return world, call._replace(phase=DENIED)
    return world._replace(spent=projected), call._replace(phase=PASSED_BUDGET)


def asks_guard(limits: Limits, world: Pipeline, call: Call) -> tuple[Pipeline, Call] | None:
    """A call that passed the budget asks the step guard, and is dispatched."""
    if call.phase != PASSED_BUDGET:
        return None
    after = world._replace(steps=world.steps + 1)
    return after, call._replace(phase=DENIED if after.steps >= limits.max_steps else DISPATCHED)


def succeeds(world: Pipeline, call: Call) -> tuple[Pipeline, Call] | None:
    """A dispatched call succeeds, and the breaker closes."""
    if call.phase != DISPATCHED:
        return None
    return world._replace(half_open=False, slot_taken=False), Call(REPORTED, call.cost, False)


def cost(call: Call) -> int:
    """What a dispatched call costs, as it announced."""
    return call.cost if call.phase == DISPATCHED or call.phase == REPORTED else 0


def dispatched(call: Call) -> int:
    """One for a call that was dispatched."""
    return 1 if call.phase == DISPATCHED or call.phase == REPORTED else 0


def committed(call: Call) -> int:
    """What the budget committed for a call that it let through and no later policy denied."""
    return call.cost if PASSED_BUDGET <= call.phase <= REPORTED else 0


def testing(call: Call) -> int:
    """One for a test request that runs, or may still run."""
    return 1 if call.tests and PASSED_BREAKER <= call.phase <= DISPATCHED else 0


def well_formed(call: Call) -> bool:
    """No call announces a cost below zero."""
    return call.cost >= 0


def budget_covers_them(world: Pipeline, total: Totals) -> bool:
    """The budget has committed what it let through."""
    return total.committed <= world.spent


def spent_stays_within(limits: Limits, world: Pipeline) -> bool:
    """What the budget has committed never passes its ceiling."""
    return world.spent <= limits.max_cost


def total_cost_stays_within(limits: Limits, total: Totals) -> bool:
    """The announced cost of all dispatched calls never passes the ceiling of the budget."""
    return total.cost <= limits.max_cost


def guard_covers_them(world: Pipeline, total: Totals) -> bool:
    """The guard has counted the calls that were dispatched."""
    return total.dispatched <= world.steps


def total_steps_stay_within(limits: Limits, total: Totals) -> bool:
    """The dispatched calls are never more than the ceiling of the guard."""
    return total.dispatched <= limits.max_steps


def only_the_admitted_run(call: Call, call_after: Call) -> bool:
    """A call is dispatched only if every policy has let it through, and one that was denied never is."""
    return call_after.phase != DISPATCHED or call.phase == PASSED_BUDGET


def the_slot_is_given_back(after: Pipeline, call: Call, call_after: Call) -> bool:
    """A call that a later policy denies gives the slot of the breaker back."""
    return call_after.phase != DENIED or not call.tests or not after.slot_taken


def a_half_open_breaker_tests(total: Totals, call_after: Call) -> bool:
    """A half-open breaker denies a call only while a test request runs, or may still run."""
    return call_after.phase != DENIED or total.testing > 0


def the_ceiling_is_reached(limits: Limits, total: Totals) -> bool:
    """The ceiling of the budget can be dispatched to the last unit."""
    return total.cost == limits.max_cost


PIPELINE = Specification(
    name="published pipeline",
    whose=PUBLISHED,
    promise="The bounds of all policies hold at once, and the first denial wins.",
    limits=Limits,
    world=Pipeline,
    start=start,
    call=Call,
    new=Call(NEW, 0, False),
    actions=(asks_breaker, asks_budget, asks_guard, succeeds),
    totals=Totals,
    terms=(cost, dispatched, committed, testing),
    at_most=(("cost", "committed"),),
    given=(admissible,),
    invariants=(
        Invariant("T6", well_formed),
        Invariant("T6", budget_covers_them),
        Invariant("T6", spent_stays_within),
        Invariant("T6", total_cost_stays_within),
        Invariant("T6", guard_covers_them),
        Invariant("T6", total_steps_stay_within),
    ),
    laws=(
        Law("T6", only_the_admitted_run, (asks_breaker, asks_budget, asks_guard)),
        Law("T6", the_slot_is_given_back, (asks_budget, asks_guard)),
        Law("T6", a_half_open_breaker_tests, (asks_breaker,)),
    ),
    goals=(Goal("T6", the_ceiling_is_reached),),
    words={"phase": ("new", "passed the breaker", "passed the budget", "dispatched", "reported", "denied")},
    max_depth=5,
    callers=2,
)

SPECIFICATIONS = (PIPELINE,)
