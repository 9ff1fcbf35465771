"""A planner whose tools misbehave ends as it must, or as that misbehaviour makes it; no other ending passes."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import TYPE_CHECKING

import pytest

from failstop.planners.actions import STOPS, Call, ToolFailed
from failstop.planners.catalogue import ENDINGS, bundled
from failstop.planners.toolset import MISBEHAVIOURS
from failstop.properties.check import Variation, check
from failstop.properties.evidence import HOLDS, INCONCLUSIVE, VIOLATED
from failstop.properties.target import Refused
from failstop.properties.tests.canaries import Canary, Unlimited
from failstop.properties.verdict import BROUGHT_ABOUT, SPARED, right_endings
from failstop.runtime.limits import Limits

if TYPE_CHECKING:
    from failstop.planners.actions import Plan
    from failstop.properties.target import Work

PLANNERS = bundled()


class StopsInsteadOf(Unlimited):
    """Runs one call and then stops the chain, always with the same stop."""

    def __init__(self, stop: str) -> None:
        self._stop = stop
        self._ran = False

    def call(self, work: Work) -> object:
        """Run the first."""
        if self._ran:
            raise Refused(self._stop)
        self._ran = True
        return super().call(work)


class LateAnswers(Unlimited):
    """Runs the first call, and answers every other without running it."""

    def __init__(self) -> None:
        self._ran = False

    def call(self, work: Work) -> object:
        """Run one."""
        if self._ran:
            return None
        self._ran = True
        return super().call(work)


def swallows_and_goes_on() -> Plan:
    """Search for ever, whatever comes of it."""
    while True:
        with contextlib.suppress(Exception):
            yield Call("model")


def tries_twice() -> Plan:
    """Shrug off what comes of the first search, and let through what comes of the second."""
    with contextlib.suppress(ToolFailed):
        yield Call("search")
    yield Call("search")


def gives_up() -> Plan:
    """Be content with whatever comes of one search."""
    yield Call("search")


def test_every_misbehaviour_says_how_it_may_end_a_run() -> None:
    """One without a row could end in anything, or in nothing."""
    assert set(BROUGHT_ABOUT) == set(MISBEHAVIOURS)
    assert {ending for endings in BROUGHT_ABOUT.values() for ending in endings} <= set(ENDINGS)
    assert set().union(*SPARED.values()) <= set(MISBEHAVIOURS)


@pytest.mark.parametrize("misbehaviour", ["always-fails", "slow", "returns-a-wrong-type"])
@pytest.mark.parametrize("stop", [stop for stop in STOPS if stop != "steps"])
def test_a_stop_that_nothing_called_for_is_a_breach(misbehaviour: str, stop: str) -> None:
    """Under tools that misbehave any stop used to do."""
    tries = dataclasses.replace(PLANNERS["never-finishes"], make=tries_twice)
    record = check(tries, Canary("wrong-stop", lambda _: StopsInsteadOf(stop)), Variation(misbehaviour=misbehaviour))
    assert record.verdict == VIOLATED
    assert f"it ended in {stop}" in record.detail


def test_a_ceiling_that_the_planner_lacks_is_none_of_its_endings() -> None:
    """Nobody can run out of time that was not limited."""
    assert right_endings(PLANNERS["never-finishes"], "slow") == ("steps",)
    assert right_endings(PLANNERS["never-finishes"], "always-fails") == ("steps", "failed")
    assert right_endings(PLANNERS["slow"], "slow") == ("time",)
    assert right_endings(PLANNERS["nested-retries"], "always-fails") == ("retries", "failed")


def test_a_run_that_never_ends_shows_nothing() -> None:
    """Its tools take no time, so its deadline never comes: that is nobody's fault and nobody's merit."""
    record = check(PLANNERS["slow"], Canary("unlimited", lambda _: Unlimited()), Variation(misbehaviour="always-fails"))
    assert record.verdict == HOLDS  # it lets the failure through
    record = check(
        PLANNERS["slow"], Canary("unlimited", lambda _: Unlimited()), Variation(misbehaviour="returns-a-wrong-type")
    )
    assert (record.verdict, record.about["ended_in"]) == (INCONCLUSIVE, "never")
    assert "still going on" in record.detail


def test_a_run_that_goes_on_behind_a_hanging_tool_is_a_breach() -> None:
    """Who promises an answer at the deadline has to end the run there."""
    goes_on = dataclasses.replace(PLANNERS["slow"], make=swallows_and_goes_on, limits=Limits(max_seconds=5))
    record = check(goes_on, Canary("late", lambda _: LateAnswers()), Variation(misbehaviour="writes-late"))
    assert record.verdict == VIOLATED
    assert "it was still going on when it had to end in time" in record.detail


def test_a_planner_that_is_content_with_less_is_held_against_nobody() -> None:
    """It completed by itself, and its ceiling was never reached."""
    content = dataclasses.replace(PLANNERS["never-finishes"], make=gives_up)
    record = check(content, Canary("unlimited", lambda _: Unlimited()), Variation(misbehaviour="slow"))
    assert (record.verdict, record.detail) == (
        INCONCLUSIVE,
        "nothing is shown: it ended in completed and not in steps",
    )


def test_the_record_says_which_endings_were_right() -> None:
    """A reader can hold the one against the other."""
    record = check(PLANNERS["never-finishes"], Canary("u", lambda _: Unlimited()), Variation(misbehaviour="stream-cut"))
    assert record.about["must_end_in"] == "steps, failed"
