"""Every turn of a planner costs a step, and repetition is found before it is dispatched again."""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING, Any, cast

import pytest

from failstop.runtime.agent.outcome import Outcome
from failstop.runtime.agent.planner import Action, History, Seen, ToolCall
from failstop.runtime.agent.tools import Tool
from failstop.runtime.limits import Limits
from failstop.runtime.policies.pipeline import PolicyContext, PolicyDecision, PolicyPipeline
from failstop.runtime.policies.retry import RetryContainer
from failstop.runtime.risk import RiskTier
from failstop.runtime.stops import CostStop, RepeatStop, StepStop, ToolCallStop
from failstop.runtime.tests.scripted import FACES, Scripted, World

if TYPE_CHECKING:
    from collections.abc import Callable


class Endless:
    """Never finishes: asks for the next of its actions, for ever."""

    def __init__(self, make: Callable[[int], Action]) -> None:
        self.make = make
        self.turns = 0

    def next_action(self, history: History) -> Action:
        """See Planner."""
        self.turns += 1
        return self.make(self.turns)


class Announced:
    """A policy whose first check gives the next one 50 ms of real time to overtake it."""

    policy_type = "announced"

    def __init__(self) -> None:
        self.overtaken = threading.Event()
        self.checks = itertools.count()

    def check(self, context: PolicyContext) -> PolicyDecision:
        """Allow."""
        if next(self.checks) > 0:
            self.overtaken.set()
        else:
            assert not self.overtaken.wait(timeout=0.05), "the second call asked before the first was decided"
        return PolicyDecision(True, self.policy_type)

    def release(self, context: PolicyContext, decision: PolicyDecision) -> None:
        """Nothing was taken."""

    def report(self, context: PolicyContext, decision: PolicyDecision, error: Any, cost_nano: int) -> None:
        """Nothing to learn."""

    def reset(self) -> None:
        """Nothing to forget."""


class DenyAll:
    """A policy that denies every call."""

    policy_type = "deny_all"

    def check(self, context: PolicyContext) -> PolicyDecision:
        """Deny."""
        return PolicyDecision(False, self.policy_type, "not today")

    def release(self, context: PolicyContext, decision: PolicyDecision) -> None:
        """Nothing was taken."""

    def report(self, context: PolicyContext, decision: PolicyDecision, error: Any, cost_nano: int) -> None:
        """Nothing was dispatched."""

    def reset(self) -> None:
        """Keep denying."""


# The step ceiling ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", FACES)
def test_an_agent_that_never_finishes_is_stopped_at_exactly_its_steps(run: Any) -> None:
    """Not one dispatch more, not one less (G2)."""
    world = World()
    result = run(world.loop(Limits(max_steps=7)), Endless(lambda n: Action.use("look", n=n)))
    assert result.outcome is Outcome.BUDGET_STOP
    assert isinstance(result.stop, StepStop)
    assert (result.stop.limit, result.stop.used) == (7, 7)
    assert len(world.done) == 7


@pytest.mark.parametrize("run", FACES)
def test_an_agent_whose_limit_is_exactly_what_it_needs_completes(run: Any) -> None:
    """A finish costs nothing."""
    world = World()
    result = run(world.loop(Limits(max_steps=3)), Scripted(*[Action.use("look", n=n) for n in range(3)]))
    assert result.outcome is Outcome.COMPLETED
    assert result.snapshot.steps == 3


def test_an_agent_that_finishes_at_once_needs_no_step() -> None:
    """max_steps=0 allows an answer and nothing else."""
    world = World()
    assert world.loop(Limits(max_steps=0)).run(Scripted(), "goal").outcome is Outcome.COMPLETED
    assert world.loop(Limits(max_steps=0)).run(Scripted(Action.use("look")), "goal").outcome is Outcome.BUDGET_STOP
    assert world.done == []


def test_failing_calls_count() -> None:
    """An agent that fails for ever but cheaply is stopped like any other."""
    world = World()
    world.add("broken", does=lambda: 1 / 0)
    result = world.loop(Limits(max_steps=4)).run(Endless(lambda _: Action.use("broken")), "goal")
    assert result.outcome is Outcome.BUDGET_STOP
    assert len(world.done) == 4


