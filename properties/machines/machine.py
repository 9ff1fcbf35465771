"""The one state machine: it plays drawn moves on a target, one lane, beside the reference, until they differ."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from hypothesis import HealthCheck, Phase, Verbosity, assume, settings
from hypothesis import strategies as st
from hypothesis.database import DirectoryBasedExampleDatabase
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from failstop.properties.finding import is_exact
from failstop.properties.machines.replaying import Comparison
from failstop.properties.machines.shortening import Program, shortest
from failstop.properties.subject import NotOffered
from failstop.properties.target import Refused

if TYPE_CHECKING:
    from pathlib import Path

    from failstop.properties.machines.moves import Machine
    from failstop.properties.machines.replaying import Difference
    from failstop.properties.subject import Move, Subject
    from failstop.properties.target import AnyTarget

QUICK, DEEP = "failstop-quick", "failstop-deep"
"""The profiles, which are registered and never loaded: what the user's own tests run under stays as it is."""

PHASES = (Phase.explicit, Phase.generate)
"""Programs are made shorter by `shortening`, not by Hypothesis."""

for _name, _examples, _steps, _same in ((QUICK, 100, 30, True), (DEEP, 3000, 50, False)):
    settings.register_profile(
        _name,
        settings(
            max_examples=_examples,
            stateful_step_count=_steps,
            derandomize=_same,
            database=None,
            deadline=None,
            phases=PHASES,
            suppress_health_check=list(HealthCheck),
            verbosity=Verbosity.quiet,
            report_multiple_bugs=False,
            print_blob=False,
            backend="hypothesis",
        ),
    )


@dataclass
class Played:
    """What was really played, and the program that is played now or was last; attempts: to make it shorter."""

    examples: int = 0
    steps: int = 0
    attempts: int = 0
    subject: Subject | None = None
    moves: list[Move] = field(default_factory=list)

    def attempt(self) -> None:
        """Count an attempt to make a program shorter."""
        self.attempts += 1


class Differs(AssertionError):  # noqa: N818 - it tells what happened
    """A program on which the target and its reference differ."""

    def __init__(self, difference: Difference, subject: Subject, moves: tuple[Move, ...]) -> None:
        super().__init__(difference.told)
        self.difference = difference
        self.subject = subject
        self.moves = moves


class Driven(RuleBasedStateMachine):
    """Plays one machine's programs on one target; subclasses say which."""

    machine: ClassVar[Machine]
    target: ClassVar[AnyTarget]
    played: ClassVar[Played]

    def __init__(self) -> None:
        super().__init__()
        self._comparison: Comparison | None = None
        self._moves: list[Move] = []
        self.played.examples += 1

    @initialize(data=st.data())
    def open(self, data: st.DataObject) -> None:
        """Open a subject with drawn settings; those that a target refuses are not tried."""
        subject = data.draw(self.machine.subjects(self.target))
        self.played.subject, self.played.moves = subject, self._moves
        try:
            self._comparison = Comparison(self.target, subject)
        except Refused as refused:
            if is_exact(self.target):
                raise RuntimeError(f"it refuses {subject}: {refused}") from refused
            assume(False)

    @rule(data=st.data())
    def play(self, data: st.DataObject) -> None:
        """Play a drawn move."""
        comparison = self._comparison
        assert comparison is not None  # noqa: S101 - it is opened first
        move = data.draw(self.machine.moves(self.target, comparison.instrument, comparison.subject, self._moves))
        self._moves.append(move)
        self.played.steps += 1
        comparison.play(move)
        self._compare()

    def teardown(self) -> None:
        """Look once more, and let go."""
        comparison = self._comparison
        if comparison is None:
            return
        try:
            if comparison.difference is None:
                comparison.finish()
                self._compare()
        finally:
            comparison.close()

    def _compare(self) -> None:
        comparison = self._comparison
        if comparison is not None and comparison.difference is not None:
            raise Differs(comparison.difference, comparison.subject, tuple(self._moves))


@dataclass(frozen=True, slots=True)
class Found:
    """What a machine came to: the shortest program that differs and how, or why it is not offered."""

    program: Program | None
    difference: Difference | None
    not_offered: str | None
    seconds: float


def run(
    machine: Machine, target: AnyTarget, depth: Literal["quick", "deep"], database: Path | None, played: Played
) -> Found:
    """Play the machine's programs, first those that the database remembers; raises what the target raises."""
    driven = type("Driven", (Driven,), {"machine": machine, "target": target, "played": played})
    began = time.perf_counter()
    try:
        for wanted in _rounds(machine, depth, None if database is None else database / target.name / machine.name):
            run_state_machine_as_test(driven, settings=wanted)
    except Differs as differs:
        program = Program(differs.subject, differs.moves)
        program, difference = shortest(target, program, machine.allowed, played.attempt) or (
            program,
            differs.difference,
        )
        return Found(program, difference, None, time.perf_counter() - began)
    except NotOffered as reason:
        return Found(None, None, str(reason), time.perf_counter() - began)
    return Found(None, None, None, time.perf_counter() - began)


def _rounds(machine: Machine, depth: Literal["quick", "deep"], folder: Path | None) -> list[settings]:
    profile = settings.get_profile(QUICK if depth == "quick" else DEEP)
    wanted = settings(profile, max_examples=max(1, round(profile.max_examples * machine.share)))
    if folder is None:
        return [wanted]
    remembered = DirectoryBasedExampleDatabase(folder)
    # Each machine has a folder of its own: a program that is no longer found is forgotten, and only its own.
    if depth == "deep":
        return [settings(wanted, database=remembered, phases=(Phase.reuse, *PHASES))]
    # What is played the same each time cannot be remembered, so what others found is played before it.
    recalled = settings(wanted, derandomize=False, database=remembered, phases=(Phase.reuse,))
    return [recalled, wanted] if folder.is_dir() else [wanted]
