"""A breaker around real calls: however a call ends, on whatever face, its permit ends with it (G4)."""

from __future__ import annotations

import asyncio
import gc
import threading

import pytest

from failstop.runtime.chain.context import ExecutionContext
from failstop.runtime.clock import VirtualClock
from failstop.runtime.limits import Limits
from failstop.runtime.policies.breaker import BreakerState, CircuitBreaker
from failstop.runtime.policies.pipeline import PolicyPipeline
from failstop.runtime.stops import Contended, Denied, Stop, TimeStop
from failstop.runtime.tests.racing import race

SECOND = 10**9


def breaker_of(clock, **options):
    """A breaker of threshold 1, ten seconds of cooldown and five of lease, to which an unknown name is no failure."""

    def is_failure(error):
        return None if isinstance(error, LookupError) or not isinstance(error, Exception) else True

    return CircuitBreaker(1, 10, probe_lease_s=5, clock=clock, is_failure=is_failure, **options)


def guarded(breaker, clock, **limits):
    """A chain whose calls the breaker guards."""
    return ExecutionContext(Limits(**limits), policies=PolicyPipeline([breaker]), clock=clock)


def failing(error):
    """A callable that raises it."""

    def fail(*_):
        raise error

    return fail


def trip(ctx):
    """Open the breaker by one failure."""
    with pytest.raises(ValueError, match="down"):
        ctx.call(failing(ValueError("down")), cost=0)


@pytest.fixture
def clock():
    """A clock that moves by hand."""
    return VirtualClock()


@pytest.fixture
def breaker(clock):
    """A breaker of one chain."""
    return breaker_of(clock)


# What becomes of a probe's permit


def raises(error, **options):
    """The probe is a call that raises."""

    def end(ctx):
        with pytest.raises(type(error)):
            ctx.call(failing(error), cost=0, **options)

    return end


def raises_awaited(ctx):
    """The probe is an awaited call that raises what is no failure."""

    async def main():
        async def fail():
            raise LookupError

        with pytest.raises(LookupError):
            await ctx.acall(fail, cost=0)

    asyncio.run(main())


def is_cancelled(ctx):
    """The probe is awaited, and whoever awaits it is cancelled."""

    async def main():
        task = asyncio.ensure_future(ctx.acall(asyncio.Event().wait, cost=0))
        for _ in range(3):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def leaves_a_stream(isolate):
    """The probe is a stream whose consumer closes it after a chunk."""

    def end(ctx):
        stream = ctx.stream(lambda: iter("abc"), cost=0, isolate=isolate)
        next(stream)
        stream.close()

    return end


def forgets_a_stream(ctx):
    """The probe is a stream that nobody closes and nobody keeps."""
    next(ctx.stream(lambda: iter("abc"), cost=0))
    gc.collect()


def breaks_a_stream(ctx):
    """The probe is a stream that raises what is no failure."""

    def source():
        yield "a"
        raise LookupError

    with pytest.raises(LookupError):
        list(ctx.stream(source, cost=0))


def releases(ctx):
    """The probe was reserved and never began."""
    ctx.reserve("0.10").release()


def fails_by_hand(ctx):
    """The probe was reserved and ended in what is no failure."""
    ctx.reserve(0).fail(LookupError())


def is_kept_out(ctx):
    """The probe is kept out by the money of a call in flight, after the breaker had let it through."""
    with pytest.raises(Contended):
        ctx.call(int, cost="0.90", wait=False)


