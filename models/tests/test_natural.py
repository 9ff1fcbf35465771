"""Proofs about every number: what they rest on can be, and one that fails is not taken for a refutation."""

from __future__ import annotations

import pytest
import z3

from failstop.models import catalogue, theories
from failstop.models.claim import UNKNOWN, solve
from failstop.models.theories.natural import Induction
from failstop.models.theories.sums import F, Sum, over

INDUCTIONS = {
    f"{module.__name__.rpartition('.')[2]}.{name}": value
    for module in catalogue._modules_of(theories)
    for name, value in vars(module).items()
    if isinstance(value, Induction)
}


@pytest.mark.parametrize("name", INDUCTIONS)
def test_what_a_proof_assumes_can_be(name):
    """Three callers, layers, operations, additions or chains satisfy it: nothing is proved from a contradiction."""
    assert solve(*INDUCTIONS[name].first(3))[0] == z3.sat


def test_the_inductions_are_found():
    """Of every theory that has any."""
    found = {name.partition(".")[0] for name in INDUCTIONS}
    assert found == {"amplification", "epsilon", "nano_dollars", "rounding", "sums"}


def test_a_step_that_fails_without_a_small_counterexample_is_unknown():
    """What is true of the first callers but not inductive is neither proved nor refuted."""
    late = over(lambda n: z3.Implies(n > 100, Sum(F, n) >= 0), F)
    answer = late.ask()
    assert answer.status == UNKNOWN
    assert "not inductive" in answer.told
