"""What the machines and the schedules work on: an object under test, the moves to make on it, and its reference.

A move is played in a lane, one thread or task; while it is played, the lane notes what was asked and answered, by the
witness inside the stub and not by the object. A call is two operations: its admission, which ends when the stub begins
or the call is refused, and its settlement, which begins when the stub ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from failstop.properties.linearizable import Begin, End, Event, Withdraw

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from failstop.properties.linearizable import Gap, Reference
    from failstop.properties.target import AnyTarget

Move: TypeAlias = "Hashable"


class NotOffered(Exception):  # noqa: N818 - it tells what happened
    """The target has no such object."""


def no_pause() -> None:
    """Go on at once."""


class Lane:
    """One thread's part of a history; `pause` lets others run before each operation."""

    def __init__(self, number: int, note: Callable[[Event], object], pause: Callable[[], None] = no_pause) -> None:
        self.number = number
        self.pause = pause
        self._note = note

    def begin(self, action: Hashable, *, together: bool = False) -> None:
        """Note that an operation is asked for; together: at the same moment as the one before."""
        if not together:
            self.pause()
        self._note(Begin(self.number, action))

    def end(self, answer: Hashable) -> None:
        """Note the answer to the first operation that is not answered."""
        self._note(End(self.number, answer))

    def withdraw(self) -> None:
        """Note that the last operation begun was never asked for."""
        self._note(Withdraw(self.number))


class Instrument(Protocol):
    """One object under test, in one run."""

    def play(self, move: Any, lane: Lane) -> None:
        """Make a move; what the object raises besides its refusals and the stub's own errors is raised."""

    def look(self, lane: Lane) -> None:
        """Note what can be seen of its state, as an operation; nothing if the target shows none."""

    def close(self) -> None:
        """Let go of what was opened."""


class Subject(Protocol):
    """A protocol with its settings."""

    @property
    def name(self) -> str:
        """Such as "chain" or "breaker"."""

    @property
    def ignored(self) -> tuple[type, ...]:
        """Types of objects inside it that nothing it does depends on."""

    def told(self, gap: Gap) -> str:
        """Say in a line, with numbers, what the first event is that nothing explains."""

    def reference(self, *, exact: bool) -> Reference:
        """Give the reference; not exact: one that allows every refusal, for targets that only promise ceilings."""

    def open(self, target: AnyTarget) -> Instrument:
        """Make one under test; raises NotOffered."""
