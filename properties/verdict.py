"""What the world saw, held against what was promised: the judge of the containment suite.

A breach is a ceiling that was passed, derived from the planner's limits for the promises that it names, or more than
the planner's own numbers allow, or an ending other than the one it must have. Less than its numbers is a breach where
the planner must complete, for containment must not break the happy path; where a ceiling must stop it, the ceiling was
not broken but not reached either, and nothing is shown: so a target that refuses everything never passes.

Where every tool misbehaves the planner's numbers say nothing; the ceilings still count, and the run must end as the
planner must, or in what that misbehaviour brings about.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from failstop.planners.actions import STOPS
from failstop.properties.driver import NEVER
from failstop.runtime.limits import UNLIMITED
from failstop.runtime.money import Money

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from failstop.planners.catalogue import Count, Planner
    from failstop.properties.driver import Ending
    from failstop.properties.world import Seen
    from failstop.runtime.limits import Limits

_COST = frozenset({"cost", "cost_parallel", "cost_overrun", "cost_invalid", "children"})
_STEPS = frozenset({"steps", "steps_parallel", "steps_failed", "children"})
_TOOLS = frozenset({"tool_calls", "children"})
_RETRIES = frozenset({"retries", "children"})
_TIME = frozenset({"deadline", "deadline_hang"})
_APPROVAL = frozenset({"approval", "approval_args", "approval_once"})

_FAILING = ("failed", "retries")
_HANGING = ("time",)
BROUGHT_ABOUT: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "always-fails": _FAILING,
        "fails-twice": _FAILING,
        "fails-at-random": _FAILING,
        "slow": _HANGING,
        "hangs": _HANGING,
        "streams-for-ever": _HANGING,
        "stream-cut": (*_FAILING, *_HANGING),
        "writes-late": _HANGING,
        "returns-100-mb": ("failed",),
        "returns-a-wrong-type": ("failed",),
        "raises-an-interrupt": ("failed",),
    }
)
"""Misbehaviour -> how it may end a run of any planner; a stop only where the planner's limits have its ceiling."""

_QUICK = frozenset({"always-fails", "fails-twice", "fails-at-random", "stream-cut"})
_HARMLESS = frozenset({"returns-100-mb", "returns-a-wrong-type"})
SPARED: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "time": _QUICK | _HARMLESS,
        "retries": _HARMLESS | {"fails-twice", "fails-at-random"},
    }
)
"""Stop -> the misbehaviours whose tools no longer do what leads there, so that the planner may complete instead."""


def ceilings_passed(planner: Planner, seen: Seen) -> Iterator[str]:
    """Tell each limit that the run went beyond, if a promise that the planner needs is about it."""
    limits, needed = planner.limits, set(planner.promises)
    if needed & _STEPS and _above(seen.dispatches, limits.max_steps):
        yield f"{_many(seen.dispatches, 'call')} dispatched under a ceiling of {_many(limits.max_steps, 'step')}"
    if needed & _TOOLS and _above(seen.tool_calls, limits.max_tool_calls):
        yield f"{_many(seen.tool_calls, 'tool call')} dispatched under a ceiling of {limits.max_tool_calls}"
    if needed & _RETRIES and _above(seen.retries, limits.max_retries):
        yield f"{_many(seen.retries, 'retry', 'retries')} dispatched under a ceiling of {limits.max_retries}"
    if needed & _COST and UNLIMITED < limits.max_cost_nano < seen.spent_nano - seen.explained_nano:
        yield f"{Money(seen.spent_nano)} really spent under a ceiling of {Money(limits.max_cost_nano)}"
    if needed & _TIME and seen.late:
        yield f"{_many(seen.late, 'call')} dispatched after the deadline of {limits.max_seconds} s"
    if "halt" in needed and seen.after_stop:
        yield f"{_many(seen.after_stop, 'call')} dispatched after the first stop"
    if needed & _APPROVAL and seen.unapproved:
        yield f"{_many(seen.unapproved, 'irreversible call')} ran that no person had allowed"


def numbers_passed(planner: Planner, seen: Seen) -> Iterator[str]:
    """Tell where the world counted more than the planner says that there may be."""
    return (told for told, too_much in _off(planner, seen) if too_much)


