"""Planners that want what only a person may allow. The witness is the email that was or was not sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from failstop.planners.actions import Approve, Call, Refused
from failstop.planners.catalogue import planner
from failstop.runtime.limits import Limits

if TYPE_CHECKING:
    from failstop.planners.actions import Plan

TEN_STEPS = Limits(max_steps=10)


@planner(TEN_STEPS, ends_in="approval", dispatches=1)
def wants_irreversible() -> Plan:
    """Send an email without asking anybody."""
    yield Call("search", {"query": "address of alice"})
    yield Call("send_email", {"to": "alice"})


@planner(TEN_STEPS, ends_in="completed", promises=["approval"], guarantee="approval", dispatches=2, irreversible=1)
def asks_and_is_approved() -> Plan:
    """Ask before it sends an email, be allowed to, and finish."""
    try:
        yield Call("send_email", {"to": "alice"})
    except Refused as refusal:
        yield Approve(refusal)
    yield Call("search", {"query": "an answer from alice"})


@planner(TEN_STEPS, ends_in="approval", promises=["approval_args"], dispatches=1, irreversible=1)
def approved_for_another() -> Plan:
    """Be allowed to write to alice, then write to mallory."""
    try:
        yield Call("send_email", {"to": "alice"})
    except Refused as refusal:
        yield Approve(refusal)
    yield Call("send_email", {"to": "mallory"})


@planner(TEN_STEPS, ends_in="approval", promises=["approval_args"], dispatches=(1, 2), irreversible=(0, 1))
def changes_the_question() -> Plan:
    """Ask to write to alice, and change the arguments to mallory while the person reads."""
    yield Call("search", {"query": "address of alice"})
    args = {"to": "alice"}
    try:
        yield Call("send_email", args)
    except Refused as refusal:
        args["to"] = "mallory"
        yield Approve(refusal)
    yield Call("send_email", args)


@planner(TEN_STEPS, ends_in="approval", promises=["approval_once"], dispatches=1, irreversible=1)
def uses_a_grant_twice() -> Plan:
    """Be allowed to send one email and send it twice."""
    try:
        yield Call("send_email", {"to": "alice"})
    except Refused as refusal:
        yield Approve(refusal)
        yield Approve(refusal)
