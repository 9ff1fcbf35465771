"""Time, passed in: a monotonic reading, a wall reading, alarms and sleep, all in integer nanoseconds.

Nothing in the runtime reads a clock of its own, so a test moves a `VirtualClock` and never sleeps.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import threading
import time
from typing import TYPE_CHECKING, Protocol

from failstop.runtime.scheduler import DeadlineScheduler

if TYPE_CHECKING:
    from collections.abc import Callable

NS_PER_SECOND = 10**9


class Alarm(Protocol):
    """A pending callback."""

    def cancel(self) -> None:
        """Drop the callback; harmless once it has run."""


class Clock(Protocol):
    """What the runtime asks of time."""

    def now_ns(self) -> int:
        """Monotonic nanoseconds from an arbitrary origin."""

    def wall_ns(self) -> int:
        """Nanoseconds since 1970-01-01 UTC; may step, so no limit rests on it."""

    def call_at(self, when_ns: int, callback: Callable[[], None]) -> Alarm:
        """Run `callback` once when `now_ns` has reached `when_ns`, on another thread."""

    def sleep_ns(self, duration_ns: int) -> None:
        """Return once `duration_ns` have passed."""

    async def asleep_ns(self, duration_ns: int) -> None:
        """Return once `duration_ns` have passed, while other tasks run."""


class SystemClock:
    """The machine's own clock; its alarms share one scheduler thread."""

    def __init__(self) -> None:
        # Looked up here, not at import: a schedule explorer patches the time module before contexts are made.
        self.now_ns = time.monotonic_ns
        self.wall_ns = time.time_ns

    def call_at(self, when_ns: int, callback: Callable[[], None]) -> Alarm:
        """See Clock."""
        return DeadlineScheduler.shared().call_at(when_ns, callback)

    def sleep_ns(self, duration_ns: int) -> None:
        """See Clock."""
        time.sleep(duration_ns / NS_PER_SECOND)

    async def asleep_ns(self, duration_ns: int) -> None:
        """See Clock."""
        await asyncio.sleep(duration_ns / NS_PER_SECOND)


class VirtualClock:
    """A clock that moves only when told; due alarms run inside `advance_ns`, in time order, on the caller's thread."""

    def __init__(self, start_ns: int = 0, wall_start_ns: int = 1_700_000_000 * NS_PER_SECOND) -> None:
        self._now_ns = start_ns
        self._wall_offset_ns = wall_start_ns - start_ns
        self._alarms: list[tuple[int, int, VirtualAlarm]] = []
        self._order = itertools.count()
        self._lock = threading.Lock()

    def now_ns(self) -> int:
        """See Clock."""
        return self._now_ns

    def wall_ns(self) -> int:
        """See Clock."""
        return self._now_ns + self._wall_offset_ns

    def call_at(self, when_ns: int, callback: Callable[[], None]) -> VirtualAlarm:
        """See Clock; an alarm already due runs at the next advance."""
        alarm = VirtualAlarm(callback)
        with self._lock:
            heapq.heappush(self._alarms, (when_ns, next(self._order), alarm))
        return alarm

    def sleep_ns(self, duration_ns: int) -> None:
        """Advance instead of sleeping."""
        self.advance_ns(duration_ns)

    async def asleep_ns(self, duration_ns: int) -> None:
        """Advance instead of sleeping, and let other tasks run."""
        self.advance_ns(duration_ns)
        await asyncio.sleep(0)

    def advance_ns(self, duration_ns: int) -> None:
        """Move time forward by `duration_ns` (zero or more) and run what falls due."""
        if duration_ns < 0:
            raise ValueError(f"duration_ns is {duration_ns}; a monotonic clock moves forward only")
        with self._lock:
            target = self._now_ns + duration_ns
        while (alarm := self._next_due(target)) is not None:
            alarm.fire()

    def _next_due(self, target_ns: int) -> VirtualAlarm | None:
        with self._lock:
            if self._alarms and self._alarms[0][0] <= target_ns:
                when_ns, _, alarm = heapq.heappop(self._alarms)
                self._now_ns = max(self._now_ns, when_ns)
                return alarm
            self._now_ns = max(self._now_ns, target_ns)
            return None


class VirtualAlarm:
    """A callback pending on a VirtualClock."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        """See Alarm."""
        self._callback = None

    def fire(self) -> None:
        """Run the callback unless it was cancelled or has run."""
        callback, self._callback = self._callback, None
        if callback is not None:
            callback()
