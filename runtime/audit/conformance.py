"""Says from its log alone whether a run kept to its limits: events are judged by the pure cores that the runtime runs.

What the runtime itself concluded is not believed: a stop that it should have made and did not is found by the
dispatches that follow. What is not in the log cannot be judged: a dispatch that was never recorded, or money that a
tool did not report. Those are the witness's to find, in the containment suite.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from failstop.runtime.audit.approval_monitor import ApprovalMonitor
from failstop.runtime.audit.breach import Breach
from failstop.runtime.audit.event_fields import ReplayError, field, limits_of
from failstop.runtime.audit.ledger_monitor import LedgerMonitor
from failstop.runtime.audit.loop_monitor import LoopMonitor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from failstop.runtime.audit.event_log import Event
    from failstop.runtime.limits import Limits

__all__ = ["Breach", "check_run"]

_Monitor: TypeAlias = LedgerMonitor | LoopMonitor | ApprovalMonitor


def check_run(events: Iterable[Event], limits: Limits | None = None) -> list[Breach]:
    """Give every breach in a run's events, in their order; none means that what was logged obeyed the limits.

    limits: of the root, for the log of a context without a loop, which has no event of kind start. Raises ReplayError
    for a log whose limits are not known, or that lacks or garbles a field.
    """
    events = list(events)
    monitors = _monitors(events, limits)
    breaches = [breach for event in events for monitor in monitors for breach in _judged(monitor, event)]
    for monitor in monitors:
        breaches += monitor.end()
    return sorted(breaches, key=lambda breach: breach.seq)


def _monitors(events: list[Event], limits: Limits | None) -> list[_Monitor]:
    start = next((event for event in events if event.kind == "start"), None)
    if start is not None:
        root, limits = field(start, "run", str), limits or limits_of(start)
        return [LedgerMonitor(root, limits), LoopMonitor(root, limits), ApprovalMonitor(start)]
    if limits is None:
        raise ReplayError("the log has no event of kind start; give the limits of the root to judge it by")
    first = next((event for event in events if event.kind in _OF_A_CONTEXT), None)
    if first is None:
        return []
    root = field(first, "parent" if first.kind == "child" else "context", str)
    return [LedgerMonitor(root, limits), LoopMonitor(root, limits)]


def _judged(monitor: _Monitor, event: Event) -> Iterator[Breach]:
    judge = getattr(monitor, event.kind, None) if event.kind in _KINDS else None
    return iter(()) if judge is None else judge(event)


_OF_A_CONTEXT = frozenset({"admit", "charge", "turn", "child", "stop", "close"})
_KINDS = _OF_A_CONTEXT | {"settle", "release", "step", "approval", "decision", "tool_result", "tool_error"}
