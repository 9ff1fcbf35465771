"""Repeating what failed: any number of executions of one container, each with its own retries and waits.

What has to be trusted, and is tested elsewhere: that the shell keeps one state for each execution, waits as long as it
is told, and passes jitter and draw as whole billionths from 0 to 1. Beside the core's state each execution keeps how
often it really tried, and how long the wait would be if it doubled for ever.
"""

from __future__ import annotations

from typing import NamedTuple

from failstop.models.claim import OURS
from failstop.models.specification import Goal, Invariant, Law, Specification
from failstop.runtime.cores import retry as core

NEW = 0
TRYING = 1
FAILED = 2
WAITING = 3
ENDED = 4
GAVE_UP = 5

BILLION = 10**9


class Limits(NamedTuple):
    """The container's options; a negative max_retries is none, jitter is a fraction in billionths."""

    max_retries: int
    base: int
    max_backoff: int
    jitter: int


class Container(NamedTuple):
    """What executions share: nothing but the count of all tries that were really made."""

    tries: int


class Execution(NamedTuple):
    """The core's state of one execution, and beside it what happened.

    tries: how often it was really tried. doubled: the next wait if there were no maximum. due: the wait before jitter
    is put on it; wait: the one after that.
    """

    phase: int
    retries: int
    backoff: int
    tries: int
    doubled: int
    due: int
    wait: int


class Totals(NamedTuple):
    """Sums over all executions."""

    tries: int
    operations_and_retries: int


def start() -> Container:
    """A container is made."""
    return Container(0)


def begin(limits: Limits, world: Container, call: Execution) -> tuple[Container, Execution] | None:
    """An execution tries for the first time."""
    if call.phase != NEW:
        return None
    state = core.start(limits.base, bounds(limits))
    return Container(world.tries + 1), Execution(TRYING, state[0], state[1], 1, limits.base, 0, 0)


def returns(world: Container, call: Execution) -> tuple[Container, Execution] | None:
    """A try returns."""
    if call.phase != TRYING:
        return None
    return world, call._replace(phase=ENDED)


def fails(limits: Limits, world: Container, call: Execution, wanted: bool) -> tuple[Container, Execution] | None:
    """A try fails, and whether to repeat it is decided."""
    if call.phase != TRYING:
        return None
    state, verdict, backoff = core.fail((call.retries, call.backoff), bounds(limits), wanted)
    after = call._replace(retries=state[0], backoff=state[1], due=backoff, wait=0)
    if verdict == core.RETRY:
        return world, after._replace(phase=FAILED, doubled=call.doubled + call.doubled)
    return world, after._replace(phase=GAVE_UP)


def spread(limits: Limits, world: Container, call: Execution, draw: int) -> tuple[Container, Execution] | None:
    """A failed execution draws how long it waits."""
    if call.phase != FAILED or draw < 0 or draw > BILLION:
        return None
    wait = core.jittered(call.due, bounds(limits), limits.jitter, draw)
    return world, call._replace(phase=WAITING, wait=wait)


def again(world: Container, call: Execution) -> tuple[Container, Execution] | None:
    """An execution has waited, and tries again."""
    if call.phase != WAITING:
        return None
    return Container(world.tries + 1), call._replace(phase=TRYING, tries=call.tries + 1)


def tries(call: Execution) -> int:
    """How often an execution was tried."""
    return call.tries


def operations_and_retries(call: Execution) -> int:
    """One for an execution that was tried, and its retries."""
    return 0 if call.phase == NEW else 1 + call.retries


def in_order(limits: Limits) -> bool:
    """No time is below zero, and jitter is a fraction."""
    return limits.base >= 0 and limits.max_backoff >= 0 and 0 <= limits.jitter <= BILLION


def well_formed(call: Execution) -> bool:
    """Nothing is counted below zero, and an execution that has not begun has tried nothing."""
    new = call.phase == NEW
    counted = call.retries >= 0 and call.doubled >= 0 and NEW <= call.phase <= GAVE_UP
    return counted and (call.tries == 0 and call.retries == 0 if new else call.tries >= 1)


def retries_are_tries(call: Execution) -> bool:
    """The retry counter is the number of tries after the first, the one being waited for included."""
    if call.phase == NEW:
        return True
    waits = call.phase == FAILED or call.phase == WAITING
    return call.tries + (1 if waits else 0) == 1 + call.retries


def within_the_retries(limits: Limits, call: Execution) -> bool:
    """No execution is repeated more often than the ceiling says."""
    return limits.max_retries < 0 or (call.retries <= limits.max_retries and call.tries <= 1 + limits.max_retries)


def tries_are_counted(world: Container, total: Totals) -> bool:
    """All tries together are no more than the operations and the retries of each."""
    return world.tries == total.tries and total.tries <= total.operations_and_retries


def backoff_is_doubled_up_to_the_maximum(limits: Limits, call: Execution) -> bool:
    """The n-th wait is the base doubled n - 1 times, or the maximum if that is less."""
    return call.phase == NEW or call.backoff == capped(limits, call.doubled)


def waits_within_the_maximum(limits: Limits, call: Execution) -> bool:
    """No wait is below zero or above the maximum, before jitter and after."""
    return 0 <= call.due <= limits.max_backoff and 0 <= call.wait <= limits.max_backoff


