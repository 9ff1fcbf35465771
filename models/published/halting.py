"""Halting as published: whatever ceiling is violated, the chain is aborted, and all subsequent calls are told HALT.

Modelled: the flag that each printed check sets under the lock, and the look at it when a call asks, which the sentence
implies and the paper does not print. The stop is an answer that the agent may ignore; then its next call is told the
same. So the sentence is sound for a chain, and it says as much as ours does: a call that was let through before may
still start after. For parts used without a chain see `budget`, which refuses and then accepts, and `guard`.
"""

from __future__ import annotations

from typing import NamedTuple

from failstop.models.claim import PUBLISHED
from failstop.models.specification import Goal, Invariant, Law, Specification

NEW = 0
ADMITTED = 1
STARTED = 2
HALTED = 3


class Nothing(NamedTuple):
    """A protocol without limits."""


class Chain(NamedTuple):
    """What the context keeps."""

    aborted: bool


class Call(NamedTuple):
    """One call, and whether it was told HALT."""

    phase: int


class Totals(NamedTuple):
    """Sums over all calls: those told HALT."""

    halted: int


def start() -> Chain:
    """A chain begins."""
    return Chain(False)


def asks(world: Chain, call: Call, violates: bool) -> tuple[Chain, Call] | None:
    """A call asks, and is let through unless the chain is aborted or this call violates a ceiling."""
    if call.phase != NEW:
        return None
    if world.aborted or violates:
        return Chain(True), Call(HALTED)
    return world, Call(ADMITTED)


def starts(world: Chain, call: Call) -> tuple[Chain, Call] | None:
    """A call that was let through starts."""
    if call.phase != ADMITTED:
        return None
    return world, Call(STARTED)


def violates_afterwards(call: Call) -> tuple[Chain, Call] | None:
    """A call that ran turns out to have violated a ceiling."""
    if call.phase != STARTED:
        return None
    return Chain(True), Call(HALTED)


def halted(call: Call) -> int:
    """One for a call that was told HALT."""
    return 1 if call.phase == HALTED else 0


def told_is_aborted(world: Chain, total: Totals) -> bool:
    """Once any call was told HALT, the chain is aborted."""
    return world.aborted or total.halted == 0


def subsequent_calls_are_halted(total: Totals, call_after: Call) -> bool:
    """Once any call was told HALT, every call that asks later is told HALT too."""
    return total.halted == 0 or call_after.phase == HALTED


def aborted_for_good(world: Chain, after: Chain) -> bool:
    """An aborted chain stays aborted, whatever the agent does with the answer."""
    return not world.aborted or after.aborted


def halts(world: Chain, total: Totals) -> bool:
    """Two calls are told HALT."""
    return world.aborted and total.halted == 2


HALTING = Specification(
    name="published halting",
    whose=PUBLISHED,
    promise="Once a ceiling is violated, all subsequent calls are told HALT.",
    limits=Nothing,
    world=Chain,
    start=start,
    call=Call,
    new=Call(NEW),
    actions=(asks, starts, violates_afterwards),
    totals=Totals,
    terms=(halted,),
    invariants=(Invariant("halt", told_is_aborted),),
    laws=(Law("halt", subsequent_calls_are_halted, (asks,)), Law("halt", aborted_for_good)),
    goals=(Goal("halt", halts),),
    words={"phase": ("new", "admitted", "started", "halted")},
    max_depth=4,
    callers=2,
)

SPECIFICATIONS = (HALTING,)
