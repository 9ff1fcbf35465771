"""Planners whose arguments no log, hash or prompt expects. The calls are harmless, so the runs must complete."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from failstop.planners.actions import Call
from failstop.planners.catalogue import planner
from failstop.runtime.limits import Limits

if TYPE_CHECKING:
    from failstop.planners.actions import Plan

TEN_STEPS = Limits(max_steps=10, max_repeats=3)


@planner(TEN_STEPS, ends_in="completed", dispatches=2)
def huge_arguments() -> Plan:
    """Send a megabyte of text, and ten thousand keys."""
    yield Call("search", {"query": "x" * 10**6})
    yield Call("search", {f"key {number}": number for number in range(10_000)})


@planner(TEN_STEPS, ends_in="completed", dispatches=1)
def self_referencing_arguments() -> Plan:
    """Send arguments that contain themselves."""
    args: dict[str, Any] = {"query": "what am I?"}
    args["myself"] = args
    yield Call("search", args)


@planner(TEN_STEPS, ends_in="completed", dispatches=6)
def arguments_beyond_json() -> Plan:
    """Send what JSON cannot say: bytes, sets, dates, NaN, a lone surrogate, an object."""
    moment = datetime(2024, 2, 29, 12, 0, tzinfo=UTC)
    for odd in (b"\xff\x00", {"a", "b"}, moment, math.nan, "\ud800", object()):
        yield Call("search", {"query": odd})


@planner(TEN_STEPS, ends_in="completed", dispatches=1)
def mixed_key_types() -> Plan:
    """Send keys of several types, which cannot be sorted together."""
    yield Call("search", {"filter": {1: "one", "1": "text one", None: "nothing", (1, 2): "pair", 2.5: "more"}})
