"""The pure ledger steps: every small history keeps the invariants, and every refusal leaves its reason."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failstop.runtime.cores import ledger as core

OPEN = (-1, -1, -1, -1, -1)


def walk(bounds, moves):
    """Run moves with honest settlements (at most what was held) and check what must hold after each."""
    state = core.INITIAL
    holds: list[tuple[int, bool, bool]] = []
    dispatched = 0
    for asked, tool, retry, paid in moves:
        if asked is None:
            if holds:
                held, _, _ = holds.pop(0)
                state = core.settle(state, bounds, held, min(paid, held))
            continue
        halted = state[5]
        after, verdict = core.admit(state, bounds, asked, tool, retry, 0)
        assert verdict == halted or not halted, "a halted chain changed its reason"
        if verdict == core.ADMITTED:
            dispatched += 1
            holds.append((after[1] - state[1], tool, retry))
        else:
            assert after[:5] == state[:5], "a refused call moved a counter"
        state = after
        committed, reserved, steps, tool_calls, retries, _ = state
        max_cost, max_steps, max_tool_calls, max_retries, _ = bounds
        assert reserved == sum(hold[0] for hold in holds)
        assert max_cost < 0 or committed + reserved <= max_cost
        assert steps == dispatched
        assert max_steps < 0 or steps <= max_steps
        assert max_tool_calls < 0 or tool_calls <= max_tool_calls
        assert max_retries < 0 or retries <= max_retries
    return state


def test_every_history_of_three_moves_under_every_small_bound_keeps_the_invariants():
    """Exhaustive: asked in {unknown, 0, 1, 2}, tool or not, retry or not, settlements between, bounds none to 2."""
    asks = [(asked, tool, retry, 0) for asked in (-1, 0, 1, 2) for tool, retry in ((False, False), (True, True))]
    moves = [*asks, (None, False, False, 0), (None, False, False, 1)]
    bounds = [(c, s, t, r, -1) for c in (-1, 0, 2) for s in (-1, 0, 2) for t, r in ((-1, -1), (0, 1), (1, 0))]
    count = 0
    for bound, history in itertools.product(bounds, itertools.product(moves, repeat=3)):
        walk(bound, history)
        count += 1
    assert count == 27 * 10**3


@given(
    st.tuples(*[st.integers(-1, 20)] * 4).map(lambda four: (*four, -1)),
    st.lists(st.tuples(st.none() | st.integers(-1, 25), st.booleans(), st.booleans(), st.integers(0, 25)), max_size=60),
)
def test_long_histories_keep_the_invariants(bounds, moves):
    """The same, at random and longer."""
    walk(bounds, moves)


@pytest.mark.parametrize(
    ("bounds", "state", "ask", "verdict"),
    [
        ((-1, -1, -1, -1, 10), core.INITIAL, (0, False, False, 10), core.TIME),
        ((-1, 0, -1, -1, -1), core.INITIAL, (0, False, False, 0), core.STEPS),
        ((-1, -1, 0, -1, -1), core.INITIAL, (0, True, False, 0), core.TOOL_CALLS),
        ((-1, -1, -1, 0, -1), core.INITIAL, (0, False, True, 0), core.RETRIES),
        ((5, -1, -1, -1, -1), core.INITIAL, (6, False, False, 0), core.COST),
        ((0, -1, -1, -1, -1), core.INITIAL, (-1, False, False, 0), core.COST),
        ((5, -1, -1, -1, -1), (5, 0, 1, 0, 0, 0), (-1, False, False, 0), core.COST),
    ],
)
def test_each_ceiling_halts_the_chain_for_good(bounds, state, ask, verdict):
    """The refused call leaves the reason behind, and every later call gets the same one."""
    halted, first = core.admit(state, bounds, *ask)
    assert first == verdict
    assert halted == (*state[:5], verdict)
    assert core.admit(halted, bounds, 0, False, False, 0) == (halted, verdict)


@pytest.mark.parametrize("asked", [3, core.NO_ESTIMATE])
def test_what_only_calls_in_flight_keep_out_is_contended_and_halts_nothing(asked):
    """It would fit if they cost nothing, so it may come back; the state is untouched."""
    state = (0, 4, 1, 0, 0, 0)
    assert core.admit(state, (5, -1, -1, -1, -1), asked, False, False, 0) == (state, core.CONTENDED)


def test_the_ceiling_is_reached_exactly():
    """Five times one nano-dollar fits into five; all that is left is the whole rest."""
    state, verdict = core.admit((4, 0, 4, 0, 0, 0), (5, 5, -1, -1, -1), 1, False, False, 0)
    assert (state, verdict) == ((4, 1, 5, 0, 0, 0), core.ADMITTED)
    state, _ = core.admit((2, 0, 0, 0, 0, 0), (5, -1, -1, -1, -1), core.NO_ESTIMATE, False, False, 0)
    assert state[1] == 3


def test_the_deadline_is_the_first_moment_that_is_too_late():
    """One nanosecond before it a call is admitted."""
    bounds = (-1, -1, -1, -1, 100)
    assert core.admit(core.INITIAL, bounds, 0, False, False, 99)[1] == core.ADMITTED
    assert core.admit(core.INITIAL, bounds, 0, False, False, 100)[1] == core.TIME


def test_an_overrun_is_recorded_in_full_and_halts():
    """Spending what was not held does not hide the money; the chain is over."""
    assert core.settle((0, 2, 1, 0, 0, 0), (5, -1, -1, -1, -1), 2, 9) == (9, 0, 1, 0, 0, core.OVERRUN)
    assert core.settle((0, 0, 1, 0, 0, 0), OPEN, 0, 9) == (9, 0, 1, 0, 0, core.ADMITTED)


@given(st.integers(-1, 9), st.booleans(), st.booleans())
def test_release_is_the_inverse_of_admission(asked, tool, retry):
    """A call that never began leaves no trace."""
    before = (1, 0, 3, 1, 1, 0)
    after, verdict = core.admit(before, (20, 9, 9, 9, -1), asked, tool, retry, 0)
    assert verdict == core.ADMITTED
    assert core.release(after, after[1] - before[1], tool, retry) == before
