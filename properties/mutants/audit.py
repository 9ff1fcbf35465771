"""The audit log (audit)."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from failstop.properties.mutants.mutant import Function, Method, Mutant
from failstop.runtime.audit.canonical import canonical
from failstop.runtime.audit.event_log import NO_EVENT, line_of, payload_text
from failstop.runtime.audit.log import AuditLog
from failstop.runtime.chain.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Mapping

_close = AuditLog.close


def _kept_in_memory(self: AuditLog, line: bytes, _: int, tip: tuple[int, str, int]) -> None:
    kept, self._kept = getattr(self, "_kept", b""), line  # type: ignore[attr-defined]  # that is the mistake
    if kept:
        os.write(self._fd, kept)
    self._tip = tip


def _written_at_the_end(self: AuditLog) -> None:
    kept = getattr(self, "_kept", b"")
    if kept and self._fd >= 0:
        os.write(self._fd, kept)
    _close(self)


def _without_the_lock(self: AuditLog, kind: str, data: Mapping[str, object], /) -> int:
    texts = canonical(str(kind)), payload_text(data)
    seq, prev, size = self._tip
    line, sealed = line_of(seq, *texts, prev)
    self._append(line, size, (seq + 1, sealed, size + len(line)))
    return seq


def _every_event_is_the_first(seq: int, kind_text: str, data_text: str, _: str) -> tuple[bytes, str]:
    return line_of(seq, kind_text, data_text, NO_EVENT)


def _goes_on_unrecorded(self: Journal, kind: str, **data: object) -> None:
    if self._sink is not None:
        with contextlib.suppress(Exception):
            self._sink.record(kind, data)


MUTANTS = (
    Mutant(
        "event-kept-in-memory",
        "audit",
        "An event is written when the next one comes, so the last one is lost with the process.",
        (Method(AuditLog, "_append", _kept_in_memory), Method(AuditLog, "close", _written_at_the_end)),
        first=("append-against-append",),
    ),
    Mutant(
        "log-without-its-lock",
        "audit",
        "Two threads append at once, and both continue the same event.",
        (Method(AuditLog, "record", _without_the_lock),),
        concurrent=True,
        traced=(__name__,),
        first=("append-against-append",),
    ),
    Mutant(
        "events-not-chained",
        "audit",
        "The hash of the line before is left out of an event.",
        (Function(line_of, _every_event_is_the_first),),
        first=("append-against-append",),
    ),
    Mutant(
        "chain-goes-on-unrecorded",
        "audit",
        "A chain whose log cannot be written goes on.",
        (Method(Journal, "_write", _goes_on_unrecorded),),
        first=("log-cannot-be-written",),
    ),
)
