"""Calls that wait for others, and calls that take the quick way (G1)."""

# ruff: noqa: SLF001, ARG001 - a wrong variant of a method works on what the method works on, or forgets to

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from failstop.properties.mutants.ledger import NoLock
from failstop.properties.mutants.mutant import Function, Method, Mutant
from failstop.runtime.chain import waiting
from failstop.runtime.chain.context import ExecutionContext
from failstop.runtime.chain.dispatch import AlreadyEnded, Dispatch
from failstop.runtime.chain.ledger import Ledger, Queued
from failstop.runtime.chain.waiting import enter
from failstop.runtime.stops import Contended

if TYPE_CHECKING:
    from failstop.runtime.chain.accounts import Chain

_open = ExecutionContext._open


def _nobody_is_woken(self: Ledger) -> None:
    pass


def _one_is_woken(self: Ledger) -> None:
    if self.chain.waiters:
        self.chain.waiters.pop()()


def _cleared_after_it_was_asked(dispatch: Dispatch) -> None:
    if _is_in(dispatch):
        return
    ready = threading.Event()
    while not dispatch.admitted:
        try:
            dispatch.admit(ready.set)
        except Queued:
            ready.clear()
            ready.wait()


def _taken_in_unseen(dispatch: Dispatch) -> None:
    if _is_in(dispatch):
        return
    ready = threading.Event()
    while not dispatch.admitted:
        ready.clear()
        try:
            dispatch.admit(ready.set)
        except Queued:
            ready.wait()
            # There is room now, so nobody looks again whether there is enough.
            dispatch.request = replace(dispatch.request, asked=0)


def _is_in(dispatch: Dispatch) -> bool:
    try:
        dispatch.admit()
    except Contended:
        if not dispatch.request.wait or waiting._on_this_thread(dispatch.chain, loose=True):
            raise
        if waiting._inside(dispatch.chain):
            raise
        return False
    return True


def _not_on_this_thread(chain: Chain, *, loose: bool) -> bool:
    return False


def _not_inside(chain: Chain) -> bool:
    return False


def _quick_way_without_its_lock(self: ExecutionContext, *given: Any) -> None:
    _open(self, *given)
    ledger, account, chain, _, now_ns = self._quick
    self._quick = (ledger, account, chain, NoLock(), now_ns)  # type: ignore[assignment]  # that is the mistake


def _looked_at_then_ended(self: Dispatch) -> None:
    if not self._once:
        raise AlreadyEnded(f"the reservation of {self.request.label!r} was ended before")
    self._once = []


MUTANTS = (
    Mutant(
        "waiting-call-not-woken",
        "G1",
        "A settlement wakes nobody of those who wait for its money.",
        (Method(Ledger, "_wake", _nobody_is_woken),),
        concurrent=True,
        first=("last-cent",),
    ),
    Mutant(
        "one-waiting-call-woken",
        "G1",
        "A settlement wakes one of those who wait, and nobody wakes the others.",
        (Method(Ledger, "_wake", _one_is_woken),),
        concurrent=True,
        first=("halt-against-waiting",),
    ),
    Mutant(
        "wake-up-lost",
        "G1",
        "A waiting call clears its alarm after it has asked, and with it the alarm that has rung meanwhile.",
        (Function(enter, _cleared_after_it_was_asked),),
        concurrent=True,
        first=("last-cent",),
        traced=(__name__,),
    ),
    Mutant(
        "waiting-call-let-in-unseen",
        "G1",
        "A call that was woken is let in without another look at the money.",
        (Function(enter, _taken_in_unseen),),
        concurrent=True,
        first=("last-cent",),
    ),
    Mutant(
        "waits-for-itself",
        "G1",
        "A call inside of another waits for what the outer one holds.",
        (Function(waiting._on_this_thread, _not_on_this_thread), Function(waiting._inside, _not_inside)),
        first=("inside-of-another",),
    ),
    Mutant(
        "quick-way-without-its-lock",
        "G2",
        "The quick way of a plain call does not take the chain's lock.",
        (Method(ExecutionContext, "_open", _quick_way_without_its_lock),),
        concurrent=True,
        traced=("failstop.runtime.chain.calls",),
        first=("quick-last-step",),
    ),
    Mutant(
        "ended-twice",
        "G1",
        "Whether a reservation was ended already is looked at first and noted after, so two threads end it both.",
        (Method(Dispatch, "_end_once", _looked_at_then_ended),),
        concurrent=True,
        traced=(__name__,),
        first=("settled-and-released",),
    ),
)
