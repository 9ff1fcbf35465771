"""The layers that can be put on any target: what each would check, and the records as they come."""

from __future__ import annotations

from pathlib import Path
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

LAYERS = ("machines", "schedules", "stress")
"""The layers besides the planners."""

DATABASE = Path(".hypothesis/failstop")
"""Where the machines keep what they found, to try it first the next time."""


class Check(NamedTuple):
    """The subjects of one layer, in order, and what makes their records, in the same order."""

    subjects: Sequence[str]
    records: Callable[[AnyTarget, str], Iterator[Record]]


def check_of(layer: str, depth: Depth, only: Sequence[str] = ()) -> Check:
    """Give a layer; only: these subjects, of any depth. Raises ModuleNotFoundError where hypothesis is missing."""
    if layer == "machines":
        return _machines(depth, only)
    known = _scenarios(layer, "deep" if only else depth)
    chosen = [each for name, each in known.items() if not only or name in only]
    check = check_schedules if layer == "schedules" else check_stress
    return Check([each.name for each in chosen], lambda target, named: check(target, named, chosen, depth))


def _machines(depth: Depth, only: Sequence[str]) -> Check:
    from failstop.properties.machines.check import check_machines  # noqa: PLC0415 - the other layers need no hypothesis
    from failstop.properties.machines.moves import MACHINES  # noqa: PLC0415

    chosen = [each for name, each in MACHINES.items() if not only or name in only]
    return Check(
        [each.name for each in chosen],
        lambda target, named: check_machines(target, named, depth, DATABASE, chosen),
    )


def _scenarios(layer: str, depth: Depth) -> Mapping[str, Scenario]:
    """Deep has those of quick too, and stress the crowds, which cannot be searched."""
    crowds = catalogue.crowds() if layer == "stress" else {}
    return {**catalogue.quick(), **(catalogue.deep() if depth == "deep" else {}), **crowds}
