"""The proofs about floats that are no numbers: no part of what keeps them out is idle."""

from __future__ import annotations

import pytest
import z3

from failstop.models.claim import PROVED, REFUTED
from failstop.models.theories import floats
from failstop.models.theories import not_a_number as theory


def test_the_sign_check_alone_does_not_keep_the_accumulator_sane():
    """A NaN cost passes it."""
    answer = theory.accumulator_keeps_sane(check=floats.below_zero)
    assert answer.status == REFUTED
    assert "cost nan" in answer.told


@pytest.mark.parametrize(
    ("name", "check"),
    [
        ("nan", lambda number: z3.Or(z3.fpIsInf(number), floats.below_zero(number))),
        ("inf", lambda number: z3.Or(z3.fpIsNaN(number), floats.below_zero(number))),
        ("cost -", lambda number: z3.Or(z3.fpIsNaN(number), z3.fpIsInf(number))),
        ("0.0 is", lambda number: z3.Or(floats.raises(number), z3.fpEQ(number, floats.value(0.0)))),
    ],
)
def test_no_part_of_the_full_check_is_idle(name, check):
    """Without isnan, isinf or the sign, something else passes; refusing zero refuses an amount."""
    answer = theory.full_check(check=check)
    assert answer.status == REFUTED
    assert name in answer.told


def test_a_check_for_nan_makes_the_sign_check_enough():
    """What then passes is a number."""
    assert theory.sign_check_is_enough(check=floats.raises).status == PROVED
