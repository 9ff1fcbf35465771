"""Our own agent loop, which plays the planner itself: its turns, its tool registry, its approval gate, its log."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections import deque
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from failstop.planners.actions import Approve, Call, Parallel, Refused, ToolFailed
from failstop.planners.toolset import TOOLS
from failstop.properties.driver import MOST_TURNS, NEVER, Ending, NotOffered, ending
from failstop.properties.gate import Gate
from failstop.properties.targets import failstop
from failstop.runtime.agent.approval import ApprovalError
from failstop.runtime.agent.loop import AgentLoop, AgentRun, Outcome, RunResult
from failstop.runtime.agent.planner import Action, History, Observation, PlannerError, Seen, ToolCall
from failstop.runtime.agent.tools import Tool, ToolRegistry
from failstop.runtime.chain.dispatch import described
from failstop.runtime.risk import RiskTier
from failstop.runtime.stops import Stop

if TYPE_CHECKING:
    from collections.abc import Mapping

    from failstop.planners.actions import Plan
    from failstop.planners.catalogue import Planner
    from failstop.properties.driver import Driver
    from failstop.properties.world import Asked, World
    from failstop.runtime.chain.context import ExecutionContext

_LACKS = frozenset({"asyncio", "children", "closed"})

PROMISES: Mapping[str, str] = MappingProxyType(
    {name: place for name, place in failstop.PROMISES.items() if name not in _LACKS}
    | {"planner_errors": "runtime/agent/loop.py: whatever a planner raises or returns, the run has an outcome"}
)

_PATIENCE_S = 0.05


class LoopTarget:
    """AgentLoop, in virtual time. A model is a priced tool here, since the loop's planner is the script."""

    name = "failstop-loop"
    promises = PROMISES
    real_time = False

    def versions(self) -> dict[str, str]:
        """See Target; the version of failstop itself is on every record."""
        return {}

    def drive(self, planner: Planner, driver: Driver, world: World) -> Ending:
        """See DrivingTarget."""
        registry = ToolRegistry()
        folder, run_id = (None, planner.name) if world.log is None else (world.log.parent, world.log.stem)
        if world.log is not None:
            world.log.unlink(missing_ok=True)
        loop = AgentLoop(registry, world.limits, autonomous=failstop.AUTONOMOUS, clock=world.clock, audit_folder=folder)
        toolbox = Toolbox(registry, driver, world, tools_counted="tool_calls" in planner.promises)
        toolbox.register_gated()
        run = loop.start(failstop.GOAL, run_id=run_id)
        world.begin()
        world.at_end(run.close)
        if world.log is not None:
            path = world.log
            world.at_end(lambda: failstop.wait_until_settled(path))
        script = Script(planner.plan(world.random), loop, run, toolbox, world)
        ended = script.play()
        if "planner_errors" in planner.promises:
            script.try_again()
        return ended


class Script:
    """Plays a scripted planner: the runtime's Planner on one side, the generator on the other."""

    def __init__(self, plan: Plan, loop: AgentLoop, run: AgentRun, toolbox: Toolbox, world: World) -> None:
        self._plan = plan
        self._loop = loop
        self._run = run
        self._world = world
        self._toolbox = toolbox
        self._last: Call | Parallel | None = None
        self._prepared: object = None
        self._turns_left = MOST_TURNS
        self._not_offered: NotOffered | None = None

    # The generator's side ------------------------------------------------------------------------------------------

    def play(self) -> Ending:
        """Run the loop to its end, answering for the person whenever it waits."""
        result = self._loop.drive(self._run, self)
        while result.outcome is Outcome.NEEDS_APPROVAL:
            waits = self._ask_the_planner(result)
            if isinstance(waits, Ending):
                return waits
            result = waits
        if self._not_offered is not None:
            raise self._not_offered
        return self._ended(result)

    def try_again(self) -> None:
        """Try one more call through a run that is over; it must not be dispatched."""
        with contextlib.suppress(Stop, PlannerError):
            self._run.perform(self._as_action(Call("search", {"query": "is anybody there?"})))

    def _ask_the_planner(self, result: RunResult) -> RunResult | Ending:
        """Tell the planner that a person is asked; go on with what it makes of that."""
        request = result.pending[0]
        asked_about = dict(request.args)
        refusal = Refused("approval", f"{request.tool} is {request.tier.name}", request)
        try:
            action = self._plan.throw(refusal)
        except StopIteration:
            return ending(self._world, "completed")
        except Refused as let_through:
            return ending(self._world, let_through.stop, str(let_through))
        except BaseException as error:  # noqa: BLE001 - whatever a planner raises is its failure
            return ending(self._world, "failed", described(error))
        if isinstance(action, Approve) and action.refusal is refusal:
            self._world.allow(request.tool, asked_about)
            return self._loop.resume(self._run, {request.id: True})
        self._prepared = action
        return self._loop.resume(self._run, {request.id: False})

    def _ended(self, result: RunResult) -> Ending:
        if result.outcome is Outcome.BUDGET_STOP and result.stop is not None:
            self._world.refused(result.stop.ceiling)
            return ending(self._world, result.stop.ceiling, str(result.stop))
        if self._turns_left <= 0:
            return ending(self._world, NEVER)
        if isinstance(result.error, Refused):
            return ending(self._world, result.error.stop, str(result.error))
        return ending(self._world, result.outcome.value, "" if result.error is None else described(result.error))

    # The runtime's side --------------------------------------------------------------------------------------------

    def next_action(self, history: History) -> Action:
        """See runtime.planner.Planner."""
        self._turns_left -= 1
        if self._turns_left <= 0:
            return Action.finish()
        try:
            return self._as_action(self._next(history))
        except StopIteration as end:
            return Action.finish(end.value)
        except NotOffered as lacking:
            self._not_offered = lacking
            raise

    def _next(self, history: History) -> object:
        if self._prepared is not None:
            prepared, self._prepared = self._prepared, None
            return prepared
        action = self._tell(history.last)
        while isinstance(action, Approve):
            action = self._approve_again(action)
        return action

    def _tell(self, observations: tuple[Observation, ...]) -> object:
        """Send the planner what came of its last action, or raise it there."""
        self._toolbox.answered()
        if self._last is None:
            return next(self._plan)
        came = [_came(observation) for observation in observations]
        if isinstance(self._last, Parallel):
            return self._plan.send(came)
        return self._plan.throw(came[0]) if isinstance(came[0], BaseException) else self._plan.send(came[0])

    def _approve_again(self, action: Approve) -> object:
        request: Any = action.refusal.request
        try:
            self._loop.resume(self._run, {request.id: True})
        except ApprovalError as error:
            return self._plan.throw(Refused("approval", str(error), request))
        raise AssertionError("a run that is being played was resumed")

    def _as_action(self, action: object) -> Action:
        if isinstance(action, Call):
            self._last = action
            return Action(calls=(self._as_call(action, None),))
        if isinstance(action, Parallel) and action.on == "threads":
            self._last = action
            gate = Gate(len(action.calls), min(action.patience_s, _PATIENCE_S))
            return Action(calls=tuple(self._as_call(call, gate) for call in action.calls), parallel=True)
        if isinstance(action, Parallel) or type(action).__module__ == Call.__module__:
            raise NotOffered(f"the loop has no {type(action).__name__} for its planner")
        return cast("Action", action)  # whatever it is: the loop has to find out

    def _as_call(self, call: Call, gate: Gate | None) -> ToolCall:
        if call.tool in TOOLS:
            self._toolbox.expect(call, self._world.ask(call, gate))
        return ToolCall(call.tool, call.args)


