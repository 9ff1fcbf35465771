"""One text for one value: folding what says the same, keeping apart what does not, surviving what is hostile."""

from __future__ import annotations

import dataclasses
import enum
import json
import math
import time
import types
from collections import OrderedDict
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock_time
from decimal import Decimal
from pathlib import PurePosixPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from failstop.runtime.audit import canonical as module
from failstop.runtime.audit.canonical import canonical, digest, fingerprint, fingerprint_as_logged, jsonable, respell
from failstop.runtime.audit.plain import spell_plain
from failstop.runtime.audit.spelling import LONGEST_TEXT
from failstop.runtime.frozen import frozen


@dataclasses.dataclass
class Point:
    """A dataclass."""

    x: object
    y: object = 0


class Colour(enum.Enum):
    """An enum."""

    RED = 1
    BLUE = 2


class Plain:
    """An object without a repr of its own."""

    def __init__(self, **state):
        self.__dict__.update(state)


class Slotted:
    """One that keeps its state in slots."""

    __slots__ = ("a",)

    def __init__(self, a):
        self.a = a


class Told:
    """One that says what it is."""

    def __repr__(self):
        return "Told"


class Liar(dict):
    """A dict whose every method raises."""

    def items(self):
        """Raise."""
        raise RuntimeError("no")

    __iter__ = keys = values = __len__ = items


class Shouting(str):
    """A text whose every method raises."""

    __slots__ = ()

    def __str__(self):
        raise RuntimeError("no")

    __repr__ = __hash__ = __len__ = encode = startswith = __str__


def nested(levels, inside=0):
    """A list in a list, `levels` deep."""
    value = inside
    for _ in range(levels):
        value = [value]
    return value


# What says the same has one text


def test_the_order_of_keys_does_not_matter():
    """At every level of a value."""
    assert canonical({"a": 1, "b": {"c": 2, "d": 3}}) == canonical({"b": {"d": 3, "c": 2}, "a": 1})
    assert canonical({1: "a", "x": 2, None: 3}) == canonical({None: 3, "x": 2, 1: "a"})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([1, 2], (1, 2)),
        (set(range(0, 24, 8)), frozenset(range(16, -8, -8))),
        (b"ab", bytearray(b"ab")),
        (b"ab", memoryview(b"ab")),
        ({"a": 1}, OrderedDict(a=1)),
        ({"a": [1]}, frozen({"a": [1]})),
        ({"a": 1}, types.MappingProxyType({"a": 1})),
        (float("nan"), -float("nan")),
        (Point(1), Point(1, 0)),
        (Plain(a=1), Plain(a=1)),
        (Slotted(1), Slotted(1)),
    ],
)
def test_one_text_for_what_says_the_same(one, other):
    """These are folded on purpose; the module says so."""
    assert canonical(one) == canonical(other)
    assert digest(one) == digest(other)


def test_a_subclass_of_a_json_type_is_read_past_its_own_methods():
    """They may say anything, and another thing each time."""
    assert canonical(Liar(a=1)) == canonical({"a": 1})
    assert canonical(Shouting("x")) == canonical("x")


def test_a_shared_part_reads_like_two_equal_parts():
    """JSON has no sharing, so the one call repeated from JSON must have the fingerprint of the other."""
    shared = {"k": [1]}
    assert canonical([shared, shared]) == canonical([{"k": [1]}, {"k": [1]}])


# What does not is kept apart

KEPT_APART = [
    *(1, "1", 1.0, True, "true", None, "null", 0, False, 0.0, -0.0, "", [], {}, [[]], [None], ""[:0] + " "),
    *(math.nan, math.inf, -math.inf, "NaN", "Infinity", 10**400, 10**400 + 1, -(10**5000), str(10**400)),
    *(b"a", "a", b"\xff", "\xff", b"\\xff", Decimal("1.0"), Decimal("1.00"), Decimal("NaN"), Decimal("1e999999999")),
    *("\ud83d\ude00", "\U0001f600", "\ud800", "\\ud800", "\udc00", {"\ud800": 1}, {"\\ud800": 1}),
    *({1: 1}, {"1": 1}, {1.0: 1}, {True: 1}, {None: 1}, {"$key:1": 1}, {"$$key:1": 1}, {(1,): 1}, {"[1]": 1}),
    *({1}, {"$set": [1]}, {"$$set": [1]}, [1], {"$bytes": "a"}, {"$$bytes": "a"}, {"$text": "\\ud800"}),
    *(date(2024, 1, 2), datetime(2024, 1, 2), datetime(2024, 1, 2, tzinfo=UTC), "2024-01-02", clock_time(1, 2)),  # noqa: DTZ001 - a naive one is one of the cases
    *(datetime(2024, 1, 2, fold=1), timedelta(1)),  # noqa: DTZ001 - as above
    *(Colour.RED, Colour.BLUE, 2, Point(1), Point(2), Point([1]), {"x": 1, "y": 0}, Plain(a=1), Plain(b=1), Slotted(1)),
    *(Told(), "Told", PurePosixPath("a"), PurePosixPath("b"), int, float, 1j, range(2), range(3)),
    *("x" * LONGEST_TEXT, "x" * (LONGEST_TEXT + 1), "x" * LONGEST_TEXT + "y", b"x" * (LONGEST_TEXT + 1)),
    *(nested(30), nested(31), nested(39), nested(40), nested(41), nested(5000), nested(5001), nested(5000, inside=1)),
    *(["x" * 200_000] * 21, ["x" * 200_000] * 22, [*["x" * 200_000] * 21, 1]),
]


