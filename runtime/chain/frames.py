"""Which call the running code is inside of, across threads and tasks that copy their context."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TypeAlias

Frame: TypeAlias = "tuple[object, int, Frame | None]"
"""(chain, number of the call, the frame around it)."""

current: ContextVar[Frame | None] = ContextVar("failstop_frame", default=None)


def parent_on(chain: object, frame: Frame | None) -> int:
    """Give the number of the nearest enclosing call on `chain`, or 0."""
    while frame is not None:
        if frame[0] is chain:
            return frame[1]
        frame = frame[2]
    return 0
