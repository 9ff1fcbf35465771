"""The same scenarios under frontrun: a switch before any opcode that touches what another thread touches.

It is finer than the points of our own explorer, and somebody else's: a second opinion where both can go. It answers
that a property holds after time-outs too, and where it left out orders; so its word counts only beside the set of
answers that were seen. frontrun needs a process of its own, started by its launcher; this module is both the caller and
what runs in there.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import subprocess
import sys
import time
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from failstop.properties.linearizable import End, Explanations, Gap
from failstop.properties.references.chain import DONE, Admit, Settle
from failstop.properties.schedules.moments import Moments
from failstop.properties.subject import Lane, no_pause
from failstop.properties.target import Refused, Reply, Work
from failstop.properties.targets import load
from failstop.runtime.money import NANO_PER_USD

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from failstop.properties.linearizable import Event
    from failstop.properties.scenario import Scenario
    from failstop.properties.subjects.chain import Call, ChainInstrument
    from failstop.properties.target import AnyTarget

LEDGER = tuple(f"failstop.runtime.chain.{name}" for name in ("ledger", "accounts", "decision", "charging", "waiting"))
"""The modules whose opcodes are points: where our runtime decides. With all of them two calls do not come to an end."""

_ORDER = "failstop.properties.schedules.moments"
_STARTING_S = 30.0


class Opcodes(NamedTuple):
    """What it came to, as a Search; finished: frontrun had nothing left to try, and more than one schedule was tried.

    told: the violation, in a line, or "". answers: what every lane was told and the last look saw, in each schedule.
    unfinished: why it is not finished, or "".
    """

    schedules: int
    seconds: float
    finished: bool
    told: str
    answers: tuple[str, ...]
    unfinished: str


class NotRun(RuntimeError):  # noqa: N818 - it tells what happened
    """The process gave no result."""


def explore_opcodes(
    scenario: str,
    target: str,
    *,
    exact: bool,
    seconds: float = 30.0,
    packages: tuple[str, ...] = LEDGER,
    ordered: bool = True,
    tasks: bool = False,
) -> Opcodes:
    """Search a scenario named "package.module:attribute"; raises NotRun.

    ordered: whether orders that differ only in which operation ended before which began are told apart.
    tasks: run the programs, calls of a chain, as tasks of one event loop. packages: patterns of modules to trace.
    """
    command = [sys.executable, "-m", "frontrun.cli", sys.executable, "-m", __name__, scenario, target]
    command += ["--seconds", str(seconds), "--packages", ",".join((*packages, _ORDER))]
    options = {"exact": exact, "ordered": ordered, "tasks": tasks}
    command += [f"--{name}" for name, wanted in options.items() if wanted]
    try:
        ran = subprocess.run(  # noqa: S603 - our own program
            command, capture_output=True, text=True, timeout=2 * seconds + _STARTING_S, check=False
        )
    except subprocess.TimeoutExpired as expired:
        raise NotRun(f"it did not end within {expired.timeout:.0f} s") from None
    if ran.returncode:
        raise NotRun(ran.stderr.strip()[-2000:] or f"exit code {ran.returncode}")
    found = json.loads(ran.stdout.splitlines()[-1])
    return Opcodes(**(found | {"answers": tuple(found["answers"])}))


class _Run:
    """One schedule: a fresh instrument, and what its lanes noted."""

    def __init__(self, scenario: Scenario, target: AnyTarget, *, ordered: bool) -> None:
        self.instrument = scenario.subject.open(target)
        self.ordered = ordered
        self.lanes = len(scenario.programs)
        self.history: list[Event] = []
        self.error: BaseException | None = None
        self._moments = Moments(self.lanes)

    def lane(self, number: int) -> Lane:
        """Start a program and give its lane."""
        self._moments.start(number)
        return Lane(number, self._note, self._moments.begin if self.ordered else no_pause)

    def _note(self, event: Event) -> None:
        self.history.append(event)
        if self.ordered and isinstance(event, End):
            self._moments.end(event.lane)

    def answers(self) -> str:
        """Give what every lane was told, in its order."""
        told: list[list[object]] = [[] for _ in range(self.lanes + 1)]
        for event in self.history:
            if isinstance(event, End):
                told[event.lane].append(event.answer)
        return repr(told)


class _Judge:
    """Judges each schedule when it is over."""

    def __init__(self, scenario: Scenario, *, exact: bool) -> None:
        self.told = ""
        self.error: BaseException | None = None
        self.answers: set[str] = set()
        self._scenario = scenario
        self._exact = exact

    def holds(self, run: _Run) -> bool:
        """Say whether its history can be explained."""
        if run.error is not None:
            self.error = run.error
            return False
        if self._exact:
            run.instrument.look(Lane(run.lanes, run.history.append))
        run.instrument.close()
        self.answers.add(run.answers())
        subject = self._scenario.subject
        explanations = Explanations(subject.reference(exact=self._exact), run.lanes + 1)
        for place, event in enumerate(run.history):
            states = explanations.states
            if not explanations.see(event):
                self.told = subject.told(Gap(place, event, states))
                return False
        return True


def _search(scenario: Scenario, target: AnyTarget, options: argparse.Namespace) -> Opcodes:
    frontrun = _prepared()
    judge = _Judge(scenario, exact=options.exact)
    workers: list[Any] = [
        partial(_awaits if options.tasks else _plays, scenario, number) for number in range(len(scenario.programs))
    ]
    began = time.perf_counter()
    result = frontrun.explore(
        partial(_Run, scenario, target, ordered=options.ordered),
        [_task(worker) for worker in workers] if options.tasks else workers,
        judge.holds,
        preemption_bound=None,
        total_timeout=options.seconds,
        timeout_per_run=options.seconds,
        detect_io=False,
        stop_on_first=True,
        reproduce_on_failure=0,
        trace_packages=options.packages.split(","),
    )
    if options.tasks:
        result = asyncio.run(result)
    seconds = time.perf_counter() - began
    if judge.error is not None:
        raise judge.error
    told = "" if result.property_holds is not False else judge.told or _first_line(result.explanation)
    unfinished = _unfinished(result, seconds, options.seconds)
    return Opcodes(result.num_explored, seconds, not unfinished, told, tuple(sorted(judge.answers)), unfinished)


def _unfinished(result: Any, seconds: float, limit: float) -> str:
    """Say why a result is not that of a whole search: that the property held is not enough."""
    if result.property_holds is False:
        return "it ended at the first violation"
    if result.property_holds is None:
        return str(result.inconclusive_reason)
    if seconds >= limit:
        return f"its {limit:g} s were over"
    if result.num_explored <= 1:
        return "one schedule only: nothing was traced, or there is nothing to order"
    return ""


def _prepared() -> Any:
    """Import frontrun so that it traces nothing but the packages named, wherever this one is installed."""
    # Here, since it takes hold of the locks of this process.
    frontrun, tracing = importlib.import_module("frontrun"), importlib.import_module("frontrun._tracing")
    # It traces all that is not in site-packages, so in a checkout the harness too, which would conflict with itself.
    ours = str(Path(cast("str", sys.modules["failstop"].__file__)).parents[1])
    tracing._SKIP_DIRS = frozenset({*tracing._SKIP_DIRS, ours})  # type: ignore[attr-defined]  # noqa: SLF001 - it has no setting for this
    return frontrun


def _plays(scenario: Scenario, number: int, run: _Run) -> None:
    try:
        lane = run.lane(number)
        for move in scenario.programs[number]:
            run.instrument.play(move, lane)
    except Exception as error:  # noqa: BLE001 - raised again by the judge
        run.error = error


async def _awaits(scenario: Scenario, number: int, run: _Run) -> None:
    try:
        lane = run.lane(number)
        for place, move in enumerate(scenario.programs[number]):
            await _acall(cast("ChainInstrument", run.instrument), cast("Call", move), f"{number}.{place}", lane)
    except Exception as error:  # noqa: BLE001 - raised again by the judge
        run.error = error


def _task(worker: Callable[[_Run], Awaitable[None]]) -> Callable[[_Run], Awaitable[None]]:
    async def task(run: _Run) -> None:
        await worker(run)

    return task


async def _acall(instrument: ChainInstrument, move: Call, call: str, lane: Lane) -> None:
    """Await a call that declares its price and does not fail; its stub lets others run in its middle."""
    reserve = cast("int", move.reserve)

    async def stub() -> Reply:
        lane.end("admitted")
        await asyncio.sleep(0)
        lane.begin(Settle(call, move.cost))
        return Reply("value", Decimal(move.cost) / NANO_PER_USD)

    kind = "tool" if move.tool else "llm"
    work = Work("read_page", {}, cast("Any", None), stub, kind, reserve=Decimal(reserve) / NANO_PER_USD)
    lane.begin(Admit(call, move.context, reserve, move.tool, False))
    try:
        await instrument.sessions[move.context].acall(work)
    except Refused as refusal:
        lane.end(refusal.stop)
    else:
        lane.end(DONE)


def _first_line(text: str | None) -> str:
    return next((line.strip() for line in (text or "").splitlines() if line.strip()), "it fails, and does not say how")


def _named(name: str) -> Scenario:
    module, _, attribute = name.partition(":")
    return cast("Scenario", getattr(importlib.import_module(module), attribute))


def main() -> None:
    """Run in the process that frontrun's launcher starts; answers in one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenario")
    parser.add_argument("target")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--packages", default=",".join(LEDGER))
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--ordered", action="store_true")
    parser.add_argument("--tasks", action="store_true")
    options = parser.parse_args()
    found = _search(_named(options.scenario), load(options.target), options)
    sys.stdout.write(f"{json.dumps(found._asdict())}\n")


if __name__ == "__main__":
    main()
