"""What a published protocol is played on: a target, and the parts that stand beside its chains."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from failstop.properties.subjects.still import StillClock
from failstop.runtime.clock import NS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Callable

    from failstop.properties.target import Session, Target
    from failstop.properties.world import World
    from failstop.runtime.limits import Limits


class SetClock(StillClock):
    """A clock whose wall can be set."""

    def __init__(self) -> None:
        # It begins small, so that seconds as floats are exact enough.
        super().__init__(1000 * NS_PER_SECOND)
        self._set_ns = 0

    def wall_ns(self) -> int:
        """See Clock."""
        return super().wall_ns() + self._set_ns

    def set_wall(self, by_ns: int) -> None:
        """Move the wall alone, forward or back."""
        self._set_ns += by_ns


class Peer(Protocol):
    """One runtime under a published protocol; every part refuses by raising Refused."""

    @property
    def target(self) -> Target:
        """The target whose chains and breakers are played on."""

    def open(self, limits: Limits, world: World) -> Session:
        """Begin a chain; threads that it starts for itself do not run while this lasts."""

    def budget(self, limit_usd: int) -> Callable[[int], bool]:
        """Make a budget: spend so many dollars, and say whether that was accepted."""

    def guard(self, max_steps: int) -> Callable[[], bool]:
        """Make a step guard: ask it, and say whether the agent may go on."""

    def container(self, max_retries: int) -> Callable[[Callable[[], object]], object]:
        """Make a retry container that does not wait between its attempts."""

    def pipeline(self, max_cost: int, max_steps: int, clock: SetClock) -> Callable[[int, Callable[[], object]], object]:
        """Make a pipeline of a breaker that is half-open, a budget and a guard, for a cost in dollars and its stub."""

    def configure(self, field: str, value: float) -> None:
        """Make limits in which only this field, max_steps or max_cost_usd, is out of the ordinary."""
