"""Records on a terminal: one table, blocks of text where there are no 80 columns, and one last line that sums it up."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from failstop.properties.evidence import HOLDS, INCONCLUSIVE, NOT_OFFERED, VIOLATED, worst

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import Console

    from failstop.properties.evidence import Record

COLOURS = {HOLDS: "green", NOT_OFFERED: "dim", INCONCLUSIVE: "yellow", VIOLATED: "bold red"}
_ALWAYS = (HOLDS, VIOLATED)
_NANO_PER_CENT = 10**7
_TABLE_WIDTH = 80
"""Columns below which a table would break the names apart."""


def print_check(console: Console, records: Sequence[Record], where: str) -> None:
    """Print the table of a check, what was found wrong, where the evidence is, and the sum of it all."""
    if console.width < _TABLE_WIDTH:
        _print_blocks(console, records)
    else:
        console.print(_table(records))
    for record in records:
        if record.verdict in {VIOLATED, INCONCLUSIVE}:
            print_finding(console, record)
    console.print(f"\n{where}", highlight=False, soft_wrap=True)
    console.print(summary(records), highlight=False, soft_wrap=True)


def print_planners(console: Console, planners: Sequence[Mapping[str, Any]]) -> None:
    """Print what there is to be played."""
    if console.width < _TABLE_WIDTH:
        for planner in planners:
            limits = ", ".join(_limits(planner))
            _print_block(console, planner, f"{limits or 'no limits'}; must end {planner['must_end_in']}")
    else:
        console.print(_table_of_planners(planners))
    console.print(many(len(planners), "planner"), highlight=False)


def print_audit(console: Console, records: Sequence[Record]) -> None:
    """Print what a log says of its run, one line a guarantee, and the sum of it all."""
    for record in records:
        colour = COLOURS[record.verdict]
        told = f"[{colour}]{record.verdict:<12}[/] {record.guarantee:<9} {escape(record.detail)}"
        console.print(told, highlight=False)
    verdict = worst(record.verdict for record in records)
    console.print(f"{records[0].subject}: {verdict}", highlight=False, soft_wrap=True)


def print_story(console: Console, record: Record) -> None:
    """Print a run as its log tells it."""
    if "story" in record.about:
        console.print(escape(record.about["story"]), highlight=False, soft_wrap=True)
    console.print(f"{record.subject}: {escape(record.detail)}", highlight=False, soft_wrap=True)


def summary(records: Sequence[Record]) -> str:
    """Say in one line how many records there are of each verdict; those that always count are told even if none."""
    counts = Counter(record.verdict for record in records)
    order = (HOLDS, VIOLATED, INCONCLUSIVE, NOT_OFFERED)
    shown = [verdict for verdict in order if counts[verdict] or verdict in _ALWAYS]
    told = ", ".join(f"{counts[verdict]} {verdict}" for verdict in shown)
    targets = ", ".join(dict.fromkeys(target_of(record) for record in records))
    judged = "" if any(record.verdict != NOT_OFFERED for record in records) else "; nothing was judged"
    return f"{targets}: {many(len(records), 'planner')}, {told}{judged}"


def witness(record: Record) -> str:
    """Give the numbers that the world counted, in few letters."""
    return ", ".join(_numbers(record)) if record.effort else "-"


def _numbers(record: Record) -> Iterator[str]:
    effort = record.effort
    yield many(effort.get("dispatches", 0), "call")
    spent = int(effort.get("spent_nano", 0))
    if spent:
        yield f"${spent // 10**9}.{spent % 10**9 // _NANO_PER_CENT:02d}"
    if effort.get("retries"):
        yield many(effort["retries"], "retry", "retries")
    for name, told in (("irreversible", "sent"), ("late", "late"), ("after_stop", "after stop")):
        if effort.get(name):
            yield f"{effort[name]} {told}"


def many(number: float, one: str, several: str | None = None) -> str:
    """Say how many there are of something."""
    return f"{number} {one if number == 1 else several or one + 's'}"


def _table(records: Sequence[Record]) -> Table:
    table = _plain_table()
    table.add_column("planner, and what it tries", ratio=1)
    table.add_column("must end", max_width=10)
    table.add_column("ended in", max_width=10)
    table.add_column("witness", max_width=10)
    table.add_column("verdict", no_wrap=True)
    for record in records:
        about = record.about
        table.add_row(
            _name_and_purpose(record.subject, about.get("tries", "")),
            Text(about.get("must_end_in", "")),
            Text(about.get("ended_in", "") or "-"),
            Text(witness(record)),
            Text(record.verdict, style=COLOURS[record.verdict]),
        )
    return table


def _table_of_planners(planners: Sequence[Mapping[str, Any]]) -> Table:
    table = _plain_table()
    table.add_column("planner, and what it tries", ratio=1)
    table.add_column("limits", max_width=24)
    table.add_column("must end", max_width=10)
    for planner in planners:
        limits = Text("\n".join(_limits(planner)))
        table.add_row(_name_and_purpose(planner["name"], planner["tries"]), limits, Text(planner["must_end_in"]))
    return table


def _limits(planner: Mapping[str, Any]) -> Iterator[str]:
    return (f"{name.removeprefix('max_')} {limit}" for name, limit in planner["limits"].items())


def _print_blocks(console: Console, records: Sequence[Record]) -> None:
    for record in records:
        about = record.about
        _print_block(
            console,
            {"name": record.subject, "tries": about.get("tries", "")},
            f"must end {about.get('must_end_in', '')}; ended in {about.get('ended_in', '') or '-'}",
            Text.assemble(f"{witness(record)}; ", (record.verdict, COLOURS[record.verdict])),
        )


def _print_block(console: Console, planner: Mapping[str, Any], *lines: str | Text) -> None:
    console.print(Text(planner["name"], "bold"))
    for line in (planner["tries"], *lines):
        console.print(Padding(line if isinstance(line, Text) else Text(line), (0, 0, 0, 2), expand=False))


def _plain_table() -> Table:
    return Table(box=None, padding=(0, 1, 0, 0), header_style="bold", expand=True)


def _name_and_purpose(name: str, purpose: str) -> Text:
    return Text.assemble((name, "bold"), f"\n{purpose}", overflow="fold")


def print_finding(console: Console, record: Record) -> None:
    """Print what was found wrong or left open, where it was promised, and the command that shows it again."""
    colour = COLOURS[record.verdict]
    console.print(
        f"\n[{colour}]{record.verdict}[/] {escape(record.subject)} ({record.guarantee}): {escape(record.detail)}"
    )
    if record.about.get("promised"):
        console.print(f"  promised in {escape(record.about['promised'])}", style="dim", highlight=False)
    if record.replay is not None:
        # The command is an interface: never wrapped, so that it can be copied whole.
        console.print(f"  {escape(record.replay)}", soft_wrap=True, highlight=False)


def target_of(record: Record) -> str:
    """Name the target of a record, with its version if that is on record."""
    version = record.versions.get(record.target)
    return f"{record.target} {version}" if version else record.target
