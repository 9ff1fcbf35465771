"""What single mistakes show in: calls inside of calls, the quick way, reservations, children made late."""

from __future__ import annotations

from failstop.properties.references.budget import Spend
from failstop.properties.references.chain import Advance
from failstop.properties.references.quota import HOUR_NS, Start
from failstop.properties.scenario import Scenario
from failstop.properties.subjects.budget import BudgetSubject
from failstop.properties.subjects.chain import Call, ChainSubject, CloseIt
from failstop.properties.subjects.context import (
    CloseContext,
    ContextSubject,
    EndIt,
    HaltChain,
    MakeChild,
    Plainly,
    Reserve,
    Wait,
)
from failstop.properties.subjects.set_back import SetBackSubject
from failstop.runtime.limits import Limits

_TEN_NANO = "0.00000001"
_TENTH = 100_000_000
_SECOND = 1_000_000_000
_IN_FULL = Plainly(in_full=True)

SCENARIOS = (
    Scenario(
        "inside-of-another",
        "A call inside of another asks for what the outer one holds, beside a third",
        "G1",
        ("cost_parallel",),
        ChainSubject(Limits(max_cost_usd=_TEN_NANO)),
        ((Call(reserve=8, cost=1, inside=(Call(reserve=6, cost=1),)),), (Call(reserve=2, cost=2),)),
    ),
    Scenario(
        "two-wait",
        "Two calls wait for a third, which leaves room for both",
        "G1",
        ("cost_parallel",),
        ChainSubject(Limits(max_cost_usd=_TEN_NANO)),
        ((Call(reserve=8, cost=1),), (Call(reserve=4, cost=1),), (Call(reserve=4, cost=1),)),
    ),
    Scenario(
        "parent-closes",
        "A context is closed while its child calls",
        "halt",
        ("children", "closed"),
        ChainSubject(Limits(max_steps=5), children=1),
        ((CloseIt(),), (Call(context="/1"), Call(context="/1"))),
    ),
    Scenario(
        "quick-last-step",
        "Two plain calls at once ask for the last step",
        "G2",
        ("steps_parallel",),
        ContextSubject(Limits(max_steps=1)),
        ((Plainly(),), (Plainly(), Plainly())),
    ),
    Scenario(
        "quick-last-cent",
        "Two plain calls at once, of which the budget holds one at a time",
        "G1",
        ("cost_parallel",),
        ContextSubject(Limits(max_cost_usd=_TEN_NANO)),
        ((Plainly(cost=6),), (Plainly(cost=4), Plainly(cost=2))),
    ),
    Scenario(
        "quick-halt-against-dispatch",
        "Somebody halts the chain while plain calls come in",
        "halt",
        ("halt",),
        ContextSubject(Limits(max_steps=9)),
        ((Plainly(), Plainly()), (HaltChain(), Plainly())),
    ),
    Scenario(
        "settled-and-released",
        "One reservation is settled and released at once, while another call asks for the money",
        "G1",
        ("cost_parallel",),
        ContextSubject(Limits(max_cost_usd=_TEN_NANO)),
        ((Reserve("a", 6), EndIt("a", "settle", 6)), (EndIt("a", "release"), Plainly(cost=4))),
    ),
    Scenario(
        "born-while-closing",
        "A context is closed while a child of it is made, which then calls",
        "halt",
        ("children", "closed"),
        ContextSubject(Limits(max_steps=9), children=("/1",)),
        ((CloseContext(),), (MakeChild("/1"), Plainly("/1"), Plainly("/1"))),
    ),
    Scenario(
        "swallows-everything",
        "A program that catches every Exception calls on after the last step",
        "halt",
        ("halt",),
        ContextSubject(Limits(max_steps=1)),
        ((Plainly(), Plainly()), (Plainly(),)),
    ),
    Scenario(
        "deadline-before-its-alarm",
        "The deadline passes while calls come in, and its alarm is late",
        "G5",
        ("deadline",),
        ContextSubject(Limits(max_seconds=1)),
        ((_IN_FULL, Plainly()), (Wait(_SECOND), _IN_FULL)),
    ),
    Scenario(
        "deadline-while-waiting",
        "The deadline passes while a call waits, its alarm is late, and then there is room for the call",
        "G5",
        ("deadline",),
        ContextSubject(Limits(max_seconds=1, max_cost_usd=_TEN_NANO)),
        ((Plainly(cost=4, in_full=True),), (Reserve("a", 8), Wait(_SECOND), EndIt("a", "settle", 1))),
    ),
    Scenario(
        "halt-against-waiting",
        "Somebody halts the chain while two calls wait for what is held for good",
        "halt",
        ("halt",),
        ContextSubject(Limits(max_cost_usd=_TEN_NANO)),
        ((Reserve("a", 8), HaltChain()), (Plainly(cost=4),), (Plainly(cost=4),)),
    ),
    Scenario(
        "log-cannot-be-written",
        "The log of a chain has room for one more call, and two are asked for at once",
        "audit",
        (),
        ContextSubject(Limits(max_steps=9), writable=1),
        ((Plainly(), Plainly()), (Plainly(),)),
    ),
    Scenario(
        "exact-to-the-ceiling",
        "A tenth and two tenths of a dollar, where three are left",
        "G1",
        ("cost",),
        ChainSubject(Limits(max_cost_usd="0.3")),
        ((Call(reserve=_TENTH, cost=_TENTH),), (Call(reserve=2 * _TENTH, cost=2 * _TENTH),)),
    ),
    Scenario(
        "exact-to-the-limit",
        "A tenth and two tenths of a dollar, where a budget has three",
        "G1",
        ("cost",),
        BudgetSubject(3 * _TENTH),
        ((Spend(_TENTH),), (Spend(2 * _TENTH),)),
    ),
    Scenario(
        "wall-clock-set-back",
        "An hour ends, and the wall clock is set back meanwhile",
        "quota",
        (),
        SetBackSubject(max_runs=1, wall_ns=10 * HOUR_NS),
        ((Start("a"), Start("b")), (Advance(HOUR_NS), Start("c"))),
    ),
)
