"""Published counterexamples on a peer: the solver's trace, the schedule, and the witness's count, side by side."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from failstop.properties.evidence import HOLDS, INCONCLUSIVE, NOT_OFFERED, VIOLATED
from failstop.reports.console import COLOURS, many, target_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from failstop.properties.evidence import Record

_SIDE_BY_SIDE = 100
"""Columns from which trace, schedule and witness stand side by side."""


def print_peers(console: Console, records: Sequence[Record], not_played: Sequence[str], where: str) -> None:
    """Print each sentence with its three columns, what is not played, where the evidence is, and the sum of it all."""
    for record in records:
        _print_one(console, record)
    if not_played:
        console.print("\nnot played", highlight=False)
    for line in not_played:
        console.print(f"  {escape(line)}", highlight=False)
    console.print(f"\n{where}", highlight=False, soft_wrap=True)
    console.print(_summary(records), highlight=False, soft_wrap=True)


def _print_one(console: Console, record: Record) -> None:
    colour = COLOURS[record.verdict]
    told = f"[{colour}]{record.verdict}[/] {escape(record.subject)} ({record.guarantee}): {escape(record.detail)}"
    console.print(told, highlight=False)
    if "promised" in record.about and record.verdict == VIOLATED:
        console.print(f"  promised in {escape(record.about['promised'])}", highlight=False)
    columns = [(title, body) for title, body in _columns(record) if body]
    if console.width >= _SIDE_BY_SIDE and columns:
        console.print(_side_by_side(columns))
    else:
        for title, body in columns:
            console.print(f"  {title}", style="bold", highlight=False)
            for line in body.splitlines():
                console.print(Text(f"    {line}"))
    if record.replay is not None:
        console.print(f"  {escape(record.replay)}", highlight=False, soft_wrap=True)
    console.print()


def _columns(record: Record) -> list[tuple[str, str]]:
    about = record.about
    witness = about.get("witness", "")
    if about.get("ours"):
        witness += f"\nours, under the same schedule:\n{about['ours']}"
    return [
        ("trace", about.get("trace", "")),
        ("schedule", about.get("schedule", "")),
        ("witness", witness),
    ]


def _side_by_side(columns: Sequence[tuple[str, str]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", expand=True)
    ratios = {"trace": 5, "schedule": 4, "witness": 3}
    for title, _ in columns:
        table.add_column(title, ratio=ratios[title], overflow="fold")
    table.add_row(*(Text(body) for _, body in columns))
    return table


def _summary(records: Sequence[Record]) -> str:
    counts = Counter(record.verdict for record in records)
    order = (HOLDS, VIOLATED, INCONCLUSIVE, NOT_OFFERED)
    told = ", ".join(f"{counts[verdict]} {verdict}" for verdict in order if counts[verdict] or verdict in order[:2])
    return f"{target_of(records[0])}, as published: {many(len(records), 'sentence')}, {told}"
