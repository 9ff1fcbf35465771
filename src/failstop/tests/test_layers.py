"""The other layers from the command line: what was tried is told, and a word shows a finding again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from failstop.__main__ import app
from failstop.properties.evidence import read

UNLIMITED = "failstop.properties.tests.canaries:UNLIMITED"


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Evidence goes there."""
    monkeypatch.chdir(tmp_path)


def ran(*words: str) -> Result:
    """Run the command line."""
    return CliRunner().invoke(app, list(words))


def test_a_layer_tells_how_much_it_tried() -> None:
    """The last line has the numbers, and the records are in a file of the layer's own."""
    result = ran("check", "--layer", "schedules", "--scenario", "last-step", "--scenario", "last-cent")
    assert result.exit_code == 0, result.output
    assert "2 scenarios, 2 holds, 0 violated; 10 schedules" in result.stdout.splitlines()[-1]
    assert [record.layer for record in read(Path("evidence/schedules-failstop.json"))] == ["schedules"] * 2


def test_several_layers_give_one_document() -> None:
    """The planners are a layer like the others."""
    words = ["--layer", "chaos", "--planner", "never-finishes", "--layer", "stress", "--scenario", "last-step"]
    result = ran("check", *words, "--json")
    assert [record["layer"] for record in json.loads(result.stdout)["records"]] == ["chaos", "stress"]


def test_a_violation_is_shown_again_by_its_word() -> None:
    """Ten times of ten, and the word is told with the finding."""
    found = ran("check", UNLIMITED, "--layer", "schedules", "--scenario", "last-step")
    assert found.exit_code == 1
    (command,) = [line for line in found.stdout.splitlines() if "failstop replay " in line]
    for _ in range(10):
        again = ran("replay", command.split()[-1])
        assert again.exit_code == 1
        assert "thread 1 is told: admitted" in again.stdout
        assert "thread 2 is told: admitted" in again.stdout


def test_a_schedule_without_a_fault_is_zero() -> None:
    """The same schedule on a runtime that keeps its promise."""
    result = ran("replay", "schedules/failstop/last-step/0.1")
    assert (result.exit_code, "nothing is wrong" in result.stdout) == (0, True)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["check", "--layer", "schedule"], ["--layer", "'schedule'", "schedules"]),
        (["check", "--layer", "schedules", "--scenario", "last-stop"], ["--scenario", "'last-stop'", "last-step"]),
        (["check", "--layer", "machines", "--scenario", "chains"], ["--scenario", "'chains'", "chain"]),
        (["check", "--layer", "stress", "--scenario", "last-step", "--scenario", "last-step"], ["2 times"]),
        (["check", "--depth", "abyss"], ["--depth", "abyss"]),
        (["replay", "schedules/failstop/last-step"], ["schedules/TARGET/SCENARIO/SCHEDULE"]),
        (["replay", "schedules/failstop/last-stop/0"], ["'last-stop'", "last-step"]),
        (["replay", "schedules/failstop/last-step/x"], ["'x'", "0 or 1x3"]),
        (["replay", "schedules/failstopp/last-step/0"], ["'failstopp'", "failstop"]),
        (["replay", "machines/failstop/nonsense"], ["nonsense is no program"]),
    ],
)
def test_what_there_is_not_is_named(words: list[str], told: list[str]) -> None:
    """Exit code 2, one line, with what was meant."""
    result = ran(*words)
    assert result.exit_code == 2, result.output
    shown = " ".join(result.stderr.replace("│", " ").split())
    assert [part for part in told if part not in shown] == []
