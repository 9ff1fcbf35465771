"""What the machines draw: for each subject its settings, and the moves that can come next.

Hypothesis shrinks towards what stands first, so the plainest setting and the plainest move stand there.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from hypothesis import strategies as st

from failstop.properties.machines import chain_moves
from failstop.properties.machines.weighted import weighted
from failstop.properties.references import audit, budget, grant, quota, steps
from failstop.properties.references.chain import Advance
from failstop.properties.subjects import breaker, context, policies
from failstop.properties.subjects.audit import AuditSubject
from failstop.properties.subjects.breaker import BreakerSubject
from failstop.properties.subjects.budget import BudgetSubject
from failstop.properties.subjects.chain import LetPass
from failstop.properties.subjects.grant import ApprovalSubject, GrantSubject
from failstop.properties.subjects.pipeline import PipelineSubject
from failstop.properties.subjects.quota import QuotaSubject
from failstop.properties.subjects.set_back import SetBackSubject
from failstop.properties.subjects.steps import StepsSubject
from failstop.properties.target import LosingGuarded, ReleasingGuarded
from failstop.runtime.limits import Limits
from failstop.runtime.money import Money

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hypothesis.strategies import SearchStrategy

    from failstop.properties.machines.replaying import Difference
    from failstop.properties.subject import Instrument, Move, Subject
    from failstop.properties.target import AnyTarget

Subjects: TypeAlias = "Callable[[AnyTarget], SearchStrategy[Subject]]"
Moves: TypeAlias = "Callable[[AnyTarget, Instrument, Subject, Sequence[Move]], SearchStrategy[Move]]"
"""From the target, what it opened for the subject, and the moves so far."""


@dataclass(frozen=True, slots=True)
class Machine:
    """One subject's programs.

    guarantee: what is kept if nothing is found. promises: what a target must promise to be held to any of it, see
    PROMISES. allowed: whether a move is one that may be drawn. blamed: what a difference breaks, None: the guarantee.
    share: of the usual number of examples, for subjects whose every move costs much or whose space is small.
    """

    name: str
    tells: str
    guarantee: str
    subjects: Subjects
    moves: Moves
    promises: tuple[str, ...] = ()
    allowed: Callable[[AnyTarget, Subject, Move], bool] = lambda _target, _subject, _move: True
    blamed: Callable[[Difference, Subject], str] | None = None
    share: float = 1.0


COUNTS = st.sampled_from((None, 0, 1, 2, 3, 5, 10**6))
"""Ceilings of counts."""

AMOUNTS = st.sampled_from((None, 0, 1, 2, 5, 10, 10**15))
"""Ceilings of nano-dollars."""

_PRICES = st.integers(0, 7)
_BOUNDS = st.one_of(_PRICES, st.none())
_SECOND_NS = 10**9
_HOUR_NS = 3600 * _SECOND_NS


@cache
def _budget_moves(calls: int) -> SearchStrategy[Move]:
    spend = st.builds(budget.Spend, _PRICES)
    new = st.builds(budget.Check, st.just(f"{calls + 1}"), _BOUNDS)
    reset = st.just(budget.Reset())
    if not calls:
        return weighted((3, spend), (6, new), (1, reset))
    old = _names(calls)
    given_back = st.builds(budget.Release, old)
    return weighted((3, spend), (6, new), (1, reset), (3, given_back), (4, st.builds(budget.Report, old, _BOUNDS)))


@cache
def _steps_moves(calls: int) -> SearchStrategy[Move]:
    step = st.builds(steps.Step, st.sampled_from((None, "one", "two")))
    new = st.builds(steps.Check, st.just(f"{calls + 1}"))
    reset = st.just(steps.Reset())
    if not calls:
        return weighted((3, step), (5, new), (1, reset))
    return weighted((3, step), (5, new), (1, reset), (4, st.builds(steps.Release, _names(calls))))


@cache
def _quota_moves(runs: int) -> SearchStrategy[Move]:
    new = st.builds(quota.Start, st.just(f"{runs + 1}"), _BOUNDS)
    times = st.sampled_from((1, _HOUR_NS - 1, _HOUR_NS, 24 * _HOUR_NS - 1, 24 * _HOUR_NS, 24 * 400 * _HOUR_NS))
    later = st.builds(Advance, times)
    if not runs:
        return weighted((4, new), (1, later))
    old = _names(runs)
    return weighted(
        (4, new), (2, later), (3, st.builds(quota.Settle, old, _BOUNDS)), (1, st.builds(quota.GiveBack, old))
    )


@cache
def _approval_moves(asked: int) -> SearchStrategy[Move]:
    new: SearchStrategy[Move] = st.builds(grant.Ask, st.just(f"{asked + 1}"))
    return weighted((1, new), (1, st.builds(grant.Approve, _names(asked)))) if asked else new


@cache
def _policy_moves(calls: int) -> SearchStrategy[Move]:
    new = st.builds(policies.Ask, st.just(f"{calls + 1}"), _PRICES)
    later = st.builds(Advance, st.sampled_from((1, 9, 10, 19, 20)))
    if not calls:
        return weighted((4, new), (1, later))
    old = _names(calls)
    ended = st.builds(policies.Finish, old, st.sampled_from(("ok", "failed", "neither")), _PRICES)
    return weighted((4, new), (2, later), (4, ended), (1, st.builds(policies.GiveBack, old)))


_POLICIES: SearchStrategy[Subject] = st.builds(
    policies.PolicySubject,
    st.one_of(
        st.sampled_from((("breaker",), ("steps",), ("budget",))),
        st.permutations(("steps", "budget", "breaker")).map(tuple),
    ),
    COUNTS,
    AMOUNTS,
    st.sampled_from((1, 2, 3)),
)


def _policy_blamed(_difference: Difference, subject: Subject) -> str:
    order: tuple[str, ...] = getattr(subject, "order", ())
    return {"steps": "G2", "budget": "G1", "breaker": "G4"}[order[0]] if len(order) == 1 else "T6"


def _context_moves(
    _target: AnyTarget, _instrument: Instrument, _subject: Subject, played: Sequence[Move]
) -> SearchStrategy[Move]:
    reserved = sum(isinstance(each, context.Reserve) for each in played)
    return _context_moves_after(reserved, any(isinstance(each, context.MakeChild) for each in played))


@cache
def _context_moves_after(reserved: int, made: bool) -> SearchStrategy[Move]:
    contexts = st.sampled_from(("", "/1") if made else ("",))
    choices: list[tuple[int, SearchStrategy[Move]]] = [
        (12, st.builds(context.Plainly, contexts, _PRICES, st.booleans())),
        (6, st.builds(context.Reserve, st.just(f"{reserved + 1}"), _PRICES)),
        (1, st.builds(context.Wait, st.sampled_from((1, 5)))),
        (1, st.builds(context.CloseContext, contexts)),
        (1, st.just(context.HaltChain())),
    ]
    if reserved:
        how = st.sampled_from(("settle", "fail", "release"))
        choices.append((6, st.builds(context.EndIt, _names(reserved), how, _PRICES)))
    if not made:
        choices.append((2, st.just(context.MakeChild("/1"))))
    return weighted(*choices)


def _context_allowed(_target: AnyTarget, subject: Subject, move: Move) -> bool:
    return not isinstance(move, context.MakeChild) or move.name in getattr(subject, "children", ())


def _guarded_moves(
    _target: AnyTarget, instrument: Instrument, _subject: Subject, _played: Sequence[Move]
) -> SearchStrategy[Move]:
    guarded = getattr(instrument, "guarded", None)
    return _guarded_moves_of(isinstance(guarded, ReleasingGuarded), isinstance(guarded, LosingGuarded))


@cache
def _guarded_moves_of(releases: bool, loses: bool) -> SearchStrategy[Move]:
    ends = [st.tuples(st.booleans(), st.just(False), st.just(False)), st.just((False, True, False))]
    if loses:
        ends.append(st.just((False, False, True)))
    end = st.one_of(ends)
    seconds = st.sampled_from((1, 2, 10, 0)).map(lambda each: each * _SECOND_NS)
    others: list[tuple[int, SearchStrategy[Move]]] = [(3, st.builds(LetPass, seconds))]
    if releases:
        others.append((1, st.just(breaker.GiveUp())))
    leaf = st.builds(_guarded_call, end)
    inside = st.lists(weighted((3, leaf), *others), min_size=1, max_size=3).map(tuple)
    nested = st.builds(_guarded_call, end, inside)
    return weighted((6, leaf), (3, nested), *others)


def _guarded_call(end: tuple[bool, bool, bool], inside: tuple[breaker.GuardedMove, ...] = ()) -> breaker.Call:
    fails, neither, hangs = end
    return breaker.Call(fails, neither, hangs, inside)


_FIVE_NS = Decimal(5).scaleb(-9)
_CONTEXTS: SearchStrategy[Subject] = st.builds(
    context.ContextSubject,
    st.builds(
        Limits,
        max_cost_usd=AMOUNTS.map(lambda nano: None if nano is None else Money(nano)),
        max_steps=COUNTS,
        max_seconds=st.sampled_from((None, None, _FIVE_NS)),
    ),
    st.just(("/1",)),
)


def _names(count: int) -> SearchStrategy[str]:
    return st.sampled_from([f"{number + 1}" for number in range(count)])


def _by_count(kind: type, strategy: Callable[[int], SearchStrategy[Move]]) -> Moves:
    """Draw moves on what moves of this kind began, each under a new number, and such moves."""
    return lambda _target, _instrument, _subject, played: strategy(sum(isinstance(each, kind) for each in played))


def _any_time(strategy: SearchStrategy[Move]) -> Moves:
    """Draw the same moves whatever came before."""
    return lambda _target, _instrument, _subject, _played: strategy


_GRANT_MOVES: SearchStrategy[Move] = st.one_of(
    st.builds(grant.Use, st.sampled_from((True, False))),
    st.builds(grant.Answer, st.sampled_from((True, False))),
    st.just(grant.IsPending()),
    st.builds(Advance, st.sampled_from((0, 1, 4, 5, _SECOND_NS))),
)

# What is on disk is JSON in UTF-8, so a lone surrogate is no text; what must be escaped in a line is.
_TEXTS = st.one_of(st.sampled_from(("", "a", "\n", "\r\u2028", '"\\', "\0", "\U0001f600")), st.text(max_size=5))
_AUDIT_MOVES: SearchStrategy[Move] = weighted(
    (20, st.builds(audit.Append, st.sampled_from(("note", "x")), _TEXTS)),
    (1, st.just(audit.Read())),
    (1, st.just(audit.CloseLog())),
)


def _every(subjects: SearchStrategy[Subject]) -> Subjects:
    """Draw the same subjects for every target: what it lacks it says when one is opened."""
    return lambda _: subjects


_WALLS = st.sampled_from((0, _HOUR_NS - 1, 24 * _HOUR_NS - 1, 1_700_000_000 * _SECOND_NS))

MACHINES: Mapping[str, Machine] = MappingProxyType(
    {
        machine.name: machine
        for machine in (
            Machine(
                "chain",
                "Calls, nested and retried, in a tree of contexts under limits, while time passes and people stop it",
                "G1",
                chain_moves.subjects,
                chain_moves.moves,
                allowed=chain_moves.allowed,
                blamed=chain_moves.blamed,
            ),
            Machine(
                "budget",
                "Spends and holds, settled and given back in any order, or twice",
                "G1",
                _every(st.builds(BudgetSubject, AMOUNTS)),
                _by_count(budget.Check, _budget_moves),
                share=0.5,
            ),
            Machine(
                "steps",
                "Steps and checks, given back in any order, or twice",
                "G2",
                _every(st.builds(StepsSubject, COUNTS)),
                _by_count(steps.Check, _steps_moves),
                share=0.5,
            ),
            Machine(
                "quota",
                "Runs that start and end while hours and days begin",
                "quota",
                _every(st.builds(QuotaSubject, COUNTS, AMOUNTS, _WALLS)),
                _by_count(quota.Start, _quota_moves),
            ),
            Machine(
                "quota-set-back",
                "The same while somebody sets the wall clock back",
                "quota",
                _every(st.builds(SetBackSubject, COUNTS, AMOUNTS, _WALLS)),
                _by_count(quota.Start, _quota_moves),
                share=0.3,
            ),
            Machine(
                "policies",
                "Breaker, budget and steps, alone and in every order, while calls fail and probes are lost",
                "G4",
                _every(_POLICIES),
                _by_count(policies.Ask, _policy_moves),
                blamed=_policy_blamed,
            ),
            Machine(
                "breaker",
                "Calls through a breaker that succeed, fail, are cancelled or lost, one within another",
                "G4",
                _every(st.builds(BreakerSubject, st.sampled_from((1, 2, 3)), st.sampled_from((1, 2)))),
                _guarded_moves,
                share=0.6,
            ),
            Machine(
                "pipeline",
                "The same behind a step guard",
                "T6",
                _every(st.builds(PipelineSubject, st.sampled_from((1, 2, 3, 8, 20)), st.sampled_from((1, 2)))),
                _guarded_moves,
                share=0.6,
            ),
            Machine(
                "context",
                "Plain calls and reservations of a context, which nothing stands in front of",
                "G1",
                _every(_CONTEXTS),
                _context_moves,
                allowed=_context_allowed,
            ),
            Machine(
                "grant",
                "Answers and uses of one approval, while it expires",
                "approval",
                _every(st.builds(GrantSubject, st.sampled_from((None, 0, 1, 5, _SECOND_NS)))),
                _any_time(_GRANT_MOVES),
                share=0.5,
            ),
            Machine(
                "approval",
                "Irreversible calls, asked about and approved in any order, or twice",
                "approval",
                _every(st.just(ApprovalSubject())),
                _by_count(grant.Ask, _approval_moves),
                ("approval", "approval_args", "approval_once"),
                share=0.2,
            ),
            Machine(
                "audit",
                "Events of any text, and what the disk says of them",
                "audit",
                _every(st.just(AuditSubject())),
                _any_time(_AUDIT_MOVES),
                share=0.2,
            ),
        )
    }
)
"""The machines by name."""
