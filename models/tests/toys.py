"""Protocols small enough to be counted by hand: a turnstile that lets too many in, and one that does not."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from failstop.models.claim import OURS
from failstop.models.specification import Goal, Invariant, Law, Specification

OUTSIDE = 0
CHECKED = 1
INSIDE = 2


class Limits(NamedTuple):
    """How many may be inside."""

    most: int


class Hall(NamedTuple):
    """What the turnstile counted."""

    counted: int


class Person(NamedTuple):
    """Somebody at the turnstile, with a bag."""

    place: int
    bags: int


class Totals(NamedTuple):
    """Sums over everybody."""

    inside: int
    bags: int


def start() -> Hall:
    """The hall is empty."""
    return Hall(0)


def check(limits: Limits, world: Hall, call: Person) -> tuple[Hall, Person] | None:
    """Somebody reads the counter, and it is below the limit."""
    if call.place != OUTSIDE or world.counted >= limits.most:
        return None
    return world, call._replace(place=CHECKED)


def enter(world: Hall, call: Person, bags: int) -> tuple[Hall, Person] | None:
    """Somebody who was let through enters, and is counted."""
    if call.place != CHECKED or bags < 0 or bags > 1:
        return None
    return Hall(world.counted + 1), Person(INSIDE, bags)


def enter_at_once(limits: Limits, world: Hall, call: Person, bags: int) -> tuple[Hall, Person] | None:
    """Somebody reads the counter and enters in one step, if it is below the limit."""
    if call.place != OUTSIDE or world.counted >= limits.most or bags < 0 or bags > 1:
        return None
    return Hall(world.counted + 1), Person(INSIDE, bags)


def leave(world: Hall, call: Person) -> tuple[Hall, Person] | None:
    """Somebody leaves, with the bag."""
    if call.place != INSIDE:
        return None
    return Hall(world.counted - 1), Person(OUTSIDE, 0)


def vanish(call: Person, world: Hall) -> tuple[Hall, Person] | None:
    """Somebody vanishes, and is still counted."""
    if call.place != INSIDE:
        return None
    return world, Person(OUTSIDE, 0)


def inside(call: Person) -> int:
    """One for everybody inside."""
    return 1 if call.place == INSIDE else 0


def bags(call: Person) -> int:
    """The bags of a person."""
    return call.bags


def well_formed(call: Person) -> bool:
    """People have one bag at most, and only inside."""
    return 0 <= call.bags <= 1 and (call.place == INSIDE or call.bags == 0)


def counted(world: Hall, total: Totals) -> bool:
    """The counter is the number of people inside."""
    return world.counted == total.inside


def no_more_than_allowed(limits: Limits, total: Totals) -> bool:
    """No more are inside than the limit says."""
    return limits.most < 0 or total.inside <= limits.most


def bags_belong_to_people(total: Totals) -> bool:
    """There are no more bags than people inside."""
    return total.bags <= total.inside


def never_two(call: Person, other: Person) -> bool:
    """No two people are inside at once."""
    return call.place != INSIDE or other.place != INSIDE


def one_at_a_time(world: Hall, after: Hall) -> bool:
    """The counter changes by one at most."""
    return -1 <= after.counted - world.counted <= 1


def only_upwards(world: Hall, after: Hall) -> bool:
    """The counter never goes down."""
    return after.counted >= world.counted


def below_a_thousand(world: Hall) -> bool:
    """The counter stays below a thousand."""
    return world.counted < 1000


def is_a_thousand(world: Hall) -> bool:
    """The counter is a thousand."""
    return world.counted == 1000


def two_are_inside(total: Totals) -> bool:
    """Two people are inside."""
    return total.inside == 2


def a_thousand_are_inside(total: Totals) -> bool:
    """A thousand people are inside."""
    return total.inside == 1000


SAFE = Specification(
    name="safe turnstile",
    whose=OURS,
    promise="No more people are inside than the limit says.",
    limits=Limits,
    world=Hall,
    start=start,
    call=Person,
    new=Person(OUTSIDE, 0),
    actions=(enter_at_once, leave),
    totals=Totals,
    terms=(inside, bags),
    at_most=(("bags", "inside"),),
    invariants=(
        Invariant("G2", well_formed),
        Invariant("G2", counted),
        Invariant("G2", no_more_than_allowed),
        Invariant("G2", bags_belong_to_people),
    ),
    laws=(Law("G2", one_at_a_time),),
    goals=(Goal("G2", two_are_inside),),
    words={"place": ("outside", "checked", "inside")},
)

RACY = replace(SAFE, name="racy turnstile", actions=(check, enter, leave))
LEAKY = replace(SAFE, name="leaky turnstile", actions=(enter_at_once, leave, vanish))


class Odd(NamedTuple):
    """A record with a property, which would run without being read."""

    counted: int

    @property
    def doubled(self) -> int:
        """Something that is not what it says."""
        return 0 if type(self.counted) is int else self.counted


class Turned(NamedTuple):
    """The numbers of a pair in the other order."""

    second: int
    first: int


class Pair(NamedTuple):
    """Two numbers."""

    first: int
    second: int


class Other(NamedTuple):
    """The same numbers as a hall and a person, by other names."""

    bags: int
    place: int


def sometimes_nothing(amount: int) -> bool | None:
    """Give nothing for one amount."""
    if amount == 1000:
        return None
    return amount > 0


def sometimes_other(amount: int) -> Person | Other:
    """Give one record or the other."""
    if amount > 0:
        return Person(amount, 0)
    return Other(amount, 0)


def odd_property(world: Odd) -> int:
    """Ask a record for a property."""
    return world.doubled
