"""The other policies: budget, steps, quota, and the pipeline that asks them (G1, G2, quota, T6)."""

# ruff: noqa: SLF001, ARG001 - a wrong variant of a method works on what the method works on, or forgets to

from __future__ import annotations

from typing import TYPE_CHECKING

from failstop.properties.mutants.mutant import Function, Method, Mutant
from failstop.runtime.cores import budget, quota, steps
from failstop.runtime.money import nano_up
from failstop.runtime.policies import pipeline
from failstop.runtime.policies.budget import BudgetEnforcer
from failstop.runtime.policies.guard import AgentStepGuard
from failstop.runtime.policies.pipeline import PolicyDecision, PolicyPipeline
from failstop.runtime.policies.quota import DAY_NS, HOUR_NS, QuotaManager, QuotaTicket, _check_tenant, _denial

if TYPE_CHECKING:
    from failstop.runtime.money import Amount
    from failstop.runtime.policies.pipeline import PolicyContext
    from failstop.runtime.policies.quota import Tenant

_release_all = pipeline._release_all
_windows = QuotaManager._windows


# The budget -------------------------------------------------------------------------------------------------------


def _looked_at_then_spent(self: BudgetEnforcer, amount: Amount) -> bool:
    nano = nano_up(amount, "amount")
    with self._lock:
        after = budget.spend(self._state, self._limit, nano)
    with self._lock:
        self._state = after
    return not after[3]


def _float_dollars(state: budget.State, limit: int, amount: int) -> budget.State:
    spent, reserved, calls, _ = state
    dollars = (spent + reserved) / 10**9 + amount / 10**9
    if limit >= 0 and dollars > limit / 10**9:
        return (spent, reserved, calls, True)
    return budget_spend(state, limit, amount)


def _refused_but_not_shut(state: budget.State, limit: int, amount: int) -> budget.State:
    # The verdict is told, and the next smaller one is taken.
    spent, reserved, calls, _ = state
    return budget_spend((spent, reserved, calls, False), limit, amount)


def _hold_settled_as_it_was(state: budget.State, limit: int, held: int, cost: int) -> budget.State:
    return budget_settle(state, limit, held, held)


budget_spend = budget.spend
budget_settle = budget.settle


# Steps ------------------------------------------------------------------------------------------------------------


def _counted_then_compared(taken: int, limit: int) -> tuple[int, bool]:
    taken = taken + 1
    return taken, limit < 0 or taken < limit


def _taken_without_the_lock(self: AgentStepGuard, result: object = None) -> bool:
    taken = self._taken
    taken, admitted = steps.step(taken, self._limit)
    self._taken = taken
    return admitted


def _checked_without_the_lock(self: AgentStepGuard, context: PolicyContext) -> PolicyDecision:
    if _taken_without_the_lock(self):
        return PolicyDecision(True, "steps", "", None, self._era)
    return PolicyDecision(False, "steps", f"all {self._limit} steps are taken")


# The quota --------------------------------------------------------------------------------------------------------


def _decided_then_counted(self: QuotaManager, tenant: Tenant, reserve: Amount | None = None) -> QuotaTicket:
    _check_tenant(tenant)
    asked = quota.NO_BOUND if reserve is None else nano_up(reserve, "reserve")
    with self._lock:
        state, verdict, held = quota.start(self._rolled(tenant), self._limits, asked)
    if verdict != quota.STARTED:
        raise _denial(state, self._limits, asked, verdict, self._latest_ns)
    with self._lock:
        self._tenants[tenant] = state
    hour, _, day, _, _ = state
    return QuotaTicket(self, tenant, hour, day, held)


def _counted_on_the_day_of_its_end(state: quota.State, day: int, held: int, cost: int) -> quota.State:
    _, _, last_day, _, _ = state
    if day == last_day:
        return quota_settle(state, day, held, cost)
    return quota_settle(state, last_day, 0, cost)


def _given_back_whenever(state: quota.State, hour: int, day: int, held: int) -> quota.State:
    last_hour, _, _, _, _ = state
    return quota_release(state, last_hour, day, held)


quota_settle = quota.settle
quota_release = quota.release


def _settled_as_often_as_asked(self: QuotaManager, ticket: QuotaTicket, cost_nano: int | None) -> bool:
    with self._lock:
        ticket.open = False
        cost = ticket.held_nano if cost_nano is None else cost_nano
        self._tenants[ticket.tenant] = quota.settle(self._rolled(ticket.tenant), ticket.day, ticket.held_nano, cost)
        return True


def _by_the_wall(self: QuotaManager) -> tuple[int, int]:
    self._latest_ns = self._clock.wall_ns()
    return self._latest_ns // HOUR_NS, self._latest_ns // DAY_NS


# The pipeline -----------------------------------------------------------------------------------------------------


def _nothing_goes_back(self: PolicyPipeline, context: PolicyContext) -> PolicyDecision:
    taken: list[pipeline._Taken] = []
    for policy in self._policies:
        decision = policy.check(context)
        if decision.allowed is not True:
            return decision
        taken.append((policy, context, decision))
    return PolicyDecision(True, "pipeline", "", None, taken)


