"""A spending limit of its own, outside or beside a chain's ledger."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from failstop.runtime.cores import budget as core
from failstop.runtime.limits import UNLIMITED
from failstop.runtime.money import Amount, Money, nano_down, nano_up
from failstop.runtime.policies.pipeline import PolicyDecision
from failstop.runtime.stops import Degradation

if TYPE_CHECKING:
    from failstop.runtime.policies.pipeline import PolicyContext


class BudgetEnforcer:
    """Exact spending up to `limit_usd` dollars (None: any amount), from any number of threads (G1).

    A refused spend is recorded nowhere and shuts the budget: every later one is refused, of nothing too, until
    reset(). The published enforcer refuses one spend and accepts the next smaller one, so a denial stops nobody.

    As a policy it holds a call's upper bound before the dispatch and settles the actual cost; a call that raised, or
    whose cost nobody knows, is charged its hold. A cost above the hold is recorded in full and shuts the budget.
    """

    policy_type = "budget"
    __slots__ = ("_limit", "_lock", "_state")

    def __init__(self, limit_usd: Amount | None) -> None:
        self._limit = UNLIMITED if limit_usd is None else nano_down(limit_usd, "limit_usd")
        self._lock = threading.Lock()
        self._state = core.INITIAL

    def spend(self, amount: Amount) -> bool:
        """Commit `amount` dollars if it still fits, in one step with the check; raises ConfigurationError."""
        nano = amount.nano if type(amount) is Money else -1
        if nano < 0:
            nano = nano_up(amount, "amount")
        lock = self._lock
        lock.acquire()
        try:
            state = self._state = core.spend(self._state, self._limit, nano)
        finally:
            lock.release()
        return not state[3]

    @property
    def spent(self) -> Money:
        """The dollars committed so far."""
        return Money(self._state[0])

    @property
    def reserved(self) -> Money:
        """The dollars held for calls in flight."""
        return Money(self._state[1])

    @property
    def remaining(self) -> Money | None:
        """The dollars that can still be spent: none once the budget is shut, None if there is no limit."""
        spent, reserved, _, shut = self._state
        if shut:
            return Money(0)
        return None if self._limit < 0 else Money(self._limit - spent - reserved)

    @property
    def exceeded(self) -> bool:
        """True once a spend was refused or a call cost more than it held."""
        return self._state[3]

    @property
    def call_count(self) -> int:
        """How many spends and settled calls are in `spent`."""
        return self._state[2]

    def check(self, context: PolicyContext) -> PolicyDecision:
        """Hold the call's upper bound; without one, all that is left."""
        lock = self._lock
        lock.acquire()
        try:
            self._state, verdict, held = core.hold(self._state, self._limit, context.reserve_nano)
            state = self._state
        finally:
            lock.release()
        if verdict == core.ADMITTED:
            return PolicyDecision(True, "budget", "", None, held)
        return self._denial(state, verdict)

    def release(self, context: PolicyContext, decision: PolicyDecision) -> None:  # noqa: ARG002 - the permit says all
        """Give the hold back, once."""
        with self._lock:
            held, decision.permit = decision.permit, None
            if isinstance(held, int):
                self._state = core.release(self._state, held)

    def report(
        self,
        context: PolicyContext,  # noqa: ARG002 - the permit says all
        decision: PolicyDecision,
        error: BaseException | None,
        cost_nano: int,
    ) -> None:
        """Settle the hold, once, at the cost in nano-dollars."""
        with self._lock:
            held, decision.permit = decision.permit, None
            if isinstance(held, int):
                cost = held if error is not None or cost_nano < 0 else cost_nano
                self._state = core.settle(self._state, self._limit, held, cost)

    def reset(self) -> None:
        """Begin anew; holds of calls in flight stay and are charged to the new period."""
        with self._lock:
            self._state = core.reset(self._state)

    def _denial(self, state: core.State, verdict: int) -> PolicyDecision:
        spent, reserved, _, _ = state
        numbers = f"of {Money(self._limit)}, {Money(spent)} is spent and {Money(reserved)} held"
        if verdict == core.CONTENDED:
            return PolicyDecision(False, "budget", f"{numbers} for calls in flight", Degradation("wait"))
        return PolicyDecision(False, "budget", f"the budget is shut: {numbers}")
