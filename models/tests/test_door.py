"""A door that lets the wrong thing in, or keeps the right thing out, is found by what is handed in at it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pytest

from failstop.models.claim import PROVED, REFUTED
from failstop.models.theories import door
from failstop.models.theories.executions import compare
from failstop.runtime.limits import Limits
from failstop.runtime.stops import ConfigurationError


@dataclass
class AsPublished:
    """Limits with the checks that the paper shows: NaN, infinite, below zero."""

    max_cost_usd: Any = 0.0
    max_seconds: Any = 0.0
    max_steps: Any = 0
    max_tool_calls: Any = 0
    max_retries: Any = 0
    max_repeats: Any = 0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            try:
                wrong = value is not None and (math.isnan(value) or math.isinf(value) or value < 0)
            except (TypeError, ValueError, OverflowError):
                wrong = True
            if wrong:
                raise ConfigurationError(name, value, "a finite number, zero or more")


def test_the_published_checks_let_a_truth_value_in() -> None:
    """True is 1 dollar to them; the first that comes in is told."""
    answer = compare(door.refusals(AsPublished))
    assert answer.status == REFUTED
    assert answer.told == "max_cost_usd of bool True: counted made, the formula says refused max_cost_usd"


def nameless(**given: Any) -> Limits:
    """Refuse with an error that does not say what it is about."""
    try:
        return Limits(**given)
    except ConfigurationError:
        raise ConfigurationError("value", None, "something else") from None


@pytest.mark.parametrize(
    ("tried", "told"),
    [
        (lambda: door.refusals(nameless), "refused without its name: "),
        (lambda: door.refusals(dict), "counted made"),
        (lambda: door.admissions(lambda **given: Limits(max_steps=-1)), "counted refused without its name"),
        (lambda: door.costs(lambda value, field: value), "counted made"),
    ],
)
def test_a_door_that_is_wrong_is_told_by_its_first_case(tried: Any, told: str) -> None:
    """It refuses without the name, refuses nothing, or refuses all."""
    answer = compare(tried())
    assert answer.status == REFUTED
    assert told in answer.told


def test_the_runtime_s_door_is_tried_at_every_limit() -> None:
    """Were a limit added and forgotten here, nobody would try it."""
    assert set(door.LIMITS) == set(Limits.__dataclass_fields__)
    assert compare(door.refusals()).status == PROVED
