"""The search of schedules, on toys whose schedules can be counted by hand, and on the chain."""

import threading
from math import factorial

import pytest

from failstop.properties.scenario import Scenario
from failstop.properties.schedules import turns
from failstop.properties.schedules.explorer import Reach, explore, replay
from failstop.properties.subjects.chain import Call, ChainSubject
from failstop.properties.targets.failstop import FailstopTarget
from failstop.properties.tests.toys import (
    AtMost,
    CheckThenAct,
    Counter,
    CountsOutside,
    Instrument,
    Sections,
    toy,
)
from failstop.runtime.limits import Limits

EVERY = Reach(merge=False)
TRACED = (Counter.__module__,)


def search(scenario, reach=EVERY):
    return explore(scenario, None, reach, exact=True)


class Steps(Instrument):
    """Takes no lock; each step is an operation."""

    def play(self, move, lane):
        lane.begin("ask")
        lane.end("admitted")


@pytest.mark.parametrize(("threads", "sections"), [(1, 3), (2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (4, 1)])
@pytest.mark.parametrize("make", [Sections, Steps])
def test_every_order_is_run_once(make, threads, sections):
    """So many critical sections, or operations without one, can be put in as many orders as the multinomial says."""
    found = search(toy(make, *[["section"] * sections] * threads, judged_by=AtMost(99)))
    assert found.schedules == factorial(threads * sections) // factorial(sections) ** threads
    assert found.finished
    assert found.violation is None


def test_a_search_of_one_schedule_says_so():
    """One program has one schedule: nothing was searched, and whoever reads the result can see it."""
    assert search(toy(Sections, ["section"])).schedules == 1


def test_equal_states_are_continued_once():
    """Sections that change nothing leave few states, and the search still comes to its end."""
    found = search(toy(Sections, *[["section"] * 4] * 3), Reach())
    assert found.finished
    assert found.schedules < factorial(12) // factorial(4) ** 3 // 50


def test_check_then_act_is_found():
    """Two are let in where one fits: told with the schedule and the history that show it."""
    found = search(toy(CheckThenAct, ["ask"], ["ask"], judged_by=AtMost(1)))
    assert found.violation.told == "End(lane=0, answer='admitted') is wrong"
    assert not found.finished
    assert [event.lane for event in found.violation.history] == [0, 1, 1, 0]


@pytest.mark.parametrize("merge", [True, False])
def test_what_keeps_its_lock_is_searched_to_the_end(merge):
    """The counter that checks and counts at once admits one in every schedule."""
    found = search(toy(Counter, *[["ask", "ask"]] * 3, judged_by=AtMost(1)), Reach(merge=merge))
    assert (found.finished, found.violation, found.stuck) == (True, None, "")


def test_a_violation_is_seen_again_ten_times_of_ten():
    """The schedule of a violation gives the same history, in words too."""
    scenario = toy(CheckThenAct, ["ask", "ask"], ["ask"], ["ask"], judged_by=AtMost(1))
    violation = search(scenario, Reach()).violation
    assert violation is not None
    assert [replay(scenario, None, violation.schedule, exact=True) for _ in range(10)] == [violation] * 10
    assert replay(scenario, None, (0,), exact=True) is None


def test_only_lines_show_what_happens_outside_of_locks():
    """A lost update needs a switch where no lock is taken; with every line a point, it is found and seen again."""
    scenario = toy(CountsOutside, ["ask"], ["ask"], judged_by=AtMost(2))
    sections = search(scenario)
    assert sections.finished
    assert sections.violation is None
    lines = search(scenario, Reach(traced=TRACED))
    assert lines.violation is not None
    again = [replay(scenario, None, lines.violation.schedule, exact=True, traced=TRACED) for _ in range(10)]
    assert again == [lines.violation] * 10


class Crossed(Instrument):
    """Two locks that are taken in opposite orders; they are needed once more in the end."""

    patience = -1

    def __init__(self):
        self.first, self.second = threading.Lock(), threading.Lock()
        self.met = 0

    def forth(self):
        self._both(self.first, self.second)

    def back(self):
        self._both(self.second, self.first)

    def _both(self, one, other):
        with one:
            if other.acquire(timeout=self.patience):
                self.met += 1
                other.release()

    def close(self):
        with self.first, self.second:
            pass


class Impatient(Crossed):
    """Gives up after a while."""

    patience = 0.5


def test_a_deadlock_is_told_and_seen_again():
    """Of two locks in opposite orders: every thread waits, which is a violation though no answer was wrong."""
    scenario = toy(Crossed, ["forth"], ["back"])
    violation = search(scenario).violation
    assert violation.told == "every thread waits for another: thread 1, thread 2"
    assert [replay(scenario, None, violation.schedule, exact=True) for _ in range(10)] == [violation] * 10
    assert search(toy(Crossed, ["forth"], ["forth"])).finished


@pytest.mark.parametrize("merge", [True, False])
def test_waiting_with_a_time_out_is_no_deadlock(merge):
    """When nothing else can happen a time-out passes."""
    found = search(toy(Impatient, ["forth"], ["back"]), Reach(merge=merge))
    assert (found.finished, found.violation) == (True, None)


def test_a_lock_that_is_never_given_back_is_told():
    """A program that ends with a lock in its hands leaves the other waiting."""

    class Keeps(Instrument):
        def __init__(self):
            self.lock = threading.Lock()

        def keep(self):
            self.lock.acquire()

    assert "every thread waits for another: thread 2" in search(toy(Keeps, ["keep"], ["keep"])).violation.told


def test_what_threads_do_when_all_is_over_is_no_part_of_the_history():
    """Programs that answer while they are thrown out of a deadlock add nothing to what is told of it."""

    class Answers(Crossed):
        def play(self, move, lane):
            lane.begin("ask")
            try:
                getattr(self, move)()
            finally:
                lane.end("nonsense")

    violation = search(toy(Answers, ["forth"], ["back"], judged_by=AtMost(2))).violation
    assert violation is not None
    deadlocks = [each for each in (replay_of(Answers, order) for order in ((0, 1), (1, 0))) if each]
    for each in deadlocks:
        assert each.told.startswith("every thread")
        assert [type(event).__name__ for event in each.history] == ["Begin", "Begin"]
    assert deadlocks


def replay_of(make, order):
    """Let each thread take its first lock and be interrupted before the second."""
    return replay(toy(make, ["forth"], ["back"], judged_by=AtMost(2)), None, (order[0], order[1]), exact=True)


def test_what_hangs_outside_of_our_locks_is_not_called_searched(monkeypatch):
    """A thread that waits for something real ends the search, unfinished and with its reason."""
    monkeypatch.setattr(turns, "_RUN_S", 0.2)
    monkeypatch.setattr(turns, "_LEAVE_S", 0.01)
    real = turns._real_lock()
    real.acquire()

    class Hangs(Instrument):
        def hang(self):
            real.acquire()
            real.release()

    try:
        found = search(toy(Hangs, ["hang"], ["hang"]))
    finally:
        real.release()
    assert (found.finished, found.violation) == (False, None)
    assert found.stuck == "the schedule did not end within 0.2 s"


def test_what_goes_round_for_ever_is_not_called_searched(monkeypatch):
    """A thread that waits by asking again and again, while others could go on, ends the search, unfinished."""
    monkeypatch.setattr(turns, "_RUN_S", 0.2)

    class Spins(Sections):
        def spin(self):
            while True:
                self.section()

    assert search(toy(Spins, ["spin"], ["section"])).stuck


def test_a_thread_that_takes_no_turns_ends_the_search():
    """What it does could happen at any time, so nothing was shown, and nobody waits in vain is told either."""

    class Starts(Instrument):
        def start(self):
            threading.Thread(target=print).start()

    found = search(toy(Starts, ["start"], ["start"]))
    assert (found.finished, found.violation) == (False, None)
    assert found.stuck == "a thread was started that takes no turns"


def test_what_does_not_repeat_ends_the_search():
    """A program that does something else each time cannot be searched by its schedules."""
    runs = []

    class Fickle(Sections):
        def __init__(self):
            super().__init__()
            runs.append(self)

        def section(self):
            for _ in range(3 if len(runs) == 1 else 1):
                super().section()

    found = search(toy(Fickle, ["section"], ["section"]))
    assert (found.finished, found.violation) == (False, None)
    assert "the same choices led elsewhere" in found.stuck


def test_a_schedule_that_lets_a_waiting_thread_go_on_is_refused():
    """Another object was given that schedule; it is not called a deadlock of this one."""
    crossed = toy(Crossed, ["forth"], ["back"], ["forth"])
    assert replay(crossed, None, (0, 2, 0), exact=True) is None
    with pytest.raises(turns.Stuck, match="led elsewhere"):
        replay(crossed, None, (0, 2, 2), exact=True)


def test_what_a_program_raises_is_raised():
    """It is neither a violation nor lost."""

    class Fails(Sections):
        def fail(self):
            raise ZeroDivisionError("on purpose")

    with pytest.raises(ZeroDivisionError, match="on purpose"):
        search(toy(Fails, ["section", "fail"], ["section"]))


def test_a_program_that_catches_everything_does_not_keep_a_schedule_alive():
    """Thrown out of a deadlock it may go on, but alone, and to no effect."""

    class Stubborn(Crossed):
        def _both(self, one, other):
            try:
                super()._both(one, other)
            except BaseException:
                return

    assert "every thread" in search(toy(Stubborn, ["forth"], ["back"])).violation.told


@pytest.mark.parametrize("reach", [Reach(schedules=5), Reach(seconds=0.0)])
def test_a_search_that_was_cut_short_is_not_finished(reach):
    """Neither by its schedules nor by its time."""
    found = search(toy(Sections, *[["section"] * 3] * 3), reach)
    assert (found.finished, found.violation) == (False, None)
    assert found.schedules <= 5


class Finals:
    """What a toy or a chain came to, schedule by schedule."""

    def __init__(self):
        self.all = set()


def finals_of(scenario, reach, last):
    """Search, and give all that `last(instrument)` was in the end, with the search."""
    finals = set()
    subject = scenario.subject

    class Watched(type(subject)):
        def open(self, target):
            instrument = subject.open(target)
            close = type(instrument).close

            class Closing(type(instrument)):
                def close(self):
                    finals.add(last(self))
                    close(self)

            instrument.__class__ = Closing
            return instrument

    fields = {name: getattr(subject, name) for name in type(subject).__dataclass_fields__}
    watched = Scenario(scenario.name, "", "G2", (), Watched(**fields), scenario.programs)
    found = explore(watched, FailstopTarget(), reach, exact=True)
    assert found.finished, found
    return finals, found


class Switch(Sections):
    """Counts only once it was switched to counting, so a round too many or too few shows in the end."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def tick(self):
        with self.lock:
            self.count = self.count + 1 if self.count < 0 else 1

    def ticks(self):
        for _ in "....":
            self.tick()

    def switch(self):
        with self.lock:
            self.count = -9


class Stock(Sections):
    """Doubles and adds, which gives another number in every order."""

    def __init__(self):
        super().__init__()
        self.count = 1

    def double(self):
        with self.lock:
            self.count *= 2

    def add(self):
        with self.lock:
            self.count += 1


TOYS = {
    "rounds that look alike": toy(Switch, ["tick"] * 4, ["switch"]),
    "rounds of a loop inside": toy(Switch, ["ticks"], ["switch"]),
    "two switches": toy(Switch, ["tick"] * 3, ["switch"], ["switch", "tick"]),
    "orders that differ": toy(Stock, ["double", "add"], ["add", "double"], ["double"]),
    "locks that are given up": toy(Impatient, ["forth", "forth"], ["back"]),
}


@pytest.mark.parametrize("name", TOYS)
def test_merging_loses_no_end_of_a_toy(name):
    """The same final states are reached whether equal states are continued once or every time."""
    last = (lambda made: made.met) if "given up" in name else (lambda made: made.count)
    every, all_of_them = finals_of(TOYS[name], EVERY, last)
    merged, fewer = finals_of(TOYS[name], Reach(), last)
    assert merged == every
    assert len(every) > 1
    assert fewer.schedules <= all_of_them.schedules


CHAINS = {
    "steps 2 x 2": (Limits(max_steps=2), ((Call(), Call()),) * 2),
    "steps 3 x 1": (Limits(max_steps=2), ((Call(),),) * 3),
    "cost 3 x 1": (Limits(max_cost_usd="0.00000001"), ((Call(reserve=6, cost=5),),) * 3),
    "costs that differ": (
        Limits(max_cost_usd="0.00000001"),
        ((Call(reserve=6, cost=1),), (Call(reserve=5, cost=9),), (Call(reserve=4, cost=4),)),
    ),
}


@pytest.mark.parametrize("name", CHAINS)
def test_merging_loses_no_end_of_a_chain(name):
    """The counters come to the same in the end, with fewer schedules."""
    limits, programs = CHAINS[name]
    scenario = Scenario(name, "", "G2", (), ChainSubject(limits), programs)
    every, all_of_them = finals_of(scenario, EVERY, lambda made: made.sessions[""].counters())
    merged, fewer = finals_of(scenario, Reach(), lambda made: made.sessions[""].counters())
    assert {str(each) for each in merged} == {str(each) for each in every}
    assert fewer.schedules <= all_of_them.schedules
