"""Loop detection: how often one and the same action came in a row."""

from __future__ import annotations


def turn(run: int, same: bool, max_repeats: int) -> tuple[int, bool]:
    """Count one action; (length of the run of equal actions, may it be dispatched). A negative limit is none."""
    run = run + 1 if same else 1
    return run, max_repeats < 0 or run <= max_repeats
