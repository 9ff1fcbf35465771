"""The answer of the wrapped calls, for agents that branch instead of catching."""

from __future__ import annotations

from enum import Enum


class Decision(Enum):
    """What became of a wrapped call; its value is in `ExecutionContext.get_partial_result`."""

    ALLOW = "allow"
    """It was dispatched and returned."""
    DENY = "deny"
    """A policy refused this one call; the chain goes on."""
    HALT = "halt"
    """The chain is over; every later call is answered so."""
