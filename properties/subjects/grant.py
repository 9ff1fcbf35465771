"""A person's approval: one grant by itself, and the gated calls of a session (approval)."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from failstop.properties.references.chain import DONE, Advance
from failstop.properties.references.grant import (
    DISPATCHED,
    Answer,
    ApprovalReference,
    Approve,
    Ask,
    GrantAction,
    GrantReference,
    IsPending,
    Use,
)
from failstop.properties.subject import Lane, NotOffered
from failstop.properties.subjects.still import StillClock
from failstop.properties.subjects.unexplained import unexplained
from failstop.properties.target import DrivingTarget, OffersGrant, Refused, Reply, Work
from failstop.properties.world import World
from failstop.runtime.chain.graph import ExecutionGraph
from failstop.runtime.limits import Limits
from failstop.runtime.risk import RiskTier

if TYPE_CHECKING:
    from collections.abc import Callable

    from failstop.properties.linearizable import Gap, Reference
    from failstop.properties.target import AnyTarget, Approval, Session

_ASKED_ABOUT, _ANOTHER = "the call that was asked about", "another call"


@dataclass(frozen=True, slots=True)
class GrantSubject:
    """One grant, requested now; expires_ns: how long it can be answered and used, None: for ever."""

    expires_ns: int | None = None
    name: str = "grant"
    ignored: tuple[type, ...] = (Lane,)

    def told(self, gap: Gap) -> str:
        """See Subject."""
        return unexplained(gap)

    def reference(self, *, exact: bool) -> Reference:
        """See Subject."""
        return cast("Reference", GrantReference(self.expires_ns, exact=exact))

    def open(self, target: AnyTarget) -> GrantInstrument:
        """See Subject."""
        if not isinstance(target, OffersGrant):
            raise NotOffered("it has no grant()")
        clock = StillClock()
        return GrantInstrument(target.grant(_ASKED_ABOUT, self.expires_ns, clock), clock)


class GrantInstrument:
    """The grant, and the clock that it reads."""

    def __init__(self, grant: Approval, clock: StillClock) -> None:
        self._grant = grant
        self._clock = clock

    def play(self, move: GrantAction, lane: Lane) -> None:
        """See Instrument."""
        lane.begin(move)
        match move:
            case Answer():
                lane.end(self._grant.answer(move.approved))
            case Use():
                lane.end(self._grant.use(_ASKED_ABOUT if move.same else _ANOTHER))
            case IsPending():
                lane.end(self._grant.pending())
            case Advance():
                self._clock.advance_ns(move.duration_ns)
                lane.end(DONE)

    def look(self, lane: Lane) -> None:
        """See Instrument; to use it once more shows what became of it."""
        self.play(Use(), lane)

    def close(self) -> None:
        """See Instrument."""


@dataclass(frozen=True, slots=True)
class ApprovalSubject:
    """A session whose calls are all irreversible, so that each waits for a person."""

    name: str = "approval"
    ignored: tuple[type, ...] = (ExecutionGraph, World, Lane)

    def told(self, gap: Gap) -> str:
        """See Subject."""
        return unexplained(gap)

    def reference(self, *, exact: bool) -> Reference:
        """See Subject."""
        return cast("Reference", ApprovalReference(exact=exact))

    def open(self, target: AnyTarget) -> ApprovalInstrument:
        """See Subject."""
        if isinstance(target, DrivingTarget):
            raise NotOffered("it plays planners in a loop of its own")
        world = World(Limits(), real_time=target.real_time, hangs=False)
        session = target.open(world.limits, world)
        world.begin()
        return ApprovalInstrument(session, world)


class ApprovalInstrument:
    """The session, and the requests that wait; to approve what was not asked makes no operation."""

    def __init__(self, session: Session, world: World) -> None:
        self._session = session
        self._world = world
        self._requests: dict[str, object] = {}
        self._going_on: dict[int, _Told] = {}

    def play(self, move: Ask | Approve, lane: Lane) -> None:
        """See Instrument."""
        match move:
            case Ask():
                work = Work(
                    tool="send_email",
                    args={"to": move.call},
                    run=self._run,
                    arun=None,
                    tier=RiskTier.IRREVERSIBLE,
                    reserve=0,
                )
                request = self._told(move, lane, lambda: self._session.call(work))
                if request is not None:
                    self._requests[move.call] = request
            case Approve():
                request = self._requests.get(move.call)
                if request is not None:
                    self._told(move, lane, lambda: self._session.approve(request))

    def look(self, lane: Lane) -> None:
        """See Instrument; nothing is shown."""

    def close(self) -> None:
        """See Instrument."""
        self._world.end()

    def _told(self, move: Ask | Approve, lane: Lane, ask: Callable[[], object]) -> object | None:
        """Make the call and note what the stub saw, or the refusal, whose request is given."""
        told = self._going_on[threading.get_ident()] = _Told(move, lane)
        lane.begin(move)
        try:
            ask()
        except Refused as refusal:
            told.refused(refusal.stop)
            return refusal.request
        told.refused("nothing ran")
        return None

    def _run(self) -> Reply:
        """Be the stub; it runs on the thread that asked."""
        self._going_on[threading.get_ident()].dispatched()
        return Reply("sent", 0)


class _Told:
    """What one lane was told of one move."""

    def __init__(self, move: Ask | Approve, lane: Lane) -> None:
        self._move = move
        self._lane = lane
        self._is_told = False

    def dispatched(self) -> None:
        """End with a dispatch; a second one is told as a move of its own."""
        if self._is_told:
            self._lane.begin(self._move, together=True)
        self._is_told = True
        self._lane.end(DISPATCHED)

    def refused(self, told: str) -> None:
        """End with a refusal, unless the stub ran."""
        if not self._is_told:
            self._lane.end(told)