def begins_with_the_base(limits: Limits, call_after: Execution) -> bool:
    """An execution begins with no retry, and its first wait is the base, or the maximum if that is less."""
    return call_after.retries == 0 and call_after.backoff == capped(limits, limits.base)


def repeated_whenever_possible(limits: Limits, call: Execution, call_after: Execution, wanted: bool) -> bool:
    """A failure is repeated if, and only if, that is wanted and a retry is left."""
    left = limits.max_retries < 0 or call.retries < limits.max_retries
    return (call_after.phase == FAILED) == (wanted and left)


def a_retry_waits_twice_as_long(limits: Limits, call: Execution, call_after: Execution) -> bool:
    """A retry counts one and waits what is due; the next waits twice as long, or the maximum if that is less."""
    if call_after.phase != FAILED:
        return call_after.retries == call.retries and call_after.backoff == call.backoff and call_after.due == 0
    next_one = call_after.retries == call.retries + 1 and call_after.backoff == capped(limits, 2 * call.backoff)
    return next_one and call_after.due == call.backoff


def jitter_stays_within_its_share(limits: Limits, call: Execution, call_after: Execution) -> bool:
    """A wait differs from the one that is due by the share that jitter says at most, and is never above the maximum."""
    share = call.due * limits.jitter // BILLION
    return call.due - share <= call_after.wait <= capped(limits, call.due + share)


def jitter_reaches_both_ends(limits: Limits, call: Execution, call_after: Execution, draw: int) -> bool:
    """A draw of zero waits as short as jitter allows, and a draw of one as long."""
    share = call.due * limits.jitter // BILLION
    if draw == 0:
        return call_after.wait == call.due - share
    return draw != BILLION or call_after.wait == capped(limits, call.due + share)


def jitter_is_even(limits: Limits, call: Execution, call_after: Execution, draw: int) -> bool:
    """A draw lies as far between zero and one as the wait between its least and its most, to the nanosecond below."""
    share = call.due * limits.jitter // BILLION
    least, most = call.due - share, capped(limits, call.due + share)
    above = (most - least) * draw - (call_after.wait - least) * BILLION
    return 0 <= above < BILLION


def the_retries_are_reached(limits: Limits, call: Execution) -> bool:
    """An execution is tried once and as often again as the ceiling says."""
    return limits.max_retries > 1 and call.tries == 1 + limits.max_retries and call.phase == TRYING


def all_retries_are_used(limits: Limits, call: Execution) -> bool:
    """An execution gives up because no retry is left."""
    return limits.max_retries > 0 and call.phase == GAVE_UP and call.retries == limits.max_retries


def not_worth_repeating(limits: Limits, call: Execution) -> bool:
    """An execution gives up though a retry is left, because none is wanted."""
    return call.phase == GAVE_UP and call.retries < limits.max_retries


def the_maximum_is_reached(limits: Limits, call: Execution) -> bool:
    """A wait grows up to the maximum."""
    return 0 < limits.base < limits.max_backoff == call.due and call.doubled > 2 * call.due


def bounds(limits: Limits) -> core.Bounds:
    """The limits as the core takes them."""
    return (limits.max_retries, limits.max_backoff)


def capped(limits: Limits, wait: int) -> int:
    """A wait, or the maximum if that is less."""
    if wait > limits.max_backoff:
        return limits.max_backoff
    return wait


RETRY = Specification(
    name="retry",
    whose=OURS,
    promise="No execution is repeated more often than the ceiling says, and each waits as long as it should.",
    limits=Limits,
    world=Container,
    start=start,
    call=Execution,
    new=Execution(NEW, 0, 0, 0, 0, 0, 0),
    actions=(begin, returns, fails, spread, again),
    totals=Totals,
    terms=(tries, operations_and_retries),
    at_most=(("tries", "operations_and_retries"),),
    given=(in_order,),
    ghosts=(
        "tries",
        "doubled",
    ),
    trusted=("the shell keeps one state for each execution, and waits as long as it is told",),
    invariants=(
        Invariant("G3", well_formed),
        Invariant("G3", retries_are_tries),
        Invariant("G3", within_the_retries),
        Invariant("G3", tries_are_counted),
        Invariant("G3", backoff_is_doubled_up_to_the_maximum),
        Invariant("G3", waits_within_the_maximum),
    ),
    laws=(
        Law("G3", begins_with_the_base, (begin,)),
        Law("G3", repeated_whenever_possible, (fails,)),
        Law("G3", a_retry_waits_twice_as_long, (fails,)),
        Law("G3", jitter_stays_within_its_share, (spread,)),
        Law("G3", jitter_reaches_both_ends, (spread,)),
        Law("G3", jitter_is_even, (spread,)),
    ),
    goals=(
        Goal("G3", the_retries_are_reached),
        Goal("G3", all_retries_are_used),
        Goal("G3", not_worth_repeating),
        Goal("G3", the_maximum_is_reached),
    ),
    outcomes={"phase": (TRYING, FAILED, WAITING, ENDED, GAVE_UP), "draw": (0, BILLION)},
    words={"phase": ("new", "trying", "failed", "waiting", "ended", "gave up")},
)
