"""A parent's ledger and a child's under it: calls of the child pass both, those of anybody else the parent's.

It stands for any two ledgers that are next to each other on a path, so what holds of them holds up to the root. How a
longer path decides is proved in `path`; this proves what the decision leaves behind.
"""

from __future__ import annotations

from typing import NamedTuple

from failstop.models.claim import OURS
from failstop.models.specification import Goal, Invariant, Law, Specification
from failstop.runtime.cores import ledger as core

NEW = 0
IN_FLIGHT = 1
ENDED = 2
RELEASED = 3
REFUSED = 4

STOPS = (core.COST, core.OVERRUN, core.STEPS, core.TOOL_CALLS, core.RETRIES, core.TIME, core.HALTED)
VERDICTS = (
    *("let through", "cost", "overrun", "steps", "tool calls", "retries"),
    *("time", "repeats", "halted", "closed", "wait"),
)
"""What ends a ledger here, and the words for what a call is told."""


class Limits(NamedTuple):
    """The ceilings of the parent and of the child; a negative one is none."""

    max_cost: int
    max_steps: int
    max_tool_calls: int
    max_retries: int
    deadline: int
    child_max_cost: int
    child_max_steps: int
    child_max_tool_calls: int
    child_max_retries: int
    child_deadline: int


class Chain(NamedTuple):
    """Both states of the core; beside them the time, and whether the child was closed.

    outside: what was spent outside of calls; beyond: by how much that passed what was left.
    """

    committed: int
    reserved: int
    steps: int
    tool_calls: int
    retries: int
    halt: int
    child_committed: int
    child_reserved: int
    child_steps: int
    child_tool_calls: int
    child_retries: int
    child_halt: int
    now: int
    child_closed: bool
    outside: int
    beyond: int
    child_outside: int
    child_beyond: int


class Call(NamedTuple):
    """One call of the child, or of anybody else under the parent."""

    phase: int
    verdict: int
    of_child: bool
    held: int
    bill: int
    tool: bool
    retry: bool


class Totals(NamedTuple):
    """Sums over all calls, and over those of the child."""

    held: int
    billed: int
    excess: int
    dispatched: int
    tools: int
    retried: int
    child_held: int
    child_billed: int
    child_excess: int
    child_dispatched: int
    child_tools: int
    child_retried: int


def start() -> Chain:
    """A chain and a child begin."""
    return Chain(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, False, 0, 0, 0, 0)


def ask_for_child(
    limits: Limits, world: Chain, call: Call, asked: int, tool: bool, retry: bool
) -> tuple[Chain, Call] | None:
    """A call of the child asks to be dispatched."""
    if call.phase != NEW or asked < core.NO_ESTIMATE:
        return None
    above, its = core.admit(parent(world), of_parent(limits), asked, tool, retry, world.now)
    below, own = core.admit(child(world), of_child(limits), asked, tool, retry, world.now)
    verdict = core.unless_closed(core.joined(its, own), world.child_closed)
    if verdict == core.ADMITTED and asked < 0:
        rest = core.narrower(core.left(parent(world), of_parent(limits)), core.left(child(world), of_child(limits)))
        above, its = core.admit(parent(world), of_parent(limits), rest, tool, retry, world.now)
        below, own = core.admit(child(world), of_child(limits), rest, tool, retry, world.now)
        verdict = core.joined(its, own)
    if verdict == core.ADMITTED:
        after = with_child(with_parent(world, above), below)
        return after, Call(IN_FLIGHT, verdict, True, after.reserved - world.reserved, 0, tool, retry)
    if verdict == core.CONTENDED:
        return world, call._replace(verdict=verdict, of_child=True)
    if its != core.ADMITTED and its != core.CONTENDED:
        return with_parent(world, above), call._replace(phase=REFUSED, verdict=verdict, of_child=True)
    if own != core.ADMITTED and own != core.CONTENDED:
        return with_child(world, below), call._replace(phase=REFUSED, verdict=verdict, of_child=True)
    return world, call._replace(phase=REFUSED, verdict=verdict, of_child=True)


