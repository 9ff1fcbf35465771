"""A call whose result comes in chunks: admitted once, watched at every chunk, charged exactly once."""

from __future__ import annotations

import contextlib
import contextvars
import queue
import threading
from typing import TYPE_CHECKING, Any, TypeVar

from failstop.runtime.chain.dispatch import Abandoned
from failstop.runtime.chain.waiting import enter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from failstop.runtime.cancellation import CancellationToken
    from failstop.runtime.chain.dispatch import Boundary, Dispatch
    from failstop.runtime.chain.partial import PartialResultBuffer

T = TypeVar("T")

_AHEAD = 16
"""How many chunks a source on its own thread may be ahead of its consumer."""


def stream_chunks(
    dispatch: Dispatch,
    boundary: Boundary,
    token: CancellationToken,
    begin: Callable[[], PartialResultBuffer],
    source: Callable[[], Iterator[T]],
) -> Iterator[T]:
    """Pass chunks on until the source ends, breaks, the consumer leaves, or the chain stops."""
    priced: list[T] = []
    try:
        with dispatch:
            enter(dispatch)
            dispatch.leave_thread()
            dispatch.begun = True
            partial = begin()
            with contextlib.closing(source()) as chunks:  # type: ignore[type-var]  # both sources are generators
                for chunk in chunks:
                    if token.cancelled:
                        raise Abandoned  # noqa: TRY301 - told just below, where every other end is told
                    partial.append(chunk)
                    if callable(dispatch.request.cost):
                        priced.append(chunk)
                    yield chunk
            dispatch.succeed(tuple(priced))
            partial.clear()
    except Abandoned:
        raise boundary.stop_now() from None


def chunks_in_place(_token: CancellationToken, produce: Callable[[], Iterable[T]]) -> Iterator[T]:
    """Iterate on the consumer's own thread."""
    yield from produce()


def chunks_from_thread(token: CancellationToken, produce: Callable[[], Iterable[T]]) -> Iterator[T]:
    """Iterate on a daemon thread; raises Abandoned when the token is set, even if the source has fallen silent."""
    arrived: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
    room = threading.Semaphore(_AHEAD)
    left = threading.Event()

    def work() -> None:
        try:
            for chunk in produce():
                room.acquire()
                if left.is_set():
                    return
                arrived.put(("chunk", chunk))
            arrived.put(("end", None))
        except BaseException as error:  # noqa: BLE001 - raised again at the consumer, whatever it is
            arrived.put(("error", error))

    threading.Thread(target=contextvars.copy_context().run, args=(work,), name="failstop-stream", daemon=True).start()
    unsubscribe = token.subscribe(lambda: arrived.put(("stop", None)))
    try:
        while True:
            what, item = arrived.get()
            if what == "end":
                return
            if what == "stop":
                raise Abandoned
            if what == "error":
                raise item
            room.release()
            yield item
    finally:
        unsubscribe()
        left.set()
        room.release()
