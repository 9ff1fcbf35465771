"""A program as text: a test to paste, and a word for the command line; the word is read without running anything."""

from __future__ import annotations

import ast
import base64
import binascii
import dataclasses
import importlib
import re
import zlib
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

from failstop.runtime.limits import Limits
from failstop.runtime.money import Money

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from failstop.properties.subject import Move, Subject

LAYER = "machines"

REPLAY = ("failstop.properties.machines.replaying", "first_difference")
"""What a test imports to play a program again."""

_LONGEST = 1_000_000
_WIDTH = 120
_PACKAGE = "failstop.properties."
_MODULE = re.compile(r"(?:subjects|references)\.[a-z][a-z_]*")


def as_test(target_name: str, subject: Subject, moves: Sequence[Move]) -> str:
    """Write a test that fails for as long as the program shows a difference."""
    used = {REPLAY, *((each.__module__, each.__name__) for each in _types((subject, *moves)))}
    names = {module: sorted(name for each, name in used if each == module) for module, _ in used}
    # Those of the standard library stand above ours.
    modules = sorted(names, key=lambda module: (module.startswith("failstop"), module))
    imports = [f"from {module} import {', '.join(names[module])}" for module in modules]
    arguments = (spelled(target_name), spelled(subject), f"[{', '.join(map(spelled, moves))}]")
    claim = f"    assert first_difference({', '.join(arguments)}) is None"
    if len(claim) > _WIDTH:
        lines = ",\n        ".join((*arguments[:2], f"[{_one_a_line(moves)}]"))
        claim = f"    found = first_difference(\n        {lines},\n    )\n    assert found is None, found"
    return "\n".join((*imports, "", "", "def test_found():", claim, ""))


def spelled(value: object) -> str:
    """Write a value as Python, without what is a default; raises TypeError for what cannot be read back."""
    if type(value) is str:
        told = repr(value)
        return told if '"' in told else f'"{told[1:-1]}"'
    if value is None or type(value) in {bool, int}:
        return repr(value)
    if type(value) is Decimal:
        return f"Decimal({spelled(str(value))})"
    if type(value) is tuple:
        inner = ", ".join(map(spelled, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    arguments = [spelled(part) if name is None else f"{name}={spelled(part)}" for name, part in _arguments(value)]
    return f"{type(value).__name__}({', '.join(arguments)})"


def word(target_name: str, subject: Subject, moves: Sequence[Move]) -> str:
    """Give the word that `failstop replay` takes: machines/TARGET/PROGRAM."""
    return f"{LAYER}/{target_name}/{encoded(subject, moves)}"


def encoded(subject: Subject, moves: Sequence[Move]) -> str:
    """Give a compact text of a program that is safe in a URL and in a shell; raises TypeError if it has none."""
    used: dict[str, list[str]] = {}
    for each in dict.fromkeys(_types((subject, *moves))):
        used.setdefault(each.__module__.removeprefix(_PACKAGE), []).append(each.__name__)
    imports = [f"{module}:{','.join(names)}" for module, names in used.items() if _MODULE.fullmatch(module)]
    text = f"{' '.join(imports)}\n({spelled(subject)}, {spelled(tuple(moves))})"
    token = base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode().rstrip("=")
    if decoded(token) != (subject, tuple(moves)):
        raise TypeError(f"{text!r} would be read as another program")
    return token


def decoded(token: str) -> tuple[Subject, tuple[Move, ...]]:
    """Read the text of a program; raises ValueError for what is none."""
    try:
        imports, _, program = _unpacked(token).partition("\n")
        found = _Reader(_namespace(imports)).read(program)
    except (binascii.Error, zlib.error, ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(f"{token:.60} is no program: {error}") from error
    match found:
        case (subject, tuple() as moves) if hasattr(subject, "reference"):
            return cast("Subject", subject), moves
    raise ValueError(f"{token:.60} is no program: it says {found!r:.80}")


def read(given: str) -> tuple[str, Subject, tuple[Move, ...]]:
    """Read a word: the name of the target and the program; raises ValueError for what is none."""
    layer, _, rest = given.partition("/")
    target_name, slash, token = rest.rpartition("/")
    if layer != LAYER or not slash or not target_name:
        raise ValueError(f"{given:.80} is no program; expected {LAYER}/TARGET/PROGRAM")
    return target_name, *decoded(token)


def _unpacked(token: str) -> str:
    unpacking = zlib.decompressobj()
    packed = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    text = unpacking.decompress(packed, _LONGEST)
    if not unpacking.eof:
        raise ValueError("it is cut short, or too long")
    return text.decode()


class _Reader:
    """Reads what `spelled` writes: constants, tuples, and the types that are known, by their names."""

    def __init__(self, known: Mapping[str, type]) -> None:
        self._known = known

    def read(self, text: str) -> object:
        return self._value(ast.parse(text, mode="eval").body)

    def _value(self, node: ast.expr) -> object:
        match node:
            case ast.Constant(value=bool() | int() | str() | None as value):
                return value
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)):
                return -value
            case ast.Tuple(elts=parts):
                return tuple(map(self._value, parts))
            case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if name in self._known:
                named = {str(each.arg): self._value(each.value) for each in keywords}
                return self._known[name](*map(self._value, args), **named)
        raise ValueError(f"it says {ast.unparse(node):.60}")


def _namespace(imports: str) -> dict[str, type]:
    """Give the records that a program is made of; imports: such as "subjects.chain:Call,ChainSubject"."""
    known: dict[str, type] = {"Decimal": Decimal, "Money": Money, "Limits": Limits}
    for each in imports.split(" "):
        module, _, names = each.partition(":")
        if not _MODULE.fullmatch(module):
            raise ValueError(f"there is no {module!r:.40}")
        try:
            found = vars(importlib.import_module(_PACKAGE + module))
        except ModuleNotFoundError as missing:
            raise ValueError(f"there is no {module!r:.40}") from missing
        known |= {name: found[name] for name in names.split(",") if _is_record(found.get(name))}
    return known


def _is_record(found: object) -> bool:
    ours = getattr(found, "__module__", "").startswith("failstop.properties.")
    return isinstance(found, type) and ours and (dataclasses.is_dataclass(found) or _is_named_tuple(found))


def _is_named_tuple(found: type) -> bool:
    return issubclass(found, tuple) and hasattr(found, "_fields")


def _arguments(value: object) -> Iterator[tuple[str | None, object]]:
    """Give what a record has to be made with: (its name, or None if it has to be given anyway; the value)."""
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            part = getattr(value, field.name)
            if field.default is dataclasses.MISSING and not field.kw_only:
                yield None, part
            elif part != field.default:
                yield field.name, part
    elif _is_named_tuple(type(value)):
        record = cast("Any", value)
        for name, part in zip(record._fields, record, strict=True):
            if name not in record._field_defaults:
                yield None, part
            elif part != record._field_defaults[name]:
                yield name, part
    else:
        raise TypeError(f"{value!r:.80} cannot be written in a program")


def _types(value: object) -> Iterator[type]:
    """Give the types that have to be imported for a value to be written."""
    if type(value) is tuple:
        for part in value:
            yield from _types(part)
    elif value is not None and type(value) not in {bool, int, str}:
        yield type(value)
        if type(value) is not Decimal:
            for _, part in _arguments(value):
                yield from _types(part)


def _one_a_line(moves: Sequence[Move]) -> str:
    return "".join(f"\n            {spelled(move)}," for move in moves) + "\n        "
