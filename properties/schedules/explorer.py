"""All schedules of a few threads on one object, each judged by whether its history can be explained.

A search is over when every choice at every state was tried; two schedules that reach the same state with histories that
the same future explains are continued once. What was cut short has shown nothing.
"""

from __future__ import annotations

import heapq
import time
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from failstop.properties.linearizable import Explanations, Gap
from failstop.properties.schedules.locks import active, turn_locks
from failstop.properties.schedules.picture import Picture
from failstop.properties.schedules.turns import Deadlock, Stuck, Thread, Turns
from failstop.properties.subject import Lane

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from failstop.properties.linearizable import Event
    from failstop.properties.scenario import Scenario
    from failstop.properties.subject import Instrument
    from failstop.properties.target import AnyTarget

Schedule = tuple[int, ...]
"""Which thread goes on, at each point where more than one could."""


class Violation(NamedTuple):
    """A schedule whose history nothing explains; told: what is wrong, in a line."""

    schedule: Schedule
    history: tuple[Event, ...]
    told: str


class Search(NamedTuple):
    """What a search came to; finished: every schedule was tried, or merged into one that was."""

    schedules: int
    states: int
    seconds: float
    finished: bool
    violation: Violation | None
    stuck: str = ""


class Reach(NamedTuple):
    """How far a search goes: schedules, seconds, and the modules whose every line is a point."""

    schedules: int = 1_000_000
    seconds: float = 60.0
    traced: tuple[str, ...] = ()
    merge: bool = True


def explore(scenario: Scenario, target: AnyTarget, reach: Reach, *, exact: bool) -> Search:
    """Search until a violation, the end, or the limits of the reach; raises NotOffered."""
    began = time.perf_counter()
    known: set[Hashable] = set()
    waiting: list[_Waiting] = [_Waiting(0, 0, ())]
    schedules = 0
    while waiting:
        seconds = time.perf_counter() - began
        if schedules >= reach.schedules or seconds > reach.seconds:
            return Search(schedules, len(known), seconds, False, None)
        given = heapq.heappop(waiting)
        run = _Run(scenario, target, given.schedule, known, reach, exact=exact)
        schedules += 1
        try:
            run.go()
        except Stuck as stuck:
            return Search(schedules, len(known), time.perf_counter() - began, False, None, str(stuck))
        if run.violation is not None:
            return Search(schedules, len(known), time.perf_counter() - began, False, run.violation)
        for switches, schedule in run.others:
            heapq.heappush(waiting, _Waiting(given.switches + switches, len(schedule), schedule))
    return Search(schedules, len(known), time.perf_counter() - began, True, None)


def replay(
    scenario: Scenario, target: AnyTarget, schedule: Schedule, *, exact: bool, traced: tuple[str, ...] = ()
) -> Violation | None:
    """Run one schedule again, to its end."""
    run = _Run(scenario, target, schedule, None, Reach(traced=traced), exact=exact)
    run.go()
    return run.violation


class _Waiting(NamedTuple):
    """A schedule to be run; those that interrupt a thread least often come first, as people understand them best."""

    switches: int
    length: int
    schedule: Schedule


class _Run:
    """One schedule: the choices given, then whatever needs the fewest switches."""

    def __init__(
        self,
        scenario: Scenario,
        target: AnyTarget,
        given: Schedule,
        known: set[Hashable] | None,
        reach: Reach,
        *,
        exact: bool,
    ) -> None:
        lanes = len(scenario.programs) + 1
        self.violation: Violation | None = None
        self.others: list[tuple[int, Schedule]] = []
        self._scenario = scenario
        self._target = target
        self._given = given
        self._known = known
        self._exact = exact
        self._merge = reach.merge
        self._taken: list[int] = []
        self._history: list[Event] = []
        self._explanations = Explanations(scenario.subject.reference(exact=exact), lanes)
        self._turns = Turns(self._choose, reach.traced)

    def go(self) -> None:
        """Run it."""
        turns, scenario = self._turns, self._scenario
        with turn_locks():
            self._instrument = scenario.subject.open(self._target)
            lanes = [Lane(number, self._note, turns.before_operation) for number in range(len(scenario.programs))]
            works = [
                partial(_play, program, self._instrument, lane)
                for lane, program in zip(lanes, scenario.programs, strict=True)
            ]
            try:
                with active(turns):
                    turns.run(works)
                if len(self._taken) < len(self._given):
                    raise Stuck("the same choices led elsewhere: it depends on more than the schedule")
                if self._exact:
                    self._instrument.look(Lane(len(works), self._note))
            except Deadlock as deadlock:
                self._found(f"{deadlock}: {', '.join(_where(thread) for thread in turns.threads if not thread.ended)}")
            finally:
                self._instrument.close()

    def _note(self, event: Event) -> None:
        if self._turns.over:
            return
        self._history.append(event)
        if self.violation is None:
            self._turns.judging = True
            states = self._explanations.states
            if not self._explanations.see(event):
                self._found(self._scenario.subject.told(Gap(len(self._history) - 1, event, states)))
            self._turns.judging = False

    def _found(self, told: str) -> None:
        if self.violation is None:
            self.violation = Violation(tuple(self._taken), tuple(self._history), told)

    def _choose(self, turns: Turns, me: Thread) -> Thread:
        ready = turns.ready()
        if len(ready) == 1:
            return ready[0]
        place = len(self._taken)
        if place < len(self._given):
            chosen = turns.threads[self._given[place]]
            if chosen not in ready:
                raise Stuck("the same choices led elsewhere: it depends on more than the schedule")
        else:
            chosen = me if me in ready else ready[0]
            if self._known is not None and self.violation is None:
                self._branch(me, ready, chosen)
        self._taken.append(chosen.number)
        return chosen

    def _branch(self, me: Thread, ready: list[Thread], chosen: Thread) -> None:
        assert self._known is not None  # noqa: S101 - the caller asked
        if self._merge:
            picture = Picture(self._turns, (Lane, *self._scenario.subject.ignored)).of(self._instrument)
            key = (picture, self._explanations.key, chosen.number)
            if key in self._known:
                # Whatever comes from here was tried: the rest of this schedule is run, and no more.
                self._known = None
                return
            self._known.add(key)
        taken = tuple(self._taken)
        interrupted = int(me in ready)
        self.others += [(interrupted, (*taken, thread.number)) for thread in ready if thread is not chosen]


def _play(program: Sequence[object], instrument: Instrument, lane: Lane) -> None:
    # By their places, which a picture shows; how far an iterator is cannot be seen.
    place = 0
    while place < len(program):
        instrument.play(program[place], lane)
        place += 1


def _where(thread: Thread) -> str:
    return f"thread {thread.number + 1}"
