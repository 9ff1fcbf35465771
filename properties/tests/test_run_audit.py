"""A log judged: altered, empty, beyond its limits, or without what a judgement rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from failstop.properties.evidence import HOLDS, INCONCLUSIVE, VIOLATED
from failstop.properties.run_audit import audit, retell
from failstop.runtime.audit.log import AuditLog
from failstop.runtime.limits import Limits

if TYPE_CHECKING:
    from pathlib import Path

START = {"run": "run", "goal": "none", "limits": Limits(max_steps=1).to_mapping(), "autonomous": "WRITE", "tools": {}}


def admit(call: int) -> dict[str, Any]:
    """Say that a call was let in."""
    told = {"call": call, "context": "run", "call_kind": "tool", "name": "search", "retry": False}
    return {**told, "asked_nano": 0, "held_nano": 0, "at_ns": 0}


def settle(call: int) -> dict[str, Any]:
    """Say that it ended."""
    told = {"call": call, "held_nano": 0, "cost_nano": 0, "outcome": "ok", "cost_known": True}
    return {**told, "error": None, "at_ns": 0}


def written(folder: Path, *events: tuple[str, dict[str, Any]]) -> Path:
    """Write a log."""
    log = AuditLog.create(folder, "run")
    for kind, data in events:
        log.record(kind, data)
    log.close()
    return folder / "run.jsonl"


def test_a_run_beyond_its_limits_is_violated_where_it_is(tmp_path: Path) -> None:
    """The log is whole and the run is not right; the two are two records."""
    path = written(
        tmp_path,
        ("start", START),
        ("admit", admit(1)),
        ("settle", settle(1)),
        ("admit", admit(2)),
        ("settle", settle(2)),
    )
    verdicts = {record.guarantee: record.verdict for record in audit(path)}
    assert verdicts["audit"] == HOLDS
    assert verdicts["G2"] == VIOLATED
    assert verdicts["G1"] == HOLDS
    (broken,) = [record for record in audit(path) if record.verdict == VIOLATED]
    assert broken.replay == f"failstop audit {path}"


def test_a_run_killed_before_its_first_event_did_nothing_wrong(tmp_path: Path) -> None:
    """There is nothing on record, and that is all that is said."""
    (record,) = audit(written(tmp_path))
    assert (record.verdict, record.detail) == (HOLDS, "0 events, unaltered")


def test_a_log_without_its_start_cannot_be_judged(tmp_path: Path) -> None:
    """Without the limits nobody can say whether they were kept."""
    verdicts = [record.verdict for record in audit(written(tmp_path, ("admit", admit(1))))]
    assert verdicts == [HOLDS, INCONCLUSIVE]


def test_what_cannot_be_rebuilt_is_not_told(tmp_path: Path) -> None:
    """A story from a log that lacks its start would be made up."""
    record = retell(written(tmp_path, ("admit", admit(1))))
    assert record.verdict == VIOLATED
    assert "story" not in record.about
