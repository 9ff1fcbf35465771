"""A step guard that stands alone (G2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from failstop.properties.references.chain import DONE
from failstop.properties.references.steps import Check, Look, Release, Reset, Step, StepsAction, StepsReference
from failstop.properties.subject import Lane, NotOffered
from failstop.properties.subjects.unexplained import unexplained
from failstop.properties.target import OffersSteps, Refused

if TYPE_CHECKING:
    from failstop.properties.linearizable import Gap, Reference
    from failstop.properties.target import AnyTarget, Steps


@dataclass(frozen=True, slots=True)
class StepsSubject:
    """A guard; limit None: none."""

    limit: int | None
    name: str = "steps"
    ignored: tuple[type, ...] = (Lane,)

    def told(self, gap: Gap) -> str:
        """See Subject."""
        return unexplained(gap)

    def reference(self, *, exact: bool) -> Reference:
        """See Subject."""
        return cast("Reference", StepsReference(self.limit, exact=exact))

    def open(self, target: AnyTarget) -> StepsInstrument:
        """See Subject."""
        if not isinstance(target, OffersSteps):
            raise NotOffered("it has no steps()")
        return StepsInstrument(target.steps(self.limit))


class StepsInstrument:
    """The guard, and the permits of the calls that it let in; to give back what was not taken makes no operation."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._permits: dict[str, object] = {}

    def play(self, move: StepsAction, lane: Lane) -> None:
        """See Instrument."""
        match move:
            case Step():
                lane.begin(move)
                lane.end(self._steps.step(move.result))
            case Check():
                self._check(move, lane)
            case Release():
                if move.call in self._permits:
                    permit = self._permits[move.call]
                    lane.begin(move)
                    self._steps.release(permit)
                    lane.end(DONE)
            case Reset():
                lane.begin(move)
                self._steps.reset()
                lane.end(DONE)
            case Look():
                raise TypeError("what is shown while others go on is no promise")

    def look(self, lane: Lane) -> None:
        """See Instrument."""
        lane.begin(Look())
        counters = self._steps.counters()
        if counters is None:
            lane.withdraw()
        else:
            lane.end(counters)

    def close(self) -> None:
        """See Instrument."""

    def _check(self, move: Check, lane: Lane) -> None:
        lane.begin(move)
        try:
            permit = self._steps.check()
        except Refused as refusal:
            lane.end(refusal.stop)
        else:
            lane.end("admitted")
            self._permits[move.call] = permit
