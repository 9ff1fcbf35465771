"""The two faces of one engine: what a run decides is a generator, and a face carries out what it asks for.

A run yields `Ask`, `Batch` or `Pause` and is sent what came of it. The synchronous face runs an async planner or tool
to its end on an event loop of its own; the asyncio face runs a plain tool on a thread, so that the loop stays free.
A paused run is its suspended generator, so either face can continue what the other began.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from failstop.runtime.stops import Stop

if TYPE_CHECKING:
    from failstop.runtime.agent.approval import ApprovalRequest
    from failstop.runtime.cancellation import CancellationToken
    from failstop.runtime.chain.context import ExecutionContext


@dataclass(frozen=True, slots=True)
class Ask:
    """Call a planner or an approver, outside the ledger; what it raises is raised at the yield."""

    fn: Callable[..., Any]
    args: tuple[Any, ...]
    token: CancellationToken


@dataclass(frozen=True, slots=True)
class Call:
    """One dispatch through the context; `options` are those of ExecutionContext.call."""

    context: ExecutionContext
    fn: Callable[[], Any]
    options: dict[str, Any]
    asynchronous: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """Dispatches to make at once, admitted in this order; answered by a list of replies, shorter if one was stopped."""

    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait for people; answered by a mapping from request id to answer."""

    requests: tuple[ApprovalRequest, ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of one dispatch: a value, or what was raised."""

    value: Any = None
    error: BaseException | None = None


T = TypeVar("T")
Engine: TypeAlias = Generator[Ask | Batch | Pause, Any, T]


def drive(engine: Engine[T], answer: object = None) -> T | Pause:
    """Run an engine to its end or its next pause."""
    try:
        effect = engine.send(answer)
        while not isinstance(effect, Pause):
            try:
                came = _ask(effect) if isinstance(effect, Ask) else _dispatch_all(effect.calls)
            except BaseException as error:  # noqa: BLE001 - the engine judges what user code raised
                effect = engine.throw(_raisable(error))
            else:
                effect = engine.send(came)
    except StopIteration as end:
        result: T = end.value
        return result
    return effect


async def adrive(engine: Engine[T], answer: object = None) -> T | Pause:
    """Run an engine on the running event loop to its end or its next pause."""
    try:
        effect = engine.send(answer)
        while not isinstance(effect, Pause):
            try:
                came = await _ask_async(effect) if isinstance(effect, Ask) else await _dispatch_all_async(effect.calls)
            except BaseException as error:  # noqa: BLE001 - the engine judges what user code raised
                effect = engine.throw(_raisable(error))
            else:
                effect = engine.send(came)
    except StopIteration as end:
        result: T = end.value
        return result
    return effect


def _raisable(error: BaseException) -> BaseException:
    """Keep a GeneratorExit of user code apart from the one that tells an engine that it is dropped."""
    if not isinstance(error, GeneratorExit):
        return error
    told = RuntimeError("a GeneratorExit was raised")
    told.__cause__ = error
    return told


def _ask(ask: Ask) -> Any:
    answer = ask.fn(*ask.args)
    if inspect.isawaitable(answer):
        return _on_own_loop(partial(_until_cancelled, answer, ask.token))
    return answer


def _on_own_loop(make: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(make())
    raise RuntimeError("async planners and tools need arun when an event loop is running already")


def _dispatch_all(calls: tuple[Call, ...]) -> list[Reply]:
    if len(calls) == 1:
        return [_dispatch(calls[0])]
    replies: list[Reply | None] = [None] * len(calls)
    threads = []
    for place, call in enumerate(calls):
        decided = threading.Event()
        work = partial(_dispatch_into, replies, place, _announcing(call, decided.set), decided)
        threads.append(threading.Thread(target=contextvars.copy_context().run, args=(work,), name="failstop-call"))
        threads[-1].start()
        # The next one asks only once this one is admitted or refused: which calls fit is never left to the scheduler.
        decided.wait()
        if _stopped(replies[place]):
            break
    for thread in threads:
        thread.join()
    return [reply for reply in replies if reply is not None]


def _dispatch_into(replies: list[Reply | None], place: int, call: Call, decided: threading.Event) -> None:
    try:
        replies[place] = _dispatch(call)
    finally:
        decided.set()


def _announcing(call: Call, announce: Callable[[], Any]) -> Call:
    """Tell when the call begins; one that runs in a process of its own cannot, so it is not waited for."""
    if call.options.get("isolate") == "process":
        announce()
        return call
    return replace(call, fn=partial(_announced, announce, call.fn))


def _announced(announce: Callable[[], Any], fn: Callable[[], Any]) -> Any:
    announce()
    return fn()


def _dispatch(call: Call) -> Reply:
    fn = partial(_on_own_loop, call.fn) if call.asynchronous else call.fn
    try:
        return Reply(call.context.call(fn, **call.options))
    except BaseException as error:  # noqa: BLE001 - the engine judges what user code raised
        return Reply(error=_raisable(error))


def _stopped(reply: Reply | None) -> bool:
    return reply is not None and isinstance(reply.error, Stop)


async def _ask_async(ask: Ask) -> Any:
    answer = ask.fn(*ask.args)
    return await _until_cancelled(answer, ask.token) if inspect.isawaitable(answer) else answer


async def _until_cancelled(awaitable: Awaitable[Any], token: CancellationToken) -> Any:
    """Await, but cancel once the chain is over: a model that never answers must not hold the run past its deadline."""
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(_caught(awaitable))
    unsubscribe = token.subscribe(lambda: _cancel_soon(loop, task))
    try:
        reply = await task
    finally:
        unsubscribe()
    if reply.error is not None:
        raise reply.error
    return reply.value


def _cancel_soon(loop: asyncio.AbstractEventLoop, task: asyncio.Future[Reply]) -> None:
    # A loop that has closed has nothing left to cancel.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(task.cancel)


async def _caught(work: Awaitable[Any]) -> Reply:
    # Caught inside the task: asyncio lets KeyboardInterrupt and SystemExit of a task tear down the whole event loop.
    try:
        return Reply(await work)
    except BaseException as error:  # noqa: BLE001 - the engine judges what user code raised
        return Reply(error=_raisable(error))


async def _dispatch_all_async(calls: tuple[Call, ...]) -> list[Reply]:
    if len(calls) == 1:
        return [await _dispatch_async(calls[0])]
    loop = asyncio.get_running_loop()
    tasks: list[asyncio.Task[Reply]] = []
    try:
        for call in calls:
            decided = asyncio.Event()
            announced = _announcing(call, partial(loop.call_soon_threadsafe, decided.set))
            tasks.append(asyncio.create_task(_dispatch_async(announced)))
            tasks[-1].add_done_callback(lambda _, decided=decided: decided.set())  # type: ignore[misc]  # binds it
            await decided.wait()
            if tasks[-1].done() and _stopped(tasks[-1].result()):
                break
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        raise


async def _dispatch_async(call: Call) -> Reply:
    if not call.asynchronous:
        return await asyncio.to_thread(_dispatch, call)
    return await _caught(call.context.acall(call.fn, **call.options))
