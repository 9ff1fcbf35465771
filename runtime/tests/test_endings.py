"""The end of a call when something else breaks: a policy, a reader, a log, an error's own text, a pipe."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
import time

import pytest

from failstop.runtime.chain import isolation
from failstop.runtime.chain.context import ExecutionContext
from failstop.runtime.chain.isolation import ProcessDied
from failstop.runtime.clock import SystemClock, VirtualClock
from failstop.runtime.limits import Limits
from failstop.runtime.policies.breaker import BreakerState, CircuitBreaker
from failstop.runtime.policies.pipeline import PolicyDecision, PolicyPipeline
from failstop.runtime.stops import ConfigurationError, HaltedStop, StepStop, Stop, TimeStop

SECOND = 10**9


def context(clock=None, audit=None, policies=None, **limits):
    limits = {"max_cost_usd": 1} | limits
    pipeline = None if policies is None else PolicyPipeline(policies)
    return ExecutionContext(Limits(**limits), clock=clock or VirtualClock(), audit=audit, policies=pipeline)


class Policy:
    """Allows everything; what it does at a report is given."""

    policy_type = "watcher"

    def __init__(self, at_report):
        self.at_report = at_report

    def check(self, _):
        return PolicyDecision(True, "watcher")

    def release(self, *_): ...

    def report(self, *_):
        self.at_report()

    def reset(self): ...


def breaks():
    raise OSError("the policy broke")


class TestAPolicyThatCannotTakeTheReport:
    """Nobody knows any more what it counts, so the chain stops; the call itself is what it was."""

    @pytest.mark.parametrize("isolate", [None, "thread"])
    def test_the_value_is_given_and_the_call_is_not_made_again(self, isolate):
        """Taken for the call's own failure it would be retried: a second effect."""
        ctx = context(policies=[Policy(breaks)])
        done = []
        assert ctx.call(lambda: done.append(1) or "value", cost="0.10", retries=3, isolate=isolate) == "value"
        assert done == [1]
        with pytest.raises(HaltedStop, match="the policy broke"):
            ctx.call(lambda: 1, cost=0)
        assert (ctx.snapshot().committed_nano, ctx.snapshot().reserved_nano) == (SECOND // 10, 0)

    def test_the_error_of_the_call_stays_its_own(self):
        """The caller hears what broke first."""

        def fail():
            raise ValueError("the call broke")

        ctx = context(policies=[Policy(breaks)])
        with pytest.raises(ValueError, match="the call broke"):
            ctx.call(fail, cost=0)
        assert type(ctx.stop) is HaltedStop


class TestAReaderOfTokens:
    """Observation only: no limit rests on it, so nothing that it does matters."""

    @pytest.mark.parametrize("read", [lambda _: (None, None), lambda _: 7, lambda _: ("x", 1), lambda _: breaks()])
    def test_whatever_it_gives_the_call_ends_and_its_policies_hear_of_it(self, read):
        """A probe that succeeded closes the breaker."""
        clock = VirtualClock()
        breaker = CircuitBreaker(1, 1, clock=clock)
        ctx = context(clock, policies=[breaker])
        with pytest.raises(OSError, match="broke"):
            ctx.call(breaks, cost=0)
        clock.advance_ns(SECOND)
        assert ctx.call(lambda: "probe", cost=0, tokens=read) == "probe"
        assert breaker.state is BreakerState.CLOSED
        assert [(node.tokens_in, node.tokens_out) for node in ctx.graph.nodes()][-1] == (0, 0)


class TestALogThatCannotBeWritten:
    """The chain is over, and whoever waits or is in flight is told all the same."""

    class Full:
        """A sink that is full from one kind of event on."""

        def __init__(self, kind):
            self.kind = kind

        def record(self, kind, _):
            if kind == self.kind:
                raise OSError("no space left")

    def test_a_call_that_waits_is_woken_by_a_settlement_that_cannot_be_written(self):
        """Else it would wait for ever."""
        ctx = context(audit=self.Full("settle"))
        held = ctx.reserve()
        answers = []
        asked = threading.Event()

        def wait():
            asked.set()
            try:
                ctx.call(lambda: 1, cost="0.50")
            except (Exception, Stop) as error:
                answers.append(error)

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        assert asked.wait(10)
        with pytest.raises(OSError, match="no space"):
            held.settle("0.10")
        thread.join(10)
        assert [type(answer) for answer in answers] == [HaltedStop]

    @pytest.mark.parametrize(
        ("kind", "end"), [("stop", lambda ctx: ctx.halt("over")), ("close", lambda ctx: ctx.close())]
    )
    def test_what_is_in_flight_is_told(self, kind, end):
        """The error comes out, but the tokens of the context and of its children are set before."""
        ctx = context(audit=self.Full(kind))
        child = ctx.create_child()
        with pytest.raises(OSError, match="no space"):
            end(ctx)
        assert ctx.token.cancelled
        assert child.token.cancelled


class TestAnErrorWithoutText:
    """What a call raises may not even be readable."""

    class MuteError(Exception):
        def __str__(self):
            raise StepStop(0, 0)

    @pytest.mark.parametrize("options", [{}, {"name": "full"}, {"isolate": "thread"}])
    def test_is_charged_and_raised_as_it_is(self, options):
        """The record names its type."""
        events = []

        class Sink:
            def record(self, kind, data):
                events.append((kind, data))

        def fail():
            raise self.MuteError

        ctx = context(audit=Sink())
        with pytest.raises(self.MuteError):
            ctx.call(fail, cost="0.10", **options)
        assert ctx.snapshot().reserved_nano == 0
        assert [data["error"] for kind, data in events if kind == "settle"] == ["MuteError"]


class TestTheWrongFace:
    """call() for what must be awaited, acall() for what cannot be."""

    @pytest.mark.parametrize("options", [{}, {"name": "full"}, {"isolate": "thread"}])
    @pytest.mark.parametrize("kind", [asyncio.sleep, lambda _: asyncio.sleep(0)])
    def test_a_coroutine_function_is_told_to_be_awaited(self, kind, options):
        """Its body never began, so nothing may look as if it had been done."""
        ctx = context()
        with pytest.raises(ConfigurationError, match="acall"):
            ctx.call(kind, 0, cost=0, **options)

    def test_a_plain_function_is_told_to_be_called(self):
        """The message names the way out."""
        ctx = context()
        with pytest.raises(ConfigurationError, match=r"call\(\)"):
            asyncio.run(ctx.acall(lambda: 1, cost=0))
        assert ctx.snapshot().reserved_nano == 0


class TestIsolated:
    """A call on a thread or in a process."""

    def test_a_cost_that_hangs_does_not_hold_the_caller_past_the_deadline(self):
        """It is read on the thread that is left behind."""
        clock = VirtualClock()
        ctx = context(clock, max_seconds=1)
        release = threading.Event()

        def cost(_):
            clock.advance_ns(SECOND)
            assert release.wait(10)
            return "0.10"

        with pytest.raises(TimeStop):
            ctx.call(lambda: 1, reserve="0.50", cost=cost, isolate="thread", name="priced")
        release.set()
        for thread in threading.enumerate():
            if thread.name == "failstop-priced":
                thread.join(10)
        assert ctx.snapshot().committed_nano == SECOND // 10

    def test_a_process_that_died_is_noticed_though_another_child_keeps_its_pipe_open(self, monkeypatch):
        """Its end is told by itself, not only by the pipe's."""
        kept = []
        real = multiprocessing.get_context("spawn").Pipe

        class Keeping:
            def __init__(self, spawn):
                self._spawn = spawn

            def Pipe(self, duplex):  # noqa: N802 - the name it stands in for
                receiver, sender = real(duplex)
                kept.append(multiprocessing.reduction.DupFd(sender.fileno()).detach())
                return receiver, sender

            def __getattr__(self, name):
                return getattr(self._spawn, name)

        spawn = multiprocessing.get_context("spawn")
        monkeypatch.setattr(isolation.multiprocessing, "get_context", lambda _: Keeping(spawn))
        ctx = context(SystemClock(), max_seconds=60)
        began = time.monotonic()
        with pytest.raises(ProcessDied):
            ctx.call(multiprocessing.process.os._exit, 1, cost="0.10", isolate="process")
        assert time.monotonic() - began < 30
        assert kept


@pytest.mark.parametrize("now", [-1, 0.5, None, True])
def test_a_clock_that_no_deadline_can_be_told_by_is_refused(now):
    """Below zero a deadline would read as none (G5)."""

    class Odd(VirtualClock):
        def now_ns(self):
            return now

    with pytest.raises(ConfigurationError, match="clock"):
        ExecutionContext(Limits(max_seconds=1), clock=Odd())


@pytest.mark.parametrize("value", [0, "text", object(), [], ""])
@pytest.mark.parametrize("field", ["limits", "policies", "clock", "audit", "name"])
def test_what_cannot_be_worked_with_is_refused_when_a_context_is_made(field, value):
    """By name, before a call is in flight that it would break (G6)."""
    if field == "name" and value == "text":
        value = None
    with pytest.raises(ConfigurationError) as refused:
        ExecutionContext(**{"limits": Limits(), field: value})
    assert refused.value.field == field
