"""The chain ledger: money, steps, tool calls, retries, deadline and halt of one chain, for any number of calls.

What has to be trusted, and is tested elsewhere: that the shell makes each step atomic and settles each call once, that
a call costs at most its reservation when nobody learns what it did cost, and that the provider bills what it reports.
A thread that stops settles nothing: what its call holds stays held, and covers what it is billed.
The clock may read anything, backwards too.
"""

from __future__ import annotations

from typing import NamedTuple

from failstop.models.claim import OURS
from failstop.models.specification import Goal, Invariant, Law, Specification
from failstop.runtime.cores import ledger as core

NEW = 0
ADMITTED = 1
RUNNING = 2
ENDED = 3
RELEASED = 4
REFUSED = 5
GONE = 6

STOPS = (
    *(core.COST, core.OVERRUN, core.STEPS, core.TOOL_CALLS, core.RETRIES),
    *(core.TIME, core.REPEATS, core.HALTED),
)
VERDICTS = (
    *("let through", "cost", "overrun", "steps", "tool calls", "retries"),
    *("time", "repeats", "halted", "closed", "wait"),
)
"""What ends a chain, and the words for what a call is told."""


class Limits(NamedTuple):
    """The ceilings; a negative one is none."""

    max_cost: int
    max_steps: int
    max_tool_calls: int
    max_retries: int
    deadline: int


class Chain(NamedTuple):
    """The core's state, and beside it the world: the time, what was spent outside of any call, and beyond the rest."""

    committed: int
    reserved: int
    steps: int
    tool_calls: int
    retries: int
    halt: int
    now: int
    outside: int
    beyond: int


class Call(NamedTuple):
    """One dispatch; `bill` is what the provider really charges for it."""

    phase: int
    verdict: int
    held: int
    bill: int
    tool: bool
    retry: bool
    admitted_at: int


class Totals(NamedTuple):
    """Sums over all calls."""

    held: int
    billed: int
    unsettled: int
    excess: int
    dispatched: int
    tools: int
    retried: int
    operations: int


def start() -> Chain:
    """A chain begins."""
    return Chain(0, 0, 0, 0, 0, 0, 0, 0, 0)


def admit(limits: Limits, world: Chain, call: Call, asked: int, tool: bool, retry: bool) -> tuple[Chain, Call] | None:
    """A call asks to be dispatched."""
    if call.phase != NEW or asked < core.NO_ESTIMATE:
        return None
    state, verdict = core.admit(ledger(world), limits, asked, tool, retry, world.now)
    after = with_ledger(world, state)
    if verdict == core.ADMITTED:
        held = after.reserved - world.reserved
        return after, Call(ADMITTED, verdict, held, 0, tool, retry, world.now)
    if verdict == core.CONTENDED:
        return after, call._replace(verdict=verdict)
    return after, call._replace(phase=REFUSED, verdict=verdict)


def look(limits: Limits, world: Chain, call: Call) -> tuple[Chain, Call] | None:
    """A call asks whether the chain is over, before any policy is asked."""
    if call.phase != NEW:
        return None
    verdict = core.standing(ledger(world), limits, world.now)
    if verdict == core.ADMITTED:
        return world, call._replace(verdict=verdict)
    return with_ledger(world, core.stop(ledger(world), verdict)), call._replace(phase=REFUSED, verdict=verdict)


def begin(world: Chain, call: Call) -> tuple[Chain, Call] | None:
    """An admitted call starts to run."""
    if call.phase != ADMITTED:
        return None
    return world, call._replace(phase=RUNNING)


def returns(limits: Limits, world: Chain, call: Call, cost: int) -> tuple[Chain, Call] | None:
    """A call returns and says what it cost."""
    if call.phase != RUNNING or cost < 0:
        return None
    state = core.settle(ledger(world), limits, call.held, cost)
    return with_ledger(world, state), call._replace(phase=ENDED, bill=cost)


def fails(limits: Limits, world: Chain, call: Call, bill: int) -> tuple[Chain, Call] | None:
    """A call raises, is cancelled or is lost, and nobody learns its bill."""
    if call.phase != RUNNING or bill < 0 or bill > call.held:
        return None
    state = core.settle(ledger(world), limits, call.held, call.held)
    return with_ledger(world, state), call._replace(phase=ENDED, bill=bill)


def vanish(world: Chain, call: Call, bill: int) -> tuple[Chain, Call] | None:
    """The thread of a running call stops for ever, and the provider bills for it all the same."""
    if call.phase != RUNNING or bill < 0 or bill > call.held:
        return None
    return world, call._replace(phase=GONE, bill=bill)


