"""Runtimes that are wrong on purpose. The suite must find each of them out, or it could not find out anything."""

from __future__ import annotations

import threading
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from failstop.planners.catalogue import PROMISES
from failstop.properties.target import Refused
from failstop.runtime.money import nano_up
from failstop.runtime.risk import RiskTier

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from failstop.properties.target import Session, Work
    from failstop.properties.world import World
    from failstop.runtime.limits import Limits

EVERYTHING = MappingProxyType(dict.fromkeys(PROMISES, "claimed by a canary"))


class Unlimited:
    """A session that runs whatever it is asked to, as often as it is asked to."""

    def turn(self, fingerprint: str) -> None:
        """Allow it."""

    def call(self, work: Work) -> object:
        """Run it, and run it again if it fails."""
        for attempt in range(work.retries + 1):
            try:
                return work.run().value
            except Exception:
                if attempt == work.retries:
                    raise
        raise AssertionError

    async def acall(self, work: Work) -> object:
        """Await it."""
        assert work.arun is not None
        return (await work.arun()).value

    def child(self) -> Session:
        """Give another one like it."""
        return Unlimited()

    def approve(self, request: object) -> object:
        """Nothing is ever asked."""
        raise Refused("approval", "nobody asked", request)

    def close(self) -> None:
        """Go on all the same."""


class Refusing(Unlimited):
    """A session that refuses everything, in the name of safety."""

    def call(self, work: Work) -> object:
        """Refuse."""
        raise Refused("denied", f"no {work.tool} today")

    async def acall(self, work: Work) -> object:
        """Refuse."""
        raise Refused("denied", f"no {work.tool} today")


class CheckThenAct(Unlimited):
    """Checks the steps, runs the call, and counts it when it is over: right for one caller, wrong for two."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._steps = 0

    def call(self, work: Work) -> object:
        """Check, act, count."""
        with self._lock:
            self._check()
        value = super().call(work)
        with self._lock:
            self._steps += 1
        return value

    async def acall(self, work: Work) -> object:
        """Check, act, count."""
        self._check()
        value = await super().acall(work)
        self._steps += 1
        return value

    def _check(self) -> None:
        if self._limits.max_steps is not None and self._steps >= self._limits.max_steps:
            raise Refused("steps")


class Forgetful(Unlimited):
    """Counts under a lock before it acts, but forgets that it has stopped: the next cheaper call is let in."""

    def __init__(self, limits: Limits) -> None:
        self._left_nano = limits.max_cost_nano

    def call(self, work: Work) -> object:
        """Refuse what does not fit, and nothing else."""
        asked_nano = 0 if work.reserve is None else nano_up(work.reserve)
        if asked_nano > self._left_nano:
            raise Refused("cost")
        self._left_nano -= asked_nano
        return super().call(work)


class OneTooFew(Unlimited):
    """Stops, with the right stop, one step before the limit: over-cautious, and no ceiling is broken by that."""

    def __init__(self, limits: Limits) -> None:
        self._left = (limits.max_steps or 0) - 1

    def call(self, work: Work) -> object:
        """Count down."""
        if self._left <= 0:
            raise Refused("steps")
        self._left -= 1
        return super().call(work)


class ByName(Unlimited):
    """Asks a person about a tool, and takes the yes for everything that the tool is ever called with."""

    def __init__(self) -> None:
        self._approved: set[str] = set()

    def call(self, work: Work) -> object:
        """Ask the first time."""
        if work.tier is RiskTier.IRREVERSIBLE and work.tool not in self._approved:
            raise Refused("approval", request=work)
        return super().call(work)

    def approve(self, request: object) -> object:
        """Remember the name."""
        work = cast("Work", request)
        self._approved.add(work.tool)
        return self.call(work)


class ForEver(ByName):
    """Asks about each call, but runs an approved one as often as it is told to."""

    def call(self, work: Work) -> object:
        """Ask every time."""
        if work.tier is RiskTier.IRREVERSIBLE:
            raise Refused("approval", request=work)
        return Unlimited.call(self, work)

    def approve(self, request: object) -> object:
        """Run it, once more."""
        return Unlimited.call(self, cast("Work", request))


class Crashing(Unlimited):
    """An adapter with a bug of its own."""

    def call(self, work: Work) -> object:
        """Break."""
        raise KeyError(work.tool)


class Waiting(Unlimited):
    """A runtime that waits for itself."""

    def call(self, work: Work) -> object:
        """Wait until the test lets go."""
        LET_GO.wait()
        raise Refused("halt", work.tool)


LET_GO = threading.Event()


class Canary:
    """A target that promises everything and opens what it is told to open."""

    real_time = False

    def __init__(
        self, name: str, opened: Callable[[Limits], Session], promises: Mapping[str, str] = EVERYTHING
    ) -> None:
        self.name = name
        self.promises = promises
        self._opened = opened

    def versions(self) -> dict[str, str]:
        """Say nothing."""
        return {}

    def open(self, limits: Limits, world: World) -> Session:
        """Open one."""
        return self._opened(limits)


UNLIMITED = Canary("unlimited", lambda _: Unlimited())
REFUSING = Canary("refusing", lambda _: Refusing())
CHECK_THEN_ACT = Canary("check-then-act", CheckThenAct)
ONE_TOO_FEW = Canary("one-too-few", OneTooFew)
FORGETFUL = Canary("forgetful", Forgetful)
BY_NAME = Canary("by-name", lambda _: ByName())
FOR_EVER = Canary("for-ever", lambda _: ForEver())
CRASHING = Canary("crashing", lambda _: Crashing())
WAITING = Canary("waiting", lambda _: Waiting())