def ask_for_parent(
    limits: Limits, world: Chain, call: Call, asked: int, tool: bool, retry: bool
) -> tuple[Chain, Call] | None:
    """A call of the parent, or of another child, asks to be dispatched."""
    if call.phase != NEW or asked < core.NO_ESTIMATE:
        return None
    above, verdict = core.admit(parent(world), of_parent(limits), asked, tool, retry, world.now)
    after = with_parent(world, above)
    if verdict == core.ADMITTED:
        return after, Call(IN_FLIGHT, verdict, False, after.reserved - world.reserved, 0, tool, retry)
    if verdict == core.CONTENDED:
        return world, call._replace(verdict=verdict, of_child=False)
    return after, call._replace(phase=REFUSED, verdict=verdict, of_child=False)


def settle(limits: Limits, world: Chain, call: Call, cost: int) -> tuple[Chain, Call] | None:
    """A call ends, and is settled at every ledger that it passed."""
    if call.phase != IN_FLIGHT or cost < 0:
        return None
    after = with_parent(world, core.settle(parent(world), of_parent(limits), call.held, cost))
    if call.of_child:
        after = with_child(after, core.settle(child(world), of_child(limits), call.held, cost))
    return after, call._replace(phase=ENDED, bill=cost)


def spend_outside(limits: Limits, world: Chain, cost: int, by_child: bool) -> Chain | None:
    """Money is spent outside of any call, by the child or by its parent."""
    if cost < 0:
        return None
    after = with_parent(world, core.charge(parent(world), of_parent(limits), cost))
    beyond = passed(limits.max_cost, world.committed + world.reserved, cost)
    after = after._replace(outside=world.outside + cost, beyond=world.beyond + beyond)
    if not by_child:
        return after
    after = with_child(after, core.charge(child(world), of_child(limits), cost))
    beyond = passed(limits.child_max_cost, world.child_committed + world.child_reserved, cost)
    return after._replace(child_outside=world.child_outside + cost, child_beyond=world.child_beyond + beyond)


def give_back(world: Chain, call: Call) -> tuple[Chain, Call] | None:
    """A call that never started is given back at every ledger that it passed."""
    if call.phase != IN_FLIGHT:
        return None
    after = with_parent(world, core.release(parent(world), call.held, call.tool, call.retry))
    if call.of_child:
        after = with_child(after, core.release(child(world), call.held, call.tool, call.retry))
    return after, call._replace(phase=RELEASED)


def halt_child(world: Chain) -> Chain:
    """The child is halted by hand."""
    return with_child(world, core.stop(child(world), core.HALTED))


def halt_parent(world: Chain) -> Chain:
    """The parent is halted by hand."""
    return with_parent(world, core.stop(parent(world), core.HALTED))


def close_child(world: Chain) -> Chain:
    """The child's context is closed."""
    return world._replace(child_closed=True)


def tick(world: Chain, now: int) -> Chain:
    """The clock reads something else."""
    return world._replace(now=now)


def held(call: Call) -> int:
    """What a call in flight holds."""
    return call.held if call.phase == IN_FLIGHT else 0


def billed(call: Call) -> int:
    """What a call did cost."""
    return call.bill if call.phase == ENDED else 0


def excess(call: Call) -> int:
    """What a call did cost beyond its reservation."""
    return call.bill - call.held if call.phase == ENDED and call.bill > call.held else 0


def dispatched(call: Call) -> int:
    """One for a call that was let through and not given back."""
    return 1 if call.phase == IN_FLIGHT or call.phase == ENDED else 0


def tools(call: Call) -> int:
    """One for a tool call that was let through and not given back."""
    return dispatched(call) if call.tool else 0


def retried(call: Call) -> int:
    """One for a retry that was let through and not given back."""
    return dispatched(call) if call.retry else 0


def child_held(call: Call) -> int:
    """What a call of the child in flight holds."""
    return held(call) if call.of_child else 0


def child_billed(call: Call) -> int:
    """What a call of the child did cost."""
    return billed(call) if call.of_child else 0


