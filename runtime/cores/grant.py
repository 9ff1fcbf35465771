"""An approval as a pure core: one person's answer for one call, usable once, before it expires.

Grant = (phase, expires_ns): phase is PENDING, then APPROVED or DENIED, then USED, or EXPIRED from either of the living
ones, and never goes back; expires_ns is a monotonic reading, or -1 for a grant that never expires. Whether the call at
hand is the very call that was asked about (run, tool, canonical arguments) enters as the boolean `same`.
"""

from __future__ import annotations

from typing import TypeAlias

Grant: TypeAlias = tuple[int, int]

GRANTED = 0
PENDING = 1
APPROVED = 2
DENIED = 3
USED = 4
EXPIRED = 5
DRIFTED = 6
"""The verdicts: the step happened, or the phase that forbids it, or DRIFTED: another call than the approved one."""

NO_ANSWER = 0
YES = 1
NO = 2
"""What a person said, about this very call or for a tool as a whole."""


def requested(expires_ns: int) -> Grant:
    """Start a grant that nobody has answered yet."""
    return (PENDING, expires_ns)


def ruling(exact: int, standing: int) -> int:
    """Combine the answer for this very call with a standing one for its tool: the exact one wins, both ways."""
    if exact != NO_ANSWER:
        return exact
    return standing


def answer(state: Grant, approved: bool, now_ns: int) -> tuple[Grant, int]:
    """Take the first answer, if it comes in time; GRANTED says that it was taken, be it yes or no."""
    phase, expires_ns = state
    if phase != PENDING:
        return state, phase
    if 0 <= expires_ns <= now_ns:
        return (EXPIRED, expires_ns), EXPIRED
    if approved:
        return (APPROVED, expires_ns), GRANTED
    return (DENIED, expires_ns), GRANTED


def expire(state: Grant, now_ns: int) -> tuple[Grant, int]:
    """Let time pass over an unanswered or unused grant; GRANTED says that it is still alive."""
    phase, expires_ns = state
    if phase != PENDING and phase != APPROVED:
        return state, phase
    if 0 <= expires_ns <= now_ns:
        return (EXPIRED, expires_ns), EXPIRED
    return state, GRANTED


def use(state: Grant, same: bool, now_ns: int) -> tuple[Grant, int]:
    """Spend an approval on one dispatch; a call that differs from the approved one spoils it."""
    phase, expires_ns = state
    if phase != APPROVED:
        return state, phase
    if 0 <= expires_ns <= now_ns:
        return (EXPIRED, expires_ns), EXPIRED
    if not same:
        return (DENIED, expires_ns), DRIFTED
    return (USED, expires_ns), GRANTED
