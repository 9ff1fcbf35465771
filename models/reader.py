"""Reads a pure function: runs it on symbolic values once for every path through it, and merges what came out.

The function that is read is the one that runs. Its paths are told apart by the decisions taken at each fork. Nothing is
given out before the solver has said that the paths cover everything and never overlap: a hole in a reading would be a
hole in every proof that rests on it, and nobody would see it.
"""

from __future__ import annotations

import types
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast, get_args, get_origin, get_type_hints

import z3

from failstop.models.claim import PROVED, prove
from failstop.models.readable import check_readable, is_record
from failstop.models.solver import asked
from failstop.models.symbolic import Bool, Int, Symbolic, Unreadable, term_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from failstop.models.symbolic import Forks

MOST_PATHS = 5000
_MACHINERY = {__name__, Symbolic.__module__, "functools"}
"""Modules that are never what is being read."""
_FORK_LIMIT_MS = 2000


@dataclass(frozen=True, slots=True)
class Path:
    """One way through the function: the condition and the way of each fork, and what it gives, in terms."""

    forks: tuple[tuple[z3.BoolRef, bool], ...]
    result: Any

    @property
    def condition(self) -> z3.BoolRef:
        """When this way is taken."""
        return z3.And([condition if way else z3.Not(condition) for condition, way in self.forks])


@dataclass(frozen=True, slots=True)
class Reading:
    """All ways through a function; place: where it stands."""

    place: str
    paths: tuple[Path, ...]

    @property
    def exhaustive(self) -> z3.BoolRef:
        """The claim that some path is taken, whatever is given."""
        return z3.Or([path.condition for path in self.paths])

    @property
    def disjoint(self) -> z3.BoolRef:
        """The claim that no two paths are taken at once."""
        return z3.AtMost(*(path.condition for path in self.paths), 1) if len(self.paths) > 1 else z3.BoolVal(True)

    @property
    def possible(self) -> z3.BoolRef:
        """When the function gives a result and not None, which an action says when it cannot happen."""
        return _tree([(path.forks, z3.BoolVal(path.result is not None)) for path in self.paths])

    @property
    def leaves(self) -> list[z3.ExprRef]:
        """Each number of the result, in order, as one term; meaningless where the function gives None."""
        rows = [(path.forks, path.result) for path in self.paths if path.result is not None]
        if not rows:
            raise Unreadable(f"{self.place}: it never gives anything")
        first, other = rows[0][1], next((each for _, each in rows if _shape(each) != _shape(rows[0][1])), None)
        if other is not None:
            raise Unreadable(f"{self.place}: it gives {kind_of(first)} on one path and {kind_of(other)} on another")
        columns = list(zip(*(flat(result) for _, result in rows), strict=True))
        return [_tree([(forks, leaf) for (forks, _), leaf in zip(rows, column, strict=True)]) for column in columns]

    @property
    def always(self) -> Reading:
        """The same reading; raises Unreadable if the function gives None, and so nothing, on some path."""
        if any(path.result is None for path in self.paths):
            raise Unreadable(f"{self.place}: a path gives nothing")
        return self

    def must_give(self, expected: Any) -> None:
        """Raise Unreadable unless every result is of the kind of this one: two records may have the same numbers."""
        for path in self.paths:
            if path.result is not None and _shape(path.result) != _shape(expected):
                raise Unreadable(f"{self.place}: it gives {kind_of(path.result)}; expected {kind_of(expected)}")


class AtOnce:
    """Puts a module's function into whatever calls it as one term a number, so that its paths do not multiply theirs.

    As a context manager it stands in for the function while others are read.
    """

    def __init__(self, module: types.ModuleType, name: str) -> None:
        self._module = module
        self._name = name
        self._function = getattr(module, name)
        self._arguments = [fresh(kind, f"{name}.{each}") for each, kind in parameters(self._function).items()]

    @cached_property
    def _read(self) -> tuple[Any, list[z3.ExprRef]]:
        """The shape of the result, and its leaves; read when the function is first met."""
        reading = read(self._function, self._arguments).always
        return reading.paths[0].result, reading.leaves

    def __call__(self, *given: Any) -> Any:
        """Give the result for these arguments, one of which at least is symbolic."""
        fork = next(leaf.forks for leaf in _leaves(given) if isinstance(leaf, Symbolic))
        terms = _plain(given)
        must_fit(tuple(self._arguments), terms)
        pairs = list(zip(flat(tuple(self._arguments)), flat(terms), strict=True))
        shape, leaves = self._read
        return _symbolic(filled(shape, [z3.substitute(leaf, *pairs) for leaf in leaves]), fork)

    def __enter__(self) -> None:
        setattr(self._module, self._name, self)

    def __exit__(self, *_: object) -> None:
        setattr(self._module, self._name, self._function)