class Toolbox:
    """The tools as the loop knows them, and the stubs of the calls under way, which they run in the order asked."""

    def __init__(self, registry: ToolRegistry, driver: Driver, world: World, *, tools_counted: bool) -> None:
        self._registry = registry
        self._tools_counted = tools_counted
        self._driver = driver
        self._world = world
        self._terms: dict[str, tuple[object, ...]] = {}
        self._lock = threading.Lock()
        self._waiting: dict[str, deque[tuple[Call, Asked]]] = {}
        self._asked: list[Asked] = []

    def register_gated(self) -> None:
        """Name the tools with effects before the run starts, so that its log tells which of them a person gates."""
        for tool in TOOLS.values():
            if tool.tier > RiskTier.READ:
                self._add(Call(tool.name))

    def expect(self, call: Call, asked: Asked) -> None:
        """Get ready for a call; raises NotOffered for a second price of a tool, which the loop prices once."""
        self._asked.append(asked)
        if TOOLS[call.tool].kind == "llm" and self._tools_counted:
            raise NotOffered("the loop counts a model that is called as a tool among the tool calls")
        self._add(call)
        self._waiting.setdefault(call.tool, deque()).append((call, asked))

    def answered(self) -> None:
        """Forget the calls of the last action: the loop has answered them all."""
        for asked in self._asked:
            self._world.answered(asked)
        self._asked.clear()
        self._waiting.clear()

    def _add(self, call: Call) -> None:
        terms = (call.reserve, call.retries)
        if self._terms.setdefault(call.tool, terms) != terms:
            raise NotOffered(f"the loop prices {call.tool!r} once and not call by call")
        if self._registry.get(call.tool) is None:
            self._registry.register(self._tool(call, TOOLS[call.tool].tier))

    def _tool(self, call: Call, tier: RiskTier) -> Tool:
        return Tool(
            name=call.tool,
            fn=lambda context, /, **args: self._run(call.tool, context, args),
            tier=tier,
            cost=0 if failstop.is_free(call.reserve) else _cost,
            reserve=call.reserve,
            retries=call.retries,
            isolate=None if self._world.limits.max_seconds is None else "thread",
            with_context=True,
        )

    def _run(self, name: str, context: ExecutionContext, args: Mapping[str, Any]) -> dict[str, object]:
        call, asked = self._take(name)
        inside = failstop.ContextSession(context, self._world, itertools.count(1))
        reply = self._driver.stub(call, asked, inside).run(args)
        return {"value": reply.value, "cost": reply.cost}

    def _take(self, name: str) -> tuple[Call, Asked]:
        """Give the next call of this tool; the last one stays, for its retries."""
        with self._lock:
            waiting = self._waiting[name]
            return waiting.popleft() if len(waiting) > 1 else waiting[0]


def _came(observation: Observation) -> object:
    if observation.seen is Seen.OK:
        return observation.value["value"]
    if observation.seen is Seen.REFUSED:
        return Refused("denied", observation.error)
    return ToolFailed(observation.error)


def _cost(reply: object) -> object:
    return cast("dict[str, object]", reply)["cost"]
