"""The audit log's writer: one line an event, handed to the operating system before `record` returns.

A process that is killed loses nothing that was recorded; with ``fsync=True`` neither does a machine that loses power.
What an event is on disk, and what its hash chain can and cannot show, stands in `failstop.runtime.audit.event_log`.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import threading
import weakref
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Self

from failstop.runtime.audit.canonical import canonical
from failstop.runtime.audit.event_log import NO_EVENT, Event, LoadedLog, line_of, load, payload_text
from failstop.runtime.stops import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

__all__ = ["AuditError", "AuditLog", "Event", "LoadedLog", "load"]

_RUN_ID = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")
_CLOSED = -1


class AuditError(Exception):
    """An event was not recorded, or a log cannot be written to; nothing of the event is left in the file."""


class AuditLog:
    """Appends events to one file, which it holds locked against every other writer, in this process or another.

    `record` may be called from any thread; the order in the file is the order of the calls. A log belongs to the
    process that made it: in a forked child it is closed. The lock is advisory, so each `record` looks first whether the
    file grew, shrank or was deleted by another, and raises if it did.
    """

    def __init__(self, path: Path, fd: int, fsync: bool, found: LoadedLog) -> None:
        """Take over a locked descriptor; use `create` or `open`."""
        self.path = path
        self._fd = fd
        self._fsync = fsync
        # Re-entrant, as a signal handler that halts a chain may record in the middle of a record of its own thread.
        self._lock = threading.RLock()
        self._writing = False
        self._came_meanwhile: deque[tuple[str, str]] = deque()
        self._tip = (len(found.events), found.head, found.size)
        _open_logs.add(self)

    @classmethod
    def create(cls, folder: str | os.PathLike[str], run_id: str, *, fsync: bool = False) -> Self:
        """Begin the log of a new run, `run_id`.jsonl in `folder`, which is made if it does not exist.

        Raises ConfigurationError for a run id that is not 1 to 64 of ``A-Z a-z 0-9 . _ -`` or begins with a dot, and
        for one that has a log already; OSError if the folder cannot be written to.
        """
        path = Path(folder) / f"{_checked_run_id(run_id)}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_APPEND, 0o600)
        except FileExistsError:
            raise ConfigurationError("run_id", run_id, f"one without a log; {path} exists") from None
        _lock_or_close(fd, path)
        if fsync:
            _sync_folder(path.parent)
        return cls(path, fd, fsync, LoadedLog(path, (), NO_EVENT, 0))

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, fsync: bool = False) -> Self:
        """Go on with a log, after a crash too: a torn tail is cut off, which an event "truncated" reports, once.

        Raises OSError if it cannot be opened, AuditError if it is being written to by another or was altered.
        """
        path = Path(path)
        fd = os.open(path, os.O_RDWR | os.O_APPEND)
        _lock_or_close(fd, path)
        try:
            found = _unaltered(load(path))
            os.ftruncate(fd, found.size)
        except BaseException:
            os.close(fd)
            raise
        log = cls(path, fd, fsync, found)
        if found.truncated_at is not None:
            log._report_truncation(found.truncated_at, found.torn_bytes)
        return log

    @property
    def head(self) -> str:
        """The hash of the last event: keep it elsewhere to prove later that no event was cut off (`load`'s `pin`)."""
        return self._tip[1]

    def __len__(self) -> int:
        return self._tip[0]

    def __bool__(self) -> bool:
        # Or a log without events yet would pass for no log.
        return True

    def record(self, kind: str, data: Mapping[str, object], /) -> int:
        """Append one event and give its number; the operating system has the whole line when this returns.

        One that a signal handler records in the middle of another of the same thread is written right after that, and
        numbered -1 here. Raises AuditError if it was not written, and then the log is as it was before.
        """
        # Spelled before the lock is taken: a value's own `repr` may run, and may even record.
        texts = canonical(str(kind)), payload_text(data)
        with self._lock:
            if self._writing:
                self._came_meanwhile.append(texts)
                return -1
            self._writing = True
            try:
                seq = self._write(*texts)
                while self._came_meanwhile:
                    self._write(*self._came_meanwhile.popleft())
            finally:
                self._came_meanwhile.clear()
                self._writing = False
            return seq

    def _write(self, kind_text: str, data_text: str) -> int:
        seq, prev, size = self._tip
        line, sealed = line_of(seq, kind_text, data_text, prev)
        self._append(line, size, (seq + 1, sealed, size + len(line)))
        return seq

    def close(self) -> None:
        """Let go of the file; harmless when closed already."""
        with self._lock:
            fd, self._fd = self._fd, _CLOSED
            if fd != _CLOSED:
                os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _append(self, line: bytes, size: int, tip: tuple[int, str, int]) -> None:
        if self._fd == _CLOSED:
            raise AuditError(f"{self.path} was closed; nothing more can be recorded")
        self._check_untouched(size)
        try:
            self._check_all_written(os.write(self._fd, line), len(line))
            if self._fsync:
                os.fsync(self._fd)
            self._tip = tip
        except OSError as error:
            self._take_back(size, tip)
            raise AuditError(f"{self.path}: {error.strerror}") from error
        except BaseException:
            self._take_back(size, tip)
            raise

    def _check_untouched(self, size: int) -> None:
        now = os.fstat(self._fd)
        if now.st_size != size or now.st_nlink == 0:
            raise AuditError(f"{self.path} was changed or deleted by another while it was being written")

    def _check_all_written(self, written: int, expected: int) -> None:
        if written != expected:
            raise AuditError(f"{self.path}: only {written} of the event's {expected} bytes fit; is the device full?")

    def _take_back(self, size: int, tip: tuple[int, str, int]) -> None:
        """Cut off what was written of an event that failed; one that a signal followed when it was complete stays."""
        if self._tip is not tip:
            # If even that fails, the torn tail is mended when the log is opened again.
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, size)

    def _report_truncation(self, at: int, dropped_bytes: int) -> None:
        try:
            self.record("truncated", {"at": at, "dropped_bytes": dropped_bytes})
        except BaseException:
            self.close()
            raise

    def abandon_in_child(self) -> None:
        """Close the descriptor that a forked child inherited: it would keep the lock, and write a second chain."""
        self._lock = threading.RLock()
        self.close()


_open_logs: weakref.WeakSet[AuditLog] = weakref.WeakSet()


def _abandon_all() -> None:
    for log in list(_open_logs):
        log.abandon_in_child()


os.register_at_fork(after_in_child=_abandon_all)


def _checked_run_id(run_id: object) -> str:
    if not isinstance(run_id, str) or not _RUN_ID.fullmatch(run_id):
        raise ConfigurationError("run_id", run_id, "1 to 64 of A-Z a-z 0-9 . _ -, not beginning with a dot")
    return run_id


def _lock_or_close(fd: int, path: Path) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(fd)
        raise AuditError(f"{path} is being written to by another: one writer a log") from error


def _unaltered(found: LoadedLog) -> LoadedLog:
    if found.problem is not None:
        raise AuditError(f"{found.path} was altered and takes no more events: {found.problem}")
    return found


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
