"""Getting in: a call that only others in flight keep out waits until they settle, unless it would wait for itself."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from typing import TYPE_CHECKING

from failstop.runtime.chain import frames
from failstop.runtime.stops import Contended

if TYPE_CHECKING:
    from types import CodeType, FrameType

    from failstop.runtime.chain.dispatch import Boundary, Dispatch, Request

QUICK_WAY: list[CodeType] = []
"""The code of the quick call: it leaves no frame in `frames`, which would cost it, and is found on the stack."""


def enter(boundary: Boundary, request: Request, retry: bool) -> Dispatch:
    """Admit, waiting on this thread if need be; raises Stop, Denied or Contended."""
    try:
        return boundary.open(request, retry)
    except Contended:
        if not _waits(boundary, request):
            raise
    ready = threading.Event()
    while True:
        ready.clear()
        try:
            return boundary.open(request, retry, ready.set)
        except Contended:
            ready.wait()


async def enter_async(boundary: Boundary, request: Request, retry: bool) -> Dispatch:
    """Admit, letting other tasks run meanwhile; raises Stop, Denied or Contended."""
    try:
        return boundary.open(request, retry)
    except Contended:
        if not _waits(boundary, request):
            raise
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()

    def wake() -> None:
        # A loop that has closed has no caller left to wake.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(ready.set)

    while True:
        ready.clear()
        try:
            return boundary.open(request, retry, wake)
        except Contended:
            await ready.wait()


def _waits(boundary: Boundary, request: Request) -> bool:
    """Say no to a call made from inside another of the same chain: what that holds cannot settle before it returns."""
    chain = boundary.ledger.chain
    return request.wait and not frames.parent_on(chain, frames.current.get()) and not _inside_quick_call(chain)


def _inside_quick_call(chain: object) -> bool:
    """Look for a quick call past its admission: from then on it knows what it holds."""
    frame: FrameType | None = sys._getframe()  # noqa: SLF001 - the only way to the caller's stack
    while frame is not None:
        inside = frame.f_code in QUICK_WAY and "held" in frame.f_locals
        if inside and frame.f_locals["ledger"].chain is chain:
            return True
        frame = frame.f_back
    return False
