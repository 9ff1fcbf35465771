"""Our breaker alone, and behind a step guard in a pipeline: what guards single calls outside of any chain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from failstop.properties.target import Refused
from failstop.runtime.policies.breaker import CircuitBreaker
from failstop.runtime.policies.guard import AgentStepGuard
from failstop.runtime.policies.pipeline import PolicyContext, PolicyDecision, PolicyPipeline
from failstop.runtime.stops import Denied

if TYPE_CHECKING:
    from collections.abc import Callable

    from failstop.runtime.clock import Clock

_CONTEXT = PolicyContext()


class GuardingBreaker:
    """A CircuitBreaker."""

    def __init__(self, failure_threshold: int, recovery_s: float, probe_lease_s: float, clock: Clock) -> None:
        self.breaker = CircuitBreaker(failure_threshold, recovery_s, probe_lease_s=probe_lease_s, clock=clock)

    def call(self, stub: Callable[[], object]) -> object:
        """See Guarded."""
        try:
            return self.breaker.call(stub)
        except Denied as denied:
            raise Refused("breaker", str(denied)) from denied

    def lose(self, stub: Callable[[], object]) -> None:
        """See LosingGuarded."""
        _allowed(self.breaker.check(_CONTEXT))
        stub()

    def give_up(self, let_in: Callable[[], None]) -> None:
        """See ReleasingGuarded."""
        decision = _allowed(self.breaker.check(_CONTEXT))
        let_in()
        self.breaker.release(_CONTEXT, decision)

    def counters(self) -> tuple[str]:
        """See CountingGuarded."""
        return (self.breaker.state.value,)


class GuardingPipeline:
    """A PolicyPipeline of an AgentStepGuard and a CircuitBreaker."""

    def __init__(
        self, max_steps: int, failure_threshold: int, recovery_s: float, probe_lease_s: float, clock: Clock
    ) -> None:
        self.guard = AgentStepGuard(max_steps)
        self.breaker = CircuitBreaker(failure_threshold, recovery_s, probe_lease_s=probe_lease_s, clock=clock)
        self.pipeline = PolicyPipeline((self.guard, self.breaker))

    def call(self, stub: Callable[[], object]) -> object:
        """See Guarded."""
        decision = _allowed(self.pipeline.evaluate(_CONTEXT))
        try:
            value = stub()
        except BaseException as error:
            self.pipeline.report(decision, error, 0)
            raise
        self.pipeline.report(decision, None, 0)
        return value

    def lose(self, stub: Callable[[], object]) -> None:
        """See LosingGuarded."""
        _allowed(self.pipeline.evaluate(_CONTEXT))
        stub()

    def give_up(self, let_in: Callable[[], None]) -> None:
        """See ReleasingGuarded."""
        decision = _allowed(self.pipeline.evaluate(_CONTEXT))
        let_in()
        self.pipeline.release(decision)

    def counters(self) -> tuple[int, str]:
        """See CountingGuarded."""
        return (self.guard.current_step, self.breaker.state.value)


def _allowed(decision: PolicyDecision) -> PolicyDecision:
    if not decision.allowed:
        raise Refused(decision.policy_type, decision.reason)
    return decision
