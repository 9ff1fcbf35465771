"""Reading floats back from the solver, and replaying a trace on real ones."""

from __future__ import annotations

import math

from failstop.models.theories import floats as theory


def test_the_told_floats_are_the_floats_of_the_solver():
    """Also those that cannot be written in a few digits, and those without a sign or a value."""
    for number in (0.1, 5e-324, 1e308, -0.0, math.inf, -math.inf):
        assert repr(theory.to_float(theory.value(number))) == repr(number)
    assert math.isnan(theory.to_float(theory.value(math.nan)))


def test_three_tenths_do_not_fit_into_three_tenths():
    """The error goes either way."""
    assert "3. cost 0.1 refused" in theory.story(0.3, [0.1] * 3)


def test_a_total_within_the_ceiling_is_told_as_such():
    """The replay can also find nothing wrong."""
    assert theory.story(1.0, [0.5, 0.25]).endswith("true total within the ceiling")
