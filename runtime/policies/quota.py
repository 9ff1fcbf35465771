"""What one tenant may start in an hour and spend in a day, over all of its runs."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple, Self, TypeAlias

from failstop.runtime.clock import NS_PER_SECOND, SystemClock
from failstop.runtime.cores import quota as core
from failstop.runtime.limits import UNLIMITED
from failstop.runtime.money import MAX_CEILING, Amount, Money, nano_down, nano_up
from failstop.runtime.stops import ConfigurationError, Contended, Degradation, Denied

if TYPE_CHECKING:
    from types import TracebackType

    from failstop.runtime.clock import Clock

HOUR_NS = 3600 * NS_PER_SECOND
DAY_NS = 24 * HOUR_NS

Tenant: TypeAlias = str | tuple[str, ...]
"""An authenticated identity, a text or a tuple of texts; two are the same only if equal in every character."""


class QuotaUsage(NamedTuple):
    """What a tenant has used in the current windows: runs this hour, money this day."""

    runs: int
    spent: Money
    reserved: Money


class QuotaManager:
    """Counts the runs and reserves the money of each tenant, in one step a start; None means no limit, 0 none allowed.

    Windows are the hours and days of UTC, measured by the monotonic clock from the wall time at construction: a wall
    clock that is set later gives nobody a fresh window. A run belongs to the windows in which it starts: its cost is
    counted once, there, even if it ends after them. Counts live in this process only. Memory is bounded by the tenants
    of one day. Raises ConfigurationError for limits that cannot be used.
    """

    def __init__(
        self,
        *,
        max_runs_per_hour: int | None = None,
        max_usd_per_day: Amount | None = None,
        clock: Clock | None = None,
    ) -> None:
        max_spend = UNLIMITED if max_usd_per_day is None else nano_down(max_usd_per_day, "max_usd_per_day")
        self._limits: core.Limits = (_checked_runs(max_runs_per_hour), max_spend)
        self._clock = SystemClock() if clock is None else clock
        self._latest_ns = self._clock.wall_ns()
        self._wall_offset_ns = self._latest_ns - self._clock.now_ns()
        self._swept_hour = 0
        self._lock = threading.RLock()
        self._tenants: dict[Tenant, core.State] = {}

    def start(self, tenant: Tenant, reserve: Amount | None = None) -> QuotaTicket:
        """Count a run and hold `reserve` dollars for it; None has no bound and holds all that is left of the day.

        Raises Denied naming limit, use and when it frees: Contended if only runs in flight hold the money, and for a
        tenant that is missing or no Tenant.
        """
        _check_tenant(tenant)
        asked = core.NO_BOUND if reserve is None else nano_up(reserve, "reserve")
        with self._lock:
            state, verdict, held = core.start(self._rolled(tenant), self._limits, asked)
            if verdict == core.STARTED:
                self._tenants[tenant] = state
                hour, _, day, _, _ = state
                return QuotaTicket(self, tenant, hour, day, held)
            latest_ns = self._latest_ns
        raise _denial(state, self._limits, asked, verdict, latest_ns)

    def usage(self, tenant: Tenant) -> QuotaUsage:
        """What the tenant has used in the current windows; raises Denied for what is no Tenant."""
        _check_tenant(tenant)
        with self._lock:
            _, runs, _, spent, reserved = self._rolled(tenant)
        return QuotaUsage(runs, Money(spent), Money(reserved))

    def _ceiling(self, ticket: QuotaTicket) -> Money | None:
        _, max_spend = self._limits
        return None if max_spend < 0 else Money(ticket.held_nano)

    def _settle(self, ticket: QuotaTicket, cost_nano: int | None) -> bool:
        with self._lock:
            if not ticket.open:
                return False
            ticket.open = False
            cost = ticket.held_nano if cost_nano is None else cost_nano
            self._tenants[ticket.tenant] = core.settle(self._rolled(ticket.tenant), ticket.day, ticket.held_nano, cost)
            return True

    def _release(self, ticket: QuotaTicket) -> bool:
        with self._lock:
            if not ticket.open:
                return False
            ticket.open = False
            state = self._rolled(ticket.tenant)
            self._tenants[ticket.tenant] = core.release(state, ticket.hour, ticket.day, ticket.held_nano)
            return True

    def _rolled(self, tenant: Tenant) -> core.State:
        hour, day = self._windows()
        return core.roll(self._tenants.get(tenant, core.INITIAL), hour, day)

    def _windows(self) -> tuple[int, int]:
        """Give the current hour and day, the latest ever seen; the first call in an hour drops what is over.

        Then no run has started in the hour yet, so a tenant without money in the day has nothing to remember.
        """
        self._latest_ns = max(self._latest_ns, self._clock.now_ns() + self._wall_offset_ns)
        hour, day = self._latest_ns // HOUR_NS, self._latest_ns // DAY_NS
        if hour > self._swept_hour:
            self._swept_hour = hour
            rolled = {tenant: core.roll(state, hour, day) for tenant, state in self._tenants.items()}
            self._tenants = {tenant: state for tenant, state in rolled.items() if _has_used_money(state)}
        return hour, day


class QuotaTicket:
    """One started run; settle it once with what it cost, or release it if nothing ran.

    As a context manager it charges the whole hold if the block ends without either: unknown is not free. A ticket that
    is lost keeps its hold until the day is over.
    """

    __slots__ = ("_manager", "day", "held_nano", "hour", "open", "tenant")

    def __init__(self, manager: QuotaManager, tenant: Tenant, hour: int, day: int, held_nano: int) -> None:
        self._manager = manager
        self.tenant = tenant
        self.hour = hour
        self.day = day
        self.held_nano = held_nano
        self.open = True

    @property
    def ceiling(self) -> Money | None:
        """The most that the run may spend: its hold, or None where the tenant's money has no limit."""
        return self._manager._ceiling(self)  # noqa: SLF001 - one module, one lock

    def settle(self, actual: Amount | None = None) -> bool:
        """Charge `actual` dollars, in full even above the hold; None is unknown and charges the hold.

        True if this call closed the ticket; a second one changes nothing. Raises ConfigurationError.
        """
        return self._manager._settle(self, None if actual is None else nano_up(actual, "actual"))  # noqa: SLF001 - one module, one lock

    def release(self) -> bool:
        """Give the run and the money back; True if this call closed the ticket."""
        return self._manager._release(self)  # noqa: SLF001 - one module, one lock

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.settle()


