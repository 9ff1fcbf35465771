"""Follows approvals through a run's log: what needed a person's yes ran only for the very call that got one, once."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from failstop.runtime.audit.breach import Breach
from failstop.runtime.audit.canonical import respell
from failstop.runtime.audit.event_fields import ReplayError, calls_of, count, field, value_of, where
from failstop.runtime.limits import UNLIMITED
from failstop.runtime.risk import RiskTier

if TYPE_CHECKING:
    from collections.abc import Iterator

    from failstop.runtime.audit.event_log import Event

_GUARANTEE = "approval"


class ApprovalMonitor:
    """Judges the run that the log is of; a sub-agent's run has a log of its own.

    A tool whose tier is above what the run may do alone needs an approval. One whose tier depends on its arguments is
    judged by whether a person was asked: that it should have been is not in the log. `expires_ns` is compared with the
    `at_ns` of dispatches.
    """

    def __init__(self, start: Event) -> None:
        self._run = field(start, "run", str)
        autonomous = _tier(start, field(start, "autonomous", str))
        tools = field(start, "tools", dict).items()
        self._gated = {tool for tool, tier in tools if tier != "rule" and _tier(start, tier) > autonomous}
        self._calls: dict[str, tuple[str, str]] = {}
        self._asked: dict[str, _Asked] = {}
        self._approved: dict[str, deque[_Asked]] = {}
        self._made: set[str] = set()

    def step(self, event: Event) -> Iterator[Breach]:
        """Note what the planner asked for."""
        number = count(event, "n", 1)
        for place, (tool, args) in enumerate(calls_of(event), start=1):
            self._calls[f"{self._run}:{number}.{place}"] = tool, respell(args)
        yield from ()

    def approval(self, event: Event) -> Iterator[Breach]:
        """Compare what a person is asked with the call as the planner made it."""
        request = field(event, "request", str)
        shown = field(event, "tool", str), respell(value_of(event, "args"))
        if self._calls.get(request) != shown:
            yield Breach(_GUARANTEE, event.seq, f"request {request!r} shows another call than the planner asked for")
        self._asked[request] = _Asked(request, shown[0], count(event, "expires_ns", UNLIMITED))

    def decision(self, event: Event) -> Iterator[Breach]:
        """Take the first answer."""
        request, approved = field(event, "request", str), field(event, "approved", bool)
        if request not in self._asked:
            yield Breach(_GUARANTEE, event.seq, f"an answer to request {request!r}, which nobody was asked")
        elif self._asked[request].approved is None:
            asked = self._asked[request]
            asked.approved = approved
            if approved:
                self._approved.setdefault(asked.tool, deque()).append(asked)

    def admit(self, event: Event) -> Iterator[Breach]:
        """Each dispatch of a gated tool uses up one approval of that tool that is still good."""
        tool = field(event, "name", str)
        of_the_run = field(event, "context", str) == self._run and field(event, "call_kind", str) == "tool"
        if not of_the_run or tool not in self._gated:
            return
        approved = self._approved.get(tool)
        if not approved:
            yield Breach(_GUARANTEE, event.seq, f"a dispatch of {tool!r} without an approval that was not used yet")
            return
        asked, now_ns = approved.popleft(), count(event, "at_ns")
        if 0 <= asked.expires_ns <= now_ns:
            detail = f"a dispatch of {tool!r} at {now_ns} ns by an approval good until {asked.expires_ns} ns"
            yield Breach(_GUARANTEE, event.seq, detail, asked.expires_ns, now_ns)

    def tool_result(self, event: Event) -> Iterator[Breach]:
        """A call that was made is one that a person said yes to, if it needed that; and it was made once."""
        request = f"{self._run}:{field(event, 'call_id', str)}"
        tool = field(event, "tool", str)
        asked = self._asked.get(request)
        if asked is None and tool not in self._gated:
            return
        if request in self._made:
            yield Breach(_GUARANTEE, event.seq, f"call {request!r} of {tool!r} was made twice by one approval")
        if asked is None or not asked.approved:
            said = "nobody was asked" if asked is None else "nobody answered" if asked.approved is None else "denied"
            yield Breach(_GUARANTEE, event.seq, f"call {request!r} of {tool!r} was made: {said}")
        self._made.add(request)

    def tool_error(self, event: Event) -> Iterator[Breach]:
        """A call that raised was made all the same."""
        if field(event, "seen", str) == "error":
            yield from self.tool_result(event)


class _Asked:
    def __init__(self, request: str, tool: str, expires_ns: int) -> None:
        self.request = request
        self.tool = tool
        self.expires_ns = expires_ns
        self.approved: bool | None = None


def _tier(start: Event, name: object) -> RiskTier:
    try:
        return RiskTier[str(name)]
    except KeyError:
        raise ReplayError(f"{where(start)}: {name!r} is not a risk tier") from None
