"""Memory of a chain that runs for a million calls."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from failstop.runtime.chain.context import ExecutionContext
from failstop.runtime.limits import Limits

if TYPE_CHECKING:
    import pytest

PAGE_BYTES = 4096
CALLS = 10**6
WARM_UP = 20_000


def resident_bytes() -> int:
    """What the process holds in memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES


def test_a_million_calls_leave_memory_flat(capsys: pytest.CaptureFixture[str]) -> None:
    """Once the graph is full, a million further calls grow the process by less than a byte a call."""
    ctx = ExecutionContext(Limits(max_steps=2 * CALLS, max_cost_usd=1))
    for _ in range(WARM_UP):
        ctx.call(int, cost=0)
    before = resident_bytes()
    for _ in range(CALLS):
        ctx.call(int, cost=0)
    grown = resident_bytes() - before
    with capsys.disabled():
        print(f"\nmemory: {CALLS} calls grew the process by {grown} bytes")
    assert grown < CALLS
