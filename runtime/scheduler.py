"""One daemon thread that runs every deadline of the process, from one heap."""

from __future__ import annotations

import heapq
import itertools
import os
import threading
import time
from typing import TYPE_CHECKING, ClassVar

from failstop.runtime.callbacks import run_reported

if TYPE_CHECKING:
    from collections.abc import Callable

_COMPACT_ABOVE = 64


class DeadlineScheduler:
    """Runs callbacks at monotonic times; the thread starts with the first alarm and never keeps the process alive.

    Callbacks must be short: they run one after the other. What one raises is reported through `threading.excepthook`,
    and the others still run.
    """

    _shared: ClassVar[DeadlineScheduler | None] = None
    _shared_lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, now_ns: Callable[[], int] | None = None) -> None:
        self._now_ns = now_ns or time.monotonic_ns
        self._heap: list[tuple[int, int, ScheduledAlarm]] = []
        self._order = itertools.count()
        # Re-entrant: a signal handler may set an alarm in the middle of another one's.
        self._changed = threading.Condition(threading.RLock())
        self._compact_above = _COMPACT_ABOVE
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
        """Run `callback` once `now_ns()` has reached `when_ns`; raises RuntimeError if no thread can be started."""
        alarm = ScheduledAlarm(callback)
        with self._changed:
            self._start_if_dead()
            heapq.heappush(self._heap, (when_ns, next(self._order), alarm))
            self._drop_cancelled()
            self._changed.notify()
        return alarm

    def pending(self) -> int:
        """Count the alarms that are neither run nor cancelled."""
        with self._changed:
            return sum(alarm.live for _, _, alarm in self._heap)

    def _start_if_dead(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            thread = threading.Thread(target=self._run, name="failstop-deadlines", daemon=True)
            thread.start()
            self._thread = thread

    def _drop_cancelled(self) -> None:
        """Keep memory flat, however many alarms are cancelled before their time; cancelling itself takes no lock."""
        if len(self._heap) > self._compact_above:
            self._heap = [entry for entry in self._heap if entry[2].live]
            heapq.heapify(self._heap)
            self._compact_above = max(_COMPACT_ABOVE, 2 * len(self._heap))

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
                    if alarm.live:
                        return alarm
                    continue
                self._changed.wait(min(wait_ns / 1e9, threading.TIMEOUT_MAX))


class ScheduledAlarm:
    """A callback pending on the scheduler."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback: Callable[[], None] | None = callback

    @property
    def live(self) -> bool:
        """True until it was run or cancelled."""
        return self._callback is not None

    def cancel(self) -> None:
        """Drop the callback; harmless once it has run."""
        self._callback = None

    def fire(self) -> None:
        """Run the callback; what it raises is reported and goes no further."""
        callback, self._callback = self._callback, None
        if callback is not None:
            run_reported(callback)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=DeadlineScheduler.forget_shared)
