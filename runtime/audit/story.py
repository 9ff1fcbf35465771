"""A run told in numbered lines of plain text, at most 80 columns wide."""

from __future__ import annotations

from typing import TYPE_CHECKING

from failstop.runtime.audit.canonical import respell
from failstop.runtime.money import Money

if TYPE_CHECKING:
    from collections.abc import Iterator

    from failstop.runtime.audit.replayed import ReplayedApproval, ReplayedCall, ReplayedRun, ReplayedStop, ReplayedTurn
    from failstop.runtime.audit.totals import Counters

_WIDTH = 80


def story(run: ReplayedRun) -> list[str]:
    """Tell the run; what planners and tools wrote is shown as JSON, so that it cannot forge a line of its own."""
    lines = list(_lines(run))
    places = len(str(len(lines)))
    return [_cut(f"{number:{places}}  {line}") for number, line in enumerate(lines, start=1)]


def _lines(run: ReplayedRun) -> Iterator[str]:
    yield f"run {_shown(run.run)}{': ' if run.goal else ''}{_shown(run.goal) if run.goal else ''}"
    yield f"limits: {_limits(run)}"
    for turn in run.turns:
        yield from _turn(turn)
    for error in run.planner_errors:
        yield f"the planner failed: {_shown(error)}"
    for stop in run.stops:
        yield _stop(stop)
    yield from _counters(run.counters)
    if run.mended:
        yield f"the log was cut off and gone on with {run.mended} times"
    if run.truncated_at is not None:
        yield f"the log is cut off in the middle of an event, at byte {run.truncated_at}"
    yield f"outcome: {_outcome(run)}"


def _limits(run: ReplayedRun) -> str:
    given = {name: limit for name, limit in run.limits.to_mapping().items() if limit is not None}
    return ", ".join(f"{name} {limit}" for name, limit in given.items()) or "none"


def _turn(turn: ReplayedTurn) -> Iterator[str]:
    yield f"turn {turn.number}{': ' if turn.reasoning else ''}{_shown(turn.reasoning) if turn.reasoning else ''}"
    if not turn.calls:
        yield "  calls nothing"
    for call in turn.calls:
        yield f"  {call.call_id} calls {_shown(call.tool)} with {_shown(call.args)}"
        if call.approval is not None:
            yield f"    {_approval(call.approval)}"
        yield f"    {_seen(call)}"


def _approval(approval: ReplayedApproval) -> str:
    if approval.approved is None:
        return f"a person is asked ({approval.tier}), and has not answered"
    return f"{'approved' if approval.approved else 'denied'} by {_shown(approval.by)} ({approval.tier})"


def _seen(call: ReplayedCall) -> str:
    if not call.seen:
        return "-> nothing on record"
    if call.seen == "ok":
        return f"-> {_shown(call.value)}"
    return f"-> {call.seen}: {_shown(call.error)}{' (its effect may have happened)' if call.unknown else ''}"


def _stop(stop: ReplayedStop) -> str:
    limit, used = (_in_unit(stop.ceiling, number) for number in (stop.limit, stop.used))
    numbers = "" if stop.limit is None else f", limit {limit}, used {used}"
    return f"stopped {_shown(stop.context)}: {stop.ceiling}{numbers}{'; ' if stop.detail else ''}{stop.detail}"


def _in_unit(ceiling: str, number: int | None) -> str:
    if ceiling == "cost" and number is not None:
        return str(Money(number))
    return f"{number}{' ns' if ceiling == 'time' else ''}"


def _counters(counted: Counters) -> Iterator[str]:
    yield f"steps {counted.steps}, tool calls {counted.tool_calls}, retries {counted.retries}"
    yield f"spent {Money(counted.committed_nano)}"
    if counted.in_flight:
        yield f"in flight {counted.in_flight}, holding {Money(counted.reserved_nano)}"


def _outcome(run: ReplayedRun) -> str:
    if run.error is not None:
        return f"{run.outcome}: {_shown(run.error)}"
    return run.outcome if run.value is None else f"{run.outcome} with {_shown(run.value)}"


def _shown(value: object) -> str:
    return respell(value)


def _cut(line: str) -> str:
    plain = "".join(character if character.isprintable() and character.isascii() else "?" for character in line)
    return plain if len(plain) <= _WIDTH else plain[: _WIDTH - 3] + "..."
