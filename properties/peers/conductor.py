"""Real threads that go on in the order of a way: each does its own steps, and waits until the one before is done."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from failstop.properties.schedules.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from failstop.properties.schedules.turns import Thread


class Conductor(Turns):
    """Turns by the steps of a way; owners: the number of the thread whose step each is.

    A step is done once its thread asks for its next one or ends. If it cannot be done now, because what is under test
    makes its thread wait, the way goes on without it, and it is done when it can be.
    """

    def __init__(self, owners: Sequence[int]) -> None:
        super().__init__(self._next)
        self.now = 0
        self.waited: list[int] = []
        """The steps that had to wait, in order."""
        self._owners = owners
        self._left = {who: deque(k for k, owner in enumerate(owners) if owner == who) for who in set(owners)}
        self._doing: dict[int, int] = {}

    def take(self, who: int) -> int | None:
        """Be done with the last step and wait for the next of this thread; None once the way has ended."""
        self.done(who)
        left = self._left.get(who)
        if not left:
            self.point(lambda: self.now >= len(self._owners))
            return None
        step = left.popleft()
        self.point(lambda: self.now >= step)
        self._doing[who] = step
        return step

    def done(self, who: int) -> None:
        """Be done with the last step."""
        step = self._doing.pop(who, None)
        if step is not None:
            self.now = max(self.now, step + 1)

    def coming(self, who: int) -> int | None:
        """Give the step that this thread will take next."""
        left = self._left.get(who)
        return left[0] if left else None

    def ready(self) -> list[Thread]:
        """See Turns; where nobody can go on, the way does."""
        while self.now < len(self._owners) and not any(thread.ready for thread in self.threads):
            self.waited.append(self.now)
            self.now += 1
        return super().ready()

    def _next(self, turns: Turns, me: Thread) -> Thread:
        ready = turns.ready()
        if self.now < len(self._owners):
            owner = turns.threads[self._owners[self.now]]
            if owner in ready:
                return owner
        return me if me in ready else ready[0]
