"""Planners that take too long. The deadline is five seconds."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from failstop.planners.actions import Call, Parallel
from failstop.planners.catalogue import planner
from failstop.runtime.limits import Limits

if TYPE_CHECKING:
    from failstop.planners.actions import Plan

FIVE_SECONDS = Limits(max_seconds=5)


@planner(FIVE_SECONDS, ends_in="time", dispatches=3)
def slow() -> Plan:
    """Make calls of two seconds each."""
    for page in itertools.count():
        yield Call("search", {"page": page}, misbehaves="slow")


@planner(FIVE_SECONDS, ends_in="time", promises=["deadline_hang"], dispatches=1)
def hangs() -> Plan:
    """Call a tool that hangs and looks at no token."""
    yield Call("search", {"query": "the end"}, misbehaves="hangs")


@planner(FIVE_SECONDS, ends_in="time", promises=["deadline_hang", "asyncio"], dispatches=2)
def hangs_on_asyncio() -> Plan:
    """Await two tools that hang."""
    yield Parallel(tuple(Call("search", {"page": page}, misbehaves="hangs") for page in range(2)), on="asyncio")


@planner(FIVE_SECONDS, ends_in="time", promises=["deadline_hang"], dispatches=1)
def streams_for_ever() -> Plan:
    """Read a stream of one chunk a second that never ends."""
    yield Call("model", {"prompt": "count"}, misbehaves="streams-for-ever")


@planner(FIVE_SECONDS, ends_in="time", promises=["deadline_hang"], dispatches=1)
def writes_late() -> Plan:
    """Call a tool that comes back after the deadline and writes all the same."""
    yield Call("write_file", {"path": "notes"}, misbehaves="writes-late")
