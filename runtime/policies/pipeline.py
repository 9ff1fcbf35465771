"""Policies that may deny one call, asked in order: the first denial wins and leaves no trace (T6).

Each policy decides under a lock of its own, so while a pipeline is being evaluated, it may hold for a moment what a
later denial gives back: a caller that comes in that moment can be denied, but no bound is ever passed. All but
the budget's, which is the fastest, are re-entrant, because a stream that the garbage collector closes reports its end
wherever its thread happens to be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from failstop.runtime.cores.budget import NO_ESTIMATE
from failstop.runtime.stops import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from failstop.runtime.stops import Degradation

UNKNOWN_COST = -1
"""As the cost in a report: nobody knows it, so what was held for the call is charged."""


class PolicyContext(NamedTuple):
    """What a policy is told of a call.

    chain_id: equal for the calls of one chain and for no other, or None outside of one. kind: "llm" or "tool".
    reserve_nano: the call's upper bound in nano-dollars, or NO_ESTIMATE.
    """

    chain_id: object = None
    name: str = ""
    kind: str = "llm"
    reserve_nano: int = NO_ESTIMATE


@dataclass(slots=True, eq=False)
class PolicyDecision:
    """A policy's answer to one call; `permit` is what it took for it, given back or used up once.

    A denial may carry a degradation that the caller can act on; so may an allowance, as advice.
    """

    allowed: bool
    policy_type: str
    reason: str = ""
    degradation: Degradation | None = None
    permit: object = None


class RuntimePolicy(Protocol):
    """What a pipeline asks of a policy; one that denies, or raises, must have taken nothing."""

    @property
    def policy_type(self) -> str:
        """The name that a denial carries."""

    def check(self, context: PolicyContext) -> PolicyDecision:
        """Decide one call and take what it needs, in one step."""

    def release(self, context: PolicyContext, decision: PolicyDecision) -> None:
        """Give back exactly what `check` took: the call was not dispatched."""

    def report(
        self, context: PolicyContext, decision: PolicyDecision, error: BaseException | None, cost_nano: int
    ) -> None:
        """Learn how the dispatched call ended, and its cost in nano-dollars or UNKNOWN_COST."""

    def reset(self) -> None:
        """Begin anew."""


class PolicyPipeline:
    """All policies must allow a call; there is no override, and the pipeline keeps nothing between calls."""

    def __init__(self, policies: Iterable[RuntimePolicy] = ()) -> None:
        self._policies = tuple(policies)
        for policy in self._policies:
            _check_policy(policy)

    def evaluate(self, context: PolicyContext) -> PolicyDecision:
        """Ask each policy in turn; the first that denies answers for all, and what the earlier ones took goes back.

        What a policy raises is raised, after the same rollback: a policy that cannot decide does not allow.
        """
        taken: list[_Taken] = []
        advice = None
        try:
            for policy in self._policies:
                decision = policy.check(context)
                if decision.allowed is not True:
                    break
                taken.append((policy, context, decision))
                if advice is None:
                    advice = decision.degradation
            else:
                return PolicyDecision(True, "pipeline", "", advice, taken)
        except BaseException as error:
            failure = _release_all(taken)
            if failure is not None:
                error.add_note(f"giving back what earlier policies took failed too: {failure!r}")
            raise
        _raise_if(_release_all(taken))
        return decision

    def release(self, decision: PolicyDecision) -> None:
        """Give back all that an allowed call took, last first; a second time it does nothing."""
        if isinstance(decision.permit, list):
            _raise_if(_release_all(decision.permit))

    def report(self, decision: PolicyDecision, error: BaseException | None, cost_nano: int) -> None:
        """Tell every policy how the call ended; one that raises does not keep it from the others."""
        failure: BaseException | None = None
        taken: list[_Taken] = decision.permit if isinstance(decision.permit, list) else []
        while taken:
            policy, context, its_decision = taken.pop()
            try:
                policy.report(context, its_decision, error, cost_nano)
            except BaseException as its_failure:  # noqa: BLE001 - the rest must hear of it; the first is raised below
                failure = failure or its_failure
        _raise_if(failure)

    def reset(self) -> None:
        """Reset every policy."""
        for policy in self._policies:
            policy.reset()


_Taken = tuple[RuntimePolicy, PolicyContext, PolicyDecision]


def _release_all(taken: list[_Taken]) -> BaseException | None:
    """Give back, last first. An entry leaves the list before it is given back, so that it can never go back twice."""
    failure: BaseException | None = None
    while taken:
        policy, context, decision = taken.pop()
        try:
            policy.release(context, decision)
        except BaseException as its_failure:  # noqa: BLE001 - the rest must go back too; the caller raises the first
            failure = failure or its_failure
    return failure


def _raise_if(failure: BaseException | None) -> None:
    if failure is not None:
        raise failure


def _check_policy(policy: object) -> None:
    methods = ("check", "release", "report", "reset")
    if not isinstance(getattr(policy, "policy_type", None), str):
        raise ConfigurationError("policies", policy, "policies with a policy_type that is text")
    if not all(callable(getattr(policy, method, None)) for method in methods):
        raise ConfigurationError("policies", policy, f"policies with the methods {', '.join(methods)}")
