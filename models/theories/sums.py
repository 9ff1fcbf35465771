"""Sums over any number of callers: what lets a proof name two or three calls and leave the others in a rest.

`Sum(terms, n)` is uninterpreted, and nothing is known of it but what each question unfolds: an empty sum is zero, and
one more caller adds that caller's term. Every lemma is a first case and a step, so it holds for any number.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import z3

from failstop.models.claim import OURS, Answer, Claim, all_of, find, prove
from failstop.models.theories.natural import Induction, nothing

if TYPE_CHECKING:
    from collections.abc import Callable

    from failstop.models.theories.natural import Facts

NAME = "sums"

TERMS = z3.ArraySort(z3.IntSort(), z3.IntSort())
Sum = z3.Function("Sum", TERMS, z3.IntSort(), z3.IntSort())

F, G = z3.Const("f", TERMS), z3.Const("g", TERMS)
I, J, K = z3.Ints("i j k")  # noqa: E741 - three callers, named as in the sentences
VALUE = z3.Int("value")
MOST, CAP = z3.Ints("e N")
"""The most that one call may overrun, and how many calls may."""
NAMED = (I, J, K)
DISTINCT = z3.Distinct(*NAMED)


def over(
    holds: Callable[[z3.ArithRef], z3.BoolRef],
    *sums: z3.ArrayRef,
    given: Facts = nothing,
    fixed: tuple[z3.BoolRef, ...] = (),
) -> Induction:
    """State a lemma about the `sums` over the first n callers, given something of each caller."""

    def show(count: int, model: z3.ModelRef) -> str:
        told = [f"{count} callers"]
        for terms in (F, G):
            values = [str(model.eval(terms[caller], model_completion=True)) for caller in range(count)]
            told.append(f"{terms} = [{', '.join(values)}]")
        told += [
            f"{constant} = {model[constant]}" for constant in (*NAMED, VALUE, MOST, CAP) if model[constant] is not None
        ]
        return "; ".join(told)

    return Induction(
        holds,
        start=tuple(Sum(terms, 0) == 0 for terms in sums),
        unfold=lambda n: [Sum(terms, n + 1) == Sum(terms, n) + terms[n] for terms in sums],
        show=show,
        given=given,
        fixed=fixed,
    )


def not_below_zero(*families: z3.ArrayRef) -> Facts:
    """Assume of each caller that its terms are zero or more."""
    return lambda caller: [terms[caller] >= 0 for terms in families]


def among(caller: z3.ArithRef, n: z3.ArithRef) -> z3.BoolRef:
    """Say that the caller is one of the first n."""
    return z3.And(caller >= 0, caller < n)


def without(terms: z3.ArrayRef, callers: tuple[z3.ArithRef, ...]) -> z3.ArrayRef:
    """Give the rest: the same terms, with zero for the callers that are named."""
    for caller in callers:
        terms = z3.Store(terms, caller, 0)
    return terms


def part(callers: tuple[z3.ArithRef, ...], n: z3.ArithRef) -> z3.ArithRef:
    """Add up the terms of those named callers that are among the first n."""
    return z3.Sum([z3.If(among(caller, n), F[caller], 0) for caller in callers])


NOT_NEGATIVE = over(lambda n: Sum(F, n) >= 0, F, given=not_below_zero(F))

AT_LEAST_TWO = over(lambda n: Sum(F, n) >= part((I, J), n), F, given=not_below_zero(F), fixed=(I != J,))

AT_LEAST_THREE = over(lambda n: Sum(F, n) >= part(NAMED, n), F, given=not_below_zero(F), fixed=(DISTINCT,))

REST = without(F, NAMED)
SPLIT = over(lambda n: Sum(F, n) == part(NAMED, n) + Sum(REST, n), F, REST, fixed=(DISTINCT,))

CHANGED = z3.Store(F, I, VALUE)
DIFFERENCE = over(
    lambda n: Sum(CHANGED, n) == Sum(F, n) + z3.If(among(I, n), VALUE - F[I], 0),
    F,
    CHANGED,
)


def below(caller: z3.ArithRef) -> list[z3.BoolRef]:
    """Assume f(c) <= g(c)."""
    return [F[caller] <= G[caller]]


MONOTONE = over(lambda n: Sum(F, n) <= Sum(G, n), F, G, given=below)

REST_G = without(G, NAMED)
MONOTONE_REST = over(
    lambda n: Sum(REST, n) <= Sum(REST_G, n),
    REST,
    REST_G,
    given=lambda caller: [z3.Or(*(caller == named for named in NAMED), *below(caller))],
)

NOTHING_LEFT = over(
    lambda n: z3.And(Sum(F, n) >= 0, Sum(G, n) >= 0, z3.Implies(Sum(G, n) == 0, Sum(F, n) == 0)),
    F,
    G,
    given=lambda caller: [*not_below_zero(F, G)(caller), z3.Implies(G[caller] == 0, F[caller] == 0)],
)


def overrun(caller: z3.ArithRef) -> list[z3.BoolRef]:
    """Assume f(c) <= e, and that g(c) counts the caller when f(c) is not zero."""
    return [F[caller] <= MOST, G[caller] == z3.If(F[caller] == 0, 0, 1)]


OVERRUNS = over(
    lambda n: z3.And(Sum(F, n) <= Sum(G, n) * MOST, z3.Implies(Sum(G, n) <= CAP, Sum(F, n) <= CAP * MOST)),
    F,
    G,
    given=overrun,
    fixed=(MOST >= 0, CAP >= 0),
)

REACHED = over(
    lambda n: z3.And(
        Sum(F, n) == z3.If(n <= CAP, n, CAP) * MOST, z3.Implies(MOST != 0, Sum(G, n) == z3.If(n <= CAP, n, CAP))
    ),
    F,
    G,
    given=lambda caller: [*overrun(caller), F[caller] == z3.If(caller < CAP, MOST, 0)],
    fixed=(MOST >= 0, CAP >= 0),
)
"""The first N overrun by e each and nobody else does: the bound is met for any N, e and number of callers."""


def rest_is_untouched() -> Answer:
    """Ask whether a rest can tell that a named caller changed."""
    return all_of([prove(without(z3.Store(F, named, VALUE), NAMED) == REST, DISTINCT) for named in NAMED])


def example_of_the_bound() -> Answer:
    """Find three callers, two of whom overrun, whose excesses together are as large as the bound allows."""
    never_less = [F[caller] >= 0 for caller in range(3)]
    reached = [MOST == 5, CAP == 2, Sum(G, 3) <= CAP, Sum(F, 3) == CAP * MOST]  # noqa: PLR2004 - three callers
    return find(*OVERRUNS.first(3), *never_less, *reached, tell=partial(OVERRUNS.show, 3))


def claims() -> list[Claim]:
    """Give the lemmas, for sums over any number of callers."""
    return [
        _lemma("T3", "terms of zero or more have a sum of zero or more", NOT_NEGATIVE.ask),
        _lemma("T3", "a sum of terms >= 0 is at least the terms of any two callers together", AT_LEAST_TWO.ask),
        _lemma("T3", "a sum of terms >= 0 is at least the terms of any three callers together", AT_LEAST_THREE.ask),
        _lemma("T3", "a sum is the terms of three named callers and the rest", SPLIT.ask),
        _lemma("T3", "the rest is the same whatever the named callers do", rest_is_untouched),
        _lemma("T3", "one caller's change changes the sum by exactly the difference", DIFFERENCE.ask),
        _lemma("T3", "f(c) <= g(c) for every caller makes Sum f <= Sum g", MONOTONE.ask),
        _lemma("T3", "f(c) <= g(c) for every caller but the named makes Rest f <= Rest g", MONOTONE_REST.ask),
        _lemma("T3", "where g(c) = 0 makes f(c) = 0, both >= 0, Sum g = 0 makes Sum f = 0", NOTHING_LEFT.ask),
        _lemma("G1", "at most N calls that overrun by at most e overrun by N * e together", OVERRUNS.ask),
        _lemma("G1", "the first N calls overrunning by e each reach N * e, for every N and e", REACHED.ask),
        _lemma("G1", "two of three calls can overrun by 2 * e together", example_of_the_bound),
    ]


def _lemma(guarantee: str, sentence: str, ask: Callable[[], Answer]) -> Claim:
    return Claim(guarantee, OURS, NAME, "lemma", sentence, ask)
