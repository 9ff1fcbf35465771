"""The tools of the world that planners live in, and the ways in which any of them can misbehave.

A tool is a function of its surroundings and its arguments. One that takes time is a generator that yields the seconds
it takes (`FOREVER` for one that hangs), so that the same tool runs on a thread and on asyncio, in virtual time and in
real time. A misbehaviour takes a tool and gives a worse one; `Call(misbehaves=...)` and `--tools` put it around a call.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from failstop.planners.actions import ToolFailed
from failstop.runtime.risk import RiskTier
from failstop.runtime.stops import ConfigurationError

if TYPE_CHECKING:
    from random import Random

FOREVER = math.inf
"""As seconds: the tool hangs until the world ends, and looks at no token."""
PAST_DEADLINE = -1.0
"""As seconds: the tool comes back when the deadline has passed and the caller has had every chance to be told."""


class Surroundings(Protocol):
    """What a tool can do besides answering."""

    random: Random

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline of the run; 60 where there is none."""

    def effect(self, name: str, args: Mapping[Any, Any]) -> None:
        """Change the world: the side effect by which everybody can see that the tool really ran."""

    def attempts(self, name: str) -> int:
        """Say how often this was asked before, and count one more."""


Args: TypeAlias = Mapping[Any, Any]
Behaviour: TypeAlias = Callable[[Surroundings, Args], Generator[float, None, Any]]
"""Yields seconds that pass, returns the tool's value."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool or model of the world."""

    name: str
    behave: Behaviour
    tier: RiskTier = RiskTier.READ
    kind: str = "tool"


@dataclass(frozen=True, slots=True)
class Misbehaviour:
    """A way to make any tool worse.

    promises: what a runtime must offer to be judged under it. needs_deadline: without one, nothing would end the run.
    """

    name: str
    does: str
    worsen: Callable[[Behaviour], Behaviour]
    promises: tuple[str, ...] = ()
    needs_deadline: bool = False


_tools: dict[str, Tool] = {}
_misbehaviours: dict[str, Misbehaviour] = {}

TOOLS: Mapping[str, Tool] = MappingProxyType(_tools)
MISBEHAVIOURS: Mapping[str, Misbehaviour] = MappingProxyType(_misbehaviours)


def tool(tier: RiskTier = RiskTier.READ, kind: str = "tool") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add a function of (surroundings, args), plain or a generator of seconds, to the world's tools by its name."""

    def add(does: Callable[..., Any]) -> Callable[..., Any]:
        known = _tools.get(does.__name__)
        if known is not None and known.behave.__module__ != does.__module__:
            raise ConfigurationError("tool", does.__name__, "a name of its own; the world has a tool of this name")
        _tools[does.__name__] = Tool(does.__name__, _timed(does), tier, kind)
        return does

    return add


def worsened(tool: Tool, *names: str | None) -> Tool:
    """Put misbehaviours around a tool, the first innermost; raises ConfigurationError for an unknown one."""
    for name in names:
        if name is not None:
            if name not in MISBEHAVIOURS:
                raise ConfigurationError("misbehaves", name, f"one of {', '.join(MISBEHAVIOURS)}")
            tool = replace(tool, behave=MISBEHAVIOURS[name].worsen(tool.behave))
    return tool


def _timed(does: Callable[..., Any]) -> Behaviour:
    if inspect.isgeneratorfunction(does):
        return does

    def behave(around: Surroundings, args: Args) -> Generator[float, None, Any]:
        yield from ()
        return does(around, args)

    behave.__module__ = does.__module__
    return behave


@tool()
def search(_around: Surroundings, args: Args) -> str:
    """Find something."""
    return f"three results for {len(args)} terms"


@tool()
def read_file(_around: Surroundings, _args: Args) -> dict[str, Any]:
    """Give a file that the caller may change as it likes."""
    return {"lines": ["one", "two"]}


@tool(RiskTier.WRITE)
def write_file(around: Surroundings, args: Args) -> str:
    """Change something that can be changed back."""
    around.effect("write_file", args)
    return "written"


@tool(RiskTier.IRREVERSIBLE)
def send_email(around: Surroundings, args: Args) -> str:
    """Send what cannot be called back."""
    around.effect("send_email", args)
    return "sent"


