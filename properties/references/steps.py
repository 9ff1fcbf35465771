"""A step guard that stands alone, one step after another (G2); the steps are the functions of `runtime.cores.steps`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from failstop.properties.references.chain import DONE
from failstop.runtime.cores.steps import give_back, step

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Step:
    """Take one step; a result that is not None is kept, admitted or not."""

    result: str | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """Take the step of a call."""

    call: str


@dataclass(frozen=True, slots=True)
class Release:
    """The call never began: its step goes back, once, unless the guard was reset since."""

    call: str


@dataclass(frozen=True, slots=True)
class Reset:
    """Begin anew."""


@dataclass(frozen=True, slots=True)
class Look:
    """Somebody looks, while nothing else goes on: (steps taken, the newest result)."""


StepsAction: TypeAlias = Step | Check | Release | Reset | Look


class Taken(NamedTuple):
    """The steps taken, the newest result, and the calls that could still give theirs back."""

    steps: int = 0
    result: str | None = None
    calls: frozenset[str] = frozenset()


class StepsReference:
    """The reference; limit None: none. Not exact: a step may be refused for whatever reason."""

    initial = Taken()

    def __init__(self, limit: int | None, *, exact: bool) -> None:
        self._limit = -1 if limit is None else limit
        self._exact = exact

    def outcomes(self, state: Taken, action: StepsAction) -> Iterator[tuple[Taken, object]]:
        """See Reference."""
        match action:
            case Step():
                steps, admitted = step(state.steps, self._limit)
                kept = state if action.result is None else state._replace(result=action.result)
                yield kept._replace(steps=steps), admitted
                if admitted and not self._exact:
                    yield kept, False
            case Check():
                steps, admitted = step(state.steps, self._limit)
                if admitted:
                    yield state._replace(steps=steps, calls=state.calls | {action.call}), "admitted"
                if not admitted or not self._exact:
                    yield state, "denied"
            case Release():
                if action.call in state.calls:
                    state = state._replace(steps=give_back(state.steps), calls=state.calls - {action.call})
                yield state, DONE
            case Reset():
                yield Taken(), DONE
            case Look():
                yield state, (state.steps, state.result)
