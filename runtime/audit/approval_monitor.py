"""Follows approvals through a run's log: what needed a person's yes ran only for the very call that got one, once."""

from __future__ import annotations

import heapq
import sys
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, NamedTuple

from failstop.runtime.audit.breach import Breach
from failstop.runtime.audit.canonical import respell
from failstop.runtime.audit.event_fields import ReplayError, calls_of, count, field, value_of, where
from failstop.runtime.limits import UNLIMITED
from failstop.runtime.risk import RiskTier

if TYPE_CHECKING:
    from collections.abc import Iterator

    from failstop.runtime.audit.event_log import Event

_GUARANTEE = "approval"
_NEVER = sys.maxsize


class ApprovalMonitor:
    """Judges the run that the log is of; a sub-agent's run has a log of its own.

    A tool whose tier is above what the run may do alone needs an approval. One whose tier depends on its arguments is
    judged by whether a person was asked: that it should have been is not in the log. `expires_ns` is compared with the
    `at_ns` of dispatches.

    A dispatch does not say which call it is of. So a run is only accused if no way to tell the dispatches of a tool out
    among its approvals explains them all, or none explains all the calls of which a result is on record.
    """

    def __init__(self, start: Event) -> None:
        self._run = field(start, "run", str)
        autonomous = _tier(start, field(start, "autonomous", str))
        tiers = field(start, "tools", dict).items()
        self._tiers = {tool: _tier(start, tier).name for tool, tier in tiers if tier != "rule"}
        self._gated = {tool for tool, tier in self._tiers.items() if RiskTier[tier] > autonomous}
        self._calls: dict[str, tuple[str, str]] = {}
        self._asked: dict[str, _Asked] = {}
        self._approved: dict[str, list[_Asked]] = {}
        self._dispatches: dict[str, list[_Dispatch]] = {}
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
        tool, tier = shown[0], field(event, "tier", str)
        if tier != self._tiers.get(tool, tier):
            detail = f"request {request!r} calls {tool!r} {tier}, which began the run as {self._tiers[tool]}"
            yield Breach(_GUARANTEE, event.seq, detail)
        self._asked[request] = _Asked(request, tool, count(event, "expires_ns", UNLIMITED))

    def decision(self, event: Event) -> Iterator[Breach]:
        """Take the first answer."""
        request, approved = field(event, "request", str), field(event, "approved", bool)
        if request not in self._asked:
            yield Breach(_GUARANTEE, event.seq, f"an answer to request {request!r}, which nobody was asked")
        elif self._asked[request].approved is None:
            asked = self._asked[request]
            asked.approved, asked.decided_seq = approved, event.seq
            if approved:
                self._approved.setdefault(asked.tool, []).append(asked)

    def admit(self, event: Event) -> Iterator[Breach]:
        """Note a dispatch of the run's own."""
        tool = field(event, "name", str)
        if field(event, "context", str) == self._run and field(event, "call_kind", str) == "tool":
            self._dispatches.setdefault(tool, []).append(_Dispatch(event.seq, count(event, "at_ns")))
        yield from ()

    def tool_result(self, event: Event) -> Iterator[Breach]:
        """A call that was made is one that a person said yes to, if it needed that; and it was made once."""
        tool, request = field(event, "tool", str), self._answered(event)
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
        self._answered(event)
        if field(event, "seen", str) == "error":
            yield from self.tool_result(event)

    def end(self) -> Iterator[Breach]:
        """Tell the dispatches out among the approvals: each of a gated tool uses one up, and each call made has one.

        In the log of a sub-agent there are no dispatches: they are in its parent's.
        """
        for tool in self._dispatches.keys() | self._approved.keys() if self._dispatches else ():
            dispatches, approved = self._dispatches.get(tool, []), self._approved.get(tool, [])
            uncovered, _ = _told_out(dispatches, approved)
            if tool in self._gated and uncovered:
                yield from (_uncovered(tool, dispatch, late) for dispatch, late in uncovered)
                continue
            _, unmade = _told_out(dispatches, [asked for asked in approved if asked.request in self._made])
            for asked in unmade:
                detail = f"call {asked.request!r} of {tool!r} was made, by no dispatch while its approval was good"
                yield Breach(_GUARANTEE, asked.ended_seq, detail, asked.expires_ns)

    def _answered(self, event: Event) -> str:
        request = f"{self._run}:{field(event, 'call_id', str)}"
        asked = self._asked.get(request)
        if asked is not None and asked.ended_seq == _NEVER:
            asked.ended_seq = event.seq
        return request


class _Asked:
    def __init__(self, request: str, tool: str, expires_ns: int) -> None:
        self.request = request
        self.tool = tool
        self.expires_ns = expires_ns
        self.approved: bool | None = None
        self.decided_seq = _NEVER
        self.ended_seq = _NEVER


class _Dispatch(NamedTuple):
    seq: int
    at_ns: int


def _told_out(
    dispatches: list[_Dispatch], approved: list[_Asked]
) -> tuple[list[tuple[_Dispatch, _Asked | None]], list[_Asked]]:
    """Give as many dispatches as possible an approval each: to each the one that is good for the shortest.

    Gives the dispatches without one, each with one that came too late for it if there is one, and the approvals that
    are left. An approval is good from its answer on, until it expires or something is on record of its call.
    """
    seqs, times = [dispatch.seq for dispatch in dispatches], [dispatch.at_ns for dispatch in dispatches]
    coming = sorted(
        (bisect_right(seqs, asked.decided_seq), _good_until(asked, seqs, times), number)
        for number, asked in enumerate(approved)
    )
    good: list[tuple[int, int]] = []
    late: list[_Asked] = []
    uncovered: list[tuple[_Dispatch, _Asked | None]] = []
    coming.reverse()
    for place, dispatch in enumerate(dispatches):
        while coming and coming[-1][0] <= place:
            heapq.heappush(good, coming.pop()[1:])
        while good and good[0][0] <= place:
            late.append(approved[heapq.heappop(good)[1]])
        if good:
            heapq.heappop(good)
        else:
            uncovered.append((dispatch, late[-1] if late else None))
    return uncovered, [*late, *(approved[number] for *_, number in [*good, *coming])]


def _good_until(asked: _Asked, seqs: list[int], times: list[int]) -> int:
    """Give the place of the first dispatch that cannot be by this approval."""
    expired = len(times) if asked.expires_ns == UNLIMITED else bisect_left(times, asked.expires_ns)
    return min(expired, bisect_left(seqs, asked.ended_seq))


def _uncovered(tool: str, dispatch: _Dispatch, late: _Asked | None) -> Breach:
    if late is None or not 0 <= late.expires_ns <= dispatch.at_ns:
        return Breach(_GUARANTEE, dispatch.seq, f"a dispatch of {tool!r} without an approval that was not used yet")
    detail = f"a dispatch of {tool!r} at {dispatch.at_ns} ns by an approval good until {late.expires_ns} ns"
    return Breach(_GUARANTEE, dispatch.seq, detail, late.expires_ns, dispatch.at_ns)


def _tier(start: Event, name: object) -> RiskTier:
    try:
        return RiskTier[str(name)]
    except KeyError:
        raise ReplayError(f"{where(start)}: {name!r} is not a risk tier") from None
