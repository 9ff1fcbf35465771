"""What is put under test: a target opens sessions, and every dispatch of a planner goes through one.

An adapter says what its runtime promises and where that is written down, turns each refusal of the runtime into
`Refused`, and runs the stub that it is given exactly when the runtime runs it. It counts nothing: the world does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from failstop.planners.actions import STOPS, Refused
from failstop.planners.catalogue import PROMISES
from failstop.runtime.risk import RiskTier
from failstop.runtime.stops import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from failstop.planners.catalogue import Planner
    from failstop.properties.driver import Driver, Ending
    from failstop.properties.world import World
    from failstop.runtime.clock import Clock
    from failstop.runtime.limits import Limits
    from failstop.runtime.money import Amount

__all__ = [
    "STOPS",
    "AnyTarget",
    "DrivingTarget",
    "Refused",
    "Reply",
    "Session",
    "Target",
    "Work",
    "check_described",
    "check_versions",
]


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


@runtime_checkable
class HaltingSession(Protocol):
    """A session that can be stopped from outside."""

    def halt(self) -> None:
        """Stop the chain for good."""


@runtime_checkable
class CountingSession(Protocol):
    """A session that shows its counters, as one consistent view."""

    def counters(self) -> tuple[object, ...]:
        """Give (nano-dollars committed, reserved, steps, tool calls, retries, the stop's name or None)."""


@runtime_checkable
class NarrowingSession(Protocol):
    """A session whose children can have limits of their own."""

    def narrower(self, limits: Limits) -> Session:
        """Open a child that draws on the same ceilings and on these; may raise Refused."""


class Run(Protocol):
    """One started run of a tenant."""

    def settle(self, cost_nano: int | None) -> bool:
        """Charge nano-dollars, or all that it held; says whether this call ended the run."""

    def release(self) -> bool:
        """Give everything back; says whether this call ended the run."""


class Quota(Protocol):
    """One tenant's quota."""

    def start(self, reserve_nano: int | None) -> Run:
        """Start a run that costs at most so much, None: nobody knows; raises Refused("denied")."""

    def used(self) -> tuple[int, int, int] | None:
        """Give (runs this hour, nano-dollars spent this day, reserved), or None if it shows none."""


@runtime_checkable
class OffersQuota(Protocol):
    """A target with a quota of runs an hour and nano-dollars a day, over UTC's hours and days; None: no limit."""

    def quota(self, max_runs_per_hour: int | None, max_nano_per_day: int | None, clock: Clock) -> Quota:
        """Make one for one tenant."""


class Approval(Protocol):
    """A person's approval of one call."""

    def answer(self, approved: bool) -> str:
        """Take a person's answer: "granted" if it was taken, else why not."""

    def use(self, digest: str) -> str:
        """Spend it on the call of this digest: "granted" if that may be dispatched, else why not."""

    def pending(self) -> bool:
        """Say whether it still waits for an answer."""


@runtime_checkable
class OffersGrant(Protocol):
    """A target whose approvals can be had one by one."""

    def grant(self, digest: str, expires_ns: int | None, clock: Clock) -> Approval:
        """Ask for a yes to the call of this digest, which expires so many nanoseconds from now, None: never."""


class Log(Protocol):
    """An audit log."""

    def append(self, kind: str, data: Mapping[str, object]) -> int | None:
        """Put an event on record and give its number, if it has one; raises Refused("denied")."""

    def read(self) -> Sequence[tuple[str, Mapping[str, object]]]:
        """Read the events, as (kind, data); raises if what is there is not one whole chain."""

    def close(self) -> None:
        """Take no more events."""


@runtime_checkable
class OffersAudit(Protocol):
    """A target with an audit log."""

    def audit(self, folder: Path) -> Log:
        """Begin one in an empty folder."""


class Budget(Protocol):
    """A budget that stands alone; a permit is what `check` gave."""

    def spend(self, nano: int) -> bool:
        """Commit nano-dollars if they fit."""

    def check(self, reserve_nano: int | None) -> object:
        """Hold what a call may cost at most, None: nobody knows; raises Refused("denied")."""

    def release(self, permit: object) -> None:
        """Give a hold back."""

    def report(self, permit: object, cost_nano: int | None) -> None:
        """Settle a hold at its cost, None: nobody knows."""

    def reset(self) -> None:
        """Begin anew."""

    def counters(self) -> tuple[int, int, int, bool] | None:
        """Give (nano-dollars spent, reserved, calls, whether it is shut), or None if it shows none."""


@runtime_checkable
class OffersBudget(Protocol):
    """A target with a budget outside of chains."""

    def budget(self, limit_nano: int | None) -> Budget:
        """Make one."""


class Steps(Protocol):
    """A step guard that stands alone; a permit is what `check` gave."""

    def step(self, result: str | None) -> bool:
        """Take one step and keep the result."""

    def check(self) -> object:
        """Take the step of a call; raises Refused("denied")."""

    def release(self, permit: object) -> None:
        """Give a step back."""

    def reset(self) -> None:
        """Begin anew."""

    def counters(self) -> tuple[int, object] | None:
        """Give (steps taken, the newest result), or None if it shows none."""


@runtime_checkable
class OffersSteps(Protocol):
    """A target with a step guard outside of chains."""

    def steps(self, max_steps: int | None) -> Steps:
        """Make one."""


class Guarded(Protocol):
    """What lets a call through to its stub, or not."""

    def call(self, stub: Callable[[], object]) -> object:
        """Run the stub and give or raise what it does; raises Refused("breaker" | "steps" | "denied") instead."""


@runtime_checkable
class LosingGuarded(Protocol):
    """One through which a call can go whose result is never heard of."""

    def lose(self, stub: Callable[[], object]) -> object:
        """As call, but nobody is told how the stub ended."""


@runtime_checkable
class ReleasingGuarded(Protocol):
    """One that takes back what a call took that was let in and then not dispatched."""

    def give_up(self, let_in: Callable[[], None]) -> None:
        """Ask for a call, tell that it was let in, and give everything back; raises Refused as call does."""


@runtime_checkable
class CountingGuarded(Protocol):
    """One that shows its state."""

    def counters(self) -> tuple[object, ...]:
        """Give ("closed" | "open" | "half-open",), with the steps taken before that where steps are counted."""


@runtime_checkable
class OffersBreaker(Protocol):
    """A target with a circuit breaker; a call that raises no Exception but a BaseException is neither way of ending.

    A target in real time is not given its clock but made to read it, in `time`.
    """

    def breaker(self, failure_threshold: int, recovery_s: float, probe_lease_s: float, clock: Clock) -> Guarded:
        """Make one; without a lease a lost probe may keep its slot for ever."""


@runtime_checkable
class OffersPipeline(Protocol):
    """A target with a step guard and a circuit breaker in one pipeline, where a denial by one leaves no trace."""

    def pipeline(
        self, max_steps: int, failure_threshold: int, recovery_s: float, probe_lease_s: float, clock: Clock
    ) -> Guarded:
        """Make one."""


class Described(Protocol):
    """What every target says of itself; `real_time` says that its clock cannot be injected.

    A target that does to the letter what the references of this package do has an `exact` that is True; others are
    only held to their ceilings.

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


def check_described(target: object) -> None:
    """Raise ConfigurationError for what does not say of itself what a target has to, in the types of Described."""
    name, told = getattr(target, "name", None), "expected of every target, see Described"
    if not isinstance(name, str) or not name.strip():
        raise ConfigurationError("name", name, f"a text that is not empty; {told}")
    if not isinstance(getattr(target, "real_time", None), bool):
        raise ConfigurationError("real_time", getattr(target, "real_time", None), f"True or False; {told}")
    for field in ("promises", "not_offered"):
        _check_promises(field, getattr(target, field, {} if field == "not_offered" else None))
    for field, method in (("versions", "versions"), ("open or drive", "drive" if hasattr(target, "drive") else "open")):
        if not callable(getattr(target, method, None)):
            raise ConfigurationError(field, getattr(target, method, None), f"a method; {told}")


def check_versions(versions: object) -> None:
    """Raise ConfigurationError for versions that no record can hold."""
    if not isinstance(versions, dict) or not all(isinstance(text, str) for pair in versions.items() for text in pair):
        raise ConfigurationError("versions()", versions, "a dict of name -> version, both texts")


def _check_promises(field: str, promises: object) -> None:
    if not isinstance(promises, Mapping):
        raise ConfigurationError(field, promises, "a mapping of a promise's name to where it is made")
    for promise, place in promises.items():
        if promise not in PROMISES:
            raise ConfigurationError(field, promise, f"names from {', '.join(PROMISES)}")
        if not isinstance(place, str):
            raise ConfigurationError(f"{field}[{promise!r}]", place, "a text that says where it is made")
