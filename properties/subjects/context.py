"""Our own context as a program uses it, without an adapter: what only its own methods can do (G1, G2, halt)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast

from failstop.properties.references.chain import DONE, TOLD, Admit, Advance, Chain, ChainReference, Close, Halt, Settle
from failstop.properties.subject import Lane, NotOffered
from failstop.properties.subjects.still import StillClock
from failstop.properties.subjects.unexplained import unexplained
from failstop.properties.targets.failstop import FailstopTarget
from failstop.runtime.chain.context import ExecutionContext
from failstop.runtime.chain.dispatch import AlreadyEnded, Dispatch
from failstop.runtime.chain.graph import ExecutionGraph
from failstop.runtime.clock import VirtualAlarm
from failstop.runtime.cores.ledger import ADMITTED, HALTED, release, stop
from failstop.runtime.money import Money
from failstop.runtime.stops import Denied, Stop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from failstop.properties.linearizable import Gap, Reference
    from failstop.properties.references.chain import ChainAction
    from failstop.properties.target import AnyTarget
    from failstop.runtime.limits import Limits


@dataclass(frozen=True, slots=True)
class Plainly:
    """Dispatch a stub that costs nano-dollars known beforehand; in_full: with an option that the quick way lacks."""

    context: str = ""
    cost: int = 0
    in_full: bool = False


@dataclass(frozen=True, slots=True)
class Reserve:
    """Admit a dispatch that the program makes itself, holding nano-dollars; name: to end it by."""

    name: str
    nano: int
    context: str = ""


@dataclass(frozen=True, slots=True)
class EndIt:
    """End a reservation, if it was made; cost: nano-dollars of one that is settled."""

    name: str
    how: Literal["settle", "fail", "release"]
    cost: int = 0


@dataclass(frozen=True, slots=True)
class MakeChild:
    """Open a child; name: its path, such as "/1"."""

    name: str


@dataclass(frozen=True, slots=True)
class CloseContext:
    """Close a context."""

    context: str = ""


@dataclass(frozen=True, slots=True)
class HaltChain:
    """Halt the chain."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Let nanoseconds pass; alarms come late."""

    duration_ns: int


ContextMove: TypeAlias = Plainly | Reserve | EndIt | MakeChild | CloseContext | HaltChain | Wait


class LateClock(StillClock):
    """A clock whose alarms are later than anything that is played, as those of a busy machine may be."""

    def call_at(self, when_ns: int, callback: Callable[[], None]) -> VirtualAlarm:  # noqa: ARG002 - too late
        """See Clock."""
        return VirtualAlarm(callback)


class FullSink:
    """A log with room for so many admissions."""

    def __init__(self, room: int) -> None:
        self._room = room

    def record(self, kind: str, _: object, /) -> None:
        """See AuditSink."""
        if kind == "admit":
            if self._room == 0:
                raise OSError("no space left on device")
            self._room -= 1


class End(NamedTuple):
    """Somebody ends a reservation, which may have been ended before."""

    call: str
    how: str
    cost: int


class Make(NamedTuple):
    """Somebody opens a child of the root."""


class ContextReference(ChainReference):
    """The reference of a chain, with reservations that end once and children that are made meanwhile.

    writable: how many admissions its log has room for, None: any number.
    """

    def __init__(
        self, limits: Limits, children: tuple[tuple[str, Limits | None], ...], writable: int | None = None
    ) -> None:
        super().__init__(limits, children)
        self._writable = writable

    def outcomes(self, state: Chain, action: ChainAction | End | Make) -> Iterator[tuple[Chain, object]]:
        """See Reference."""
        if isinstance(action, Make):
            halt = state.accounts[0][1].state[5]
            closed = "closed" if "" in state.closed else DONE
            yield state, closed if halt == ADMITTED else TOLD[halt]
        elif isinstance(action, End):
            yield self._ended(state, action)
        elif isinstance(action, Advance):
            yield state._replace(now=state.now + action.duration_ns), DONE
        else:
            for after, answer in super().outcomes(state, action):
                name, root = state.accounts[0]
                if answer == TOLD[ADMITTED] and self._writable is not None and root.state[2] >= self._writable:
                    halted = (name, root._replace(state=stop(root.state, HALTED)))
                    yield state._replace(accounts=(halted, *state.accounts[1:])), "OSError, an Exception"
                else:
                    yield after, answer

    def _ended(self, state: Chain, action: End) -> tuple[Chain, object]:
        held = next((each for each in state.held if each[0] == action.call), None)
        if held is None:
            return state, "ended before"
        if action.how != "release":
            after = self._settled(state, Settle(action.call, action.cost if action.how == "settle" else None))
            return after, DONE
        accounts = tuple(
            (name, account._replace(state=release(account.state, held[2], False, False)))
            for name, account in state.accounts
        )
        return state._replace(accounts=accounts, held=state.held - {held}), DONE


