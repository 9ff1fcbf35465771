"""A chain of calls with its children: cost, steps, tool calls, retries, deadline, halt and close (G1, G2, G3, G5)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from failstop.properties.references.ceilings import CeilingsReference, Counted
from failstop.properties.references.chain import DONE, Admit, Advance, Chain, ChainReference, Close, Halt, Look, Settle
from failstop.properties.subject import Lane, NotOffered
from failstop.properties.subjects.still import StillClock
from failstop.properties.target import (
    CountingSession,
    DrivingTarget,
    HaltingSession,
    NarrowingSession,
    Refused,
    Reply,
    Work,
)
from failstop.properties.world import World
from failstop.runtime.chain.graph import ExecutionGraph
from failstop.runtime.cores.ledger import NO_ESTIMATE
from failstop.runtime.money import NANO_PER_USD

if TYPE_CHECKING:
    from failstop.properties.linearizable import Gap, Reference
    from failstop.properties.target import AnyTarget, Session
    from failstop.runtime.limits import Limits


class StubFailed(Exception):  # noqa: N818 - it tells what happened
    """What a stub raises that was told to fail."""


@dataclass(frozen=True, slots=True)
class Call:
    """Dispatch a stub. reserve, cost: nano-dollars; reserve None declares nothing.

    fails: how many attempts raise before one returns. inside: moves that the stub makes before it ends.
    """

    context: str = ""
    reserve: int | None = 0
    cost: int = 0
    tool: bool = False
    fails: int = 0
    retries: int = 0
    inside: tuple[ChainMove, ...] = ()


@dataclass(frozen=True, slots=True)
class CloseIt:
    """Close a context."""

    context: str = ""


@dataclass(frozen=True, slots=True)
class HaltIt:
    """Halt the chain."""

    context: str = ""


@dataclass(frozen=True, slots=True)
class LetPass:
    """Let nanoseconds pass."""

    duration_ns: int


ChainMove: TypeAlias = "Call | CloseIt | HaltIt | LetPass"


@dataclass(frozen=True, slots=True)
class ChainSubject:
    """A root under limits, with as many children, named "/1", "/2", that share them.

    narrower: further contexts by their paths, such as "/3" or "/1/1", each after its parent, with limits of their own.
    """

    limits: Limits
    children: int = 0
    narrower: tuple[tuple[str, Limits], ...] = ()
    name: str = "chain"
    ignored: tuple[type, ...] = (ExecutionGraph, World, Lane)

    def told(self, gap: Gap) -> str:
        """See Subject."""
        answer = getattr(gap.event, "answer", gap.event)
        return f"thread {gap.event.lane + 1} was told {answer!r}, which nothing explains after {_told(gap.states)}"

    def reference(self, *, exact: bool) -> Reference:
        """See Subject."""
        if not exact:
            return cast("Reference", CeilingsReference(self.limits))
        sharing = tuple((f"/{number + 1}", None) for number in range(self.children))
        return cast("Reference", ChainReference(self.limits, (*sharing, *self.narrower)))

    def open(self, target: AnyTarget) -> ChainInstrument:
        """See Subject."""
        if isinstance(target, DrivingTarget):
            raise NotOffered("it plays planners in a loop of its own")
        world = World(self.limits, real_time=target.real_time, hangs=False)
        if not target.real_time:
            world.clock = StillClock()
        root = target.open(world.limits, world)
        world.begin()
        sessions = {"": root, **{f"/{number + 1}": root.child() for number in range(self.children)}}
        for name, limits in self.narrower:
            parent = sessions[name.rpartition("/")[0]]
            if not isinstance(parent, NarrowingSession):
                raise NotOffered("its children cannot have limits of their own")
            sessions[name] = parent.narrower(limits)
        return ChainInstrument(sessions, world, ("", *(name for name, _ in self.narrower)))


class ChainInstrument:
    """The sessions of one chain, by name; limited: those with limits of their own, which can be looked at."""

    def __init__(self, sessions: dict[str, Session], world: World, limited: tuple[str, ...] = ("",)) -> None:
        self.sessions = sessions
        self._limited = limited
        self._world = world
        self._numbers: dict[int, itertools.count[int]] = {}

    def play(self, move: ChainMove, lane: Lane) -> None:
        """See Instrument."""
        match move:
            case Call():
                self._call(move, lane)
            case CloseIt():
                lane.begin(Close(move.context))
                self.sessions[move.context].close()
                lane.end(DONE)
            case HaltIt():
                session = self.sessions[move.context]
                if not isinstance(session, HaltingSession):
                    raise NotOffered("its sessions have no halt()")
                lane.begin(Halt(move.context))
                session.halt()
                lane.end(DONE)
            case LetPass():
                if self._world.real_time:
                    raise NotOffered("its clock cannot be moved by hand")
                lane.begin(Advance(move.duration_ns))
                cast("StillClock", self._world.clock).advance_ns(move.duration_ns)
                lane.end(DONE)

    def look(self, lane: Lane) -> None:
        """See Instrument."""
        for name in self._limited:
            session = self.sessions[name]
            if isinstance(session, CountingSession):
                lane.begin(Look(name))
                lane.end(session.counters())

    def close(self) -> None:
        """See Instrument."""
        self._world.end()

    def _call(self, move: Call, lane: Lane) -> None:
        attempts = _Attempts(move, lane, self, self._numbers.setdefault(lane.number, itertools.count(1)))
        work = Work(
            tool="read_page",
            args={},
            run=attempts.run,
            arun=None,
            kind="tool" if move.tool else "llm",
            reserve=None if move.reserve is None else _dollars(move.reserve),
            retries=move.retries,
        )
        attempts.asked()
        try:
            self.sessions[move.context].call(work)
        except Refused as refusal:
            attempts.refused(refusal.stop)
        except StubFailed:
            attempts.ended()
        else:
            attempts.ended()


class _Attempts:
    """What the lane is told of one call, whose every attempt is two operations."""

    def __init__(self, move: Call, lane: Lane, instrument: ChainInstrument, numbers: itertools.count[int]) -> None:
        self._move = move
        self._lane = lane
        self._instrument = instrument
        self._numbers = numbers
        self._call = ""
        self._attempt = 0

    def asked(self, *, retry: bool = False) -> None:
        """Begin an admission; that of a retry at the moment when the attempt before it ends."""
        move = self._move
        self._call = f"{self._lane.number}.{next(self._numbers)}"
        asked = NO_ESTIMATE if move.reserve is None else move.reserve
        self._lane.begin(Admit(self._call, move.context, asked, move.tool, retry), together=retry)

    def run(self) -> Reply:
        """Be the stub."""
        self._attempt += 1
        if self._attempt > 1:
            self._lane.end(DONE)
        self._lane.end("admitted")
        for inner in self._move.inside:
            self._instrument.play(inner, self._lane)
        fails = self._attempt <= self._move.fails
        self._lane.begin(Settle(self._call, None if fails else self._move.cost))
        # Whether the runtime asks for another attempt shows only if there is one, or if it is refused.
        self.asked(retry=True)
        if fails:
            raise StubFailed
        return Reply("value", _dollars(self._move.cost))

    def refused(self, told: str) -> None:
        """End with a refusal, of the first attempt or of a later one."""
        if self._attempt:
            self._lane.end(DONE)
        self._lane.end(told)

    def ended(self) -> None:
        """End with what the stub returned or raised."""
        self._lane.withdraw()
        self._lane.end(DONE)


def _told(states: frozenset[Any]) -> str:
    """Say what had happened, by one of the states that were possible."""
    state = next(iter(states), None)
    if isinstance(state, Counted):
        seen = (state.spent, sum(held for _, held in state.held), state.steps, state.retries)
    elif isinstance(state, Chain):
        committed, reserved, steps, _, retries, _ = state.accounts[0][1].state
        seen = (committed, reserved, steps, retries)
    else:
        return "what was told before"
    spent, held, steps, retries = seen
    return f"{steps} dispatches, {spent} nano-dollars spent and {held} held, {retries} retries"


def _dollars(nano: int) -> Decimal:
    return Decimal(nano) / NANO_PER_USD
