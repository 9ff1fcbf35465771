"""A function of a specification as a term of the solver: read once, then put to use with whatever its names stand for.

Parameters are bound by name, so the sentence ``def never_negative(world, total)`` says itself what it speaks of.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import z3

from failstop.models.reader import Reading, flat, fresh, must_fit, parameters, place_of, read
from failstop.models.symbolic import Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from failstop.models.reader import AtOnce


class Formula:
    """One function, read when it is first needed; gives: terms of the kind that its result must have."""

    def __init__(self, function: Callable[..., Any], gives: Any, at_once: Sequence[AtOnce] = ()) -> None:
        self.function = function
        self._gives = gives
        self._at_once = at_once
        self.parameters = parameters(function)

    @property
    def sentence(self) -> str:
        """The first line of the docstring, without its full stop."""
        return (self.function.__doc__ or self.function.__name__).strip().splitlines()[0].rstrip(".")

    @cached_property
    def arguments(self) -> dict[str, Any]:
        """Terms that stand for the parameters."""
        return {name: fresh(kind, name) for name, kind in self.parameters.items()}

    @cached_property
    def reading(self) -> Reading:
        """All paths through the function."""
        reading = read(self.function, list(self.arguments.values()), self._at_once)
        reading.must_give(self._gives)
        return reading

    @property
    def leaves(self) -> list[z3.ExprRef]:
        """Each number of the result; raises Unreadable for a function that gives none on some path."""
        return self.reading.always.leaves

    def term(self, meaning: Mapping[str, Any]) -> z3.ExprRef:
        """The one number or truth value that the function gives."""
        (leaf,) = self.leaves
        return self.put(leaf, meaning)

    def put(self, term: z3.ExprRef, meaning: Mapping[str, Any]) -> z3.ExprRef:
        """Replace the parameters in a term by what they mean here."""
        return z3.substitute(term, *self._pairs(meaning))

    def _pairs(self, meaning: Mapping[str, Any]) -> list[tuple[z3.ExprRef, z3.ExprRef]]:
        pairs = []
        for name, argument in self.arguments.items():
            try:
                must_fit(argument, meaning[name])
            except Unreadable as error:
                raise Unreadable(f"{place_of(self.function)}: {name}: {error}") from None
            pairs += list(zip(flat(argument), flat(meaning[name]), strict=True))
        return pairs

    def on(self, meaning: Mapping[str, Any]) -> Any:
        """Run the function itself, on plain values."""
        return self.function(*(meaning[name] for name in self.parameters))
