"""What is put under test: a target opens sessions, and every dispatch of a planner goes through one.

An adapter says what its runtime promises and where that is written down, turns each refusal of the runtime into
`Refused`, and runs the stub that it is given exactly when the runtime runs it. It counts nothing: the world does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from failstop.planners.actions import STOPS, Refused
from failstop.runtime.risk import RiskTier

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from failstop.planners.catalogue import Planner
    from failstop.properties.driver import Driver, Ending
    from failstop.properties.world import World
    from failstop.runtime.limits import Limits
    from failstop.runtime.money import Amount

__all__ = ["STOPS", "AnyTarget", "DrivingTarget", "Refused", "Reply", "Session", "Target", "Work"]


@dataclass(frozen=True, slots=True)
class Reply:
    """What a stub returns: the value, and the dollars that it reports, which may be a lie, NaN, text or None."""

    value: object
    cost: object = 0


@dataclass(frozen=True, slots=True)
class Work:
    """One dispatch asked of a session; `run` is the stub, `arun` its asyncio twin where the planner wants one."""

    tool: str
    args: Mapping[str, object]
    run: Callable[[], Reply]
    arun: Callable[[], Awaitable[Reply]] | None
    kind: str = "tool"
    tier: RiskTier = RiskTier.READ
    reserve: Amount | None = None
    retries: int = 0
    idempotent: bool = True


class Session(Protocol):
    """One run under limits."""

    def turn(self, fingerprint: str) -> None:
        """Begin a planner's turn, for loop detection; may raise Refused."""

    def call(self, work: Work) -> object:
        """Dispatch; gives the reply's value, raises Refused, or what the stub raised."""

    async def acall(self, work: Work) -> object:
        """Dispatch `work.arun` on the running event loop; otherwise as call."""

    def child(self) -> Session:
        """Open a sub-agent's session under the same ceilings; may raise Refused."""

    def approve(self, request: object) -> object:
        """Say yes, as a person, to the request of a Refused("approval") and run that very call."""

    def close(self) -> None:
        """End the run; later calls must be refused."""


class Described(Protocol):
    """What every target says of itself; `real_time` says that its clock cannot be injected.

    `promises` maps a promise's name to where the runtime's own documentation makes it, in a few words. A target may
    have `not_offered` besides: the same for what it does not promise, with the reason.
    """

    name: str
    promises: Mapping[str, str]
    real_time: bool

    def versions(self) -> dict[str, str]:
        """Give the versions to put on record; raises ModuleNotFoundError if the runtime is not installed."""


class Target(Described, Protocol):
    """A runtime under test, call by call: the harness plays the planner."""

    def open(self, limits: Limits, world: World) -> Session:
        """Start a run; raises Refused("configuration") for limits that the runtime rejects."""


@runtime_checkable
class DrivingTarget(Described, Protocol):
    """A runtime under test that has a loop of its own, which plays the planner."""

    def drive(self, planner: Planner, driver: Driver, world: World) -> Ending:
        """Play a planner in `world` to its end; raises NotOffered for one with a move that the loop lacks."""


AnyTarget: TypeAlias = Target | DrivingTarget
