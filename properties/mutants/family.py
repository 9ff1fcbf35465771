"""A chain with children, its end, and its stops (halt, G1, G2)."""

# ruff: noqa: SLF001 - a wrong variant of a method works on what the method works on

from __future__ import annotations

from typing import TYPE_CHECKING

from failstop.properties.mutants.mutant import Bases, Function, Method, Mutant
from failstop.runtime.chain.accounts import Account
from failstop.runtime.chain.context import ExecutionContext
from failstop.runtime.chain.ledger import Ledger
from failstop.runtime.cores.ledger import ADMITTED, unless_closed
from failstop.runtime.cores.repeats import turn
from failstop.runtime.limits import Limits
from failstop.runtime.stops import Stop

if TYPE_CHECKING:
    from failstop.runtime.chain.accounts import Owner

_child = Ledger.child


def _ledger_of_its_own(self: Ledger, owner: Owner, name: str, limits: Limits | None, *, named: bool) -> Ledger:
    child = _child(self, owner, name, limits, named=named)
    own = Account(name, Limits(), self.now_ns())
    own.bounds = child.account.bounds
    return Ledger(self.chain, (own,))


def _children_left_open(self: ExecutionContext) -> None:
    failure = self._close_alone()
    if failure is not None:
        raise failure


def _closed_before_born_only(
    self: ExecutionContext, limits: Limits | None = None, *, name: str | None = None
) -> ExecutionContext:
    if self.closed or self.stop is not None:
        raise self._boundary.stop_now()
    auto = f"{self.name}/{next(self._child_numbers)}"
    ledger = self._ledger.child(self, auto if name is None else name, limits, named=name is not None)
    child = ExecutionContext.__new__(ExecutionContext)
    child._open(
        auto if name is None else name, limits or self.limits, self._clock, ledger, self.graph, self._policies, self
    )
    with self._family:
        self._children.add(child)
    return child


def _close_forgotten(verdict: int, closed: bool) -> int:
    if closed and verdict == ADMITTED:
        return ADMITTED
    return unless_closed(verdict, closed)


def _repeat_too_many(run: int, same: bool, max_repeats: int) -> tuple[int, bool]:
    run, _ = turn(run, same, max_repeats)
    return run, max_repeats < 0 or run <= max_repeats + 1


def _repeats_never_begin_anew(run: int, same: bool, max_repeats: int) -> tuple[int, bool]:
    if not same:
        return turn(run, True, max_repeats)
    return turn(run, same, max_repeats)


def _halt_forgotten(self: ExecutionContext, reason: str) -> None:
    # The calls in flight are told, and nobody else.
    self._sharing()._tell(reason)


MUTANTS = (
    Mutant(
        "child-with-a-ledger-of-its-own",
        "G2",
        "A child counts for itself under its parent's ceilings.",
        (Method(Ledger, "child", _ledger_of_its_own),),
        first=("child-against-parent",),
    ),
    Mutant(
        "close-forgets-the-children",
        "halt",
        "A context that is closed leaves its children open.",
        (Method(ExecutionContext, "close", _children_left_open),),
        first=("parent-closes",),
    ),
    Mutant(
        "child-born-to-the-closed",
        "halt",
        "A child that is made while its parent closes stays open.",
        (Method(ExecutionContext, "create_child", _closed_before_born_only),),
        concurrent=True,
        first=("born-while-closing",),
        traced=(__name__,),
    ),
    Mutant(
        "close-forgotten",
        "halt",
        "A closed context takes calls like any other.",
        (Function(unless_closed, _close_forgotten),),
        first=("close-against-dispatch",),
    ),
    Mutant(
        "halt-tells-those-in-flight-only",
        "halt",
        "Who halts a chain tells the calls in flight, and the ledger admits more.",
        (Method(ExecutionContext, "halt", _halt_forgotten),),
        first=("halt-against-dispatch",),
    ),
    Mutant(
        "stop-is-an-exception",
        "halt",
        "A stop derives from Exception, so that whoever catches everything goes on.",
        (Bases(Stop, (Exception,)),),
        first=("swallows-everything",),
    ),
    Mutant(
        "one-repeat-too-many",
        "loop",
        "The same action is let through once more than allowed.",
        (Function(turn, _repeat_too_many),),
    ),
    Mutant(
        "repeats-never-begin-anew",
        "loop",
        "Actions are counted as repeats whatever came between them.",
        (Function(turn, _repeats_never_begin_anew),),
    ),
)
