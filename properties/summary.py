"""A pytest plugin: the suite runs against the failstop that is installed, and its last lines say what was checked.

    pytest -p failstop.properties.summary

Tests stand in the source tree and are not shipped, so pytest would load the package from beside them and a wheel would
pass untested. Loading every package before collection binds those names to the installed files; a module that came
from elsewhere all the same fails the run.
"""

from __future__ import annotations

import gc
import importlib
import pkgutil
import sys
from collections import Counter, defaultdict
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import pytest

import failstop

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(failstop.__file__).parent

_STRANGERS = "failstop strangers"
_of_workers: set[str] = set()


def pytest_configure() -> None:
    """Import every package of failstop, tests apart, before collection can import another copy."""
    for found in pkgutil.walk_packages(failstop.__path__, "failstop."):
        if found.ispkg and not _is_test(found.name):
            importlib.import_module(found.name)


def pytest_collection_finish() -> None:
    """Leave all that was collected out of the garbage collector's later rounds, some of which tests ask for."""
    gc.freeze()


def pytest_report_header() -> str:
    """Say which failstop is under test."""
    return f"failstop under test: {ROOT}"


def strangers() -> list[str]:
    """Modules of failstop that were not loaded from the place under test."""
    loaded = {name: getattr(module, "__file__", None) for name, module in list(sys.modules.items())}
    return sorted(
        f"{name} ({file})"
        for name, file in loaded.items()
        if file and name.startswith("failstop.") and not _is_test(name) and not Path(file).is_relative_to(ROOT)
    )


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Keep what a worker of pytest-xdist loaded from elsewhere; one that crashed tells nothing, and fails the run."""
    _of_workers.update(getattr(node, "workeroutput", {}).get(_STRANGERS, ()))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run that tested two copies of failstop, in this process or in a worker."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput[_STRANGERS] = strangers()
    elif strangers() or _of_workers:
        session.exitstatus = 1


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many checks passed, by layer."""
    terminalreporter.write_line(summary(_timed(terminalreporter, "passed"), "checks passed"))
    failed = [*_timed(terminalreporter, "failed"), *_timed(terminalreporter, "error")]
    if failed:
        terminalreporter.write_line(summary(failed, "checks FAILED"))
    for stranger in sorted({*strangers(), *_of_workers}):
        terminalreporter.write_line(f"not the failstop under test: {stranger}")


def summary(checks: Iterable[tuple[str, float]], what: str) -> str:
    """Count checks and their seconds by layer: `412 checks passed (chaos 58 in 2.9 s, planners 31 in 0.2 s, ...)`."""
    layers: Counter[str] = Counter()
    seconds: defaultdict[str, float] = defaultdict(float)
    for nodeid, duration in checks:
        layers[layer_of(nodeid)] += 1
        seconds[layer_of(nodeid)] += duration
    counts = ", ".join(f"{layer} {count} in {seconds[layer]:.1f} s" for layer, count in sorted(layers.items()))
    return f"{layers.total()} {what} ({counts})" if counts else f"0 {what}"


def layer_of(nodeid: str) -> str:
    """The folder that a test speaks of; a planner against a target, in `test_containment.py`, is `chaos`."""
    path = PurePosixPath(nodeid.partition("::")[0])
    if path.stem == "test_containment":
        return "chaos"
    parts = path.parts
    folder = parts[parts.index("tests") - 1] if "tests" in parts else path.stem
    return "command line" if folder == "failstop" else folder


def _timed(terminalreporter: pytest.TerminalReporter, kind: str) -> list[tuple[str, float]]:
    # What could not be collected took no time that anybody measured.
    return [(report.nodeid, getattr(report, "duration", 0.0)) for report in terminalreporter.getreports(kind)]


def _is_test(module: str) -> bool:
    parts = module.split(".")
    return "tests" in parts or parts[-1] == "conftest"
