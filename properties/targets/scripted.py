"""A planner at the place of a framework's model: for runtimes that have a loop of their own.

The framework asks its model what to do next, and a model of the adapter's asks `Scripted`. What the planner calls comes
out as the tool calls of a reply, and the framework's tools run the stubs. A planner's call of a model is the request
that is under way: its stub runs inside it. A free tool named PAUSE stands in a reply where nothing else is to be called
before the next request, since a reply without a call would end the run.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from failstop.planners.actions import Approve, Call, Parallel, Refused, Spawn, ToolFailed
from failstop.planners.toolset import TOOLS
from failstop.properties.driver import MOST_TURNS, NEVER, Driver, Ending, NotOffered, ending, last_line
from failstop.properties.gate import Gate

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from failstop.planners.actions import Plan
    from failstop.properties.stub import Stub
    from failstop.properties.target import Reply
    from failstop.properties.world import Asked, World

PAUSE = "pause"
"""A tool that does nothing and is counted by nobody."""
DELEGATE = "delegate"
"""The tool by which a framework starts a sub-agent."""

_PATIENCE_S = 0.2


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call in a reply of the model; `args` are the planner's own, and may be beyond JSON."""

    id: str
    tool: str
    args: Mapping[Any, Any]


@dataclass(frozen=True, slots=True)
class Said:
    """One reply of the model: its tool calls, none if the planner is done, and the dollars that it reports."""

    calls: tuple[ToolCall, ...]
    cost: object = 0


@dataclass(frozen=True, slots=True)
class Done:
    """The framework says that the run is complete."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """A limit of the framework's ended the run; `stop` is one of STOPS."""

    stop: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Waits:
    """The framework waits for a person to allow one of the calls."""

    id: str


Outcome: TypeAlias = Done | Stopped | Waits


class Loop(Protocol):
    """A framework's agent under its limits; `lasts` says that another run of it is under the same ceilings still."""

    lasts: bool

    def run(self) -> Outcome:
        """Run to an outcome, again if it lasts; raises what the framework lets through and no limit of its own."""

    def resume(self, call: str, approved: bool) -> Outcome:
        """Go on with a person's answer to the call that it waits for."""