def cannot_start(ctx):
    """The probe has no thread to run on."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(RuntimeError):
        patch.setattr(threading.Thread, "start", failing(RuntimeError("can't start new thread")))
        ctx.call(int, cost=0, isolate="thread")


ENDS = {
    "an ignored error": raises(LookupError()),
    "an ignored error on a thread": raises(LookupError(), isolate="thread"),
    "an ignored error, awaited": raises_awaited,
    "a cancellation": raises(asyncio.CancelledError()),
    "a cancelled caller": is_cancelled,
    "an interrupt": raises(KeyboardInterrupt()),
    "an exit of its thread": raises(SystemExit(), isolate="thread"),
    "a stream left": leaves_a_stream(None),
    "a stream left on its thread": leaves_a_stream("thread"),
    "a stream forgotten": forgets_a_stream,
    "a stream broken": breaks_a_stream,
    "a reservation released": releases,
    "a reservation failed": fails_by_hand,
    "a ledger that keeps it out": is_kept_out,
    "a thread that cannot start": cannot_start,
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_a_probe_that_proves_nothing_lets_the_next_call_probe_at_once(breaker, clock, end):
    """Whatever ended it and on whatever face, its slot is free without waiting for a lease (field case 13)."""
    ctx = guarded(breaker, clock, max_cost_usd="1.00")
    ctx.reserve("0.50")
    trip(ctx)
    clock.advance_ns(10 * SECOND)
    end(ctx)
    assert breaker.state is BreakerState.HALF_OPEN
    assert ctx.call(lambda: "ok", cost=0) == "ok"
    assert breaker.state is BreakerState.CLOSED


def test_a_probe_that_never_ends_gives_its_slot_up_with_its_lease_and_its_late_end_counts_for_nothing(clock):
    """Its caller was let go at the deadline, its thread hangs; another chain probes after the lease (field case 13)."""
    breaker = breaker_of(clock, shared=True)
    hanging, other = guarded(breaker, clock, max_seconds=11), guarded(breaker, clock)
    trip(hanging)
    clock.advance_ns(10 * SECOND)
    release = threading.Event()

    def hang():
        clock.advance_ns(2 * SECOND)
        assert release.wait(10)
        raise ValueError

    with pytest.raises(TimeStop):
        hanging.call(hang, cost=0, isolate="thread")
    clock.advance_ns(3 * SECOND - 1)
    with pytest.raises(Denied, match="a probe is out"):
        other.call(int, cost=0)
    clock.advance_ns(1)
    assert other.call(int, cost=0) == 0
    release.set()
    for thread in threading.enumerate():
        if thread.name == "failstop-hang":
            thread.join(10)
    assert [node.status for node in hanging.graph.nodes()] == ["error", "abandoned"]
    assert breaker.state is BreakerState.CLOSED


# At the instant the cooldown ends


def test_of_many_threads_at_the_instant_the_cooldown_ends_one_is_really_dispatched(breaker, clock):
    """The probe stays out until all the others were answered, so that none comes in by its success (field case 15)."""
    ctx = guarded(breaker, clock)
    trip(ctx)
    clock.advance_ns(10 * SECOND)
    dispatched, denied = [], threading.Semaphore(0)

    def work():
        dispatched.append(1)
        assert all(denied.acquire(timeout=10) for _ in range(15))

    def attempt(_):
        try:
            ctx.call(work, cost=0)
        except Denied:
            denied.release()

    race(16, attempt)
    assert len(dispatched) == 1
    assert breaker.state is BreakerState.CLOSED


def test_of_many_tasks_at_the_instant_the_cooldown_ends_one_is_really_dispatched(breaker, clock):
    """The same, awaited (field case 15)."""
    ctx = guarded(breaker, clock)
    trip(ctx)
    clock.advance_ns(10 * SECOND)
    dispatched = []

    async def main():
        answered = asyncio.Event()

        async def work():
            dispatched.append(1)
            await answered.wait()

        tasks = [asyncio.ensure_future(ctx.acall(work, cost=0)) for _ in range(16)]
        for _ in range(50):
            await asyncio.sleep(0)
        answered.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    ended = asyncio.run(main())
    assert sum(isinstance(each, Denied) for each in ended) == 15
    assert len(dispatched) == 1


def test_a_call_from_before_the_trip_that_ends_while_it_is_open_changes_nothing(breaker, clock):
    """As a success, a failure or what is neither: the cooldown ends when it would have (field cases 14 and 16)."""
    for late in (None, ValueError("late"), LookupError("not found")):
        ctx = guarded(breaker_of(clock), clock)
        early = ctx.reserve(0)
        trip(ctx)
        clock.advance_ns(9 * SECOND)
        early.settle(0) if late is None else early.fail(late)
        with pytest.raises(Denied, match=r"open for another 1\.000 s"):
            ctx.call(int, cost=0)
        clock.advance_ns(SECOND)
        assert ctx.call(int, cost=0) == 0


def test_a_stopped_chain_tells_its_breaker_nothing(breaker, clock):
    """The stop of a ceiling is neither the callee's failure nor its success."""
    ctx = guarded(breaker, clock, max_steps=1)
    ctx.call(int, cost=0)
    for _ in range(3):
        with pytest.raises(Stop):
            ctx.call(int, cost=0)
    assert breaker.state is BreakerState.CLOSED