def test_values_that_differ_have_texts_that_differ():
    """No two of a gallery of likely confusions share a text or a digest."""
    texts = [canonical(value) for value in KEPT_APART]
    assert len(set(texts)) == len(KEPT_APART)
    assert len({digest(value) for value in KEPT_APART}) == len(KEPT_APART)


def test_no_value_can_pass_for_the_spelling_of_another():
    """Spelling what was read back gives another text, else a caller could write what an approval was given for."""
    odd = [value for value in KEPT_APART if json.dumps(jsonable(value)).startswith('{"$')]
    assert len(odd) > 20
    assert not [value for value in odd if canonical(jsonable(value)) == canonical(value)]


def test_keys_of_one_spelling_are_all_kept():
    """Two NaN keys are two keys; JSON readers would drop one."""
    spelled = jsonable({float("nan"): 1, float("-nan"): 2})
    assert sorted(value for _, value in spelled["$map"]) == [1, 2]


def test_two_objects_of_one_class_without_a_repr_differ_by_their_state():
    """Their addresses would change with every run; their state is what they say."""
    assert canonical(Plain(to="ann")) != canonical(Plain(to="bob"))
    assert "0x" not in canonical(Plain(to="ann"))


# Readable


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (b"caf\xc3", '{"$bytes":"caf\\\\xc3"}'),
        ({3, 1, 2}, '{"$set":[1,2,3]}'),
        (Decimal("0.10"), '{"$decimal":"0.10"}'),
        (date(2024, 1, 2), '{"$date":"2024-01-02"}'),
        (datetime(2024, 1, 2, 3, tzinfo=UTC), '{"$datetime":"2024-01-02T03:00:00+00:00"}'),
        (math.inf, '{"$float":"inf"}'),
        ("a\ud800", '{"$text":"a\\\\ud800"}'),
        ({1: 2, "$a": 3}, '{"$$a":3,"$key:1":2}'),
        (1 << 4096, '{"$int":"0x1' + "0" * 1024 + '"}'),
    ],
)
def test_what_json_cannot_say_stays_readable(value, shown):
    """One short tagged object, not a dump."""
    assert canonical(value) == shown


def test_objects_are_told_by_type_and_state_or_repr():
    """An enum member keeps its name and value, a dataclass its fields, anything else its repr."""
    assert jsonable(Colour.RED) == {"$enum": f"{__name__}.Colour.RED", "value": 1}
    assert jsonable(Point(1, [2])) == {"$object": f"{__name__}.Point", "fields": {"x": 1, "y": [2]}}
    assert jsonable(Told()) == {"$object": f"{__name__}.Told", "repr": "Told"}
    assert jsonable(Slotted(1))["fields"] == {"a": 1}


def test_a_huge_text_keeps_its_head_its_length_and_its_digest():
    """One hundred megabytes of a tool's output become one short line."""
    spelled = jsonable("x" * 10**8)
    assert spelled["$text"] == "x" * 200
    assert spelled["length"] == 10**8
    assert len(spelled["sha256"]) == 64


# Self-reference and sharing


def test_a_value_inside_itself_is_marked_by_how_far_up_it_stands():
    """So the mark is the same wherever the value is put."""
    loop = [1]
    loop.append(loop)
    assert canonical(loop) == '[1,{"$cycle":1}]'
    assert canonical({"a": {"b": loop}}) == '{"a":{"b":[1,{"$cycle":1}]}}'
    assert canonical([loop, loop]) == f"[{canonical(loop)},{canonical(loop)}]"
    person = Plain(name="ann")
    person.self = person
    assert '"self":{"$cycle":1}' in canonical(person)


def test_loops_that_close_at_different_places_differ():
    """Same parts, other ties."""
    a, b, c = [1], [1], [1]
    a.append([a])
    inner = []
    inner.append(inner)
    b.append(inner)
    c.append([[c]])
    assert len({canonical(a), canonical(b), canonical(c)}) == 3


