"""What the steps of each published protocol are on a peer, and what is counted inside its stubs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar

from failstop.properties.peers.peer import SetClock
from failstop.properties.subject import NotOffered
from failstop.properties.target import OffersBreaker, Refused, Reply, Work
from failstop.properties.world import World
from failstop.runtime.clock import NS_PER_SECOND
from failstop.runtime.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from failstop.properties.peers.peer import Peer
    from failstop.properties.peers.way import Step, Way

_FRACTION = 2.5
_NEVER_ENOUGH = 1000
"""Retries that a caller is ready for: only the chain's ceiling is to end them."""


class Stage:
    """A peer with the limits of one way.

    begins: the actions that begin a call; ends: those that end one, by a failure if in `failures`, unheard of if in
    `losses`; during: those that happen with the action before. counts: dispatches, those that ended well (`succeeded`),
    those of a call that had run before (`retries`), those after the deadline (`late`) and dollars (`billed`).
    """

    begins: ClassVar[frozenset[str]] = frozenset()
    ends: ClassVar[frozenset[str]] = frozenset()
    failures: ClassVar[frozenset[str]] = frozenset({"fails"})
    losses: ClassVar[frozenset[str]] = frozenset({"goes_away"})
    during: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, peer: Peer, way: Way) -> None:
        self.peer = peer
        self.way = way
        self.clock = SetClock()
        self.counts: Counter[str] = Counter()

    def open(self) -> None:
        """Make what is played on."""

    def close(self) -> None:
        """Be done with it."""

    def dispatch(self, step: Step, stub: Callable[[], object], *, lost: bool) -> None:
        """Make a call; raises Refused, or what the stub raises."""
        raise NotImplementedError

    def act(self, step: Step) -> str:
        """Take a step that is no part of a call, and say what came of it."""
        if step.action == "time_passes":
            self.clock.advance_ns(step["time"] * NS_PER_SECOND)
            return f"{step['time']} s pass"
        if step.action == "clock_is_set":
            self.clock.set_wall(step["by"] * NS_PER_SECOND)
            return f"the machine's wall clock is set by {step['by']} s"
        raise NotImplementedError(step.action)

    def entered(self, *, again: bool) -> Any:
        """Count that a stub really runs; what is given back is given to `left`."""
        self.counts["dispatches"] += 1
        self.counts["retries"] += again

    def left(self, mark: Any, step: Step | None, *, fails: bool) -> None:  # noqa: ARG002 - for other stages
        """Count that it is over; step: what ended it, if not the end of all."""
        self.counts["succeeded"] += not fails

    def reply(self, step: Step | None) -> object:  # noqa: ARG002 - for other stages
        """Give what the stub returns."""
        return Reply("value", 0)


class ChainStage(Stage):
    """Calls of one chain; a unit of cost is a dollar and one of time a second."""

    begins = frozenset({"asks", "begins"})
    ends = frozenset({"succeeds", "fails", "returns"})

    def open(self) -> None:
        """See Stage."""
        way = dict(self.way.limits)
        self._limits = Limits(
            max_cost_usd=way.get("max_cost"),
            max_steps=way.get("max_steps"),
            max_retries=way.get("max_retries_total"),
            max_seconds=way.get("timeout"),
        )
        self._world = World(self._limits, real_time=self.peer.target.real_time, hangs=False)
        self._world.clock = self.clock
        self._began_ns = self.clock.now_ns()
        self._session = self.peer.open(self._limits, self._world)

    def close(self) -> None:
        """See Stage."""
        self._world.end()

    def dispatch(self, step: Step, stub: Callable[[], object], *, lost: bool) -> None:  # noqa: ARG002 - chains lose none
        """See Stage; without a price only where prices matter."""
        priced = "max_cost" in dict(self.way.limits)
        retries = _NEVER_ENOUGH if step.action == "begins" else 0
        reserve = None if priced else 0
        self._session.call(Work("read_page", {}, stub, None, "llm", reserve=reserve, retries=retries))  # type: ignore[arg-type]

    def entered(self, *, again: bool) -> Any:
        """See Stage."""
        super().entered(again=again)
        if self._limits.max_seconds is not None:
            self.counts["late"] += self.clock.now_ns() - self._began_ns > self._limits.max_ns

    def left(self, mark: Any, step: Step | None, *, fails: bool) -> None:
        """See Stage."""
        super().left(mark, step, fails=fails)
        self.counts["billed"] += self._cost(step)

    def reply(self, step: Step | None) -> object:
        """See Stage."""
        return Reply("value", self._cost(step))

    @staticmethod
    def _cost(step: Step | None) -> int:
        return dict(step.chosen).get("cost", 0) if step is not None else 0


