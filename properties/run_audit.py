"""Turns a run's log into records: is it unaltered, did the run keep to its limits, and what does it replay to.

A pass says that what was logged obeyed. What never was logged is for the containment suite's witness to find.
"""

from __future__ import annotations

import platform
import shlex
from importlib.metadata import version
from typing import TYPE_CHECKING

from failstop.properties.evidence import HOLDS, INCONCLUSIVE, VIOLATED, Record
from failstop.runtime.audit.conformance import check_run
from failstop.runtime.audit.log import load
from failstop.runtime.audit.replay import ReplayedRun, ReplayError, replay, story

if TYPE_CHECKING:
    from pathlib import Path

    from failstop.runtime.audit.log import LoadedLog

JUDGED = ("G1", "G2", "G3", "G5", "loop", "halt", "approval")
"""The guarantees that a log can be judged by."""


def audit(path: Path) -> list[Record]:
    """Judge a log: a record for the log itself, and one a guarantee for the run; raises OSError."""
    log = load(path)
    if log.problem is not None:
        return [_record(path, log, "audit", VIOLATED, f"the log was altered: {log.problem}")]
    records = [_record(path, log, "audit", HOLDS, f"{len(log.events)} events, unaltered{_cut(log)}")]
    if not log.events:
        return records
    try:
        breaches = check_run(log.events)
    except ReplayError as error:
        return [*records, _record(path, log, "audit", INCONCLUSIVE, f"the run cannot be judged: {error}")]
    for guarantee in JUDGED:
        found = [str(breach) for breach in breaches if breach.guarantee == guarantee]
        verdict, detail = (VIOLATED, "; ".join(found)) if found else (HOLDS, "nothing on record breaks it")
        records.append(_record(path, log, guarantee, verdict, detail))
    return records


def retell(path: Path) -> Record:
    """Rebuild a run from its log and tell it; the story stands in `about`, line by line. Raises OSError."""
    log = load(path)
    try:
        run = replay(log)
    except ReplayError as error:
        # A log that was killed before its first event tells nothing, and that is no breach.
        verdict = VIOLATED if log.events or log.problem else INCONCLUSIVE
        return _record(path, log, "audit", verdict, f"the run cannot be rebuilt: {error}")
    told = {"outcome": run.outcome, "story": "\n".join(story(run))}
    return _record(path, log, "audit", HOLDS, _counted(run), {**told, "error": run.error or ""})


def _counted(run: ReplayedRun) -> str:
    counted = run.counters
    return f"replayed to {run.outcome} after {counted.steps} steps and {counted.retries} retries"


def _cut(log: LoadedLog) -> str:
    if log.truncated_at is None:
        return ""
    return f"; cut off in the middle of an event at byte {log.truncated_at}, {log.torn_bytes} bytes of it left"


def _record(
    path: Path, log: LoadedLog, guarantee: str, verdict: str, detail: str, about: dict[str, str] | None = None
) -> Record:
    return Record(
        guarantee=guarantee,
        target="failstop",
        layer="chaos",
        subject=path.stem,
        verdict=verdict,
        detail=detail,
        effort={"events": len(log.events), "torn_bytes": log.torn_bytes},
        replay=shlex.join(["failstop", "audit", str(path)]) if verdict == VIOLATED else None,
        versions={"failstop": version("failstop"), "python": platform.python_version()},
        about=about or {},
    )