def test_a_part_of_a_loop_that_comes_again_says_which_one_it_is():
    """Two parts of one text can tie back to different places; the later mention must tell them apart."""

    def tied(again):
        p, q = [], []
        root = [p, q]
        m1, m2 = [p, root], [q, root]
        p += [m1, 1]
        q += [m2, 2]
        root.append(again(m1, m2))
        return canonical(root)

    assert tied(lambda m1, _: m1) != tied(lambda _, m2: m2)
    assert tied(lambda m1, _: m1) == tied(lambda m1, _: m1)


def test_a_part_of_a_loop_met_from_outside_is_spelled_afresh():
    """What it would point back to is not around it any more."""
    loop, part = [1], [2]
    loop.append(part)
    part.append(loop)
    assert canonical([loop, part]) == '[[1,[2,{"$cycle":2}]],[2,[1,[2,{"$cycle":2}]]]]'


def test_a_loop_reads_the_same_wherever_it_stands():
    """Also with another loop inside it that was met before."""
    inner, part = [1], [2]
    inner.append([inner, inner])
    outer = [part, inner, part]
    part.append(outer)
    assert '{"$same":0}' in canonical(outer)
    assert canonical([inner, outer]) == f"[{canonical(inner)},{canonical(outer)}]"
    assert canonical({"x": [outer]}) == f'{{"x":[{canonical(outer)}]}}'


def test_objects_are_opened_up_to_a_number():
    """One that holds on to the whole program must not be copied out."""
    value = Plain(next=None)
    for _ in range(3000):
        value = Plain(next=value)
    several = [Plain(n=n) for n in range(3000)]
    assert canonical(several).count('"fields"') == 1000
    assert canonical(value) != canonical(Plain(next=value))


def test_sharing_does_not_multiply_the_work():
    """One hundred lists that each hold the next twice would be 2**100 lists if they were copied out."""
    value: list[object] = []
    for _ in range(100):
        value = [value, value]
    tied: list[object] = []
    root = [tied]
    for _ in range(100):
        inner: list[object] = []
        tied += [inner, inner]
        tied = inner
    tied.append(root)
    began = time.monotonic()
    assert len(canonical(value)) < 2**23
    assert len(canonical(root)) < 2**23
    assert time.monotonic() - began < 5


def test_depth_costs_no_stack():
    """Twenty times deeper than the interpreter's recursion limit, and readable by a plain JSON reader."""
    value = nested(20_000)
    assert json.loads(canonical(value))
    deep_dict: dict[str, object] = {}
    for _ in range(2000):
        deep_dict = {"k": deep_dict}
    assert json.loads(canonical(deep_dict))


# Hostile values


class Bottomless(Plain):
    """One whose repr never ends."""

    def __repr__(self):
        return repr(self)


class Rude(Plain):
    """One whose repr raises what it was given."""

    def __init__(self, raised):
        self.raised = raised

    def __repr__(self):
        raise self.raised


class NotText:
    """One whose repr is no text."""

    def __repr__(self):
        return 5


class Masked:
    """One that raises at any look at it."""

    @property
    def __class__(self):
        raise RuntimeError("no")

    def __getattribute__(self, name):
        raise RuntimeError(name)


def nameless():
    """Made here: pytest itself would trip over such a class in a module."""

    class Meta(type):
        def __getattribute__(cls, name):
            raise RuntimeError(name)

    class Nameless(metaclass=Meta):
        pass

    return Nameless()


def unspeakable():
    """An error whose text, `repr`, type and type's name all raise; made here, as pytest would trip over it too."""

    class Meta(type):
        def __getattribute__(cls, name):
            raise KeyboardInterrupt(name)

        def __repr__(cls):
            raise Unspeakable

    class Unspeakable(BaseException, metaclass=Meta):
        def __str__(self):
            raise Unspeakable

        __repr__ = __str__

    return Unspeakable


@dataclasses.dataclass
class Broken:
    """A dataclass that does not give its field."""

    x: int = 1

    def __getattribute__(self, name):
        if name == "x":
            raise RuntimeError("no")
        return super().__getattribute__(name)


HOSTILE = [
    *(lambda: Liar(a=1), Bottomless, NotText, Masked, nameless, Broken, lambda: Shouting("x"), object),
    *(lambda: Rude(ValueError()), lambda: Rude(RecursionError()), lambda: Rude(MemoryError())),
    *(lambda: Rude(KeyboardInterrupt()), lambda: Rude(SystemExit()), lambda: [Liar(a=[Rude(ValueError())])]),
    *(lambda: print, lambda: (i for i in ()), lambda: json, lambda: ..., lambda: memoryview(b"abc")[::2]),
    *(lambda: NotImplemented, unspeakable, lambda: [unspeakable()()], lambda: Rude(unspeakable()())),
]


