"""kill -9 at any point: every log loads, replays and passes the audit, and no dispatch is missing from it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from failstop.properties.evidence import HOLDS, INCONCLUSIVE
from failstop.properties.run_audit import audit
from failstop.properties.tests import killed_agents
from failstop.runtime.audit.conformance import check_run
from failstop.runtime.audit.log import AuditLog, load
from failstop.runtime.audit.replay import replay

KILLS = 200
SEED = 20260101


@pytest.fixture(scope="module")
def graveyard(tmp_path_factory):
    """The logs of two hundred agents that were killed while they ran."""
    folder = tmp_path_factory.mktemp("killed")
    command = [sys.executable, killed_agents.__file__, str(folder), str(KILLS), str(SEED)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    killed, _ = map(int, done.stdout.split())
    assert killed == KILLS
    return sorted(folder.glob("*.jsonl"))


def test_every_log_loads_replays_and_obeys_its_limits(graveyard):
    """Two hundred kills: what is whole is read, what was cut is said, and no breach is on record."""
    assert len(graveyard) >= KILLS
    outcomes = []
    for path in graveyard:
        log = load(path)
        assert log.problem is None
        assert {record.verdict for record in audit(path)} == {HOLDS if log.events else INCONCLUSIVE}
        if log.events:
            outcomes.append(replay(log).outcome)
            assert check_run(log.events) == []
    assert outcomes.count("interrupted") > KILLS // 2


def test_no_tool_ran_that_is_not_on_record(graveyard):
    """The admission is on disk before the dispatch: the witness never counted more than the log admits."""
    for path in graveyard:
        ran = path.with_suffix(".witness").read_text().count("ran") if path.with_suffix(".witness").exists() else 0
        events = load(path).events
        admitted = sum(event.kind == "admit" and event.data["name"] == "work" for event in events)
        observed = sum(event.kind == "tool_result" for event in events)
        assert observed <= ran <= admitted
        assert admitted <= 55


def test_a_killed_log_can_be_appended_to_and_is_one_chain_again(graveyard):
    """The torn tail is mended once and reported; the new event is readable."""
    for path in graveyard[:20]:
        cut = load(path).truncated_at is not None
        with AuditLog.open(path) as log:
            log.record("note", {"after": "the kill"})
        again = load(path)
        assert again.whole
        assert again.events[-1].data == {"after": "the kill"}
        assert sum(event.kind == "truncated" for event in again.events) == cut
