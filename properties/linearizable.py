"""Linearizability: can what callers were told be explained by one step after another of a reference?

Each operation takes effect at one moment between its beginning and its end. The checker follows a history event by
event and keeps every explanation that is still possible; when none is left, nothing explains the event just seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

State: TypeAlias = "Hashable"
Action: TypeAlias = "Hashable"
Answer: TypeAlias = "Hashable"


class Reference(Protocol):
    """What the operations do when they happen one after another."""

    @property
    def initial(self) -> State:
        """The state before anything happened."""

    def outcomes(self, state: State, action: Action) -> Iterable[tuple[State, Answer]]:
        """Give the states that the action may lead to, with what the caller is told; none: it cannot happen now."""


class Begin(NamedTuple):
    """An operation was asked for: from now on it may take effect. Those of one lane take effect in their order."""

    lane: int
    action: Action


class End(NamedTuple):
    """The first unfinished operation of the lane was answered: it took effect before this."""

    lane: int
    answer: Answer


class Withdraw(NamedTuple):
    """The last unfinished operation of the lane turns out never to have been asked for."""

    lane: int


Event: TypeAlias = Begin | End | Withdraw


class _Waiting(NamedTuple):
    action: Action


class _Done(NamedTuple):
    answer: Answer
    happened: bool = True
    """Tells it from one that waits, which would be equal if an action looks like an answer."""


_Lane: TypeAlias = tuple[_Waiting | _Done, ...]
"""The unfinished operations of one lane, first to last; those that took effect come before those that did not."""

_Explanation: TypeAlias = tuple[State, tuple[_Lane, ...]]


class Explanations:
    """All that may really have happened, given the events so far; empty once nothing explains them."""

    def __init__(self, reference: Reference, lanes: int) -> None:
        self._reference = reference
        self._possible: frozenset[_Explanation] = frozenset({(reference.initial, ((),) * lanes)})

    def __bool__(self) -> bool:
        return bool(self._possible)

    @property
    def key(self) -> Hashable:
        """Equal for two histories that the same future explains."""
        return self._possible

    @property
    def states(self) -> frozenset[State]:
        """The states that the reference may be in."""
        return frozenset(state for state, _ in self._possible)

    def see(self, event: Event) -> bool:
        """Take one event into account; says whether everything can still be explained."""
        if isinstance(event, Begin):
            self._possible = frozenset(self._begun(event.lane, event.action))
        elif isinstance(event, End):
            self._possible = frozenset(self._ended(event.lane, event.answer))
        else:
            self._possible = frozenset(self._withdrawn(event.lane))
        return bool(self._possible)

    def _begun(self, lane: int, action: Action) -> Iterator[_Explanation]:
        for each in self._possible:
            yield _with(each, lane, (*each[1][lane], _Waiting(action)))

    def _ended(self, lane: int, answer: Answer) -> Iterator[_Explanation]:
        for each in self._all_that_may_have_happened():
            pending = each[1][lane]
            # An answer that nobody waits for is one that nothing explains.
            if pending and pending[0] == _Done(answer):
                yield _with(each, lane, pending[1:])

    def _withdrawn(self, lane: int) -> Iterator[_Explanation]:
        for each in self._possible:
            pending = each[1][lane]
            if pending and isinstance(pending[-1], _Waiting):
                yield _with(each, lane, pending[:-1])

    def _all_that_may_have_happened(self) -> set[_Explanation]:
        """Let any waiting operations take effect, in any order."""
        found = set(self._possible)
        waiting = list(found)
        while waiting:
            state, lanes = waiting.pop()
            for lane, pending in enumerate(lanes):
                for after in self._next(state, pending):
                    explained = _with((after[0], lanes), lane, after[1])
                    if explained not in found:
                        found.add(explained)
                        waiting.append(explained)
        return found

    def _next(self, state: State, pending: _Lane) -> Iterator[tuple[State, _Lane]]:
        for place, each in enumerate(pending):
            if isinstance(each, _Waiting):
                for after, answer in self._reference.outcomes(state, each.action):
                    yield after, (*pending[:place], _Done(answer), *pending[place + 1 :])
                return


class Gap(NamedTuple):
    """The place of the first event that nothing explains, the event, and the states that were possible before it."""

    place: int
    event: Event
    states: frozenset[State]


def first_gap(reference: Reference, history: Iterable[Event], lanes: int) -> Gap | None:
    """Follow a history to the first event that nothing explains; None: it is linearizable."""
    explanations = Explanations(reference, lanes)
    for place, event in enumerate(history):
        states = explanations.states
        if not explanations.see(event):
            return Gap(place, event, states)
    return None


def _with(explanation: _Explanation, lane: int, pending: _Lane) -> _Explanation:
    state, lanes = explanation
    return state, (*lanes[:lane], pending, *lanes[lane + 1 :])
