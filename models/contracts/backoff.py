"""How long a repeated attempt waits, and how often one is repeated (G3)."""

from __future__ import annotations

from failstop.runtime.cores import retry


def a_backoff_is_never_above_its_maximum(base: int, state: retry.State, bounds: retry.Bounds, wanted: bool) -> bool:
    """Neither the first one nor any that follows.

    pre: state[1] <= bounds[1]
    pre: bounds[1] >= 0
    post: _
    """
    after, _, wait = retry.fail(state, bounds, wanted)
    return retry.start(base, bounds)[1] <= bounds[1] and after[1] <= bounds[1] and wait <= bounds[1]


def a_backoff_never_shrinks(state: retry.State, bounds: retry.Bounds) -> bool:
    """It doubles, or stops at its maximum; the wait is the one that was due.

    pre: 0 <= state[1] <= bounds[1]
    post: _
    """
    after, verdict, wait = retry.fail(state, bounds, wanted=True)
    if verdict == retry.GIVE_UP:
        return wait == 0 and after == state
    return wait == state[1] <= after[1] and after[1] in (2 * wait, bounds[1])


def retries_never_pass_their_maximum(state: retry.State, bounds: retry.Bounds, wanted: bool) -> bool:
    """One is counted as it begins.

    pre: 0 <= state[0] <= bounds[0]
    post: _
    """
    after, verdict, _ = retry.fail(state, bounds, wanted)
    return after[0] <= bounds[0] and after[0] == state[0] + (verdict == retry.RETRY)


def what_is_not_wanted_is_not_repeated(state: retry.State, bounds: retry.Bounds, wanted: bool) -> bool:
    """An attempt is repeated if that is wanted and one is left, and else not.

    post: _
    """
    left = bounds[0] < 0 or state[0] < bounds[0]
    return (retry.fail(state, bounds, wanted)[1] == retry.RETRY) == (wanted and left)


def without_jitter_the_wait_is_the_backoff(backoff: int, bounds: retry.Bounds, draw: int) -> bool:
    """Whatever is drawn.

    pre: 0 <= backoff <= bounds[1]
    pre: 0 <= draw <= retry.UNIT
    post: _
    """
    return retry.jittered(backoff, bounds, 0, draw) == backoff


def a_jittered_wait_stays_within_its_jitter(backoff: int, bounds: retry.Bounds, jitter: int, draw: int) -> bool:
    """For any jitter, and never above the maximum.

    pre: 0 <= backoff <= bounds[1]
    pre: 0 <= jitter <= retry.UNIT
    pre: 0 <= draw <= retry.UNIT
    post: _
    """
    wait = retry.jittered(backoff, bounds, jitter, draw)
    spread = backoff * jitter // retry.UNIT
    return backoff - spread <= wait <= backoff + spread and wait <= bounds[1]


def jitter_reaches_both_ends(backoff: int, bounds: retry.Bounds, jitter: int) -> bool:
    """The least draw waits the shortest time and the greatest the longest that the maximum allows.

    pre: 0 <= backoff <= bounds[1]
    pre: 0 <= jitter <= retry.UNIT
    post: _
    """
    spread = backoff * jitter // retry.UNIT
    shortest, longest = (retry.jittered(backoff, bounds, jitter, draw) for draw in (0, retry.UNIT))
    return shortest == backoff - spread and longest == min(backoff + spread, bounds[1])
