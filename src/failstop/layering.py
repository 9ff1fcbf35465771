"""The part of `failstop check` that plays the other layers, and of `failstop replay` that shows a finding again."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.console import Console

from failstop.properties import evidence, layers
from failstop.properties.linearizable import Begin, End
from failstop.properties.scenarios import catalogue
from failstop.properties.schedules import token
from failstop.properties.schedules.check import shown_again
from failstop.reports import layers as report
from failstop.speaking import must_be_known, must_be_writable, refuse, say, with_progress, written

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from failstop.properties.layers import Depth
    from failstop.properties.linearizable import Event
    from failstop.properties.target import AnyTarget


def check_layer(
    layer: str, runtime: AnyTarget, named: str, depth: Depth, only: Sequence[str], file: Path, *, quiet: bool
) -> list[evidence.Record]:
    """Play one layer against a target, keep the records in `file`, and print them unless it is to be quiet."""
    check = _chosen(layer, depth, only)
    must_be_writable(file)
    found = check.records(runtime, named)
    records = list(with_progress(found, f"{layer} on {runtime.name}", len(check.subjects)))
    kept = written(file) if only else []
    evidence.write(file, evidence.merged(kept, records))
    if not quiet:
        say(lambda: report.print_layer(Console(), layer, records, f"{depth}, evidence in {file}"))
    return records


def replay_word(word: str, load: Callable[[str], AnyTarget]) -> tuple[bool, str]:
    """Run a finding of the machines or schedules again: whether it comes again, and what it is."""
    if word.startswith("machines"):
        return _replay_program(word, load)
    try:
        found = token.read(word)
    except ValueError as error:
        refuse("RUN.jsonl or TOKEN", str(error))
    known = catalogue.every()
    must_be_known("TOKEN", found.scenario, known)
    violation = shown_again(load(found.target), known[found.scenario], found.schedule)
    if violation is None:
        return False, f"{found.scenario}: nothing is wrong with this schedule"
    lines = [line for event in violation.history if (line := _line(event))]
    told = "\n".join(f"{place}. {line}" for place, line in enumerate(lines, start=1))
    return True, f"{told}\n{found.scenario}: {violation.told}"


def _line(event: Event) -> str:
    if isinstance(event, Begin):
        return f"thread {event.lane + 1} asks: {event.action}"
    # That an operation was not asked for after all is of no interest to a reader.
    return f"thread {event.lane + 1} is told: {event.answer}" if isinstance(event, End) else ""


def _chosen(layer: str, depth: Depth, only: Sequence[str]) -> layers.Check:
    for name, times in Counter(only).items():
        must_be_known("--scenario", name, _subjects(layer))
        if times > 1:
            refuse("--scenario", f"{name!r} is given {times} times; once is enough")
    return _loaded(layer, depth, only)


def _subjects(layer: str) -> Sequence[str]:
    return _loaded(layer, "deep", ()).subjects


def _loaded(layer: str, depth: Depth, only: Sequence[str]) -> layers.Check:
    try:
        return layers.check_of(layer, depth, only)
    except ModuleNotFoundError as missing:
        refuse("--layer", f"{layer} needs the package {missing.name}; pip install 'failstop[check]'")


def _replay_program(word: str, load: Callable[[str], AnyTarget]) -> tuple[bool, str]:
    try:
        from failstop.properties.machines import program, replaying  # noqa: PLC0415 - the rest needs no hypothesis
    except ModuleNotFoundError as missing:
        refuse("TOKEN", f"it needs the package {missing.name}; pip install 'failstop[check]'")
    try:
        named, subject, moves = program.read(word)
    except ValueError as error:
        refuse("TOKEN", str(error))
    difference = replaying.difference_of(load(named), subject, moves)
    told = program.as_test(named, subject, moves)
    if difference is None:
        return False, f"{told}\nthe program goes as the reference says"
    return True, f"{told}\n{difference.told}"
