"""How calls multiply: Theorems 1, 2 and 5 about nested retries, agents that spawn agents, and a budget of retries."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import z3

from failstop.models.claim import OURS, PUBLISHED, REFUTED, Answer, Claim, all_of, prove
from failstop.models.theories.natural import Induction, whole

if TYPE_CHECKING:
    from collections.abc import Callable

NAME = "amplification"

Layers: TypeAlias = "tuple[int, ...]"
"""The retries at each layer, the outermost first."""


# Repeating: what turns a loop into a product.

EACH = z3.Int("each")
one_round, at_most, exactly = whole("one_round"), whole("at_most"), whole("exactly")


def _told_rounds(count: int, model: z3.ModelRef) -> str:
    made = [model.eval(one_round(n), model_completion=True) for n in range(count)]
    return f"{count} rounds of {made} calls, each at most {model.eval(EACH, model_completion=True)}"


ROUNDS = Induction(
    holds=lambda n: z3.And(at_most(n) <= exactly(n), exactly(n) == n * EACH),
    start=(at_most(0) == 0, exactly(0) == 0),
    unfold=lambda n: [at_most(n + 1) == at_most(n) + one_round(n), exactly(n + 1) == exactly(n) + EACH],
    given=lambda n: [one_round(n) <= EACH],
    show=_told_rounds,
)
"""n rounds of at most x calls each make at most n * x calls, and n rounds of x calls make exactly that."""


# Theorem 1: nested retries. A layer's calls are the rounds of the layer around it, each of 1 + r attempts.

retries, product = whole("retries"), whole("product")
made, innermost = whole("made"), whole("innermost")
nodes, prefix_products = whole("nodes"), whole("prefix_products")
OUTER = z3.Int("outer")
around, around_nodes = whole("around"), whole("around_nodes")


def _layer(n: z3.ArithRef) -> list[z3.BoolRef]:
    """Unfold layer n: `made` by any retries up to r, `innermost` by all of them."""
    return [
        product(n + 1) == product(n) * (1 + retries(n)),
        innermost(n + 1) == innermost(n) * (1 + retries(n)),
        made(n + 1) <= made(n) * (1 + retries(n)),
        made(n + 1) >= 0,
        nodes(n + 1) == nodes(n) + innermost(n + 1),
        prefix_products(n + 1) == prefix_products(n) + product(n + 1),
    ]


def _told_layers(count: int, model: z3.ModelRef) -> str:
    layers = tuple(model.eval(retries(n), model_completion=True).as_long() for n in range(count))
    return _compared(layers)


def _compared(layers: Layers) -> str:
    parts = " + ".join(str(math.prod(1 + r for r in layers[: n + 1])) for n in range(len(layers)))
    return (
        f"L = {len(layers)}, r = {layers}: {parts} = {all_nodes(layers)} calls, the product says {product_of(layers)}"
    )


def _not_negative(n: z3.ArithRef) -> list[z3.BoolRef]:
    return [retries(n) >= 0]


NESTED = Induction(
    holds=lambda n: z3.And(made(n) <= product(n), innermost(n) == product(n), product(n) >= 1, made(n) >= 0),
    start=(product(0) == 1, innermost(0) == 1, made(0) == 1),
    unfold=_layer,
    given=_not_negative,
    show=_told_layers,
)
"""The innermost calls are at most the product of (1 + r), and as many when everything fails."""

NODES = Induction(
    holds=lambda n: z3.And(innermost(n) == product(n), nodes(n) == prefix_products(n)),
    start=(product(0) == 1, innermost(0) == 1, nodes(0) == 0, prefix_products(0) == 0),
    unfold=_layer,
    given=_not_negative,
    show=_told_layers,
)
"""Counted layer by layer, all calls are the sum of the prefix products."""

AROUND = Induction(
    holds=lambda n: z3.And(
        around(n) == (1 + OUTER) * product(n), around_nodes(n) == (1 + OUTER) * (1 + prefix_products(n))
    ),
    start=(product(0) == 1, prefix_products(0) == 0, around(0) == 1 + OUTER, around_nodes(0) == 1 + OUTER),
    unfold=lambda n: [
        *_layer(n),
        around(n + 1) == around(n) * (1 + retries(n)),
        around_nodes(n + 1) == around_nodes(n) + around(n + 1),
    ],
    given=_not_negative,
    show=_told_layers,
)
"""Counted as a retry loop counts, each of 1 + r attempts being one call and all within it, it is the same sum."""

AS_PUBLISHED = Induction(
    holds=lambda n: nodes(n) <= product(n),
    start=NODES.start,
    unfold=_layer,
    given=lambda n: [retries(n) >= 1, retries(n) <= 3],  # noqa: PLR2004 - as many as in the published example
    show=_told_layers,
)


def product_of(layers: Layers) -> int:
    """Give the innermost calls of nested retries that all fail."""
    return math.prod(1 + r for r in layers)


def all_nodes(layers: Layers) -> int:
    """Give all calls of nested retries that all fail: at each layer the product down to it."""
    return sum(product_of(layers[: n + 1]) for n in range(len(layers)))


def published_example() -> Answer:
    """Ask for the numbers at three layers of three retries: 64 innermost calls, 84 in all."""
    threes = [retries(n) == 3 for n in range(3)]  # noqa: PLR2004 - the published example
    return prove(z3.And(product(3) == 64, nodes(3) == 84), *NODES.first(3), *threes)  # noqa: PLR2004 - and its numbers


def product_as_total() -> Answer:
    """Put the published total to the solver, with tool calls as nodes, as Definition 1 has them."""
    answer = AS_PUBLISHED.ask()
    told = f"{answer.told}; at the published {_compared((3, 3, 3))}" if answer.status == REFUTED else answer.told
    return answer._replace(told=told)


# Theorem 2: agents that spawn agents.

SPAWNED, STEPS, TRIES = z3.Ints("K S r")
power, level, agents = whole("power"), whole("level"), whole("agents")


def _depth(n: z3.ArithRef) -> list[z3.BoolRef]:
    """Unfold depth n: each agent of a level spawns K of the next."""
    return [
        power(n + 1) == power(n) * SPAWNED,
        level(n + 1) == level(n) * SPAWNED,
        agents(n + 1) == agents(n) + level(n + 1),
    ]


def _told_agents(depth: int, model: z3.ModelRef) -> str:
    spawned = model.eval(SPAWNED, model_completion=True).as_long()
    counted = agent_count(spawned, depth)
    formula = f"({spawned}^{depth + 1} - 1) / ({spawned} - 1) = {spawned ** (depth + 1) - 1} / {spawned - 1}"
    return f"K = {spawned}, D = {depth}: {formula}, and the agents are {counted}"


def _geometric(n: z3.ArithRef) -> z3.BoolRef:
    return z3.And(level(n) == power(n), (SPAWNED - 1) * agents(n) == power(n) * SPAWNED - 1)


def _spawning(holds: Callable[[z3.ArithRef], z3.BoolRef], at_least: int) -> Induction:
    start = (power(0) == 1, level(0) == 1, agents(0) == 1)
    return Induction(holds, start, _depth, _told_agents, fixed=(at_least <= SPAWNED,))


SPAWNING = _spawning(lambda n: z3.And(_geometric(n), z3.Implies(SPAWNED == 1, agents(n) == n + 1)), at_least=1)
"""The agents A to depth D obey (K - 1) * A = K^(D+1) - 1, and are D + 1 at K = 1."""

QUOTIENT = _spawning(lambda n: z3.And(SPAWNED - 1 > 0, _geometric(n)), at_least=2)

QUOTIENT_ALWAYS = _spawning(lambda n: z3.Implies(n > 0, z3.And(SPAWNED - 1 != 0, _geometric(n))), at_least=1)


def agent_count(spawned: int, depth: int) -> int:
    """Give the agents when each spawns so many, to this depth, the coordinator at depth 0."""
    return depth + 1 if spawned == 1 else (spawned ** (depth + 1) - 1) // (spawned - 1)


def calls_of_all() -> Answer:
    """Ask whether A agents of S steps of 1 + r calls make A * S * (1 + r), each product being so many rounds."""
    count, of_agent, total = z3.Ints("A of_agent total")
    loops = (of_agent == STEPS * (1 + TRIES), total == count * of_agent)
    return all_of([ROUNDS.ask(), prove(total == count * STEPS * (1 + TRIES), *loops)])


def published_agents() -> Answer:
    """Ask for the published example: 31 agents at K = 5, D = 2, and 1240 calls of 10 steps with 3 retries."""
    example = (SPAWNED == 5, STEPS == 10, TRIES == 3)  # noqa: PLR2004 - as published
    counted = z3.And(agents(2) == 31, agents(2) * STEPS * (1 + TRIES) == 1240)  # noqa: PLR2004 - as published
    return prove(counted, *SPAWNING.first(2), *example)


# Theorem 5: a budget of retries.

BUDGET = z3.Int("R")
used, calls = whole("used"), whole("calls")


def _told_budget(count: int, model: z3.ModelRef) -> str:
    budget = model.eval(BUDGET, model_completion=True)
    each = [model.eval(retries(n), model_completion=True).as_long() for n in range(count)]
    made_calls = count + sum(each)
    return f"{count} operations, R = {budget}, retries {each}: {made_calls} calls, and 1 + R is {budget.as_long() + 1}"


def _budget(holds: Callable[[z3.ArithRef], z3.BoolRef]) -> Induction:
    return Induction(
        holds,
        start=(used(0) == 0, calls(0) == 0),
        unfold=lambda n: [used(n + 1) == used(n) + retries(n), calls(n + 1) == calls(n) + 1 + retries(n)],
        show=_told_budget,
        given=_not_negative,
        fixed=(BUDGET >= 0,),
    )


ONE_AND_BUDGET = _budget(lambda n: z3.Implies(used(n) <= BUDGET, calls(n) <= 1 + BUDGET))
OPERATIONS_AND_BUDGET = _budget(
    lambda n: z3.And(calls(n) == n + used(n), z3.Implies(used(n) <= BUDGET, calls(n) <= n + BUDGET))
)


def claims() -> list[Claim]:
    """Give Theorems 1, 2 and 5, as published and as they are true."""

    def of(guarantee: str, whose: str, sentence: str, ask: Callable[[], Answer]) -> Claim:
        return Claim(guarantee, whose, NAME, "bound", sentence, ask)

    def nested() -> Answer:
        return all_of([ROUNDS.ask(), NESTED.ask()])

    return [
        of("T1", PUBLISHED, "the innermost calls of L nested layers are the product of (1 + r_i)", nested),
        of("T1", PUBLISHED, "all calls, tool calls too, are the product of (1 + r_i)", product_as_total),
        of("T1", OURS, "innermost calls: at most the product of (1 + r_i), reached if all fail", nested),
        of(
            "T1",
            OURS,
            "all calls are the sum of the prefix products: 84 at three layers of three retries, 64 of them innermost",
            lambda: all_of([ROUNDS.ask(), NODES.ask(), AROUND.ask(), published_example()]),
        ),
        of(
            "T2",
            PUBLISHED,
            "for K >= 2 all calls are (K^(D+1) - 1) / (K - 1) * S * (1 + r)",
            lambda: all_of([QUOTIENT.ask(), calls_of_all(), published_agents()]),
        ),
        of("T2", PUBLISHED, "for every K >= 1 the agents are (K^(D+1) - 1) / (K - 1)", QUOTIENT_ALWAYS.ask),
        of(
            "T2",
            OURS,
            "agents A: (K - 1) * A = K^(D+1) - 1 for K >= 1, and A = D + 1 at K = 1; A * S * (1 + r) calls",
            lambda: all_of([SPAWNING.ask(), calls_of_all(), published_agents()]),
        ),
        of("T5", PUBLISHED, "at most R retries bound all calls at 1 + R", ONE_AND_BUDGET.ask),
        of("T5", OURS, "at most R retries bound all calls at operations + R", OPERATIONS_AND_BUDGET.ask),
    ]
