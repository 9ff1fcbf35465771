"""Policies in their pipeline, one step after another: steps, budget, breaker (G1, G2, G4, T6).

The order of the steps of one policy can be told from what any number of threads see. A pipeline of several holds for a
moment what a later denial gives back, as it says, so only one thread may ask such a one.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, cast

from failstop.properties.references.chain import DONE, Advance
from failstop.properties.subject import Lane, NotOffered
from failstop.properties.subjects.still import StillClock
from failstop.properties.subjects.unexplained import unexplained
from failstop.properties.targets.failstop import FailstopTarget
from failstop.runtime.cores import breaker as breaker_core
from failstop.runtime.cores import budget as budget_core
from failstop.runtime.cores.breaker import CLOSED, FAILURE, NEITHER, NO_PERMIT, OPEN, SUCCESS
from failstop.runtime.cores.breaker import admit as let_in
from failstop.runtime.cores.breaker import report as end_probe
from failstop.runtime.cores.budget import ADMITTED, hold, release, settle
from failstop.runtime.cores.steps import give_back, step
from failstop.runtime.limits import UNLIMITED
from failstop.runtime.money import NANO_PER_USD, Money
from failstop.runtime.policies.breaker import CircuitBreaker
from failstop.runtime.policies.budget import BudgetEnforcer
from failstop.runtime.policies.guard import AgentStepGuard
from failstop.runtime.policies.pipeline import PolicyContext, PolicyPipeline
from failstop.runtime.stops import Denied

if TYPE_CHECKING:
    from collections.abc import Iterator

    from failstop.properties.linearizable import Gap, Reference
    from failstop.properties.target import AnyTarget
    from failstop.runtime.policies.pipeline import PolicyDecision, RuntimePolicy

Kind: TypeAlias = Literal["steps", "budget", "breaker"]
Outcome: TypeAlias = Literal["ok", "failed", "neither"]

_OUTCOMES = {"ok": SUCCESS, "failed": FAILURE, "neither": NEITHER}


class Ask(NamedTuple):
    """A call asks the pipeline; reserve: nano-dollars."""

    call: str
    reserve: int = 0


class Finish(NamedTuple):
    """A call that was let in has ended; cost: nano-dollars. neither: it was denied further on, say."""

    call: str
    outcome: Outcome = "ok"
    cost: int = 0


class GiveBack(NamedTuple):
    """A call that was let in was not dispatched."""

    call: str


class Look(NamedTuple):
    """Somebody looks: (steps taken, nano-dollars spent, held, the breaker's state)."""


PolicyAction: TypeAlias = Ask | Finish | GiveBack | Advance | Look


@dataclass(frozen=True, slots=True)
class PolicySubject:
    """A pipeline of these, in this order; times are nanoseconds."""

    order: tuple[Kind, ...]
    max_steps: int | None = None
    max_nano: int | None = None
    threshold: int = 1
    recovery_ns: int = 10
    lease_ns: int = 20
    name: str = "policies"
    ignored: tuple[type, ...] = (Lane,)

    def told(self, gap: Gap) -> str:
        """See Subject."""
        return unexplained(gap)

    def reference(self, *, exact: bool) -> Reference:  # noqa: ARG002 - ours alone is held to it
        """See Subject."""
        return cast("Reference", PolicyReference(self))

    def open(self, target: AnyTarget) -> PolicyInstrument:
        """See Subject."""
        if not isinstance(target, FailstopTarget):
            raise NotOffered("it has no PolicyPipeline")
        return PolicyInstrument(self)


class Taken(NamedTuple):
    """What is taken of each policy, and what each call that was let in has a permit for."""

    steps: int
    budget: budget_core.State
    breaker: breaker_core.State
    now: int
    permits: frozenset[tuple[str, tuple[tuple[Kind, int], ...]]]


class PolicyReference:
    """The steps of the cores, in the order of the pipeline."""

    def __init__(self, subject: PolicySubject) -> None:
        self._order = subject.order
        self._max_steps = UNLIMITED if subject.max_steps is None else subject.max_steps
        self._max_nano = UNLIMITED if subject.max_nano is None else subject.max_nano
        self._settings = (subject.threshold, subject.recovery_ns, subject.lease_ns)
        self.initial = Taken(0, budget_core.INITIAL, breaker_core.INITIAL, 0, frozenset())

    def outcomes(self, state: Taken, action: PolicyAction) -> Iterator[tuple[Taken, object]]:
        """See Reference."""
        match action:
            case Ask():
                yield self._asked(state, action)
            case Finish() | GiveBack():
                yield self._ended(state, action), DONE
            case Advance():
                yield state._replace(now=state.now + action.duration_ns), DONE
            case Look():
                mode, _, _, until = state.breaker
                shown = "closed" if mode == CLOSED else "open" if mode == OPEN and state.now < until else "half-open"
                yield state, (state.steps, *state.budget[:2], shown)

    def _asked(self, state: Taken, action: Ask) -> tuple[Taken, str]:
        permits: list[tuple[Kind, int]] = []
        for kind in self._order:
            state, permit = self._taken(state, kind, action.reserve)
            if permit == NO_PERMIT:
                for earlier, its_permit in reversed(permits):
                    state = self._given_back(state, earlier, its_permit)
                return state, f"denied by {kind}"
            permits.append((kind, permit))
        return state._replace(permits=state.permits | {(action.call, tuple(permits))}), "admitted"

    def _taken(self, state: Taken, kind: Kind, reserve: int) -> tuple[Taken, int]:
        if kind == "steps":
            taken, admitted = step(state.steps, self._max_steps)
            return state._replace(steps=taken), 0 if admitted else NO_PERMIT
        if kind == "budget":
            budget, verdict, held = hold(state.budget, self._max_nano, reserve)
            return state._replace(budget=budget), held if verdict == ADMITTED else NO_PERMIT
        breaker, _, permit = let_in(state.breaker, self._settings, state.now)
        return state._replace(breaker=breaker), permit

    def _given_back(self, state: Taken, kind: Kind, permit: int) -> Taken:
        if kind == "steps":
            return state._replace(steps=give_back(state.steps))
        if kind == "budget":
            return state._replace(budget=release(state.budget, permit))
        return state._replace(breaker=end_probe(state.breaker, self._settings, permit, NEITHER, state.now))

    def _ended(self, state: Taken, action: Finish | GiveBack) -> Taken:
        found = next((each for each in state.permits if each[0] == action.call), None)
        if found is None:
            return state
        state = state._replace(permits=state.permits - {found})
        for kind, permit in reversed(found[1]):
            if isinstance(action, GiveBack):
                state = self._given_back(state, kind, permit)
            elif kind == "budget":
                cost = action.cost if action.outcome == "ok" else permit
                state = state._replace(budget=settle(state.budget, self._max_nano, permit, cost))
            elif kind == "breaker":
                outcome = _OUTCOMES[action.outcome]
                state = state._replace(breaker=end_probe(state.breaker, self._settings, permit, outcome, state.now))
        return state


class PolicyInstrument:
    """The pipeline, and the permits of the calls that it let in; a move on a call that it did not makes none."""

    def __init__(self, subject: PolicySubject) -> None:
        self._clock = StillClock()
        limit = None if subject.max_nano is None else Money(subject.max_nano)
        self._steps, self._budget = AgentStepGuard(subject.max_steps), BudgetEnforcer(limit)
        recovery, lease = (Decimal(each) / NANO_PER_USD for each in (subject.recovery_ns, subject.lease_ns))
        self._breaker = CircuitBreaker(subject.threshold, recovery, probe_lease_s=lease, clock=self._clock)
        policies: dict[Kind, RuntimePolicy] = {
            "steps": self._steps,
            "budget": self._budget,
            "breaker": self._breaker,
        }
        self._pipeline = PolicyPipeline([policies[kind] for kind in subject.order])
        self._let_in: dict[str, PolicyDecision] = {}

    def play(self, move: PolicyAction, lane: Lane) -> None:
        """See Instrument."""
        match move:
            case Ask():
                lane.begin(move)
                decision = self._pipeline.evaluate(PolicyContext(reserve_nano=move.reserve))
                lane.end("admitted" if decision.allowed else f"denied by {decision.policy_type}")
                if decision.allowed:
                    self._let_in[move.call] = decision
            case Finish() | GiveBack():
                if move.call in self._let_in:
                    lane.begin(move)
                    self._end(move, self._let_in[move.call])
                    lane.end(DONE)
            case Advance():
                lane.begin(move)
                self._clock.advance_ns(move.duration_ns)
                lane.end(DONE)
            case Look():
                self.look(lane)

    def look(self, lane: Lane) -> None:
        """See Instrument."""
        lane.begin(Look())
        budget = self._budget
        lane.end((self._steps.current_step, budget.spent.nano, budget.reserved.nano, self._breaker.state.value))

    def close(self) -> None:
        """See Instrument."""

    def _end(self, move: Finish | GiveBack, decision: PolicyDecision) -> None:
        if isinstance(move, GiveBack):
            self._pipeline.release(decision)
        else:
            errors = {"ok": None, "failed": RuntimeError("it broke"), "neither": Denied("another", "not now")}
            self._pipeline.report(decision, errors[move.outcome], move.cost)
