"""One call from admission to settlement: policies first, then the ledger; whatever happens after, it is settled once.

Policies come first because what they take can be given back without harm, while a step held for a moment at the
ledger could make another caller stop the chain for good. A chain that is over is refused before they are asked, and a
call that the ledger keeps out gives their holds back before it waits.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import get_ident
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from failstop.runtime.chain import frames
from failstop.runtime.chain.accounts import closed_stop
from failstop.runtime.chain.charging import Cost, charged_for
from failstop.runtime.cores.ledger import HALTED
from failstop.runtime.policies.pipeline import UNKNOWN_COST, PolicyContext, PolicyDecision, PolicyPipeline
from failstop.runtime.stops import Denied, Stop

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from failstop.runtime.chain.accounts import Chain, Owner
    from failstop.runtime.chain.graph import ExecutionGraph
    from failstop.runtime.chain.ledger import Ledger
    from failstop.runtime.money import Amount


Tokens: TypeAlias = "Callable[[Any], tuple[int, int]]"
"""Reads (tokens in, tokens out) from a call's value."""


@dataclass(frozen=True, slots=True)
class Request:
    """What one call asks for; `asked` is nano-dollars or NO_ESTIMATE."""

    label: str
    tool: bool
    asked: int
    cost: Cost
    wait: bool
    tokens: Tokens | None = None

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

    def stop_now(self) -> Stop:
        """Give the stop to raise for a call that was abandoned."""
        stop = self.ledger.stop
        return closed_stop(self.owner) if stop is None else stop.again()

    def ask_policies(self, request: Request) -> PolicyDecision | None:
        """Let the policies decide one call of a chain that is not over; raises Stop or Denied."""
        if self.policies is None:
            return None
        self.ledger.refuse_if_over(self.owner)
        decision = self.policies.evaluate(
            PolicyContext(chain_id=self.ledger.chain, kind=request.kind, name=request.label, reserve_nano=request.asked)
        )
        if not decision.allowed:
            raise Denied(decision.policy_type, decision.reason, decision.degradation)
        return decision

    def give_back(self, decision: PolicyDecision | None) -> None:
        """Return what the policies took for a call that never began."""
        if self.policies is not None and decision is not None:
            self.policies.release(decision)

    def report(self, decision: PolicyDecision | None, error: BaseException | None, cost_nano: int) -> None:
        """Tell the policies how a call ended; one that cannot take it bounds nothing any more, so its chain stops.

        The call itself stands as it is: taken for a failure it would be made again.
        """
        if self.policies is None or decision is None:
            return
        try:
            self.policies.report(decision, error, cost_nano)
        except Exception as failure:  # noqa: BLE001 - whatever a policy raises, the call has ended
            self.ledger.halt(HALTED, f"a policy could not take the end of a call: {described(failure)}")


class AlreadyEnded(RuntimeError):  # noqa: N818 - it tells what happened
    """A reservation was settled, failed or released a second time; the first time counts."""


class Abandoned(BaseException):
    """The chain stopped while the call ran; a signal inside the runtime, which users see as the stop itself."""


