"""What a function may be made of to be read: the syntax is held against a list before anything is run.

A symbolic value cannot notice an ``isinstance``, an ``is`` or an f-string's constant part, and would take one branch
without a word. So whatever is not on the list is refused, with the function and the line.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from failstop.models.symbolic import Unreadable

_STATEMENTS = (ast.Assign, ast.If, ast.Return)
_EXPRESSIONS = (
    *(ast.Name, ast.Constant, ast.Tuple, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.IfExp),
    *(ast.Subscript, ast.Call, ast.Attribute),
)
_OPERATORS = (
    *(ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq, ast.And, ast.Or, ast.Not, ast.USub),
    *(ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod),
)
_KINDS_OF_OPERATORS = (ast.cmpop, ast.boolop, ast.unaryop, ast.operator)


def check_readable(function: FunctionType) -> None:
    """Refuse a function, or one that it calls, that is made of anything unexpected; raises Unreadable."""
    _check(function, set(), ())


def _check(function: FunctionType, seen: set[FunctionType], callers: tuple[FunctionType, ...]) -> None:
    """Walk over a function and all that it calls, each once."""
    if function in seen:
        return
    seen.add(function)
    node, first_line = _definition(function)
    body = _Body(function, first_line, {*_parameters(node), *_assigned(node)})
    body.signature(node)
    for statement in node.body[_has_docstring(node) :]:
        body.statement(statement)
    for callee, call in body.calls:
        if callee in (*callers, function):
            body.refuse(call, f"a call of {callee.__name__}, which has not ended yet: it may never")
        _check(callee, seen, (*callers, function))


class _Body:
    """The body of one function."""

    def __init__(self, function: FunctionType, first_line: int, local: set[str]) -> None:
        self._function = function
        self._first_line = first_line
        self._local = local
        self.calls: list[tuple[FunctionType, ast.Call]] = []

    def signature(self, node: ast.FunctionDef) -> None:
        given = node.args
        if node.decorator_list:
            self.refuse(node, "a decorator, which may replace the function")
        if given.defaults or given.kwonlyargs or given.vararg or given.kwarg:
            self.refuse(node, "parameters other than plain ones")
        if self._function.__code__.co_freevars:
            self.refuse(node, "a variable of a function around it")

    def statement(self, node: ast.stmt) -> None:
        if not isinstance(node, _STATEMENTS):
            self.refuse(node, f"a statement of kind {type(node).__name__}")
        if isinstance(node, ast.Assign):
            self._targets(node)
            self.expression(node.value)
        elif isinstance(node, ast.If):
            self.expression(node.test)
            for inner in (*node.body, *node.orelse):
                self.statement(inner)
        elif isinstance(node, ast.Return) and node.value is not None:
            self.expression(node.value)

    def expression(self, node: ast.AST) -> None:
        if isinstance(node, ast.Name):
            self._constant(node, self._value_of(node))
        elif isinstance(node, ast.Attribute):
            self._attribute(node)
        elif isinstance(node, ast.Call):
            self._call(node)
        elif isinstance(node, ast.Constant):
            self._constant(node, node.value)
        elif isinstance(node, ast.Subscript):
            self._subscript(node)
        elif isinstance(node, _EXPRESSIONS):
            for inner in ast.iter_child_nodes(node):
                # An operator has no line of its own.
                if isinstance(inner, _KINDS_OF_OPERATORS) and not isinstance(inner, _OPERATORS):
                    self.refuse(node, f"the operator {type(inner).__name__}")
                if isinstance(inner, ast.expr):
                    self.expression(inner)
        else:
            self.refuse(node, f"an expression of kind {type(node).__name__}")

    def _targets(self, node: ast.Assign) -> None:
        target = node.targets[0]
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        if len(node.targets) != 1 or not all(isinstance(name, ast.Name) for name in names):
            self.refuse(node, "an assignment to anything but names")

    def _value_of(self, node: ast.Name) -> Any:
        if node.id in self._local:
            return 0
        if node.id in self._function.__globals__:
            return self._function.__globals__[node.id]
        return self.refuse(node, f"the name {node.id!r}, which is no constant or function of its module")

    def _constant(self, node: ast.AST, value: object) -> None:
        if value is not None and type(value) not in {int, bool}:
            self.refuse(node, f"a value of type {type(value).__name__}")

    def _attribute(self, node: ast.Attribute) -> None:
        base = node.value
        if isinstance(base, ast.Name) and isinstance(self._value_of(base), ModuleType):
            self._constant(node, getattr(self._value_of(base), node.attr, ""))
            return
        if node.attr.startswith("_"):
            self.refuse(node, f"the attribute {node.attr!r}")
        self.expression(base)

    def _subscript(self, node: ast.Subscript) -> None:
        if not isinstance(node.slice, ast.Constant) or type(node.slice.value) is not int:
            self.refuse(node, "an index that is no constant")
        self.expression(node.value)

    def _call(self, node: ast.Call) -> None:
        callee = self._callee(node.func)
        if isinstance(callee, FunctionType):
            if node.keywords:
                self.refuse(node, "a call with keywords")
            self.calls.append((callee, node))
        elif not is_record(callee) and not self._is_replacement(node.func):
            self.refuse(node, f"a call of {ast.unparse(node.func)}")
        for given in (*node.args, *(keyword.value for keyword in node.keywords)):
            self.expression(given)

    def _callee(self, node: ast.expr) -> object:
        if isinstance(node, ast.Name) and node.id not in self._local:
            return self._function.__globals__.get(node.id)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id not in self._local:
            base = self._value_of(node.value)
            return getattr(base, node.attr, None) if isinstance(base, ModuleType) else None
        return None

    def _is_replacement(self, node: ast.expr) -> bool:
        """A record's `_replace` makes another record and asks no field anything."""
        if not isinstance(node, ast.Attribute) or node.attr != "_replace":
            return False
        self.expression(node.value)
        return True

    def refuse(self, node: ast.AST, what: str) -> Any:
        """Raise Unreadable with the function and the line."""
        line = self._first_line + getattr(node, "lineno", 1) - 1
        raise Unreadable(f"{self._function.__module__}.{self._function.__qualname__}, line {line}: {what}")


def is_record(value: object) -> bool:
    """Say whether a class is a plain NamedTuple: methods and properties of its own would run without being read."""
    if not isinstance(value, type) or value.__bases__ != (tuple,) or not hasattr(value, "_fields"):
        return False
    return set(vars(value)) <= {*vars(_Plain), *value._fields}


class _Plain(NamedTuple):
    """What every named tuple has."""

    field: int


def _definition(function: FunctionType) -> tuple[ast.FunctionDef, int]:
    try:
        # Of the code, since a function can carry the source of another one.
        lines, first_line = inspect.getsourcelines(function.__code__)
    except (OSError, TypeError) as error:
        raise Unreadable(f"{function!r} has no source to read: {error}") from None
    node = ast.parse(textwrap.dedent("".join(lines))).body[0]
    if not isinstance(node, ast.FunctionDef):
        raise Unreadable(f"{function.__module__}.{function.__qualname__}, line {first_line}: no plain function")
    return node, first_line


def _parameters(node: ast.FunctionDef) -> list[str]:
    return [argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)]


def _assigned(node: ast.FunctionDef) -> list[str]:
    names = (each for each in ast.walk(node) if isinstance(each, ast.Name))
    return [each.id for each in names if isinstance(each.ctx, ast.Store)]


def _has_docstring(node: ast.FunctionDef) -> bool:
    return ast.get_docstring(node) is not None
