"""Streams: admitted once, watched at every chunk, charged exactly once."""

from __future__ import annotations

import threading

import pytest

from failstop.runtime.chain.context import ExecutionContext
from failstop.runtime.clock import VirtualClock
from failstop.runtime.limits import Limits
from failstop.runtime.stops import ConfigurationError, StepStop, TimeStop


def context(clock=None, **limits):
    return ExecutionContext(Limits(max_cost_usd="1.00", **limits), clock=clock or VirtualClock())


def words(*texts):
    yield from texts


@pytest.mark.parametrize("isolate", [None, "thread"])
class TestBothWays:
    """On the consumer's thread and on one of its own."""

    def test_a_whole_stream_is_charged_what_it_cost(self, isolate):
        """The cost is read from all chunks once the stream has ended."""
        ctx = context()
        stream = ctx.stream(words, "a", "b", "c", reserve="0.50", cost=lambda got: f"0.0{len(got)}", isolate=isolate)
        assert list(stream) == ["a", "b", "c"]
        shot = ctx.snapshot()
        assert (shot.committed_nano, shot.reserved_nano, shot.steps) == (30_000_000, 0, 1)

    def test_a_consumer_that_leaves_is_charged_once_and_keeps_what_it_got(self, isolate):
        """Usage was due in the last chunk, which never came: the whole reservation is charged, once."""
        ctx = context()
        stream = ctx.stream(words, "a", "b", "c", "d", reserve="0.50", cost=lambda _: "0.01", isolate=isolate)
        for _ in range(3):
            next(stream)
        stream.close()
        stream.close()
        assert ctx.snapshot().committed_nano == 500_000_000
        assert ctx.get_partial_result() == "abc"
        assert [node.status for node in ctx.graph.nodes()] == ["abandoned"]

    def test_a_stream_that_breaks_in_the_middle_is_charged_and_its_error_comes_out(self, isolate):
        """The partial result stays readable and is not taken for a whole one."""

        def broken():
            yield "half"
            raise ConnectionError("cut")

        ctx = context()
        stream = ctx.stream(broken, reserve="0.20", isolate=isolate)
        assert next(stream) == "half"
        with pytest.raises(ConnectionError):
            next(stream)
        assert ctx.snapshot().committed_nano == 200_000_000
        assert ctx.get_partial_result() == "half"

    @pytest.mark.parametrize("cut", [1, 2, 3])
    def test_after_a_stream_that_broke_the_next_attempt_begins_with_nothing(self, isolate, cut):
        """The partial is dropped and not appended to, and both attempts are charged (field case 39)."""
        whole = ['{"path":', ' "a', '"}']

        def source(attempt):
            yield from whole[:cut] if attempt == 1 else whole
            if attempt == 1:
                raise ConnectionError("cut")

        ctx = context()
        with pytest.raises(ConnectionError):
            list(ctx.stream(source, 1, reserve="0.20", cost=lambda _: "0.05", isolate=isolate))
        assert ctx.get_partial_result() == "".join(whole[:cut])
        again = ctx.stream(source, 2, reserve="0.20", cost=lambda _: "0.05", isolate=isolate)
        next(again)
        assert ctx.get_partial_result() == whole[0]
        assert list(again) == whole[1:]
        shot = ctx.snapshot()
        assert (shot.committed_nano, shot.reserved_nano, shot.steps) == (250_000_000, 0, 2)
        assert [node.status for node in ctx.graph.nodes()] == ["error", "ok"]

    def test_a_stream_that_trickles_for_ever_ends_at_the_deadline(self, isolate):
        """One chunk a second, no end: the deadline is checked at each."""
        clock = VirtualClock()

        def trickle():
            while True:
                clock.advance_ns(10**9)
                yield "x"

        ctx = context(clock, max_seconds=5)
        got = []
        with pytest.raises(TimeStop):
            got.extend(ctx.stream(trickle, reserve="0.20", isolate=isolate))
        assert len(got) <= 5
        assert ctx.snapshot().committed_nano == 200_000_000

    def test_nothing_is_admitted_until_the_first_chunk_is_asked_for(self, isolate):
        """A stream that nobody reads costs nothing; one that may not run says so at the first read."""
        ctx = context(max_steps=1)
        ctx.stream(words, "a", cost=0, isolate=isolate)
        assert ctx.snapshot().steps == 0
        list(ctx.stream(words, "a", cost=0, isolate=isolate))
        with pytest.raises(StepStop):
            next(ctx.stream(words, "a", cost=0, isolate=isolate))


@pytest.mark.parametrize(("pause_s", "ended_s", "passed_on"), [(1, 5, 4), (2, 6, 2), (7, 7, 0)])
def test_in_place_a_trickle_ends_at_the_first_chunk_after_the_deadline(pause_s, ended_s, passed_on):
    """That is the slack, the time from one chunk to the next; the late chunk is not passed on (field case 42)."""
    clock = VirtualClock()

    def trickle():
        while True:
            clock.advance_ns(pause_s * 10**9)
            yield "x"

    got = []
    with pytest.raises(TimeStop):
        got.extend(context(clock, max_seconds=5).stream(trickle, cost="0.01"))
    assert clock.now_ns() == ended_s * 10**9
    assert len(got) == passed_on


def test_a_source_that_falls_silent_is_left_behind_at_the_deadline():
    """One chunk, then nothing for ever: on its own thread the consumer is freed (field case 42)."""
    clock = VirtualClock()
    taken, silent = threading.Event(), threading.Event()

    def source():
        yield "one"
        assert taken.wait(10)
        clock.advance_ns(2 * 10**9)
        silent.wait(10)

    ctx = context(clock, max_seconds=1)
    stream = ctx.stream(source, reserve="0.20", isolate="thread")
    assert next(stream) == "one"
    taken.set()
    with pytest.raises(TimeStop):
        next(stream)
    assert ctx.snapshot().committed_nano == 200_000_000
    silent.set()


def test_a_stream_can_not_be_isolated_in_a_process():
    """Refused by name."""
    with pytest.raises(ConfigurationError, match="isolate is 'process'"):
        context().stream(words, isolate="process")


def test_a_stream_is_on_record_by_its_name():
    """Without one it is its function's."""
    ctx = context()
    list(ctx.stream(words, cost=0, name="poem"))
    list(ctx.stream(words, cost=0))
    assert [node.name for node in ctx.graph.nodes()] == ["poem", "words"]


@pytest.mark.parametrize("count", [2, 12_000])
def test_the_cost_of_a_stream_is_read_from_all_of_its_own_chunks(count):
    """However many they are, and whatever other streams of the chain show meanwhile."""
    ctx = ExecutionContext(Limits(max_cost_usd=50_000), clock=VirtualClock())
    one, other = (ctx.stream(lambda: iter(["chunk"] * count), reserve=20_000, cost=len) for _ in range(2))
    next(one)
    assert len(list(other)) == count
    assert len(list(one)) == count - 1
    assert ctx.snapshot().committed_nano == 2 * count * 10**9


def test_what_is_shown_of_an_unfinished_stream_is_the_newest_ones():
    """An older one that goes on adds nothing to it."""
    ctx = context()
    one, other = (ctx.stream(words, letter, letter, letter, cost=0) for letter in "ab")
    next(one)
    next(other)
    next(one)
    assert ctx.get_partial_result() == "b"