def child_excess(call: Call) -> int:
    """What a call of the child did cost beyond its reservation."""
    return excess(call) if call.of_child else 0


def child_dispatched(call: Call) -> int:
    """One for a call of the child that was let through and not given back."""
    return dispatched(call) if call.of_child else 0


def child_tools(call: Call) -> int:
    """One for a tool call of the child that was let through and not given back."""
    return tools(call) if call.of_child else 0


def child_retried(call: Call) -> int:
    """One for a retry of the child that was let through and not given back."""
    return retried(call) if call.of_child else 0


def well_formed(call: Call) -> bool:
    """A call holds and costs nothing below zero."""
    return call.held >= 0 and call.bill >= 0


def well_formed_chain(world: Chain) -> bool:
    """A ledger is halted for a reason that ends it, or not at all, and nothing was ever spent below zero."""
    above = world.halt == core.ADMITTED or core.COST <= world.halt < core.CLOSED
    below = world.child_halt == core.ADMITTED or core.COST <= world.child_halt < core.CLOSED
    spent = world.outside >= 0 and world.beyond >= 0 and world.child_outside >= 0 and world.child_beyond >= 0
    return above and below and spent


def the_parent_counts_everybody(world: Chain, total: Totals) -> bool:
    """The parent's ledger has every call under it, the child's too, in full."""
    counted = world.steps == total.dispatched and world.tool_calls == total.tools and world.retries == total.retried
    return counted and world.reserved == total.held and world.committed == total.billed + world.outside


def the_child_counts_its_own(world: Chain, total: Totals) -> bool:
    """The child's ledger has its own calls, in full, and no others."""
    counted = world.child_steps == total.child_dispatched and world.child_tool_calls == total.child_tools
    spent = world.child_committed == total.child_billed + world.child_outside
    money = world.child_reserved == total.child_held and spent
    return counted and money and world.child_retries == total.child_retried


def the_child_within_the_parent(total: Totals) -> bool:
    """A child's part is never more than the whole."""
    return total.child_dispatched <= total.dispatched and total.child_billed <= total.billed


def within_the_parents_cost(limits: Limits, world: Chain, total: Totals) -> bool:
    """All calls together, the child's too, stay within the parent's cost ceiling but for what was spent in excess."""
    return limits.max_cost < 0 or world.committed + world.reserved <= limits.max_cost + total.excess + world.beyond


def within_the_childs_cost(limits: Limits, world: Chain, total: Totals) -> bool:
    """The child's calls stay within its cost ceiling but for what it spent in excess."""
    if limits.child_max_cost < 0:
        return True
    excess = total.child_excess + world.child_beyond
    return world.child_committed + world.child_reserved <= limits.child_max_cost + excess


def no_excess_while_it_runs(limits: Limits, world: Chain, total: Totals) -> bool:
    """A ledger with a cost ceiling that still runs has no overrun behind it."""
    above = limits.max_cost < 0 or world.halt != core.ADMITTED or (total.excess == 0 and world.beyond == 0)
    exceeded = total.child_excess > 0 or world.child_beyond > 0
    below = limits.child_max_cost < 0 or world.child_halt != core.ADMITTED or not exceeded
    return above and below


def within_the_parents_counts(limits: Limits, total: Totals) -> bool:
    """All calls together, the child's too, stay within the parent's steps, tool calls and retries."""
    steps = limits.max_steps < 0 or total.dispatched <= limits.max_steps
    its_tools = limits.max_tool_calls < 0 or total.tools <= limits.max_tool_calls
    return steps and its_tools and (limits.max_retries < 0 or total.retried <= limits.max_retries)


def within_the_childs_counts(limits: Limits, total: Totals) -> bool:
    """The child's calls stay within its steps, tool calls and retries."""
    steps = limits.child_max_steps < 0 or total.child_dispatched <= limits.child_max_steps
    its_tools = limits.child_max_tool_calls < 0 or total.child_tools <= limits.child_max_tool_calls
    return steps and its_tools and (limits.child_max_retries < 0 or total.child_retried <= limits.child_max_retries)


