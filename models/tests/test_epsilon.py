"""The proofs about a guard against rounding: that each of them can fail."""

from __future__ import annotations

from dataclasses import replace

import pytest
import z3

from failstop.models.claim import REFUTED
from failstop.models.theories import epsilon as theory
from failstop.models.theories.natural import nothing

WRONG = {
    "a guard that permits nothing": replace(theory.ONE_CHAIN, holds=lambda n: theory.total(n) <= theory.CEILING),
    "chains that pass their guard": replace(theory.MANY_CHAINS, given=nothing),
    "one guard for all chains": replace(
        theory.MANY_CHAINS,
        holds=lambda n: theory.all_chains(n) <= z3.ToReal(n) * theory.CEILING + theory.GUARD,
    ),
    "a guard that is never used up": replace(
        theory.MANY_REACHED,
        holds=lambda n: z3.Implies(n > 0, theory.all_chains(n) < n * (theory.CEILING + theory.GUARD)),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_sum_is_refuted_by_a_small_case(name):
    """It is shown with at most four costs or chains."""
    answer = WRONG[name].ask()
    assert answer.status == REFUTED, answer.told
