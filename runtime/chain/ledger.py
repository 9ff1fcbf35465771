"""The ledger of one chain: the lock, the clock and the audit lines around the pure steps of `cores.ledger`.

reserve -> dispatch -> settle(actual) | release. Admission is one critical section, settlement the second. A child's
ledger with narrower limits shares its root's lock, and its admissions pass every ledger up to the root or none.
"""

from __future__ import annotations

from threading import get_ident
from typing import TYPE_CHECKING, NoReturn, Protocol, cast

from failstop.runtime.chain.accounts import Account, AuditSink, Chain, Owner, Snapshot, closed_stop
from failstop.runtime.chain.journal import Journal
from failstop.runtime.cores import ledger as core
from failstop.runtime.limits import UNLIMITED, Limits
from failstop.runtime.money import Money
from failstop.runtime.stops import ConfigurationError, Contended, RepeatStop, Stop

if TYPE_CHECKING:
    from collections.abc import Callable

    from failstop.runtime.chain.repeats import RepeatCounter
    from failstop.runtime.clock import Clock


class Ticket(Protocol):
    """What an admission fills: the number of the call, nano-dollars held, time of admission.

    settled: how many ledgers of its path it was settled at.
    """

    call: int
    held: int
    start_ns: int
    settled: int


class Queued(Contended):
    """The call was kept out and its waiter is registered; a signal inside the runtime."""