@pytest.mark.parametrize(
    ("limits", "stop"), [(Limits(max_steps=6), StepStop), (Limits(max_tool_calls=6), ToolCallStop)]
)
@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("run", FACES)
def test_of_eight_calls_in_one_turn_under_a_limit_of_six_the_first_six_run(
    run: Any, parallel: bool, limits: Limits, stop: type
) -> None:
    """Admission is in the order given, dispatched at once or not (field case 40)."""
    world = World()
    step = Action(calls=tuple(ToolCall("look", {"n": n}) for n in range(8)), parallel=parallel)
    result = run(world.loop(limits), Scripted(step))
    assert result.outcome is Outcome.BUDGET_STOP
    assert isinstance(result.stop, stop)
    assert sorted(args["n"] for _, args in world.done) == list(range(6))
    assert [seen.call_id for seen in result.trace[0].observations] == [f"1.{n}" for n in range(1, 7)]


@pytest.mark.parametrize("run", FACES)
def test_a_parallel_call_asks_only_when_the_one_before_it_is_decided(run: Any) -> None:
    """Which calls fit is never left to the thread scheduler (field case 40)."""
    step = Action(calls=(ToolCall("look"), ToolCall("look")), parallel=True)
    result = run(World().loop(policies=lambda: PolicyPipeline([Announced()])), Scripted(step))
    assert [seen.error for seen in result.trace[0].observations] == ["", ""]


@pytest.mark.parametrize("run", FACES)
def test_parallel_calls_really_overlap_and_answer_in_the_order_given(run: Any) -> None:
    """The first call ends last, and its answer still comes first."""
    world = World()
    last_began = threading.Event()

    def does(n: int) -> int:
        if n == 2:
            last_began.set()
        assert last_began.wait(timeout=10), "the calls did not overlap"
        return n

    world.add("wait", does=does)
    step = Action(calls=tuple(ToolCall("wait", {"n": n}) for n in range(3)), parallel=True)
    result = run(world.loop(Limits(max_steps=3)), Scripted(step))
    assert [seen.value for seen in result.trace[0].observations] == [0, 1, 2]


# A turn that dispatches nothing (field case 32) ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "action",
    [
        Action(),
        Action.use("no_such_tool"),
        Action(calls=(ToolCall("no_such_tool"), ToolCall("nor_this"))),
        Action(calls=(ToolCall("look", cast("dict[str, str]", {3: "no name"})),)),
        Action(calls=(ToolCall("pay"),)),
    ],
)
@pytest.mark.parametrize("run", FACES)
def test_a_turn_that_dispatches_nothing_costs_a_step(run: Any, action: Action) -> None:
    """An empty plan, unknown tools, calls that cannot be made, calls that are denied: none goes on for ever."""
    world = World()
    planner = Endless(lambda _: action)
    result = run(world.loop(Limits(max_steps=5), approver=lambda _: False), planner)
    assert result.outcome is Outcome.BUDGET_STOP
    assert isinstance(result.stop, StepStop)
    assert world.done == []
    assert result.snapshot.steps == 5
    assert result.snapshot.tool_calls == 0
    assert planner.turns == 6


def test_an_unknown_tool_beside_a_known_one_costs_nothing_more() -> None:
    """The turn has paid its step already."""
    world = World()
    step = Action(calls=(ToolCall("no_such_tool"), ToolCall("look")))
    result = world.loop(Limits(max_steps=1)).run(Scripted(step), "goal")
    assert result.outcome is Outcome.COMPLETED
    assert [seen.seen for seen in result.trace[0].observations] == [Seen.UNKNOWN_TOOL, Seen.OK]


def test_an_unknown_tool_is_an_observation_that_names_the_known_ones() -> None:
    """A model that invents a tool can recover and complete."""
    world = World()
    result = world.loop().run(Scripted(Action.use("serch"), Action.use("look")), "goal")
    assert result.outcome is Outcome.COMPLETED
    assert result.trace[0].observations[0].error == "there is no tool 'serch'; the tools are: look, send, pay"


def test_an_empty_plan_is_an_observation() -> None:
    """It says what to do instead."""
    result = World().loop().run(Scripted(Action()), "goal")
    assert result.trace[0].observations[0].error == "the plan is empty; call a tool, or finish"


def test_a_policy_that_denies_every_call_ends_the_run_all_the_same() -> None:
    """A turn that dispatches nothing takes its step past every policy, so five turns are all there are."""
    world = World()
    planner = Endless(lambda n: Action.use("look", n=n))
    result = world.loop(Limits(max_steps=5), policies=lambda: PolicyPipeline([DenyAll()])).run(planner, "goal")
    assert isinstance(result.stop, StepStop)
    assert planner.turns == 6  # the sixth is refused its step
    assert world.done == []
    assert result.trace[0].observations[0].seen is Seen.REFUSED
    assert "not today" in result.trace[0].observations[0].error


