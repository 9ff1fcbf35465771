"""Processes that work side by side, and end at once when whoever waits for them does."""

from __future__ import annotations

import multiprocessing
import os
import signal
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Forked, a process would take over locks of threads that it does not have.
context = multiprocessing.get_context("spawn")


@contextmanager
def workers(
    jobs: int | None = None, start: Callable[..., None] | None = None, given: tuple[Any, ...] = ()
) -> Iterator[ProcessPoolExecutor]:
    """Give a pool of processes, by default one a processor, each of which begins with ``start(*given)``.

    Left by an exception, such as an interrupt, it ends them in the middle of what they do.
    """
    others = set(multiprocessing.active_children())
    with ProcessPoolExecutor(jobs or os.cpu_count(), context, _start, (start, given)) as pool:
        try:
            yield pool
        except BaseException:
            for worker in set(multiprocessing.active_children()) - others:
                worker.terminate()
            raise


def _start(start: Callable[..., None] | None, given: tuple[Any, ...]) -> None:
    # The terminal tells every process of an interrupt; the one that waits decides what becomes of it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if start is not None:
        start(*given)
