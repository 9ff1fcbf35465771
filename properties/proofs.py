"""Turns what the solver said into records: one a claim, for the runtime's own protocols and for the published ones."""

from __future__ import annotations

import platform
import re
import shlex
from importlib.metadata import version
from typing import TYPE_CHECKING

from failstop.models import catalogue, proving, show
from failstop.models.claim import OURS, PROVED, REFUTED, solver_version
from failstop.properties.evidence import GUARANTEES, HOLDS, INCONCLUSIVE, VIOLATED, Record, worst

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from failstop.models.proving import Finding

PUBLISHED_TARGET = "as published"
"""The target of what papers and READMEs state, as they state it."""


class Questions:
    """The claims about some guarantees and protocols, or about all, before anybody has answered them."""

    def __init__(self, guarantees: Collection[str] = (), protocols: Collection[str] = ()) -> None:
        self._guarantees = guarantees
        self._protocols = protocols
        self._claims = proving.wanted(guarantees, protocols)

    def __len__(self) -> int:
        return sum(len(claims) for claims in self._claims.values())

    def answers(self, jobs: int | None = None) -> Iterator[tuple[int, Record]]:
        """Put them to the solver, on so many processes; each with its place among all, as they come."""
        order = [claim for claims in self._claims.values() for claim in claims]
        places = {(claim.protocol, claim.sentence): place for place, claim in enumerate(order)}
        for finding in proving.prove_all(self._claims, self._guarantees, jobs):
            yield places[finding.protocol, finding.sentence], record(finding)

    def covers(self, old: Record) -> bool:
        """Say whether an old record is about what is asked now, so that it is gone if it does not come again."""
        its = old.about.get("protocol", "")
        return (not self._guarantees or old.guarantee in self._guarantees) and (
            not self._protocols or its in self._protocols
        )


def reason(error: Exception) -> str:
    """Say in a line why nothing could be asked."""
    return proving.reason(error)


def guarantees() -> list[str]:
    """Give the guarantees about which anything is claimed."""
    claimed = {claim.guarantee for name in protocols() for claim in catalogue.claims_of(name)}
    return [name for name in GUARANTEES if name in claimed]


def protocols() -> list[str]:
    """Give the names of all protocols and theories."""
    return catalogue.names()


def specifications() -> list[str]:
    """Give the names of what `shown` can show."""
    return list(catalogue.specifications())


def shown(name: str, width: int) -> str:
    """Tell a specification as text."""
    return show.shown(catalogue.specifications()[name], width)


def verdict(records: Iterable[Record]) -> str:
    """Say what records come to: the runtime's must hold, and of the published ones it is enough to know the answer."""
    known = (VIOLATED, HOLDS)
    judged = [each.verdict for each in records if each.target == OURS or each.verdict not in known]
    return worst([HOLDS, *judged])


def record(finding: Finding) -> Record:
    """Give the record of one answered claim; its trace, if it has one, stands in `about`."""
    ours = finding.whose == OURS
    answer = finding.answer
    found = {PROVED: HOLDS, REFUTED: VIOLATED}.get(answer.status, INCONCLUSIVE)
    # Why something is undecided stands in the detail; what comes after its first line is a trace.
    trace = answer.told.partition("\n")[2] if found == INCONCLUSIVE else answer.told
    command = ["failstop", "prove", finding.guarantee, "--protocol", finding.protocol]
    return Record(
        guarantee=finding.guarantee,
        target=OURS if ours else PUBLISHED_TARGET,
        layer="models",
        subject=f"{finding.protocol}: {finding.sentence}",
        verdict=found,
        detail=_detail(finding),
        effort={"questions": answer.questions, "solver_seconds": round(answer.seconds, 4)},
        replay=shlex.join(command if ours else [*command, "--published"]) if found == VIOLATED else None,
        versions={"failstop": version("failstop"), "python": platform.python_version(), "z3": solver_version()},
        about={
            "kind": finding.kind,
            "protocol": finding.protocol,
            "sentence": finding.sentence,
            **({"trace": trace} if trace else {}),
        },
    )


def _detail(finding: Finding) -> str:
    answer = finding.answer
    asked = f"{_many(answer.questions, 'question')} in {answer.seconds:.2f} s"
    if answer.status not in {PROVED, REFUTED}:
        return f"not decided: {(answer.told or 'the solver gave no reason').splitlines()[0]}"
    if finding.kind == "count":
        counted = f"{_many(answer.questions, 'real execution')}, {answer.seconds:.2f} s"
        return f"counted in {counted}" if answer.status == PROVED else f"counted otherwise: {counted}"
    if answer.status == REFUTED:
        steps = len(re.findall(r"^[1-9]\d*\. ", answer.told, re.MULTILINE))
        return f"the solver found a counterexample{' of ' + _many(steps, 'step') if steps else ''}: {asked}"
    if finding.kind == "reachable":
        return f"a way there was found and run again on plain values: {asked}"
    return f"the solver found no counterexample (unsat): {asked}"


def _many(number: int, one: str) -> str:
    return f"{number} {one}{'' if number == 1 else 's'}"
