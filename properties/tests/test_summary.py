"""The last lines of the suite, and the guard that it tested one failstop."""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING

from failstop.properties import summary

if TYPE_CHECKING:
    import pytest


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
