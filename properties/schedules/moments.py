"""What a search by conflicts is shown, so that it tries the orders that a history depends on."""

from __future__ import annotations


class _Ended:
    """How many operations of one lane have ended."""

    def __init__(self) -> None:
        self.count = 0


class Moments:
    """An end conflicts with a beginning, as a write with a read; two beginnings do not, nor the ends of two lanes."""

    def __init__(self, lanes: int) -> None:
        self.lanes = tuple(_Ended() for _ in range(lanes))
        self.started = 0

    def start(self, lane: int) -> None:
        """Conflict with every other start.

        frontrun 0.7 never lets another thread be the first to take a lock if that is the first thing that is shared.
        """
        self.started = lane

    def begin(self) -> None:
        """Be after all that ended."""
        for lane in self.lanes:
            lane.count  # noqa: B018 - it is read, which is all

    def end(self, lane: int) -> None:
        """Be before all that begins."""
        self.lanes[lane].count += 1
