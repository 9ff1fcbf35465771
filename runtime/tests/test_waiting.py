"""Who may wait for the calls in flight, and who would wait for itself."""

from __future__ import annotations

import asyncio
import threading

import pytest

from failstop.runtime.chain.context import ExecutionContext
from failstop.runtime.clock import VirtualClock
from failstop.runtime.limits import Limits
from failstop.runtime.policies.pipeline import PolicyDecision, PolicyPipeline
from failstop.runtime.stops import ClosedStop, Contended, HaltedStop, StepStop, Stop, TimeStop
from failstop.runtime.tests.racing import race

SECOND = 10**9


def context(clock=None, policies=None, **limits):
    return ExecutionContext(Limits(**limits), clock=clock or VirtualClock(), policies=policies)


def answered(act, *args):
    """Run on a thread of its own and give the value or what was raised; a hang fails here."""
    answers = []

    def run():
        try:
            answers.append(act(*args))
        except BaseException as error:
            answers.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive(), "it waits for itself"
    return answers[0]


def nested(ctx):
    """A call that needs half of what a call around it holds in full."""
    return ctx.call(lambda: "inner", cost="0.50")


class TestItself:
    """What a thread holds cannot settle while it waits, so the wait is refused at once; the chain goes on."""

    @pytest.mark.parametrize("options", [{}, {"reserve": "1.00"}, {"name": "full"}, {"isolate": "thread"}])
    def test_a_call_inside_a_call(self, options):
        """Quick or in full, in place or on a thread of its own."""
        ctx = context(max_cost_usd="1.00")
        cost = {} if options.get("reserve") is None else {"cost": lambda _: "1.00"}
        assert isinstance(answered(lambda: ctx.call(nested, ctx, **options, **cost)), Contended)
        assert ctx.stop is None

    @pytest.mark.parametrize("options", [{}, {"name": "full"}])
    def test_a_call_inside_the_function_that_reads_the_cost(self, options):
        """It runs before the settlement, so what it waits for is held; a cost that cannot be read is all of it."""
        ctx = context(max_cost_usd="1.00")
        told = []

        def cost(_):
            told.append(answer := _raised(nested, ctx))
            raise answer

        answered(lambda: ctx.call(lambda: 1, reserve="1.00", cost=cost, **options))
        assert isinstance(told[0], Contended)
        assert ctx.snapshot().committed_nano == SECOND

    @pytest.mark.parametrize("isolate", [None, "thread"])
    def test_the_consumer_of_a_stream(self, isolate):
        """The stream holds until it is read to its end, by the thread that would wait."""
        ctx = context(max_cost_usd="1.00")

        def consume():
            stream = ctx.stream(lambda: iter("ab"), isolate=isolate)
            next(stream)
            return _raised(nested, ctx)

        assert isinstance(answered(consume), Contended)

    def test_a_reservation_of_the_same_thread(self):
        """Its end is that thread's to come."""
        ctx = context(max_cost_usd="1.00")

        def both():
            ctx.reserve()
            return _raised(nested, ctx)

        assert isinstance(answered(both), Contended)

    def test_a_plain_call_on_the_loop_of_an_awaited_one(self):
        """While the loop stands still the awaited one does not settle."""
        ctx = context(max_cost_usd="1.00")

        async def main():
            waiting = asyncio.Event()
            task = asyncio.create_task(ctx.acall(waiting.wait))
            await asyncio.sleep(0)
            try:
                return _raised(nested, ctx)
            finally:
                waiting.set()
                await task

        assert isinstance(answered(lambda: asyncio.run(main())), Contended)

    def test_an_awaited_call_inside_an_awaited_one(self):
        """Known by the task's context."""
        ctx = context(max_cost_usd="1.00")

        async def inner():
            return "inner"

        async def outer():
            return await ctx.acall(inner, cost="0.50")

        assert isinstance(answered(lambda: asyncio.run(ctx.acall(outer))), Contended)

    @pytest.mark.parametrize("options", [{}, {"name": "full"}])
    def test_an_awaited_call_on_a_loop_inside_a_plain_one(self, options):
        """A tool that runs an event loop of its own."""
        ctx = context(max_cost_usd="1.00")

        async def inner():
            return "inner"

        def tool():
            return asyncio.run(ctx.acall(inner, cost="0.50"))

        assert isinstance(answered(lambda: ctx.call(tool, **options)), Contended)

    @pytest.mark.parametrize("options", [{}, {"name": "full"}])
    def test_a_call_on_a_thread_that_a_call_of_unknown_cost_waits_for(self, options):
        """asyncio.to_thread takes the context along."""
        ctx = context(max_cost_usd="1.00")

        def tool():
            return asyncio.run(asyncio.to_thread(nested, ctx))

        assert isinstance(answered(lambda: ctx.call(tool, **options)), Contended)


