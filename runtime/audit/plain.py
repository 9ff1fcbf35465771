"""Small, shallow, ordinary JSON spelled in one go: nearly all that is logged is of this kind."""

from __future__ import annotations

from json.encoder import encode_basestring_ascii

from failstop.runtime.frozen import FrozenDict, FrozenList

_LONGEST = 4096
_MOST_LEVELS = 8
_INT_BELOW = 2**63
# Of other subclasses nobody knows what they answer.
_DICTS = frozenset({dict, FrozenDict})
_LISTS = frozenset({list, tuple, FrozenList})


def spell_plain(value: object, levels: int = _MOST_LEVELS) -> str:
    """Give the canonical text, or "" for anything that is large, deep or not quite JSON.

    The work is bounded even where one container stands in many places, as every text on the way is short.
    """
    kind = type(value)
    if kind is str:
        short = len(value) <= _LONGEST and value.isascii()  # type: ignore[arg-type, attr-defined]  # a str
        return encode_basestring_ascii(value) if short else ""  # type: ignore[arg-type]  # as above
    if kind is int:
        return repr(value) if -_INT_BELOW < value < _INT_BELOW else ""  # type: ignore[operator]  # an int
    if kind is float:
        return repr(value) if value - value == 0 else ""  # type: ignore[operator]  # a float; false for NaN, infinite
    if value is None:
        return "null"
    if kind is bool:
        return "true" if value else "false"
    if levels == 0:
        return ""
    if kind in _DICTS:
        return _spell_dict(value, levels - 1)  # type: ignore[arg-type]  # a dict
    if kind in _LISTS:
        return _spell_list(value, levels - 1)  # type: ignore[arg-type]  # a list or tuple
    return ""


def _spell_dict(value: dict[object, object], levels: int) -> str:
    pairs = [(key, item) for key, item in list(value.items()) if type(key) is str]
    if len(pairs) != len(value):
        return ""
    parts = []
    size = 0
    for key, item in sorted(pairs):  # keys differ, so items are never compared
        part = spell_plain(item, levels) if key.isascii() and key[:1] != "$" else ""
        size += len(part) + len(key)
        if not part or size > _LONGEST:
            return ""
        parts.append(f"{encode_basestring_ascii(key)}:{part}")
    return "{" + ",".join(parts) + "}"


def _spell_list(value: list[object], levels: int) -> str:
    parts = []
    size = 0
    for item in value:
        part = spell_plain(item, levels)
        size += len(part)
        if not part or size > _LONGEST:
            return ""
        parts.append(part)
    return "[" + ",".join(parts) + "]"
