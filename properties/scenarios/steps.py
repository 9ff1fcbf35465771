"""A step guard that stands alone at its last step, with steps that go back and a guard that begins anew (G2)."""

from __future__ import annotations

from failstop.properties.references.steps import Check, Release, Reset, Step
from failstop.properties.scenario import Scenario
from failstop.properties.subjects.steps import StepsSubject

_ONE = StepsSubject(1)

SCENARIOS = (
    Scenario(
        "last-step-of-a-guard",
        "Two agents at once take the last step",
        "G2",
        ("steps_parallel",),
        _ONE,
        ((Step(),), (Step(),)),
    ),
    Scenario(
        "last-result",
        "Two agents at once take the last step, each with what it has so far",
        "G2",
        ("steps_parallel",),
        _ONE,
        ((Step("a1"), Step("a2")), (Step("b1"),)),
    ),
    Scenario(
        "give-back-against-check",
        "A step goes back while others ask for it",
        "G2",
        ("steps_parallel",),
        _ONE,
        ((Check("a"), Release("a")), (Check("b"), Step())),
    ),
    Scenario(
        "given-back-twice",
        "One step is given back twice at once",
        "G2",
        ("steps_parallel",),
        StepsSubject(2),
        ((Check("a"), Step(), Release("a")), (Release("a"), Check("b"), Check("c"))),
    ),
    Scenario(
        "reset-against-check",
        "The guard begins anew while the last step is asked for",
        "G2",
        ("steps_parallel",),
        _ONE,
        ((Check("a"), Step()), (Reset(), Check("b"))),
    ),
    Scenario(
        "reset-against-give-back",
        "The guard begins anew before a step goes back, which must not make room for one more",
        "G2",
        ("steps_parallel",),
        _ONE,
        ((Check("a"), Release("a"), Check("b")), (Reset(), Check("c"))),
    ),
)

DEEP = (
    Scenario(
        "steps-of-three-agents",
        "Three agents take two steps each, and there are four",
        "G2",
        ("steps_parallel",),
        StepsSubject(4),
        ((Step("a"), Check("a")), (Step("b"), Check("b")), (Step("c"), Step())),
    ),
    Scenario(
        "give-back-of-three",
        "Two steps go back while a third agent takes some",
        "G2",
        ("steps_parallel",),
        StepsSubject(2),
        ((Check("a"), Release("a")), (Check("b"), Release("b")), (Check("c"), Step())),
    ),
)
