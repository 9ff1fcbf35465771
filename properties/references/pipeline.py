"""A step guard and then a circuit breaker, both of which must let a call in, one step after another (T6).

A pipeline asks its policies one by one, each under a lock of its own, so an admission is no single step but up to
three: the step is taken; the breaker is asked; if it denies, the step goes back. Between them others may come, so a
call may be told "steps" for a step that another holds for a moment, which the breaker is about to deny. That is all: a
hold ends within the very call that took it, and in the end the steps taken are those of dispatched calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from failstop.properties.references.breaker import Ask, Breaker, BreakerReference, Look, Settle, seen
from failstop.properties.references.chain import DONE, Advance
from failstop.runtime.cores.breaker import NEITHER
from failstop.runtime.cores.steps import give_back, step

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Take:
    """A call takes its step, the first part of its admission; Ask is the second."""

    call: str


@dataclass(frozen=True, slots=True)
class GiveBack:
    """The step of a call that is not dispatched goes back; it cannot for one that is."""

    call: str


@dataclass(frozen=True, slots=True)
class Undo:
    """A call that was let in is not dispatched: the breaker forgets it. Its step goes back next."""

    call: str


PipelineAction: TypeAlias = Take | Ask | GiveBack | Undo | Settle | Advance | Look


class Pipeline(NamedTuple):
    """Steps taken; the calls that hold one and were not decided by the breaker; those that owe theirs; the breaker."""

    steps: int = 0
    holding: frozenset[str] = frozenset()
    owing: frozenset[str] = frozenset()
    breaker: Breaker = Breaker()


class PipelineReference:
    """The reference; times in whole seconds.

    Not exact: every call may be refused, in whatever order the policies stand, but never let in without a step, nor
    by a breaker that any reading of it keeps shut, see BreakerReference.
    """

    initial = Pipeline()

    def __init__(self, max_steps: int, threshold: int, recovery_s: int, lease_s: int, *, exact: bool) -> None:
        self._limit = max_steps
        self._exact = exact
        self._breaker = BreakerReference(threshold, recovery_s, lease_s, exact=exact)

    def outcomes(self, state: Pipeline, action: PipelineAction) -> Iterator[tuple[Pipeline, object]]:
        """See Reference; a look is answered by (steps taken, "closed" | "open" | "half-open")."""
        match action:
            case Take():
                yield from self._taken(state, action.call)
            case Ask():
                yield from self._asked(state, action)
            case GiveBack():
                yield from self._given_back(state, action.call)
            case Undo():
                for breaker, _ in self._breaker.outcomes(state.breaker, Settle(action.call, NEITHER)):
                    yield state._replace(breaker=breaker, owing=state.owing | {action.call}), DONE
            case Settle() | Advance():
                for breaker, told in self._breaker.outcomes(state.breaker, action):
                    yield state._replace(breaker=breaker), told
            case Look():
                yield state, (state.steps, seen(state.breaker))

    def _given_back(self, state: Pipeline, call: str) -> Iterator[tuple[Pipeline, object]]:
        if call in state.owing:
            yield state._replace(steps=give_back(state.steps), owing=state.owing - {call}), DONE
        elif not self._exact:
            yield state, DONE

    def _taken(self, state: Pipeline, call: str) -> Iterator[tuple[Pipeline, object]]:
        steps, admitted = step(state.steps, self._limit)
        if admitted:
            yield state._replace(steps=steps, holding=state.holding | {call}), "held"
        elif self._exact:
            yield state, "steps"
        if not self._exact:
            yield state, "held"  # by a breaker that is asked before the guard; the call holds nothing
            yield state, "steps"
            yield state, "denied"

    def _asked(self, state: Pipeline, action: Ask) -> Iterator[tuple[Pipeline, object]]:
        if action.call not in state.holding:
            if not self._exact:
                yield state, "breaker"
            return
        decided = state._replace(holding=state.holding - {action.call})
        for breaker, told in self._breaker.outcomes(state.breaker, action):
            if told == "admitted":
                yield decided._replace(breaker=breaker), told
            elif told == "breaker":
                yield decided._replace(breaker=breaker, owing=state.owing | {action.call}), told
