"""A step counter that admits exactly its limit: the check comes before the increment (G2)."""

from __future__ import annotations


def step(taken: int, limit: int) -> tuple[int, bool]:
    """Take one step if fewer than `limit` are taken: (steps taken, admitted). A negative limit is none."""
    if 0 <= limit <= taken:
        return taken, False
    return taken + 1, True


def give_back(taken: int) -> int:
    """Undo one admitted step."""
    if taken > 0:
        return taken - 1
    return taken
