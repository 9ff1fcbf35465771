"""The minimal contained runtime; standard library only.

`ExecutionContext` is the boundary of one chain of calls, `AgentLoop` runs a planner inside one. Each protocol is a pure
core in `cores/`, and a thin shell here that adds the lock, the clock, the audit line and the errors.
"""

from failstop.runtime.agent.approval import ApprovalError, ApprovalRequest, ApprovalRequired, StandingAnswers
from failstop.runtime.agent.loop import AgentLoop
from failstop.runtime.agent.outcome import Outcome, RunResult
from failstop.runtime.agent.planner import Action, History, Observation, Planner, PlannerError, Seen, ToolCall, Turn
from failstop.runtime.agent.run import AgentRun, RunClosed
from failstop.runtime.agent.tools import Tool, ToolRegistry
from failstop.runtime.audit.breach import Breach
from failstop.runtime.audit.conformance import check_run
from failstop.runtime.audit.event_fields import ReplayError
from failstop.runtime.audit.event_log import Event
from failstop.runtime.audit.log import AuditError, AuditLog, load
from failstop.runtime.audit.replay import replay
from failstop.runtime.cancellation import CancellationToken
from failstop.runtime.chain.accounts import Snapshot
from failstop.runtime.chain.context import ExecutionContext
from failstop.runtime.chain.decision import Decision
from failstop.runtime.chain.dispatch import AlreadyEnded
from failstop.runtime.chain.graph import ExecutionGraph
from failstop.runtime.chain.isolation import ProcessDied
from failstop.runtime.chain.partial import PartialResultBuffer
from failstop.runtime.clock import Clock, SystemClock, VirtualClock
from failstop.runtime.limits import ExecutionConfig, Limits
from failstop.runtime.money import Amount, Money
from failstop.runtime.policies.breaker import CircuitBreaker
from failstop.runtime.policies.budget import BudgetEnforcer
from failstop.runtime.policies.guard import AgentStepGuard
from failstop.runtime.policies.pipeline import PolicyContext, PolicyDecision, PolicyPipeline, RuntimePolicy
from failstop.runtime.policies.quota import QuotaManager
from failstop.runtime.policies.retry import RetryContainer
from failstop.runtime.risk import RiskTier, highest_of_parts, shell_tier
from failstop.runtime.stops import (
    ClosedStop,
    ConfigurationError,
    Contended,
    CostStop,
    Degradation,
    Denied,
    HaltedStop,
    RepeatStop,
    RetryStop,
    StepStop,
    Stop,
    TimeStop,
    ToolCallStop,
)

__all__ = [
    "Action",
    "AgentLoop",
    "AgentRun",
    "AgentStepGuard",
    "AlreadyEnded",
    "Amount",
    "ApprovalError",
    "ApprovalRequest",
    "ApprovalRequired",
    "AuditError",
    "AuditLog",
    "Breach",
    "BudgetEnforcer",
    "CancellationToken",
    "CircuitBreaker",
    "Clock",
    "ClosedStop",
    "ConfigurationError",
    "Contended",
    "CostStop",
    "Decision",
    "Degradation",
    "Denied",
    "Event",
    "ExecutionConfig",
    "ExecutionContext",
    "ExecutionGraph",
    "HaltedStop",
    "History",
    "Limits",
    "Money",
    "Observation",
    "Outcome",
    "PartialResultBuffer",
    "Planner",
    "PlannerError",
    "PolicyContext",
    "PolicyDecision",
    "PolicyPipeline",
    "ProcessDied",
    "QuotaManager",
    "RepeatStop",
    "ReplayError",
    "RetryContainer",
    "RetryStop",
    "RiskTier",
    "RunClosed",
    "RunResult",
    "RuntimePolicy",
    "Seen",
    "Snapshot",
    "StandingAnswers",
    "StepStop",
    "Stop",
    "SystemClock",
    "TimeStop",
    "Tool",
    "ToolCall",
    "ToolCallStop",
    "ToolRegistry",
    "Turn",
    "VirtualClock",
    "check_run",
    "highest_of_parts",
    "load",
    "replay",
    "shell_tier",
]
