"""Rebuilds a run from its log alone: no planner, no model and no tool is run.

A log that ends early gives everything up to its end, with the outcome "interrupted", or "needs_approval" if the run was
waiting for a person. A context without a loop has no goal and no turns, and ends as "budget_stop" or "closed". A log
that was altered, or lacks what a number rests on, gives an error and no run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from failstop.runtime.audit.event_fields import (
    ReplayError,
    calls_of,
    count,
    field,
    field_or_none,
    limits_of,
    opening,
    value_of,
    where,
)
from failstop.runtime.audit.event_log import Event, LoadedLog
from failstop.runtime.audit.replayed import (
    CLOSED,
    INTERRUPTED,
    Recorded,
    RecordedFailure,
    ReplayedApproval,
    ReplayedCall,
    ReplayedRun,
    ReplayedStop,
    ReplayedTurn,
    ReplayMiss,
)
from failstop.runtime.audit.story import story
from failstop.runtime.audit.totals import Counters, Totals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = [
    "Counters",
    "Recorded",
    "RecordedFailure",
    "ReplayError",
    "ReplayMiss",
    "ReplayedApproval",
    "ReplayedCall",
    "ReplayedRun",
    "ReplayedStop",
    "ReplayedTurn",
    "replay",
    "story",
]


def replay(log: LoadedLog | Iterable[Event]) -> ReplayedRun:
    """Rebuild the run; raises ReplayError for a log that was altered, has no start or open, or lacks a field."""
    if not isinstance(log, LoadedLog):
        return _Replay(list(log)).run(None)
    if log.problem is not None:
        raise ReplayError(f"{log.path} was altered and cannot be trusted: {log.problem}")
    return _Replay(list(log.events)).run(log.truncated_at)


class _Replay:
    """What the events so far have come to."""

    def __init__(self, events: list[Event]) -> None:
        self._events = events
        self.totals = Totals()
        self._turns: list[tuple[int, str, list[str]]] = []
        self._calls: dict[str, ReplayedCall] = {}
        self._observed: list[str] = []
        self._approvals: dict[str, ReplayedApproval] = {}
        self._stops: list[ReplayedStop] = []
        self._planner_errors: list[str] = []
        self._closed: set[str] = set()
        self._mended = 0
        self._finish: Event | None = None

    def run(self, truncated_at: int | None) -> ReplayedRun:
        start = next((event for event in self._events if event.kind == "start"), None)
        first = opening(self._events) if start is None else start
        if first is None:
            raise ReplayError("the log has no event of kind start or open, so neither the run nor its limits are known")
        self._name = field(first, "context" if start is None else "run", str)
        for event in self._events:
            _READERS.get(event.kind, _pass_over)(self, event)
        outcome, value, error = self._ending() if start is not None else (self._end_of_a_context(), None, None)
        return ReplayedRun(
            run=self._name,
            goal="" if start is None else field(start, "goal", str),
            limits=limits_of(first),
            turns=tuple(self._turn(*turn) for turn in self._turns),
            observed=tuple(self._call(call_id) for call_id in self._observed),
            approvals=tuple(self._approvals.values()),
            stops=tuple(self._stops),
            planner_errors=tuple(self._planner_errors),
            counters=self.totals.counters(),
            outcome=outcome,
            value=value,
            error=error,
            truncated_at=truncated_at,
            mended=self._mended,
        )

    def _ending(self) -> tuple[str, Any, str | None]:
        if self._finish is not None:
            finish = self._finish
            return field(finish, "outcome", str), value_of(finish, "value"), field_or_none(finish, "error", str)
        waiting = any(approval.approved is None for approval in self._approvals.values())
        return "needs_approval" if waiting else INTERRUPTED, None, None

    def _end_of_a_context(self) -> str:
        if any(stop.context == self._name for stop in self._stops):
            return "budget_stop"
        return CLOSED if self._name in self._closed else INTERRUPTED

    def _turn(self, number: int, reasoning: str, call_ids: list[str]) -> ReplayedTurn:
        return ReplayedTurn(number, reasoning, tuple(self._call(call_id) for call_id in call_ids))

    def _call(self, call_id: str) -> ReplayedCall:
        return replace(self._calls[call_id], approval=self._approvals.get(f"{self._name}:{call_id}"))

    def step(self, event: Event) -> None:
        number = count(event, "n", 1)
        call_ids = []
        for place, (tool, args) in enumerate(calls_of(event), start=1):
            call_ids.append(f"{number}.{place}")
            if call_ids[-1] in self._calls:
                raise ReplayError(f"{where(event)}: n is {number}, which an earlier step has")
            self._calls[call_ids[-1]] = ReplayedCall(call_ids[-1], tool, args)
        self._turns.append((number, field(event, "reasoning", str), call_ids))

    def tool_result(self, event: Event) -> None:
        self._observe(event, seen="ok", value=value_of(event, "value"))

    def tool_error(self, event: Event) -> None:
        told = {"seen": field(event, "seen", str), "error": field(event, "error", str)}
        self._observe(event, **told, unknown=field(event, "unknown", bool))

    def _observe(self, event: Event, **told: Any) -> None:
        call_id = field(event, "call_id", str)
        call = self._calls.get(call_id)
        if call is None or call.seen:
            raise ReplayError(f"{where(event)}: call_id is {call_id!r}, which no step asked for or which came already")
        self._calls[call_id] = replace(call, **told)
        self._observed.append(call_id)

    def approval(self, event: Event) -> None:
        request = field(event, "request", str)
        self._approvals[request] = ReplayedApproval(
            request=request,
            tool=field(event, "tool", str),
            tier=field(event, "tier", str),
            args=value_of(event, "args"),
            digest=field(event, "digest", str),
            expires_ns=count(event, "expires_ns", -1),
        )

    def decision(self, event: Event) -> None:
        request = field(event, "request", str)
        if request not in self._approvals:
            raise ReplayError(f"{where(event)}: request is {request!r}, which nobody was asked")
        approved, by = field(event, "approved", bool), field(event, "by", str)
        self._approvals[request] = replace(self._approvals[request], approved=approved, by=by)

    def planner_error(self, event: Event) -> None:
        self._planner_errors.append(field(event, "error", str))

    def truncated(self, event: Event) -> None:
        count(event, "dropped_bytes")
        self._mended += 1

    def close(self, event: Event) -> None:
        self._closed.add(field(event, "context", str))

    def finish(self, event: Event) -> None:
        count(event, "steps")
        count(event, "spent_nano")
        self._finish = event

    def stop(self, event: Event) -> None:
        numbers = field_or_none(event, "limit", int), field_or_none(event, "used", int)
        context, ceiling, detail = (field(event, name, str) for name in ("context", "ceiling", "detail"))
        self._stops.append(ReplayedStop(context, ceiling, *numbers, detail))


def _pass_over(_: _Replay, __: Event) -> None:
    """Rebuild nothing from an event of this kind."""


_READERS: dict[str, Callable[[_Replay, Event], None]] = {
    "step": _Replay.step,
    "tool_result": _Replay.tool_result,
    "tool_error": _Replay.tool_error,
    "approval": _Replay.approval,
    "decision": _Replay.decision,
    "planner_error": _Replay.planner_error,
    "truncated": _Replay.truncated,
    "close": _Replay.close,
    "finish": _Replay.finish,
    "stop": _Replay.stop,
    "admit": lambda replay, event: replay.totals.admit(event),
    "settle": lambda replay, event: replay.totals.settle(event),
    "charge": lambda replay, event: replay.totals.charge(event),
    "release": lambda replay, event: replay.totals.release(event),
}
