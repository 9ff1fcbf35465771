"""The chain ledger: one admission step, one settlement step (G1, G2, G3, G5, halt).

State and bounds are plain tuples because making one is the cheapest record there is, and every call makes two.
Amounts are nano-dollars, times nanoseconds. In `Bounds` a negative number means that there is no such ceiling.

The invariant for any number of callers: committed + reserved <= max_cost, as long as no call settles above what it
held; steps, tool_calls and retries never pass their ceilings; once `halt` is set no step changes it or admits.
"""

from __future__ import annotations

from typing import TypeAlias

State: TypeAlias = tuple[int, int, int, int, int, int]
"""(committed, reserved, steps, tool_calls, retries, halt)."""

Bounds: TypeAlias = tuple[int, int, int, int, int]
"""(max_cost, max_steps, max_tool_calls, max_retries, deadline)."""

INITIAL: State = (0, 0, 0, 0, 0, 0)

ADMITTED = 0
COST = 1
OVERRUN = 2
STEPS = 3
TOOL_CALLS = 4
RETRIES = 5
TIME = 6
REPEATS = 7
HALTED = 8
CLOSED = 9
CONTENDED = 10
"""The verdicts: a dispatch is admitted, stopped by a ceiling (also the value of `halt`), or kept out for now."""

NO_ESTIMATE = -1
"""As `asked`: the price is unknown, so the call takes all that is left and runs alone among its kind."""

NO_CEILING = -1
"""As what is left: there is no cost ceiling."""


def standing(state: State, bounds: Bounds, now: int) -> int:
    """Say whether a chain is over whatever is asked of it: its halt, TIME once the deadline has passed, or ADMITTED."""
    _, _, _, _, _, halt = state
    _, _, _, _, deadline = bounds
    if halt == ADMITTED and 0 <= deadline <= now:
        return TIME
    return halt


def admit(state: State, bounds: Bounds, asked: int, tool: bool, retry: bool, now: int) -> tuple[State, int]:
    """Decide one dispatch and reserve for it; what it holds is how much `reserved` grew.

    Every refusal but CONTENDED halts the chain. A request that would not fit even if all calls in flight cost nothing
    is refused for good; one that only their reservations keep out is CONTENDED and changes nothing.
    """
    committed, reserved, steps, tool_calls, retries, halt = state
    max_cost, max_steps, max_tool_calls, max_retries, deadline = bounds
    if halt != ADMITTED:
        return state, halt
    if 0 <= deadline <= now:
        return stop(state, TIME), TIME
    if 0 <= max_steps <= steps:
        return stop(state, STEPS), STEPS
    if tool:
        if 0 <= max_tool_calls <= tool_calls:
            return stop(state, TOOL_CALLS), TOOL_CALLS
        tool_calls = tool_calls + 1
    if retry:
        if 0 <= max_retries <= retries:
            return stop(state, RETRIES), RETRIES
        retries = retries + 1
    if max_cost < 0:
        if asked < 0:
            asked = 0
    elif asked < 0:
        asked = max_cost - committed
        if asked <= 0:
            return stop(state, COST), COST
        if reserved > 0:
            return state, CONTENDED
    elif committed + reserved + asked > max_cost:
        if committed + asked > max_cost:
            return stop(state, COST), COST
        return state, CONTENDED
    return (committed, reserved + asked, steps + 1, tool_calls, retries, halt), ADMITTED


def settle(state: State, bounds: Bounds, held: int, cost: int) -> State:
    """Charge an ended dispatch in full and give up what it held; a cost above it halts a chain with a cost ceiling.

    A dispatch that held and cost nothing leaves the state as it was.
    """
    committed, reserved, steps, tool_calls, retries, halt = state
    if cost > held and bounds[0] >= 0 and halt == ADMITTED:
        halt = OVERRUN
    return (committed + cost, reserved - held, steps, tool_calls, retries, halt)


def charge(state: State, bounds: Bounds, cost: int) -> State:
    """Record what was spent outside of any dispatch, in full; the chain is over once that passes its ceiling."""
    committed, reserved, steps, tool_calls, retries, halt = state
    committed = committed + cost
    if 0 <= bounds[0] < committed + reserved and halt == ADMITTED:
        halt = OVERRUN
    return (committed, reserved, steps, tool_calls, retries, halt)


def release(state: State, held: int, tool: bool, retry: bool) -> State:
    """Undo the admission of a dispatch that provably never began."""
    committed, reserved, steps, tool_calls, retries, halt = state
    if tool:
        tool_calls = tool_calls - 1
    if retry:
        retries = retries - 1
    return (committed, reserved - held, steps - 1, tool_calls, retries, halt)


def stop(state: State, code: int) -> State:
    """Halt the chain for `code`; the first reason stays."""
    committed, reserved, steps, tool_calls, retries, halt = state
    if halt != ADMITTED:
        return state
    return (committed, reserved, steps, tool_calls, retries, code)


def joined(above: int, verdict: int) -> int:
    """Combine the verdict of all ledgers above with the next one's: a stop beats a wait, the highest stop wins."""
    if verdict == ADMITTED:
        return above
    if above == ADMITTED or above == CONTENDED:
        return verdict
    return above


def unless_closed(verdict: int, closed: bool) -> int:
    """Refuse a call of a context that was closed, which no ledger stops."""
    if closed and (verdict == ADMITTED or verdict == CONTENDED):
        return CLOSED
    return verdict


def left(state: State, bounds: Bounds) -> int:
    """What of the cost ceiling is neither spent nor reserved, never below zero; NO_CEILING if there is none."""
    if bounds[0] < 0:
        return NO_CEILING
    rest = bounds[0] - state[0] - state[1]
    if rest < 0:
        return 0
    return rest


def narrower(above: int, rest: int) -> int:
    """The lesser of what is left at all ledgers above and at the next one."""
    if above < 0 or 0 <= rest < above:
        return rest
    return above
