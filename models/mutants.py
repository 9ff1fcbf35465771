"""Small edits of a function, each a mistake that somebody could make: a guard forgotten, `<` for `<=`, a lost addition.

An edit is told by what it changes, so that it can be named in a table and found again when lines have moved.
"""

from __future__ import annotations

import ast
import copy
import inspect
import itertools
import linecache
import textwrap
from collections import Counter
from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING, NamedTuple, get_args, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from types import ModuleType

_NEAREST: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}

_OPPOSITE: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}

_AS_NEAREST: Mapping[type[ast.cmpop], int] = {ast.Lt: 1, ast.LtE: -1, ast.Gt: -1, ast.GtE: 1}
"""How much the right side has to grow for the same as the nearest operator."""


class Edit(NamedTuple):
    """One edit of a function: the line within it, what becomes of what, and the whole text after it."""

    line: int
    told: str
    text: str


@dataclass(frozen=True, slots=True)
class Mutant:
    """A function of a module with one edit; line: that of the module's file."""

    module: str
    function: str
    line: int
    edit: str
    text: str

    @property
    def name(self) -> str:
        """Say where it is and what it changes."""
        return f"{self.module.rpartition('.')[2]}.{self.function} line {self.line}: {self.edit}"

    def built(self, module: ModuleType) -> FunctionType:
        """Make the function, at home in its module: it calls the others there, and its source can be read."""
        file = f"<{self.name}>"
        # Without a time, the cache keeps an entry that is no file on any disk.
        linecache.cache[file] = (len(self.text), None, self.text.splitlines(keepends=True), file)
        own: dict[str, FunctionType] = {}
        exec(compile(self.text, file, "exec"), vars(module), own)  # noqa: S102 - our own code
        return own[self.function]


def mutants(module: ModuleType, function: str) -> list[Mutant]:
    """Give every mutant of one function of a module."""
    original = getattr(module, function)
    lines, first = inspect.getsourcelines(original)
    hints = get_type_hints(original)
    state = next(iter(hints.values()))
    found = edits("".join(lines), codes(inspect.getsource(module)), [kind.__name__ for kind in get_args(state)])
    return [Mutant(module.__name__, function, first + each.line - 1, each.told, each.text) for each in found]


def functions(module: ModuleType) -> list[str]:
    """Name the functions that a module defines, in their order."""
    return [
        name
        for name, value in vars(module).items()
        if isinstance(value, FunctionType) and value.__module__ == module.__name__
    ]


def codes(source: str) -> list[tuple[str, ...]]:
    """Give the whole-number constants of a module, by group: those that follow one another."""
    groups = itertools.groupby(ast.parse(source).body, key=_constant)
    # A group is a run of statements that are constants; the key of each is its own name, so runs are joined here.
    found: list[tuple[str, ...]] = [()]
    for name, _ in groups:
        found = [*found[:-1], (*found[-1], name)] if name else [*found, ()]
    return [group for group in found if group]


def edits(source: str, codes: Collection[Sequence[str]] = (), state: Sequence[str] = ()) -> list[Edit]:
    """Give every edit of the one function in a text that changes it, each change once.

    codes: groups of constants, of which one may stand for another. state: the types of the parts of the state, which
    is what the function takes first.
    """
    tree = ast.parse(textwrap.dedent(source))
    seen = {ast.unparse(tree)}
    found = []
    told: Counter[str] = Counter()
    for line, what, old, new in _Changes(tree, codes, state).all():
        # A copy in which the old part is said to be copied already, as the new one.
        text = ast.unparse(copy.deepcopy(tree, {id(old): new}))
        if text not in seen:
            seen.add(text)
            told[what] += 1
            found.append(Edit(line, what if told[what] == 1 else f"{what} ({told[what]})", text))
    return found


class _Change(NamedTuple):
    """A part of the tree, a node or a list of statements, and what stands there instead."""

    line: int
    told: str
    old: ast.AST | list[ast.stmt]
    new: ast.AST | list[ast.stmt]


