"""The circuit breaker: permits carry the generation that admitted them, and one probe at a time has a lease (G4).

Every change of mode begins a new generation, so a result from before it is stale and changes nothing. No state is a
trap: an open breaker admits a probe once `until` is reached, and a probe that is never heard of loses its slot at the
end of its lease. After that a hung probe may still run beside the next one; its late result is stale.
Times are monotonic nanoseconds.
"""

from __future__ import annotations

from typing import TypeAlias

State: TypeAlias = tuple[int, int, int, int]
"""(mode, generation, failures, until): failures in a row while closed; the end of the cooldown or of the lease."""

Settings: TypeAlias = tuple[int, int, int]
"""(threshold, recovery, lease)."""

CLOSED = 0
OPEN = 1
PROBING = 2
"""The modes. Half-open without a probe is OPEN with its cooldown over: it needs no event to come about."""

INITIAL: State = (CLOSED, 0, 0, 0)

ADMITTED = 0
PROBE = 1
COOLING = 2
PROBE_OUT = 3
"""The verdicts: admitted, admitted as the probe, denied until the cooldown ends, denied while a probe is out."""

NO_PERMIT = -1
"""The permit of a denied call; the others are generations."""

SUCCESS = 0
FAILURE = 1
NEITHER = 2
"""The outcomes of a permit; NEITHER is also that of a call that was never dispatched."""


def admit(state: State, settings: Settings, now: int) -> tuple[State, int, int]:
    """Decide one call: (state, verdict, permit). The cooldown and the lease are over exactly at `until`."""
    mode, generation, failures, until = state
    _, _, lease = settings
    if mode == CLOSED:
        return state, ADMITTED, generation
    if now < until:
        if mode == OPEN:
            return state, COOLING, NO_PERMIT
        return state, PROBE_OUT, NO_PERMIT
    return (PROBING, generation + 1, failures, now + lease), PROBE, generation + 1


def report(state: State, settings: Settings, permit: int, outcome: int, now: int) -> State:
    """Count the outcome of a permit of the current generation; a stale one changes nothing."""
    mode, generation, failures, until = state
    threshold, recovery, _ = settings
    if permit != generation or mode == OPEN:
        return state
    if mode == PROBING:
        if outcome == SUCCESS:
            return (CLOSED, generation + 1, 0, 0)
        if outcome == FAILURE:
            return (OPEN, generation + 1, 0, now + recovery)
        return (OPEN, generation + 1, 0, now)
    if outcome == SUCCESS:
        return (mode, generation, 0, until)
    if outcome == FAILURE:
        if failures + 1 >= threshold:
            return (OPEN, generation + 1, 0, now + recovery)
        return (mode, generation, failures + 1, until)
    return state


def reset(state: State) -> State:
    """Close, and make every permit that is out stale."""
    _, generation, _, _ = state
    return (CLOSED, generation + 1, 0, 0)
