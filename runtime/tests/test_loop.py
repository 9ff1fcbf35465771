"""The agent loop: whatever a planner or a tool does, the run has one of four outcomes and its trace is whole."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import gc
import itertools
import json
import threading
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

import pytest

from failstop.runtime.agent import awaiting
from failstop.runtime.agent.loop import AgentLoop
from failstop.runtime.agent.outcome import Outcome
from failstop.runtime.agent.planner import Action, History, PlannerError, Seen, ToolCall
from failstop.runtime.agent.run import AgentRun, RunClosed
from failstop.runtime.agent.tools import Tool
from failstop.runtime.audit.canonical import canonical, jsonable
from failstop.runtime.audit.conformance import check_run
from failstop.runtime.audit.log import AuditError, AuditLog, load
from failstop.runtime.audit.replay import replay
from failstop.runtime.chain.context import ExecutionContext
from failstop.runtime.clock import NS_PER_SECOND
from failstop.runtime.limits import Limits
from failstop.runtime.money import Money
from failstop.runtime.policies.quota import QuotaManager
from failstop.runtime.risk import RiskTier
from failstop.runtime.stops import (
    ClosedStop,
    ConfigurationError,
    CostStop,
    Denied,
    HaltedStop,
    StepStop,
    Stop,
    TimeStop,
)
from failstop.runtime.tests.scripted import FACES, Scripted, World, after, unsendable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DOLLAR = 10**9


def kinds(folder: Path) -> list[str]:
    """Read the kinds of the events in the only log of the folder."""
    return [kind for kind, _ in events(folder)]


def events(folder: Path) -> list[tuple[str, Any]]:
    """Read the only log of the folder."""
    (path,) = folder.iterdir()
    found = load(path)
    assert found.whole
    return [(event.kind, event.data) for event in found.events]


def finish_of(folder: Path) -> Any:
    """Read the last event of the loop."""
    return next(data for kind, data in events(folder) if kind == "finish")


# The happy path ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", FACES)
def test_a_well_behaved_agent_completes_with_its_value(run: Any) -> None:
    """It looks, uses what it saw, and finishes."""
    world = World()
    world.add("add", does=lambda a, b: a + b)
    planner = Scripted(
        Action.use("add", a=1, b=2),
        lambda h: Action.use("add", a=h.last[0].value, b=10),
        lambda h: Action.finish({"sum": h.last[0].value}),
    )
    result = run(world.loop(), planner)
    assert (result.outcome, result.value, result.stop, result.error) == (Outcome.COMPLETED, {"sum": 13}, None, None)
    assert [turn.number for turn in result.trace] == [1, 2]
    assert planner.seen[0] == History("goal", ())


@pytest.mark.parametrize("run", FACES)
def test_plain_and_async_planners_and_tools_run_on_either_face(run: Any) -> None:
    """No one has to write their tools twice."""

    class Awaited(Scripted):
        async def next_action(self, history: History) -> Any:
            await asyncio.sleep(0)
            return super().next_action(history)

    async def shout(text: str) -> str:
        await asyncio.sleep(0)
        return text.upper()

    world = World()
    world.tools.register(Tool(name="shout", fn=shout, tier=RiskTier.READ, cost=0))
    calls = (ToolCall("shout", {"text": "a"}), ToolCall("look"))
    for parallel in (False, True):
        result = run(world.loop(), Awaited(Action(calls=calls, parallel=parallel)))
        assert [seen.value for seen in result.trace[0].observations] == ["A", "look done"]


def test_tool_arguments_may_be_named_like_options() -> None:
    """An argument called `cost` or `name` is the tool's, not the runtime's."""
    world = World()
    args = {"name": "x", "cost": 10**9, "reserve": 1, "kind": "llm", "retries": 9, "wait": False, "fn": 1, "context": 2}
    assert (
        world.loop(Limits(max_cost_usd=1)).run(Scripted(Action.use("look", **args)), "g").outcome is Outcome.COMPLETED
    )
    assert world.done == [("look", args)]


# Planners that break -------------------------------------------------------------------------------------------------

BROKEN: list[Any] = [
    ValueError("boom"),
    KeyboardInterrupt(),
    SystemExit(3),
    MemoryError(),
    StopIteration(),
    GeneratorExit(),
    lambda _: None,
    lambda _: "finish",
    lambda _: {"tool": "look"},
    lambda _: Action,
    lambda _: Action(calls="look"),  # type: ignore[arg-type]  # the point
    lambda _: Action(calls=("look",)),  # type: ignore[arg-type]  # the point
    lambda _: Action(calls=(ToolCall(7),)),  # type: ignore[arg-type]  # the point
    lambda _: Action(calls=(ToolCall("look", [1]),)),  # type: ignore[arg-type]  # the point
    lambda _: Action(calls=(ToolCall("look", "not json"),)),  # type: ignore[arg-type]  # the point
    lambda _: Action(calls=(ToolCall("look", None),)),  # type: ignore[arg-type]  # the point
    lambda _: Action(calls=(ToolCall("look"),), finished=True),
    lambda _: Action(finished=1),  # type: ignore[arg-type]  # the point
    lambda _: Action(reasoning=None),  # type: ignore[arg-type]  # the point
    lambda h: h.turns.append("x"),
    lambda h: h.turns[0].observations.clear(),
    lambda h: setattr(h, "turns", ()),
    lambda h: setattr(h.last[0], "value", "edited"),
    lambda h: h.last[0].value["rows"].append(3),
    lambda h: h.turns[0].action.calls[0].args.update(q="edited"),
]


@pytest.mark.parametrize("run", FACES)
@pytest.mark.parametrize("act", BROKEN, ids=range(len(BROKEN)))
def test_a_planner_that_breaks_ends_the_run_as_failed_with_the_trace_whole(run: Any, act: Any, tmp_path: Path) -> None:
    """It raises anything, returns anything, or edits the history that it was given."""
    world = World()
    world.add("rows", does=lambda q: {"rows": [1, 2], "q": q})
    result = run(world.loop(audit_folder=tmp_path), Scripted(Action.use("rows", q="x"), act))
    assert result.outcome is Outcome.FAILED
    assert result.error is not None
    (turn,) = result.trace
    assert turn.action.calls[0].args == {"q": "x"}
    assert turn.observations[0].value == {"rows": [1, 2], "q": "x"}
    assert kinds(tmp_path)[-3:] == ["planner_error", "close", "finish"]
    assert finish_of(tmp_path)["outcome"] == "failed"


def test_a_planner_that_forces_its_edit_reaches_only_its_own_copy() -> None:
    """Not even object.__setattr__ and dict.__setitem__ change the trace."""

    def forces(history: History) -> Action:
        dict.__setitem__(history.last[0].value, "rows", "forged")
        object.__setattr__(history.last[0], "seen", Seen.ERROR)
        dict.__setitem__(cast("dict[str, str]", history.turns[0].action.calls[0].args), "q", "forged")
        return Action.finish()

    world = World()
    world.add("rows", does=lambda q: {"rows": [1, 2], "q": q})
    result = world.loop().run(Scripted(Action.use("rows", q="x"), forces), "goal")
    (turn,) = result.trace
    assert turn.action.calls[0].args == {"q": "x"}
    assert turn.observations[0].ok
    assert turn.observations[0].value == {"rows": [1, 2], "q": "x"}


def test_a_planner_that_edits_a_tools_result_afterwards_does_not_change_the_trace() -> None:
    """The tool kept a reference and so did the planner's side; the trace has its own."""
    shared = {"rows": [1]}
    world = World()
    world.add("leaky", does=lambda: shared)
    result = world.loop().run(
        Scripted(Action.use("leaky"), after(lambda: shared["rows"].append(2), Action.finish())), "g"
    )
    assert result.trace[0].observations[0].value == {"rows": [1]}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tools", []),
        ("limits", {"max_steps": 1}),
        ("autonomous", 1),
        ("clock", "now"),
        ("audit_folder", 3),
        ("approver", True),
        ("standing", {"pay": True}),
        ("quota", 5),
        ("policies", []),
    ],
)
def test_a_loop_that_cannot_work_is_not_made(field: str, value: Any) -> None:
    """The message says which of its parts, and what was given."""
    parts: dict[str, Any] = {"tools": World().tools, "limits": Limits(), field: value}
    with pytest.raises(ConfigurationError) as refusal:
        AgentLoop(**parts)
    assert str(refusal.value).startswith(f"{field} is {value!r}; expected ")