class Scripted:
    """The model's script and the tools' stubs of one run."""

    def __init__(self, plan: Plan, driver: Driver, world: World) -> None:
        self._plan = plan
        self._driver = driver
        self._world = world
        self._turns_left = MOST_TURNS
        self._ids = itertools.count(1)
        self._under_way: dict[str, _UnderWay] = {}
        self._move: Callable[[], object] = lambda: next(plan)
        self._came: Sequence[object] = ()
        self.lacking: NotOffered | None = None
        self.error: BaseException | None = None
        self.finished = False

    # What the framework's model asks ---------------------------------------------------------------------------------

    def reply(self) -> Said:
        """Give the next reply; raises what the model's own stub raises, or the planner."""
        saying = self._saying()
        try:
            thought = next(saying)
            while True:
                try:
                    came = thought.run()
                except BaseException as error:  # noqa: BLE001 - it goes on as it came
                    thought = saying.throw(error)
                else:
                    thought = saying.send(came)
        except StopIteration as end:
            said: Said = end.value
            return said

    async def areply(self) -> Said:
        """Give the next reply on an event loop; see reply."""
        saying = self._saying()
        try:
            thought = next(saying)
            while True:
                try:
                    came = await thought.arun()
                except BaseException as error:  # noqa: BLE001 - it goes on as it came
                    thought = saying.throw(error)
                else:
                    thought = saying.send(came)
        except StopIteration as end:
            said: Said = end.value
            return said

    # What the framework's tools ask ----------------------------------------------------------------------------------

    def run(self, tool: str, args: Mapping[Any, Any], call: str | None = None) -> object:
        """Run the stub of a call, or of the first of this tool that has not run; gives its value or raises."""
        if tool == PAUSE:
            return None
        under_way = self._find(tool, call)
        try:
            return under_way.keep(under_way.stub.run(args).value)
        except BaseException as error:  # noqa: BLE001 - remembered, whatever it is, and raised again
            raise self._kept(under_way, error) from None

    async def arun(self, tool: str, args: Mapping[Any, Any], call: str | None = None) -> object:
        """Run the stub on an event loop; see run."""
        if tool == PAUSE:
            return None
        under_way = self._find(tool, call)
        try:
            return under_way.keep((await under_way.stub.arun(args)).value)
        except BaseException as error:  # noqa: BLE001 - remembered, whatever it is, and raised again
            raise self._kept(under_way, error) from None

    def child(self, call: str | None = None) -> Scripted:
        """Give the script of the sub-agent that a DELEGATE call starts; its run shares this world."""
        under_way = self._find(DELEGATE, call)
        under_way.keep(None)
        return Scripted(under_way.agent(), self._driver, self._world)

    def refuse(self, call: str, stop: str, detail: str = "") -> None:
        """Tell that a limit of the framework's kept a call from running, while the run goes on."""
        self._world.refused(stop)
        self._under_way[call].came = Refused(stop, detail)

    # What the player asks --------------------------------------------------------------------------------------------

    def ask_a_person(self, call: str) -> bool | Ending:
        """Tell the planner that a person is asked; True if that person was made to say yes."""
        under_way = self._under_way[call]
        asked_about = dict(under_way.call.args)
        refusal = Refused("approval", f"{under_way.call.tool} waits for a person", call)
        action = self._thrown(refusal)
        if isinstance(action, Ending):
            return action
        if isinstance(action, Approve) and action.refusal is refusal:
            self._world.allow(under_way.call.tool, asked_about)
            return True
        self._move = functools.partial(_given, action)
        return False

    def tell(self, error: BaseException) -> Ending | None:
        """Raise in the planner what ended a run; None if it goes on, and then what it wants comes next."""
        self._forget()
        action = self._thrown(error)
        if isinstance(action, Ending):
            return action
        self._move = functools.partial(_given, action)
        return None

    @property
    def led_out(self) -> bool:
        """Whether the planner went on until the harness ended it."""
        return self._turns_left <= 0

    # -----------------------------------------------------------------------------------------------------------------

    def _saying(self) -> Generator[Stub, Reply, Said]:
        """Yield the stub of the model call that this request is, if the planner makes one; then give the reply."""
        cost: object = 0
        thought = False
        action = self._advance(self._move)
        while not self.finished and isinstance(action, Call) and _is_model(action):
            if thought:
                self._move = functools.partial(_given, action)
                return Said((ToolCall(self._id(), PAUSE, {}),), cost)
            answered = yield from self._thinking(action)
            thought, cost = True, answered.cost
            action = self._advance(functools.partial(self._plan.send, answered.value))
        if self.finished:
            return Said((), cost)
        return Said(self._calls(action), cost)

    def _thinking(self, call: Call) -> Generator[Stub, Reply, Reply]:
        asked = self._world.ask(call, None)
        try:
            return (yield self._driver.stub(call, asked, _Nowhere()))
        except BaseException as error:
            self._move = functools.partial(self._plan.throw, error)
            raise
        finally:
            self._world.answered(asked)

    def _advance(self, move: Callable[[], object]) -> object:
        self._forget()
        self._turns_left -= 1
        if self._turns_left <= 0:
            self._plan.close()
            self.finished = True
            return None
        try:
            return move()
        except StopIteration:
            self.finished = True
            return None
        except BaseException as error:
            self.error = error
            raise

    def _calls(self, action: object) -> tuple[ToolCall, ...]:
        if isinstance(action, Call):
            self._move = self._tell_one
            return (self._begin(action, None),)
        if isinstance(action, Parallel) and not any(_is_model(call) for call in action.calls):
            self._move = self._tell_all
            gate = Gate(len(action.calls), min(action.patience_s, _PATIENCE_S))
            return tuple(self._begin(call, gate) for call in action.calls)
        if isinstance(action, Spawn):
            self._move = self._tell_one
            call = ToolCall(self._id(), DELEGATE, {})
            self._under_way[call.id] = _UnderWay(Call(DELEGATE), agent=action.agent)
            return (call,)
        self.lacking = NotOffered(f"a loop has no {type(action).__name__} of this kind for its model")
        raise self.lacking

    def _begin(self, call: Call, gate: Gate | None) -> ToolCall:
        begun = ToolCall(self._id(), call.tool, call.args)
        asked = self._world.ask(call, gate)
        self._under_way[begun.id] = _UnderWay(call, asked, self._driver.stub(call, asked, _Nowhere()))
        return begun

    def _tell_one(self) -> object:
        (came,) = self._came
        return self._plan.throw(came) if isinstance(came, BaseException) else self._plan.send(came)

    def _tell_all(self) -> object:
        for came in self._came:
            if isinstance(came, Refused):
                return self._plan.throw(came)
        return self._plan.send(list(self._came))

    def _forget(self) -> None:
        """The framework has answered all calls of the last reply; what never ran was denied."""
        self._came = [each.came for each in self._under_way.values()]
        for each in self._under_way.values():
            if each.asked is not None:
                self._world.answered(each.asked)
        self._under_way.clear()

    def _thrown(self, error: BaseException) -> object:
        try:
            return self._plan.throw(error)
        except StopIteration:
            return ending(self._world, "completed")
        except Refused as refusal:
            return ending(self._world, refusal.stop, str(refusal))
        except BaseException as failure:  # noqa: BLE001 - whatever a planner raises is its failure
            return ending(self._world, "failed", f"{type(failure).__name__}: {failure}")

    def _find(self, tool: str, call: str | None) -> _UnderWay:
        if call is not None:
            return self._under_way[call]
        of_this_tool = [each for each in self._under_way.values() if each.call.tool == tool]
        waiting = [each for each in of_this_tool if not each.has_run]
        # The one that ran last is what a framework tries again.
        found = waiting[0] if waiting else of_this_tool[-1]
        found.has_run = True
        return found

    def _kept(self, under_way: _UnderWay, error: BaseException) -> BaseException:
        if isinstance(error, NotOffered):
            self.lacking = error
        under_way.came = error
        return error

    def _id(self) -> str:
        return f"call-{next(self._ids)}"