def give_back(world: Chain, call: Call) -> tuple[Chain, Call] | None:
    """An admitted call provably never starts."""
    if call.phase != ADMITTED:
        return None
    state = core.release(ledger(world), call.held, call.tool, call.retry)
    return with_ledger(world, state), call._replace(phase=RELEASED)


def spend_outside(limits: Limits, world: Chain, cost: int) -> Chain | None:
    """Money is spent outside of any call."""
    if cost < 0:
        return None
    after = with_ledger(world, core.charge(ledger(world), limits, cost))
    left = limits.max_cost - world.committed - world.reserved
    beyond = cost - left if left > 0 else cost
    if limits.max_cost < 0 or beyond < 0:
        beyond = 0
    return after._replace(outside=world.outside + cost, beyond=world.beyond + beyond)


def halt(world: Chain, code: int) -> Chain | None:
    """The chain is halted by hand, by its loop detection, or at its deadline."""
    if code != core.HALTED and code != core.REPEATS and code != core.TIME:
        return None
    return with_ledger(world, core.stop(ledger(world), code))


def tick(world: Chain, now: int) -> Chain:
    """The clock reads something else."""
    return world._replace(now=now)


def held(call: Call) -> int:
    """What a call in flight holds."""
    return call.held if in_flight(call) else 0


def billed(call: Call) -> int:
    """What was really billed for a call that ended or is gone."""
    return call.bill if call.phase == ENDED or call.phase == GONE else 0


def unsettled(call: Call) -> int:
    """What was billed for a call that is gone."""
    return call.bill if call.phase == GONE else 0


def excess(call: Call) -> int:
    """What a call did cost beyond its reservation."""
    return call.bill - call.held if call.phase == ENDED and call.bill > call.held else 0


def dispatched(call: Call) -> int:
    """One for a call that was let through and not given back."""
    return 1 if in_flight(call) or call.phase == ENDED else 0


def tools(call: Call) -> int:
    """One for a tool call that was let through and not given back."""
    return dispatched(call) if call.tool else 0


def retried(call: Call) -> int:
    """One for a retry that was let through and not given back."""
    return dispatched(call) if call.retry else 0


def operations(call: Call) -> int:
    """One for a first try that was let through and not given back."""
    return 0 if call.retry else dispatched(call)


def well_formed(call: Call) -> bool:
    """A call holds nothing below zero, and is billed nothing below zero."""
    return (
        call.held >= 0
        and call.bill >= 0
        and NEW <= call.phase <= GONE
        and (call.phase != GONE or call.bill <= call.held)
    )


def well_formed_chain(world: Chain) -> bool:
    """A chain is halted for a reason that ends it, or not at all, and nothing was ever spent below zero."""
    halted = world.halt == core.ADMITTED or core.COST <= world.halt < core.CLOSED
    return halted and world.committed >= 0 and world.outside >= 0 and world.beyond >= 0


def recorded(world: Chain, total: Totals) -> bool:
    """Every dollar that was really billed is on record, or still reserved where nobody settled the call."""
    recorded_part = total.billed - total.unsettled + world.outside <= world.committed
    return recorded_part and total.unsettled <= world.reserved


def reserved_is_held(world: Chain, total: Totals) -> bool:
    """What is reserved is what the calls in flight hold, no more and no less."""
    return world.reserved == total.held


def within_the_ceiling(limits: Limits, world: Chain) -> bool:
    """While the chain runs, committed and reserved together never pass the cost ceiling."""
    return limits.max_cost < 0 or world.halt != core.ADMITTED or world.committed + world.reserved <= limits.max_cost


def passed_by_the_excess_only(limits: Limits, world: Chain, total: Totals) -> bool:
    """The ceiling is passed by no more than calls cost beyond what they held, and others spent beyond what was left."""
    if limits.max_cost < 0:
        return True
    return world.committed + world.reserved <= limits.max_cost + total.excess + world.beyond


def really_spent(limits: Limits, world: Chain, total: Totals) -> bool:
    """What is really spent, by calls that are gone too, passes the ceiling by no more than the same excess."""
    if limits.max_cost < 0:
        return True
    return total.billed + world.outside <= limits.max_cost + total.excess + world.beyond


def all_bounds_at_once(limits: Limits, world: Chain, total: Totals) -> bool:
    """Cost, steps, tool calls and retries are bounded at once."""
    cost = limits.max_cost < 0 or world.halt != core.ADMITTED or world.committed + world.reserved <= limits.max_cost
    steps = limits.max_steps < 0 or total.dispatched <= limits.max_steps
    its_tools = limits.max_tool_calls < 0 or total.tools <= limits.max_tool_calls
    return cost and steps and its_tools and (limits.max_retries < 0 or total.retried <= limits.max_retries)


