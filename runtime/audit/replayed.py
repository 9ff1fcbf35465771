"""A run as its log tells it, and the results that it recorded."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from failstop.runtime.audit.canonical import fingerprint, fingerprint_as_logged

if TYPE_CHECKING:
    from collections.abc import Mapping

    from failstop.runtime.audit.totals import Counters
    from failstop.runtime.limits import Limits

INTERRUPTED = "interrupted"
"""The outcome of a run whose log ends before the run did; the others are those of `failstop.runtime.agent.outcome`."""

CLOSED = "closed"
"""The outcome of a context without a loop that was closed before any ceiling stopped it."""


@dataclass(frozen=True, slots=True)
class ReplayedApproval:
    """What a person was asked about one call, and the answer; `approved` is None while there is none."""

    request: str
    tool: str
    tier: str
    args: Any
    digest: str
    expires_ns: int
    approved: bool | None = None
    by: str = ""


@dataclass(frozen=True, slots=True)
class ReplayedCall:
    """One call that the planner asked for and what it was told: `seen` is empty if the log ends before that."""

    call_id: str
    tool: str
    args: Any
    seen: str = ""
    value: Any = None
    error: str = ""
    unknown: bool = False
    approval: ReplayedApproval | None = None


@dataclass(frozen=True, slots=True)
class ReplayedTurn:
    """One action of the planner."""

    number: int
    reasoning: str
    calls: tuple[ReplayedCall, ...]


@dataclass(frozen=True, slots=True)
class ReplayedStop:
    """A stop of the chain or of a narrower part of it; `limit` and `used` in the ceiling's own unit."""

    context: str
    ceiling: str
    limit: int | None
    used: int | None
    detail: str


@dataclass(frozen=True, slots=True)
class ReplayedRun:
    """A run rebuilt from its log alone; values are as JSON could say them.

    observed: the calls of which a result or an error is on record, in the order in which it was recorded.
    truncated_at: the byte at which the log is cut off, or None. mended: how often it was cut off and gone on with.
    """

    run: str
    goal: str
    limits: Limits
    turns: tuple[ReplayedTurn, ...]
    observed: tuple[ReplayedCall, ...]
    approvals: tuple[ReplayedApproval, ...]
    stops: tuple[ReplayedStop, ...]
    planner_errors: tuple[str, ...]
    counters: Counters
    outcome: str
    value: Any
    error: str | None
    truncated_at: int | None
    mended: int


class ReplayMiss(LookupError):  # noqa: N818 - it is an answer, not an error
    """The log has no further result of such a call: it was not made, or not so often, or the log ends before."""


class RecordedFailure(Exception):  # noqa: N818 - it tells what was recorded
    """The recorded call did not return; the text is the error on record."""


class Recorded:
    """Plays the recorded results of a run back to a planner: no tool is run.

    The results of equal calls come in the order in which they were recorded, each once.
    """

    def __init__(self, run: ReplayedRun) -> None:
        self._results: dict[str, deque[ReplayedCall]] = {}
        for call in run.observed:
            self._results.setdefault(fingerprint_as_logged(call.tool, call.args), deque()).append(call)

    def result(self, tool: str, args: Mapping[str, object]) -> Any:
        """Give the next recorded value of this very call; raises RecordedFailure if it failed, or ReplayMiss."""
        results = self._results.get(fingerprint(tool, args))
        if not results:
            times = "never" if results is None else "no more often"
            raise ReplayMiss(f"{tool!r} was {times} called with these arguments in the recorded run")
        call = results.popleft()
        if call.seen != "ok":
            raise RecordedFailure(call.error)
        return call.value
