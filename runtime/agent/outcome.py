"""How a run ended, or why it waits."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from failstop.runtime.agent.approval import ApprovalRequest
    from failstop.runtime.agent.planner import Turn
    from failstop.runtime.agent.run import AgentRun
    from failstop.runtime.chain.accounts import Snapshot
    from failstop.runtime.stops import Stop


class Outcome(StrEnum):
    """Only COMPLETED is success: BUDGET_STOP is the runtime at work and NEEDS_APPROVAL a question to a person."""

    COMPLETED = "completed"
    BUDGET_STOP = "budget_stop"
    NEEDS_APPROVAL = "needs_approval"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class RunResult:
    """What `run` or `resume` came to. value: what the planner finished with. stop: the ceiling, for BUDGET_STOP.

    error: what was raised, for FAILED. pending: what a person is asked, for NEEDS_APPROVAL. trace: every turn as it
    really was, whatever the planner did to its own copy.
    """

    outcome: Outcome
    run_id: str
    value: Any
    stop: Stop | None
    error: BaseException | None
    trace: tuple[Turn, ...]
    snapshot: Snapshot
    pending: tuple[ApprovalRequest, ...]
    run: AgentRun
