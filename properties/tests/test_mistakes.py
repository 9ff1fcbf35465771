"""A planner's own mistake is named and left inconclusive; a harness that fails says so and goes on to the next."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from failstop.planners.actions import Approve, Call, Parallel, Spawn, ToolFailed
from failstop.planners.catalogue import GUARANTEES, Expected, bundled
from failstop.properties import evidence
from failstop.properties.check import Variation, check
from failstop.properties.evidence import HOLDS, INCONCLUSIVE, VIOLATED
from failstop.properties.targets.failstop import FailstopTarget
from failstop.properties.targets.failstop_loop import LoopTarget
from failstop.properties.tests.canaries import UNLIMITED, Canary, Unlimited

if TYPE_CHECKING:
    from collections.abc import Callable

    from failstop.planners.actions import Plan
    from failstop.planners.catalogue import Planner
    from failstop.properties.world import World
    from failstop.runtime.limits import Limits

PLANNERS = bundled()


def playing(make: Callable[..., Any], name: str = "never-finishes") -> Planner:
    """Give a known planner another script."""
    return dataclasses.replace(PLANNERS[name], make=make)


def yields(action: Any) -> Callable[[], Plan]:
    """Make a plan of one action."""

    def plan() -> Plan:
        yield action

    return plan


MISTAKES: list[tuple[Any, str]] = [
    (Call("serach"), "there is no tool 'serach'; did you mean search?"),
    (Call(None), "there is no tool None"),  # type: ignore[arg-type]  # that is the mistake
    (Call("search", misbehaves="hang"), "there is no misbehaviour 'hang'; did you mean hangs?"),
    (Call("search", cost="a lot"), "cost is 'a lot'"),
    (Call("search", estimate=-1), "estimate is -1"),
    (Call("search", ["cats"]), "the args of 'search' are a list"),  # type: ignore[arg-type]  # that is the mistake
    (Call("search", retries=-1), "the retries of 'search' are -1"),
    (Call("search", inside=Call("serach")), "there is no tool 'serach'"),
    (Parallel((Call("serach"),)), "there is no tool 'serach'"),
    (Parallel(("search",)), "Parallel is given a str among its calls"),  # type: ignore[arg-type]  # that is the mistake
    (Spawn("agent"), "Spawn is given a str"),  # type: ignore[arg-type]  # that is the mistake
    (Spawn(lambda: [Call("search")]), "it gives a list, which yields nothing"),  # type: ignore[arg-type, return-value]  # that is the mistake
    (Spawn(yields(Call("serach"))), "there is no tool 'serach'"),
    (Approve("yes"), "Approve is given a str"),  # type: ignore[arg-type]  # that is the mistake
    ("search", "it yields a str, which is no action"),
]


@pytest.mark.parametrize(("action", "told"), MISTAKES)
def test_what_nobody_could_play_is_the_planners_mistake(action: Any, told: str) -> None:
    """No target is to be blamed for it."""
    record = check(playing(yields(action)), FailstopTarget())
    assert record.verdict == INCONCLUSIVE
    assert f"the planner made a mistake: {told}" in record.detail


@pytest.mark.parametrize("action", [Call("serach"), Call("search", misbehaves="hang"), Call("search", cost="a lot")])
def test_a_loop_is_not_blamed_either(action: Call) -> None:
    """Where the target plays the planner itself."""
    record = check(playing(yields(action)), LoopTarget())
    assert record.verdict == INCONCLUSIVE
    assert "the planner made a mistake: " in record.detail


def test_a_mistake_is_none_of_the_targets_under_bad_tools_either() -> None:
    """Nothing was dispatched, for there was nothing to dispatch."""
    record = check(playing(yields(Call("serach"))), FailstopTarget(), Variation(misbehaviour="always-fails"))
    assert record.verdict == INCONCLUSIVE
    assert "the planner made a mistake: there is no tool 'serach'" in record.detail


def test_a_plan_that_is_no_generator_is_the_planners_mistake() -> None:
    """The decorator refuses it; a Planner can be made without one."""
    record = check(playing(lambda: [Call("search")]), FailstopTarget())
    assert (record.verdict, record.detail) == (
        INCONCLUSIVE,
        "the planner made a mistake: it gives a list, which yields nothing; is a yield missing?",
    )


def test_a_mistake_that_the_planner_swallows_is_still_its_mistake() -> None:
    """A happy path that could not be walked is not the target's doing."""

    def misspells() -> Plan:
        for _ in range(3):
            try:
                yield Call("serach")
            except ToolFailed:
                continue

    misspelt = dataclasses.replace(playing(misspells, "well-behaved"), expected=Expected(dispatches=3))
    assert check(misspelt, FailstopTarget()).verdict == INCONCLUSIVE


def test_a_mistake_excuses_no_ceiling_that_was_passed() -> None:
    """What the world saw counts, whoever provoked it."""

    def goes_wrong_late() -> Plan:
        for _ in range(6):
            yield Call("search")
        yield Call("serach")

    record = check(playing(goes_wrong_late), UNLIMITED)
    assert record.verdict == VIOLATED
    assert "6 calls dispatched under a ceiling of 5 steps" in record.detail


def test_a_mistake_made_on_purpose_still_judges() -> None:
    """The planners that break are no less an attack for it."""
    assert check(PLANNERS["repeats-an-unknown-tool"], UNLIMITED).verdict == VIOLATED
    assert check(PLANNERS["returns-wrong-types"], UNLIMITED).verdict == VIOLATED
    assert check(PLANNERS["returns-wrong-types"], FailstopTarget()).verdict == HOLDS


def test_a_mistake_made_on_purpose_is_none_where_the_run_ended_as_it_may() -> None:
    """It recovers from a tool that does not exist, and then the one that does fails."""
    record = check(PLANNERS["hallucinates"], FailstopTarget(), Variation(misbehaviour="always-fails"))
    assert (record.verdict, record.about["ended_in"]) == (HOLDS, "failed")


@pytest.mark.parametrize("misbehaviour", ["always-fails", "raises-an-interrupt"])
def test_a_call_after_the_end_that_fails_crashes_no_check(misbehaviour: str) -> None:
    """It was dispatched, which the world has counted; what it raised is of no interest."""
    record = check(PLANNERS["calls-after-close"], UNLIMITED, Variation(misbehaviour=misbehaviour))
    assert record.verdict in {HOLDS, INCONCLUSIVE, VIOLATED}
    assert "harness" not in record.detail
    assert record.effort["dispatches"] == 2


class Exploding(Canary):
    """A target whose cleaning up breaks."""

    def open(self, limits: Limits, world: World) -> Any:
        """Leave something behind that cannot be ended."""
        world.at_end(explode)
        return super().open(limits, world)


def explode() -> None:
    """Break."""
    raise OSError("the disk is gone")


def test_a_harness_that_fails_is_inconclusive_and_says_how() -> None:
    """One planner that cannot be played must not hide what the others found."""
    record = check(PLANNERS["well-behaved"], Exploding("exploding", lambda _: Unlimited()))
    assert record.verdict == INCONCLUSIVE
    assert "the harness failed: OSError: the disk is gone" in record.detail


def test_every_guarantee_of_a_planner_can_stand_in_a_record() -> None:
    """Otherwise its record could not be written."""
    assert set(GUARANTEES) <= set(evidence.GUARANTEES)
