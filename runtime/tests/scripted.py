"""A planner that plays a script, and a world of tools that remembers what was really done."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

from failstop.runtime.agent.loop import AgentLoop
from failstop.runtime.agent.planner import Action, History
from failstop.runtime.agent.tools import Tool, ToolRegistry
from failstop.runtime.clock import VirtualClock
from failstop.runtime.limits import Limits
from failstop.runtime.risk import RiskTier

if TYPE_CHECKING:
    from collections.abc import Callable


class Scripted:
    """Plays its acts one a turn, then finishes; an act is an action, an error, or a function of the history."""

    def __init__(self, *acts: Any) -> None:
        self.acts = list(acts)
        self.seen: list[History] = []

    def next_action(self, history: History) -> Any:
        """See Planner."""
        self.seen.append(history)
        act = self.acts.pop(0) if self.acts else Action.finish("done")
        if isinstance(act, BaseException):
            raise act
        return act(history) if callable(act) else act


class World:
    """Free tools that write down every call that really reached them, and a clock that moves only when told."""

    def __init__(self) -> None:
        self.done: list[tuple[str, dict[str, Any]]] = []
        self.clock = VirtualClock()
        self.tools = ToolRegistry()
        for name, tier in (("look", RiskTier.READ), ("send", RiskTier.EXTERNAL), ("pay", RiskTier.IRREVERSIBLE)):
            self.add(name, tier=tier)

    def add(self, name: str, does: Any = None, **options: Any) -> None:
        """Register a tool that notes its call and then does what `does` does."""

        def fn(**args: Any) -> Any:
            self.done.append((name, args))
            return does(**args) if does is not None else f"{name} done"

        self.tools.register(Tool(**{"name": name, "fn": fn, "tier": RiskTier.READ, "cost": 0, **options}))

    def loop(self, limits: Limits | None = None, **options: Any) -> AgentLoop:
        """Make a loop over the tools."""
        return AgentLoop(self.tools, limits or Limits(max_steps=50), **{"clock": self.clock, **options})

    @property
    def names(self) -> list[str]:
        """The tools that were really called, in order."""
        return [name for name, _ in self.done]


def dies() -> None:
    """End the process that this runs in, without a result: a tool for ``isolate="process"``."""
    os._exit(7)


def unsendable() -> object:
    """Return what cannot be sent to another process."""
    return lambda: None


def after(effect: Callable[[], object], action: Action) -> Callable[[History], Action]:
    """Make an act that does something behind the runtime's back before it answers."""

    def act(_: History) -> Action:
        effect()
        return action

    return act


def run_on_threads(loop: AgentLoop, planner: Any, **options: Any) -> Any:
    """Run on the synchronous face."""
    return loop.run(planner, "goal", **options)


def run_on_asyncio(loop: AgentLoop, planner: Any, **options: Any) -> Any:
    """Run on the asyncio face."""
    return asyncio.run(loop.arun(planner, "goal", **options))


FACES = [run_on_threads, run_on_asyncio]
