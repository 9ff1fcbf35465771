"""One tenant's quota: runs in an hour, money in a day (quota)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from failstop.properties.references.chain import DONE, Advance
from failstop.properties.references.quota import GiveBack, Look, QuotaAction, QuotaReference, Settle, Start
from failstop.properties.subject import Lane, NotOffered
from failstop.properties.subjects.still import StillClock
from failstop.properties.subjects.unexplained import unexplained
from failstop.properties.target import OffersQuota, Refused

if TYPE_CHECKING:
    from failstop.properties.linearizable import Gap, Reference
    from failstop.properties.target import AnyTarget, Quota, Run


@dataclass(frozen=True, slots=True)
class QuotaSubject:
    """A quota with its limits, None: none; wall_ns: the time at which it begins, in nanoseconds since 1970."""

    max_runs: int | None = None
    max_nano: int | None = None
    wall_ns: int = 0
    name: str = "quota"
    ignored: tuple[type, ...] = (Lane,)

    def told(self, gap: Gap) -> str:
        """See Subject."""
        return unexplained(gap)

    def reference(self, *, exact: bool) -> Reference:
        """See Subject."""
        return cast("Reference", QuotaReference(self.max_runs, self.max_nano, self.wall_ns, exact=exact))

    def open(self, target: AnyTarget) -> QuotaInstrument:
        """See Subject."""
        if not isinstance(target, OffersQuota):
            raise NotOffered("it has no quota()")
        clock = StillClock(wall_start_ns=self.wall_ns)
        return QuotaInstrument(target.quota(self.max_runs, self.max_nano, clock), clock)


class QuotaInstrument:
    """The quota, and the runs that were started; a move on a run that was not started makes none."""

    def __init__(self, quota: Quota, clock: StillClock) -> None:
        self._quota = quota
        self._clock = clock
        self._runs: dict[str, Run] = {}

    def play(self, move: QuotaAction, lane: Lane) -> None:
        """See Instrument."""
        match move:
            case Start():
                self._start(move, lane)
            case Settle() | GiveBack():
                run = self._runs.get(move.run)
                if run is not None:
                    lane.begin(move)
                    lane.end(run.settle(move.cost) if isinstance(move, Settle) else run.release())
            case Advance():
                lane.begin(move)
                self._clock.advance_ns(move.duration_ns)
                lane.end(DONE)
            case Look():
                self.look(lane)

    def look(self, lane: Lane) -> None:
        """See Instrument."""
        lane.begin(Look())
        used = self._quota.used()
        if used is None:
            lane.withdraw()
        else:
            lane.end(used)

    def close(self) -> None:
        """See Instrument."""

    def _start(self, move: Start, lane: Lane) -> None:
        lane.begin(move)
        try:
            run = self._quota.start(move.reserve)
        except Refused as refusal:
            lane.end(refusal.stop)
        else:
            lane.end("started")
            self._runs[move.run] = run
