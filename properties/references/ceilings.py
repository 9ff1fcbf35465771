"""What any runtime with ceilings promises at least: nobody is let in beyond them; whom it refuses, and why, is its own.

For targets that promise less than a chain does to the letter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from failstop.planners.actions import STOPS
from failstop.properties.references.chain import DONE, Admit, Advance, ChainAction, Close, Halt, Look, Settle, bounds_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from failstop.runtime.limits import Limits


class AnyStop:
    """An answer that is equal to the name of every stop, so that one explanation stands for all of them."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return other in STOPS or isinstance(other, AnyStop)

    def __hash__(self) -> int:
        return hash(AnyStop)


ANY_STOP = AnyStop()


class Counted(NamedTuple):
    """What a witness counts: nano-dollars spent and estimated in flight, dispatches; and what was told to stop."""

    spent: int
    held: frozenset[tuple[str, int]]
    steps: int
    tool_calls: int
    retries: int
    now: int
    over: frozenset[str]


class CeilingsReference:
    """The reference; every limit is the root's, and children count into it."""

    initial = Counted(0, frozenset(), 0, 0, 0, 0, frozenset())

    def __init__(self, limits: Limits) -> None:
        self._bounds = bounds_of(limits)

    def outcomes(self, state: Counted, action: ChainAction) -> Iterator[tuple[Counted, object]]:
        """See Reference."""
        match action:
            case Admit():
                if self._fits(state, action):
                    yield _with(state, action), "admitted"
                yield state, ANY_STOP
            case Settle():
                held = next(each for each in state.held if each[0] == action.call)
                cost = held[1] if action.cost is None else action.cost
                yield state._replace(spent=state.spent + cost, held=state.held - {held}), DONE
            case Close() | Halt():
                yield state._replace(over=state.over | {action.context}), DONE
            case Advance():
                yield state._replace(now=state.now + action.duration_ns), DONE
            case Look():
                raise TypeError("what a target shows of its counters is no promise")

    def _fits(self, state: Counted, action: Admit) -> bool:
        max_cost, max_steps, max_tool_calls, max_retries, deadline = self._bounds
        if any(action.context == name or action.context.startswith(f"{name}/") for name in state.over):
            return False
        spent = state.spent + sum(held for _, held in state.held) + max(0, action.asked)
        return not (
            0 <= deadline <= state.now
            or 0 <= max_steps <= state.steps
            or (action.tool and 0 <= max_tool_calls <= state.tool_calls)
            or (action.retry and 0 <= max_retries <= state.retries)
            or 0 <= max_cost < spent
        )


def _with(state: Counted, action: Admit) -> Counted:
    return state._replace(
        held=state.held | {(action.call, max(0, action.asked))},
        steps=state.steps + 1,
        tool_calls=state.tool_calls + action.tool,
        retries=state.retries + action.retry,
    )
