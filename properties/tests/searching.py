"""Searching scenarios in tests: what is right is searched to its end, and of what is wrong a schedule is found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from failstop.properties.schedules.explorer import Reach, Search, Violation, explore, replay
from failstop.properties.targets.failstop import FailstopTarget

if TYPE_CHECKING:
    from collections.abc import Callable

    from failstop.properties.scenario import Scenario


class NoLock:
    """A lock that keeps nobody out."""

    def acquire(self) -> bool:
        return True

    def release(self) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *of_an_error: object) -> None:
        pass


def without_its_lock(opened: Callable[..., None]) -> Callable[..., None]:
    """Wrap the `__init__` of a class whose lock is `_lock`."""

    def wrong(self: object, *given: object, **named: object) -> None:
        opened(self, *given, **named)
        self._lock = NoLock()

    return wrong


def searched(scenario: Scenario, traced: tuple[str, ...] = ()) -> Search:
    """Search every schedule of our own target as it is now."""
    return explore(scenario, FailstopTarget(), Reach(traced=traced), exact=True)


def caught(scenario: Scenario, traced: tuple[str, ...] = ()) -> Violation:
    """Give the violation that is found in our own target as it is now; its schedule shows it again."""
    search = searched(scenario, traced)
    assert search.violation is not None, f"nothing was found in {search.schedules} schedules; {search.stuck}"
    again = replay(scenario, FailstopTarget(), search.violation.schedule, exact=True, traced=traced)
    assert again is not None
    assert again.told == search.violation.told
    return search.violation


def by_name(scenarios: tuple[Scenario, ...]) -> dict[str, Scenario]:
    """Give the scenarios by their names, each of which stands for one."""
    named = {scenario.name: scenario for scenario in scenarios}
    assert len(named) == len(scenarios)
    return named
