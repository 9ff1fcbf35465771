"""Locks and events that take turns, and give threading's names to themselves while a schedule is run.

A lock that a module took hold of before cannot be had any more: such a module is imported while they are in place.
"""

from __future__ import annotations

import _thread
import threading
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING
from unittest.mock import patch

from failstop.properties.schedules.turns import Deadlock, Over, Stuck, Turns

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType


_POLL_S = 0.02


class _Active:
    """The schedule that is being run, for the locks."""

    turns: Turns | None = None
    runner: int | None = None
    """The thread that runs schedules."""


class TurnLock:
    """A lock whose takers take turns; without a schedule it must be free when it is wanted."""

    reentrant = False

    def __init__(self) -> None:
        self.owner: int | None = None
        self.count = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """See threading.Lock; a time-out passes only when nothing else can happen."""
        me = _thread.get_ident()
        times_out = timeout >= 0
        if _Active.turns is not None:
            _Active.turns.before_lock(lambda: not blocking or self._is_free_for(me), times_out=times_out)
        if not self._is_free_for(me):
            if not blocking or times_out:
                return False
            if me == _Active.runner:
                raise Deadlock("a lock is wanted outside of the schedule that holds it")
            self._wait_outside(me)
        self.owner = me
        self.count += 1
        return True

    def release(self) -> None:
        """See threading.Lock."""
        if self.count == 0:
            raise RuntimeError("release unlocked lock")
        self.count -= 1
        if self.count == 0:
            self.owner = None

    def locked(self) -> bool:
        """See threading.Lock."""
        return self.count > 0

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _wait_outside(self, me: int) -> None:
        """Wait as a thread that the object under test started for itself, and that is no part of the schedule."""
        while not self._is_free_for(me):
            time.sleep(_POLL_S)

    def _is_free_for(self, ident: int) -> bool:
        return self.count == 0 or (self.reentrant and self.owner == ident)

    def _at_fork_reinit(self) -> None:
        self.owner, self.count = None, 0


class TurnRLock(TurnLock):
    """The same for threading.RLock."""

    reentrant = True

    def release(self) -> None:
        """See threading.RLock."""
        if not self._is_owned():
            raise RuntimeError("cannot release un-acquired lock")
        super().release()

    def _is_owned(self) -> bool:
        return self.owner == _thread.get_ident()

    def _release_save(self) -> tuple[int, int | None]:
        saved = (self.count, self.owner)
        self.count, self.owner = 0, None
        return saved

    def _acquire_restore(self, saved: tuple[int, int | None]) -> None:
        self.acquire()
        self.count, self.owner = saved


class TurnEvent:
    """The same for threading.Event, each of whose operations is one step."""

    def __init__(self) -> None:
        self._is_set = False

    def is_set(self) -> bool:
        """See threading.Event."""
        return self._is_set

    def set(self) -> None:
        """See threading.Event."""
        self._is_set = True

    def clear(self) -> None:
        """See threading.Event."""
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        """See threading.Event; it does not time out as long as anything else can happen."""
        if _Active.turns is not None and not self._is_set:
            _Active.turns.point(self.is_set, times_out=timeout is not None)
        return self._is_set


_real_start = threading.Thread.start


def _start(self: threading.Thread) -> None:
    """Give the schedule up: a thread that takes no turns may do anything at any time."""
    turns = _Active.turns
    if turns is not None and turns.current() is not None:
        turns.abandon(Stuck("a thread was started that takes no turns"))
        raise Over
    _real_start(self)


@contextmanager
def turn_locks() -> Iterator[None]:
    """Let threading give out locks that take turns; those of conditions are made of them."""
    names = {"Lock": TurnLock, "RLock": TurnRLock, "_allocate_lock": TurnLock, "Event": TurnEvent}
    with ExitStack() as stack:
        for name, lock in names.items():
            stack.enter_context(patch.object(threading, name, lock))
        stack.enter_context(patch.object(threading.Thread, "start", _start))
        stack.enter_context(patch.object(_Active, "runner", _thread.get_ident()))
        yield


@contextmanager
def active(turns: Turns) -> Iterator[None]:
    """Let the locks take turns by this schedule."""
    before, _Active.turns = _Active.turns, turns
    try:
        yield
    finally:
        _Active.turns = before
