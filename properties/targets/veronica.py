"""veronica-core as its own documentation says to use it, at its strictest: newest 3.10.0, and the paper's 3.4.2.

A wrapped call gives a decision and not the value, so the value is caught in a closure; `RETRY` asks the caller to try
again. An estimate is reserved before the call and is what gets recorded, whatever the call then costs. A call without
an estimate is priced from the token usage in its response, which only `wrap_llm_call` reads, so it goes there whatever
its kind. Awaited calls go through the asynchronous MCP adapter: the context itself has no awaitable face.
"""

from __future__ import annotations

import dataclasses
import importlib
import logging
import math
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from failstop.properties.target import Refused
from failstop.runtime.money import NANO_PER_USD, nano_up
from failstop.runtime.stops import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from failstop.properties.target import Reply, Work
    from failstop.properties.world import World
    from failstop.runtime.clock import Clock
    from failstop.runtime.limits import Limits

NO_CEILING = 10**9
"""For limits that are not set: dollars, steps or retries. veronica-core knows no "unlimited" for them."""

NANO_MODEL = "failstop-nano"
"""A model in the pricing table one token of which costs one nano-dollar, so that any cost can be said in tokens."""

PROMISES: Mapping[str, str] = MappingProxyType(
    {
        "cost": "paper G1: total_cost(chain) <= C; README: 'hard cost cap per chain'",
        "cost_parallel": "README: 'reserve/commit [...] prevents double-spending across concurrent calls'",
        "steps": "paper G2: successful_operations(chain) <= S; README: 'bounded recursion depth'",
        "steps_parallel": "paper G2: check under 'with self._lock', 'No code path increments past S'",
        "retries": "paper G3: total_retries(chain) <= R",
        "deadline": "paper G5: elapsed_ms > T => all new wrap_llm_call() return Decision.HALT",
        "halt": "paper, Theorems 5 and 6: a violation, a refused call too, 'triggers HALT for all subsequent calls'",
        "closed": "ExecutionContext.close(): subsequent calls 'return Decision.HALT immediately'",
        "asyncio": "README: 'Sync and async variants'; AsyncMCPContainmentAdapter: 'budget and step limits'",
        "happy": "wrap_llm_call(): 'ALLOW on clean completion', 'RETRY when the call failed but retries remain'",
    }
)

NOT_OFFERED: Mapping[str, str] = MappingProxyType(
    {
        "cost_overrun": "paper, Limitations: G1 bounds reported costs; of a call with an estimate that is the estimate",
        "cost_invalid": "docs/pricing.md: a cost that cannot be read is recorded as 0.0; a failed call is rolled back",
        "steps_failed": "ExecutionConfig: max_steps is the 'Maximum number of successful wrap calls'",
        "tool_calls": "there is no ceiling on tool calls apart from max_steps",
        "repeats": "ExecutionContext: 'Divergence does NOT halt execution; events are informational only'",
        "deadline_hang": "paper G5, caveat: operations in flight may complete; cancellation is cooperative",
        "children": "docs/context-linking.md: a child has steps, retries and a timeout of its own",
        "approval": "approval tokens are signed and checked by hand; no wrapped call asks for one",
        "approval_args": "as approval",
        "approval_once": "as approval",
        "planner_errors": "it runs no planner",
    }
)
"""Why the other promises are not laid on it."""


