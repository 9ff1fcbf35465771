"""What goes between the loop and the agent's brain: the history goes in, an action comes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, Self

from failstop.runtime.audit.canonical import arguments
from failstop.runtime.frozen import TooDeepError, frozen
from failstop.runtime.money import nano_up
from failstop.runtime.stops import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from failstop.runtime.money import Amount
    from failstop.runtime.stops import Degradation


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that the planner wants: the tool's name and its arguments by name."""

    tool: str
    args: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One turn of a planner: calls to make, in this order, or the end of the run with its result.

    cost: dollars that the planner itself spent on this turn, zero or more. parallel: dispatch the calls at once; they
    are admitted in the order given all the same. With a call among them whose approval covers more than its arguments
    (`Tool.digest_of`) they are made one after the other.
    """

    calls: tuple[ToolCall, ...] = ()
    finished: bool = False
    value: Any = None
    reasoning: str = ""
    cost: Amount = 0
    parallel: bool = False

    @classmethod
    def use(cls, tool: str, /, **args: Any) -> Self:
        """Call one tool; build an Action by hand to say more."""
        return cls(calls=(ToolCall(tool, args),))

    @classmethod
    def finish(cls, value: Any = None) -> Self:
        """End the run with its result."""
        return cls(finished=True, value=value)


class Seen(StrEnum):
    """What became of a call, as the planner sees it."""

    OK = "ok"
    ERROR = "error"
    """The tool raised; with `Observation.unknown` nobody can say whether its effect happened."""
    UNKNOWN_TOOL = "unknown_tool"
    REFUSED = "refused"
    """It was not dispatched: a policy or a person said no, or it was not a call that can be made."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What came of one call: `value` is its result if `seen` is OK, else `error` says what to do differently.

    unknown: the call may have had its effect although it raised; a tool declared not idempotent says so (field case
    38). degradation: what a policy that denied the call advises instead.
    """

    call_id: str
    tool: str
    seen: Seen
    value: Any = None
    error: str = ""
    unknown: bool = False
    degradation: Degradation | None = None

    @property
    def ok(self) -> bool:
        """True if the call returned."""
        return self.seen is Seen.OK


@dataclass(frozen=True, slots=True)
class Turn:
    """One action of the planner and what came of its calls, in the order given; fewer if the run ended among them."""

    number: int
    action: Action
    observations: tuple[Observation, ...]


@dataclass(frozen=True, slots=True)
class History:
    """All that a planner is told; read-only through and through, so a planner that edits it raises and fails."""

    goal: str
    turns: tuple[Turn, ...]

    @property
    def last(self) -> tuple[Observation, ...]:
        """What came of the latest action; empty at the start."""
        return self.turns[-1].observations if self.turns else ()


class Planner(Protocol):
    """The agent's brain: a model or a script. Nothing that it returns, raises or keeps hold of is trusted."""

    def next_action(self, history: History, /) -> Action | Awaitable[Action]:
        """Decide the next action; an awaitable only under `AgentLoop.arun`."""


class PlannerError(Exception):
    """What a planner returned is not an action that can be performed."""


def checked(given: object) -> Action:
    """Copy a planner's answer into an action that it cannot change any more; raises PlannerError.

    Whether its cost is an amount of money is left for `reported_nano` to say.
    """
    if not isinstance(given, Action):
        raise PlannerError(f"the planner returned a {type(given).__name__}; expected an Action")
    action = Action(
        calls=tuple(_checked_call(call) for call in _expect("Action.calls", given.calls, (tuple, list))),
        finished=_expect("Action.finished", given.finished, bool),
        value=_frozen("Action.value", given.value),
        reasoning=_expect("Action.reasoning", given.reasoning, str),
        cost=given.cost,
        parallel=_expect("Action.parallel", given.parallel, bool),
    )
    if action.finished and action.calls:
        raise PlannerError("the action both finishes and calls tools; expected one of the two")
    return action


def reported_nano(cost: object) -> int:
    """Nano-dollars that a planner says its turn cost; raises PlannerError for what is not an amount of money."""
    try:
        return nano_up(cost, "Action.cost")  # type: ignore[arg-type]  # it refuses what is not an Amount
    except ConfigurationError as error:
        raise PlannerError(str(error)) from error


def _checked_call(given: object) -> ToolCall:
    call = _expect("Action.calls[...]", given, ToolCall)
    tool = _expect("ToolCall.tool", call.tool, str)
    # Arguments often come as the model's JSON text.
    args = _expect("ToolCall.args", arguments(call.args), Mapping)
    return ToolCall(str.__str__(tool), _frozen("ToolCall.args", dict(args)))


def _expect(field: str, value: Any, kind: type | tuple[type, ...]) -> Any:
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        expected = " or ".join(one.__name__ for one in kinds)
        raise PlannerError(f"{field} is a {type(value).__name__}; expected a {expected}")
    return value


def _frozen(field: str, value: Any) -> Any:
    try:
        return frozen(value)
    except TooDeepError as error:
        raise PlannerError(f"{field}: {error}") from error
