"""An event's fields: one that is missing or of the wrong type is an error that names it, never 0 or unlimited."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from failstop.runtime.audit.canonical import respell
from failstop.runtime.limits import Limits
from failstop.runtime.stops import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from failstop.runtime.audit.event_log import Event

T = TypeVar("T")

_NAMES = {int: "a whole number", str: "a text", bool: "true or false", dict: "an object", list: "a list"}


class ReplayError(Exception):
    """A log from which the run cannot be rebuilt; says which event, which field, and what was expected."""


def field(event: Event, name: str, kind: type[T]) -> T:
    """Give a field of exactly this type; a text that JSON could not hold as it was is given as it was spelled."""
    value = _present(event, name)
    if kind is str and _is_spelled_text(value):
        return respell(value)  # type: ignore[return-value]  # a text, which was asked for
    if type(value) is not kind:
        _refuse(event, name, value, _NAMES[kind])
    return value


def count(event: Event, name: str, least: int = 0) -> int:
    """Give a whole number that is at least `least`."""
    value = field(event, name, int)
    if value < least:
        _refuse(event, name, value, f"at least {least}")
    return value


def field_or_none(event: Event, name: str, kind: type[T]) -> T | None:
    """Give a field that may be null, but not missing."""
    return None if _present(event, name) is None else field(event, name, kind)


def value_of(event: Event, name: str) -> Any:
    """Give a field of any type."""
    return _present(event, name)


def calls_of(event: Event) -> list[tuple[str, Any]]:
    """Give the calls of a step: tool and arguments of each, in the planner's order.

    As in `field`, a name that JSON could not hold as it was is given as it was spelled.
    """
    calls = []
    for place, call in enumerate(field(event, "calls", list), start=1):
        tool = call.get("tool") if isinstance(call, dict) else None
        tool = respell(tool) if _is_spelled_text(tool) else tool
        if not isinstance(tool, str) or "args" not in call:
            raise ReplayError(f"{where(event)}: calls: call {place} has no tool and args")
        calls.append((tool, call["args"]))
    return calls


def opening(events: Iterable[Event]) -> Event | None:
    """Give the event that opened the chain, if there is one; raises ReplayError for two, which would be mixed up."""
    opened = [event for event in events if event.kind == "open"]
    if len(opened) > 1:
        raise ReplayError(f"{where(opened[1])}: a second chain in one log; give each context a log of its own")
    return opened[0] if opened else None


def limits_of(event: Event, name: str = "limits") -> Limits:
    """Give limits that were logged; every one must be there, as a ceiling or as null."""
    given = field(event, name, dict)
    missing = [limit for limit in Limits().to_mapping() if limit not in given]
    if missing:
        _refuse(event, name, given, f"a value for {', '.join(missing)}")
    try:
        return Limits.from_mapping(given)
    except ConfigurationError as error:
        raise ReplayError(f"{where(event)}: {name}.{error}") from error


def where(event: Event) -> str:
    """Name an event in a message."""
    return f"event {event.seq} ({event.kind})"


def _is_spelled_text(value: object) -> bool:
    """Say whether this is a text that is too long, or has surrogates in it, as `spelling` writes one."""
    return isinstance(value, dict) and isinstance(value.get("$text"), str)


def _present(event: Event, name: str) -> Any:
    if name not in event.data:
        raise ReplayError(f"{where(event)}: {name} is missing")
    return event.data[name]


def _refuse(event: Event, name: str, value: object, expected: str) -> NoReturn:
    shown = repr(value)
    raise ReplayError(f"{where(event)}: {name} is {shown[:80]}{'...' * (len(shown) > 80)}; expected {expected}")  # noqa: PLR2004 - one line of a terminal