class Dispatch:
    """One call: asked for, admitted, begun, and ended once by one of succeed, settle, fail or release.

    As a context manager it ends with its block, whatever cuts that short: charged if it had begun, else released.
    """

    __slots__ = (
        "_boundary",
        "_decision",
        "_once",
        "_outer",
        "_retry",
        "begun",
        "call",
        "frame",
        "handed_over",
        "held",
        "request",
        "settled",
        "start_ns",
        "thread",
    )

    def __init__(self, boundary: Boundary, request: Request, retry: bool = False) -> None:
        self._boundary = boundary
        self._retry = retry
        self._decision: PolicyDecision | None = None
        # Emptied by whoever ends the call: popping is atomic, so two threads cannot both end it.
        self._once = [True]
        self._outer = frames.current.get()
        self.request = request
        self.begun = False
        self.handed_over = False
        """True once other code ends the call, whatever becomes of its caller."""
        self.call = self.held = self.start_ns = self.settled = 0
        self.thread = get_ident()
        self.frame: frames.Frame = (boundary.ledger.chain, 0, self._outer)

    @property
    def chain(self) -> Chain:
        """The chain that it belongs to."""
        return self._boundary.ledger.chain

    @property
    def admitted(self) -> bool:
        """True from its admission on."""
        return self.call > 0

    @property
    def open(self) -> bool:
        """True between its admission and its end."""
        return self.call > 0 and bool(self._once)

    def admit(self, waiter: Callable[[], None] | None = None) -> None:
        """Ask the policies, then the ledger; raises Stop, Denied, Contended, or Queued with `waiter` registered."""
        boundary, request = self._boundary, self.request
        decision = boundary.ask_policies(request)
        try:
            self._decision = decision
            boundary.ledger.admit(self, boundary.owner, request.asked, request.tool, self._retry, request.label, waiter)
        except BaseException as refusal:
            self._decision = None
            try:
                boundary.give_back(decision)
            except Exception as failure:  # noqa: BLE001 - the refusal is what the caller must hear
                refusal.add_note(f"giving back what the policies took failed: {described(failure)}")
            raise
        self.frame = (self.chain, self.call, self._outer)

    def leave_thread(self) -> None:
        """Say that the opening thread is not inside of the call: other work of that thread may go on meanwhile."""
        self.belongs_to(-get_ident())

    def belongs_to(self, thread: int) -> None:
        """Say which thread is inside of the call, if it holds anything."""
        if self.call in self.chain.holding:
            self.chain.holding[self.call] = thread

    def succeed(self, value: Any, outcome: Callable[[], str] = lambda: "ok") -> None:
        """Charge a call that returned; a cost that cannot be read is the whole reservation.

        outcome: asked once the cost was read, which runs code of the user's and may take long.
        """
        try:
            paid, known = charged_for(self.request.cost, value, self.held)
        except BaseException as error:
            self._end(self.held, "error", False, error, None)
            raise
        self._end(paid, outcome(), known, None, value)

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
        try:
            self._boundary.ledger.release(self.call, self.held, self.request.tool, self._retry)
        finally:
            self._boundary.give_back(self._decision)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and self.open and not self.handed_over:
            if self.begun:
                self.fail(error, "abandoned" if isinstance(error, Abandoned | GeneratorExit) else "error")
            else:
                self.release()

    def _end(self, paid: int, outcome: str, known: bool, error: BaseException | None, value: Any) -> None:
        ledger = self._boundary.ledger
        told = None
        self._end_once()
        try:
            told = None if error is None else described(error)
            ledger.settle(self, paid, outcome, known, told, posted=isinstance(error, GeneratorExit))
        except BaseException:
            # An interrupt before anything was settled: what the call holds must not stay held.
            if not self.settled:
                ledger.settle(self, paid, outcome, known, told, posted=True)
            raise
        finally:
            try:
                self._note(paid, outcome, self.request.tokens if error is None else None, value)
            finally:
                self._boundary.report(self._decision, error, paid if known else UNKNOWN_COST)

    def _note(self, paid: int, outcome: str, read: Tokens | None, value: Any) -> None:
        boundary, request = self._boundary, self.request
        where = (self.call, self._outer, self.thread, boundary.owner.name, request.kind, request.label)
        boundary.graph.record((*where, self.start_ns, boundary.ledger.now_ns(), paid, outcome, *_counted(read, value)))

    def _end_once(self) -> None:
        try:
            self._once.pop()
        except IndexError:
            raise AlreadyEnded(f"the reservation of {self.request.label!r} was ended before") from None
        except BaseException:
            # An interrupt that came right after: the end has yet to happen.
            self._once.append(True)
            raise


def described(error: BaseException) -> str:
    """Name an error in one line without trusting its text or its type."""
    name: str = type.__dict__["__name__"].__get__(type(error))
    try:
        return f"{name}: {error}"[:500]
    except BaseException:  # noqa: BLE001 - an error whose text cannot be made is still on record by its type
        return name


def _counted(read: Tokens | None, value: Any) -> tuple[int, int]:
    if read is None:
        return 0, 0
    try:
        tokens_in, tokens_out = read(value)
        return int(tokens_in), int(tokens_out)
    except Exception:  # noqa: BLE001 - token counts are observation only; no limit rests on them
        return 0, 0
