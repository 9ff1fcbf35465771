"""Scenarios that a process of its own can find by name."""

from failstop.properties.scenario import Scenario
from failstop.properties.subjects.chain import Call, ChainSubject
from failstop.properties.tests.toys import AtMost, CheckThenAct, Counter, CountsOutside, Sections, toy
from failstop.runtime.limits import Limits


def _chain(limits, call, threads=2, calls=1):
    return Scenario("chain", "", "G2", (), ChainSubject(limits), ((call,) * calls,) * threads)


_PRICED = Call(reserve=6, cost=6)
STEPS = _chain(Limits(max_steps=1), Call())
COST = _chain(Limits(max_cost_usd="0.00000001"), _PRICED)
STEPS_2X2 = _chain(Limits(max_steps=2), Call(), calls=2)
STEPS_3X1 = _chain(Limits(max_steps=2), Call(), threads=3)
COST_3X1 = _chain(Limits(max_cost_usd="0.00000001"), _PRICED, threads=3)

RIGHT = toy(Counter, ["ask"], ["ask"], judged_by=AtMost(1))
CHECK_THEN_ACT = toy(CheckThenAct, ["ask"], ["ask"], judged_by=AtMost(1))
COUNTS_OUTSIDE = toy(CountsOutside, ["ask"], ["ask"], judged_by=AtMost(2))
ALONE = toy(Sections, ["section"])
