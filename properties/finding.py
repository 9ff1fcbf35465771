"""How a scenario's outcome becomes a record, whichever layer played it."""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import TYPE_CHECKING

from failstop.properties.evidence import VIOLATED, Record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from failstop.properties.scenario import Scenario
    from failstop.properties.target import AnyTarget


def is_exact(target: AnyTarget) -> bool:
    """Say whether a target promises the reference to the letter."""
    return getattr(target, "exact", False) is True


def not_promised(scenario: Scenario, target: AnyTarget) -> str | None:
    """Give the reason why a target is not held to a scenario, None if it is."""
    missing = [promise for promise in scenario.promises if promise not in target.promises]
    if not missing:
        return None
    reasons: Mapping[str, str] = getattr(target, "not_offered", {})
    return reasons.get(missing[0], f"it does not promise {missing[0]}")


def record(
    scenario: Scenario,
    target: AnyTarget,
    layer: str,
    verdict: str,
    detail: str,
    effort: Mapping[str, int | float] | None = None,
    command: str | None = None,
) -> Record:
    """Make the record of one scenario."""
    about = {"tries": scenario.tells}
    if verdict == VIOLATED and scenario.promises:
        about["promised"] = "; ".join(target.promises[promise] for promise in scenario.promises)
    return Record(
        guarantee=scenario.guarantee,
        target=target.name,
        layer=layer,
        subject=scenario.name,
        verdict=verdict,
        detail=detail,
        effort=effort or {},
        replay=command,
        versions={"failstop": version("failstop"), "python": platform.python_version(), **target.versions()},
        about=about,
    )
