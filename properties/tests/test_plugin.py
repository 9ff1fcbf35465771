"""The plugin for pytest: a user's own runtime is checked by a user's own suite."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.once

ADAPTER = """\
from failstop.properties.targets.failstop import FailstopTarget
from failstop.properties.target import Refused


class Mine(FailstopTarget):
    name = "mine"


class Lax(Mine):
    def open(self, limits, world):
        from failstop.runtime.limits import Limits
        return super().open(Limits(), world)
"""


def ran(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a project of its own."""
    (folder / "adapter.py").write_text(ADAPTER)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def test_a_target_that_keeps_its_promises_passes(tmp_path: Path):
    """Every scenario is a test; the user's tests run besides."""
    (tmp_path / "test_own.py").write_text("def test_own():\n    assert True\n")
    result = ran(tmp_path, "--failstop-target=adapter:Mine", "--failstop-layer=schedules")
    assert result.returncode == 0, result.stdout
    assert "failed" not in result.stdout


def test_a_broken_promise_fails_with_a_command_that_shows_it(tmp_path: Path):
    """And the command is one line."""
    result = ran(tmp_path, "--failstop-target=adapter:Lax", "--failstop-layer=schedules", "-k", "last-step]")
    assert result.returncode == 1
    (line,) = [line for line in result.stdout.splitlines() if "failstop replay" in line]
    again = subprocess.run(
        [sys.executable, "-m", *line.split()], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert again.returncode == 1
    assert "admitted" in again.stdout


def test_what_is_no_target_or_layer_is_said_at_once(tmp_path: Path):
    """Before anything is played."""
    nothing = ran(tmp_path, "--failstop-target=adapter:Nothing")
    assert (nothing.returncode, "adapter:Nothing" in nothing.stderr) == (4, True)
    layer = ran(tmp_path, "--failstop-target=adapter:Mine", "--failstop-layer=schedule")
    assert (layer.returncode, "'schedule' is not known" in layer.stderr) == (4, True)


def test_without_a_target_nothing_is_added(tmp_path: Path):
    """Whoever has failstop installed and does not ask for it sees nothing of it."""
    (tmp_path / "test_own.py").write_text("def test_own():\n    assert True\n")
    assert "1 passed" in ran(tmp_path).stdout
