"""Clocks, the one deadline thread, and the token that tells work in flight."""

from __future__ import annotations

import threading
import time

import pytest

from failstop.runtime.cancellation import CancellationToken
from failstop.runtime.clock import SystemClock, VirtualClock
from failstop.runtime.scheduler import DeadlineScheduler
from failstop.runtime.stops import TimeStop


class TestVirtualClock:
    """Time that moves only when told."""

    def test_alarms_run_in_time_order_at_their_own_time(self):
        """An alarm sees the clock at its own moment, not at the end of the jump."""
        clock = VirtualClock()
        seen = []
        for when in (30, 10, 20):
            clock.call_at(when, lambda when=when: seen.append((when, clock.now_ns())))
        clock.advance_ns(25)
        assert seen == [(10, 10), (20, 20)]
        assert clock.now_ns() == 25

    def test_a_cancelled_alarm_does_not_run(self):
        """Cancelling is final and harmless twice."""
        clock = VirtualClock()
        ran = []
        alarm = clock.call_at(1, lambda: ran.append(1))
        alarm.cancel()
        alarm.cancel()
        clock.advance_ns(5)
        assert ran == []

    def test_time_never_goes_back(self):
        """A negative advance is refused."""
        with pytest.raises(ValueError, match="monotonic"):
            VirtualClock().advance_ns(-1)

    def test_sleeping_advances_both_readings_and_returns_at_once(self):
        """Wall time keeps its distance from the monotonic reading."""
        clock = VirtualClock()
        wall = clock.wall_ns()
        clock.sleep_ns(7)
        assert (clock.now_ns(), clock.wall_ns() - wall) == (7, 7)


class TestDeadlineScheduler:
    """One thread for all contexts."""

    def test_alarms_of_all_contexts_share_one_thread_and_run_in_order(self):
        """However many alarms there are, one daemon thread runs them, the earliest first."""
        before = threading.active_count()
        scheduler = DeadlineScheduler()
        now = time.monotonic_ns()
        done = threading.Event()
        order = []
        threads = set()

        def ring(number):
            order.append(number)
            threads.add(threading.current_thread())
            if number == 0:
                done.set()

        # All are due already when the thread first looks, so the heap alone decides.
        with scheduler._changed:
            for number in range(50):
                scheduler.call_at(now - number, lambda number=number: ring(number))
        assert done.wait(5)
        assert order == list(range(49, -1, -1))
        assert len(threads) == 1
        assert threading.active_count() == before + 1

    def test_a_callback_that_raises_does_not_stop_the_others(self, monkeypatch):
        """Its error is reported; the next alarm still runs."""
        reported = []
        monkeypatch.setattr(threading, "excepthook", reported.append)
        scheduler = DeadlineScheduler()
        done = threading.Event()
        now = time.monotonic_ns()
        scheduler.call_at(now, lambda: 1 / 0)
        scheduler.call_at(now + 1, done.set)
        assert done.wait(5)
        assert [report.exc_type for report in reported] == [ZeroDivisionError]

    def test_a_stop_in_a_callback_does_not_end_the_thread(self, monkeypatch):
        """A Stop is no Exception, and a callback that calls into its dead chain raises one."""
        reported = []
        monkeypatch.setattr(threading, "excepthook", reported.append)
        scheduler = DeadlineScheduler()
        done = threading.Event()

        def stopped():
            raise TimeStop

        now = time.monotonic_ns()
        scheduler.call_at(now, stopped)
        scheduler.call_at(now + 1, done.set)
        assert done.wait(5)
        assert [report.exc_type for report in reported] == [TimeStop]

    def test_a_thread_that_could_not_be_started_is_started_for_the_next_alarm(self, monkeypatch):
        """The alarm that failed leaves nothing behind, and the next one rings."""
        scheduler = DeadlineScheduler()
        done = threading.Event()

        def refused(_):
            raise RuntimeError("can't start new thread")

        with monkeypatch.context() as patched, pytest.raises(RuntimeError, match="can't start"):
            patched.setattr(threading.Thread, "start", refused)
            scheduler.call_at(0, lambda: 1 / 0)
        assert scheduler.pending() == 0
        scheduler.call_at(0, done.set)
        assert done.wait(5)

    def test_a_dead_thread_is_replaced(self):
        """Whatever ended it, the next alarm rings."""
        scheduler = DeadlineScheduler()
        scheduler._thread = threading.Thread(target=lambda: None)
        scheduler._thread.start()
        scheduler._thread.join(5)
        done = threading.Event()
        scheduler.call_at(0, done.set)
        assert done.wait(5)

    def test_cancelled_alarms_leave_no_memory_behind(self):
        """A million contexts that close early must not pile up in the heap until their deadlines."""
        scheduler = DeadlineScheduler()
        far = time.monotonic_ns() + 10**15
        for _ in range(1000):
            scheduler.call_at(far, lambda: None).cancel()
        assert scheduler.pending() == 0
        assert len(scheduler._heap) < 200

    def test_the_system_clock_rings_after_the_time_and_not_before(self):
        """A real alarm a few milliseconds ahead; the wait is on an event, not a sleep."""
        clock = SystemClock()
        rang = threading.Event()
        at = []
        due = clock.now_ns() + 5_000_000
        clock.call_at(due, lambda: (at.append(clock.now_ns()), rang.set()))
        assert rang.wait(5)
        assert at[0] >= due


