"""The stub that a runtime dispatches: it tells the world that it runs, then behaves as its tool does."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any, TypeAlias

from failstop.planners.actions import ToolFailed
from failstop.planners.toolset import TOOLS, worsened
from failstop.properties.gate import Gate
from failstop.properties.target import Reply, Work
from failstop.runtime.risk import RiskTier

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from failstop.planners.actions import Call
    from failstop.properties.world import Asked, World

Script: TypeAlias = "Generator[Gate | float, None, Reply]"
"""What one dispatch does: it yields what it waits for, a gate or seconds."""


class Stub:
    """One call as the world sees it; each run is one dispatch. A tool that does not exist is never one."""

    def __init__(
        self, call: Call, asked: Asked, world: World, misbehaviour: str | None, inside: Callable[[], object]
    ) -> None:
        known = TOOLS.get(call.tool)
        self._tool = None if known is None else worsened(known, call.misbehaves, misbehaviour)
        self._call = call
        self._asked = asked
        self._world = world
        self._inside = inside

    def work(self) -> Work:
        """Describe the dispatch to a session."""
        tool, call = self._tool, self._call
        return Work(
            tool=call.tool,
            args=call.args,
            run=self.run,
            arun=self.arun,
            kind="tool" if tool is None else tool.kind,
            tier=RiskTier.READ if tool is None else tool.tier,
            reserve=call.reserve,
            retries=call.retries,
        )

    def run(self, args: Mapping[Any, Any] | None = None) -> Reply:
        """Run on this thread, with the call's own arguments or with those that a runtime hands on."""
        with closing(self._script(args)) as script:
            while True:
                try:
                    awaited = next(script)
                except StopIteration as end:
                    reply: Reply = end.value
                    return reply
                if isinstance(awaited, Gate):
                    awaited.arrive()
                else:
                    self._world.pass_time(awaited)

    async def arun(self, args: Mapping[Any, Any] | None = None) -> Reply:
        """Run on an event loop; see run."""
        with closing(self._script(args)) as script:
            while True:
                try:
                    awaited = next(script)
                except StopIteration as end:
                    reply: Reply = end.value
                    return reply
                if isinstance(awaited, Gate):
                    await awaited.aarrive()
                else:
                    await self._world.apass_time(awaited)

    def _script(self, args: Mapping[Any, Any] | None) -> Script:
        if self._tool is None:
            raise self._world.witnessed(ToolFailed(f"there is no tool named {self._call.tool!r}"))
        first = self._world.dispatch(self._asked, self._tool.kind)
        try:
            if self._asked.gate is not None and first:
                yield self._asked.gate
            value = yield from self._tool.behave(self._world, self._call.args if args is None else args)
            if self._call.inside is not None:
                value = self._inside()
            return Reply(value, self._call.reported)
        except BaseException as error:  # noqa: BLE001 - witnessed, whatever it is, and raised again
            raise self._world.witnessed(error)  # noqa: B904 - it is the same error
        finally:
            self._world.ended()
