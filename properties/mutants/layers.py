"""What each layer says of the runtime as it stands: the first thing that it finds wrong, or that it finds nothing."""

from __future__ import annotations

import importlib
import pkgutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from failstop import planners
from failstop.models import mutation
from failstop.models.mutants import Mutant as Edited
from failstop.planners.catalogue import bundled
from failstop.properties import references, scenarios, subjects
from failstop.properties.check import check
from failstop.properties.evidence import HOLDS, INCONCLUSIVE, VIOLATED
from failstop.properties.finding import is_exact, not_promised
from failstop.properties.linearizable import End
from failstop.properties.machines.check import check_machines
from failstop.properties.machines.moves import MACHINES
from failstop.properties.run_audit import audit
from failstop.properties.scenarios.catalogue import quick
from failstop.properties.schedules.explorer import Reach, explore, replay
from failstop.properties.subject import NotOffered
from failstop.properties.targets import load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import FunctionType, ModuleType

    from failstop.properties.mutants.mutant import Function, Mutant
    from failstop.properties.scenario import Scenario
    from failstop.properties.target import AnyTarget

KILLED = "killed"
SURVIVED = "survived"
UNDECIDED = "undecided"
NOT_APPLICABLE = "not applicable"
"""What comes of a mutant in a layer: something is found wrong; everything was tried and nothing is; not everything
could be tried; the layer says nothing about what the mutant changes."""

TARGETS = ("failstop", "failstop-loop")

_REPLAYS = 3
_SCENARIO_S = 10.0
_TRACED_S = 30.0


class Finding(NamedTuple):
    """What a layer says of a mutant, in a sentence with the witness's numbers."""

    status: str
    told: str


def import_everything() -> None:
    """Import all that measures, before anything is broken: what takes a step of a core by name takes the real one."""
    for package in (planners, references, scenarios, subjects):
        for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            if not found.name.endswith(".tests"):
                importlib.import_module(found.name)


def chaos(mutant: Mutant) -> Finding:
    """Play every planner against both of our targets, and judge the logs of the runs as well."""
    undecided = ""
    with mutant.put_in():
        for target in map(load, TARGETS):
            for told, verdict in _played(target):
                if verdict == VIOLATED:
                    return Finding(KILLED, told)
                if verdict == INCONCLUSIVE:
                    undecided = undecided or told
    return Finding(UNDECIDED, undecided) if undecided else Finding(SURVIVED, "every planner was contained")


def schedules(mutant: Mutant) -> Finding:
    """Search the schedules of every scenario; those first that the mutant names."""
    target = load(TARGETS[0])
    named = quick()
    undecided, searched = "", 0
    for name in sorted(named, key=lambda name: name not in mutant.first):
        if not_promised(named[name], target) is not None:
            continue
        try:
            finding = _searched(mutant, named[name], target)
        except NotOffered:
            continue
        except Exception as error:  # noqa: BLE001 - what breaks in the middle has shown nothing
            finding = Finding(UNDECIDED, f"{name} could not be played: {type(error).__name__}: {error}")
        if finding.status == KILLED:
            return finding
        searched += 1
        if finding.status == UNDECIDED:
            undecided = undecided or finding.told
    told = f"every schedule of {searched} scenarios can be explained"
    return Finding(UNDECIDED, undecided) if undecided else Finding(SURVIVED, told)


def machines(mutant: Mutant) -> Finding:
    """Play random programs on every subject, those first whose guarantee the mutant breaks."""
    undecided, held = "", 0
    ordered = sorted(MACHINES.values(), key=lambda machine: machine.guarantee != mutant.guarantee)
    with mutant.put_in():
        for record in check_machines(load(TARGETS[0]), TARGETS[0], "quick", None, ordered):
            if record.verdict == VIOLATED:
                return Finding(KILLED, f"{record.subject}: {record.detail}")
            if record.verdict == INCONCLUSIVE:
                undecided = undecided or f"{record.subject}: {record.detail}"
            held += record.verdict == HOLDS
    return Finding(UNDECIDED, undecided) if undecided else Finding(SURVIVED, f"{held} machines found nothing")


def models(mutant: Mutant) -> Finding:
    """Ask the proofs of a core about a step that is wrong; the rest is not theirs."""
    step = mutant.core
    if step is None:
        return Finding(NOT_APPLICABLE, "it changes more or less than one step of a core")
    outcome = mutation.judge(_as_edit(step))
    status = {
        mutation.CAUGHT: KILLED,
        mutation.SAME: SURVIVED,
        mutation.SURVIVED: SURVIVED,
    }.get(outcome.status, UNDECIDED)
    if outcome.status == mutation.UNREADABLE and outcome.told.startswith(step.wrong.__module__):
        # It is the wrong step that has no terms, such as floats; a core that cannot be read is another matter.
        status = NOT_APPLICABLE
    return Finding(status, outcome.told or "every proof of the core still holds")


LAYERS: Mapping[str, Callable[[Mutant], Finding]] = MappingProxyType(
    {"chaos": chaos, "machines": machines, "schedules": schedules, "models": models}
)


def _played(target: AnyTarget) -> Iterator[tuple[str, str]]:
    """Give, in turn, a sentence and a verdict of each planner's run, first without a log and then of its log too."""
    for planner in bundled().values():
        record = check(planner, target)
        yield f"{planner.name} against {target.name}: {record.detail}", record.verdict
    with tempfile.TemporaryDirectory(prefix="failstop-mutant-") as folder:
        for planner in bundled().values():
            log = Path(folder) / f"{planner.name}.jsonl"
            check(planner, target, log=log)
            for record in audit(log) if log.exists() else ():
                if record.verdict == VIOLATED:
                    yield f"the log of {planner.name} against {target.name}: {record.detail}", VIOLATED


def _searched(mutant: Mutant, scenario: Scenario, target: AnyTarget) -> Finding:
    exact = is_exact(target)
    # Where every line is a point a search never ends, so it is begun only where it is likely to find something; and
    # what may interrupt a thread but once or twice is tried sooner if no two states are compared.
    traced = mutant.traced if scenario.name in mutant.first else ()
    reach = Reach(seconds=_TRACED_S, traced=traced, merge=False) if traced else Reach(seconds=_SCENARIO_S)
    with mutant.put_in():
        search = explore(scenario, target, reach, exact=exact)
        found = search.violation
        if found is not None:
            again = [replay(scenario, target, found.schedule, exact=exact, traced=traced) for _ in range(_REPLAYS)]
            dispatched = sum(isinstance(event, End) and event.answer == "admitted" for event in found.history)
            told = f"{scenario.name}, schedule {search.schedules}: {found.told}; {dispatched} dispatched in all"
            if None in again:
                return Finding(UNDECIDED, f"{told}; not shown again by the same schedule")
            return Finding(KILLED, told)
    if search.finished:
        return Finding(SURVIVED, "")
    return Finding(UNDECIDED, f"{scenario.name}: {search.stuck or f'{search.schedules} schedules are not all'}")


@dataclass(frozen=True, slots=True)
class _Edit(Edited):
    """A wrong step, as the proofs take one."""

    step: FunctionType

    def built(self, module: ModuleType) -> FunctionType:  # noqa: ARG002 - it stands in a module of its own
        """See Edited."""
        return self.step


def _as_edit(step: Function) -> _Edit:
    original, wrong = step.original, step.wrong
    return _Edit(original.__module__, original.__name__, 1, wrong.__name__, "", wrong)  # type: ignore[arg-type]
