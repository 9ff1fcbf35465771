"""How much harm a tool call can do: declared when the tool is registered, never judged by the agent."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Any, TypeAlias

from failstop.runtime.stops import Stop


class RiskTier(IntEnum):
    """Ordered by harm: whatever lies above a run's autonomous ceiling waits for a person."""

    READ = 0
    """Observes; changes nothing."""
    WRITE = 1
    """Changes state that can be changed back."""
    EXTERNAL = 2
    """Leaves the system."""
    IRREVERSIBLE = 3
    """Cannot be undone: a payment, a deletion, a message sent."""


HIGHEST = max(RiskTier)

Arguments: TypeAlias = Mapping[str, Any]
TierRule: TypeAlias = Callable[[Arguments], RiskTier]
"""Gives the tier of one call from its arguments alone; what it cannot judge is the highest tier."""

_SEPARATORS = re.compile(r"[;|&\n]")
_HARMLESS = re.compile(r"[A-Za-z0-9_./:=,@%+ \t'\"-]+")


def tier_of(rule: RiskTier | TierRule, args: Arguments) -> RiskTier:
    """Judge one call; a rule that raises or returns anything but a RiskTier means the highest tier."""
    if isinstance(rule, RiskTier):
        return rule
    try:
        tier = rule(args)
    except (Exception, Stop):  # noqa: BLE001 - what cannot be judged is not safe, whatever the reason
        return HIGHEST
    return tier if isinstance(tier, RiskTier) else HIGHEST


def highest_of_parts(split: Callable[[Arguments], Iterable[Any]], part_tier: Callable[[Any], RiskTier]) -> TierRule:
    """Make a rule for a tool whose one call does several things: the highest tier of all of them.

    A call that `split` finds nothing in, or a part without a tier, is the highest tier.
    """

    def rule(args: Arguments) -> RiskTier:
        tiers = [part_tier(part) for part in split(args)]
        understood = tiers and all(isinstance(tier, RiskTier) for tier in tiers)
        return max(tiers) if understood else HIGHEST

    return rule


def shell_tier(commands: Mapping[str, RiskTier], argument: str = "command") -> TierRule:
    """Make a rule for a tool that runs shell text: the highest tier among the commands named in it.

    Separators count inside quotes too, and substitution, redirection, globbing, escapes or a command missing from
    `commands` mean the highest tier: the rule may call a safe line risky, never the other way. It does not look at what
    a listed command does with its own arguments; list only commands that are harmless with any.
    """
    listed = dict(commands)
    return highest_of_parts(lambda args: _shell_parts(args[argument]), lambda part: listed[part.split()[0]])


def _shell_parts(text: str) -> list[str]:
    parts = [part for part in _SEPARATORS.split(text) if part.strip(" \t")]
    if not all(_HARMLESS.fullmatch(part) for part in parts):
        raise ValueError("more than plain commands")
    return parts