class VeronicaCore:
    """The target; opening it raises ModuleNotFoundError that says what to install."""

    name = "veronica-core"
    promises = PROMISES
    not_offered = NOT_OFFERED
    real_time = True

    def versions(self) -> dict[str, str]:
        """Give the version of the package that is really imported."""
        return {"veronica-core": str(_package("veronica_core").__version__)}

    def open(self, limits: Limits, world: World) -> VeronicaSession:
        """Start a chain; a time limit below a millisecond cannot be said, as 0 means none."""
        containment = _package("veronica_core.containment")
        _teach_nano_model()
        try:
            config = containment.ExecutionConfig(
                max_cost_usd=NO_CEILING if limits.max_cost_nano < 0 else limits.max_cost_nano / NANO_PER_USD,
                max_steps=NO_CEILING if limits.max_steps is None else limits.max_steps,
                max_retries_total=NO_CEILING if limits.max_retries is None else limits.max_retries,
                timeout_ms=_timeout_ms(limits),
            )
        except (TypeError, ValueError) as error:
            raise Refused("configuration", str(error)) from error
        session = VeronicaSession(containment.ExecutionContext(config=config), config)
        world.at_end(session.close)
        return session

    def breaker(
        self,
        failure_threshold: int,
        recovery_s: float,
        probe_lease_s: float,  # noqa: ARG002 - its probes have no lease
        clock: Clock,  # noqa: ARG002 - it reads `time`
    ) -> VeronicaBreaker:
        """See OffersBreaker; paper, HALF_OPEN: 'exactly one test request allowed', G4: no check passes while OPEN."""
        return VeronicaBreaker(failure_threshold, recovery_s)


class VeronicaSession:
    """One chain, or a child of one."""

    def __init__(self, context: Any, config: Any) -> None:
        self._context = context
        self._config = config
        self._over: Refused | None = None

    def turn(self, fingerprint: str) -> None:
        """Nothing: repetition is reported as an event and stops nothing."""

    def call(self, work: Work) -> object:
        """Wrap the stub; while the decision is RETRY and the caller has retries left, wrap it again."""
        caught = _Caught(work)
        decision = self._wrapped(work, caught)
        for _ in range(work.retries):
            if decision.name != "RETRY" or isinstance(caught.error, Refused):
                break
            decision = self._wrapped(work, caught)
        return self._answer(decision, caught)

    async def acall(self, work: Work) -> object:
        """Await the stub through the MCP adapter, whose failures carry no RETRY."""
        adapters = _package("veronica_core.adapters.mcp_async")
        adapter = adapters.AsyncMCPContainmentAdapter(self._context, default_cost_per_call=_hint(work))
        caught = _Caught(work)
        result = await adapter.wrap_tool_call(work.tool, {}, caught.arun)
        return self._answer(result.decision, caught)

    def child(self) -> VeronicaSession:
        """Spawn a child with what is left of the parent's budget and time."""
        seen, limits = self._context.get_snapshot(), self._config
        left_usd = max(0.0, limits.max_cost_usd - seen.cost_usd_accumulated)
        left_ms = limits.timeout_ms and max(1, limits.timeout_ms - math.ceil(seen.elapsed_ms))
        child = self._context.spawn_child(max_cost_usd=left_usd, timeout_ms=left_ms)
        return VeronicaSession(child, dataclasses.replace(limits, max_cost_usd=left_usd, timeout_ms=left_ms))

    def approve(self, request: object) -> object:
        """Never asked: no refusal of this target waits for a person."""
        raise Refused("denied", "veronica-core binds no approval to a call", request)

    def close(self) -> None:
        """Close the context."""
        self._context.close()

    def _wrapped(self, work: Work, caught: _Caught) -> Any:
        options = _package("veronica_core.containment").WrapOptions
        hint = _hint(work)
        if hint:
            wrap = self._context.wrap_llm_call if work.kind == "llm" else self._context.wrap_tool_call
            return wrap(caught.run, options(operation_name=work.tool, cost_estimate_hint=hint))
        priced = options(operation_name=work.tool, model=NANO_MODEL, response_hint=caught.response)
        return self._context.wrap_llm_call(caught.run, priced)

    def _answer(self, decision: Any, caught: _Caught) -> object:
        if decision.name == "HALT":
            raise self._refusal()
        if caught.error is not None:
            raise caught.error
        return caught.value

    def _refusal(self) -> Refused:
        """Name the ceiling, in the order in which the package looks at them; all but an estimate are for good."""
        if self._over is not None:
            return Refused(self._over.stop, self._over.detail)
        seen, limits = self._context.get_snapshot(), self._config
        if seen.aborted:
            self._over = Refused("closed" if seen.abort_reason == "context_closed" else "halt", str(seen.abort_reason))
        elif seen.cost_usd_accumulated + 1e-9 >= limits.max_cost_usd:
            self._over = Refused("cost", f"${seen.cost_usd_accumulated:.4f} of ${limits.max_cost_usd:.4f}")
        elif seen.step_count >= limits.max_steps:
            self._over = Refused("steps", f"{seen.step_count} of {limits.max_steps}")
        elif seen.retries_used >= limits.max_retries_total:
            self._over = Refused("retries", f"{seen.retries_used} of {limits.max_retries_total}")
        elif limits.timeout_ms and seen.elapsed_ms >= limits.timeout_ms:
            self._over = Refused("time", f"{seen.elapsed_ms:.0f} of {limits.timeout_ms} ms")
        else:
            return Refused("cost", f"the estimate does not fit into ${limits.max_cost_usd:.4f}")
        return self._over


