"""The stress layer: threads that run freely, judged by what can be explained."""

from __future__ import annotations

from typing import TYPE_CHECKING

from failstop.properties import stress
from failstop.properties.evidence import HOLDS, INCONCLUSIVE, NOT_OFFERED, VIOLATED
from failstop.properties.scenarios import catalogue
from failstop.properties.targets.failstop import FailstopTarget
from failstop.runtime.chain import ledger as shell
from failstop.runtime.cores import ledger as core

if TYPE_CHECKING:
    import pytest

LAST_STEPS = catalogue.crowds()["crowd-at-the-last-steps"]


def outcome(target=None, scenario=LAST_STEPS, depth="quick"):
    """Play one scenario."""
    (record,) = stress.check_stress(target or FailstopTarget(), "failstop", [scenario], depth)
    return record


def test_a_crowd_at_the_last_steps_can_be_explained():
    """Eight threads, many histories, each short."""
    record = outcome()
    assert record.verdict == HOLDS
    assert record.effort["threads"] == 8
    assert record.effort["histories"] >= 30


def test_an_admission_that_is_decided_twice_is_found(monkeypatch: pytest.MonkeyPatch):
    """A count that is taken before the lock lets two callers have the same step."""
    admit = core.admit

    def forgetful(state, bounds, *asked):
        after, verdict = admit(state, bounds, *asked)
        return (state if verdict == core.ADMITTED and state[2] == bounds[1] - 1 else after), verdict

    monkeypatch.setattr(shell.core, "admit", forgetful)
    record = outcome()
    assert record.verdict == VIOLATED
    assert "admitted" in record.detail
    assert record.replay


def test_a_few_histories_show_nothing(monkeypatch: pytest.MonkeyPatch):
    """What was hardly tried is not told as holding."""
    monkeypatch.setitem(stress.SECONDS, "quick", 0.0)
    assert outcome().verdict == INCONCLUSIVE


def test_a_target_that_promises_nothing_is_not_judged():
    """By its own words, which the record repeats."""
    target = FailstopTarget()
    target.promises = {}
    target.not_offered = {"steps_parallel": "it counts in the evening"}
    record = outcome(target)
    assert (record.verdict, record.detail) == (NOT_OFFERED, "it counts in the evening")


def test_a_target_that_breaks_shows_nothing():
    """Neither for it nor against it."""

    class Broken(FailstopTarget):
        def open(self, limits, world):
            raise OSError("no disk")

    record = outcome(Broken())
    assert (record.verdict, "no disk" in record.detail) == (INCONCLUSIVE, True)


def test_a_violation_comes_with_a_schedule_where_a_search_finds_one(monkeypatch: pytest.MonkeyPatch):
    """What ran freely cannot be run again, a schedule can."""
    admit = core.admit
    monkeypatch.setattr(
        shell.core, "admit", lambda state, bounds, *asked: admit(state, (*bounds[:1], -1, *bounds[2:]), *asked)
    )
    record = outcome(scenario=catalogue.quick()["last-step"])
    assert record.verdict == VIOLATED
    assert record.replay.startswith("failstop replay schedules/failstop/last-step/")