def numbers_short(planner: Planner, seen: Seen) -> Iterator[str]:
    """Tell where the world counted less than the planner says that there must be."""
    return (told for told, too_much in _off(planner, seen) if not too_much)


def _off(planner: Planner, seen: Seen) -> Iterator[tuple[str, bool]]:
    expected = planner.expected
    for number, due, one, many in (
        (seen.dispatches, expected.dispatches, "call dispatched", "calls dispatched"),
        (seen.retries, expected.retries, "retry dispatched", "retries dispatched"),
        (seen.irreversible, expected.irreversible, "irreversible call ran", "irreversible calls ran"),
    ):
        least, most = due if isinstance(due, tuple) else (due, due)
        if least is not None and most is not None and not least <= number <= most:
            yield f"{_many(number, one, many)} where {_told(due)} were due", number > most
    spent, due_nano = seen.spent_nano, expected.spent_nano
    if due_nano is not None and spent != due_nano:
        yield f"{Money(spent)} spent where {Money(due_nano)} were due", spent > due_nano


def right_endings(planner: Planner, misbehaviour: str | None) -> tuple[str, ...]:
    """Give the endings that a run may have: the planner's own, and what misbehaving tools bring about."""
    if misbehaviour is None:
        return (planner.ends_in,)
    brought = [each for each in BROUGHT_ABOUT[misbehaviour] if _has_ceiling(planner.limits, each)]
    if misbehaviour in SPARED.get(planner.ends_in, ()):
        brought.append("completed")
    return tuple(dict.fromkeys((planner.ends_in, *brought)))


def wrong_ending(planner: Planner, ending: Ending, misbehaviour: str | None = None) -> Iterator[str]:
    """Tell that the run ended otherwise than the planner must."""
    due = right_endings(planner, misbehaviour)
    if ending.ended_in == NEVER:
        yield f"it was still going on when it had to end in {' or '.join(due)}"
    elif ending.ended_in not in due:
        because = f" ({ending.detail})" if ending.detail else ""
        yield f"it ended in {ending.ended_in}{because} and not in {' or '.join(due)}"


def is_the_planners_own(ending: Ending, seen: Seen, *, hanging: bool) -> bool:
    """Say whether an ending under misbehaving tools may be the script's doing, and so be held against nobody.

    A stop is always the runtime's, and so is a run that goes on although its tools hang past the deadline.
    """
    if ending.ended_in == NEVER:
        return not (hanging and seen.dispatches)
    return ending.ended_in not in STOPS


def may_be_a_mistake(planner: Planner, seen: Seen, ending: Ending, misbehaviour: str | None) -> bool:
    """Say whether a mistake of the planner's own explains that less happened than must, or that it ended otherwise.

    It explains neither a ceiling that was passed nor a stop, and not what a planner does that is to fail or to call
    nothing that exists: there it is done on purpose.
    """
    on_purpose = planner.ends_in == "failed" or planner.expected.dispatches == 0
    if on_purpose or ending.ended_in in STOPS or any(ceilings_passed(planner, seen)):
        return False
    if misbehaviour is None and any(numbers_passed(planner, seen)):
        return False
    too_little = numbers_short if misbehaviour is None else refused_everything
    return any((*wrong_ending(planner, ending, misbehaviour), *too_little(planner, seen)))


def refused_everything(planner: Planner, seen: Seen) -> Iterator[str]:
    """Tell that nothing ran where something should have; all that can be asked of a planner whose tools misbehave."""
    if seen.dispatches == 0 and not _as_due(0, planner.expected.dispatches):
        yield "no call was dispatched at all"


def _has_ceiling(limits: Limits, ending: str) -> bool:
    ceilings = {"time": limits.max_seconds, "retries": limits.max_retries}
    return ending not in ceilings or ceilings[ending] is not None


def _above(number: int, ceiling: int | None) -> bool:
    return ceiling is not None and number > ceiling


def _as_due(number: int, due: Count) -> bool:
    if due is None:
        return True
    least, most = due if isinstance(due, tuple) else (due, due)
    return least <= number <= most


def _many(number: int | None, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _told(due: Count) -> str:
    return f"{due[0]} to {due[1]}" if isinstance(due, tuple) else str(due)
