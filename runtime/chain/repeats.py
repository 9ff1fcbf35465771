"""Loop detection by exact repetition: the same action again and again, not two that alternate."""

from __future__ import annotations

from failstop.runtime.cores import repeats as core


class RepeatCounter:
    """Counts how often one fingerprint came in a row, under the ledger's lock; `max_repeats` below zero is no limit."""

    def __init__(self, max_repeats: int) -> None:
        self.max_repeats = max_repeats
        self._last: str | None = None
        self._run = 0

    def turn(self, fingerprint: str) -> bool:
        """Count one action; False if it came `max_repeats` times in a row already."""
        self._run, allowed = core.turn(self._run, fingerprint == self._last, self.max_repeats)
        self._last = fingerprint
        return allowed