def read(function: Callable[..., Any], arguments: Sequence[Any], at_once: Sequence[AtOnce] = ()) -> Reading:
    """Read a function of these arguments (terms, plain values, tuples); raises Unreadable.

    at_once: functions that it calls, to be put in as one term.
    """
    plain = cast("types.FunctionType", function)
    if not isinstance(function, types.FunctionType):
        raise Unreadable(f"{getattr(function, '__qualname__', function)} is no plain function")
    check_readable(plain)
    with ExitStack() as stand_ins:
        for each in at_once:
            stand_ins.enter_context(each)
        reading = Reading(place_of(plain), tuple(_paths(plain, arguments)))
    for claim, what in ((reading.exhaustive, "do not cover every case"), (reading.disjoint, "overlap")):
        if prove(claim).status != PROVED:
            raise Unreadable(f"{reading.place}: the {len(reading.paths)} paths {what}")
    return reading


def _paths(function: types.FunctionType, arguments: Sequence[Any]) -> list[Path]:
    paths: list[Path] = []
    waiting: list[tuple[bool, ...]] = [()]
    while waiting:
        fork = _Fork(waiting.pop())
        result = _run(function, [_symbolic(argument, fork) for argument in arguments])
        paths.append(Path(tuple(fork.taken), result))
        waiting += fork.others
        if len(paths) + len(waiting) > MOST_PATHS:
            raise Unreadable(f"{place_of(function)}: it has more than {MOST_PATHS} paths")
    return paths


def fresh(kind: Any, name: str) -> Any:
    """Make terms for a type: int, bool, a tuple of these, or a record, whose fields name the terms."""
    if kind is int:
        return z3.Int(name)
    if kind is bool:
        return z3.Bool(name)
    if is_record(kind):
        hints = get_type_hints(kind)
        return kind(*(fresh(hints[field], f"{name}.{field}") for field in kind._fields))
    if get_origin(kind) is tuple:
        return tuple(fresh(part, f"{name}.{position}") for position, part in enumerate(get_args(kind)))
    raise Unreadable(f"{name} is a {kind}; expected int, bool, a tuple or a record of these")


def parameters(function: Callable[..., Any]) -> dict[str, Any]:
    """Give the types of a function's parameters, in order."""
    hints = get_type_hints(function)
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    return {name: hints[name] for name in names}


def flat(value: Any) -> list[z3.ExprRef]:
    """Give the numbers of a value, in order, as terms."""
    if isinstance(value, tuple):
        return [leaf for part in value for leaf in flat(part)]
    return [value if z3.is_expr(value) else term_of(value)]


class _Fork:
    """The decisions of one run: those that were asked for, then true wherever that is possible."""

    def __init__(self, wanted: tuple[bool, ...]) -> None:
        self._wanted = wanted
        self._solver = z3.Solver()
        self._solver.set("timeout", _FORK_LIMIT_MS)
        self.taken: list[tuple[z3.BoolRef, bool]] = []
        self.others: list[tuple[bool, ...]] = []

    def decide(self, condition: z3.BoolRef) -> bool:
        condition = z3.simplify(condition)
        if z3.is_true(condition) or z3.is_false(condition):
            return bool(z3.is_true(condition))
        position = len(self.taken)
        if position < len(self._wanted):
            return self._take(condition, self._wanted[position])
        if not self._is_possible(condition):
            return self._take(condition, False)
        if self._is_possible(z3.Not(condition)):
            self.others.append((*(way for _, way in self.taken), False))
        return self._take(condition, True)

    def _is_possible(self, condition: z3.BoolRef) -> bool:
        # An unknown counts as possible: one path too many is harmless, one too few would be a hole in a proof.
        return bool(asked(self._solver, condition) != z3.unsat)

    def _take(self, condition: z3.BoolRef, way: bool) -> bool:
        self.taken.append((condition, way))
        self._solver.add(condition if way else z3.Not(condition))
        return way


