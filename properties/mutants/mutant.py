"""A mutant: the runtime with one mistake in it, put in for a while and taken out again without a trace."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from failstop import runtime
from failstop.runtime import cores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Method:
    """A class has another method, or property, of this name."""

    owner: type
    name: str
    wrong: object

    def places(self) -> list[tuple[Any, str]]:
        """Give where it stands: (owner, attribute)."""
        return [(self.owner, self.name)]


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the runtime is another one, in every module of the runtime that took it by name."""

    original: Callable[..., Any]
    wrong: Callable[..., Any]

    @property
    def of_a_core(self) -> bool:
        """True if it is a step of a core, which the proofs read."""
        return self.original.__module__.startswith(f"{cores.__name__}.")

    def places(self) -> list[tuple[Any, str]]:
        """See Method."""
        return [
            (module, name)
            for module in _modules_of_the_runtime()
            for name, value in vars(module).items()
            if value is self.original
        ]


@dataclass(frozen=True, slots=True)
class Bases:
    """A class derives from others."""

    owner: type
    wrong: tuple[type, ...]
    name: str = "__bases__"

    def places(self) -> list[tuple[Any, str]]:
        """See Method."""
        return [(self.owner, self.name)]


Change: TypeAlias = Method | Function | Bases


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mistake, told in a sentence, and what it changes in the runtime.

    guarantee: the one that it breaks. concurrent: it does harm only where two threads meet, so some schedule must show
    it. traced: modules whose every line has to be a point of the schedules, where the mistake is a lock that is
    missing. first: scenarios that are tried before the others.
    """

    name: str
    guarantee: str
    mistake: str
    changes: tuple[Change, ...]
    concurrent: bool = False
    traced: tuple[str, ...] = ()
    first: tuple[str, ...] = ()

    @property
    def core(self) -> Function | None:
        """The step of a core that is all it changes, or None."""
        only = self.changes[0] if len(self.changes) == 1 else None
        return only if isinstance(only, Function) and only.of_a_core else None

    @contextmanager
    def put_in(self) -> Iterator[None]:
        """Break the runtime. What is to be measured with it must have been imported before, or it is broken as well."""
        with ExitStack() as undo:
            for change in self.changes:
                places = change.places()
                if not places:
                    raise LookupError(f"{self.name}: {change} stands nowhere in the runtime")
                for owner, name in places:
                    undo.callback(_put_back, owner, name, _standing(owner, name))
                    setattr(owner, name, change.wrong)
            yield


def _standing(owner: Any, name: str) -> object:
    """Give what stands there itself, not what a class makes of it or inherits."""
    return owner.__bases__ if name == "__bases__" else vars(owner).get(name, _ABSENT)


def _put_back(owner: Any, name: str, before: object) -> None:
    if before is _ABSENT:
        delattr(owner, name)
    else:
        setattr(owner, name, before)


def _modules_of_the_runtime() -> list[Any]:
    for found in pkgutil.walk_packages(runtime.__path__, f"{runtime.__name__}."):
        if ".tests" not in found.name:
            importlib.import_module(found.name)
    return [module for name, module in sys.modules.items() if _is_of_the_runtime(name)]


def _is_of_the_runtime(name: str) -> bool:
    return name.startswith(runtime.__name__) and ".tests" not in name
