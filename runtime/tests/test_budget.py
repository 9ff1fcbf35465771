"""The spending limit: exact, shut once it has refused, and the same as its core."""

from __future__ import annotations

import itertools
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failstop.runtime.cores import budget as core
from failstop.runtime.money import Money
from failstop.runtime.policies.budget import BudgetEnforcer
from failstop.runtime.policies.pipeline import UNKNOWN_COST, PolicyContext
from failstop.runtime.stops import ConfigurationError
from failstop.runtime.tests.racing import race, slowed


def asking(nano):
    """A call that reserves so many nano-dollars; -1: no estimate."""
    return PolicyContext("chain", "model", "llm", nano)


class TestCore:
    """The pure steps, over every state that small requests can reach."""

    @pytest.mark.parametrize("limit", [-1, 0, 1, 2, 3])
    def test_every_reachable_state_keeps_the_bound_and_the_latch(self, limit):
        """Exhaustive to depth 5, holds settled at or below themselves: spent + reserved <= limit, shut stays shut."""
        reached = {(core.INITIAL, ())}
        admitted = refused = 0
        for _ in range(5):
            after = set()
            for state, holds in reached:
                for amount in range(4):
                    new = core.spend(state, limit, amount)
                    assert new[3] or not state[3], "a shut budget opened"
                    assert new[0] - state[0] == (0 if new[3] else amount)
                    after.add((new, holds))
                    admitted, refused = admitted + (not new[3]), refused + new[3]
                for asked in range(-1, 4):
                    new, verdict, held = core.hold(state, limit, asked)
                    assert verdict == core.ADMITTED or new[:3] == state[:3]
                    assert verdict != core.CONTENDED or (new == state and holds)
                    after.add((new, (*holds, held) if verdict == core.ADMITTED else holds))
                for index, held in enumerate(holds):
                    rest = holds[:index] + holds[index + 1 :]
                    ended = [core.settle(state, limit, held, cost) for cost in range(held + 1)]
                    ended.append(core.release(state, held))
                    assert all(new[3] == state[3] for new in ended)
                    after |= {(new, rest) for new in ended}
            for (spent, reserved, _, _), holds in after:
                assert reserved == sum(holds)
                assert limit < 0 or spent + reserved <= limit
            reached = after
        assert admitted > 20
        assert (refused > 20) == (limit >= 0)

    def test_a_shut_budget_admits_nothing(self):
        """Exhaustive: no amount, not even zero, and no hold."""
        for limit, spent, reserved in itertools.product(range(-1, 4), range(4), range(4)):
            shut = (spent, reserved, 0, True)
            for amount in range(-1, 4):
                assert core.spend(shut, limit, amount) == shut
                assert core.hold(shut, limit, amount) == (shut, core.REFUSED, 0)

    def test_whatever_fits_is_admitted(self):
        """Completeness: an open budget refuses only what is above the limit."""
        for limit, spent, reserved, amount in itertools.product(range(4), repeat=4):
            if spent + reserved + amount <= limit:
                state = (spent, reserved, 0, False)
                assert not core.spend(state, limit, amount)[3]
                assert core.hold(state, limit, amount)[1:] == (core.ADMITTED, amount)

    def test_a_cost_above_its_hold_is_recorded_in_full_and_shuts(self):
        """Also when it would still fit; without a limit there is nothing to shut for."""
        state, _, held = core.hold(core.INITIAL, 10, 2)
        assert core.settle(state, 10, held, 3) == (3, 0, 1, True)
        assert core.settle(state, -1, held, 3) == (3, 0, 1, False)


