"""The layers that can be put on any target: what each would check, and the records as they come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from failstop.properties.scenarios import catalogue
from failstop.properties.schedules.check import check_schedules
from failstop.properties.stress import check_stress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from failstop.properties.evidence import Record
    from failstop.properties.scenario import Scenario
    from failstop.properties.target import AnyTarget

Depth: TypeAlias = Literal["quick", "deep"]


class Check(NamedTuple):
    """The subjects of one layer, in order, and what makes their records, in the same order."""

    subjects: Sequence[str]
    records: Callable[[AnyTarget, str], Iterator[Record]]


def of_scenarios(layer: Literal["schedules", "stress"], depth: Depth, only: Sequence[str] = ()) -> Check:
    """Give a layer that plays scenarios; only: these, by their names."""
    chosen = [each for name, each in scenarios(layer, depth).items() if not only or name in only]
    check = check_schedules if layer == "schedules" else check_stress
    return Check([each.name for each in chosen], lambda target, named: check(target, named, chosen, depth))


def scenarios(layer: Literal["schedules", "stress"], depth: Depth) -> Mapping[str, Scenario]:
    """Give the scenarios of a layer by name; deep has those of quick too, stress the crowds that cannot be searched."""
    crowds = catalogue.crowds() if layer == "stress" else {}
    return {**catalogue.quick(), **(catalogue.deep() if depth == "deep" else {}), **crowds}
