"""The planners that are known, and the decorator that makes a generator function one of them.

    @planner(Limits(max_steps=5), ends_in="steps", dispatches=5)
    def never_finishes():
        \"\"\"Search for ever and never say that it is done.\"\"\"
        for page in itertools.count():
            yield Call("search", {"page": page})

That alone enrols `never-finishes` in the suite and on the command line. Its docstring's first line is what it tries.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias, TypeGuard, cast

from failstop.planners.actions import STOPS
from failstop.runtime.limits import Limits
from failstop.runtime.money import Amount, nano_up
from failstop.runtime.stops import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from random import Random
    from types import FunctionType

    from failstop.planners.actions import Plan

PROMISES: Mapping[str, str] = MappingProxyType(
    {
        "cost": "really spent stays at or below the ceiling",
        "cost_parallel": "the same for calls at one time",
        "cost_overrun": "a call that costs more than its estimate is the last one",
        "cost_invalid": "a cost that is unknown or cannot be read is not free",
        "steps": "dispatches stay at or below the ceiling",
        "steps_parallel": "the same for calls at one time",
        "steps_failed": "calls that fail count",
        "tool_calls": "dispatches of tools stay at or below their ceiling",
        "retries": "retries in the whole chain stay at or below the ceiling",
        "repeats": "the same action over and over is stopped",
        "deadline": "nothing is dispatched after the deadline",
        "deadline_hang": "the caller is answered at the deadline although the tool hangs",
        "halt": "a stop stays, whatever the planner catches",
        "closed": "a closed context dispatches nothing",
        "children": "sub-agents draw on the same ceilings",
        "approval": "an irreversible tool waits for a person",
        "approval_args": "a yes is for these arguments only",
        "approval_once": "a yes is for one dispatch",
        "planner_errors": "a planner that breaks ends the run cleanly",
        "asyncio": "calls can be awaited",
        "happy": "a run within its limits completes",
    }
)
"""What a runtime can promise; a planner names what it needs, and a runtime without it is not judged by that planner."""

ENDINGS = ("completed", "failed", *STOPS)

_MEANT_BY_ENDING: Mapping[str, tuple[tuple[str, ...], str]] = MappingProxyType(
    {
        "cost": (("cost",), "G1"),
        "steps": (("steps",), "G2"),
        "tool_calls": (("tool_calls",), "G2"),
        "retries": (("retries",), "G3"),
        "time": (("deadline",), "G5"),
        "repeats": (("repeats",), "loop"),
        "halt": (("halt",), "halt"),
        "closed": (("closed",), "halt"),
        "approval": (("approval",), "approval"),
        "failed": (("planner_errors",), "loop"),
        "completed": (("happy",), "happy-path"),
        "breaker": ((), "G4"),
        "configuration": ((), "G6"),
        "denied": ((), "T6"),
    }
)
"""The promises and the guarantee that a planner speaks of when it names none, by the stop it must end in."""

GUARANTEES = tuple(dict.fromkeys(guarantee for _, guarantee in _MEANT_BY_ENDING.values()))

Count: TypeAlias = "int | tuple[int, int] | None"
"""An exact number, or the least and the most, or None: whatever the limits allow."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What the witness must have seen at the end; `spent_nano` is None where any amount will do."""

    dispatches: Count = None
    spent_nano: int | None = None
    retries: Count = None
    irreversible: Count = 0


@dataclass(frozen=True, slots=True)
class Planner:
    """One scripted behaviour and everything that is claimed about a runtime which contains it."""

    name: str
    tries: str
    limits: Limits
    ends_in: str
    promises: tuple[str, ...]
    guarantee: str
    expected: Expected
    module: str
    make: Callable[..., Plan]

    def plan(self, random: Random) -> Plan:
        """Start it; a planner that takes an argument is given the seeded source of chance."""
        return self.make(random) if inspect.signature(self.make).parameters else self.make()


_known: dict[str, Planner] = {}


