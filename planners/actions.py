"""What a planner may yield, and what may be thrown into it.

A planner is a generator: it yields one of these actions and is sent what came of it. A refusal of the runtime
(`Refused`) and an error of the tool are raised at the `yield`, so that an ordinary planner ends by them and one that
swallows everything shows whether the runtime meant it. Returning is finishing; what it returns is its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from failstop.runtime.money import Amount


class Honest(Enum):
    """A call whose estimate or report is what it really costs."""

    COST = "cost"


@dataclass(frozen=True, slots=True)
class Call:
    """Dispatch one tool, or a model: `tool` names one of the toolset, `args` is handed to it.

    cost: dollars that the dispatch really costs, gone as soon as it starts. estimate: the upper bound declared before
    it; None declares none. reports: what the reply says that it cost, which may be anything. retries: how often the
    runtime may try again. misbehaves: a misbehaviour of the toolset put around this call. inside: what the tool itself
    does through the same context before it answers, which nests calls.
    """

    tool: str
    args: Mapping[Any, Any] = field(default_factory=dict)
    cost: Amount = 0
    estimate: Amount | Honest | None = Honest.COST
    reports: object = Honest.COST
    retries: int = 0
    misbehaves: str | None = None
    inside: Action | None = None

    @property
    def reserve(self) -> Amount | None:
        """The upper bound in dollars that is declared before the dispatch; None if there is none."""
        return self.cost if isinstance(self.estimate, Honest) else self.estimate

    @property
    def reported(self) -> object:
        """What the reply says that the call cost."""
        return self.cost if isinstance(self.reports, Honest) else self.reports


@dataclass(frozen=True, slots=True)
class Parallel:
    """Start all calls before any of them ends; sent the list of values and tool errors, in the order of the calls.

    patience_s: real seconds that a call already inside its tool waits for the others to arrive there or be refused,
    before it ends without them. A runtime that makes a call wait for those in flight needs it short.
    """

    calls: tuple[Call, ...]
    on: Literal["threads", "asyncio"] = "threads"
    patience_s: float = 2.0


@dataclass(frozen=True, slots=True)
class Spawn:
    """Start a sub-agent under the same ceilings and wait for its answer; what ends it is raised here too."""

    agent: Callable[[], Plan]


@dataclass(frozen=True, slots=True)
class Approve:
    """A person said yes to what this refusal asked; sent the value of the very call that was asked about."""

    refusal: Refused


@dataclass(frozen=True, slots=True)
class Close:
    """Close the context, as one does at the end of a run."""


Action: TypeAlias = Call | Parallel | Spawn | Approve | Close

Plan: TypeAlias = Generator[Any, Any, Any]
"""A planner at work. It should yield actions; what yields anything else is itself under test."""


class Refused(Exception):  # noqa: N818 - it is a verdict, not an error
    """The runtime did not dispatch; `stop` is one of `STOPS`, `request` what a person can be asked to approve."""

    def __init__(self, stop: str, detail: str = "", request: object | None = None) -> None:
        super().__init__(stop, detail, request)
        self.stop = stop
        self.detail = detail
        self.request = request

    def __str__(self) -> str:
        return f"{self.stop}: {self.detail}" if self.detail else self.stop


CHAIN_STOPS = ("cost", "steps", "tool_calls", "retries", "time", "repeats", "halt", "closed")
"""Refusals that end the chain."""

STOPS = (*CHAIN_STOPS, "approval", "breaker", "denied", "configuration")
"""Every refusal of every runtime, in one set of names."""


class ToolFailed(Exception):  # noqa: N818 - it tells what happened
    """A tool raised; an observation for the planner, not the end of the run."""
