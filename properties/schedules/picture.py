"""A picture of everything that decides how a schedule goes on: equal pictures, equal futures.

It follows objects through their attributes and items, and tells two of the same kind apart by where they are first met,
not by their addresses. What it does not know how to look into is like nothing else, so that no two states are taken for
one by mistake.
"""

from __future__ import annotations

import collections
import contextvars
import itertools
import sys
import types
import weakref
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from failstop.properties.outside import Outside
from failstop.properties.schedules.locks import TurnLock
from failstop.properties.schedules.turns import Thread, Turns

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

_unknown = itertools.count()
_PLAIN = (type(None), bool, int, float, str, bytes, Decimal)
_BY_NAME = (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type, types.CodeType)
_COUNTERS = (itertools.count,)
_STANDS_FOR: tuple[tuple[type, Callable[[Any], object]], ...] = (
    (types.CellType, lambda cell: cell.cell_contents),
    (contextvars.Token, lambda token: token.old_value),
    (weakref.ref, lambda reference: reference()),
    (Outside, lambda outside: outside.content()),
)
"""Types that decide by nothing but what they lead to."""


class Picture:
    """One picture; `ignored` are types that nothing decides by, such as a log that is only written to."""

    def __init__(self, turns: Turns, ignored: tuple[type, ...] = ()) -> None:
        self._numbers = {thread.ident: f"thread {thread.number}" for thread in turns.threads}
        self._turns = turns
        self._ignored = (Turns, *ignored)
        self._met: dict[int, int] = {}
        self._kept: list[object] = []

    def of(self, *roots: object) -> Hashable:
        """Give the picture of what the roots hold and of where each thread is."""
        frames = sys._current_frames()  # noqa: SLF001 - there is no other way to see where a thread is
        threads = tuple(self._thread(thread, frames.get(thread.ident)) for thread in self._turns.threads)
        return (*(self._seen(root) for root in roots), threads)

    def _thread(self, thread: Thread, frame: types.FrameType | None) -> Hashable:
        if thread.ended:
            return "ended"
        return tuple(self._frame(each) for each in _frames(frame))

    def _frame(self, frame: types.FrameType) -> Hashable:
        code = frame.f_code
        values = tuple((name, self._seen(value)) for name, value in sorted(frame.f_locals.items()))
        return (code.co_filename, code.co_qualname, frame.f_lasti, values)

    def _seen(self, value: object) -> Hashable:
        kind = type(value)
        if kind is int and value in self._numbers:
            return self._numbers[value]
        if kind in _PLAIN:
            return (kind.__name__, value)
        if isinstance(value, self._ignored):
            return "ignored"
        if isinstance(value, _BY_NAME):
            return (kind.__name__, getattr(value, "__qualname__", getattr(value, "__name__", "")))
        if isinstance(value, _COUNTERS):
            return repr(value)
        number = self._met.get(id(value))
        if number is not None:
            return ("met", number)
        self._met[id(value)] = len(self._met)
        # Kept, so that no other object gets its address while the picture is made.
        self._kept.append(value)
        return (kind.__qualname__, self._inside(value))

    def _inside(self, value: Any) -> Hashable:
        if isinstance(value, TurnLock):
            return (value.count, self._numbers.get(value.owner or 0, value.owner))
        if isinstance(value, types.MethodType):
            return (value.__func__.__qualname__, self._seen(value.__self__))
        if isinstance(value, dict):
            return tuple((self._seen(key), self._seen(each)) for key, each in value.items())
        if isinstance(value, tuple | list | collections.deque):
            return tuple(self._seen(each) for each in value)
        if isinstance(value, set | frozenset | weakref.WeakSet):
            return tuple(sorted((self._seen(each) for each in value), key=repr))
        for kind, inside in _STANDS_FOR:
            if isinstance(value, kind):
                return self._seen(inside(value))
        attributes = dict(_attributes(value))
        if not attributes and not hasattr(value, "__dict__"):
            return ("unknown", next(_unknown))
        return tuple((name, self._seen(each)) for name, each in attributes.items())


def _attributes(value: object) -> Iterator[tuple[str, object]]:
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in {"__weakref__", "__dict__"} and hasattr(value, name):
                yield name, getattr(value, name)
    yield from vars(value).items() if hasattr(value, "__dict__") else ()


def _frames(frame: types.FrameType | None) -> Iterator[types.FrameType]:
    """Give the frames that a thread is in, without those in which it waits for its turn or decides whose turn it is."""
    passing = Turns.point.__code__
    frames = []
    while frame is not None:
        frames.append(frame)
        if frame.f_code is passing:
            frames.clear()
        frame = frame.f_back
    yield from (each for each in frames if each.f_globals.get("__name__") != Turns.__module__)
