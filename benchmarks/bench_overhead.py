"""What one call, one spend, one check costs, beside one bare lock acquire and release measured in the same run.

Every row is a function without arguments, timed by the same harness, so the cost of calling it is on both sides.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from failstop.runtime.chain.context import ExecutionContext
from failstop.runtime.limits import Limits
from failstop.runtime.money import Money
from failstop.runtime.policies.budget import BudgetEnforcer

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_benchmark.fixture import BenchmarkFixture

ROUNDS = 300
CALLS_A_ROUND = 2000
MANY = 10**9
NANO_DOLLAR = Money(1)


def no_op() -> None:
    """Do nothing, as the paper's stub does."""


def bare_lock() -> Callable[[], object]:
    """Acquire and release one lock: what every ratio is to."""
    lock = threading.Lock()

    def run() -> None:
        lock.acquire()
        lock.release()

    return run


def call_under_a_step_ceiling() -> Callable[[], object]:
    """A chain that counts steps only."""
    ctx = ExecutionContext(Limits(max_steps=MANY))
    return lambda: ctx.call(no_op)


def call_free_under_every_ceiling() -> Callable[[], object]:
    """Cost, steps, tool calls, retries and time are all limited; the call says that it is free."""
    ctx = ExecutionContext(
        Limits(max_cost_usd=MANY, max_steps=MANY, max_tool_calls=MANY, max_retries=MANY, max_seconds=MANY)
    )
    return lambda: ctx.call(no_op, cost=0, kind="tool")


def call_that_costs() -> Callable[[], object]:
    """Every call holds and is charged a nano-dollar, in a second critical section."""
    ctx = ExecutionContext(Limits(max_cost_usd=MANY, max_steps=MANY))
    return lambda: ctx.call(no_op, cost=NANO_DOLLAR)


def spend() -> Callable[[], object]:
    """Check and commit one amount."""
    budget = BudgetEnforcer(MANY)
    return lambda: budget.spend(NANO_DOLLAR)


CASES = [bare_lock, call_under_a_step_ceiling, call_free_under_every_ceiling, call_that_costs, spend]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_overhead(benchmark: BenchmarkFixture, case: Callable[[], Callable[[], object]]) -> None:
    """Time one row."""
    benchmark.pedantic(case(), rounds=ROUNDS, iterations=CALLS_A_ROUND, warmup_rounds=5)  # type: ignore[no-untyped-call]  # its own gap
