"""An awaited call that can be left behind: cancelled at its chain's stop, and not waited for if it will not end."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import weakref
from typing import TYPE_CHECKING, Any

from failstop.runtime.chain import frames
from failstop.runtime.chain.dispatch import Abandoned
from failstop.runtime.chain.graph import OWN_FRAME
from failstop.runtime.stops import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from failstop.runtime.cancellation import CancellationToken
    from failstop.runtime.chain.dispatch import Dispatch


async def await_or_abandon(
    dispatch: Dispatch,
    token: CancellationToken,
    fn: Callable[..., Awaitable[Any]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Await the call as a task of its own; raises Abandoned when the token is set first, or what the call raised.

    The task ends the dispatch itself, however often its caller is cancelled meanwhile, and when its loop is closed.
    """
    dispatch.thread = OWN_FRAME
    dispatch.leave_thread()
    left: list[bool] = []
    task = _start(dispatch, left, fn, args, kwargs)
    stopped = asyncio.Event()
    unsubscribe = _signal(token, stopped)
    watcher = asyncio.ensure_future(stopped.wait())
    try:
        await asyncio.wait({task, watcher}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise Abandoned  # noqa: TRY301 - told just below, where every other end is told
    except BaseException as error:
        left.append(True)
        dispatch.handed_over = dispatch.begun
        _cancel(task)
        if isinstance(error, asyncio.CancelledError):
            await asyncio.wait({task, watcher}, return_when=asyncio.FIRST_COMPLETED)
        raise
    finally:
        unsubscribe()
        _cancel(watcher)
    return task.result()


def _start(
    dispatch: Dispatch,
    left: list[bool],
    fn: Callable[..., Awaitable[Any]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> asyncio.Task[Any]:
    def outcome(word: str) -> str:
        return "abandoned" if left else word

    async def run() -> Any:
        dispatch.begun = True
        try:
            value = await _awaitable(fn, fn(*args, **kwargs))
            dispatch.succeed(value, lambda: outcome("ok"))
        except BaseException as error:
            if dispatch.open:
                dispatch.fail(error, outcome("error"))
            # What an abandoned call raised ends here: nobody waits for it.
            if left and isinstance(error, Exception):
                return None
            raise
        return value

    outer = frames.current.set(dispatch.frame)
    try:
        return asyncio.get_running_loop().create_task(run(), name=f"failstop-{dispatch.request.label}")
    finally:
        frames.current.reset(outer)


def _cancel(task: asyncio.Future[Any]) -> None:
    # On a loop that has closed nothing runs any more; its tasks end as their coroutines are dropped.
    with contextlib.suppress(RuntimeError):
        task.cancel()


def _awaitable(fn: Callable[..., Any], value: Any) -> Awaitable[Any]:
    if not inspect.isawaitable(value):
        raise ConfigurationError("fn", fn, "an async function; a plain one is called with call()")
    return value


def _signal(token: CancellationToken, stopped: asyncio.Event) -> Callable[[], None]:
    loop = asyncio.get_running_loop()
    # Weakly, or the token would keep the tasks of a loop that was closed under them, and they would never end.
    event = weakref.ref(stopped)

    def tell() -> None:
        waiting = event()
        # A loop that has closed has no caller left to tell.
        with contextlib.suppress(RuntimeError):
            if waiting is not None:
                loop.call_soon_threadsafe(waiting.set)

    return token.subscribe(tell)