class TestOthers:
    """What others hold is waited for."""

    def test_a_call_of_another_thread(self):
        """Four calls that each need more than half of the money run one after the other."""
        ctx = context(max_cost_usd="1.00")
        assert race(4, lambda index: ctx.call(lambda: index, reserve="0.60", cost=lambda _: "0.10")) == [0, 1, 2, 3]
        assert ctx.snapshot().committed_nano == 400_000_000

    def test_a_task_that_outlived_the_call_that_began_it(self):
        """The frame that it copied is over, so its wait is for another and ends."""
        ctx = context(max_cost_usd="1.00")

        async def main():
            spawned = []
            began, release = asyncio.Event(), asyncio.Event()

            async def late():
                await began.wait()
                return await ctx.acall(asyncio.sleep, 0, cost="0.50")

            async def outer():
                spawned.append(asyncio.create_task(late()))

            async def holder():
                began.set()
                await release.wait()

            await ctx.acall(outer, reserve="0.60", cost=lambda _: 0)
            holding = asyncio.create_task(ctx.acall(holder, reserve="0.60", cost=lambda _: 0))
            await began.wait()
            for _ in range(3):
                await asyncio.sleep(0)
            release.set()
            await holding
            return await spawned[0]

        assert answered(lambda: asyncio.run(main())) is None

    def test_a_policy_that_raises_contended_is_no_reason_to_wait(self):
        """Nothing would wake the caller: the ledger did not keep it out."""

        class Busy:
            policy_type = "busy"

            def check(self, _):
                raise Contended("busy", "come again")

            release = report = reset = None

        busy = Busy()
        busy.release = busy.report = busy.reset = lambda *_: None
        ctx = context(max_cost_usd="1.00", policies=PolicyPipeline([busy]))
        assert isinstance(answered(nested, ctx), Contended)

    @pytest.mark.parametrize("depth", [1, 2, 3])
    def test_a_call_at_any_depth_inside_of_one_on_other_threads(self, depth):
        """What is held further out blocks it as well; the free calls between them hold nothing."""
        ctx = context(max_cost_usd="1.00")

        def inside(levels):
            return ctx.call(inside, levels - 1, cost=0, isolate="thread") if levels else nested(ctx)

        call = (ctx.call, inside, depth)
        assert isinstance(
            answered(lambda: call[0](*call[1:], reserve="1.00", cost=lambda _: 0, isolate="thread")), Contended
        )


class TestAStopBeatsAWait:
    """A chain that is over says so at once, whatever else keeps the call out."""

    @pytest.mark.parametrize("wait", [True, False])
    def test_the_root_is_over_while_the_child_is_contended(self, wait):
        """The root is asked as well, and first."""
        root = context(max_steps=1)
        child = root.create_child(Limits(max_cost_usd="1.00"))
        child.reserve()
        got = answered(lambda: child.call(lambda: 1, cost="0.50", wait=wait))
        assert type(got) is StepStop

    def test_the_root_is_halted_while_calls_wait_in_a_child(self):
        """The wait ends with the stop, not with the settlement."""
        root = context(max_seconds=60)
        child = root.create_child(Limits(max_cost_usd="1.00"))
        held = child.reserve()
        entered = threading.Event()
        answers = []

        def wait():
            entered.set()
            answers.append(_raised(nested, child))

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        assert entered.wait(10)
        root.halt("over")
        thread.join(10)
        assert not thread.is_alive()
        assert type(answers[0]) is HaltedStop
        held.settle(0)

    @pytest.mark.parametrize("end", ["steps", "halt", "deadline", "closed"])
    def test_before_any_policy_is_asked(self, end):
        """A denial may be tried again; a stop must not look like one."""

        class Denies:
            policy_type = "denies"

            def check(self, _):
                return PolicyDecision(False, "denies", "no")

            def release(self, *_): ...

            def report(self, *_): ...

            def reset(self): ...

        clock = VirtualClock()
        ctx = context(clock, PolicyPipeline([Denies()]), max_seconds=1, max_steps=0)
        if end == "steps":
            assert type(_raised(ctx.step, "idle")) is StepStop
        elif end == "halt":
            ctx.halt("over")
        elif end == "deadline":
            clock.advance_ns(SECOND)
        else:
            ctx.close()
        expected = {"steps": StepStop, "halt": HaltedStop, "deadline": TimeStop, "closed": ClosedStop}[end]
        assert type(_raised(ctx.call, lambda: 1, cost=0)) is expected

    def test_the_stop_of_the_chain_beats_that_of_a_closed_context(self):
        """Who is told "closed" may go on elsewhere in the chain; it is over there too."""
        ctx = context(max_steps=0)
        assert type(_raised(ctx.call, lambda: 1)) is StepStop
        ctx.close()
        assert type(_raised(ctx.call, lambda: 1)) is StepStop

    def test_a_policy_that_cannot_give_back_does_not_hide_the_stop(self):
        """The stop is raised; what failed is noted on it."""

        class Broken:
            policy_type = "broken"

            def check(self, _):
                return PolicyDecision(True, "broken")

            def release(self, *_):
                raise OSError("cannot")

            def report(self, *_): ...

            def reset(self): ...

        ctx = context(policies=PolicyPipeline([Broken()]), max_steps=0)
        stop = _raised(ctx.call, lambda: 1)
        assert type(stop) is StepStop
        assert "cannot" in stop.__notes__[0]


def _raised(act, *args, **options):
    try:
        act(*args, **options)
    except (Exception, Stop) as error:
        return error
    raise AssertionError("nothing was raised")
