"""Compares what a log says at its end with what came before: one that was sealed anew must still agree with itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from failstop.runtime.audit.breach import Breach
from failstop.runtime.audit.event_fields import count, field, limits_of
from failstop.runtime.money import Money

if TYPE_CHECKING:
    from collections.abc import Iterator

    from failstop.runtime.audit.event_log import Event
    from failstop.runtime.limits import Limits

_GUARANTEE = "audit"
_STOPPED_AT_ONCE = frozenset({"cost", "steps", "tool_calls", "retries", "repeats"})
"""Ceilings whose stop is on record before anybody can be told of it; a deadline or a halt may be a moment late."""


class EndMonitor:
    """Judges the totals and the outcome of a run, and what is dispatched after it.

    The totals are those of some moment: calls that were left behind settle later, and other threads may be at work. A
    sub-agent's ledger is in its parent's log, and then there is nothing to compare.
    """

    def __init__(self, root: str, limits: Limits) -> None:
        self._root = root
        self._limits = limits
        self._kept_here = False
        self._steps = 0
        self._spent = 0
        self._came_to = {(0, 0)}
        self._loop = False
        self._ended = False
        self._why_stopped: set[str] = set()
        self._closed: set[str] = set()
        self._late: dict[str, list[Breach]] = {}

    def open(self, event: Event) -> Iterator[Breach]:
        """Compare the limits that the chain was opened with."""
        self._kept_here = True
        if field(event, "context", str) == self._root and limits_of(event) != self._limits:
            yield Breach(_GUARANTEE, event.seq, "the chain was opened with other limits than the run says it has")

    def admit(self, event: Event) -> Iterator[Breach]:
        """Count a dispatch; after the end it is right only if its context was just being closed."""
        self._count(1, 0)
        context = field(event, "context", str)
        if self._ended and context not in self._closed:
            late = Breach("halt", event.seq, f"a dispatch in context {context!r} after the run had ended")
            self._late.setdefault(context, []).append(late)
        yield from ()

    def step(self, _: Event) -> Iterator[Breach]:
        """Note that a loop drives the run, which puts on record what stopped it."""
        self._loop = True
        yield from ()

    def settle(self, event: Event) -> Iterator[Breach]:
        """Add what a call cost."""
        self._count(0, count(event, "cost_nano"))
        yield from ()

    def charge(self, event: Event) -> Iterator[Breach]:
        """Add what was spent outside of any dispatch."""
        self._count(0, count(event, "cost_nano"))
        yield from ()

    def release(self, _: Event) -> Iterator[Breach]:
        """Take a dispatch back that never began."""
        self._count(-1, 0)
        yield from ()

    def stop(self, _: Event) -> Iterator[Breach]:
        """Note that something was stopped."""
        self._kept_here = True
        self._why_stopped.add("stop")
        yield from ()

    def close(self, event: Event) -> Iterator[Breach]:
        """Clear what was dispatched while this context was being closed."""
        self._kept_here = True
        context = field(event, "context", str)
        self._closed.add(context)
        self._late.pop(context, None)
        yield from ()

    def budget_stop(self, event: Event) -> Iterator[Breach]:
        """Look for the stop that ended the run."""
        ceiling = field(event, "ceiling", str)
        found = "stop" in self._why_stopped or self._root in self._closed
        if self._kept_here and ceiling in _STOPPED_AT_ONCE and not found:
            yield Breach(_GUARANTEE, event.seq, f"the run ends by its ceiling {ceiling}, and no stop is on record")
        self._why_stopped.add("budget_stop")

    def finish(self, event: Event) -> Iterator[Breach]:
        """Compare the totals, and the outcome."""
        self._ended = True
        steps, spent = count(event, "steps"), count(event, "spent_nano")
        if self._kept_here and (steps, spent) not in self._came_to:
            told = f"the run says it ended at {steps} steps and {Money(spent)}"
            yield Breach(
                _GUARANTEE,
                event.seq,
                f"{told}; its calls come to {self._steps} and {Money(self._spent)}, and never to that",
            )
        closed = self._root in self._closed and not self._loop
        if field(event, "outcome", str) == "budget_stop" and not self._why_stopped and not closed:
            yield Breach(_GUARANTEE, event.seq, "the run says that it was stopped, and no stop is on record")

    def end(self) -> Iterator[Breach]:
        """Give what was dispatched after the end in a context that was never closed."""
        for breaches in self._late.values():
            yield from breaches

    def _count(self, steps: int, spent: int) -> None:
        self._kept_here = True
        self._steps += steps
        self._spent += spent
        self._came_to.add((self._steps, self._spent))
