"""The tools of the world and the ways in which they misbehave, played by hand."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from failstop.planners import toolset
from failstop.planners.actions import Call, ToolFailed
from failstop.planners.toolset import FOREVER, MISBEHAVIOURS, PAST_DEADLINE, TOOLS, Tool, worsened
from failstop.runtime.risk import RiskTier
from failstop.runtime.stops import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping


class Room:
    """Surroundings small enough to be looked over."""

    def __init__(self, seed: int = 0) -> None:
        self.random = Random(seed)
        self.seconds_left = 5.0
        self.effects: list[tuple[str, Mapping[Any, Any]]] = []
        self._asked: Counter[str] = Counter()

    def effect(self, name: str, args: Mapping[Any, Any]) -> None:
        """See Surroundings."""
        self.effects.append((name, args))

    def attempts(self, name: str) -> int:
        """See Surroundings."""
        self._asked[name] += 1
        return self._asked[name] - 1


def played(tool: Tool, room: Room) -> tuple[list[float], Any]:
    """Run a tool to its end; the seconds that it took, and its value."""
    waits: list[float] = []
    behaviour = tool.behave(room, {"to": "alice"})
    while True:
        try:
            waits.append(next(behaviour))
        except StopIteration as end:
            return waits, end.value
        room.seconds_left -= waits[-1]


class TestTools:
    """What they do when nothing is wrong."""

    def test_an_irreversible_tool_leaves_its_mark_in_the_world(self) -> None:
        """The witness is the email and not a return value."""
        room = Room()
        assert played(TOOLS["send_email"], room) == ([], "sent")
        assert room.effects == [("send_email", {"to": "alice"})]
        assert TOOLS["send_email"].tier is RiskTier.IRREVERSIBLE

    def test_a_users_own_tool_joins_the_world(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The decorator that makes ours makes theirs."""
        monkeypatch.setattr(toolset, "_tools", {})

        @toolset.tool(RiskTier.WRITE)
        def water_plants(_around: toolset.Surroundings, args: toolset.Args) -> int:
            return len(args)

        made = toolset._tools["water_plants"]
        assert made.tier is RiskTier.WRITE
        assert played(made, Room()) == ([], 1)

    def test_a_users_tool_cannot_replace_one_of_the_world(self) -> None:
        """A planner's expectations rest on what `search` does."""

        def search(_around: toolset.Surroundings, _args: toolset.Args) -> None:
            return None

        with pytest.raises(ConfigurationError, match="search"):
            toolset.tool()(search)


class TestMisbehaviours:
    """Each makes any tool worse in one way."""

    def test_fails_twice_then_works(self) -> None:
        """What it fails at is the call, not the tool: the third attempt does what the tool does."""
        room, tool = Room(), worsened(TOOLS["write_file"], "fails-twice")
        for _ in range(2):
            with pytest.raises(ToolFailed):
                played(tool, room)
        assert played(tool, room) == ([], "written")

    def test_chance_is_replayed_by_its_seed(self) -> None:
        """The same seed gives the same failures, another seed others."""

        def failures(seed: int) -> list[bool]:
            room, tool, failed = Room(seed), worsened(TOOLS["search"], "fails-at-random"), []
            for _ in range(32):
                try:
                    played(tool, room)
                except ToolFailed:
                    failed.append(True)
                else:
                    failed.append(False)
            return failed

        assert failures(1) == failures(1)
        assert failures(1) != failures(2)
        assert {True, False} == set(failures(1))

    @pytest.mark.parametrize(
        ("name", "waits"),
        [
            ("slow", [2.0]),
            ("hangs", [FOREVER]),
            ("streams-for-ever", [1.0] * 5 + [FOREVER]),
            ("writes-late", [PAST_DEADLINE]),
        ],
    )
    def test_a_tool_takes_its_time_as_it_says(self, name: str, waits: list[float]) -> None:
        """Time is yielded and never slept."""
        assert played(worsened(TOOLS["search"], name), Room())[0] == waits

    def test_what_a_tool_returns_can_be_too_much_or_of_no_use(self) -> None:
        """A hundred megabytes, and an object that says nothing."""
        assert len(played(worsened(TOOLS["search"], "returns-100-mb"), Room())[1]) == 10**8
        assert type(played(worsened(TOOLS["search"], "returns-a-wrong-type"), Room())[1]) is object

    def test_what_a_tool_raises_need_not_be_an_exception(self) -> None:
        """KeyboardInterrupt passes every `except Exception`."""
        with pytest.raises(KeyboardInterrupt):
            played(worsened(TOOLS["search"], "raises-an-interrupt"), Room())

    def test_misbehaviours_add_up_from_the_inside_out(self) -> None:
        """One tool can be slow and then fail; or fail at once, however slow it would have been."""
        room = Room()
        with pytest.raises(ToolFailed):
            played(worsened(TOOLS["search"], "slow", "always-fails"), room)
        assert room.seconds_left == 5.0
        with pytest.raises(ToolFailed):
            played(worsened(TOOLS["search"], "always-fails", "slow"), room)
        assert room.seconds_left == 3.0

    def test_an_unknown_misbehaviour_is_refused_by_name(self) -> None:
        """With the names that there are."""
        with pytest.raises(ConfigurationError, match=r"sulks.*always-fails"):
            worsened(TOOLS["search"], "sulks")

    def test_each_says_in_one_line_what_it_does(self) -> None:
        """The command line shows it."""
        assert all(each.does and "\n" not in each.does for each in MISBEHAVIOURS.values())


class TestCalls:
    """What a call says of its cost."""

    def test_a_call_is_honest_unless_it_says_otherwise(self) -> None:
        """The estimate and the report are what it costs."""
        call = Call("model", cost="0.30")
        assert (call.reserve, call.reported) == ("0.30", "0.30")

    def test_a_call_can_lie_and_can_stay_silent(self) -> None:
        """No estimate is not an estimate of nothing."""
        call = Call("model", cost="0.30", estimate=None, reports=None)
        assert (call.reserve, call.reported) == (None, None)
