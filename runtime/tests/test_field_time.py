"""Sources that fall silent and results that come late: kinds of failure that properties/FIELD_CASES.md numbers."""

from __future__ import annotations

import threading

import pytest

from failstop.runtime.agent.outcome import Outcome
from failstop.runtime.agent.planner import Action
from failstop.runtime.chain.context import ExecutionContext
from failstop.runtime.clock import NS_PER_SECOND, VirtualClock
from failstop.runtime.limits import Limits
from failstop.runtime.policies.retry import RetryContainer
from failstop.runtime.stops import TimeStop
from failstop.runtime.tests.scripted import Scripted, World


@pytest.mark.parametrize("heard", [0, 1, 2, 20])
def test_a_source_that_falls_silent_after_any_chunk_is_left_at_the_deadline(heard):
    """Before its first chunk too; the consumer gets all that came, its stop, and the whole charge (field case 42)."""
    clock, silent = VirtualClock(), threading.Event()
    taken = threading.Semaphore(0)

    def source():
        for n in range(heard):
            yield n
            assert taken.acquire(timeout=10)
        clock.advance_ns(2 * NS_PER_SECOND)
        assert silent.wait(10)

    ctx = ExecutionContext(Limits(max_cost_usd="1.00", max_seconds=1), clock=clock)
    got = []
    with pytest.raises(TimeStop) as stop:
        for chunk in ctx.stream(source, reserve="0.10", isolate="thread"):
            got.append(chunk)
            taken.release()
    silent.set()
    assert got == list(range(heard))
    assert stop.value.limit == NS_PER_SECOND
    assert (ctx.snapshot().committed_nano, ctx.snapshot().reserved_nano) == (100_000_000, 0)


class Late:
    """Passes the deadline in virtual time, writes only once it is let go, and counts how often it was begun."""

    def __init__(self, clock, error):
        self.clock = clock
        self.error = error
        self.begun = 0
        self.written = []
        self.release = threading.Event()

    def __call__(self):
        self.begun += 1
        self.clock.advance_ns(5 * NS_PER_SECOND)
        assert self.release.wait(10)
        self.written.append("late")
        if self.error is not None:
            raise self.error
        return "late"


@pytest.mark.parametrize("error", [None, OSError("late"), TimeoutError("late")])
def test_a_tool_left_at_the_deadline_is_not_retried_beside_itself(error):
    """The tool asks for retries and the planner for the tool again; it was begun once all the same (field case 43)."""
    world = World()
    late = Late(world.clock, error)
    world.add("late", does=late, isolate="thread", cost="0.5", retries=RetryContainer(5, clock=world.clock))
    planner = Scripted(*[Action.use("late")] * 9)
    loop = world.loop(Limits(max_seconds=3, max_cost_usd=9))
    run = loop.start("goal")
    result = loop.drive(run, planner)
    assert result.outcome is Outcome.BUDGET_STOP
    assert isinstance(result.stop, TimeStop)
    assert (late.begun, late.written, len(planner.seen)) == (1, [], 1)
    held = result.snapshot.reserved_nano + result.snapshot.committed_nano
    assert held == 500_000_000, "nothing of what it held was given back"
    late.release.set()
    for thread in threading.enumerate():
        if thread.name == "failstop-late":
            thread.join(10)
    shot = run.context.snapshot()
    assert (late.begun, late.written) == (1, ["late"])
    assert (shot.committed_nano, shot.reserved_nano, shot.steps) == (500_000_000, 0, 1)
    assert result.trace[0].observations == ()