@pytest.mark.parametrize("make", HOSTILE)
def test_a_hostile_value_is_spelled_and_nothing_is_raised(make):
    """Looking at a value must never end the run, nor leave it without a record."""
    value = make()
    assert json.loads(canonical(value)) is not None
    assert json.loads(canonical({"args": [value]}))


def test_a_value_that_another_thread_changes_does_not_raise():
    """A mapping that grows while it is read, as its owner may make it."""

    class Growing(dict):
        def __len__(self):
            return 1

    value = Growing(a=1)
    value[Told()] = 2
    assert json.loads(canonical(value))


def test_a_released_memoryview_is_still_spelled():
    """Its bytes are gone, so it is told as an object."""
    view = memoryview(b"abc")
    view.release()
    assert "released" in canonical(view)


# The quick way and the general one


def test_the_quick_way_declines_what_it_cannot_spell():
    """It knows small, shallow, exact JSON only."""
    declined = [{1: 2}, {"$a": 1}, nested(20), "x" * 5000, ["x" * 3000] * 2, b"", {1}, math.nan, 2**64, "é", Colour.RED]
    assert [spell_plain(value) for value in declined] == [""] * len(declined)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=()), max_size=8)
    | st.binary(max_size=8)
    | st.decimals()
    | st.datetimes()
    | st.sampled_from(Colour),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.builds(Point, inner, inner)
        | st.dictionaries(
            st.text("$a1", max_size=3) | st.integers(0, 9) | st.booleans() | st.floats(), inner, max_size=4
        )
        | st.frozensets(st.integers() | st.text(max_size=2), max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None)
@given(PLAIN)
def test_the_quick_way_gives_the_text_of_the_general_one(value):
    """It is a shortcut and no second definition."""
    quick = spell_plain(value)
    assert quick in {"", module._Walk().run(value)}


@settings(max_examples=60, deadline=None)
@given(ANYTHING)
def test_any_value_gives_json_that_reads_back_to_its_own_text(value):
    """What the log holds can be spelled again, to the letter."""
    text = canonical(value)
    assert text.isascii()
    assert respell(json.loads(text)) == text


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.text(max_size=3) | st.integers(), ANYTHING, max_size=5), st.randoms(use_true_random=False))
def test_any_mapping_has_one_text_in_every_order_of_its_keys(value, random):
    """Insertion order is representation."""
    keys = list(value)
    random.shuffle(keys)
    assert canonical({key: value[key] for key in keys}) == canonical(value)


@settings(max_examples=60, deadline=None)
@given(PLAIN, PLAIN)
def test_plain_values_have_one_text_exactly_if_json_says_the_same_of_both(one, other):
    """The independent judge is json.dumps with sorted keys, which raises for no plain value without NaN."""
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (canonical(one) == canonical(other)) == same


# Fingerprints


def test_a_fingerprint_does_not_see_key_order_or_the_white_space_of_json():
    """Arguments may come as a mapping or as the JSON text that a model wrote (field case 32)."""
    expected = fingerprint("search", {"q": "a b", "n": 5})
    assert fingerprint("search", {"n": 5, "q": "a b"}) == expected
    assert fingerprint("search", '{ "n" : 5,\n"q": "a b" }') == expected
    assert fingerprint("search", b'{"q":"a b","n":5}') == expected


def test_a_fingerprint_sees_tool_values_and_the_white_space_of_a_text():
    """Only exact repetition is repetition: a model that adds a blank has changed its argument."""
    prints = {
        fingerprint("search", {"q": "a b"}),
        fingerprint("search", {"q": "a  b"}),
        fingerprint("search", {"q": "a b "}),
        fingerprint("Search", {"q": "a b"}),
        fingerprint("search", {"Q": "a b"}),
        fingerprint("search", "a b"),
        fingerprint("search", '["a b"]'),
        fingerprint("search", ["a b"]),
        fingerprint("search", {}),
        fingerprint("search", None),
        fingerprint("search", '{"q": "a b"'),
        fingerprint("search", '{"q": ' + "[" * 100_000),
        fingerprint("search", '{"q": ' + "9" * 10_000 + "}"),
    }
    assert len(prints) == 13


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.text(max_size=3), ANYTHING, max_size=4))
def test_a_call_read_back_from_a_log_has_the_fingerprint_it_had(args):
    """So repetition and approval can be judged again from the log alone."""
    assert fingerprint_as_logged("tool", jsonable({"calls": [args]})["calls"][0]) == fingerprint("tool", args)


def test_a_call_logged_with_its_arguments_as_text_has_the_fingerprint_it_had():
    """The text is read as it was then."""
    assert fingerprint_as_logged("tool", jsonable('{"a": "$b"}')) == fingerprint("tool", {"a": "$b"})
