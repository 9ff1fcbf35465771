"""The record: what one check found out about one promise of one target. Reports read records and nothing else."""

from __future__ import annotations

import json
import math
import os
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SCHEMA = 1

HOLDS = "holds"
NOT_OFFERED = "not offered"
INCONCLUSIVE = "inconclusive"
VIOLATED = "violated"

VERDICTS = (NOT_OFFERED, HOLDS, INCONCLUSIVE, VIOLATED)
"""From the best to the worst; of several, the worst wins. A check that crashed or did not finish is inconclusive."""

GUARANTEES = (
    *("G1", "G2", "G3", "G4", "G5", "G6"),
    *("T1", "T2", "T3", "T4", "T5", "T6"),
    *("halt", "approval", "audit", "quota", "loop", "happy-path"),
)
LAYERS = ("chaos", "machines", "schedules", "stress", "models", "code")


class EvidenceError(ValueError):
    """A record or a file of records that says something which cannot be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One finding; raises EvidenceError for what the schema does not allow.

    subject: planner, protocol, mutant or obligation. detail: one sentence with the witness's numbers. effort: numbers
    only. replay: the command that shows a violation again, which each violation has. about: texts for the reader.
    """

    guarantee: str
    target: str
    layer: str
    subject: str
    verdict: str
    detail: str
    effort: Mapping[str, int | float] = field(default_factory=dict)
    replay: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    about: Mapping[str, str] = field(default_factory=dict)
    schema: int = SCHEMA

    def __post_init__(self) -> None:
        _expect(self.schema == SCHEMA, "schema", self.schema, f"{SCHEMA}")
        _expect(self.guarantee in GUARANTEES, "guarantee", self.guarantee, f"one of {', '.join(GUARANTEES)}")
        _expect(self.layer in LAYERS, "layer", self.layer, f"one of {', '.join(LAYERS)}")
        _expect(self.verdict in VERDICTS, "verdict", self.verdict, f"one of {', '.join(VERDICTS)}")
        for name in ("target", "subject", "detail"):
            _expect(_is_text(getattr(self, name)), name, getattr(self, name), "a text that is not empty")
        _expect(all(_is_number(number) for number in self.effort.values()), "effort", self.effort, "numbers")
        for name in ("versions", "about"):
            texts = getattr(self, name)
            _expect(all(isinstance(text, str) for text in texts.values()), name, texts, "texts")
        _expect(self.replay is None or _is_text(self.replay), "replay", self.replay, "a command or None")
        _expect(self.verdict != VIOLATED or self.replay is not None, "replay", None, "a command, for a violation")

    def to_json(self) -> dict[str, Any]:
        """Give the record as JSON says it."""
        return asdict(self)

    @classmethod
    def from_json(cls, given: object) -> Record:
        """Read a record; raises EvidenceError for an unknown or missing field."""
        if not isinstance(given, dict):
            raise EvidenceError(f"a record is {given!r:.80}; expected an object")
        try:
            return cls(**given)
        except (TypeError, AttributeError) as error:
            raise EvidenceError(f"not a record: {error}") from error


def worst(verdicts: Iterable[str]) -> str:
    """Combine verdicts; raises EvidenceError for none at all, since nothing was checked then."""
    given = list(verdicts)
    if not given:
        raise EvidenceError("no verdict to combine; nothing was checked")
    return max(given, key=VERDICTS.index)


def document(records: Iterable[Record]) -> str:
    """Give the one document that every command prints with --json."""
    return json.dumps({"records": [record.to_json() for record in records]}, indent=2, allow_nan=False)


def read(path: Path) -> list[Record]:
    """Read a file of records; raises EvidenceError or OSError."""
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
        records = list(given["records"])
    except (ValueError, KeyError, TypeError) as error:
        raise EvidenceError(f"{path} is not a document of records: {error}") from error
    return [Record.from_json(record) for record in records]


def write(path: Path, records: Iterable[Record]) -> None:
    """Write a file of records, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(handle, "w", encoding="utf-8") as file:  # noqa: PTH123 - a handle, not a path
            file.write(document(records) + "\n")
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def merged(old: Iterable[Record], new: Iterable[Record]) -> list[Record]:
    """Put new findings in the place of old ones about the same: target, layer, subject and misbehaving tools."""
    return list({_about(record): record for record in (*old, *new)}.values())


def _about(record: Record) -> tuple[str, ...]:
    return (record.target, record.layer, record.subject, record.about.get("tools", ""))


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value.strip() != ""


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _expect(holds: bool, field: str, value: object, expected: str) -> None:
    if not holds:
        raise EvidenceError(f"{field} is {value!r:.80}; expected {expected}")
