"""Everything that is claimed and put to the solver, by the protocol or theory that it belongs to."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from failstop.models import protocols, published, theories
from failstop.models.claim import OURS, PUBLISHED
from failstop.models.induction import Proofs
from failstop.models.specification import Specification

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    from failstop.models.claim import Claim

_T = TypeVar("_T")


@cache
def specifications() -> dict[str, Specification]:
    """Give every specification by its name: the runtime's own first, then the published ones."""
    found = [*_specifications_of(protocols, OURS), *_specifications_of(published, PUBLISHED)]
    return _by_name([(spec.name, spec) for spec in found])


def names() -> list[str]:
    """Give the names of all protocols and theories, in the order in which they are proved."""
    return [*specifications(), *_theories()]


def claims_of(name: str) -> list[Claim]:
    """Give the claims of one protocol or theory; raises KeyError for an unknown one."""
    theory = _theories().get(name)
    if theory is not None:
        return theory()
    return list(Proofs(specifications()[name]).claims())


@cache
def _theories() -> dict[str, Callable[[], list[Claim]]]:
    """Give what makes the claims of each theory, by its name: of every module that claims anything."""
    return _by_name([(module.NAME, module.claims) for module in _modules_of(theories) if hasattr(module, "claims")])


def _specifications_of(package: ModuleType, whose: str) -> Iterator[Specification]:
    for module in _modules_of(package):
        for spec in vars(module).values():
            if isinstance(spec, Specification):
                if spec.whose != whose:
                    raise ValueError(f"{spec.name} in {package.__name__} is {spec.whose!r}; expected {whose!r}")
                yield spec


def _modules_of(package: ModuleType) -> Iterator[ModuleType]:
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if not found.ispkg:
            yield importlib.import_module(found.name)


def _by_name(named: list[tuple[str, _T]]) -> dict[str, _T]:
    known = dict(named)
    if len(known) != len(named):
        raise ValueError(f"two have one name: {sorted(name for name, _ in named)}")
    return known
