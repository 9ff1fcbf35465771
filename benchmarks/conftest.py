"""After the table of times: each row as a ratio to the bare lock of the same run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

BARE = "test_overhead[bare_lock]"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the ratios of the medians and of the minima."""
    session = getattr(config, "_benchmarksession", None)
    rows = {bench.name: bench.stats for bench in session.benchmarks} if session else {}
    if BARE not in rows:
        return
    bare = rows.pop(BARE)
    terminalreporter.write_line(
        f"\nx a bare lock ({bare.median * 1e9:.0f} ns acquire and release; {bare.rounds} rounds): median, minimum"
    )
    for name, stats in rows.items():
        ratios = f"{stats.median / bare.median:5.1f} {stats.min / bare.min:5.1f}"
        terminalreporter.write_line(f"{ratios}  {name.removeprefix('test_overhead[').removesuffix(']')}")