@pytest.mark.parametrize(("field", "value"), [("goal", None), ("run_id", 7), ("parent", "run")])
def test_a_run_that_cannot_work_is_not_started(field: str, value: Any, tmp_path: Path) -> None:
    """Nothing was taken from the quota and nothing was written."""
    quota = _Quota()
    loop = World().loop(quota=quota, audit_folder=tmp_path)
    options: dict[str, Any] = {"goal": "goal", field: value}
    for refused in (
        lambda: loop.start(**options),
        lambda: loop.run(Scripted(), **options),
        lambda: asyncio.run(loop.arun(Scripted(), **options)),
    ):
        with pytest.raises(ConfigurationError, match=f"{field} is "):
            refused()
    assert (quota.log, list(tmp_path.iterdir())) == ([], [])


@pytest.mark.parametrize("run", FACES)
@pytest.mark.parametrize("planner", [None, object(), lambda _: Action.finish()])
def test_something_that_is_no_planner_is_refused_before_anything_begins(run: Any, planner: Any, tmp_path: Path) -> None:
    """Also in place of the one that drives a run that was started."""
    quota = _Quota()
    loop = World().loop(quota=quota, audit_folder=tmp_path)
    with pytest.raises(ConfigurationError, match="planner is "):
        run(loop, planner)
    assert (quota.log, list(tmp_path.iterdir())) == ([], [])
    started = World().loop().start("goal")
    with pytest.raises(ConfigurationError, match="planner is "):
        World().loop().drive(started, planner)
    started.close()


def test_only_a_run_is_driven_or_resumed_and_only_with_answers_to_its_requests() -> None:
    """A result is not its run; the message says where that is."""
    loop = World().loop()
    paused = loop.run(Scripted(Action.use("pay")), "goal")
    for refused in (
        lambda: loop.resume(cast("AgentRun", paused), {}),
        lambda: asyncio.run(loop.aresume(cast("AgentRun", paused), {})),
        lambda: loop.drive(cast("AgentRun", paused), Scripted()),
        lambda: asyncio.run(loop.adrive(cast("AgentRun", paused), Scripted())),
    ):
        with pytest.raises(ConfigurationError, match=r"expected an AgentRun: .* the `run` of a RunResult"):
            refused()
    with pytest.raises(ConfigurationError, match="answers is True"):
        loop.resume(paused.run, cast("Any", True))
    assert loop.resume(paused.run, {paused.pending[0].id: False}).outcome is Outcome.COMPLETED


def test_a_planner_cannot_forge_a_stop() -> None:
    """It raises a stop although nothing was stopped: a failure, not the runtime at work."""
    result = World().loop().run(Scripted(CostStop(1, 1)), "goal")
    assert result.outcome is Outcome.FAILED
    assert isinstance(result.error, PlannerError)


def test_a_planner_that_subclasses_action_to_answer_twice_is_read_once() -> None:
    """What was checked is what runs."""

    class TwoFaced(ToolCall):
        __slots__ = ()
        answers = itertools.cycle(["look", "pay"])

        @property
        def tool(self) -> str:
            return next(self.answers)

        def __init__(self) -> None:
            object.__setattr__(self, "args", {})

    world = World()
    world.loop().run(Scripted(Action(calls=(TwoFaced(),))), "goal")
    assert world.names == ["look"]


