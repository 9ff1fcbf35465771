"""The breaker: nothing while open, then one probe at a time, and only current results count (G4)."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter

import pytest

from failstop.runtime.clock import VirtualClock
from failstop.runtime.cores import breaker as core
from failstop.runtime.policies.breaker import BreakerState, CircuitBreaker
from failstop.runtime.policies.pipeline import PolicyContext
from failstop.runtime.stops import ConfigurationError, Denied, HaltedStop
from failstop.runtime.tests.racing import race, slowed

SECOND = 10**9
CALL = PolicyContext("chain")


def tripped(clock, **options):
    """A breaker of threshold 1 that has just opened for 10 s, with leases of 5 s."""
    breaker = CircuitBreaker(1, 10, probe_lease_s=5, clock=clock, **options)
    breaker.report(CALL, breaker.check(CALL), ValueError(), 0)
    assert breaker.state is BreakerState.OPEN
    return breaker


def half_open(clock, **options):
    """A breaker whose cooldown has just ended."""
    breaker = tripped(clock, **options)
    clock.advance_ns(10 * SECOND)
    assert breaker.state is BreakerState.HALF_OPEN
    return breaker


SETTINGS = (2, 2, 1)
"""Of the core: two failures open it for two nanoseconds, and a lease is one."""


def after_admission(state, now, opened_at):
    """Ask for one call and check the answer: (next state, permits given out)."""
    new, verdict, permit = core.admit(state, SETTINGS, now)
    if permit == core.NO_PERMIT:
        assert new == state
        return new, frozenset()
    assert opened_at is None or now >= opened_at + 2, "dispatched during the cooldown"
    assert verdict != core.PROBE or now >= state[3], "a second probe within the lease of the first"
    return new, frozenset({permit})


def after_report(state, now, opened_at, permit, outcome):
    """Report one outcome and check what it did: (next state, when it was opened or None)."""
    new = core.report(state, SETTINGS, permit, outcome, now)
    if permit != state[1] or new == state:
        assert new == state, "a stale report changed something"
        return new, opened_at
    if new[0] == core.CLOSED and state[0] != core.CLOSED:
        assert (state[0], outcome) == (core.PROBING, core.SUCCESS), "closed by something else than its probe"
        opened_at = None
    if new[0] == core.OPEN and outcome == core.FAILURE:
        assert new[3] == now + 2, "not a whole cooldown"
        opened_at = now
    assert state[0] != core.PROBING or new[1] > permit, "the end of a probe left its permit good"
    return new, opened_at


class TestCore:
    """Every history of small requests, with ghosts that the core does not see."""

    def test_every_reachable_state_keeps_the_promises(self):
        """Exhaustive to depth 14: time passes, a caller comes, or a permit ends, also one that has ended before."""
        reached, frontier = set(), {(core.INITIAL, 0, frozenset(), None)}
        for _ in range(14):
            following = set()
            for state, now, permits, opened_at in frontier:
                following.add((state, now + 1, permits, opened_at))
                new, given = after_admission(state, now, opened_at)
                following.add((new, now, permits | given, opened_at))
                for permit, outcome in itertools.product(permits, range(3)):
                    new, opened = after_report(state, now, opened_at, permit, outcome)
                    following.add((new, now, permits, opened))
            frontier = following - reached
            reached |= following
        assert Counter(state[0] for state, *_ in reached) == {core.CLOSED: 152, core.OPEN: 546, core.PROBING: 581}
        assert any(state[0] == core.CLOSED and state[1] > 2 for state, *_ in reached), "no probe has closed it"

    def test_an_open_breaker_heeds_no_report(self):
        """Exhaustive, even for a permit that could not have been given out."""
        for failures, until, permit, outcome, now in itertools.product(range(3), repeat=5):
            state = (core.OPEN, 1, failures, until)
            assert core.report(state, SETTINGS, permit, outcome, now) == state

    def test_no_state_is_a_trap(self):
        """Exhaustive: from any state a caller is admitted once the longest of cooldown and lease has passed."""
        for mode, failures, until, now in itertools.product(range(3), range(2), range(4), range(3)):
            if mode == core.CLOSED or until <= now + 2:
                later = now + 2
                assert core.admit((mode, 7, failures, until), SETTINGS, later)[1] in {core.ADMITTED, core.PROBE}


class TestOpening:
    """From closed to open."""

    def test_it_opens_at_the_threshold_and_denies_with_a_wait(self):
        """Two failures of three, a success, then three in a row."""
        breaker = CircuitBreaker(3, 10, clock=VirtualClock())
        for error in (ValueError(), ValueError(), None, ValueError(), ValueError()):
            breaker.report(CALL, breaker.check(CALL), error, 0)
        assert breaker.state is BreakerState.CLOSED
        breaker.report(CALL, breaker.check(CALL), ValueError(), 0)
        denial = breaker.check(CALL)
        assert (denial.allowed, denial.policy_type) == (False, "breaker")
        assert denial.degradation.wait_ns == 10 * SECOND

    def test_the_cooldown_ends_exactly_on_its_nanosecond(self):
        """One before is open; a fraction of a second that floats cannot say is kept."""
        clock = VirtualClock(start_ns=990_000_001)
        breaker = CircuitBreaker(1, 1.5, clock=clock)
        breaker.report(CALL, breaker.check(CALL), ValueError(), 0)
        clock.advance_ns(1_499_999_999)
        assert not breaker.check(CALL).allowed
        clock.advance_ns(1)
        assert breaker.check(CALL).allowed

    def test_a_failure_is_counted_once_a_permit(self):
        """A double report does not open it."""
        breaker = CircuitBreaker(2, 10, clock=VirtualClock())
        decision = breaker.check(CALL)
        breaker.report(CALL, decision, ValueError(), 0)
        breaker.report(CALL, decision, ValueError(), 0)
        assert breaker.state is BreakerState.CLOSED

    @pytest.mark.parametrize(
        "error", [Denied("other", "no"), HaltedStop(), asyncio.CancelledError(), KeyboardInterrupt(), SystemExit()]
    )
    def test_what_is_no_failure_of_the_callee_is_not_counted(self, error):
        """Denials, stops, cancellations, exits: neither a failure nor a success that would forget one."""
        breaker = CircuitBreaker(2, 10, clock=VirtualClock())
        for ending in (ValueError(), error, error, error):
            breaker.report(CALL, breaker.check(CALL), ending, 0)
        assert breaker.state is BreakerState.CLOSED
        breaker.report(CALL, breaker.check(CALL), ValueError(), 0)
        assert breaker.state is BreakerState.OPEN

    def test_looking_does_not_change_it(self):
        """Construction and the state property are read-only, so the cooldown is not extended."""
        clock = VirtualClock()
        breaker = tripped(clock)
        for _ in range(10):
            clock.advance_ns(SECOND)
            CircuitBreaker(1, 10, clock=clock)
            _ = breaker.state
        assert breaker.state is BreakerState.HALF_OPEN
        assert breaker.check(CALL).allowed


class TestProbe:
    """Half-open."""

    def test_exactly_one_probe_at_a_time(self):
        """The second caller is denied with the rest of the lease."""
        clock = VirtualClock()
        breaker = half_open(clock)
        assert breaker.check(CALL).allowed
        clock.advance_ns(SECOND)
        denial = breaker.check(CALL)
        assert "probe" in denial.reason
        assert denial.degradation.wait_ns == 4 * SECOND

    def test_a_probe_that_succeeds_closes(self):
        """And the failures before it are forgotten."""
        breaker = half_open(VirtualClock())
        breaker.report(CALL, breaker.check(CALL), None, 0)
        assert breaker.state is BreakerState.CLOSED

    def test_a_failed_probe_opens_for_a_whole_cooldown_again(self):
        """One failure suffices, whatever the threshold, and the time counts from the failure (field case 17)."""
        clock = VirtualClock()
        breaker = CircuitBreaker(3, 10, clock=clock)
        for _ in range(3):
            breaker.report(CALL, breaker.check(CALL), ValueError(), 0)
        clock.advance_ns(10 * SECOND)
        probe = breaker.check(CALL)
        clock.advance_ns(3 * SECOND)
        breaker.report(CALL, probe, ValueError(), 0)
        clock.advance_ns(10 * SECOND - 1)
        assert breaker.state is BreakerState.OPEN
        clock.advance_ns(1)
        assert breaker.check(CALL).allowed

    @pytest.mark.parametrize("ending", [asyncio.CancelledError(), HaltedStop(), LookupError("ignored"), "released"])
    def test_a_probe_that_proves_nothing_frees_its_slot(self, ending):
        """Cancelled, stopped, ignored or never dispatched; the next caller probes at once (field case 13)."""
        breaker = half_open(VirtualClock(), is_failure=lambda error: True if type(error) is ValueError else None)
        probe = breaker.check(CALL)
        if ending == "released":
            breaker.release(CALL, probe)
        else:
            breaker.report(CALL, probe, ending, 0)
        assert breaker.state is BreakerState.HALF_OPEN
        assert breaker.check(CALL).allowed
        assert not breaker.check(CALL).allowed

    def test_a_lost_probe_frees_its_slot_when_its_lease_ends_and_not_before(self):
        """It is never heard of again (field case 13)."""
        clock = VirtualClock()
        breaker = half_open(clock)
        breaker.check(CALL)
        clock.advance_ns(5 * SECOND - 1)
        assert not breaker.check(CALL).allowed
        clock.advance_ns(1)
        assert breaker.check(CALL).allowed
        assert not breaker.check(CALL).allowed

    @pytest.mark.parametrize("error", [None, ValueError(), asyncio.CancelledError()])
    def test_a_probe_heard_of_after_its_lease_changes_nothing(self, error):
        """The slot is the next probe's now; both may be running."""
        clock = VirtualClock()
        breaker = half_open(clock)
        late = breaker.check(CALL)
        clock.advance_ns(5 * SECOND)
        breaker.check(CALL)
        breaker.report(CALL, late, error, 0)
        assert breaker.state is BreakerState.HALF_OPEN
        assert not breaker.check(CALL).allowed


