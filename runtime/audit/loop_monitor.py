"""Follows a run's turns through its log: no action is dispatched more often in a row than the limit allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from failstop.runtime.audit.breach import Breach
from failstop.runtime.audit.canonical import respell
from failstop.runtime.audit.event_fields import calls_of, field, field_or_none, limits_of
from failstop.runtime.cores import repeats as core
from failstop.runtime.limits import UNLIMITED, Limits, count_or_unlimited

if TYPE_CHECKING:
    from collections.abc import Iterator

    from failstop.runtime.audit.event_log import Event


class LoopMonitor:
    """Judges a run by the calls in its steps, whatever fingerprints the runtime made of them; others by their turns.

    A turn too many must be answered by a stop. Dispatches of other threads may still lie between the two, so those
    after such a turn count as breaches only if the next turn, or the end of the log, comes before the stop.
    """

    def __init__(self, root: str, limits: Limits) -> None:
        self._root = root
        self._limits = {root: count_or_unlimited(limits.max_repeats)}
        self._rows: dict[str, tuple[str, int]] = {}
        self._suspects: dict[str, list[Breach]] = {}
        self._steps = False

    def child(self, event: Event) -> Iterator[Breach]:
        """Note the limit of a context under another."""
        name, parent = field(event, "context", str), field(event, "parent", str)
        limit = self._limits.get(parent, UNLIMITED)
        if field_or_none(event, "limits", dict) is not None:
            limit = count_or_unlimited(limits_of(event).max_repeats)
        # Turns of two contexts of one name cannot be told apart, so they are not judged.
        self._limits[name] = UNLIMITED if name in self._limits else limit
        yield from ()

    def step(self, event: Event) -> Iterator[Breach]:
        """Count an action of the run itself."""
        self._steps = True
        yield from self._turn(self._root, respell(calls_of(event)))

    def turn(self, event: Event) -> Iterator[Breach]:
        """Count an action by its fingerprint, unless its step told more."""
        context, fingerprint = field(event, "context", str), field(event, "fingerprint", str)
        if not (self._steps and context == self._root):
            yield from self._turn(context, fingerprint)

    def admit(self, event: Event) -> Iterator[Breach]:
        """Suspect a dispatch that follows a turn too many."""
        context = field(event, "context", str)
        if context in self._suspects:
            limit, (_, row) = self._limits[context], self._rows[context]
            detail = f"a dispatch of an action that came {row} times in a row, limit {limit}"
            self._suspects[context].append(Breach("loop", event.seq, detail, limit, row))
        yield from ()

    def stop(self, event: Event) -> Iterator[Breach]:
        """Clear those that ran while a repetition was being stopped."""
        if field(event, "ceiling", str) == "repeats":
            self._suspects.clear()
        yield from ()

    def end(self) -> Iterator[Breach]:
        """Give what was never answered by a stop."""
        for suspects in self._suspects.values():
            yield from suspects

    def _turn(self, context: str, fingerprint: str) -> Iterator[Breach]:
        yield from self._suspects.pop(context, [])
        last, row = self._rows.get(context, ("", 0))
        row, allowed = core.turn(row, fingerprint == last, self._limits.get(context, UNLIMITED))
        self._rows[context] = fingerprint, row
        if not allowed:
            self._suspects[context] = []
