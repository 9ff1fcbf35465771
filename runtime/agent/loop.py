"""The agent loop: ask the planner, perform its action, show it what came of that, until it finishes or is stopped.

Every ceiling is outside the planner and checked before each step, and what it checks raises. The loop ends in one of
four outcomes; whatever a planner returns, raises, swallows or edits, it is one of them and the trace is whole.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from failstop.runtime.agent.approval import StandingAnswers
from failstop.runtime.agent.doors import check
from failstop.runtime.agent.faces import Ask, Engine, Pause, adrive, drive
from failstop.runtime.agent.gate import Gate
from failstop.runtime.agent.outcome import Outcome, RunResult
from failstop.runtime.agent.planner import Action, Planner, PlannerError
from failstop.runtime.agent.run import AgentRun
from failstop.runtime.agent.run_log import RunLog
from failstop.runtime.agent.trace import Trace
from failstop.runtime.agent.turns import TurnEngine
from failstop.runtime.audit.log import AuditLog
from failstop.runtime.chain.context import ExecutionContext
from failstop.runtime.chain.dispatch import described
from failstop.runtime.clock import Clock, SystemClock
from failstop.runtime.limits import UNLIMITED, Limits, seconds_to_ns
from failstop.runtime.risk import RiskTier
from failstop.runtime.stops import Stop

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    from failstop.runtime.agent.approval import Approver
    from failstop.runtime.agent.tools import ToolRegistry
    from failstop.runtime.policies.pipeline import PolicyPipeline
    from failstop.runtime.policies.quota import QuotaManager, QuotaTicket, Tenant

__all__ = ["AgentLoop", "AgentRun", "Outcome", "RunResult"]


class AgentLoop:
    """Runs planners over one set of tools, each run in a chain of its own; raises ConfigurationError.

    autonomous: the highest tier that runs without a person. grant_seconds: how long an answer is waited for and good
    for; None for ever. audit_folder: where each run gets its log. approver: answers at once instead of pausing.
    standing: a person's answers for whole tools. quota: what all runs of a tenant may spend; a run without a cost
    ceiling gets what its tenant has left of the day as one. policies: makes the policies of one run.

    KeyboardInterrupt and SystemExit raised inside a planner or a tool end the run as FAILED and go no further: they
    cannot be told from a real Ctrl-C, which therefore ends the run too; look at `RunResult.error`. A plain planner that
    hangs holds the run; one that is awaited is cancelled at the deadline, and left behind if it will not end.
    """

    def __init__(
        self,
        tools: ToolRegistry,
        limits: Limits,
        *,
        autonomous: RiskTier = RiskTier.WRITE,
        clock: Clock | None = None,
        audit_folder: str | os.PathLike[str] | None = None,
        approver: Approver | None = None,
        standing: StandingAnswers | None = None,
        grant_seconds: float | None = 3600,
        quota: QuotaManager | None = None,
        policies: Callable[[], PolicyPipeline] | None = None,
    ) -> None:
        check(tools=tools, limits=limits, autonomous=autonomous, clock=clock, audit_folder=audit_folder)
        check(approver=approver, standing=standing, quota=quota, policies=policies)
        self.tools = tools
        self.limits = limits
        self.autonomous = autonomous
        self.standing = StandingAnswers() if standing is None else standing
        self._clock = SystemClock() if clock is None else clock
        self._audit_folder = audit_folder
        self._approver = approver
        self._grant_ns = UNLIMITED if grant_seconds is None else seconds_to_ns(grant_seconds, "grant_seconds")
        self._quota = quota
        self._policies = policies

    def run(
        self,
        planner: Planner,
        goal: str,
        *,
        run_id: str | None = None,
        tenant: Tenant | None = None,
        parent: ExecutionContext | None = None,
    ) -> RunResult:
        """Run a planner to its end or to its first question to a person.

        Raises Denied if the tenant's quota is used up, before anything is written or run, and ConfigurationError.
        """
        check(planner=planner)
        return _driven(self.start(goal, run_id=run_id, tenant=tenant, parent=parent), planner)

    async def arun(
        self,
        planner: Planner,
        goal: str,
        *,
        run_id: str | None = None,
        tenant: Tenant | None = None,
        parent: ExecutionContext | None = None,
    ) -> RunResult:
        """Run a planner on the running event loop; as `run`. A cancellation ends the run, on record, and goes on."""
        check(planner=planner)
        run = self.start(goal, run_id=run_id, tenant=tenant, parent=parent)
        return await _adriven(run, _whole(run, planner))

    def resume(self, run: AgentRun, answers: Mapping[str, object]) -> RunResult:
        """Go on with a paused run, its counters and its action as they were; only True approves.

        Requests without an answer wait on, unless a standing answer has come meanwhile or they have expired. Raises
        ApprovalError for a run that does not wait, or an answer that nothing waits for, and changes nothing then.
        """
        check(run=run, answers=answers)
        answers = dict(answers)
        engine = run.take(answers)
        return _arrived(run, engine, drive(engine, answers))

    async def aresume(self, run: AgentRun, answers: Mapping[str, object]) -> RunResult:
        """Go on with a paused run on the running event loop; as `resume`."""
        check(run=run, answers=answers)
        answers = dict(answers)
        return await _adriven(run, run.take(answers), answers)

    def start(
        self,
        goal: str,
        *,
        run_id: str | None = None,
        tenant: Tenant | None = None,
        parent: ExecutionContext | None = None,
    ) -> AgentRun:
        """Open a run: quota first, then the log, then the chain; give it to `drive`, or perform its actions by hand.

        With a `parent` the run is a sub-agent's: it draws from the parent's ledger, and so from its quota, under its
        policies, and this loop's limits only narrow what it may draw.
        """
        check(goal=goal, run_id=run_id, parent=parent)
        run_id = uuid.uuid4().hex if run_id is None else run_id
        with contextlib.ExitStack() as undo:
            ticket, limits = None, self.limits
            if self._quota is not None and parent is None:
                # A missing tenant is denied there.
                ticket = self._quota.start(cast("Tenant", tenant), limits.max_cost_usd)
                undo.callback(ticket.release)
                if limits.max_cost_usd is None:
                    # What the tenant has left is all that the run may spend; and under a ceiling, unknown is not free.
                    limits = replace(limits, max_cost_usd=ticket.ceiling)
            log = RunLog(None if self._audit_folder is None else AuditLog.create(self._audit_folder, run_id))
            undo.callback(log.abandon)
            run = self._open(run_id, goal, limits, log, ticket, parent)
            undo.pop_all()
            return run

    def drive(self, run: AgentRun, planner: Planner) -> RunResult:
        """Let a planner drive a run that was started."""
        check(run=run, planner=planner)
        return _driven(run, planner)

    async def adrive(self, run: AgentRun, planner: Planner) -> RunResult:
        """Let a planner drive a run that was started, on the running event loop."""
        check(run=run, planner=planner)
        return await _adriven(run, _whole(run, planner))

    def _open(
        self,
        run_id: str,
        goal: str,
        limits: Limits,
        log: RunLog,
        ticket: QuotaTicket | None,
        parent: ExecutionContext | None,
    ) -> AgentRun:
        log.record("start", self._terms(run_id, goal, limits, parent))
        context = self._new_context(run_id, limits, log) if parent is None else parent.create_child(limits, name=run_id)
        trace = Trace(goal)
        began_ns = self._clock.now_ns() - context.snapshot().elapsed_ns
        gate = Gate(
            *(run_id, self.tools, self.autonomous, lambda: self._clock.now_ns() - began_ns),
            *(self._grant_ns, context.in_doubt),
        )
        turns = TurnEngine(context, gate, trace, log.record, self._approver, self.standing)
        return AgentRun(run_id, context, turns, trace, log, ticket)

    def _new_context(self, run_id: str, limits: Limits, log: RunLog) -> ExecutionContext:
        policies = None if self._policies is None else self._policies()
        return ExecutionContext(limits, policies=policies, clock=self._clock, audit=log, name=run_id)

    def _terms(self, run_id: str, goal: str, limits: Limits, parent: ExecutionContext | None) -> dict[str, object]:
        return {
            "run": run_id,
            "goal": goal,
            "parent": None if parent is None else parent.name,
            "limits": limits.to_mapping(),
            "autonomous": self.autonomous.name,
            "tools": {tool.name: tool.tier.name if isinstance(tool.tier, RiskTier) else "rule" for tool in self.tools},
        }


def _whole(run: AgentRun, planner: Planner) -> Engine[RunResult]:
    try:
        value = yield from _turns(run, planner)
    except GeneratorExit:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever ended it, the run has an outcome and its trace is whole
        # A stop of another chain is a failure like any other.
        if isinstance(error, Stop) and (run.context.stop is not None or run.context.closed):
            return run.end(Outcome.BUDGET_STOP, stop=error)
        return run.end(Outcome.FAILED, error=error)
    return run.end(Outcome.COMPLETED, value=value)


def _turns(run: AgentRun, planner: Planner) -> Engine[object]:
    while True:
        run.turns.refuse_if_over()
        action = yield from _next_action(run, planner)
        if action.finished:
            return action.value
        yield from run.turns.perform(action)


def _next_action(run: AgentRun, planner: Planner) -> Engine[Action]:
    """Ask the planner and take what it spent on answering; its own failures are put on record."""
    try:
        action = run.turns.take((yield Ask(planner.next_action, (run.trace.history(),), run.context.token)))
        run.turns.refuse_if_over()
    except GeneratorExit:
        raise
    except BaseException as error:
        run.turns.refuse_if_over()
        run.log.record("planner_error", {"error": described(error)})
        if isinstance(error, Stop):
            raise PlannerError("the planner raised a stop, but this run was not stopped") from error
        raise
    return action


def _driven(run: AgentRun, planner: Planner) -> RunResult:
    engine = _whole(run, planner)
    return _arrived(run, engine, drive(engine))


async def _adriven(run: AgentRun, engine: Engine[RunResult], answers: Mapping[str, object] | None = None) -> RunResult:
    task = cast("asyncio.Task[object]", asyncio.current_task())
    cancelled_before = task.cancelling()
    result = _arrived(run, engine, await adrive(engine, answers))
    if task.cancelling() > cancelled_before:
        # Whatever the run came to meanwhile, who cancelled it waits for a cancellation.
        run.close()
        raise asyncio.CancelledError
    return result


def _arrived(run: AgentRun, engine: Engine[RunResult], came: RunResult | Pause) -> RunResult:
    if isinstance(came, Pause):
        run.pause(engine, came)
        return run.waiting()
    if isinstance(came.error, asyncio.CancelledError):
        raise came.error
    return came
