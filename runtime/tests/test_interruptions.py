"""What comes from outside in the middle of anything: signals, the garbage collector, a fork, a loop that is closed."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import threading

import pytest

from failstop.runtime.audit.log import AuditLog, load
from failstop.runtime.chain import accounts
from failstop.runtime.chain.context import ExecutionContext
from failstop.runtime.clock import VirtualClock
from failstop.runtime.limits import Limits
from failstop.runtime.policies.breaker import CircuitBreaker
from failstop.runtime.policies.pipeline import PolicyPipeline
from failstop.runtime.stops import HaltedStop, Stop

DOLLAR = 10**9


class Interrupting(VirtualClock):
    """Raises a signal at the n-th reading, so that its handler runs in the middle of what reads the clock."""

    def __init__(self):
        super().__init__()
        self.readings = -1

    def now_ns(self):
        self.readings -= 1
        if self.readings == 0:
            signal.raise_signal(signal.SIGUSR1)
        return super().now_ns()


class Interrupt(BaseException):
    """What a handler raises, as that of Ctrl-C does."""


@pytest.fixture
def on_signal():
    """Set the handler of the test's own signal."""
    before = signal.getsignal(signal.SIGUSR1)
    yield lambda handler: signal.signal(signal.SIGUSR1, handler)
    signal.signal(signal.SIGUSR1, before)


def interrupt(*_):
    raise Interrupt


@contextlib.contextmanager
def survived():
    """Go on after the interrupt, once every worker has ended.

    Where it falls into a `Condition` of the standard library's, that one tells of its own lock that is no longer held.
    """
    try:
        yield
    except Interrupt:
        pass
    except RuntimeError as error:
        if not isinstance(error.__context__, Interrupt):
            raise
    for thread in threading.enumerate():
        if thread.name.startswith("failstop-"):
            thread.join(10)


WAYS = {
    "quick": lambda ctx: ctx.call(lambda: 1, cost="0.10"),
    "full": lambda ctx: ctx.call(lambda: 1, cost="0.10", name="full"),
    "thread": lambda ctx: ctx.call(lambda: 1, cost="0.10", isolate="thread"),
    "child": lambda ctx: ctx.create_child(Limits(max_cost_usd=1)).call(lambda: 1, cost="0.10"),
    "stream": lambda ctx: list(ctx.stream(lambda: iter("ab"), reserve="0.10", cost=lambda _: "0.10")),
    "awaited": lambda ctx: asyncio.run(ctx.acall(asyncio.sleep, 0, cost="0.10")),
}


