"""Looks for the shortest way from the start of a protocol to a state or step of interest, with a few callers.

What it finds is real: every trace is run again on plain values, by the same functions, before anybody is shown it.
That it finds nothing proves nothing, since it goes only so deep; then the answer is UNKNOWN.
"""

from __future__ import annotations

import time
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import z3

from failstop.models.claim import PROVED, TIME_LIMIT_MS, UNKNOWN, Answer, Claim
from failstop.models.reader import filled, flat, fresh
from failstop.models.solver import asked
from failstop.models.trace import Taken, Trace, told, word

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from failstop.models.specification import Goal, Invariant, Law, Specification

_BUDGET_S = 20.0
_SMALL = 4
"""Traces with numbers no larger than this are looked for first, because people read them."""


class Situation(NamedTuple):
    """One step of a way, in terms: what a goal may speak of.

    who: the number of the caller who acts; actor: that caller before and after. chosen: for every action, whether it
    is this step's, and what the environment chose for it.
    """

    limits: Any
    before: Any
    after: Any
    calls_before: tuple[Any, ...]
    calls_after: tuple[Any, ...]
    actor: tuple[Any, Any]
    who: z3.ArithRef
    chosen: Mapping[Callable[..., Any], tuple[z3.BoolRef, dict[str, Any]]]


def reachable(spec: Specification) -> Iterator[Claim]:
    """Claim that the promises are about something: actions, choices and outcomes can happen, goals be reached."""
    tags = [*(invariant.guarantee for invariant in spec.invariants), *(law.guarantee for law in spec.laws)]
    main = Counter(tags).most_common(1)[0][0]

    def claim(guarantee: str, sentence: str, ask: Callable[[], Answer]) -> Claim:
        return Claim(guarantee, spec.whose, spec.name, "reachable", sentence, ask)

    for action in spec.actions:
        sentence = spec.formulas[action].sentence
        told = f"it can happen that {sentence[0].lower()}{sentence[1:]}"
        yield claim(main, told, happens(spec, action))
        for name, value in spec.choices(action):
            yield claim(main, f"{told}: {name} {word(spec, name, value)}", chooses(spec, action, name, value))
    for whose, name, value in spec.codes():
        of = "a call's " if whose == "call" else ""
        yield claim(
            main, f"it can happen that {of}{name} is {word(spec, name, value)}", comes_to(spec, whose, name, value)
        )
    for goal in spec.goals:
        yield claim(goal.guarantee, spec.formulas[goal.reached].sentence, arrives(spec, goal))


def happens(spec: Specification, action: Callable[..., Any]) -> Callable[[], Answer]:
    """Look for a way on which the action is taken."""
    return lambda: _look(spec, lambda now: now.chosen[action][0], lambda trace: trace.steps[-1].action is action)


def chooses(spec: Specification, action: Callable[..., Any], name: str, value: int) -> Callable[[], Answer]:
    """Look for a way on which the action is taken and the environment chooses this."""

    def wanted(now: Situation) -> z3.BoolRef:
        taken, chosen = now.chosen[action]
        return z3.And(taken, chosen[name] == value)

    def really(trace: Trace) -> bool:
        return trace.steps[-1].action is action and bool(trace.steps[-1].chosen[name] == value)

    return lambda: _look(spec, wanted, really, small_first=value <= _SMALL)


def comes_to(spec: Specification, whose: str, name: str, value: int) -> Callable[[], Answer]:
    """Look for a way to a state in which a field, of the world or of some call, has this value."""

    def wanted(now: Situation) -> z3.BoolRef:
        records = now.calls_after if whose == "call" else (now.after,)
        return z3.Or([getattr(each, name) == value for each in records])

    def really(trace: Trace) -> bool:
        records = trace.steps[-1].calls if whose == "call" else (trace.steps[-1].world,)
        return any(getattr(each, name) == value for each in records)

    return lambda: _look(spec, wanted, really, small_first=value <= _SMALL)


def arrives(spec: Specification, goal: Goal) -> Callable[[], Answer]:
    """Look for a way to a state of the goal."""
    return _to_a_state(spec, goal.reached, True, "")


def breaks(spec: Specification, invariant: Invariant) -> Callable[[], Answer]:
    """Look for a way to a state in which the invariant is broken."""
    return _to_a_state(spec, invariant.holds, False, f"broken: {spec.formulas[invariant.holds].sentence}")


