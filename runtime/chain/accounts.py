"""What a ledger keeps: the account of each set of limits, and what a root shares with its children."""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

from failstop.runtime.cores import ledger as core
from failstop.runtime.limits import UNLIMITED, Limits, count_or_unlimited
from failstop.runtime.stops import (
    ClosedStop,
    ConfigurationError,
    CostStop,
    HaltedStop,
    RepeatStop,
    RetryStop,
    StepStop,
    Stop,
    TimeStop,
    ToolCallStop,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from failstop.runtime.clock import Clock

_LONGER_THAN_A_SECTION_S = 1.0

_STOPS: dict[int, type[Stop]] = {
    core.COST: CostStop,
    core.OVERRUN: CostStop,
    core.STEPS: StepStop,
    core.TOOL_CALLS: ToolCallStop,
    core.RETRIES: RetryStop,
    core.TIME: TimeStop,
    core.REPEATS: RepeatStop,
    core.HALTED: HaltedStop,
    core.CLOSED: ClosedStop,
}


class AuditSink(Protocol):
    """Where events go; `record` returns once the event is written, and raises if it cannot be.

    It is called inside the chain's critical section, so it must not call the chain.
    """

    def record(self, kind: str, data: Mapping[str, Any], /) -> object:
        """Write one event."""


class Owner(Protocol):
    """Who asks: a context, which can be closed while its chain goes on."""

    name: str
    closed: bool


def closed_stop(owner: Owner) -> ClosedStop:
    """Make the stop of a context that was closed while its chain may go on."""
    return ClosedStop(detail=f"context {owner.name!r} was closed")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One consistent view of a chain, in nano-dollars and nanoseconds; `stop` names the ceiling, or is None."""

    committed_nano: int
    reserved_nano: int
    steps: int
    tool_calls: int
    retries: int
    stop: str | None
    elapsed_ns: int


class Chain:
    """What the ledgers of a root and its children share: one lock, one clock, one log, the calls that wait.

    A critical section is ``with chain, chain.lock``. The lock is not re-entrant, and a signal handler or a generator
    that the garbage collector closes may come in the middle of a section of the same thread: what these do is posted,
    and is done at once or by whoever holds the lock, before anything more is admitted.
    """

    __slots__ = (
        "__weakref__",
        "audit",
        "forked",
        "holding",
        "lock",
        "names",
        "now_ns",
        "origin_ns",
        "posted",
        "released",
        "waiters",
    )

    def __init__(self, clock: Clock, audit: AuditSink | None) -> None:
        self.lock = threading.Lock()
        self.now_ns = clock.now_ns
        self.origin_ns = _checked_origin(clock.now_ns())
        self.audit = audit
        self.released = 0
        self.names: set[str] = set()
        self.waiters: list[Callable[[], None]] = []
        self.holding: dict[int, int] = {}
        """Which thread each call that holds money belongs to; negative if that thread is not inside of the call."""
        self.posted: deque[Callable[[], None]] = deque()
        self.forked = False
        _chains.add(self)

    def __enter__(self) -> Self:
        if self.forked:
            raise HaltedStop(detail="this chain belongs to the process that this one was forked from; open a new one")
        return self

    def __exit__(self, *_: object) -> None:
        if self.posted:
            self.drain()

    def post(self, action: Callable[[], None]) -> None:
        """Do this as a section, now or as soon as whoever holds the lock lets go of it; it never waits."""
        self.posted.append(action)
        self.drain()

    def catch_up(self) -> None:
        """Do what was posted; the caller holds the lock."""
        while self.posted:
            self.posted.popleft()()

    def free_lock(self) -> None:
        """Let go of the lock after an interrupt that may have come between taking it and entering the section.

        Nobody can tell whose it is, but a section of a chain without a log lasts microseconds: what is still taken
        after a second is the caller's own.
        """
        self.lock.acquire(timeout=_LONGER_THAN_A_SECTION_S)
        self.lock.release()

    def belongs_to_parent(self) -> None:
        """Refuse every section: in a forked child this is a copy, and its lock may be held by a thread that is gone."""
        self.forked = True
        # Never done: it keeps the quick call, which looks for what was posted, out as well.
        self.posted.append(self.belongs_to_parent)
        self.lock._at_fork_reinit()  # type: ignore[attr-defined]  # noqa: SLF001 - what the standard library does here

    def drain(self) -> None:
        """Do what was posted, unless somebody else holds the lock: they will."""
        while self.posted and not self.forked and self.lock.acquire(blocking=False):
            try:
                self.catch_up()
            finally:
                self.lock.release()


_chains: weakref.WeakSet[Chain] = weakref.WeakSet()


def _after_fork() -> None:
    for chain in list(_chains):
        chain.belongs_to_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _checked_origin(now_ns: object) -> int:
    # Below zero a deadline would read as none.
    if type(now_ns) is not int or now_ns < 0:
        raise ConfigurationError("clock", now_ns, "a clock whose now_ns() is a whole number, zero or more")
    return now_ns


class Account:
    """The state of one set of limits, and the stop that ended it."""

    __slots__ = ("bounds", "halted", "name", "started_ns", "state", "stop")

    def __init__(self, name: str, limits: Limits, started_ns: int) -> None:
        self.name = name
        self.state = core.INITIAL
        self.started_ns = started_ns
        self.stop: Stop | None = None
        self.halted: Stop | None = None
        """A stop by hand, from the moment it was asked for; it becomes `stop` in a section."""
        self.bounds: core.Bounds = (
            limits.max_cost_nano,
            count_or_unlimited(limits.max_steps),
            count_or_unlimited(limits.max_tool_calls),
            count_or_unlimited(limits.max_retries),
            UNLIMITED if limits.max_ns == UNLIMITED else started_ns + limits.max_ns,
        )

    def stop_for(self, code: int, now: int, detail: str) -> Stop:
        """Name the ceiling that `code` stands for, with its limit and what was used of it."""
        committed, _, steps, tool_calls, retries, _ = self.state
        max_cost, max_steps, max_tool_calls, max_retries, deadline = self.bounds
        numbers: dict[int, tuple[int, int]] = {
            core.COST: (max_cost, committed),
            core.OVERRUN: (max_cost, committed),
            core.STEPS: (max_steps, steps),
            core.TOOL_CALLS: (max_tool_calls, tool_calls),
            core.RETRIES: (max_retries, retries),
            core.TIME: (deadline - self.started_ns, now - self.started_ns),
        }
        limit, used = numbers.get(code, (None, None))
        return _STOPS[code](limit, used, detail)
