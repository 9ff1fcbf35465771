"""A pipeline of breaker, budget and step guard: the first denial gives back what the earlier ones took, last first.

Each decides under a lock of its own. Others may come between two steps of a call: they may be denied for what that call
holds, though it is denied itself a moment later, but no bound is ever passed. A policy keeps why it denied: a budget
that refused stays shut. That the pipeline asks in order and gives back each thing once is what the shell adds, and is
tested by execution; what a policy does besides (a reset, a plain spend) is proved with it alone.
"""

from __future__ import annotations

from typing import NamedTuple

from failstop.models.claim import OURS
from failstop.models.specification import Goal, Invariant, Law, Specification
from failstop.runtime.cores import breaker, budget, steps

NEW = 0
HAS_PERMIT = 1
HAS_MONEY = 2
ALLOWED = 3
ENDED = 4
NO_MONEY = 5
NO_STEPS = 6
DENIED = 7


class Limits(NamedTuple):
    """The settings of the three policies; a negative limit is none."""

    threshold: int
    recovery: int
    lease: int
    limit: int
    max_steps: int


class Policies(NamedTuple):
    """The states of the three cores; beside them the time, and what calls did cost beyond what they held."""

    mode: int
    generation: int
    failures: int
    until: int
    spent: int
    reserved: int
    calls: int
    shut: bool
    taken: int
    now: int
    over: int


class Call(NamedTuple):
    """One call, with what it took from each policy so far."""

    phase: int
    permit: int
    held: int
    has_step: bool
    bill: int


class Totals(NamedTuple):
    """Sums over all calls."""

    held: int
    billed: int
    stepped: int
    dispatched: int


def start() -> Policies:
    """Nobody took anything yet."""
    return Policies(breaker.CLOSED, 0, 0, 0, 0, 0, 0, False, 0, 0, 0)


def ask_breaker(limits: Limits, world: Policies, call: Call) -> tuple[Policies, Call] | None:
    """A call asks the breaker."""
    if call.phase != NEW:
        return None
    state, _, permit = breaker.admit(of_breaker(world), settings(limits), world.now)
    after = with_breaker(world, state)
    if permit == breaker.NO_PERMIT:
        return after, call._replace(phase=DENIED)
    return after, call._replace(phase=HAS_PERMIT, permit=permit)


def ask_budget(limits: Limits, world: Policies, call: Call, asked: int) -> tuple[Policies, Call] | None:
    """A call that the breaker lets through asks the budget."""
    if call.phase != HAS_PERMIT or asked < budget.NO_ESTIMATE:
        return None
    state, verdict, held = budget.hold(of_budget(world), limits.limit, asked)
    after = with_budget(world, state)
    if verdict == budget.ADMITTED:
        return after, call._replace(phase=HAS_MONEY, held=held)
    return after, call._replace(phase=NO_MONEY)


def ask_steps(limits: Limits, world: Policies, call: Call) -> tuple[Policies, Call] | None:
    """A call that has its money asks for a step."""
    if call.phase != HAS_MONEY:
        return None
    taken, admitted = steps.step(world.taken, limits.max_steps)
    if admitted:
        return world._replace(taken=taken), call._replace(phase=ALLOWED, has_step=True)
    return world._replace(taken=taken), call._replace(phase=NO_STEPS)


def give_back_money(world: Policies, call: Call) -> tuple[Policies, Call] | None:
    """A call without a step gives its money back."""
    if call.phase != NO_STEPS:
        return None
    after = with_budget(world, budget.release(of_budget(world), call.held))
    return after, call._replace(phase=NO_MONEY, held=0)


def give_back_permit(limits: Limits, world: Policies, call: Call) -> tuple[Policies, Call] | None:
    """A call without money gives its permit back, and is denied."""
    if call.phase != NO_MONEY:
        return None
    state = breaker.report(of_breaker(world), settings(limits), call.permit, breaker.NEITHER, world.now)
    return with_breaker(world, state), call._replace(phase=DENIED, permit=breaker.NO_PERMIT)


def end(limits: Limits, world: Policies, call: Call, cost: int, outcome: int) -> tuple[Policies, Call] | None:
    """A call that was allowed ran, and every policy is told how it ended."""
    if call.phase != ALLOWED or cost < 0 or outcome < breaker.SUCCESS or outcome > breaker.NEITHER:
        return None
    told = breaker.report(of_breaker(world), settings(limits), call.permit, outcome, world.now)
    paid = budget.settle(of_budget(world), limits.limit, call.held, cost)
    over = cost - call.held if cost > call.held else 0
    after = with_budget(with_breaker(world, told), paid)
    return after._replace(over=world.over + over), call._replace(phase=ENDED, held=0, bill=cost)


