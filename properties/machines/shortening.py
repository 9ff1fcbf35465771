"""From a program that shows a difference to the shortest and plainest one that does.

Hypothesis would shrink what was drawn; this shrinks what is read, which is faster and leaves nothing to spare.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

from failstop.properties.machines.replaying import Difference, difference_of
from failstop.runtime.money import Money

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from failstop.properties.subject import Move, Subject
    from failstop.properties.target import AnyTarget


_SMALL = 32
"""Up to here numbers go down one by one."""


class Program(NamedTuple):
    """A subject with its settings, and the moves on it."""

    subject: Subject
    moves: tuple[Move, ...]


def shortest(
    target: AnyTarget,
    program: Program,
    allowed: Callable[[AnyTarget, Subject, Move], bool],
    pulse: Callable[[], object],
) -> tuple[Program, Difference] | None:
    """Leave out and simplify for as long as a difference remains; None if the program shows none when played again.

    allowed: says whether a move is one that the target is held to. pulse: is called before each attempt.
    """
    found = _difference(target, program)
    if found is None:
        return None
    going_on = True
    while going_on:
        going_on = False
        for simpler in _simpler_programs(program):
            pulse()
            if all(allowed(target, simpler.subject, move) for move in simpler.moves):
                difference = _difference(target, simpler)
                if difference is not None:
                    program, found, going_on = simpler, difference, True
                    break
    return program, found


def _difference(target: AnyTarget, program: Program) -> Difference | None:
    try:
        return difference_of(target, *program)
    except Exception:  # noqa: BLE001 - what cannot be played shows nothing
        return None


def _simpler_programs(program: Program) -> Iterator[Program]:
    subject, moves = program
    size = len(moves)
    while size:
        for start in range(0, len(moves), size):
            yield Program(subject, moves[:start] + moves[start + size :])
        size //= 2
    for simpler in _simpler(subject):
        yield Program(simpler, moves)
    for place, move in enumerate(moves):
        # What is done inside of a call may do as much outside of it.
        for inner in getattr(move, "inside", ()):
            yield Program(subject, (*moves[:place], inner, *moves[place + 1 :]))
        for simpler in _simpler(move):
            yield Program(subject, (*moves[:place], simpler, *moves[place + 1 :]))


def _simpler(value: Any) -> Iterator[Any]:  # noqa: C901 - one case for each kind of value
    """Give values that are plainer in one place; each comes nearer to the plainest, so this ends."""
    if type(value) is int:
        nearer = (value - 1,) if value <= _SMALL else ()
        yield from dict.fromkeys(each for each in (0, 1, value // 2, *nearer) if 0 <= each < value)
    elif type(value) is Money:
        yield from map(Money, _simpler(value.nano))
    elif type(value) is tuple:
        for place, part in enumerate(value):
            yield (*value[:place], *value[place + 1 :])
            for simpler in _simpler(part):
                yield (*value[:place], simpler, *value[place + 1 :])
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            for simpler in _simpler_part(getattr(value, field.name), field.default):
                yield from _replaced(value, field.name, simpler)
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        for name, part in zip(value._fields, value, strict=True):
            for simpler in _simpler(part):
                yield value._replace(**{name: simpler})  # type: ignore[attr-defined]  # a named tuple's


def _simpler_part(part: Any, default: Any) -> Iterator[Any]:
    if part == default:
        return
    if default is not dataclasses.MISSING:
        yield default
    yield from (each for each in _simpler(part) if each != default)


def _replaced(value: Any, name: str, part: Any) -> Iterator[Any]:
    try:
        yield dataclasses.replace(value, **{name: part})
    except Exception:  # noqa: BLE001 - settings that cannot be made are not simpler ones
        return
