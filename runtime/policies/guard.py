"""A ceiling on the steps of one agent."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from failstop.runtime.cores.steps import give_back, step
from failstop.runtime.limits import Limits, count_or_unlimited
from failstop.runtime.policies.pipeline import PolicyDecision

if TYPE_CHECKING:
    from failstop.runtime.policies.pipeline import PolicyContext


class AgentStepGuard:
    """Admits exactly `max_steps` steps (None: any number), from any number of threads (G2).

    The published guard increments, then refuses at equality: its count reaches the limit on the last step that should
    have run, so ``max_steps=25`` admits 24. Checking before incrementing admits exactly the limit, and no more, as long
    as both happen under one lock.
    """

    policy_type = "steps"

    def __init__(self, max_steps: int | None) -> None:
        self._limit = count_or_unlimited(Limits(max_steps=max_steps).max_steps)
        self._lock = threading.RLock()
        self._taken = 0
        self._era = 0
        self._last_result: object = None

    def step(self, result: object = None) -> bool:
        """Take one step and say whether it may run; a `result` that is not None is kept either way."""
        with self._lock:
            if result is not None:
                self._last_result = result
            self._taken, admitted = step(self._taken, self._limit)
            return admitted

    @property
    def current_step(self) -> int:
        """The steps taken so far."""
        return self._taken

    @property
    def last_result(self) -> object:
        """The newest result given to `step`: what an agent had when it was stopped."""
        return self._last_result

    def check(self, context: PolicyContext) -> PolicyDecision:  # noqa: ARG002 - every call costs one step
        """Take the step of one call."""
        lock = self._lock
        lock.acquire()
        try:
            self._taken, admitted = step(self._taken, self._limit)
            era = self._era
        finally:
            lock.release()
        if admitted:
            return PolicyDecision(True, "steps", "", None, era)
        return PolicyDecision(False, "steps", f"all {self._limit} steps are taken")

    def release(self, context: PolicyContext, decision: PolicyDecision) -> None:  # noqa: ARG002 - the permit says all
        """Give the step back, once; one from before a reset is gone already."""
        with self._lock:
            if decision.permit == self._era:
                self._taken = give_back(self._taken)
            decision.permit = None

    def report(
        self, context: PolicyContext, decision: PolicyDecision, error: BaseException | None, cost_nano: int
    ) -> None:
        """Let the step stay taken, however the call ended."""

    def reset(self) -> None:
        """Begin anew."""
        with self._lock:
            self._taken = 0
            self._era += 1
            self._last_result = None
