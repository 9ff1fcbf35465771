"""Every door of the runtime, one table each: senseless limits, no allowance at all, unknown options, odd amounts."""

from __future__ import annotations

import asyncio
import enum
import inspect
import re
from itertools import pairwise

import pytest

from failstop import runtime
from failstop.runtime import (
    AgentLoop,
    AgentStepGuard,
    AuditLog,
    BudgetEnforcer,
    CircuitBreaker,
    ConfigurationError,
    CostStop,
    Decision,
    Denied,
    ExecutionContext,
    ExecutionGraph,
    HaltedStop,
    Limits,
    Money,
    Outcome,
    PartialResultBuffer,
    PolicyPipeline,
    QuotaManager,
    RepeatStop,
    RetryContainer,
    RetryStop,
    RiskTier,
    StepStop,
    TimeStop,
    Tool,
    ToolCallStop,
    ToolRegistry,
    VirtualClock,
    load,
)
from failstop.runtime.agent.planner import Action
from failstop.runtime.tests.scripted import FACES, Scripted, World

NAN, INF = float("nan"), float("inf")


# Limits that make no sense -------------------------------------------------------------------------------------------


def tool(**options):
    """Make a tool with some options."""
    return Tool(**{"name": "t", "fn": int, "tier": RiskTier.READ, "cost": 0, **options})


def loop(**options):
    """Make a loop with some options."""
    return AgentLoop(ToolRegistry(), Limits(), **options)


CONSTRUCTORS = {
    Limits: Limits,
    BudgetEnforcer: BudgetEnforcer,
    AgentStepGuard: AgentStepGuard,
    RetryContainer: RetryContainer,
    QuotaManager: QuotaManager,
    CircuitBreaker: CircuitBreaker,
    Tool: tool,
    AgentLoop: loop,
}
LIMITS = [
    *((Limits, name) for name in ("max_cost_usd", "max_steps", "max_tool_calls", "max_retries")),
    *((Limits, name) for name in ("max_seconds", "max_repeats")),
    (BudgetEnforcer, "limit_usd"),
    (AgentStepGuard, "max_steps"),
    *((RetryContainer, name) for name in ("max_retries", "backoff_base_s", "backoff_max_s", "jitter")),
    *((QuotaManager, name) for name in ("max_runs_per_hour", "max_usd_per_day")),
    *((CircuitBreaker, name) for name in ("failure_threshold", "recovery_timeout_s", "probe_lease_s")),
    (Tool, "retries"),
    (AgentLoop, "grant_seconds"),
]
AMOUNTS = [(Tool, "cost"), (Tool, "reserve"), (runtime.Action, "cost")]
"""What one call or turn costs is no limit: however large, it counts exactly. A planner's is judged when it comes."""

KEPT = [(ExecutionGraph, "max_nodes"), (PartialResultBuffer, "max_chunks")]
"""How much of the past is kept in memory."""

TOLD = {
    *(runtime.Stop, CostStop, StepStop, ToolCallStop, RetryStop, TimeStop, RepeatStop, runtime.HaltedStop),
    *(runtime.ClosedStop, runtime.Degradation, runtime.ApprovalRequest, runtime.PolicyContext),
    *(Money, AuditLog, VirtualClock),
    *(runtime.Turn, runtime.Snapshot, runtime.Event, runtime.Breach),
}
"""Classes whose numbers are told or shown, not kept to."""


def names(pairs):
    """Name the members of a table in a test's id."""
    return [f"{made.__name__}.{name}" for made, name in pairs]


@pytest.mark.parametrize(("made", "field"), LIMITS, ids=names(LIMITS))
@pytest.mark.parametrize("value", [NAN, INF, -INF, 10**400, "nan", -1, True, False], ids=lambda value: repr(value)[:9])
def test_no_limit_that_makes_no_sense_can_be_made_anywhere(made, field, value):
    """Refused when it is constructed, by the name of the field (field case 24)."""
    with pytest.raises(ConfigurationError) as refused:
        CONSTRUCTORS[made](**{field: value})
    assert refused.value.field == field