class TestCancellationToken:
    """A latch that is set once."""

    def test_only_the_first_reason_counts(self):
        """Later cancellations change nothing."""
        token = CancellationToken()
        assert not token.cancelled
        assert token.cancel("deadline")
        assert not token.cancel("other")
        assert (token.cancelled, token.reason, token.wait(0)) == (True, "deadline", True)

    def test_subscribers_hear_once_and_late_ones_at_once(self):
        """A subscriber that comes after the fact is told immediately; one that left is not told."""
        token = CancellationToken()
        heard = []
        token.subscribe(lambda: heard.append("early"))
        token.subscribe(lambda: heard.append("left"))()
        token.cancel()
        token.cancel()
        token.subscribe(lambda: heard.append("late"))()
        assert heard == ["early", "late"]

    def test_a_subscriber_that_raises_keeps_no_other_from_being_told(self, monkeypatch):
        """Its error is reported, a Stop too; the canceller may be the thread of every deadline."""
        reported = []
        monkeypatch.setattr(threading, "excepthook", reported.append)
        token = CancellationToken()
        heard = []

        def stopped():
            raise TimeStop

        for callback in (lambda: 1 / 0, stopped, lambda: heard.append("told")):
            token.subscribe(callback)
        assert token.cancel()
        assert heard == ["told"]
        assert [report.exc_type for report in reported] == [ZeroDivisionError, TimeStop]

    def test_a_hook_that_raises_keeps_nobody_from_being_told_either(self, monkeypatch):
        """Reporting is a courtesy."""
        monkeypatch.setattr(threading, "excepthook", lambda _: 1 / 0)
        token = CancellationToken()
        heard = []
        token.subscribe(lambda: 1 / 0)
        token.subscribe(lambda: heard.append("told"))
        token.cancel()
        assert heard == ["told"]

    @pytest.mark.parametrize("early", [True, False])
    def test_a_signal_that_cancels_in_the_middle_of_a_subscription_is_heard_once(self, early):
        """Nothing waits for itself, and the subscriber is told once, whether the signal came before it was noted."""
        token = CancellationToken()
        heard = []

        class Interrupted(dict):
            def __setitem__(self, key, callback):
                if early:
                    token.cancel("signal")
                super().__setitem__(key, callback)
                token.cancel("signal")

        token._callbacks = Interrupted()
        token.subscribe(lambda: heard.append("told"))
        token.cancel("later")
        assert (heard, token.reason) == (["told"], "signal")

    def test_waiting_for_a_cancellation_by_another_thread_ends_with_it(self):
        """And a time-out without one says so."""
        token = CancellationToken()
        assert not token.wait(0)
        canceller = threading.Thread(target=token.cancel)
        canceller.start()
        assert token.wait(5)
        canceller.join(5)