def all_or_nothing(world: Chain, after: Chain, call_after: Call) -> bool:
    """A call of the child takes the same at both ledgers; refused, it takes nothing at either."""
    taken = after.reserved - world.reserved == after.child_reserved - world.child_reserved
    counted = after.steps - world.steps == after.child_steps - world.child_steps
    if call_after.phase == IN_FLIGHT:
        return taken and counted and after.steps == world.steps + 1 and call_after.held >= 0
    return after == world._replace(halt=after.halt, child_halt=after.child_halt)


def a_stop_above_or_below_stops_the_child(world: Chain, call_after: Call) -> bool:
    """Once the parent or the child is halted, or the child is closed, no call of the child is let through."""
    return call_after.phase != IN_FLIGHT or (
        world.halt == core.ADMITTED and world.child_halt == core.ADMITTED and not world.child_closed
    )


def a_refusal_halts_the_ledger_that_gave_it(
    limits: Limits, world: Chain, after: Chain, call_after: Call, asked: int, tool: bool, retry: bool
) -> bool:
    """The parent's refusal comes first and halts the parent, the child's own the child; nothing else halts either."""
    above = refusal(parent(world), of_parent(limits), asked, tool, retry, world.now)
    below = refusal(child(world), of_child(limits), asked, tool, retry, world.now)
    if above != 0:
        told = call_after.phase == REFUSED and call_after.verdict == above
        return told and after == world._replace(halt=above)
    if below != 0:
        told = call_after.phase == REFUSED and call_after.verdict == below
        return told and after == world._replace(child_halt=below)
    if world.child_closed:
        return call_after.phase == REFUSED and call_after.verdict == core.CLOSED and after == world
    return call_after.phase != REFUSED and after.halt == world.halt and after.child_halt == world.child_halt


def an_unknown_price_takes_all_that_is_left(limits: Limits, world: Chain, call_after: Call, asked: int) -> bool:
    """A call of the child without a price holds all that its narrower ledger has left, nothing without a ceiling."""
    if asked >= 0 or call_after.phase != IN_FLIGHT:
        return True
    above = limits.max_cost - world.committed - world.reserved
    below = limits.child_max_cost - world.child_committed - world.child_reserved
    if limits.max_cost < 0:
        return call_after.held == (0 if limits.child_max_cost < 0 else below)
    if limits.child_max_cost < 0:
        return call_after.held == above
    its = call_after.held
    return its <= above and its <= below and (its == above or its == below)


def a_child_never_waits_for_what_will_not_come(world: Chain, call_after: Call) -> bool:
    """A call of the child waits only while calls in flight hold money at one of its ledgers, and none is halted."""
    if call_after.phase != NEW:
        return True
    return (
        (world.reserved > 0 or world.child_reserved > 0)
        and world.halt == core.ADMITTED
        and world.child_halt == core.ADMITTED
    )


def the_child_spends_its_ceiling(limits: Limits, world: Chain, total: Totals) -> bool:
    """The child spends its whole ceiling while the parent goes on."""
    spent = total.child_billed == limits.child_max_cost > 0
    return spent and limits.max_cost > limits.child_max_cost and total.excess == 0 and world.halt == core.ADMITTED


def an_unknown_price_takes_the_lesser_rest(limits: Limits, call: Call) -> bool:
    """A call of the child takes all that its narrower ledger has left."""
    return (
        call.phase == IN_FLIGHT
        and call.of_child
        and call.held == limits.max_cost > 0
        and limits.child_max_cost > call.held
    )


def refusal(state: core.State, bounds: core.Bounds, asked: int, tool: bool, retry: bool, now: int) -> int:
    """What one ledger alone would refuse a call for, for good; 0 if it would not."""
    _, verdict = core.admit(state, bounds, asked, tool, retry, now)
    return 0 if verdict == core.CONTENDED else verdict


