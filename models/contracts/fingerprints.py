"""One text and one fingerprint for calls that say the same, and another for every other call (loop, approval).

A symbolic text or number ends at the C code that writes JSON and computes SHA-256. So the contracts that can be
confirmed are about flags and about the places of a list of values, where every path is a value; the rest is a search.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeVar

from failstop.runtime.audit import canonical

if TYPE_CHECKING:
    from collections.abc import Sequence

Value = TypeVar("Value")

NAMES = ("a", "A", "a ", "1", "$a", "$$a", '"', "\u00e9")
"""Names of tools and arguments that are easily taken for one another."""

DIFFERENT = (0, 0.0, False, None, "0", "null", b"0", [0], {"0": 0}, {0: 0})
"""Values that are easily taken for one another and that all say something else."""


def key_order_does_not_matter(first: bool, second: bool, third: bool) -> bool:
    """Two spellings of one call are one call.

    post: _
    """
    one = {"path": first, "limit": {"of": second, "at": third}}
    other = {"limit": {"at": third, "of": second}, "path": first}
    return canonical.fingerprint("tool", one) == canonical.fingerprint("tool", other)


def key_order_does_not_matter_for_odd_keys(first: bool, second: bool) -> bool:
    """Keys that are no text take the longer way and end the same.

    post: _
    """
    return canonical.canonical({1: first, 2: second}) == canonical.canonical({2: second, 1: first})


def another_argument_is_another_fingerprint(one: int, other: int) -> bool:
    """False is not 0, and None is not "null".

    pre: 0 <= one < other < len(DIFFERENT)
    post: _
    """
    given, also_given = [_at(one, DIFFERENT)], [_at(other, DIFFERENT)]
    return canonical.fingerprint("tool", given) != canonical.fingerprint("tool", also_given)


def another_tool_is_another_fingerprint(one: int, other: int) -> bool:
    """The same arguments for another tool are another call.

    pre: 0 <= one < other < len(NAMES)
    post: _
    """
    return canonical.fingerprint(_at(one, NAMES), {}) != canonical.fingerprint(_at(other, NAMES), {})


def another_name_is_another_text(one: int, other: int) -> bool:
    """A key that looks like one of ours included.

    pre: 0 <= one < other < len(NAMES)
    post: _
    """
    return canonical.canonical({_at(one, NAMES): True}) != canonical.canonical({_at(other, NAMES): True})


def another_flag_is_another_fingerprint(one: tuple[bool, bool], other: tuple[bool, bool]) -> bool:
    """In either place.

    pre: one != other
    post: _
    """
    return canonical.fingerprint("tool", list(one)) != canonical.fingerprint("tool", list(other))


def a_number_is_read_back(number: int) -> bool:
    """Its text tells it from every other number, however large.

    post: _
    """
    return canonical.jsonable([number]) == [number]


def arguments_as_json_text_are_the_arguments(first: bool, second: bool) -> bool:
    """White space and key order of the JSON text do not matter.

    post: _
    """
    given = {"path": first, "limit": second}
    written = f'{{ "limit": {json.dumps(second)},  "path": {json.dumps(first)} }}'
    return canonical.fingerprint("tool", given) == canonical.fingerprint("tool", written)


def _at(place: int, values: Sequence[Value]) -> Value:
    """Choose a value by comparisons, each a path: CrossHair would index with a number that it has not decided on."""
    for index, value in enumerate(values):
        if index == place:
            return value
    raise IndexError(place)