class Ledger:
    """Counts and money of one chain or of a narrower part of it; every method is atomic, from any thread."""

    __slots__ = ("_journal", "_path", "account", "alone", "chain", "lock", "now_ns")

    def __init__(self, chain: Chain, path: tuple[Account, ...]) -> None:
        self.chain = chain
        self._path = path
        self.account = path[0]
        # Kept beside the chain for the call path, which reads them at every call.
        self.lock = chain.lock
        self.now_ns = chain.now_ns
        self.alone = len(path) == 1 and chain.audit is None
        self._journal = Journal(chain, path[-1])

    @classmethod
    def root(cls, name: str, limits: Limits, clock: Clock, audit: AuditSink | None = None) -> Ledger:
        """Open the ledger of a new chain; its time starts now."""
        chain = Chain(clock, audit)
        chain.names.add(name)
        ledger = cls(chain, (Account(name, limits, chain.origin_ns),))
        ledger._journal.opened(limits)
        return ledger

    def child(self, owner: Owner, name: str, limits: Limits | None, *, named: bool) -> Ledger:
        """Open a ledger for a child of `owner`: this one, or one under it with limits of its own.

        Raises ConfigurationError for a name that was given before: in a log, two contexts of one name are one.
        """
        with self.chain, self.lock:
            if named and ("/" in name or name in self.chain.names):
                raise ConfigurationError("name", name, "a name of no other context of this chain, without a slash")
            now = self.now_ns()
            self._journal.child(owner, name, limits, now)
            if named:
                self.chain.names.add(name)
            return self if limits is None else Ledger(self.chain, (Account(name, limits, now), *self._path))

    @property
    def deadline_ns(self) -> int:
        """The monotonic time of the first deadline here or at a ledger above, or UNLIMITED."""
        deadlines = [account.bounds[4] for account in self._path if account.bounds[4] != UNLIMITED]
        return min(deadlines, default=UNLIMITED)

    @property
    def stop(self) -> Stop | None:
        """Why no more is admitted: the stop of the highest ledger that has one, as at admission; None while it runs."""
        stops = (account.stop or account.halted for account in reversed(self._path))
        return next((stop for stop in stops if stop is not None), None)

    @property
    def retries_left(self) -> bool:
        """False if a retry would be refused; advice, since others may retry meanwhile."""
        return self.stop is None and not any(0 <= each.bounds[3] <= each.state[4] for each in self._path)

    def snapshot(self) -> Snapshot:
        """Give one consistent view: no admission or settlement is half done in it."""
        with self.chain, self.lock:
            stop = self.stop
            return Snapshot(
                *self.account.state[:5],
                stop=None if stop is None else stop.ceiling,
                elapsed_ns=self.now_ns() - self.account.started_ns,
            )

    def refuse_if_over(self, owner: Owner) -> None:
        """Raise the stop of a chain that is over, at its deadline too, or of a context that was closed."""
        with self.chain, self.lock:
            self.chain.catch_up()
            now = self.now_ns()
            for account in reversed(self._path):
                verdict = core.standing(account.state, account.bounds, now)
                if verdict != core.ADMITTED:
                    self._refuse(account, verdict, verdict, core.NO_ESTIMATE, now)
            if owner.closed:
                raise closed_stop(owner)

    def admit(
        self,
        ticket: Ticket,
        owner: Owner,
        asked: int,
        tool: bool,
        retry: bool,
        label: str,
        waiter: Callable[[], None] | None = None,
    ) -> None:
        """Admit one dispatch and fill its ticket; raises Stop or Contended.

        `asked` is nano-dollars or NO_ESTIMATE. With a `waiter`, Queued is raised instead of Contended, and the waiter
        is called once, when the call may fit.
        """
        with self.chain, self.lock:
            self.chain.catch_up()
            now = self.now_ns()
            if asked == core.NO_ESTIMATE and len(self._path) > 1:
                asked = self._all_that_is_left(owner, tool, retry, now, waiter)
            states = self._states_after(owner, asked, tool, retry, now, waiter)
            root = self._path[-1]
            held = states[-1][1] - root.state[1]
            call = states[-1][2] + self.chain.released
            self._journal.admitted(owner, label, call, asked, held, tool, retry, now)
            ticket.held, ticket.start_ns = held, now
            for account, state in zip(self._path[:-1], states[:-1], strict=True):
                account.state = state
            # In one go: no interrupt comes between two stores, so the root never holds what no ticket knows of.
            root.state, ticket.call = states[-1], call
            if held:
                self.chain.holding[call] = get_ident()

    def settle(
        self, ticket: Ticket, cost: int, outcome: str, cost_known: bool, error: str | None, *, posted: bool
    ) -> None:
        """Charge an ended dispatch in full; a cost above what it held stops every ledger on its path with a ceiling.

        posted: never wait for the lock, which the calling thread may hold.
        """
        if posted:
            self.chain.post(lambda: self._settle(ticket, cost, outcome, cost_known, error))
            return
        try:
            with self.chain, self.lock:
                self._settle(ticket, cost, outcome, cost_known, error)
        except BaseException:
            # An interrupt in the middle: the ledgers that are left are settled all the same.
            if 0 < ticket.settled < len(self._path):
                self.settle(ticket, cost, outcome, cost_known, error, posted=True)
            raise

    def settle_interrupted(self, call: int, held: int, cost: int) -> None:
        """Settle a quick call that was interrupted while it settled; never waits for the lock."""

        def settle() -> None:
            self.account.state = core.settle(self.account.state, self.account.bounds, held, cost)
            self.chain.holding.pop(call, None)
            self.after_settlement(held, cost)

        self.chain.post(settle)

    def _settle(self, ticket: Ticket, cost: int, outcome: str, cost_known: bool, error: str | None) -> None:
        for account in self._path[ticket.settled :]:
            account.state = core.settle(account.state, account.bounds, ticket.held, cost)
            ticket.settled += 1
        self.chain.holding.pop(ticket.call, None)
        try:
            self._journal.settled(ticket.call, ticket.held, cost, outcome, cost_known, error)
        finally:
            self.after_settlement(ticket.held, cost)

    def charge(self, owner: Owner, cost: int, label: str) -> None:
        """Record, in full, nano-dollars spent outside of any dispatch; NO_ESTIMATE is all that is left."""
        with self.chain, self.lock:
            if cost == core.NO_ESTIMATE:
                cost = max(0, self._left())
            for account in self._path:
                account.state = core.charge(account.state, account.bounds, cost)
            try:
                self._journal.charged(owner, label, cost)
            finally:
                self._stop_overrun(f"{label} cost {Money(cost)} beyond what was left")

    def after_settlement(self, held: int, cost: int) -> None:
        """Stop on an overrun and wake the calls that wait; the caller holds the lock."""
        try:
            if cost > held:
                self._stop_overrun(f"a call that held {Money(held)} cost {Money(cost)}")
        finally:
            self._wake()

    def release(self, call: int, held: int, tool: bool, retry: bool) -> None:
        """Undo the admission of a dispatch that provably never began."""
        with self.chain, self.lock:
            for account in self._path:
                account.state = core.release(account.state, held, tool, retry)
            self.chain.released += 1
            self.chain.holding.pop(call, None)
            try:
                self._journal.released(call, held, tool, retry)
            finally:
                self._wake()

    def halt(self, code: int, detail: str = "") -> None:
        """Stop by hand (HALTED), or at the deadline (TIME); an earlier stop stays. Never waits for the lock."""
        account = self.account
        stop = account.stop_for(code, self.now_ns(), detail)
        if account.halted is None:
            account.halted = stop
        self.chain.post(lambda: self._halt(account, code, stop))

    def turn(self, owner: Owner, repeats: RepeatCounter, fingerprint: str) -> None:
        """Count one planner turn; raises the stop of a chain that is over, or RepeatStop."""
        with self.chain, self.lock:
            if self.stop is None and not owner.closed:
                self._journal.turned(owner, fingerprint)
                if not repeats.turn(fingerprint):
                    limit = repeats.max_repeats
                    self._halt(self.account, core.REPEATS, RepeatStop(limit, limit))
            if self.stop is not None:
                raise self.stop.again()
            if owner.closed:
                raise closed_stop(owner)

    def close(self, owner: Owner) -> None:
        """Take no more calls of `owner`; its calls in flight still settle. Never waits for the lock."""
        owner.closed = True
        self.chain.post(lambda: self._closed(owner))

    def _states_after(
        self, owner: Owner, asked: int, tool: bool, retry: bool, now: int, waiter: Callable[[], None] | None
    ) -> list[core.State]:
        """What every account comes to, for the caller to take over; a stop anywhere on the path beats a wait."""
        states = []
        verdict, decider, code = core.ADMITTED, self.account, core.ADMITTED
        for account in reversed(self._path):
            state, its_verdict = core.admit(account.state, account.bounds, asked, tool, retry, now)
            joined = core.joined(verdict, its_verdict)
            if joined != verdict:
                verdict, decider, code = joined, account, state[5]
            states.append(state)
        verdict = core.unless_closed(verdict, owner.closed)
        if verdict == core.CLOSED:
            raise closed_stop(owner)
        if verdict == core.CONTENDED:
            self._keep_out(decider, asked, waiter)
        if verdict != core.ADMITTED:
            self._refuse(decider, verdict, code, asked, now)
        states.reverse()
        return states

    def _all_that_is_left(
        self, owner: Owner, tool: bool, retry: bool, now: int, waiter: Callable[[], None] | None
    ) -> int:
        """What a call without an estimate takes: the least that any ceiling on its path has left."""
        self._states_after(owner, core.NO_ESTIMATE, tool, retry, now, waiter)
        return self._left()

    def _left(self) -> int:
        """What every ceiling on the path has left; NO_CEILING, which is also NO_ESTIMATE, if there is none."""
        rest = core.NO_CEILING
        for account in self._path:
            rest = core.narrower(rest, core.left(account.state, account.bounds))
        return rest

    def _refuse(self, account: Account, verdict: int, code: int, asked: int, now: int) -> NoReturn:
        if account.stop is None:
            self._halt(account, code, account.stop_for(verdict, now, _asked(asked) if verdict == core.COST else ""))
        raise cast("Stop", account.stop).again()

    def _keep_out(self, account: Account, asked: int, waiter: Callable[[], None] | None) -> NoReturn:
        reason = f"{_asked(asked)} while calls in flight hold {Money(account.state[1])}"
        if waiter is None:
            raise Contended("cost", reason)
        self.chain.waiters.append(waiter)
        raise Queued("cost", reason)

    def _closed(self, owner: Owner) -> None:
        try:
            self._journal.closed(owner)
        finally:
            self._wake()

    def _halt(self, account: Account, code: int, stop: Stop) -> None:
        account.state = core.stop(account.state, code)
        try:
            if account.stop is None:
                account.stop = stop
                self._journal.stopped(account, stop)
        finally:
            self._wake()

    def _stop_overrun(self, detail: str) -> None:
        for account in self._path:
            if account.stop is None and account.state[5] == core.OVERRUN:
                self._halt(account, core.OVERRUN, account.stop_for(core.OVERRUN, 0, detail))

    def _wake(self) -> None:
        waiters = self.chain.waiters
        while waiters:
            waiters.pop()()


def _asked(asked: int) -> str:
    if asked == core.NO_ESTIMATE:
        return "a call without an estimate asked for all that is left (say cost=0 for a free call, or give reserve=)"
    return f"a call asked for {Money(asked)}"
