"""Planners that know better: they swallow stops, use closed contexts, re-enter, and edit what is not theirs."""

from __future__ import annotations

import itertools
from contextlib import suppress
from typing import TYPE_CHECKING

from failstop.planners.actions import Call, Close, Refused
from failstop.planners.catalogue import planner
from failstop.runtime.limits import Limits

if TYPE_CHECKING:
    from failstop.planners.actions import Plan


@planner(Limits(max_steps=5), ends_in="steps", promises=["steps", "halt"], guarantee="halt", dispatches=5)
def swallows_everything() -> Plan:
    """Catch whatever is raised and go on."""
    for page in itertools.count():
        try:
            yield Call("search", {"page": page})
        except GeneratorExit:
            return
        except BaseException:  # noqa: BLE001, S112 - this is the misbehaviour
            continue


@planner(
    Limits(max_cost_usd="1.00"),
    ends_in="cost",
    promises=["cost", "halt"],
    guarantee="halt",
    dispatches=1,
    spent="0.60",
)
def spends_the_rest() -> Plan:
    """Be stopped by the cost ceiling, catch it, and go on with cheaper calls."""
    yield Call("model", {"turn": 0}, cost="0.60")
    try:
        yield Call("model", {"turn": 1}, cost="0.60")
    except Refused:
        for turn in range(2, 20):
            yield Call("small_model", {"turn": turn}, cost="0.01")


@planner(
    Limits(max_repeats=3, max_steps=50),
    ends_in="repeats",
    promises=["repeats", "halt"],
    guarantee="halt",
    dispatches=3,
)
def changes_the_subject() -> Plan:
    """Be stopped for repeating itself, catch it, and ask something else."""
    with suppress(Refused):
        while True:
            yield Call("search", {"query": "weather"})
    for page in range(20):
        yield Call("search", {"page": page})


@planner(Limits(max_steps=10), ends_in="closed", dispatches=1)
def calls_after_close() -> Plan:
    """Close the context and call through it all the same."""
    yield Call("search", {"page": 1})
    yield Close()
    yield Call("search", {"page": 2})


@planner(Limits(max_steps=5), ends_in="steps", dispatches=5)
def re_enters() -> Plan:
    """Call a tool that calls the context, which calls a tool, twenty deep."""
    call = Call("search", {"depth": 20})
    for depth in range(19, 0, -1):
        call = Call("read_file", {"depth": depth}, inside=call)
    yield call


@planner(Limits(max_steps=5), ends_in="steps", dispatches=5)
def edits_its_history() -> Plan:
    """Change the results and the arguments of the past."""
    for page in itertools.count():
        args = {"page": page}
        result = yield Call("read_file", args)
        args.clear()
        with suppress(TypeError):  # a runtime may have handed out what cannot be changed
            result.clear()
