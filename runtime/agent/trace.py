"""What a run did, turn by turn, in two copies: the run's own, and the one that the planner is shown."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from failstop.runtime.agent.planner import Action, History, Observation, Turn
from failstop.runtime.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(slots=True)
class OpenTurn:
    """A turn that is being performed."""

    number: int
    action: Action
    observations: list[Observation] = field(default_factory=list)


class Trace:
    """The turns of one run; a turn that a stop cut short stays with what was observed until then."""

    def __init__(self, goal: str) -> None:
        self._goal = goal
        self._lock = threading.Lock()
        self._turns: list[OpenTurn] = []
        self._shown: list[Turn] = []

    def open(self, action: Action) -> OpenTurn:
        """Begin a turn."""
        with self._lock:
            turn = OpenTurn(len(self._turns) + 1, action)
            self._turns.append(turn)
            return turn

    def close(self, turn: OpenTurn) -> tuple[Observation, ...]:
        """Show a turn to the planner from now on; gives the planner's copy of what came of it."""
        shown = Turn(turn.number, _copy_action(turn.action), copies(turn.observations))
        with self._lock:
            self._shown.append(shown)
        return shown.observations

    def history(self) -> History:
        """Give the planner's copy."""
        with self._lock:
            return History(self._goal, tuple(self._shown))

    def turns(self) -> tuple[Turn, ...]:
        """Give the turns as they really were."""
        with self._lock:
            return tuple(Turn(turn.number, turn.action, tuple(turn.observations)) for turn in self._turns)


def copies(observations: Sequence[Observation]) -> tuple[Observation, ...]:
    """Copy observations, so that not even `object.__setattr__` on a copy reaches the run's own."""
    return tuple(replace(seen, value=frozen(seen.value)) for seen in observations)


def _copy_action(action: Action) -> Action:
    return replace(action, calls=tuple(replace(call, args=frozen(call.args)) for call in action.calls))