class TestSpend:
    """The shell as the paper's primitive."""

    @pytest.mark.parametrize("limit", [None, 0, 1, 2, 3, 4])
    def test_every_short_history_is_the_same_as_the_cores(self, limit):
        """Exhaustive: five spends of 0 to 3 nano-dollars; the shell decides as the core does."""
        ceiling = -1 if limit is None else limit
        for history in itertools.product(range(4), repeat=5):
            budget = BudgetEnforcer(None if limit is None else Money(limit))
            state = core.INITIAL
            for amount in history:
                state = core.spend(state, ceiling, amount)
                assert budget.spend(Money(amount)) is not state[3]
            assert (budget.spent.nano, 0, budget.call_count, budget.exceeded) == state

    @given(
        st.integers(0, 2**34),
        st.lists(st.one_of(st.integers(0, 5), st.integers(0, 2**32), st.sampled_from([2**30 - 1, 2**30]))),
    )
    def test_long_histories_of_any_size_are_the_same_as_the_cores(self, limit, amounts):
        """With amounts of any size."""
        budget = BudgetEnforcer(Money(limit))
        state = core.INITIAL
        for amount in amounts:
            state = core.spend(state, limit, amount)
            assert budget.spend(Money(amount)) is not state[3]
            assert (budget.spent.nano, 0, budget.call_count, budget.exceeded) == state

    def test_the_limit_is_spent_to_the_last_nano_dollar(self):
        """Ten dollars in steps of a cent, then nothing."""
        budget = BudgetEnforcer(10)
        assert all(budget.spend("0.01") for _ in range(1000))
        assert (budget.spent, budget.remaining) == (Money.of(10), Money(0))
        assert not budget.spend("0.000000001")

    def test_a_refused_spend_is_recorded_nowhere_and_halts(self):
        """The next smaller one is refused too, and so is one of nothing."""
        budget = BudgetEnforcer("1.00")
        assert budget.spend("0.60")
        assert not budget.spend("0.50")
        assert not budget.spend("0.30")
        assert not budget.spend(0)
        assert (budget.spent, budget.call_count, budget.exceeded) == (Money.of("0.60"), 1, True)
        assert budget.remaining == Money(0)

    def test_reset_opens_it_again(self):
        """With the whole limit."""
        budget = BudgetEnforcer(1)
        budget.spend(2)
        budget.reset()
        assert (budget.spent, budget.call_count, budget.exceeded, budget.remaining) == (Money(0), 0, False, Money.of(1))
        assert budget.spend(1)

    def test_amounts_add_exactly(self):
        """Ten times "0.1" is a dollar; ten floats are a little more, and never fit."""
        text, floats = BudgetEnforcer(1), BudgetEnforcer(1)
        assert [text.spend("0.1") for _ in range(10)] == [True] * 10
        assert [floats.spend(0.1) for _ in range(10)] == [True] * 9 + [False]

    def test_limit_zero_allows_no_spending_and_only_none_is_unlimited(self):
        """The smallest amount is too much for zero; nothing is too much for None."""
        nothing, anything = BudgetEnforcer(0), BudgetEnforcer(None)
        assert nothing.spend(0)
        assert not nothing.spend("0.000000001")
        assert all(anything.spend(1e308) for _ in range(3))
        assert anything.spent == Money(3 * int(1e308) * 10**9)
        assert anything.remaining is None

    @pytest.mark.parametrize(
        "amount",
        [-1, -0.1, "-5", Money(-1), float("nan"), float("inf"), "nan", True, None, [], {}, Fraction(1, 2), "ten"],
    )
    def test_a_bad_amount_is_refused_at_the_door_and_changes_nothing(self, amount):
        """Also after its equal was paid: True equals 1 but is no price."""
        budget = BudgetEnforcer(10)
        budget.spend(1)
        budget.spend(1.0)
        with pytest.raises(ConfigurationError, match="amount"):
            budget.spend(amount)
        assert (budget.spent, budget.call_count, budget.exceeded) == (Money.of(2), 2, False)

    @pytest.mark.parametrize("limit", [-1, float("nan"), float("inf"), "nan", True, 10**400, [], b"1"])
    def test_a_limit_that_is_no_amount_is_refused_by_name(self, limit):
        """At construction (G6)."""
        with pytest.raises(ConfigurationError, match="limit_usd"):
            BudgetEnforcer(limit)

    def test_equal_prices_of_different_kinds_cost_the_same_in_any_order(self):
        """The last price is remembered by identity, not by a hash that kinds could share."""
        budget = BudgetEnforcer(100)
        for amount in (2, 2.0, "2", Decimal(2), 2, Money.of(2), 2.0):
            assert budget.spend(amount)
        assert budget.spent == Money.of(14)


