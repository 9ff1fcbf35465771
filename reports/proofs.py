"""Proofs on a terminal: a line an obligation while they run, then one row a guarantee, and what was found broken."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from failstop.properties.evidence import GUARANTEES, HOLDS, INCONCLUSIVE, NOT_OFFERED, VIOLATED, worst
from failstop.reports.console import COLOURS, many

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from failstop.properties.evidence import Record

_NARROW = 60
_STEP = len("1. ")
_NO_PROMISES = {"reachable", "totals"}
"""Kinds of obligations that a protocol has because it is a specification; promises rest on them."""
_GROUNDS = "grounds"


def print_progress(console: Console, record: Record, number: int, of: int) -> None:
    """Print one line about one obligation, cut where the terminal ends."""
    line = Text(f"{number:>{len(str(of))}}/{of} ")
    line.append(f"{record.verdict:<12} ", COLOURS[record.verdict])
    line.append(f"{record.guarantee:<10} {record.subject}")
    line.truncate(console.width - 1, overflow="ellipsis")
    console.print(line, soft_wrap=True, highlight=False)


def print_proofs(console: Console, records: Sequence[Record], ours: str, published: bool, where: str) -> None:
    """Print the table of guarantees, what is not as promised, and the sum of it all.

    ours: the target whose promises are judged; everything else is as published. published: tell its counterexamples.
    """
    table = _table(records, ours, console.width >= _NARROW)
    console.print(table)
    if any(record.about.get("kind") in _NO_PROMISES for record in records):
        console.print("grounds: what is promised can happen at all, and sums can be split", highlight=False)
    for record in records:
        if record.target == ours:
            if record.verdict != HOLDS:
                _print_trace(console, record)
        elif record.verdict == INCONCLUSIVE or (published and record.verdict == VIOLATED):
            _print_trace(console, record)
    if published:
        _print_what_holds(console, [record for record in records if record.target != ours])
    console.print(f"\n{where}", highlight=False, soft_wrap=True)
    console.print(_summary(records, ours, published), highlight=False, soft_wrap=True)


def _table(records: Sequence[Record], ours: str, wide: bool) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("guarantee", no_wrap=True)
    table.add_column("as published")
    table.add_column(ours)
    if wide:
        table.add_column("seconds", justify="right")
    for guarantee, theirs, own in _rows(records, ours):
        seconds = sum(record.effort["solver_seconds"] for record in (*theirs, *own))
        table.add_row(guarantee, _verdict(theirs), _verdict(own), *((f"{seconds:.2f}",) if wide else ()))
    return table


def _rows(records: Sequence[Record], ours: str) -> Iterator[tuple[str, list[Record], list[Record]]]:
    """Give one row a guarantee, and one for what the promises rest on, so that the rows add up to all."""
    by_row: defaultdict[str, list[Record]] = defaultdict(list)
    for record in records:
        by_row[_GROUNDS if record.about.get("kind") in _NO_PROMISES else record.guarantee].append(record)
    for row in (*GUARANTEES, _GROUNDS):
        found = by_row[row]
        if found:
            own = [record for record in found if record.target == ours]
            yield row, [record for record in found if record.target != ours], own


def _verdict(records: Sequence[Record]) -> Text:
    """The worst verdict, and of how many of all it is."""
    if not records:
        return Text("-", COLOURS[NOT_OFFERED])
    verdict = worst(record.verdict for record in records)
    count = sum(record.verdict == verdict for record in records)
    return Text(verdict, COLOURS[verdict]).append(f", {count} of {len(records)}", "default")


def _print_trace(console: Console, record: Record) -> None:
    colour = COLOURS[record.verdict]
    console.print(
        f"\n[{colour}]{record.verdict}[/] {escape(record.subject)} ({record.guarantee}): {escape(record.detail)}",
        highlight=False,
    )
    if record.about.get("trace"):
        for line in record.about["trace"].splitlines():
            _print_hanging(console, line)
    if record.replay is not None:
        console.print(f"  {escape(record.replay)}", soft_wrap=True, highlight=False)


def _print_hanging(console: Console, line: str) -> None:
    """Print one line of a trace; where it is broken, it goes on under its own text."""
    indent = len(line) - len(line.lstrip()) or _STEP
    lines = textwrap.wrap(line, console.width, subsequent_indent=" " * indent) or [""]
    console.print(Text("\n".join(lines)), soft_wrap=True)


def _print_what_holds(console: Console, records: Sequence[Record]) -> None:
    """Say which published sentences are true as they stand; that something can happen is no promise."""
    sound = [each for each in records if each.verdict == HOLDS and each.about.get("kind") not in _NO_PROMISES]
    if sound:
        console.print("\nas published, these hold", highlight=False)
    for record in sound:
        console.print(Padding(Text(f"{record.guarantee:<9} {record.subject}"), (0, 0, 0, 2), expand=False))


def _summary(records: Sequence[Record], ours: str, published: bool) -> str:
    own = [record for record in records if record.target == ours]
    theirs = [record for record in records if record.target != ours]
    parts = [f"{ours}: {many(len(own), 'obligation')}, {_counts(own)}"]
    if theirs:
        hint = "" if published or not _broken(theirs) else " (--published tells the counterexamples)"
        parts.append(f"as published: {many(len(theirs), 'obligation')}, {_counts(theirs)}{hint}")
    return "; ".join(parts)


def _counts(records: Sequence[Record]) -> str:
    order = (HOLDS, VIOLATED, INCONCLUSIVE)
    counts = {verdict: sum(record.verdict == verdict for record in records) for verdict in order}
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in order if counts[verdict] or verdict != INCONCLUSIVE)


def _broken(records: Sequence[Record]) -> bool:
    return any(record.verdict == VIOLATED for record in records)
