"""Follows a chain's ledger through its log, account by account, and judges each dispatch by the pure core."""

from __future__ import annotations

from typing import TYPE_CHECKING

from failstop.runtime.audit.breach import Breach
from failstop.runtime.audit.event_fields import ReplayError, count, field, field_or_none, limits_of, where
from failstop.runtime.audit.totals import NO_BOUNDS
from failstop.runtime.cores import ledger as core
from failstop.runtime.limits import UNLIMITED, Limits, count_or_unlimited
from failstop.runtime.money import Money

if TYPE_CHECKING:
    from collections.abc import Iterator

    from failstop.runtime.audit.event_log import Event


class LedgerMonitor:
    """Believes of a log what was admitted, held and charged, and nothing of what the runtime concluded from it.

    Each context has the accounts that its dispatches draw from: its own limits, if it has any, up to the root's. The
    time limit of a narrower account is judged from its `at_ns`, the time of its child event, if that is given.
    """

    def __init__(self, root: str, limits: Limits) -> None:
        self._paths: dict[str, tuple[_Account, ...]] = {root: (_Account(root, limits, 0),)}
        self._indistinct: set[str] = set()
        self._closed: set[str] = set()
        self._in_flight: dict[int, _InFlight] = {}
        self._root = root
        self._owed: dict[str, Breach] = {}

    def child(self, event: Event) -> Iterator[Breach]:
        """Open a context under another."""
        yield from self._unanswered()
        name, path = field(event, "context", str), self._path(event, "parent")
        if field_or_none(event, "limits", dict) is not None:
            limits = limits_of(event)
            started_ns = count(event, "at_ns") if "at_ns" in event.data else None
            path = (_Account(name, limits, started_ns), *path)
        if name in self._paths:
            # Two contexts of one name cannot be told apart: only what both draw from is judged.
            path = tuple(account for account in path if account in self._paths[name])
            self._indistinct.add(name)
        self._paths[name] = path

    def admit(self, event: Event) -> Iterator[Breach]:
        """Judge a dispatch, then count it: it happened, allowed or not."""
        yield from self._unanswered()
        path = self._path(event, "context")
        asked, held = count(event, "asked_nano", core.NO_ESTIMATE), count(event, "held_nano")
        tool, retry = field(event, "call_kind", str) == "tool", field(event, "retry", bool)
        now_ns, call = count(event, "at_ns"), count(event, "call")
        if call in self._in_flight:
            yield Breach("G1", event.seq, f"call {call} is admitted while a call of that number is in flight")
        context = field(event, "context", str)
        if context in self._closed - self._indistinct:
            yield Breach("halt", event.seq, f"a dispatch in context {context!r} after it was closed")
        yield from _short(event, path, asked, held)
        for account in path:
            yield from account.judge(event, asked, held, tool, retry, now_ns)
            account.dispatch(held, tool, retry)
        self._in_flight[call] = _InFlight(path, held, tool, retry)

    def settle(self, event: Event) -> Iterator[Breach]:
        """Charge a call that ended: once, what it held if its cost is not known, and in full."""
        yield from self._unanswered()
        call, cost, held = count(event, "call"), count(event, "cost_nano"), count(event, "held_nano")
        admitted = self._in_flight.pop(call, None)
        if admitted is None:
            yield Breach("G1", event.seq, f"call {call} is settled, which is not in flight: never admitted, or ended")
            return
        yield from _given_up(event, call, held, admitted)
        if not field(event, "cost_known", bool) and cost < admitted.held:
            detail = f"call {call} of unknown cost is charged {Money(cost)}, it held {Money(admitted.held)}"
            yield Breach("G1", event.seq, detail, admitted.held, cost)
        for account in admitted.path:
            self._take(event, account, core.settle(account.state, account.bounds, admitted.held, cost))

    def charge(self, event: Event) -> Iterator[Breach]:
        """Record money that was spent outside of any dispatch; it was gone before anybody could refuse it."""
        yield from self._unanswered()
        for account in self._path(event, "context"):
            self._take(event, account, core.charge(account.state, account.bounds, count(event, "cost_nano")))

    def release(self, event: Event) -> Iterator[Breach]:
        """Take back a call that never began."""
        yield from self._unanswered()
        call, held = count(event, "call"), count(event, "held_nano")
        admitted = self._in_flight.pop(call, None)
        if admitted is None:
            yield Breach("G1", event.seq, f"call {call} is released, which is not in flight: never admitted, or ended")
            return
        yield from _given_up(event, call, held, admitted)
        for account in admitted.path:
            account.state = core.release(account.state, admitted.held, admitted.tool, admitted.retry)

    def stop(self, event: Event) -> Iterator[Breach]:
        """Let an account admit nothing from here on."""
        name, ceiling = field(event, "context", str), field(event, "ceiling", str)
        if self._owed.pop(name, None) is None:
            yield from self._unanswered()
        for path in self._paths.values():
            if path[0].name == name:
                path[0].halt(ceiling)

    def close(self, event: Event) -> Iterator[Breach]:
        """Let a context dispatch nothing from here on; its chain may go on."""
        yield from self._unanswered()
        self._closed.add(field(event, "context", str))

    def finish(self, event: Event) -> Iterator[Breach]:
        """Look for a stop that was owed when the run's totals were taken."""
        if count(event, "spent_nano") >= self._paths[self._root][0].state[0]:
            yield from self._unanswered()

    def end(self) -> Iterator[Breach]:
        """Find nothing more: a log may be cut off between a settlement and its stop."""
        yield from ()

    def _take(self, event: Event, account: _Account, after: core.State) -> None:
        before, account.state = account.state, after
        if before[5] == core.ADMITTED and after[5] == core.OVERRUN:
            detail = f"it cost more than {account.name!r} had left for it, and no stop of {account.name!r} follows"
            self._owed[account.name] = Breach("halt", event.seq, detail)

    def _unanswered(self) -> Iterator[Breach]:
        """Give the stops that did not come: the runtime writes them in one go with what they are for."""
        owed, self._owed = self._owed, {}
        yield from owed.values()

    def _path(self, event: Event, name: str) -> tuple[_Account, ...]:
        context = field(event, name, str)
        if context not in self._paths:
            raise ReplayError(f"{where(event)}: {name} is {context!r}, a context that no event opened")
        return self._paths[context]


