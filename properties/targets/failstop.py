"""Our own runtime, call by call: every dispatch goes through an ExecutionContext, every gated one through a Grant."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, cast

from failstop.properties.target import Refused, Reply
from failstop.properties.targets.failstop_guarded import GuardingBreaker, GuardingPipeline
from failstop.properties.targets.failstop_parts import CallGrant, FileLog, LoneBudget, LoneSteps, TenantQuota
from failstop.runtime.agent.approval import REFUSALS, ApprovalRequest, Grant
from failstop.runtime.agent.outcome import Outcome
from failstop.runtime.agent.run_log import RunLog
from failstop.runtime.audit.canonical import digest
from failstop.runtime.audit.log import AuditLog, load
from failstop.runtime.chain.context import ExecutionContext
from failstop.runtime.cores.grant import GRANTED
from failstop.runtime.money import Money
from failstop.runtime.risk import RiskTier
from failstop.runtime.stops import Denied, Stop

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from failstop.properties.target import Session, Work
    from failstop.properties.world import World
    from failstop.runtime.clock import Clock
    from failstop.runtime.limits import Limits
    from failstop.runtime.money import Amount

AUTONOMOUS = RiskTier.EXTERNAL
"""What a planner may do without a person."""

_OUTCOMES = MappingProxyType(
    {"completed": Outcome.COMPLETED, "failed": Outcome.FAILED, "approval": Outcome.NEEDS_APPROVAL}
)

GOAL = "withstand a misbehaving planner"

PROMISES: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("cost", "cost_parallel", "cost_overrun", "cost_invalid"), "G1: runtime/cores/ledger.py"),
        **dict.fromkeys(("steps", "steps_parallel", "steps_failed", "tool_calls"), "G2: runtime/cores/ledger.py"),
        "retries": "G3: runtime/policies/retry.py",
        **dict.fromkeys(("deadline", "deadline_hang"), "G5: runtime/chain/context.py, ExecutionContext"),
        "repeats": "runtime/cores/repeats.py",
        **dict.fromkeys(("halt", "closed"), "runtime/stops.py: a halted chain dispatches nothing more"),
        "children": "runtime/chain/context.py: create_child draws from this one's ledger",
        **dict.fromkeys(("approval", "approval_args", "approval_once"), "runtime/cores/grant.py"),
        "planner_errors": "runtime/chain/context.py: leaving the context closes it",
        "asyncio": "runtime/chain/context.py: acall",
        "happy": "runtime/limits.py: a ceiling of n admits n",
    }
)


class FailstopTarget:
    """ExecutionContext, in virtual time."""

    name = "failstop"
    promises = PROMISES
    real_time = False
    exact = True

    def versions(self) -> dict[str, str]:
        """See Target; the version of failstop itself is on every record."""
        return {}

    def open(self, limits: Limits, world: World) -> Session:
        """See Target."""
        log = opened_log(world, limits)
        name = "run" if world.log is None else world.log.stem
        context = ExecutionContext(limits, clock=world.clock, audit=log, name=name)
        world.at_end(lambda: _end(context, log, world.ended_in))
        if world.log is not None:
            path = world.log
            world.at_end(lambda: wait_until_settled(path))
        return ContextSession(context, world, itertools.count(1))

    def quota(self, max_runs_per_hour: int | None, max_nano_per_day: int | None, clock: Clock) -> TenantQuota:
        """See OffersQuota."""
        return TenantQuota(max_runs_per_hour, max_nano_per_day, clock)

    def grant(self, digest: str, expires_ns: int | None, clock: Clock) -> CallGrant:
        """See OffersGrant."""
        return CallGrant(digest, expires_ns, clock)

    def audit(self, folder: Path) -> FileLog:
        """See OffersAudit."""
        return FileLog(folder)

    def budget(self, limit_nano: int | None) -> LoneBudget:
        """See OffersBudget."""
        return LoneBudget(limit_nano)

    def steps(self, max_steps: int | None) -> LoneSteps:
        """See OffersSteps."""
        return LoneSteps(max_steps)

    def breaker(self, failure_threshold: int, recovery_s: float, probe_lease_s: float, clock: Clock) -> GuardingBreaker:
        """See OffersBreaker."""
        return GuardingBreaker(failure_threshold, recovery_s, probe_lease_s, clock)

    def pipeline(
        self, max_steps: int, failure_threshold: int, recovery_s: float, probe_lease_s: float, clock: Clock
    ) -> GuardingPipeline:
        """See OffersPipeline."""
        return GuardingPipeline(max_steps, failure_threshold, recovery_s, probe_lease_s, clock)


class ContextSession:
    """One context; its children share the numbers by which requests are told apart."""

    def __init__(self, context: ExecutionContext, world: World, numbers: Iterator[int]) -> None:
        self._context = context
        self._world = world
        self._numbers = numbers
        # A plain call cannot be left behind, so where there is a deadline every call gets a thread of its own.
        leaves_behind = world.hangs and context.limits.max_seconds is not None
        self._isolate: Literal["thread"] | None = "thread" if leaves_behind else None

    def turn(self, fingerprint: str) -> None:
        """See Session."""
        with refusals():
            self._context.turn(fingerprint)

    def call(self, work: Work) -> object:
        """See Session."""
        if work.tier > AUTONOMOUS:
            raise Refused("approval", f"{work.tool} is {work.tier.name}", self._question(work))
        return self._dispatch(work)

    async def acall(self, work: Work) -> object:
        """See Session."""
        with refusals():
            return _value(await self._context.acall(cast("Any", work.arun), **_options(work)))

    def child(self) -> Session:
        """See Session."""
        with refusals():
            return ContextSession(self._context.create_child(), self._world, self._numbers)

    def narrower(self, limits: Limits) -> Session:
        """See NarrowingSession."""
        with refusals():
            return ContextSession(self._context.create_child(limits), self._world, self._numbers)

    def approve(self, request: object) -> object:
        """See Session."""
        grant, work = cast("tuple[Grant, Work]", request)
        grant.answer(True)
        verdict = grant.use(_digest(work))
        if verdict != GRANTED:
            raise Refused("approval", REFUSALS[verdict], request)
        return self._dispatch(work)

    def close(self) -> None:
        """See Session."""
        self._context.close()

    def halt(self) -> None:
        """See HaltingSession."""
        self._context.halt("somebody stopped it")

    def counters(self) -> tuple[object, ...]:
        """See CountingSession."""
        seen = self._context.snapshot()
        counts = (seen.committed_nano, seen.reserved_nano, seen.steps, seen.tool_calls, seen.retries)
        return (*counts, seen.stop)

    def _dispatch(self, work: Work) -> object:
        with refusals():
            return _value(self._context.call(work.run, isolate=self._isolate, **_options(work)))

    def _question(self, work: Work) -> tuple[Grant, Work]:
        request = ApprovalRequest(
            id=str(next(self._numbers)),
            run=self._context.name,
            tool=work.tool,
            tier=work.tier,
            args=dict(work.args),
            digest=_digest(work),
            reason=f"{work.tier.name} is above what the run may do alone",
        )
        return Grant(request, self._world.clock.now_ns), work


@contextmanager
def refusals() -> Iterator[None]:
    """Turn what the runtime raises instead of dispatching into the harness's words."""
    try:
        yield
    except Stop as stop:
        raise Refused(stop.ceiling, str(stop)) from stop
    except Denied as denied:
        raise Refused("denied", str(denied)) from denied


