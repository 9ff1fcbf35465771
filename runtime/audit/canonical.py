"""One text for one value: for fingerprints, approval digests and the log.

``canonical`` raises for no value, however deep, wide, hostile or self-referencing, takes time in proportion to its
distinct parts, and gives ASCII that `json.loads` reads. Two values have one text only if they say the same: key order
is the one difference of representation that is folded, besides those that `spelling` lists. What is too large or too
deep to keep is told by its SHA-256, which still tells it from any other.

A container inside itself is ``{"$cycle": n}``, the one n levels up. One that leads into a cycle and comes again is
``{"$same": n}``, the n-th before, counted over such containers alone. Neither depends on where the value stands.
"""

from __future__ import annotations

import hashlib
import json
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, TypeAlias

from failstop.runtime.audit.plain import spell_plain
from failstop.runtime.audit.spelling import Shape, digested, key_name, spell, text

if TYPE_CHECKING:
    from collections.abc import Generator

LONGEST_SPELLING = 2**22
"""Characters of one container that are kept; a larger one is told by its head, its length and its SHA-256."""

_MOST_LEVELS = 40
_MOST_OBJECTS = 1000
_HEAD = 200
_NOWHERE = 10**9
_PARTLESS = frozenset({str, int, float, bool, type(None)})


def canonical(value: object) -> str:
    """Give the value's text; equal texts mean equal values, as the modules' docstrings say."""
    return spell_plain(value) or _Walk().run(value)


def jsonable(value: object) -> object:
    """Give the value as plain JSON values, readable and safe to write anywhere."""
    return json.loads(canonical(value))


def digest(value: object) -> str:
    """SHA-256, in hexadecimal, of the value's canonical text."""
    return hashlib.sha256(canonical(value).encode("ascii")).hexdigest()


def fingerprint(tool: str, args: object) -> str:
    """Identify one call: equal for the same tool and the same arguments, as a mapping or as that mapping's JSON text.

    Key order and JSON's own white space do not matter. White space inside an argument's text does: only exact
    repetition is repetition.
    """
    return _fingerprint(tool, canonical(arguments(args)))


def fingerprint_as_logged(tool: str, args: object) -> str:
    """Give the fingerprint of a call whose arguments were read back from a log, where they are spelled already."""
    return fingerprint(tool, args) if isinstance(args, str) else _fingerprint(tool, respell(args))


def arguments(given: object) -> object:
    """Read arguments that come as the JSON text of an object; anything else is given back as it is."""
    if not isinstance(given, str | bytes | bytearray):
        return given
    try:
        read = json.loads(given)
    except (ValueError, RecursionError):
        return given
    return read if isinstance(read, dict) else given


def respell(spelled: object) -> str:
    """Give the canonical text from which `spelled` was read: ``respell(jsonable(value)) == canonical(value)``."""
    return json.dumps(spelled, sort_keys=True, separators=(",", ":"))


def _fingerprint(tool: str, args_text: str) -> str:
    return hashlib.sha256(f'{{"args":{args_text},"tool":{canonical(tool)}}}'.encode("ascii")).hexdigest()


_Spelled: TypeAlias = tuple[str, int, int]
"""A text, the levels in it, and the depth of the outermost container around it that it refers back to."""

_Steps: TypeAlias = "Generator[_Steps, _Spelled, _Spelled]"
"""The spelling of one container, which yields that of each container in it and is sent what came of it."""