class _Changes:
    """All changes of one function."""

    def __init__(self, tree: ast.Module, codes: Collection[Sequence[str]], state: Sequence[str]) -> None:
        function = tree.body[0]
        if not isinstance(function, ast.FunctionDef):
            raise TypeError(f"expected one function, got {ast.unparse(tree)!r}")
        self._function = function
        self._state = state
        self._next = {name: group[(place + 1) % len(group)] for group in codes for place, name in enumerate(group)}

    def all(self) -> Iterator[_Change]:
        """Give them in the order of the text: of each statement first that it is dropped."""
        yield from self._block(self._function.body, None)

    def _block(self, block: list[ast.stmt], owner: ast.If | None) -> Iterator[_Change]:
        for place, statement in enumerate(block):
            yield from self._without(block, place, owner)
            yield from self._inside(statement)

    def _inside(self, statement: ast.stmt) -> Iterator[_Change]:
        if isinstance(statement, ast.If):
            yield _replaced(statement.test, _negated(statement.test))
            yield from self._expressions(statement.test, statement.test)
            if statement.orelse and not _is_elif(statement):
                told = f"the `else` of `{ast.unparse(statement.test)}` is dropped"
                yield _Change(statement.lineno, told, statement.orelse, [])
            yield from self._block(statement.body, statement)
            yield from self._block(statement.orelse, statement)
        elif isinstance(statement, ast.Return) and statement.value is not None:
            yield from self._returned(statement.value)
            yield from self._expressions(statement.value, statement.value)
        elif isinstance(statement, ast.Assign):
            yield from self._expressions(statement.value, statement)

    def _without(self, block: list[ast.stmt], place: int, owner: ast.If | None) -> Iterator[_Change]:
        """Drop a statement; of an `if` its `else` stays, and what an assignment sets must have been set before."""
        statement = block[place]
        if isinstance(statement, ast.If):
            told = f"`if {ast.unparse(statement.test)}` is dropped"
            rest = [*block[:place], *statement.orelse, *block[place + 1 :]]
        elif isinstance(statement, ast.Assign) and _names(statement) <= self._set_before(statement):
            told = f"`{ast.unparse(statement)}` is dropped"
            rest = [*block[:place], *block[place + 1 :]]
        else:
            return
        if rest or (owner is not None and block is owner.orelse):
            yield _Change(statement.lineno, told, block, rest)
        elif owner is not None and owner.orelse:
            # An `if` needs a body: the same is said by its `else` alone.
            yield _Change(statement.lineno, told, owner, ast.If(_negated(owner.test), owner.orelse, []))

    def _set_before(self, statement: ast.Assign) -> set[str]:
        given = {each.arg for each in self._function.args.args}
        earlier = (each for each in ast.walk(self._function) if isinstance(each, ast.Assign))
        return given.union(*(_names(each) for each in earlier if each.lineno < statement.lineno))

    def _returned(self, value: ast.expr) -> Iterator[_Change]:
        """Return the state as it was, or with two parts of one type in each other's place."""
        first, given = self._function.args.args[0], self._function.returns
        if first.annotation is None or given is None:
            return
        kind = ast.unparse(first.annotation)
        if ast.unparse(given) == kind:
            state = value
        elif ast.unparse(given).startswith(f"tuple[{kind},") and isinstance(value, ast.Tuple):
            state = value.elts[0]
        else:
            return
        yield _replaced(state, ast.Name(first.arg, ast.Load()), of=value)
        if isinstance(state, ast.Tuple) and len(state.elts) == len(self._state):
            for place, (one, two) in enumerate(itertools.pairwise(self._state)):
                parts = state.elts
                swapped = [*parts[:place], parts[place + 1], parts[place], *parts[place + 2 :]]
                if one == two:
                    yield _replaced(state, ast.Tuple(swapped, ast.Load()))

    def _expressions(self, whole: ast.expr, of: ast.expr | ast.Assign) -> Iterator[_Change]:
        in_order = sorted((each for each in ast.walk(whole) if isinstance(each, ast.expr)), key=_position)
        for node in in_order:
            around = _around(of, node)
            for new in self._instead_of(node):
                if not _is_another_edit(around, node, new):
                    yield _replaced(node, new, of=around)

    def _instead_of(self, node: ast.expr) -> Iterator[ast.expr]:
        if isinstance(node, ast.Compare):
            yield from _compared(node)
        elif isinstance(node, ast.BoolOp):
            yield from _joined(node)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield node.operand
        elif isinstance(node, ast.BinOp):
            yield from _calculated(node)
        elif isinstance(node, ast.IfExp):
            yield from (ast.IfExp(_negated(node.test), node.body, node.orelse), node.body, node.orelse)
        elif isinstance(node, ast.Call) and node.args:
            yield node.args[0]
        elif isinstance(node, ast.Constant):
            yield from _near(node.value)
        elif isinstance(node, ast.Name) and node.id in self._next:
            yield from self._other_than(node)

    def _other_than(self, code: ast.Name) -> Iterator[ast.expr]:
        """Give the next code of the group; a constant without a group is off by one."""
        if self._next[code.id] != code.id:
            yield ast.Name(self._next[code.id], ast.Load())
        else:
            yield ast.BinOp(code, ast.Add(), ast.Constant(1))
            yield ast.BinOp(code, ast.Sub(), ast.Constant(1))


