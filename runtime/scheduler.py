"""One daemon thread that runs every deadline of the process, from one heap."""

from __future__ import annotations

import heapq
import itertools
import os
import threading
import time
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable

_COMPACT_ABOVE = 64


class DeadlineScheduler:
    """Runs callbacks at monotonic times; the thread starts with the first alarm and never keeps the process alive.

    Callbacks must be short: they run one after the other. One that raises is reported through `threading.excepthook`
    and the others still run.
    """

    _shared: ClassVar[DeadlineScheduler | None] = None
    _shared_lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, now_ns: Callable[[], int] | None = None) -> None:
        self._now_ns = now_ns or time.monotonic_ns
        self._heap: list[tuple[int, int, ScheduledAlarm]] = []
        self._order = itertools.count()
        self._changed = threading.Condition(threading.Lock())
        self._cancelled = 0
        self._thread: threading.Thread | None = None

    @classmethod
    def shared(cls) -> DeadlineScheduler:
        """Give the process-wide scheduler; a forked child gets one of its own."""
        with cls._shared_lock:
            if cls._shared is None:
                cls._shared = cls()
            return cls._shared

    @classmethod
    def forget_shared(cls) -> None:
        """Drop the process-wide scheduler: after a fork its thread does not exist."""
        cls._shared_lock = threading.Lock()
        cls._shared = None

    def call_at(self, when_ns: int, callback: Callable[[], None]) -> ScheduledAlarm:
        """Run `callback` once `now_ns()` has reached `when_ns`."""
        alarm = ScheduledAlarm(self, callback)
        with self._changed:
            heapq.heappush(self._heap, (when_ns, next(self._order), alarm))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="failstop-deadlines", daemon=True)
                self._thread.start()
            self._changed.notify()
        return alarm

    def pending(self) -> int:
        """Count the alarms that are neither run nor cancelled."""
        with self._changed:
            return len(self._heap) - self._cancelled

    def note_cancelled(self) -> None:
        """Count a cancelled alarm and drop all of them once they are most of the heap, so that memory stays flat."""
        with self._changed:
            self._cancelled += 1
            if self._cancelled > _COMPACT_ABOVE and self._cancelled * 2 > len(self._heap):
                self._heap = [entry for entry in self._heap if entry[2].live]
                heapq.heapify(self._heap)
                self._cancelled = 0

    def _run(self) -> None:
        while True:
            self._wait_for_due().fire()

    def _wait_for_due(self) -> ScheduledAlarm:
        with self._changed:
            while True:
                if not self._heap:
                    self._changed.wait()
                    continue
                wait_ns = self._heap[0][0] - self._now_ns()
                if wait_ns <= 0:
                    alarm = heapq.heappop(self._heap)[2]
                    if not alarm.live:
                        self._cancelled = max(0, self._cancelled - 1)
                        continue
                    alarm.live = False
                    return alarm
                self._changed.wait(min(wait_ns / 1e9, threading.TIMEOUT_MAX))


class ScheduledAlarm:
    """A callback pending on the scheduler."""

    def __init__(self, scheduler: DeadlineScheduler, callback: Callable[[], None]) -> None:
        self._scheduler = scheduler
        self._callback: Callable[[], None] | None = callback
        self.live = True

    def cancel(self) -> None:
        """Drop the callback; harmless once it has run."""
        if self.live:
            self.live = False
            self._callback = None
            self._scheduler.note_cancelled()

    def fire(self) -> None:
        """Run the callback; what it raises is reported and goes no further."""
        callback, self._callback = self._callback, None
        if callback is None:
            return
        try:
            callback()
        except Exception as error:  # noqa: BLE001 - one bad callback must not end every other chain's deadline
            threading.excepthook(
                threading.ExceptHookArgs((type(error), error, error.__traceback__, threading.current_thread()))
            )


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=DeadlineScheduler.forget_shared)