@tool(RiskTier.IRREVERSIBLE)
def pay(around: Surroundings, args: Args) -> str:
    """Give money away."""
    around.effect("pay", args)
    return "paid"


@tool(kind="llm")
def model(_around: Surroundings, _args: Args) -> str:
    """Answer as a language model does; what it costs stands in the call."""
    return "a thoughtful answer"


@tool(kind="llm")
def small_model(_around: Surroundings, _args: Args) -> str:
    """Answer as a cheaper model does."""
    return "an answer"


def _misbehaviour(
    *promises: str, needs_deadline: bool = False
) -> Callable[[Callable[[Behaviour], Behaviour]], Callable[[Behaviour], Behaviour]]:
    def add(worsen: Callable[[Behaviour], Behaviour]) -> Callable[[Behaviour], Behaviour]:
        name = worsen.__name__.strip("_").replace("_", "-")
        does = (worsen.__doc__ or "").splitlines()[0].rstrip(".")
        _misbehaviours[name] = Misbehaviour(name, does, worsen, promises, needs_deadline)
        return worsen

    return add


def _instead(does: Callable[..., Any]) -> Callable[[Behaviour], Behaviour]:
    """Make a misbehaviour that never calls the tool at all."""

    def worsen(_behave: Behaviour) -> Behaviour:
        return _timed(does)

    worsen.__name__, worsen.__doc__ = does.__name__, does.__doc__
    return worsen


@_misbehaviour()
@_instead
def always_fails(_around: Surroundings, _args: Args) -> None:
    """Fail every time."""
    raise ToolFailed("upstream unavailable")


@_misbehaviour()
def fails_twice(behave: Behaviour) -> Behaviour:
    """Fail twice, then work."""

    def worse(around: Surroundings, args: Args) -> Generator[float, None, Any]:
        if around.attempts("fails-twice") < 2:  # noqa: PLR2004 - it is in the name
            raise ToolFailed("try again")
        return (yield from behave(around, args))

    return worse


@_misbehaviour()
def fails_at_random(behave: Behaviour) -> Behaviour:
    """Fail every other time on average, as the seed decides."""

    def worse(around: Surroundings, args: Args) -> Generator[float, None, Any]:
        if around.random.random() < 0.5:  # noqa: PLR2004 - a coin
            raise ToolFailed("unlucky")
        return (yield from behave(around, args))

    return worse


@_misbehaviour()
def slow(behave: Behaviour) -> Behaviour:
    """Take two seconds."""

    def worse(around: Surroundings, args: Args) -> Generator[float, None, Any]:
        yield 2.0
        return (yield from behave(around, args))

    return worse


@_misbehaviour("deadline_hang", needs_deadline=True)
@_instead
def hangs(_around: Surroundings, _args: Args) -> Generator[float, None, None]:
    """Hang and look at no token."""
    yield FOREVER


@_misbehaviour("deadline_hang", needs_deadline=True)
@_instead
def streams_for_ever(around: Surroundings, _args: Args) -> Generator[float, None, None]:
    """Send one chunk a second until the deadline has passed, then fall silent."""
    while around.seconds_left > 0:
        yield 1.0
    yield FOREVER


@_misbehaviour()
@_instead
def stream_cut(_around: Surroundings, _args: Args) -> Generator[float, None, None]:
    """Send three chunks and lose the connection."""
    for _ in range(3):
        yield 0.1
    raise ToolFailed("connection lost in the middle of the stream")


@_misbehaviour("deadline_hang", needs_deadline=True)
@_instead
def writes_late(around: Surroundings, args: Args) -> Generator[float, None, str]:
    """Come back after the deadline and write all the same."""
    yield PAST_DEADLINE
    around.effect("late write", args)
    return "too late"


@_misbehaviour()
@_instead
def returns_100_mb(_around: Surroundings, _args: Args) -> bytes:
    """Return a hundred megabytes."""
    return bytes(10**8)


@_misbehaviour()
@_instead
def returns_a_wrong_type(_around: Surroundings, _args: Args) -> object:
    """Return something that no planner expects and JSON cannot say."""
    return object()


@_misbehaviour()
@_instead
def raises_an_interrupt(_around: Surroundings, _args: Args) -> None:
    """Raise KeyboardInterrupt, which is not an Exception."""
    raise KeyboardInterrupt("raised by a tool")
