"""The parts of our runtime that stand on their own, in the harness's words: integers in, `Refused` out."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from failstop.properties.target import Refused
from failstop.runtime.agent.approval import ApprovalRequest, Grant
from failstop.runtime.audit.log import AuditError, AuditLog, load
from failstop.runtime.cores import grant as core
from failstop.runtime.cores.budget import NO_ESTIMATE
from failstop.runtime.limits import UNLIMITED
from failstop.runtime.money import Money
from failstop.runtime.policies.budget import BudgetEnforcer
from failstop.runtime.policies.guard import AgentStepGuard
from failstop.runtime.policies.pipeline import UNKNOWN_COST, PolicyContext, PolicyDecision
from failstop.runtime.policies.quota import QuotaManager, QuotaTicket
from failstop.runtime.risk import RiskTier
from failstop.runtime.stops import Denied

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from failstop.runtime.clock import Clock

_TENANT = "tenant"
_VERDICTS = {
    core.GRANTED: "granted",
    core.PENDING: "pending",
    core.APPROVED: "approved",
    core.DENIED: "denied",
    core.USED: "used",
    core.EXPIRED: "expired",
    core.DRIFTED: "drifted",
}


class TenantQuota:
    """A QuotaManager, for one tenant."""

    def __init__(self, max_runs_per_hour: int | None, max_nano_per_day: int | None, clock: Clock) -> None:
        self.manager = QuotaManager(
            max_runs_per_hour=max_runs_per_hour, max_usd_per_day=_money(max_nano_per_day), clock=clock
        )

    def start(self, reserve_nano: int | None) -> TenantRun:
        """See Quota."""
        try:
            return TenantRun(self.manager.start(_TENANT, _money(reserve_nano)))
        except Denied as denied:
            raise Refused("denied", str(denied)) from denied

    def used(self) -> tuple[int, int, int]:
        """See Quota."""
        usage = self.manager.usage(_TENANT)
        return (usage.runs, usage.spent.nano, usage.reserved.nano)


class TenantRun:
    """A QuotaTicket."""

    def __init__(self, ticket: QuotaTicket) -> None:
        self._ticket = ticket

    def settle(self, cost_nano: int | None) -> bool:
        """See Run."""
        return self._ticket.settle(_money(cost_nano))

    def release(self) -> bool:
        """See Run."""
        return self._ticket.release()


class CallGrant:
    """A Grant."""

    def __init__(self, digest: str, expires_ns: int | None, clock: Clock) -> None:
        began_ns = clock.now_ns()
        request = ApprovalRequest(
            id="1",
            run="run",
            tool="send_email",
            tier=RiskTier.IRREVERSIBLE,
            args={},
            digest=digest,
            reason="it is irreversible",
            expires_ns=UNLIMITED if expires_ns is None else expires_ns,
        )
        self.grant = Grant(request, lambda: clock.now_ns() - began_ns)

    def answer(self, approved: bool) -> str:
        """See Approval."""
        return _VERDICTS[self.grant.answer(approved)]

    def use(self, digest: str) -> str:
        """See Approval."""
        return _VERDICTS[self.grant.use(digest)]

    def pending(self) -> bool:
        """See Approval."""
        return self.grant.pending


class FileLog:
    """An AuditLog."""

    def __init__(self, folder: Path) -> None:
        self.log = AuditLog.create(folder, "run")

    def append(self, kind: str, data: Mapping[str, object]) -> int:
        """See Log."""
        try:
            return self.log.record(kind, data)
        except AuditError as error:
            raise Refused("denied", str(error)) from error

    def read(self) -> list[tuple[str, Mapping[str, object]]]:
        """See Log."""
        found = load(self.log.path)
        if not found.whole:
            raise ValueError(found.problem or f"it is torn at byte {found.truncated_at}")
        return [(event.kind, event.data) for event in found.events]

    def close(self) -> None:
        """See Log."""
        self.log.close()


class LoneBudget:
    """A BudgetEnforcer, as a policy that is asked by hand."""

    def __init__(self, limit_nano: int | None) -> None:
        self.enforcer = BudgetEnforcer(_money(limit_nano))

    def spend(self, nano: int) -> bool:
        """See Budget."""
        return self.enforcer.spend(Money(nano))

    def check(self, reserve_nano: int | None) -> PolicyDecision:
        """See Budget."""
        context = PolicyContext(reserve_nano=NO_ESTIMATE if reserve_nano is None else reserve_nano)
        return _allowed(self.enforcer.check(context))

    def release(self, permit: object) -> None:
        """See Budget."""
        self.enforcer.release(PolicyContext(), cast("PolicyDecision", permit))

    def report(self, permit: object, cost_nano: int | None) -> None:
        """See Budget."""
        cost = UNKNOWN_COST if cost_nano is None else cost_nano
        self.enforcer.report(PolicyContext(), cast("PolicyDecision", permit), None, cost)

    def reset(self) -> None:
        """See Budget."""
        self.enforcer.reset()

    def counters(self) -> tuple[int, int, int, bool]:
        """See Budget."""
        seen = self.enforcer
        return (seen.spent.nano, seen.reserved.nano, seen.call_count, seen.exceeded)


class LoneSteps:
    """An AgentStepGuard, as a policy that is asked by hand."""

    def __init__(self, max_steps: int | None) -> None:
        self.guard = AgentStepGuard(max_steps)

    def step(self, result: str | None) -> bool:
        """See Steps."""
        return self.guard.step(result)

    def check(self) -> PolicyDecision:
        """See Steps."""
        return _allowed(self.guard.check(PolicyContext()))

    def release(self, permit: object) -> None:
        """See Steps."""
        self.guard.release(PolicyContext(), cast("PolicyDecision", permit))

    def reset(self) -> None:
        """See Steps."""
        self.guard.reset()

    def counters(self) -> tuple[int, object]:
        """See Steps."""
        return (self.guard.current_step, self.guard.last_result)


def _allowed(decision: PolicyDecision) -> PolicyDecision:
    if not decision.allowed:
        raise Refused("denied", decision.reason)
    return decision


def _money(nano: int | None) -> Money | None:
    return None if nano is None else Money(nano)
