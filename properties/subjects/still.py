"""A clock that only moves when somebody says so: no backoff, however long, makes a deadline pass."""

from __future__ import annotations

from failstop.runtime.clock import VirtualClock


class StillClock(VirtualClock):
    """A virtual clock on which sleeping takes no time."""

    def sleep_ns(self, duration_ns: int) -> None:
        """See Clock."""

    async def asleep_ns(self, duration_ns: int) -> None:
        """See Clock."""