class _Walk:
    """One walk over a value, by generators on a list: depth costs memory and not the interpreter's stack.

    `_done` holds the texts of finished containers that refer to nothing around them, so a shared one is walked once.
    `_open` holds finished ones that do: their number, and the depth and identity of what they refer back to.
    Both keep the container itself, or its identity could come to be another's.
    """

    def __init__(self) -> None:
        self._path: list[int] = []
        self._depths: dict[int, int] = {}
        self._done: dict[int, tuple[object, _Spelled]] = {}
        self._open: dict[int, tuple[object, int, int, int]] = {}
        self._opened = 0
        self._objects = 0

    def run(self, value: object) -> str:
        """Spell the value."""
        found = self._at_once(value)
        return _exhaust(self._container(value, found))[0] if isinstance(found, Shape) else found[0]

    def _at_once(self, value: object) -> _Spelled | Shape:
        if type(value) in _PARTLESS:
            return spell(value), 0, _NOWHERE  # type: ignore[return-value]  # a value without parts is spelled as text
        known = self._known(id(value))
        if known is not None:
            return known
        found = spell(value, attributes=self._objects < _MOST_OBJECTS)
        return found if isinstance(found, Shape) else (found, 0, _NOWHERE)

    def _known(self, identity: int) -> _Spelled | None:
        if identity in self._done:
            return self._done[identity][1]
        if identity in self._depths:
            depth = self._depths[identity]
            return f'{{"$cycle":{len(self._path) - depth}}}', 1, depth
        if identity in self._open:
            _, number, back_to, owner = self._open[identity]
            if self._depths.get(owner) == back_to:
                return f'{{"$same":{self._opened - number}}}', 1, back_to
        return None

    def _container(self, value: object, shape: Shape) -> _Steps:
        depth, opened_before = len(self._path), self._opened
        self._path.append(id(value))
        self._depths[id(value)] = depth
        self._objects += shape.is_object
        keys = yield from self._parts(shape.keys)
        names = [key_name(key, spelled[0]) for key, spelled in zip(shape.keys, keys, strict=True)]
        # In the order of their names, or the numbers in "$same" would depend on the order of insertion.
        order = sorted(range(len(names)), key=names.__getitem__)
        values = yield from self._parts([shape.values[index] for index in order] if names else shape.values)
        whole = _join(shape, [names[index] for index in order], values)
        self._path.pop()
        del self._depths[id(value)]
        return self._remember(value, _fold(whole, keys + values), depth, opened_before)

    def _parts(self, values: list[object]) -> Generator[_Steps, _Spelled, list[_Spelled]]:
        spelled = []
        for value in values:
            found = self._at_once(value)
            spelled.append((yield self._container(value, found)) if isinstance(found, Shape) else found)
        return spelled

    def _remember(self, value: object, spelled: _Spelled, depth: int, opened_before: int) -> _Spelled:
        whole, levels, back_to = spelled
        if back_to < depth:
            self._opened += 1
            self._open[id(value)] = (value, self._opened, back_to, self._path[back_to])
            return spelled
        self._opened = opened_before
        closed = whole, levels, _NOWHERE
        self._done[id(value)] = (value, closed)
        return closed


def _exhaust(steps: _Steps) -> _Spelled:
    stack = [steps]
    answer: _Spelled = None  # type: ignore[assignment]  # what starts a generator
    while stack:
        try:
            stack.append(stack[-1].send(answer))
            answer = None  # type: ignore[assignment]  # as above
        except StopIteration as end:
            stack.pop()
            answer = end.value
    return answer


def _join(shape: Shape, names: list[str], values: list[_Spelled]) -> str:
    texts = [spelled[0] for spelled in values]
    if shape.in_any_order:
        texts.sort()
    if len(set(names)) < len(names):
        # Unequal keys can have one name: two NaNs, two objects of one repr. JSON would drop all but one.
        pairs = sorted(zip(names, texts, strict=True))
        return '{"$map":[' + ",".join(f"[{text(name)},{value}]" for name, value in pairs) + "]}"
    if names:
        texts = [f"{encode_basestring_ascii(name)}:{value}" for name, value in zip(names, texts, strict=True)]
    return shape.before + ",".join(texts) + shape.after


def _fold(whole: str, parts: list[_Spelled]) -> _Spelled:
    levels = 1 + max((part[1] for part in parts), default=0)
    back_to = min((part[2] for part in parts), default=_NOWHERE)
    if levels <= _MOST_LEVELS and len(whole) <= LONGEST_SPELLING:
        return whole, levels, back_to
    return digested("$folded", whole[:_HEAD], len(whole), whole.encode("ascii")), 1, back_to
