"""The boundary of a chain: what is dispatched, what is charged, and what stays stopped."""

from __future__ import annotations

import gc
import threading

import pytest

from failstop.runtime.chain.context import ExecutionContext
from failstop.runtime.chain.decision import Decision
from failstop.runtime.chain.dispatch import AlreadyEnded
from failstop.runtime.clock import VirtualClock
from failstop.runtime.limits import Limits
from failstop.runtime.money import Money
from failstop.runtime.policies.retry import RetryContainer
from failstop.runtime.stops import (
    ClosedStop,
    ConfigurationError,
    Contended,
    CostStop,
    HaltedStop,
    RepeatStop,
    RetryStop,
    StepStop,
    Stop,
    TimeStop,
    ToolCallStop,
)
from failstop.runtime.tests.racing import race

CENT = Money.of("0.01")


def context(clock=None, **limits):
    return ExecutionContext(Limits(**limits), clock=clock or VirtualClock())


class Witness:
    """A callable that counts its own dispatches."""

    def __init__(self, value="ok", error=None):
        self.count = 0
        self.value = value
        self.error = error

    def __call__(self, *args, **kwargs):
        self.count += 1
        if self.error is not None:
            raise self.error
        return self.value


def until_stopped(ctx, work, attempts=50, **options):
    """Call until the chain refuses; give the stop."""
    for _ in range(attempts):
        try:
            ctx.call(work, **options)
        except Stop as stop:
            return stop
        except Exception as error:
            if error is not work.error:
                raise
    raise AssertionError("nothing stopped it")


