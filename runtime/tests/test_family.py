"""A chain's family: what reaches a child, a child's child and back up."""

from __future__ import annotations

import gc

import pytest

from failstop.runtime.chain.context import ExecutionContext
from failstop.runtime.clock import VirtualClock
from failstop.runtime.limits import Limits
from failstop.runtime.stops import ClosedStop, HaltedStop, RetryStop, StepStop, Stop, TimeStop

SECOND = 10**9
DEEP = 1500


def root_context(clock=None, **limits):
    return ExecutionContext(Limits(**limits), clock=clock or VirtualClock())


def nested(root, depth):
    """Give the context at the bottom; those between are kept by nobody but the family."""
    context = root
    for _ in range(depth):
        context = context.create_child()
    gc.collect()
    return context


@pytest.mark.parametrize("depth", [1, 2, DEEP])
class TestDownwards:
    """What ends the root ends the deepest, though nobody keeps those between, and however deep it is."""

    def test_a_halt_is_told(self, depth):
        """Its token is set."""
        root = root_context()
        leaf = nested(root, depth)
        root.halt("over")
        assert (leaf.token.cancelled, leaf.token.reason) == (True, "over")

    def test_a_close_reaches_it(self, depth):
        """It takes no more calls."""
        root = root_context()
        leaf = nested(root, depth)
        root.close()
        began = []
        with pytest.raises(ClosedStop):
            leaf.call(lambda: began.append(1))
        assert (began, leaf.token.cancelled) == ([], True)

    def test_the_deadline_is_told(self, depth):
        """By the root's one alarm."""
        clock = VirtualClock()
        root = root_context(clock, max_seconds=1)
        leaf = nested(root, depth)
        clock.advance_ns(SECOND)
        assert leaf.token.reason == "deadline"
        with pytest.raises(TimeStop):
            leaf.call(lambda: 1)


class TestUpwards:
    """A child without limits of its own is the same set of limits as its parent."""

    def test_halting_it_stops_and_tells_its_parent_and_its_parents_other_children(self):
        """They share one account, so those in flight are told wherever they are."""
        root = root_context()
        child, sibling = root.create_child(), root.create_child(Limits(max_steps=9))
        grandchild = child.create_child()
        grandchild.halt("over")
        assert [each.token.cancelled for each in (root, child, sibling, grandchild)] == [True] * 4
        with pytest.raises(HaltedStop):
            root.call(lambda: 1)

    def test_halting_one_with_limits_stops_it_alone(self):
        """The root goes on, and so does its sibling."""
        root = root_context()
        child, sibling = root.create_child(Limits(max_steps=9)), root.create_child()
        child.create_child().halt("over")
        assert child.token.cancelled
        assert not root.token.cancelled
        assert sibling.call(lambda: "runs") == "runs"
        with pytest.raises(HaltedStop):
            child.call(lambda: 1)

    def test_where_both_are_over_the_root_says_why(self):
        """What ends everything is told before what ends a part of it."""
        clock = VirtualClock()
        root = root_context(clock, max_seconds=1)
        child = root.create_child(Limits(max_steps=0))
        clock.advance_ns(SECOND)
        with pytest.raises(TimeStop):
            child.call(lambda: 1)

    def test_a_child_does_not_back_off_past_the_deadline_of_its_root(self):
        """The wait would end after nothing is admitted any more: the error comes out at once."""
        clock = VirtualClock()
        root = root_context(clock, max_seconds=1)
        child = root.create_child(Limits(max_seconds=60))

        def fail():
            raise ValueError("again")

        with pytest.raises(ValueError, match="again"):
            child.call(fail, retries=9)
        assert clock.now_ns() < SECOND


class TestARefusedRetry:
    """A retry that the chain has no room for."""

    def test_is_not_waited_for_and_tells_what_failed(self):
        """The stop comes at once, with the error that asked for the retry as its cause."""
        clock = VirtualClock()
        ctx = root_context(clock, max_retries=0)

        def fail():
            raise ValueError("again")

        with pytest.raises(RetryStop) as raised:
            ctx.call(fail, retries=3)
        assert (clock.now_ns(), str(raised.value.__cause__)) == (0, "again")


def test_a_child_made_while_its_parent_closes_is_closed(monkeypatch):
    """It is closed by whoever comes last."""
    root = root_context()
    real = type(root._ledger).child

    def closing(ledger, owner, *args, **options):
        made = real(ledger, owner, *args, **options)
        root.close()
        return made

    monkeypatch.setattr(type(root._ledger), "child", closing)
    child = root.create_child()
    with pytest.raises(Stop):
        child.call(lambda: 1)
    assert child.closed


def test_the_highest_stop_is_told_whoever_asks():
    """A turn, a call and a snapshot of a child name one and the same stop, the root's, though the child has its own."""
    root = root_context()
    child = root.create_child(limits=Limits(max_steps=0))
    with pytest.raises(StepStop):
        child.call(lambda: None)
    root.halt("over")
    told = []
    for ask in (lambda: child.call(lambda: None), lambda: child.turn("again")):
        with pytest.raises(Stop) as caught:
            ask()
        told.append(type(caught.value))
    assert told == [HaltedStop, HaltedStop]
    assert child.snapshot().stop == "halt"