class _InFlight:
    def __init__(self, path: tuple[_Account, ...], held: int, tool: bool, retry: bool) -> None:
        self.path = path
        self.held = held
        self.tool = tool
        self.retry = retry


class _Account:
    """One set of limits and what was used of them."""

    def __init__(self, name: str, limits: Limits, started_ns: int | None) -> None:
        self.name = name
        self.state: core.State = core.INITIAL
        self.stopped_by = "a call that cost more than it held"
        self.bounds: core.Bounds = (
            limits.max_cost_nano,
            count_or_unlimited(limits.max_steps),
            count_or_unlimited(limits.max_tool_calls),
            count_or_unlimited(limits.max_retries),
            UNLIMITED if limits.max_ns == UNLIMITED or started_ns is None else started_ns + limits.max_ns,
        )

    def judge(self, event: Event, asked: int, held: int, tool: bool, retry: bool, now_ns: int) -> Iterator[Breach]:
        """Ask the core whether this dispatch could have been admitted, as it was asked for and as it was held."""
        for amount in (asked, held):
            _, verdict = core.admit(self.state, self.bounds, amount, tool, retry, now_ns)
            if verdict != core.ADMITTED:
                yield self._breach(event, verdict, held, now_ns)
                return

    def dispatch(self, held: int, tool: bool, retry: bool) -> None:
        """Count a dispatch that happened, whatever the core says of it."""
        committed, reserved, steps, tool_calls, retries, halt = self.state
        running = committed, reserved, steps, tool_calls, retries, core.ADMITTED
        (*counted, _), _ = core.admit(running, NO_BOUNDS, held, tool, retry, 0)
        committed, reserved, steps, tool_calls, retries = counted
        self.state = committed, reserved, steps, tool_calls, retries, halt

    def halt(self, ceiling: str) -> None:
        """Admit nothing more."""
        if self.state[5] == core.ADMITTED:
            self.stopped_by = ceiling
        self.state = core.stop(self.state, core.HALTED)

    def _breach(self, event: Event, verdict: int, held: int, now_ns: int) -> Breach:
        committed, reserved, steps, tool_calls, retries, halt = self.state
        max_cost, max_steps, max_tool_calls, max_retries, deadline_ns = self.bounds
        if halt != core.ADMITTED:
            return Breach("halt", event.seq, f"a dispatch after {self.name!r} was stopped by {self.stopped_by}")
        if verdict in {core.COST, core.CONTENDED}:
            used = committed + reserved + held
            detail = f"{Money(used)} committed or held in {self.name!r}, limit {Money(max_cost)}"
            return Breach("G1", event.seq, detail, max_cost, used)
        guarantee, what, limit, used = {
            core.STEPS: ("G2", "dispatches", max_steps, steps + 1),
            core.TOOL_CALLS: ("G2", "tool calls", max_tool_calls, tool_calls + 1),
            core.RETRIES: ("G3", "retries", max_retries, retries + 1),
            core.TIME: ("G5", "ns at a dispatch", deadline_ns, now_ns),
        }[verdict]
        return Breach(guarantee, event.seq, f"{used} {what} in {self.name!r}, limit {limit}", limit, used)


def _given_up(event: Event, call: int, held: int, admitted: _InFlight) -> Iterator[Breach]:
    """A call gives up what it held."""
    if held != admitted.held:
        detail = f"call {call} gives up {Money(held)}, it held {Money(admitted.held)}"
        yield Breach("G1", event.seq, detail, admitted.held, held)


def _short(event: Event, path: tuple[_Account, ...], asked: int, held: int) -> Iterator[Breach]:
    """A call must hold what it asked for; without an estimate, all that the narrowest ceiling has left."""
    left = [account.bounds[0] - account.state[0] - account.state[1] for account in path if account.bounds[0] >= 0]
    due = min(left, default=0) if asked == core.NO_ESTIMATE else asked
    if held < due:
        yield Breach("G1", event.seq, f"a dispatch holds {Money(held)} where it must hold {Money(due)}", due, held)
