"""A tenant's runs and money, one step after another (quota); the steps are the functions of `runtime.cores.quota`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from failstop.properties.references.chain import DONE, Advance
from failstop.runtime.clock import NS_PER_SECOND
from failstop.runtime.cores.quota import INITIAL, NO_BOUND, STARTED, State, release, roll, settle, start

if TYPE_CHECKING:
    from collections.abc import Iterator

HOUR_NS = 3600 * NS_PER_SECOND
DAY_NS = 24 * HOUR_NS


@dataclass(frozen=True, slots=True)
class Start:
    """Start a run that costs at most so many nano-dollars; None: nobody knows."""

    run: str
    reserve: int | None = 0


@dataclass(frozen=True, slots=True)
class Settle:
    """A run has ended; cost: nano-dollars, or None for all that it held."""

    run: str
    cost: int | None = None


@dataclass(frozen=True, slots=True)
class GiveBack:
    """A run was started for nothing."""

    run: str


@dataclass(frozen=True, slots=True)
class Look:
    """Somebody looks at what is used: (runs this hour, nano-dollars spent this day, reserved)."""


QuotaAction: TypeAlias = Start | Settle | GiveBack | Advance | Look


class Tenant(NamedTuple):
    """The core's state, the wall time in nanoseconds, and the runs in flight: (run, hour, day, held)."""

    state: State
    now: int
    runs: frozenset[tuple[str, int, int, int]]


class QuotaReference:
    """The reference; limits None: none. Not exact: a start may be refused for whatever reason."""

    def __init__(self, max_runs: int | None, max_nano: int | None, wall_ns: int, *, exact: bool) -> None:
        self.initial = Tenant(INITIAL, wall_ns, frozenset())
        self._limits = (-1 if max_runs is None else max_runs, -1 if max_nano is None else max_nano)
        self._exact = exact

    def outcomes(self, state: Tenant, action: QuotaAction) -> Iterator[tuple[Tenant, object]]:
        """See Reference."""
        tenant = state._replace(state=roll(state.state, state.now // HOUR_NS, state.now // DAY_NS))
        match action:
            case Start():
                yield from self._started(tenant, action)
            case Settle() | GiveBack():
                yield _ended(tenant, action)
            case Advance():
                yield state._replace(now=state.now + action.duration_ns), DONE
            case Look():
                _, runs, _, spent, reserved = tenant.state
                yield tenant, (runs, spent, reserved)

    def _started(self, tenant: Tenant, action: Start) -> Iterator[tuple[Tenant, object]]:
        asked = NO_BOUND if action.reserve is None else action.reserve
        after, verdict, held = start(tenant.state, self._limits, asked)
        if verdict == STARTED:
            run = (action.run, after[0], after[2], held)
            yield tenant._replace(state=after, runs=tenant.runs | {run}), "started"
        if verdict != STARTED or not self._exact:
            yield tenant, "denied"


def _ended(tenant: Tenant, action: Settle | GiveBack) -> tuple[Tenant, bool]:
    """End a run, once: a second end changes nothing and is told so."""
    for run in tenant.runs:
        name, hour, day, held = run
        if name == action.run:
            if isinstance(action, GiveBack):
                after = release(tenant.state, hour, day, held)
            else:
                after = settle(tenant.state, day, held, held if action.cost is None else action.cost)
            return tenant._replace(state=after, runs=tenant.runs - {run}), True
    return tenant, False
