"""A step guard and a circuit breaker in one pipeline (T6)."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from failstop.properties.references.breaker import Ask
from failstop.properties.references.chain import DONE
from failstop.properties.references.pipeline import GiveBack, PipelineReference, Take, Undo
from failstop.properties.subject import Lane, NotOffered
from failstop.properties.subjects.breaker import START_S, BreakerInstrument
from failstop.properties.subjects.moved_time import moved_time
from failstop.properties.subjects.still import StillClock
from failstop.properties.subjects.unexplained import unexplained
from failstop.properties.target import OffersPipeline
from failstop.runtime.clock import NS_PER_SECOND

if TYPE_CHECKING:
    from failstop.properties.linearizable import Gap, Reference
    from failstop.properties.target import AnyTarget


@dataclass(frozen=True, slots=True)
class PipelineSubject:
    """A pipeline with the settings of its policies; times in whole seconds. Its moves are those of the breaker."""

    max_steps: int
    threshold: int = 1
    recovery_s: int = 1
    lease_s: int = 10
    name: str = "pipeline"
    ignored: tuple[type, ...] = (Lane, ExitStack)

    def told(self, gap: Gap) -> str:
        """See Subject."""
        return unexplained(gap)

    def reference(self, *, exact: bool) -> Reference:
        """See Subject."""
        settings = (self.max_steps, self.threshold, self.recovery_s, self.lease_s)
        return cast("Reference", PipelineReference(*settings, exact=exact))

    def open(self, target: AnyTarget) -> PipelineInstrument:
        """See Subject."""
        if not isinstance(target, OffersPipeline):
            raise NotOffered("it has no pipeline()")
        clock = StillClock(START_S * NS_PER_SECOND)
        with ExitStack() as stack:
            if target.real_time:
                stack.enter_context(moved_time(clock))
            guarded = target.pipeline(self.max_steps, self.threshold, self.recovery_s, self.lease_s, clock)
            return PipelineInstrument(guarded, clock, stack.pop_all())


class PipelineInstrument(BreakerInstrument):
    """The same with an admission of up to three operations, one for each time that a policy is asked or told."""

    def asked(self, call: str, lane: Lane) -> None:
        """See BreakerInstrument."""
        lane.begin(Take(call))
        lane.begin(Ask(call), together=True)
        lane.begin(GiveBack(call), together=True)

    def admitted(self, lane: Lane) -> None:
        """See BreakerInstrument."""
        lane.withdraw()
        lane.end("held")
        lane.end("admitted")

    def refused(self, stop: str, lane: Lane) -> None:
        """See BreakerInstrument."""
        if stop == "breaker":
            lane.end("held")
            lane.end("breaker")
            lane.end(DONE)
        else:
            lane.withdraw()
            lane.withdraw()
            lane.end("steps" if stop == "steps" else "denied")

    def given_up(self, call: str, lane: Lane) -> None:
        """See BreakerInstrument."""
        lane.begin(Undo(call))
        lane.begin(GiveBack(call), together=True)

    def gave_up(self, lane: Lane) -> None:
        """See BreakerInstrument."""
        lane.end(DONE)
        lane.end(DONE)
