"""Tells a way through a protocol as a numbered story: who did what, the state after it, and what it broke."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from failstop.models.specification import Specification

NAMES = "ABCDEFGH"


class Taken(NamedTuple):
    """One step of a trace, in plain values: the action, who took it, what was chosen, and what it led to."""

    action: Callable[..., Any]
    caller: int | None
    chosen: Mapping[str, Any]
    world: Any
    calls: tuple[Any, ...]


class Trace(NamedTuple):
    """A way from the start, where every caller is a new one."""

    limits: Any
    start: Any
    calls: tuple[Any, ...]
    steps: tuple[Taken, ...]


def told(spec: Specification, trace: Trace, last_line: str) -> str:
    """Tell a trace: one line a step with the state after it; `last_line` says what was broken, if anything was."""
    first = _fields(spec, trace.limits)
    lines = [f"with {first}"] if first else []
    lines.append(f"0. start: {_state(spec, trace.limits, trace.start, ())}")
    calls = trace.calls
    for number, step in enumerate(trace.steps, start=1):
        lines.append(f"{number}. {_who(step)}{_what(spec, step)}")
        changed = [
            f"{NAMES[caller]}: {_changed(spec, before, after)}"
            for caller, (before, after) in enumerate(zip(calls, step.calls, strict=True))
            if before != after
        ]
        lines.append(f"     {'; '.join([_state(spec, trace.limits, step.world, step.calls), *changed])}")
        calls = step.calls
    return "\n".join([*lines, last_line] if last_line else lines)


def _who(step: Taken) -> str:
    return "" if step.caller is None else f"{NAMES[step.caller]}: "


def _what(spec: Specification, step: Taken) -> str:
    chosen = ", ".join(f"{name} {value}" for name, value in step.chosen.items())
    sentence = spec.formulas[step.action].sentence
    return f"{sentence[0].lower()}{sentence[1:]}{f' ({chosen})' if chosen else ''}"


def _state(spec: Specification, limits: Any, world: Any, calls: tuple[Any, ...]) -> str:
    totals = spec.total_of(limits, calls)
    return ", ".join(part for part in (_fields(spec, world), _fields(spec, totals)) if part)


def _fields(spec: Specification, record: Any) -> str:
    return ", ".join(f"{name} {word(spec, name, value)}" for name, value in zip(record._fields, record, strict=True))


def _changed(spec: Specification, before: Any, after: Any) -> str:
    pairs = zip(after._fields, before, after, strict=True)
    return ", ".join(f"{name} {word(spec, name, new)}" for name, old, new in pairs if old != new)


def word(spec: Specification, name: str, value: int) -> str:
    """Say the value of a field as its specification does."""
    words = spec.words.get(name)
    if words is not None and 0 <= value < len(words):
        return words[value]
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
