"""What is said of an event that no order of the steps explains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from failstop.properties.linearizable import End

if TYPE_CHECKING:
    from failstop.properties.linearizable import Gap


def unexplained(gap: Gap) -> str:
    """Say it in a line: who was told what, and a state that was possible before."""
    event = gap.event
    told = f"was told {event.answer!r}" if isinstance(event, End) else f"asked {event!r}"
    before = next(iter(sorted(map(repr, gap.states))), "no state at all")
    return f"lane {event.lane + 1} {told}, which no order of the steps explains; before it, possibly: {before}"
