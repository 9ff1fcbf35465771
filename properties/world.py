"""The witness: the world in which the tools of one run live, with its clock, its money and its side effects.

It counts inside the stub, so what it says does not depend on anything that the runtime under test says. For a target
with an injectable clock time is virtual; otherwise a planner's second is 50 real milliseconds.
"""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import threading
from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from failstop.planners.actions import CHAIN_STOPS
from failstop.planners.toolset import FOREVER, PAST_DEADLINE, TOOLS
from failstop.runtime.audit.canonical import fingerprint
from failstop.runtime.clock import NS_PER_SECOND, Clock, SystemClock, VirtualClock
from failstop.runtime.limits import UNLIMITED
from failstop.runtime.money import nano_up
from failstop.runtime.risk import RiskTier

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from failstop.planners.actions import Call
    from failstop.properties.gate import Gate
    from failstop.runtime.limits import Limits

REAL_SECONDS = 0.05
"""Real seconds that a planner's second lasts for a target whose clock is the machine's."""

_SLACK_NS = 20_000_000
_LATE_S = 0.2
_POLL_S = 0.001
_NO_DEADLINE_SECONDS = 60.0


class WorldOver(BaseException):
    """Raised in stubs that still run when the verdict is in; nothing waits for them any more."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What the world counted in one run; amounts in nano-dollars.

    explained_nano: how far spending may pass the ceiling, namely the excess over their estimates of the calls that were
    in flight when it did. irreversible: side effects that cannot be undone; unapproved: those that no person allowed.
    late: dispatches that began after the deadline. after_stop: dispatches of calls made after the first stop.
    overlap: the most dispatches that were going on at one time.
    """

    dispatches: int
    tool_calls: int
    retries: int
    spent_nano: int
    explained_nano: int
    irreversible: int
    unapproved: int
    late: int
    after_stop: int
    overlap: int


class Asked:
    """One call asked of a session, from before the runtime sees it until it has answered."""

    __slots__ = ("after_stop", "cost_nano", "dispatches", "excess_nano", "gate")

    def __init__(self, call: Call, gate: Gate | None, *, after_stop: bool) -> None:
        self.cost_nano = nano_up(call.cost)
        self.excess_nano = max(0, self.cost_nano - (0 if call.reserve is None else nano_up(call.reserve)))
        self.gate = gate
        self.after_stop = after_stop
        self.dispatches = 0


