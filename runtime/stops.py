"""What a caller is told when a call may not run: a `Stop` ends the chain, a `Denied` refuses this one call.

A stop derives from BaseException, as asyncio.CancelledError does and for the same reason: `except Exception` and retry
decorators let it pass, so the loop unwinds whether it wants to or not. What swallows it all the same gains nothing: a
halted chain dispatches nothing more and every later call raises an equal stop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from failstop.runtime.exact import spelled


class ConfigurationError(ValueError):
    """A limit, option or amount that cannot be used (G6); nothing was created or changed."""

    def __init__(self, field: str, value: object, expected: str) -> None:
        super().__init__(f"{field} is {_shown(value)}; expected {expected}")
        self.field = field
        self.value = value
        self.expected = expected

    def __reduce__(self) -> tuple[type[ConfigurationError], tuple[str, object, str]]:
        return type(self), (self.field, self.value, self.expected)


def expect(holds: bool, field: str, value: object, expected: str) -> None:
    """Raise ConfigurationError unless it holds."""
    if not holds:
        raise ConfigurationError(field, value, expected)


class Stop(BaseException):
    """The chain is over for good; `limit` and `used` are in the ceiling's own unit, which the text spells out."""

    ceiling: ClassVar[str] = "halt"

    def __init__(self, limit: int | None = None, used: int | None = None, detail: str = "") -> None:
        super().__init__(limit, used, detail)
        self.limit = limit
        self.used = used
        self.detail = detail

    def again(self) -> Stop:
        """Make an equal stop to raise at the next call, so that tracebacks do not pile up on one object."""
        return type(self)(self.limit, self.used, self.detail)

    def __str__(self) -> str:
        limit = "" if self.limit is None else f": limit {self._spelled(self.limit)}"
        used = "" if self.limit is None or self.used is None else f", used {self._spelled(self.used)}"
        return f"{self.ceiling}{limit}{used}{'; ' if self.detail else ''}{self.detail}"

    def _spelled(self, number: int) -> str:
        return str(number)


class CostStop(Stop):
    """G1: the cost ceiling; in nano-dollars."""

    ceiling = "cost"

    def _spelled(self, number: int) -> str:
        return f"${spelled(number, 2)}"


class StepStop(Stop):
    """G2: the step ceiling; a step is one dispatch, failed ones and retries included."""

    ceiling = "steps"


class ToolCallStop(Stop):
    """The ceiling on dispatches of kind "tool"."""

    ceiling = "tool_calls"


class RetryStop(Stop):
    """G3: the ceiling on retry dispatches in the whole chain."""

    ceiling = "retries"


class TimeStop(Stop):
    """G5: the deadline; in nanoseconds since the chain began."""

    ceiling = "time"

    def _spelled(self, number: int) -> str:
        return f"{spelled(number, 0)} s"


class RepeatStop(Stop):
    """The same action came too many times in a row."""

    ceiling = "repeats"


class HaltedStop(Stop):
    """Somebody halted the chain by hand; `detail` says why."""

    ceiling = "halt"


class ClosedStop(Stop):
    """The context was closed; it takes no more calls."""

    ceiling = "closed"


@dataclass(frozen=True, slots=True)
class Degradation:
    """What a denied caller can do instead of stopping: another model, a shorter context, a later try."""

    action: str
    fallback_model: str | None = None
    wait_ns: int = 0


class Denied(Exception):  # noqa: N818 - it is a verdict, not an error
    """A policy denied this one call; nothing was dispatched and the chain goes on (T6)."""

    def __init__(self, policy: str, reason: str, degradation: Degradation | None = None) -> None:
        super().__init__(policy, reason, degradation)
        self.policy = policy
        self.reason = reason
        self.degradation = degradation

    def __str__(self) -> str:
        return f"denied by {self.policy}: {self.reason}"


class Contended(Denied):
    """Only reservations in flight keep this call out (G1); it would fit once they settle."""


def _shown(value: object) -> str:
    """Show a value in an error without letting a hostile or huge one break the error."""
    try:
        text = repr(value)
    except BaseException:  # noqa: BLE001 - a value whose repr fails must still be refused by name
        text = f"<{type(value).__name__} without a repr>"
    return text if len(text) <= 80 else f"{text[:77]}..."  # noqa: PLR2004 - one line of a terminal
