"""Quotas: counted and reserved at the start, in the window of the start, for the very tenant."""

from __future__ import annotations

import itertools

import pytest

from failstop.runtime.clock import VirtualClock
from failstop.runtime.cores import quota as core
from failstop.runtime.money import Money
from failstop.runtime.policies.quota import DAY_NS, HOUR_NS, QuotaManager
from failstop.runtime.stops import ConfigurationError, Contended, Denied
from failstop.runtime.tests.racing import race, slowed

SECOND = 10**9


class SettableClock(VirtualClock):
    """A clock whose both readings can be set, also back."""

    def set_ns(self, now_ns, wall_ns):
        """Set both."""
        self._now_ns = now_ns
        self._wall_offset_ns = wall_ns - now_ns


def quota(runs=None, usd=None, clock=None):
    """A manager at the very start of a UTC day."""
    clock = VirtualClock(wall_start_ns=1000 * DAY_NS) if clock is None else clock
    return QuotaManager(max_runs_per_hour=runs, max_usd_per_day=usd, clock=clock), clock


def refused(manager, tenant="t", reserve="0"):
    """The denial of a start that must be denied."""
    with pytest.raises(Denied) as caught:
        manager.start(tenant, reserve)
    assert caught.value.policy == "quota"
    return caught.value


class TestCore:
    """The pure steps, over every small history."""

    @pytest.mark.parametrize("limits", list(itertools.product((-1, 0, 2), (-1, 0, 2))))
    def test_every_reachable_state_keeps_both_bounds_in_each_window(self, limits):
        """Exhaustive to depth 5: the runs of an hour and the money of a day, counted by ghosts of their own."""
        max_runs, max_spend = limits
        frontier = {(core.INITIAL, 0, ())}
        started = denied = 0
        for _ in range(5):
            following = set()
            for state, hour, tickets in frontier:
                # An hour is a unit here and a day two of them, so both windows turn within the depth.
                following.add((state, hour + 1, tickets))
                rolled = core.roll(state, hour, hour // 2)
                for asked in (-1, 0, 1, 2):
                    new, verdict, held = core.start(rolled, limits, asked)
                    if verdict == core.STARTED:
                        started += 1
                        following.add((new, hour, (*tickets, (hour, hour // 2, held, -1))))
                    else:
                        denied += 1
                        assert new == rolled
                        assert verdict != core.CONTENDED or rolled[4] > 0
                for index, (in_hour, in_day, held, cost) in enumerate(tickets):
                    if cost >= 0:
                        continue
                    before, after = tickets[:index], tickets[index + 1 :]
                    for paid in range(held + 1):
                        new = core.settle(rolled, in_day, held, paid)
                        following.add((new, hour, (*before, (in_hour, in_day, held, paid), *after)))
                    new = core.release(rolled, in_hour, in_day, held)
                    following.add((new, hour, (*before, *after)))
            for state, hour, tickets in following:
                _, runs, _, spent, reserved = core.roll(state, hour, hour // 2)
                today = [(held, cost) for _, day, held, cost in tickets if day == hour // 2]
                assert runs == sum(in_hour == hour for in_hour, _, _, _ in tickets)
                assert spent == sum(cost for _, cost in today if cost >= 0)
                assert reserved == sum(held for held, cost in today if cost < 0)
                assert max_runs < 0 or runs <= max_runs
                assert max_spend < 0 or spent + reserved <= max_spend
            frontier = following
        assert (started > 0) == (max_runs != 0)
        assert (denied > 0) == (limits != (-1, -1))

    def test_what_fits_is_started(self):
        """Completeness: a denial of money means that it does not fit."""
        for spend, spent, reserved, asked in itertools.product(range(4), repeat=4):
            _, verdict, held = core.start((0, 0, 0, spent, reserved), (-1, spend), asked)
            assert (verdict == core.STARTED) == (spent + reserved + asked <= spend)
            assert verdict != core.SPEND or spent + asked > spend
            assert held == (asked if verdict == core.STARTED else 0)

    def test_windows_only_move_forward(self):
        """An earlier hour or day is no fresh one."""
        state = (5, 2, 3, 7, 1)
        assert core.roll(state, 4, 2) == core.roll(state, 5, 3) == state
        assert core.roll(state, 6, 3) == (6, 0, 3, 7, 1)
        assert core.roll(state, 6, 4) == (6, 0, 4, 0, 0)


class TestRuns:
    """Runs an hour."""

    def test_exactly_the_limit_starts_in_an_hour_and_again_in_the_next(self):
        """The last nanosecond of the hour still counts to it."""
        manager, clock = quota(runs=2)
        manager.start("t")
        clock.advance_ns(HOUR_NS - 1)
        manager.start("t")
        refused(manager)
        clock.advance_ns(1)
        manager.start("t")
        manager.start("t")
        refused(manager)

    def test_a_denial_names_limit_use_and_when_it_frees(self):
        """So the caller can come back then."""
        manager, clock = quota(runs=1)
        manager.start("t")
        clock.advance_ns(600 * SECOND)
        denial = refused(manager)
        assert denial.reason == "1 of 1 runs an hour are used; frees in 3000.000 s"
        assert denial.degradation.wait_ns == 3000 * SECOND

    def test_a_denied_start_counts_nothing(self):
        """Nor does it make the wait longer."""
        manager, _ = quota(runs=5, usd="1")
        for _ in range(10):
            refused(manager, reserve="2")
        assert manager.usage("t") == (0, Money(0), Money(0))

    def test_a_run_that_ended_still_counts_and_one_that_never_ran_does_not(self):
        """Settle keeps the run, release gives it back."""
        manager, _ = quota(runs=2)
        manager.start("t").settle(0)
        manager.start("t").release()
        assert manager.usage("t").runs == 1

    def test_a_release_after_the_hour_gives_nothing_to_the_next(self):
        """The run belonged to the hour before."""
        manager, clock = quota(runs=1)
        ticket = manager.start("t")
        clock.advance_ns(HOUR_NS)
        manager.start("t")
        ticket.release()
        refused(manager)


class TestMoney:
    """Dollars a day."""

    def test_many_small_runs_cannot_pass_it_together(self):
        """Each is well-behaved; ten of a dime fill the dollar before any has settled."""
        manager, _ = quota(usd="1")
        tickets = [manager.start("t", "0.1") for _ in range(10)]
        with pytest.raises(Contended, match=r"reserved.*runs in flight"):
            manager.start("t", "0.1")
        for ticket in tickets:
            ticket.settle("0.1")
        denial = refused(manager, reserve="0.000000001")
        assert not isinstance(denial, Contended)
        assert denial.reason.startswith("of $1.00 a day, $1.00 is spent and $0.00 reserved")
        assert denial.degradation.wait_ns == DAY_NS

    def test_what_a_run_did_not_use_is_free_again(self):
        """Settled at less than it reserved."""
        manager, _ = quota(usd="1")
        assert manager.start("t", "0.9").settle("0.2")
        assert manager.usage("t") == (1, Money.of("0.2"), Money(0))
        manager.start("t", "0.8")

    def test_a_run_without_a_bound_reserves_all_that_is_left(self):
        """Unknown is not free, so nothing starts beside it; its actual cost frees the rest."""
        manager, _ = quota(usd="1")
        manager.start("t", "0.25")
        ticket = manager.start("t")
        assert ticket.held_nano == 750_000_000
        with pytest.raises(Contended):
            manager.start("t", "0.000000001")
        ticket.settle("0.25")
        manager.start("t", "0.5")

    def test_an_overrun_is_recorded_in_full(self):
        """And keeps the rest of the day's runs out."""
        manager, _ = quota(usd="1")
        manager.start("t", "0.1").settle("1.5")
        assert manager.usage("t").spent == Money.of("1.5")
        refused(manager)

    def test_an_overrun_of_a_run_that_reserved_nothing_is_recorded_after_the_hour(self):
        """Its tenant was in no window's use in between."""
        manager, clock = quota(usd="1")
        ticket = manager.start("t", 0)
        clock.advance_ns(2 * HOUR_NS)
        manager.start("another")
        ticket.settle("1.5")
        assert manager.usage("t").spent == Money.of("1.5")

    def test_a_ticket_ends_once(self):
        """Neither a second settle nor a release after it changes anything."""
        manager, _ = quota(usd="1")
        ticket = manager.start("t", "0.5")
        assert [ticket.settle("0.3"), ticket.settle("0.3"), ticket.release()] == [True, False, False]
        assert manager.usage("t") == (1, Money.of("0.3"), Money(0))

    @pytest.mark.parametrize("actual", [-5, float("nan"), float("inf"), True, "much"])
    def test_a_cost_that_is_none_is_refused_and_the_hold_stays(self, actual):
        """Charged conservatively: the ticket is still open."""
        manager, _ = quota(usd="1")
        ticket = manager.start("t", "0.5")
        with pytest.raises(ConfigurationError, match="actual"):
            ticket.settle(actual)
        assert manager.usage("t").reserved == Money.of("0.5")
        assert ticket.settle()

    def test_an_unknown_cost_is_the_whole_reservation(self):
        """By hand, or by leaving the block, however it is left."""
        manager, _ = quota(usd="1")
        manager.start("t", "0.25").settle(None)
        with pytest.raises(KeyboardInterrupt), manager.start("t", "0.25"):
            raise KeyboardInterrupt
        with manager.start("t", "0.25") as ticket:
            ticket.settle("0.05")
        assert manager.usage("t") == (3, Money.of("0.55"), Money(0))

    def test_a_reservation_that_is_no_amount_is_refused_before_it_counts(self):
        """NaN, negative, bool."""
        manager, _ = quota(runs=1)
        for reserve in (float("nan"), -1, True):
            with pytest.raises(ConfigurationError, match="reserve"):
                manager.start("t", reserve)
        manager.start("t")


class TestWindows:
    """A charge belongs to the window in which its run started, and time does not go back."""

    def test_a_charge_settled_after_its_day_is_not_counted_in_the_next(self):
        """A run from before midnight ends after it; the new day has its whole limit (field case 22)."""
        manager, clock = quota(usd="1")
        clock.advance_ns(DAY_NS - SECOND)
        ticket = manager.start("t", "0.9")
        clock.advance_ns(2 * SECOND)
        fresh = manager.start("t", "1")
        assert ticket.settle("0.9")
        assert manager.usage("t") == (1, Money(0), Money.of("1"))
        fresh.settle("1")
        assert manager.usage("t").spent == Money.of("1")

    def test_a_charge_settled_in_its_day_is_counted_there_once(self):
        """It is in this day's sum and gone with it (field case 22)."""
        manager, clock = quota(usd="1")
        manager.start("t", "0.9").settle("0.9")
        clock.advance_ns(DAY_NS - 1)
        refused(manager, reserve="0.2")
        clock.advance_ns(1)
        manager.start("t", "0.2")
        assert manager.usage("t") == (1, Money(0), Money.of("0.2"))

    @pytest.mark.parametrize("order", [("old", "new"), ("new", "old")])
    @pytest.mark.parametrize("end", ["settle", "release"])
    def test_runs_on_both_sides_of_midnight_end_each_in_its_own_day_in_either_order(self, order, end):
        """The later one may end first; neither adds to the other's day nor frees anything there (field case 22)."""
        manager, clock = quota(usd="1")
        clock.advance_ns(DAY_NS - SECOND)
        tickets = {"old": manager.start("t", "0.9")}
        clock.advance_ns(2 * SECOND)
        tickets["new"] = manager.start("t", "0.6")
        for name in order:
            assert tickets[name].settle("0.5") if end == "settle" or name == "new" else tickets[name].release()
            assert not tickets[name].settle("0.5")
        assert manager.usage("t") == (1, Money.of("0.5"), Money(0))
        manager.start("t", "0.5")
        refused(manager, reserve="0.000000001")

    def test_a_charge_of_the_new_day_stays_there_though_the_clock_steps_back_before_it_is_settled(self):
        """Flushed while the clock says yesterday, it is still counted once, and today (field case 22)."""
        clock = SettableClock(wall_start_ns=1000 * DAY_NS)
        manager, _ = quota(usd="1", clock=clock)
        manager.start("t", "0.5").settle("0.5")
        clock.advance_ns(DAY_NS)
        ticket = manager.start("t", "0.9")
        clock.set_ns(0, 1000 * DAY_NS)
        ticket.settle("0.8")
        assert manager.usage("t") == (1, Money.of("0.8"), Money(0))
        clock.set_ns(DAY_NS, 1001 * DAY_NS)
        assert manager.usage("t") == (1, Money.of("0.8"), Money(0))

    def test_a_wall_clock_that_is_set_gives_no_fresh_window(self):
        """Neither forward nor back: only the monotonic clock counts after construction."""
        clock = SettableClock(wall_start_ns=1000 * DAY_NS)
        manager, _ = quota(runs=1, clock=clock)
        manager.start("t")
        for wall_ns in (1001 * DAY_NS, 999 * DAY_NS):
            clock.set_ns(clock.now_ns(), wall_ns)
            refused(manager)

    def test_a_clock_that_steps_back_gives_no_fresh_window(self):
        """Even the injected monotonic one: the largest time seen stays."""
        clock = SettableClock(wall_start_ns=1000 * DAY_NS)
        manager, _ = quota(runs=1, usd="1", clock=clock)
        clock.advance_ns(2 * HOUR_NS)
        manager.start("t", "1")
        clock.set_ns(0, 1000 * DAY_NS)
        refused(manager)
        clock.set_ns(-3 * DAY_NS, 997 * DAY_NS)
        refused(manager, "t", "1")

    def test_a_clock_that_steps_back_gives_no_fresh_window_to_a_tenant_that_was_dropped(self):
        """Its next run counts in the latest hour seen, so in that hour there is no other."""
        clock = SettableClock(wall_start_ns=1000 * DAY_NS)
        manager, _ = quota(runs=1, clock=clock)
        manager.start("t", 0)
        clock.advance_ns(HOUR_NS)
        manager.start("another", 0)
        clock.set_ns(0, 1000 * DAY_NS)
        manager.start("t", 0)
        clock.advance_ns(HOUR_NS)
        refused(manager)

    def test_old_windows_and_idle_tenants_are_dropped(self):
        """A thousand tenants a day for three days: never more kept than one day had."""
        manager, clock = quota(runs=10, usd="1")
        for day in range(3):
            for index in range(1000):
                manager.start(f"{day}/{index}", "0.01").settle("0.01")
            assert len(manager._tenants) == 1000
            clock.advance_ns(DAY_NS)

    def test_tenants_that_spent_nothing_are_dropped_after_the_hour(self):
        """Their runs were all that there was to remember."""
        manager, clock = quota(runs=10)
        for index in range(100):
            manager.start(f"idle {index}", 0).settle(0)
        clock.advance_ns(HOUR_NS)
        manager.start("t")
        assert list(manager._tenants) == ["t"]

    def test_denied_tenants_are_not_kept(self):
        """Or names made up by a caller would fill the memory."""
        manager, _ = quota(runs=0)
        for index in range(10):
            refused(manager, f"made up {index}")
        assert manager._tenants == {}

    @pytest.mark.parametrize("settled", [True, False])
    def test_the_smallest_amount_is_remembered_for_the_day(self, settled):
        """A billionth of a dollar, spent or only reserved, when the hour turns."""
        manager, clock = quota(usd="1")
        ticket = manager.start("t", Money(1))
        if settled:
            ticket.settle(Money(1))
        clock.advance_ns(HOUR_NS)
        usage = manager.usage("t")
        assert (usage.spent, usage.reserved) == ((Money(1), Money(0)) if settled else (Money(0), Money(1)))

    def test_the_windows_are_those_of_the_wall_whatever_the_monotonic_clock_says(self):
        """A manager that is made a quarter of an hour after the clock began sees the same hour end."""
        clock = VirtualClock(wall_start_ns=1000 * DAY_NS)
        clock.advance_ns(HOUR_NS // 4)
        manager, _ = quota(runs=1, clock=clock)
        manager.start("t")
        assert refused(manager).degradation.wait_ns == HOUR_NS * 3 // 4

    def test_a_run_for_all_that_a_day_has_may_come_again_tomorrow(self):
        """Only what no day has room for is told not to wait; so for the smallest day too."""
        manager, clock = quota(usd=Money(1))
        manager.start("t", Money(1)).settle(Money(1))
        assert refused(manager, reserve=Money(1)).degradation.wait_ns == DAY_NS - clock.now_ns()


class TestTenants:
    """One key, one tenant (field case 36)."""

    @pytest.mark.parametrize("tenant", [None, "", (), ("",), ("a", ""), 7, b"a", ["a"], ("a", None), True])
    def test_no_tenant_means_denied(self, tenant):
        """Missing, empty, or not a text at all."""
        manager, _ = quota()
        refused(manager, tenant)
        with pytest.raises(Denied):
            manager.usage(tenant)

    def test_tenants_that_look_alike_have_quotas_of_their_own(self):
        """Joined parts, a common beginning, case, white space, a text and its tuple."""
        tenants = [
            ("a:b", "c"),
            ("a", "b:c"),
            ("a:b:c",),
            "a:b:c",
            "0123456789-one",
            "0123456789-two",
            "Ada",
            "ada",
            "ada ",
            "\u00e9",
            "e\u0301",
        ]
        manager, _ = quota(runs=1)
        for tenant in tenants:
            manager.start(tenant)
        for tenant in tenants:
            refused(manager, tenant)

    def test_a_text_that_calls_itself_equal_to_others_is_denied(self):
        """A subclass could borrow another tenant's quota, or escape its own."""

        class Chameleon(str):
            __slots__ = ()

            def __eq__(self, other):
                return True

            def __hash__(self):
                return hash("ada")

        manager, _ = quota(runs=1)
        refused(manager, Chameleon("eve"))
        refused(manager, ("org", Chameleon("eve")))


class TestDenials:
    """What a tenant is told."""

    @pytest.mark.parametrize(("reserve", "asks"), [(None, "all that is left"), ("0.50", "$0.50"), (0, "$0.00")])
    def test_a_denial_says_what_the_run_asked_for(self, reserve, asks):
        """And what there is."""
        manager, _ = quota(usd="1")
        manager.start("t", "1").settle("1.50")
        denial = refused(manager, reserve=reserve)
        assert f"of $1.00 a day, $1.50 is spent and $0.00 reserved; the run asks for {asks};" in denial.reason
        assert denial.degradation.action == "wait"

    def test_a_run_that_others_in_flight_keep_out_is_told_to_wait_for_them(self):
        """Nobody knows for how long."""
        manager, _ = quota(usd="1")
        manager.start("t", "1")
        denial = refused(manager, reserve="0.50")
        assert (type(denial), denial.degradation.action, denial.degradation.wait_ns) == (Contended, "wait", 0)


class TestLimits:
    """Zero is none allowed, None is unlimited (field case 25), and the rest is refused by name."""

    def test_zero_allows_nothing_and_says_that_waiting_does_not_help(self):
        """No run; or no money."""
        denial = refused(quota(runs=0)[0])
        assert denial.degradation is None
        no_money, _ = quota(usd=0)
        for reserve in ("0.000000001", None):
            denial = refused(no_money, reserve=reserve)
            assert "no window has room" in denial.reason
            assert denial.degradation is None
        no_money.start("t", 0)

    def test_none_is_unlimited(self):
        """Any number of runs, of any or no bound."""
        manager, _ = quota()
        for _ in range(100):
            manager.start("t", 1e308).settle(1e308)
            manager.start("t").settle()

    @pytest.mark.parametrize("value", [-1, True, 2.5, float("nan"), "5", 10**400, []])
    def test_a_bad_number_of_runs_is_refused(self, value):
        """At construction."""
        with pytest.raises(ConfigurationError, match="max_runs_per_hour"):
            QuotaManager(max_runs_per_hour=value)

    @pytest.mark.parametrize("value", [-1, True, float("nan"), float("inf"), "much", 10**400, []])
    def test_a_bad_amount_is_refused(self, value):
        """At construction."""
        with pytest.raises(ConfigurationError, match="max_usd_per_day"):
            QuotaManager(max_usd_per_day=value)

    def test_an_unknown_option_is_an_error(self):
        """Never ignored."""
        with pytest.raises(TypeError):
            QuotaManager(max_runs_per_day=5)

    def test_a_free_run_under_a_limit_of_nothing_may_spend_nothing(self):
        """Its ceiling is zero dollars, and not none at all."""
        manager, _ = quota(usd=0)
        assert manager.start("t", 0).ceiling == Money(0)

    def test_a_ticket_names_the_amount_that_is_none(self):
        """By the name of the argument."""
        manager, _ = quota(usd="1")
        with pytest.raises(ConfigurationError, match=r"^actual"):
            manager.start("t", 0).settle("dear")


class TestThreads:
    """Check and start are one step."""

    def test_of_32_threads_at_the_last_slot_one_starts(self, monkeypatch):
        """Nine of ten runs are taken; 32 threads want the tenth."""
        slowed(monkeypatch, core, "start")

        def wins(manager):
            try:
                manager.start("t", 0)
            except Denied:
                return False
            return True

        for _ in range(20):
            manager, _clock = quota(runs=10)
            for _ in range(9):
                manager.start("t", 0)
            assert sum(race(32, lambda _, manager=manager: wins(manager))) == 1

    def test_racing_runs_reserve_no_more_than_the_day_has(self, monkeypatch):
        """32 threads want a dime of a dollar each: ten get it."""
        slowed(monkeypatch, core, "start")

        def wins(manager):
            try:
                manager.start("t", "0.1")
            except Contended:
                return False
            return True

        for _ in range(20):
            manager, _clock = quota(usd="1")
            assert sum(race(32, lambda _, manager=manager: wins(manager))) == 10

    def test_a_ticket_that_many_threads_settle_is_charged_once(self, monkeypatch):
        """Whoever is first."""
        slowed(monkeypatch, core, "settle", "roll")
        for _ in range(20):
            manager, _clock = quota(usd="1")
            ticket = manager.start("t", "0.1")
            assert sum(race(8, lambda _, ticket=ticket: ticket.settle("0.1"))) == 1
            assert manager.usage("t").spent == Money.of("0.1")
