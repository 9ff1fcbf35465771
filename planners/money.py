"""Planners that cost too much, or about whose cost somebody lies. The ceiling is one dollar."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

from failstop.planners.actions import Call, Parallel, ToolFailed
from failstop.planners.catalogue import planner
from failstop.runtime.limits import Limits

if TYPE_CHECKING:
    from failstop.planners.actions import Plan

ONE_DOLLAR = Limits(max_cost_usd="1.00")


@planner(ONE_DOLLAR, ends_in="cost", dispatches=3, spent="0.90")
def expensive() -> Plan:
    """Think for 30 cents a time."""
    for turn in itertools.count():
        yield Call("model", {"turn": turn}, cost="0.30")


@planner(ONE_DOLLAR, ends_in="cost", promises=["cost_parallel"], dispatches=3, spent="0.90")
def expensive_on_threads() -> Plan:
    """Think 20 thoughts of 30 cents at once, on threads."""
    yield Parallel(tuple(Call("model", {"turn": turn}, cost="0.30") for turn in range(20)), patience_s=0.05)


@planner(ONE_DOLLAR, ends_in="cost", promises=["cost_parallel", "asyncio"], dispatches=3, spent="0.90")
def expensive_on_asyncio() -> Plan:
    """Think 20 thoughts of 30 cents at once, on asyncio."""
    yield Parallel(tuple(Call("model", {"turn": turn}, cost="0.30") for turn in range(20)), on="asyncio")


@planner(ONE_DOLLAR, ends_in="cost", promises=["cost_overrun"], dispatches=4, spent="1.20")
def has_no_prices() -> Plan:
    """Think for 30 cents a time and say the price only afterwards."""
    for turn in itertools.count():
        yield Call("model", {"turn": turn}, cost="0.30", estimate=None)


@planner(ONE_DOLLAR, ends_in="cost", promises=["cost_overrun"], dispatches=1, spent="2.00")
def underestimates() -> Plan:
    """Estimate one cent, cost two dollars, and go on."""
    for turn in itertools.count():
        yield Call("model", {"turn": turn}, cost="2.00", estimate="0.01")


@planner(ONE_DOLLAR, ends_in="cost", promises=["cost_overrun"], dispatches=1, spent="0.30")
def underestimates_a_little() -> Plan:
    """Estimate one cent, cost 30, and go on where there is money left."""
    for turn in itertools.count():
        yield Call("model", {"turn": turn}, cost="0.30", estimate="0.01")


@planner(ONE_DOLLAR, ends_in="cost", promises=["cost_overrun", "cost_parallel"], dispatches=3, spent="1.50")
def underestimates_on_threads() -> Plan:
    """Estimate 30 cents and cost 50, 20 times at once."""
    calls = tuple(Call("model", {"turn": turn}, cost="0.50", estimate="0.30") for turn in range(20))
    yield Parallel(calls, patience_s=0.05)


@planner(ONE_DOLLAR, ends_in="cost", promises=["cost_invalid"], dispatches=3, spent="0.90")
def reports_nan() -> Plan:
    """Spend 30 cents a time and report that it cost NaN."""
    yield from _reports(math.nan)


@planner(ONE_DOLLAR, ends_in="cost", promises=["cost_invalid"], dispatches=3, spent="0.90")
def reports_a_negative_cost() -> Plan:
    """Spend 30 cents a time and report that it earned five dollars."""
    yield from _reports(-5)


@planner(ONE_DOLLAR, ends_in="cost", promises=["cost_invalid"], dispatches=3, spent="0.90")
def reports_text_as_cost() -> Plan:
    """Spend 30 cents a time and report the cost in words."""
    yield from _reports("thirty cents")


@planner(ONE_DOLLAR, ends_in="cost", promises=["cost_invalid"], dispatches=3, spent="0.90")
def reports_no_cost() -> Plan:
    """Spend 30 cents a time and report None."""
    yield from _reports(None)


def _reports(cost: object) -> Plan:
    for turn in itertools.count():
        yield Call("model", {"turn": turn}, cost="0.30", reports=cost)


@planner(ONE_DOLLAR, ends_in="cost", promises=["cost_invalid"], dispatches=3, spent="0.90")
def streams_and_is_cut_off() -> Plan:
    """Stream for 30 cents a time and lose the connection before the cost arrives."""
    for turn in itertools.count():
        try:
            yield Call("model", {"turn": turn}, cost="0.30", misbehaves="stream-cut")
        except ToolFailed:
            continue