def test_a_tool_name_that_only_pretends_to_be_another_is_not_it() -> None:
    """The text counts, not what a subclass says that it equals."""

    class Pretender(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            return other == "look"

        def __hash__(self) -> int:
            return hash("look")

    result = World().loop().run(Scripted(Action(calls=(ToolCall(Pretender("nope")),))), "goal")
    assert result.trace[0].observations[0].seen is Seen.UNKNOWN_TOOL


def test_arguments_too_deep_are_the_planners_failure_and_not_a_crash() -> None:
    """Ten thousand lists in one another."""
    deep: list[Any] = []
    for _ in range(10_000):
        deep = [deep]
    result = World().loop().run(Scripted(Action.use("look", q=deep)), "goal")
    assert result.outcome is Outcome.FAILED
    assert isinstance(result.error, PlannerError)


# Stops cannot be swallowed -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("last", [Action.finish("all fine"), Action.use("look"), Action()])
def test_a_planner_that_swallows_a_stop_of_its_own_calls_stays_stopped(last: Action) -> None:
    """It calls the context itself, catches everything, and carries on as if nothing had happened."""
    world = World()
    loop = world.loop(Limits(max_steps=2))
    run = loop.start("goal")

    def swallows(_: History) -> Action:
        for _time in range(9):
            with contextlib.suppress(BaseException):
                run.context.call(lambda: world.done.append(("own", {})), cost=0)
        return last

    result = loop.drive(run, Scripted(swallows, swallows, swallows))
    assert result.outcome is Outcome.BUDGET_STOP
    assert isinstance(result.stop, StepStop)
    assert len(world.done) == 2
    assert result.value is None


def test_a_planner_that_lets_a_stop_of_its_own_calls_through_is_stopped() -> None:
    """Then it is no failure of the planner."""
    world = World()
    loop = world.loop(Limits(max_steps=0))
    run = loop.start("goal")
    result = loop.drive(run, Scripted(lambda _: run.context.call(print, cost=0)))
    assert result.outcome is Outcome.BUDGET_STOP


def test_a_tool_that_costs_more_than_it_said_stops_the_run_though_the_planner_wants_to_finish() -> None:
    """The overrun is on the books in full, and the run has not completed (G1)."""
    world = World()
    world.add("lies", does=lambda: 5, reserve="0.01", cost=lambda value: value)
    result = world.loop(Limits(max_cost_usd=1)).run(Scripted(Action.use("lies")), "goal")
    assert result.outcome is Outcome.BUDGET_STOP
    assert isinstance(result.stop, CostStop)
    assert result.snapshot.committed_nano == 5 * DOLLAR


@pytest.mark.parametrize("run", FACES)
def test_of_eight_parallel_calls_with_money_for_one_one_runs(run: Any) -> None:
    """The others wait for what it holds, and once that is spent the run is over (field case 18)."""
    world = World()
    world.add("spend", cost="0.01")
    step = Action(calls=tuple(ToolCall("spend", {"n": n}) for n in range(8)), parallel=True)
    result = run(world.loop(Limits(max_cost_usd="0.01")), Scripted(step))
    assert isinstance(result.stop, CostStop)
    assert world.done == [("spend", {"n": 0})]
    assert result.snapshot.committed_nano == DOLLAR // 100


@pytest.mark.parametrize("run", FACES)
@pytest.mark.parametrize(
    ("limits", "stop"), [(Limits(max_steps=3), StepStop), (Limits(max_cost_usd="0.2"), CostStop)], ids=("steps", "cost")
)
def test_a_cap_that_trips_in_a_sub_agent_ends_the_parent_before_its_next_turn(
    run: Any, limits: Limits, stop: type
) -> None:
    """The tool swallowed it and returned; the parent's planner is not asked again all the same (field case 23)."""
    world = World()
    world.add("spend", cost="0.1")

    def delegate(context: Any) -> str:
        acts = [Action.use("spend", n=n) for n in range(9)]
        return str(world.loop().run(Scripted(*acts), "inner goal", parent=context).outcome)

    world.tools.register(Tool(name="delegate", fn=delegate, tier=RiskTier.READ, cost=0, with_context=True))
    planner = Scripted(Action.use("delegate"))
    result = run(world.loop(limits), planner)
    assert result.outcome is Outcome.BUDGET_STOP
    assert isinstance(result.stop, stop)
    assert result.trace[0].observations[0].value == "budget_stop"
    assert len(planner.seen) == 1
    assert world.names == ["spend"] * 2


@pytest.mark.parametrize("run", FACES)
def test_a_slow_agent_is_stopped_by_the_clock(run: Any) -> None:
    """No call begins after the deadline (G5)."""
    world = World()
    world.add("slow", does=lambda: world.clock.advance_ns(2 * NS_PER_SECOND))
    result = run(world.loop(Limits(max_seconds=3)), Scripted(*[Action.use("slow")] * 9))
    assert result.outcome is Outcome.BUDGET_STOP
    assert isinstance(result.stop, TimeStop)
    assert len(world.done) == 2


def test_time_goes_on_while_a_run_is_paused() -> None:
    """The deadline is from the run's start; an answer after it comes too late."""
    world = World()
    loop = world.loop(Limits(max_seconds=3))
    paused = loop.run(Scripted(Action.use("pay")), "goal")
    world.clock.advance_ns(3 * NS_PER_SECOND)
    result = loop.resume(paused.run, {paused.pending[0].id: True})
    assert isinstance(result.stop, TimeStop)
    assert world.done == []


def test_an_awaited_planner_that_hangs_is_left_at_the_deadline() -> None:
    """A model that never answers does not hold the run."""
    world = World()

    class Hangs:
        async def next_action(self, _: History) -> Action:
            world.clock.advance_ns(5 * NS_PER_SECOND)
            await asyncio.Event().wait()
            raise AssertionError("unreachable")

    result = asyncio.run(asyncio.wait_for(world.loop(Limits(max_seconds=3)).arun(Hangs(), "goal"), timeout=10))
    assert result.outcome is Outcome.BUDGET_STOP
    assert isinstance(result.stop, TimeStop)


class Stubborn:
    """Never ends, however often it is cancelled."""

    def __init__(self, begun: Callable[[], object]) -> None:
        self.begun = begun

    async def next_action(self, _: History) -> Action:
        """See Planner."""
        self.begun()
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()


@pytest.mark.parametrize("run", FACES)
def test_a_planner_that_swallows_its_cancellation_is_left_at_the_deadline(
    run: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither the run nor the end of its event loop waits for it, and nothing is said about its task."""
    monkeypatch.setattr(awaiting, "GRACE_S", 0)
    world = World()
    planner = Stubborn(lambda: world.clock.advance_ns(5 * NS_PER_SECOND))
    result = run(world.loop(Limits(max_seconds=3)), planner)
    assert isinstance(result.stop, TimeStop)
    gc.collect()
    assert caplog.records == []


def test_a_planner_that_swallows_its_cancellation_does_not_outlive_its_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who cancels the run gets it back, on record as failed, though no deadline has come."""
    monkeypatch.setattr(awaiting, "GRACE_S", 0)
    world = World()

    async def scenario() -> AgentRun:
        began = asyncio.Event()
        loop = world.loop()
        run = loop.start("goal")
        task = asyncio.create_task(loop.adrive(run, Stubborn(began.set)))
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return run

    assert asyncio.run(scenario()).close().outcome is Outcome.FAILED


@pytest.mark.parametrize("run", FACES)
@pytest.mark.parametrize("parallel", [False, True])
def test_an_async_tool_is_cancelled_at_the_deadline(run: Any, parallel: bool, tmp_path: Path) -> None:
    """On either face, alone or beside another call (G5)."""
    world = World()
    cancelled = []

    async def hangs() -> None:
        world.clock.advance_ns(5 * NS_PER_SECOND)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append("hangs")
            raise

    world.tools.register(Tool(name="hangs", fn=hangs, tier=RiskTier.READ, cost=0))
    action = Action(calls=(ToolCall("look"), ToolCall("hangs")), parallel=parallel)
    result = run(world.loop(Limits(max_seconds=3), audit_folder=tmp_path), Scripted(action))
    assert isinstance(result.stop, TimeStop)
    assert cancelled == ["hangs"]
    (path,) = tmp_path.iterdir()
    assert check_run(load(path).events) == []


@pytest.mark.parametrize("run", FACES)
def test_an_async_tool_that_swallows_its_cancellation_is_left_at_the_deadline(
    run: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The event loop that it runs on ends without it."""
    monkeypatch.setattr(awaiting, "GRACE_S", 0)
    world = World()

    async def stubborn() -> None:
        await Stubborn(lambda: world.clock.advance_ns(5 * NS_PER_SECOND)).next_action(History("", ()))

    world.tools.register(Tool(name="stubborn", fn=stubborn, tier=RiskTier.READ, cost=0))
    result = run(world.loop(Limits(max_seconds=3)), Scripted(Action.use("stubborn")))
    assert isinstance(result.stop, TimeStop)
    gc.collect()
    assert caplog.records == []


def test_an_async_tool_does_not_wait_for_what_its_own_thread_holds() -> None:
    """The thread that made the reservation stands in the tool's event loop, so it could never settle it."""
    world = World()

    async def fn() -> None:
        """Do nothing."""

    world.tools.register(Tool(name="dear", fn=fn, tier=RiskTier.READ, cost=1))
    run = world.loop(Limits(max_cost_usd=1)).start("goal")
    held = run.context.reserve("0.5")
    (seen,) = run.perform(Action.use("dear"))
    assert (seen.seen, seen.error[:9]) == (Seen.REFUSED, "Contended")
    held.release()
    run.close()


def test_what_an_async_tool_left_running_may_clean_up() -> None:
    """It is cancelled when the tool has returned, and its cleaning up is waited for."""
    world = World()
    heard = []

    async def background(began: asyncio.Event) -> None:
        try:
            began.set()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            heard.append("cleaned up")

    async def leaves() -> str:
        began = asyncio.Event()
        world.task = asyncio.create_task(background(began))  # type: ignore[attr-defined]  # asyncio keeps no reference
        await began.wait()
        return "ok"

    world.tools.register(Tool(name="leaves", fn=leaves, tier=RiskTier.READ, cost=0))
    result = world.loop().run(Scripted(Action.use("leaves")), "goal")
    assert result.trace[0].observations[0].ok
    assert heard == ["cleaned up"]


def test_halting_from_outside_stops_the_run() -> None:
    """And what the halt said is in the result."""
    world = World()
    loop = world.loop()
    run = loop.start("goal")
    result = loop.drive(run, Scripted(after(lambda: run.context.halt("operator"), Action.use("look"))))
    assert isinstance(result.stop, HaltedStop)
    assert result.stop.detail == "operator"
    assert world.done == []


# Tools that break ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", FACES)
@pytest.mark.parametrize(
    "error", [ValueError("boom"), MemoryError(), StopIteration(), RecursionError(), GeneratorExit()]
)
def test_a_tool_that_fails_is_an_observation(run: Any, error: BaseException, tmp_path: Path) -> None:
    """The agent sees the error and can recover."""

    def fails() -> None:
        raise error

    world = World()
    world.add("fails", does=fails)
    result = run(world.loop(audit_folder=tmp_path), Scripted(Action.use("fails"), Action.use("look")))
    assert result.outcome is Outcome.COMPLETED
    seen = result.trace[0].observations[0]
    assert seen.seen is Seen.ERROR
    assert type(error).__name__ in seen.error
    assert "tool_error" in kinds(tmp_path)


@pytest.mark.parametrize("run", FACES)
@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1)])
def test_a_tool_that_raises_more_than_an_exception_ends_the_run_on_record(
    run: Any, parallel: bool, asynchronous: bool, error: BaseException, tmp_path: Path
) -> None:
    """The run fails, the process and its event loop live, the charge and the trace are kept."""

    def raises() -> None:
        raise error

    async def raises_later() -> None:
        raise error

    world = World()
    fn = raises_later if asynchronous else raises
    world.tools.register(Tool(name="raises", fn=fn, tier=RiskTier.READ, reserve="0.25", cost=lambda _: 0))
    step = Action(calls=(ToolCall("look"), ToolCall("raises"), ToolCall("look")), parallel=parallel)
    result = run(world.loop(Limits(max_cost_usd=1), audit_folder=tmp_path), Scripted(step))
    assert result.outcome is Outcome.FAILED
    assert result.error is error
    assert [seen.seen for seen in result.trace[0].observations][:2] == [Seen.OK, Seen.ERROR]
    assert result.snapshot.committed_nano == DOLLAR // 4
    assert finish_of(tmp_path)["outcome"] == "failed"