class TestSteps:
    """G2: dispatches, failed ones and retries included."""

    @pytest.mark.parametrize("limit", [0, 1, 5])
    def test_exactly_the_limit_is_dispatched(self, limit):
        """Neither one less nor one more, and the stop names ceiling, limit and used."""
        work = Witness()
        stop = until_stopped(context(max_steps=limit), work)
        assert (type(stop), stop.ceiling, stop.limit, stop.used) == (StepStop, "steps", limit, limit)
        assert work.count == limit

    def test_failing_calls_count(self):
        """An agent whose every call fails is stopped like any other."""
        work = Witness(error=ValueError("no"))
        assert isinstance(until_stopped(context(max_steps=5), work), StepStop)
        assert work.count == 5

    def test_sixteen_threads_dispatch_exactly_the_limit(self):
        """Admission is one critical section: no thread slips between the check and the count."""
        ctx = context(max_steps=5)
        work = Witness()
        gate = threading.Barrier(16)

        def run():
            gate.wait(5)
            until_stopped(ctx, work)

        threads = [threading.Thread(target=run) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
            assert not thread.is_alive()
        assert work.count == 5

    def test_tool_calls_have_a_ceiling_of_their_own(self):
        """Only calls of kind "tool" draw from it."""
        ctx = context(max_tool_calls=2)
        work = Witness()
        ctx.call(work, kind="llm")
        stop = until_stopped(ctx, work, kind="tool")
        assert (type(stop), work.count) == (ToolCallStop, 3)

    def test_an_unknown_kind_is_refused_and_counts_nothing(self):
        """A misspelt kind would otherwise escape the tool ceiling."""
        ctx = context(max_steps=5)
        with pytest.raises(ConfigurationError, match="kind is 'tools'"):
            ctx.call(Witness(), kind="tools")
        with pytest.raises(ConfigurationError, match="kind is 'tools'"):
            ctx.call(Witness(), kind="tools", retries=1)
        assert ctx.snapshot().steps == 0


class TestHalt:
    """Once halted, a chain never dispatches again."""

    def test_a_swallowed_stop_comes_back_at_every_call(self):
        """What the agent catches changes nothing: every later call raises an equal stop."""
        ctx = context(max_steps=1)
        work = Witness()
        ctx.call(work)
        stops = [until_stopped(ctx, work) for _ in range(3)]
        assert {(type(stop), stop.limit, stop.used) for stop in stops} == {(StepStop, 1, 1)}
        assert len({id(stop) for stop in stops}) == 3
        assert work.count == 1

    def test_except_exception_does_not_swallow_a_stop(self):
        """A retry decorator or a bare `except Exception` lets the stop unwind the loop."""
        ctx = context(max_steps=0)
        with pytest.raises(StepStop):
            try:
                ctx.call(Witness())
            except Exception:
                pytest.fail("an ordinary handler caught the stop")

    def test_the_first_stop_stays_whatever_comes_after(self):
        """Halting by hand after a ceiling does not rename the reason."""
        ctx = context(max_steps=0)
        until_stopped(ctx, Witness())
        ctx.halt("by hand")
        assert isinstance(until_stopped(ctx, Witness()), StepStop)

    def test_halting_by_hand_stops_and_tells_the_calls_in_flight(self):
        """The token is set with the reason."""
        ctx = context()
        ctx.halt("operator")
        work = Witness()
        stop = until_stopped(ctx, work)
        assert (type(stop), stop.detail, work.count) == (HaltedStop, "operator", 0)
        assert (ctx.token.cancelled, ctx.token.reason) == (True, "operator")

    def test_a_closed_context_takes_no_call(self):
        """Leaving the `with` block closes it; closing twice is harmless."""
        with context() as ctx:
            ctx.call(Witness())
        ctx.close()
        work = Witness()
        assert isinstance(until_stopped(ctx, work), ClosedStop)
        assert work.count == 0

    def test_the_wrapped_calls_answer_instead_of_raising(self):
        """For agents that branch on a decision; the value is not lost."""
        ctx = context(max_steps=2)
        assert ctx.wrap_llm_call(Witness("a")) is Decision.ALLOW
        assert ctx.wrap_tool_call(Witness("b")) is Decision.ALLOW
        assert ctx.get_partial_result() == "b"
        assert ctx.wrap_llm_call(Witness()) is Decision.HALT
        assert ctx.snapshot().tool_calls == 1

    def test_the_wrapped_calls_hand_on_what_they_are_given(self):
        """The arguments reach the function, and nothing else does."""
        seen = []
        ctx = context()
        for wrapped in (ctx.wrap_llm_call, ctx.wrap_tool_call):
            wrapped(lambda *args, **kwargs: seen.append((args, kwargs)), 1, 2, name="full", key="value")
        assert seen == [((1, 2), {"key": "value"})] * 2

    def test_the_wrapped_calls_are_of_their_kind(self):
        """Only one of them is a tool call."""
        ctx = context(max_tool_calls=0)
        assert ctx.wrap_llm_call(Witness(), name="full") is Decision.ALLOW
        assert ctx.wrap_tool_call(Witness(), name="full") is Decision.HALT

    def test_a_stop_explains_itself_only_where_there_is_something_to_explain(self):
        """A stop by cost says what was asked for; one by steps has its numbers and needs no more."""
        assert until_stopped(context(max_steps=0), Witness()).detail == ""
        stop = until_stopped(context(max_cost_usd="0.10"), Witness(), cost="0.20")
        assert stop.detail == "a call asked for $0.20"


class TestCost:
    """G1: committed + reserved never passes the ceiling; unknown is not free."""

    @pytest.mark.parametrize(
        "options", [{"cost": CENT}, {"cost": "0.01"}, {"reserve": "0.01", "cost": lambda _: "0.01"}]
    )
    def test_the_ceiling_is_spent_to_the_last_cent_and_no_further(self, options):
        """Five cents admit five calls of one cent."""
        ctx = context(max_cost_usd="0.05")
        work = Witness()
        stop = until_stopped(ctx, work, **options)
        assert (type(stop), stop.limit, stop.used) == (CostStop, 50_000_000, 50_000_000)
        assert work.count == 5

    def test_sixteen_callers_at_the_last_cent_dispatch_one(self):
        """The reservation is atomic with the check (field case 18)."""
        for _ in range(20):
            ctx = context(max_cost_usd="0.01")
            work = Witness()
            gate = threading.Barrier(16)

            def run(ctx=ctx, work=work, gate=gate):
                gate.wait(5)
                try:
                    ctx.call(work, cost=CENT, wait=False)
                except (Stop, Contended):
                    return

            threads = [threading.Thread(target=run) for _ in range(16)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(10)
            assert work.count == 1
            assert ctx.snapshot().committed_nano == 10_000_000

    @pytest.mark.parametrize("limits", [None, Limits(max_cost_usd="1.00")])
    def test_sixteen_sub_agents_at_the_last_cent_dispatch_one(self, limits):
        """Each through a context of its own, with or without a ceiling of its own (field case 18)."""
        for _ in range(10):
            root = context(max_cost_usd="0.01")
            work = Witness()
            children = [root.create_child(limits) for _ in range(16)]

            def run(index, work=work, children=children):
                try:
                    children[index].call(work, cost=CENT, wait=False)
                except (Stop, Contended):
                    return

            race(16, run)
            assert work.count == 1
            assert root.snapshot().committed_nano == 10_000_000

    def test_two_absurd_costs_in_flight_are_both_on_the_books_in_full(self):
        """Neither overflows, wraps or hides the other; the chain is over (field case 21)."""
        ctx = context(max_cost_usd="1.00")
        tickets = [ctx.reserve("0.10") for _ in range(2)]
        for ticket in tickets:
            ticket.settle(1e308)
        assert ctx.snapshot().committed_nano == 2 * int(1e308) * 10**9
        assert ctx.snapshot().reserved_nano == 0
        assert isinstance(ctx.stop, CostStop)

    def test_what_was_not_spent_comes_back(self):
        """A reservation is an upper bound; the actual cost is charged."""
        ctx = context(max_cost_usd="1.00")
        ctx.call(Witness(), reserve="0.90", cost=lambda _: "0.10")
        shot = ctx.snapshot()
        assert (shot.committed_nano, shot.reserved_nano) == (100_000_000, 0)
        ctx.call(Witness(), reserve="0.90", cost=lambda _: "0.10")

    def test_a_call_without_an_estimate_takes_and_is_charged_all_that_is_left(self):
        """Its cost is never known, and unknown is not free; the next call is stopped with a hint."""
        ctx = context(max_cost_usd="1.00")
        ctx.call(Witness())
        assert ctx.snapshot().committed_nano == 10**9
        stop = until_stopped(ctx, Witness())
        assert isinstance(stop, CostStop)
        assert "cost=0" in str(stop)

    def test_a_free_call_runs_beside_an_exhausted_budget(self):
        """cost=0 spends nothing, so a ceiling of nothing allows it."""
        ctx = context(max_cost_usd=0)
        work = Witness()
        ctx.call(work, cost=0)
        assert isinstance(until_stopped(ctx, work), CostStop)
        assert work.count == 1

    @pytest.mark.parametrize(
        "report",
        [None, float("nan"), float("inf"), -5, True, "free", [], object(), lambda _: 1 / 0],
        ids=["nothing", "nan", "infinite", "negative", "bool", "text", "list", "object", "raises"],
    )
    def test_a_cost_that_cannot_be_read_is_the_whole_reservation(self, report):
        """NaN, negative, text, None, a bool or a report that raises: never free, and the chain ends at its ceiling."""
        ctx = context(max_cost_usd="0.50")
        work = Witness()
        read = report if callable(report) else lambda _: report
        stop = until_stopped(ctx, work, reserve="0.10", cost=read)
        assert (type(stop), work.count) == (CostStop, 5)
        assert ctx.snapshot().committed_nano == 500_000_000

    def test_an_overrun_is_recorded_in_full_and_stops_the_chain(self):
        """The ledger does not look better than the bill."""
        ctx = context(max_cost_usd="1.00")
        assert ctx.call(Witness("v"), reserve="0.10", cost=lambda _: 1e308) == "v"
        assert ctx.snapshot().committed_nano == int(1e308) * 10**9
        stop = until_stopped(ctx, Witness(), cost=0)
        assert isinstance(stop, CostStop)
        assert "held $0.10 cost" in stop.detail

    def test_spent_money_never_falls(self):
        """No report, however strange, makes the committed amount smaller."""
        ctx = context(max_cost_usd="10.00")
        seen = [0]
        for report in (0.1, -5, None, "0.1", float("nan"), 0):
            ctx.call(Witness(), reserve="1.00", cost=lambda _, report=report: report)
            seen.append(ctx.snapshot().committed_nano)
        assert seen == sorted(seen)

    def test_a_call_that_raised_is_charged_what_it_held(self):
        """What it spent before it raised is unknown."""
        ctx = context(max_cost_usd="1.00")
        for error in (ValueError("x"), KeyboardInterrupt(), MemoryError()):
            with pytest.raises(type(error)):
                ctx.call(Witness(error=error), reserve="0.10", cost=lambda _: 0)
        assert ctx.snapshot().committed_nano == 300_000_000
        assert ctx.snapshot().reserved_nano == 0

    def test_a_request_that_can_never_fit_stops_the_chain(self):
        """Even if nothing else is spent, two dollars do not fit into one."""
        ctx = context(max_cost_usd="1.00")
        stop = until_stopped(ctx, Witness(), cost="2.00")
        assert (type(stop), stop.used) == (CostStop, 0)
        assert "asked for $2.00" in stop.detail

    @pytest.mark.parametrize("reserve", ["0", 0, Money(0)])
    def test_a_bound_of_zero_for_a_cost_read_later_is_refused(self, reserve):
        """It would hold nothing against a cost it may well have, for any number of callers at once."""
        ctx = context(max_cost_usd="1.00")
        with pytest.raises(ConfigurationError, match="reserve is"):
            ctx.call(Witness(), reserve=reserve, cost=lambda _: 1)
        assert ctx.snapshot().steps == 0

    @pytest.mark.parametrize("bad", [{"reserve": -1}, {"cost": float("nan")}, {"reserve": True}, {"cost": "x"}])
    def test_a_senseless_amount_is_refused_before_anything_moves(self, bad):
        """The chain's counters stay as they were and nothing is dispatched."""
        ctx = context(max_cost_usd="1.00", max_steps=5)
        work = Witness()
        with pytest.raises(ConfigurationError):
            ctx.call(work, **bad)
        assert (work.count, ctx.snapshot().steps, ctx.stop) == (0, 0, None)

    def test_a_known_cost_above_the_stated_bound_raises_the_bound(self):
        """The overrun is known beforehand, so it is refused beforehand."""
        ctx = context(max_cost_usd="1.00")
        assert isinstance(until_stopped(ctx, Witness(), reserve="0.10", cost="5.00"), CostStop)


class TestContention:
    """Reservations in flight keep a call out for a while, not for good."""

    def hold(self, ctx, **options):
        """Start a call on its own thread that holds until released."""
        entered, release = threading.Event(), threading.Event()

        def work():
            entered.set()
            assert release.wait(10)

        thread = threading.Thread(target=ctx.call, args=(work,), kwargs=options)
        thread.start()
        assert entered.wait(10)
        return thread, release

    def wait_for_waiter(self, ctx, count=1):
        """Spin until calls are waiting at the ledger, for ten seconds at most."""
        never = threading.Event()
        return any(len(ctx._ledger.chain.waiters) >= count or never.wait(0.001) for _ in range(10_000))

    def test_a_call_kept_out_only_by_another_waits_for_it_to_settle(self):
        """It runs once the holder has settled for less than it held; nothing is halted."""
        ctx = context(max_cost_usd="1.00")
        holder, release = self.hold(ctx, reserve="0.80", cost=lambda _: "0.10")
        work = Witness()
        waiter = threading.Thread(target=ctx.call, args=(work,), kwargs={"cost": "0.50"})
        waiter.start()
        assert self.wait_for_waiter(ctx)
        assert work.count == 0
        release.set()
        for thread in (holder, waiter):
            thread.join(10)
            assert not thread.is_alive()
        assert work.count == 1
        assert ctx.snapshot().committed_nano == 600_000_000

    def test_a_caller_may_choose_to_be_refused_at_once(self):
        """Contended is a denial of this call only."""
        ctx = context(max_cost_usd="1.00")
        holder, release = self.hold(ctx, reserve="0.80", cost=lambda _: "0.10")
        with pytest.raises(Contended, match=r"asked for \$0.50 while calls in flight hold \$0.80"):
            ctx.call(Witness(), cost="0.50", wait=False)
        assert ctx.stop is None
        release.set()
        holder.join(10)
        ctx.call(Witness(), cost="0.50", wait=False)

    def test_a_waiting_call_is_stopped_at_the_deadline(self):
        """It does not wait beyond the time the chain has."""
        clock = VirtualClock()
        ctx = context(clock, max_cost_usd="1.00", max_seconds=1)
        holder, release = self.hold(ctx)
        stops = []
        waiter = threading.Thread(target=lambda: stops.append(until_stopped(ctx, Witness(), cost="0.50")))
        waiter.start()
        assert self.wait_for_waiter(ctx)
        clock.advance_ns(10**9)
        waiter.join(10)
        assert [type(stop) for stop in stops] == [TimeStop]
        release.set()
        holder.join(10)

    def test_a_waiting_call_hears_of_a_halt_and_of_closing(self):
        """A cap that trips elsewhere, or close(), wakes it with the stop at once."""
        for end in (lambda ctx: ctx.halt("x"), lambda ctx: ctx.close()):
            ctx = context(max_cost_usd="1.00")
            holder, release = self.hold(ctx)
            stops = []
            waiter = threading.Thread(
                target=lambda ctx=ctx, stops=stops: stops.append(until_stopped(ctx, Witness(), cost=1))
            )
            waiter.start()
            self.wait_for_waiter(ctx)
            end(ctx)
            waiter.join(10)
            assert len(stops) == 1
            release.set()
            holder.join(10)

    @pytest.mark.parametrize(
        ("limits", "trips", "expected"),
        [
            ({"max_steps": 2}, {"cost": 0}, StepStop),
            ({"max_tool_calls": 0}, {"cost": 0, "kind": "tool"}, ToolCallStop),
            ({"max_retries": 0}, {"cost": 0, "retries": 1}, RetryStop),
            ({}, {"cost": "2.00"}, CostStop),
            ({}, {"reserve": "0.10", "cost": lambda _: 5}, CostStop),
        ],
        ids=("steps", "tool calls", "retries", "too dear", "overrun"),
    )
    def test_a_parent_that_waits_is_stopped_at_once_by_a_cap_that_trips_in_a_child(self, limits, trips, expected):
        """While the call that keeps it out is still in flight, and will be for ever (field case 23)."""
        root = context(max_cost_usd="1.00", **limits)
        child = root.create_child()
        holder, release = self.hold(root, reserve="0.80", cost=lambda _: "0.10")
        stops = []
        waiter = threading.Thread(target=lambda: stops.append(until_stopped(root, Witness(), cost="0.50")))
        waiter.start()
        assert self.wait_for_waiter(root)
        until_stopped(child, Witness(error=ValueError("no") if "retries" in trips else None), **trips)
        waiter.join(10)
        assert [type(stop) for stop in stops] == [expected]
        assert holder.is_alive()
        release.set()
        holder.join(10)

    def test_a_call_of_unknown_cost_waits_in_a_child_with_limits_of_its_own_too(self):
        """What it takes is found out first, and that is no refusal."""
        ctx = context(max_cost_usd="1.00").create_child(Limits(max_cost_usd="0.90"))
        holder, release = self.hold(ctx, reserve="0.80", cost=lambda _: "0.10")
        work = Witness()
        waiter = threading.Thread(target=ctx.call, args=(work,))
        waiter.start()
        assert self.wait_for_waiter(ctx)
        release.set()
        for thread in (holder, waiter):
            thread.join(10)
            assert not thread.is_alive()
        assert work.count == 1

    def test_a_reservation_waits_unless_it_is_told_not_to(self):
        """As a call does."""
        ctx = context(max_cost_usd="1.00")
        holder, release = self.hold(ctx, reserve="0.80", cost=lambda _: "0.10")
        tickets = []
        waiter = threading.Thread(target=lambda: tickets.append(ctx.reserve("0.50")))
        waiter.start()
        assert self.wait_for_waiter(ctx)
        release.set()
        for thread in (holder, waiter):
            thread.join(10)
            assert not thread.is_alive()
        assert [ticket.held for ticket in tickets] == [500_000_000]

    @pytest.mark.parametrize("wait", [False, True])
    def test_what_keeps_a_call_out_is_named(self, wait):
        """The ceiling, what was asked for, and what is held."""
        ctx = context(max_cost_usd="1.00")
        ctx.reserve("0.80")
        with pytest.raises(Contended) as caught:
            ctx.call(Witness(), cost="0.50", wait=wait)
        assert caught.value.policy == "cost"
        assert caught.value.reason == "a call asked for $0.50 while calls in flight hold $0.80"

    def test_unknown_prices_run_one_at_a_time(self):
        """A call without an estimate waits until nothing is reserved, then takes everything."""
        ctx = context(max_cost_usd="1.00")
        holder, release = self.hold(ctx, reserve="0.10", cost=lambda _: 0)
        with pytest.raises(Contended, match="all that is left"):
            ctx.call(Witness(), cost=lambda _: "0.20", wait=False)
        release.set()
        holder.join(10)
        ctx.call(Witness(), cost=lambda _: "0.20", wait=False)
        assert ctx.snapshot().committed_nano == 200_000_000

    @pytest.mark.parametrize("options", [{}, {"name": "guarded"}, {"isolate": "thread"}])
    def test_a_call_from_inside_a_call_is_refused_rather_than_waiting_for_itself(self, options):
        """What its own caller holds cannot be settled before it returns."""
        ctx = context(max_cost_usd="1.00")

        def outer():
            with pytest.raises(Contended):
                ctx.call(Witness(), cost="0.10")
            return "done"

        assert ctx.call(outer, **options) == "done"


class TestTime:
    """G5: no dispatch once the deadline has passed."""

    def test_the_clock_is_read_where_the_call_is_admitted(self):
        """The last nanosecond is in time, the next is not."""
        clock = VirtualClock()
        ctx = context(clock, max_seconds=1)
        work = Witness()
        clock.advance_ns(10**9 - 1)
        ctx.call(work)
        clock._now_ns += 1  # the alarm has not rung: admission itself must see the time
        stop = until_stopped(ctx, work)
        assert (type(stop), stop.limit, stop.used, work.count) == (TimeStop, 10**9, 10**9, 1)

    def test_a_clock_that_steps_back_does_not_revive_the_chain(self):
        """The deadline is a latch."""
        clock = VirtualClock()
        ctx = context(clock, max_seconds=1)
        clock._now_ns = 2 * 10**9
        until_stopped(ctx, Witness())
        clock._now_ns = 0
        assert isinstance(until_stopped(ctx, Witness()), TimeStop)

    def test_no_time_at_all_admits_nothing(self):
        """max_seconds=0 is a limit, not its absence."""
        work = Witness()
        assert isinstance(until_stopped(context(max_seconds=0), work), TimeStop)
        assert work.count == 0

    def test_the_deadline_tells_a_call_in_flight_through_the_token(self):
        """A plain call is told and may end early; what it returns is still its value."""
        clock = VirtualClock()
        ctx = context(clock, max_seconds=1)

        def patient():
            clock.advance_ns(2 * 10**9)
            return ctx.token.cancelled

        assert ctx.call(patient) is True

    def test_a_closed_context_leaves_no_alarm_behind(self):
        """Nothing rings for a run that is over."""
        clock = VirtualClock()
        ctx = context(clock, max_seconds=1)
        ctx.close()
        clock.advance_ns(2 * 10**9)
        assert (ctx.stop, ctx.token.reason) == (None, "closed")

    def test_a_stop_by_time_counts_from_the_start_of_the_context_it_ends(self):
        """Its numbers are the limit and the time used, whatever the clock said at the start."""
        clock = VirtualClock()
        root = context(clock)
        clock.advance_ns(5 * 10**9)
        child = root.create_child(Limits(max_seconds=1))
        clock.advance_ns(2 * 10**9)
        with pytest.raises(TimeStop) as caught:
            child.call(Witness(), cost=0)
        assert (caught.value.limit, caught.value.used) == (10**9, 10**9)

    def test_a_retry_that_could_only_begin_at_the_deadline_is_not_waited_for(self):
        """The error comes out at once; one nanosecond more of time, and it is waited for."""
        for spare_ns, tries in ((0, 1), (1, 2)):
            clock = VirtualClock()
            ctx = context(clock, max_seconds=10)
            clock.advance_ns(9 * 10**9 - spare_ns)
            work = Witness(error=ValueError("again"))
            with pytest.raises(ValueError, match="again"):
                ctx.call(work, cost=0, retries=RetryContainer(1, jitter=0, clock=clock))
            assert work.count == tries


class TestRetries:
    """G3: retry dispatches in the whole chain, however nested."""

    def test_three_nested_layers_share_one_budget(self):
        """Three layers of three, three and five tries over a tool that always fails: at most R more than the first."""
        clock = VirtualClock()
        ctx = context(clock, max_retries=4)
        tool = Witness(error=ValueError("down"))
        layers = {"outer": 0, "middle": 0}

        def middle():
            layers["middle"] += 1
            return ctx.call(tool, retries=4, cost=0)

        def outer():
            layers["outer"] += 1
            return ctx.call(middle, retries=2, cost=0)

        with pytest.raises(RetryStop) as stop:
            ctx.call(outer, retries=2, cost=0)
        assert (stop.value.limit, stop.value.used) == (4, 4)
        assert tool.count == 5
        assert ctx.snapshot().retries == 4
        assert ctx.snapshot().steps == tool.count + layers["outer"] + layers["middle"] == 7

    @pytest.mark.parametrize(
        ("limits", "end", "tries"),
        [({"max_retries": 4}, RetryStop, 5), ({"max_steps": 6}, StepStop, 4), ({"max_cost_usd": "0.06"}, Contended, 4)],
        ids=("retries", "steps", "cost"),
    )
    def test_nested_layers_of_retries_are_charged_for_every_dispatch_and_end_at_one_ceiling(self, limits, end, tries):
        """3 x 3 x 5 over a tool that always fails, each layer a container of the chain (field case 37)."""
        clock = VirtualClock()
        ctx = context(clock, **{"max_cost_usd": "1.00", **limits})
        outer, middle, inner = (RetryContainer(n - 1, clock=clock, context=ctx) for n in (3, 3, 5))
        tool = Witness(error=ValueError("down"))

        def middle_layer():
            return middle.execute(lambda: inner.execute(tool, cost=CENT), cost=CENT)

        with pytest.raises(end):
            outer.execute(middle_layer, cost=CENT)
        assert tool.count == tries
        shot = ctx.snapshot()
        assert shot.committed_nano == shot.steps * CENT.nano
        assert shot.reserved_nano == 0

    def test_every_try_is_a_step_and_is_charged(self):
        """A failing try holds and is charged its reservation like any other call."""
        ctx = context(max_retries=9, max_steps=3, max_cost_usd="1.00")
        tool = Witness(error=ValueError("down"))
        with pytest.raises(StepStop):
            ctx.call(tool, retries=9, cost="0.10")
        assert tool.count == 3
        assert ctx.snapshot().committed_nano == 300_000_000

    def test_no_retries_allowed_still_runs_healthy_calls(self):
        """R = 0 refuses retries, not operations."""
        ctx = context(max_retries=0)
        work = Witness()
        for _ in range(3):
            ctx.call(work, retries=2)
        assert work.count == 3
        with pytest.raises(RetryStop):
            ctx.call(Witness(error=ValueError()), retries=2)

    def test_the_last_error_comes_out_when_the_call_itself_is_out_of_tries(self):
        """Within the chain's ceiling the caller sees what its function raised."""
        ctx = context(max_retries=9)
        tool = Witness(error=ValueError("down"))
        with pytest.raises(ValueError, match="down"):
            ctx.call(tool, retries=2)
        assert tool.count == 3
        assert ctx.stop is None


class TestChildren:
    """Sub-agents draw from the root."""

    def test_a_tree_of_sub_agents_stays_under_the_roots_ceiling(self):
        """K = 5, D = 2: thirty-one agents of ten calls each, forty in all."""
        root = context(max_steps=40)
        work = Witness()

        def agent(ctx, depth):
            for _ in range(10):
                ctx.call(work)
            for _ in range(5 if depth else 0):
                agent(ctx.create_child(), depth - 1)

        with pytest.raises(StepStop):
            agent(root, 2)
        assert work.count == 40
        assert root.snapshot().steps == 40

    def test_a_child_may_be_given_less_and_stops_alone(self):
        """Its own ceiling ends the child; the parent goes on with what is left."""
        root = context(max_steps=5, max_cost_usd="1.00")
        child = root.create_child(Limits(max_steps=2, max_cost_usd="0.30"))
        work = Witness()
        assert isinstance(until_stopped(child, work, cost="0.10"), StepStop)
        assert work.count == 2
        assert root.stop is None
        assert (root.snapshot().steps, root.snapshot().committed_nano) == (2, 200_000_000)
        assert isinstance(until_stopped(root, work, cost=0), StepStop)
        assert work.count == 5

    @pytest.mark.parametrize("swallows", [False, True])
    @pytest.mark.parametrize("isolate", [None, "thread"])
    def test_a_call_that_waits_for_a_childs_work_ends_with_its_stop(self, isolate, swallows):
        """The stop comes out of that call; a tool that swallows it only delays it to the next (field case 23)."""
        root = context(max_steps=4)
        work = Witness()

        def sub_agent():
            child = root.create_child()
            try:
                while True:
                    child.call(work)
            except StepStop:
                if not swallows:
                    raise

        with pytest.raises(StepStop):
            root.call(sub_agent, isolate=isolate)
            root.call(work)
        assert work.count == 3

    def test_a_child_cannot_be_given_more_than_the_root_has(self):
        """A wider limit below changes nothing above."""
        root = context(max_steps=2)
        child = root.create_child(Limits(max_steps=100))
        work = Witness()
        assert isinstance(until_stopped(child, work), StepStop)
        assert (work.count, type(root.stop)) == (2, StepStop)

    def test_an_unknown_price_in_a_child_holds_the_least_that_any_ledger_has_left(self):
        """The root may have less left than the child was promised, and the other way round."""
        for root_has, child_has, left in (("0.30", "0.50", 300_000_000), ("0.50", "0.30", 300_000_000)):
            root = context(max_cost_usd=root_has)
            child = root.create_child(Limits(max_cost_usd=child_has))
            seen = []
            child.call(lambda root=root, seen=seen: seen.append(root.snapshot().reserved_nano), cost=lambda _: 0)
            assert seen == [left]

    def test_a_refusal_above_leaves_no_trace_below(self):
        """All ledgers admit or none changes."""
        root = context(max_steps=1)
        child = root.create_child(Limits(max_steps=5))
        child.call(Witness())
        until_stopped(child, Witness())
        assert child.snapshot().steps == 1

    def test_closing_a_parent_closes_its_children_and_not_the_other_way_round(self):
        """A closed child leaves its parent running."""
        root = context()
        child, other = root.create_child(), root.create_child()
        grandchild = other.create_child()
        child.close()
        root.call(Witness())
        root.close()
        for closed in (child, other, grandchild):
            assert isinstance(until_stopped(closed, Witness()), ClosedStop)

    @pytest.mark.parametrize("name", ["run", "twin", "a/b"])
    def test_no_two_contexts_of_a_chain_share_a_name(self, name):
        """In a log they could not be told apart; a slash belongs to the names that children are given."""
        root = context()
        root.create_child(name="twin")
        with pytest.raises(ConfigurationError, match="name is"):
            root.create_child(name=name)

    def test_no_child_is_opened_on_a_chain_that_is_over(self):
        """The stop of the chain is raised instead."""
        root = context()
        root.halt("over")
        with pytest.raises(HaltedStop):
            root.create_child()

    def test_a_childs_deadline_is_its_own_and_the_roots_holds_for_it_too(self):
        """The nearer of the two stops it."""
        clock = VirtualClock()
        root = context(clock, max_seconds=2)
        short, long = root.create_child(Limits(max_seconds=1)), root.create_child(Limits(max_seconds=9))
        clock.advance_ns(10**9)
        assert isinstance(until_stopped(short, Witness()), TimeStop)
        long.call(Witness())
        clock.advance_ns(10**9)
        assert isinstance(until_stopped(long, Witness()), TimeStop)

    def test_a_forgotten_child_does_not_stay_in_memory(self):
        """A chain that opens and closes a child a step does not grow."""
        root = context()
        for _ in range(100):
            root.create_child().close()
        gc.collect()
        assert len(root._children) == 0


class TestTurns:
    """Exact repetition of an action."""

    def test_an_action_may_come_max_repeats_times_in_a_row(self):
        """The next one stops the chain before anything is dispatched."""
        ctx = context(max_repeats=3)
        for _ in range(3):
            ctx.turn("a")
        with pytest.raises(RepeatStop) as stop:
            ctx.turn("a")
        assert (stop.value.limit, stop.value.used) == (3, 3)
        with pytest.raises(RepeatStop):
            ctx.call(Witness())

    def test_two_actions_that_alternate_are_not_a_loop(self):
        """A, B, A, B is for the step ceiling to stop."""
        ctx = context(max_repeats=1)
        for _ in range(20):
            ctx.turn("a")
            ctx.turn("b")
        assert ctx.stop is None

    def test_no_repeats_allowed_admits_no_action_and_no_limit_admits_all(self):
        """0 means none allowed, as at every limit."""
        with pytest.raises(RepeatStop):
            context(max_repeats=0).turn("a")
        ctx = context()
        for _ in range(100):
            ctx.turn("a")


class TestRecords:
    """What a chain tells of itself."""

    def test_a_snapshot_is_one_consistent_view(self):
        """Under settling threads, committed and reserved always add up to whole calls."""
        ctx = context(max_cost_usd="1000")
        stop = threading.Event()

        def run():
            while not stop.is_set():
                ctx.call(lambda: None, reserve=CENT, cost=lambda _: CENT)

        threads = [threading.Thread(target=run) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(300):
            shot = ctx.snapshot()
            assert shot.committed_nano + shot.reserved_nano == shot.steps * CENT.nano
        stop.set()
        for thread in threads:
            thread.join(10)

    def test_the_graph_knows_who_called_whom_at_what_cost_and_for_how_long(self):
        """Nested calls, quick and guarded, hang under the call they were made from."""
        clock = VirtualClock()
        ctx = context(clock, max_cost_usd="1.00")

        def leaf():
            clock.advance_ns(5)

        def branch():
            ctx.call(leaf, cost="0.01")
            ctx.call(leaf, cost="0.02", tokens=lambda _: (3, 4))

        ctx.call(branch, cost=0, kind="tool")
        tree = ctx.graph.tree()
        (top,) = tree[0]
        assert (top.name, top.kind, top.end_ns - top.start_ns, top.status) == ("branch", "tool", 10, "ok")
        first, second = tree[top.number]
        assert (first.name, first.cost_nano, first.end_ns - first.start_ns) == ("leaf", 10_000_000, 5)
        assert (second.cost_nano, second.tokens_in, second.tokens_out) == (20_000_000, 3, 4)

    def test_no_two_calls_share_a_number_when_one_was_released(self):
        """A released step is counted again; its call's number is not."""
        ctx = context(max_steps=9)
        ctx.call(Witness())
        ctx.reserve().release()
        ctx.call(Witness())
        ctx.call(Witness(), name="full")
        assert [node.number for node in ctx.graph.nodes()] == [1, 3, 4]

    def test_no_two_calls_share_a_number_when_several_were_released(self):
        """Each release moves the numbers on."""
        ctx = context()
        ctx.reserve().release()
        ctx.call(Witness())
        ctx.reserve().release()
        ctx.call(Witness())
        assert [node.number for node in ctx.graph.nodes()] == [2, 4]

    def test_a_reservation_is_on_record_by_its_name_and_its_end(self):
        """Without a name it says what it was."""
        ctx = context()
        ctx.reserve().settle(0)
        ctx.reserve(name="callback").fail(ValueError())
        assert [(node.name, node.status) for node in ctx.graph.nodes()] == [("reserved", "ok"), ("callback", "error")]

    def test_the_graph_is_bounded_and_hints_at_a_loop(self):
        """Only the newest nodes stay; a run of one signature is visible long before a ceiling."""
        ctx = context()
        for _ in range(10_100):
            ctx.call(Witness)
        assert len(ctx.graph) == 10_000
        assert ctx.graph.repeated() == ("llm", "Witness", 10_000)

    def test_a_failed_call_is_on_record(self):
        """With its cost and status."""
        ctx = context(max_cost_usd="1.00")
        with pytest.raises(ValueError, match="no"):
            ctx.call(Witness(error=ValueError("no")), cost="0.10")
        (node,) = ctx.graph.nodes()
        assert (node.status, node.cost_nano, node.name) == ("error", 100_000_000, "Witness")

    def test_the_partial_result_is_the_last_value(self):
        """A stopped chain still has something to show."""
        ctx = context(max_steps=1)
        ctx.call(Witness("draft"))
        until_stopped(ctx, Witness())
        assert ctx.get_partial_result() == "draft"


class TestReservations:
    """reserve -> dispatch -> settle | fail | release, for callers that dispatch by themselves."""

    def test_a_reservation_is_settled_at_what_it_cost(self):
        """Held before, charged after; it counts as a step."""
        ctx = context(max_cost_usd="1.00", max_steps=1)
        ticket = ctx.reserve("0.40", kind="tool", name="callback")
        assert (ctx.snapshot().reserved_nano, ctx.snapshot().tool_calls) == (400_000_000, 1)
        ticket.settle("0.15")
        shot = ctx.snapshot()
        assert (shot.committed_nano, shot.reserved_nano, shot.steps) == (150_000_000, 0, 1)
        with pytest.raises(StepStop):
            ctx.reserve("0.10")

    @pytest.mark.parametrize("actual", [None, float("nan"), -1, "free", True])
    def test_an_unknown_actual_cost_is_the_whole_reservation(self, actual):
        """What cannot be read is not free."""
        ctx = context(max_cost_usd="1.00")
        ctx.reserve("0.40").settle(actual)
        assert ctx.snapshot().committed_nano == 400_000_000

    def test_a_released_reservation_leaves_no_trace(self):
        """The dispatch provably never began: step, money and tool call come back."""
        ctx = context(max_cost_usd="1.00", max_steps=1, max_tool_calls=1)
        ctx.reserve("1.00", kind="tool").release()
        assert ctx.snapshot().steps == 0
        ctx.reserve("1.00", kind="tool").fail(ValueError("x"))
        assert ctx.snapshot().committed_nano == 10**9

    @pytest.mark.parametrize("first", ["settle", "fail", "release"])
    @pytest.mark.parametrize("second", ["settle", "fail", "release"])
    def test_a_reservation_is_ended_once(self, first, second):
        """A second end would give back or charge what was ended already; it is an error and changes nothing."""
        ctx = context(max_cost_usd="1.00")
        ticket = ctx.reserve("0.40")
        argument = {"settle": ("0.10",), "fail": (ValueError(),), "release": ()}
        getattr(ticket, first)(*argument[first])
        before = ctx.snapshot()
        with pytest.raises(AlreadyEnded):
            getattr(ticket, second)(*argument[second])
        assert ctx.snapshot() == before
        assert not ticket.open


class TestCharges:
    """Money that is gone before anybody could ask, such as a planner's own tokens."""

    def test_a_charge_is_recorded_in_full_and_fits_or_stops_the_chain(self):
        """It takes no step; beyond what is left it ends the chain, and the amount is on record all the same."""
        ctx = context(max_cost_usd="1.00", max_steps=1)
        ctx.charge("0.60", "planner")
        assert (ctx.snapshot().committed_nano, ctx.snapshot().steps, ctx.stop) == (600_000_000, 0, None)
        ctx.charge("0.60", "planner")
        assert ctx.snapshot().committed_nano == 1_200_000_000
        stop = until_stopped(ctx, Witness(), cost=0)
        assert (type(stop), stop.detail) == (CostStop, "planner cost $0.60 beyond what was left")

    def test_a_charge_counts_against_what_calls_in_flight_hold(self):
        """What they hold may be needed, so a charge that eats into it stops the chain."""
        ctx = context(max_cost_usd="1.00")
        ctx.reserve("0.70")
        ctx.charge("0.40", "planner")
        assert isinstance(ctx.stop, CostStop)

    def test_a_charge_counts_at_the_parent_too(self):
        """A child's charge is the root's."""
        root = context(max_cost_usd="1.00")
        root.create_child(Limits(max_cost_usd="0.10")).charge("0.20", "planner")
        assert (root.snapshot().committed_nano, root.stop) == (200_000_000, None)

    def test_an_unknown_charge_takes_all_that_is_left(self):
        """Unknown is not free; without a ceiling there is nothing to take it from."""
        ctx = context(max_cost_usd="1.00")
        ctx.reserve("0.30")
        ctx.charge(None, "planner")
        assert (ctx.snapshot().committed_nano, ctx.stop) == (700_000_000, None)
        assert isinstance(until_stopped(ctx, Witness(), cost="0.31"), CostStop)
        unlimited = context()
        unlimited.charge(None, "planner")
        assert unlimited.snapshot().committed_nano == 0

    @pytest.mark.parametrize("cost", [-1, float("nan"), True, "x"])
    def test_what_is_no_amount_is_refused(self, cost):
        """Nothing is recorded."""
        ctx = context(max_cost_usd="1.00")
        with pytest.raises(ConfigurationError):
            ctx.charge(cost, "planner")
        assert ctx.snapshot().committed_nano == 0

    def test_a_step_can_be_taken_for_a_turn_without_a_call(self):
        """It counts like any other."""
        ctx = context(max_steps=2, max_cost_usd=0)
        ctx.step("turn")
        ctx.step("turn")
        with pytest.raises(StepStop):
            ctx.step("turn")


class TestLog:
    """What a log is told beyond what the tests of the audit ask of it."""

    class Kept(list):
        """A log in memory."""

        def record(self, kind, data, /):
            self.append((kind, dict(data)))

    def test_a_child_is_on_record_with_its_own_limits(self):
        """They say under which promises its calls run."""
        log = self.Kept()
        root = ExecutionContext(Limits(max_steps=5), clock=VirtualClock(), audit=log)
        root.create_child(Limits(max_steps=2), name="child")
        assert log[-1][1]["limits"]["max_steps"] == 2

    def test_an_interrupt_in_the_function_that_reads_the_cost_is_on_record_as_the_end_of_the_call(self):
        """What the call held is charged, and nobody calls that its cost."""

        def cost(_):
            raise KeyboardInterrupt

        log = self.Kept()
        ctx = ExecutionContext(Limits(max_cost_usd="1.00"), clock=VirtualClock(), audit=log)
        with pytest.raises(KeyboardInterrupt):
            ctx.call(Witness(), reserve="0.40", cost=cost)
        (told,) = (data for kind, data in log if kind == "settle")
        assert (told["outcome"], told["cost_known"], told["cost_nano"]) == ("error", False, 400_000_000)
        assert told["error"].startswith("KeyboardInterrupt")
        assert [node.status for node in ctx.graph.nodes()] == ["error"]

    @pytest.mark.parametrize("report", [lambda _: 1 / 0, lambda _: "dear", lambda _: None, None])
    def test_a_cost_that_nobody_knows_is_on_record_as_unknown(self, report):
        """However it stayed unknown."""
        log = self.Kept()
        ctx = ExecutionContext(Limits(max_cost_usd="1.00"), clock=VirtualClock(), audit=log)
        ctx.call(Witness(), reserve="0.40", cost=report)
        assert [data["cost_known"] for kind, data in log if kind == "settle"] == [False]


class TestBrokenLog:
    """An audit log that cannot be written ends the chain: what it did next would leave no trace."""

    class Full:
        """A log on a full disk, from the given event on."""

        def __init__(self, kind):
            self.kind = kind

        def record(self, kind, data, /):
            if kind == self.kind:
                raise OSError("no space left on device")

    def test_what_cannot_be_recorded_is_not_dispatched(self):
        """The admission is written first; without it nothing runs and nothing is reserved."""
        ctx = ExecutionContext(Limits(max_cost_usd="1.00"), clock=VirtualClock(), audit=self.Full("admit"))
        work = Witness()
        with pytest.raises(OSError, match="no space"):
            ctx.call(work, cost="0.10")
        shot = ctx.snapshot()
        assert (work.count, shot.steps, shot.reserved_nano) == (0, 0, 0)
        assert isinstance(until_stopped(ctx, work), HaltedStop)

    def test_a_settlement_that_cannot_be_recorded_still_counts(self):
        """The money is gone; it stays charged, and the chain is over."""
        ctx = ExecutionContext(Limits(max_cost_usd="1.00"), clock=VirtualClock(), audit=self.Full("settle"))
        with pytest.raises(OSError, match="no space"):
            ctx.call(Witness(), cost="0.10")
        assert (ctx.snapshot().committed_nano, ctx.snapshot().reserved_nano) == (100_000_000, 0)
        assert "audit log cannot be written" in str(ctx.stop)

    def test_closing_closes_whatever_the_log_does(self):
        """Children and the token too."""
        ctx = ExecutionContext(Limits(), clock=VirtualClock(), audit=self.Full("close"))
        child = ctx.create_child()
        with pytest.raises(OSError, match="no space"):
            ctx.close()
        assert ctx.closed
        assert child.closed
        assert ctx.token.cancelled
