"""The runtimes that can be put under test, by name; each is loaded only when it is asked for."""

from __future__ import annotations

import importlib
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from failstop.properties.target import check_described, check_versions

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
    """Give the target of a bundled name, or of "package.module:attribute", once it is known to be one.

    Raises UnknownTarget, ConfigurationError for what is no target, or whatever its module or its versions() raises.
    """
    module, colon, attribute = TARGETS.get(name, name).partition(":")
    if not (module and colon and attribute):
        raise UnknownTarget(name)
    namespace = importlib.import_module(module)
    if not hasattr(namespace, attribute):
        raise UnknownTarget(name)
    found = getattr(namespace, attribute)
    target = cast("AnyTarget", found() if isinstance(found, type) else found)
    check_described(target)
    check_versions(target.versions())
    return target