def breaks_law(spec: Specification, law: Law) -> Callable[[], Answer]:
    """Look for a way whose last step breaks the law."""
    formula = spec.formulas[law.holds]
    actions = law.of or spec.actions

    def wanted(now: Situation) -> z3.BoolRef:
        said = {
            "limits": now.limits,
            "world": now.before,
            "call": now.actor[0],
            "total": _total(spec, now.limits, now.calls_before),
            "after": now.after,
            "call_after": now.actor[1],
            "total_after": _total(spec, now.limits, now.calls_after),
        }
        steps = [now.chosen[action] for action in actions]
        return z3.Or([z3.And(taken, z3.Not(formula.term(said | chosen))) for taken, chosen in steps])

    def really(trace: Trace) -> bool:
        last = trace.steps[-1]
        world, calls = (trace.steps[-2].world, trace.steps[-2].calls) if trace.steps[1:] else (trace.start, trace.calls)
        who = last.caller or 0
        said = {
            "limits": trace.limits,
            "world": world,
            "call": calls[who],
            "total": spec.total_of(trace.limits, calls),
            "after": last.world,
            "call_after": last.calls[who],
            "total_after": spec.total_of(trace.limits, last.calls),
        }
        return last.action in actions and not formula.on(said | dict(last.chosen))

    return lambda: _look(spec, wanted, really, f"broken: {formula.sentence}")


def _to_a_state(
    spec: Specification, sentence: Callable[..., bool], value: bool, last_line: str
) -> Callable[[], Answer]:
    """Look for a way to a state of which the sentence has that value: of the world, a caller or two of them."""
    formula = spec.formulas[sentence]

    def wanted(now: Situation) -> z3.BoolRef:
        meaning = {"limits": now.limits, "world": now.after, "total": _total(spec, now.limits, now.calls_after)}
        meanings = _about(formula.parameters, meaning, now.calls_after)
        return z3.Or([formula.term(each) == value for each in meanings])

    def really(trace: Trace) -> bool:
        last = trace.steps[-1]
        meaning = {"limits": trace.limits, "world": last.world, "total": spec.total_of(trace.limits, last.calls)}
        return any(formula.on(each) is value for each in _about(formula.parameters, meaning, last.calls))

    return lambda: _look(spec, wanted, really, last_line)


def _look(
    spec: Specification,
    wanted: Callable[[Situation], z3.BoolRef],
    really: Callable[[Trace], bool],
    last_line: str = "",
    *,
    small_first: bool = False,
) -> Answer:
    """Find the shortest way: PROVED with its trace, or UNKNOWN.

    wanted: what is looked for, in terms; really: the same of the trace in plain values, which the solver must not be
    alone to say. small_first: rather a longer way with small numbers than a shorter one with large ones, which takes
    fewer questions where any way will do.
    """
    began = time.perf_counter()
    questions = 0
    tries = [(depth, most) for depth in range(1, spec.max_depth + 1) for most in (_SMALL, None)]
    if small_first:
        tries.sort(key=lambda each: each[1] is None)
    for depth, most in tries:
        ways = _ways(spec, most)
        solver = z3.Solver()
        solver.set("timeout", TIME_LIMIT_MS)
        solver.add(*ways.up_to(depth), wanted(ways.situation(depth)))
        questions += 1
        if asked(solver) == z3.sat:
            trace = ways.trace(solver.model(), depth)
            if not really(trace):
                raise AssertionError(f"the solver's way is none: {told(spec, trace, last_line)}")
            return Answer(PROVED, told(spec, trace, last_line), questions, time.perf_counter() - began)
        if time.perf_counter() - began > _BUDGET_S:
            reason = f"nothing was found within {depth} steps and {_BUDGET_S:.0f} s"
            return Answer(UNKNOWN, reason, questions, time.perf_counter() - began)
    reason = f"nothing was found within {spec.max_depth} steps of {spec.callers} callers"
    return Answer(UNKNOWN, reason, questions, time.perf_counter() - began)


@lru_cache(maxsize=4)
def _ways(spec: Specification, most: int | None) -> _Ways:
    return _Ways(spec, most)


