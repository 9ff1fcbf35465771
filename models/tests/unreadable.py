# ruff: noqa: PLC3002, C416, PLW0602 - what is refused here is strange code
"""Functions that a reader must refuse, each for the reason in its name; `# here` marks the line that is to be told."""

from __future__ import annotations

import functools

LIMIT = 2.5
NAMES = {"one": 1}


def isinstance_call(value: int) -> int:
    if isinstance(value, int):  # here
        return 1
    return 0


def identity_test(value: bool) -> int:
    if value is True:  # here
        return 1
    return 0


def float_constant(value: int) -> bool:
    return value > 0.5  # here


def float_of_the_module(value: int) -> bool:
    return value > LIMIT  # here


def f_string(value: int) -> str:
    return f"{value}"  # here


def text_constant(value: int) -> bool:
    return value == "one"  # here


def membership(value: int) -> bool:
    return value in (1, 2)  # here


def loop(value: int) -> int:
    while value > 0:  # here
        value = value - 1
    return value


def for_loop(value: int) -> int:
    total = 0
    for each in (1, 2):  # here
        total = total + each
    return total


def lookup(value: int) -> int:
    return NAMES["one"] + value  # here


def builtin_min(value: int) -> int:
    return min(value, 1)  # here


def conversion(value: int) -> int:
    return int(value)  # here


def true_division(value: int) -> float:
    return value / 2  # here


def bit_operation(value: int) -> int:
    return value & 1  # here


def power(value: int) -> int:
    return value**2  # here


def augmented(value: int) -> int:
    value += 1  # here
    return value


def walrus(value: int) -> int:
    if (twice := value + value) > 1:  # here
        return twice
    return value


def lambda_inside(value: int) -> int:
    return (lambda x: x + 1)(value)  # here


def comprehension(value: int) -> int:
    return len([each for each in (value, value)])  # here


def raising(value: int) -> int:
    if value < 0:
        raise ValueError(value)  # here
    return value


def asserting(value: int) -> int:
    assert value > 0  # here
    return value


def trying(value: int) -> int:
    try:  # here
        return value
    except ValueError:
        return 0


def attribute_of_a_number(value: int) -> int:
    return value.real  # here


def method_of_a_number(value: int) -> int:
    return value.bit_length()  # here


def private_attribute(value: int) -> int:
    return value._term  # here


def variable_index(value: int) -> int:
    return (1, 2)[value]  # here


def divided_by_a_variable(value: int, by: int) -> int:
    return value // by  # here


def divided_by_less_than_nothing(value: int) -> int:
    return value // -2  # here


def number_as_truth(value: int, flag: bool) -> bool:
    return value == flag  # here


def truth_as_number(value: int, flag: bool) -> int:
    return value + flag  # here


def unknown_name(value: int) -> int:
    return value + missing  # noqa: F821  # here


def global_statement(value: int) -> int:
    global LIMIT  # here
    return value


def inner_function(value: int) -> int:
    def inner():  # here
        return value

    return inner()


def default_parameter(value: int = 1) -> int:  # here
    return value


def star_parameters(*value: int) -> tuple[int, ...]:  # here
    return value


def shapes_differ(value: int) -> tuple[int, ...] | int:
    if value > 0:
        return value, value
    return value


def divides_by_zero(value: int) -> int:
    if value > 0:
        return 1 // 0  # here
    return value


def gives_a_part_that_is_nothing(value: int) -> tuple[int, None]:  # here
    return value, None


def gives_a_number_or_a_truth_value(value: int) -> int | bool:  # here
    if value > 0:
        return True
    return value


def never_gives_anything(value: int) -> None:  # here
    return None


def never_ends(value: int) -> int:
    if value > 0:
        return never_ends(value - 1)  # here
    return value


def calls_an_unreadable_one(value: int) -> int:
    return isinstance_call(value)


@functools.cache
def decorated(value: int) -> int:
    return value


def made_of(number: int):
    def closure(value: int) -> int:  # here
        return value + number

    return closure


closed_over = made_of(1)
