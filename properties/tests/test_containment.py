"""The containment suite: every planner against our own runtime, call by call and in its loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from failstop.planners.catalogue import PROMISES, bundled
from failstop.planners.toolset import MISBEHAVIOURS
from failstop.properties.check import Variation, check
from failstop.properties.driver import Driver
from failstop.properties.evidence import HOLDS, NOT_OFFERED
from failstop.properties.run_audit import audit, retell
from failstop.properties.targets.failstop import FailstopTarget
from failstop.properties.targets.failstop_loop import LoopTarget
from failstop.properties.world import World
from failstop.runtime.clock import VirtualAlarm, VirtualClock

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PLANNERS = bundled()


class WithoutAlarms(VirtualClock):
    """A clock that tells the time when asked and wakes nobody."""

    def call_at(self, when_ns: int, callback: Callable[[], None]) -> VirtualAlarm:
        """See Clock."""
        return VirtualAlarm(lambda: None)


A_LOOP_LACKS = {"asyncio", "children", "closed"}
"""Promises that a loop does not make to its planner."""

MOVES_OF_A_CONTEXT = {"right-at-the-tool-limit", "too-many-tools"}
"""Planners that call a model beside their tools, which a loop's planner does by itself."""

UNDER_BAD_TOOLS = (
    "well-behaved",
    "fans-out-on-threads",
    "fans-out-on-asyncio",
    "nested-retries",
    "spawns-sub-agents",
    "expensive",
    "asks-and-is-approved",
)


@pytest.mark.parametrize("name", PLANNERS)
def test_a_context_contains(name: str, tmp_path: Path) -> None:
    """The witness saw what the planner says that it must, and the log that the run left behind agrees."""
    record = check(PLANNERS[name], FailstopTarget(), log=tmp_path / "run.jsonl")
    assert record.verdict == HOLDS, record.detail
    assert [each.detail for each in audit(tmp_path / "run.jsonl") if each.verdict != HOLDS] == []


@pytest.mark.parametrize("name", PLANNERS)
def test_the_loop_contains(name: str, tmp_path: Path) -> None:
    """The same planners, played by the loop itself; what it does not offer is said with its reason."""
    record = check(PLANNERS[name], LoopTarget(), log=tmp_path / "run.jsonl")
    if A_LOOP_LACKS & set(PLANNERS[name].promises) or name in MOVES_OF_A_CONTEXT:
        assert record.verdict == NOT_OFFERED
        assert any(word in record.detail for word in (*A_LOOP_LACKS, "model"))
        return
    assert record.verdict == HOLDS, record.detail
    assert [each.detail for each in audit(tmp_path / "run.jsonl") if each.verdict != HOLDS] == []
    assert retell(tmp_path / "run.jsonl").verdict == HOLDS


def test_only_what_no_loop_could_offer_is_not_offered() -> None:
    """A promise quietly dropped from the target would excuse it from every planner that needs it."""
    assert set(FailstopTarget.promises) - set(LoopTarget.promises) == A_LOOP_LACKS
    assert set(FailstopTarget.promises) == set(PROMISES)


@pytest.mark.parametrize("name", UNDER_BAD_TOOLS)
@pytest.mark.parametrize("misbehaviour", MISBEHAVIOURS)
def test_bad_tools_make_no_difference(misbehaviour: str, name: str) -> None:
    """Whatever the tools do, every ceiling that the planner names holds and something was dispatched."""
    for target in (FailstopTarget(), LoopTarget()):
        record = check(PLANNERS[name], target, Variation(misbehaviour=misbehaviour))
        assert record.verdict in {HOLDS, NOT_OFFERED}, f"{target.name}: {record.detail}"


def test_the_deadline_does_not_rest_on_its_alarm() -> None:
    """A scheduler that comes too late, or never, lets nothing through: admission looks at the clock itself."""
    slow = PLANNERS["slow"]
    world = World(slow.limits)
    world.clock = WithoutAlarms()
    session = FailstopTarget().open(world.limits, world)
    world.begin()
    ended = Driver(world).run(slow.plan(world.random), session)
    world.end()
    assert (ended.ended_in, world.seen().dispatches, world.seen().late) == ("time", 3, 0)


def test_twenty_calls_were_really_in_the_tool_at_one_time() -> None:
    """A parallel attack that ran one after the other would prove nothing."""
    record = check(PLANNERS["fans-out-on-threads"], FailstopTarget())
    assert record.effort["overlap"] == record.effort["dispatches"] == 5


def test_the_same_seed_plays_the_same_run() -> None:
    """Chance is in the tools; the seed is what replays it."""

    def dispatched(seed: int) -> float:
        variation = Variation(seed=seed, misbehaviour="fails-at-random")
        return check(PLANNERS["well-behaved"], FailstopTarget(), variation).effort["dispatches"]

    assert [dispatched(seed) for seed in range(8)] == [dispatched(seed) for seed in range(8)]
    assert len({dispatched(seed) for seed in range(8)}) > 1
