"""The two faces of one engine: what a run decides is a generator, and a face carries out what it asks for.

A run yields `Ask`, `Batch` or `Pause` and is sent what came of it. The synchronous face runs an async planner or tool
to its end on an event loop of its own; the asyncio face runs a plain tool on a thread, so that the loop stays free.
A paused run is its suspended generator, so either face can continue what the other began.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from failstop.runtime.agent.awaiting import Reply, caught, end, on_own_loop, raisable, until_cancelled
from failstop.runtime.chain.dispatch import described
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
    """One dispatch through the context; `options` are those of ExecutionContext.call.

    allowed: asked last, when those before it in its batch are admitted or refused; False: it is not made.
    """

    context: ExecutionContext
    fn: Callable[[], Any]
    options: dict[str, Any]
    allowed: Callable[[], bool]
    asynchronous: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """Dispatches to make at once, admitted in this order; answered by a list of replies, shorter if one was stopped.

    The reply of a call that was not allowed is empty.
    """

    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait for people; answered by a mapping from request id to answer."""

    requests: tuple[ApprovalRequest, ...]


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
                effect = engine.throw(raisable(error))
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
                effect = engine.throw(raisable(error))
            else:
                effect = engine.send(came)
    except StopIteration as end:
        result: T = end.value
        return result
    return effect


def _ask(ask: Ask) -> Any:
    answer = ask.fn(*ask.args)
    if inspect.isawaitable(answer):
        return on_own_loop(partial(until_cancelled, answer, ask.token))
    return answer


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
    try:
        if not call.allowed():
            return Reply()
        if call.asynchronous:
            wait = call.options["wait"] and not _holds_on_this_thread(call.context)
            return Reply(on_own_loop(partial(call.context.acall, call.fn, **{**call.options, "wait": wait})))
        return Reply(call.context.call(call.fn, **call.options))
    except BaseException as error:  # noqa: BLE001 - the engine judges what user code raised
        return _failed(call, error)


def _holds_on_this_thread(context: ExecutionContext) -> bool:
    """Say whether this thread holds money that it cannot settle while it runs an event loop, so must not wait for."""
    chain = context._ledger.chain  # noqa: SLF001 - `call` sees this by itself; `acall` takes the loop for a shared one
    return -threading.get_ident() in list(chain.holding.values())


def _failed(call: Call, error: BaseException) -> Reply:
    """Tell the stop of another chain, which is an error of the tool's, from a stop of this one."""
    if isinstance(error, Stop) and call.context.stop is None and not call.context.closed:
        told = RuntimeError(f"another chain was stopped: {error}")
        told.__cause__ = error
        return Reply(error=told)
    return Reply(error=raisable(error))


def _stopped(reply: Reply | None) -> bool:
    return reply is not None and isinstance(reply.error, Stop)


async def _ask_async(ask: Ask) -> Any:
    answer = ask.fn(*ask.args)
    return await until_cancelled(answer, ask.token) if inspect.isawaitable(answer) else answer


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
    reply = await caught(_called(call))
    return reply if reply.error is None else _failed(call, reply.error)


async def _called(call: Call) -> Any:
    if not call.allowed():
        return None
    tasks: set[asyncio.Task[Any]] = set()
    try:
        return await call.context.acall(_carrying, tasks, call.fn, **call.options)
    except _Carried as carried:
        raise cast("BaseException", carried.__cause__) from None
    finally:
        await end(tasks)


class _Carried(BaseException):
    """A KeyboardInterrupt or SystemExit of a tool on its way past asyncio, which would end the whole event loop."""


async def _carrying(tasks: set[asyncio.Task[Any]], fn: Callable[[], Awaitable[Any]]) -> Any:
    tasks.add(cast("asyncio.Task[Any]", asyncio.current_task()))
    try:
        return await fn()
    except (KeyboardInterrupt, SystemExit) as error:
        raise _Carried(described(error)) from error
