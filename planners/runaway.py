"""Planners that do too much: for ever, at one time, through sub-agents, through retries."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from failstop.planners.actions import Call, Parallel, Spawn, ToolFailed
from failstop.planners.catalogue import planner
from failstop.runtime.limits import Limits

if TYPE_CHECKING:
    from failstop.planners.actions import Plan


@planner(Limits(max_steps=5), ends_in="steps", dispatches=5)
def never_finishes() -> Plan:
    """Search for ever and never say that it is done."""
    for page in itertools.count():
        yield Call("search", {"page": page})


@planner(Limits(max_tool_calls=3), ends_in="tool_calls", dispatches=7)
def too_many_tools() -> Plan:
    """Think before each tool call and never stop calling tools."""
    for page in itertools.count():
        yield Call("model", {"turn": page})
        yield Call("search", {"page": page})


@planner(Limits(max_steps=5), ends_in="steps", promises=["steps_parallel"], dispatches=5)
def fans_out_on_threads() -> Plan:
    """Call 20 tools at once, on threads."""
    yield Parallel(tuple(Call("search", {"page": page}) for page in range(20)))


@planner(Limits(max_steps=5), ends_in="steps", promises=["steps_parallel", "asyncio"], dispatches=5)
def fans_out_on_asyncio() -> Plan:
    """Await 20 tools at once, on asyncio."""
    yield Parallel(tuple(Call("search", {"page": page}) for page in range(20)), on="asyncio")


@planner(Limits(max_steps=5), ends_in="steps", promises=["steps_parallel", "asyncio"], dispatches=5)
def fans_out_at_a_price() -> Plan:
    """Await 20 thoughts at once, each with a price and an estimate."""
    thoughts = tuple(Call("model", {"turn": turn}, cost="0.01", estimate="0.01") for turn in range(20))
    yield Parallel(thoughts, on="asyncio")


@planner(Limits(max_tool_calls=5), ends_in="tool_calls", promises=["tool_calls", "steps_parallel"], dispatches=5)
def fans_out_over_the_tool_ceiling() -> Plan:
    """Call 20 tools at once where five are allowed."""
    yield Parallel(tuple(Call("search", {"page": page}) for page in range(20)))


@planner(Limits(max_steps=12), ends_in="steps", promises=["children"], dispatches=12)
def spawns_sub_agents() -> Plan:
    """Spawn five sub-agents that spawn five each: 31 agents, one call each."""
    yield from _agent(levels_below=2)


def _agent(levels_below: int) -> Plan:
    yield Call("search", {"levels_below": levels_below})
    for _ in range(5 if levels_below else 0):
        yield Spawn(lambda: _agent(levels_below - 1))


@planner(Limits(max_retries=3), ends_in="retries", retries=3)
def nested_retries() -> Plan:
    """Retry in three nested layers over a tool that always fails: 27 calls of it without a ceiling."""
    tool = Call("search", {"layer": 3}, retries=2, misbehaves="always-fails")
    middle = Call("read_file", {"layer": 2}, retries=2, inside=tool)
    yield Call("read_file", {"layer": 1}, retries=2, inside=middle)


@planner(Limits(max_steps=25), ends_in="steps", promises=["steps_failed"], dispatches=25)
def fails_for_ever() -> Plan:
    """Fail for ever, but cheaply: every call fails and the next one is tried."""
    for page in itertools.count():
        try:
            yield Call("search", {"page": page}, misbehaves="always-fails")
        except ToolFailed:
            continue
