"""One tenant's quota: runs in an hour, money in a day, both decided and reserved in one step.

A run belongs to the hour and the day in which it started, whenever it ends: the sum over the runs of one day is at most
the day's limit as long as no run costs more than it reserved. Windows only move forward. Amounts are nano-dollars, a
negative limit is none, windows are counted from any origin.
"""

from __future__ import annotations

from typing import TypeAlias

State: TypeAlias = tuple[int, int, int, int, int]
"""(hour, runs, day, spent, reserved)."""

Limits: TypeAlias = tuple[int, int]
"""(max_runs, max_spend)."""

INITIAL: State = (0, 0, 0, 0, 0)

STARTED = 0
RUNS = 1
SPEND = 2
CONTENDED = 3
"""The verdicts: started; no run left this hour; no money left today; only runs in flight hold the money."""

NO_BOUND = -1
"""As `asked`: the run may cost anything, so it takes all that is left."""


def roll(state: State, hour: int, day: int) -> State:
    """Begin the windows that have come; an earlier hour or day changes nothing."""
    last_hour, runs, last_day, spent, reserved = state
    if hour > last_hour:
        last_hour = hour
        runs = 0
    if day > last_day:
        last_day = day
        spent = 0
        reserved = 0
    return (last_hour, runs, last_day, spent, reserved)


def start(state: State, limits: Limits, asked: int) -> tuple[State, int, int]:
    """Count a run and reserve its money, or change nothing: (state, verdict, held)."""
    hour, runs, day, spent, reserved = state
    max_runs, max_spend = limits
    if 0 <= max_runs <= runs:
        return state, RUNS, 0
    if max_spend < 0:
        if asked < 0:
            asked = 0
    else:
        least = asked
        if asked < 0:
            asked = max_spend - spent - reserved
            least = 1
        if asked < least or spent + reserved + asked > max_spend:
            if spent + least > max_spend:
                return state, SPEND, 0
            return state, CONTENDED, 0
    return (hour, runs + 1, day, spent, reserved + asked), STARTED, asked


def settle(state: State, day: int, held: int, cost: int) -> State:
    """Record the whole cost of a run in the day in which it started; a day that is over is closed."""
    hour, runs, last_day, spent, reserved = state
    if day != last_day:
        return state
    return (hour, runs, last_day, spent + cost, reserved - held)


def release(state: State, hour: int, day: int, held: int) -> State:
    """Give back the run and the money of a start after which nothing ran."""
    last_hour, runs, last_day, spent, reserved = state
    if hour == last_hour:
        runs = runs - 1
    if day == last_day:
        reserved = reserved - held
    return (last_hour, runs, last_day, spent, reserved)
