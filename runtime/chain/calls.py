"""The faces of a call: plain, awaited, streamed, and answering with a decision; one way in and out for all of them."""

from __future__ import annotations

import functools
from threading import get_ident
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from failstop.runtime.chain import frames, isolation
from failstop.runtime.chain.abandonment import await_or_abandon
from failstop.runtime.chain.charging import Cost, asked_for, charged_for
from failstop.runtime.chain.decision import Decision
from failstop.runtime.chain.dispatch import Abandoned, Boundary, Dispatch, Request
from failstop.runtime.chain.partial import PartialResultBuffer
from failstop.runtime.chain.streaming import chunks_from_thread, chunks_in_place, stream_chunks
from failstop.runtime.chain.waiting import enter, enter_async
from failstop.runtime.cores.ledger import ADMITTED, NO_ESTIMATE, admit, settle
from failstop.runtime.limits import UNLIMITED
from failstop.runtime.money import Amount, Money
from failstop.runtime.policies.retry import RetryContainer
from failstop.runtime.stops import ConfigurationError, Denied, Stop

if TYPE_CHECKING:
    import threading
    from collections.abc import Awaitable, Callable, Iterable, Iterator

    from failstop.runtime.cancellation import CancellationToken
    from failstop.runtime.chain.accounts import Account, Chain
    from failstop.runtime.chain.ledger import Ledger
    from failstop.runtime.clock import Clock

T = TypeVar("T")
Kind: TypeAlias = Literal["llm", "tool"]
Isolation: TypeAlias = Literal["thread", "process"]


