"""An audit log, one step after another (audit): a list that is appended to, until it is closed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from failstop.properties.references.chain import DONE

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Append:
    """Put one event on record; text: what it says, so that every event can be told from the others."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class CloseLog:
    """The log takes no more events."""


@dataclass(frozen=True, slots=True)
class Read:
    """Somebody reads the file: the events in their order, as (kind, text)."""


AuditAction: TypeAlias = Append | CloseLog | Read


class Events(NamedTuple):
    """What is on record, and whether more is taken."""

    events: tuple[tuple[str, str], ...] = ()
    closed: bool = False


class AuditReference:
    """The reference; an append is answered by the event's number. Not exact: by None, too, and it may be refused."""

    initial = Events()

    def __init__(self, *, exact: bool) -> None:
        self._exact = exact

    def outcomes(self, state: Events, action: AuditAction) -> Iterator[tuple[Events, object]]:
        """See Reference."""
        match action:
            case Append():
                after = state._replace(events=(*state.events, (action.kind, action.text)))
                if not state.closed:
                    yield after, len(state.events)
                    if not self._exact:
                        yield after, None
                if state.closed or not self._exact:
                    yield state, "denied"
            case CloseLog():
                yield state._replace(closed=True), DONE
            case Read():
                yield state, state.events