@dataclass(frozen=True, slots=True)
class ContextSubject:
    """A context under limits; children: the paths of those that are made in the course of it.

    writable: how many admissions its log has room for, None: it has no log.
    """

    limits: Limits
    children: tuple[str, ...] = ()
    writable: int | None = None
    name: str = "context"
    ignored: tuple[type, ...] = (ExecutionGraph, Lane)

    def told(self, gap: Gap) -> str:
        """See Subject."""
        return unexplained(gap)

    def reference(self, *, exact: bool) -> Reference:  # noqa: ARG002 - ours alone is held to it
        """See Subject."""
        children = tuple((name, None) for name in self.children)
        return cast("Reference", ContextReference(self.limits, children, self.writable))

    def open(self, target: AnyTarget) -> ContextInstrument:
        """See Subject."""
        if not isinstance(target, FailstopTarget):
            raise NotOffered("it is no ExecutionContext")
        clock = LateClock()
        sink = None if self.writable is None else FullSink(self.writable)
        return ContextInstrument(ExecutionContext(self.limits, clock=clock, audit=sink), clock)


class ContextInstrument:
    """The context, its children, and the reservations."""

    def __init__(self, root: ExecutionContext, clock: LateClock) -> None:
        self._clock = clock
        self._contexts = {"": root}
        self._reserved: dict[str, tuple[str, Dispatch]] = {}
        self._numbers: dict[int, itertools.count[int]] = {}

    def play(self, move: ContextMove, lane: Lane) -> None:  # noqa: C901 - one case a move
        """See Instrument; a move on what was not made makes no operation."""
        match move:
            case Plainly():
                if move.context in self._contexts:
                    self._call(self._contexts[move.context], move, lane)
            case Reserve():
                self._reserve(move, lane)
            case EndIt():
                if move.name in self._reserved:
                    call, dispatch = self._reserved[move.name]
                    lane.begin(End(call, move.how, move.cost))
                    lane.end(_told(lambda: _end(dispatch, move)))
            case MakeChild():
                lane.begin(Make())
                lane.end(_told(lambda: self._contexts.update({move.name: self._contexts[""].create_child()})))
            case CloseContext():
                if move.context in self._contexts:
                    lane.begin(Close(move.context))
                    lane.end(_told(self._contexts[move.context].close))
            case HaltChain():
                lane.begin(Halt(""))
                lane.end(_told(lambda: self._contexts[""].halt("somebody stopped it")))
            case Wait():
                lane.begin(Advance(move.duration_ns))
                self._clock.advance_ns(move.duration_ns)
                lane.end(DONE)

    def look(self, lane: Lane) -> None:
        """See Instrument; what it came to shows in what was let in."""

    def close(self) -> None:
        """See Instrument."""
        self._contexts[""].close()

    def _call(self, context: ExecutionContext, move: Plainly, lane: Lane) -> None:
        call = self._asked(move.context, move.cost, lane)

        def stub() -> None:
            lane.end("admitted")
            lane.begin(Settle(call, move.cost))

        # With a cost alone a call takes the quick way.
        options: dict[str, Any] = {"name": "stub"} if move.in_full else {}
        lane.end(_told(lambda: context.call(stub, cost=Money(move.cost), **options)))

    def _reserve(self, move: Reserve, lane: Lane) -> None:
        call = self._asked(move.context, move.nano, lane)

        def make() -> None:
            self._reserved[move.name] = call, self._contexts[move.context].reserve(Money(move.nano))

        told = _told(make)
        lane.end("admitted" if told == DONE else told)

    def _asked(self, context: str, nano: int, lane: Lane) -> str:
        call = f"{lane.number}.{next(self._numbers.setdefault(lane.number, itertools.count(1)))}"
        lane.begin(Admit(call, context, nano, False, False))
        return call


def _end(dispatch: Dispatch, move: EndIt) -> None:
    if move.how == "settle":
        dispatch.settle(Money(move.cost))
    elif move.how == "fail":
        dispatch.fail(RuntimeError("it broke"))
    else:
        dispatch.release()


def _told(do: Callable[[], object]) -> str:
    """Say what came of it, as a program sees it that catches every Exception, which no stop is."""
    try:
        do()
    except AlreadyEnded:
        return "ended before"
    except Denied:
        return "denied"
    except Exception as error:  # noqa: BLE001 - what a program catches that goes on whatever happens
        return f"{type(error).__name__}, an Exception"
    except Stop as stop:
        return stop.ceiling
    return DONE