def _denial(state: core.State, limits: core.Limits, asked: int, verdict: int, now_ns: int) -> Denied:
    _, runs, _, spent, reserved = state
    max_runs, max_spend = limits
    if verdict == core.RUNS:
        used, never, window_ns = f"{runs} of {max_runs} runs an hour are used", max_runs == 0, HOUR_NS
    else:
        used = f"of {Money(max_spend)} a day, {Money(spent)} is spent and {Money(reserved)} reserved"
        never, window_ns = max(asked, 1) > max_spend, DAY_NS
        used = f"{used}; the run asks for {'all that is left' if asked < 0 else Money(asked)}"
    if never:
        return Denied("quota", f"{used}; no window has room for it")
    wait_ns = window_ns - now_ns % window_ns
    frees = f"{used}; frees in {wait_ns / NS_PER_SECOND:.3f} s"
    if verdict == core.CONTENDED:
        return Contended("quota", f"{frees}, or when runs in flight settle below it", Degradation("wait"))
    return Denied("quota", frees, Degradation("wait", wait_ns=wait_ns))


def _has_used_money(state: core.State) -> bool:
    _, _, _, spent, reserved = state
    return spent > 0 or reserved > 0


def _check_tenant(tenant: object) -> None:
    """Deny what names nobody; exact types only, since a subclass can call two names equal."""
    parts = tenant if type(tenant) is tuple else (tenant,)
    if not parts or not all(type(part) is str and part for part in parts):
        raise Denied("quota", "no tenant: expected a text or a tuple of texts, none of them empty")


def _checked_runs(value: object) -> int:
    if value is None:
        return UNLIMITED
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_CEILING:
        raise ConfigurationError("max_runs_per_hour", value, f"a whole number from 0 to {MAX_CEILING}, or None")
    return value
