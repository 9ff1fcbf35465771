"""A picture of everything that decides how a schedule goes on: equal pictures, equal futures.

It follows objects through their attributes and items, and tells two of the same kind apart by where they are first met,
not by their addresses. What it does not know how to look into is like nothing else, so that no two states are taken for
one by mistake. Two things it cannot see: globals and class attributes that change, and values in the middle of an
expression, such as the first operand while the second is computed. Searches that do not merge do not depend on it.
"""

from __future__ import annotations

import collections
import contextvars
import functools
import itertools
import struct
import sys
import types
import weakref
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

from failstop.properties.outside import Outside
from failstop.properties.schedules.locks import TurnLock
from failstop.properties.schedules.turns import Thread, Turns

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

_unknown = itertools.count()
_PLAIN = (type(None), bool, int, float, str, bytes)
_BY_NAME = (types.ModuleType, type, types.CodeType)
_SINGLE = (..., NotImplemented, contextvars.Token.MISSING)
_ITERATORS: tuple[type, ...] = (type(iter(())), type(iter([])), type(iter(range(0))))
_POINTER = struct.calcsize("P")
_HEAP_TYPE = 1 << 9


class _Empty:
    """As large as an object that holds nothing but attributes."""


class Picture:
    """One picture; `ignored` are types that nothing decides by, such as a log that is only written to."""

    def __init__(self, turns: Turns, ignored: tuple[type, ...] = ()) -> None:
        self._numbers = {thread.ident: f"thread {thread.number}" for thread in turns.threads}
        self._numbers |= {-ident: f"-{name}" for ident, name in self._numbers.items()}
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
        return (thread.steps, *(self._frame(each) for each in _frames(frame)))

    def _frame(self, frame: types.FrameType) -> Hashable:
        code = frame.f_code
        values = tuple((name, self._seen(value)) for name, value in sorted(frame.f_locals.items()))
        return (code.co_filename, code.co_qualname, frame.f_lasti, values)

    def _seen(self, value: Any) -> Hashable:
        kind = type(value)
        if kind is int and value in self._numbers:
            return self._numbers[value]
        if kind in _PLAIN:
            return (kind.__name__, value)
        if isinstance(value, self._ignored):
            return "ignored"
        if isinstance(value, _BY_NAME):
            return (kind.__name__, getattr(value, "__qualname__", getattr(value, "__name__", "")))
        number = self._met.get(id(value))
        if number is not None:
            return ("met", number)
        number = self._met[id(value)] = len(self._met)
        # Kept, so that no other object gets its address while the picture is made.
        self._kept.append(value)
        # With its number: the members of a set come in any order, and are met again by their numbers.
        return (kind.__qualname__, number, self._inside(value))

    def _inside(self, value: Any) -> Hashable:
        if isinstance(value, TurnLock):
            return (value.count, self._numbers.get(value.owner or 0, value.owner))
        if isinstance(value, Outside):
            return self._seen(value.content())
        held = () if _holds_attributes_only(cast("Hashable", type(value))) else self._held(value)
        return (held, *((name, self._seen(each)) for name, each in _attributes(value)))

    def _held(self, value: Any) -> Hashable:  # noqa: C901, PLR0912 - one case for each kind of object
        """Give what an object holds that is no attribute."""
        match value:
            case int() | float() | str() | bytes():
                base = next(kind for kind in (int, float, str, bytes) if isinstance(value, kind))
                return base.__repr__(value)
            case Decimal():
                return value.as_tuple()
            case dict():
                return tuple((self._seen(key), self._seen(each)) for key, each in value.items())
            case tuple() | list() | collections.deque():
                return tuple(self._seen(each) for each in value)
            case set() | frozenset():
                return tuple(sorted((self._seen(each) for each in value), key=repr))
            case types.MappingProxyType():
                return tuple((self._seen(key), self._seen(each)) for key, each in value.items())
            case types.FunctionType():
                held = (value.__defaults__, value.__kwdefaults__, value.__closure__)
                return (value.__code__, *(self._seen(each) for each in held))
            case types.BuiltinFunctionType():
                return (value.__qualname__, self._seen(value.__self__))
            case types.MethodType():
                return (self._seen(value.__func__), self._seen(value.__self__))
            case functools.partial():
                return (self._seen(value.func), self._seen(value.args), self._seen(value.keywords))
            case types.CellType():
                return self._seen(_content(value))
            case weakref.ref():
                return self._seen(value())
            case contextvars.Token():
                return self._seen(value.old_value)
            case itertools.count():
                return repr(value)
            case _ if isinstance(value, _ITERATORS):
                # Such as a loop in a generator: over what it goes, and how far it is.
                return self._seen(value.__reduce__())
            case BaseException():
                return (self._seen(value.args), self._seen(value.__cause__))
            case _ if any(value is each for each in _SINGLE):
                return repr(value)
        return ("unknown", next(_unknown))


@functools.cache
def _holds_attributes_only(kind: type) -> bool:
    """Say whether its instances are nothing but their attributes: what is written in C may hold more than it shows."""
    kinds = kind.__mro__[:-1]
    slots = sum(len(_slots(each)) for each in kinds)
    return (
        all(each.__flags__ & _HEAP_TYPE for each in kinds)
        and (kind.__dictoffset__ != 0 or all("__slots__" in vars(each) for each in kinds))
        and kind.__itemsize__ == 0
        and kind.__basicsize__ <= _Empty.__basicsize__ + _POINTER * slots
    )


def _slots(kind: type) -> list[str]:
    slots = vars(kind).get("__slots__", ())
    names = [
        name for name in ((slots,) if isinstance(slots, str) else slots) if name not in {"__weakref__", "__dict__"}
    ]
    private = f"_{kind.__name__.lstrip('_')}"
    return [f"{private}{name}" if name.startswith("__") and not name.endswith("__") else name for name in names]


def _attributes(value: object) -> Iterator[tuple[str, object]]:
    for kind in type(value).__mro__:
        yield from ((name, getattr(value, name)) for name in _slots(kind) if hasattr(value, name))
    yield from vars(value).items() if hasattr(value, "__dict__") else ()


def _content(cell: types.CellType) -> object:
    """Give what is in a cell; one that is empty is told by a value that no program has."""
    try:
        return cell.cell_contents
    except ValueError:
        return _Empty


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
