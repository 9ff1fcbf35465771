"""The stress layer: thousands of short histories of threads that run freely, judged like those of a search.

It sees what no search at chosen points can, and shows nothing by finding nothing: that is why it is the last layer.
A violation comes with a schedule that shows it again, where a search finds one.
"""

from __future__ import annotations

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from failstop.properties.evidence import HOLDS, INCONCLUSIVE, NOT_OFFERED, VIOLATED
from failstop.properties.finding import is_exact, not_promised, record
from failstop.properties.linearizable import first_gap
from failstop.properties.schedules.explorer import Reach, explore
from failstop.properties.schedules.token import spelled
from failstop.properties.subject import Lane, NotOffered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Literal

    from failstop.properties.evidence import Record
    from failstop.properties.linearizable import Event
    from failstop.properties.scenario import Scenario
    from failstop.properties.target import AnyTarget

HISTORIES = {"quick": 100, "deep": 5000}
"""How many histories of each scenario are made."""
SECONDS = {"quick": 5.0, "deep": 60.0}
"""How long one scenario is played at most."""

_FEW = 30
"""Histories below which nothing was tried in earnest."""

_SWITCH_S = 1e-6
_SEARCH_S = 20.0
_ANSWER_S = 10.0


def check_stress(
    target: AnyTarget, named: str, scenarios: Sequence[Scenario], depth: Literal["quick", "deep"]
) -> Iterator[Record]:
    """Play each scenario again and again; named: how the user named the target."""
    for scenario in scenarios:
        yield _checked(scenario, target, named, depth)


def _checked(scenario: Scenario, target: AnyTarget, named: str, depth: Literal["quick", "deep"]) -> Record:
    reason = not_promised(scenario, target)
    if reason is not None:
        return record(scenario, target, "stress", NOT_OFFERED, reason)
    began = time.perf_counter()
    histories = 0
    programs = scenario.programs
    try:
        with _threads(len(programs)) as together:
            while histories < HISTORIES[depth] and time.perf_counter() - began < SECONDS[depth]:
                told = _played(scenario, target, programs, together)
                histories += 1
                if told is not None:
                    return _violated(scenario, target, named, told, histories)
    except NotOffered as missing:
        return record(scenario, target, "stress", NOT_OFFERED, str(missing))
    except Exception as error:  # noqa: BLE001 - whatever a target or its adapter raises, nothing was shown
        told = f"it could not be played: {type(error).__name__}: {error}"
        return record(scenario, target, "stress", INCONCLUSIVE, told)
    effort = {"threads": len(programs), "histories": histories, "seconds": round(time.perf_counter() - began, 3)}
    if histories < _FEW:
        told = f"in {SECONDS[depth]:g} s only {histories} histories were played, which shows nothing"
        return record(scenario, target, "stress", INCONCLUSIVE, told, effort)
    told = f"{histories} histories of {len(programs)} threads can be explained"
    return record(scenario, target, "stress", HOLDS, told, effort)


def _played(
    scenario: Scenario,
    target: AnyTarget,
    programs: Sequence[Sequence[object]],
    together: Callable[[Sequence[Callable[[], None]]], None],
) -> str | None:
    exact = is_exact(target)
    history: list[Event] = []
    instrument = scenario.subject.open(target)

    def work(number: int, program: Sequence[object]) -> None:
        lane = Lane(number, history.append, _yield)
        for move in program:
            instrument.play(move, lane)

    try:
        together([partial(work, number, each) for number, each in enumerate(programs)])
        if exact:
            instrument.look(Lane(len(programs), history.append))
    finally:
        instrument.close()
    gap = first_gap(scenario.subject.reference(exact=exact), history, len(programs) + 1)
    return None if gap is None else scenario.subject.told(gap)


def _yield() -> None:
    """Offer the processor to another thread."""
    time.sleep(0)


def _violated(scenario: Scenario, target: AnyTarget, named: str, told: str, histories: int) -> Record:
    """Look for a schedule that shows the same, since what ran freely cannot be run again."""
    command = f"failstop check {named} --layer stress --scenario {scenario.name}"
    found = explore(scenario, target, Reach(seconds=_SEARCH_S), exact=is_exact(target)).violation
    if found is not None:
        command = f"failstop replay {spelled(named, scenario.name, found.schedule)}"
    told = f"in history {histories}, {told}"
    return record(scenario, target, "stress", VIOLATED, told, {"histories": histories}, command)


@contextmanager
def _threads(count: int) -> Iterator[Callable[[Sequence[Callable[[], None]]], None]]:
    """Give a function that runs works on threads of their own, all at once, and raises what one of them raised."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_S)
    start = threading.Barrier(count)

    def begun(work: Callable[[], None]) -> None:
        start.wait(_ANSWER_S)
        work()

    def together(works: Sequence[Callable[[], None]]) -> None:
        for future in [pool.submit(begun, each) for each in works]:
            future.result(_ANSWER_S)

    with ThreadPoolExecutor(count) as pool:
        try:
            yield together
        finally:
            sys.setswitchinterval(before)
