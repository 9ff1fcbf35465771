"""Breaks the cores, one small edit at a time, and asks whether a proof notices: one of any core would say nothing.

    python -m failstop.models.mutation [core ...]

A mutant is caught if the solver has a case in which a promise fails that is proved of the real core. That something is
no longer found which must be reachable is told, but is no such case. A mutant that nothing catches must be the same as
the core for whatever it is given, as the solver says, or be listed below with the reason why it does no harm.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
import time
from collections import Counter
from concurrent.futures import as_completed
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import z3

from failstop.models.catalogue import specifications
from failstop.models.claim import OURS, PROVED, UNKNOWN, prove
from failstop.models.induction import Proofs
from failstop.models.mutants import Mutant, functions, mutants
from failstop.models.reader import fresh, parameters, read
from failstop.models.symbolic import Unreadable
from failstop.models.workers import workers
from failstop.runtime import cores

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from failstop.models.claim import Claim
    from failstop.models.specification import Specification

CAUGHT = "caught"
SAME = "same"
SURVIVED = "survived"
UNREADABLE = "unreadable"
UNDECIDED = "undecided"
"""What comes of a mutant: a proof fails; it gives the same as the core for whatever it is given; nothing fails; the
reader refuses it; a search found nothing, or the solver did not answer in time."""


class Harmless(NamedTuple):
    """A mutant that survives because it gives the same as the core for all that can come about."""

    core: str
    function: str
    edit: str
    reason: str


HARMLESS = (
    Harmless(
        "breaker",
        "report",
        "`(mode, generation, 0, until)` becomes `(mode, generation, until, 0)`",
        "The breaker is closed there, and a closed one keeps no time: zero changes places with zero.",
    ),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one mutant; told: the claim that failed, why it does no harm, or why nothing can be said."""

    mutant: Mutant
    status: str
    told: str
    seconds: float

    @property
    def core(self) -> str:
        """The name of its core."""
        return self.mutant.module.rpartition(".")[2]

    @property
    def reason(self) -> str:
        """The reason that is listed why it does no harm, if there is one."""
        place = (self.core, self.mutant.function, self.mutant.edit)
        return next((listed.reason for listed in HARMLESS if listed[:3] == place), "")

    @property
    def line(self) -> str:
        """The mutant, what came of it, and why."""
        told = self.told or self.reason
        return f"{_status(self)}: {self.mutant.name}" + (f": {told}" if told else "")


def all_cores() -> list[str]:
    """Name the cores."""
    return [found.name for found in pkgutil.iter_modules(cores.__path__)]


def mutants_of(core: str) -> list[Mutant]:
    """Give every mutant of every function of a core."""
    module = importlib.import_module(f"{cores.__name__}.{core}")
    return [mutant for function in functions(module) for mutant in mutants(module, function)]


def judge(mutant: Mutant) -> Outcome:
    """Put a mutant into its core and ask claim after claim, until one fails."""
    began = time.perf_counter()
    module = importlib.import_module(mutant.module)
    original = getattr(module, mutant.function)
    mutated = mutant.built(module)
    try:
        status, told = _failing(_affected(mutant.module, mutant.function), original, mutated)
    except Unreadable as error:
        status, told = UNREADABLE, str(error)
    return Outcome(mutant, status, told, time.perf_counter() - began)


def judge_all(chosen: Sequence[Mutant], jobs: int | None = None) -> Iterator[Outcome]:
    """Judge mutants on several processors, each as it comes."""
    with workers(jobs) as pool:
        for future in as_completed([pool.submit(judge, mutant) for mutant in chosen]):
            yield future.result()


def lines(outcomes: Collection[Outcome]) -> list[str]:
    """Spell what came of mutants: one line a core, and each mutant that was not caught."""
    names = sorted({outcome.core for outcome in outcomes})
    rows = [_row(name, [outcome for outcome in outcomes if outcome.core == name]) for name in names]
    others = sorted(outcome.line for outcome in outcomes if outcome.status != CAUGHT)
    gone = [f"listed as harmless, but it did not survive: {' '.join(one[:3])}" for one in not_surviving(outcomes)]
    return [_HEAD, *rows, _row("all", outcomes), *others, *gone]


def is_missed(outcome: Outcome) -> bool:
    """Say whether no proof notices a mutant and nobody says why it does no harm."""
    return outcome.status in {SURVIVED, UNDECIDED} and not outcome.reason


def not_surviving(outcomes: Collection[Outcome]) -> list[Harmless]:
    """Give what is listed of the functions that were judged, and is caught or no mutant any more."""
    judged = {(outcome.core, outcome.mutant.function) for outcome in outcomes}
    survived = {
        (outcome.core, outcome.mutant.function, outcome.mutant.edit)
        for outcome in outcomes
        if outcome.status in {SURVIVED, UNDECIDED}
    }
    return [one for one in HARMLESS if one[:2] in judged and one[:3] not in survived]


def main(arguments: Sequence[str]) -> int:
    """Judge every mutant of the cores named, or of all; 1 if one is missed, or the list of the harmless is wrong."""
    chosen = [mutant for core in arguments or all_cores() for mutant in mutants_of(core)]
    outcomes = []
    for outcome in judge_all(chosen):
        outcomes.append(outcome)
        print(f"{len(outcomes)}/{len(chosen)} {outcome.line} ({outcome.seconds:.1f} s)", file=sys.stderr, flush=True)  # noqa: T201
    print("\n".join(lines(outcomes)))  # noqa: T201 - what the command is for
    return int(any(is_missed(outcome) for outcome in outcomes) or bool(not_surviving(outcomes)))


