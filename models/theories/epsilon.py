"""What a guard against rounding permits: a ceiling that is passed by an epsilon, in every chain anew (G1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import z3

from failstop.models.claim import PUBLISHED, Answer, Claim, all_of, find, prove
from failstop.models.theories.floats import DOWN, FIRST, LIMIT, NEAREST, SECOND, one_of, refused, trace, value
from failstop.models.theories.natural import Induction, real

if TYPE_CHECKING:
    from collections.abc import Callable

NAME = "epsilon"

EPSILON = 1e-9
"""The published guard."""


def guard_keeps_the_ceiling() -> Answer:
    """Ask whether a chain that has spent its ceiling refuses every cost of 10^-6 to 10^-9 under the guard."""
    guarded = z3.fpAdd(NEAREST, LIMIT, value(EPSILON))
    spent = z3.And(one_of(LIMIT, [1.0]), one_of(FIRST, [1.0]), one_of(SECOND, [1e-6, 1e-7, 1e-8, 1e-9]))
    truly_over = z3.fpGT(z3.fpAdd(DOWN, FIRST, SECOND), LIMIT)
    answer = prove(z3.Implies(truly_over, refused(FIRST, SECOND, guarded)), spent, tell=_guarded_trace)
    more = f"in costs of 1e-10, {calls_above(1.0, 1e-10)} calls more are accepted than fit"
    return answer._replace(told=f"{answer.told}\n{more}" if answer.told else "")


def _guarded_trace(model: z3.ModelRef) -> str:
    return trace(LIMIT, FIRST, SECOND, model=model, guard=EPSILON)


def calls_above(limit: float, cost: float, guard: float = EPSILON) -> int:
    """Count the calls that are accepted when the ceiling is spent already."""
    spent, calls = limit, 0
    while not spent + cost > limit + guard:
        spent, calls = spent + cost, calls + 1
    return calls


CEILING, GUARD = z3.Reals("C epsilon")
total, paid, chain, all_chains = real("total"), real("paid"), real("chain"), real("all_chains")


def _told_guard(count: int, model: z3.ModelRef) -> str:
    told = [f"C = {model.eval(CEILING, model_completion=True)}, epsilon = {model.eval(GUARD, model_completion=True)}"]
    for name, each in (("costs", paid), ("chains", chain)):
        told.append(f"{name} {[str(model.eval(each(n), model_completion=True)) for n in range(count)]}")
    return "; ".join(told)


ONE_CHAIN = Induction(
    holds=lambda n: total(n) <= CEILING + GUARD,
    start=(total(0) == 0,),
    unfold=lambda n: [
        total(n + 1) == z3.If(total(n) + paid(n) > CEILING + GUARD, total(n), total(n) + paid(n)),
    ],
    given=lambda n: [paid(n) >= 0],
    fixed=(CEILING >= 0, GUARD > 0),
    show=_told_guard,
)
MANY_CHAINS = Induction(
    holds=lambda n: all_chains(n) <= z3.ToReal(n) * (CEILING + GUARD),
    start=(all_chains(0) == 0,),
    unfold=lambda n: [all_chains(n + 1) == all_chains(n) + chain(n)],
    given=lambda n: [chain(n) <= CEILING + GUARD],
    fixed=(CEILING >= 0, GUARD > 0),
    show=_told_guard,
)
"""n chains pass their ceilings by at most n epsilons together."""
MANY_REACHED = Induction(
    holds=lambda n: all_chains(n) == z3.ToReal(n) * CEILING + z3.ToReal(n) * GUARD,
    start=MANY_CHAINS.start,
    unfold=MANY_CHAINS.unfold,
    given=lambda n: [chain(n) == CEILING + GUARD],
    fixed=MANY_CHAINS.fixed,
    show=_told_guard,
)


def guard_is_bounded() -> Answer:
    """Ask for the bound on one chain and on n, and whether both are met."""
    met = find(*ONE_CHAIN.first(1), total(1) == CEILING + GUARD)
    return all_of([ONE_CHAIN.ask(), met._replace(told=""), MANY_CHAINS.ask(), MANY_REACHED.ask()])


def claims() -> list[Claim]:
    """Give what is true, and what is not, of a ceiling with a guard."""
    return [
        _published("with a guard of 1e-9 the total stays at most the ceiling", guard_keeps_the_ceiling),
        _published("with a guard n chains spend at most n * guard more than their ceilings", guard_is_bounded),
    ]


def _published(sentence: str, ask: Callable[[], Answer]) -> Claim:
    return Claim("G1", PUBLISHED, NAME, "float", sentence, ask)
