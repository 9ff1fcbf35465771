"""Retries: bounded, spread, and never of what a person or a limit has stopped."""

from __future__ import annotations

import asyncio
import itertools
import random
import threading

import pytest

from failstop.runtime.clock import VirtualClock
from failstop.runtime.cores import retry as core
from failstop.runtime.policies.retry import RetryContainer
from failstop.runtime.stops import ConfigurationError, Contended, Denied, HaltedStop, RetryStop, StepStop
from failstop.runtime.tests.racing import race

SECOND = 10**9
BASE_EXCEPTIONS = [KeyboardInterrupt(), SystemExit(), GeneratorExit(), asyncio.CancelledError(), HaltedStop()]


class Sleeper(VirtualClock):
    """A virtual clock that writes down every sleep."""

    def __init__(self):
        super().__init__()
        self.sleeps = []

    def sleep_ns(self, duration_ns):
        """See Clock."""
        self.sleeps.append(duration_ns)
        super().sleep_ns(duration_ns)

    async def async_sleep_ns(self, duration_ns):
        """Sleep alike."""
        self.sleep_ns(duration_ns)


class Draws:
    """A random source that gives what it is told."""

    def __init__(self, *draws):
        self.draws = itertools.cycle(draws)

    def random(self):
        """Give the next."""
        return next(self.draws)


class Failing:
    """A callable that raises `error` the first `times` times, counting its calls."""

    def __init__(self, times=10**9, error=None):
        self.times = times
        self.error = ValueError("again") if error is None else error
        self.calls = 0

    def __call__(self, value="done"):
        """Fail or give `value`."""
        self.calls += 1
        if self.calls <= self.times:
            raise self.error
        return value

    async def later(self, value="done"):
        """Do the same as a coroutine."""
        return self(value)


def seeded(seed):
    """A real random source that repeats."""
    return random.Random(seed)


def quiet(max_retries=3, **options):
    """A container that waits on a virtual clock."""
    sleeper = Sleeper()
    return RetryContainer(max_retries, clock=sleeper, async_sleep_ns=sleeper.async_sleep_ns, **options)


def both(container, failing):
    """Run on each face; the failing callable's counts add up over the two."""
    yield lambda: container.execute(failing)
    yield lambda: asyncio.run(container.aexecute(failing.later))


