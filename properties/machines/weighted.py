"""Some moves are drawn more often than others: what ends a program for good has to be rare, or nothing else is seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


def weighted(*choices: tuple[int, SearchStrategy[Any]]) -> SearchStrategy[Any]:
    """Draw from one of these, each as often as its weight says; the first is the plainest.

    `one_of` would take a strategy that it is given twice for one.
    """
    strategies = [strategy for _, strategy in choices]
    places = [place for place, (weight, _) in enumerate(choices) for _ in range(weight)]
    return st.sampled_from(places).flatmap(strategies.__getitem__)
