"""The minimal contained runtime; standard library only.

`ExecutionContext` is the boundary of one chain of calls, `AgentLoop` runs a planner inside one. Each protocol is a pure
core in `cores/`, and a thin shell here that adds the lock, the clock, the audit line and the errors.
"""

from failstop.runtime.approval import ApprovalError, ApprovalRequest, StandingAnswers
from failstop.runtime.audit import AuditError, AuditLog, load
from failstop.runtime.breaker import CircuitBreaker
from failstop.runtime.budget import BudgetEnforcer
from failstop.runtime.cancellation import CancellationToken
from failstop.runtime.clock import Clock, SystemClock, VirtualClock
from failstop.runtime.conformance import check_run
from failstop.runtime.context import ExecutionContext
from failstop.runtime.decision import Decision
from failstop.runtime.graph import ExecutionGraph
from failstop.runtime.guard import AgentStepGuard
from failstop.runtime.limits import ExecutionConfig, Limits
from failstop.runtime.loop import AgentLoop
from failstop.runtime.money import Money
from failstop.runtime.outcome import Outcome, RunResult
from failstop.runtime.partial import PartialResultBuffer
from failstop.runtime.planner import Action, History, Observation, Planner, ToolCall
from failstop.runtime.policy import PolicyContext, PolicyDecision, PolicyPipeline, RuntimePolicy
from failstop.runtime.quota import QuotaManager
from failstop.runtime.replay import replay
from failstop.runtime.retry import RetryContainer
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
from failstop.runtime.tools import Tool, ToolRegistry

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
