"""The table of proofs: every obligation stands in one row, in the column of whoever promised it."""

from __future__ import annotations

import io
import re

from rich.console import Console

from failstop.properties.evidence import HOLDS, VIOLATED, Record
from failstop.reports.proofs import print_proofs


def proved(guarantee: str, kind: str, target: str = "failstop", verdict: str = HOLDS) -> Record:
    """Make the record of one obligation."""
    return Record(
        guarantee=guarantee,
        target=target,
        layer="models",
        subject="toy: a sentence",
        verdict=verdict,
        detail="told",
        effort={"questions": 1, "solver_seconds": 0.5},
        replay="failstop prove" if verdict == VIOLATED else None,
        about={"kind": kind, "protocol": "toy", "sentence": "a sentence"},
    )


RECORDS = [
    proved("G5", "invariant"),
    proved("G5", "law", "as published", VIOLATED),
    proved("G5", "law", "as published"),
    proved("G1", "reachable"),
    proved("G2", "totals"),
]


def printed(width: int) -> list[str]:
    """Print the proofs, and give the lines."""
    file = io.StringIO()
    print_proofs(Console(file=file, width=width), RECORDS, "failstop", published=False, where="evidence in here")
    return file.getvalue().splitlines()


def test_the_rows_add_up_to_all_obligations() -> None:
    """What promises rest on, under whatever name, has one row of its own, and no line ends in blanks."""
    lines = printed(80)
    table = lines[1:3]
    assert [line.split()[0] for line in table] == ["G5", "grounds"]
    assert sum(int(number) for line in table for number in re.findall(r"of (\d+)", line)) == len(RECORDS)
    assert table[0].split()[1:] == ["violated,", "1", "of", "2", "holds,", "1", "of", "1", "1.50"]
    assert not any(line.endswith(" ") for line in lines)


def test_a_narrow_terminal_has_the_numbers_too() -> None:
    """Only the seconds are left out."""
    assert any("holds, 1 of 1" in line for line in printed(50))
