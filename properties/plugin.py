"""For the tests of your own runtime: `pytest --failstop-target=package.module:attribute` makes every check a test.

A test fails with what the witness saw and the command that shows it again; what the target does not offer is skipped.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from failstop.properties.evidence import Record

    Make = Callable[[], Record]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("failstop", "what your agent's limits really hold")
    group.addoption("--failstop-target", metavar="NAME", help="a target, or package.module:attribute of yours")
    group.addoption(
        "--failstop-layer",
        action="append",
        metavar="LAYER",
        help="chaos, machines, schedules or stress; may be given several times; all by default",
    )
    group.addoption("--failstop-depth", choices=("quick", "deep"), default="quick", help="how far they go")


def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the checks after the tests."""
    named = config.getoption("--failstop-target")
    if named:
        items += [
            Check.from_parent(session, name=name, make=make, nodeid=f"failstop::{name}")
            for name, make in _checks(config)
        ]


class Broken(Exception):  # noqa: N818 - it tells what happened
    """A promise was broken, or nothing could be said of it."""


class Check(pytest.Item):
    """One planner, machine or scenario against the target."""

    def __init__(self, *, make: Make, **options: Any) -> None:
        super().__init__(**options)
        self._make = make

    def runtest(self) -> None:
        """Check it."""
        from failstop.properties.evidence import HOLDS, NOT_OFFERED  # noqa: PLC0415 - as in _checks

        record = self._make()
        if record.verdict == NOT_OFFERED:
            pytest.skip(f"not offered: {record.detail}")
        if record.verdict != HOLDS:
            again = f"\n  {record.replay}" if record.replay else ""
            program = f"\n\n{record.about['program']}" if "program" in record.about else ""
            raise Broken(f"{record.verdict}, {record.guarantee}: {record.detail}{again}{program}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Tell what was seen, without the traceback of the harness."""
        return str(excinfo.value) if isinstance(excinfo.value, Broken) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[str, None, str]:
        """Name it in the report."""
        return "failstop", None, self.name


def _checks(config: pytest.Config) -> Iterator[tuple[str, Make]]:
    # Loaded here, so that a run without a target costs nothing.
    from failstop.planners import catalogue  # noqa: PLC0415
    from failstop.properties import layers, targets  # noqa: PLC0415
    from failstop.properties.check import Variation, check  # noqa: PLC0415

    named, depth = config.getoption("--failstop-target"), config.getoption("--failstop-depth")
    chosen = config.getoption("--failstop-layer") or ["chaos", *layers.LAYERS]
    wrong = [layer for layer in chosen if layer not in {"chaos", *layers.LAYERS}]
    if wrong:
        raise pytest.UsageError(
            f"--failstop-layer: {wrong[0]!r} is not known; there are chaos, {', '.join(layers.LAYERS)}"
        )
    try:
        target = targets.load(named)
    except Exception as error:
        raise pytest.UsageError(f"--failstop-target: {named!r} cannot be loaded: {error}") from error
    for layer in chosen:
        if layer == "chaos":
            for name, planner in catalogue.bundled().items():
                yield f"chaos[{name}]", partial(check, planner, target, Variation(target=named))
        else:
            for name in layers.check_of(layer, depth).subjects:
                yield f"{layer}[{name}]", partial(_one, layer, depth, name, target, named)


def _one(layer: str, depth: Any, name: str, target: Any, named: str) -> Record:
    from failstop.properties import layers  # noqa: PLC0415 - as in _checks

    return next(layers.check_of(layer, depth, [name]).records(target, named))
