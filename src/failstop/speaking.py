"""How every command refuses, prints and keeps what it found."""

from __future__ import annotations

import difflib
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, TextIO, TypeVar

import typer
from rich.console import Console
from rich.progress import track

from failstop.properties import evidence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")

EXIT_CODES = {evidence.NOT_OFFERED: 3, evidence.HOLDS: 0, evidence.VIOLATED: 1, evidence.INCONCLUSIVE: 3}

Json = Annotated[bool, typer.Option("--json", help="Print one document of records and nothing else.")]
Evidence = Annotated[Path, typer.Option("--evidence", metavar="DIR", help="Where the evidence goes.")]


def refuse(option: str, message: str) -> NoReturn:
    """Say in one line what cannot be used, and end with bad usage."""
    aside(lambda: typer.echo(f"failstop: {option}: {' '.join(message.split())}", err=True))
    raise typer.Exit(2)


def must_be_known(option: str, value: str, known: Iterable[str]) -> None:
    """Refuse a name that there is not, with those that are near."""
    names = list(known)
    if value in names:
        return
    same = [name for name in names if name.casefold() == value.casefold()]
    near = same or difflib.get_close_matches(value, names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(map(_quoted, near))}?" if near else f"there are {', '.join(map(_quoted, names))}"
    refuse(option, f"{value!r} is not known; {hint}")


def _quoted(name: str) -> str:
    """Give a name as it would be typed, so that several can be told apart."""
    return name if name.replace("-", "").replace("_", "").isalnum() else repr(name)


def must_be_writable(file: Path, *folders: Path) -> None:
    """Find out before anything is done whether what will be found can be kept."""
    try:
        for folder in (file.parent, *folders):
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        written(file)
    except OSError as error:
        refuse("--evidence", f"{str(file.parent)!r} cannot be written: {error}")
    except evidence.EvidenceError as error:
        refuse("--evidence", f"{error}; move it away, or name another folder")


def written(file: Path) -> list[evidence.Record]:
    """Give the records that are in a file already; none if there is no file."""
    return evidence.read(file) if file.exists() else []


def say_json(document: str) -> None:
    """Print a document and nothing else."""
    say(lambda: typer.echo(document))


def say(show: Callable[[], None]) -> None:
    """Print; that nobody reads any more changes no verdict."""
    try:
        show()
        if sys.stdout is not None:
            sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # rich turns the one into the other
        _mute(sys.stdout)
    except OSError as error:
        _mute(sys.stdout)
        refuse("standard output", f"cannot be written: {error}")


def with_progress(each: Iterable[T], told: str, total: int) -> Iterable[T]:
    """Pass things on, and show on a terminal how many of them have come."""
    console = Console(stderr=True)
    return track(each, told, total=total, console=console, transient=True, disable=not console.is_terminal)


def aside(show: Callable[[], None]) -> None:
    """Print on standard error; whether anybody can read that changes nothing."""
    try:
        show()
        if sys.stderr is not None:
            sys.stderr.flush()
    except (OSError, SystemExit):
        _mute(sys.stderr)


def _mute(stream: TextIO) -> None:
    """Let what is still in the buffer go nowhere, or Python would try once more when it ends."""
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())
