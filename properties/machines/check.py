"""The machines layer: random programs on each subject of a target, and a record of how many were played."""

from __future__ import annotations

import platform
import threading
from importlib.metadata import version
from typing import TYPE_CHECKING, Literal

from failstop.properties.evidence import HOLDS, INCONCLUSIVE, NOT_OFFERED, VIOLATED, Record
from failstop.properties.machines.machine import Found, Played, run
from failstop.properties.machines.moves import MACHINES, Machine
from failstop.properties.machines.program import as_test, spelled, word
from failstop.properties.machines.replaying import difference_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from failstop.properties.machines.replaying import Difference
    from failstop.properties.machines.shortening import Program
    from failstop.properties.target import AnyTarget

REPLAYS = 10
"""How often a difference must come again before it is told."""

STILL_S = 20.0
"""Real seconds after which a move that has not ended is taken to hang."""


class Hangs(Exception):  # noqa: N818 - it tells what happened
    """A move did not end."""


def check_machines(
    target: AnyTarget,
    target_name: str,
    depth: Literal["quick", "deep"],
    database: Path | None,
    machines: Iterable[Machine] | None = None,
) -> Iterator[Record]:
    """Play the programs of every machine, or of these; target_name: how the user named the target."""
    for machine in MACHINES.values() if machines is None else machines:
        yield _checked(machine, target, target_name, depth, database)


def _checked(
    machine: Machine, target: AnyTarget, target_name: str, depth: Literal["quick", "deep"], database: Path | None
) -> Record:
    missing = [promise for promise in machine.promises if promise not in target.promises]
    if missing:
        reasons: Mapping[str, str] = getattr(target, "not_offered", {})
        reason = reasons.get(missing[0], f"it does not promise {missing[0]}")
        return _record(machine, target, NOT_OFFERED, reason, Played())
    played = Played()
    try:
        found = _watched(lambda: run(machine, target, depth, database, played), played)
    except Exception as error:  # noqa: BLE001 - whatever a target or its adapter raises, nothing was shown
        told = f"it could not be played: {type(error).__name__}: {error}{_at(played)}"
        return _record(machine, target, INCONCLUSIVE, told, played)
    if found.program is not None and found.difference is not None:
        return _violated(machine, target, target_name, found.program, found.difference, played, found.seconds)
    if found.not_offered is not None:
        return _record(machine, target, NOT_OFFERED, found.not_offered, Played())
    if not played.steps:
        return _record(machine, target, INCONCLUSIVE, "no move could be played", played, found.seconds)
    told = f"{played.examples} programs of {played.steps} moves went as the reference says"
    return _record(machine, target, HOLDS, told, played, found.seconds)


def _violated(
    machine: Machine,
    target: AnyTarget,
    target_name: str,
    program: Program,
    difference: Difference,
    played: Played,
    seconds: float,
) -> Record:
    subject, moves = program
    again = [difference_of(target, subject, moves) for _ in range(REPLAYS)]
    shown = sum(each == difference for each in again)
    told = f"{len(moves)} moves: {difference.told}"
    if shown < REPLAYS:
        told = f"{told}; shown again only {shown} times of {REPLAYS}"
        return _record(machine, target, INCONCLUSIVE, told, played, seconds)
    blamed = machine.guarantee if machine.blamed is None else machine.blamed(difference, subject)
    about = {"program": as_test(target_name, subject, moves)}
    command = f"failstop replay {word(target_name, subject, moves)}"
    return _record(machine, target, VIOLATED, told, played, seconds, blamed, command, about)


def _watched(work: Callable[[], Found], played: Played) -> Found:
    """Do the work on a thread that can be left behind, for as long as moves begin; raises what it raises, or Hangs."""
    outcome: list[Found] = []
    errors: list[BaseException] = []

    def go() -> None:
        try:
            outcome.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again on the thread that waits
            errors.append(error)

    thread = threading.Thread(target=go, name="failstop-machine", daemon=True)
    thread.start()
    before = None
    while thread.is_alive() and (now := (played.examples, played.steps, played.attempts)) != before:
        before = now
        thread.join(STILL_S)
    if thread.is_alive():
        raise Hangs(f"a move did not end within {STILL_S:.0f} s")
    if errors:
        raise errors[0]
    return outcome[0]


def _at(played: Played) -> str:
    if played.subject is None:
        return ""
    return f", in {spelled(played.subject)}, [{', '.join(map(spelled, played.moves))}]"


def _record(
    machine: Machine,
    target: AnyTarget,
    verdict: str,
    detail: str,
    played: Played,
    seconds: float = 0.0,
    guarantee: str | None = None,
    command: str | None = None,
    about: dict[str, str] | None = None,
) -> Record:
    return Record(
        guarantee=guarantee or machine.guarantee,
        target=target.name,
        layer="machines",
        subject=machine.name,
        verdict=verdict,
        detail=detail,
        effort={"examples": played.examples, "steps": played.steps, "seconds": round(seconds, 3)},
        replay=command,
        versions={"failstop": version("failstop"), "python": platform.python_version(), **target.versions()},
        about={"tries": machine.tells, **(about or {})},
    )
