"""A specification as text that an engineer can take in at a glance: state, steps, and what is promised of them."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from typing import TYPE_CHECKING, Any

import z3

from failstop.models.trace import word

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from failstop.models.specification import Specification

_NAMED = {"limits", "world", "call"}


def shown(spec: Specification, width: int = 100) -> str:
    """Tell a specification, from its own records and functions, in lines of so many columns."""
    parts = [("", [("", f"{spec.name}: {spec.promise}")]), *_parts(spec)]
    return "\n".join(line for title, rows in parts if rows for line in _lines(title, rows, width)).strip("\n")


def _parts(spec: Specification) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    yield "", [*_record(spec, "limits", spec.limits, ""), ("source", spec.start.__module__)]
    first = spec.formulas[spec.start].leaves
    yield "", _record(spec, "state", spec.world, _first_values(spec, spec.world, first))
    yield "", _record(spec, "a call", spec.call, _first_values(spec, spec.call, spec.new))
    if spec.ghosts:
        yield "", [("", "* what really happens, which no core sees")]
    yield (
        "sums over all calls",
        [(name, _first(term)) for name, term in zip(spec.totals._fields, spec.terms, strict=True)],
    )
    yield "steps", [(_signature(spec, action), _first(action)) for action in spec.actions]
    trusted = [f"{each[0].upper()}{each[1:]}" for each in spec.trusted]
    yield "taken for granted", [("", told) for told in (*map(_first, spec.given), *trusted)]
    yield "always, for any number of calls", [(each.guarantee, _said(each.holds)) for each in spec.invariants]
    yield "at each step", [(each.guarantee, _first(each.holds)) for each in spec.laws]
    yield "it can happen that", [(each.guarantee, _first(each.reached)) for each in spec.goals]


def _lines(title: str, rows: list[tuple[str, str]], width: int) -> Iterator[str]:
    yield f"\n{title}" if title else ""
    margin = "  " if title else ""
    longest = max(len(left) for left, _ in rows)
    for left, right in rows:
        head = f"{margin}{left:<{longest}}{'  ' if longest else ''}"
        yield from textwrap.wrap(head + right, width, subsequent_indent=" " * len(head))


def _record(spec: Specification, title: str, record: Any, first_values: str) -> list[tuple[str, str]]:
    """Tell the fields of a record, what they mean, and what they are at first."""
    if not record._fields:
        return []
    told = [(title, ", ".join(_field(spec, name) for name in record._fields))]
    meaning = " ".join((record.__doc__ or "").split())
    return [*told, ("", meaning), *([("at first", first_values)] if first_values else [])]


def _first_values(spec: Specification, record: Any, values: Sequence[Any]) -> str:
    """Tell what is not zero or false, which is what the rest is."""
    simple = [each if isinstance(each, int) else _plain(each) for each in values]
    told = [
        f"{name} {word(spec, name, value) if isinstance(value, int) else value}"
        for name, value in zip(record._fields, simple, strict=True)
        if value or name in spec.words
    ]
    rest = "all else 0 or no" if len(told) < len(record._fields) else ""
    return ", ".join(part for part in (*told, rest) if part)


def _plain(term: z3.ExprRef) -> int | str:
    """Give the value of a term, or its text if it depends on the limits."""
    if z3.is_int_value(term):
        return int(term.as_long())
    return z3.is_true(term) if z3.is_true(term) or z3.is_false(term) else str(term)


def _field(spec: Specification, name: str) -> str:
    words = [each for each in spec.words.get(name, ()) if each]
    ghost = "*" if name in spec.ghosts else ""
    return f"{name}{ghost} ({' | '.join(words)})" if words else f"{name}{ghost}"


def _signature(spec: Specification, action: Callable[..., Any]) -> str:
    chosen = [name for name in spec.formulas[action].parameters if name not in _NAMED]
    return f"{action.__name__}({', '.join(chosen)})" if chosen else action.__name__


def _said(function: Callable[..., Any]) -> str:
    """The sentence, and the formula where it is a single expression."""
    formula = _formula(function)
    return f"{_first(function)}: {formula}" if formula else _first(function)


def _formula(function: Callable[..., Any]) -> str:
    definition = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    body = definition.body[1:] if isinstance(definition, ast.FunctionDef) else []
    if len(body) == 1 and isinstance(body[0], ast.Return) and body[0].value is not None:
        return re.sub(r"\b(core|breaker|budget|steps)\.(?=[A-Z])", "", ast.unparse(body[0].value))
    return ""


def _first(function: Callable[..., Any]) -> str:
    return (function.__doc__ or function.__name__).strip().splitlines()[0].rstrip(".")
