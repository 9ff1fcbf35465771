"""The circuit breaker: after repeated failures nothing is dispatched for a while, then one probe at a time (G4)."""

from __future__ import annotations

import enum
import threading
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from failstop.runtime.clock import NS_PER_SECOND, SystemClock
from failstop.runtime.cores import breaker as core
from failstop.runtime.limits import seconds_to_ns
from failstop.runtime.money import MAX_CEILING
from failstop.runtime.policies.pipeline import PolicyContext, PolicyDecision
from failstop.runtime.stops import ConfigurationError, Degradation, Denied

if TYPE_CHECKING:
    from collections.abc import Callable
    from decimal import Decimal

    from failstop.runtime.clock import Clock

P = ParamSpec("P")
T = TypeVar("T")


class BreakerState(enum.Enum):
    """What an observer sees; a half-open breaker has a probe out or would let one go."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"


def is_its_own_failure(error: BaseException) -> bool | None:
    """Judge an error: True for an ordinary exception; None for a denial, a stop, a cancellation or an exit."""
    return True if isinstance(error, Exception) and not isinstance(error, Denied) else None


class CircuitBreaker:
    """Opens after `failure_threshold` failures in a row; raises ConfigurationError for options that cannot be used.

    recovery_timeout_s: how long it stays open; a failed probe opens it for as long again. probe_lease_s: how long a
    probe may be unheard of before its slot goes to another; from then on a probe that hangs may run beside the next,
    and its result no longer counts. is_failure: judges what a call raised: True failure, False success, None neither
    (then nothing is counted, and a probe's slot is free again). To judge a value that was returned, raise.
    shared: one breaker serves one chain, whose failures are its own; True lets several chains trip it together.
    """

    policy_type = "breaker"

    def __init__(
        self,
        failure_threshold: int = 5,
        recovery_timeout_s: float | Decimal = 60.0,
        *,
        probe_lease_s: float | Decimal = 60.0,
        clock: Clock | None = None,
        is_failure: Callable[[BaseException], bool | None] = is_its_own_failure,
        shared: bool = False,
    ) -> None:
        lease_ns = seconds_to_ns(probe_lease_s, "probe_lease_s")
        if lease_ns == 0:
            raise ConfigurationError("probe_lease_s", probe_lease_s, "more than zero: it keeps a second probe out")
        if not callable(is_failure):
            raise ConfigurationError("is_failure", is_failure, "a function from an error to True, False or None")
        if not isinstance(shared, bool):
            raise ConfigurationError("shared", shared, "True or False")
        recovery_ns = seconds_to_ns(recovery_timeout_s, "recovery_timeout_s")
        self._settings: core.Settings = (_checked_threshold(failure_threshold), recovery_ns, lease_ns)
        self._clock = SystemClock() if clock is None else clock
        self._is_failure = is_failure
        self._shared = shared
        self._chain: object = None
        self._lock = threading.RLock()
        self._state = core.INITIAL

    @property
    def state(self) -> BreakerState:
        """What the next caller would meet now."""
        with self._lock:
            mode, _, _, until = self._state
            if mode == core.CLOSED:
                return BreakerState.CLOSED
            cooling = mode == core.OPEN and self._clock.now_ns() < until
        return BreakerState.OPEN if cooling else BreakerState.HALF_OPEN

    def call(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run ``fn(*args, **kwargs)`` outside of any chain; raises Denied, or what `fn` raised."""
        context = PolicyContext()
        decision = self.check(context)
        if not decision.allowed:
            raise Denied(decision.policy_type, decision.reason, decision.degradation)
        try:
            value = fn(*args, **kwargs)
        except BaseException as error:
            self.report(context, decision, error, 0)
            raise
        self.report(context, decision, None, 0)
        return value

    def check(self, context: PolicyContext) -> PolicyDecision:
        """Decide one call; the permit is the generation that admitted it. Raises ConfigurationError if not shared."""
        chain_id = context.chain_id
        if not self._shared and chain_id is not None and chain_id != self._chain:
            self._bind(chain_id)
        lock = self._lock
        lock.acquire()
        try:
            now = self._clock.now_ns()
            self._state, verdict, permit = core.admit(self._state, self._settings, now)
            _, _, _, until = self._state
        finally:
            lock.release()
        if permit != core.NO_PERMIT:
            return PolicyDecision(True, "breaker", "", None, permit)
        return _denial(verdict, until - now)

    def release(self, context: PolicyContext, decision: PolicyDecision) -> None:  # noqa: ARG002 - the permit says all
        """Free the probe's slot: the call was not dispatched."""
        self._end(decision, core.NEITHER)

    def report(
        self,
        context: PolicyContext,  # noqa: ARG002 - the permit says all
        decision: PolicyDecision,
        error: BaseException | None,
        cost_nano: int,  # noqa: ARG002 - what a call cost says nothing of its health
    ) -> None:
        """Count how the call ended, once, if its generation is still the current one."""
        try:
            outcome = core.SUCCESS if error is None else _outcome(self._is_failure(error))
        except BaseException:
            self._end(decision, core.NEITHER)
            raise
        self._end(decision, outcome)

    def reset(self) -> None:
        """Close; results of calls in flight no longer count. The breaker stays with its chain."""
        with self._lock:
            self._state = core.reset(self._state)

    def _end(self, decision: PolicyDecision, outcome: int) -> None:
        lock = self._lock
        lock.acquire()
        try:
            permit, decision.permit = decision.permit, None
            if isinstance(permit, int):
                self._state = core.report(self._state, self._settings, permit, outcome, self._clock.now_ns())
        finally:
            lock.release()

    def _bind(self, chain_id: object) -> None:
        with self._lock:
            if self._chain is None:
                self._chain = chain_id
                return
        if chain_id != self._chain:
            expected = f"{self._chain!r}, which this breaker serves; make one breaker a chain, or pass shared=True"
            raise ConfigurationError("chain_id", chain_id, expected)


def _outcome(answer: object) -> int:
    if answer is None:
        return core.NEITHER
    if not isinstance(answer, bool):
        raise ConfigurationError("is_failure", answer, "True, False or None as its answer")
    return core.FAILURE if answer else core.SUCCESS


def _denial(verdict: int, wait_ns: int) -> PolicyDecision:
    seconds = f"{wait_ns / NS_PER_SECOND:.3f} s"
    reason = f"open for another {seconds}" if verdict == core.COOLING else f"a probe is out, for at most {seconds} more"
    return PolicyDecision(False, "breaker", reason, Degradation("wait", wait_ns=wait_ns))


def _checked_threshold(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_CEILING:
        raise ConfigurationError("failure_threshold", value, "a whole number (int) of failures, at least 1")
    return value
