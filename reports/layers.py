"""The records of machines, schedules and stress on a terminal: what was searched, how far, and what came of it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from failstop.properties.evidence import HOLDS, INCONCLUSIVE, NOT_OFFERED, VIOLATED
from failstop.reports.console import COLOURS, many, print_finding, target_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from failstop.properties.evidence import Record

_EFFORTS = ("examples", "steps", "schedules", "histories")
"""What is counted of a search, in the order in which it is told."""


def print_layer(console: Console, layer: str, records: Sequence[Record], where: str) -> None:
    """Print the table of one layer, what was found wrong or left open, and the sum of it."""
    console.print(_table(records))
    for record in records:
        if record.verdict in {VIOLATED, INCONCLUSIVE}:
            print_finding(console, record)
        if record.verdict == VIOLATED and "program" in record.about:
            console.print(f"\n{escape(record.about['program'])}", soft_wrap=True, highlight=False)
    console.print(f"\n{where}", highlight=False, soft_wrap=True)
    console.print(summary(layer, records), highlight=False, soft_wrap=True)


def summary(layer: str, records: Sequence[Record]) -> str:
    """Say in one line how many records there are of each verdict, and how much was tried in all."""
    counts = Counter(record.verdict for record in records)
    order = (HOLDS, VIOLATED, INCONCLUSIVE, NOT_OFFERED)
    told = ", ".join(f"{counts[verdict]} {verdict}" for verdict in order if counts[verdict] or verdict in order[:2])
    sums = {name: sum(int(record.effort.get(name, 0)) for record in records) for name in _EFFORTS}
    tried = ", ".join(f"{count} {name}" for name, count in sums.items() if count)
    judged = "" if any(record.verdict != NOT_OFFERED for record in records) else "; nothing was judged"
    of = "machine" if layer == "machines" else "scenario"
    name = target_of(records[0])
    return f"{name}, {layer}: {many(len(records), of)}, {told}{judged}{f'; {tried}' if tried else ''}"


def effort(record: Record) -> str:
    """Say how much was tried for one record."""
    return ", ".join(f"{record.effort[name]} {name}" for name in _EFFORTS if name in record.effort) or "-"


def _table(records: Sequence[Record]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold", expand=True)
    table.add_column("what is played", ratio=1)
    table.add_column("of", max_width=10)
    table.add_column("tried", max_width=14)
    table.add_column("verdict", no_wrap=True)
    for record in records:
        table.add_row(
            Text.assemble((record.subject, "bold"), f"\n{record.about.get('tries', '')}", overflow="fold"),
            Text(record.guarantee),
            Text(effort(record)),
            Text(record.verdict, style=COLOURS[record.verdict]),
        )
    return table