class VeronicaBreaker:
    """A CircuitBreaker, asked and told as the example in its docstring does, and told of cancelled calls too."""

    def __init__(self, failure_threshold: int, recovery_s: float) -> None:
        module = _package("veronica_core.circuit_breaker")
        self._context = _package("veronica_core.runtime_policy").PolicyContext()
        # A cancelled call is no failure, but to be told of it frees the slot of a probe.
        self._breaker = module.CircuitBreaker(
            failure_threshold=failure_threshold,
            recovery_timeout=recovery_s,
            failure_predicate=module.count_exception_types(Exception),
        )

    def call(self, stub: Callable[[], object]) -> object:
        """See Guarded."""
        self._let_in()
        try:
            value = stub()
        except BaseException as error:
            self._breaker.record_failure(error=error)
            raise
        self._breaker.record_success()
        return value

    def lose(self, stub: Callable[[], object]) -> None:
        """See LosingGuarded."""
        self._let_in()
        stub()

    def _let_in(self) -> None:
        decision = self._breaker.check(self._context)
        if not decision.allowed:
            raise Refused("breaker", decision.reason)


class _Caught:
    """What the stub returned or raised, caught on its way through the wrapper."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self.value: object = None
        self.error: BaseException | None = None
        self.response: dict[str, object] = {}

    def run(self) -> None:
        self.error = None
        try:
            self._took(self._work.run())
        except BaseException as error:
            self.error = error
            raise

    async def arun(self) -> None:
        if self._work.arun is None:
            raise TypeError(f"{self._work.tool} has no stub to await")
        try:
            self._took(await self._work.arun())
        except BaseException as error:
            self.error = error
            raise

    def _took(self, reply: Reply) -> None:
        self.value = reply.value
        try:
            nano = nano_up(reply.cost)  # type: ignore[arg-type]  # it may be anything; what is no amount is refused
        except ConfigurationError:
            return  # no usage to read, as when a provider sends none
        self.response["usage"] = {"prompt_tokens": nano, "completion_tokens": 0}


def _package(module: str) -> Any:
    try:
        loaded = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != "veronica_core":
            raise
        message = "veronica-core is not installed; pip install 'failstop[peers]'"
        raise ModuleNotFoundError(message, name=error.name) from None
    logging.getLogger("veronica_core").setLevel(logging.CRITICAL)
    return loaded


def _teach_nano_model() -> None:
    """Add the model to the pricing table, as the package's own warning about an unknown model advises."""
    pricing = _package("veronica_core.pricing")
    pricing.PRICING_TABLE.setdefault(NANO_MODEL, pricing.Pricing(input_per_1k=1e-6, output_per_1k=1e-6))


def _hint(work: Work) -> float:
    return 0.0 if work.reserve is None else nano_up(work.reserve) / NANO_PER_USD


def _timeout_ms(limits: Limits) -> int:
    if limits.max_seconds is None:
        return 0
    timeout_ms = int(limits.max_seconds * 1000)
    if timeout_ms == 0:
        raise Refused("configuration", "timeout_ms=0 means no timeout; a time limit below a millisecond cannot be said")
    return timeout_ms
