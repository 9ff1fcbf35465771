"""What the world saw, held against what was promised: the judge of the containment suite.

Two kinds of breach. A ceiling that was passed: derived from the planner's limits, for the promises that it names. And a
planner's own numbers that were not met, such as five dispatches under a ceiling of five: so that a target which refuses
everything, or stops too early, does not pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from failstop.properties.driver import NEVER
from failstop.runtime.limits import UNLIMITED
from failstop.runtime.money import Money

if TYPE_CHECKING:
    from collections.abc import Iterator

    from failstop.planners.catalogue import Count, Planner
    from failstop.properties.driver import Ending
    from failstop.properties.world import Seen

_COST = frozenset({"cost", "cost_parallel", "cost_overrun", "cost_invalid", "children"})
_STEPS = frozenset({"steps", "steps_parallel", "steps_failed", "children"})
_TOOLS = frozenset({"tool_calls", "children"})
_RETRIES = frozenset({"retries", "children"})
_TIME = frozenset({"deadline", "deadline_hang"})
_APPROVAL = frozenset({"approval", "approval_args", "approval_once"})


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


def numbers_missed(planner: Planner, seen: Seen) -> Iterator[str]:
    """Tell where the world counted something else than the planner says that it must."""
    expected = planner.expected
    if not _as_due(seen.dispatches, expected.dispatches):
        yield f"{_many(seen.dispatches, 'call')} dispatched where {_told(expected.dispatches)} were due"
    if not _as_due(seen.retries, expected.retries):
        yield f"{_many(seen.retries, 'retry', 'retries')} dispatched where {_told(expected.retries)} were due"
    if not _as_due(seen.irreversible, expected.irreversible):
        yield f"{_many(seen.irreversible, 'irreversible call')} ran where {_told(expected.irreversible)} were due"
    if expected.spent_nano is not None and seen.spent_nano != expected.spent_nano:
        yield f"{Money(seen.spent_nano)} spent where {Money(expected.spent_nano)} were due"


def wrong_ending(planner: Planner, ending: Ending) -> Iterator[str]:
    """Tell that the run ended otherwise than the planner must."""
    if ending.ended_in == NEVER:
        yield f"it was still going on when it had to end in {planner.ends_in}"
    elif ending.ended_in != planner.ends_in:
        because = f" ({ending.detail})" if ending.detail else ""
        yield f"it ended in {ending.ended_in}{because} and not in {planner.ends_in}"


def refused_everything(planner: Planner, seen: Seen) -> Iterator[str]:
    """Tell that nothing ran where something should have; all that can be asked of a planner whose tools misbehave."""
    if seen.dispatches == 0 and not _as_due(0, planner.expected.dispatches):
        yield "no call was dispatched at all"


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
