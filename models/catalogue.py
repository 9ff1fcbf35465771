"""Everything that is claimed and put to the solver, by the protocol or theory that it belongs to."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import TYPE_CHECKING

from failstop.models import amplification, floats, protocols, published, sums
from failstop.models.induction import Proofs
from failstop.models.specification import Specification

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from failstop.models.claim import Claim

_THEORIES = {"sums": sums, "amplification": amplification, "floats": floats}


@cache
def specifications() -> dict[str, Specification]:
    """Give every specification by its name: the runtime's own first, then the published ones."""
    found = [spec for package in (protocols, published) for spec in _found_in(package)]
    known = {spec.name: spec for spec in found}
    if len(known) != len(found):
        raise ValueError(f"two specifications have one name: {sorted(spec.name for spec in found)}")
    return known


def names() -> list[str]:
    """Give the names of all protocols and theories, in the order in which they are proved."""
    return [*specifications(), *_THEORIES]


def claims_of(name: str) -> list[Claim]:
    """Give the claims of one protocol or theory; raises KeyError for an unknown one."""
    if name in _THEORIES:
        return list(_THEORIES[name].claims())
    return list(Proofs(specifications()[name]).claims())


def _found_in(package: ModuleType) -> Iterator[Specification]:
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if not found.ispkg:
            module = importlib.import_module(found.name)
            yield from (value for value in vars(module).values() if isinstance(value, Specification))
