"""Integers and booleans that stand for every value at once; asking whether one is true forks the path being read.

What these values cannot do soundly they refuse with Unreadable, where Python by itself would go on silently: hashing,
printing, converting, or comparing a number with a truth value.
"""

from __future__ import annotations

from typing import NoReturn, Protocol

import z3


class Unreadable(Exception):  # noqa: N818 - it says what the code is, as the other stops of the reader do
    """A function that cannot be read soundly; the message names the function, the line and the reason."""


class Forks(Protocol):
    """The path being read: it decides which way a condition goes this time."""

    def decide(self, condition: z3.BoolRef) -> bool:
        """Choose one way, and remember it as part of the path."""


def _refuse(*_: object) -> NoReturn:
    raise Unreadable("a symbolic value cannot be converted, printed, hashed or used as an index")


class Symbolic:
    """What Int and Bool have in common: a term of the solver, and the path that asks about it."""

    __slots__ = ("_term", "forks")

    __hash__ = None  # type: ignore[assignment]
    __repr__ = __str__ = __index__ = __int__ = __float__ = __complex__ = __format__ = __iter__ = __len__ = _refuse

    def __init__(self, term: z3.ExprRef, forks: Forks) -> None:
        self._term = term
        self.forks = forks


class Bool(Symbolic):
    """A truth value; ``if`` forks on it."""

    __slots__ = ()
    __hash__ = None

    def __bool__(self) -> bool:
        return self.forks.decide(self._term)

    def __eq__(self, other: object) -> Bool:  # type: ignore[override]
        return Bool(self._term == _truth(other), self.forks)

    def __ne__(self, other: object) -> Bool:  # type: ignore[override]
        return Bool(self._term != _truth(other), self.forks)


class Int(Symbolic):
    """A whole number; as a condition it asks whether it is other than zero, as any int does."""

    __slots__ = ()
    __hash__ = None

    def __bool__(self) -> bool:
        return self.forks.decide(self._term != 0)

    def __add__(self, other: object) -> Int:
        return Int(self._term + _number(other), self.forks)

    def __sub__(self, other: object) -> Int:
        return Int(self._term - _number(other), self.forks)

    def __rsub__(self, other: object) -> Int:
        return Int(_number(other) - self._term, self.forks)

    def __mul__(self, other: object) -> Int:
        return Int(self._term * _number(other), self.forks)

    __radd__ = __add__
    __rmul__ = __mul__

    def __floordiv__(self, other: object) -> Int:
        return Int(self._term / _divisor(other), self.forks)

    def __mod__(self, other: object) -> Int:
        return Int(self._term % _divisor(other), self.forks)

    def __neg__(self) -> Int:
        return Int(-self._term, self.forks)

    def __lt__(self, other: object) -> Bool:
        return Bool(self._term < _number(other), self.forks)

    def __le__(self, other: object) -> Bool:
        return Bool(self._term <= _number(other), self.forks)

    def __gt__(self, other: object) -> Bool:
        return Bool(self._term > _number(other), self.forks)

    def __ge__(self, other: object) -> Bool:
        return Bool(self._term >= _number(other), self.forks)

    def __eq__(self, other: object) -> Bool:  # type: ignore[override]
        return Bool(self._term == _number(other), self.forks)

    def __ne__(self, other: object) -> Bool:  # type: ignore[override]
        return Bool(self._term != _number(other), self.forks)


def term_of(value: object) -> z3.ExprRef:
    """Give the solver's term for a value, symbolic or plain; raises Unreadable for any other type."""
    if isinstance(value, Symbolic):
        return value._term  # noqa: SLF001 - one module
    if type(value) is bool:
        return z3.BoolVal(value)
    return _number(value)


def _number(value: object) -> z3.ArithRef:
    if isinstance(value, Int):
        return value._term  # noqa: SLF001 - one module
    if type(value) is not int:
        raise Unreadable(f"a whole number meets {'a truth value' if _is_truth(value) else f'a {_kind(value)}'}")
    return z3.IntVal(value)


def _truth(value: object) -> z3.BoolRef:
    if isinstance(value, Bool):
        return value._term  # noqa: SLF001 - one module
    if type(value) is not bool:
        raise Unreadable(f"a truth value meets a {_kind(value)}")
    return z3.BoolVal(value)


def _divisor(value: object) -> z3.ArithRef:
    # The solver rounds as Python does, towards minus infinity, only where the divisor is positive.
    if type(value) is not int or value <= 0:
        raise Unreadable("only a positive constant can be divided by")
    return z3.IntVal(value)


def _is_truth(value: object) -> bool:
    return isinstance(value, bool | Bool)


def _kind(value: object) -> str:
    return "number" if isinstance(value, Int) else type(value).__name__
