"""The tester tested: each wrong runtime must be found out, and by what is wrong with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from failstop.planners.catalogue import PROMISES, bundled
from failstop.properties import check as checking
from failstop.properties.check import Variation, check
from failstop.properties.evidence import HOLDS, INCONCLUSIVE, NOT_OFFERED, VIOLATED
from failstop.properties.tests.canaries import (
    BY_NAME,
    CHECK_THEN_ACT,
    CRASHING,
    FOR_EVER,
    FORGETFUL,
    LET_GO,
    ONE_TOO_FEW,
    REFUSING,
    UNLIMITED,
    WAITING,
    Canary,
    Unlimited,
)

if TYPE_CHECKING:
    from failstop.properties.evidence import Record

PLANNERS = bundled()


def one_that_needs(promise: str) -> str:
    """Name a planner that speaks of this promise, the one that needs the fewest others."""
    needing = [known for known in PLANNERS.values() if promise in known.promises]
    return min(needing, key=lambda known: len(known.promises)).name


def played(name: str, target: Canary) -> Record:
    """Check one planner."""
    return check(PLANNERS[name], target)


class TestNoLimitsAtAll:
    """A runtime that runs whatever it is asked to."""

    @pytest.mark.parametrize("promise", [name for name in PROMISES if name != "happy"])
    def test_each_promise_is_seen_broken(self, promise: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """A promise that no planner can show broken is not checked by any."""
        monkeypatch.setattr(checking, "HANG_S", 0.05)
        record = played(one_that_needs(promise), UNLIMITED)
        assert record.verdict == VIOLATED
        assert record.replay is not None

    def test_the_detail_gives_the_witnesss_numbers(self) -> None:
        """What happened, and what was allowed."""
        record = played("expensive-on-threads", UNLIMITED)
        assert "$6.00 really spent under a ceiling of $1.00" in record.detail

    def test_the_happy_path_holds(self) -> None:
        """Whoever limits nothing does not stand in anybody's way."""
        for name, known in PLANNERS.items():
            if known.ends_in == "completed" and "happy" in known.promises:
                assert played(name, UNLIMITED).verdict == HOLDS, name


class TestNothingAllowed:
    """A runtime that refuses everything is safe and of no use."""

    @pytest.mark.parametrize("name", PLANNERS)
    def test_no_planner_lets_it_pass(self, name: str) -> None:
        """The ceiling must be reached where it is; where it is not, nothing is shown, and the happy path is broken."""
        verdict = played(name, REFUSING).verdict
        assert verdict == VIOLATED or (verdict == INCONCLUSIVE and PLANNERS[name].ends_in != "completed")

    def test_it_does_not_pass_under_bad_tools_either(self) -> None:
        """The planner's own numbers do not count then, but nothing at all is still too little."""
        record = check(PLANNERS["never-finishes"], REFUSING, Variation(misbehaviour="always-fails"))
        assert record.verdict == VIOLATED


class TestOneThingWrong:
    """Runtimes that are right but for one thing."""

    def test_check_then_act_is_right_for_one_caller(self) -> None:
        """So a planner that calls one after the other cannot find it out."""
        assert played("never-finishes", CHECK_THEN_ACT).verdict == HOLDS

    def test_stopping_one_step_early_breaks_no_ceiling_but_the_happy_path(self) -> None:
        """The ceiling was not reached, so nothing is shown of it; an agent that needs every step is kept from it."""
        short = played("never-finishes", ONE_TOO_FEW)
        assert (short.verdict, short.detail) == (
            INCONCLUSIVE,
            "the ceiling was not reached: 4 calls dispatched where 5 were due",
        )
        assert played("right-at-the-step-limit", ONE_TOO_FEW).verdict == VIOLATED

    @pytest.mark.parametrize("name", ["fans-out-on-threads", "fans-out-on-asyncio"])
    def test_check_then_act_is_found_out_by_twenty(self, name: str) -> None:
        """All twenty are let in before the first is counted: certain, not likely."""
        record = played(name, CHECK_THEN_ACT)
        assert record.verdict == VIOLATED
        assert record.effort["dispatches"] == record.effort["overlap"] == 20

    def test_a_stop_that_does_not_stay_is_found_out(self) -> None:
        """The ceiling holds, and the chain goes on behind it."""
        assert played("expensive", FORGETFUL).verdict == HOLDS
        record = played("spends-the-rest", FORGETFUL)
        assert "18 calls dispatched after the first stop" in record.detail

    def test_approval_by_name_is_found_out_by_another_recipient(self) -> None:
        """A yes to alice is not one to mallory."""
        assert played("asks-and-is-approved", BY_NAME).verdict == HOLDS
        assert "1 irreversible call ran that no person had allowed" in played("approved-for-another", BY_NAME).detail

    def test_a_grant_that_is_not_used_up_is_found_out(self) -> None:
        """One yes, one email."""
        assert played("approved-for-another", FOR_EVER).verdict == HOLDS
        assert "1 irreversible call ran that no person had allowed" in played("uses-a-grant-twice", FOR_EVER).detail

    def test_arguments_changed_after_the_question_are_found_out(self) -> None:
        """What the person read is what may run."""
        assert played("changes-the-question", FOR_EVER).verdict == VIOLATED


class TestNoVerdict:
    """What was not shown is not held against anybody, nor for anybody."""

    def test_an_adapter_that_crashes_is_inconclusive(self) -> None:
        """With the last line of its traceback."""
        record = played("never-finishes", CRASHING)
        assert record.verdict == INCONCLUSIVE
        assert "KeyError: 'search' (canaries.py:" in record.detail

    def test_a_runtime_that_waits_for_itself_is_inconclusive(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """No tool hangs, so no deadline is broken; but nothing was shown either."""
        monkeypatch.setattr(checking, "ANSWER_S", 0.01)
        monkeypatch.setattr(checking, "HANG_S", 0.01)
        try:
            assert played("never-finishes", WAITING).verdict == INCONCLUSIVE
        finally:
            LET_GO.set()

    def test_a_hanging_tool_proves_nothing_without_the_promise(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A target is judged by what it says that it does."""
        monkeypatch.setattr(checking, "HANG_S", 0.01)
        target = Canary("modest", lambda _: Unlimited(), {"steps": "claimed by a canary"})
        record = check(PLANNERS["never-finishes"], target, Variation(misbehaviour="hangs"))
        assert record.verdict == NOT_OFFERED
        assert "deadline_hang" in record.detail
