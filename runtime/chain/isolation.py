"""Calls that can be left behind: on a thread of their own (abandoned at the stop) or in a process (killed)."""

from __future__ import annotations

import contextlib
import contextvars
import multiprocessing
import pickle
import threading
from multiprocessing.connection import wait
from types import CoroutineType
from typing import TYPE_CHECKING, Any

from failstop.runtime.chain import frames
from failstop.runtime.chain.dispatch import Abandoned
from failstop.runtime.stops import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

    from failstop.runtime.cancellation import CancellationToken
    from failstop.runtime.chain.dispatch import Dispatch


class ProcessDied(RuntimeError):  # noqa: N818 - it tells what happened
    """An isolated process ended without a result and nobody had asked it to."""


class _Race:
    """Decides once which of two threads came first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._winner: str | None = None

    def claim(self, who: str) -> bool:
        with self._lock:
            if self._winner is None:
                self._winner = who
            return self._winner == who


def in_place(dispatch: Dispatch, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run on the caller's own thread; at the deadline it is told through the token, no more."""
    dispatch.begun = True
    outer = frames.current.set(dispatch.frame)
    try:
        value = returned(fn, fn(*args, **kwargs))
        dispatch.succeed(value)
    finally:
        frames.current.reset(outer)
    return value


def returned(fn: Callable[..., Any], value: Any) -> Any:
    """Give what a plain call returned; raises ConfigurationError for a coroutine, whose work nobody would do."""
    if type(value) is CoroutineType:
        value.close()
        raise ConfigurationError("fn", fn, "a plain function; an async one is awaited with acall()")
    return value


def on_thread(
    dispatch: Dispatch, token: CancellationToken, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Run on a daemon thread and wait for its end or the token's; raises Abandoned, or what `fn` raised.

    An abandoned thread cannot be killed: it runs on, its late value is discarded and its cost is settled when it ends.
    """
    start, end = _Race(), _Race()
    ended = threading.Event()
    values: list[Any] = []
    errors: list[BaseException] = []

    def outcome(word: str) -> str:
        return word if end.claim("worker") else "abandoned"

    def work() -> None:
        if not start.claim("worker"):
            return
        frames.current.set(dispatch.frame)
        dispatch.belongs_to(threading.get_ident())
        try:
            value = returned(fn, fn(*args, **kwargs))
            dispatch.succeed(value, lambda: outcome("ok"))
            values.append(value)
        except BaseException as error:  # noqa: BLE001 - handed to the caller, whatever it is
            errors.append(error)
            if dispatch.open:
                dispatch.fail(error, outcome("error"))
        finally:
            ended.set()

    thread = threading.Thread(
        target=contextvars.copy_context().run, args=(work,), name=f"failstop-{dispatch.request.label}", daemon=True
    )
    try:
        thread.start()
    except BaseException:
        # It may be running all the same, after an interrupt; then it ends the call, else it never will.
        dispatch.handed_over = not start.claim("caller")
        raise
    dispatch.handed_over = True
    unsubscribe = token.subscribe(ended.set)
    try:
        ended.wait()
        if token.cancelled and end.claim("caller"):
            raise Abandoned
        thread.join()
    finally:
        unsubscribe()
    if errors:
        raise errors[0]
    return values[0]


def checked_payload(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
    """Pickle what an isolated process shall run; raises ConfigurationError if that is not possible."""
    try:
        return pickle.dumps((fn, args, kwargs))
    except Exception as error:
        expected = f"a module-level function and arguments that can be pickled, for isolate='process' ({error})"
        raise ConfigurationError("fn", fn, expected) from error


def in_process(dispatch: Dispatch, token: CancellationToken, payload: bytes) -> Any:
    """Run in a fresh process, killed when the token is set; raises Abandoned, ProcessDied, or what it raised."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_run_payload, args=(sender, payload), daemon=True)
    with receiver:
        _start(dispatch, process, sender)
        unsubscribe = token.subscribe(lambda: _kill(process))
        try:
            answer = _receive(receiver, process)
        finally:
            unsubscribe()
            _kill(process)
            process.join()
            process.close()
    return _unpack(dispatch, token, answer)


def _start(dispatch: Dispatch, process: BaseProcess, sender: Connection) -> None:
    dispatch.begun = True
    try:
        with sender:
            process.start()
    except Exception:
        dispatch.begun = False
        raise


def _kill(process: BaseProcess) -> None:
    # A token that fires while the call ends may reach a process that is reaped and closed already.
    with contextlib.suppress(ValueError):
        process.kill()


def _receive(receiver: Connection, process: BaseProcess) -> tuple[bool, Any] | None:
    """Wait for an answer or the process's end: another child of this process may keep the pipe open."""
    wait([receiver, process.sentinel])
    try:
        answer: tuple[bool, Any] | None = receiver.recv() if receiver.poll() else None
    except EOFError:
        return None
    except Exception as error:  # noqa: BLE001 - an answer that cannot be unpickled is an error of the call
        return False, error
    return answer


def _unpack(dispatch: Dispatch, token: CancellationToken, answer: tuple[bool, Any] | None) -> Any:
    if answer is None:
        if token.cancelled:
            left = Abandoned()
            dispatch.fail(left, "abandoned")
            raise left
        raise ProcessDied(f"the process of {dispatch.request.label!r} ended without a result")
    has_returned, value = answer
    if not has_returned:
        raise value
    dispatch.succeed(value)
    return value


def _run_payload(sender: Connection, payload: bytes) -> None:
    """Run in the child process: send (True, value) or (False, error)."""
    try:
        fn, args, kwargs = pickle.loads(payload)  # noqa: S301 - made by our own parent process just now
        answer = (True, returned(fn, fn(*args, **kwargs)))
    except BaseException as error:  # noqa: BLE001 - raised again in the parent
        answer = (False, error)
    try:
        sender.send(answer)
    except Exception as error:  # noqa: BLE001 - a value that cannot be pickled is an error of the call
        sender.send((False, TypeError(f"the result cannot be sent between processes: {error}")))
