"""Calls that can be left behind: on a thread of their own (abandoned at the stop) or in a process (killed)."""

from __future__ import annotations

import contextlib
import contextvars
import multiprocessing
import pickle
import threading
from typing import TYPE_CHECKING, Any

from failstop.runtime.chain import frames
from failstop.runtime.stops import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

    from failstop.runtime.cancellation import CancellationToken
    from failstop.runtime.chain.dispatch import Dispatch


class ProcessDied(RuntimeError):  # noqa: N818 - it tells what happened
    """An isolated process ended without a result and nobody had asked it to."""


class Abandoned(BaseException):
    """The chain stopped while the call ran; a signal inside the runtime, which users see as the stop itself."""


class _Race:
    """Decides once whether the worker ended first or its caller left first."""

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
    outer = frames.current.set(dispatch.frame)
    try:
        value = fn(*args, **kwargs)
    except BaseException as error:
        dispatch.fail(error)
        raise
    finally:
        frames.current.reset(outer)
    dispatch.succeed(value)
    return value


def on_thread(
    dispatch: Dispatch, token: CancellationToken, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Run on a daemon thread and wait for its end or the token's; raises Abandoned, or what `fn` raised.

    An abandoned thread cannot be killed: it runs on, its late value is discarded and its cost is settled when it ends.
    """
    race = _Race()
    ended = threading.Event()
    values: list[Any] = []
    errors: list[BaseException] = []

    def work() -> None:
        frames.current.set(dispatch.frame)
        try:
            value = fn(*args, **kwargs)
            dispatch.succeed(value, "ok" if race.claim("worker") else "abandoned")
            values.append(value)
        except BaseException as error:  # noqa: BLE001 - handed to the caller, whatever it is
            errors.append(error)
            if not dispatch.ended:
                dispatch.fail(error, "error" if race.claim("worker") else "abandoned")
        finally:
            ended.set()

    thread = threading.Thread(
        target=contextvars.copy_context().run, args=(work,), name=f"failstop-{dispatch.request.label}", daemon=True
    )
    try:
        thread.start()
    except BaseException:
        dispatch.release()
        raise
    unsubscribe = token.subscribe(ended.set)
    try:
        ended.wait()
        if token.cancelled and race.claim("caller"):
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
    try:
        process.start()
    except BaseException:
        dispatch.release()
        raise
    sender.close()
    unsubscribe = token.subscribe(lambda: _kill(process))
    try:
        answer = _receive(receiver)
    finally:
        unsubscribe()
        _kill(process)
        process.join()
        process.close()
        receiver.close()
    return _unpack(dispatch, token, answer)


def _kill(process: BaseProcess) -> None:
    # A token that fires while the call ends may reach a process that is reaped and closed already.
    with contextlib.suppress(ValueError):
        process.kill()


def _receive(receiver: Connection) -> tuple[bool, Any] | None:
    try:
        answer: tuple[bool, Any] = receiver.recv()
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
        died = ProcessDied(f"the process of {dispatch.request.label!r} ended without a result")
        dispatch.fail(died)
        raise died
    returned, value = answer
    if not returned:
        dispatch.fail(value)
        raise value
    dispatch.succeed(value)
    return value


def _run_payload(sender: Connection, payload: bytes) -> None:
    """Run in the child process: send (True, value) or (False, error)."""
    try:
        fn, args, kwargs = pickle.loads(payload)  # noqa: S301 - made by our own parent process just now
        answer = (True, fn(*args, **kwargs))
    except BaseException as error:  # noqa: BLE001 - raised again in the parent
        answer = (False, error)
    try:
        sender.send(answer)
    except Exception as error:  # noqa: BLE001 - a value that cannot be pickled is an error of the call
        sender.send((False, TypeError(f"the result cannot be sent between processes: {error}")))
