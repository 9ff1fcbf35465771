"""The reader reads what runs, all of it, and refuses what it cannot read with the function and the line."""

from __future__ import annotations

import functools
import inspect
import random
import types
from typing import Any

import pytest
import z3

from failstop.models.claim import PROVED, prove
from failstop.models.reader import AtOnce, flat, fresh, parameters, read
from failstop.models.symbolic import Bool, Int, Unreadable
from failstop.models.tests import toys, unreadable
from failstop.runtime.cores import breaker, budget, grant, ledger, quota, repeats, retry, steps

CORES = (ledger, budget, breaker, grant, quota, steps, retry, repeats)
FUNCTIONS = [
    function
    for core in CORES
    for function in vars(core).values()
    if isinstance(function, types.FunctionType) and function.__module__ == core.__name__
]
MARKED = [
    function
    for name, function in vars(unreadable).items()
    if inspect.isfunction(function) and function.__module__ == unreadable.__name__ and name != "made_of"
]
LARGEST = 3


def name_of(function: Any) -> str:
    """Name a function with its core."""
    return f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"


def reading_of(function: Any) -> tuple[dict[str, Any], Any]:
    """Read a function of fresh terms."""
    arguments = {name: fresh(kind, name) for name, kind in parameters(function).items()}
    return arguments, read(function, list(arguments.values()))


def line_of(function: types.FunctionType) -> int:
    """Find the line marked in the source of a function."""
    lines, first = inspect.getsourcelines(function)
    marked = [number for number, line in enumerate(lines) if "# here" in line]
    return first + marked[0] if marked else 0


