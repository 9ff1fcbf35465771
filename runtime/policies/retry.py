"""Repeating a failed call, with exponential backoff and jitter, for as long as the chain allows (G3)."""

from __future__ import annotations

import asyncio
import random as random_module
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from failstop.runtime.clock import NS_PER_SECOND, SystemClock
from failstop.runtime.cores import retry as core
from failstop.runtime.limits import Limits, count_or_unlimited, seconds_to_ns
from failstop.runtime.stops import ConfigurationError, Denied, Stop, expect

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from decimal import Decimal

    from failstop.runtime.clock import Clock

T = TypeVar("T")


class Random(Protocol):
    """A source of jitter."""

    def random(self) -> float:
        """Draw from [0, 1)."""


class Caller(Protocol):
    """The part of an execution context that a retry needs."""

    def call(self, fn: Callable[..., Any], /, *args: Any, **options: Any) -> Any:
        """Dispatch within the chain's limits."""

    async def acall(self, fn: Callable[..., Awaitable[Any]], /, *args: Any, **options: Any) -> Any:
        """Dispatch within the chain's limits, awaiting it."""


def worth_repeating(error: Exception) -> bool:
    """Say yes to every error but a denial, which says itself when to come again."""
    return not isinstance(error, Denied)


def never(error: Exception) -> bool:  # noqa: ARG001 - no error is worth it
    """Say no."""
    return False


class RetryContainer:
    """Tries again at most `max_retries` times (None: any number); raises ConfigurationError for unusable options.

    The n-th wait is ``backoff_base_s * 2**(n-1)``, spread by +/- `jitter` (a fraction of it), never more than
    `backoff_max_s`. retry_if: judges an Exception; a Stop, a cancellation or an exit is never repeated, and a Denied
    only if `retry_if` asks for it. idempotent: False says that a second dispatch may be a second effect; a call that
    failed may have had its effect, so nothing is repeated but what `retry_if` knows to have had none.

    With a context every try is a call of its chain, so nested retries together stay within the chain's ceiling; alone,
    this bounds its own calls only, and three nested layers multiply. No lock is held while anything runs or waits, and
    one container may serve any number of threads.
    """

    def __init__(
        self,
        max_retries: int | None = 3,
        *,
        backoff_base_s: float | Decimal = 1.0,
        backoff_max_s: float | Decimal = 60.0,
        jitter: float = 0.25,
        retry_if: Callable[[Exception], bool] | None = None,
        idempotent: bool = True,
        clock: Clock | None = None,
        async_sleep_ns: Callable[[int], Awaitable[object]] | None = None,
        random: Random | None = None,
        context: Caller | None = None,
    ) -> None:
        expect(retry_if is None or callable(retry_if), "retry_if", retry_if, "a function from an error to bool")
        expect(isinstance(idempotent, bool), "idempotent", idempotent, "True or False")
        expect(async_sleep_ns is None or callable(async_sleep_ns), "async_sleep_ns", async_sleep_ns, "a function")
        expect(random is None or callable(getattr(random, "random", None)), "random", random, "random.Random or alike")
        limit = count_or_unlimited(Limits(max_retries=max_retries).max_retries)
        self._bounds: core.Bounds = (limit, seconds_to_ns(backoff_max_s, "backoff_max_s"))
        self._base_ns = seconds_to_ns(backoff_base_s, "backoff_base_s")
        self._jitter = _billionths(jitter, "jitter")
        self._retry_if = retry_if or (worth_repeating if idempotent else never)
        clock = SystemClock() if clock is None else clock
        self._sleep_ns = clock.sleep_ns
        self._async_sleep_ns = async_sleep_ns or _async_sleep_of(clock)
        self._random = random_module.Random() if random is None else random  # noqa: S311 - it spreads waits and guards nothing
        self._context = context

    def execute(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
        """Call `fn` until it returns; with a context, `kwargs` are also the options of its `call`."""
        if self._context is not None:
            value: T = self._context.call(fn, *args, retries=self, **kwargs)
            return value
        return self.run(lambda _: fn(*args, **kwargs))

    async def aexecute(self, fn: Callable[..., Awaitable[T]], /, *args: Any, **kwargs: Any) -> T:
        """Await `fn` until it returns; with a context, `kwargs` are also the options of its `acall`."""
        if self._context is not None:
            value: T = await self._context.acall(fn, *args, retries=self, **kwargs)
            return value
        return await self.arun(lambda _: fn(*args, **kwargs))

    def run(self, attempt: Callable[[bool], T], wait_ns: Callable[[int], int | None] | None = None) -> T:
        """Call ``attempt(is_retry)`` until it returns; the last error is raised as it is.

        wait_ns: says for each backoff how long to wait really, in nanoseconds, or None to raise the error at once. A
        stop that ends the retrying has the last error as its cause.
        """
        state = core.start(self._base_ns, self._bounds)
        last: Exception | None = None
        while True:
            try:
                return attempt(last is not None)
            except Stop as stop:
                stop.__cause__ = stop.__cause__ or last
                raise
            except Exception as error:  # whether to swallow it is decided in _after
                state, pause_ns = self._after(state, error, wait_ns)
                if pause_ns is None:
                    raise
                last = error
            self._sleep_ns(pause_ns)

    async def arun(
        self, attempt: Callable[[bool], Awaitable[T]], wait_ns: Callable[[int], int | None] | None = None
    ) -> T:
        """Do as `run` does, awaiting each attempt and each wait."""
        state = core.start(self._base_ns, self._bounds)
        last: Exception | None = None
        while True:
            try:
                return await attempt(last is not None)
            except Stop as stop:
                stop.__cause__ = stop.__cause__ or last
                raise
            except Exception as error:  # whether to swallow it is decided in _after
                state, pause_ns = self._after(state, error, wait_ns)
                if pause_ns is None:
                    raise
                last = error
            await self._async_sleep_ns(pause_ns)

    def _after(
        self, state: core.State, error: Exception, wait_ns: Callable[[int], int | None] | None
    ) -> tuple[core.State, int | None]:
        """Decide after a failed attempt: the next state, and how long to wait or None to give up."""
        state, verdict, backoff_ns = core.fail(state, self._bounds, self._retry_if(error) is True)
        if verdict == core.GIVE_UP:
            return state, None
        draw = _billionths(self._random.random(), "random")
        backoff_ns = core.jittered(backoff_ns, self._bounds, self._jitter, draw)
        return state, backoff_ns if wait_ns is None else wait_ns(backoff_ns)


def _async_sleep_of(clock: Clock) -> Callable[[int], Awaitable[object]]:
    """Sleep by the event loop's own timer in real time; by any other clock on a thread, since it may block."""
    if isinstance(clock, SystemClock):
        return lambda duration_ns: asyncio.sleep(duration_ns / NS_PER_SECOND)
    return lambda duration_ns: asyncio.to_thread(clock.sleep_ns, duration_ns)


def _billionths(value: object, field: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ConfigurationError(field, value, "a fraction from 0 to 1 (int or float)")
    return int(value * core.UNIT)
