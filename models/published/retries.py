"""Retries as published (G3, T5): checked and counted in one locked step before each retry.

Modelled: `_check_retry_budget` as it is printed; an operation is a first attempt and the retries that follow it, and a
chain has any number of operations, since it is a sequence of calls by the paper's own definition.
"""

from __future__ import annotations

from typing import NamedTuple

from failstop.models.claim import PUBLISHED
from failstop.models.specification import Goal, Invariant, Law, Specification

NEW = 0
TRIED = 1
SUCCEEDED = 2
FAILED = 3
HALTED = 4


class Limits(NamedTuple):
    """The ceiling."""

    max_retries_total: int


class Chain(NamedTuple):
    """What the context keeps."""

    retries_used: int
    aborted: bool


class Call(NamedTuple):
    """One operation: how often it was tried again."""

    phase: int
    retries: int


class Totals(NamedTuple):
    """Sums over all operations."""

    operations: int
    retries: int
    calls: int


def start() -> Chain:
    """A chain begins."""
    return Chain(0, False)


def admissible(limits: Limits) -> bool:
    """The ceiling is not negative."""
    return limits.max_retries_total >= 0


def begins(world: Chain, call: Call) -> tuple[Chain, Call] | None:
    """An operation is tried for the first time, unless the chain is aborted."""
    if call.phase != NEW:
        return None
    return world, call._replace(phase=HALTED if world.aborted else TRIED)


def fails(limits: Limits, world: Chain, call: Call) -> tuple[Chain, Call] | None:
    """An attempt fails, and is repeated if the retry budget allows."""
    if call.phase != TRIED:
        return None
    if world.retries_used >= limits.max_retries_total:
        return world._replace(aborted=True), call._replace(phase=FAILED)
    return world._replace(retries_used=world.retries_used + 1), call._replace(retries=call.retries + 1)


def succeeds(world: Chain, call: Call) -> tuple[Chain, Call] | None:
    """An attempt succeeds."""
    if call.phase != TRIED:
        return None
    return world, call._replace(phase=SUCCEEDED)


def operations(call: Call) -> int:
    """One for an operation that was tried."""
    return 1 if TRIED <= call.phase <= FAILED else 0


def retries(call: Call) -> int:
    """How often an operation was tried again."""
    return call.retries


def calls(call: Call) -> int:
    """How often an operation was tried."""
    return operations(call) + call.retries


def no_negative_retries(call: Call) -> bool:
    """No operation is tried again fewer than zero times, or before it was tried."""
    return call.retries >= 0 and (TRIED <= call.phase <= FAILED or call.retries == 0)


def retries_are_counted(world: Chain, total: Totals) -> bool:
    """The retry counter is the number of retries that were made."""
    return world.retries_used == total.retries


def total_retries_stay_within(limits: Limits, total: Totals) -> bool:
    """The retries of a chain never pass the retry ceiling."""
    return total.retries <= limits.max_retries_total


def each_call_is_either(total: Totals) -> bool:
    """Each call is the first of an operation or a retry."""
    return total.calls == total.operations + total.retries


def calls_are_operations_and_retries(limits: Limits, total: Totals) -> bool:
    """Calls are at most operations plus the retry ceiling."""
    return total.calls <= total.operations + limits.max_retries_total


def holds_for_one_operation(limits: Limits, total: Totals) -> bool:
    """All calls of a chain of one operation are at most one plus the retry ceiling."""
    return total.operations > 1 or total.calls <= 1 + limits.max_retries_total


def total_calls_stay_within(limits: Limits, total_after: Totals) -> bool:
    """All calls of a chain are at most one plus the retry ceiling."""
    return total_after.calls <= 1 + limits.max_retries_total


def later_calls_are_halted(world: Chain, call_after: Call) -> bool:
    """Once a retry was refused, every operation that begins later is told HALT and does not run."""
    return not world.aborted or call_after.phase == HALTED


def the_ceiling_is_reached(limits: Limits, total: Totals) -> bool:
    """As many retries are made as the ceiling says, and every operation runs beside them."""
    return limits.max_retries_total > 0 and total.operations == 2 and total.retries == limits.max_retries_total


RETRIES = Specification(
    name="published retries",
    whose=PUBLISHED,
    promise="No more retries than the ceiling are made in a chain, and no more calls than one beside them.",
    limits=Limits,
    world=Chain,
    start=start,
    call=Call,
    new=Call(NEW, 0),
    actions=(begins, fails, succeeds),
    totals=Totals,
    terms=(operations, retries, calls),
    given=(admissible,),
    invariants=(
        Invariant("G3", no_negative_retries),
        Invariant("G3", retries_are_counted),
        Invariant("G3", total_retries_stay_within),
        Invariant("G3", each_call_is_either),
        Invariant("G3", calls_are_operations_and_retries),
        Invariant("T5", holds_for_one_operation),
    ),
    laws=(
        # A promise that may be false is a law and no invariant, so that no proof here can rest on it.
        Law("T5", total_calls_stay_within),
        Law("halt", later_calls_are_halted, (begins,)),
    ),
    goals=(Goal("G3", the_ceiling_is_reached),),
    words={"phase": ("new", "tried", "succeeded", "failed", "halted")},
    max_depth=5,
    callers=2,
)

SPECIFICATIONS = (RETRIES,)
