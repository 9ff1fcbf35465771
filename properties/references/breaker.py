"""A circuit breaker, one step after another (G4); the steps are the functions of `runtime.cores.breaker`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from failstop.properties.references.chain import DONE, Advance
from failstop.runtime.clock import NS_PER_SECOND
from failstop.runtime.cores.breaker import (
    CLOSED,
    FAILURE,
    INITIAL,
    NO_PERMIT,
    OPEN,
    SUCCESS,
    Settings,
    State,
    admit,
    report,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Ask:
    """A call asks to be let in."""

    call: str


@dataclass(frozen=True, slots=True)
class Settle:
    """A call that was let in is over; outcome: SUCCESS, FAILURE or NEITHER, as the core has them."""

    call: str
    outcome: int


@dataclass(frozen=True, slots=True)
class Look:
    """Somebody looks, while nothing else goes on: ("closed" | "open" | "half-open",)."""


BreakerAction: TypeAlias = Ask | Settle | Advance | Look


class Breaker(NamedTuple):
    """The core's state, the time in nanoseconds, and the permits of the calls that are not over."""

    state: State = INITIAL
    now: int = 0
    permits: frozenset[tuple[str, int]] = frozenset()


class BreakerReference:
    """The reference; times in whole seconds.

    Not exact, it is what any breaker promises: nobody is let in while it cools down, and one probe at a time, where
    published breakers have no lease and may keep everybody out for ever. So whoever asks may be refused, and while it
    is closed a result of a call from before it opened may count. It never closes an open breaker, nor ends another
    call's probe: that would be no test of recovery.
    """

    initial = Breaker()

    def __init__(self, threshold: int, recovery_s: int, lease_s: int, *, exact: bool) -> None:
        self._settings: Settings = (threshold, recovery_s * NS_PER_SECOND, lease_s * NS_PER_SECOND)
        self._exact = exact

    def outcomes(self, state: Breaker, action: BreakerAction) -> Iterator[tuple[Breaker, object]]:
        """See Reference."""
        match action:
            case Ask():
                yield from self._asked(state, action.call)
            case Settle():
                for after in self._settled(state, action):
                    yield after, DONE
            case Advance():
                yield state._replace(now=state.now + action.duration_ns), DONE
            case Look():
                yield state, (seen(state),)

    def _asked(self, state: Breaker, call: str) -> Iterator[tuple[Breaker, object]]:
        after, _, permit = admit(state.state, self._settings, state.now)
        if permit != NO_PERMIT:
            yield state._replace(state=after, permits=state.permits | {(call, permit)}), "admitted"
        elif self._exact:
            yield state, "breaker"
        if not self._exact:
            yield state, "breaker"
            yield state, "denied"

    def _settled(self, state: Breaker, action: Settle) -> Iterator[Breaker]:
        """End a call; none if it was never let in."""
        for call, permit in state.permits:
            if call == action.call:
                over = state._replace(permits=state.permits - {(call, permit)})
                yield over._replace(state=report(state.state, self._settings, permit, action.outcome, state.now))
                mode, generation, _, _ = state.state
                if not self._exact and mode == CLOSED and permit != generation and action.outcome in {SUCCESS, FAILURE}:
                    counted = report(state.state, self._settings, generation, action.outcome, state.now)
                    yield over._replace(state=counted)


def seen(breaker: Breaker) -> str:
    """Say what the next caller would meet."""
    mode, _, _, until = breaker.state
    if mode == CLOSED:
        return "closed"
    return "open" if mode == OPEN and breaker.now < until else "half-open"