def _run(function: types.FunctionType, arguments: list[Any]) -> Any:
    """Run it once on terms; whatever it fails with, it cannot be read. None alone stands for no result."""
    try:
        result = function(*arguments)
        return None if result is None else _plain(result)
    except Exception as error:
        raise Unreadable(f"{_where(function, error)}: {error}") from error


def place_of(function: Callable[..., Any]) -> str:
    """Say where a function stands."""
    return f"{function.__module__}.{function.__qualname__}, line {function.__code__.co_firstlineno}"


def _where(function: types.FunctionType, error: BaseException) -> str:
    """Name the innermost function that was being read, and its line."""
    place = place_of(function)
    trace = error.__traceback__
    while trace is not None:
        module = trace.tb_frame.f_globals.get("__name__", "")
        if module not in _MACHINERY and not module.startswith("z3."):
            place = f"{module}.{trace.tb_frame.f_code.co_qualname}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return place


def _symbolic(value: Any, fork: Forks) -> Any:
    if isinstance(value, tuple):
        return _like(value, [_symbolic(part, fork) for part in value])
    if z3.is_bool(value):
        return Bool(value, fork)
    if z3.is_int(value):
        return Int(value, fork)
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return _like(value, [_plain(part) for part in value])
    return term_of(value)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for part in value:
            yield from _leaves(part)
    else:
        yield value


def must_fit(wanted: Any, given: Any) -> None:
    """Raise Unreadable for another record than is wanted, or other numbers; a record may stand for a plain tuple."""
    if isinstance(wanted, tuple) and isinstance(given, tuple) and len(wanted) == len(given):
        if type(wanted) in {tuple, type(given)}:
            for want, part in zip(wanted, given, strict=True):
                must_fit(want, part)
            return
    elif _shape(wanted) == _shape(given):
        return
    raise Unreadable(f"it is given {kind_of(given)}; expected {kind_of(wanted)}")


def kind_of(value: Any) -> str:
    """Name the kind of a value: its record and the sorts of its numbers."""
    if isinstance(value, tuple):
        name = "" if type(value) is tuple else type(value).__qualname__
        return f"{name}({', '.join(kind_of(part) for part in value)})"
    return str(flat(value)[0].sort()).lower()


def _shape(value: Any) -> Any:
    """What two values must have in common to be told apart by their numbers alone."""
    if isinstance(value, tuple):
        return (type(value), tuple(_shape(part) for part in value))
    return str(flat(value)[0].sort())


def filled(shape: Any, leaves: Sequence[z3.ExprRef]) -> Any:
    """Give a value of the same shape with other numbers, all of which it takes."""
    left = list(reversed(leaves))
    result = _filled(shape, left)
    if left:
        raise ValueError(f"{len(left)} of {len(leaves)} numbers have no place in {kind_of(shape)}")
    return result


def _filled(shape: Any, left: list[z3.ExprRef]) -> Any:
    if isinstance(shape, tuple):
        return _like(shape, [_filled(part, left) for part in shape])
    return left.pop()


def _like(original: tuple[Any, ...], parts: list[Any]) -> tuple[Any, ...]:
    return type(original)(*parts) if is_record(type(original)) else tuple(parts)


def _tree(ways: list[tuple[tuple[tuple[z3.BoolRef, bool], ...], z3.ExprRef]], depth: int = 0) -> z3.ExprRef:
    """One term for a value that depends on the path: it asks at each fork what the function asks there."""
    forks, value = ways[0]
    if all(other.eq(value) for _, other in ways):
        return value
    yes, no = ([way for way in ways if way[0][depth][1] is taken] for taken in (True, False))
    if not yes or not no:
        return _tree(ways, depth + 1)
    return z3.If(forks[depth][0], _tree(yes, depth + 1), _tree(no, depth + 1))
