"""Sentences about every number of callers, layers, additions: true of none, and of one more whenever of so many.

Sums, products and powers of any length are ghosts here: functions of n of which nothing is known but what each question
unfolds, the first value and the step from one to the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import z3

from failstop.models.claim import PROVED, REFUTED, UNKNOWN, Answer, all_of, prove, solve

if TYPE_CHECKING:
    from collections.abc import Callable

Facts: TypeAlias = "Callable[[z3.ArithRef], list[z3.BoolRef]]"
"""What is known of number n."""
Shown: TypeAlias = "Callable[[int, z3.ModelRef], str]"
"""A counterexample with so many of them, as a person reads it."""

SMALL = 4
"""Up to which n a counterexample is looked for; what is false for more only is unknown."""


def whole(name: str) -> z3.FuncDeclRef:
    """Name a ghost whose values are whole numbers."""
    return z3.Function(name, z3.IntSort(), z3.IntSort())


def real(name: str) -> z3.FuncDeclRef:
    """Name a ghost whose values are real numbers."""
    return z3.Function(name, z3.IntSort(), z3.RealSort())


def nothing(_: z3.ArithRef) -> list[z3.BoolRef]:
    """Assume nothing."""
    return []


@dataclass(frozen=True, slots=True)
class Induction:
    """A sentence about every n >= 0, proved for 0 and from each n to the next.

    holds: the sentence about n. start: what its functions are at 0; unfold: what they are at n + 1, in terms of n.
    given: what is assumed of number n (a caller, a layer, an addition). fixed: what is assumed of the constants. show:
    a counterexample with n of them, as a person reads it.
    """

    holds: Callable[[z3.ArithRef], z3.BoolRef]
    start: tuple[z3.BoolRef, ...]
    unfold: Facts
    show: Shown
    given: Facts = nothing
    fixed: tuple[z3.BoolRef, ...] = ()

    def ask(self) -> Answer:
        """Ask for the first case and the step; a step that fails refutes nothing, a small case does."""
        n = z3.Int("n")
        first = prove(self.holds(z3.IntVal(0)), *self.first(0))
        step = prove(self.holds(n + 1), *self.fixed, n >= 0, self.holds(n), *self.given(n), *self.unfold(n))
        proof = all_of([first, step])
        return proof if proof.status == PROVED else self._smallest(proof)

    def first(self, count: int) -> list[z3.BoolRef]:
        """Give all that is known when there are so many of them, unfolded."""
        numbers = [z3.IntVal(n) for n in range(count)]
        return [*self.fixed, *self.start, *(fact for n in numbers for fact in [*self.given(n), *self.unfold(n)])]

    def _smallest(self, failed: Answer) -> Answer:
        """Look for the smallest counterexample; without one the proof has failed and nothing is known."""
        questions, seconds = failed.questions, failed.seconds
        for count in range(SMALL + 1):
            wrong = z3.Not(self.holds(z3.IntVal(count)))
            status, told, took = solve(*self.first(count), wrong, tell=partial(self.show, count))
            questions, seconds = questions + 1, seconds + took
            if status == z3.sat:
                return Answer(REFUTED, told, questions, seconds)
        return Answer(UNKNOWN, f"not inductive, and no counterexample up to n = {SMALL}", questions, seconds)