def test_a_tool_called_wrongly_is_an_observation() -> None:
    """A missing or an unknown argument is the model's to correct."""
    world = World()
    world.add("square", does=lambda x: x * x)
    result = world.loop().run(Scripted(Action.use("square"), Action.use("square", x=3)), "goal")
    assert [turn.observations[0].seen for turn in result.trace] == [Seen.ERROR, Seen.OK]


@pytest.mark.parametrize("run", FACES)
@pytest.mark.parametrize("parallel", [False, True])
def test_the_stop_of_another_chain_is_an_error_of_the_tool_that_let_it_through(
    run: Any, parallel: bool, tmp_path: Path
) -> None:
    """This run was not stopped, so it goes on, and no call of the action is lost."""
    world = World()

    def stopped() -> None:
        ExecutionContext(Limits(max_steps=0)).call(print)

    async def stopped_later() -> None:
        stopped()

    world.add("stopped", does=stopped)
    world.tools.register(Tool(name="later", fn=stopped_later, tier=RiskTier.READ, cost=0))
    action = Action(calls=(ToolCall("stopped"), ToolCall("later"), ToolCall("look")), parallel=parallel)
    result = run(world.loop(audit_folder=tmp_path), Scripted(action))
    assert (result.outcome, result.stop) == (Outcome.COMPLETED, None)
    (turn,) = result.trace
    assert [seen.seen for seen in turn.observations] == [Seen.ERROR, Seen.ERROR, Seen.OK]
    assert "another chain was stopped: steps" in turn.observations[0].error
    (path,) = tmp_path.iterdir()
    assert check_run(load(path).events) == []


@pytest.mark.parametrize("run", FACES)
def test_the_stop_of_another_chain_in_an_approver_is_a_no(run: Any) -> None:
    """An approver that breaks has not said yes, and this run was not stopped."""
    world = World()

    def approver(_: Any) -> bool:
        raise StepStop(1, 1)

    result = run(world.loop(approver=approver), Scripted(Action.use("pay")))
    assert (result.outcome, result.stop, world.done) == (Outcome.COMPLETED, None, [])
    assert result.trace[0].observations[0].seen is Seen.REFUSED


def test_the_stop_of_another_chain_in_a_tier_rule_means_the_highest_tier() -> None:
    """What cannot be judged waits for a person."""
    world = World()

    def rule(_: Any) -> RiskTier:
        raise StepStop(1, 1)

    world.add("judged", tier=rule)
    result = world.loop().run(Scripted(Action.use("judged")), "goal")
    assert result.outcome is Outcome.NEEDS_APPROVAL
    assert result.pending[0].tier is RiskTier.IRREVERSIBLE
    result.run.close()


def test_the_stop_of_another_chain_in_what_an_approval_covers_refuses_the_call() -> None:
    """What cannot be read was not seen by a person."""
    world = World()

    def covered(_: Any) -> Any:
        raise StepStop(1, 1)

    world.add("covered", tier=RiskTier.IRREVERSIBLE, digest_of=covered)
    result = world.loop(approver=lambda _: True).run(Scripted(Action.use("covered")), "goal")
    assert (result.outcome, world.done) == (Outcome.COMPLETED, [])
    assert result.trace[0].observations[0].seen is Seen.REFUSED


# Values that JSON cannot say (field case 12) -------------------------------------------------------------------------

CYCLE: list[Any] = []
CYCLE.append(CYCLE)
STRANGE = [
    b"\xff\x00",
    dt.datetime(2024, 2, 29, tzinfo=dt.UTC),
    {1, 2},
    CYCLE,
    float("nan"),
    float("inf"),
    "\ud800",
    object(),
    {1: "a", "1": "b", None: "c"},
    Decimal("0.1"),
    10**5000,
    "x" * 10_000_000,
]


@pytest.mark.parametrize("value", STRANGE, ids=range(len(STRANGE)))
def test_strange_arguments_and_results_leave_charge_and_outcome_on_record(value: Any, tmp_path: Path) -> None:
    """They are spelled before the dispatch, and a strange result does not lose what was done and paid."""
    world = World()
    world.add("echo", does=lambda value: value, cost="0.5")
    result = world.loop(Limits(max_cost_usd=1), audit_folder=tmp_path).run(
        Scripted(Action.use("echo", value=value)), "g"
    )
    assert result.outcome is Outcome.COMPLETED
    assert world.names == ["echo"]
    assert result.snapshot.committed_nano == DOLLAR // 2
    assert [kind for kind in kinds(tmp_path) if kind in {"settle", "tool_result", "finish"}] == [
        "settle",
        "tool_result",
        "finish",
    ]


@pytest.mark.parametrize("value", STRANGE, ids=range(len(STRANGE)))
def test_strange_arguments_are_on_record_before_the_call_begins(value: Any, tmp_path: Path) -> None:
    """Spelled first: what they are is in the log that the tool itself can read (field case 12)."""
    told: list[Any] = []
    world = World()
    world.add("peek", does=lambda value: told.extend(data for kind, data in events(tmp_path) if kind == "step"))
    world.loop(audit_folder=tmp_path).run(Scripted(Action.use("peek", value=value)), "g")
    assert [call["args"] for call in told[0]["calls"]] == [jsonable({"value": value})]


