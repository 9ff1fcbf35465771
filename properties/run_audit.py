"""Turns a run's log into records: is it unaltered, did the run keep to its limits, and what does it replay to.

A pass says that what was logged obeyed. What never was logged is for the containment suite's witness to find.
"""

from __future__ import annotations

import platform
import shlex
from importlib.metadata import version
from typing import TYPE_CHECKING

from failstop.properties.evidence import HOLDS, INCONCLUSIVE, VIOLATED, Record, worst
from failstop.runtime.agent.outcome import Outcome
from failstop.runtime.audit.conformance import check_run
from failstop.runtime.audit.log import load
from failstop.runtime.audit.replay import ReplayError, replay, story
from failstop.runtime.audit.replayed import INTERRUPTED

if TYPE_CHECKING:
    from pathlib import Path

    from failstop.runtime.audit.breach import Breach
    from failstop.runtime.audit.log import LoadedLog

JUDGED = ("G1", "G2", "G3", "G5", "loop", "halt", "approval")
"""The guarantees that a log can be judged by."""


def audit(path: Path, pin: str | None = None) -> list[Record]:
    """Judge a log: a record for the log itself, and one a guarantee for the run; raises OSError.

    pin: the hash of an event that is known to have been written. Every event is on disk before the next thing happens,
    so a run that was killed did nothing that is not in its log: it is judged like any other. But the log of a run that
    was killed and one whose end was removed look alike, unless there is a pin, and the record says so.
    """
    return _Judge(load(path, pin=pin), pin).records()


def retell(path: Path, pin: str | None = None) -> Record:
    """Rebuild a run from its log and tell it, with the verdict of its audit; the story stands in `about`.

    Raises OSError.
    """
    return _Judge(load(path, pin=pin), pin).told()


class _Judge:
    """One log and what can be said of it."""

    def __init__(self, log: LoadedLog, pin: str | None) -> None:
        self._log = log
        self._pin = [] if pin is None else ["--pin", pin]

    def records(self) -> list[Record]:
        log, unaltered = self._log, f"{len(self._log.events)} events, unaltered"
        if log.problem is not None:
            return [self._record("audit", VIOLATED, f"the log was altered: {log.problem}")]
        if not log.events:
            return [self._record("audit", INCONCLUSIVE, f"there is no whole event: nothing is on record{_cut(log)}")]
        try:
            breaches = check_run(log.events)
        except ReplayError as error:
            whole = self._record("audit", HOLDS, unaltered + _cut(log))
            return [whole, self._record("audit", INCONCLUSIVE, f"the run cannot be judged: {error}")]
        try:
            missing = _missing(log)
        except ReplayError as error:
            whole = self._record("audit", HOLDS, unaltered + _cut(log))
            return [whole, self._record("audit", INCONCLUSIVE, f"the run cannot be rebuilt: {error}")]
        itself = self._judged("audit", "the log contradicts itself: ", breaches, unaltered + missing)
        obeyed = f"nothing on record breaks it{_elsewhere(log)}{missing}"
        return [itself, *(self._judged(each, "", breaches, obeyed) for each in JUDGED)]

    def told(self) -> Record:
        records = self.records()
        verdict = worst(record.verdict for record in records)
        doubt = next((f"; {each.guarantee}: {each.detail}" for each in records if each.verdict == verdict != HOLDS), "")
        try:
            run = replay(self._log)
        except ReplayError as error:
            return self._record("audit", verdict, f"the run cannot be rebuilt: {error}")
        told = {"outcome": run.outcome, "story": "\n".join(story(run)), "error": run.error or ""}
        counted = run.counters
        summed = f"replayed to {run.outcome} after {counted.steps} steps and {counted.retries} retries"
        return self._record("audit", verdict, summed + doubt, told)

    def _judged(self, guarantee: str, what: str, breaches: list[Breach], obeyed: str) -> Record:
        found = [str(breach) for breach in breaches if breach.guarantee == guarantee]
        if found:
            return self._record(guarantee, VIOLATED, what + "; ".join(found))
        return self._record(guarantee, HOLDS, obeyed)

    def _record(self, guarantee: str, verdict: str, detail: str, about: dict[str, str] | None = None) -> Record:
        log = self._log
        return Record(
            guarantee=guarantee,
            target="failstop",
            layer="chaos",
            subject=log.path.stem,
            verdict=verdict,
            detail=detail,
            effort={"events": len(log.events), "torn_bytes": log.torn_bytes},
            replay=shlex.join(["failstop", "audit", str(log.path), *self._pin]) if verdict == VIOLATED else None,
            versions={"failstop": version("failstop"), "python": platform.python_version()},
            about=about or {},
        )


def _missing(log: LoadedLog) -> str:
    """Say what of the run is not in its log; the empty text if nothing is missing. Raises ReplayError."""
    outcome = replay(log).outcome
    if any(event.kind == "finish" for event in log.events):
        return _cut(log)
    if outcome == Outcome.NEEDS_APPROVAL:
        return f", up to where the run waits for a person{_cut(log)}"
    if outcome == INTERRUPTED:
        return f", up to where the log ends before the run did: killed, or its end was removed{_cut(log)}"
    return _cut(log)


def _elsewhere(log: LoadedLog) -> str:
    """Say where the calls of a sub-agent's run are on record: with the ledger that they drew on."""
    parent = next((event.data.get("parent") for event in log.events if event.kind == "start"), None)
    return "" if parent is None else f"; its dispatches and costs are in the log of the run of {parent!r}"


def _cut(log: LoadedLog) -> str:
    if log.truncated_at is None:
        return ""
    return f"; cut off in the middle of an event at byte {log.truncated_at}, {log.torn_bytes} bytes of it left"
