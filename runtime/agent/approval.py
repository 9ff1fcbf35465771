"""A person's yes for one call: bound to the run, the tool and the very arguments, usable once, and not for ever.

Published runtimes approve by tool name or by call id; then one yes opens every later argument. Here the run holds one
frozen value of which no one else has a reference: that value is what is shown, what is hashed and what is run.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from failstop.runtime.cores import grant as core
from failstop.runtime.limits import UNLIMITED

if TYPE_CHECKING:
    from failstop.runtime.risk import RiskTier


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """What a person is asked; `args` is read-only. expires_ns: nanoseconds after the run's start, or -1 for never.

    in_doubt: an equal call raised before, so this may be its second effect; no standing answer covers that.
    """

    id: str
    run: str
    tool: str
    tier: RiskTier
    args: Mapping[str, Any]
    digest: str
    reason: str
    expires_ns: int = UNLIMITED
    in_doubt: bool = False


Approver: TypeAlias = Callable[[ApprovalRequest], bool | Awaitable[bool]]
"""Answers at once; anything but an explicit True, an exception too, is a no. An awaitable only under `arun`."""


class ApprovalRequired(Exception):  # noqa: N818 - it is a gate, not an error
    """The run is paused, intact, until each of `requests` is answered."""

    def __init__(self, requests: tuple[ApprovalRequest, ...]) -> None:
        super().__init__(requests)
        self.requests = requests

    def __str__(self) -> str:
        return f"waiting for a person: {', '.join(f'{request.tool} ({request.id})' for request in self.requests)}"


class ApprovalError(Exception):
    """An answer that nothing is waiting for; nothing was changed."""


class Grant:
    """The approval of one request; safe from any thread, so that two dispatches can never use it both.

    elapsed_ns: reads the nanoseconds since the run's start.
    """

    def __init__(self, request: ApprovalRequest, elapsed_ns: Callable[[], int]) -> None:
        self.request = request
        self._elapsed_ns = elapsed_ns
        self._lock = threading.Lock()
        self._state = core.requested(request.expires_ns)

    @property
    def pending(self) -> bool:
        """True until it was answered or has expired."""
        return self._step(core.expire) == core.GRANTED and self._state[0] == core.PENDING

    def answer(self, approved: object) -> int:
        """Take the first answer; only an explicit True approves. GRANTED: it was taken, be it yes or no."""
        return self._step(lambda state, now_ns: core.answer(state, approved is True, now_ns))

    def use(self, digest: str) -> int:
        """Spend the approval on the call of this digest, which must be the one that was asked about; else it denies."""
        same = digest == self.request.digest
        return self._step(lambda state, now_ns: core.use(state, same, now_ns))

    def _step(self, step: Callable[[core.Grant, int], tuple[core.Grant, int]]) -> int:
        with self._lock:
            self._state, verdict = step(self._state, self._elapsed_ns())
            return verdict


REFUSALS = {
    core.PENDING: "nobody has answered yet",
    core.DENIED: "a person said no",
    core.USED: "the approval was used already",
    core.EXPIRED: "the approval expired",
    core.DRIFTED: "the call is not the one that was approved any more",
}
"""What a planner is told about a gated call that does not run."""


class StandingAnswers:
    """A person's answers for a tool as a whole, given on purpose: always, or never.

    An answer to the very call beats them, both ways (field case 2).
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: dict[str, bool] = {}

    def always(self, tool: str) -> None:
        """Approve every later call of `tool` that is not answered by itself."""
        self._set(tool, approved=True)

    def never(self, tool: str) -> None:
        """Deny every later call of `tool` that is not answered by itself."""
        self._set(tool, approved=False)

    def forget(self, tool: str) -> None:
        """Ask about each call of `tool` again."""
        with self._lock:
            self._answers.pop(tool, None)

    def for_tool(self, tool: str) -> int:
        """Give the standing answer in the core's terms."""
        with self._lock:
            return as_answer(self._answers, tool)

    def _set(self, tool: str, *, approved: bool) -> None:
        with self._lock:
            self._answers[tool] = approved


def as_answer(answers: Mapping[str, object], key: str) -> int:
    """Read one answer in the core's terms; whatever is not an explicit True is a no."""
    if key not in answers:
        return core.NO_ANSWER
    return core.YES if answers[key] is True else core.NO