def planner(
    limits: Limits,
    *,
    ends_in: str,
    promises: Iterable[str] = (),
    guarantee: str | None = None,
    dispatches: Count = None,
    spent: Amount | None = None,
    retries: Count = None,
    irreversible: Count = 0,
) -> Callable[[Callable[..., Plan]], Callable[..., Plan]]:
    """Enrol a generator function; raises ConfigurationError for a claim that nothing can check, or what is no plan.

    ends_in: `completed`, `failed` or a stop. promises: what it needs of a runtime; by default what `ends_in` implies.
    dispatches, spent (dollars), retries, irreversible: what the witness must have counted at the end.
    """
    if not isinstance(limits, Limits):
        raise ConfigurationError("limits", limits, "Limits(...), the ceilings that the planner runs under")
    needed = _promised(promises)
    _check_known("ends_in", ends_in, ENDINGS)
    implied = _MEANT_BY_ENDING[ends_in]
    if guarantee is not None:
        _check_known("guarantee", guarantee, GUARANTEES)
    for field, count in (("dispatches", dispatches), ("retries", retries), ("irreversible", irreversible)):
        _check_count(field, count)
    expected = Expected(dispatches, None if spent is None else nano_up(spent, "spent"), retries, irreversible)

    def enrol(make: Callable[..., Plan]) -> Callable[..., Plan]:
        _check_plan(make)
        _add(
            Planner(
                name=make.__name__.replace("_", "-"),
                tries=_first_line(make),
                limits=limits,
                ends_in=ends_in,
                promises=needed or implied[0],
                guarantee=guarantee or implied[1],
                expected=expected,
                module=make.__module__,
                make=make,
            )
        )
        return make

    return enrol


def bundled() -> dict[str, Planner]:
    """Give the planners of this package, by name, in the order of the families: each file beside this one is read."""
    package = importlib.import_module(__package__ or "")
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if not found.ispkg:
            importlib.import_module(found.name)
    known = sorted(_known.values(), key=lambda each: each.module)
    return {each.name: each for each in known if each.module.rpartition(".")[0] == package.__name__}


def load(module: str) -> dict[str, Planner]:
    """Import a user's module, such as "package.module", and give the planners that it enrols; raises ImportError."""
    importlib.import_module(module)
    return {name: known for name, known in _known.items() if known.module == module}


def _add(new: Planner) -> None:
    known = _known.get(new.name)
    if known is not None and not _is_the_same(known, new):
        raise ConfigurationError("planner", new.name, f"a name of its own; {known.module} has one of this name")
    _known[new.name] = new


def _is_the_same(known: Planner, new: Planner) -> bool:
    """Tell a module that is run anew, in whole or by reload(), from a second planner of one name."""
    if (known.module, known.make.__qualname__) != (new.module, new.make.__qualname__):
        return False
    old, young = cast("FunctionType", known.make), cast("FunctionType", new.make)
    same_run = old.__globals__ is young.__globals__
    return not same_run or old.__code__.co_firstlineno == young.__code__.co_firstlineno


def _first_line(make: Callable[..., Plan]) -> str:
    line = (inspect.getdoc(make) or "").partition("\n")[0].rstrip(". ")
    if not line:
        raise ConfigurationError("planner", make.__name__, "a docstring whose first line says what it tries")
    return line


def _promised(promises: object) -> tuple[str, ...]:
    if isinstance(promises, str) or not isinstance(promises, Iterable):
        raise ConfigurationError("promises", promises, f"a list of names from {', '.join(PROMISES)}")
    needed = tuple(promises)
    for promise in needed:
        _check_known("promises", promise, tuple(PROMISES))
    return needed


def _check_plan(make: object) -> None:
    """Refuse what would never yield: a coroutine, a plain function whose `yield` was forgotten, a class."""
    if not inspect.isgeneratorfunction(make):
        name = getattr(make, "__name__", make)
        raise ConfigurationError(
            "planner", name, "a generator function: `def`, not `async def`, that yields its actions"
        )
    try:
        inspect.signature(make).bind(*[None] * bool(inspect.signature(make).parameters))
    except TypeError:
        expected = "a function of nothing, or of one argument, the seeded source of chance"
        raise ConfigurationError("planner", make.__name__, expected) from None


def _check_count(field: str, count: object) -> None:
    least, most = count if isinstance(count, tuple) and len(count) == 2 else (count, count)  # noqa: PLR2004 - a range
    if count is None or (_is_count(least) and _is_count(most) and least <= most):
        return
    raise ConfigurationError(field, count, "a whole number from 0, or (least, most), or None")


def _is_count(number: object) -> TypeGuard[int]:
    return type(number) is int and number >= 0


def _check_known(field: str, value: object, known: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in known:
        raise ConfigurationError(field, value, f"one of {', '.join(known)}")