class TestGenerations:
    """Only results of the current generation count."""

    @pytest.mark.parametrize("error", [None, ValueError()])
    def test_a_result_from_before_the_trip_changes_nothing(self, error):
        """A stale success does not close the breaker, a stale failure extends no cooldown (field case 14)."""
        clock = VirtualClock()
        breaker = CircuitBreaker(1, 10, clock=clock)
        early, failing = breaker.check(CALL), breaker.check(CALL)
        breaker.report(CALL, failing, ValueError(), 0)
        clock.advance_ns(9 * SECOND)
        breaker.report(CALL, early, error, 0)
        assert breaker.state is BreakerState.OPEN
        clock.advance_ns(SECOND)
        assert breaker.check(CALL).allowed

    def test_a_slow_probe_that_succeeds_after_a_newer_one_failed_does_not_close(self):
        """The newer one re-opened it (field case 14)."""
        clock = VirtualClock()
        breaker = half_open(clock)
        slow = breaker.check(CALL)
        clock.advance_ns(5 * SECOND)
        breaker.report(CALL, breaker.check(CALL), ValueError(), 0)
        breaker.report(CALL, slow, None, 0)
        assert breaker.state is BreakerState.OPEN

    def test_a_stale_success_does_not_close_a_half_open_breaker(self):
        """The probe alone decides."""
        clock = VirtualClock()
        breaker = CircuitBreaker(1, 10, clock=clock)
        early = breaker.check(CALL)
        breaker.report(CALL, breaker.check(CALL), ValueError(), 0)
        clock.advance_ns(10 * SECOND)
        breaker.check(CALL)
        breaker.report(CALL, early, None, 0)
        assert breaker.state is BreakerState.HALF_OPEN
        assert not breaker.check(CALL).allowed

    def test_a_not_found_is_neither_success_nor_failure_in_any_state(self):
        """Closed it is not counted, open it changes nothing, half-open it frees the slot (field case 16)."""
        clock = VirtualClock()
        breaker = CircuitBreaker(
            2, 10, clock=clock, is_failure=lambda error: None if isinstance(error, LookupError) else True
        )
        late = breaker.check(CALL)
        for error in (ValueError(), KeyError("no such page"), ValueError()):
            breaker.report(CALL, breaker.check(CALL), error, 0)
        assert breaker.state is BreakerState.OPEN
        breaker.report(CALL, late, KeyError("no such page"), 0)
        clock.advance_ns(10 * SECOND)
        breaker.report(CALL, breaker.check(CALL), KeyError("no such page"), 0)
        assert breaker.state is BreakerState.HALF_OPEN
        assert breaker.check(CALL).allowed

    def test_reset_closes_and_makes_permits_stale(self):
        """A failure in flight over the reset does not count."""
        breaker = half_open(VirtualClock())
        probe = breaker.check(CALL)
        breaker.reset()
        breaker.report(CALL, probe, ValueError(), 0)
        assert breaker.state is BreakerState.CLOSED


