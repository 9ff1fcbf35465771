"""Awaiting other people's coroutines: none of them can hold a run longer than its chain lives."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from failstop.runtime.cancellation import CancellationToken

GRACE_S = 0.25
"""Seconds that a task has to clean up after it was cancelled; then nobody waits for it any more."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of one dispatch: a value, or what was raised."""

    value: Any = None
    error: BaseException | None = None


def raisable(error: BaseException) -> BaseException:
    """Keep a GeneratorExit of user code apart from the one that tells an engine that it is dropped."""
    if not isinstance(error, GeneratorExit):
        return error
    told = RuntimeError("a GeneratorExit was raised")
    told.__cause__ = error
    return told


async def caught(work: Awaitable[Any]) -> Reply:
    """Await, and give what was raised as a value: of a task, KeyboardInterrupt would tear down the whole event loop."""
    try:
        return Reply(await work)
    except BaseException as error:  # noqa: BLE001 - the engine judges what user code raised
        return Reply(error=raisable(error))


async def until_cancelled(awaitable: Awaitable[Any], token: CancellationToken) -> Any:
    """Await until the chain or the caller is cancelled, whatever the awaitable does; raises what it raised.

    What does not end when it is cancelled is left behind, and CancelledError is raised in its place.
    """
    task = asyncio.ensure_future(caught(awaitable))
    over = asyncio.Event()
    watcher = asyncio.ensure_future(over.wait())
    unsubscribe = token.subscribe(partial(_soon, asyncio.get_running_loop(), over.set))
    try:
        await asyncio.wait({task, watcher}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        unsubscribe()
        watcher.cancel()
        await end({task})
    if not task.done():
        raise asyncio.CancelledError
    reply = task.result()
    if reply.error is not None:
        raise reply.error
    return reply.value


def on_own_loop(make: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run a coroutine to its end on an event loop of its own; raises RuntimeError on a thread that runs one already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_alone(make))
    raise RuntimeError("async planners and tools need arun when an event loop is running already")


async def _alone(make: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    try:
        return await make()
    finally:
        # asyncio.run would wait for every task that is left, and one that swallows its cancellation never ends.
        await end(asyncio.all_tasks() - {asyncio.current_task()})


async def end(tasks: set[asyncio.Task[Any]]) -> None:
    """Cancel what is not done and leave behind what does not end of it."""
    pending = {task for task in tasks if not task.done()}
    for task in pending:
        # A second time would cut short its cleaning up.
        if not task.cancelling():
            task.cancel()
    try:
        if pending:
            await asyncio.wait(pending, timeout=GRACE_S)
    finally:
        for task in pending:
            if not task.done():
                _leave_behind(task)


def _leave_behind(task: asyncio.Task[Any]) -> None:
    # What asyncio documents for those who extend it: unregistered, a task is not waited for when its loop ends.
    asyncio._unregister_task(task)  # noqa: SLF001 - documented under "Extending"
    # As asyncio.gather does for what it leaves behind.
    task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001 - typeshed does not list it


def _soon(loop: asyncio.AbstractEventLoop, do: Callable[[], object]) -> None:
    # A loop that has closed has nothing left to cancel.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(do)