class TestCore:
    """The pure decision."""

    def test_every_small_bound_admits_exactly_its_retries(self):
        """Exhaustive: bounds to 5, backoffs to 6; the wait doubles to its maximum and never passes it."""
        for limit, base, most in itertools.product(range(-1, 6), range(5), range(7)):
            bounds = (limit, most)
            state = core.start(base, bounds)
            waits = []
            for _ in range(8):
                state, verdict, wait = core.fail(state, bounds, True)
                if verdict == core.GIVE_UP:
                    break
                waits.append(wait)
            assert len(waits) == (8 if limit < 0 else limit)
            assert waits == [min(base * 2**n, most) for n in range(len(waits))]

    def test_an_unwanted_error_gives_up_at_once(self):
        """Exhaustive over small states."""
        for state in itertools.product(range(3), repeat=2):
            assert core.fail(state, (-1, 9), False) == (state, core.GIVE_UP, 0)

    def test_jitter_stays_within_its_share_and_the_maximum(self):
        """Exhaustive over a grid; the two ends are reached."""
        grid = [0, core.UNIT // 4, core.UNIT // 2, core.UNIT - 1, core.UNIT]
        for backoff, most, jitter, draw in itertools.product((0, 1, 100, 101), (101, 110, 1000), grid, grid):
            wait = core.jittered(backoff, (-1, most), jitter, draw)
            spread = backoff * jitter // core.UNIT
            assert backoff - spread <= wait <= min(backoff + spread, most)
        assert core.jittered(100, (-1, 1000), core.UNIT // 4, 0) == 75
        assert core.jittered(100, (-1, 1000), core.UNIT // 4, core.UNIT) == 125

    def test_jitter_at_the_maximum_still_spreads(self):
        """A cap put on afterwards would send half of all callers back in the same instant."""
        waits = {core.jittered(100, (-1, 100), core.UNIT // 4, draw * core.UNIT // 10) for draw in range(10)}
        assert len(waits) == 10
        assert max(waits) <= 100


class TestBound:
    """How often."""

    @pytest.mark.parametrize("retries", [0, 1, 3])
    def test_a_call_that_always_fails_is_dispatched_once_and_retried_the_limit(self, retries):
        """On both faces; the last error comes out as it is."""
        failing = Failing()
        for run in both(quiet(retries), failing):
            with pytest.raises(ValueError, match="again") as caught:
                run()
            assert caught.value is failing.error
        assert failing.calls == 2 * (retries + 1)

    def test_no_retries_still_runs_a_healthy_call(self):
        """Zero is a limit on retries, not on calls."""
        for run in both(quiet(0), Failing(times=0)):
            assert run() == "done"

    def test_it_stops_retrying_once_the_call_returns(self):
        """Two failures, then the value; arguments pass through."""
        failing = Failing(times=2)
        assert quiet(5).execute(failing, value="late") == "late"
        assert failing.calls == 3

    def test_only_none_is_unlimited(self):
        """A hundred failures are no bound."""
        assert quiet(None, backoff_base_s=0).execute(Failing(times=100)) == "done"

    def test_an_attempt_is_told_whether_it_is_a_retry(self):
        """The context's ceiling on retries counts by it (G3)."""
        told = []

        def attempt(retry):
            told.append(retry)
            if len(told) < 3:
                raise ValueError
            return len(told)

        assert quiet().run(attempt) == 3
        assert told == [False, True, True]

    def test_each_execution_has_the_whole_limit(self):
        """Nothing is kept between two."""
        container = quiet(1)
        for _ in range(3):
            assert container.execute(Failing(times=1)) == "done"


class TestWhatIsRepeated:
    """Which errors."""

    @pytest.mark.parametrize("error", BASE_EXCEPTIONS)
    def test_a_stop_a_cancellation_or_an_exit_is_never_repeated(self, error):
        """Not even if retry_if would have everything."""
        failing = Failing(error=error)
        with pytest.raises(type(error)):
            quiet(retry_if=lambda _: True).execute(failing)
        assert failing.calls == 1

    def test_a_cancelled_coroutine_is_not_repeated(self):
        """On the asyncio face."""
        failing = Failing(error=asyncio.CancelledError())

        async def main():
            with pytest.raises(asyncio.CancelledError):
                await quiet().aexecute(failing.later)

        asyncio.run(main())
        assert failing.calls == 1

    @pytest.mark.parametrize("error", [Denied("breaker", "open"), Contended("cost", "in flight")])
    def test_a_denial_is_repeated_only_if_asked_for(self, error):
        """It is a verdict, not a failure."""
        patient, failing = Failing(times=1, error=error), Failing(error=error)
        with pytest.raises(Denied):
            quiet().execute(failing)
        assert failing.calls == 1
        assert quiet(retry_if=lambda error: isinstance(error, Denied)).execute(patient) == "done"

    @pytest.mark.parametrize("answer", [False, None, 0, "yes", 1])
    def test_only_an_explicit_true_repeats(self, answer):
        """Anything else gives up."""
        failing = Failing()
        with pytest.raises(ValueError, match="again"):
            quiet(retry_if=lambda _: answer).execute(failing)
        assert failing.calls == 1

    def test_a_call_that_is_not_idempotent_is_not_repeated_blindly(self):
        """The effect happened, the reply was lost; a second dispatch would be a second effect (field case 38)."""
        effects = []

        def transfer():
            effects.append("sent")
            raise TimeoutError("no reply")

        with pytest.raises(TimeoutError):
            quiet(idempotent=False).execute(transfer)
        assert effects == ["sent"]

    def test_a_call_that_is_not_idempotent_is_repeated_after_what_proves_that_nothing_happened(self):
        """retry_if names it: a refused connection carried no request."""
        refused = Failing(times=2, error=ConnectionRefusedError())
        container = quiet(idempotent=False, retry_if=lambda error: isinstance(error, ConnectionRefusedError))
        assert container.execute(refused) == "done"
        lost = Failing(error=TimeoutError())
        with pytest.raises(TimeoutError):
            container.execute(lost)
        assert lost.calls == 1


class TestBackoff:
    """How long."""

    def waits(self, retries, **options):
        """The waits of a call that always fails."""
        sleeper = Sleeper()
        container = RetryContainer(retries, clock=sleeper, **options)
        with pytest.raises(ValueError, match="again"):
            container.execute(Failing())
        return sleeper.sleeps

    def test_waits_double_up_to_their_maximum(self):
        """Without jitter: 1, 2, 4, 5, 5 seconds; none after the last failure."""
        waits = self.waits(5, backoff_max_s=5, jitter=0)
        assert waits == [seconds * SECOND for seconds in (1, 2, 4, 5, 5)]

    def test_a_base_above_the_maximum_waits_the_maximum(self):
        """The smaller of the two."""
        assert self.waits(2, backoff_base_s=9, backoff_max_s=2, jitter=0) == [2 * SECOND, 2 * SECOND]

    def test_jitter_is_drawn_from_the_given_source(self):
        """The lowest, the middle and almost the highest draw."""
        waits = self.waits(3, backoff_base_s=8, backoff_max_s=100, random=Draws(0.0, 0.5, 0.75))
        assert waits == [6 * SECOND, 16 * SECOND, 36 * SECOND]

    def test_the_same_seed_waits_the_same(self):
        """And another one does not."""
        first, second, other = (self.waits(4, random=seeded(seed)) for seed in (7, 7, 8))
        assert first == second != other

    def test_both_faces_wait_the_same(self):
        """One decision, two ways to sleep."""
        sleeper = Sleeper()
        for face in ("execute", "aexecute"):
            container = RetryContainer(4, clock=sleeper, async_sleep_ns=sleeper.async_sleep_ns, random=seeded(1))
            failing = Failing()
            with pytest.raises(ValueError, match="again"):
                container.execute(failing) if face == "execute" else asyncio.run(container.aexecute(failing.later))
        assert sleeper.sleeps[:4] == sleeper.sleeps[4:]

    def test_the_asyncio_face_waits_by_the_given_clock_without_blocking_the_loop(self):
        """A virtual minute passes in no time, on another thread; another task runs meanwhile."""
        clock, seen = Sleeper(), []

        async def other():
            seen.append(clock.now_ns())

        async def main():
            task = asyncio.ensure_future(other())
            await RetryContainer(1, clock=clock, backoff_base_s=60, jitter=0).aexecute(Failing(times=1).later)
            await task

        asyncio.run(main())
        assert clock.sleeps == [60 * SECOND]
        assert seen

    def test_a_wait_that_would_be_pointless_is_not_waited(self):
        """wait_ns says that it would end after the deadline: the last error comes out at once."""
        sleeper = Sleeper()
        container = RetryContainer(9, clock=sleeper, jitter=0)
        failing = Failing()
        with pytest.raises(ValueError, match="again"):
            container.run(lambda _: failing(), lambda ns: ns if sleeper.now_ns() + ns < 5 * SECOND else None)
        assert sleeper.sleeps == [SECOND, 2 * SECOND]
        assert failing.calls == 3


class TestContext:
    """Within a chain every try is one of its calls."""

    class Chain:
        """A chain that counts retry dispatches and stops at its ceiling, as an execution context does."""

        def __init__(self, max_retries):
            self.left = max_retries
            self.options = []

        def call(self, fn, *args, retries, **options):
            """See ExecutionContext."""
            self.options.append(options)
            return retries.run(lambda retry: self.admit(retry, fn, args))

        async def acall(self, fn, *args, retries, **options):
            """See ExecutionContext."""
            self.options.append(options)

            async def attempt(retry):
                return await self.admit(retry, fn, args)

            return await retries.arun(attempt)

        def admit(self, retry, fn, args):
            """Dispatch unless it is a retry too many."""
            if retry:
                if self.left == 0:
                    raise RetryStop(1, 1)
                self.left -= 1
            return fn(*args)

    def test_it_calls_through_its_context_with_the_callers_options(self):
        """Both faces."""
        chain = self.Chain(9)
        container = quiet(2, context=chain)
        assert container.execute(Failing(times=1), "x", kind="tool", reserve="0.1") == "x"
        assert asyncio.run(container.aexecute(Failing(times=1).later, "y", kind="llm")) == "y"
        assert chain.options == [{"kind": "tool", "reserve": "0.1"}, {"kind": "llm"}]
        assert chain.left == 7

    def test_nested_containers_do_not_multiply_within_a_chain(self):
        """3 x 3 x 5: the chain's ceiling of 4 holds for all layers, and its stop ends them all (field case 37)."""
        chain = self.Chain(4)
        failing = Failing()
        layers = [quiet(tries - 1, context=chain) for tries in (3, 3, 5)]
        with pytest.raises(RetryStop):
            layers[0].execute(lambda: layers[1].execute(lambda: layers[2].execute(failing)))
        assert failing.calls == 5

    def test_nested_containers_without_a_context_multiply(self):
        """The local bound is all that there is: say so, and it is so."""
        failing = Failing()
        layers = [quiet(tries - 1) for tries in (3, 3, 5)]
        with pytest.raises(ValueError, match="again"):
            layers[0].execute(lambda: layers[1].execute(lambda: layers[2].execute(failing)))
        assert failing.calls == 45

    def test_a_stop_raised_by_an_attempt_ends_it(self):
        """No further attempt, no wait."""
        failing = Failing(error=StepStop(5, 5))
        container = quiet(5)
        with pytest.raises(StepStop):
            container.run(lambda _: failing())
        assert failing.calls == 1

    def test_a_stop_that_ends_the_retrying_has_the_last_error_as_its_cause(self):
        """On both faces; a cause that it has already stays."""
        first, own = ValueError("first"), OSError("own")
        for cause, expected in ((None, first), (own, own)):
            stop = HaltedStop()
            stop.__cause__ = cause
            for run in (_run_plainly, _run_awaited):
                with pytest.raises(HaltedStop) as caught:
                    run(RetryContainer(5, backoff_base_s=0), [first, stop])
                assert caught.value.__cause__ is expected

    def test_it_hands_on_what_it_is_given_without_a_context(self):
        """On both faces."""

        async def later(*args, **kwargs):
            return args, kwargs

        container = RetryContainer()
        assert container.execute(lambda *args, **kwargs: (args, kwargs), 1, 2, key=3) == ((1, 2), {"key": 3})
        assert asyncio.run(container.aexecute(later, 1, 2, key=3)) == ((1, 2), {"key": 3})

    def test_the_awaited_face_asks_how_long_to_wait_too(self):
        """None gives up at once."""
        work = Failing()

        async def attempt(_):
            return work()

        with pytest.raises(ValueError, match="again"):
            asyncio.run(RetryContainer(5).arun(attempt, lambda _: None))
        assert work.calls == 1


def _run_plainly(container, errors):
    errors = list(errors)

    def attempt(_):
        raise errors.pop(0)

    container.run(attempt)


def _run_awaited(container, errors):
    errors = list(errors)

    async def attempt(_):
        raise errors.pop(0)

    asyncio.run(container.arun(attempt))


class TestConfiguration:
    """What cannot be used is refused by name (G6)."""

    BAD = (-1, True, float("nan"), float("inf"), "3", [], b"1")

    @pytest.mark.parametrize("field", ["max_retries", "backoff_base_s", "backoff_max_s", "jitter"])
    @pytest.mark.parametrize("value", BAD)
    def test_numbers_are_checked(self, field, value):
        """NaN, infinite, negative, bool, text, and what is no number at all."""
        with pytest.raises(ConfigurationError, match=field):
            RetryContainer(**{field: value})

    @pytest.mark.parametrize(
        "option", [{"max_retries": 1.5}, {"max_retries": 10**400}, {"jitter": 1.01}, {"jitter": 10**400}]
    )
    def test_numbers_out_of_range_are_refused(self, option):
        """A jitter above one would wait less than nothing."""
        with pytest.raises(ConfigurationError, match=next(iter(option))):
            RetryContainer(**option)

    @pytest.mark.parametrize("option", [{"retry_if": True}, {"idempotent": 0}, {"random": 0.5}, {"async_sleep_ns": 1}])
    def test_other_options_are_checked(self, option):
        """Not a function, not a bool, not a source."""
        with pytest.raises(ConfigurationError, match=next(iter(option))):
            RetryContainer(**option)

    @pytest.mark.parametrize(
        "option", [{"retry_if": True}, {"idempotent": 0}, {"random": 0.5}, {"async_sleep_ns": 1}, {"jitter": 2}]
    )
    def test_an_option_that_is_refused_is_shown(self, option):
        """Its name and its value."""
        with pytest.raises(ConfigurationError) as caught:
            RetryContainer(**option)
        assert {caught.value.field: caught.value.value} == option

    def test_a_jitter_of_the_whole_wait_is_possible(self):
        """One is the last fraction that makes sense."""
        assert RetryContainer(jitter=1)._jitter == core.UNIT

    def test_without_options_there_are_three_retries_of_a_second_to_a_minute(self):
        """As the signature says."""
        sleeper = Sleeper()
        work = Failing()
        with pytest.raises(ValueError, match="again"):
            RetryContainer(clock=sleeper, jitter=0).execute(work)
        assert sleeper.sleeps == [SECOND, 2 * SECOND, 4 * SECOND]
        sleeper.sleeps.clear()
        with pytest.raises(ValueError, match="again"):
            RetryContainer(9, clock=sleeper, jitter=0).execute(work)
        assert sleeper.sleeps[-1] == 60 * SECOND

    def test_an_unknown_option_is_an_error(self):
        """Never ignored."""
        with pytest.raises(TypeError):
            RetryContainer(max_retry=3)

    @pytest.mark.parametrize("draw", [-0.1, 1.1, float("nan"), None])
    def test_a_random_source_that_draws_no_fraction_is_found_out(self, draw):
        """Before it becomes a wait."""
        with pytest.raises(ConfigurationError, match="random"):
            quiet(random=Draws(draw)).execute(Failing())


class TestThreads:
    """One container, many threads."""

    def test_no_lock_is_held_while_the_callable_runs(self):
        """All callers are inside at once, which a serialising lock would never allow."""
        inside = threading.Barrier(8)
        container = quiet()
        assert race(8, lambda _: container.execute(lambda: inside.wait(10) >= 0)) == [True] * 8

    def test_racing_executions_are_each_bounded_by_their_own_limit(self):
        """Eight callables that always fail: four dispatches each."""
        container = quiet(3, backoff_base_s=0)

        def work(_):
            failing = Failing()
            with pytest.raises(ValueError, match="again"):
                container.execute(failing)
            return failing.calls

        assert race(8, work) == [4] * 8
