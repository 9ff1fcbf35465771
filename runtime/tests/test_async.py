"""The asyncio face: the same decisions, awaited."""

from __future__ import annotations

import asyncio

import pytest

from failstop.runtime.chain.context import ExecutionContext
from failstop.runtime.clock import VirtualClock
from failstop.runtime.limits import Limits
from failstop.runtime.policies.retry import RetryContainer
from failstop.runtime.stops import Contended, CostStop, RetryStop, StepStop, Stop, TimeStop, ToolCallStop


def context(clock=None, **limits):
    return ExecutionContext(Limits(**limits), clock=clock or VirtualClock())


class Witness:
    """A coroutine function that counts its dispatches."""

    def __init__(self, error=None):
        self.count = 0
        self.error = error

    async def __call__(self):
        self.count += 1
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        return "ok"


def test_twenty_tool_calls_at_once_dispatch_exactly_the_limit():
    """The model emits twenty calls in one turn; five are admitted and finish, fifteen get the stop."""
    ctx = context(max_steps=5)
    work = Witness()

    async def main():
        return await asyncio.gather(*[ctx.acall(work, kind="tool") for _ in range(20)], return_exceptions=True)

    results = asyncio.run(main())
    assert work.count == 5
    assert results.count("ok") == 5
    assert sum(isinstance(result, StepStop) for result in results) == 15


def test_tasks_at_the_last_cent_dispatch_one_and_charge_it():
    """Sixteen tasks that will not wait: one holds the cent."""
    ctx = context(max_cost_usd="0.01")
    work = Witness()

    async def main():
        calls = [ctx.acall(work, cost="0.01", wait=False) for _ in range(16)]
        return await asyncio.gather(*calls, return_exceptions=True)

    results = asyncio.run(main())
    assert (work.count, results.count("ok")) == (1, 1)
    assert all(isinstance(result, str | Contended | CostStop) for result in results)
    assert ctx.snapshot().committed_nano == 10_000_000


def test_a_task_that_is_kept_out_waits_without_blocking_the_loop():
    """It runs when the holder settles for less."""
    ctx = context(max_cost_usd="1.00")
    release = asyncio.Event()

    async def hold():
        await release.wait()

    async def main():
        holder = asyncio.create_task(ctx.acall(hold, reserve="0.90", cost=lambda _: "0.10"))
        await asyncio.sleep(0)
        work = Witness()
        waiter = asyncio.create_task(ctx.acall(work, cost="0.50"))
        for _ in range(5):
            await asyncio.sleep(0)
        assert work.count == 0
        release.set()
        await asyncio.gather(holder, waiter)
        return work.count

    assert asyncio.run(main()) == 1
    assert ctx.snapshot().committed_nano == 600_000_000


def test_an_async_call_is_cancelled_at_the_deadline_and_charged():
    """The coroutine sees a cancellation, its caller a stop, the ledger the whole reservation."""
    clock = VirtualClock()
    ctx = context(clock, max_seconds=1, max_cost_usd="1.00")
    seen = []

    async def hang():
        clock.advance_ns(2 * 10**9)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    async def main():
        with pytest.raises(TimeStop):
            await ctx.acall(hang, cost="0.30", retries=3)
        await asyncio.sleep(0)

    asyncio.run(main())
    assert seen == ["cancelled"]
    shot = ctx.snapshot()
    assert (shot.committed_nano, shot.reserved_nano, shot.steps) == (300_000_000, 0, 1)
    assert [node.status for node in ctx.graph.nodes()] == ["abandoned"]


def test_a_coroutine_that_ignores_its_cancellation_is_left_behind():
    """The caller gets its answer at the deadline; the late cost is settled when the coroutine ends."""
    clock = VirtualClock()
    ctx = context(clock, max_seconds=1, max_cost_usd="1.00")
    release = asyncio.Event()

    async def stubborn():
        clock.advance_ns(2 * 10**9)
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return "late"

    async def main():
        with pytest.raises(TimeStop):
            await ctx.acall(stubborn, reserve="0.50", cost=lambda _: "0.20")
        assert ctx.snapshot().reserved_nano == 500_000_000
        release.set()
        for _ in range(5):
            await asyncio.sleep(0)

    asyncio.run(main())
    assert ctx.snapshot().committed_nano == 200_000_000
    assert ctx.get_partial_result() is None


def test_a_cancelled_caller_cancels_its_call_and_is_charged():
    """Cancellation from outside goes through, and what the call had spent is unknown."""
    ctx = context(max_cost_usd="1.00")

    async def main():
        task = asyncio.create_task(ctx.acall(asyncio.Event().wait, cost="0.30"))
        for _ in range(3):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    shot = ctx.snapshot()
    assert (shot.committed_nano, shot.reserved_nano, shot.stop) == (300_000_000, 0, None)