class TestPredicate:
    """is_failure belongs to the user."""

    def test_its_three_answers_are_failure_success_and_neither(self):
        """False counts as a success even though something was raised."""
        answers = {KeyError: None, ValueError: False, OSError: True}
        breaker = CircuitBreaker(2, 10, clock=VirtualClock(), is_failure=lambda error: answers[type(error)])
        for error in (OSError(), ValueError(), OSError(), KeyError(), OSError()):
            assert breaker.state is BreakerState.CLOSED
            breaker.report(CALL, breaker.check(CALL), error, 0)
        assert breaker.state is BreakerState.OPEN

    @pytest.mark.parametrize("bad", ["raise", "yes"])
    def test_a_broken_predicate_is_raised_and_the_probe_slot_is_free(self, bad):
        """It raises, or answers what is no answer."""

        def is_failure(error):
            if not isinstance(error, OSError):
                return True
            if bad == "raise":
                raise RuntimeError("predicate")
            return bad

        breaker = half_open(VirtualClock(), is_failure=is_failure)
        with pytest.raises((RuntimeError, ConfigurationError)):
            breaker.report(CALL, breaker.check(CALL), OSError(), 0)
        assert breaker.check(CALL).allowed

    def test_it_runs_without_the_lock(self):
        """So it may ask the breaker itself."""
        breaker = CircuitBreaker(1, 10, clock=VirtualClock(), is_failure=lambda _: breaker.check(CALL).allowed)
        assert race(1, lambda _: breaker.report(CALL, breaker.check(CALL), ValueError(), 0)) == [None]
        assert breaker.state is BreakerState.OPEN