class BreakerStage(Stage):
    """Calls through one breaker; counts besides: the most test requests at once, those let in beside one, denials."""

    begins = frozenset({"asks"})
    ends = frozenset({"succeeds", "fails", "goes_away"})

    def open(self) -> None:
        """See Stage."""
        if not isinstance(self.peer.target, OffersBreaker):
            raise NotOffered("it has no breaker()")
        threshold, recovery = self.way.limit("threshold"), self.way.limit("recovery")
        self._guarded: Any = self.peer.target.breaker(threshold, recovery, 10, self.clock)
        self._opened = False
        self._testing = 0

    def dispatch(self, step: Step, stub: Callable[[], object], *, lost: bool) -> None:  # noqa: ARG002 - all are alike
        """See Stage."""
        try:
            (self._guarded.lose if lost else self._guarded.call)(stub)
        except Refused:
            self.counts["denied"] += 1
            raise

    def entered(self, *, again: bool) -> bool:
        """See Stage; gives whether the breaker has opened before, so that this request tests."""
        super().entered(again=again)
        if self._opened:
            self._testing += 1
            self.counts["tests"] += 1
            self.counts["tests at once"] = max(self.counts["tests at once"], self._testing)
        return self._opened

    def left(self, mark: Any, step: Step | None, *, fails: bool) -> None:
        """See Stage."""
        super().left(mark, step, fails=fails)
        self._testing -= bool(mark)
        self._opened = self._opened or fails


class PipelineStage(Stage):
    """Calls through one pipeline, which asks all of its policies in one go."""

    begins = frozenset({"asks_breaker"})
    ends = frozenset({"succeeds"})
    during = frozenset({"asks_budget", "asks_guard"})

    def open(self) -> None:
        """See Stage."""
        self._call = self.peer.pipeline(self.way.limit("max_cost"), self.way.limit("max_steps"), self.clock)

    def dispatch(self, step: Step, stub: Callable[[], object], *, lost: bool) -> None:  # noqa: ARG002 - none is lost
        """See Stage."""
        try:
            self._call(step["cost"], stub)
        except Refused as refusal:
            self.counts["denied by the breaker"] += refusal.stop == "breaker"
            raise


class ContainerStage(Stage):
    """Executions by one retry container."""

    begins = frozenset({"begins"})
    ends = frozenset({"succeeds", "fails"})

    def open(self) -> None:
        """See Stage."""
        self._execute = self.peer.container(self.way.limit("max_retries"))

    def dispatch(self, step: Step, stub: Callable[[], object], *, lost: bool) -> None:  # noqa: ARG002 - none is lost
        """See Stage."""
        self._execute(stub)


class BudgetStage(Stage):
    """Spending from one budget; counts what was accepted after a refusal."""

    def open(self) -> None:
        """See Stage."""
        self._spend = self.peer.budget(self.way.limit("limit"))

    def act(self, step: Step) -> str:
        """See Stage."""
        accepted = self._spend(step["amount"])
        self.counts["accepted"] += accepted
        self.counts["refused"] += not accepted
        self.counts["accepted after a refusal"] += accepted and self.counts["refused"] > 0
        return f"${step['amount']} {'accepted' if accepted else 'refused'}"


class GuardStage(Stage):
    """An agent that asks one step guard before each step."""

    def open(self) -> None:
        """See Stage."""
        self._ask = self.peer.guard(self.way.limit("max_steps"))

    def act(self, step: Step) -> str:  # noqa: ARG002 - there is one action
        """See Stage."""
        more = self._ask()
        self.counts["steps"] += more
        self.counts["refused"] += not more
        return "goes on, and takes a step" if more else "is told to stop"


class ConfigurationStage(Stage):
    """The making of limits; counts those made."""

    _VALUES: ClassVar[tuple[float, ...]] = (float("nan"), float("inf"), 2, _FRACTION, True)

    def act(self, step: Step) -> str:
        """See Stage."""
        field = "max_steps" if step["is_count"] else "max_cost_usd"
        value = self._VALUES[step["value"]]
        if step["negative"]:
            value = -value
        try:
            self.peer.configure(field, value)
        except Refused:
            self.counts["refused"] += 1
            return f"{field}={value} refused"
        self.counts["made"] += 1
        return f"{field}={value} accepted"