class TestPolicy:
    """The budget in a pipeline: hold, then settle or release."""

    def test_calls_in_flight_cannot_pass_the_limit_together(self):
        """Two holds of 6 do not fit into 10; the second is denied but nothing is shut."""
        budget = BudgetEnforcer(Money(10))
        first, second = budget.check(asking(6)), budget.check(asking(6))
        assert (first.allowed, second.allowed, budget.exceeded) == (True, False, False)
        assert second.degradation.action == "wait"
        budget.report(asking(6), first, None, 4)
        assert budget.check(asking(6)).allowed

    def test_spending_beside_a_hold_leaves_the_hold_alone(self):
        """What is held cannot be spent; what is left beside it can."""
        budget = BudgetEnforcer(Money(10))
        decision = budget.check(asking(6))
        assert budget.spend(Money(4))
        assert budget.remaining == Money(0)
        budget.report(asking(6), decision, None, 6)
        assert budget.spent == Money(10)

    @pytest.mark.parametrize("limit", [None, 0, 2, 3])
    def test_every_short_history_of_holds_and_spends_is_the_same_as_the_cores(self, limit):
        """Exhaustive: four moves of spend, hold, settle the oldest hold, release the oldest."""
        ceiling = -1 if limit is None else limit
        moves = [("spend", 1), ("spend", 2), ("hold", -1), ("hold", 1), ("hold", 2), ("settle", 1), ("release", 0)]
        for history in itertools.product(moves, repeat=4):
            budget = BudgetEnforcer(None if limit is None else Money(limit))
            state, permits = core.INITIAL, []
            for move, amount in history:
                if move == "spend":
                    state = core.spend(state, ceiling, amount)
                    assert budget.spend(Money(amount)) is not state[3]
                elif move == "hold":
                    state, verdict, held = core.hold(state, ceiling, amount)
                    decision = budget.check(asking(amount))
                    assert decision.allowed == (verdict == core.ADMITTED)
                    permits += [(decision, held)] if decision.allowed else []
                elif permits and move == "settle":
                    decision, held = permits.pop(0)
                    state = core.settle(state, ceiling, held, amount)
                    budget.report(asking(0), decision, None, amount)
                elif permits:
                    decision, held = permits.pop(0)
                    state = core.release(state, held)
                    budget.release(asking(0), decision)
                assert (budget.spent.nano, budget.reserved.nano, budget.call_count, budget.exceeded) == state

    def test_a_call_that_can_never_fit_shuts_the_budget(self):
        """Even if the calls in flight cost nothing, it does not fit."""
        budget = BudgetEnforcer(Money(10))
        assert not budget.check(asking(11)).allowed
        assert not budget.check(asking(1)).allowed

    def test_a_call_without_an_estimate_takes_all_that_is_left_and_runs_alone(self):
        """Unknown is not free."""
        budget = BudgetEnforcer(Money(10))
        budget.spend(Money(3))
        decision = budget.check(asking(-1))
        assert budget.reserved == Money(7)
        assert not budget.check(asking(-1)).allowed
        budget.report(asking(-1), decision, None, 2)
        assert budget.spent == Money(5)
        assert budget.check(asking(-1)).allowed

    @pytest.mark.parametrize(("error", "cost"), [(ValueError(), 0), (KeyboardInterrupt(), 1), (None, UNKNOWN_COST)])
    def test_a_call_that_raised_or_whose_cost_is_unknown_is_charged_its_hold(self, error, cost):
        """It may have cost that much."""
        budget = BudgetEnforcer(Money(10))
        budget.report(asking(6), budget.check(asking(6)), error, cost)
        assert (budget.spent, budget.reserved) == (Money(6), Money(0))

    def test_an_overrun_is_recorded_in_full_and_shuts_the_budget(self):
        """A call of 12 that had asked for 1."""
        budget = BudgetEnforcer(Money(10))
        budget.report(asking(1), budget.check(asking(1)), None, 12)
        assert (budget.spent, budget.exceeded) == (Money(12), True)
        assert not budget.spend(0)
        assert not budget.check(asking(0)).allowed

    def test_a_permit_ends_once(self):
        """Neither a second release nor a report after it changes anything."""
        budget = BudgetEnforcer(Money(10))
        budget.check(asking(3))
        decision = budget.check(asking(2))
        for _ in range(2):
            budget.release(asking(2), decision)
            budget.report(asking(2), decision, None, 2)
        assert (budget.spent, budget.reserved) == (Money(0), Money(3))

    def test_a_call_in_flight_over_a_reset_is_charged_to_the_new_period(self):
        """Its hold stays: the limit does not grow by it."""
        budget = BudgetEnforcer(Money(10))
        decision = budget.check(asking(6))
        budget.reset()
        assert budget.remaining == Money(4)
        budget.report(asking(6), decision, None, 6)
        assert budget.remaining == Money(4)

    def test_limit_zero_admits_only_calls_that_say_they_are_free(self):
        """None of unknown cost, none of any cost."""
        assert BudgetEnforcer(0).check(asking(0)).allowed
        assert not BudgetEnforcer(0).check(asking(1)).allowed
        assert not BudgetEnforcer(0).check(asking(-1)).allowed


