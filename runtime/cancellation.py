"""The signal that tells work in flight that its chain is over."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from failstop.runtime.callbacks import run_reported

if TYPE_CHECKING:
    from collections.abc import Callable


class CancellationToken:
    """A latch: set once, with a reason, and never cleared.

    Cancellation is cooperative (G5): a plain call that never looks at its token runs on. Callbacks run once, on the
    cancelling thread, or at once on the subscriber's thread when the token is already set; what one of them raises on
    the cancelling thread is reported through `threading.excepthook`, and the others run all the same.
    """

    # There is no lock: a signal handler, or a finalizer of the garbage collector, may cancel or subscribe in the middle
    # of either. Popping is atomic, so each callback belongs to whoever popped it.
    def __init__(self) -> None:
        self._unset = [True]
        self._cancelled = False
        self._callbacks: dict[object, Callable[[], object]] = {}
        self._reason = ""

    @property
    def cancelled(self) -> bool:
        """True once cancel() was called."""
        return self._cancelled

    @property
    def reason(self) -> str:
        """Why it was cancelled, or the empty text."""
        return self._reason

    def cancel(self, reason: str = "cancelled") -> bool:
        """Set the latch; True if this call was the one that set it."""
        try:
            self._unset.pop()
        except IndexError:
            return False
        self._reason = reason
        self._cancelled = True
        for key in list(self._callbacks):
            run_reported(self._callbacks.pop(key, _nothing))
        return True

    def wait(self, timeout_s: float | None = None) -> bool:
        """Block in real time until cancelled or the time-out; True if cancelled."""
        silent = threading.Lock()
        silent.acquire()
        unsubscribe = self.subscribe(silent.release)
        try:
            silent.acquire(timeout=-1 if timeout_s is None else max(0.0, timeout_s))
        finally:
            unsubscribe()
        return self.cancelled

    def subscribe(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Run `callback` on cancellation; the returned function unsubscribes it."""
        key = object()
        self._callbacks[key] = callback
        if self._cancelled:
            self._callbacks.pop(key, _nothing)()
        return lambda: self._drop(key)

    def _drop(self, key: object) -> None:
        self._callbacks.pop(key, None)


def _nothing() -> None:
    """Stand for a callback that somebody else runs, or that was unsubscribed."""