def never_began(limits: Limits, world: Policies, call: Call) -> tuple[Policies, Call] | None:
    """A call that was allowed is not dispatched after all, and gives everything back."""
    if call.phase != ALLOWED:
        return None
    state = breaker.report(of_breaker(world), settings(limits), call.permit, breaker.NEITHER, world.now)
    after = with_budget(with_breaker(world, state), budget.release(of_budget(world), call.held))
    return after._replace(taken=steps.give_back(world.taken)), Call(DENIED, breaker.NO_PERMIT, 0, False, 0)


def tick(world: Policies, later: int) -> Policies | None:
    """Time passes."""
    if later < world.now:
        return None
    return world._replace(now=later)


def held(call: Call) -> int:
    """What a call holds of the budget."""
    return call.held


def billed(call: Call) -> int:
    """What a call did cost."""
    return call.bill


def stepped(call: Call) -> int:
    """One for a call that has a step."""
    return 1 if call.has_step else 0


def dispatched(call: Call) -> int:
    """One for a call that every policy allowed."""
    return 1 if call.phase == ALLOWED or call.phase == ENDED else 0


def makes_sense(limits: Limits) -> bool:
    """The breaker's settings can be used."""
    return limits.threshold >= 1 and limits.recovery >= 0 and limits.lease >= 1


def takes_in_order(call: Call) -> bool:
    """A call holds what it took, from no policy that it has not asked yet or has given back to."""
    has_money = call.phase == HAS_MONEY or call.phase == ALLOWED or call.phase == NO_STEPS
    ran = call.phase == ALLOWED or call.phase == ENDED
    money = call.held >= 0 and (has_money or call.held == 0)
    return money and call.has_step == ran and call.bill >= 0 and (call.phase == ENDED or call.bill == 0)


def a_denial_leaves_no_trace(call: Call) -> bool:
    """A call that was denied holds no permit, no money and no step, like one that has not asked yet."""
    if call.phase != DENIED and call.phase != NEW:
        return True
    return call.permit == breaker.NO_PERMIT and call.held == 0 and not call.has_step


def policies_keep_what_calls_hold(world: Policies, total: Totals) -> bool:
    """What the policies have given out is what calls really hold or used: nothing stays behind."""
    return world.reserved == total.held and world.spent == total.billed and world.taken == total.stepped


def cost_is_bounded(limits: Limits, world: Policies, total: Totals) -> bool:
    """Calls spend and hold no more than the limit, and what they cost beyond what they held."""
    return limits.limit < 0 or total.billed + total.held <= limits.limit + world.over


def no_overrun_while_open(limits: Limits, world: Policies) -> bool:
    """A limited budget that is open has no overrun behind it."""
    return world.over >= 0 and (limits.limit < 0 or world.shut or world.over == 0)


def steps_are_bounded(limits: Limits, total: Totals) -> bool:
    """No more calls are dispatched than there are steps."""
    return limits.max_steps < 0 or total.dispatched <= limits.max_steps


def every_dispatch_took_a_step(total: Totals) -> bool:
    """Every dispatched call has its step, and nobody else has one."""
    return total.dispatched == total.stepped


def well_formed(world: Policies) -> bool:
    """The breaker is closed, open or probing, and its generations are counted from zero."""
    known = world.mode == breaker.CLOSED or world.mode == breaker.OPEN or world.mode == breaker.PROBING
    return known and world.generation >= 0


def a_denied_probe_frees_its_slot(world: Policies, after: Policies, call: Call) -> bool:
    """A probe that another policy denied leaves the breaker's slot to the next caller at once."""
    current = world.mode == breaker.PROBING and call.permit == world.generation
    return not current or (after.mode == breaker.OPEN and after.until <= world.now)


def money_goes_back_alone(world: Policies, after: Policies, call: Call) -> bool:
    """To give money back changes what is held, by what was taken, and nothing else."""
    return after == world._replace(reserved=world.reserved - call.held)


def a_permit_goes_back_alone(world: Policies, after: Policies) -> bool:
    """To give a permit back counts nothing with a closed breaker, and changes nothing of the other policies."""
    others = after == of_breaker_only(world, after)
    return others and (world.mode != breaker.CLOSED or after == world)


def all_goes_back(world: Policies, after: Policies, call: Call) -> bool:
    """A call that was allowed and never began gives back its permit, its money and its step, and nothing else."""
    given = of_breaker_only(world, after)._replace(reserved=world.reserved - call.held, taken=world.taken - 1)
    return after == given and (world.mode != breaker.CLOSED or after.failures == world.failures)


def the_breaker_alone_answers(world: Policies, after: Policies, call_after: Call) -> bool:
    """Asking the breaker changes nothing of the others; if it denies, nothing at all."""
    return after == (world if call_after.phase == DENIED else of_breaker_only(world, after))


