"""The log of one run: the loop's events, and the ledger's between them, until the last call in flight has settled."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from failstop.runtime.audit.log import AuditLog


class RunLog:
    """Passes events on to the audit log, if there is one.

    A call that was left behind at the deadline settles after the run's end; the log is closed only then.
    """

    def __init__(self, audit: AuditLog | None) -> None:
        self._audit = audit
        self._lock = threading.Lock()
        self._in_flight = 0
        self._ended = False
        self._closed = False

    def record(self, kind: str, data: Mapping[str, Any], /) -> None:
        """Write one event; returns once it is on disk, raises if that is impossible."""
        # A stop or a close that comes after the end ends nothing any more; a dispatch then must not happen unrecorded.
        if self._audit is None or (self._closed and kind in {"stop", "close"}):
            return
        # Counted before it is written, or another thread could end the log between the two.
        self._count(kind == "admit")
        try:
            self._audit.record(kind, data)
        except BaseException:
            self._count(-(kind == "admit"))
            raise
        finally:
            self._count(-(kind in {"settle", "release"}))

    def end(self, finish: Mapping[str, Any]) -> None:
        """Write the last event of the loop."""
        try:
            self.record("finish", finish)
        finally:
            self._ended = True
            self._close_if_over()

    def abandon(self) -> None:
        """Close the log of a run that could not be started, or whose end could not be written."""
        self._closed = True
        if self._audit is not None:
            self._audit.close()

    def _count(self, in_flight: int) -> None:
        with self._lock:
            self._in_flight += in_flight
        self._close_if_over()

    def _close_if_over(self) -> None:
        with self._lock:
            self._closed = self._closed or (self._ended and self._in_flight == 0)
        if self._closed and self._audit is not None:
            self._audit.close()
