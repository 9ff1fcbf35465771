"""What a chain's ledger had counted by the end of its log, added up by the ledger's own steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from failstop.runtime.audit.event_fields import ReplayError, count, field, where
from failstop.runtime.cores import ledger as core

if TYPE_CHECKING:
    from failstop.runtime.audit.event_log import Event

NO_BOUNDS: core.Bounds = (-1, -1, -1, -1, -1)
"""A log tells what happened; whether it was allowed is `failstop.runtime.audit.conformance`'s to say."""


@dataclass(frozen=True, slots=True)
class Counters:
    """Dispatches and money of one chain; money in nano-dollars."""

    committed_nano: int = 0
    reserved_nano: int = 0
    steps: int = 0
    tool_calls: int = 0
    retries: int = 0
    in_flight: int = 0


class Totals:
    """Adds up the events admit, settle and release; raises ReplayError for one that the others contradict."""

    def __init__(self) -> None:
        self._state: core.State = core.INITIAL
        self._in_flight: dict[int, tuple[int, bool, bool]] = {}

    def admit(self, event: Event) -> None:
        """Count a dispatch and hold its reservation."""
        call, held = count(event, "call"), count(event, "held_nano")
        tool, retry = field(event, "call_kind", str) == "tool", field(event, "retry", bool)
        if call in self._in_flight:
            raise ReplayError(f"{where(event)}: call is {call}, which is in flight already")
        self._in_flight[call] = held, tool, retry
        self._state, _ = core.admit(self._state, NO_BOUNDS, held, tool, retry, 0)

    def settle(self, event: Event) -> None:
        """Charge a call that ended."""
        held, _, _ = self._ended(event)
        self._state = core.settle(self._state, NO_BOUNDS, held, count(event, "cost_nano"))

    def charge(self, event: Event) -> None:
        """Record money that was spent outside of any dispatch."""
        self._state = core.charge(self._state, NO_BOUNDS, count(event, "cost_nano"))

    def release(self, event: Event) -> None:
        """Take a call back that never began."""
        self._state = core.release(self._state, *self._ended(event))

    def counters(self) -> Counters:
        """Give the sums."""
        committed, reserved, steps, tool_calls, retries, _ = self._state
        return Counters(committed, reserved, steps, tool_calls, retries, len(self._in_flight))

    def _ended(self, event: Event) -> tuple[int, bool, bool]:
        call = count(event, "call")
        if call not in self._in_flight:
            raise ReplayError(f"{where(event)}: call is {call}, which is not in flight")
        return self._in_flight.pop(call)
