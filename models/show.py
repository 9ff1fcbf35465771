"""A specification as text that an engineer can take in at a glance: state, steps, and what is promised of them."""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from failstop.models.specification import Specification

_WIDTH = 100
_NAMED = {"limits", "world", "call"}


def shown(spec: Specification) -> str:
    """Tell a specification, from its own records and functions."""
    return "\n".join(_lines(spec))


def _lines(spec: Specification) -> Iterator[str]:
    yield from textwrap.wrap(f"{spec.name}: {spec.promise}", _WIDTH)
    yield ""
    for title, record in (("limits", spec.limits), ("state", spec.world), ("a call", spec.call)):
        if record._fields:
            yield from _fields(title, [_field(spec, name) for name in record._fields])
    for name, term in zip(spec.totals._fields, spec.terms, strict=True):
        yield f"{'sum':<8}{name} = {_first(term)}"
    yield from _part("steps", [(_signature(spec, action), _first(action)) for action in spec.actions])
    yield from _part("taken for granted", [("", _first(each)) for each in spec.given])
    sentences = [(each.guarantee, _said(each.holds)) for each in spec.invariants]
    yield from _part("always, for any number of calls", sentences)
    yield from _part("at each step", [(each.guarantee, _first(each.holds)) for each in spec.laws])
    yield from _part("it can happen that", [(each.guarantee, _first(each.reached)) for each in spec.goals])


def _part(title: str, rows: list[tuple[str, str]]) -> Iterator[str]:
    if not rows:
        return
    yield ""
    yield title
    width = max(len(left) for left, _ in rows) + 2
    for left, right in rows:
        yield from textwrap.wrap(
            f"  {left:<{width}}{right}", _WIDTH, subsequent_indent=" " * (width + 2), drop_whitespace=True
        )


def _fields(title: str, fields: list[str]) -> Iterator[str]:
    yield from textwrap.wrap(f"{title:<8}{', '.join(fields)}", _WIDTH, subsequent_indent=" " * 8)


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