@pytest.mark.parametrize(("made", "field"), AMOUNTS[:2], ids=names(AMOUNTS[:2]))
@pytest.mark.parametrize("value", [NAN, INF, "nan", -1, True])
def test_no_price_that_makes_no_sense_can_be_declared(made, field, value):
    """Before the tool is ever called (field case 24)."""
    with pytest.raises(ConfigurationError) as refused:
        CONSTRUCTORS[made](**{field: value})
    assert refused.value.field == field


@pytest.mark.parametrize("value", [NAN, INF, 10**400, "nan", -1, 0, True], ids=lambda value: repr(value)[:9])
def test_no_memory_that_makes_no_sense_can_be_asked_for(value):
    """Of the graph and of the partial result; what no machine has overflows (field case 24)."""
    for make in (lambda: ExecutionGraph(None, value), lambda: PartialResultBuffer(value)):
        with pytest.raises((ConfigurationError, OverflowError)):
            make()


@pytest.mark.parametrize("value", [NAN, INF, 10**400, "nan", -1, True], ids=lambda value: repr(value)[:9])
def test_a_call_cannot_be_given_retries_that_make_no_sense(value):
    """They are its own limit, so nothing is dispatched or counted (field case 24)."""
    work = Witness()
    ctx = ExecutionContext(Limits(), clock=VirtualClock())
    with pytest.raises(ConfigurationError, match="max_retries"):
        ctx.call(work, retries=value)
    with pytest.raises(ConfigurationError, match="max_retries"):
        asyncio.run(ctx.acall(work, retries=value))
    assert (work.count, ctx.snapshot().steps) == (0, 0)


def test_the_tables_have_every_number_that_a_public_constructor_takes():
    """A limit that is added without a line in them fails here."""
    known = {*LIMITS, *AMOUNTS, *KEPT}
    found = set()
    for made in public_classes() - TOLD:
        for parameter in inspect.signature(made).parameters.values():
            kinds = re.sub(r"Callable\[.*?\]\]", "", str(parameter.annotation))
            if re.search(r"\b(int|float|Decimal|Amount|Cost)\b", kinds):
                found.add((made, parameter.name))
    assert found == known


def public_classes():
    """The classes that a user can make with options; not enumerations, protocols and plain errors."""
    exported = {getattr(runtime, name) for name in runtime.__all__}
    plain = {made for made in exported if isinstance(made, type) and not issubclass(made, enum.Enum)}
    plain = {made for made in plain if made.__init__ not in {Exception.__init__, RuntimeError.__init__}}
    return {made for made in plain if not getattr(made, "_is_protocol", False)}


# No allowance at all -------------------------------------------------------------------------------------------------


class Witness:
    """A callable that counts its dispatches; it is its own stream of one chunk."""

    def __init__(self, error=None):
        self.count = 0
        self.error = error

    def __call__(self):
        self.count += 1
        if self.error is not None:
            raise self.error
        return [1]

    async def later(self):
        """Do the same, awaited."""
        return self()


LEVELS = {
    "root": lambda limits: ExecutionContext(limits, clock=VirtualClock()),
    "child": lambda limits: ExecutionContext(Limits(), clock=VirtualClock()).create_child(limits),
    "child of a child": lambda limits: LEVELS["child"](limits).create_child(),
    "wider child": lambda limits: LEVELS["root"](limits).create_child(Limits(max_cost_usd=9, max_steps=9)),
}
ENTRIES = {
    "call": lambda ctx, work, kind: ctx.call(work, cost="0.01", kind=kind),
    "call by name": lambda ctx, work, kind: ctx.call(work, cost="0.01", kind=kind, name="x"),
    "call on a thread": lambda ctx, work, kind: ctx.call(work, cost="0.01", kind=kind, isolate="thread"),
    "acall": lambda ctx, work, kind: asyncio.run(ctx.acall(work.later, cost="0.01", kind=kind)),
    "stream": lambda ctx, work, kind: list(ctx.stream(work, cost="0.01", kind=kind)),
    "stream on a thread": lambda ctx, work, kind: list(ctx.stream(work, cost="0.01", kind=kind, isolate="thread")),
    "reserve": lambda ctx, work, kind: (ctx.reserve("0.01", kind=kind), work()),
}
NOTHING = {
    "cost": (Limits(max_cost_usd=0), CostStop),
    "steps": (Limits(max_steps=0), StepStop),
    "tool calls": (Limits(max_tool_calls=0), ToolCallStop),
    "time": (Limits(max_seconds=0), TimeStop),
}