def nothing_exceeded_while_it_runs(limits: Limits, world: Chain, total: Totals) -> bool:
    """A chain with a cost ceiling that still runs has no overrun behind it: only calls in flight at the first add."""
    return limits.max_cost < 0 or world.halt != core.ADMITTED or (total.excess == 0 and world.beyond == 0)


def steps_are_dispatches(world: Chain, total: Totals) -> bool:
    """The step counter is the number of calls let through and not given back, failed ones and retries included."""
    return world.steps == total.dispatched


def within_the_steps(limits: Limits, total: Totals) -> bool:
    """No more calls are let through and not given back, so no more ever run, than the step ceiling says."""
    return limits.max_steps < 0 or total.dispatched <= limits.max_steps


def tools_are_counted(world: Chain, total: Totals) -> bool:
    """The tool counter is the number of tool calls let through and not given back."""
    return world.tool_calls == total.tools


def within_the_tool_calls(limits: Limits, total: Totals) -> bool:
    """No more tool calls are let through and not given back than their ceiling says."""
    return limits.max_tool_calls < 0 or total.tools <= limits.max_tool_calls


def retries_are_counted(world: Chain, total: Totals) -> bool:
    """The retry counter is the number of retries let through and not given back, in the whole chain."""
    return world.retries == total.retried


def within_the_retries(limits: Limits, total: Totals) -> bool:
    """No more retries are let through and not given back than their ceiling says."""
    return limits.max_retries < 0 or total.retried <= limits.max_retries


def calls_are_operations_and_retries(limits: Limits, total: Totals) -> bool:
    """Calls are at most operations plus the retry ceiling, whatever the number of operations."""
    if total.dispatched != total.operations + total.retried:
        return False
    return limits.max_retries < 0 or total.dispatched <= total.operations + limits.max_retries


def in_time(limits: Limits, call: Call) -> bool:
    """No call is let through by a clock that reads the deadline or later."""
    return limits.deadline < 0 or dispatched(call) == 0 or call.admitted_at < limits.deadline


def the_first_reason_stays(world: Chain, after: Chain) -> bool:
    """Once halted, a chain stays halted for its first reason."""
    return world.halt == core.ADMITTED or after.halt == world.halt


def halted_lets_nothing_through(world: Chain, after: Chain, call_after: Call) -> bool:
    """A halted chain lets no call through, counts nothing for it, and says why it is halted."""
    if world.halt == core.ADMITTED:
        return True
    return after == world and call_after.phase == REFUSED and call_after.verdict == world.halt


def let_through_whenever_possible(
    limits: Limits, world: Chain, call_after: Call, asked: int, tool: bool, retry: bool
) -> bool:
    """A call is let through if, and only if, no ceiling, deadline or halt forbids it."""
    return (call_after.phase == ADMITTED) == could_run(limits, world, asked, tool, retry)


def could_run(limits: Limits, world: Chain, asked: int, tool: bool, retry: bool) -> bool:
    """What must be true for a call to be let through."""
    if world.halt != core.ADMITTED or is_late(limits, world):
        return False
    if limits.max_steps >= 0 and world.steps >= limits.max_steps:
        return False
    if tool and limits.max_tool_calls >= 0 and world.tool_calls >= limits.max_tool_calls:
        return False
    if retry and limits.max_retries >= 0 and world.retries >= limits.max_retries:
        return False
    if limits.max_cost < 0:
        return True
    if asked < 0:
        return world.reserved == 0 and world.committed < limits.max_cost
    return world.committed + world.reserved + asked <= limits.max_cost


def holds_what_it_asked_for(limits: Limits, world: Chain, call_after: Call, asked: int) -> bool:
    """A call that is let through holds what it asked for; one without an estimate all that is left of the ceiling."""
    if call_after.phase != ADMITTED:
        return True
    if asked >= 0:
        return call_after.held == asked
    return call_after.held == (0 if limits.max_cost < 0 else limits.max_cost - world.committed)