@pytest.mark.parametrize("value", STRANGE, ids=range(len(STRANGE)))
def test_strange_arguments_can_be_approved_or_are_refused_but_never_break_the_run(value: Any, tmp_path: Path) -> None:
    """What is shown is what runs, in any spelling; only what cannot be frozen is not asked about (field case 12)."""
    world = World()
    loop = world.loop(audit_folder=tmp_path)
    result = loop.run(Scripted(Action.use("pay", value=value)), "g")
    assert (result.outcome is Outcome.COMPLETED) == (type(value) is object)
    if result.pending:
        result = loop.resume(result.run, {result.pending[0].id: True})
        ((_, args),) = world.done
        assert canonical(args) == canonical({"value": value})
    assert result.outcome is Outcome.COMPLETED
    (path,) = tmp_path.iterdir()
    assert check_run(load(path).events) == []
    assert replay(load(path)).outcome == "completed"


class Hostile:
    """Raises whatever is asked of it."""

    def __repr__(self) -> str:
        raise RuntimeError("no")

    __str__ = __hash__ = __reduce__ = __repr__  # type: ignore[assignment]  # the point

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


@pytest.mark.parametrize("run", FACES)
def test_a_value_whose_every_method_raises_is_on_record(run: Any, tmp_path: Path) -> None:
    """As an argument and as a result: a hostile object cannot break the log, and its call is charged."""
    world = World()
    world.add("hostile", does=lambda value: Hostile(), cost="0.5")
    result = run(
        world.loop(Limits(max_cost_usd=1), audit_folder=tmp_path), Scripted(Action.use("hostile", value=Hostile()))
    )
    assert result.outcome is Outcome.COMPLETED
    assert result.snapshot.committed_nano == DOLLAR // 2
    assert kinds(tmp_path).count("tool_result") == 1


def test_a_result_that_cannot_leave_its_process_is_an_error_that_is_charged(tmp_path: Path) -> None:
    """The call was made and paid; only its value is lost."""
    world = World()
    world.tools.register(Tool(name="far", fn=unsendable, tier=RiskTier.READ, cost="0.5", isolate="process"))
    result = world.loop(Limits(max_cost_usd=1), audit_folder=tmp_path).run(Scripted(Action.use("far")), "goal")
    assert result.trace[0].observations[0].seen is Seen.ERROR
    assert result.snapshot.committed_nano == DOLLAR // 2
    assert finish_of(tmp_path)["spent_nano"] == DOLLAR // 2


def test_a_result_too_deep_to_show_is_an_error_and_still_charged(tmp_path: Path) -> None:
    """The call was made and paid; only its value is lost."""
    deep: list[Any] = []
    for _ in range(10_000):
        deep = [deep]
    world = World()
    world.add("deep", does=lambda: deep, cost="0.5")
    result = world.loop(Limits(max_cost_usd=1), audit_folder=tmp_path).run(Scripted(Action.use("deep")), "goal")
    assert result.trace[0].observations[0].seen is Seen.ERROR
    assert result.snapshot.committed_nano == DOLLAR // 2


# What the planner itself spends --------------------------------------------------------------------------------------


def test_what_the_planner_spends_is_on_the_books() -> None:
    """Steps that are cheap one by one are stopped at the cost ceiling together (G1)."""
    world = World()
    act = Action(calls=(ToolCall("look"),), cost="0.3")
    result = world.loop(Limits(max_cost_usd=1)).run(Scripted(*[act] * 9), "goal")
    assert result.outcome is Outcome.BUDGET_STOP
    assert isinstance(result.stop, CostStop)
    assert len(world.done) == 3
    assert result.snapshot.committed_nano == 12 * DOLLAR // 10, "the fourth turn is paid for, though it was too much"


def test_what_the_planner_spends_on_finishing_is_on_the_books_too() -> None:
    """A finish is free, the model call that thought of it is not."""
    result = World().loop(Limits(max_cost_usd=1)).run(Scripted(Action(finished=True, value=1, cost="0.4")), "goal")
    assert result.outcome is Outcome.COMPLETED
    assert result.snapshot.committed_nano == 4 * DOLLAR // 10


def test_a_planner_within_a_tool_that_holds_money_is_charged_beside_it() -> None:
    """A sub-agent's planner does not wait for the reservation of the very tool that it runs in."""
    world = World()
    loop = world.loop(Limits(max_cost_usd=10))
    inner = []

    def delegate(context: Any) -> None:
        inner.append(loop.run(Scripted(Action(calls=(ToolCall("look"),), cost=1)), "inner", parent=context))

    world.tools.register(
        Tool(name="delegate", fn=delegate, tier=RiskTier.READ, reserve=2, cost=lambda _: 2, with_context=True)
    )
    result = loop.run(Scripted(Action.use("delegate")), "goal")
    assert inner[0].outcome is Outcome.COMPLETED
    assert result.snapshot.committed_nano == 3 * DOLLAR


@pytest.mark.parametrize("run", FACES)
@pytest.mark.parametrize("parallel", [False, True])
def test_a_sub_agent_inside_a_tool_that_holds_all_the_money_is_refused_and_does_not_wait_for_itself(
    run: Any, parallel: bool
) -> None:
    """What the tool holds cannot settle before the sub-agent returns, on whatever thread that calls."""
    world = World()
    world.add("unpriced", cost=None)
    loop = world.loop(Limits(max_cost_usd=10))
    inner = []

    def delegate(context: Any) -> None:
        step = Action(calls=(ToolCall("unpriced"), ToolCall("unpriced")), parallel=parallel)
        inner.append(run(loop, Scripted(step), parent=context))

    world.tools.register(Tool(name="delegate", fn=delegate, tier=RiskTier.READ, with_context=True))
    loop.run(Scripted(Action.use("delegate")), "goal")
    assert [seen.seen for seen in inner[0].trace[0].observations] == [Seen.REFUSED] * 2
    assert world.done == []


@pytest.mark.parametrize("cost", [float("nan"), float("inf"), -1, None, True, "much", b"1", [1]])
def test_a_planner_that_cannot_say_what_it_spent_fails_and_is_charged_all_that_is_left(
    cost: Any, tmp_path: Path
) -> None:
    """Unknown is not free, and what it asked for is not done."""
    world = World()
    act = Action(calls=(ToolCall("look"),), cost=cost)
    result = world.loop(Limits(max_cost_usd=1), audit_folder=tmp_path).run(Scripted(act), "goal")
    assert result.outcome is Outcome.FAILED
    assert isinstance(result.error, PlannerError)
    assert world.done == []
    assert result.snapshot.committed_nano == DOLLAR
    assert "planner_error" in kinds(tmp_path)


@pytest.mark.parametrize(
    "broken",
    [
        Action(calls=(ToolCall("look", cast("dict[str, str]", '{"q": "x')),), cost="0.3"),
        Action(calls=(ToolCall("look"),), finished=True, cost="0.3"),
        Action(calls=cast("tuple[ToolCall]", ("look",)), cost="0.3"),
    ],
    ids=("cut off", "both", "no call"),
)
def test_an_answer_that_cannot_be_performed_is_paid_for_all_the_same(broken: Action) -> None:
    """The model was asked; that its answer is of no use makes it no cheaper (field case 39)."""
    result = World().loop(Limits(max_cost_usd=1)).run(Scripted(Action.use("look"), broken), "goal")
    assert result.outcome is Outcome.FAILED
    assert result.snapshot.committed_nano == 3 * DOLLAR // 10
    with World().loop(Limits(max_cost_usd=1)).start("goal") as run:
        with pytest.raises(PlannerError):
            run.perform(broken)
        assert run.context.snapshot().committed_nano == 3 * DOLLAR // 10


