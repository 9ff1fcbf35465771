"""Calls that hang: what the caller gets at the deadline, what becomes of the late result, and what is charged (G5)."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import threading
import time

import pytest

from failstop.runtime.audit.log import AuditLog, load
from failstop.runtime.chain import isolation
from failstop.runtime.chain.context import ExecutionContext
from failstop.runtime.chain.isolation import ProcessDied
from failstop.runtime.clock import SystemClock, VirtualClock
from failstop.runtime.limits import Limits
from failstop.runtime.money import Money
from failstop.runtime.stops import ClosedStop, ConfigurationError, HaltedStop, TimeStop


class Hang:
    """A callee that ignores its token, passes the deadline in virtual time, and writes late."""

    def __init__(self, clock):
        self.clock = clock
        self.release = threading.Event()
        self.written = threading.Event()

    def __call__(self):
        self.clock.advance_ns(5 * 10**9)
        assert self.release.wait(10)
        self.written.set()
        return "late"


def settled(ctx, attempts=2000):
    """Wait until nothing is reserved any more."""
    for _ in range(attempts):
        if ctx.snapshot().reserved_nano == 0:
            return ctx.snapshot()
        threading.Event().wait(0.001)
    raise AssertionError("never settled")


class TestThread:
    """isolate="thread": the caller leaves, the thread stays."""

    def test_the_caller_gets_its_stop_at_the_deadline_and_the_late_result_is_discarded_but_charged(self):
        """The actual cost is settled when the thread ends; nothing is given back and nothing retried."""
        clock = VirtualClock()
        ctx = ExecutionContext(Limits(max_cost_usd="1.00", max_seconds=1, max_retries=5), clock=clock)
        hang = Hang(clock)
        with pytest.raises(TimeStop):
            ctx.call(hang, isolate="thread", reserve="0.50", cost=lambda _: "0.20", retries=3)
        assert ctx.snapshot().reserved_nano == 500_000_000
        assert not hang.written.is_set()
        hang.release.set()
        assert settled(ctx).committed_nano == 200_000_000
        assert ctx.get_partial_result() is None
        (node,) = ctx.graph.nodes()
        assert (node.status, ctx.snapshot().steps) == ("abandoned", 1)

    @pytest.mark.parametrize(
        ("late", "charged"),
        [(lambda: "0.20", "0.20"), (lambda: None, "0.50"), (lambda: 1 / 0, "0.50"), (lambda: "0.90", "0.90")],
        ids=("what it cost", "unknown", "it raised", "overrun"),
    )
    def test_a_call_left_behind_is_held_until_it_ends_and_its_late_end_is_on_record(self, tmp_path, late, charged):
        """It writes once, after the caller has left; nothing is given back before, and nothing repeats it."""
        clock = VirtualClock()
        log = AuditLog.create(tmp_path, "r")
        ctx = ExecutionContext(Limits(max_cost_usd="1.00", max_seconds=1, max_retries=5), clock=clock, audit=log)
        release, writes = threading.Event(), []

        def hang():
            clock.advance_ns(5 * 10**9)
            assert release.wait(10)
            writes.append("late")
            return late()

        with pytest.raises(TimeStop) as stop:
            ctx.call(hang, isolate="thread", reserve="0.50", cost=lambda paid: paid, retries=3)
        assert stop.value.used == 10**9
        assert (writes, ctx.snapshot().reserved_nano, ctx.snapshot().committed_nano) == ([], 500_000_000, 0)
        release.set()
        assert settled(ctx).committed_nano == Money.of(charged).nano
        assert (writes, ctx.snapshot().steps, ctx.get_partial_result()) == (["late"], 1, None)
        with pytest.raises(TimeStop):
            ctx.call(hang, isolate="thread", cost=0)
        told = [event.data for event in load(log.path).events if event.kind == "settle"]
        assert [(event["outcome"], event["cost_nano"]) for event in told] == [("abandoned", Money.of(charged).nano)]
        log.close()

    def test_a_call_that_ends_in_time_is_like_any_other(self):
        """Values and errors come through, and the frame of the caller is known inside."""
        ctx = ExecutionContext(Limits(max_steps=5), clock=VirtualClock())
        assert ctx.call(lambda: threading.current_thread().name, isolate="thread", name="x") == "failstop-x"
        with pytest.raises(ZeroDivisionError):
            ctx.call(lambda: 1 / 0, isolate="thread")
        assert [node.status for node in ctx.graph.nodes()] == ["ok", "error"]

    @pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), MemoryError()])
    def test_whatever_the_thread_raises_reaches_the_caller(self, error):
        """A BaseException must not vanish with its thread."""

        def fail():
            raise error

        ctx = ExecutionContext(Limits(), clock=VirtualClock())
        with pytest.raises(type(error)):
            ctx.call(fail, isolate="thread")

    @pytest.mark.parametrize(("end", "stop"), [("halt", HaltedStop), ("close", ClosedStop)])
    def test_halting_or_closing_frees_the_caller_too(self, end, stop):
        """Not only the deadline lets go of a hanging call."""
        clock = VirtualClock()
        ctx = ExecutionContext(Limits(), clock=clock)
        hang = Hang(clock)
        stops = []

        def run():
            with pytest.raises(stop) as caught:
                ctx.call(hang, isolate="thread")
            stops.append(caught.value)

        caller = threading.Thread(target=run)
        caller.start()
        while clock.now_ns() == 0:
            threading.Event().wait(0.001)
        ctx.halt("x") if end == "halt" else ctx.close()
        caller.join(10)
        assert len(stops) == 1
        hang.release.set()

    def test_a_thread_that_cannot_start_gives_everything_back(self, monkeypatch):
        """The callable provably never began: step, money and tool call are released."""
        ctx = ExecutionContext(Limits(max_cost_usd="1.00", max_steps=1), clock=VirtualClock())
        started = []
        real = threading.Thread.start

        def refuse(self):
            raise RuntimeError("can't start new thread")

        monkeypatch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="can't start"):
            ctx.call(started.append, 1, isolate="thread", cost="1.00", kind="tool")
        monkeypatch.setattr(threading.Thread, "start", real)
        shot = ctx.snapshot()
        assert (started, shot.steps, shot.tool_calls, shot.reserved_nano, shot.committed_nano) == ([], 0, 0, 0, 0)
        ctx.call(lambda: None, isolate="thread", cost="1.00")

    def test_an_unknown_isolation_is_refused(self):
        """Before anything is counted."""
        ctx = ExecutionContext(Limits(), clock=VirtualClock())
        with pytest.raises(ConfigurationError, match="isolate is 'container'"):
            ctx.call(print, isolate="container")
        assert ctx.snapshot().steps == 0


def add(a, b):
    """Run in a process of its own."""
    return a + b


def hang_for_ever():
    """Never end; only a kill stops it."""
    threading.Event().wait()


def die():
    """End without a result."""
    os._exit(7)


def fail():
    """Raise what can be pickled."""
    raise KeyError("gone")


def unsendable():
    """Return what cannot be pickled."""
    return lambda: None


class TestProcess:
    """isolate="process": really killed."""

    def test_a_hanging_process_is_killed_at_the_deadline(self):
        """The only real time in the suite: a process that would never end is gone, and its reservation is charged."""
        ctx = ExecutionContext(Limits(max_cost_usd="1.00", max_seconds=0.5), clock=SystemClock())
        began = time.monotonic()
        with pytest.raises(TimeStop):
            ctx.call(hang_for_ever, isolate="process", cost="0.25")
        assert time.monotonic() - began < 5
        assert multiprocessing.active_children() == []
        shot = ctx.snapshot()
        assert (shot.committed_nano, shot.reserved_nano) == (250_000_000, 0)

    def test_values_and_deaths_come_back(self):
        """A result is a value; an exit without one is an error that names the call."""
        ctx = ExecutionContext(Limits(max_steps=4), clock=SystemClock())
        assert ctx.call(add, 2, b=3, isolate="process") == 5
        with pytest.raises(ProcessDied, match="'die'"):
            ctx.call(die, isolate="process")
        assert [node.status for node in ctx.graph.nodes()] == ["ok", "error"]

    @pytest.mark.parametrize(("fn", "error"), [(fail, KeyError), (unsendable, TypeError)])
    def test_the_process_sends_its_error_or_why_its_result_cannot_be_sent(self, fn, error):
        """What runs in the child, run here: it never ends without an answer."""
        receiver, sender = multiprocessing.Pipe(duplex=False)
        isolation._run_payload(sender, pickle.dumps((fn, (), {})))
        returned, answer = receiver.recv()
        assert (returned, type(answer)) == (False, error)

    def test_what_cannot_be_pickled_is_refused_before_anything_is_reserved(self):
        """A lambda or a closure has no way into another process."""
        ctx = ExecutionContext(Limits(max_steps=1), clock=VirtualClock())
        with pytest.raises(ConfigurationError, match="module-level function"):
            ctx.call(lambda: None, isolate="process")
        assert ctx.snapshot().steps == 0
