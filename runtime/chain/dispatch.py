"""One call from admission to settlement: policies first, then the ledger; whatever happens after, it is settled once.

Policies come first because what they take can be given back without harm, while a step held for a moment at the
ledger could make another caller stop the chain for good. A call that the ledger keeps out gives its policies' holds
back before it waits.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import get_ident
from typing import TYPE_CHECKING, Any

from failstop.runtime.chain import frames
from failstop.runtime.chain.accounts import closed_stop
from failstop.runtime.chain.charging import Cost, charged_for
from failstop.runtime.policies.pipeline import UNKNOWN_COST, PolicyContext, PolicyDecision, PolicyPipeline
from failstop.runtime.stops import Denied, Stop

if TYPE_CHECKING:
    from collections.abc import Callable

    from failstop.runtime.chain.accounts import Owner
    from failstop.runtime.chain.graph import ExecutionGraph
    from failstop.runtime.chain.ledger import Ledger
    from failstop.runtime.money import Amount


@dataclass(frozen=True, slots=True)
class Request:
    """What one call asks for; `asked` is nano-dollars or NO_ESTIMATE."""

    label: str
    tool: bool
    asked: int
    cost: Cost
    wait: bool
    tokens: Callable[[Any], tuple[int, int]] | None = None

    @property
    def kind(self) -> str:
        """Say "tool" or "llm"."""
        return "tool" if self.tool else "llm"


class Boundary:
    """Where the calls of one context go in and out."""

    def __init__(self, owner: Owner, ledger: Ledger, graph: ExecutionGraph, policies: PolicyPipeline | None) -> None:
        self.owner = owner
        self.ledger = ledger
        self.graph = graph
        self.policies = policies

    def open(self, request: Request, retry: bool, waiter: Callable[[], None] | None = None) -> Dispatch:
        """Admit one dispatch; raises Stop, Denied, or Contended with `waiter` registered."""
        decision = self._ask_policies(request)
        try:
            call, held, start_ns = self.ledger.admit(
                self.owner, request.asked, request.tool, retry, request.label, waiter
            )
        except BaseException:
            if self.policies is not None and decision is not None:
                self.policies.release(decision)
            raise
        return Dispatch(self, request, retry, decision, call, held, start_ns)

    def stop_now(self) -> Stop:
        """Give the stop to raise for a call that was abandoned."""
        stop = self.ledger.stop
        return closed_stop(self.owner) if stop is None else stop.again()

    def _ask_policies(self, request: Request) -> PolicyDecision | None:
        if self.policies is None:
            return None
        decision = self.policies.evaluate(
            PolicyContext(chain_id=self.ledger.chain, kind=request.kind, name=request.label, reserve_nano=request.asked)
        )
        if not decision.allowed:
            raise Denied(decision.policy_type, decision.reason, decision.degradation)
        return decision


class AlreadyEnded(RuntimeError):  # noqa: N818 - it tells what happened
    """A reservation was settled, failed or released a second time; the first time counts."""


class Dispatch:
    """An admitted call and what it holds; exactly one of succeed, settle, fail or release ends it, once."""

    __slots__ = (
        "_boundary",
        "_decision",
        "_once",
        "_outer",
        "_retry",
        "call",
        "frame",
        "held",
        "request",
        "start_ns",
        "thread",
    )

    def __init__(
        self,
        boundary: Boundary,
        request: Request,
        retry: bool,
        decision: PolicyDecision | None,
        call: int,
        held: int,
        start_ns: int,
    ) -> None:
        self._boundary = boundary
        self._decision = decision
        self._retry = retry
        # Emptied by whoever ends the call: popping is atomic, so two threads cannot both end it.
        self._once = [True]
        self._outer = frames.current.get()
        self.thread = get_ident()
        self.request = request
        self.call = call
        self.held = held
        self.start_ns = start_ns
        self.frame: frames.Frame = (boundary.ledger.chain, call, self._outer)

    @property
    def ended(self) -> bool:
        """True once it was charged or released."""
        return not self._once

    def succeed(self, value: Any, outcome: str = "ok") -> None:
        """Charge a call that returned; a cost that cannot be read is the whole reservation."""
        try:
            paid, known = charged_for(self.request.cost, value, self.held)
        except BaseException as error:
            self._end(self.held, "error", False, error, None)
            raise
        self._end(paid, outcome, known, None, value)

    def fail(self, error: BaseException, outcome: str = "error") -> None:
        """Charge a call that raised, all that it held: what it spent before it raised is unknown (G1)."""
        self._end(self.held, outcome, False, error, None)

    def settle(self, actual: Amount | None) -> None:
        """Charge what it cost in dollars, in full; None or what is no amount is charged as all that it holds."""
        paid, known = charged_for(lambda _: actual, None, self.held)
        self._end(paid, "ok", known, None, None)

    def release(self) -> None:
        """Give everything back: the call provably never began."""
        self._end_once()
        boundary = self._boundary
        boundary.ledger.release(self.call, self.held, self.request.tool, self._retry)
        if boundary.policies is not None and self._decision is not None:
            boundary.policies.release(self._decision)

    def _end(self, paid: int, outcome: str, known: bool, error: BaseException | None, value: Any) -> None:
        self._end_once()
        boundary = self._boundary
        request = self.request
        try:
            boundary.ledger.settle(
                self.call, self.held, paid, outcome, known, None if error is None else described(error)
            )
        finally:
            tokens = _tokens(request.tokens, value) if error is None else (0, 0)
            where = (self.call, self._outer, self.thread, boundary.owner.name, request.kind, request.label)
            boundary.graph.record((*where, self.start_ns, boundary.ledger.now_ns(), paid, outcome, *tokens))
            if boundary.policies is not None and self._decision is not None:
                boundary.policies.report(self._decision, error, paid if known else UNKNOWN_COST)

    def _end_once(self) -> None:
        try:
            self._once.pop()
        except IndexError:
            raise AlreadyEnded(f"the reservation of {self.request.label!r} was ended before") from None


def described(error: BaseException) -> str:
    """Name an error in one line without trusting its text."""
    try:
        return f"{type(error).__name__}: {error}"[:500]
    except Exception:  # noqa: BLE001 - an error whose text cannot be made is still on record by its type
        return type(error).__name__


def _tokens(read: Callable[[Any], tuple[int, int]] | None, value: Any) -> tuple[int, int]:
    if read is None:
        return 0, 0
    try:
        tokens_in, tokens_out = read(value)
    except Exception:  # noqa: BLE001 - token counts are observation only; no limit rests on them
        return 0, 0
    return int(tokens_in), int(tokens_out)
