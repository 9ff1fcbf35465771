"""The last lines of the suite, and the guard that it tested one failstop."""

from __future__ import annotations

import sys
import types

import pytest

from failstop.properties import summary


def test_checks_are_counted_by_the_folder_that_they_speak_of() -> None:
    """The path decides; parameters and classes do not."""
    checks = [
        ("src/failstop/runtime/tests/test_money.py::test_ten_dimes_are_a_dollar", 0.25),
        ("src/failstop/runtime/tests/test_money.py::TestRounding::test_up[tests/0.1]", 0.5),
        ("src/failstop/planners/tests/test_catalogue.py::test_a_name_is_unique", 0.04),
        ("src/failstop/properties/tests/test_containment.py::test_contained[slow]", 2.0),
    ]
    told = "4 checks passed (chaos 1 in 2.0 s, planners 1 in 0.0 s, runtime 2 in 0.8 s)"
    assert summary.summary(checks, "checks passed") == told


def test_a_run_without_checks_says_so() -> None:
    """Nothing checked is not a pass that looks like one."""
    assert summary.summary([], "checks passed") == "0 checks passed"


def test_a_module_from_another_copy_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second copy of failstop in the process means that some checks tested the wrong one."""
    before = summary.strangers()
    other = types.ModuleType("failstop.runtime.money")
    other.__file__ = "/elsewhere/failstop/runtime/money.py"
    monkeypatch.setitem(sys.modules, "failstop.runtime.money", other)
    assert before == []
    assert summary.strangers() == ["failstop.runtime.money (/elsewhere/failstop/runtime/money.py)"]


class Worker:
    """A worker of pytest-xdist, as the plugin sees it when it has ended."""

    def __init__(self, **told: object) -> None:
        self.workeroutput = told


class Session:
    """A session, of a worker if its configuration has somewhere to put what it tells."""

    def __init__(self, config: object) -> None:
        self.config = config
        self.exitstatus = 0


@pytest.fixture
def of_workers(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Nothing is known of workers: this very run may have some."""
    nothing: set[str] = set()
    monkeypatch.setattr(summary, "_of_workers", nothing)
    return nothing


def test_what_a_worker_loaded_from_elsewhere_fails_the_run(
    monkeypatch: pytest.MonkeyPatch, of_workers: set[str]
) -> None:
    """The worker tells, and the process that started it fails; one that crashed has nothing to tell."""
    monkeypatch.setattr(summary, "strangers", lambda: ["failstop.x (/elsewhere/x.py)"])
    worker = Worker()
    summary.pytest_sessionfinish(Session(worker))  # type: ignore[arg-type]
    monkeypatch.setattr(summary, "strangers", list)
    run = Session(object())
    summary.pytest_testnodedown(object())
    summary.pytest_sessionfinish(run)  # type: ignore[arg-type]
    assert run.exitstatus == 0
    summary.pytest_testnodedown(worker)
    summary.pytest_sessionfinish(run)  # type: ignore[arg-type]
    assert run.exitstatus == 1
    assert of_workers == {"failstop.x (/elsewhere/x.py)"}


def test_a_file_that_cannot_be_collected_is_counted_as_failed(of_workers: set[str]) -> None:
    """Its report has no duration."""

    class Terminal:
        def __init__(self) -> None:
            self.lines: list[str] = []

        def getreports(self, kind: str) -> list[object]:
            broken = types.SimpleNamespace(nodeid="src/failstop/runtime/tests/test_money.py")
            return [broken] if kind == "error" else []

        def write_line(self, line: str) -> None:
            self.lines.append(line)

    terminal = Terminal()
    summary.pytest_terminal_summary(terminal)  # type: ignore[arg-type]
    assert terminal.lines == ["0 checks passed", "1 checks FAILED (runtime 1 in 0.0 s)"]
