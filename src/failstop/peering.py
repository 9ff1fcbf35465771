"""The command that plays what the solver found in published protocols on the package that they are about."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from failstop.properties import evidence
from failstop.reports import peers as report
from failstop.speaking import (
    EXIT_CODES,
    Evidence,
    Json,
    must_be_known,
    must_be_writable,
    refuse,
    say,
    say_json,
    with_progress,
    written,
)

if TYPE_CHECKING:
    from types import ModuleType


def peers(
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="PROTOCOL", help="Only this published protocol.")
    ] = None,
    as_json: Json = False,
    folder: Evidence = Path("evidence"),
) -> None:
    """Play the counterexamples to published protocols on veronica-core; exit code 1: it does what they say."""
    check = _with_solver_and_peer()
    for name in only or []:
        must_be_known("--only", name, check.known())
    file = folder / "peers-veronica-core.json"
    must_be_writable(file)
    chosen = only or []
    found = check.veronica_records(chosen)
    records = list(with_progress(found, "published protocols on veronica-core", len(check.chosen(chosen))))
    kept = written(file) if only else []
    evidence.write(file, evidence.merged(kept, records))
    if as_json:
        say_json(evidence.document(records))
    else:
        left = check.not_played(only or [])
        say(lambda: report.print_peers(Console(), records, left, f"evidence in {file}"))
    raise typer.Exit(EXIT_CODES[evidence.worst(record.verdict for record in records)])


def _with_solver_and_peer() -> ModuleType:
    try:
        from failstop.properties.peers import check  # noqa: PLC0415 - the other commands need no solver
        from failstop.properties.targets.veronica import VeronicaCore  # noqa: PLC0415 - as above
    except ModuleNotFoundError as missing:
        refuse("peers", f"needs the package {missing.name}; pip install 'failstop[peers,prove]'")
    try:
        VeronicaCore().versions()
    except ModuleNotFoundError as missing:
        refuse("peers", str(missing))
    return check
