"""The kill matrix: every mutant before every layer, each mutant in a process of its own.

    python -m failstop.properties.mutants.matrix [--json] [--evidence FOLDER] [--layer LAYER] [mutant ...]

Exit code 1: a mutant is caught by no layer; one that does harm only where threads meet is not caught by the schedules;
or something is found wrong with the runtime that has no mistake in it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import sys
import threading
import time
from collections import deque
from importlib.metadata import version
from multiprocessing.connection import wait
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from failstop.properties import evidence
from failstop.properties.evidence import HOLDS, NOT_OFFERED, VIOLATED, Record
from failstop.properties.mutants.catalogue import catalogue
from failstop.properties.mutants.layers import (
    KILLED,
    LAYERS,
    NOT_APPLICABLE,
    SURVIVED,
    UNDECIDED,
    Finding,
    import_everything,
)
from failstop.properties.mutants.mutant import Mutant

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

NO_MISTAKE = Mutant("no-mistake", "happy-path", "Nothing is changed.", ())
"""The runtime itself: whatever finds something wrong with it says nothing about the mutants."""

LIMIT_S: Mapping[str, float] = MappingProxyType({"chaos": 60.0, "machines": 180.0, "schedules": 180.0, "models": 300.0})
"""How long one layer may take for one mutant; one that is not done by then has shown nothing."""

_STARTING_S = 60.0
_VERDICTS = {KILLED: VIOLATED, SURVIVED: HOLDS, UNDECIDED: evidence.INCONCLUSIVE, NOT_APPLICABLE: NOT_OFFERED}
_MARKS = {KILLED: "killed", SURVIVED: "survived", UNDECIDED: "undecided", NOT_APPLICABLE: "-"}


class Cell(NamedTuple):
    """What one layer said of one mutant."""

    mutant: Mutant
    layer: str
    finding: Finding
    seconds: float

    def record(self) -> Record:
        """Put it on record: violated is what has to be, and holds what must not."""
        name = self.mutant.name
        return Record(
            guarantee=self.mutant.guarantee,
            target="failstop" if self.mutant is NO_MISTAKE else f"failstop with {name}",
            layer=self.layer,
            subject=name,
            verdict=_VERDICTS[self.finding.status],
            detail=self.finding.told,
            effort={"seconds": round(self.seconds, 3)},
            replay=f"python -m failstop.properties.mutants.matrix --layer {self.layer} {name}",
            versions={"failstop": version("failstop"), "python": platform.python_version()},
            about={"mistake": self.mutant.mistake, "concurrent": "yes" if self.mutant.concurrent else "no"},
        )


def cells(mutants: Sequence[Mutant], layers: Sequence[str], jobs: int | None = None) -> Iterator[Cell]:
    """Put mutants before layers, several at once on all processors; gives each answer as it comes."""
    waiting = deque((mutant, tuple(layers)) for mutant in mutants)
    running: list[_Worker] = []
    try:
        while waiting or running:
            while waiting and len(running) < (jobs or os.cpu_count() or 1):
                running.append(_Worker(*waiting.popleft()))
            wait([worker.answers for worker in running], timeout=0.2)
            for worker in list(running):
                yield from worker.new()
                if worker.over:
                    running.remove(worker)
                    if worker.layers:
                        waiting.appendleft((worker.mutant, worker.layers))
    finally:
        for worker in running:
            worker.end()


def missed(found: Collection[Cell]) -> list[str]:
    """Say what is wrong with a matrix: a mutant that nobody catches, or a whole runtime that somebody does."""
    told = []
    for mutant in {cell.mutant.name: cell.mutant for cell in found}.values():
        of_it = {cell.layer: cell.finding.status for cell in found if cell.mutant.name == mutant.name}
        killers = [layer for layer, status in of_it.items() if status == KILLED]
        if not mutant.changes:
            told += [f"{mutant.name}: {layer} finds something wrong with it" for layer in killers]
        elif not killers:
            told.append(f"{mutant.name}: no layer catches it")
        elif mutant.concurrent and of_it.get("schedules", KILLED) != KILLED:
            told.append(f"{mutant.name}: it does harm only where threads meet, and the schedules do not catch it")
    return told


def table(found: Collection[Cell], layers: Sequence[str]) -> list[str]:
    """Spell a matrix: a line a mutant and a column a layer."""
    by_place = {(cell.mutant.name, cell.layer): cell for cell in found}
    names = list(dict.fromkeys(cell.mutant.name for cell in found))
    widest = max(map(len, names), default=0)
    rows = [f"{'mutant':{widest}}  {'breaks':10}" + "".join(f"  {layer:10}" for layer in layers)]
    for name in names:
        guarantee = next(cell.mutant.guarantee for cell in found if cell.mutant.name == name)
        marks = [_MARKS[by_place[name, layer].finding.status] if (name, layer) in by_place else "" for layer in layers]
        rows.append(f"{name:{widest}}  {guarantee:10}" + "".join(f"  {mark:10}" for mark in marks))
    return [row.rstrip() for row in rows]


def main(arguments: Sequence[str]) -> int:
    """Ask the layers named, or all, about the mutants named, or all and the runtime itself."""
    asked = _read(arguments)
    known = {NO_MISTAKE.name: NO_MISTAKE, **catalogue()}
    layers = asked.layer or list(LAYERS)
    chosen = [known[name] for name in asked.mutant or known]
    found: list[Cell] = []
    for cell in cells(chosen, layers, asked.jobs):
        found.append(cell)
        told = f"{cell.layer} {cell.finding.status} {cell.mutant.name}: {cell.finding.told} ({cell.seconds:.1f} s)"
        print(f"{len(found)}/{len(chosen) * len(layers)} {told}", file=sys.stderr, flush=True)  # noqa: T201
    order = {mutant.name: place for place, mutant in enumerate(chosen)}
    found.sort(key=lambda cell: (order[cell.mutant.name], layers.index(cell.layer)))
    records = [cell.record() for cell in found]
    if asked.evidence is not None:
        file = asked.evidence / "mutants.json"
        kept = evidence.read(file) if file.exists() else []
        evidence.write(file, evidence.merged(kept, records))
    lines = [evidence.document(records)] if asked.json else [*table(found, layers), *missed(found)]
    print("\n".join(lines))  # noqa: T201 - what the command is for
    return int(bool(missed(found)))


def _read(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m failstop.properties.mutants.matrix", description=__doc__)
    names = [NO_MISTAKE.name, *catalogue()]
    parser.add_argument("mutant", nargs="*", help="only these")
    parser.add_argument("--layer", action="append", choices=list(LAYERS), help="only this one")
    parser.add_argument("--jobs", type=int, help="processes; by default one a processor")
    parser.add_argument("--evidence", type=Path, help="the folder in which the records are kept")
    parser.add_argument("--json", action="store_true", help="print the records, one JSON document")
    asked = parser.parse_args(arguments)
    for name in asked.mutant:
        if name not in names:
            parser.error(f"there is no mutant {name!r}; there are {', '.join(names)}")
    return asked


class _Worker:
    """A process with one mutant, asked one layer after another; layers: those that are left."""

    def __init__(self, mutant: Mutant, layers: tuple[str, ...]) -> None:
        context = multiprocessing.get_context("spawn")
        self.mutant = mutant
        self.layers = layers
        self.over = False
        self.answers, theirs = context.Pipe(duplex=False)
        # Not the mutant itself: what it changes is looked up in the process, where nothing is changed yet.
        self._process: BaseProcess = context.Process(target=_answer, args=(mutant.name, layers, theirs), daemon=True)
        self._process.start()
        theirs.close()
        self._began = time.monotonic() + _STARTING_S

    def new(self) -> Iterator[Cell]:
        """Give the answers that have come, and end the process if the next one takes too long."""
        try:
            while self.layers and self.answers.poll():
                answer = self.answers.recv()
                if answer is None:
                    self._began = time.monotonic()
                    continue
                yield self._cell(Finding(*answer))
        except EOFError:
            self.end()
            if self.layers:
                yield self._cell(Finding(UNDECIDED, "the process with it ended without an answer"))
            return
        if self.layers and time.monotonic() - self._began > LIMIT_S[self.layers[0]]:
            self.end()
            yield self._cell(Finding(UNDECIDED, f"not done within {LIMIT_S[self.layers[0]]:.0f} s"))
        elif not self.layers:
            self.end()

    def end(self) -> None:
        """End the process, in the middle of whatever it does."""
        self.over = True
        self._process.kill()
        self._process.join()
        self.answers.close()

    def _cell(self, finding: Finding) -> Cell:
        layer, *rest = self.layers
        self.layers = tuple(rest)
        seconds = max(0.0, time.monotonic() - self._began)
        self._began = time.monotonic()
        return Cell(self.mutant, layer, finding, seconds)


def _answer(name: str, layers: tuple[str, ...], answers: Connection) -> None:
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    import_everything()
    mutant = NO_MISTAKE if name == NO_MISTAKE.name else catalogue()[name]
    # The time that a layer may take begins when everything is imported.
    answers.send(None)
    for layer in layers:
        answers.send(tuple(LAYERS[layer](mutant)))


def _end_with_the_parent() -> None:
    """End this process, which a mutant may have made to hang, when nobody waits for its answers any more."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
