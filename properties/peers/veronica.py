"""veronica-core as what its paper's protocols are played on."""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Any

from failstop.properties.target import Refused
from failstop.properties.targets.veronica import VeronicaCore
from failstop.runtime.clock import NS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Callable

    from failstop.properties.peers.peer import SetClock
    from failstop.properties.target import Session
    from failstop.properties.world import World
    from failstop.runtime.limits import Limits

_STOPS = {"circuit_breaker": "breaker", "budget": "cost", "step_limit": "steps"}
_ORDINARY = {"max_cost_usd": 1.0, "max_steps": 10, "max_retries_total": 10}


class VeronicaPeer:
    """The package that is installed."""

    def __init__(self) -> None:
        self.target = VeronicaCore()

    def open(self, limits: Limits, world: World) -> Session:
        """See Peer; its timer gets a pool of its own, as in a process where nothing ran before."""
        pools = _module("containment.timeout_pool")
        pools._timeout_pool = pools.SharedTimeoutPool()  # noqa: SLF001 - there is one a process, and its thread was taken
        return self.target.open(limits, world)

    def budget(self, limit_usd: int) -> Callable[[int], bool]:
        """See Peer."""
        budget = _module("budget").BudgetEnforcer(limit_usd=float(limit_usd))
        return lambda amount: bool(budget.spend(float(amount)))

    def guard(self, max_steps: int) -> Callable[[], bool]:
        """See Peer."""
        guard = _module("agent_guard").AgentStepGuard(max_steps=max_steps)
        return lambda: bool(guard.step())

    def container(self, max_retries: int) -> Callable[[Callable[[], object]], object]:
        """See Peer."""
        container = _module("retry").RetryContainer(max_retries=max_retries, backoff_base=0.0, jitter=0.0)
        execute: Callable[[Callable[[], object]], object] = container.execute
        return execute

    def pipeline(self, max_cost: int, max_steps: int, clock: SetClock) -> Callable[[int, Callable[[], object]], object]:
        """See Peer."""
        breaker = _module("circuit_breaker").CircuitBreaker(failure_threshold=1, recovery_timeout=1.0)
        breaker.record_failure()
        clock.advance_ns(NS_PER_SECOND)
        policies = _module("runtime_policy")
        budget = _module("budget").BudgetEnforcer(limit_usd=float(max_cost))
        guard = _module("agent_guard").AgentStepGuard(max_steps=max_steps)
        pipeline = policies.PolicyPipeline([breaker, budget, guard])

        def call(cost: int, stub: Callable[[], object]) -> object:
            decision = pipeline.evaluate(policies.PolicyContext(cost_usd=float(cost)))
            if not decision.allowed:
                raise Refused(
                    "breaker" if decision.policy_type == "circuit_breaker" else "denied", decision.policy_type
                )
            try:
                value = stub()
            except Exception:
                breaker.record_failure()
                raise
            breaker.record_success()
            return value

        return call

    def configure(self, field: str, value: float) -> None:
        """See Peer."""
        config = _module("containment").ExecutionConfig
        try:
            config(**{**_ORDINARY, field: value})
        except (TypeError, ValueError) as error:
            raise Refused("configuration", str(error)) from error


def _module(name: str) -> Any:
    loaded = importlib.import_module(f"veronica_core.{name}")
    logging.getLogger("veronica_core").setLevel(logging.CRITICAL)
    return loaded