class TestChains:
    """A breaker serves one chain unless it is shared."""

    def test_a_second_chain_is_refused_and_the_first_goes_on(self):
        """Its failures are its own."""
        breaker = CircuitBreaker(1, 10, clock=VirtualClock())
        assert breaker.check(PolicyContext("a")).allowed
        with pytest.raises(ConfigurationError, match="shared=True"):
            breaker.check(PolicyContext("b"))
        assert breaker.check(PolicyContext("a")).allowed

    def test_a_shared_breaker_is_tripped_by_its_chains_together(self):
        """One failure each."""
        breaker = CircuitBreaker(2, 10, clock=VirtualClock(), shared=True)
        for chain in "ab":
            breaker.report(CALL, breaker.check(PolicyContext(chain)), ValueError(), 0)
        assert not breaker.check(PolicyContext("c")).allowed

    def test_racing_chains_bind_it_to_one(self):
        """Whichever came first; all others are refused."""

        def came_through(breaker, index):
            try:
                return breaker.check(PolicyContext(index)).allowed
            except ConfigurationError:
                return False

        for _ in range(20):
            breaker = CircuitBreaker(clock=VirtualClock())
            assert sum(race(8, lambda index, breaker=breaker: came_through(breaker, index))) == 1


class TestCall:
    """The breaker on its own."""

    def test_it_gives_the_value_and_counts_what_is_raised(self):
        """Arguments pass through; the error comes out as it is."""
        breaker = CircuitBreaker(1, 10, clock=VirtualClock())
        assert breaker.call(divmod, 7, 2) == (3, 1)
        assert breaker.call(int, "11", base=2) == 3
        with pytest.raises(ZeroDivisionError):
            breaker.call(divmod, 1, 0)
        with pytest.raises(Denied, match="denied by breaker: open for another 10"):
            breaker.call(divmod, 7, 2)

    def test_a_cancelled_probe_frees_its_slot(self):
        """The next call probes and closes."""
        breaker = half_open(VirtualClock())

        def cancelled():
            raise asyncio.CancelledError

        with pytest.raises(asyncio.CancelledError):
            breaker.call(cancelled)
        assert breaker.call(int) == 0
        assert breaker.state is BreakerState.CLOSED

    def test_no_lock_is_held_while_the_callable_runs(self):
        """It may call through the same breaker."""
        breaker = CircuitBreaker(clock=VirtualClock())
        assert race(1, lambda _: breaker.call(breaker.call, int)) == [0]

    def test_a_denial_says_how_long_to_wait(self):
        """The caller of a breaker alone hears of it as the caller of a chain does."""
        clock = VirtualClock()
        breaker = tripped(clock)
        with pytest.raises(Denied) as caught:
            breaker.call(lambda: 1)
        assert (caught.value.degradation.action, caught.value.degradation.wait_ns) == ("wait", 10 * SECOND)