# Repetition ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", FACES)
def test_three_repeats_are_admitted_and_the_fourth_is_not_dispatched(run: Any) -> None:
    """max_repeats=3, long before the step ceiling."""
    world = World()
    result = run(world.loop(Limits(max_steps=50, max_repeats=3)), Endless(lambda _: Action.use("look", q="x")))
    assert result.outcome is Outcome.BUDGET_STOP
    assert isinstance(result.stop, RepeatStop)
    assert len(world.done) == 3


def test_the_order_of_keys_does_not_hide_a_repetition() -> None:
    """Neither at the top nor inside, and JSON text of the same arguments is the same too (field case 32)."""
    same: list[Any] = [{"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}]
    same.append('{ "b": {"d":3,  "c":2},\n "a": 1 }')
    world = World()
    planner = Endless(lambda n: Action(calls=(ToolCall("look", same[n % 3]),)))
    result = world.loop(Limits(max_steps=50, max_repeats=4)).run(planner, "goal")
    assert isinstance(result.stop, RepeatStop)
    assert world.done == [("look", same[0])] * 4


def test_two_actions_that_alternate_are_not_flagged() -> None:
    """Only exact repetition in a row is; the step ceiling catches the rest."""
    world = World()
    result = world.loop(Limits(max_steps=8, max_repeats=2)).run(Endless(lambda n: Action.use("look", n=n % 2)), "goal")
    assert isinstance(result.stop, StepStop)
    assert len(world.done) == 8


@pytest.mark.parametrize("action", [Action(), Action.use("no_such_tool", x=1)])
def test_turns_that_dispatch_nothing_are_found_to_repeat(action: Action) -> None:
    """An empty plan and an unknown tool enter the history of repetition (field case 32)."""
    planner = Endless(lambda _: action)
    result = World().loop(Limits(max_steps=50, max_repeats=3)).run(planner, "goal")
    assert isinstance(result.stop, RepeatStop)
    assert planner.turns == 4


def test_an_unknown_tool_repeats_whatever_the_order_of_its_keys() -> None:
    """It costs a step each time and enters the history like a known one, reordered or as JSON text (field case 32)."""
    same: list[Any] = [{"a": 1, "b": [2]}, {"b": [2], "a": 1}, '{ "b": [ 2 ],\n "a": 1 }']
    planner = Endless(lambda n: Action(calls=(ToolCall("no_such_tool", same[n % 3]),)))
    result = World().loop(Limits(max_steps=50, max_repeats=4)).run(planner, "goal")
    assert isinstance(result.stop, RepeatStop)
    assert (planner.turns, result.snapshot.steps) == (5, 4)


@pytest.mark.parametrize("action", [Action.use("look"), Action(), Action.use("no_such_tool")])
def test_the_largest_number_of_repeats_that_is_accepted_can_still_fire(action: Action) -> None:
    """As many as there are steps: the turn after them is a repetition before it is a step (field case 31)."""
    result = World().loop(Limits(max_steps=3, max_repeats=3)).run(Endless(lambda _: action), "goal")
    assert isinstance(result.stop, RepeatStop)
    assert result.snapshot.steps == 3


def test_events_of_other_kinds_in_between_do_not_hide_a_repetition() -> None:
    """Retries, a model's calls, pauses and a sub-agent's turns: the planner's own turns alone count (field case 31)."""
    world = World()
    loop = world.loop(Limits(max_repeats=3))

    def delegate(context: Any) -> None:
        loop.run(Scripted(*[Action.use("look", n=n) for n in range(5)]), "inner goal", parent=context)
        tries.append(len(tries))
        if len(tries) % 3:
            raise OSError("again")

    tries: list[int] = []
    world.tools.register(
        Tool(
            name="delegate",
            fn=delegate,
            tier=RiskTier.IRREVERSIBLE,
            cost=0,
            retries=RetryContainer(5, clock=world.clock),
            with_context=True,
        )
    )
    run = loop.start("goal")

    def asks_a_model(_: int) -> Action:
        for _time in range(4):
            run.context.call(lambda: "thought", cost=0)
        return Action.use("delegate")

    planner = Endless(asks_a_model)
    result = loop.drive(run, planner)
    while result.outcome is Outcome.NEEDS_APPROVAL:
        result = loop.resume(run, {result.pending[0].id: True})
    assert isinstance(result.stop, RepeatStop)
    assert planner.turns == 4


def test_the_calls_of_an_action_are_compared_in_their_order() -> None:
    """[a, b] then [b, a] is no repetition, and neither is [a] then [a, a]."""
    a, b = ToolCall("look", {"n": 1}), ToolCall("look", {"n": 2})
    acts = [Action(calls=calls) for calls in ((a, b), (b, a), (a,), (a, a))]
    assert World().loop(Limits(max_repeats=1)).run(Scripted(*acts), "goal").outcome is Outcome.COMPLETED


def test_what_the_planner_says_beside_the_calls_does_not_hide_a_repetition() -> None:
    """Reasoning differs at every turn of a model that is stuck."""
    planner = Endless(lambda n: Action(calls=(ToolCall("look"),), reasoning=f"attempt {n}", parallel=n % 2 == 0))
    result = World().loop(Limits(max_steps=50, max_repeats=3)).run(planner, "goal")
    assert isinstance(result.stop, RepeatStop)


# Pauses and sub-agents (field case 41) -------------------------------------------------------------------------------


def test_pausing_does_not_renew_the_steps() -> None:
    """A question every fourth step: the counter goes on where it was."""
    world = World()
    loop = world.loop(Limits(max_steps=5))
    result = loop.run(Endless(lambda n: Action.use("pay" if n % 4 == 0 else "look", n=n)), "goal")
    pauses = 0
    while result.outcome is Outcome.NEEDS_APPROVAL:
        pauses += 1
        result = loop.resume(result.run, {result.pending[0].id: True})
    assert result.outcome is Outcome.BUDGET_STOP
    assert (pauses, len(world.done), result.snapshot.steps) == (1, 5, 5)


def test_pausing_does_not_renew_the_repeats() -> None:
    """The same question again and again is a repetition."""
    world = World()
    loop = world.loop(Limits(max_steps=50, max_repeats=3))
    result = loop.run(Endless(lambda _: Action.use("pay")), "goal")
    while result.outcome is Outcome.NEEDS_APPROVAL:
        result = loop.resume(result.run, {result.pending[0].id: True})
    assert isinstance(result.stop, RepeatStop)
    assert len(world.done) == 3


def test_no_counter_is_renewed_by_a_pause() -> None:
    """What was spent, dispatched and retried before the question is what the run goes on with (field case 41)."""
    world = World()
    failures = [OSError("again"), None]

    def flaky() -> None:
        error = failures.pop(0)
        if error is not None:
            raise error

    world.add("flaky", does=flaky, cost="0.1", retries=RetryContainer(1, clock=world.clock))
    loop = world.loop(Limits(max_cost_usd="0.25", max_steps=9, max_tool_calls=9, max_retries=1))
    paused = loop.run(Scripted(Action.use("flaky"), Action.use("pay"), *[Action.use("flaky")] * 9), "goal")
    before = paused.snapshot
    assert (before.committed_nano, before.steps, before.tool_calls, before.retries) == (200_000_000, 2, 2, 1)
    result = loop.resume(paused.run, {paused.pending[0].id: True})
    after = result.snapshot
    assert (after.committed_nano, after.steps, after.tool_calls, after.retries) == (200_000_000, 3, 3, 1)
    assert isinstance(result.stop, CostStop)


@pytest.mark.parametrize("run", FACES)
def test_sub_agents_of_sub_agents_draw_from_the_same_steps(run: Any) -> None:
    """However deep, and whatever limits the inner loops give themselves (field case 41)."""
    world = World()
    inner = world.loop(Limits(max_steps=1000))

    def delegate(context: Any, depth: int) -> None:
        act = Action.use("delegate", depth=depth - 1) if depth else Action.use("look")
        inner.run(Endless(lambda _: act), "inner goal", parent=context)

    world.tools.register(Tool(name="delegate", fn=delegate, tier=RiskTier.READ, cost=0, with_context=True))
    result = run(world.loop(Limits(max_steps=9)), Endless(lambda _: Action.use("delegate", depth=3)))
    assert isinstance(result.stop, StepStop)
    assert result.snapshot.steps == 9
    assert len(world.done) == 5


def test_a_tool_that_starts_a_sub_agent_draws_from_its_parents_steps() -> None:
    """The dispatch of the tool and those inside it are all of one chain."""
    world = World()
    loop = world.loop(Limits(max_steps=5))
    inner: list[Any] = []

    def delegate(context: Any) -> str:
        result = loop.run(Endless(lambda n: Action.use("look", n=n)), "inner goal", parent=context)
        inner.append(result)
        return str(result.outcome)

    world.tools.register(
        Tool(name="delegate", fn=delegate, tier=RiskTier.READ, cost=0, with_context=True),
    )
    result = loop.run(Endless(lambda _: Action.use("delegate")), "goal")
    assert result.outcome is Outcome.BUDGET_STOP
    assert inner[0].outcome is Outcome.BUDGET_STOP
    assert len(world.done) == 4
    assert result.snapshot.steps == 5
