"""A budget that stands alone: spends, and holds for calls in flight (G1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from failstop.properties.references.budget import (
    BudgetAction,
    BudgetReference,
    Check,
    Look,
    Release,
    Report,
    Reset,
    Spend,
)
from failstop.properties.references.chain import DONE
from failstop.properties.subject import Lane, NotOffered
from failstop.properties.subjects.unexplained import unexplained
from failstop.properties.target import OffersBudget, Refused

if TYPE_CHECKING:
    from failstop.properties.linearizable import Gap, Reference
    from failstop.properties.target import AnyTarget, Budget


@dataclass(frozen=True, slots=True)
class BudgetSubject:
    """A budget; limit in nano-dollars, None: none."""

    limit: int | None
    name: str = "budget"
    ignored: tuple[type, ...] = (Lane,)

    def told(self, gap: Gap) -> str:
        """See Subject."""
        return unexplained(gap)

    def reference(self, *, exact: bool) -> Reference:
        """See Subject."""
        return cast("Reference", BudgetReference(self.limit, exact=exact))

    def open(self, target: AnyTarget) -> BudgetInstrument:
        """See Subject."""
        if not isinstance(target, OffersBudget):
            raise NotOffered("it has no budget()")
        return BudgetInstrument(target.budget(self.limit))


class BudgetInstrument:
    """The budget, and the permits of the calls that it let in; a move on a call without one makes none."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._permits: dict[str, object] = {}

    def play(self, move: BudgetAction, lane: Lane) -> None:
        """See Instrument."""
        match move:
            case Spend():
                lane.begin(move)
                lane.end(self._budget.spend(move.nano))
            case Check():
                self._check(move, lane)
            case Release() | Report():
                self._end(move, lane)
            case Reset():
                lane.begin(move)
                self._budget.reset()
                lane.end(DONE)
            case Look():
                raise TypeError("what is shown while others go on is no promise")

    def look(self, lane: Lane) -> None:
        """See Instrument."""
        lane.begin(Look())
        counters = self._budget.counters()
        if counters is None:
            lane.withdraw()
        else:
            lane.end(counters)

    def close(self) -> None:
        """See Instrument."""

    def _check(self, move: Check, lane: Lane) -> None:
        lane.begin(move)
        try:
            permit = self._budget.check(move.reserve)
        except Refused as refusal:
            lane.end(refusal.stop)
        else:
            lane.end("admitted")
            self._permits[move.call] = permit

    def _end(self, move: Release | Report, lane: Lane) -> None:
        if move.call not in self._permits:
            return
        permit = self._permits[move.call]
        lane.begin(move)
        if isinstance(move, Release):
            self._budget.release(permit)
        else:
            self._budget.report(permit, move.cost)
        lane.end(DONE)
