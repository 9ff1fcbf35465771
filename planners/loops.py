"""Planners that go in circles. Only exact repetition is a loop: keys in another order are, A, B, A, B is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from failstop.planners.actions import Call, Parallel, ToolFailed
from failstop.planners.catalogue import planner
from failstop.runtime.limits import Limits

if TYPE_CHECKING:
    from failstop.planners.actions import Plan


@planner(Limits(max_repeats=3, max_steps=50), ends_in="repeats", dispatches=3)
def repeats() -> Plan:
    """Ask the same question again and again."""
    while True:
        yield Call("search", {"query": "weather", "page": 1})


@planner(Limits(max_repeats=3, max_steps=50), ends_in="repeats", dispatches=3)
def reorders_keys() -> Plan:
    """Ask the same question with its arguments in another order each time."""
    while True:
        yield Call("search", {"query": "weather", "page": 1})
        yield Call("search", {"page": 1, "query": "weather"})


@planner(Limits(max_repeats=3, max_steps=10), ends_in="steps", promises=["repeats", "steps"], dispatches=10)
def alternates() -> Plan:
    """Ask A, B, A, B for ever: no loop by this definition, so the steps end it."""
    while True:
        yield Call("search", {"query": "A"})
        yield Call("search", {"query": "B"})


@planner(Limits(max_repeats=3, max_steps=50), ends_in="repeats", dispatches=0)
def repeats_an_unknown_tool() -> Plan:
    """Call a tool that does not exist, again and again."""
    while True:
        try:
            yield Call("teleport", {"to": "the moon"})
        except ToolFailed:
            continue


@planner(Limits(max_repeats=3, max_steps=50), ends_in="repeats", dispatches=0)
def repeats_an_empty_plan() -> Plan:
    """Decide to do nothing, again and again."""
    while True:
        yield Parallel(())