def refused_for_what_is_so(
    limits: Limits, world: Chain, after: Chain, call_after: Call, asked: int, tool: bool, retry: bool
) -> bool:
    """A refusal halts the chain for a reason that is true, and changes nothing else."""
    verdict = call_after.verdict
    if call_after.phase != REFUSED or world.halt != core.ADMITTED:
        return True
    if after != world._replace(halt=verdict):
        return False
    if verdict == core.TIME:
        return is_late(limits, world)
    if verdict == core.STEPS:
        return 0 <= limits.max_steps <= world.steps
    if verdict == core.TOOL_CALLS:
        return tool and 0 <= limits.max_tool_calls <= world.tool_calls
    if verdict == core.RETRIES:
        return retry and 0 <= limits.max_retries <= world.retries
    if verdict == core.COST:
        return limits.max_cost >= 0 and world.committed + (asked if asked >= 0 else 1) > limits.max_cost
    return False


def kept_out_only_by_calls_in_flight(limits: Limits, world: Chain, after: Chain, call_after: Call, asked: int) -> bool:
    """A call that is kept out for now would fit if the calls in flight cost nothing, and halts nothing."""
    if call_after.phase != NEW:
        return True
    fits_alone = world.committed + (asked if asked >= 0 else 1) <= limits.max_cost
    return call_after.verdict == core.CONTENDED and after == world and fits_alone and world.reserved > 0


def a_look_says_what_admission_would(limits: Limits, world: Chain, after: Chain, call_after: Call) -> bool:
    """A look refuses a chain that is over as admission would, which halts it for good; else it changes nothing."""
    over = world.halt if world.halt != core.ADMITTED else core.TIME if is_late(limits, world) else core.ADMITTED
    refused = call_after.phase == REFUSED
    return after == world._replace(halt=over) and call_after.verdict == over and refused == (over != core.ADMITTED)


def charged_what_it_cost(world: Chain, after: Chain, cost: int) -> bool:
    """What is spent is recorded in full."""
    return after.committed == world.committed + cost


def charged_all_that_it_held(world: Chain, after: Chain, call: Call) -> bool:
    """A call of which nobody knows the bill is charged all that it held, and halts nothing."""
    return after.committed == world.committed + call.held and after.halt == world.halt


def an_overrun_halts(limits: Limits, world: Chain, after: Chain, call: Call, cost: int) -> bool:
    """A call that cost more than it held halts a chain with a cost ceiling, and nothing else that returns halts it."""
    over = limits.max_cost >= 0 and cost > call.held and world.halt == core.ADMITTED
    return after.halt == (core.OVERRUN if over else world.halt)


def spending_too_much_outside_halts(limits: Limits, world: Chain, after: Chain) -> bool:
    """What is spent outside of calls halts the chain if, and only if, it does not fit beside what is held."""
    over = 0 <= limits.max_cost < after.committed + after.reserved and world.halt == core.ADMITTED
    return after.reserved == world.reserved and after.halt == (core.OVERRUN if over else world.halt)


def given_back_whole(world: Chain, after: Chain) -> bool:
    """A call that never started leaves nothing recorded, and halts nothing."""
    return after.committed == world.committed and after.halt == world.halt


def halted_by_hand(world: Chain, after: Chain, code: int) -> bool:
    """Whoever halts a chain halts it for their reason, if it is the first, and changes nothing else."""
    return after == world._replace(halt=code if world.halt == core.ADMITTED else world.halt)


def the_cost_ceiling_is_reached(limits: Limits, total: Totals) -> bool:
    """Calls really cost the whole ceiling, to the last nano-dollar."""
    return limits.max_cost > 0 and total.billed == limits.max_cost and total.excess == 0


def the_excess_is_reached(limits: Limits, total: Totals) -> bool:
    """The bound with overruns is tight: ceiling and excess are spent exactly."""
    return limits.max_cost > 0 and total.excess > 0 and total.billed == limits.max_cost + total.excess


def the_steps_are_reached(limits: Limits, total: Totals) -> bool:
    """As many calls run as the step ceiling allows."""
    return limits.max_steps > 1 and total.dispatched == limits.max_steps


def the_tool_calls_are_reached(limits: Limits, total: Totals) -> bool:
    """As many tool calls run as their ceiling allows."""
    return limits.max_tool_calls > 1 and total.tools == limits.max_tool_calls


def the_retries_are_reached(limits: Limits, total: Totals) -> bool:
    """As many calls run as operations and the retry ceiling allow together."""
    return limits.max_retries > 0 and total.operations > 0 and total.retried == limits.max_retries


def it_is_late(limits: Limits, world: Chain, call: Call, other: Call) -> bool:
    """A call is refused because the deadline has passed, after another was let through in time."""
    refused = call.verdict == core.TIME and call.phase == REFUSED and world.halt == core.TIME
    in_time_before = dispatched(other) == 1 and other.admitted_at < limits.deadline
    return refused and in_time_before and is_late(limits, world)