class _UnderWay:
    """A call that the model asked for, until its next request; `came` is a value or what to raise in the planner."""

    def __init__(
        self,
        call: Call,
        asked: Asked | None = None,
        stub: Stub | None = None,
        agent: Callable[[], Plan] | None = None,
    ) -> None:
        self.call = call
        self.asked = asked
        self.has_run = False
        self.came: object = Refused("denied", "the framework did not run it")
        self._stub = stub
        self._agent = agent

    @property
    def stub(self) -> Stub:
        """The stub of a tool."""
        if self._stub is None:
            raise NotOffered("a sub-agent is not run as a tool")
        return self._stub

    def agent(self) -> Plan:
        """The script of a sub-agent."""
        if self._agent is None:
            raise ToolFailed("no sub-agent was asked for")
        return self._agent()

    def keep(self, value: object) -> object:
        """Remember what the tool gave, and give it on."""
        self.came = value
        return value


class _Nowhere:
    """A session for what a tool calls from inside: a framework's tool has no loop to call back into."""

    def __getattr__(self, name: str) -> Any:
        raise NotOffered("a tool of this loop cannot call through it")


def play(plan: Plan, driver: Driver, world: World, make: Callable[[Scripted], Loop]) -> Ending:
    """Run a framework's agent with the planner as its model, through questions and, if it lasts, beyond its stops.

    Raises NotOffered for a move that loops of this kind lack, and what the framework raises that no stub raised.
    """
    scripted = Scripted(plan, driver, world)
    loop = make(scripted)
    world.begin()
    going: Ending | Callable[[], Outcome] = loop.run
    while not isinstance(going, Ending):
        going = _after(_outcome(going, scripted, world), loop, scripted, world)
    return going


def _after(
    came: Outcome | Ending | BaseException, loop: Loop, scripted: Scripted, world: World
) -> Ending | Callable[[], Outcome]:
    """Say how the run goes on, or that it is over."""
    if isinstance(came, Ending):
        return came
    if isinstance(came, Waits):
        said = scripted.ask_a_person(came.id)
        return said if isinstance(said, Ending) else _answering(loop, came.id, said)
    if isinstance(came, Done):
        if scripted.led_out:
            return ending(world, NEVER)
        return ending(world, "completed") if scripted.finished else ending(world, "failed", "it ended by itself")
    if isinstance(came, Stopped):
        world.refused(came.stop)
        if not loop.lasts:
            return ending(world, came.stop, came.detail)
        came = Refused(came.stop, came.detail)
    return scripted.tell(came) or loop.run


def _answering(loop: Loop, call: str, approved: bool) -> Callable[[], Outcome]:
    return lambda: loop.resume(call, approved)


def _outcome(go_on: Callable[[], Outcome], scripted: Scripted, world: World) -> Outcome | Ending | BaseException:
    """Give an outcome, how the planner itself ended, or what a stub raised and the framework let through."""
    try:
        came = go_on()
    except BaseException as error:
        if scripted.lacking is not None:
            raise scripted.lacking from error
        if isinstance(scripted.error, Refused):
            return ending(world, scripted.error.stop, str(scripted.error))
        if scripted.error is not None:
            return ending(world, "failed", last_line(scripted.error))
        if world.raised_here(error):
            return error
        raise
    if scripted.lacking is not None:
        raise scripted.lacking
    return came


def _given(action: object) -> object:
    return action


def _is_model(call: Call) -> bool:
    known = TOOLS.get(call.tool)
    return known is not None and known.kind == "llm"
