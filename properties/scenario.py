"""A scenario: a few short programs that run at once on one object, and the promise that they put to the test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from failstop.properties.subject import Move, Subject


@dataclass(frozen=True, slots=True)
class Scenario:
    """Programs, one a thread. promises: what a target must promise to be held to it, see PROMISES."""

    name: str
    tells: str
    guarantee: str
    promises: tuple[str, ...]
    subject: Subject
    programs: tuple[tuple[Move, ...], ...]
