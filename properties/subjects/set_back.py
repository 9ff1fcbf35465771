"""A tenant's quota where somebody sets the wall clock back all the time, which must give and take nothing (quota)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from failstop.properties.subject import NotOffered
from failstop.properties.subjects.quota import QuotaInstrument, QuotaSubject
from failstop.properties.subjects.still import StillClock
from failstop.properties.target import OffersQuota

if TYPE_CHECKING:
    from failstop.properties.target import AnyTarget


class SetBackClock(StillClock):
    """A clock whose wall reading goes back as time goes on."""

    def wall_ns(self) -> int:
        """See Clock."""
        return super().wall_ns() - 2 * self.now_ns()


@dataclass(frozen=True, slots=True)
class SetBackSubject(QuotaSubject):
    """The same as QuotaSubject, on such a clock."""

    name: str = "quota-set-back"

    def open(self, target: AnyTarget) -> QuotaInstrument:
        """See Subject."""
        if not isinstance(target, OffersQuota):
            raise NotOffered("it has no quota()")
        clock = SetBackClock(wall_start_ns=self.wall_ns)
        return QuotaInstrument(target.quota(self.max_runs, self.max_nano, clock), clock)
