"""What is drawn for chains: only what a target promises, so that it is held to nothing else."""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from failstop.properties.finding import is_exact
from failstop.properties.machines.weighted import weighted
from failstop.properties.references.chain import Look
from failstop.properties.subjects.chain import (
    Call,
    ChainInstrument,
    ChainMove,
    ChainSubject,
    CloseIt,
    HaltIt,
    LetPass,
)
from failstop.properties.target import HaltingSession
from failstop.runtime.limits import Limits
from failstop.runtime.money import Money

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hypothesis.strategies import SearchStrategy

    from failstop.properties.machines.replaying import Difference
    from failstop.properties.subject import Instrument, Move, Subject
    from failstop.properties.target import AnyTarget

_HOUR_NS = 3600 * 10**9

# A retry that would begin after the deadline is not made, and the wait before it is a matter of chance. So what is left
# of the time is either much longer than any wait or much shorter, and every program goes the same way each time.
_SECONDS = (Decimal(3600), Decimal(5).scaleb(-9), Decimal(0))
_DURATIONS = (0, 1, 4, 5, _HOUR_NS - 5, _HOUR_NS)

_COSTS = (10, 1, 5, 20, 50, 0, 10**6)
_ROUGH_NANO = 10**6
"""What a unit of money is for a target that need not be exact to the nano-dollar; for one that is, it is one."""

_STEPS = (1, 2, 3, 5, 8, 13, 0, 10**6)
_FEW = (1, 2, 3, 5, 0)

_GUARANTEES = {
    "cost": "G1",
    "denied": "G1",
    "steps": "G2",
    "tool_calls": "G2",
    "retries": "G3",
    "time": "G5",
    "halt": "halt",
    "closed": "halt",
}
_CEILINGS = (
    ("max_cost_usd", "G1"),
    ("max_steps", "G2"),
    ("max_tool_calls", "G2"),
    ("max_retries", "G3"),
    ("max_seconds", "G5"),
)
_COUNTED = ("G1", "G1", "G2", "G2", "G3")


def subjects(target: AnyTarget) -> SearchStrategy[Subject]:
    """Draw a chain with its limits and its tree."""
    limits = _limits(frozenset(target.promises), target.real_time, _unit(target))
    if "children" not in target.promises:
        return st.builds(ChainSubject, limits)
    alone: SearchStrategy[Subject] = st.builds(ChainSubject, limits)
    sharing = st.builds(ChainSubject, limits, st.sampled_from((1, 2)))
    if not is_exact(target):
        return st.one_of(alone, sharing)
    trees = st.sampled_from((("/1",), ("/1", "/1/1"), ("/1", "/2"), ("/1", "/1/1", "/2"), ("/1", "/1/1", "/1/2")))
    narrow = trees.flatmap(lambda names: st.tuples(*(st.tuples(st.just(name), limits) for name in names)))
    below = st.tuples(st.tuples(st.just("/1/1"), limits))
    return weighted(
        (4, alone),
        (2, sharing),
        (3, st.builds(ChainSubject, limits, st.just(0), narrow)),
        (2, st.builds(ChainSubject, limits, st.just(1), below)),
    )


def moves(target: AnyTarget, instrument: Instrument, subject: Subject, _played: Sequence[Move]) -> SearchStrategy[Move]:
    """Draw a move that the target offers."""
    assert isinstance(instrument, ChainInstrument)  # noqa: S101 - the subject opened it
    assert isinstance(subject, ChainSubject)  # noqa: S101 - the caller's
    promised = frozenset(target.promises)
    if target.real_time or "deadline" not in promised:
        promised -= {"deadline"}
    if not isinstance(instrument.sessions[""], HaltingSession):
        promised -= {"halt"}
    return _moves(promised, subject.limits, tuple(instrument.sessions), _unit(target))


def allowed(target: AnyTarget, subject: Subject, move: Move) -> bool:
    """Say whether a move could have been drawn, as far as one field bears on another."""
    if isinstance(move, LetPass):
        return move.duration_ns in _DURATIONS
    if not isinstance(move, Call):
        return True
    if move.reserve is None or move.cost > move.reserve:
        return move.reserve != 0 and "cost_overrun" in target.promises and _all_allowed(target, subject, move.inside)
    return _all_allowed(target, subject, move.inside)


def _all_allowed(target: AnyTarget, subject: Subject, moves: tuple[Move, ...]) -> bool:
    return all(allowed(target, subject, move) for move in moves)


def blamed(difference: Difference, subject: Subject) -> str:
    """Give the guarantee that a difference breaks: that of the refusal which did not come, or came for no reason.

    Where only ceilings are promised there is no one refusal to expect; then it is that of the first ceiling there is.
    """
    told, expected = difference.answer, difference.expected
    if isinstance(difference.action, Look) and isinstance(told, tuple) and isinstance(expected, tuple):
        for guarantee, one, other in zip(_COUNTED, told, expected, strict=False):
            if one != other:
                return guarantee
        told, expected = told[-1], expected[-1]
    for each in (expected, told):
        if each in _GUARANTEES:
            return _GUARANTEES[str(each)]
    limits = getattr(subject, "limits", None)
    return next((name for field, name in _CEILINGS if getattr(limits, field, None) is not None), "halt")


