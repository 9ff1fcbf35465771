"""The ledger of a chain: admission and settlement (G1, G2, G3, G5, halt)."""

# ruff: noqa: SLF001, ARG001 - a wrong variant of a method works on what the method works on, or forgets to

from __future__ import annotations

from threading import get_ident
from typing import TYPE_CHECKING, Any

from failstop.properties.mutants.mutant import Function, Method, Mutant
from failstop.runtime.chain.accounts import Chain
from failstop.runtime.chain.charging import Cost, charged_for
from failstop.runtime.chain.dispatch import Dispatch
from failstop.runtime.chain.ledger import Ledger, Ticket
from failstop.runtime.cores.ledger import (
    CONTENDED,
    COST,
    NO_ESTIMATE,
    Bounds,
    State,
    admit,
    settle,
    stop,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from failstop.runtime.chain.accounts import Owner

_states_after = Ledger._states_after
_settle = Ledger._settle
_open_chain = Chain.__init__

_LEDGER = "failstop.runtime.chain.ledger"


# Steps of the core ------------------------------------------------------------------------------------------------


def _one_step_too_many(
    state: State, bounds: Bounds, asked: int, tool: bool, retry: bool, now: int
) -> tuple[State, int]:
    max_cost, max_steps, max_tool_calls, max_retries, deadline = bounds
    if max_steps >= 0:
        max_steps = max_steps + 1
    return admit(state, (max_cost, max_steps, max_tool_calls, max_retries, deadline), asked, tool, retry, now)


def _tools_not_counted(
    state: State, bounds: Bounds, asked: int, tool: bool, retry: bool, now: int
) -> tuple[State, int]:
    return admit(state, bounds, asked, False, retry, now)


def _retries_per_call(state: State, bounds: Bounds, asked: int, tool: bool, retry: bool, now: int) -> tuple[State, int]:
    return admit(state, bounds, asked, tool, False, now)


def _after_the_deadline(
    state: State, bounds: Bounds, asked: int, tool: bool, retry: bool, now: int
) -> tuple[State, int]:
    return admit(state, bounds, asked, tool, retry, now - 1)


def _reservations_forgotten(
    state: State, bounds: Bounds, asked: int, tool: bool, retry: bool, now: int
) -> tuple[State, int]:
    committed, reserved, steps, tool_calls, retries, halt = state
    after, verdict = admit((committed, 0, steps, tool_calls, retries, halt), bounds, asked, tool, retry, now)
    committed, held, steps, tool_calls, retries, halt = after
    return (committed, reserved + held, steps, tool_calls, retries, halt), verdict


def _no_estimate_is_free(
    state: State, bounds: Bounds, asked: int, tool: bool, retry: bool, now: int
) -> tuple[State, int]:
    if asked == NO_ESTIMATE:
        asked = 0
    return admit(state, bounds, asked, tool, retry, now)


def _contended_halts(state: State, bounds: Bounds, asked: int, tool: bool, retry: bool, now: int) -> tuple[State, int]:
    after, verdict = admit(state, bounds, asked, tool, retry, now)
    if verdict == CONTENDED:
        return stop(state, COST), COST
    return after, verdict


def _float_money(state: State, bounds: Bounds, asked: int, tool: bool, retry: bool, now: int) -> tuple[State, int]:
    dollars = (state[0] + state[1]) / 10**9 + asked / 10**9
    if asked >= 0 and bounds[0] >= 0 and dollars > bounds[0] / 10**9:
        return stop(state, COST), COST
    return admit(state, bounds, asked, tool, retry, now)


def _released_without_charging(state: State, bounds: Bounds, held: int, cost: int) -> State:
    committed, _, _, _, _, _ = state
    _, reserved, steps, tool_calls, retries, halt = settle(state, bounds, held, cost)
    return (committed, reserved, steps, tool_calls, retries, halt)


def _overrun_forgotten(state: State, bounds: Bounds, held: int, cost: int) -> State:
    _, _, _, _, _, halt = state
    committed, reserved, steps, tool_calls, retries, _ = settle(state, bounds, held, cost)
    return (committed, reserved, steps, tool_calls, retries, halt)


def _overrun_cut_off(state: State, bounds: Bounds, held: int, cost: int) -> State:
    committed, reserved, steps, tool_calls, retries, halt = settle(state, bounds, held, cost)
    if 0 <= bounds[0] < committed:
        committed = bounds[0]
    return (committed, reserved, steps, tool_calls, retries, halt)


def _refused_but_not_stopped(state: State, code: int) -> State:
    return state


# The shell --------------------------------------------------------------------------------------------------------


def _decided_then_counted(
    self: Ledger,
    ticket: Ticket,
    owner: Owner,
    asked: int,
    tool: bool,
    retry: bool,
    label: str,
    waiter: Callable[[], None] | None = None,
) -> None:
    with self.chain, self.lock:
        self.chain.catch_up()
        now = self.now_ns()
        if asked == NO_ESTIMATE and len(self._path) > 1:
            asked = self._all_that_is_left(owner, tool, retry, now, waiter)
        root = self._path[-1]
        held = self._states_after(owner, asked, tool, retry, now, waiter)[-1][1] - root.state[1]
    # What was decided is taken to be so still.
    with self.chain, self.lock:
        for account in self._path:
            committed, reserved, steps, tool_calls, retries, halt = account.state
            account.state = (committed, reserved + held, steps + 1, tool_calls + tool, retries + retry, halt)
        call = root.state[2] + self.chain.released
        self._journal.admitted(owner, label, call, asked, held, tool, retry, now)
        ticket.held, ticket.start_ns, ticket.call = held, now, call
        if held:
            self.chain.holding[call] = get_ident()


def _time_read_before_the_lock(
    self: Ledger,
    ticket: Ticket,
    owner: Owner,
    asked: int,
    tool: bool,
    retry: bool,
    label: str,
    waiter: Callable[[], None] | None = None,
) -> None:
    now = self.now_ns()
    with self.chain, self.lock:
        self.chain.catch_up()
        _admitted_at(self, now, ticket, owner, asked, tool, retry, label, waiter)


def _posted_is_left_for_later(
    self: Ledger,
    ticket: Ticket,
    owner: Owner,
    asked: int,
    tool: bool,
    retry: bool,
    label: str,
    waiter: Callable[[], None] | None = None,
) -> None:
    with self.chain, self.lock:
        # It goes on without a look at what was asked for by those who must not wait.
        _admitted_at(self, self.now_ns(), ticket, owner, asked, tool, retry, label, waiter)


def _admitted_at(
    self: Ledger,
    now: int,
    ticket: Ticket,
    owner: Owner,
    asked: int,
    tool: bool,
    retry: bool,
    label: str,
    waiter: Callable[[], None] | None,
) -> None:
    if asked == NO_ESTIMATE and len(self._path) > 1:
        asked = self._all_that_is_left(owner, tool, retry, now, waiter)
    states = self._states_after(owner, asked, tool, retry, now, waiter)
    root = self._path[-1]
    held = states[-1][1] - root.state[1]
    call = states[-1][2] + self.chain.released
    self._journal.admitted(owner, label, call, asked, held, tool, retry, now)
    for account, state in zip(self._path, states, strict=True):
        account.state = state
    ticket.held, ticket.start_ns, ticket.call = held, now, call
    if held:
        self.chain.holding[call] = get_ident()


def _step_not_yet_counted(self: Ledger, *asked: Any) -> list[State]:
    states = _states_after(self, *asked)
    # Calls are numbered by the steps; the numbers must go on.
    self.chain.released += 1
    return [(*state[:2], state[2] - 1, *state[3:]) for state in states]


def _step_counted_at_the_end(
    self: Ledger, ticket: Ticket, cost: int, outcome: str, cost_known: bool, error: str | None
) -> None:
    for account in self._path:
        account.state = (*account.state[:2], account.state[2] + 1, *account.state[3:])
    self.chain.released -= 1
    _settle(self, ticket, cost, outcome, cost_known, error)


def _failures_not_counted(
    self: Ledger, ticket: Ticket, cost: int, outcome: str, cost_known: bool, error: str | None
) -> None:
    _settle(self, ticket, cost, outcome, cost_known, error)
    if error is not None:
        for account in self._path:
            account.state = (*account.state[:2], account.state[2] - 1, *account.state[3:])
        self.chain.released += 1


def _retry_not_yet_counted(self: Ledger, *asked: Any) -> list[State]:
    return [
        (*state[:4], account.state[4], state[5])
        for account, state in zip(self._path, _states_after(self, *asked), strict=True)
    ]


def _retry_counted_at_the_end(
    self: Ledger, ticket: Ticket, cost: int, outcome: str, cost_known: bool, error: str | None
) -> None:
    if isinstance(ticket, Dispatch) and ticket._retry:
        for account in self._path:
            account.state = (*account.state[:4], account.state[4] + 1, account.state[5])
    _settle(self, ticket, cost, outcome, cost_known, error)


def _unknown_cost_is_nothing(cost: Cost, value: object, held: int) -> tuple[int, bool]:
    paid, known = charged_for(cost, value, held)
    return (paid if known else 0), known


def _failure_is_free(self: Dispatch, error: BaseException, outcome: str = "error") -> None:
    self._end(0, outcome, True, error, None)


def _never_more_than_estimated(self: Dispatch, value: Any, outcome: Callable[[], str] = lambda: "ok") -> None:
    paid, known = charged_for(self.request.cost, value, self.held)
    self._end(min(paid, self.held), outcome(), known, None, value)


class NoLock:
    """What looks like a lock and keeps nobody out."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:  # noqa: ARG002 - as a lock takes them
        """Say that it is taken."""
        return True

    def release(self) -> None:
        """Do nothing."""

    def __enter__(self) -> bool:
        return True

    def __exit__(self, *_: object) -> None:
        pass


def _without_a_lock(self: Chain, *given: Any) -> None:
    _open_chain(self, *given)
    self.lock = NoLock()  # type: ignore[assignment]  # that is the mistake


MUTANTS = (
    Mutant(
        "one-step-too-many",
        "G2",
        "The ceiling is compared with the steps before this one, so one more than it is admitted.",
        (Function(admit, _one_step_too_many),),
        first=("failing-steps", "last-step"),
    ),
    Mutant(
        "tool-calls-not-counted",
        "G2",
        "A tool call is counted among the steps only.",
        (Function(admit, _tools_not_counted),),
        first=("last-tool-call",),
    ),
    Mutant(
        "check-then-act",
        "G2",
        "A call is decided on under the lock, and counted in a second section.",
        (Method(Ledger, "admit", _decided_then_counted),),
        concurrent=True,
        first=("last-step",),
    ),
    Mutant(
        "ledger-without-a-lock",
        "G2",
        "The ledger is used by several threads and has no lock.",
        (Method(Chain, "__init__", _without_a_lock),),
        concurrent=True,
        traced=(_LEDGER,),
        first=("last-step",),
    ),
    Mutant(
        "counted-after-the-call",
        "G2",
        "A step is counted once its call has ended, so calls in flight are none.",
        (
            Method(Ledger, "_states_after", _step_not_yet_counted),
            Method(Ledger, "_settle", _step_counted_at_the_end),
        ),
        concurrent=True,
        first=("last-step",),
    ),
    Mutant(
        "failures-not-counted",
        "G2",
        "A call that raised is no step.",
        (Method(Ledger, "_settle", _failures_not_counted),),
        first=("failing-steps",),
    ),
    Mutant(
        "retries-per-call",
        "G3",
        "Retries are bounded call by call, and the chain counts none.",
        (Function(admit, _retries_per_call),),
        first=("last-retry",),
    ),
    Mutant(
        "retry-counted-after-the-attempt",
        "G3",
        "A retry is counted once its attempt has ended.",
        (
            Method(Ledger, "_states_after", _retry_not_yet_counted),
            Method(Ledger, "_settle", _retry_counted_at_the_end),
        ),
        concurrent=True,
        first=("last-retry",),
    ),
    Mutant(
        "admitted-at-the-deadline",
        "G5",
        "The deadline is compared with `<` for `<=`, so a call is dispatched at it.",
        (Function(admit, _after_the_deadline),),
        first=("deadline-before-its-alarm",),
    ),
    Mutant(
        "time-read-before-the-lock",
        "G5",
        "The clock is read before the lock is taken, so a call that waited for the lock comes after the deadline.",
        (Method(Ledger, "admit", _time_read_before_the_lock),),
        concurrent=True,
        traced=(__name__,),
        first=("deadline-while-waiting",),
    ),
    Mutant(
        "reservations-forgotten",
        "G1",
        "The ceiling is compared with what is spent, and what calls in flight hold is forgotten.",
        (Function(admit, _reservations_forgotten),),
        concurrent=True,
        first=("last-cent",),
    ),
    Mutant(
        "no-estimate-holds-nothing",
        "G1",
        "A call whose price nobody knows holds nothing.",
        (Function(admit, _no_estimate_is_free),),
        first=("no-estimate",),
    ),
    Mutant(
        "contended-call-halts-the-chain",
        "G1",
        "A call that only reservations in flight keep out is refused for good.",
        (Function(admit, _contended_halts),),
        concurrent=True,
        first=("last-cent",),
    ),
    Mutant(
        "float-money",
        "G1",
        "Dollars are added up and compared as floats.",
        (Function(admit, _float_money),),
        first=("exact-to-the-ceiling",),
    ),
    Mutant(
        "settled-without-charging",
        "G1",
        "The settlement gives back what a call held, and charges nothing.",
        (Function(settle, _released_without_charging),),
        first=("settle-against-reserve",),
    ),
    Mutant(
        "overrun-forgotten",
        "G1",
        "A call that cost more than it held stops nothing.",
        (Function(settle, _overrun_forgotten),),
        first=("overrun-against-admission",),
    ),
    Mutant(
        "overrun-not-recorded",
        "G1",
        "What a call cost beyond the ceiling is not recorded, so that the books look right.",
        (Function(settle, _overrun_cut_off),),
        first=("overrun-against-admission",),
    ),
    Mutant(
        "unknown-cost-is-nothing",
        "G1",
        "A call whose cost cannot be read is charged nothing.",
        (Function(charged_for, _unknown_cost_is_nothing),),
    ),
    Mutant(
        "failure-is-free",
        "G1",
        "A call that raised is charged nothing.",
        (Method(Dispatch, "fail", _failure_is_free),),
        first=("failing-cost",),
    ),
    Mutant(
        "never-more-than-estimated",
        "G1",
        "A call is charged its estimate, and what it really cost beyond that is forgotten.",
        (Method(Dispatch, "succeed", _never_more_than_estimated),),
        first=("overrun-against-admission",),
    ),
    Mutant(
        "refused-but-not-stopped",
        "halt",
        "A ceiling refuses the call that meets it, and lets the next one try.",
        (Function(stop, _refused_but_not_stopped),),
        first=("halt-against-dispatch",),
    ),
    Mutant(
        "posted-halt-left-for-later",
        "halt",
        "A halt that found the lock taken waits until its holder tidies up, and calls get in before that.",
        (Method(Ledger, "admit", _posted_is_left_for_later),),
        concurrent=True,
        traced=(__name__, "failstop.runtime.chain.accounts"),
        first=("halt-against-dispatch",),
    ),
)
