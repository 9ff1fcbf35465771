"""Small objects for the tests of the explorers, each right or wrong in one way."""

import threading
from dataclasses import dataclass

from failstop.properties.scenario import Scenario

ADMITTED, REFUSED, DONE = "admitted", "refused", "done"


class Nothing:
    """The reference of toys that note no operation."""

    initial = None

    def outcomes(self, state, action):
        return ()


class AtMost:
    """The reference of a counter that admits so many; a "count" reads it."""

    initial = 0

    def __init__(self, limit):
        self.limit = limit

    def outcomes(self, state, action):
        if action == "count":
            yield state, state
        else:
            yield (state + 1, ADMITTED) if state < self.limit else (state, REFUSED)


@dataclass(frozen=True)
class Toy:
    """A subject that opens what it is given; only to be looked at in the end if that has a counter."""

    make: type
    judged_by: object = Nothing()
    ignored: tuple = ()
    name: str = "toy"

    def told(self, gap):
        return f"{gap.event} is wrong"

    def reference(self, *, exact):
        return self.judged_by

    def open(self, target):
        return self.make()


class Instrument:
    """Plays a move by calling it, unless a toy does otherwise."""

    finals: set

    def play(self, move, lane):
        getattr(self, move)()

    def look(self, lane):
        """Nothing to be seen."""

    def close(self):
        """Nothing to be let go of."""


def toy(make, *programs, judged_by=None, ignored=()):
    """Make a scenario of it."""
    subject = Toy(make, judged_by or Nothing(), ignored)
    return Scenario("toy", "A toy", "G2", (), subject, tuple(tuple(each) for each in programs))


class Sections(Instrument):
    """Does nothing, under its lock."""

    def __init__(self):
        self.lock = threading.Lock()

    def section(self):
        with self.lock:
            pass


class Counter(Instrument):
    """Admits one, rightly: it checks and counts under one lock."""

    def __init__(self):
        self.lock = threading.Lock()
        self.count = 0

    def play(self, move, lane):
        lane.begin("ask")
        lane.end(ADMITTED if self.ask() else REFUSED)

    def ask(self):
        with self.lock:
            if self.count < 1:
                self.count += 1
                return True
        return False

    def look(self, lane):
        lane.begin("count")
        lane.end(self.count)


class CheckThenAct(Counter):
    """Lets its lock go between the check and the count."""

    def ask(self):
        with self.lock:
            if self.count >= 1:
                return False
        with self.lock:
            self.count += 1
        return True


class CountsOutside(Counter):
    """Checks and counts under its lock, but writes the count down outside of it."""

    def ask(self):
        with self.lock:
            seen = self.count
            if seen >= 2:
                return False
        after = seen + 1
        self.count = after
        return True
