"""The way of a counterexample: read out of the solver's trace, taken again on plain values, grown to more callers."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from failstop.models.specification import Specification

NAMES = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

_STEP = re.compile(r"[1-9]\d*\. (?:(?P<who>[A-Z]): )?(?P<what>.*?)(?: \((?P<chosen>[^()]*)\))?")
_TRUTH = {"yes": True, "no": False, "True": True, "False": False}


class NoWay(ValueError):  # noqa: N818 - it tells what happened
    """A trace that cannot be read, or steps that cannot be taken."""


@dataclass(frozen=True, slots=True)
class Step:
    """One action: who takes it (None: the surroundings, or the only one there is), and what was chosen for it."""

    action: str
    caller: int | None = None
    chosen: tuple[tuple[str, int], ...] = ()

    def __getitem__(self, name: str) -> int:
        """Give what was chosen under this name."""
        return dict(self.chosen)[name]


@dataclass(frozen=True, slots=True)
class Way:
    """Steps from the start of a protocol under these limits."""

    limits: tuple[tuple[str, int], ...]
    steps: tuple[Step, ...]

    @property
    def callers(self) -> int:
        """How many callers take part."""
        return max((step.caller + 1 for step in self.steps if step.caller is not None), default=0)

    def limit(self, name: str) -> int:
        """Give one limit."""
        return dict(self.limits)[name]


@dataclass(frozen=True, slots=True)
class Growth:
    """How a way is made larger: what one caller does on it, all do, step by step `together` or one after the other."""

    how: Literal["together", "in turn"]
    times: int
    limits: tuple[tuple[str, int], ...] = ()
    chosen: tuple[tuple[str, int], ...] = ()


def read(spec: Specification, told: str) -> Way:
    """Read a trace as `models.trace` tells it; raises NoWay for one that does not say the steps of this protocol."""
    named = {spec.formulas[action].sentence.casefold(): action.__name__ for action in spec.actions}
    limits: tuple[tuple[str, int], ...] = ()
    steps = []
    for line in told.splitlines():
        if line.startswith("with "):
            limits = tuple(_pairs(line.removeprefix("with ")))
        found = _STEP.fullmatch(line)
        if found is None:
            continue
        if found["what"].casefold() not in named:
            raise NoWay(f"{spec.name} has no step {found['what']!r}")
        who = None if found["who"] is None else NAMES.index(found["who"])
        steps.append(Step(named[found["what"].casefold()], who, tuple(_pairs(found["chosen"] or ""))))
    if not steps or tuple(name for name, _ in limits) != spec.limits._fields:
        raise NoWay(f"no way of {spec.name}: {told[:80]!r}")
    return Way(limits, tuple(steps))


def grown(way: Way, growth: Growth) -> Way:
    """Let everybody do what the busiest caller does on it, with other numbers where `growth` gives some."""
    callers = [step.caller for step in way.steps]
    busiest = max(dict.fromkeys(callers), key=lambda who: (who is not None, callers.count(who)))
    theirs = [_chosen_anew(step, growth) for step in way.steps if step.caller in {busiest, None}]
    everybody = range(growth.times)
    if growth.how == "in turn":
        steps = [_by(step, who) for who in everybody for step in theirs]
    else:
        steps = [_by(step, who) for step in theirs for who in (everybody if step.caller is not None else (0,))]
    limits = tuple((name, dict(growth.limits).get(name, value)) for name, value in way.limits)
    return Way(limits, tuple(steps))


def breaks(spec: Specification, way: Way, sentence: str) -> bool:
    """Take the way on plain values and say whether its end breaks the sentence; raises NoWay if it cannot be taken."""
    actions = {action.__name__: action for action in spec.actions}
    limits = spec.limits(**dict(way.limits))
    if not all(spec.formulas[each].on({"limits": limits}) for each in spec.given):
        raise NoWay(f"{spec.name} takes no limits {dict(way.limits)}")
    world = spec.formulas[spec.start].on({"limits": limits})
    calls = [spec.new] * max(1, way.callers)
    said: dict[str, Any] = {}
    for number, step in enumerate(way.steps, start=1):
        formula, who = spec.formulas[actions[step.action]], step.caller or 0
        before = {"limits": limits, "world": world, "call": calls[who], "total": spec.total_of(limits, calls)}
        after = formula.on(before | dict(step.chosen))
        if after is None:
            raise NoWay(f"step {number}, {step.action}, cannot be taken")
        world, calls[who] = after if step.caller is not None else (after, calls[who])
        later = {"after": world, "call_after": calls[who], "total_after": spec.total_of(limits, calls)}
        said = {**before, **dict(step.chosen), **later}
    promises: list[Callable[..., Any]] = [each.holds for each in spec.invariants] + [each.holds for each in spec.laws]
    holds = next(each for each in promises if spec.formulas[each].sentence == sentence)
    if any(each.holds is holds for each in spec.invariants):
        now: Mapping[str, Any] = {"limits": limits, "world": world, "total": said["total_after"]}
        return not all(spec.formulas[holds].on({**now, "call": each}) for each in calls)
    return not spec.formulas[holds].on(said)


def _pairs(told: str) -> Iterator[tuple[str, int]]:
    for pair in told.split(", ") if told else ():
        name, _, value = pair.rpartition(" ")
        yield name, _TRUTH[value] if value in _TRUTH else int(value)


def _by(step: Step, who: int) -> Step:
    return step if step.caller is None else replace(step, caller=who)


def _chosen_anew(step: Step, growth: Growth) -> Step:
    anew = dict(growth.chosen)
    return replace(step, chosen=tuple((name, anew.get(name, value)) for name, value in step.chosen))