class Calls:
    """Everything that can be called through a context; ExecutionContext brings the chain to it."""

    name: str
    closed: bool
    token: CancellationToken
    partial: PartialResultBuffer
    _clock: Clock
    _ledger: Ledger
    _boundary: Boundary
    _record: Callable[[tuple[Any, ...]], None]
    _direct: bool
    _quick: tuple[Ledger, Account, Chain, threading.Lock, Callable[[], int]]
    _last_value: Any

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
        dollars; one that breaks or gives no amount is charged all that was held (``cost_known`` is false in the log).
        Without either the call holds and is charged all that is left; ``cost=0`` says that it is free.
        retries: how often a failing call is tried again, within the chain's ceiling; each try is a step and is charged.
        isolate: how the call can be left behind at the deadline, see the class. wait: wait for calls in flight that
        alone keep this one out, up to the deadline; else raise Contended at once, as a call that would wait for its own
        thread does. One without an estimate waits until nothing else is in flight; estimated ones may pass it by.
        tokens: a function from the value to (tokens in, tokens out), for the graph.
        Raises a Stop, Denied or Contended if it may not run, ConfigurationError, or what `fn` raised.
        """
        request = self._request(fn, reserve, cost, kind, wait, name, tokens)
        if isolate not in {None, "thread", "process"}:
            raise ConfigurationError("isolate", isolate, '"thread", "process" or None')
        payload = isolation.checked_payload(fn, args, kwargs) if isolate == "process" else b""

        def attempt(retry: bool) -> Any:
            with Dispatch(self._boundary, request, retry) as dispatch:
                enter(dispatch)
                if isolate == "process":
                    return isolation.in_process(dispatch, self.token, payload)
                if isolate == "thread":
                    return isolation.on_thread(dispatch, self.token, fn, args, kwargs)
                return isolation.in_place(dispatch, fn, args, kwargs)

        try:
            value: T = self._retrying(retries).run(attempt, self._wait_ns) if retries else attempt(False)
        except Abandoned:
            raise self._boundary.stop_now() from None
        self._last_value = value
        return value

    if TYPE_CHECKING:
        call = _call_in_full
    else:
        # ruff: noqa: ANN001, ANN002, ANN003, ANN201, D102 - types and text are those of the full way just above
        @functools.wraps(_call_in_full)
        def call(  # noqa: C901, PLR0912, PLR0915 - one function, because each further one costs a third of a lock
            self, fn, /, *args, reserve=None, cost=None, kind="llm", **options
        ):
            # The quick way for the plain case: Ledger.admit and Ledger.settle written out, for a chain with one
            # account, no log and no policies. The two steps of the core are then most of what a call costs; even the
            # defaults of options that are rarely given would cost as much as a lock. A call that held and cost
            # nothing has nothing to settle. What this way cannot do, the full way above does from the start. A `with`
            # would cost as much again as the lock itself; what it is safe from, free_lock mends.
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
                if self._ledger.account.bounds[0] >= 0:
                    # It will hold all that is left: what it calls, on other threads too, must not wait for it.
                    return self._call_in_full(fn, *args, kind=kind)
                asked = NO_ESTIMATE
            elif type(cost) is Money and cost.nano >= 0:
                asked = cost.nano
            elif type(cost) is int and cost == 0:
                asked = 0
            else:
                asked = asked_for(None, cost)
                known = asked != NO_ESTIMATE
            ledger, account, chain, lock, now_ns = self._quick
            thread = get_ident()
            admitted = False
            status = "error"
            try:
                try:
                    lock.acquire()
                    try:
                        start_ns = now_ns()
                        state, verdict = admit(account.state, account.bounds, asked, tool, False, start_ns)
                        if verdict == ADMITTED and not self.closed and not chain.posted:
                            number = state[2] + chain.released
                            # Without an estimate there is no cost ceiling here, and nothing is held.
                            held = paid = asked if asked > 0 else 0  # noqa: FURB136 - max() costs a call
                            account.state = state
                            admitted = True
                            if held:
                                chain.holding[number] = thread
                    finally:
                        lock.release()
                except BaseException:
                    chain.free_lock()
                    raise
                if not admitted:
                    return self._call_in_full(fn, *args, reserve=reserve, cost=cost, kind=kind)
                value = fn(*args) if args else fn()
                if type(value) is CoroutineType:
                    isolation.returned(fn, value)
                if not known:
                    paid = charged_for(cost, value, held)[0]
                status = "ok"
            finally:
                if admitted:
                    if held or paid:
                        try:
                            lock.acquire()
                            try:
                                account.state = settle(account.state, account.bounds, held, paid)
                                admitted = False
                                if held:
                                    del chain.holding[number]
                                if paid > held or chain.waiters:
                                    ledger.after_settlement(held, paid)
                            finally:
                                lock.release()
                        except BaseException:
                            chain.free_lock()
                            if admitted:
                                ledger.settle_interrupted(number, held, paid)
                            raise
                    if chain.posted:
                        chain.drain()
                    frame = frames.current.get()
                    self._record((number, frame, thread, self.name, kind, label, start_ns, now_ns(), paid, status))
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
            with Dispatch(self._boundary, request, retry) as dispatch:
                await enter_async(dispatch)
                return await await_or_abandon(dispatch, self.token, fn, args, kwargs)

        try:
            value: T = await (self._retrying(retries).arun(attempt, self._wait_ns) if retries else attempt(False))
        except Abandoned:
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
            Dispatch(self._boundary, request),
            self._boundary,
            self.token,
            self._begin_partial,
            lambda: source(self.token, lambda: fn(*args, **kwargs)),
        )

    def _begin_partial(self) -> PartialResultBuffer:
        """Show the newest stream's chunks."""
        self.partial = PartialResultBuffer()
        return self.partial

    def reserve(
        self, amount: Amount | None = None, *, kind: Kind = "llm", wait: bool = True, name: str = "reserved"
    ) -> Dispatch:
        """Admit one dispatch that the caller makes itself, as a framework's callbacks do; raises as `call`.

        amount: dollars, the upper bound; None for all that is left. End it once: settle(actual), fail(error), or
        release() if the dispatch never began. A later call of the same thread that needs what this holds would wait
        for itself: it raises Contended at once.
        """
        dispatch = Dispatch(self._boundary, self._request(self.reserve, amount, None, kind, wait, name, None))
        with dispatch:
            enter(dispatch)
            dispatch.leave_thread()
        return dispatch

    def wrap_llm_call(self, fn: Callable[..., Any], /, *args: Any, **options: Any) -> Decision:
        """Make an LLM call with the options of `call`; answers instead of raising when it may not run."""
        return self._wrapped(fn, args, {**options, "kind": "llm"})

    def wrap_tool_call(self, fn: Callable[..., Any], /, *args: Any, **options: Any) -> Decision:
        """Make a tool call with the options of `call`; answers instead of raising when it may not run."""
        return self._wrapped(fn, args, {**options, "kind": "tool"})

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
        if kind not in ("llm", "tool"):
            raise ConfigurationError("kind", kind, '"llm" or "tool"')
        return Request(name or _label(fn), kind == "tool", asked_for(reserve, cost), cost, wait, tokens)

    def _retrying(self, retries: int | RetryContainer) -> RetryContainer:
        if isinstance(retries, RetryContainer):
            return retries
        return RetryContainer(retries, clock=self._clock, async_sleep_ns=self._clock.asleep_ns)

    def _wait_ns(self, backoff_ns: int) -> int | None:
        """No wait before a retry that would be refused anyway, and None where it would end after the deadline."""
        if not self._ledger.retries_left:
            return 0
        deadline_ns = self._ledger.deadline_ns
        late = deadline_ns != UNLIMITED and self._clock.now_ns() + backoff_ns >= deadline_ns
        return None if late else backoff_ns

    def _wrapped(self, fn: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Decision:
        try:
            self.call(fn, *args, **options)
        except Stop:
            return Decision.HALT
        except Denied:
            return Decision.DENY
        return Decision.ALLOW


def _label(fn: Callable[..., Any]) -> str:
    name = getattr(fn, "__name__", None)
    return name if type(name) is str else type(fn).__name__
