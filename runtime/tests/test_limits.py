"""Configuration (G6): limits that make no sense cannot be made, and the message says which and why."""

from __future__ import annotations

import json
from decimal import Decimal, localcontext
from enum import IntEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failstop.runtime.chain.context import ExecutionContext
from failstop.runtime.limits import UNLIMITED, Limits, seconds_to_ns
from failstop.runtime.money import MAX_CEILING, Money
from failstop.runtime.stops import ConfigurationError
from failstop.runtime.tests.test_money import LyingDecimal, LyingFloat, LyingInt

FIELDS = ("max_cost_usd", "max_steps", "max_tool_calls", "max_retries", "max_seconds", "max_repeats")


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1, True, False, "nan", 10**400, [], object()])
def test_a_senseless_limit_is_refused_by_field_and_value(field, value):
    """NaN, infinite, negative, a bool, text, a huge number or a wrong type is refused when the limits are made."""
    with pytest.raises(ConfigurationError) as refusal:
        Limits(**{field: value})
    assert refusal.value.field == field
    assert str(refusal.value).startswith(f"{field} is ")


@pytest.mark.parametrize("field", ["max_steps", "max_tool_calls", "max_retries", "max_repeats"])
@pytest.mark.parametrize("value", [2.5, 2.0, "2", Decimal(2)])
def test_a_count_is_a_whole_number(field, value):
    """2.5 steps, and 2.0 or "2" for that matter, are refused: a count is an int."""
    with pytest.raises(ConfigurationError):
        Limits(**{field: value})


@pytest.mark.parametrize("field", FIELDS)
def test_zero_is_a_limit_and_none_is_no_limit(field):
    """0 means none allowed; only None means unlimited, at every field."""
    assert getattr(Limits(**{field: None}), field) is None
    zero = Limits(**{field: 0})
    assert zero.max_cost_nano == (0 if field == "max_cost_usd" else UNLIMITED)
    assert zero.max_ns == (0 if field == "max_seconds" else UNLIMITED)
    assert getattr(zero, field) in {0, Money(0)}


def test_an_unknown_option_is_an_error_and_never_ignored():
    """A misspelt limit in a file would otherwise be no limit at all."""
    with pytest.raises(ConfigurationError, match="max_step is 5; expected one of the limits max_cost_usd"):
        Limits.from_mapping({"max_step": 5})
    with pytest.raises(TypeError):
        Limits(max_step=5)


def test_a_repeat_limit_that_could_never_fire_is_refused():
    """More repeats than steps: the step ceiling would always come first."""
    with pytest.raises(ConfigurationError, match="max_repeats is 6"):
        Limits(max_steps=5, max_repeats=6)
    Limits(max_steps=5, max_repeats=5)


def test_a_context_takes_limits_and_nothing_else():
    """A mapping or None in place of limits would mean no limits."""
    for wrong in (None, {}, 5):
        with pytest.raises(ConfigurationError, match="limits is"):
            ExecutionContext(wrong)


@given(
    st.builds(
        Limits,
        max_cost_usd=st.none() | st.decimals(min_value=0, max_value=10**6, places=9),
        max_steps=st.none() | st.integers(min_value=10, max_value=MAX_CEILING),
        max_seconds=st.none()
        | st.floats(min_value=0, max_value=1e6)
        | st.decimals(min_value=0, max_value=10**6, allow_nan=False)
        | st.integers(min_value=0, max_value=MAX_CEILING // 10**9),
        max_repeats=st.none() | st.integers(min_value=0, max_value=10),
    )
)
def test_limits_survive_being_written_and_read_back(limits):
    """What the audit log stores is the same ceiling, to the nano-dollar and the nanosecond."""
    again = Limits.from_mapping(json.loads(json.dumps(limits.to_mapping())))
    assert again == limits
    assert (again.max_cost_nano, again.max_ns) == (limits.max_cost_nano, limits.max_ns)


def test_limits_are_written_exactly_whatever_the_callers_decimal_context():
    """Six digits of precision are enough for many programs, and not for a ceiling."""
    with localcontext() as context:
        context.prec = 6
        limits = Limits(max_cost_usd="1234.567891", max_seconds=Decimal("1234.567891"))
        written = limits.to_mapping()
        assert Limits.from_mapping(written) == limits
    assert (written["max_cost_usd"], written["max_seconds"]) == ("1234.567891000", "1234.567891")


@pytest.mark.parametrize("text", ["nan", "-1", "soon", "1e99", ""])
def test_a_text_that_is_no_number_of_seconds_is_refused(text):
    """Also where configuration may write seconds as text."""
    with pytest.raises(ConfigurationError, match="max_seconds is"):
        Limits.from_mapping({"max_seconds": text})


@pytest.mark.parametrize("kind", [LyingInt, LyingFloat, LyingDecimal])
def test_a_limit_that_answers_what_it_likes_is_kept_as_a_plain_number(kind):
    """What its base type holds is the limit."""
    assert seconds_to_ns(kind("3"), "s") == 3 * 10**9
    limits = Limits(max_cost_usd=kind("3"), max_seconds=kind("3"))
    assert (type(limits.max_seconds), limits.max_cost_nano) == (kind.__base__, 3 * 10**9)
    with pytest.raises(ConfigurationError):
        Limits(max_seconds=kind("-3"))


def test_a_count_that_answers_what_it_likes_is_kept_as_a_plain_int():
    """Else a ceiling of five could say of itself that it was never reached, or could not be logged."""
    few = IntEnum("Few", {"FEW": 5}).FEW
    for count in (LyingInt(5), few):
        limits = Limits(max_steps=count, max_repeats=count)
        assert (type(limits.max_steps), limits) == (int, Limits(max_steps=5, max_repeats=5))


def test_seconds_become_nanoseconds_rounded_down():
    """A time limit is never longer than it was said; an absurdly small one is zero."""
    assert seconds_to_ns(0.1, "s") == 100_000_000
    assert seconds_to_ns(Decimal("0.0000000019"), "s") == 1
    assert seconds_to_ns(Decimal("1e-999999"), "s") == 0