class World:
    """The surroundings of one run. `limits` are those to open the session with, their seconds in this world's time.

    hangs: a stub may never end, so a target that can leave calls behind has to be ready to.
    """

    def __init__(
        self, limits: Limits, *, seed: int = 0, real_time: bool = False, log: Path | None = None, hangs: bool = True
    ) -> None:
        self.real_time = real_time
        self.clock: Clock = SystemClock() if real_time else VirtualClock()
        self.random = Random(seed)  # noqa: S311 - chance must be replayable, not secret
        self.limits = _in_real_seconds(limits) if real_time else limits
        self.log = log
        self.hangs = hangs
        self.ended_in = ""
        self.hung = threading.Event()
        self.news = threading.Event()
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._deadline_ns = UNLIMITED
        self._in_flight: list[Asked] = []
        self._going_on = 0
        self._stopped: str | None = None
        self._raised: list[BaseException] = []
        self._asked_before: Counter[str] = Counter()
        self._effects: Counter[str] = Counter()
        self._allowed: Counter[str] = Counter()
        self._at_end: list[Callable[[], object]] = []
        self._seen = Seen(0, 0, 0, 0, 0, 0, 0, 0, 0, 0)

    # What the driver tells -----------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start the time of the run; called right after the session was opened, so never earlier than its own."""
        if self.limits.max_ns != UNLIMITED:
            self._deadline_ns = self.clock.now_ns() + self.limits.max_ns

    def ask(self, call: Call, gate: Gate | None) -> Asked:
        """Note that a call is put to the session now."""
        asked = Asked(call, gate, after_stop=self._stopped is not None)
        with self._lock:
            self._in_flight.append(asked)
        return asked

    def answered(self, asked: Asked) -> None:
        """Note that the session answered the call, whatever it said."""
        with self._lock:
            self._in_flight.remove(asked)
        if asked.gate is not None and not asked.dispatches:
            asked.gate.turn_back()

    def refused(self, stop: str) -> None:
        """Note a refusal; the first that ends the chain is the run's stop."""
        if stop in CHAIN_STOPS and self._stopped is None:
            self._stopped = stop

    def allow(self, tool: str, args: Mapping[Any, Any]) -> None:
        """Note that a person allowed this call, once."""
        self._allowed[fingerprint(tool, args)] += 1

    @property
    def stopped(self) -> str | None:
        """The first stop that ended the chain."""
        return self._stopped

    # What the stub tells -------------------------------------------------------------------------------------------

    def dispatch(self, asked: Asked, kind: str) -> bool:
        """Note that the stub really runs now, and its money is gone; True if it is the call's first dispatch."""
        with self._lock:
            self._count(asked, kind)
        return asked.dispatches == 1

    def ended(self) -> None:
        """Note that a dispatch is over."""
        with self._lock:
            self._going_on -= 1

    def witnessed(self, error: BaseException) -> BaseException:
        """Remember what a stub raises, and give it back."""
        self._raised.append(error)
        return error

    def raised_here(self, error: BaseException) -> bool:
        """Say whether this is the very error that a stub raised, or was raised from it."""
        chain: BaseException | None = error
        while chain is not None:
            if any(chain is known for known in self._raised):
                return True
            chain = chain.__cause__
        return False

    def pass_time(self, seconds: float) -> None:
        """Let seconds pass inside a stub; FOREVER and PAST_DEADLINE move past the deadline first."""
        if seconds in {FOREVER, PAST_DEADLINE}:
            self._pass_deadline()
            self._over.wait(None if seconds == FOREVER else _LATE_S)
        elif self.real_time:
            self._over.wait(seconds * REAL_SECONDS)
        else:
            self.clock.sleep_ns(int(seconds * NS_PER_SECOND))
        self._leave_if_over(seconds)

    async def apass_time(self, seconds: float) -> None:
        """Let seconds pass inside a stub on an event loop, which can cancel it; see pass_time."""
        if seconds in {FOREVER, PAST_DEADLINE}:
            self._pass_deadline()
            rounds = itertools.count() if seconds == FOREVER else range(int(_LATE_S / _POLL_S))
            for _ in itertools.takewhile(lambda _: not self._over.is_set(), rounds):
                await asyncio.sleep(_POLL_S)
        elif self.real_time:
            await asyncio.sleep(seconds * REAL_SECONDS)
        else:
            self.clock.sleep_ns(int(seconds * NS_PER_SECOND))
            await asyncio.sleep(0)
        self._leave_if_over(seconds)

    # What the tools see --------------------------------------------------------------------------------------------

    @property
    def seconds_left(self) -> float:
        """See Surroundings."""
        if self._deadline_ns == UNLIMITED:
            return _NO_DEADLINE_SECONDS
        left = (self._deadline_ns - self.clock.now_ns()) / NS_PER_SECOND
        return left / REAL_SECONDS if self.real_time else left

    def effect(self, name: str, args: Mapping[Any, Any]) -> None:
        """See Surroundings."""
        if name in TOOLS and TOOLS[name].tier == RiskTier.IRREVERSIBLE:
            with self._lock:
                self._effects[fingerprint(name, args)] += 1

    def attempts(self, name: str) -> int:
        """See Surroundings."""
        with self._lock:
            self._asked_before[name] += 1
            return self._asked_before[name] - 1

    # The end -------------------------------------------------------------------------------------------------------

    def at_end(self, callback: Callable[[], object]) -> None:
        """Run `callback` when the verdict is in and no stub runs any more; for what a target opened."""
        self._at_end.append(callback)

    def seen(self) -> Seen:
        """Give what was counted so far."""
        with self._lock:
            unapproved = self._effects - self._allowed
            return dataclasses.replace(self._seen, irreversible=self._effects.total(), unapproved=unapproved.total())

    def end(self) -> None:
        """Let go of stubs that still hang."""
        self._over.set()
        for callback in self._at_end:
            callback()

    def _pass_deadline(self) -> None:
        self.hung.set()
        self.news.set()
        past = max(self.seconds_left, 0) + 1
        if self.real_time:
            self._over.wait(past * REAL_SECONDS)
        else:
            self.clock.sleep_ns(int(past * NS_PER_SECOND))

    def _leave_if_over(self, seconds: float) -> None:
        if self._over.is_set() and seconds != PAST_DEADLINE:
            raise WorldOver

    def _count(self, asked: Asked, kind: str) -> None:
        seen = self._seen
        self._going_on += 1
        asked.dispatches += 1
        spent = seen.spent_nano + asked.cost_nano
        ceiling = self.limits.max_cost_nano
        crosses = 0 <= ceiling < spent and seen.spent_nano <= ceiling
        self._seen = dataclasses.replace(
            seen,
            dispatches=seen.dispatches + 1,
            tool_calls=seen.tool_calls + (kind == "tool"),
            retries=seen.retries + (asked.dispatches > 1),
            spent_nano=spent,
            explained_nano=sum(each.excess_nano for each in self._in_flight) if crosses else seen.explained_nano,
            late=seen.late + self._is_late(asked),
            after_stop=seen.after_stop + asked.after_stop,
            overlap=max(seen.overlap, self._going_on),
        )

    def _is_late(self, asked: Asked) -> bool:
        if asked.gate is not None and asked.gate.gave_up:
            # The others of its fan-out moved the time on before it arrived: that says nothing of when it was let in.
            return False
        slack_ns = _SLACK_NS if self.real_time else 0
        return UNLIMITED < self._deadline_ns <= self.clock.now_ns() - slack_ns


def _in_real_seconds(limits: Limits) -> Limits:
    if limits.max_seconds is None:
        return limits
    return dataclasses.replace(limits, max_seconds=float(limits.max_seconds) * REAL_SECONDS)
