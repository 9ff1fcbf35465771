"""The minimal contained runtime; standard library only.

`ExecutionContext` is the boundary of one chain of calls, `AgentLoop` runs a planner inside one. Each protocol is a pure
core in `cores/`, and a thin shell here that adds the lock, the clock, the audit line and the errors.
"""

from failstop.runtime.agent.approval import ApprovalError, ApprovalRequest, StandingAnswers
from failstop.runtime.agent.loop import AgentLoop
from failstop.runtime.agent.outcome import Outcome, RunResult
from failstop.runtime.agent.planner import Action, History, Observation, Planner, ToolCall
from failstop.runtime.agent.tools import Tool, ToolRegistry
from failstop.runtime.audit.conformance import check_run
from failstop.runtime.audit.log import AuditError, AuditLog, load
from failstop.runtime.audit.replay import replay
from failstop.runtime.cancellation import CancellationToken
from failstop.runtime.chain.context import ExecutionContext
from failstop.runtime.chain.decision import Decision
from failstop.runtime.chain.graph import ExecutionGraph
from failstop.runtime.chain.partial import PartialResultBuffer
from failstop.runtime.clock import Clock, SystemClock, VirtualClock
from failstop.runtime.limits import ExecutionConfig, Limits
from failstop.runtime.money import Money
from failstop.runtime.policies.breaker import CircuitBreaker
from failstop.runtime.policies.budget import BudgetEnforcer
from failstop.runtime.policies.guard import AgentStepGuard
from failstop.runtime.policies.pipeline import PolicyContext, PolicyDecision, PolicyPipeline, RuntimePolicy
from failstop.runtime.policies.quota import QuotaManager
from failstop.runtime.policies.retry import RetryContainer
from failstop.runtime.risk import RiskTier
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
    "AgentStepGuard",
    "ApprovalError",
    "ApprovalRequest",
    "AuditError",
    "AuditLog",
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
    "PolicyContext",
    "PolicyDecision",
    "PolicyPipeline",
    "QuotaManager",
    "RepeatStop",
    "RetryContainer",
    "RetryStop",
    "RiskTier",
    "RunResult",
    "RuntimePolicy",
    "StandingAnswers",
    "StepStop",
    "Stop",
    "SystemClock",
    "TimeStop",
    "Tool",
    "ToolCall",
    "ToolCallStop",
    "ToolRegistry",
    "VirtualClock",
    "check_run",
    "load",
    "replay",
]
