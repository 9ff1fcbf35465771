"""An awaited call that can be left behind: cancelled at its chain's stop, and not waited for if it will not end."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from failstop.runtime.chain import frames
from failstop.runtime.chain.graph import OWN_FRAME
from failstop.runtime.chain.isolation import Abandoned

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
    """Await the call as a task of its own; raises Abandoned when the token is set first, or what the call raised."""
    dispatch.thread = OWN_FRAME
    task = _start(dispatch, fn, args, kwargs)
    stopped = asyncio.Event()
    unsubscribe = _signal(token, stopped)
    watcher = asyncio.ensure_future(stopped.wait())
    try:
        await asyncio.wait({task, watcher}, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task, watcher}, return_when=asyncio.FIRST_COMPLETED)
        _settle_when_done(dispatch, task)
        raise
    finally:
        unsubscribe()
        watcher.cancel()
    if not task.done():
        task.cancel()
        _settle_when_done(dispatch, task)
        raise Abandoned
    return _settle(dispatch, task, "ok")


def _start(
    dispatch: Dispatch, fn: Callable[..., Awaitable[Any]], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> asyncio.Task[Any]:
    async def run() -> Any:
        return await fn(*args, **kwargs)

    outer = frames.current.set(dispatch.frame)
    try:
        return asyncio.get_running_loop().create_task(run(), name=f"failstop-{dispatch.request.label}")
    finally:
        frames.current.reset(outer)


def _signal(token: CancellationToken, stopped: asyncio.Event) -> Callable[[], None]:
    loop = asyncio.get_running_loop()

    def tell() -> None:
        # A loop that has closed has no caller left to tell.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(stopped.set)

    return token.subscribe(tell)


def _settle_when_done(dispatch: Dispatch, task: asyncio.Task[Any]) -> None:
    if task.done():
        _settle_late(dispatch, task)
    else:
        task.add_done_callback(lambda ended: _settle_late(dispatch, ended))


def _settle_late(dispatch: Dispatch, task: asyncio.Task[Any]) -> None:
    """Charge a call that nobody waits for; its value and its error end here."""
    with contextlib.suppress(BaseException):
        _settle(dispatch, task, "abandoned")


def _settle(dispatch: Dispatch, task: asyncio.Task[Any], outcome: str) -> Any:
    try:
        value = task.result()
    except BaseException as error:
        dispatch.fail(error, "error" if outcome == "ok" else outcome)
        raise
    dispatch.succeed(value, outcome)
    return value
