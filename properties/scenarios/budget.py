"""A budget that stands alone at its last cent, and its holds, which end once (G1)."""

from __future__ import annotations

from failstop.properties.references.budget import Check, Release, Report, Reset, Spend
from failstop.properties.scenario import Scenario
from failstop.properties.subjects.budget import BudgetSubject

_TEN = BudgetSubject(10)

SCENARIOS = (
    Scenario(
        "last-cent-spent",
        "Two spends at once, of which the budget holds one",
        "G1",
        ("cost_parallel",),
        _TEN,
        ((Spend(6),), (Spend(6),)),
    ),
    Scenario(
        "last-cent-held",
        "Two calls at once, of which the budget holds one, while one of them ends",
        "G1",
        ("cost_parallel",),
        _TEN,
        ((Check("a", 6), Report("a", 2)), (Check("b", 6), Report("b", 6))),
    ),
    Scenario(
        "hold-against-spend",
        "A call holds money while somebody spends it",
        "G1",
        ("cost_parallel",),
        _TEN,
        ((Check("a", 6), Release("a")), (Spend(5), Spend(1))),
    ),
    Scenario(
        "no-estimate-against-hold",
        "Two calls whose price nobody knows, beside one that is estimated",
        "G1",
        ("cost_parallel",),
        _TEN,
        ((Check("a", None), Report("a", 3)), (Check("b", 4), Check("c", None))),
    ),
    Scenario(
        "overrun-against-hold",
        "A call costs more than it held while another asks",
        "G1",
        ("cost_overrun",),
        _TEN,
        ((Check("a", 2), Report("a", 5)), (Check("b", 2), Spend(1))),
    ),
    Scenario(
        "release-against-report",
        "A hold is given back and settled at once",
        "G1",
        ("cost_parallel",),
        _TEN,
        ((Check("a", 6), Report("a", 4)), (Release("a"), Check("b", 8))),
    ),
    Scenario(
        "budget-reset-against-report",
        "The budget begins anew while a call is in flight",
        "G1",
        ("cost_parallel",),
        _TEN,
        ((Check("a", 6), Report("a")), (Reset(), Spend(5))),
    ),
)

DEEP = (
    Scenario(
        "budget-of-three",
        "Three threads hold, spend and settle, with money for two",
        "G1",
        ("cost_parallel",),
        BudgetSubject(20),
        ((Check("a", 8), Report("a", 3)), (Check("b", 8), Release("b")), (Spend(8), Spend(4))),
    ),
    Scenario(
        "budget-reset-of-three",
        "Two threads hold and settle while a third begins anew",
        "G1",
        ("cost_parallel",),
        BudgetSubject(20),
        ((Check("a", 8), Report("a", 12)), (Check("b", 16), Report("b")), (Reset(), Spend(5))),
    ),
)