@pytest.mark.parametrize("ceiling", NOTHING)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("entry", ENTRIES)
def test_a_limit_of_zero_allows_none_at_any_level_by_any_way_in(entry, level, ceiling):
    """Not a single dispatch, and the stop names the ceiling (field case 25)."""
    limits, stop = NOTHING[ceiling]
    ctx, work = LEVELS[level](limits), Witness()
    with pytest.raises(stop) as stopped:
        ENTRIES[entry](ctx, work, "tool")
    assert stopped.value.limit == 0
    assert (work.count, ctx.snapshot().steps, ctx.snapshot().committed_nano) == (0, 0, 0)


@pytest.mark.parametrize("ceiling", NOTHING)
@pytest.mark.parametrize("level", LEVELS)
def test_the_wrapped_calls_answer_halt_where_a_limit_is_zero(level, ceiling):
    """They decide as the others do (field case 25)."""
    ctx, work = LEVELS[level](NOTHING[ceiling][0]), Witness()
    assert ctx.wrap_tool_call(work, cost="0.01") is Decision.HALT
    assert work.count == 0


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("level", ["root", "child", "child of a child"])
def test_only_none_is_unlimited_at_any_level_by_any_way_in(entry, level):
    """Thirty dispatches, where every ceiling is None (field case 25)."""
    ctx, work = LEVELS[level](Limits()), Witness()
    for _ in range(30):
        ENTRIES[entry](ctx, work, "tool")
        ctx.turn("the same")
    assert work.count == ctx.snapshot().steps == 30


@pytest.mark.parametrize("level", LEVELS)
def test_no_retries_means_none_at_any_level_and_none_means_any_number(level):
    """One dispatch of a failing call, or as many as it asks for (field case 25)."""
    ctx, work = LEVELS[level](Limits(max_retries=0)), Witness(ValueError("down"))
    with pytest.raises(RetryStop):
        ctx.call(work, retries=3, cost=0)
    assert work.count == 1
    if level != "wider child":
        ctx, work = LEVELS[level](Limits()), Witness(ValueError("down"))
        with pytest.raises(ValueError, match="down"):
            ctx.call(work, retries=RetryContainer(20, backoff_base_s=0, clock=VirtualClock()), cost=0)
        assert work.count == 21


@pytest.mark.parametrize("level", ["root", "child"])
def test_no_repeats_means_no_action_at_any_level(level):
    """A child that is given no limits of its own is given its parent's (field case 25)."""
    with pytest.raises(RepeatStop):
        LEVELS[level](Limits(max_repeats=0)).turn("a")
    with pytest.raises(RepeatStop):
        LEVELS[level](Limits(max_repeats=0)).create_child().turn("a")


@pytest.mark.parametrize("sub_agent", [False, True])
@pytest.mark.parametrize("run", FACES)
@pytest.mark.parametrize(
    ("limits", "stop"),
    [*NOTHING.values(), (Limits(max_repeats=0), RepeatStop)],
    ids=[*NOTHING, "repeats"],
)
def test_a_loop_whose_limit_is_zero_calls_no_tool(run, limits, stop, sub_agent):
    """As a run of its own and as a sub-agent of an unlimited one (field case 25)."""
    world = World()
    world.add("spend", cost="0.01")
    parent = world.loop(Limits()).start("goal").context if sub_agent else None
    result = run(world.loop(limits), Scripted(Action.use("spend")), parent=parent)
    assert result.outcome is Outcome.BUDGET_STOP
    assert (type(result.stop), result.stop.limit) == (stop, 0)
    assert world.done == []


