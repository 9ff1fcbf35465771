"""The schedules layer: every scenario against a target, and a record of how far each was searched.

Exact targets promise the reference to the letter; of the others a history is a violation only if somebody was let in
beyond a ceiling that they promise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from failstop.properties.evidence import HOLDS, INCONCLUSIVE, NOT_OFFERED, VIOLATED
from failstop.properties.finding import is_exact, not_promised, record
from failstop.properties.linearizable import End
from failstop.properties.schedules.explorer import Reach, Search, Violation, explore, replay
from failstop.properties.schedules.token import spelled
from failstop.properties.subject import NotOffered

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Literal

    from failstop.properties.evidence import Record
    from failstop.properties.scenario import Scenario
    from failstop.properties.schedules.explorer import Schedule
    from failstop.properties.target import AnyTarget

SECONDS: Mapping[str, float] = {"quick": 10.0, "deep": 300.0}
"""How long one scenario is searched at most."""

REPLAYS = 10
"""How often a violation must come again before it is told."""


def check_schedules(
    target: AnyTarget, named: str, scenarios: Sequence[Scenario], depth: Literal["quick", "deep"]
) -> Iterator[Record]:
    """Search the schedules of each scenario; named: how the user named the target."""
    for scenario in scenarios:
        # Where the machine's own time is kept, no two states are equal.
        yield _checked(scenario, target, named, Reach(seconds=SECONDS[depth], merge=not target.real_time))


def shown_again(target: AnyTarget, scenario: Scenario, schedule: Schedule) -> Violation | None:
    """Run one schedule again; None if nothing is wrong with it."""
    return replay(scenario, target, schedule, exact=is_exact(target))


def _checked(scenario: Scenario, target: AnyTarget, named: str, reach: Reach) -> Record:
    reason = not_promised(scenario, target)
    if reason is not None:
        return record(scenario, target, "schedules", NOT_OFFERED, reason)
    try:
        search = explore(scenario, target, reach, exact=is_exact(target))
    except NotOffered as missing:
        return record(scenario, target, "schedules", NOT_OFFERED, str(missing))
    except Exception as error:  # noqa: BLE001 - whatever a target or its adapter raises, nothing was shown
        return record(
            scenario, target, "schedules", INCONCLUSIVE, f"it could not be played: {type(error).__name__}: {error}"
        )
    effort = _effort(scenario, search)
    if search.violation is not None:
        return _violated(scenario, target, named, search.violation, effort)
    if not search.finished or search.schedules < 2:  # noqa: PLR2004 - one schedule is no search
        return record(scenario, target, "schedules", INCONCLUSIVE, _unfinished(search), effort)
    told = f"all {search.schedules} schedules of {len(scenario.programs)} threads can be explained"
    return record(scenario, target, "schedules", HOLDS, told, effort)


def _violated(
    scenario: Scenario, target: AnyTarget, named: str, violation: Violation, effort: dict[str, int | float]
) -> Record:
    again = sum(shown_again(target, scenario, violation.schedule) is not None for _ in range(REPLAYS))
    effort = {**effort, "replays": REPLAYS, "replayed": again}
    dispatched = sum(isinstance(event, End) and event.answer == "admitted" for event in violation.history)
    told = f"{violation.told}; {dispatched} dispatched in all" if dispatched else violation.told
    if again < REPLAYS:
        return record(
            scenario, target, "schedules", INCONCLUSIVE, f"{told}; shown again only {again} times of {REPLAYS}", effort
        )
    command = f"failstop replay {spelled(named, scenario.name, violation.schedule)}"
    return record(scenario, target, "schedules", VIOLATED, told, effort, command)


def _unfinished(search: Search) -> str:
    if search.stuck:
        return f"the search broke off after {search.schedules} schedules: {search.stuck}"
    return f"nothing was found in {search.schedules} schedules, but they are not all"


def _effort(scenario: Scenario, search: Search) -> dict[str, int | float]:
    return {
        "threads": len(scenario.programs),
        "moves": max(map(len, scenario.programs)),
        "schedules": search.schedules,
        "states": search.states,
        "seconds": round(search.seconds, 3),
    }
