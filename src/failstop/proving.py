"""The command that puts claims to the solver."""

from __future__ import annotations

import shlex
from contextlib import contextmanager
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from failstop.properties import evidence
from failstop.reports import proofs as report
from failstop.speaking import (
    EXIT_CODES,
    Evidence,
    Json,
    aside,
    must_be_known,
    must_be_writable,
    refuse,
    say,
    say_json,
    written,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

_NARROWEST = 40


def prove(
    guarantee: Annotated[
        list[str] | None,
        typer.Argument(help="Only these: G1 to G6, T1 to T6, halt, approval, quota, loop, happy-path."),
    ] = None,
    protocol: Annotated[
        list[str] | None, typer.Option("--protocol", metavar="NAME", help="Only this protocol or theory.")
    ] = None,
    published: Annotated[
        bool, typer.Option("--published", help="Tell the counterexamples to what is published.")
    ] = False,
    show: Annotated[
        str | None, typer.Option(metavar="NAME", help="Prove nothing; print the specification of a protocol.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes; by default one a processor.")] = None,
    as_json: Json = False,
    folder: Evidence = Path("evidence"),
) -> None:
    """Put what the runtime promises, and what others published, to a solver; exit code 1: the runtime's is broken."""
    proofs = _with_solver()
    if show is not None:
        if as_json:
            refuse("--show", "prints a text; leave out --json")
        with _undecided_if_it_cannot_be_asked(proofs):
            _must_be_shown(proofs, show)
            text = proofs.shown(show, max(_NARROWEST, Console().width))
        say(lambda: typer.echo(text))
        return
    with _undecided_if_it_cannot_be_asked(proofs):
        questions = _questions(proofs, guarantee or [], protocol or [])
    file = folder / "models.json"
    must_be_writable(file)
    progress = Console(stderr=True)
    answers = []
    for number, (place, record) in enumerate(questions.answers(jobs), start=1):
        answers.append((place, record))
        aside(partial(report.print_progress, progress, record, number, len(questions)))
    records = [record for _, record in sorted(answers, key=itemgetter(0))]
    kept = [record for record in written(file) if not questions.covers(record)]
    evidence.write(file, evidence.merged(kept, records))
    if as_json:
        say_json(evidence.document(records))
    else:
        say(lambda: report.print_proofs(Console(), records, proofs.OURS, published, f"evidence in {file}"))
    raise typer.Exit(EXIT_CODES[proofs.verdict(records)])


def _questions(proofs: ModuleType, guarantees: list[str], protocols: list[str]) -> Any:
    for name in guarantees:
        must_be_known("GUARANTEE", name, proofs.guarantees())
    for name in protocols:
        must_be_known("--protocol", name, proofs.protocols())
    questions = proofs.Questions(guarantees, protocols)
    if not len(questions):
        refuse("--protocol", f"{' and '.join(protocols)} claims nothing about {' or '.join(guarantees)}")
    return questions


def _must_be_shown(proofs: ModuleType, name: str) -> None:
    known = proofs.specifications()
    if name not in known and name in proofs.protocols():
        refuse("--show", f"{name!r} is a theory without a specification; --protocol {shlex.quote(name)} proves it")
    must_be_known("--show", name, known)


@contextmanager
def _undecided_if_it_cannot_be_asked(proofs: ModuleType) -> Iterator[None]:
    """A fault in what is to be proved breaks no promise: it is told in a line, and nothing is decided."""
    try:
        yield
    except typer.Exit:
        raise
    except Exception as error:
        told = f"failstop: prove: nothing could be asked: {proofs.reason(error)}"
        aside(lambda: typer.echo(told, err=True))
        raise typer.Exit(EXIT_CODES[evidence.INCONCLUSIVE]) from error


def _with_solver() -> ModuleType:
    try:
        from failstop.properties import proofs  # noqa: PLC0415 - the other commands need no solver
    except ModuleNotFoundError as missing:
        refuse("prove", f"needs the package {missing.name}; pip install 'failstop[prove]'")
    return proofs
