"""Every scenario there is, by name."""

from __future__ import annotations

import importlib
import pkgutil
from collections import Counter
from typing import TYPE_CHECKING

from failstop.properties import scenarios

if TYPE_CHECKING:
    from collections.abc import Mapping

    from failstop.properties.scenario import Scenario


def quick() -> Mapping[str, Scenario]:
    """Give those that are searched to the end in a second or so."""
    return _named("SCENARIOS")


def deep() -> Mapping[str, Scenario]:
    """Give those of more threads and calls, which take minutes."""
    return _named("DEEP")


def crowds() -> Mapping[str, Scenario]:
    """Give those of too many threads for a search, for the stress layer."""
    return _named("CROWDS")


def every() -> Mapping[str, Scenario]:
    """Give all."""
    return {**quick(), **deep(), **crowds()}


def _named(attribute: str) -> dict[str, Scenario]:
    modules = [importlib.import_module(f"{scenarios.__name__}.{found.name}") for found in _modules()]
    found: list[Scenario] = [each for module in modules for each in getattr(module, attribute, ())]
    names = Counter(each.name for each in found)
    if names and max(names.values()) > 1:
        raise ValueError(f"two scenarios are named {names.most_common(1)[0][0]!r}; a word must mean one of them")
    return {each.name: each for each in found}


def _modules() -> list[pkgutil.ModuleInfo]:
    return [
        found
        for found in pkgutil.iter_modules(scenarios.__path__)
        if not found.ispkg and found.name not in {"catalogue", "tests"}
    ]
