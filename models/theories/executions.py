"""What the code does: real retry containers and contexts run around a call that always fails and counts itself.

Nothing about the code is assumed. Every count is compared with what Theorems 1, 2 and 5 say.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from typing import TYPE_CHECKING, TypeAlias

from failstop.models.claim import OURS, PROVED, REFUTED, UNKNOWN, Answer, Claim
from failstop.models.theories.amplification import agent_count, product_of
from failstop.runtime.chain.context import ExecutionContext
from failstop.runtime.clock import VirtualClock
from failstop.runtime.limits import Limits
from failstop.runtime.policies.retry import RetryContainer
from failstop.runtime.stops import RetryStop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from failstop.models.theories.amplification import Layers

NAME = "executions"

Execution: TypeAlias = "tuple[str, object, object]"
"""What was run, what was counted, and what the formula says."""


class FailureError(Exception):
    """What the innermost call always raises."""


class NestedRetries:
    """Retry containers within each other around a call that always fails; counts for itself, layer by layer."""

    def __init__(self, layers: Layers, context: ExecutionContext | None = None) -> None:
        clock = VirtualClock()
        self._containers = [RetryContainer(r, clock=clock, context=context) for r in layers]
        self.calls = [0] * len(layers)
        self.operations = 0
        with contextlib.suppress(FailureError, RetryStop):
            self._operation(0)

    @property
    def retries(self) -> int:
        """How many calls were not the first of their operation."""
        return sum(self.calls) - self.operations

    def _operation(self, layer: int) -> None:
        self.operations += 1
        self._containers[layer].execute(self._call, layer)

    def _call(self, layer: int) -> None:
        self.calls[layer] += 1
        if layer + 1 == len(self.calls):
            raise FailureError
        self._operation(layer + 1)


class SpawningAgents:
    """Real contexts that spawn K children each, to depth D; every one makes S steps of a call that always fails."""

    def __init__(self, spawned: int, depth: int, steps: int, tries: int) -> None:
        self._spawned, self._steps, self._tries = spawned, steps, tries
        self.agents = self.calls = 0
        clock = VirtualClock()
        with ExecutionContext(Limits(), clock=clock) as coordinator:
            self._run(coordinator, depth, clock)

    def _run(self, agent: ExecutionContext, depth: int, clock: VirtualClock) -> None:
        self.agents += 1
        container = RetryContainer(self._tries, clock=clock, context=agent)
        for _ in range(self._steps):
            with contextlib.suppress(FailureError):
                container.execute(self._call)
        for _ in range(self._spawned if depth else 0):
            self._run(agent.create_child(), depth - 1, clock)

    def _call(self) -> None:
        self.calls += 1
        raise FailureError


def all_layers() -> Iterator[Layers]:
    """Give every choice of 0 to 3 retries at each of 1 to 3 layers."""
    for depth in (1, 2, 3):
        yield from itertools.product(range(4), repeat=depth)


def nested_executions(formula: Callable[[Layers], int] = product_of) -> Iterator[Execution]:
    """Run nested containers without a context."""
    for layers in all_layers():
        run = NestedRetries(layers)
        expected = (formula(layers), sum(formula(layers[: n + 1]) for n in range(len(layers))))
        yield f"retries {layers}, innermost and all calls", (run.calls[-1], sum(run.calls)), expected


def spawning_executions(formula: Callable[[int, int], int] = agent_count) -> Iterator[Execution]:
    """Run agents that spawn agents, without ceilings."""
    for spawned, depth, steps, tries in itertools.product((1, 2, 3), range(4), (1, 2, 3), range(3)):
        run = SpawningAgents(spawned, depth, steps, tries)
        count = formula(spawned, depth)
        case = f"K = {spawned}, D = {depth}, S = {steps}, r = {tries}, agents and calls"
        yield case, (run.agents, run.calls), (count, count * steps * (1 + tries))


def contained_executions(allowed: Callable[[int], int] = int) -> Iterator[Execution]:
    """Run nested containers within one chain of at most R retries: as many as they want, but no more than R."""
    for layers, budget in itertools.product(all_layers(), range(4)):
        free = NestedRetries(layers)
        with ExecutionContext(Limits(max_retries=budget), clock=VirtualClock()) as context:
            run = NestedRetries(layers, context)
        counted = (run.retries, sum(run.calls) <= run.operations + budget)
        yield f"retries {layers}, R = {budget}, retries and bound", counted, (min(allowed(budget), free.retries), True)


def compare(executions: Iterable[Execution]) -> Answer:
    """Run them and compare each count with its formula; the first difference refutes, and none run is unknown."""
    began = time.perf_counter()
    number, status, told = 0, UNKNOWN, "nothing was run"
    for case, counted, expected in executions:
        number += 1
        status, told = PROVED, f"the last of {number}: {case}: {counted}"
        if counted != expected:
            status, told = REFUTED, f"{case}: counted {counted}, the formula says {expected}"
            break
    return Answer(status, told, number, time.perf_counter() - began)


def claims() -> list[Claim]:
    """Give the counts of real executions."""

    def of(theorem: str, sentence: str, executions: Callable[[], Iterable[Execution]]) -> Claim:
        return Claim(theorem, OURS, NAME, "count", sentence, lambda: compare(executions()))

    nested = "real retry containers within each other make exactly these calls, innermost and in all"
    spawning = "real contexts that spawn children make exactly these calls"
    contained = "real retry containers within each other retry at most R times under a chain of at most R retries"
    return [
        of("T1", nested, nested_executions),
        of("T2", spawning, spawning_executions),
        of("T5", contained, contained_executions),
    ]
