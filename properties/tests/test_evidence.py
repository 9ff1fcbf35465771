"""A record cannot say what the schema does not allow, and a file of them is there whole or not at all."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest

from failstop.properties.evidence import (
    HOLDS,
    INCONCLUSIVE,
    NOT_OFFERED,
    VIOLATED,
    EvidenceError,
    Record,
    document,
    merged,
    read,
    worst,
    write,
)

if TYPE_CHECKING:
    from pathlib import Path

GOOD: dict[str, Any] = {
    "guarantee": "G2",
    "target": "failstop",
    "layer": "chaos",
    "subject": "never-finishes",
    "verdict": HOLDS,
    "detail": "5 calls dispatched under a ceiling of 5 steps",
    "effort": {"dispatches": 5},
    "versions": {"failstop": "0.1.0"},
}


class TestRecords:
    """Checked when they are made."""

    def test_a_record_survives_json(self) -> None:
        """Nothing is lost on the way to a file and back."""
        record = Record(**GOOD)
        assert Record.from_json(json.loads(json.dumps(record.to_json()))) == record
        assert record.to_json()["schema"] == 1

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("guarantee", "G7"),
            ("layer", "hope"),
            ("verdict", "passed"),
            ("detail", " "),
            ("target", 3),
            ("effort", {"dispatches": "five"}),
            ("effort", {"dispatches": True}),
            ("effort", {"dispatches": math.nan}),
            ("versions", {"failstop": 1}),
            ("schema", 2),
            ("replay", ""),
        ],
    )
    def test_what_cannot_be_is_refused_by_name(self, field: str, value: object) -> None:
        """A report must not have to guess."""
        with pytest.raises(EvidenceError, match=field):
            Record(**{**GOOD, field: value})

    def test_a_violation_needs_the_command_that_shows_it_again(self) -> None:
        """Every violation prints one command that reproduces it."""
        with pytest.raises(EvidenceError, match="replay"):
            Record(**{**GOOD, "verdict": VIOLATED})

    @pytest.mark.parametrize("given", [[], {"subject": "x"}, {**GOOD, "colour": "red"}, {**GOOD, "effort": 3}])
    def test_a_foreign_object_is_not_read_as_a_record(self, given: object) -> None:
        """A field too many is refused as one too few is."""
        with pytest.raises(EvidenceError):
            Record.from_json(given)


class TestCombining:
    """The worst wins, and nothing is no verdict."""

    @pytest.mark.parametrize(
        ("verdicts", "expected"),
        [
            ([HOLDS, NOT_OFFERED], HOLDS),
            ([HOLDS, INCONCLUSIVE], INCONCLUSIVE),
            ([VIOLATED, HOLDS, INCONCLUSIVE], VIOLATED),
            ([NOT_OFFERED], NOT_OFFERED),
        ],
    )
    def test_the_worst_verdict_wins(self, verdicts: list[str], expected: str) -> None:
        """An inconclusive check is never shown as one that holds."""
        assert worst(verdicts) == expected

    def test_no_verdict_at_all_is_an_error(self) -> None:
        """A check of nothing must not look like success."""
        with pytest.raises(EvidenceError):
            worst([])


class TestMerging:
    """New findings beside old ones."""

    def test_only_the_same_finding_is_replaced(self) -> None:
        """The same planner of the same target under the same tools, in its old place."""
        old = [Record(**{**GOOD, "subject": subject, "detail": "old"}) for subject in ("a", "b")]
        again = Record(**{**GOOD, "subject": "a", "detail": "new"})
        slow = Record(**{**GOOD, "subject": "b", "detail": "new", "about": {"tools": "slow"}})
        assert merged(old, [again, slow]) == [again, old[1], slow]


class TestFiles:
    """One document, replaced in one step."""

    def test_what_was_written_is_read_back(self, tmp_path: Path) -> None:
        """The folder is made if it does not exist, and nothing else is left in it."""
        path = tmp_path / "evidence" / "chaos.json"
        write(path, [Record(**GOOD)])
        assert read(path) == [Record(**GOOD)]
        assert json.loads(path.read_text()) == json.loads(document([Record(**GOOD)]))
        assert [entry.name for entry in path.parent.iterdir()] == ["chaos.json"]

    def test_a_failure_leaves_the_old_file_as_it_was(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Half a document would be worse than an old one."""
        path = tmp_path / "chaos.json"
        write(path, [Record(**GOOD)])

        def full(_handle: int) -> None:
            raise OSError("no space left on device")

        monkeypatch.setattr("os.fsync", full)
        with pytest.raises(OSError, match="no space"):
            write(path, [])
        assert read(path) == [Record(**GOOD)]
        assert [entry.name for entry in tmp_path.iterdir()] == ["chaos.json"]

    @pytest.mark.parametrize("text", ["", "[]", '{"records": [{}]}', '{"records": 3}', "{"])
    def test_a_file_that_is_no_document_is_refused_by_name(self, tmp_path: Path, text: str) -> None:
        """Never read as an empty list."""
        path = tmp_path / "chaos.json"
        path.write_text(text)
        with pytest.raises(EvidenceError):
            read(path)
