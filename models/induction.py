"""Proves that invariants are inductive and that steps obey the laws, for any number of callers.

An invariant about callers means all of them. One step is taken by one caller, so few stand for all: the one who acts,
and another who may be anyone (two others where an invariant speaks of two). A total over all callers is split into the
terms of these and a rest, about which nothing is known but what `theories/sums.py` proves of every such rest: that it
is not negative, and that it keeps the order of two totals whose terms are ordered. So nothing here depends on how many
callers there are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import z3

from failstop.models import search
from failstop.models.claim import PROVED, UNKNOWN, Answer, Claim, all_of, prove
from failstop.models.reader import filled, flat, fresh
from failstop.models.trace import NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from failstop.models.specification import Invariant, Law, Specification


@dataclass(frozen=True)
class _Moment:
    """The state before or after a step: the world, the callers who stand for all, and the totals over all of them."""

    world: Any
    calls: tuple[Any, ...]
    total: Any


class Step:
    """One action taken in any state: what is before, what is after, and when it can be taken."""

    def __init__(self, spec: Specification, action: Callable[..., Any]) -> None:
        self.spec = spec
        self.action = action
        formula = spec.formulas[action]
        self.limits = fresh(spec.limits, "limits")
        self._rests = [z3.Int(f"!rest.{name}") for name in _fields(spec.totals)]
        names = NAMES[: 3 if spec.about_pairs else 2]
        self.before = self._moment(fresh(spec.world, "world"), tuple(fresh(spec.call, f"!{name}") for name in names))
        meaning = {"limits": self.limits, "world": self.before.world, "call": self.before.calls[0]}
        own = set(formula.parameters) - set(meaning)
        self.chosen = {name: fresh(formula.parameters[name], name) for name in formula.parameters if name in own}
        meaning |= self.chosen
        leaves = [formula.put(leaf, meaning) for leaf in formula.reading.leaves]
        if "call" in formula.parameters:
            after, actor = filled((self.before.world, self.before.calls[0]), leaves)
            calls = (actor, *self.before.calls[1:])
        else:
            after, calls = filled(self.before.world, leaves), self.before.calls
        self.after = self._moment(after, calls)
        self.possible = formula.put(formula.reading.possible, meaning)
        self._said_before: dict[Invariant, list[z3.BoolRef]] = {}

    def known(self, invariants: Iterable[Invariant]) -> list[z3.BoolRef]:
        """What is granted of the limits, and these invariants before the step, of everybody."""
        granted = [self.spec.formulas[each].term({"limits": self.limits}) for each in self.spec.given]
        return granted + [said for each in invariants for said in self._before(each)]

    def keeps(self, invariant: Invariant, assumed: Iterable[Invariant]) -> Answer:
        """Ask whether the step keeps an invariant."""
        return self._ask(z3.And(self._said(invariant, self.after)), assumed)

    def obeys(self, law: Law, assumed: Iterable[Invariant]) -> Answer:
        """Ask whether the step obeys a law."""
        meaning = {
            "limits": self.limits,
            "world": self.before.world,
            "call": self.before.calls[0],
            "total": self.before.total,
            "after": self.after.world,
            "call_after": self.after.calls[0],
            "total_after": self.after.total,
        }
        return self._ask(self.spec.formulas[law.holds].term(meaning | self.chosen), assumed)

    def _ask(self, claim: z3.BoolRef, assumed: Iterable[Invariant]) -> Answer:
        """Assume invariants before the step, the rests of the totals, and that the step can be taken."""
        rests = dict(zip(_fields(self.spec.totals), self._rests, strict=True))
        ordered = [rests[less] <= rests[more] for less, more in self.spec.at_most]
        whole = [rest >= 0 for rest in self._rests]
        return prove(claim, *self.known(assumed), *whole, *ordered, self.possible, tell=self._told)

    def _before(self, invariant: Invariant) -> list[z3.BoolRef]:
        if invariant not in self._said_before:
            self._said_before[invariant] = self._said(invariant, self.before)
        return self._said_before[invariant]

    def _told(self, model: z3.ModelRef) -> str:
        """Tell the step; the state before it may be one that nothing leads to."""
        parts = [
            ("with", self.limits._asdict()),
            ("before", self.before.world._asdict()),
            ("totals", self.before.total._asdict()),
            *((f"caller {name}", call._asdict()) for name, call in zip(NAMES, self.before.calls, strict=False)),
            (f"then {self.action.__name__}", self.chosen),
            ("after", self.after.world._asdict()),
            ("totals", self.after.total._asdict()),
            ("caller A", self.after.calls[0]._asdict()),
        ]
        return "\n".join(f"  {title}: {_values(model, part)}" for title, part in parts if len(part))

    def _said(self, invariant: Invariant, moment: _Moment) -> list[z3.BoolRef]:
        formula = self.spec.formulas[invariant.holds]
        meaning = {"limits": self.limits, "world": moment.world, "total": moment.total}
        if "other" in formula.parameters:
            pairs = [(a, b) for a in moment.calls for b in moment.calls if a is not b]
            return [formula.term(meaning | {"call": a, "other": b}) for a, b in pairs]
        if "call" in formula.parameters:
            return [formula.term(meaning | {"call": each}) for each in moment.calls]
        return [formula.term(meaning)]

    def _moment(self, world: Any, calls: tuple[Any, ...]) -> _Moment:
        spec = self.spec
        sums = [
            rest + z3.Sum([spec.formulas[term].term({"limits": self.limits, "call": call}) for call in calls])
            for term, rest in zip(spec.terms, self._rests, strict=True)
        ]
        return _Moment(world, calls, spec.totals(*sums))


class Proofs:
    """The claims of one specification; what they share is read once.

    Invariants are proved together: each may assume the others before a step. If some are not kept, the others are
    proved again without them, until those that are left keep each other; laws may assume only these.
    traces: whether a way from the start is looked for to a step that breaks a promise. Without, everything is asked
    once: a step that nothing may lead to is told as the refutation, and what is proved is so if all invariants are.
    """

    def __init__(self, spec: Specification, *, traces: bool = True) -> None:
        self._spec = spec
        self._traces = traces
        self._steps: dict[Callable[..., Any], Step] = {}

    def claims(self) -> Iterator[Claim]:
        """Give every claim: invariants, laws, totals that may be split, actions and goals that are reachable."""
        for claim in self._claims():
            yield replace(claim, ask=partial(self._checked, claim.ask))

    def _checked(self, ask: Callable[[], Answer]) -> Answer:
        self._spec.check()
        return ask()

    def _claims(self) -> Iterator[Claim]:
        spec = self._spec
        for invariant in spec.invariants:
            yield self._claim(invariant.guarantee, "invariant", invariant.holds, partial(self._invariant, invariant))
        for law in spec.laws:
            yield self._claim(law.guarantee, "law", law.holds, partial(self._law, law))
        if spec.terms:
            sentence = "every total starts at zero, and no caller's part of it is ever negative"
            yield Claim(
                spec.invariants[0].guarantee, spec.whose, spec.name, "totals", sentence, lambda: self._totals_answer
            )
        yield from search.reachable(spec)

    def _claim(self, guarantee: str, kind: str, function: Callable[..., Any], ask: Callable[[], Answer]) -> Claim:
        return Claim(guarantee, self._spec.whose, self._spec.name, kind, self._spec.formulas[function].sentence, ask)

    def _step(self, action: Callable[..., Any]) -> Step:
        if action not in self._steps:
            self._steps[action] = Step(self._spec, action)
        return self._steps[action]

    @cached_property
    def _together(self) -> dict[Invariant, Answer]:
        """The answer for each invariant; those that are proved keep each other."""
        answers: dict[Invariant, Answer] = {}
        kept = list(self._spec.invariants)
        while True:
            answers |= {invariant: self._kept(invariant, kept) for invariant in kept}
            still = [invariant for invariant in kept if answers[invariant].status == PROVED]
            if still == kept:
                return answers
            kept = still

    @property
    def _assumed(self) -> Sequence[Invariant]:
        """The invariants that other sentences may assume."""
        if not self._traces:
            return self._spec.invariants
        return [each for each, answer in self._together.items() if answer.status == PROVED]

    def _kept(self, invariant: Invariant, assumed: Sequence[Invariant]) -> Answer:
        steps = (partial(self._step(action).keeps, invariant, assumed) for action in self._spec.actions)
        return _until_one_fails([partial(self._holds_at_first, invariant), *steps])

    def _invariant(self, invariant: Invariant) -> Answer:
        if not self._traces:
            return self._kept(invariant, self._spec.invariants)
        return self._with_trace(self._together[invariant], search.breaks(self._spec, invariant))

    def _law(self, law: Law) -> Answer:
        actions = law.of or self._spec.actions
        answer = _until_one_fails([partial(self._step(action).obeys, law, self._assumed) for action in actions])
        return self._with_trace(answer, search.breaks_law(self._spec, law))

    def _with_trace(self, answer: Answer, look: Callable[[], Answer]) -> Answer:
        """A step that breaks a promise refutes it only if the state before it can be reached from the start."""
        if not self._traces or answer.status == UNKNOWN:
            return answer
        if answer.status == PROVED:
            if self._totals_answer.status == PROVED:
                return answer
            return answer._replace(status=UNKNOWN, told="it rests on totals that may not be split")
        found = look()
        spent = answer.questions + found.questions, answer.seconds + found.seconds
        if found.status == PROVED:
            return Answer(answer.status, found.told, *spent)
        return Answer(UNKNOWN, f"not inductive, and no way there from the start was found:\n{answer.told}", *spent)

    def _holds_at_first(self, invariant: Invariant) -> Answer:
        spec = self._spec
        limits = fresh(spec.limits, "limits")
        start = spec.formulas[spec.start]
        world = filled(fresh(spec.world, "world"), [start.put(leaf, {"limits": limits}) for leaf in start.leaves])
        meaning = {"limits": limits, "world": world, "total": spec.totals(*([0] * len(spec.terms)))}
        meaning |= {"call": spec.new, "other": spec.new}
        given = [spec.formulas[each].term({"limits": limits}) for each in spec.given]
        return prove(spec.formulas[invariant.holds].term(meaning), *given)

    @cached_property
    def _totals_answer(self) -> Answer:
        """What lets a total be split: terms that start at zero, are never negative, and are ordered as declared."""
        spec = self._spec
        step = self._step(spec.actions[0])
        call = step.before.calls[0]
        terms = dict(zip(_fields(spec.totals), (spec.formulas[term] for term in spec.terms), strict=True))
        limits = step.limits
        now = {name: formula.term({"limits": limits, "call": call}) for name, formula in terms.items()}
        first = [formula.term({"limits": limits, "call": spec.new}) == 0 for formula in terms.values()]
        ordered = [now[less] <= now[more] for less, more in spec.at_most]
        return prove(z3.And(*first, *(term >= 0 for term in now.values()), *ordered), *step.known(self._assumed))


def _until_one_fails(questions: Iterable[Callable[[], Answer]]) -> Answer:
    answers = []
    for ask in questions:
        answers.append(ask())
        if answers[-1].status != PROVED:
            break
    return all_of(answers)


def _values(model: z3.ModelRef, named: dict[str, Any]) -> str:
    """Tell the value of each, a record's as a whole."""
    told = {
        name: [str(model.eval(leaf, model_completion=True)) for leaf in flat((each,))] for name, each in named.items()
    }
    return ", ".join(f"{name} {'/'.join(values)}" for name, values in told.items())


def _fields(record: Any) -> tuple[str, ...]:
    return tuple(record._fields)