def opened_log(world: World, limits: Limits) -> RunLog:
    """Begin the run's log afresh at `world.log`, if there is one."""
    if world.log is None:
        return RunLog(None)
    world.log.unlink(missing_ok=True)
    log = RunLog(AuditLog.create(world.log.parent, world.log.stem))
    terms = {"limits": limits.to_mapping(), "autonomous": AUTONOMOUS.name, "tools": {}}
    log.record("start", {"run": world.log.stem, "goal": GOAL, **terms})
    return log


def wait_until_settled(path: Path) -> None:
    """Wait, a second at most, until calls that were left behind are on record; their stubs have been let go of."""
    for _ in range(1000):
        kinds = Counter(event.kind for event in load(path).events)
        if kinds["admit"] == kinds["settle"] + kinds["release"]:
            return
        time.sleep(0.001)


def _end(context: ExecutionContext, log: RunLog, ended_in: str) -> None:
    """Write the end of a run whose planner the harness played: the context alone cannot know how that fared."""
    context.close()
    snapshot = context.snapshot()
    outcome = _OUTCOMES.get(ended_in, Outcome.BUDGET_STOP)
    totals = {"steps": snapshot.steps, "spent_nano": snapshot.committed_nano}
    log.end({"outcome": outcome.value, "value": None, **totals, "error": None})


def is_free(reserve: Amount | None) -> bool:
    """True for a call that is declared to cost nothing, which is not the same as declaring nothing."""
    return reserve is not None and Money.of(reserve) == Money(0)


def _options(work: Work) -> dict[str, Any]:
    return {
        "reserve": work.reserve,
        "cost": 0 if is_free(work.reserve) else _cost,
        "kind": work.kind,
        "retries": work.retries,
        "name": work.tool,
    }


def _cost(reply: object) -> object:
    return cast("Reply", reply).cost


def _value(reply: object) -> object:
    return cast("Reply", reply).value


def _digest(work: Work) -> str:
    return digest({"tool": work.tool, "args": work.args})
