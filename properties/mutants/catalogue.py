"""All mutants, by name: every module beside this one that has MUTANTS."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from failstop.properties import mutants

if TYPE_CHECKING:
    from collections.abc import Mapping

    from failstop.properties.mutants.mutant import Mutant


@cache
def catalogue() -> Mapping[str, Mutant]:
    """Give them, by module and then as they stand there; raises ValueError for a name that is given twice."""
    found: dict[str, Mutant] = {}
    for each in sorted(pkgutil.iter_modules(mutants.__path__), key=lambda module: module.name):
        module = importlib.import_module(f"{mutants.__name__}.{each.name}")
        for mutant in getattr(module, "MUTANTS", ()):
            if mutant.name in found:
                raise ValueError(f"two mutants are called {mutant.name!r}")
            found[mutant.name] = mutant
    return MappingProxyType(found)
