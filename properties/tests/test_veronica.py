"""What is true of veronica-core, by a counter inside the stub; the same for 3.10.0 and the paper's 3.4.2."""

from __future__ import annotations

import asyncio
import importlib
import math
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from failstop.planners.catalogue import PROMISES as KNOWN_PROMISES
from failstop.planners.catalogue import bundled
from failstop.properties.check import check
from failstop.properties.evidence import HOLDS, VIOLATED
from failstop.properties.evidence import NOT_OFFERED as NOT_PROMISED
from failstop.properties.target import Refused, Reply, Work
from failstop.properties.targets.veronica import NOT_OFFERED, PROMISES, VeronicaCore, VeronicaSession
from failstop.properties.world import World
from failstop.runtime.limits import Limits

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

    from failstop.runtime.money import Amount

Start: TypeAlias = Callable[..., VeronicaSession]

AT_ONCE = 16
PATIENCE_S = 10.0


class Witness:
    """Counts dispatches inside the stub, whatever the package says."""

    def __init__(self) -> None:
        self.dispatches = 0
        self._lock = threading.Lock()

    def work(
        self,
        does: Callable[[], object] = lambda: None,
        *,
        cost: object = 0,
        reserve: Amount | None = None,
        retries: int = 0,
    ) -> Work:
        """Make one piece of work that is counted when it is really started."""

        def run() -> Reply:
            with self._lock:
                self.dispatches += 1
            return Reply(does(), cost)

        async def arun() -> Reply:
            reply = run()
            await asyncio.sleep(0)
            return reply

        return Work("search", {}, run, arun, reserve=reserve, retries=retries)


@pytest.fixture
def witness() -> Witness:
    """Give a counter for one test."""
    return Witness()


@pytest.fixture
def start() -> Iterator[Start]:
    """Give a way to open sessions under limits; they are closed after the test."""
    worlds: list[World] = []

    def start(**limits: Any) -> VeronicaSession:
        world = World(Limits(**limits), real_time=True)
        worlds.append(world)
        return VeronicaCore().open(world.limits, world)

    yield start
    for world in worlds:
        world.end()