class TestAnInterrupt:
    """Ctrl-C that somebody survives: the lock is free, nothing stays held, what began is charged."""

    @pytest.mark.parametrize("reading", range(1, 6))
    @pytest.mark.parametrize("way", WAYS)
    def test_at_any_reading_of_the_clock(self, on_signal, way, reading):
        """Inside admission, inside settlement, or while the call is noted."""
        clock = Interrupting()
        ctx = ExecutionContext(Limits(max_cost_usd=1, max_steps=9), clock=clock)
        on_signal(interrupt)
        clock.readings = reading
        with survived():
            WAYS[way](ctx)
        clock.readings = -1
        shot = ctx.snapshot()
        assert shot.reserved_nano == 0
        assert shot.committed_nano == shot.steps * DOLLAR // 10
        assert ctx.call(lambda: "next", cost=0) == "next"

    @pytest.mark.parametrize("which", [1, 2])
    def test_between_taking_the_lock_and_entering_the_section(self, monkeypatch, which):
        """Of admission and of settlement: the lock is let go of, and what was held is charged."""
        monkeypatch.setattr(accounts, "_LONGER_THAN_A_SECTION_S", 0.01)
        ctx = ExecutionContext(Limits(max_cost_usd=1), clock=VirtualClock())
        ledger, account, chain, lock, now_ns = ctx._quick
        taken = []

        class Gap:
            release = lock.release

            def acquire(self):
                lock.acquire()
                taken.append(1)
                if len(taken) == which:
                    raise Interrupt

        ctx._quick = (ledger, account, chain, Gap(), now_ns)
        with pytest.raises(Interrupt):
            ctx.call(lambda: 1, cost="0.10")
        assert not lock.locked()
        shot = ctx.snapshot()
        assert (shot.reserved_nano, shot.committed_nano, shot.steps) == (0, (which - 1) * DOLLAR // 10, which - 1)
        assert ctx.call(lambda: "next", cost="0.10") == "next"

    def test_that_keeps_a_thread_from_starting(self, monkeypatch):
        """It provably never began, so it is released; a thread that was let go all the same does not run it."""
        ctx = ExecutionContext(Limits(max_cost_usd=1), clock=VirtualClock())
        began, workers = [], []

        def start(thread):
            workers.append(thread)
            raise KeyboardInterrupt

        monkeypatch.setattr(threading.Thread, "start", start)
        with pytest.raises(KeyboardInterrupt):
            ctx.call(lambda: began.append(1), cost="0.10", isolate="thread")
        monkeypatch.undo()
        workers[0].run()
        shot = ctx.snapshot()
        assert (began, shot.steps, shot.reserved_nano, shot.committed_nano) == ([], 0, 0, 0)

    def test_that_comes_when_a_thread_has_started(self, monkeypatch):
        """It runs, so it is charged, by itself."""
        ctx = ExecutionContext(Limits(max_cost_usd=1), clock=VirtualClock())
        began, ended = threading.Event(), threading.Event()
        real = threading.Thread.start

        def start(thread):
            real(thread)
            assert began.wait(10)
            raise KeyboardInterrupt

        def work():
            began.set()
            return ended.wait(10)

        monkeypatch.setattr(threading.Thread, "start", start)
        with pytest.raises(KeyboardInterrupt):
            ctx.call(work, cost="0.10", isolate="thread")
        monkeypatch.undo()
        assert ctx.snapshot().reserved_nano == DOLLAR // 10
        ended.set()
        for thread in threading.enumerate():
            if thread.name.startswith("failstop-work"):
                thread.join(10)
        assert (ctx.snapshot().reserved_nano, ctx.snapshot().committed_nano) == (0, DOLLAR // 10)


class TestAHandlerThatHalts:
    """A signal handler may halt or close a chain wherever the program is: inside a section of that very chain too."""

    @pytest.mark.parametrize("reading", range(1, 5))
    @pytest.mark.parametrize("way", WAYS)
    def test_at_any_reading_of_the_clock(self, on_signal, way, reading):
        """It does not wait for the lock that its own thread holds, and nothing is admitted after it."""
        clock = Interrupting()
        ctx = ExecutionContext(Limits(max_cost_usd=1, max_steps=9), clock=clock)
        on_signal(lambda *_: ctx.halt("by signal"))
        clock.readings = reading
        for _ in range(3):
            try:
                WAYS[way](ctx)
            except Stop:
                break
        clock.readings = -1
        assert type(ctx.stop) is HaltedStop
        began = []
        with pytest.raises(HaltedStop, match="by signal"):
            ctx.call(lambda: began.append(1), cost=0)
        assert (began, ctx.snapshot().reserved_nano) == ([], 0)

    @pytest.mark.parametrize("policies", [False, True])
    @pytest.mark.parametrize("options", [{}, {"name": "full"}])
    def test_is_seen_at_once_though_another_holds_the_lock(self, options, policies):
        """`stop` tells it, and whoever comes next applies it before anything is admitted or denied."""
        denying = PolicyPipeline([CircuitBreaker(1, 60)]) if policies else None
        ctx = ExecutionContext(Limits(max_steps=9), clock=VirtualClock(), policies=denying)
        if policies:
            with pytest.raises(ZeroDivisionError):
                ctx.call(lambda: 1 / 0)
        with ctx._ledger.lock:
            ctx.halt("over")
            assert type(ctx.stop) is HaltedStop
        with pytest.raises(HaltedStop):
            ctx.call(lambda: 1, **options)

    def test_closes_as_well(self):
        """Close does not wait either."""
        ctx = ExecutionContext(Limits(max_steps=9), clock=VirtualClock())
        with ctx._ledger.lock:
            ctx.close()
        with pytest.raises(Stop, match="closed"):
            ctx.call(lambda: 1)

    def test_in_the_middle_of_an_event_is_on_record_right_after_it(self, on_signal, tmp_path, monkeypatch):
        """The log's own lock is taken for the loop's events, outside of any section of the chain."""
        log = AuditLog.create(tmp_path, "run")
        ctx = ExecutionContext(Limits(max_steps=9), clock=VirtualClock(), audit=log)
        on_signal(lambda *_: ctx.halt("by signal"))
        real = os.write

        def write(fd, line):
            if b'"kind":"step"' in line:
                signal.raise_signal(signal.SIGUSR1)
            return real(fd, line)

        monkeypatch.setattr(os, "write", write)
        log.record("step", {"n": 1})
        monkeypatch.undo()
        assert type(ctx.stop) is HaltedStop
        found = load(log.path)
        assert ([event.kind for event in found.events], found.whole) == (["open", "step", "stop"], True)


class TestTheGarbageCollector:
    """It may close a stream that nobody reads any more in the middle of a section."""

    def test_closes_a_stream_while_its_thread_is_in_a_section(self):
        """The stream is charged without waiting for the lock, by whoever lets go of it."""
        ctx = ExecutionContext(Limits(max_cost_usd=1), clock=VirtualClock())
        stream = ctx.stream(lambda: iter("ab"), reserve="0.30")
        next(stream)
        with ctx._ledger.lock:
            del stream
            gc.collect()
        assert ctx.call(lambda: "next", cost=0) == "next"
        assert (ctx.snapshot().reserved_nano, ctx.snapshot().committed_nano) == (0, 300_000_000)

    def test_closes_a_stream_while_its_thread_is_in_a_policy(self):
        """Its report comes in the middle of another one of the same thread."""
        breaker = CircuitBreaker(clock=VirtualClock())
        ctx = ExecutionContext(Limits(), clock=VirtualClock(), policies=PolicyPipeline([breaker]))
        stream = ctx.stream(lambda: iter("ab"), cost=0)
        next(stream)
        with breaker._lock:
            del stream
            gc.collect()
        assert ctx.call(lambda: "next") == "next"


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
class TestAFork:
    """A forked child has a copy of the chain: what it spent would be counted by nobody."""

    @pytest.mark.parametrize("way", ["quick", "full"])
    def test_dispatches_nothing_in_the_child(self, way):
        """Not even while another thread of the parent held the lock at the fork."""
        ctx = ExecutionContext(Limits(max_cost_usd=1, max_steps=9), clock=VirtualClock())
        reader, writer = os.pipe()
        with ctx._ledger.lock:
            child = os.fork()
            if child == 0:
                answer = b"ran"
                try:
                    WAYS[way](ctx)
                except HaltedStop as stop:
                    answer = b"stopped" if "forked" in stop.detail else b"other"
                finally:
                    os.write(writer, answer)
                    os._exit(0)
        os.waitpid(child, 0)
        assert os.read(reader, 99) == b"stopped"
        assert WAYS[way](ctx) == 1

    def test_may_open_a_chain_of_its_own(self):
        """What it makes itself is its own."""
        ExecutionContext(Limits(max_steps=9))
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(writer, ExecutionContext(Limits(max_steps=1)).call(lambda: b"ran"))
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        assert os.read(reader, 99) == b"ran"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
class TestALostLoop:
    """An awaited call ends with its task, whatever becomes of its caller and of its loop."""

    def test_a_second_cancellation_of_the_caller_loses_nothing(self):
        """The call swallows the first for a while; its caller is cancelled again and leaves."""
        ctx = ExecutionContext(Limits(max_cost_usd=1), clock=VirtualClock())

        async def stubborn(release):
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                await release.wait()

        async def main():
            release = asyncio.Event()
            task = asyncio.create_task(ctx.acall(stubborn, release, cost="0.10"))
            for _ in range(3):
                await asyncio.sleep(0)
                task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            release.set()
            for _ in range(5):
                await asyncio.sleep(0)

        asyncio.run(asyncio.wait_for(main(), 10))
        assert (ctx.snapshot().reserved_nano, ctx.snapshot().committed_nano) == (0, DOLLAR // 10)

    @pytest.mark.parametrize("turns", [1, 2, 3, 6])
    def test_a_loop_that_is_closed_under_a_call(self, turns):
        """Begun, it is charged; not begun, it is released; nothing stays held."""
        ctx = ExecutionContext(Limits(max_cost_usd=1), clock=VirtualClock())
        began = []

        async def call():
            began.append(1)
            await asyncio.sleep(60)

        async def main():
            asyncio.current_task()
            for _ in range(turns):
                await asyncio.sleep(0)

        loop = asyncio.new_event_loop()
        loop.set_exception_handler(lambda *_: None)
        task = loop.create_task(ctx.acall(call, cost="0.10"))
        loop.run_until_complete(main())
        loop.close()
        del task, loop
        gc.collect()
        shot = ctx.snapshot()
        assert (shot.reserved_nano, shot.committed_nano) == (0, len(began) * DOLLAR // 10)

    def test_a_task_that_never_begins(self):
        """Cancelled in the turn in which it was made, as asyncio.run does when it ends."""
        ctx = ExecutionContext(Limits(max_cost_usd=1), clock=VirtualClock())
        began = []

        async def call():
            began.append(1)

        async def main():
            asyncio.get_running_loop().call_soon(asyncio.create_task(ctx.acall(call, cost="0.10")).cancel)
            await asyncio.sleep(0)

        asyncio.run(main())
        shot = ctx.snapshot()
        assert (shot.reserved_nano, shot.committed_nano) == (0, len(began) * DOLLAR // 10)
