"""A specification as text that an engineer can take in at a glance: state, steps, and what is promised of them."""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from failstop.models.specification import Specification

_NAMED = {"limits", "world", "call"}


def shown(spec: Specification, width: int = 100) -> str:
    """Tell a specification, from its own records and functions, in lines of so many columns."""
    parts = [("", [("", f"{spec.name}: {spec.promise}")]), *_parts(spec)]
    return "\n".join(line for title, rows in parts if rows for line in _lines(title, rows, width)).strip("\n")


def _parts(spec: Specification) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    records = [("limits", spec.limits), ("state", spec.world), ("a call", spec.call)]
    fields = [(title, ", ".join(_field(spec, name) for name in record._fields)) for title, record in records]
    yield "", [(title, told) for title, told in fields if told]
    yield (
        "sums over all calls",
        [(name, _first(term)) for name, term in zip(spec.totals._fields, spec.terms, strict=True)],
    )
    yield "steps", [(_signature(spec, action), _first(action)) for action in spec.actions]
    yield "taken for granted", [("", _first(each)) for each in spec.given]
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


def _field(spec: Specification, name: str) -> str:
    words = spec.words.get(name)
    return f"{name} ({' | '.join(words)})" if words else name


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
        return ast.unparse(body[0].value)
    return ""


def _first(function: Callable[..., Any]) -> str:
    return (function.__doc__ or function.__name__).strip().splitlines()[0].rstrip(".")
