"""One text and one fingerprint for calls that say the same, and another for every other call (loop, approval).

A symbolic text or number ends at the C code that writes JSON and computes SHA-256. So the contracts that can be
confirmed are about flags and about the places of a list of values, where every path is a value; the rest is a search.
"""

from __future__ import annotations

import json
from decimal import Decimal

from failstop.runtime.audit import canonical

NAMES = ("a", "A", "a ", "", "1", "true", "$a", "$$a", "$key:1", "\u00e9", "\\u00e9", '"', "a,b", "a\x00")
"""Names of tools and arguments that are easily taken for one another."""

DIFFERENT = (0, 0.0, False, None, "0", "0.0", "false", "null", "", b"0", [], [0], [[0]], {}, {"0": 0}, {0: 0}, Decimal(0))
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


def another_argument_is_another_fingerprint(place: int) -> bool:
    """False is not 0, and None is not "null".

    pre: 0 <= place < len(DIFFERENT)
    post: _
    """
    prints = {canonical.fingerprint("tool", [other]) for other in (*DIFFERENT[:place], *DIFFERENT[place + 1 :])}
    return canonical.fingerprint("tool", [DIFFERENT[place]]) not in prints


def another_tool_is_another_fingerprint(place: int) -> bool:
    """The same arguments for another tool are another call.

    pre: 0 <= place < len(NAMES)
    post: _
    """
    prints = {canonical.fingerprint(other, {"flag": True}) for other in (*NAMES[:place], *NAMES[place + 1 :])}
    return canonical.fingerprint(NAMES[place], {"flag": True}) not in prints


def another_name_is_another_text(place: int) -> bool:
    """A key that looks like one of ours included.

    pre: 0 <= place < len(NAMES)
    post: _
    """
    texts = {canonical.canonical({other: 1}) for other in (*NAMES[:place], *NAMES[place + 1 :])}
    return canonical.canonical({NAMES[place]: 1}) not in texts


def another_flag_is_another_fingerprint(one: tuple[bool, bool], other: tuple[bool, bool]) -> bool:
    """In either place.

    pre: one != other
    post: _
    """
    return canonical.fingerprint("tool", list(one)) != canonical.fingerprint("tool", list(other))


def another_number_is_another_text(one: int, other: int) -> bool:
    """However large.

    pre: one != other
    post: _
    """
    return canonical.canonical({"key": one}) != canonical.canonical({"key": other})


def a_small_dict_is_read_back(value: dict[str, int]) -> bool:
    """Ordinary arguments are ordinary JSON.

    pre: len(value) <= 2
    pre: all(not key.startswith("$") for key in value)
    post: _
    """
    return canonical.jsonable(value) == value


def arguments_as_json_text_are_the_arguments(first: bool, second: bool) -> bool:
    """White space and key order of the JSON text do not matter.

    post: _
    """
    given = {"path": first, "limit": second}
    written = f'{{ "limit": {json.dumps(second)},  "path": {json.dumps(first)} }}'
    return canonical.fingerprint("tool", given) == canonical.fingerprint("tool", written)
