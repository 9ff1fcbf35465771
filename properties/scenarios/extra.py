"""What single mistakes show in: calls inside of calls, the quick way, reservations, children made late."""

from __future__ import annotations

from failstop.properties.scenario import Scenario
from failstop.properties.subjects.chain import Call, ChainSubject, CloseIt
from failstop.properties.subjects.context import (
    CloseContext,
    ContextSubject,
    EndIt,
    HaltChain,
    MakeChild,
    Plainly,
    Reserve,
)
from failstop.runtime.limits import Limits

_TEN_NANO = "0.00000001"

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
)