def _goes_back_twice(taken: list[pipeline._Taken]) -> BaseException | None:
    for policy, context, decision in reversed(taken):
        policy.release(context, PolicyDecision(True, decision.policy_type, permit=decision.permit))
    return _release_all(taken)


def _last_denial_wins(self: PolicyPipeline, context: PolicyContext) -> PolicyDecision:
    taken: list[pipeline._Taken] = []
    denial = None
    for policy in self._policies:
        decision = policy.check(context)
        if decision.allowed is True:
            taken.append((policy, context, decision))
        else:
            denial = decision
    if denial is None:
        return PolicyDecision(True, "pipeline", "", None, taken)
    pipeline._release_all(taken)
    return denial


def _told_to_the_first_only(
    self: PolicyPipeline, decision: PolicyDecision, error: BaseException | None, cost_nano: int
) -> None:
    if isinstance(decision.permit, list) and decision.permit:
        policy, context, its_decision = decision.permit[0]
        decision.permit.clear()
        policy.report(context, its_decision, error, cost_nano)


MUTANTS = (
    Mutant(
        "budget-checked-then-spent",
        "G1",
        "A spend is compared with the limit under the lock, and committed in a second section.",
        (Method(BudgetEnforcer, "spend", _looked_at_then_spent),),
        concurrent=True,
        first=("last-cent-spent",),
    ),
    Mutant(
        "budget-in-floats",
        "G1",
        "The budget adds up and compares dollars as floats.",
        (Function(budget.spend, _float_dollars),),
        first=("exact-to-the-limit",),
    ),
    Mutant(
        "budget-refuses-and-goes-on",
        "G1",
        "The budget refuses one spend and takes the next smaller one.",
        (Function(budget.spend, _refused_but_not_shut),),
        first=("hold-against-spend",),
    ),
    Mutant(
        "budget-charges-the-hold",
        "G1",
        "The budget charges what a call held, whatever it cost.",
        (Function(budget.settle, _hold_settled_as_it_was),),
        first=("last-cent-held",),
    ),
    Mutant(
        "steps-counted-then-compared",
        "G2",
        "A step is counted, and then refused at equality, so that one fewer than allowed is admitted.",
        (Function(steps.step, _counted_then_compared),),
        first=("last-step-of-a-guard",),
    ),
    Mutant(
        "steps-without-a-lock",
        "G2",
        "The step guard is read, compared and written without a lock.",
        (
            Method(AgentStepGuard, "step", _taken_without_the_lock),
            Method(AgentStepGuard, "check", _checked_without_the_lock),
        ),
        concurrent=True,
        traced=(__name__,),
        first=("last-step-of-a-guard",),
    ),
    Mutant(
        "quota-checked-then-counted",
        "quota",
        "A run is decided on under the lock, and counted in a second section.",
        (Method(QuotaManager, "start", _decided_then_counted),),
        concurrent=True,
        first=("last-run",),
    ),
    Mutant(
        "quota-of-the-day-of-its-end",
        "quota",
        "A run is charged to the day in which it ends.",
        (Function(quota.settle, _counted_on_the_day_of_its_end),),
        first=("day-against-settle",),
    ),
    Mutant(
        "quota-given-back-to-another-hour",
        "quota",
        "A start of the last hour that is given back makes room in this one.",
        (Function(quota.release, _given_back_whenever),),
        first=("hour-against-give-back",),
    ),
    Mutant(
        "quota-settled-twice",
        "quota",
        "A ticket is settled as often as it is asked to be.",
        (Method(QuotaManager, "_settle", _settled_as_often_as_asked),),
        first=("run-ended-twice",),
    ),
    Mutant(
        "quota-by-the-wall-clock",
        "quota",
        "Hours and days are those of the wall clock, which may be set back.",
        (Method(QuotaManager, "_windows", _by_the_wall),),
        first=("wall-clock-set-back",),
    ),
    Mutant(
        "roll-back-forgotten",
        "T6",
        "What earlier policies took stays taken when a later one denies.",
        (Method(PolicyPipeline, "evaluate", _nothing_goes_back),),
        first=("denied-by-the-second",),
    ),
    Mutant(
        "rolled-back-twice",
        "T6",
        "What earlier policies took is given back twice when a later one denies.",
        (Function(pipeline._release_all, _goes_back_twice),),
        first=("denied-by-the-second",),
    ),
    Mutant(
        "last-denial-wins",
        "T6",
        "All policies are asked, and the last denial is told.",
        (Method(PolicyPipeline, "evaluate", _last_denial_wins),),
        first=("denied-by-both",),
    ),
    Mutant(
        "end-told-to-the-first-policy-only",
        "T6",
        "Only the first policy learns how a call ended.",
        (Method(PolicyPipeline, "report", _told_to_the_first_only),),
        first=("denied-by-the-second",),
    ),
)