@pytest.mark.parametrize("run", FACES)
def test_a_loop_without_limits_has_none(run):
    """Thirty equal turns of a tool that costs and is retried (field case 25)."""
    world = World()
    fails = [ValueError("again"), None] * 30

    def flaky():
        error = fails.pop(0)
        if error is not None:
            raise error

    retries = RetryContainer(1, backoff_base_s=0, clock=world.clock)
    world.add("flaky", does=flaky, cost="0.01", retries=retries)
    result = run(world.loop(Limits()), Scripted(*[Action.use("flaky")] * 30))
    assert result.outcome is Outcome.COMPLETED
    assert (result.snapshot.steps, result.snapshot.retries) == (60, 30)


@pytest.mark.parametrize("run", FACES)
def test_a_loop_without_retries_calls_a_failing_tool_once(run):
    """Zero is none allowed, though the tool asks for more (field case 25)."""
    world = World()
    world.add("down", does=Witness(ValueError("down")), retries=RetryContainer(3, clock=world.clock))
    result = run(world.loop(Limits(max_retries=0)), Scripted(Action.use("down")))
    assert isinstance(result.stop, RetryStop)
    assert world.names == ["down"]


@pytest.mark.parametrize(
    ("none_allowed", "unlimited"),
    [(BudgetEnforcer(0), BudgetEnforcer(None)), (AgentStepGuard(0), AgentStepGuard(None))],
    ids=("budget", "steps"),
)
def test_a_policy_whose_limit_is_zero_denies_and_one_of_none_allows(none_allowed, unlimited):
    """As part of a chain without ceilings of its own (field case 25)."""
    work = Witness()
    ctx = ExecutionContext(Limits(), policies=PolicyPipeline([none_allowed]), clock=VirtualClock())
    with pytest.raises(Denied):
        ctx.call(work, cost="0.01")
    assert work.count == 0
    ctx = ExecutionContext(Limits(), policies=PolicyPipeline([unlimited]), clock=VirtualClock())
    for _ in range(30):
        ctx.call(work, cost="0.01")
    assert work.count == 30


@pytest.mark.parametrize("limits", [{"max_runs_per_hour": 0}, {"max_usd_per_day": 0}], ids=str)
def test_a_loop_whose_quota_is_zero_starts_nothing_and_one_of_none_anything(limits):
    """No run of anything that may cost something (field case 25)."""
    world = World()
    planner = Scripted(Action.use("look"))
    with pytest.raises(Denied):
        world.loop(Limits(), quota=QuotaManager(**limits, clock=world.clock)).run(planner, "goal", tenant="t")
    assert (planner.seen, world.done) == ([], [])
    unlimited = QuotaManager(**dict.fromkeys(limits), clock=world.clock)
    for _ in range(30):
        world.loop(Limits(), quota=unlimited).run(Scripted(Action.use("look")), "goal", tenant="t")
    assert world.names == ["look"] * 30


def test_a_question_that_may_wait_no_time_is_not_approved():
    """grant_seconds=0 leaves no moment for a yes (field case 25)."""
    world = World()
    result = world.loop(grant_seconds=0, approver=lambda _: True).run(Scripted(Action.use("pay")), "goal")
    assert result.outcome is Outcome.COMPLETED
    assert world.done == []


# Unknown options -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("made", sorted(public_classes(), key=lambda made: made.__name__))
def test_no_constructor_ignores_an_option_that_it_does_not_know(made):
    """A misspelt limit would be no limit (field case 26)."""
    with pytest.raises(TypeError, match="max_stepz"):
        made(max_stepz=5)


