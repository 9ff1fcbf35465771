"""Whether a failed attempt is repeated, and how long to wait first. Times are nanoseconds (G3)."""

from __future__ import annotations

from typing import TypeAlias

State: TypeAlias = tuple[int, int]
"""(retries, backoff): those begun, and the next wait before jitter."""

Bounds: TypeAlias = tuple[int, int]
"""(max_retries, max_backoff); a negative max_retries is none."""

UNIT = 10**9
"""Fractions (jitter, the random draw) are counted in billionths."""

RETRY = 0
GIVE_UP = 1
"""The verdicts."""


def start(base: int, bounds: Bounds) -> State:
    """Before the first attempt."""
    _, max_backoff = bounds
    if base > max_backoff:
        return (0, max_backoff)
    return (0, base)


def fail(state: State, bounds: Bounds, wanted: bool) -> tuple[State, int, int]:
    """Decide after a failed attempt: (state, verdict, backoff). The backoff doubles up to its maximum."""
    retries, backoff = state
    max_retries, max_backoff = bounds
    if not wanted or 0 <= max_retries <= retries:
        return state, GIVE_UP, 0
    doubled = backoff + backoff
    if doubled > max_backoff:
        doubled = max_backoff
    return (retries + 1, doubled), RETRY, backoff


def jittered(backoff: int, bounds: Bounds, jitter: int, draw: int) -> int:
    """Spread a backoff evenly over +/- `jitter` of itself and never above the maximum; jitter and draw: 0..UNIT."""
    _, max_backoff = bounds
    low = backoff - backoff * jitter // UNIT
    high = backoff + backoff * jitter // UNIT
    if high > max_backoff:
        high = max_backoff
    return low + (high - low) * draw // UNIT
