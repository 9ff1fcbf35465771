"""Getting in: a call that only others in flight keep out waits until they settle, unless it would wait for itself."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING

from failstop.runtime.chain import frames
from failstop.runtime.chain.ledger import Queued
from failstop.runtime.stops import Contended

if TYPE_CHECKING:
    from failstop.runtime.chain.accounts import Chain
    from failstop.runtime.chain.dispatch import Dispatch


def enter(dispatch: Dispatch) -> None:
    """Admit, waiting on this thread if need be; raises Stop, Denied or Contended.

    What this thread opened and holds money for cannot settle while it waits: a call around this one, a stream it reads,
    a reservation it made, an awaited call on its event loop.
    """
    try:
        dispatch.admit()
    except Contended:
        if not dispatch.request.wait or _on_this_thread(dispatch.chain, loose=True) or _inside(dispatch.chain):
            raise
    else:
        return
    ready = threading.Event()
    while not dispatch.admitted:
        ready.clear()
        try:
            dispatch.admit(ready.set)
        except Queued:
            ready.wait()


async def enter_async(dispatch: Dispatch) -> None:
    """Admit, letting other tasks run meanwhile; raises Stop, Denied or Contended."""
    try:
        dispatch.admit()
    except Contended:
        if not dispatch.request.wait or _on_this_thread(dispatch.chain, loose=False) or _inside(dispatch.chain):
            raise
    else:
        return
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()

    def wake() -> None:
        # A loop that has closed has no caller left to wake.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(ready.set)

    while not dispatch.admitted:
        ready.clear()
        try:
            dispatch.admit(wake)
        except Queued:
            await ready.wait()


def _on_this_thread(chain: Chain, *, loose: bool) -> bool:
    """Say whether a call that holds money belongs to this thread; `loose` ones only block it if it stands still."""
    me = threading.get_ident()
    holders = list(chain.holding.values())
    return me in holders or (loose and -me in holders)


def _inside(chain: Chain) -> bool:
    """Say whether the running code was called by an unfinished call that holds money."""
    frame = frames.current.get()
    while frame is not None:
        if frame[0] is chain and frame[1] in chain.holding:
            return True
        frame = frame[2]
    return False