@pytest.mark.parametrize(
    "make",
    [
        lambda **options: ExecutionContext(Limits(), **options),
        lambda **options: ExecutionContext(Limits(), clock=VirtualClock()).create_child(**options),
        lambda **options: ExecutionContext(Limits(), clock=VirtualClock()).reserve(**options),
        lambda **options: AgentLoop(ToolRegistry(), Limits(), **options),
        lambda **options: World().loop().run(Scripted(), "goal", **options),
        lambda **options: World().loop().start("goal", **options),
        lambda **options: asyncio.run(World().loop().arun(Scripted(), "goal", **options)),
        lambda **options: QuotaManager().start("tenant", **options),
        lambda **options: AuditLog.create("folder", "run", **options),
        lambda **options: load("path", **options),
        lambda **options: runtime.check_run([], **options),
        lambda **options: runtime.replay([], **options),
        tool,
    ],
    ids=range(13),
)
def test_no_way_in_ignores_an_option_that_it_does_not_know(make):
    """Given beside arguments that are good (field case 26)."""
    with pytest.raises(TypeError, match="max_stepz"):
        make(max_stepz=5)


def test_parsed_configuration_with_an_unknown_name_is_refused():
    """Also beside names that are good (field case 26)."""
    for given in (
        {"max_stepz": 5},
        {"max_steps": 5, "max_Steps": 5},
        {"max_steps": 5, "": None},
        {"max_steps": 5, 1: 1},
    ):
        with pytest.raises(ConfigurationError, match="one of the limits"):
            Limits.from_mapping(given)


@pytest.mark.parametrize("entry", ["call", "acall", "stream"])
def test_an_option_that_a_call_does_not_know_is_its_callables_argument_and_never_dropped(entry):
    """So a misspelt one is an error of a callable that does not take it (field case 26)."""
    ctx = ExecutionContext(Limits(), clock=VirtualClock())
    seen = []

    def take(**options):
        seen.append(options)
        return []

    async def take_later(**options):
        return take(**options)

    def make(takes):
        if entry == "acall":
            return asyncio.run(ctx.acall(take_later if takes else Witness().later, resreve="0.10"))
        if entry == "stream":
            return list(ctx.stream(take if takes else Witness(), resreve="0.10"))
        return ctx.call(take if takes else Witness(), resreve="0.10")

    make(True)
    assert seen == [{"resreve": "0.10"}]
    with pytest.raises(TypeError, match="resreve"):
        make(False)


# Odd amounts ---------------------------------------------------------------------------------------------------------

ODD = [-5, NAN, INF, True, "0.1", 1e308]
READABLE = {"0.1": 10**8, 1e308: int(1e308) * 10**9}
HELD = 10**9

REPORTS = {
    "call": lambda ctx, value: ctx.call(int, reserve=1, cost=lambda _: value),
    "call on a thread": lambda ctx, value: ctx.call(int, reserve=1, cost=lambda _: value, isolate="thread"),
    "acall": lambda ctx, value: asyncio.run(ctx.acall(Witness().later, reserve=1, cost=lambda _: value)),
    "stream": lambda ctx, value: list(ctx.stream(Witness(), reserve=1, cost=lambda _: value)),
    "reserve": lambda ctx, value: ctx.reserve(1).settle(value),
}
STATEMENTS = {
    "cost": lambda ctx, value: ctx.call(int, cost=value),
    "reserve": lambda ctx, value: ctx.call(int, reserve=value),
    "acall": lambda ctx, value: asyncio.run(ctx.acall(Witness().later, cost=value)),
    "stream": lambda ctx, value: list(ctx.stream(Witness(), cost=value)),
    "reservation": lambda ctx, value: ctx.reserve(value).settle(None),
    "charge": lambda ctx, value: ctx.charge(value, "planner"),
}


def watched(act, spent):
    """Do it twice and give what was spent before, between and after; it must never fall."""
    seen = [spent()]
    for _ in range(2):
        act()
        seen.append(spent())
    assert all(before <= after for before, after in pairwise(seen))
    return seen


