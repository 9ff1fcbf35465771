"""One chain of calls under its limits: the boundary that every call of an agent run passes."""

from __future__ import annotations

import itertools
import threading
import weakref
from typing import TYPE_CHECKING, Any, Self

from failstop.runtime.cancellation import CancellationToken
from failstop.runtime.chain.calls import Calls
from failstop.runtime.chain.dispatch import Boundary, Dispatch, Request
from failstop.runtime.chain.graph import ExecutionGraph
from failstop.runtime.chain.ledger import Ledger
from failstop.runtime.chain.partial import PartialResultBuffer
from failstop.runtime.chain.repeats import RepeatCounter
from failstop.runtime.chain.waiting import enter
from failstop.runtime.clock import Clock, SystemClock
from failstop.runtime.cores.ledger import HALTED, NO_ESTIMATE, TIME
from failstop.runtime.limits import UNLIMITED, Limits, count_or_unlimited
from failstop.runtime.money import Amount, nano_up
from failstop.runtime.policies.pipeline import PolicyPipeline
from failstop.runtime.stops import Stop, expect

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from failstop.runtime.chain.accounts import AuditSink, Snapshot


class ExecutionContext(Calls):
    """All calls made through it, and through its children, stay together under one set of limits (G1-G5).

    In flight at the deadline (G5): an async call is cancelled; one with ``isolate="process"`` is killed; with
    ``isolate="thread"`` the caller gets its stop at the deadline while the thread runs on, its late value discarded
    and its cost settled; a plain call is only told, through `token`, and its caller waits for it. Nothing is
    dispatched after the deadline; a dispatch admitted just before it may begin a moment after.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        policies: PolicyPipeline | None = None,
        clock: Clock | None = None,
        audit: AuditSink | None = None,
        name: str = "run",
    ) -> None:
        """Open a chain; its time starts now. Raises ConfigurationError."""
        expect(isinstance(limits, Limits), "limits", limits, "failstop.runtime.Limits")
        expect(isinstance(name, str) and name != "", "name", name, "a text that is not empty")
        expect(
            policies is None or isinstance(policies, PolicyPipeline), "policies", policies, "a PolicyPipeline or None"
        )
        expect(audit is None or callable(getattr(audit, "record", None)), "audit", audit, "an AuditLog, or alike")
        clock = SystemClock() if clock is None else clock
        is_clock = all(callable(getattr(clock, method, None)) for method in ("now_ns", "call_at", "sleep_ns"))
        expect(is_clock, "clock", clock, "a Clock")
        self._open(name, limits, clock, Ledger.root(name, limits, clock, audit), None, policies, None)

    def _open(
        self,
        name: str,
        limits: Limits,
        clock: Clock,
        ledger: Ledger,
        graph: ExecutionGraph | None,
        policies: PolicyPipeline | None,
        parent: ExecutionContext | None,
    ) -> None:
        self.name = name
        self.limits = limits
        self.closed = False
        self.in_doubt: set[str] = set() if parent is None else parent.in_doubt
        """Fingerprints of the chain's calls that raised after their effect may have happened."""
        self.token = CancellationToken()
        self.partial = PartialResultBuffer()
        self.graph = ExecutionGraph(ledger.chain) if graph is None else graph
        self._record = self.graph.record
        self._clock = clock
        self._ledger = ledger
        self._policies = policies
        self._direct = policies is None and ledger.alone
        self._quick = (ledger, ledger.account, ledger.chain, ledger.lock, ledger.now_ns)
        self._boundary = Boundary(self, ledger, self.graph, policies)
        self._repeats = RepeatCounter(count_or_unlimited(limits.max_repeats))
        self._last_value: Any = None
        # Downwards weakly, so that ended children go; upwards not, so that a grandchild is reached through its parent.
        self._parent = parent
        self._children: weakref.WeakSet[ExecutionContext] = weakref.WeakSet()
        self._child_numbers = itertools.count(1)
        self._family = threading.RLock()
        # A child without limits of its own shares its parent's account, whose alarm tells it.
        deadline_ns = ledger.account.bounds[4]
        rings = deadline_ns != UNLIMITED and ledger.account.name == name
        self._alarm = clock.call_at(deadline_ns, self._expire) if rings else None

    @property
    def stop(self) -> Stop | None:
        """Why the chain is over, or None while it runs."""
        return self._ledger.stop

    def snapshot(self) -> Snapshot:
        """Give one consistent view of the counters."""
        return self._ledger.snapshot()

    def get_partial_result(self) -> Any:
        """Give the chunks of an unfinished stream if there are any, else the value of the last call that returned."""
        unfinished = self.partial.value()
        return self._last_value if unfinished is None else unfinished

    def create_child(self, limits: Limits | None = None, *, name: str | None = None) -> ExecutionContext:
        """Open a context for a sub-agent: it draws from this one's ledger; `limits` narrow what it may draw.

        Raises ConfigurationError for a name that is taken, the stop of a chain that is over, and ClosedStop once this
        context is closed.
        """
        if self.closed or self.stop is not None:
            raise self._boundary.stop_now()
        auto = f"{self.name}/{next(self._child_numbers)}"
        ledger = self._ledger.child(self, auto if name is None else name, limits, named=name is not None)
        child = ExecutionContext.__new__(ExecutionContext)
        child._open(  # noqa: SLF001 - its own class
            auto if name is None else name, limits or self.limits, self._clock, ledger, self.graph, self._policies, self
        )
        with self._family:
            self._children.add(child)
        if self.token.cancelled:
            child._tell(self.token.reason)  # noqa: SLF001 - its own class
        if self.closed:
            child.close()
        return child

    def turn(self, fingerprint: str) -> None:
        """Note one planner turn; raises RepeatStop when the same action came too often in a row, or an earlier stop."""
        self._ledger.turn(self, self._repeats, fingerprint)

    def charge(self, cost: Amount | None, name: str) -> None:
        """Record dollars that were spent outside of any call, in full: they are gone whether or not they fit (G1).

        Beyond what is left they stop the chain; None is unknown, and takes all that is left. Raises ConfigurationError
        for what is no amount.
        """
        self._ledger.charge(self, NO_ESTIMATE if cost is None else nano_up(cost), name)

    def step(self, name: str) -> None:
        """Take one step for a turn in which nothing was dispatched; asks no policy. Raises a Stop."""
        request = Request(name, tool=False, asked=0, cost=0, wait=True)
        with Dispatch(Boundary(self, self._ledger, self.graph, None), request) as dispatch:
            enter(dispatch)
            dispatch.succeed(None)

    def halt(self, reason: str) -> None:
        """Stop the chain for good and tell the calls in flight; an earlier stop stays.

        Never waits for a lock of the chain, so a signal handler may call it. A child without limits of its own stops
        what it shares with its parent; one with limits stops itself and its children.
        """
        try:
            self._ledger.halt(HALTED, reason)
        finally:
            self._sharing()._tell(reason)  # noqa: SLF001 - its own class

    def close(self) -> None:
        """Take no more calls and tell those in flight; closes the children too. The chain's root may go on."""
        failures = [failure for context in self._with_descendants() if (failure := context._close_alone())]  # noqa: SLF001 - its own class
        if failures:
            raise failures[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _close_alone(self) -> BaseException | None:
        """Close this one, whatever fails on the way, which is given back."""
        if self.closed:
            return None
        try:
            self._ledger.close(self)
        except BaseException as error:  # noqa: BLE001 - the caller raises it once all are closed
            return error
        finally:
            if self._alarm is not None:
                self._alarm.cancel()
            self.token.cancel("closed")
        return None

    def _expire(self) -> None:
        try:
            self._ledger.halt(TIME)
        finally:
            self._tell("deadline")

    def _tell(self, reason: str) -> None:
        for context in self._with_descendants():
            context.token.cancel(reason)

    def _sharing(self) -> ExecutionContext:
        """Give the topmost context with the ledger of this one."""
        context = self
        while context._parent is not None and context._parent._ledger is context._ledger:  # noqa: SLF001 - its own class
            context = context._parent
        return context

    def _with_descendants(self) -> Iterator[ExecutionContext]:
        """Give this one first and every living context below; a loop, since they may be nested as deep as memory."""
        found = [self]
        while found:
            context = found.pop()
            yield context
            with context._family:  # noqa: SLF001 - its own class
                found.extend(context._children)  # noqa: SLF001 - its own class
