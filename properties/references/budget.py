"""A budget that stands alone, one step after another (G1); the steps are the functions of `runtime.cores.budget`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from failstop.properties.references.chain import DONE
from failstop.runtime.cores.budget import ADMITTED, INITIAL, NO_ESTIMATE, State, hold, release, reset, settle, spend

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Spend:
    """Commit nano-dollars, if they fit."""

    nano: int


@dataclass(frozen=True, slots=True)
class Check:
    """Hold what a call may cost at most, in nano-dollars; None: nobody knows."""

    call: str
    reserve: int | None = 0


@dataclass(frozen=True, slots=True)
class Release:
    """The call never began: its hold goes back, once."""

    call: str


@dataclass(frozen=True, slots=True)
class Report:
    """The call ended; cost: nano-dollars, or None for all that it held."""

    call: str
    cost: int | None = None


@dataclass(frozen=True, slots=True)
class Reset:
    """Begin anew."""


@dataclass(frozen=True, slots=True)
class Look:
    """Somebody looks at the counters, while nothing else goes on: (nano-dollars spent, reserved, calls, shut)."""


BudgetAction: TypeAlias = Spend | Check | Release | Report | Reset | Look


class Holding(NamedTuple):
    """The core's state, and what each call in flight holds."""

    state: State
    holds: frozenset[tuple[str, int]]


class BudgetReference:
    """The reference; limit in nano-dollars, None: none.

    Not exact: whatever is asked may be refused, and a refusal need not shut the budget.
    """

    initial = Holding(INITIAL, frozenset())

    def __init__(self, limit: int | None, *, exact: bool) -> None:
        self._limit = -1 if limit is None else limit
        self._exact = exact

    def outcomes(self, state: Holding, action: BudgetAction) -> Iterator[tuple[Holding, object]]:
        """See Reference."""
        match action:
            case Spend():
                after = spend(self._seen(state), self._limit, action.nano)
                refused = after[3]
                if self._exact or not refused:
                    yield state._replace(state=after), not refused
                if not self._exact:
                    yield state, False
            case Check():
                yield from self._checked(state, action)
            case Release() | Report():
                yield self._ended(state, action), DONE
            case Reset():
                yield state._replace(state=reset(state.state)), DONE
            case Look():
                yield state, state.state

    def _seen(self, state: Holding) -> State:
        spent, reserved, calls, shut = state.state
        return (spent, reserved, calls, shut and self._exact)

    def _checked(self, state: Holding, action: Check) -> Iterator[tuple[Holding, object]]:
        asked = NO_ESTIMATE if action.reserve is None else action.reserve
        after, verdict, held = hold(self._seen(state), self._limit, asked)
        if verdict == ADMITTED:
            yield Holding(after, state.holds | {(action.call, held)}), "admitted"
        elif self._exact:
            yield state._replace(state=after), "denied"
        if not self._exact:
            yield state, "denied"

    def _ended(self, state: Holding, action: Release | Report) -> Holding:
        """End a hold, once; a second end changes nothing."""
        for call, held in state.holds:
            if call == action.call:
                if isinstance(action, Release):
                    after = release(state.state, held)
                else:
                    cost = held if action.cost is None else action.cost
                    after = settle(state.state, self._limit, held, cost)
                return Holding(after, state.holds - {(call, held)})
        return state
