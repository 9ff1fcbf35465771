"""Pictures: equal for states that have the same future, different where anything differs that decides."""

import collections
import functools
import itertools
import types
import weakref
from decimal import Decimal
from enum import IntEnum

import pytest

from failstop.properties.schedules.locks import TurnLock
from failstop.properties.schedules.picture import Picture
from failstop.properties.schedules.turns import Turns


class Holder:
    """Any attributes."""

    def __init__(self, **attributes):
        vars(self).update(attributes)


class Slotted:
    """Attributes in slots, one of them private."""

    __slots__ = ("__hidden", "shown")

    def __init__(self, hidden, shown=0):
        self.__hidden = hidden
        self.shown = shown


class Dollars(int):
    """A number with a name."""


class Tier(IntEnum):
    """Two of them."""

    LOW = 1
    HIGH = 2


class Named(dict):
    """A dictionary with an attribute."""

    def __init__(self, name, **items):
        super().__init__(**items)
        self.name = name


def picture(*roots):
    return Picture(Turns(lambda turns, me: me)).of(*roots)


def closure(value):
    return lambda: value


def filled(first, second):
    """The same members, put in in another order."""
    holder = Holder()
    for name, value in (first, second):
        setattr(holder, name, value)
    return {name: getattr(holder, name) for name in ("a", "b")}


def shared():
    one = [1]
    return [one, one]


MADE = {
    "numbers": (lambda: 3, lambda: 4),
    "a number and a truth": (lambda: 1, lambda: True),
    "texts": (lambda: "a", lambda: "b"),
    "decimals": (lambda: Decimal("1.0"), lambda: Decimal("1.1")),
    "named numbers": (lambda: Dollars(3), lambda: Dollars(4)),
    "enumerations": (lambda: Tier.LOW, lambda: Tier.HIGH),
    "attributes": (lambda: Holder(a=1), lambda: Holder(a=2)),
    "names of attributes": (lambda: Holder(a=1), lambda: Holder(b=1)),
    "slots": (lambda: Slotted(1, 2), lambda: Slotted(1, 3)),
    "private slots": (lambda: Slotted(1), lambda: Slotted(2)),
    "items": (lambda: {"a": [1]}, lambda: {"a": [2]}),
    "the order of items": (lambda: {"a": 1, "b": 2}, lambda: {"b": 2, "a": 1}),
    "attributes of dictionaries": (lambda: Named("a", b=1), lambda: Named("c", b=1)),
    "queues": (lambda: collections.deque([1, 2]), lambda: collections.deque([2, 1])),
    "sets": (lambda: {1, 2}, lambda: {1, 3}),
    "closures": (lambda: closure(1), lambda: closure(2)),
    "partial functions": (lambda: functools.partial(print, 1), lambda: functools.partial(print, 2)),
    "bound methods": (lambda: [1].append, lambda: [2].append),
    "methods": (lambda: Slotted(1).__init__, lambda: Slotted(2).__init__),
    "counters": (lambda: itertools.count(1), lambda: itertools.count(2)),
    "errors": (lambda: ValueError("a"), lambda: ValueError("b")),
    "views of dictionaries": (lambda: types.MappingProxyType({1: 1}), lambda: types.MappingProxyType({1: 2})),
    "the same and an equal one": (shared, lambda: [[1], [1]]),
}


@pytest.mark.parametrize("name", MADE)
def test_equal_states_have_equal_pictures_and_others_do_not(name):
    """Made twice in the same way they are alike; where a value differs, wherever it is held, they are not."""
    make, other = MADE[name]
    assert picture(make()) == picture(make())
    assert hash(picture(make())) == hash(picture(make()))
    assert picture(make()) != picture(other())


def test_the_way_to_a_state_does_not_show():
    """Two objects that were filled in different orders and hold the same are alike."""
    assert picture(filled(("a", 1), ("b", 2))) == picture(filled(("b", 2), ("a", 1)))


def test_a_ring_has_a_picture():
    """Objects that hold one another are followed once."""

    def ring(value):
        first, second = Holder(value=value), Holder()
        first.next, second.next = second, weakref.ref(first)
        return first

    one, other, again = ring(1), ring(2), ring(1)
    assert picture(one) == picture(again)
    assert picture(one) != picture(other)


def test_members_of_a_set_are_not_taken_for_one_another():
    """Which of them is held elsewhere too makes a difference, in whatever order a set gives them."""
    first, second = Holder(value=1), Holder(value=2)
    assert picture({first, second}, first) != picture({first, second}, second)


class Alike:
    """Comes in a set in the order in which it was put in."""

    def __init__(self, value):
        self.value = value

    def __hash__(self):
        return 1

    def __eq__(self, other):
        return self is other


def test_the_order_within_a_set_hides_no_difference():
    """Nor if both were met first in their sets."""
    first, second = Alike(1), Alike(2)
    assert [next(iter({first, second})), next(iter({second, first}))] == [first, second]
    assert picture({first, second}, first) != picture({second, first}, second)


def test_a_lock_shows_its_owner_and_how_often_it_is_held():
    """Held by another thread it is another state."""

    class Owned:
        number, ended, ident, steps = 0, True, 0, 0

        def __init__(self, number, ident):
            self.number, self.ident = number, ident

    turns = Turns(lambda turns, me: me)
    turns.threads = [Owned(0, 71), Owned(1, 72)]
    lock, pictures = TurnLock(), []
    for owner, count in ((None, 0), (71, 1), (71, 2), (72, 1)):
        lock.owner, lock.count = owner, count
        pictures.append(Picture(turns).of(lock))
    assert len(set(pictures)) == 4
    # Its number in this schedule, not the identity that the system happened to give it.
    turns.threads = [Owned(0, 81), Owned(1, 82)]
    lock.owner, lock.count = 82, 1
    assert Picture(turns).of(lock) == pictures[-1]


@pytest.mark.parametrize("make", [lambda items: (each for each in items), lambda items: map(str, items)])
def test_what_cannot_be_looked_into_is_like_nothing(make):
    """Not even like itself a moment later, so that no two states are merged by mistake."""
    value = make([1, 2])
    assert picture(value) != picture(value)


def test_a_thread_shows_its_place_and_its_values():
    """Before, between and behind its steps a thread is in another state each time, and alike when it is run again."""

    def pictures(amount):
        turns, seen = Turns(lambda turns, me: me), []

        def choose(turns, me):
            seen.append(Picture(turns).of())
            return me

        def work():
            value = amount
            turns.point()
            turns.point()
            for _ in range(2):
                turns.before_lock(lambda: value > 0)

        turns._choose = choose
        turns.run([work])
        return seen

    first = pictures(1)
    assert len(set(first)) == len(first) == 4
    assert pictures(1)[1:] == first[1:]
    assert set(pictures(2)[1:]).isdisjoint(first[1:])
