"""Says from its log alone whether a run kept to its limits: events are judged by the pure cores that the runtime runs.

What the runtime itself concluded is not believed: a stop that it should have made and did not is found by the
dispatches that follow. What is not in the log cannot be judged: a dispatch that was never recorded, or money that a
tool did not report. Those are the witness's to find, in the containment suite.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from failstop.runtime.audit.approval_monitor import ApprovalMonitor
from failstop.runtime.audit.breach import Breach
from failstop.runtime.audit.end_monitor import EndMonitor
from failstop.runtime.audit.event_fields import ReplayError, field, limits_of, opening
from failstop.runtime.audit.ledger_monitor import LedgerMonitor
from failstop.runtime.audit.loop_monitor import LoopMonitor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from failstop.runtime.audit.event_log import Event
    from failstop.runtime.limits import Limits

__all__ = ["Breach", "check_run"]

_Monitor: TypeAlias = LedgerMonitor | LoopMonitor | EndMonitor | ApprovalMonitor


def check_run(events: Iterable[Event], limits: Limits | None = None) -> list[Breach]:
    """Give every breach in a run's events, in their order; none means that what was logged obeyed the limits.

    limits: of the root, for a log that does not tell them: they are in the event start of a run, or else in the event
    open of a context without a loop. Raises ReplayError for a log whose limits are not known, that is of several
    chains, or that lacks or garbles a field.
    """
    events = list(events)
    monitors = _monitors(events, limits)
    breaches = [breach for event in events for monitor in monitors for breach in _judged(monitor, event)]
    for monitor in monitors:
        breaches += monitor.end()
    return sorted(breaches, key=lambda breach: breach.seq)


def _monitors(events: list[Event], limits: Limits | None) -> list[_Monitor]:
    start = next((event for event in events if event.kind == "start"), None)
    opened = opening(events)
    if start is not None:
        root, limits = field(start, "run", str), limits or limits_of(start)
        return [*_of_any_chain(root, limits), ApprovalMonitor(start)]
    if opened is not None:
        return _of_any_chain(field(opened, "context", str), limits or limits_of(opened))
    if limits is None:
        raise ReplayError("the log has no event of kind start or open; give the limits of the root to judge it by")
    first = next((event for event in events if event.kind in _OF_A_CONTEXT), None)
    if first is None:
        return []
    return _of_any_chain(field(first, "parent" if first.kind == "child" else "context", str), limits)


def _of_any_chain(root: str, limits: Limits) -> list[_Monitor]:
    return [LedgerMonitor(root, limits), LoopMonitor(root, limits), EndMonitor(root, limits)]


def _judged(monitor: _Monitor, event: Event) -> Iterator[Breach]:
    judge = getattr(monitor, event.kind, None) if event.kind in _KINDS else None
    return iter(()) if judge is None else judge(event)


_OF_A_CONTEXT = frozenset({"admit", "charge", "turn", "child", "stop", "close"})
_OF_A_RUN = frozenset({"step", "approval", "decision", "tool_result", "tool_error", "budget_stop", "finish"})
_KINDS = _OF_A_CONTEXT | _OF_A_RUN | {"open", "settle", "release"}