WHOLE_ARGS = '{"to": "ann", "usd": [1, {"a": null}]}'


@pytest.mark.parametrize("length", range(len(WHOLE_ARGS)))
def test_a_prefix_of_arguments_is_never_dispatched_nor_glued_to_the_next_attempt(length: int) -> None:
    """The stream of the planner's own model died in mid-arguments, after any character (field case 39)."""
    prefix = WHOLE_ARGS[:length]
    for text in (prefix, prefix + WHOLE_ARGS) if prefix else (prefix,):
        world = World()
        act = Action(calls=(ToolCall("look", cast("dict[str, str]", text)),))
        assert world.loop().run(Scripted(act), "goal").outcome is Outcome.FAILED
        assert world.done == []
    world = World()
    world.loop().run(Scripted(Action(calls=(ToolCall("look", cast("dict[str, str]", WHOLE_ARGS)),))), "goal")
    assert world.done == [("look", json.loads(WHOLE_ARGS))]


# The record ----------------------------------------------------------------------------------------------------------


def test_the_record_tells_the_run_in_order(tmp_path: Path) -> None:
    """Every event is there before the next thing happens."""
    world = World()
    loop = world.loop(audit_folder=tmp_path)
    planner = Scripted(Action.use("look", q=1), Action.use("pay"), Action.use("nope"))
    paused = loop.run(planner, "goal", run_id="r1")
    loop.resume(paused.run, {paused.pending[0].id: True})
    told = [(kind, data) for kind, data in events(tmp_path) if kind not in {"open", "turn", "admit", "settle", "close"}]
    assert [kind for kind, _ in told] == [
        *("start", "step", "tool_result"),
        *("step", "approval", "resume", "decision", "tool_result"),
        *("step", "tool_error", "finish"),
    ]
    start, step, seen = (data for _, data in told[:3])
    assert (start["run"], start["goal"], start["autonomous"]) == ("r1", "goal", "WRITE")
    assert start["limits"] == Limits(max_steps=50).to_mapping()
    assert step == {"n": 1, "reasoning": "", "calls": [{"tool": "look", "args": {"q": 1}}]}
    assert (seen["call_id"], seen["tool"], seen["value"]) == ("1.1", "look", "look done")
    finish = told[-1][1]
    assert (finish["outcome"], finish["value"], finish["steps"], finish["spent_nano"]) == ("completed", "done", 3, 0)


def test_the_record_of_a_run_passes_its_own_audit_and_replays_to_its_outcome(tmp_path: Path) -> None:
    """What is written is what the monitors and the replay read."""
    world = World()
    world.clock.advance_ns(10**12)
    world.add("spend", cost="0.25")
    loop = world.loop(Limits(max_cost_usd=1, max_repeats=3), audit_folder=tmp_path, grant_seconds=60)
    planner = Scripted(Action.use("spend"), Action.use("pay"), Action(), *[Action.use("spend")] * 9)
    paused = loop.run(planner, "goal")
    (path,) = tmp_path.iterdir()
    assert replay(load(path)).outcome == "needs_approval"
    result = loop.resume(paused.run, {paused.pending[0].id: True})
    replayed = replay(load(path))
    assert (replayed.outcome, result.outcome) == ("budget_stop", Outcome.BUDGET_STOP)
    assert replayed.approvals[0].expires_ns == 60 * NS_PER_SECOND
    assert len(replayed.turns) == len(result.trace)
    assert check_run(load(path).events) == []


def test_the_arguments_that_a_person_needs_are_on_record(tmp_path: Path) -> None:
    """With the digest that binds them and the expiry."""
    world = World()
    result = world.loop(audit_folder=tmp_path).run(Scripted(Action.use("pay", to="ann", usd=5)), "goal")
    (asked,) = [data for kind, data in events(tmp_path) if kind == "approval"]
    assert (asked["tool"], asked["tier"], asked["args"]) == ("pay", "IRREVERSIBLE", {"to": "ann", "usd": 5})
    assert asked["request"] == result.pending[0].id
    assert asked["digest"] == result.pending[0].digest


def test_every_event_is_written_before_the_next_call_begins(tmp_path: Path) -> None:
    """A tool that reads the log finds itself and everything before it."""
    found: list[list[str]] = []
    world = World()
    world.add("peek", does=lambda: found.append(kinds(tmp_path)))
    step = Action(calls=(ToolCall("peek"), ToolCall("peek")))
    world.loop(audit_folder=tmp_path).run(Scripted(step), "goal")
    assert found[0] == ["start", "open", "step", "turn", "admit"]
    assert found[1] == [*found[0], "settle", "tool_result", "admit"]


def test_a_stop_is_on_record_with_its_numbers(tmp_path: Path) -> None:
    """Which ceiling, its limit, what was used."""
    world = World()
    world.loop(Limits(max_steps=1), audit_folder=tmp_path).run(Scripted(*[Action.use("look")] * 2), "goal")
    (stop,) = [data for kind, data in events(tmp_path) if kind == "budget_stop"]
    assert (stop["ceiling"], stop["limit"], stop["used"]) == ("steps", 1, 1)
    assert finish_of(tmp_path)["outcome"] == "budget_stop"


