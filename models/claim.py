"""A claim and its answer: a sentence about a protocol is proved, refuted with a trace, or unknown; never assumed.

The solver is asked for a counterexample. `unsat` is a proof, a model is a refutation, and everything else (a time-out,
a search that ended before it found anything) is UNKNOWN, which nobody may read as a proof.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import z3

from failstop.models.solver import asked

if TYPE_CHECKING:
    from collections.abc import Callable

PROVED = "proved"
REFUTED = "refuted"
UNKNOWN = "unknown"

OURS = "failstop"
PUBLISHED = "published"
"""Whose protocol a claim is about: the runtime's own cores, or what a paper or README states."""

GROUNDS = ("totals", "reachable")
"""Kinds of claims on which every promise of their protocol rests: it could hold because nothing can happen."""

TIME_LIMIT_MS = 10_000
"""How long the solver may think about one question."""


class Answer(NamedTuple):
    """What came of a claim.

    told: a counterexample or a witness as a person reads it, or why it is unknown. questions: how many the solver was
    asked; seconds: what they took together.
    """

    status: str
    told: str
    questions: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Claim:
    """One named sentence about one protocol; `ask` puts it to the solver.

    guarantee: as in the evidence (G1 to G6, T1 to T6, halt, approval, quota, loop). whose: OURS or PUBLISHED.
    protocol: the specification or theory that it belongs to. kind: what sort of claim it is, in a word.
    """

    guarantee: str
    whose: str
    protocol: str
    kind: str
    sentence: str
    ask: Callable[[], Answer]


def prove(claim: z3.BoolRef, *given: z3.BoolRef, tell: Callable[[z3.ModelRef], str] = str) -> Answer:
    """Look for a case in which all that is `given` holds and the claim does not."""
    status, told, seconds = solve(*given, z3.Not(claim), tell=tell)
    verdict = PROVED if status == z3.unsat else REFUTED if status == z3.sat else UNKNOWN
    return Answer(verdict, told, 1, seconds)


def find(*wanted: z3.BoolRef, tell: Callable[[z3.ModelRef], str] = str) -> Answer:
    """Look for a case in which all that is wanted holds: PROVED with it, REFUTED if there is none."""
    status, told, seconds = solve(*wanted, tell=tell)
    verdict = PROVED if status == z3.sat else REFUTED if status == z3.unsat else UNKNOWN
    return Answer(verdict, told, 1, seconds)


def solve(*constraints: z3.BoolRef, tell: Callable[[z3.ModelRef], str] = str) -> tuple[z3.CheckSatResult, str, float]:
    """Ask the solver once: its answer, the model as `tell` puts it or the reason of an unknown, and the seconds."""
    solver = z3.Solver()
    solver.set("timeout", TIME_LIMIT_MS)
    solver.add(*constraints)
    began = time.perf_counter()
    status = asked(solver)
    seconds = time.perf_counter() - began
    if status == z3.sat:
        return status, tell(solver.model()), seconds
    return status, solver.reason_unknown() if status == z3.unknown else "", seconds


def all_of(answers: list[Answer]) -> Answer:
    """Combine the answers to the questions of one claim: the worst one counts; raises ValueError for none."""
    if not answers:
        raise ValueError("no answer to combine; nothing was asked")
    order = (PROVED, UNKNOWN, REFUTED)
    worst = max(answers, key=lambda answer: order.index(answer.status))
    questions = sum(answer.questions for answer in answers)
    return Answer(worst.status, worst.told, questions, sum(answer.seconds for answer in answers))


def solver_version() -> str:
    """Say which solver answers."""
    return str(z3.get_version_string())
