"""One program on one object under test: what was told and what can be seen, beside what the reference says."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, NamedTuple

from failstop.properties.finding import is_exact
from failstop.properties.linearizable import Begin, End, Explanations, Gap
from failstop.properties.machines.program import read
from failstop.properties.subject import Lane
from failstop.properties.targets import load

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from failstop.properties.linearizable import Event, Reference
    from failstop.properties.subject import Instrument, Move, Subject
    from failstop.properties.target import AnyTarget

LOOKED_AT_ONCE = frozenset({"grant"})
"""Subjects that a look changes: they are looked at when the program is over, and only then."""


class Difference(NamedTuple):
    """The first difference: what was asked, what was told instead of what the reference tells, and both in a line."""

    action: Hashable
    answer: Hashable
    expected: Hashable
    told: str


def first_difference(target_name: str, subject: Subject, moves: Sequence[Move]) -> str | None:
    """Play a program and tell its first difference from the reference, None if there is none; raises NotOffered.

    target_name: as on the command line, such as "failstop" or "package.module:attribute".
    """
    difference = difference_of(load(target_name), subject, moves)
    return None if difference is None else difference.told


def replayed(word: str) -> str | None:
    """Play the program of a word such as machines/TARGET/PROGRAM again, and tell its first difference.

    Raises ValueError for what is no word, NotOffered, or what loading the target raises.
    """
    return first_difference(*read(word))


def difference_of(target: AnyTarget, subject: Subject, moves: Sequence[Move]) -> Difference | None:
    """Play a program on a target at hand."""
    comparison = Comparison(target, subject)
    try:
        for move in moves:
            if comparison.difference is None:
                comparison.play(move)
        comparison.finish()
    finally:
        comparison.close()
    return comparison.difference


class Comparison:
    """One object under test beside its reference, for as long as they agree."""

    def __init__(self, target: AnyTarget, subject: Subject) -> None:
        """Open the object; raises NotOffered, or Refused for settings that the target rejects."""
        exact = is_exact(target)
        self.subject = subject
        self.difference: Difference | None = None
        self._reference = subject.reference(exact=exact)
        self._explanations = Explanations(self._reference, 1)
        self._seen = 0
        self._asked: list[Hashable] = []
        # What a target shows of its state is only a promise where it promises all of the reference.
        self._looks = exact
        self._looks_often = exact and subject.name not in LOOKED_AT_ONCE
        self._looking = False
        self._news = True
        self._lane = Lane(0, self._note, self._look_between)
        self.instrument: Instrument = subject.open(target)

    def play(self, move: Move) -> None:
        """Make a move, and look at the object before each of its operations and after the last."""
        with contextlib.suppress(_DifferenceFound):
            self.instrument.play(move, self._lane)
            self._look_between()

    def finish(self) -> None:
        """Look once more, at the end of the program."""
        if self._looks and self.difference is None:
            with contextlib.suppress(_DifferenceFound):
                self._look()

    def close(self) -> None:
        """Let go of the object."""
        self.instrument.close()

    def _look_between(self) -> None:
        """Look where something happened since: a state that went wrong in a call may keep the next one waiting."""
        if self._looks_often and not self._looking and self._news:
            self._look()

    def _look(self) -> None:
        self._looking = True
        try:
            self.instrument.look(self._lane)
        finally:
            self._looking = self._news = False

    def _note(self, event: Event) -> None:
        if self.difference is not None:
            return
        self._news = True
        action = self._about(event)
        states = self._explanations.states
        self._seen += 1
        if not self._explanations.see(event):
            expected = _expected(self._reference, states, action)
            told = self.subject.told(Gap(self._seen - 1, event, states))
            self.difference = Difference(action, getattr(event, "answer", None), expected, told)
            raise _DifferenceFound

    def _about(self, event: Event) -> Hashable:
        """Give the operation that an event speaks of."""
        if isinstance(event, Begin):
            self._asked.append(event.action)
            return event.action
        return self._asked.pop(0 if isinstance(event, End) else -1)


class _DifferenceFound(BaseException):
    """Leaves whatever is going on; no runtime may take it for an error of a stub."""


def _expected(reference: Reference, states: frozenset[Hashable], action: Hashable) -> Hashable:
    """Give the one answer that the reference has, None if it has none or several."""
    try:
        answers = {answer for state in states for _, answer in reference.outcomes(state, action)}
    except Exception:  # noqa: BLE001 - the operation is not possible in every state that is
        return None
    return answers.pop() if len(answers) == 1 else None