class TestRefusals:
    """What is not read soundly is not read at all."""

    @pytest.mark.parametrize("function", MARKED, ids=lambda function: function.__name__)
    def test_what_cannot_be_read_is_refused_by_function_and_line(self, function: types.FunctionType) -> None:
        """A branch that goes missing would be a hole in a proof."""
        with pytest.raises(Unreadable) as caught:
            reading = reading_of(function)[1]
            assert reading.leaves
        line = line_of(function)
        if line:
            name = function.__qualname__.rpartition(".")[2]
            assert f"{name}, line {line}: " in str(caught.value)

    def test_the_function_that_is_told_is_the_one_that_is_called(self) -> None:
        """A core may be readable and what it calls not."""
        with pytest.raises(Unreadable, match=r"unreadable\.isinstance_call, line \d+: a call of isinstance"):
            reading_of(unreadable.calls_an_unreadable_one)

    def test_a_decorated_function_is_no_plain_one(self) -> None:
        """What a decorator put in its place has another body."""
        with pytest.raises(Unreadable, match="no plain function"):
            read(unreadable.decorated, [z3.Int("value")])

    @pytest.mark.parametrize("use", [str, repr, hash, int, float, bool, list, len, lambda value: f"{value}"])
    def test_a_symbolic_number_has_no_value_to_give(self, use: Any) -> None:
        """Whatever asks for one would go on with something else."""
        never = types.SimpleNamespace(decide=lambda _: pytest.fail("it decided"))
        for value in (Int(z3.Int("i"), never), Bool(z3.Bool("b"), never)):
            if use is not bool:
                with pytest.raises((Unreadable, TypeError)):
                    use(value)

    def test_a_hole_in_a_reading_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The reader does not trust itself: a fork that is walked one way only leaves a hole, which is found."""
        monkeypatch.setattr("failstop.models.reader._Fork._is_possible", lambda *_: False)
        with pytest.raises(Unreadable, match="do not cover every case"):
            reading_of(steps.step)

    @pytest.mark.parametrize("function", [toys.sometimes_nothing, toys.sometimes_other])
    def test_a_function_is_put_in_at_once_only_if_its_paths_are_alike(self, function: Any) -> None:
        """A path that gives nothing, or another record, would be told by the numbers of the others."""
        at_once = AtOnce(toys, function.__name__)
        calling = {toys.sometimes_nothing: asks_nothing, toys.sometimes_other: asks_other}[function]
        with pytest.raises(Unreadable, match=r"toys\.sometimes_\w+, line \d+: .*(gives nothing|on another)"):
            read(calling, [z3.Int("amount")], [at_once])

    @pytest.mark.parametrize(
        ("function", "reason"),
        [
            (unreadable.divides_by_zero, ".*by zero"),
            (unreadable.gives_a_part_that_is_nothing, "a whole number meets a NoneType"),
            (unreadable.gives_a_number_or_a_truth_value, "it gives bool on one path and int on another"),
            (unreadable.never_gives_anything, "it never gives anything"),
        ],
    )
    def test_a_result_of_another_kind_is_told_by_function_and_line(self, function: Any, reason: str) -> None:
        """Whatever stops the reader, it says where."""
        with pytest.raises(Unreadable, match=rf"unreadable\.{function.__name__}, line \d+: ({reason})"):
            assert reading_of(function)[1].leaves

    def test_another_record_is_not_taken_for_the_one_that_a_function_put_in_at_once_takes(self) -> None:
        """It has the same numbers by other names."""
        with pytest.raises(Unreadable, match=r"asks_another, line \d+: it is given .*Other\(.*; expected .*Person\("):
            read(asks_another, [z3.Int("amount")], [AtOnce(toys, "bags")])

    def test_a_record_with_code_of_its_own_is_none(self) -> None:
        """Its property would be run and not read."""
        with pytest.raises(Unreadable, match="expected int, bool, a tuple or a record"):
            fresh(toys.Odd, "odd")

    def test_the_source_that_is_checked_is_that_of_the_code_that_runs(self) -> None:
        """A function can carry another one, whose source `inspect` would give."""
        disguised = functools.update_wrapper(
            types.FunctionType(unreadable.isinstance_call.__code__, globals()), steps.step
        )
        with pytest.raises(Unreadable, match="isinstance"):
            read(disguised, [z3.Int("value")])


class TestReadings:
    """What comes out is what the function does."""

    def test_the_paths_of_a_toy_are_those_that_one_counts_by_hand(self) -> None:
        """The step guard: no limit, a limit that is reached, a limit that is not."""
        arguments, reading = reading_of(steps.step)
        assert len(reading.paths) == 3
        taken, limit = arguments["taken"], arguments["limit"]
        assert prove(reading.leaves[0] == z3.If(z3.And(limit >= 0, limit <= taken), taken, taken + 1)).status == PROVED

    @pytest.mark.parametrize("function", FUNCTIONS, ids=name_of)
    def test_every_core_is_read_as_it_runs(self, function: types.FunctionType) -> None:
        """Random values through the function and through its terms, at the boundaries above all."""
        arguments, reading = reading_of(function)
        chance = random.Random(7)
        for _ in range(40):
            given = {name: drawn(kind, chance) for name, kind in parameters(function).items()}
            leaves = flat(tuple(arguments.values()))
            pairs = list(zip(leaves, flat(tuple(given.values())), strict=True))
            told = [z3.simplify(z3.substitute(leaf, *pairs)) for leaf in reading.leaves]
            expected = flat(function(*given.values()))
            assert [str(leaf) for leaf in told] == [str(leaf) for leaf in expected], given

    def test_a_function_put_in_at_once_means_the_same(self) -> None:
        """One term instead of many paths, and nothing else is different; afterwards the function is itself again."""
        function = ledger.admit
        at_once = AtOnce(ledger, "standing")
        arguments = [fresh(kind, name) for name, kind in parameters(over).items()]
        with_paths, with_term = read(over, arguments), read(over, arguments, [at_once])
        assert len(with_term.paths) < len(with_paths.paths)
        assert prove(with_paths.leaves[0] == with_term.leaves[0]).status == PROVED
        assert (ledger.admit, ledger.standing.__name__) == (function, "standing")

    def test_the_order_of_cases_is_kept(self) -> None:
        """The first `if` that is true decides, as in the code."""
        _, reading = reading_of(first_of_two)
        assert (
            prove(reading.leaves[0] == z3.If(z3.Int("value") > 0, 1, z3.If(z3.Int("value") > -5, 2, 3))).status
            == PROVED
        )


def over(state: ledger.State, bounds: ledger.Bounds, now: int) -> bool:
    """Say whether a chain is over."""
    return ledger.standing(state, bounds, now) != ledger.ADMITTED


def asks_nothing(amount: int) -> int:
    """Ask what sometimes gives nothing."""
    if toys.sometimes_nothing(amount):
        return 1
    return 0


def asks_other(amount: int) -> int:
    """Ask what is sometimes another record."""
    return toys.sometimes_other(amount)[0]


def asks_another(amount: int) -> int:
    """Hand over a record that has what is asked for in another place."""
    return toys.bags(toys.Other(amount, 0))


def first_of_two(value: int) -> int:
    """Tell which case it is."""
    if value > 0:
        return 1
    if value > -5:
        return 2
    return 3


def drawn(kind: Any, chance: random.Random) -> Any:
    """Draw a small value of a type, so that limits are met often."""
    if kind is bool:
        return chance.random() < 0.5
    if kind is int:
        return chance.randint(-1, LARGEST)
    return tuple(drawn(part, chance) for part in kind.__args__)