def _unit(target: AnyTarget) -> int:
    return 1 if is_exact(target) else _ROUGH_NANO


@lru_cache(maxsize=32)
def _limits(promised: frozenset[str], real_time: bool, unit: int) -> SearchStrategy[Limits]:
    fields: dict[str, SearchStrategy[Any]] = {}
    if "cost" in promised:
        fields["max_cost_usd"] = st.sampled_from(_COSTS).map(lambda units: Money(units * unit))
    if "steps" in promised:
        fields["max_steps"] = st.sampled_from(_STEPS)
    if "tool_calls" in promised:
        fields["max_tool_calls"] = st.sampled_from(_FEW)
    if "retries" in promised:
        fields["max_retries"] = st.sampled_from(_FEW)
    if "deadline" in promised and not real_time:
        fields["max_seconds"] = st.sampled_from(_SECONDS)
    # Under all ceilings at once the narrowest ends each program before the others are seen.
    each = [st.builds(Limits, **{name: values}) for name, values in fields.items()]
    some = st.builds(Limits, **{name: st.one_of(st.none(), values) for name, values in fields.items()})
    return weighted((1, st.just(Limits())), *((2, one) for one in each), (4, some))


@lru_cache(maxsize=4096)
def _moves(promised: frozenset[str], limits: Limits, names: tuple[str, ...], unit: int) -> SearchStrategy[Move]:
    contexts = st.sampled_from(names)
    others: list[tuple[int, SearchStrategy[ChainMove]]] = []
    if "deadline" in promised:
        others.append((2, st.builds(LetPass, st.sampled_from(_DURATIONS))))
    # A closed or halted root ends it all, so that is rare.
    if "closed" in promised:
        others.append((1, st.builds(CloseIt, contexts)))
    if "halt" in promised:
        others.append((1, st.builds(HaltIt, contexts)))
    leaf = _calls(promised, limits, unit, contexts, st.just(()))
    if not _may_nest(promised, limits):
        return weighted((26, leaf), *others)
    inner = weighted((16, leaf), *others)
    outer = _calls(promised, limits, unit, contexts, st.lists(inner, min_size=1, max_size=2).map(tuple))
    mixed = st.lists(weighted((1, inner), (1, outer)), max_size=2).map(tuple)
    outermost = _calls(promised, limits, unit, contexts, mixed)
    return weighted((16, leaf), (6, outer), (4, outermost), *others)


def _may_nest(promised: frozenset[str], limits: Limits) -> bool:
    """Say whether a call in flight counts: a nested call comes in while another is in flight."""
    return ("steps_parallel" in promised or limits.max_steps is None) and (
        "cost_parallel" in promised or limits.max_cost_usd is None
    )


def _calls(
    promised: frozenset[str],
    limits: Limits,
    unit: int,
    contexts: SearchStrategy[str],
    inside: SearchStrategy[tuple[ChainMove, ...]],
) -> SearchStrategy[Call]:
    fails = ("steps_failed" in promised or limits.max_steps is None) and (
        "cost_invalid" in promised or limits.max_cost_usd is None
    )
    failing = st.tuples(st.sampled_from((1, 2)), st.sampled_from((0, 1, 2, 3)))
    return st.builds(
        _call,
        contexts,
        _prices("cost_overrun" in promised, unit),
        st.booleans() if "tool_calls" in promised else st.just(False),
        weighted((3, st.just((0, 0))), (1, failing)) if fails else st.just((0, 0)),
        inside,
    )


def _call(
    context: str,
    price: tuple[int | None, int],
    tool: bool,
    failing: tuple[int, int],
    inside: tuple[ChainMove, ...],
) -> Call:
    return Call(context, *price, tool, *failing, inside)


def _prices(overruns: bool, unit: int) -> SearchStrategy[tuple[int | None, int]]:
    """Draw (reserve, cost): free, at most the reserve, more, or nobody knows; a free call cannot say that it cost."""
    free: SearchStrategy[tuple[int | None, int]] = st.just((0, 0))
    kept = st.tuples(st.integers(1, 6), st.integers(0, 6)).map(lambda pair: (pair[0] * unit, min(pair) * unit))
    if not overruns:
        return weighted((1, free), (2, kept))
    over = st.tuples(st.integers(1, 6), st.integers(1, 3)).map(lambda pair: (pair[0] * unit, sum(pair) * unit))
    unknown = st.tuples(st.none(), st.integers(0, 6).map(lambda units: units * unit))
    return weighted((4, free), (6, kept), (2, unknown), (1, over))
