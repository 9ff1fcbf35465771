"""How one value is spelled in JSON: what has no parts as text at once, what has parts as a `Shape`.

JSON's own values are spelled as JSON. All others are objects that begin with a name in "$", as ``{"$decimal": "1.5"}``;
a string key of the caller's that begins with "$" gets a second one, so nothing of the caller's can pass for ours.
Folded together, because they say the same: list and tuple, set and frozenset, bytes, bytearray and memoryview, dict
and other mappings, a subclass of a JSON type and that type. Kept apart: 1, 1.0, True and "1"; text and bytes; an enum
member and its value. An object with a `repr` of its own is what its `repr` says; one without is what its attributes
say.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Mapping
from dataclasses import is_dataclass
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from json.encoder import encode_basestring_ascii
from typing import NamedTuple

LONGEST_TEXT = 2**18
"""Characters of one text that are kept; a longer one is spelled as its head, its length and its SHA-256."""

_HEAD = 200
_PLAIN_INT_BITS = 2048
_MOST_ITEMS = 10**6


class Shape(NamedTuple):
    """A value with parts: `before`, the values (named by `keys`, if there are any), `after`."""

    before: str
    values: list[object]
    after: str
    keys: list[object] = []  # noqa: RUF012 - shared and never changed: a default list costs nothing
    in_any_order: bool = False
    is_object: bool = False


def spell(value: object, *, attributes: bool = True) -> str | Shape:
    """Give JSON text, or the shape of a value with parts; runs a foreign `repr` but raises nothing that it raises."""
    kind = type(value)
    if kind is str:
        return text(value)  # type: ignore[arg-type]  # its type was just compared
    if kind is int:
        return _whole(value)  # type: ignore[arg-type]  # as above
    if value is None:
        return "null"
    if kind is bool:
        return "true" if value else "false"
    if kind is dict:
        return _mapping(list(value.items()))  # type: ignore[attr-defined]  # as above
    if kind is list or kind is tuple:
        return Shape("[", list(value), "]")  # type: ignore[call-overload]  # as above
    try:
        return _spell_other(value, kind, attributes)
    except BaseException:  # noqa: BLE001 - code of the value's own ran; to look at a value must not end the one who looks
        return _opaque(value, kind)


def text(value: str) -> str:
    """Spell a text. Surrogates are escaped: in JSON two lone ones would read like the one character they encode."""
    if len(value) > LONGEST_TEXT:
        return digested("$text", _escaped(value[:_HEAD]), len(value), value.encode("utf-8", "surrogatepass"))
    if value.isascii() or not _has_surrogates(value):
        return encode_basestring_ascii(value)
    return _tagged("$text", _escaped(value))


def key_name(key: object, spelled: str) -> str:
    """Name a mapping's key: a plain text is itself, any other key is told by its spelling."""
    if not issubclass(type(key), str) or not spelled.startswith('"'):
        return "$key:" + spelled
    plain = str.__str__(key)
    return "$" + plain if plain.startswith("$") else plain


def digested(tag: str, head: str, length: int, whole: bytes) -> str:
    """Spell what is too large by its head, its length and the SHA-256 of all of it."""
    sha256 = hashlib.sha256(whole).hexdigest()
    return f'{{"{tag}":{encode_basestring_ascii(head)},"length":{length},"sha256":"{sha256}"}}'


def _spell_other(value: object, kind: type, attributes: bool) -> str | Shape:
    if issubclass(kind, Enum):
        member = f"{_name(kind)}.{value._name_}"  # type: ignore[attr-defined]  # an Enum
        return Shape(f'{{"$enum":{text(member)},"value":', [value._value_], "}")  # type: ignore[attr-defined]  # as above
    return _scalar(value, kind) or _collection(value, kind) or _object(value, kind, attributes)


def _scalar(value: object, kind: type) -> str | None:
    # The base class's own methods are called: a subclass may override them with anything.
    if issubclass(kind, float):
        return _real(float.__float__(value))  # type: ignore[arg-type]  # a float
    if issubclass(kind, str):
        return text(str.__str__(value))
    if issubclass(kind, int):
        return _whole(int.__int__(value))  # type: ignore[arg-type]  # an int
    if issubclass(kind, bytes | bytearray | memoryview):
        return _bytes(memoryview(value))  # type: ignore[arg-type]  # bytes of some kind
    if issubclass(kind, datetime):
        fold = " fold=1" if value.fold else ""  # type: ignore[attr-defined]  # a datetime
        return _tagged("$datetime", datetime.isoformat(value) + fold)  # type: ignore[arg-type]  # as above
    if issubclass(kind, date):
        return _tagged("$date", date.isoformat(value))  # type: ignore[arg-type]  # a date
    if issubclass(kind, time):
        return _tagged("$time", time.isoformat(value))  # type: ignore[arg-type]  # a time
    if issubclass(kind, Decimal):
        return _tagged("$decimal", Decimal.__str__(value))
    return None