_HARMLESS = "harmless"
_HEAD = "core     mutants  caught    same  harmless  survived  undecided  unreadable   share  seconds"


def _status(outcome: Outcome) -> str:
    return _HARMLESS if outcome.reason and outcome.status != CAUGHT else outcome.status


def _row(name: str, outcomes: Collection[Outcome]) -> str:
    count = Counter(_status(one) for one in outcomes)
    harmful = len(outcomes) - count[SAME] - count[_HARMLESS]
    share = f"{count[CAUGHT] / harmful:.1%}" if harmful else "-"
    seconds = sum(outcome.seconds for outcome in outcomes)
    return (
        f"{name:8} {len(outcomes):7} {count[CAUGHT]:7} {count[SAME]:7} {count[_HARMLESS]:9} {count[SURVIVED]:9}"
        f" {count[UNDECIDED]:10} {count[UNREADABLE]:11} {share:>7} {seconds:8.0f}"
    )


def _failing(affected: Sequence[_Affected], original: FunctionType, mutated: FunctionType) -> tuple[str, str]:
    undecided = ""
    for each in affected:
        each.read_the_rest()
        with _put_in(mutated, original):
            for claim in each.claims():
                answer = claim.ask()
                if answer.status == UNKNOWN:
                    undecided = f"{claim.protocol}: {claim.sentence}: {answer.told}"
                elif answer.status != PROVED:
                    return CAUGHT, f"{claim.protocol}: {claim.kind}: {claim.sentence}"
            # Asked before the next specification, which is larger.
            if _gives_the_same(original, mutated):
                return SAME, "for whatever it is given, the solver proves it equal to the core"
    with _put_in(mutated, original):
        for claim in (claim for each in affected for claim in each.reachable()):
            answer = claim.ask()
            if answer.status != PROVED:
                return UNDECIDED, f"{claim.protocol}: no longer found: {claim.sentence}: {answer.told}"
    return (UNDECIDED, undecided) if undecided else (SURVIVED, "")


@contextmanager
def _put_in(mutated: FunctionType, original: FunctionType) -> Iterator[None]:
    """Break the module of a function, for a while."""
    module = sys.modules[original.__module__]
    setattr(module, original.__name__, mutated)
    try:
        yield
    finally:
        setattr(module, original.__name__, original)


def _gives_the_same(original: FunctionType, mutated: FunctionType) -> bool:
    """Ask whether two functions give the same for whatever they are given."""
    given = [fresh(kind, name) for name, kind in parameters(original).items()]
    one, two = (read(function, given).leaves for function in (original, mutated))
    return prove(z3.And([a == b for a, b in zip(one, two, strict=True)])).status == PROVED


class _Affected:
    """A specification, and what of it a function of a core has a part in."""

    def __init__(self, spec: Specification, function: FunctionType) -> None:
        self._spec = spec
        self._touched = {each for each in spec.formulas if function in _called(each)}
        self._rest = {each: formula for each, formula in spec.formulas.items() if each not in self._touched}

    def read_the_rest(self) -> None:
        """Read what the function has no part in, once for all its mutants, and while the core is whole."""
        for formula in self._rest.values():
            _ = formula.reading

    def claims(self) -> Iterator[Claim]:
        """Give the promises of the steps in which the function has a part, laws first: they ask the least."""
        spec = self._spec
        steps = tuple(action for action in spec.actions if action in self._touched)
        if self._touched - set(spec.actions):
            steps = tuple(spec.actions)
        laws = [law._replace(of=tuple(each for each in law.of or steps if each in steps)) for law in spec.laws]
        # With fewer steps less can happen; that is asked of the whole specification, below.
        narrowed = self._copy(actions=steps, laws=[law for law in laws if law.of], outcomes={})
        claims = [claim for claim in Proofs(narrowed, traces=False).claims() if claim.kind != "reachable"]
        yield from sorted(claims, key=lambda claim: claim.kind != "law")

    def reachable(self) -> Iterator[Claim]:
        """Give what must be reachable: goals first, which ask more of a core than steps do."""
        claims = [claim for claim in Proofs(self._copy()).claims() if claim.kind == "reachable"]
        yield from reversed(claims)

    def _copy(self, **changes: Any) -> Specification:
        """Give the specification as it is before anything was read of the core."""
        spec = replace(self._spec, **changes)
        spec.formulas.update({each: formula for each, formula in self._rest.items() if each in spec.formulas})
        return spec


@cache
def _affected(module: str, name: str) -> tuple[_Affected, ...]:
    function = getattr(importlib.import_module(module), name)
    ours = [spec for spec in specifications().values() if spec.whose == OURS]
    speaking = [spec for spec in ours if any(function in _called(each) for each in spec.formulas)]
    # The smallest first: what it says takes the least time to ask.
    return tuple(_Affected(spec, function) for spec in sorted(speaking, key=_size))


def _size(spec: Specification) -> int:
    return len(spec.limits._fields) + len(spec.world._fields) + len(spec.call._fields)


@cache
def _called(function: FunctionType) -> set[FunctionType]:
    """Give the functions that one may call, itself included, by the names in them: rather one too many than too few."""
    called: set[FunctionType] = set()
    waiting = {function}
    while waiting:
        one = waiting.pop()
        called.add(one)
        names = one.__code__.co_names
        values = [one.__globals__[name] for name in names if name in one.__globals__]
        values += [getattr(value, name, None) for value in values if isinstance(value, ModuleType) for name in names]
        waiting |= {each for each in values if isinstance(each, FunctionType)} - called
    return called


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
