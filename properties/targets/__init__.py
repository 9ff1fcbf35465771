"""The runtimes that can be put under test, by name; each is loaded only when it is asked for."""

from __future__ import annotations

import importlib
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

    from failstop.properties.target import AnyTarget

TARGETS: Mapping[str, str] = MappingProxyType(
    {
        "failstop": "failstop.properties.targets.failstop:FailstopTarget",
        "failstop-loop": "failstop.properties.targets.failstop_loop:LoopTarget",
        "veronica-core": "failstop.properties.targets.veronica:VeronicaCore",
    }
)
"""Name -> "package.module:attribute", a target or a class of one; a user's own is named that way directly."""


class UnknownTarget(LookupError):  # noqa: N818 - it tells what happened
    """There is no target of this name."""


def load(name: str) -> AnyTarget:
    """Give the target of a bundled name, or of "package.module:attribute"; raises UnknownTarget or ImportError."""
    module, colon, attribute = TARGETS.get(name, name).partition(":")
    if not colon:
        raise UnknownTarget(name)
    try:
        found = getattr(importlib.import_module(module), attribute)
    except AttributeError as error:
        raise UnknownTarget(name) from error
    return cast("AnyTarget", found() if isinstance(found, type) else found)