class TestThreads:
    """Check and commit are one step."""

    def test_racing_spenders_spend_exactly_the_limit(self, monkeypatch):
        """16 threads, 4 spends of 1 each, limit 40: 40 are admitted."""
        slowed(monkeypatch, core, "spend")
        for _ in range(20):
            budget = BudgetEnforcer(Money(40))
            admitted = race(16, lambda _, budget=budget: sum(budget.spend(Money(1)) for _ in range(4)))
            assert sum(admitted) == 40 == budget.call_count
            assert budget.spent == Money(40)

    def test_one_of_many_racing_for_the_last_room_wins(self, monkeypatch):
        """Many callers, room for one (field case 18)."""
        slowed(monkeypatch, core, "hold")
        for _ in range(20):
            budget = BudgetEnforcer(Money(10))
            budget.spend(Money(9))
            assert sum(race(16, lambda _, budget=budget: budget.check(asking(1)).allowed)) == 1

    def test_racing_holds_spends_and_ends_lose_nothing(self, monkeypatch):
        """Each thread spends 1, holds 3 and settles at 2, holds 3 and releases: three a thread in all."""
        slowed(monkeypatch, core, "spend", "hold", "settle", "release")

        def work(budget):
            assert budget.spend(Money(1))
            budget.report(asking(3), budget.check(asking(3)), None, 2)
            budget.release(asking(3), budget.check(asking(3)))

        for _ in range(10):
            budget = BudgetEnforcer(Money(1000))
            race(16, lambda _, budget=budget: work(budget))
            assert (budget.spent, budget.reserved, budget.call_count) == (Money(48), Money(0), 32)

    def test_a_permit_that_many_threads_end_is_ended_once(self, monkeypatch):
        """Whoever is first."""
        slowed(monkeypatch, core, "settle", "release")
        for _ in range(20):
            budget = BudgetEnforcer(Money(10))
            budget.check(asking(4))
            permit = budget.check(asking(3))
            race(8, lambda _, b=budget, p=permit: b.report(asking(3), p, None, 1))
            assert (budget.spent, budget.reserved) == (Money(1), Money(4))


def test_a_denial_carries_the_numbers_and_the_way_out():
    """A shut budget has none; one that only holds in flight keep a call out of says to wait."""
    budget = BudgetEnforcer("1")
    budget.check(asking(800_000_000))
    kept_out = budget.check(asking(500_000_000))
    assert kept_out.reason == "of $1.00, $0.00 is spent and $0.80 held for calls in flight"
    assert (kept_out.policy_type, kept_out.degradation.action) == ("budget", "wait")
    shut = budget.check(asking(1_500_000_000))
    assert shut.reason == "the budget is shut: of $1.00, $0.00 is spent and $0.80 held"
    assert (shut.policy_type, shut.degradation) == ("budget", None)
