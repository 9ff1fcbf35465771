"""What a loop is given, looked at before anything begins: a run that cannot work is not started."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from failstop.runtime.agent.approval import StandingAnswers
from failstop.runtime.agent.run import AgentRun
from failstop.runtime.agent.tools import ToolRegistry
from failstop.runtime.chain.context import ExecutionContext
from failstop.runtime.limits import Limits
from failstop.runtime.risk import RiskTier
from failstop.runtime.stops import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable


def check(**given: object) -> None:
    """Raise ConfigurationError for the first value that is not what its field takes."""
    for field, value in given.items():
        fits, expected = _EXPECTED[field]
        if not fits(value):
            raise ConfigurationError(field, value, expected)


def _a(*kinds: type) -> Callable[[object], bool]:
    return lambda value: isinstance(value, kinds)


def _with(method: str) -> Callable[[object], bool]:
    return lambda value: callable(getattr(value, method, None))


def _or_none(fits: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or fits(value)


_EXPECTED: dict[str, tuple[Callable[[object], bool], str]] = {
    "tools": (_a(ToolRegistry), "a ToolRegistry"),
    "limits": (_a(Limits), "Limits"),
    "autonomous": (_a(RiskTier), "a RiskTier"),
    "clock": (_or_none(_with("now_ns")), "a Clock, or None for the machine's own"),
    "audit_folder": (_or_none(_a(str, os.PathLike)), "the path of a folder, or None for no log"),
    "approver": (_or_none(callable), "a function from an ApprovalRequest to True or False, or None to pause the run"),
    "standing": (_or_none(_a(StandingAnswers)), "StandingAnswers, or None"),
    "quota": (_or_none(_with("start")), "a QuotaManager, or None"),
    "policies": (_or_none(callable), "a function that makes the PolicyPipeline of one run, or None"),
    "planner": (_with("next_action"), "a planner: an object with a method next_action(history)"),
    "goal": (_a(str), "a text"),
    "run_id": (_or_none(_a(str)), "a text, or None for one that is made up"),
    "parent": (_or_none(_a(ExecutionContext)), "the ExecutionContext of the run that this is a part of, or None"),
    "answers": (_a(Mapping), "a mapping from the id of each request to True or False"),
    "run": (_a(AgentRun), "an AgentRun: what start() gave, or the `run` of a RunResult"),
}
