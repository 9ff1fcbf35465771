"""The audit log as it lies on disk, and how it is read back.

One event is one line of ASCII and a newline: ``{"seq":0,"kind":"start","data":{...},"prev":"<hash>","hash":"<hash>"}``.
`hash` is the SHA-256 of the line's bytes before ``,"hash"``, and `prev` the hash of the line before. The newline makes
an event whole: without it the event does not count, however complete it looks, for nobody was told that it had been
written.

Reading finds any change of any byte, and any event removed, inserted or moved, with two exceptions: whole events cut
off at the end, and a log rewritten with all its hashes from some event on. Who must know of these keeps the hash of the
last event (`AuditLog.head`) elsewhere and reads with it as `pin`.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from failstop.runtime.audit.canonical import canonical
from failstop.runtime.audit.plain import spell_plain
from failstop.runtime.audit.spelling import key_name

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

NO_EVENT = "0" * 64
"""What stands as `prev` in the first event, and the head of an empty log."""


class Rows(list[dict[str, object]]):
    """A list in an event whose rows are spelled field by field as well: no huge row takes the others' place."""


_FIELDS = ["seq", "kind", "data", "prev"]
_SEAL = b',"hash":"'
_SEAL_LENGTH = len(_SEAL) + 64 + len(b'"}')


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a run; `data` is as JSON could say it (see `failstop.runtime.audit.canonical`)."""

    seq: int
    kind: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LoadedLog:
    """What a log proves: its events up to the first fault.

    truncated_at: the byte at which a torn tail begins, `torn_bytes` long; None if the log ends with a whole event.
    problem: what was altered, with line and event; None if nothing was. head: the hash of the last event given.
    size: the bytes that the given events take.
    """

    path: Path
    events: tuple[Event, ...]
    head: str
    size: int
    truncated_at: int | None = None
    torn_bytes: int = 0
    problem: str | None = None

    @property
    def whole(self) -> bool:
        """True if nothing was cut off in the middle of an event and nothing was altered."""
        return self.truncated_at is None and self.problem is None


def load(path: str | os.PathLike[str], *, pin: str | None = None) -> LoadedLog:
    """Read a log and verify every byte of it; any content is reported, none raises. Raises OSError.

    pin: the hash of an event that is known to have been written; its absence is reported as a problem.
    """
    events: list[Event] = []
    heads = [NO_EVENT]
    size = 0
    torn_bytes = 0
    problem = None
    with Path(path).open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                torn_bytes = len(line)
                break
            event = _read(line, len(events), heads[-1])
            if isinstance(event, str):
                problem = f"line {number}, where event {len(events)} should be: {event}"
                break
            events.append(event)
            heads.append(_sealed_hash(line).decode("ascii"))
            size += len(line)
    if problem is None and pin is not None and pin not in heads:
        problem = f"no event has the pinned hash {pin!r}: events were removed, or the log was written anew"
    truncated_at = size if torn_bytes else None
    return LoadedLog(Path(path), tuple(events), heads[-1], size, truncated_at, torn_bytes, problem)


def line_of(seq: int, kind_text: str, data_text: str, prev: str) -> tuple[bytes, str]:
    """Give the bytes of one event, newline included, and its hash; the texts are canonical JSON."""
    body = f'{{"seq":{seq},"kind":{kind_text},"data":{data_text},"prev":"{prev}"'.encode("ascii")
    sealed = hashlib.sha256(body).hexdigest()
    return b'%b%b%b"}\n' % (body, _SEAL, sealed.encode("ascii")), sealed


def payload_text(data: Mapping[str, object]) -> str:
    """Spell a payload field by field, so that one huge field never takes the others' place."""
    quick = spell_plain(data)
    if quick:
        return quick
    fields = sorted((key_name(name, canonical(name)), _field_text(value)) for name, value in data.items())
    return "{" + ",".join(f"{json.dumps(name)}:{text}" for name, text in fields) + "}"


def _field_text(value: object) -> str:
    return "[" + ",".join(map(payload_text, value)) + "]" if type(value) is Rows else canonical(value)


def _read(line: bytes, seq: int, prev: str) -> Event | str:
    """Give the event, or what is wrong with its line."""
    body = line[: -_SEAL_LENGTH - 1]
    sealed = hashlib.sha256(body).hexdigest().encode("ascii")
    if line[len(body) :] != b'%b%b"}\n' % (_SEAL, sealed):
        return "its bytes do not match its hash"
    try:
        record = json.loads(body.decode("ascii") + "}")
    except (ValueError, RecursionError):
        return "it is not JSON, although its hash matches"
    if [type(field) for field in record.values()] != [int, str, dict, str] or list(record) != _FIELDS:
        return "it does not have the fields of an event"
    if record["seq"] != seq or record["prev"] != prev:
        return f"it says that it is event {record['seq']!r} and does not continue the event before it"
    return Event(seq, record["kind"], record["data"])


def _sealed_hash(line: bytes) -> bytes:
    return line[-64 - len(b'"}\n') : -len(b'"}\n')]
