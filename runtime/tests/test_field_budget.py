"""Unknown costs and streams that are left, by every way in: kinds of failure that properties/FIELD_CASES.md numbers."""

from __future__ import annotations

import asyncio
import gc

import pytest

from failstop.runtime.agent.outcome import Outcome
from failstop.runtime.agent.planner import Action
from failstop.runtime.audit.log import AuditLog, load
from failstop.runtime.chain.context import ExecutionContext
from failstop.runtime.clock import VirtualClock
from failstop.runtime.limits import Limits
from failstop.runtime.money import Money
from failstop.runtime.policies.budget import BudgetEnforcer
from failstop.runtime.policies.pipeline import PolicyPipeline
from failstop.runtime.stops import CostStop, Denied
from failstop.runtime.tests.scripted import Scripted, World

TENTH = 100_000_000
UNKNOWN = {"reserve": "0.10", "cost": lambda _: None}


# A cost that is never told -------------------------------------------------------------------------------------------


class Unpriced:
    """Succeeds and counts its dispatches; nobody ever learns what it cost."""

    def __init__(self):
        self.count = 0

    def __call__(self):
        self.count += 1
        return ["chunk"]

    async def later(self):
        """Do the same, awaited."""
        return self()


def by_hand(ctx, work):
    """Dispatch as the callbacks of a framework do."""
    ticket = ctx.reserve("0.10")
    work()
    ticket.settle(None)


ENTRIES = {
    "call": lambda ctx, work: ctx.call(work, **UNKNOWN),
    "call on a thread": lambda ctx, work: ctx.call(work, isolate="thread", **UNKNOWN),
    "acall": lambda ctx, work: asyncio.run(ctx.acall(work.later, **UNKNOWN)),
    "stream": lambda ctx, work: list(ctx.stream(work, **UNKNOWN)),
    "stream on a thread": lambda ctx, work: list(ctx.stream(work, isolate="thread", **UNKNOWN)),
    "reservation": by_hand,
    "child": lambda ctx, work: ctx.create_child().call(work, **UNKNOWN),
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_calls_whose_cost_is_never_known_end_at_the_ceiling(entry):
    """Each is charged the ten cents it held, so a dollar dispatches ten and not an eleventh (field case 19)."""
    ctx, work = ExecutionContext(Limits(max_cost_usd="1.00"), clock=VirtualClock()), Unpriced()
    for _ in range(10):
        ENTRIES[entry](ctx, work)
    with pytest.raises(CostStop):
        ENTRIES[entry](ctx, work)
    assert (work.count, ctx.snapshot().committed_nano) == (10, 10 * TENTH)


@pytest.mark.parametrize("entry", ENTRIES)
def test_calls_whose_cost_is_never_known_use_up_a_budget_beside_the_chain(entry):
    """A chain without a ceiling of its own is denied by the budget policy at the same call (field case 19)."""
    budget, work = BudgetEnforcer("1.00"), Unpriced()
    ctx = ExecutionContext(Limits(), clock=VirtualClock(), policies=PolicyPipeline([budget]))
    for _ in range(10):
        ENTRIES[entry](ctx, work)
    with pytest.raises(Denied):
        ENTRIES[entry](ctx, work)
    assert (work.count, budget.spent) == (10, Money.of("1.00"))


def test_a_tool_whose_cost_is_never_known_ends_the_run_at_its_ceiling():
    """The planner asks for it for ever; the loop is no way around (field case 19)."""
    world = World()
    world.add("unpriced", **UNKNOWN)
    result = world.loop(Limits(max_cost_usd="1.00")).run(
        Scripted(*[Action.use("unpriced", n=n) for n in range(99)]), "goal"
    )
    assert result.outcome is Outcome.BUDGET_STOP
    assert isinstance(result.stop, CostStop)
    assert world.names == ["unpriced"] * 10


# A stream whose usage is due in its last chunk -----------------------------------------------------------------------


def closes(stream):
    """Leave in the orderly way, twice."""
    stream.close()
    stream.close()


def forgets(stream):
    """Leave by dropping the last reference, which the caller of this function does."""
    del stream


def raises(stream):
    """Leave by an error of the consumer, thrown in at the chunk."""
    with pytest.raises(ValueError, match="consumer"):
        stream.throw(ValueError("consumer"))


def is_interrupted(stream):
    """Leave by Ctrl-C at the chunk."""
    with pytest.raises(KeyboardInterrupt):
        stream.throw(KeyboardInterrupt())


LEAVES = [closes, forgets, raises, is_interrupted]


@pytest.mark.parametrize("isolate", [None, "thread"])
@pytest.mark.parametrize("taken", [1, 2, 3, 4])
@pytest.mark.parametrize("leave", LEAVES)
def test_whoever_leaves_a_stream_is_charged_all_that_it_held_and_once(leave, taken, isolate, tmp_path):
    """After any chunk, the last too, in chain, budget and log: the source was not heard to end (field case 20)."""
    budget = BudgetEnforcer("1.00")
    with AuditLog.create(tmp_path, "r") as log:
        ctx = ExecutionContext(
            Limits(max_cost_usd="1.00"), clock=VirtualClock(), audit=log, policies=PolicyPipeline([budget])
        )
        stream = ctx.stream(lambda: iter("abcd"), reserve="0.10", cost=lambda _: "0.01", isolate=isolate)
        assert [next(stream) for _ in range(taken)] == list("abcd"[:taken])
        leave(stream)
        del stream
        gc.collect()
        ctx.call(int, cost=0)
    assert (ctx.snapshot().committed_nano, ctx.snapshot().reserved_nano) == (TENTH, 0)
    assert (budget.spent, budget.reserved) == (Money(TENTH), Money(0))
    settled = [event.data["cost_nano"] for event in load(log.path).events if event.kind == "settle"]
    assert settled == [TENTH, 0]


@pytest.mark.parametrize("isolate", [None, "thread"])
@pytest.mark.parametrize("leave", LEAVES)
def test_whoever_leaves_a_stream_without_an_estimate_is_charged_all_that_is_left(leave, isolate):
    """It held that, because nobody knew a bound, and what was delivered is not free (field case 20)."""
    ctx = ExecutionContext(Limits(max_cost_usd="1.00"), clock=VirtualClock())
    ctx.call(int, cost="0.30")
    stream = ctx.stream(lambda: iter("abcd"), cost=lambda _: "0.01", isolate=isolate)
    for _ in range(3):
        next(stream)
    leave(stream)
    del stream
    gc.collect()
    assert (ctx.snapshot().committed_nano, ctx.snapshot().reserved_nano) == (10 * TENTH, 0)