def _compared(node: ast.Compare) -> Iterator[ast.expr]:
    for place, operator in enumerate(node.ops):
        if type(operator) in _NEAREST:
            ops = [*node.ops[:place], _NEAREST[type(operator)](), *node.ops[place + 1 :]]
            yield ast.Compare(node.left, ops, node.comparators)
    if len(node.ops) > 1:
        yield ast.Compare(node.comparators[0], node.ops[1:], node.comparators[1:])
        yield ast.Compare(node.left, node.ops[:-1], node.comparators[:-1])


def _joined(node: ast.BoolOp) -> Iterator[ast.expr]:
    yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    for left in range(len(node.values)):
        kept = [each for place, each in enumerate(node.values) if place != left]
        yield kept[0] if len(kept) == 1 else ast.BoolOp(node.op, kept)


def _calculated(node: ast.BinOp) -> Iterator[ast.expr]:
    if isinstance(node.op, ast.Add | ast.Sub):
        yield ast.BinOp(node.left, ast.Sub() if isinstance(node.op, ast.Add) else ast.Add(), node.right)
    yield node.left


def _near(value: object) -> Iterator[ast.expr]:
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int):
        yield ast.Constant(value + 1)
        yield ast.Constant(value - 1)


def _replaced(old: ast.expr, new: ast.expr, of: ast.expr | ast.Assign | None = None) -> _Change:
    """Tell a change by that `of` which the old one is a part, where by itself it would say little."""
    whole = of or old
    after = copy.deepcopy(whole, {id(old): new})
    return _Change(old.lineno, f"`{ast.unparse(whole)}` becomes `{ast.unparse(after)}`", old, new)


def _around(whole: ast.expr | ast.Assign, node: ast.expr) -> ast.expr | ast.Assign:
    """Give the smallest part that says something of a name or a number in it."""
    if not isinstance(node, ast.Name | ast.Constant):
        return node
    around = [each for each in ast.walk(whole) if node in ast.iter_child_nodes(each)]
    return next((each for each in around if isinstance(each, ast.expr | ast.Assign)), node)


def _is_another_edit(around: ast.AST, node: ast.expr, new: ast.expr) -> bool:
    """Say whether a number that is off by one is another edit in other words, or no place in a tuple."""
    if not (isinstance(node, ast.Constant) and isinstance(node.value, int) and isinstance(new, ast.Constant)):
        return False
    if isinstance(around, ast.Compare):
        # Of whole numbers, `x <= 0` is `x < 1`.
        places = itertools.pairwise((around.left, *around.comparators))
        for operator, (left, right) in zip(around.ops, places, strict=True):
            nearer = _AS_NEAREST.get(type(operator), 0)
            if (left is node and new.value == node.value - nearer) or (
                right is node and new.value == node.value + nearer
            ):
                return True
        return False
    # To add nothing is to lose the addition.
    return (isinstance(around, ast.BinOp) and new.value == 0) or (isinstance(around, ast.Subscript) and new.value == -1)


def _negated(test: ast.expr) -> ast.expr:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in _OPPOSITE:
        return ast.Compare(test.left, [_OPPOSITE[type(test.ops[0])]()], test.comparators)
    return ast.UnaryOp(ast.Not(), test)


def _names(statement: ast.Assign) -> set[str]:
    return {each.id for target in statement.targets for each in ast.walk(target) if isinstance(each, ast.Name)}


def _is_elif(statement: ast.If) -> bool:
    return len(statement.orelse) == 1 and isinstance(statement.orelse[0], ast.If)


def _position(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _constant(statement: ast.stmt) -> str:
    """Name the whole-number constant that a statement sets; empty if it is none."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return ""
    try:
        value = ast.literal_eval(statement.value)
    except ValueError:
        # An expression such as 10**9 is a constant by itself.
        return statement.targets[0].id if isinstance(statement.value, ast.BinOp) else ""
    return statement.targets[0].id if type(value) is int else ""
