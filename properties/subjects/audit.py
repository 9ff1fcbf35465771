"""An audit log that several threads write to, read back from the disk (audit)."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, cast

from failstop.properties.outside import Outside
from failstop.properties.references.audit import Append, AuditAction, AuditReference, CloseLog, Read
from failstop.properties.references.chain import DONE
from failstop.properties.subject import Lane, NotOffered
from failstop.properties.subjects.unexplained import unexplained
from failstop.properties.target import OffersAudit, Refused

if TYPE_CHECKING:
    from failstop.properties.linearizable import Gap, Reference
    from failstop.properties.target import AnyTarget, Log


@dataclass(frozen=True, slots=True)
class AuditSubject:
    """A new log, in a folder of its own."""

    name: str = "audit"
    ignored: tuple[type, ...] = (Lane, PurePath)

    def told(self, gap: Gap) -> str:
        """See Subject."""
        return unexplained(gap)

    def reference(self, *, exact: bool) -> Reference:
        """See Subject."""
        return cast("Reference", AuditReference(exact=exact))

    def open(self, target: AnyTarget) -> AuditInstrument:
        """See Subject."""
        if not isinstance(target, OffersAudit):
            raise NotOffered("it has no audit()")
        folder = Folder()
        return AuditInstrument(target.audit(folder.path), folder)


class Folder(Outside):
    """A temporary folder; what counts of it is what lies in it."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="failstop-audit-"))

    def content(self) -> tuple[tuple[str, bytes], ...]:
        """See Outside."""
        return tuple(sorted((path.name, path.read_bytes()) for path in self.path.iterdir()))

    def remove(self) -> None:
        """Delete it with its files."""
        for path in self.path.iterdir():
            path.unlink()
        self.path.rmdir()


class AuditInstrument:
    """The log and its folder."""

    def __init__(self, log: Log, folder: Folder) -> None:
        self._log = log
        self._folder = folder

    def play(self, move: AuditAction, lane: Lane) -> None:
        """See Instrument."""
        lane.begin(move)
        match move:
            case Append():
                try:
                    lane.end(self._log.append(move.kind, {"text": move.text}))
                except Refused as refusal:
                    lane.end(refusal.stop)
            case CloseLog():
                self._log.close()
                lane.end(DONE)
            case Read():
                lane.end(self._read())

    def look(self, lane: Lane) -> None:
        """See Instrument."""
        self.play(Read(), lane)

    def close(self) -> None:
        """See Instrument."""
        self._log.close()
        self._folder.remove()

    def _read(self) -> object:
        """Give the events in the reference's form, or in one that it never gives: what is wrong with them."""
        try:
            events = self._log.read()
        except Exception as error:  # noqa: BLE001 - a log that cannot be read is what is looked for
            return f"cannot be read: {error}"
        return tuple((kind, _text(dict(data))) for kind, data in events)


def _text(data: dict[str, object]) -> object:
    text = data.get("text")
    return text if data == {"text": text} else json.dumps(data, default=repr)
