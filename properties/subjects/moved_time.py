"""Time that is moved by hand for what reads the machine's: `time.time` and `time.monotonic`, while a context lasts."""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING
from unittest.mock import patch

from failstop.runtime.clock import NS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Iterator

    from failstop.runtime.clock import Clock

_real = time.monotonic


@contextmanager
def moved_time(clock: Clock) -> Iterator[None]:
    """Let the functions of `time` tell a clock's time, in the whole process; raises RuntimeError if one does already.

    Sleeping, `perf_counter` and whatever took a function out of `time` before keep the machine's. Seconds are floats,
    so to count in nanoseconds take a clock that starts small.
    """
    if time.monotonic is not _real:
        raise RuntimeError("time is moved by another clock already")
    told = {
        "monotonic": lambda: clock.now_ns() / NS_PER_SECOND,
        "monotonic_ns": clock.now_ns,
        "time": lambda: clock.wall_ns() / NS_PER_SECOND,
        "time_ns": clock.wall_ns,
    }
    with ExitStack() as stack:
        for name, function in told.items():
            stack.enter_context(patch.object(time, name, function))
        yield
