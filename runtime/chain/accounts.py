"""What a ledger keeps: the account of each set of limits, and what a root shares with its children."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from failstop.runtime.cores import ledger as core
from failstop.runtime.limits import UNLIMITED, Limits, count_or_unlimited
from failstop.runtime.stops import (
    ClosedStop,
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
    """Where events go; `record` returns once the event is written, and raises if it cannot be."""

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
    """What the ledgers of a root and its children share: one lock, one clock, one log, the calls that wait."""

    __slots__ = ("audit", "lock", "names", "now_ns", "origin_ns", "released", "waiters")

    def __init__(self, clock: Clock, audit: AuditSink | None) -> None:
        self.lock = threading.Lock()
        self.now_ns = clock.now_ns
        self.origin_ns = clock.now_ns()
        self.audit = audit
        self.released = 0
        self.names: set[str] = set()
        self.waiters: list[Callable[[], None]] = []


class Account:
    """The state of one set of limits, and the stop that ended it."""

    __slots__ = ("bounds", "name", "started_ns", "state", "stop")

    def __init__(self, name: str, limits: Limits, started_ns: int) -> None:
        self.name = name
        self.state = core.INITIAL
        self.started_ns = started_ns
        self.stop: Stop | None = None
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