@pytest.mark.parametrize(
    "breaks_at",
    [
        "start",
        "step",
        "turn",
        "admit",
        "settle",
        "tool_result",
        "approval",
        "decision",
        "planner_error",
        "close",
        "finish",
    ],
)
def test_a_run_whose_record_cannot_be_written_does_not_go_on(
    breaks_at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever the disk fills up, nothing is dispatched after it and the run has not completed."""
    record = AuditLog.record
    after: list[int] = []

    def full(log: AuditLog, kind: str, data: Any, /) -> int:
        if kind == breaks_at:
            after.append(len(world.done))
            raise AuditError("disk full")
        return record(log, kind, data)

    monkeypatch.setattr(AuditLog, "record", full)
    world = World()
    loop = world.loop(audit_folder=tmp_path, approver=lambda _: True)
    planner = Scripted(Action.use("look"), Action.use("pay"), *[ValueError("boom")] * (breaks_at == "planner_error"))
    if breaks_at == "start":
        with pytest.raises(AuditError):
            loop.run(planner, "goal")
    else:
        result = loop.run(planner, "goal")
        assert result.outcome in {Outcome.FAILED, Outcome.BUDGET_STOP}
        assert result.value is None
        assert result.run.context.closed
    assert len(world.done) == after[0]
    with AuditLog.open(next(tmp_path.iterdir())):
        """The log was let go of."""


def test_a_stop_that_cannot_be_written_leaves_the_run_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log breaks at the very end; the context is closed and the quota settled all the same."""
    record = AuditLog.record

    def full(log: AuditLog, kind: str, data: Any, /) -> int:
        if kind == "budget_stop":
            raise AuditError("disk full")
        return record(log, kind, data)

    monkeypatch.setattr(AuditLog, "record", full)
    quota = _Quota()
    loop = World().loop(Limits(max_steps=0, max_cost_usd=1), audit_folder=tmp_path, quota=quota)
    result = loop.run(Scripted(Action.use("look")), "goal")
    assert result.outcome is Outcome.FAILED
    assert result.run.context.closed
    assert quota.log[-1][0] == "settle"


def test_a_run_id_with_a_log_is_not_used_again(tmp_path: Path) -> None:
    """And one that would escape the folder is refused."""
    loop = World().loop(audit_folder=tmp_path / "logs")
    loop.run(Scripted(), "goal", run_id="r1")
    for run_id in ("r1", "../r2", ""):
        with pytest.raises(ConfigurationError, match="run_id"):
            loop.run(Scripted(), "goal", run_id=run_id)
    assert [path.name for path in tmp_path.rglob("*.jsonl")] == ["r1.jsonl"]


def test_a_late_result_is_still_put_on_record(tmp_path: Path) -> None:
    """A thread left behind at the deadline settles after the run, and only then its log closes (field case 43)."""
    world = World()
    release = threading.Event()
    began = threading.Event()

    def hangs() -> str:
        began.set()
        assert release.wait(timeout=10)
        return "late"

    world.add("hangs", does=hangs, isolate="thread", cost="0.5")
    quota = _Quota()
    loop = world.loop(Limits(max_seconds=3, max_cost_usd=1), audit_folder=tmp_path, quota=quota)

    def pass_the_deadline() -> None:
        assert began.wait(timeout=10)
        world.clock.advance_ns(4 * NS_PER_SECOND)

    clock = threading.Thread(target=pass_the_deadline)
    clock.start()
    result = loop.run(Scripted(Action.use("hangs")), "goal")
    clock.join(timeout=10)
    assert isinstance(result.stop, TimeStop)
    assert result.trace[0].observations == ()
    assert quota.log[-1] == ("settle", Money(DOLLAR // 2)), "what is in flight is not given back to the tenant"
    release.set()
    for thread in threading.enumerate():
        if thread.name == "failstop-hangs":
            thread.join(timeout=10)
    assert kinds(tmp_path)[-2:] == ["finish", "settle"]
    assert events(tmp_path)[-1][1]["outcome"] == "abandoned"


# Quota ---------------------------------------------------------------------------------------------------------------


def test_a_run_reserves_its_cost_ceiling_and_settles_what_it_spent() -> None:
    """So a tenant's small runs cannot pass the quota together."""
    world = World()
    world.add("spend", cost="0.25")
    quota = QuotaManager(max_usd_per_day=1, clock=world.clock)
    loop = world.loop(Limits(max_cost_usd="0.75"), quota=quota)
    paused = loop.run(Scripted(Action.use("pay")), "goal", tenant="ann")
    with pytest.raises(Denied):
        loop.run(Scripted(), "goal", tenant="ann")
    loop.resume(paused.run, {paused.pending[0].id: True})
    for _ in range(2):
        assert loop.run(Scripted(Action.use("spend")), "goal", tenant="ann").outcome is Outcome.COMPLETED
    with pytest.raises(Denied):
        loop.run(Scripted(), "goal", tenant="ann")
    assert loop.run(Scripted(), "goal", tenant="bob").outcome is Outcome.COMPLETED


@pytest.mark.parametrize("run", FACES)
def test_a_run_is_charged_to_the_tenant_it_names(run: Any) -> None:
    """On either face, and to no other."""
    world = World()
    quota = QuotaManager(max_runs_per_hour=1, clock=world.clock)
    run(world.loop(quota=quota), Scripted(), tenant="ann")
    assert (quota.usage("ann").runs, quota.usage("bob").runs) == (1, 0)


def test_a_run_that_its_quota_refuses_leaves_nothing_behind(tmp_path: Path) -> None:
    """Refused before anything is written or run."""
    world = World()
    quota = QuotaManager(max_runs_per_hour=0, clock=world.clock)
    loop = world.loop(Limits(max_cost_usd=1), quota=quota, audit_folder=tmp_path / "logs")
    with pytest.raises(Denied):
        loop.run(Scripted(Action.use("look")), "goal", tenant="ann")
    assert world.done == []
    assert not (tmp_path / "logs").exists()


def test_nothing_that_a_caller_makes_up_gives_a_tenant_a_fresh_quota() -> None:
    """Another goal, run id or loop is the same tenant, and no tenant is no run (field case 36)."""
    world = World()
    quota = QuotaManager(max_runs_per_hour=2, clock=world.clock)
    loop = world.loop(quota=quota)
    loop.run(Scripted(), "goal", run_id="one", tenant=("org", "ann"))
    loop.run(Scripted(), "another goal", run_id="two", tenant=("org", "ann"))
    for again in (loop, world.loop(Limits(max_steps=1), quota=quota)):
        with pytest.raises(Denied):
            again.run(Scripted(), "a third goal", run_id="three", tenant=("org", "ann"))
    for nobody in (None, "", ()):
        with pytest.raises(Denied, match="no tenant"):
            loop.run(Scripted(), "goal", tenant=nobody)
    assert quota.usage(("org", "ann")).runs == 2


def test_a_sub_agent_cannot_name_another_tenant_to_pay_for_it() -> None:
    """It draws from its parent's chain, whose tenant is charged (field case 36)."""
    world = World()
    world.add("spend", cost="0.25")
    quota = QuotaManager(max_usd_per_day=1, clock=world.clock)
    loop = world.loop(Limits(max_cost_usd=1), quota=quota)

    def delegate(context: Any) -> None:
        loop.run(Scripted(Action.use("spend")), "inner", parent=context, tenant="bob")

    world.tools.register(Tool(name="delegate", fn=delegate, tier=RiskTier.READ, cost=0, with_context=True))
    loop.run(Scripted(Action.use("delegate")), "goal", tenant="ann")
    assert quota.usage("ann").spent == Money(DOLLAR // 4)
    assert quota.usage("bob") == (0, Money(0), Money(0))


def test_a_run_without_a_ceiling_has_what_its_tenant_has_left_of_the_day_as_one(tmp_path: Path) -> None:
    """It holds all of that and can spend no more; it is in the log, so the audit judges by it too (field case 19)."""
    world = World()
    world.add("spend", cost="0.4")
    quota = QuotaManager(max_usd_per_day=1, clock=world.clock)
    quota.start("ann", "0.1").settle("0.1")
    result = world.loop(Limits(), quota=quota, audit_folder=tmp_path).run(
        Scripted(*[Action.use("spend", n=n) for n in range(9)]), "goal", tenant="ann"
    )
    assert isinstance(result.stop, CostStop)
    assert result.stop.limit == 9 * DOLLAR // 10
    assert world.names == ["spend"] * 2
    assert quota.usage("ann").spent == Money(9 * DOLLAR // 10)
    (path,) = tmp_path.iterdir()
    assert replay(load(path)).limits.max_cost_usd == Money(9 * DOLLAR // 10)
    assert check_run(load(path).events) == []


def test_calls_of_unknown_cost_use_up_a_tenants_day_though_the_run_has_no_ceiling() -> None:
    """Unknown is not free to whoever counts the money; where nobody does, it is not limited (field case 19)."""
    world = World()
    world.add("unpriced", cost=None)
    quota = QuotaManager(max_usd_per_day=1, clock=world.clock)
    planner = Scripted(*[Action.use("unpriced", n=n) for n in range(9)])
    result = world.loop(Limits(), quota=quota).run(planner, "goal", tenant="ann")
    assert isinstance(result.stop, CostStop)
    assert world.names == ["unpriced"]
    assert quota.usage("ann").spent == Money(DOLLAR)
    runs_only = world.loop(Limits(), quota=QuotaManager(max_runs_per_hour=1, clock=world.clock))
    assert runs_only.run(Scripted(Action.use("unpriced")), "goal", tenant="ann").outcome is Outcome.COMPLETED


@pytest.mark.parametrize("act", [RuntimeError("boom"), Action.use("spend"), Action(cost=-1)])
def test_a_run_that_fails_or_is_stopped_is_charged_to_its_quota(act: Any) -> None:
    """However it ends, what it spent is spent and the rest is given back."""
    world = World()
    world.add("spend", cost=1)
    quota = _Quota()
    result = world.loop(Limits(max_cost_usd=1, max_steps=1), quota=quota).run(
        Scripted(act, Action.use("look")), "goal", tenant="ann"
    )
    assert result.outcome is not Outcome.COMPLETED
    assert quota.log == [("start", "ann", Money(DOLLAR)), ("settle", Money(result.snapshot.committed_nano))]


def test_a_paused_run_keeps_its_reservation_until_it_is_closed() -> None:
    """An unanswered question does not free the tenant's money; closing the run does."""
    world = World()
    quota = _Quota()
    paused = world.loop(Limits(max_cost_usd=1), quota=quota).run(Scripted(Action.use("pay")), "goal", tenant="ann")
    assert [entry[0] for entry in quota.log] == ["start"]
    paused.run.close()
    paused.run.close()
    assert [entry[0] for entry in quota.log] == ["start", "settle"]


def test_a_sub_agent_of_a_chain_that_is_over_does_not_start_and_lets_go_of_its_log(tmp_path: Path) -> None:
    """The stop goes on to the tool that wanted it, and the log is whole and unlocked."""
    loop = World().loop(audit_folder=tmp_path)
    parent = loop.start("goal", run_id="parent")
    parent.close()
    with pytest.raises(ClosedStop):
        loop.start("goal", run_id="child", parent=parent.context)
    with AuditLog.open(tmp_path / "child.jsonl") as log:
        assert len(log) == 1


def test_a_run_that_cannot_start_gives_its_quota_back(tmp_path: Path) -> None:
    """The log exists already."""
    world = World()
    quota = _Quota()
    loop = world.loop(Limits(max_cost_usd=1), quota=quota, audit_folder=tmp_path)
    loop.run(Scripted(), "goal", run_id="r1", tenant="ann")
    with pytest.raises(ConfigurationError):
        loop.run(Scripted(), "goal", run_id="r1", tenant="ann")
    assert quota.log[-1] == ("release",)


class _Quota:
    """Writes down what it is asked."""

    def __init__(self) -> None:
        self.log: list[tuple[Any, ...]] = []

    def start(self, tenant: str, reserve: Any) -> _Quota:
        self.log.append(("start", tenant, reserve))
        return self

    def settle(self, spent: Any) -> None:
        self.log.append(("settle", spent))

    def release(self) -> None:
        self.log.append(("release",))


# Ending --------------------------------------------------------------------------------------------------------------


def test_a_cancelled_run_is_on_record_and_the_cancellation_goes_on(tmp_path: Path) -> None:
    """The task that runs the agent is cancelled while a tool is awaited."""

    async def scenario() -> None:
        began = asyncio.Event()

        async def waits() -> None:
            began.set()
            await asyncio.Event().wait()

        world = World()
        world.tools.register(Tool(name="waits", fn=waits, tier=RiskTier.READ, cost=0))
        loop = world.loop(audit_folder=tmp_path)
        task = asyncio.create_task(loop.arun(Scripted(Action.use("waits")), "goal"))
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelled()

    asyncio.run(scenario())
    assert finish_of(tmp_path)["outcome"] == "failed"
    assert finish_of(tmp_path)["error"].startswith("CancelledError")


def test_a_cancellation_goes_on_though_the_run_was_stopped_meanwhile() -> None:
    """Who cancelled the task waits for a cancellation, not for a result."""

    async def scenario() -> None:
        began = asyncio.Event()
        world = World()
        run = world.loop().start("goal")

        class Waits:
            async def next_action(self, _: History) -> Action:
                run.context.halt("operator")
                began.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    await asyncio.sleep(0)
                return Action.finish()

        task = asyncio.create_task(world.loop().adrive(run, Waits()))
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())


def test_a_run_that_ended_dispatches_nothing_more() -> None:
    """Its context is closed, and so is the run."""
    world = World()
    result = world.loop().run(Scripted(Action.use("look")), "goal")
    with pytest.raises(ClosedStop):
        result.run.perform(Action.use("look"))
    with pytest.raises(Stop):
        result.run.context.call(print, cost=0)
    assert world.names == ["look"]
    assert result.run.close().outcome is Outcome.COMPLETED


def test_a_run_closed_before_its_end_has_failed() -> None:
    """The result says so."""
    run = World().loop().start("goal")
    assert isinstance(run.close().error, RunClosed)
    assert run.complete("done").outcome is Outcome.FAILED


def test_a_harness_completes_a_run_with_its_value(tmp_path: Path) -> None:
    """Unless it was stopped, and then it has not completed."""
    world = World()
    with world.loop(Limits(max_steps=2), audit_folder=tmp_path).start("goal") as run:
        run.perform(Action(calls=(ToolCall("look"),), cost="0.1"))
        with pytest.raises(PlannerError, match="finish"):
            run.perform(Action.finish())
        with pytest.raises(PlannerError):
            run.perform(None)  # type: ignore[arg-type]  # the point
        result = run.complete({"n": 1})
    assert (result.outcome, result.value) == (Outcome.COMPLETED, {"n": 1})
    assert result.snapshot.committed_nano == DOLLAR // 10
    assert finish_of(tmp_path)["value"] == {"n": 1}
    with world.loop(Limits(max_steps=0)).start("goal") as stopped:
        with pytest.raises(StepStop):
            stopped.perform(Action.use("look"))
        with pytest.raises(StepStop):
            stopped.perform(Action.use("look"))
        assert stopped.complete().outcome is Outcome.BUDGET_STOP


def test_a_harness_may_perform_from_several_threads_and_from_inside_a_tool() -> None:
    """Never above the limit, and no turn disturbs another."""
    world = World()
    run = world.loop(Limits(max_steps=21)).start("goal")
    world.add("nested", does=lambda: run.perform(Action.use("look"))[0].value)
    assert run.perform(Action.use("nested"))[0].value == "look done"
    stopped = []

    def work() -> None:
        try:
            while True:
                run.perform(Action.use("look"))
        except StepStop as stop:
            stopped.append(stop)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10)
        assert not thread.is_alive()
    assert len(stopped) == 4
    assert world.names.count("look") == 20
    numbers = [turn.number for turn in run.trace.turns()]
    assert numbers == list(range(1, len(numbers) + 1))


def test_the_history_can_be_written_as_json() -> None:
    """A planner that is a model writes it into its prompt."""
    world = World()
    world.add("rows", does=lambda q: {"rows": [1, 2], "q": q})
    planner = Scripted(Action.use("rows", q=[1]))
    world.loop().run(planner, "goal")
    assert json.loads(json.dumps(planner.seen[1].last[0].value)) == {"rows": [1, 2], "q": [1]}
