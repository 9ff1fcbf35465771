"""Repeating what failed (G3)."""

# ruff: noqa: ARG001 - a wrong variant of a step forgets to look

from __future__ import annotations

from failstop.properties.mutants.mutant import Function, Mutant
from failstop.runtime.cores.retry import Bounds, State, fail, jittered


def _one_retry_too_many(state: State, bounds: Bounds, wanted: bool) -> tuple[State, int, int]:
    max_retries, max_backoff = bounds
    if max_retries >= 0:
        max_retries = max_retries + 1
    return fail(state, (max_retries, max_backoff), wanted)


def _all_errors_repeated(state: State, bounds: Bounds, wanted: bool) -> tuple[State, int, int]:
    return fail(state, bounds, True)


def _above_the_maximum(backoff: int, bounds: Bounds, jitter: int, draw: int) -> int:
    _, max_backoff = bounds
    return jittered(backoff, (-1, max_backoff + max_backoff), jitter, draw)


MUTANTS = (
    Mutant(
        "one-retry-too-many",
        "G3",
        "A call is repeated once more than it may be.",
        (Function(fail, _one_retry_too_many),),
    ),
    Mutant(
        "every-error-is-repeated",
        "G3",
        "What is not worth repeating is repeated.",
        (Function(fail, _all_errors_repeated),),
    ),
    Mutant(
        "backoff-above-its-maximum",
        "G3",
        "Jitter takes a backoff above its maximum.",
        (Function(jittered, _above_the_maximum),),
    ),
)
