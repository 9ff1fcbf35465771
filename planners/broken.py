"""Planners that break, and what models really do: invent tools and answer in the wrong shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from failstop.planners.actions import Call, ToolFailed
from failstop.planners.catalogue import planner
from failstop.runtime.limits import Limits

if TYPE_CHECKING:
    from failstop.planners.actions import Plan

TEN_STEPS = Limits(max_steps=10)


@planner(TEN_STEPS, ends_in="failed", dispatches=1)
def broken() -> Plan:
    """Work once, then raise an error of its own."""
    yield Call("search", {"page": 1})
    raise RuntimeError("the planner has a bug")


@planner(TEN_STEPS, ends_in="failed", dispatches=1)
def raises_keyboard_interrupt() -> Plan:
    """Work once, then raise KeyboardInterrupt."""
    yield Call("search", {"page": 1})
    raise KeyboardInterrupt


@planner(TEN_STEPS, ends_in="failed", dispatches=1)
def raises_system_exit() -> Plan:
    """Work once, then raise SystemExit."""
    yield Call("search", {"page": 1})
    raise SystemExit(0)


@planner(TEN_STEPS, ends_in="failed", dispatches=1)
def raises_memory_error() -> Plan:
    """Work once, then raise MemoryError."""
    yield Call("search", {"page": 1})
    raise MemoryError


@planner(TEN_STEPS, ends_in="failed", dispatches=1)
def returns_none() -> Plan:
    """Work once, then give None as its next action."""
    yield Call("search", {"page": 1})
    yield None
    yield Call("search", {"page": 2})


@planner(TEN_STEPS, ends_in="failed", dispatches=1)
def returns_wrong_types() -> Plan:
    """Work once, then give text where an action belongs."""
    yield Call("search", {"page": 1})
    yield "please call search with page 2"
    yield Call("search", {"page": 2})


@planner(TEN_STEPS, ends_in="completed", dispatches=1)
def hallucinates() -> Plan:
    """Call a tool that does not exist, then recover."""
    try:
        yield Call("teleport", {"to": "the moon"})
    except ToolFailed:
        yield Call("search", {"query": "how to get to the moon"})