def test_retries_draw_from_the_chain_in_virtual_time():
    """The backoff sleeps on the injected clock; the chain's ceiling ends it."""
    clock = VirtualClock()
    ctx = context(clock, max_retries=2)
    work = Witness(error=ValueError("down"))

    async def main():
        with pytest.raises(RetryStop):
            await ctx.acall(work, retries=9)

    asyncio.run(main())
    assert work.count == 3
    assert clock.now_ns() > 0


def test_a_call_is_not_tried_again_unless_it_is_asked_for():
    """And the one try is no retry."""
    ctx = context()
    work = Witness(error=ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        asyncio.run(ctx.acall(work))
    assert (work.count, ctx.snapshot().retries) == (1, 0)
    asyncio.run(context(max_retries=0).acall(Witness()))


def test_a_retry_that_could_only_begin_after_the_deadline_is_not_waited_for():
    """The error comes out at once."""
    clock = VirtualClock()
    ctx = context(clock, max_seconds=1)
    work = Witness(error=ValueError("again"))
    with pytest.raises(ValueError, match="again"):
        asyncio.run(ctx.acall(work, retries=RetryContainer(3, backoff_base_s=5, clock=clock)))
    assert (work.count, clock.now_ns()) == (1, 0)


def test_the_value_and_the_tokens_of_an_awaited_call_are_kept():
    """The value as the partial result, the tokens in the graph."""
    ctx = context()
    assert asyncio.run(ctx.acall(Witness(), tokens=lambda _: (3, 4))) == "ok"
    assert ctx.get_partial_result() == "ok"
    assert [(node.tokens_in, node.tokens_out) for node in ctx.graph.nodes()] == [(3, 4)]


def test_nested_layers_of_retries_share_the_chains_ceiling_and_are_charged():
    """3 x 3 x 5 over a tool that always fails, awaited: four retries in all (field case 37)."""
    clock = VirtualClock()
    ctx = context(clock, max_retries=4, max_cost_usd="1.00")
    outer, middle, inner = (RetryContainer(n - 1, clock=clock, context=ctx) for n in (3, 3, 5))
    tool = Witness(error=ValueError("down"))

    async def inner_layer():
        return await inner.aexecute(tool, cost="0.01")

    async def middle_layer():
        return await middle.aexecute(inner_layer, cost="0.01")

    with pytest.raises(RetryStop):
        asyncio.run(outer.aexecute(middle_layer, cost="0.01"))
    assert tool.count == 5
    shot = ctx.snapshot()
    assert (shot.committed_nano, shot.reserved_nano) == (shot.steps * 10_000_000, 0)


def test_a_parent_task_that_waits_is_stopped_at_once_by_a_cap_that_trips_in_a_child():
    """While the task that keeps it out still runs, and will for ever (field case 23)."""
    root = context(max_cost_usd="1.00", max_tool_calls=0)
    child = root.create_child()

    async def main():
        holder = asyncio.create_task(root.acall(asyncio.Event().wait, reserve="0.90", cost=lambda _: "0.10"))
        await asyncio.sleep(0)
        waiter = asyncio.create_task(root.acall(Witness(), cost="0.50"))
        await asyncio.sleep(0)
        with pytest.raises(ToolCallStop):
            await child.acall(Witness(), cost=0, kind="tool")
        with pytest.raises(ToolCallStop):
            await asyncio.wait_for(waiter, 10)
        assert not holder.done()
        holder.cancel()

    asyncio.run(main())


def test_nested_awaits_hang_under_their_caller_and_tasks_do_not_mix():
    """Two interleaving tasks on one thread keep their own call trees."""
    ctx = context()

    async def leaf():
        await asyncio.sleep(0)

    async def branch(name):
        await ctx.acall(leaf, name=f"{name}-async")
        ctx.call(lambda: None, name=f"{name}-sync")
        ctx.call(plain)

    def plain():
        return None

    async def main():
        await asyncio.gather(*[ctx.acall(branch, name, name=name) for name in "ab"])

    asyncio.run(main())
    tree = ctx.graph.tree()
    for top in tree[0]:
        assert [node.name for node in tree[top.number]] == [f"{top.name}-async", f"{top.name}-sync", "plain"]
    assert [top.name for top in tree[0]] == ["a", "b"]


def test_a_stop_passes_through_gather_as_a_result():
    """It derives from BaseException and asyncio still treats it as the task's own end."""
    ctx = context(max_steps=0)

    async def main():
        return await asyncio.gather(ctx.acall(Witness()), return_exceptions=True)

    (result,) = asyncio.run(main())
    assert isinstance(result, Stop)


def test_a_context_serves_as_an_async_context_manager():
    """Closed on leaving."""

    async def main():
        async with context() as ctx:
            await ctx.acall(Witness())
        return ctx

    assert asyncio.run(main()).closed