def at_once(session: VeronicaSession, work: Work) -> list[Refused]:
    """Make the same call on 16 threads and give the refusals."""
    refusals: list[Refused] = []

    def call() -> None:
        try:
            session.call(work)
        except Refused as refusal:
            refusals.append(refusal)

    threads = [threading.Thread(target=call) for _ in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    return refusals


def stop_of(session: VeronicaSession, work: Work) -> str:
    """Make a call that must be refused and give the stop."""
    with pytest.raises(Refused) as refusal:
        session.call(work)
    return refusal.value.stop


def fails() -> None:
    """Be a tool that is down."""
    raise OSError("upstream unavailable")


class TestWhatHolds:
    """Promises that are kept."""

    def test_one_call_after_another_keeps_to_the_step_limit_and_stays_stopped(
        self, start: Start, witness: Witness
    ) -> None:
        """Five of 50 calls run; the other 45 are refused for the same reason."""
        session = start(max_steps=5)
        for _ in range(5):
            session.call(witness.work())
        assert [stop_of(session, witness.work()) for _ in range(45)] == ["steps"] * 45
        assert witness.dispatches == 5

    def test_an_estimate_is_reserved_before_the_call(self, start: Start, witness: Witness) -> None:
        """Three calls of 30 cents fit into a dollar."""
        session = start(max_cost_usd="1.00")
        for _ in range(3):
            session.call(witness.work(cost="0.30", reserve="0.30"))
        assert stop_of(session, witness.work(cost="0.30", reserve="0.30")) == "cost"
        assert witness.dispatches == 3

    def test_estimates_are_reserved_for_calls_at_one_time(self, start: Start, witness: Witness) -> None:
        """Of 16 calls of 30 cents on threads, all inside at once, three are let in."""
        inside = threading.Barrier(3)
        session = start(max_cost_usd="1.00")
        refusals = at_once(session, witness.work(lambda: inside.wait(PATIENCE_S), cost="0.30", reserve="0.30"))
        assert (witness.dispatches, len(refusals)) == (3, 13)

    def test_ten_dimes_are_a_dollar(self, start: Start, witness: Witness) -> None:
        """A run that spends exactly the ceiling completes, floats or not."""
        session = start(max_cost_usd="1.00")
        for _ in range(10):
            session.call(witness.work(cost="0.10", reserve="0.10"))
        assert witness.dispatches == 10

    def test_retries_keep_below_their_ceiling(self, start: Start, witness: Witness) -> None:
        """A call that always fails is tried again, but not more often than the chain may retry."""
        session = start(max_retries=3)
        assert stop_of(session, witness.work(fails, retries=100)) == "retries"
        assert witness.dispatches - 1 <= 3

    def test_nothing_new_starts_once_the_deadline_was_noticed(self, start: Start, witness: Witness) -> None:
        """Its timer sets the token; from then on calls are refused."""
        session = start(max_seconds=0.02)
        assert session._context._cancellation_token.wait(PATIENCE_S)
        assert stop_of(session, witness.work()) == "time"
        assert witness.dispatches == 0

    def test_a_closed_context_runs_nothing(self, start: Start, witness: Witness) -> None:
        """After close, a call is refused as closed."""
        session = start(max_steps=5)
        session.close()
        assert stop_of(session, witness.work()) == "closed"
        assert witness.dispatches == 0

    def test_an_aborted_context_runs_nothing(self, start: Start, witness: Witness) -> None:
        """After abort, a call is refused as halted."""
        session = start()
        session._context.abort("enough")
        assert stop_of(session, witness.work()) == "halt"
        assert witness.dispatches == 0

    def test_awaited_calls_without_a_price_keep_to_the_step_limit(self, start: Start, witness: Witness) -> None:
        """Of 20 calls at once, five run."""
        session = start(max_steps=5)
        assert asyncio.run(awaited(session, witness.work())) == ["steps"] * 15
        assert witness.dispatches == 5


class TestWhatIsBroken:
    """Promises of its documentation that the witness saw broken."""

    def test_calls_at_one_time_pass_the_step_limit(self, start: Start, witness: Witness) -> None:
        """G2: the check stands before the call and the count after it, so all of 16 threads get in where S is 5."""
        everybody = threading.Barrier(AT_ONCE)
        session = start(max_steps=5)
        assert at_once(session, witness.work(lambda: everybody.wait(PATIENCE_S))) == []
        assert witness.dispatches == AT_ONCE
        assert session._context.get_snapshot().step_count == AT_ONCE
        assert {"steps", "steps_parallel"} <= set(PROMISES)

    def test_a_tool_that_calls_tools_passes_the_step_limit(self, start: Start, witness: Witness) -> None:
        """G2: no step is counted before a call returns, so recursion twenty deep goes through where S is 5."""
        session = start(max_steps=5)

        def deeper(levels: int) -> object:
            return session.call(witness.work(lambda: deeper(levels - 1))) if levels else None

        deeper(20)
        assert witness.dispatches == 20

    def test_a_price_learnt_afterwards_is_added_without_a_look_at_the_ceiling(
        self, start: Start, witness: Witness
    ) -> None:
        """G1: two calls of 60 cents cost 1.20 under a ceiling of 1.00, and the package's own total says so."""
        session = start(max_cost_usd="1.00")
        for _ in range(2):
            session.call(witness.work(cost="0.60"))
        assert stop_of(session, witness.work(cost="0.60")) == "cost"
        assert witness.dispatches == 2
        assert session._context.get_snapshot().cost_usd_accumulated == pytest.approx(1.2)

    def test_the_last_retry_that_is_allowed_is_refused(self, start: Start, witness: Witness) -> None:
        """A failure counts as a retry before the retry is made: of two allowed, one is made, and the run breaks off."""
        session = start(max_retries=2)

        def fails_twice() -> None:
            if witness.dispatches <= 2:
                fails()

        assert stop_of(session, witness.work(fails_twice, retries=2)) == "retries"
        assert witness.dispatches == 2
        assert "happy" in PROMISES

    def test_after_a_halt_a_cheaper_call_runs(self, start: Start, witness: Witness) -> None:
        """A HALT for an estimate that does not fit is not kept."""
        session = start(max_cost_usd="1.00")
        session.call(witness.work(cost="0.60", reserve="0.60"))
        assert stop_of(session, witness.work(cost="0.60", reserve="0.60")) == "cost"
        session.call(witness.work(cost="0.01", reserve="0.01"))
        assert witness.dispatches == 2
        assert "halt" in PROMISES

    def test_awaited_calls_with_a_price_pass_the_step_limit(self, start: Start, witness: Witness) -> None:
        """With a price the asynchronous adapter asks the budget alone: 20 of 20 calls run where S is 5."""
        session = start(max_steps=5)
        assert asyncio.run(awaited(session, witness.work(cost="0.01", reserve="0.01"))) == []
        assert witness.dispatches == 20
        assert "asyncio" in PROMISES

    def test_awaited_calls_with_a_price_run_on_a_closed_context(self, start: Start, witness: Witness) -> None:
        """It asks neither whether the context is closed."""
        session = start()
        session.close()
        asyncio.run(session.acall(witness.work(cost="0.01", reserve="0.01")))
        assert witness.dispatches == 1


class TestWhatIsNotOffered:
    """What it does not do and does not say that it does: no accusation."""

    def test_every_promise_is_made_or_declined(self) -> None:
        """Nothing is forgotten, and nothing is both."""
        assert sorted([*PROMISES, *NOT_OFFERED]) == sorted(KNOWN_PROMISES)

    def test_calls_that_fail_take_no_step(self, start: Start, witness: Witness) -> None:
        """As its documentation says: steps are successful calls."""
        session = start(max_steps=5)
        for _ in range(50):
            with pytest.raises(OSError, match="upstream"):
                session.call(witness.work(fails))
        assert witness.dispatches == 50
        assert "steps_failed" in NOT_OFFERED

    def test_of_a_call_with_an_estimate_the_estimate_is_recorded(self, start: Start, witness: Witness) -> None:
        """Ten calls that cost two dollars and say one cent go through under a ceiling of one dollar."""
        session = start(max_cost_usd="1.00")
        for _ in range(10):
            session.call(witness.work(cost="2.00", reserve="0.01"))
        assert witness.dispatches == 10
        assert "cost_overrun" in NOT_OFFERED

    def test_the_money_of_a_call_that_fails_is_forgotten(self, start: Start, witness: Witness) -> None:
        """Its reservation is rolled back although the call was dispatched."""
        session = start(max_cost_usd="1.00")
        for _ in range(20):
            with pytest.raises(OSError, match="upstream"):
                session.call(witness.work(fails, cost="0.30", reserve="0.30"))
        assert witness.dispatches == 20
        assert "cost_invalid" in NOT_OFFERED

    def test_each_child_has_steps_of_its_own(self, start: Start, witness: Witness) -> None:
        """Three children of a chain of five steps make 15 calls."""
        session = start(max_steps=5)
        for _ in range(3):
            child = session.child()
            for _ in range(5):
                child.call(witness.work())
            assert stop_of(child, witness.work()) == "steps"
        assert witness.dispatches == 15
        assert "children" in NOT_OFFERED

    def test_a_tool_that_takes_longer_than_the_chain_may_keeps_its_caller(self, start: Start, witness: Witness) -> None:
        """The deadline passes during the call, and the call is answered as if nothing had happened."""
        session = start(max_seconds=2)
        token = session._context._cancellation_token
        assert session.call(witness.work(lambda: token.wait(PATIENCE_S))) is True
        assert "deadline_hang" in NOT_OFFERED

    def test_an_approval_is_never_asked_for(self, start: Start) -> None:
        """Saying yes to a request that this target did not make is refused."""
        with pytest.raises(Refused, match="binds no approval"):
            start().approve(object())


class TestTheScoreboard:
    """What `failstop check veronica-core` says, planner by planner."""

    @pytest.mark.parametrize(
        ("planner", "verdict", "dispatches"),
        [
            ("never-finishes", HOLDS, 5),
            ("expensive-on-threads", HOLDS, 3),
            ("right-at-the-step-limit", HOLDS, 5),
            ("fans-out-on-threads", VIOLATED, 20),
            ("re-enters", VIOLATED, 20),
            ("right-at-the-retry-limit", VIOLATED, 2),
            ("fails-for-ever", NOT_PROMISED, None),
            ("hangs", NOT_PROMISED, None),
            ("uses-a-grant-twice", NOT_PROMISED, None),
        ],
    )
    def test_a_planner_gets_the_verdict_that_the_witness_gives(
        self, planner: str, verdict: str, dispatches: int | None
    ) -> None:
        """The record carries the witness's number, and a violation the command that shows it again."""
        record = check(bundled()[planner], VeronicaCore())
        assert (record.verdict, record.effort.get("dispatches")) == (verdict, dispatches), record.detail
        assert (record.replay is not None) == (verdict == VIOLATED)
        assert record.versions["veronica-core"] == VeronicaCore().versions()["veronica-core"]


class TestTheAdapter:
    """What the adapter itself must get right."""

    def test_the_value_comes_through(self, start: Start, witness: Witness) -> None:
        """The package gives a decision; the caller gets what the stub returned."""
        session = start()
        assert session.call(witness.work(lambda: "three results")) == "three results"
        assert asyncio.run(session.acall(witness.work(lambda: "three results"))) == "three results"

    @pytest.mark.parametrize("error", [OSError, MemoryError, KeyboardInterrupt, SystemExit, GeneratorExit])
    def test_what_the_stub_raises_comes_through(
        self, start: Start, witness: Witness, error: type[BaseException]
    ) -> None:
        """Errors come back as they were raised, those that are no Exception too."""

        def raises() -> None:
            raise error("from the tool")

        with pytest.raises(error, match="from the tool"):
            start().call(witness.work(raises))
        assert witness.dispatches == 1

    def test_a_refusal_inside_a_tool_is_not_retried(self, start: Start, witness: Witness) -> None:
        """A tool that is refused a call of its own passes the refusal on."""
        session = start(max_retries=1)

        def inside() -> None:
            raise Refused("steps", "no more")

        assert stop_of(session, witness.work(inside, retries=1)) == "steps"
        assert witness.dispatches == 1

    def test_a_cost_that_is_no_amount_is_read_as_no_usage(self, start: Start, witness: Witness) -> None:
        """NaN cannot be said in tokens; the package is told nothing rather than something wrong."""
        session = start(max_cost_usd="1.00")
        for _ in range(3):
            session.call(witness.work(cost=math.nan))
        assert session._context.get_snapshot().cost_usd_accumulated == 0

    def test_a_time_limit_that_would_mean_none_is_refused(self, start: Start) -> None:
        """timeout_ms=0 switches the timeout off, so 0 seconds cannot be said."""
        with pytest.raises(Refused) as refusal:
            start(max_seconds=0)
        assert refusal.value.stop == "configuration"

    def test_what_the_configuration_refuses(self) -> None:
        """The paper's version takes anything that is not below zero as a number of steps; the newest only an int."""
        config = importlib.import_module("veronica_core.containment").ExecutionConfig

        def refused(**limit: object) -> bool:
            try:
                config(**{"max_cost_usd": 1.0, "max_steps": 5, "max_retries_total": 5} | limit)
            except (TypeError, ValueError):
                return True
            return False

        bad = (math.nan, math.inf, -1, True, 2.5)
        steps = {str(value) for value in bad if refused(max_steps=value)}
        costs = {str(value) for value in bad if refused(max_cost_usd=value)}
        assert costs == {"nan", "inf", "-1"}
        version = VeronicaCore().versions()["veronica-core"]
        assert steps == {"3.10.0": {"nan", "inf", "-1", "True", "2.5"}, "3.4.2": {"-1"}}[version]

    def test_it_logs_nothing(self, start: Start, witness: Witness, capfd: pytest.CaptureFixture[str]) -> None:
        """A refused call and an unfinished close leave the terminal alone."""
        session = start(max_cost_usd=1)
        assert stop_of(session, witness.work(reserve=2)) == "cost"
        session.call(witness.work(session.close))
        assert capfd.readouterr() == ("", "")

    def test_a_missing_package_is_named_with_what_to_install(
        self, start: Start, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Importing the adapter works without the package; opening the target does not."""
        for name in [name for name in sys.modules if name.split(".")[0] == "veronica_core"]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setattr(sys, "meta_path", [NotInstalled(), *sys.meta_path])
        with pytest.raises(ModuleNotFoundError, match=r"pip install 'failstop\[peers\]'"):
            start()


class NotInstalled:
    """An import system without veronica-core."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Fail as the import system does for a package that is not there."""
        if name == "veronica_core":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


async def awaited(session: VeronicaSession, work: Work) -> list[str]:
    """Make the same call 20 times at once on an event loop and give the stops."""
    answers = await asyncio.gather(*(session.acall(work) for _ in range(20)), return_exceptions=True)
    return [answer.stop for answer in answers if isinstance(answer, Refused)]