class TestConfiguration:
    """What cannot be used is refused by name (G6)."""

    @pytest.mark.parametrize("value", [0, -1, True, 2.0, float("nan"), "5", None, 10**400])
    def test_a_threshold_is_a_count_of_at_least_one(self, value):
        """A breaker that is open before any failure would admit nothing."""
        with pytest.raises(ConfigurationError, match="failure_threshold"):
            CircuitBreaker(value)

    @pytest.mark.parametrize("value", [-1, True, float("nan"), float("inf"), "5", None, 1e300, 10**400])
    @pytest.mark.parametrize("field", ["recovery_timeout_s", "probe_lease_s"])
    def test_times_are_finite_seconds(self, field, value):
        """Zero recovery is a wish one can have; a lease of zero would let any number of probes out."""
        with pytest.raises(ConfigurationError, match=field):
            CircuitBreaker(**{field: value})
        with pytest.raises(ConfigurationError, match="probe_lease_s"):
            CircuitBreaker(probe_lease_s=0)

    @pytest.mark.parametrize(
        "option", [{"failure_threshold": 0}, {"probe_lease_s": 0}, {"is_failure": 1}, {"shared": 1}]
    )
    def test_an_option_that_is_refused_is_shown(self, option):
        """Its name and its value."""
        with pytest.raises(ConfigurationError) as caught:
            CircuitBreaker(**option)
        assert {caught.value.field: caught.value.value} == option

    def test_without_options_five_failures_open_it_for_a_minute_and_a_probe_has_one_too(self):
        """As the signature says."""
        clock = VirtualClock()
        breaker = CircuitBreaker(clock=clock)
        for state in [BreakerState.CLOSED] * 4 + [BreakerState.OPEN]:
            breaker.report(CALL, breaker.check(CALL), ValueError(), 0)
            assert breaker.state is state
        assert breaker.check(CALL).degradation.wait_ns == 60 * SECOND
        clock.advance_ns(60 * SECOND)
        assert breaker.check(CALL).allowed
        assert breaker.check(CALL).degradation.wait_ns == 60 * SECOND

    @pytest.mark.parametrize("options", [{"is_failure": None}, {"is_failure": ValueError()}, {"shared": 1}])
    def test_other_options_are_checked_too(self, options):
        """And an unknown one is a TypeError of Python's own."""
        with pytest.raises(ConfigurationError, match=next(iter(options))):
            CircuitBreaker(**options)
        with pytest.raises(TypeError):
            CircuitBreaker(half_open_calls=3)


class TestThreads:
    """The decision and the taking are one step."""

    def test_of_many_callers_at_the_instant_the_cooldown_ends_one_dispatches(self, monkeypatch):
        """The decision and the taking of the slot are one step (field case 15)."""
        slowed(monkeypatch, core, "admit")
        for _ in range(20):
            breaker = half_open(VirtualClock())
            assert sum(race(16, lambda _, breaker=breaker: breaker.check(CALL).allowed)) == 1

    def test_racing_failures_open_it_once_and_are_each_counted(self, monkeypatch):
        """15 of 16 leave it closed; the last one opens it."""
        slowed(monkeypatch, core, "report")
        for _ in range(20):
            breaker = CircuitBreaker(16, 10, clock=VirtualClock())
            permits = [breaker.check(CALL) for _ in range(16)]
            last = permits.pop()
            race(15, lambda index, b=breaker, p=permits: b.report(CALL, p[index], ValueError(), 0))
            assert breaker.state is BreakerState.CLOSED
            breaker.report(CALL, last, ValueError(), 0)
            assert breaker.state is BreakerState.OPEN
