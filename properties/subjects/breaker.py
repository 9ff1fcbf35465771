"""A circuit breaker, and what calls through it may come to (G4)."""

from __future__ import annotations

import itertools
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, cast

from failstop.properties.references.breaker import Ask, Breaker, BreakerReference, Look, Settle, seen
from failstop.properties.references.chain import DONE, Advance
from failstop.properties.subject import Lane, NotOffered
from failstop.properties.subjects.chain import LetPass, StubFailed
from failstop.properties.subjects.moved_time import moved_time
from failstop.properties.subjects.still import StillClock
from failstop.properties.subjects.unexplained import unexplained
from failstop.properties.target import (
    CountingGuarded,
    LosingGuarded,
    OffersBreaker,
    Refused,
    ReleasingGuarded,
)
from failstop.runtime.clock import NS_PER_SECOND
from failstop.runtime.cores.breaker import FAILURE, NEITHER, SUCCESS

if TYPE_CHECKING:
    from failstop.properties.linearizable import Gap, Reference
    from failstop.properties.target import AnyTarget, Guarded

START_S = 1000
"""When the clocks begin: by no accident zero, and small, so that seconds as floats are exact enough."""


class StubCancelled(BaseException):
    """What a stub raises whose end is neither a success nor a failure."""


@dataclass(frozen=True, slots=True)
class Call:
    """Dispatch a stub, which makes the moves inside, and then returns, raises, or is cancelled (neither).

    hangs: nobody ever learns how it ended.
    """

    fails: bool = False
    neither: bool = False
    hangs: bool = False
    inside: tuple[GuardedMove, ...] = ()


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Ask to be let in, and then dispatch nothing."""


GuardedMove: TypeAlias = "Call | GiveUp | LetPass"


@dataclass(frozen=True, slots=True)
class BreakerSubject:
    """A breaker with its settings; times in whole seconds."""

    threshold: int = 1
    recovery_s: int = 1
    lease_s: int = 10
    name: str = "breaker"
    ignored: tuple[type, ...] = (Lane, ExitStack)

    def told(self, gap: Gap) -> str:
        """See Subject."""
        return told_of_breaker(gap, [state for state in gap.states if isinstance(state, Breaker)])

    def reference(self, *, exact: bool) -> Reference:
        """See Subject."""
        reference = BreakerReference(self.threshold, self.recovery_s, self.lease_s, exact=exact)
        return cast("Reference", reference)

    def open(self, target: AnyTarget) -> BreakerInstrument:
        """See Subject."""
        if not isinstance(target, OffersBreaker):
            raise NotOffered("it has no breaker()")
        clock = StillClock(START_S * NS_PER_SECOND)
        with ExitStack() as stack:
            if target.real_time:
                stack.enter_context(moved_time(clock))
            guarded = target.breaker(self.threshold, self.recovery_s, self.lease_s, clock)
            return BreakerInstrument(guarded, clock, stack.pop_all())


class BreakerInstrument:
    """What guards the calls, its clock, and what is to be undone in the end."""

    def __init__(self, guarded: Guarded, clock: StillClock, undone: ExitStack) -> None:
        self.guarded = guarded
        self._clock = clock
        self._undone = undone
        self._numbers: dict[int, itertools.count[int]] = {}

    def play(self, move: GuardedMove, lane: Lane) -> None:
        """See Instrument."""
        match move:
            case Call():
                self._call(move, lane)
            case GiveUp():
                self._give_up(lane)
            case LetPass():
                lane.begin(Advance(move.duration_ns))
                self._clock.advance_ns(move.duration_ns)
                lane.end(DONE)

    def look(self, lane: Lane) -> None:
        """See Instrument."""
        if isinstance(self.guarded, CountingGuarded):
            lane.begin(Look())
            lane.end(self.guarded.counters())

    def close(self) -> None:
        """See Instrument."""
        self._undone.close()

    def asked(self, call: str, lane: Lane) -> None:
        """Note that a call asks to be let in."""
        lane.begin(Ask(call))

    def admitted(self, lane: Lane) -> None:
        """Note that it was."""
        lane.end("admitted")

    def refused(self, stop: str, lane: Lane) -> None:
        """Note that it was not."""
        lane.end("breaker" if stop == "breaker" else "denied")

    def given_up(self, call: str, lane: Lane) -> None:
        """Note that a call that was let in will not be dispatched."""
        lane.begin(Settle(call, NEITHER))

    def gave_up(self, lane: Lane) -> None:
        """Note that what it took is back."""
        lane.end(DONE)

    def _call(self, move: Call, lane: Lane) -> None:
        if move.hangs and not isinstance(self.guarded, LosingGuarded):
            raise NotOffered("its calls cannot be lost")
        call = self._next(lane)
        dispatch = _Dispatch(move, call, lane, self)
        self.asked(call, lane)
        try:
            if move.hangs:
                cast("LosingGuarded", self.guarded).lose(dispatch.run)
            else:
                self.guarded.call(dispatch.run)
        except Refused as refusal:
            self.refused(refusal.stop, lane)
        except (StubFailed, StubCancelled):
            lane.end(DONE)
        else:
            if not (move.hangs and dispatch.ran):
                lane.end(DONE)

    def _give_up(self, lane: Lane) -> None:
        if not isinstance(self.guarded, ReleasingGuarded):
            raise NotOffered("its calls cannot be given up")
        call = self._next(lane)

        def let_in() -> None:
            self.admitted(lane)
            self.given_up(call, lane)

        self.asked(call, lane)
        try:
            self.guarded.give_up(let_in)
        except Refused as refusal:
            self.refused(refusal.stop, lane)
        else:
            self.gave_up(lane)

    def _next(self, lane: Lane) -> str:
        return f"{lane.number}.{next(self._numbers.setdefault(lane.number, itertools.count(1)))}"


class _Dispatch:
    """The stub of one call."""

    def __init__(self, move: Call, call: str, lane: Lane, instrument: BreakerInstrument) -> None:
        self._move = move
        self._call = call
        self._lane = lane
        self._instrument = instrument
        self.ran = False

    def run(self) -> object:
        """Be the stub."""
        move = self._move
        if self.ran and move.hangs:
            # A second dispatch answers something that nobody asked for; what is begun here is never answered so.
            self._lane.begin(Settle(self._call, NEITHER))
        self.ran = True
        self._instrument.admitted(self._lane)
        for inner in move.inside:
            self._instrument.play(inner, self._lane)
        if not move.hangs:
            outcome = NEITHER if move.neither else FAILURE if move.fails else SUCCESS
            self._lane.begin(Settle(self._call, outcome))
        if move.neither:
            raise StubCancelled
        if move.fails:
            raise StubFailed
        return "value"


def told_of_breaker(gap: Gap, breakers: list[Breaker]) -> str:
    """Say it in a line: who was told what, and how long the breaker had to keep everybody out."""
    left, breaker = min(((each.state[3] - each.now, each) for each in breakers), default=(0, Breaker()))
    if getattr(gap.event, "answer", None) != "admitted" or left <= 0:
        return unexplained(gap)
    seconds = f"for another {left / NS_PER_SECOND:g} s"
    why = (
        f"the breaker was open {seconds}" if seen(breaker) == "open" else f"a probe was out, its lease lasted {seconds}"
    )
    return f"thread {gap.event.lane + 1} was let in although {why}"