class _Ways:
    """All ways from the start, one more step at a time: states, choices and callers of every step as unknowns."""

    def __init__(self, spec: Specification, most: int | None) -> None:
        self._spec = spec
        self._most = most
        self._limits = fresh(spec.limits, "limits")
        start = spec.formulas[spec.start]
        first = [start.put(each, {"limits": self._limits}) for each in start.leaves]
        self._worlds = [filled(fresh(spec.world, "world"), first)]
        self._calls = [(spec.new,) * spec.callers]
        given = [spec.formulas[each].term({"limits": self._limits}) for each in spec.given]
        self._constraints = [[*given, *self._small(self._limits)]]
        self._situations: list[Situation] = []

    def up_to(self, depth: int) -> Iterator[z3.BoolRef]:
        """Give what is known of the first so many steps."""
        self._unroll(depth)
        return (each for step in self._constraints[: depth + 1] for each in step)

    def situation(self, depth: int) -> Situation:
        """Give the step of that number."""
        self._unroll(depth)
        return self._situations[depth - 1]

    def trace(self, model: z3.ModelRef, depth: int) -> Trace:
        """Read the way out of a model, and take it again on plain values."""
        spec = self._spec
        limits = _value(model, self._limits)
        start = spec.formulas[spec.start]
        world = first = start.on({"limits": limits})
        calls = [spec.new] * spec.callers
        taken = []
        for number, now in enumerate(self._situations[:depth], start=1):
            who = _value(model, now.who)
            action, own = next((a, own) for a, (chosen, own) in now.chosen.items() if z3.is_true(model.eval(chosen)))
            given = {name: _value(model, value) for name, value in own.items()}
            formula = spec.formulas[action]
            result = formula.on({"limits": limits, "world": world, "call": calls[who]} | given)
            caller = who if "call" in formula.parameters else None
            if caller is None:
                world = result
            else:
                world, calls[caller] = result
            if (world, tuple(calls)) != _value(model, (now.after, now.calls_after)):
                raise AssertionError(f"the solver's step {number} is not what {action.__name__} does")
            taken.append(Taken(action, caller, given, world, tuple(calls)))
        return Trace(limits, first, (spec.new,) * spec.callers, tuple(taken))

    def _unroll(self, depth: int) -> None:
        while len(self._situations) < depth:
            self._one_more(len(self._situations) + 1)

    def _one_more(self, depth: int) -> None:
        spec = self._spec
        before, calls = self._worlds[-1], self._calls[-1]
        after = fresh(spec.world, f"!world{depth}")
        calls_after = tuple(fresh(spec.call, f"!call{depth}.{caller}") for caller in range(spec.callers))
        pick, who = z3.Int(f"!pick{depth}"), z3.Int(f"!who{depth}")
        # The caller who acts is one term, so that each action is put down once a step and not once for every caller.
        actor, actor_after = fresh(spec.call, f"!actor{depth}"), fresh(spec.call, f"!acted{depth}")
        constraints = [who >= 0, who < spec.callers]
        for caller in range(spec.callers):
            mine = who == caller
            constraints.append(z3.Implies(mine, z3.And(_equal(flat(actor), flat(calls[caller])))))
            constraints.append(z3.Implies(mine, z3.And(_equal(flat(calls_after[caller]), flat(actor_after)))))
            constraints.append(z3.Implies(z3.Not(mine), z3.And(_equal(flat(calls_after[caller]), flat(calls[caller])))))
        ways, chosen = [], {}
        for number, action in enumerate(spec.actions):
            formula = spec.formulas[action]
            meaning = {"limits": self._limits, "world": before, "call": actor}
            own = {
                name: fresh(kind, f"{name}{depth}.{number}")
                for name, kind in formula.parameters.items()
                if name not in meaning
            }
            constraints += self._small(*own.values())
            leaves = [formula.put(leaf, meaning | own) for leaf in formula.reading.leaves]
            if "call" not in formula.parameters:
                leaves += flat(actor)
            same = _equal([*flat(after), *flat(actor_after)], leaves)
            taken = pick == number
            ways.append(z3.And(taken, formula.put(formula.reading.possible, meaning | own), *same))
            chosen[action] = (taken, own)
        self._constraints.append([*constraints, z3.Or(ways)])
        self._worlds.append(after)
        self._calls.append(calls_after)
        situation = Situation(self._limits, before, after, calls, calls_after, (actor, actor_after), who, chosen)
        self._situations.append(situation)

    def _small(self, *values: Any) -> list[z3.BoolRef]:
        if self._most is None:
            return []
        numbers = [leaf for value in values for leaf in flat(value) if z3.is_int(leaf)]
        return [z3.And(number >= -1, number <= self._most) for number in numbers]


def _about(names: Mapping[str, Any], meaning: dict[str, Any], calls: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Everything that a sentence may be about in a state: the world, each caller, each two callers."""
    if "other" in names:
        return [meaning | {"call": a, "other": b} for i, a in enumerate(calls) for j, b in enumerate(calls) if i != j]
    return [meaning | {"call": call} for call in calls] if "call" in names else [meaning]


def _total(spec: Specification, limits: Any, calls: tuple[Any, ...]) -> Any:
    meanings = [{"limits": limits, "call": call} for call in calls]
    return spec.totals(*(z3.Sum([spec.formulas[term].term(each) for each in meanings]) for term in spec.terms))


def _equal(left: list[z3.ExprRef], right: list[z3.ExprRef]) -> list[z3.BoolRef]:
    return [a == b for a, b in zip(left, right, strict=True)]


def _value(model: z3.ModelRef, value: Any) -> Any:
    if isinstance(value, tuple):
        parts = [_value(model, part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    found = model.eval(value, model_completion=True) if z3.is_expr(value) else value
    if z3.is_int_value(found):
        return found.as_long()
    return z3.is_true(found) if z3.is_expr(found) else found
