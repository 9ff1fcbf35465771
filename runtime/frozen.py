"""One value that nobody else can change: private read-only copies of arguments and results.

What a person is shown, what is hashed and what is run must be one value, whatever the planner keeps a reference to.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import decimal
import fractions
import pathlib
import uuid
import zoneinfo
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_DEPTH = 100
"""Containers may lie so deep in one another; a call with deeper arguments is refused."""

_IMMUTABLE = frozenset(
    {
        *(bool, int, float, complex, str, bytes, type(None), type(...)),
        *(decimal.Decimal, dt.date, dt.timedelta, dt.timezone, zoneinfo.ZoneInfo),
    }
)
_ZONES = frozenset({type(None), dt.timezone, zoneinfo.ZoneInfo})


class TooDeepError(ValueError):
    """Containers lie more than MAX_DEPTH deep in one another."""


def frozen(value: Any) -> Any:
    """Copy plain data so that it cannot be changed: dicts and lists refuse it, sets become frozensets.

    An object of any other type is passed on as it is; `unfreezable` names the first of them. Raises TooDeepError.
    """
    return _Copier(FrozenDict, FrozenList).copy(value, 0)


def thawed(value: Any) -> Any:
    """Copy plain data into ordinary dicts and lists that the receiver may change; sets stay frozensets."""
    return _Copier(dict, list).copy(value, 0)


def unfreezable(value: Any) -> str:
    """Name the type of the first part of `value` that could be changed behind a copy's back, or give the empty text."""
    copier = _Copier(dict, list)
    copier.copy(value, 0)
    return copier.opaque


def _refuse(self: object, *_: object, **__: object) -> NoReturn:
    raise TypeError(f"this {type(self).__name__} is read-only; change a copy of it")


class FrozenDict(dict[Any, Any]):
    """A dict that cannot be changed; a copy.deepcopy of it can."""

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type[dict[Any, Any]], tuple[dict[Any, Any]]]:
        return dict, (dict(self),)


class FrozenList(list[Any]):
    """A list that cannot be changed; a copy.deepcopy of it can."""

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __reduce__(self) -> tuple[type[list[Any]], tuple[list[Any]]]:
        return list, (list(self),)


def _same_moment(value: dt.datetime | dt.time) -> dt.datetime | dt.time:
    # A zone of any other type may answer differently each time it is asked.
    if type(value.tzinfo) not in _ZONES:
        raise TypeError("a foreign time zone")
    return value


def _same_path(value: pathlib.PurePath) -> pathlib.PurePath:
    return type(value)(str(value))


def _same_fraction(value: fractions.Fraction) -> fractions.Fraction:
    return fractions.Fraction(int.__index__(value.numerator), int.__index__(value.denominator))


def _same_uuid(value: uuid.UUID) -> uuid.UUID:
    return uuid.UUID(int=int.__index__(value.int))


_REBUILT: dict[type, Callable[[Any], Any]] = {
    **dict.fromkeys((dt.datetime, dt.time), _same_moment),
    **dict.fromkeys(
        (pathlib.PurePosixPath, pathlib.PureWindowsPath, pathlib.PosixPath, pathlib.WindowsPath), _same_path
    ),
    fractions.Fraction: _same_fraction,
    uuid.UUID: _same_uuid,
}
"""Meant to be unchangeable, but written in Python, so they can be changed all the same: only a fresh one is private."""


class _Copier:
    """Walks plain data once; a part met twice, or inside itself, is copied once."""

    def __init__(self, make_dict: type[dict[Any, Any]], make_list: type[list[Any]]) -> None:
        self._make_dict = make_dict
        self._make_list = make_list
        self._copies: dict[int, Any] = {}
        self.opaque = ""

    def copy(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind in _IMMUTABLE:
            return value
        if kind in _REBUILT:
            return self._rebuild(value)
        if depth > MAX_DEPTH:
            raise TooDeepError(f"containers lie more than {MAX_DEPTH} deep in one another")
        if id(value) in self._copies:
            return self._copies[id(value)]
        if isinstance(value, dict):
            return self._copy_dict(value, depth + 1)
        if isinstance(value, list):
            return self._copy_list(value, depth + 1)
        return self._copy_rest(value, depth + 1)

    # The base types' own methods are named, so that a subclass cannot answer differently each time it is asked.
    def _copy_dict(self, value: dict[Any, Any], depth: int) -> dict[Any, Any]:
        made = self._copies[id(value)] = self._make_dict()
        for key, item in list(dict.items(value)):
            dict.__setitem__(made, self.copy(key, depth), self.copy(item, depth))
        return made

    def _copy_list(self, value: list[Any], depth: int) -> list[Any]:
        made = self._copies[id(value)] = self._make_list()
        for item in list(list.__iter__(value)):
            list.append(made, self.copy(item, depth))
        return made

    def _copy_rest(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind is tuple:
            return tuple(self.copy(item, depth) for item in value)
        if kind in {set, frozenset}:
            return frozenset(self.copy(item, depth) for item in list(value))
        if kind is bytearray:
            return bytes(value)
        return self._pass_on(value)

    def _rebuild(self, value: Any) -> Any:
        # If it cannot be made again, somebody has been inside, and nothing that it says can be relied on.
        with contextlib.suppress(Exception):
            return _REBUILT[type(value)](value)
        return self._pass_on(value)

    def _pass_on(self, value: Any) -> Any:
        self.opaque = self.opaque or type(value).__name__
        return value
