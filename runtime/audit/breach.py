"""One place in a run's log where the run did not keep to what it was promised to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Breach:
    """What event `seq` broke: G1, G2, G3, G5, loop, halt, approval, or audit (the log itself); numbers in its unit."""

    guarantee: str
    seq: int
    detail: str
    limit: int | None = None
    used: int | None = None

    def __str__(self) -> str:
        return f"{self.guarantee} at event {self.seq}: {self.detail}"