def a_call_waits(limits: Limits, call: Call, other: Call) -> bool:
    """A call has to wait because another holds the money that it needs."""
    return limits.max_cost > 0 and call.phase == NEW and call.verdict == core.CONTENDED and other.phase == RUNNING


def ledger(world: Chain) -> core.State:
    """The core's part of the state."""
    return (world.committed, world.reserved, world.steps, world.tool_calls, world.retries, world.halt)


def with_ledger(world: Chain, state: core.State) -> Chain:
    """The same world with another state of the core."""
    return Chain(state[0], state[1], state[2], state[3], state[4], state[5], world.now, world.outside, world.beyond)


def in_flight(call: Call) -> bool:
    """Whether a call was let through and nobody has settled it."""
    return call.phase == ADMITTED or call.phase == RUNNING or call.phase == GONE


def is_late(limits: Limits, world: Chain) -> bool:
    """Whether the clock reads the deadline or later."""
    return 0 <= limits.deadline <= world.now


LEDGER = Specification(
    name="ledger",
    whose=OURS,
    promise="However many calls share a chain, its ceilings hold; a halted chain lets nothing more through.",
    limits=Limits,
    world=Chain,
    start=start,
    call=Call,
    new=Call(NEW, 0, 0, 0, False, False, 0),
    actions=(admit, look, begin, returns, fails, vanish, give_back, spend_outside, halt, tick),
    totals=Totals,
    at_most=(("unsettled", "held"),),
    terms=(held, billed, unsettled, excess, dispatched, tools, retried, operations),
    ghosts=(
        "outside",
        "beyond",
        "bill",
        "admitted_at",
    ),
    trusted=(
        "each step is atomic, and each call is settled once",
        "a call is billed no more than it holds when nobody learns its bill, or its thread stops for ever",
        "a call that began to run is never given back",
        "what the provider reports is what it bills",
    ),
    invariants=(
        Invariant("G1", well_formed),
        Invariant("G1", well_formed_chain),
        Invariant("G1", recorded),
        Invariant("G1", reserved_is_held),
        Invariant("T3", within_the_ceiling),
        Invariant("T3", passed_by_the_excess_only),
        Invariant("T3", really_spent),
        Invariant("G1", nothing_exceeded_while_it_runs),
        Invariant("G2", steps_are_dispatches),
        Invariant("T4", within_the_steps),
        Invariant("G2", tools_are_counted),
        Invariant("G2", within_the_tool_calls),
        Invariant("G3", retries_are_counted),
        Invariant("G3", within_the_retries),
        Invariant("T5", calls_are_operations_and_retries),
        Invariant("T6", all_bounds_at_once),
        Invariant("G5", in_time),
    ),
    laws=(
        Law("halt", the_first_reason_stays),
        Law("halt", halted_lets_nothing_through, (admit,)),
        Law("halt", halted_by_hand, (halt,)),
        Law("halt", a_look_says_what_admission_would, (look,)),
        Law("happy-path", let_through_whenever_possible, (admit,)),
        Law("happy-path", refused_for_what_is_so, (admit,)),
        Law("G1", holds_what_it_asked_for, (admit,)),
        Law("G1", kept_out_only_by_calls_in_flight, (admit,)),
        Law("G1", charged_what_it_cost, (returns, spend_outside)),
        Law("G1", charged_all_that_it_held, (fails,)),
        Law("G1", an_overrun_halts, (returns,)),
        Law("G1", spending_too_much_outside_halts, (spend_outside,)),
        Law("G1", given_back_whole, (give_back,)),
    ),
    goals=(
        Goal("T3", the_cost_ceiling_is_reached),
        Goal("G1", the_excess_is_reached),
        Goal("T4", the_steps_are_reached),
        Goal("G2", the_tool_calls_are_reached),
        Goal("T5", the_retries_are_reached),
        Goal("G5", it_is_late),
        Goal("G1", a_call_waits),
    ),
    at_once=((core, "admit"),),
    words={
        "phase": ("new", "admitted", "running", "ended", "released", "refused", "gone"),
        "verdict": VERDICTS,
        "halt": ("no", *VERDICTS[1:]),
        "code": VERDICTS,
    },
    outcomes={
        "verdict": (*STOPS, core.CONTENDED),
        "code": (core.HALTED, core.REPEATS, core.TIME),
        "asked": (core.NO_ESTIMATE, 0),
        "cost": (0,),
        "bill": (0,),
    },
)
