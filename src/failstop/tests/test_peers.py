"""The command that plays what the solver found in published protocols on a peer."""

import json
from pathlib import Path

from typer.testing import CliRunner

from failstop.__main__ import app


def test_the_command_ends_with_one_for_a_peer_that_does_as_the_solver_says(tmp_path):
    """It prints one document, keeps it as evidence, and its exit code is that of a violation."""
    result = CliRunner().invoke(app, ["peers", "--only", "published budget", "--json", "--evidence", str(tmp_path)])
    assert result.exit_code == 1, result.output
    (record,) = json.loads(result.stdout)["records"]
    assert record["detail"] == "limit 1: 1 refused, 1 accepted after a refusal"
    assert json.loads(Path(tmp_path, "peers-veronica-core.json").read_text())["records"] == [record]


def test_the_command_ends_with_zero_where_nothing_carries_over(tmp_path):
    """A clock that is set does not reach the breaker of this peer, and that is no violation."""
    only = "published breaker on a wall clock"
    result = CliRunner().invoke(app, ["peers", "--only", only, "--evidence", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "the trace does not carry over" in " ".join(result.stdout.split())


def test_the_command_refuses_a_protocol_of_which_nothing_is_played(tmp_path):
    """A name that is not known is bad usage and says which are near."""
    result = CliRunner().invoke(app, ["peers", "--only", "published step", "--evidence", str(tmp_path)])
    assert result.exit_code == 2
    assert "published steps" in result.stderr
