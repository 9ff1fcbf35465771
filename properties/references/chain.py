"""A chain and its children, one step after another: what a context admits, and what it comes to (G1, G2, G3, G5).

The steps are the functions of `runtime.cores.ledger` that run; what is tested is the lock, the tickets, the waiting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from failstop.runtime.cores.ledger import (
    ADMITTED,
    CLOSED,
    CONTENDED,
    COST,
    HALTED,
    INITIAL,
    NO_CEILING,
    NO_ESTIMATE,
    OVERRUN,
    REPEATS,
    RETRIES,
    STEPS,
    TIME,
    TOOL_CALLS,
    Bounds,
    State,
    admit,
    joined,
    left,
    narrower,
    settle,
    stop,
    unless_closed,
)
from failstop.runtime.limits import UNLIMITED, Limits, count_or_unlimited

if TYPE_CHECKING:
    from collections.abc import Iterator

TOLD = {
    ADMITTED: "admitted",
    COST: "cost",
    OVERRUN: "cost",
    STEPS: "steps",
    TOOL_CALLS: "tool_calls",
    RETRIES: "retries",
    TIME: "time",
    REPEATS: "repeats",
    HALTED: "halt",
    CLOSED: "closed",
    CONTENDED: "denied",
}
"""What a caller is told, by the verdict of the core."""

DONE = "done"
"""The answer to what is always done."""


class Admit(NamedTuple):
    """A dispatch is asked for; asked: nano-dollars or NO_ESTIMATE. call: "lane.number"."""

    call: str
    context: str
    asked: int
    tool: bool
    retry: bool


class Settle(NamedTuple):
    """A dispatch ended; cost: nano-dollars, or None for one that raised, which is charged all that it held."""

    call: str
    cost: int | None


class Close(NamedTuple):
    """A context takes no more calls, and neither do its children."""

    context: str


class Halt(NamedTuple):
    """Somebody stops the chain of a context."""

    context: str


class Advance(NamedTuple):
    """Time passes, in nanoseconds."""

    duration_ns: int


class Look(NamedTuple):
    """Somebody looks at the counters that a context draws on.

    They are (committed, reserved, steps, tool_calls, retries, stop or None), the stop being the highest above it.
    """

    context: str = ""


ChainAction: TypeAlias = Admit | Settle | Close | Halt | Advance | Look


class _Account(NamedTuple):
    bounds: Bounds
    state: State


class Chain(NamedTuple):
    """The accounts by the name of the context that has limits of its own; who is closed; what each call holds."""

    accounts: tuple[tuple[str, _Account], ...]
    closed: frozenset[str]
    held: frozenset[tuple[str, str, int]]
    now: int


def bounds_of(limits: Limits) -> Bounds:
    """Give the bounds of a chain that began at time zero."""
    return (
        limits.max_cost_nano,
        count_or_unlimited(limits.max_steps),
        count_or_unlimited(limits.max_tool_calls),
        count_or_unlimited(limits.max_retries),
        UNLIMITED if limits.max_ns == UNLIMITED else limits.max_ns,
    )


class ChainReference:
    """The reference of a root named "" and of children named by paths such as "/1"; children: their own limits."""

    def __init__(self, limits: Limits, children: tuple[tuple[str, Limits | None], ...] = ()) -> None:
        own = [("", limits), *((name, theirs) for name, theirs in children if theirs is not None)]
        accounts = tuple((name, _Account(bounds_of(each), INITIAL)) for name, each in own)
        self.initial = Chain(accounts, frozenset(), frozenset(), 0)
        self._names = ("", *(name for name, _ in children))

    def outcomes(self, state: Chain, action: ChainAction) -> Iterator[tuple[Chain, object]]:
        """See Reference."""
        match action:
            case Admit():
                yield from self._admitted(state, action)
            case Settle():
                yield self._settled(state, action), DONE
            case Close():
                below = {name for name in self._names if _path(name, action.context)}
                yield state._replace(closed=state.closed | below), DONE
            case Halt():
                name = next(name for name, _ in reversed(state.accounts) if _path(action.context, name))
                accounts = dict(state.accounts)
                account = accounts[name]
                accounts[name] = account._replace(state=stop(account.state, HALTED))
                yield state._replace(accounts=tuple(accounts.items())), DONE
            case Advance():
                yield _advanced(state, action.duration_ns), DONE
            case Look():
                yield state, self.counters(state, action.context)

    def counters(self, state: Chain, context: str = "") -> tuple[object, ...]:
        """Give what an observer of a context sees."""
        path = [account.state for name, account in state.accounts if _path(context, name)]
        halt = next((each[5] for each in path if each[5] != ADMITTED), ADMITTED)
        return (*path[-1][:5], None if halt == ADMITTED else TOLD[halt])

    def _admitted(self, state: Chain, action: Admit) -> Iterator[tuple[Chain, str]]:
        path = [(name, account) for name, account in state.accounts if _path(action.context, name)]
        asked = action.asked
        verdict, decider, code, after = _asked(path, asked, action, state.now)
        if asked == NO_ESTIMATE and len(path) > 1 and verdict == ADMITTED:
            asked = NO_CEILING
            for _, account in path:
                asked = narrower(asked, left(account.state, account.bounds))
            verdict, decider, code, after = _asked(path, asked, action, state.now)
        verdict = unless_closed(verdict, action.context in state.closed)
        accounts = dict(state.accounts)
        if verdict == ADMITTED:
            for name, its_state in after.items():
                accounts[name] = accounts[name]._replace(state=its_state)
            held = accounts[""].state[1] - state.accounts[0][1].state[1]
            holding = state.held | {(action.call, action.context, held)}
            yield state._replace(accounts=tuple(accounts.items()), held=holding), TOLD[ADMITTED]
        elif verdict == CONTENDED:
            # It waits for what others hold; for what its own lane holds it would wait for ever.
            if any(held and _lane(call) == _lane(action.call) for call, _, held in state.held):
                yield state, TOLD[CONTENDED]
        elif verdict == CLOSED:
            yield state, TOLD[CLOSED]
        else:
            accounts[decider] = accounts[decider]._replace(state=stop(accounts[decider].state, code))
            yield state._replace(accounts=tuple(accounts.items())), TOLD[verdict]

    def _settled(self, state: Chain, action: Settle) -> Chain:
        call, context, held = next(each for each in state.held if each[0] == action.call)
        cost = held if action.cost is None else action.cost
        accounts = tuple(
            (name, account._replace(state=settle(account.state, account.bounds, held, cost)))
            if _path(context, name)
            else (name, account)
            for name, account in state.accounts
        )
        return state._replace(accounts=accounts, held=state.held - {(call, context, held)})


def _asked(
    path: list[tuple[str, _Account]], asked: int, action: Admit, now: int
) -> tuple[int, str, int, dict[str, State]]:
    """Ask every ledger of a path, the root first: (verdict, who decided, its halt, the states if all admit)."""
    verdict, decider, code, after = ADMITTED, "", ADMITTED, {}
    for name, account in path:
        state, its_verdict = admit(account.state, account.bounds, asked, action.tool, action.retry, now)
        combined = joined(verdict, its_verdict)
        if combined != verdict:
            verdict, decider, code = combined, name, state[5]
        after[name] = state
    return verdict, decider, code, after


def _advanced(state: Chain, duration_ns: int) -> Chain:
    """Let time pass; an alarm at its deadline stops what is not closed, even if nobody asks."""
    now = state.now + duration_ns
    accounts = tuple(
        (name, account._replace(state=stop(account.state, TIME)))
        if 0 <= account.bounds[4] <= now and name not in state.closed
        else (name, account)
        for name, account in state.accounts
    )
    return state._replace(accounts=accounts, now=now)


def _lane(call: str) -> str:
    return call.partition(".")[0]


def _path(context: str, name: str) -> bool:
    """Say whether a context is another or stands below it."""
    return context == name or context.startswith(f"{name}/")
