"""What a protocol is: its limits, the state that callers share, what each caller knows, the steps, and the promises.

A specification is written as plain functions over records of integers and booleans, so the same text is read by the
solver (for any number of callers), run on plain values (by state machines and monitors), and shown to people. Steps
call the cores of the runtime; they do not repeat them. What stands beside a core's state in the records are ghosts:
what really happened in the world, which no core sees.

Functions are given what their parameters name:

    limits    the constants               call        the caller who acts, or any caller
    world     the shared state            other       a second, different caller
    total     sums over all callers       (anything else: what the environment chooses)
    after, total_after, call_after        the same after the step, for laws
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import z3

from failstop.models.formula import Formula
from failstop.models.reader import AtOnce, fresh, must_fit, parameters, place_of
from failstop.models.symbolic import Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from types import ModuleType


_GIVEN = {"limits", "world", "call"}
_RESERVED = {*_GIVEN, "other", "total", "after", "call_after", "total_after"}
"""What a name means everywhere; the environment chooses nothing of these names."""

Record: TypeAlias = Any
"""A class of named tuples, whose fields are integers and booleans."""


class Law(NamedTuple):
    """A promise about single steps: about those of the actions named, or about all."""

    guarantee: str
    holds: Callable[..., bool]
    of: tuple[Callable[..., Any], ...] = ()


class Goal(NamedTuple):
    """A state that must be reachable, or the promises would be empty."""

    guarantee: str
    reached: Callable[..., bool]


class Invariant(NamedTuple):
    """A promise about every reachable state: of the world, of any caller, or of any two."""

    guarantee: str
    holds: Callable[..., bool]


class NoCall(NamedTuple):
    """What a caller knows in a protocol without callers: nothing."""


class NoTotals(NamedTuple):
    """No sums."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Specification:
    """One protocol.

    actions: ``(limits, world, call, ...) -> (world, call) | None`` for a caller's step, ``(limits, world, ...) ->
    world | None`` for one of the environment; None says that it cannot happen. terms: for each field of `totals` the
    function of one call, and of the limits, that it sums: zero for a new call and never negative. at_most: pairs of
    totals of which the first term is never above the second. given: what is taken for granted of the limits;
    trusted: what is taken for granted besides, in words. ghosts: fields that no core sees. at_once: functions of a core
    that are put into the steps as one term, where their paths would multiply. words: names for the numbers of
    a field, when traces are told. outcomes: what each field or choice of that name must be able to come to, or the
    promises would not be about it; a choice that is a truth value must be able to be both anyway. max_depth, callers:
    how far a search for traces goes.
    """

    name: str
    whose: str
    promise: str
    limits: Record
    world: Record
    start: Callable[..., Any]
    actions: Sequence[Callable[..., Any]]
    call: Record = NoCall
    new: Any = NoCall()  # noqa: RUF009 - an empty tuple
    totals: Record = NoTotals
    terms: Sequence[Callable[..., int]] = ()
    at_most: Sequence[tuple[str, str]] = ()
    given: Sequence[Callable[..., bool]] = ()
    invariants: Sequence[Invariant] = ()
    laws: Sequence[Law] = ()
    goals: Sequence[Goal] = ()
    at_once: Sequence[tuple[ModuleType, str]] = ()
    words: Mapping[str, Sequence[str]] = field(default_factory=dict)
    trusted: Sequence[str] = ()
    ghosts: Sequence[str] = ()
    outcomes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    max_depth: int = 8
    callers: int = 3

    def __post_init__(self) -> None:
        for action in self.actions:
            taken = _RESERVED & (set(parameters(action)) - _GIVEN)
            if taken:
                expected = f"a parameter of an action is called otherwise than {', '.join(sorted(_RESERVED))}"
                raise ValueError(f"{self.name}.{action.__name__}: {', '.join(sorted(taken))}; {expected}")

    @cached_property
    def formulas(self) -> dict[Callable[..., Any], Formula]:
        """Every function of the specification, ready to be read, with the kind of its result."""
        at_once = [AtOnce(module, name) for module, name in self.at_once]
        truth, number, world, call = z3.Bool("!"), z3.Int("!"), fresh(self.world, "!"), fresh(self.call, "!")
        sentences = (
            *self.given,
            *(invariant.holds for invariant in self.invariants),
            *(law.holds for law in self.laws),
            *(goal.reached for goal in self.goals),
        )
        gives = {
            **{action: (world, call) if "call" in parameters(action) else world for action in self.actions},
            **dict.fromkeys(self.terms, number),
            self.start: world,
            **dict.fromkeys(sentences, truth),
        }
        return {function: Formula(function, kind, at_once) for function, kind in gives.items()}

    def choices(self, action: Callable[..., Any]) -> Iterator[tuple[str, int]]:
        """Give what the environment must be able to choose for an action."""
        for name, kind in self.formulas[action].parameters.items():
            if name not in _GIVEN:
                yield from ((name, value) for value in ((False, True) if kind is bool else self.outcomes.get(name, ())))

    def codes(self) -> Iterator[tuple[str, str, int]]:
        """Give what fields must be able to come to: of the world or of a call, the field, and the value."""
        for name, values in self.outcomes.items():
            for whose, record in (("world", self.world), ("call", self.call)):
                if name in record._fields:
                    yield from ((whose, name, value) for value in values)

    def check(self) -> None:
        """Raise Unreadable for parts that do not fit together, of which nothing could be proved."""
        records: dict[str, Any] = {
            **dict.fromkeys(("limits",), self.limits),
            **dict.fromkeys(("world", "after"), self.world),
            **dict.fromkeys(("call", "other", "call_after"), self.call),
            **dict.fromkeys(("total", "total_after"), self.totals),
        }
        for function, formula in self.formulas.items():
            for name, kind in formula.parameters.items():
                if name in records and kind is not records[name]:
                    raise Unreadable(
                        f"{place_of(function)}: {name} is {kind.__qualname__}; expected {records[name].__qualname__}"
                    )
        for law in self.laws:
            strange = [action.__qualname__ for action in law.of if action not in self.actions]
            if strange:
                raise Unreadable(
                    f"{place_of(law.holds)}: a law of {', '.join(strange)}, which is no action of {self.name}"
                )
        try:
            must_fit(fresh(self.call, "!"), self.new)
        except Unreadable as error:
            raise Unreadable(f"{self.name}: new: {error}") from None
        chosen = {name for action in self.actions for name, _ in self.choices(action)}
        nowhere = set(self.outcomes) - chosen - {name for _, name, _ in self.codes()}
        if nowhere:
            raise Unreadable(f"{self.name}: outcomes of {', '.join(sorted(nowhere))}, which is no field and no choice")
        no_fields = set(self.ghosts) - {*self.world._fields, *self.call._fields}
        if no_fields:
            raise Unreadable(f"{self.name}: ghosts {', '.join(sorted(no_fields))}, which are no fields")
        unknown = {name for pair in self.at_most for name in pair} - set(self.totals._fields)
        if unknown or len(self.terms) != len(self.totals._fields):
            told = ", ".join(sorted(unknown)) or f"{len(self.terms)} terms"
            raise Unreadable(
                f"{self.name}: {told}; expected the totals {', '.join(self.totals._fields) or 'of nothing'}"
            )

    @property
    def about_pairs(self) -> bool:
        """Whether any invariant speaks of two callers."""
        return any("other" in self.formulas[invariant.holds].parameters for invariant in self.invariants)

    def total_of(self, limits: Any, calls: Iterable[Any]) -> Any:
        """Sum up the callers; plain values."""
        meanings = [{"limits": limits, "call": call} for call in calls]
        return self.totals(*(sum(self.formulas[term].on(each) for each in meanings) for term in self.terms))

    def broken(self, limits: Any, world: Any, calls: Sequence[Any]) -> list[str]:
        """Name the invariants that these plain values break: the monitor of a real run."""
        meaning = {"limits": limits, "world": world, "total": self.total_of(limits, calls)}
        return [
            self.formulas[invariant.holds].sentence
            for invariant in self.invariants
            if not all(self.formulas[invariant.holds].on(meaning | who) for who in self._speaks_of(invariant, calls))
        ]

    def _speaks_of(self, invariant: Invariant, calls: Sequence[Any]) -> list[dict[str, Any]]:
        names = self.formulas[invariant.holds].parameters
        if "other" in names:
            return [{"call": a, "other": b} for i, a in enumerate(calls) for j, b in enumerate(calls) if i != j]
        return [{"call": call} for call in calls] if "call" in names else [{}]
