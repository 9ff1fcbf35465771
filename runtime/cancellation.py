"""The signal that tells work in flight that its chain is over."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class CancellationToken:
    """A latch: set once, with a reason, and never cleared.

    Cancellation is cooperative (G5): a plain call that never looks at its token runs on. Callbacks run once, on the
    cancelling thread, or at once on the subscriber's thread when the token is already set.
    """

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._next_key = 0
        self._reason = ""

    @property
    def cancelled(self) -> bool:
        """True once cancel() was called."""
        return self._event.is_set()

    @property
    def reason(self) -> str:
        """Why it was cancelled, or the empty text."""
        return self._reason

    def cancel(self, reason: str = "cancelled") -> bool:
        """Set the latch; True if this call was the one that set it."""
        with self._lock:
            if self._event.is_set():
                return False
            self._reason = reason
            self._event.set()
            callbacks = list(self._callbacks.values())
            self._callbacks.clear()
        for callback in callbacks:
            callback()
        return True

    def wait(self, timeout_s: float | None = None) -> bool:
        """Block in real time until cancelled or the time-out; True if cancelled."""
        return self._event.wait(timeout_s)

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Run `callback` on cancellation; the returned function unsubscribes it."""
        with self._lock:
            if not self._event.is_set():
                key = self._next_key
                self._next_key += 1
                self._callbacks[key] = callback
                return lambda: self._drop(key)
        callback()
        return _nothing

    def _drop(self, key: int) -> None:
        with self._lock:
            self._callbacks.pop(key, None)


def _nothing() -> None:
    """Unsubscribe from a token that has fired already."""
