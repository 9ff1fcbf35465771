"""Planners that stay within their limits, right up to each of them: containment must let them finish."""

from __future__ import annotations

from typing import TYPE_CHECKING

from failstop.planners.actions import Call
from failstop.planners.catalogue import planner
from failstop.runtime.limits import Limits

if TYPE_CHECKING:
    from failstop.planners.actions import Plan

GENEROUS = Limits(max_cost_usd=10, max_steps=50, max_tool_calls=50, max_retries=10, max_seconds=60, max_repeats=3)


@planner(GENEROUS, ends_in="completed", dispatches=4, spent="0.05")
def well_behaved() -> Plan:
    """Search, read, think, write, and finish."""
    yield Call("search", {"query": "the manual"})
    yield Call("read_file", {"path": "manual"})
    yield Call("model", {"prompt": "sum it up"}, cost="0.05")
    yield Call("write_file", {"path": "summary"})
    return "done"


@planner(Limits(max_cost_usd="1.00"), ends_in="completed", promises=["happy", "cost"], dispatches=10, spent="1.00")
def right_at_the_cost_limit() -> Plan:
    """Spend exactly the ceiling, in tenths of a dollar that floats cannot add up."""
    for turn in range(10):
        yield Call("model", {"turn": turn}, cost="0.10")


@planner(Limits(max_steps=5), ends_in="completed", promises=["happy", "steps"], dispatches=5)
def right_at_the_step_limit() -> Plan:
    """Use exactly the steps that are allowed."""
    for page in range(5):
        yield Call("search", {"page": page})


@planner(Limits(max_tool_calls=3), ends_in="completed", promises=["happy", "tool_calls"], dispatches=6)
def right_at_the_tool_limit() -> Plan:
    """Use exactly the tool calls that are allowed, with thoughts between them."""
    for page in range(3):
        yield Call("search", {"page": page})
        yield Call("model", {"turn": page})


@planner(Limits(max_retries=2), ends_in="completed", promises=["happy", "retries"], dispatches=3, retries=2)
def right_at_the_retry_limit() -> Plan:
    """Succeed with the last retry that is allowed."""
    yield Call("search", {"query": "flaky"}, retries=2, misbehaves="fails-twice")


@planner(Limits(max_seconds=5), ends_in="completed", promises=["happy", "deadline"], dispatches=2)
def right_at_the_deadline() -> Plan:
    """Be done with four fifths of the time used up."""
    for page in range(2):
        yield Call("search", {"page": page}, misbehaves="slow")


@planner(Limits(max_repeats=3), ends_in="completed", promises=["happy", "repeats"], dispatches=7)
def right_at_the_repeat_limit() -> Plan:
    """Ask the same question as often as is allowed, then another, then the first again."""
    for query in ("A", "A", "A", "B", "A", "A", "A"):
        yield Call("search", {"query": query})
