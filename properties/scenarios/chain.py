"""The chain at its ceilings: the last step, the last cent, the last retry, and what may come in between (G1 to G5)."""

from __future__ import annotations

from failstop.properties.scenario import Scenario
from failstop.properties.subjects.chain import Call, ChainSubject, CloseIt, HaltIt, LetPass
from failstop.runtime.limits import Limits

_FREE = Call()
_PRICED = Call(reserve=6, cost=6)
_TEN_NANO = "0.00000001"
_SECOND = 1_000_000_000

SCENARIOS = (
    Scenario(
        "last-step",
        "Two calls at once ask for the last step",
        "G2",
        ("steps_parallel",),
        ChainSubject(Limits(max_steps=1)),
        ((_FREE,), (_FREE,)),
    ),
    Scenario(
        "last-tool-call",
        "Two tools at once ask for the last tool call",
        "G2",
        ("tool_calls",),
        ChainSubject(Limits(max_tool_calls=1)),
        ((Call(tool=True),), (Call(tool=True),)),
    ),
    Scenario(
        "failing-steps",
        "Calls that fail are steps too, and the last one is asked for twice",
        "G2",
        ("steps_failed",),
        ChainSubject(Limits(max_steps=2)),
        ((Call(fails=1), _FREE), (Call(fails=1),)),
    ),
    Scenario(
        "last-cent",
        "Two calls at once, of which the budget holds one",
        "G1",
        ("cost_parallel",),
        ChainSubject(Limits(max_cost_usd=_TEN_NANO)),
        ((_PRICED,), (_PRICED,)),
    ),
    Scenario(
        "settle-against-reserve",
        "A call gives back what it did not need while another asks for it",
        "G1",
        ("cost_parallel",),
        ChainSubject(Limits(max_cost_usd=_TEN_NANO)),
        ((Call(reserve=8, cost=2), Call(reserve=6, cost=6)), (Call(reserve=6, cost=4),)),
    ),
    Scenario(
        "overrun-against-admission",
        "A call costs more than it reserved while others ask",
        "G1",
        ("cost_overrun",),
        ChainSubject(Limits(max_cost_usd=_TEN_NANO)),
        ((Call(reserve=2, cost=20),), (Call(reserve=2, cost=2), Call(reserve=1, cost=1))),
    ),
    Scenario(
        "no-estimate",
        "Two calls whose price nobody knows, beside one that is estimated",
        "G1",
        ("cost_parallel",),
        ChainSubject(Limits(max_cost_usd=_TEN_NANO)),
        ((Call(reserve=None, cost=3),), (Call(reserve=None, cost=3), Call(reserve=2, cost=2))),
    ),
    Scenario(
        "failing-cost",
        "A call that failed is charged all that it held, while another asks",
        "G1",
        ("cost_invalid",),
        ChainSubject(Limits(max_cost_usd=_TEN_NANO)),
        ((Call(reserve=6, cost=1, fails=1),), (_PRICED,)),
    ),
    Scenario(
        "last-retry",
        "Two calls fail at once, and one retry is left",
        "G3",
        ("retries",),
        ChainSubject(Limits(max_retries=1)),
        ((Call(fails=1, retries=1),), (Call(fails=1, retries=1),)),
    ),
    Scenario(
        "halt-against-dispatch",
        "Somebody halts the chain while calls come in",
        "halt",
        ("halt",),
        ChainSubject(Limits(max_steps=5)),
        ((_FREE, _FREE), (HaltIt(), _FREE)),
    ),
    Scenario(
        "close-against-dispatch",
        "The run ends while calls come in",
        "halt",
        ("closed",),
        ChainSubject(Limits(max_steps=5)),
        ((_FREE, _FREE), (CloseIt(), _FREE)),
    ),
    Scenario(
        "deadline-against-dispatch",
        "The deadline passes while calls come in",
        "G5",
        ("deadline",),
        ChainSubject(Limits(max_seconds=1)),
        ((_FREE, _FREE), (LetPass(_SECOND), _FREE)),
    ),
    Scenario(
        "child-against-parent",
        "A child and its parent ask for the last step at once",
        "G2",
        ("children",),
        ChainSubject(Limits(max_steps=1), children=1),
        ((_FREE,), (Call(context="/1"),)),
    ),
    Scenario(
        "child-cost-against-parent",
        "A child and its parent ask for the last cent at once",
        "G1",
        ("children",),
        ChainSubject(Limits(max_cost_usd=_TEN_NANO), children=1),
        ((_PRICED,), (Call(context="/1", reserve=6, cost=6),)),
    ),
    Scenario(
        "closed-child",
        "A child is closed while it and its parent call",
        "halt",
        ("children", "closed"),
        ChainSubject(Limits(max_steps=3), children=1),
        ((CloseIt("/1"), _FREE), (Call(context="/1"), Call(context="/1"))),
    ),
)

DEEP = (
    Scenario(
        "steps-of-three",
        "Three threads, two calls each, four steps",
        "G2",
        ("steps_parallel",),
        ChainSubject(Limits(max_steps=4)),
        ((_FREE, _FREE),) * 3,
    ),
    Scenario(
        "cost-of-three",
        "Three threads, two calls each, money for three",
        "G1",
        ("cost_parallel",),
        ChainSubject(Limits(max_cost_usd="0.00000002")),
        ((_PRICED, _PRICED),) * 3,
    ),
    Scenario(
        "retries-of-three",
        "Three threads whose calls fail, two retries",
        "G3",
        ("retries",),
        ChainSubject(Limits(max_retries=2)),
        ((Call(fails=1, retries=1),),) * 3,
    ),
)

CROWDS = (
    Scenario(
        "crowd-at-the-last-steps",
        "Eight threads ask for five steps",
        "G2",
        ("steps_parallel",),
        ChainSubject(Limits(max_steps=5)),
        ((_FREE,),) * 8,
    ),
    Scenario(
        "crowd-at-the-last-cents",
        "Eight threads, money for three at a time",
        "G1",
        ("cost_parallel",),
        ChainSubject(Limits(max_cost_usd="0.00000002")),
        ((Call(reserve=6, cost=4),),) * 8,
    ),
    Scenario(
        "crowd-at-the-last-retries",
        "Six threads whose calls fail, three retries",
        "G3",
        ("retries",),
        ChainSubject(Limits(max_retries=3)),
        ((Call(fails=1, retries=1),),) * 6,
    ),
    Scenario(
        "crowd-at-a-halt",
        "Six threads call on while one halts the chain",
        "halt",
        ("halt",),
        ChainSubject(Limits(max_steps=100)),
        (*((_FREE, _FREE),) * 6, (HaltIt(),)),
    ),
)