@pytest.mark.parametrize("value", ODD, ids=repr)
@pytest.mark.parametrize("entry", REPORTS)
def test_a_reported_cost_is_charged_as_it_is_or_as_all_that_was_held(entry, value, tmp_path):
    """Twice, in the chain and in the budget beside it; the log tells which of the two it was (field case 21)."""
    due = READABLE.get(value, HELD)
    plain = ExecutionContext(Limits(), clock=VirtualClock())
    assert watched(lambda: REPORTS[entry](plain, value), lambda: plain.snapshot().committed_nano) == [0, due, 2 * due]
    budget = BudgetEnforcer(None)
    with AuditLog.create(tmp_path, "r") as log:
        ctx = ExecutionContext(Limits(), clock=VirtualClock(), audit=log, policies=PolicyPipeline([budget]))
        assert watched(lambda: REPORTS[entry](ctx, value), lambda: ctx.snapshot().committed_nano) == [0, due, 2 * due]
    assert (budget.spent, budget.reserved, ctx.snapshot().reserved_nano) == (Money(2 * due), Money(0), 0)
    settled = [event.data for event in load(log.path).events if event.kind == "settle"]
    assert [event["cost_nano"] for event in settled] == [due, due]
    assert [event["cost_known"] for event in settled] == [value in READABLE] * 2


@pytest.mark.parametrize("value", ODD, ids=repr)
@pytest.mark.parametrize("entry", STATEMENTS)
def test_a_stated_amount_is_charged_as_it_is_or_refused_before_anything_moves(entry, value):
    """By the call, its reservation, or a charge for what is spent already (field case 21)."""
    ctx = ExecutionContext(Limits(), clock=VirtualClock())
    due = READABLE.get(value, 0)

    def act():
        if value in READABLE:
            STATEMENTS[entry](ctx, value)
        else:
            with pytest.raises(ConfigurationError):
                STATEMENTS[entry](ctx, value)

    assert watched(act, lambda: ctx.snapshot().committed_nano) == [0, due, 2 * due]
    assert ctx.snapshot().reserved_nano == 0
    assert ctx.snapshot().steps == (2 if due and entry != "charge" else 0)


@pytest.mark.parametrize("value", ODD, ids=repr)
def test_a_budget_and_a_quota_count_an_amount_as_it_is_or_refuse_it(value):
    """Twice; a quota keeps what is held for a run whose cost it could not read (field case 21)."""
    budget, quota = BudgetEnforcer(None), QuotaManager(clock=VirtualClock())
    due = READABLE.get(value, 0)

    def spend():
        if due:
            assert budget.spend(value)
        else:
            with pytest.raises(ConfigurationError):
                budget.spend(value)

    def settle():
        ticket = quota.start("t", 1)
        if due:
            assert ticket.settle(value)
        else:
            with pytest.raises(ConfigurationError):
                ticket.settle(value)
            assert ticket.settle()

    assert watched(spend, lambda: budget.spent.nano) == [0, due, 2 * due]
    assert watched(settle, lambda: quota.usage("t").spent.nano) == [0, due or HELD, 2 * (due or HELD)]


@pytest.mark.parametrize(
    ("stop", "text"),
    [
        (CostStop(50_000_000, 51_200_000), "cost: limit $0.05, used $0.0512"),
        (CostStop(10**9, 0, "too dear"), "cost: limit $1.00, used $0.00; too dear"),
        (TimeStop(3 * 10**9, 3_000_000_001), "time: limit 3 s, used 3.000000001 s"),
        (StepStop(3, 4), "steps: limit 3, used 4"),
        (HaltedStop(detail="operator"), "halt; operator"),
        (CostStop(10**9), "cost: limit $1.00"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_stop_says_its_numbers_in_the_units_of_its_limit(stop, text):
    """Dollars and seconds, as they were configured; the attributes stay whole numbers."""
    assert str(stop) == text
    assert str(stop.again()) == text
