"""One chain of calls under its limits: the boundary that every call of an agent run passes."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import sys
import threading
import weakref
from threading import get_ident
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, TypeVar

from failstop.runtime import frames, isolation
from failstop.runtime.abandonment import await_or_abandon
from failstop.runtime.cancellation import CancellationToken
from failstop.runtime.charging import Cost, asked_for, charged_for
from failstop.runtime.clock import Clock, SystemClock
from failstop.runtime.cores.ledger import ADMITTED, HALTED, NO_ESTIMATE, TIME, admit, settle
from failstop.runtime.decision import Decision
from failstop.runtime.dispatch import Boundary, Dispatch, Request
from failstop.runtime.graph import ExecutionGraph
from failstop.runtime.ledger import AuditSink, Ledger, Snapshot
from failstop.runtime.limits import UNLIMITED, Limits, count_or_unlimited
from failstop.runtime.money import Amount, Money, nano_up
from failstop.runtime.partial import PartialResultBuffer
from failstop.runtime.repeats import RepeatCounter
from failstop.runtime.retry import RetryContainer
from failstop.runtime.stops import ConfigurationError, Contended, Denied, Stop
from failstop.runtime.streaming import chunks_from_thread, chunks_in_place, stream_chunks

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator
    from types import FrameType, TracebackType

    from failstop.runtime.policy import PolicyPipeline

T = TypeVar("T")
Kind: TypeAlias = Literal["llm", "tool"]
Isolation: TypeAlias = Literal["thread", "process"]


class ExecutionContext:
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
        if not isinstance(limits, Limits):
            raise ConfigurationError("limits", limits, "failstop.runtime.Limits")
        clock = SystemClock() if clock is None else clock
        self._open(name, limits, clock, Ledger.root(name, limits, clock, audit), None, policies)

    def _open(
        self,
        name: str,
        limits: Limits,
        clock: Clock,
        ledger: Ledger,
        graph: ExecutionGraph | None,
        policies: PolicyPipeline | None,
    ) -> None:
        self.name = name
        self.limits = limits
        self.closed = False
        self.token = CancellationToken()
        self.partial = PartialResultBuffer()
        self.graph = ExecutionGraph(ledger.chain) if graph is None else graph
        self._record = self.graph.record
        self._clock = clock
        self._ledger = ledger
        self._policies = policies
        self._direct = policies is None and ledger.alone
        self._boundary = Boundary(self, ledger, self.graph, policies)
        self._repeats = RepeatCounter(count_or_unlimited(limits.max_repeats))
        self._last_value: Any = None
        self._children: weakref.WeakSet[ExecutionContext] = weakref.WeakSet()
        self._child_numbers = itertools.count(1)
        self._family = threading.Lock()
        deadline_ns = ledger.deadline_ns
        self._alarm = None if deadline_ns == UNLIMITED else clock.call_at(deadline_ns, self._expire)

    # Faces of a call -----------------------------------------------------------------------------------------------

    def _call_in_full(
        self,
        fn: Callable[..., T],
        /,
        *args: Any,
        reserve: Amount | None = None,
        cost: Cost = None,
        kind: Kind = "llm",
        retries: int | RetryContainer = 0,
        isolate: Isolation | None = None,
        wait: bool = True,
        name: str | None = None,
        tokens: Callable[[Any], tuple[int, int]] | None = None,
        **kwargs: Any,
    ) -> T:
        """Dispatch ``fn(*args, **kwargs)`` if every limit and policy allows it, and give its value.

        reserve: dollars, the upper bound held before the dispatch. cost: dollars, or a function from the value to
        dollars. Without either the call holds and is charged all that is left; ``cost=0`` says that it is free.
        retries: how often a failing call is tried again, within the chain's ceiling; each try is a step and is charged.
        isolate: how the call can be left behind at the deadline, see the class. wait: wait for calls in flight that
        alone keep this one out, up to the deadline; else raise Contended at once. tokens: a function from the value to
        (tokens in, tokens out), for the graph.
        Raises a Stop, Denied or Contended if it may not run, ConfigurationError, or what `fn` raised.
        """
        request = self._request(fn, reserve, cost, kind, wait, name, tokens)
        if isolate not in {None, "thread", "process"}:
            raise ConfigurationError("isolate", isolate, '"thread", "process" or None')
        payload = isolation.checked_payload(fn, args, kwargs) if isolate == "process" else b""

        def attempt(retry: bool) -> Any:
            dispatch = self._enter(request, retry)
            if isolate == "process":
                return isolation.in_process(dispatch, self.token, payload)
            if isolate == "thread":
                return isolation.on_thread(dispatch, self.token, fn, args, kwargs)
            return isolation.in_place(dispatch, fn, args, kwargs)

        try:
            value: T = self._retrying(retries).run(attempt, self._may_wait_ns) if retries else attempt(False)
        except isolation.Abandoned:
            raise self._boundary.stop_now() from None
        self._last_value = value
        return value

    if TYPE_CHECKING:
        call = _call_in_full
    else:

        @functools.wraps(_call_in_full)
        def call(self, fn, /, *args, reserve=None, cost=None, kind="llm", **options):
            # The quick way for the plain case: Ledger.admit and Ledger.settle written out, for a chain with one
            # account, no log and no policies. The two steps of the core are then most of what a call costs; even the
            # defaults of options that are rarely given would cost as much as a lock. A call that held and cost
            # nothing has nothing to settle. What this way cannot do, the full way above does from the start.
            if options or not self._direct:
                return self._call_in_full(fn, *args, reserve=reserve, cost=cost, kind=kind, **options)
            tool = kind == "tool"
            if not tool and kind != "llm":
                raise ConfigurationError("kind", kind, '"llm" or "tool"')
            try:
                label = fn.__name__
            except AttributeError:
                label = type(fn).__name__
            known = reserve is None
            if not known:
                asked = asked_for(reserve, cost)
            elif cost is None:
                asked = NO_ESTIMATE
            elif type(cost) is Money and cost.nano >= 0:
                asked = cost.nano
            elif type(cost) is int and cost == 0:
                asked = 0
            else:
                asked = asked_for(None, cost)
                known = asked != NO_ESTIMATE
            ledger = self._ledger
            account = ledger.account
            now_ns = ledger.now_ns
            lock = ledger.lock
            lock.acquire()
            try:
                start_ns = now_ns()
                before = account.state
                state, verdict = admit(before, account.bounds, asked, tool, False, start_ns)
                admitted = verdict == ADMITTED and not self.closed
                if admitted:
                    account.state = state
            finally:
                lock.release()
            if not admitted:
                return self._call_in_full(fn, *args, reserve=reserve, cost=cost, kind=kind)
            held = asked if asked >= 0 else state[1] - before[1]
            paid = held
            status = "error"
            try:
                value = fn(*args) if args else fn()
                if not known:
                    paid = charged_for(cost, value, held)[0]
                status = "ok"
            finally:
                if held or paid:
                    lock.acquire()
                    try:
                        account.state = settle(account.state, account.bounds, held, paid)
                        if paid > held or ledger.chain.waiters:
                            ledger.after_settlement(held, paid)
                    finally:
                        lock.release()
                frame = frames.current.get()
                self._record((state[2], frame, get_ident(), self.name, kind, label, start_ns, now_ns(), paid, status))
            self._last_value = value
            return value

    async def acall(
        self,
        fn: Callable[..., Awaitable[T]],
        /,
        *args: Any,
        reserve: Amount | None = None,
        cost: Cost = None,
        kind: Kind = "llm",
        retries: int | RetryContainer = 0,
        wait: bool = True,
        name: str | None = None,
        tokens: Callable[[Any], tuple[int, int]] | None = None,
        **kwargs: Any,
    ) -> T:
        """Await ``fn(*args, **kwargs)`` under the same decisions as `call`; cancelled at the deadline (G5).

        A coroutine that swallows its cancellation is left behind: the caller gets its stop all the same.
        """
        request = self._request(fn, reserve, cost, kind, wait, name, tokens)

        async def attempt(retry: bool) -> Any:
            dispatch = await self._enter_async(request, retry)
            return await await_or_abandon(dispatch, self.token, fn, args, kwargs)

        try:
            value: T = await (self._retrying(retries).arun(attempt, self._may_wait_ns) if retries else attempt(False))
        except isolation.Abandoned:
            raise self._boundary.stop_now() from None
        self._last_value = value
        return value

    def stream(
        self,
        fn: Callable[..., Iterable[T]],
        /,
        *args: Any,
        reserve: Amount | None = None,
        cost: Cost = None,
        kind: Kind = "llm",
        isolate: Literal["thread"] | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Iterator[T]:
        """Dispatch ``fn(*args, **kwargs)`` and pass its chunks on; admitted when the first is asked for, charged once.

        `cost` is read from the tuple of chunks once the stream has ended by itself. A consumer that leaves early, or a
        stream that breaks, is charged the whole reservation. The deadline is checked at every chunk; a source that
        falls silent is left behind at the deadline only with ``isolate="thread"``. Chunks are kept in `partial`.
        """
        request = self._request(fn, reserve, cost, kind, True, name, None)
        source = chunks_from_thread if isolate == "thread" else chunks_in_place
        if isolate not in {None, "thread"}:
            raise ConfigurationError("isolate", isolate, '"thread" or None for a stream')
        return stream_chunks(
            lambda: self._enter(request, False),
            self._boundary,
            self.token,
            self.partial,
            lambda: source(self.token, lambda: fn(*args, **kwargs)),
        )

    def wrap_llm_call(self, fn: Callable[..., Any], /, *args: Any, **options: Any) -> Decision:
        """Make an LLM call with the options of `call`; answers instead of raising when it may not run."""
        return self._wrapped(fn, args, {**options, "kind": "llm"})

    def wrap_tool_call(self, fn: Callable[..., Any], /, *args: Any, **options: Any) -> Decision:
        """Make a tool call with the options of `call`; answers instead of raising when it may not run."""
        return self._wrapped(fn, args, {**options, "kind": "tool"})

    # The chain -----------------------------------------------------------------------------------------------------

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

        Raises the stop of a chain that is over, and ClosedStop once this context is closed.
        """
        if self.closed or self.stop is not None:
            raise self._boundary.stop_now()
        name = name or f"{self.name}/{next(self._child_numbers)}"
        ledger = self._ledger if limits is None else self._ledger.narrowed(name, limits)
        child = ExecutionContext.__new__(ExecutionContext)
        child._open(name, limits or self.limits, self._clock, ledger, self.graph, self._policies)
        with self._family:
            self._children.add(child)
        self._ledger.note(
            "child", context=name, parent=self.name, limits=None if limits is None else limits.to_mapping()
        )
        if self.token.cancelled:
            child._tell(self.token.reason)
        return child

    def turn(self, fingerprint: str) -> None:
        """Note one planner turn; raises RepeatStop when the same action came too often in a row, or the chain's stop."""
        if self.stop is not None or self.closed:
            raise self._boundary.stop_now()
        self._ledger.note("turn", context=self.name, fingerprint=fingerprint, at_ns=self._ledger.elapsed_ns)
        if not self._repeats.turn(fingerprint):
            self._ledger.halt_repeating(count_or_unlimited(self.limits.max_repeats))
            raise self._boundary.stop_now()

    def halt(self, reason: str) -> None:
        """Stop the chain for good and tell the calls in flight; an earlier stop stays."""
        self._ledger.halt(HALTED, reason)
        self._tell(reason)

    def close(self) -> None:
        """Take no more calls and tell those in flight; closes the children too. The chain's root may go on."""
        if not self._ledger.close(self):
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self.token.cancel("closed")
        for child in self._living_children():
            child.close()

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

    # Inside --------------------------------------------------------------------------------------------------------

    def _expire(self) -> None:
        self._ledger.halt(TIME)
        self._tell("deadline")

    def _tell(self, reason: str) -> None:
        self.token.cancel(reason)
        for child in self._living_children():
            child._tell(reason)

    def _living_children(self) -> list[ExecutionContext]:
        with self._family:
            return list(self._children)

    def _request(
        self,
        fn: Callable[..., Any],
        reserve: Amount | None,
        cost: Cost,
        kind: str,
        wait: bool,
        name: str | None,
        tokens: Callable[[Any], tuple[int, int]] | None,
    ) -> Request:
        if kind not in {"llm", "tool"}:
            raise ConfigurationError("kind", kind, '"llm" or "tool"')
        return Request(name or _label(fn), kind == "tool", asked_for(reserve, cost), cost, wait, tokens)

    def _retrying(self, retries: int | RetryContainer) -> RetryContainer:
        if isinstance(retries, RetryContainer):
            return retries
        return RetryContainer(retries, clock=self._clock, async_sleep_ns=self._clock.asleep_ns)

    def _may_wait_ns(self, wait_ns: int) -> bool:
        """A backoff that would end after the deadline is pointless."""
        deadline_ns = self._ledger.deadline_ns
        return deadline_ns == UNLIMITED or self._clock.now_ns() + wait_ns < deadline_ns

    def _enter(self, request: Request, retry: bool) -> Dispatch:
        """Admit, waiting for calls in flight to settle if they alone keep this one out."""
        try:
            return self._boundary.open(request, retry)
        except Contended:
            if not self._waits(request):
                raise
        ready = threading.Event()
        while True:
            ready.clear()
            try:
                return self._boundary.open(request, retry, ready.set)
            except Contended:
                ready.wait()

    async def _enter_async(self, request: Request, retry: bool) -> Dispatch:
        try:
            return self._boundary.open(request, retry)
        except Contended:
            if not self._waits(request):
                raise
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()

        def wake() -> None:
            # A loop that has closed has no caller left to wake.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(ready.set)

        while True:
            ready.clear()
            try:
                return self._boundary.open(request, retry, wake)
            except Contended:
                await ready.wait()

    def _waits(self, request: Request) -> bool:
        """A call made from inside another of the same chain would wait for what cannot settle before it returns."""
        if not request.wait or frames.parent_on(self._ledger.chain, frames.current.get()):
            return False
        return not self._inside_quick_call()

    def _inside_quick_call(self) -> bool:
        """Look for the quick way on the stack, past its dispatch: it leaves no frame of its own, which would cost."""
        frame: FrameType | None = sys._getframe()  # noqa: SLF001 - the way the standard library offers to the stack
        while frame is not None:
            if frame.f_code is _QUICK_CODE and "held" in frame.f_locals:
                context: ExecutionContext = frame.f_locals["self"]
                if context._ledger.chain is self._ledger.chain:
                    return True
            frame = frame.f_back
        return False

    def _wrapped(self, fn: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Decision:
        try:
            self.call(fn, *args, **options)
        except Stop:
            return Decision.HALT
        except Denied:
            return Decision.DENY
        return Decision.ALLOW


def _label(fn: Callable[..., Any]) -> str:
    try:
        return fn.__name__
    except AttributeError:
        return type(fn).__name__


_QUICK_CODE = ExecutionContext.call.__code__
