"""Tells a way through a protocol as a numbered story: who did what, the state after it, and what it broke."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import z3

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from failstop.models.induction import Step
    from failstop.models.specification import Specification

_NAMES = "ABCDEFGH"


class Taken(NamedTuple):
    """One step of a trace, in plain values: the action, who took it, what was chosen, and what it led to."""

    action: Callable[..., Any]
    caller: int | None
    chosen: Mapping[str, Any]
    world: Any
    calls: tuple[Any, ...]


class Trace(NamedTuple):
    """A way from the start."""

    limits: Any
    start: Any
    steps: tuple[Taken, ...]


def told(spec: Specification, trace: Trace, last_line: str) -> str:
    """Tell a trace: one line a step with the state after it; `last_line` says what was broken, if anything was."""
    first = _fields(spec, trace.limits)
    lines = [f"with {first}"] if first else []
    lines.append(f"0. start: {_state(spec, trace.limits, trace.start, ())}")
    calls = (spec.new,) * (len(trace.steps[0].calls) if trace.steps else 0)
    for number, step in enumerate(trace.steps, start=1):
        lines.append(f"{number}. {_who(step)}{_what(spec, step)}")
        changed = [
            f"{_NAMES[caller]}: {_changed(spec, before, after)}"
            for caller, (before, after) in enumerate(zip(calls, step.calls, strict=True))
            if before != after
        ]
        lines.append(f"     {'; '.join([_state(spec, trace.limits, step.world, step.calls), *changed])}")
        calls = step.calls
    return "\n".join([*lines, last_line] if last_line else lines)


def told_step(step: Step, model: z3.ModelRef) -> str:
    """Tell one step from a model of the solver: the state before it may be one that nothing leads to."""
    parts = [
        ("with", step.limits),
        ("before", step.before.world),
        ("totals", step.before.total),
        *((f"caller {name}", call) for name, call in zip(_NAMES, step.before.calls, strict=False)),
        (f"then {step.action.__name__}", tuple(step.chosen.values())),
        ("after", step.after.world),
        ("totals", step.after.total),
        ("caller A", step.after.calls[0]),
    ]
    return "\n".join(f"  {title}: {_model_fields(model, part)}" for title, part in parts if len(part))


def _who(step: Taken) -> str:
    return "" if step.caller is None else f"{_NAMES[step.caller]}: "


def _what(spec: Specification, step: Taken) -> str:
    chosen = ", ".join(f"{name} {value}" for name, value in step.chosen.items())
    sentence = spec.formulas[step.action].sentence
    return f"{sentence[0].lower()}{sentence[1:]}{f' ({chosen})' if chosen else ''}"


def _state(spec: Specification, limits: Any, world: Any, calls: tuple[Any, ...]) -> str:
    totals = spec.total_of(limits, calls)
    return ", ".join(part for part in (_fields(spec, world), _fields(spec, totals)) if part)


def _fields(spec: Specification, record: Any) -> str:
    return ", ".join(f"{name} {_word(spec, name, value)}" for name, value in zip(record._fields, record, strict=True))


def _changed(spec: Specification, before: Any, after: Any) -> str:
    pairs = zip(after._fields, before, after, strict=True)
    return ", ".join(f"{name} {_word(spec, name, new)}" for name, old, new in pairs if old != new)


def _word(spec: Specification, name: str, value: int) -> str:
    words = spec.words.get(name)
    if words is not None and 0 <= value < len(words):
        return words[value]
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _model_fields(model: z3.ModelRef, record: Any) -> str:
    names = getattr(record, "_fields", [""] * len(record))
    return ", ".join(
        f"{name} {model.eval(value, model_completion=True) if z3.is_expr(value) else value}".strip()
        for name, value in zip(names, record, strict=True)
    )
