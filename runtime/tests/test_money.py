"""Money at the door: exact, rounded against the spender, and nothing that is not an amount."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failstop.runtime.money import MAX_CEILING, Money, nano_down, nano_up
from failstop.runtime.stops import ConfigurationError

amounts = st.one_of(
    st.floats(min_value=0, max_value=1e9, allow_nan=False),
    st.decimals(min_value=0, max_value=10**9, allow_nan=False),
    st.integers(min_value=0, max_value=10**9),
)


@given(amounts)
def test_a_cost_is_never_below_its_true_value_and_less_than_a_nano_dollar_above(value):
    """Costs and reservations are rounded up to a whole nano-dollar (G1)."""
    true = Fraction(value) * 10**9
    assert 0 <= nano_up(value) - true < 1


@given(amounts)
def test_a_ceiling_is_never_above_its_true_value_and_less_than_a_nano_dollar_below(value):
    """Ceilings are rounded down to a whole nano-dollar (G1)."""
    true = Fraction(value) * 10**9
    assert 0 <= true - nano_down(value) < 1


def test_text_and_decimal_say_a_tenth_exactly_and_a_float_cannot():
    """0.1 as a float is a little more than a tenth, so it costs one nano-dollar more."""
    assert nano_up("0.1") == nano_up(Decimal("0.1")) == 100_000_000
    assert nano_up(0.1) == 100_000_001


def test_a_tiny_positive_cost_is_never_free():
    """Rounding up keeps the smallest float, and a decimal with an absurd exponent, from costing nothing."""
    assert nano_up(5e-324) == nano_up("1e-999999999") == 1
    assert nano_down("1e-999999999") == 0


def test_a_cost_too_large_for_any_ceiling_is_still_counted_exactly():
    """A reported 1e308 is a real number of dollars and is recorded in full."""
    assert nano_up(1e308) == int(1e308) * 10**9


@pytest.mark.parametrize(
    "value",
    [
        *(float("nan"), float("inf"), -1, -0.01, Decimal("NaN"), Decimal("sNaN"), Decimal(-1), Money(-1)),
        *("-1", "nan", "inf", "x", "", "9" * 65, "1e500", "1e999999999"),
        *(10**400, 10**5000, Decimal("1e400"), Decimal("1e999999999"), Money(10**409)),
        *(True, False, None, [], 1 + 0j),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_amount_is_refused_by_name_and_value(value):
    """NaN, infinite, negative, a bool, a wrong type and senseless text are refused at the door (G6)."""
    for convert in (nano_up, nano_down):
        with pytest.raises(ConfigurationError) as refusal:
            convert(value, "price")
        assert str(refusal.value).startswith("price is ")


def test_the_bound_of_an_amount_is_the_same_however_it_is_written():
    """Just below 1e400 dollars it is exact, as an int, a Decimal or Money."""
    dollars = 10**400 - 1
    for value in (dollars, Decimal(dollars), Money(dollars * 10**9)):
        assert nano_up(value) == dollars * 10**9
    for value in (dollars + 1, Decimal(dollars + 1), Money((dollars + 1) * 10**9)):
        with pytest.raises(ConfigurationError, match="below 1e400 dollars"):
            nano_up(value)


def _never(*_):
    raise AssertionError("asked")


class LyingInt(int):
    """An int that answers nothing as an int does."""

    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = __index__ = __int__ = __mul__ = as_integer_ratio = _never
    __hash__ = None


class LyingFloat(float):
    """A float that answers nothing as a float does."""

    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = __float__ = as_integer_ratio = is_integer = _never
    __hash__ = None


class LyingDecimal(Decimal):
    """A Decimal that answers nothing as a Decimal does."""

    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = __float__ = as_integer_ratio = is_finite = adjusted = _never
    __hash__ = None


class LyingText(str):
    """A text that answers nothing as a text does."""

    __slots__ = ()
    __eq__ = __len__ = __str__ = __getitem__ = __iter__ = strip = _never
    __hash__ = None


@pytest.mark.parametrize("kind", [LyingInt, LyingFloat, LyingDecimal, LyingText])
def test_a_number_that_answers_what_it_likes_is_not_asked(kind):
    """What its base type holds counts: a subclass could otherwise be a ceiling that is none, or a cost below zero."""
    assert nano_up(kind("3")) == nano_down(kind("3")) == 3 * 10**9
    with pytest.raises(ConfigurationError):
        nano_up(kind("-3"))


def test_something_that_only_claims_to_be_a_number_is_refused():
    """A class that is claimed is believed by isinstance, and by nothing that converts."""

    class Claims:
        __class__ = int

    for convert in (nano_up, nano_down):
        with pytest.raises(ConfigurationError):
            convert(Claims())


def test_a_ceiling_beyond_sixty_three_bits_is_refused():
    """The largest ceiling is exact; one nano-dollar more is refused, and so is 10**400."""
    assert nano_down(Money(MAX_CEILING)) == MAX_CEILING
    for value in (Money(MAX_CEILING + 1), 10**400):
        with pytest.raises(ConfigurationError):
            nano_down(value)


def test_a_refused_value_is_shown_even_if_its_repr_fails():
    """The error names the field although the value cannot be printed."""

    class Hostile:
        def __repr__(self):
            raise RuntimeError

    with pytest.raises(ConfigurationError, match="cost is <Hostile without a repr>"):
        nano_up(Hostile())


def test_money_holds_whole_nano_dollars_only():
    """A float or a bool inside would bring rounding back in."""
    for nano in (1.5, True, "1"):
        with pytest.raises(ConfigurationError):
            Money(nano)


@pytest.mark.parametrize(
    ("nano", "text"),
    [(0, "$0.00"), (10**9, "$1.00"), (100_000_001, "$0.100000001"), (-1_500_000_000, "-$1.50"), (5, "$0.000000005")],
)
def test_money_reads_as_dollars_with_no_digit_lost(nano, text):
    """The text shows cents at least and every nano-dollar at most."""
    assert str(Money(nano)) == text
