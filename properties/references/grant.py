"""A person's approval, one step after another (approval): that of one grant, and that of the calls of a session.

The steps of a grant are the functions of `runtime.cores.grant`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from failstop.planners.actions import STOPS
from failstop.properties.references.chain import DONE, Advance
from failstop.runtime.cores.grant import (
    APPROVED,
    DENIED,
    DRIFTED,
    EXPIRED,
    GRANTED,
    PENDING,
    USED,
    Grant,
    answer,
    expire,
    requested,
    use,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

TOLD = {
    GRANTED: "granted",
    PENDING: "pending",
    APPROVED: "approved",
    DENIED: "denied",
    USED: "used",
    EXPIRED: "expired",
    DRIFTED: "drifted",
}
"""What a caller is told, by the verdict of the core; all but the first refuse."""

DISPATCHED = "dispatched"
"""The answer to a call whose stub ran."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A person answers."""

    approved: bool = True


@dataclass(frozen=True, slots=True)
class Use:
    """A dispatch wants the approval; same: it is the very call that was asked about."""

    same: bool = True


@dataclass(frozen=True, slots=True)
class IsPending:
    """Somebody asks whether it still waits for an answer."""


GrantAction: TypeAlias = Answer | Use | IsPending | Advance


class GrantState(NamedTuple):
    """The core's state, and the nanoseconds since the grant was requested."""

    state: Grant
    now: int


class GrantReference:
    """The reference of one grant; expires_ns None: never. Not exact: it may refuse for whatever reason."""

    def __init__(self, expires_ns: int | None, *, exact: bool) -> None:
        self.initial = GrantState(requested(-1 if expires_ns is None else expires_ns), 0)
        self._exact = exact

    def outcomes(self, state: GrantState, action: GrantAction) -> Iterator[tuple[GrantState, object]]:
        """See Reference."""
        match action:
            case Answer():
                yield from self._told(state, *answer(state.state, action.approved, state.now))
            case Use():
                yield from self._told(state, *use(state.state, action.same, state.now))
            case IsPending():
                after, verdict = expire(state.state, state.now)
                yield state._replace(state=after), verdict == GRANTED and after[0] == PENDING
            case Advance():
                yield state._replace(now=state.now + action.duration_ns), DONE

    def _told(self, before: GrantState, after: Grant, verdict: int) -> Iterator[tuple[GrantState, object]]:
        yield before._replace(state=after), TOLD[verdict]
        if not self._exact:
            yield from ((before, told) for each, told in TOLD.items() if each not in {GRANTED, verdict})


@dataclass(frozen=True, slots=True)
class Ask:
    """A planner asks for a call that needs a person's yes; each has a name of its own, in its arguments."""

    call: str


@dataclass(frozen=True, slots=True)
class Approve:
    """A person says yes to a call, which is dispatched, once."""

    call: str


class Calls(NamedTuple):
    """The calls that wait for a person."""

    waiting: frozenset[str] = frozenset()


class ApprovalReference:
    """The reference of a session in which every call needs a yes. Not exact: it may refuse for whatever reason."""

    initial = Calls()

    def __init__(self, *, exact: bool) -> None:
        self._refusals = ("approval",) if exact else STOPS

    def outcomes(self, state: Calls, action: Ask | Approve) -> Iterator[tuple[Calls, object]]:
        """See Reference."""
        match action:
            case Ask():
                after = Calls(state.waiting | {action.call})
                yield from ((after, told) for told in self._refusals)
            case Approve():
                if action.call in state.waiting:
                    yield Calls(state.waiting - {action.call}), DISPATCHED
                if action.call not in state.waiting or len(self._refusals) > 1:
                    yield from ((state, told) for told in self._refusals)