def passed(ceiling: int, used: int, cost: int) -> int:
    """By how much a cost passes what a ceiling has left."""
    if ceiling < 0 or used + cost <= ceiling:
        return 0
    return cost if used >= ceiling else used + cost - ceiling


def parent(world: Chain) -> core.State:
    """The parent's state."""
    return (world.committed, world.reserved, world.steps, world.tool_calls, world.retries, world.halt)


def child(world: Chain) -> core.State:
    """The child's state."""
    return (
        world.child_committed,
        world.child_reserved,
        world.child_steps,
        world.child_tool_calls,
        world.child_retries,
        world.child_halt,
    )


def with_parent(world: Chain, state: core.State) -> Chain:
    """The same world with another state of the parent."""
    return world._replace(
        committed=state[0], reserved=state[1], steps=state[2], tool_calls=state[3], retries=state[4], halt=state[5]
    )


def with_child(world: Chain, state: core.State) -> Chain:
    """The same world with another state of the child."""
    return world._replace(
        child_committed=state[0],
        child_reserved=state[1],
        child_steps=state[2],
        child_tool_calls=state[3],
        child_retries=state[4],
        child_halt=state[5],
    )


def of_parent(limits: Limits) -> core.Bounds:
    """The parent's ceilings."""
    return (limits.max_cost, limits.max_steps, limits.max_tool_calls, limits.max_retries, limits.deadline)


def of_child(limits: Limits) -> core.Bounds:
    """The child's ceilings."""
    return (
        limits.child_max_cost,
        limits.child_max_steps,
        limits.child_max_tool_calls,
        limits.child_max_retries,
        limits.child_deadline,
    )


FAMILY = Specification(
    name="family",
    whose=OURS,
    promise="Children share the ceilings of their parent, and keep narrower ones of their own.",
    limits=Limits,
    world=Chain,
    start=start,
    call=Call,
    new=Call(NEW, 0, False, 0, 0, False, False),
    actions=(
        ask_for_child,
        ask_for_parent,
        settle,
        give_back,
        spend_outside,
        halt_child,
        halt_parent,
        close_child,
        tick,
    ),
    totals=Totals,
    terms=(
        *(held, billed, excess, dispatched, tools, retried),
        *(child_held, child_billed, child_excess, child_dispatched, child_tools, child_retried),
    ),
    at_most=(("child_dispatched", "dispatched"), ("child_billed", "billed")),
    ghosts=(
        "outside",
        "beyond",
        "child_outside",
        "child_beyond",
        "bill",
    ),
    trusted=(
        "each step is atomic over both ledgers, and each call is settled once",
        "a call that is given back never ran",
        "what is settled is what was billed",
    ),
    invariants=(
        Invariant("G1", well_formed),
        Invariant("halt", well_formed_chain),
        Invariant("G1", the_parent_counts_everybody),
        Invariant("G1", the_child_counts_its_own),
        Invariant("G2", the_child_within_the_parent),
        Invariant("T3", within_the_parents_cost),
        Invariant("T3", within_the_childs_cost),
        Invariant("T3", no_excess_while_it_runs),
        Invariant("T4", within_the_parents_counts),
        Invariant("T4", within_the_childs_counts),
    ),
    laws=(
        Law("G1", all_or_nothing, (ask_for_child,)),
        Law("halt", a_stop_above_or_below_stops_the_child, (ask_for_child,)),
        Law("halt", a_refusal_halts_the_ledger_that_gave_it, (ask_for_child,)),
        Law("G1", an_unknown_price_takes_all_that_is_left, (ask_for_child,)),
        Law("G1", a_child_never_waits_for_what_will_not_come, (ask_for_child,)),
    ),
    goals=(Goal("T3", the_child_spends_its_ceiling), Goal("G1", an_unknown_price_takes_the_lesser_rest)),
    at_once=((core, "admit"),),
    words={"phase": ("new", "in flight", "ended", "released", "refused"), "verdict": VERDICTS},
    outcomes={"verdict": (*STOPS, core.CLOSED, core.CONTENDED), "asked": (core.NO_ESTIMATE, 0), "cost": (0,)},
    callers=2,
)
