"""An exact spending limit that is shut once it has refused, until a reset; calls may hold first (G1).

Amounts are nano-dollars; a negative limit is none. For any number of callers: spent + reserved <= limit as long as no
hold is settled above itself, and a shut budget admits nothing. CONTENDED is no refusal and shuts nothing.
"""

from __future__ import annotations

from typing import TypeAlias

State: TypeAlias = tuple[int, int, int, bool]
"""(spent, reserved, calls, shut)."""

INITIAL: State = (0, 0, 0, False)

ADMITTED = 0
REFUSED = 1
CONTENDED = 2
"""The verdicts: it fits; it does not and the budget shuts; only other holds keep it out and nothing changes."""

NO_ESTIMATE = -1
"""As `asked`: the price is unknown, so the hold takes all that is left and no other one may be out."""


def spend(state: State, limit: int, amount: int) -> State:
    """Commit `amount` if it fits beside what is spent and held, else shut: `shut` is also the verdict.

    A refused spend is recorded nowhere.
    """
    spent, reserved, calls, shut = state
    if shut or 0 <= limit < spent + reserved + amount:
        return (spent, reserved, calls, True)
    return (spent + amount, reserved, calls + 1, shut)


def hold(state: State, limit: int, asked: int) -> tuple[State, int, int]:
    """Reserve `asked` for a call that is about to run: (state, verdict, held)."""
    spent, reserved, calls, shut = state
    if shut:
        return state, REFUSED, 0
    if limit < 0:
        if asked < 0:
            asked = 0
    elif asked < 0:
        if reserved > 0:
            return state, CONTENDED, 0
        asked = limit - spent
        if asked <= 0:
            return (spent, reserved, calls, True), REFUSED, 0
    elif spent + reserved + asked > limit:
        if spent + asked > limit:
            return (spent, reserved, calls, True), REFUSED, 0
        return state, CONTENDED, 0
    return (spent, reserved + asked, calls, shut), ADMITTED, asked


def settle(state: State, limit: int, held: int, cost: int) -> State:
    """Record the whole cost of an ended call in place of its hold; a cost above the hold shuts a limited budget."""
    spent, reserved, calls, shut = state
    if cost > held and limit >= 0:
        shut = True
    return (spent + cost, reserved - held, calls + 1, shut)


def release(state: State, held: int) -> State:
    """Give back the hold of a call that provably never began."""
    spent, reserved, calls, shut = state
    return (spent, reserved - held, calls, shut)


def reset(state: State) -> State:
    """Begin anew; what is held for calls still in flight stays held, and is charged to the new period."""
    _, reserved, _, _ = state
    return (0, reserved, 0, False)