def _collection(value: object, kind: type) -> Shape | None:
    if issubclass(kind, dict):
        return _mapping(list(dict.items(value)))  # type: ignore[arg-type]  # a dict
    if issubclass(kind, list):
        return Shape("[", list(list.__iter__(value)), "]")  # type: ignore[arg-type]  # a list
    if issubclass(kind, tuple):
        return Shape("[", list(tuple.__iter__(value)), "]")  # type: ignore[arg-type]  # a tuple
    if issubclass(kind, set):
        members: list[object] = list(set.__iter__(value))  # type: ignore[arg-type]  # a set
        return Shape('{"$set":[', members, "]}", in_any_order=True)
    if issubclass(kind, frozenset):
        members = list(frozenset.__iter__(value))  # type: ignore[arg-type]  # a frozenset
        return Shape('{"$set":[', members, "]}", in_any_order=True)
    if issubclass(kind, Mapping):
        pairs = list(itertools.islice(value.items(), _MOST_ITEMS + 1))  # type: ignore[attr-defined]  # a Mapping
        if len(pairs) <= _MOST_ITEMS:
            return _mapping(pairs)
    return None


def _mapping(pairs: list[tuple[object, object]]) -> Shape:
    # From one copy of the pairs: another thread may change the mapping between two.
    return Shape("{", [item for _, item in pairs], "}", [key for key, _ in pairs])


def _object(value: object, kind: type, attributes: bool) -> str | Shape:
    fields: dict[str, object] = {}
    if attributes and is_dataclass(kind):
        fields = {name: getattr(value, name) for name in kind.__dataclass_fields__}
    elif attributes and getattr(kind, "__repr__", None) is object.__repr__:
        fields = _state(value)
    if not fields:
        return _opaque(value, kind)
    before = f'{{"$object":{text(_name(kind))},"fields":{{'
    return Shape(before, list(fields.values()), "}}", list(fields), is_object=True)


def _state(value: object) -> dict[str, object]:
    state = object.__getstate__(value)
    parts = state if isinstance(state, tuple) else (state,)
    return {name: item for part in parts if part for name, item in part.items()}


def _opaque(value: object, kind: type) -> str:
    try:
        shown = str.__str__(repr(value))
    except BaseException as error:  # noqa: BLE001 - as above: the `repr` is the value's own code
        # The error's type may be as hostile as the value: not even its name is asked for in the ordinary way.
        shown = f"<repr raised {type.__dict__['__name__'].__get__(type(error))}>"
    try:
        name = text(_name(kind))
    except BaseException:  # noqa: BLE001 - as above: a metaclass may run code too
        name = '"?"'
    return f'{{"$object":{name},"repr":{text(shown)}}}'


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _real(value: float) -> str:
    return float.__repr__(value) if math.isfinite(value) else _tagged("$float", float.__repr__(value))


def _whole(value: int) -> str:
    # Python refuses to read or write decimal numbers of thousands of digits; hexadecimal has no such limit.
    return int.__repr__(value) if value.bit_length() <= _PLAIN_INT_BITS else _tagged("$int", hex(value))


def _bytes(value: memoryview) -> str:
    raw = bytes(value)
    if len(raw) > LONGEST_TEXT:
        return digested("$bytes", _escaped(raw[:_HEAD].decode("latin-1")), len(raw), raw)
    return _tagged("$bytes", _escaped(raw.decode("latin-1")))


def _tagged(tag: str, shown: str) -> str:
    if len(shown) > LONGEST_TEXT:
        return digested(tag, shown[:_HEAD], len(shown), shown.encode())
    return f'{{"{tag}":{encode_basestring_ascii(shown)}}}'


def _escaped(value: str) -> str:
    return value.encode("unicode-escape").decode("ascii")


def _has_surrogates(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return True
    return False
