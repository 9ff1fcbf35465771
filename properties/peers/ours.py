"""Our own runtime under the published protocols, beside the peers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from failstop.properties.target import Refused
from failstop.properties.targets.failstop import FailstopTarget
from failstop.runtime.clock import NS_PER_SECOND
from failstop.runtime.limits import Limits
from failstop.runtime.money import NANO_PER_USD
from failstop.runtime.policies.breaker import CircuitBreaker
from failstop.runtime.policies.budget import BudgetEnforcer
from failstop.runtime.policies.guard import AgentStepGuard
from failstop.runtime.policies.pipeline import PolicyContext, PolicyPipeline
from failstop.runtime.policies.retry import RetryContainer
from failstop.runtime.stops import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from failstop.properties.peers.peer import SetClock
    from failstop.properties.target import Session
    from failstop.properties.world import World


class OurPeer:
    """The runtime of this package."""

    def __init__(self) -> None:
        self.target = FailstopTarget()

    def open(self, limits: Limits, world: World) -> Session:
        """See Peer."""
        return self.target.open(limits, world)

    def budget(self, limit_usd: int) -> Callable[[int], bool]:
        """See Peer."""
        return BudgetEnforcer(limit_usd).spend

    def guard(self, max_steps: int) -> Callable[[], bool]:
        """See Peer."""
        return AgentStepGuard(max_steps).step

    def container(self, max_retries: int) -> Callable[[Callable[[], object]], object]:
        """See Peer; in a chain, which is what bounds all retries."""
        from failstop.runtime.chain.context import ExecutionContext  # noqa: PLC0415 - only here

        context = ExecutionContext(Limits(max_retries=max_retries))
        container = RetryContainer(max_retries, backoff_base_s=0, context=context)
        return lambda stub: _refusing(lambda: container.execute(stub, cost=0, reserve=0))

    def pipeline(self, max_cost: int, max_steps: int, clock: SetClock) -> Callable[[int, Callable[[], object]], object]:
        """See Peer."""
        breaker = CircuitBreaker(1, 1, clock=clock)
        _fail(breaker)
        clock.advance_ns(NS_PER_SECOND)
        pipeline = PolicyPipeline((breaker, BudgetEnforcer(max_cost), AgentStepGuard(max_steps)))

        def call(cost: int, stub: Callable[[], object]) -> object:
            decision = pipeline.evaluate(PolicyContext(reserve_nano=cost * NANO_PER_USD))
            if not decision.allowed:
                raise Refused(decision.policy_type, decision.reason)
            try:
                value = stub()
            except Exception as error:
                pipeline.report(decision, error, 0)
                raise
            pipeline.report(decision, None, cost * NANO_PER_USD)
            return value

        return call

    def configure(self, field: str, value: float) -> None:
        """See Peer."""
        try:
            Limits(**{field: value})  # type: ignore[arg-type]  # that it is wrong is what is tried
        except ConfigurationError as error:
            raise Refused("configuration", str(error)) from error


def _fail(breaker: CircuitBreaker) -> None:
    def stub() -> None:
        raise ZeroDivisionError

    try:
        breaker.call(stub)
    except ZeroDivisionError:
        return


def _refusing(call: Callable[[], Any]) -> object:
    from failstop.properties.targets.failstop import refusals  # noqa: PLC0415 - only here

    with refusals():
        return call()
