"""The witness and the gate, by hand: every number that a verdict can rest on, where a reader can count along."""

from __future__ import annotations

import asyncio
import threading

import pytest

from failstop.planners.actions import Call
from failstop.properties.gate import Gate
from failstop.properties.world import World
from failstop.runtime.clock import SystemClock
from failstop.runtime.limits import Limits

ONE_DOLLAR = Limits(max_cost_usd=1)


def dispatched(world: World, call: Call, times: int = 1) -> None:
    """Ask, dispatch so often, and answer."""
    asked = world.ask(call, None)
    for _ in range(times):
        world.dispatch(asked, "tool")
        world.ended()
    world.answered(asked)


class TestCounting:
    """What is counted, and when."""

    def test_a_second_dispatch_of_one_call_is_a_retry(self) -> None:
        """The first is the operation itself."""
        world = World(Limits())
        dispatched(world, Call("search"), times=3)
        dispatched(world, Call("search"))
        assert (world.seen().dispatches, world.seen().retries) == (4, 2)

    def test_money_is_gone_when_the_dispatch_begins(self) -> None:
        """Whatever comes back, and also from a stub that is still running."""
        world = World(ONE_DOLLAR)
        world.dispatch(world.ask(Call("model", cost="0.30"), None), "llm")
        assert world.seen().spent_nano == 300_000_000

    def test_only_the_calls_in_flight_explain_an_overrun(self) -> None:
        """A call that costs more than it said may pass the ceiling once; the next one may not."""
        world = World(ONE_DOLLAR)
        dispatched(world, Call("model", cost="1.50", estimate="0.10"))
        assert world.seen().explained_nano == 1_400_000_000
        dispatched(world, Call("model", cost="5", estimate="0.10"))
        assert world.seen().explained_nano == 1_400_000_000
        assert world.seen().spent_nano == 6_500_000_000

    def test_an_honest_overrun_is_explained_by_nothing(self) -> None:
        """Who reserved what it cost cannot have passed the ceiling by accident."""
        world = World(ONE_DOLLAR)
        dispatched(world, Call("model", cost="0.60"))
        dispatched(world, Call("model", cost="0.60"))
        assert world.seen().explained_nano == 0

    def test_calls_asked_before_the_stop_do_not_count_as_after_it(self) -> None:
        """One that was admitted a moment before may begin a moment after."""
        world = World(Limits())
        before = world.ask(Call("search"), None)
        world.refused("steps")
        after = world.ask(Call("search"), None)
        world.dispatch(before, "tool")
        world.dispatch(after, "tool")
        assert world.seen().after_stop == 1

    def test_the_first_stop_is_the_one_that_ended_the_run(self) -> None:
        """And what is no stop of the chain ends nothing."""
        world = World(Limits())
        world.refused("denied")
        assert world.stopped is None
        world.refused("cost")
        world.refused("steps")
        assert world.stopped == "cost"

    @pytest.mark.parametrize(("elapsed", "late"), [(4.999999999, 0), (5.0, 1)])
    def test_late_begins_at_the_deadline_to_the_nanosecond(self, elapsed: float, late: int) -> None:
        """Time is virtual, so no slack is needed."""
        world = World(Limits(max_seconds=5))
        world.begin()
        world.clock.sleep_ns(round(elapsed * 10**9))
        dispatched(world, Call("search"))
        assert world.seen().late == late

    @pytest.mark.parametrize("patience_s", [0.001, 60])
    def test_who_is_slow_to_arrive_at_a_gate_that_gave_up_is_not_late(self, patience_s: float) -> None:
        """The others moved the time on without it; where the gate waited for all, nobody can have."""
        world = World(Limits(max_seconds=5))
        world.begin()
        gate = Gate(2, patience_s)
        if patience_s < 1:
            gate.arrive()
        world.clock.sleep_ns(5 * 10**9)
        world.dispatch(world.ask(Call("search"), gate), "tool")
        assert gate.gave_up == (patience_s < 1)
        assert world.seen().late == (patience_s > 1)

    def test_what_a_person_allowed_once_happened_once(self) -> None:
        """The very call: tool, arguments, and how often."""
        world = World(Limits())
        world.allow("send_email", {"to": "alice", "cc": "bob"})
        world.effect("send_email", {"cc": "bob", "to": "alice"})
        assert world.seen().unapproved == 0
        world.effect("send_email", {"cc": "bob", "to": "alice"})
        world.effect("send_email", {"to": "mallory"})
        world.effect("write_file", {"path": "notes"})
        assert (world.seen().irreversible, world.seen().unapproved) == (3, 2)

    def test_an_error_is_known_by_itself_and_not_by_its_text(self) -> None:
        """So an adapter that raises something alike is not taken for a tool."""
        world = World(Limits())
        error = world.witnessed(ValueError("upstream"))
        wrapped = RuntimeError("in a wrapper")
        wrapped.__cause__ = error
        assert world.raised_here(error)
        assert world.raised_here(wrapped)
        assert not world.raised_here(ValueError("upstream"))


class TestTime:
    """Virtual where it can be, short where it cannot."""

    def test_real_seconds_are_scaled_with_the_limits(self) -> None:
        """A planner's five seconds are a quarter of a real one, for the runtime too."""
        world = World(Limits(max_seconds=5), real_time=True)
        assert world.limits.max_seconds == 0.25
        assert isinstance(world.clock, SystemClock)
        world.begin()
        assert 4 < world.seconds_left <= 5

    def test_hanging_moves_past_the_deadline_and_ends_with_the_world(self) -> None:
        """No stub outlives its run."""
        world = World(Limits(max_seconds=5))
        world.begin()
        ended = threading.Event()

        def hang() -> None:
            try:
                world.pass_time(float("inf"))
            except BaseException:
                ended.set()

        thread = threading.Thread(target=hang, daemon=True)
        thread.start()
        assert world.hung.wait(5)
        world.end()
        thread.join(5)
        assert ended.is_set()
        assert world.seconds_left < 0

    def test_what_a_target_opened_is_closed_at_the_end(self) -> None:
        """In the order in which it was opened."""
        world, order = World(Limits()), []
        world.at_end(lambda: order.append("context"))
        world.at_end(lambda: order.append("log"))
        world.end()
        assert order == ["context", "log"]


class TestTheGate:
    """It opens when everybody has come or turned back, and not before."""

    def test_it_waits_for_the_last(self) -> None:
        """Two arrive, the third turns back."""
        gate, through = Gate(3, patience_s=60), []

        def come() -> None:
            gate.arrive()
            through.append(1)

        threads = [threading.Thread(target=come, daemon=True) for _ in range(2)]
        for thread in threads:
            thread.start()
        assert through == []
        gate.turn_back()
        for thread in threads:
            thread.join(5)
        assert through == [1, 1]

    def test_it_does_not_wait_for_ever(self) -> None:
        """A runtime may make the others wait for this very call."""
        gate = Gate(3, patience_s=0.001)
        gate.arrive()
        gate.arrive()

    def test_on_a_loop_it_waits_as_long_as_somebody_comes(self) -> None:
        """Patience is counted in turns of the loop, so it costs no time."""

        async def all_through(size: int) -> int:
            gate, inside = Gate(size, patience_s=60), []

            async def come(after_turns: int) -> int:
                for _ in range(after_turns):
                    await asyncio.sleep(0)
                inside.append(1)
                await gate.aarrive()
                return len(inside)

            return min(await asyncio.gather(*(come(turns * 20) for turns in range(3))))

        assert asyncio.run(all_through(3)) == 3
        assert asyncio.run(all_through(4)) == 3
