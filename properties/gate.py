"""Where the calls of one fan-out wait for one another inside their tools, so that a race does not depend on luck.

Each call of the fan-out either arrives in its tool or is refused before it gets there. The gate opens once all of them
have done the one or the other: a runtime that checks first and counts later has then let in everybody.
"""

from __future__ import annotations

import asyncio
import threading

_QUIET_ROUNDS = 200


class Gate:
    """Opens for good once `size` calls have arrived or turned back, or nobody new has come for `patience_s`.

    gave_up: it was the latter. Who comes then may have been let in long before, and was only slow to arrive.
    """

    def __init__(self, size: int, patience_s: float) -> None:
        self.gave_up = False
        self._missing = size
        self._patience_s = patience_s
        self._open = False
        self._changed = threading.Condition(threading.Lock())

    def turn_back(self) -> None:
        """Say that one call ended without arriving."""
        with self._changed:
            self._count()

    def arrive(self) -> None:
        """Wait inside the tool."""
        with self._changed:
            self._count()
            while not self._open:
                missing = self._missing
                if not self._changed.wait(self._patience_s) and missing == self._missing and not self._open:
                    self._open = self.gave_up = True
            self._changed.notify_all()

    async def aarrive(self) -> None:
        """Wait inside the tool on an event loop; patience is counted in turns of the loop in which nobody comes."""
        with self._changed:
            self._count()
        quiet = 0
        while not self._open and quiet < _QUIET_ROUNDS:
            missing = self._missing
            await asyncio.sleep(0)
            quiet = quiet + 1 if missing == self._missing else 0
        self.gave_up = self.gave_up or not self._open
        self._open = True

    def _count(self) -> None:
        self._missing -= 1
        self._open = self._open or self._missing <= 0
        self._changed.notify_all()