def the_budget_alone_answers(world: Policies, after: Policies, call_after: Call) -> bool:
    """Asking the budget changes nothing of the others; if it denies, it may shut, and holds nothing."""
    if call_after.phase == NO_MONEY:
        return after == world._replace(shut=after.shut)
    return after == world._replace(reserved=world.reserved + call_after.held)


def the_guard_alone_answers(world: Policies, after: Policies, call_after: Call) -> bool:
    """Asking for a step changes nothing of the others; if it is denied, nothing at all."""
    return after == (world if call_after.phase == NO_STEPS else world._replace(taken=world.taken + 1))


def a_step_is_denied_only_if_all_are_taken(limits: Limits, world: Policies, call_after: Call) -> bool:
    """A call is denied for its steps if, and only if, all are taken."""
    return (call_after.phase == NO_STEPS) == (limits.max_steps >= 0 and world.taken >= limits.max_steps)


def a_probe_was_denied(world: Policies, call: Call) -> bool:
    """A probe is denied by the budget, and its slot is free again."""
    return call.phase == DENIED and world.mode == breaker.OPEN and world.until <= world.now and world.generation > 2


def all_bounds_are_reached(limits: Limits, total: Totals) -> bool:
    """Money and steps are used up at once."""
    return (
        limits.limit > 0
        and limits.max_steps > 0
        and total.billed == limits.limit
        and total.dispatched == limits.max_steps
    )


def settings(limits: Limits) -> breaker.Settings:
    """The breaker's settings."""
    return (limits.threshold, limits.recovery, limits.lease)


def of_breaker(world: Policies) -> breaker.State:
    """The breaker's part of the state."""
    return (world.mode, world.generation, world.failures, world.until)


def with_breaker(world: Policies, state: breaker.State) -> Policies:
    """The same world with another state of the breaker."""
    return world._replace(mode=state[0], generation=state[1], failures=state[2], until=state[3])


def of_breaker_only(world: Policies, after: Policies) -> Policies:
    """The world before, with the breaker as it is after."""
    return with_breaker(world, of_breaker(after))


def of_budget(world: Policies) -> budget.State:
    """The budget's part of the state."""
    return (world.spent, world.reserved, world.calls, world.shut)


def with_budget(world: Policies, state: budget.State) -> Policies:
    """The same world with another state of the budget."""
    return world._replace(spent=state[0], reserved=state[1], calls=state[2], shut=state[3])


PIPELINE = Specification(
    name="pipeline",
    whose=OURS,
    promise="The bounds of all policies hold at once, and a denied call gives back all that it took.",
    limits=Limits,
    world=Policies,
    start=start,
    call=Call,
    new=Call(NEW, breaker.NO_PERMIT, 0, False, 0),
    actions=(
        *(ask_breaker, ask_budget, ask_steps),
        *(give_back_money, give_back_permit, end, never_began, tick),
    ),
    given=(makes_sense,),
    totals=Totals,
    terms=(held, billed, stepped, dispatched),
    ghosts=(
        "over",
        "bill",
    ),
    trusted=(
        "policies are asked in order, each atomically, and each thing is given back once",
        "the clock never steps back",
    ),
    invariants=(
        Invariant("T6", takes_in_order),
        Invariant("T6", well_formed),
        Invariant("T6", a_denial_leaves_no_trace),
        Invariant("T6", policies_keep_what_calls_hold),
        Invariant("T6", cost_is_bounded),
        Invariant("T6", no_overrun_while_open),
        Invariant("T6", every_dispatch_took_a_step),
        Invariant("T6", steps_are_bounded),
    ),
    laws=(
        Law("T6", a_denied_probe_frees_its_slot, (give_back_permit, never_began)),
        Law("T6", money_goes_back_alone, (give_back_money,)),
        Law("T6", a_permit_goes_back_alone, (give_back_permit,)),
        Law("T6", all_goes_back, (never_began,)),
        Law("T6", the_breaker_alone_answers, (ask_breaker,)),
        Law("T6", the_budget_alone_answers, (ask_budget,)),
        Law("T6", the_guard_alone_answers, (ask_steps,)),
        Law("T6", a_step_is_denied_only_if_all_are_taken, (ask_steps,)),
    ),
    goals=(Goal("T6", all_bounds_are_reached), Goal("T6", a_probe_was_denied)),
    words={
        "phase": ("new", "has a permit", "has money", "allowed", "ended", "no money", "no step", "denied"),
        "mode": ("closed", "open", "probing"),
        "outcome": ("success", "failure", "neither"),
    },
    outcomes={
        "phase": (HAS_PERMIT, HAS_MONEY, ALLOWED, ENDED, NO_MONEY, NO_STEPS, DENIED),
        "mode": (breaker.CLOSED, breaker.OPEN, breaker.PROBING),
        "outcome": (breaker.SUCCESS, breaker.FAILURE, breaker.NEITHER),
        "asked": (budget.NO_ESTIMATE, 0),
        "cost": (0,),
    },
    callers=2,
)
