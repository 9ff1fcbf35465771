"""The mutants: each really changes the runtime, for a while, and layers catch those that they claim to catch."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from failstop.properties.evidence import HOLDS, INCONCLUSIVE, VIOLATED
from failstop.properties.mutants import layers
from failstop.properties.mutants.catalogue import catalogue
from failstop.properties.mutants.layers import KILLED, NOT_APPLICABLE, SURVIVED, UNDECIDED, Finding
from failstop.properties.mutants.matrix import NO_MISTAKE, Cell, cells, main, missed, table
from failstop.properties.mutants.mutant import Function, Mutant
from failstop.properties.scenarios.catalogue import every
from failstop.runtime.chain import calls
from failstop.runtime.cores import ledger

if TYPE_CHECKING:
    from failstop.properties.mutants.mutant import Change

MUTANTS = catalogue()


def standing(change: Change) -> list[object]:
    """Give what stands now wherever a change is made."""
    return [owner.__bases__ if name == "__bases__" else vars(owner).get(name) for owner, name in change.places()]


def test_there_are_enough() -> None:
    """A layer that catches a handful is not worth much."""
    assert len(MUTANTS) >= 30
    assert sum(mutant.concurrent for mutant in MUTANTS.values()) >= 10


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS.keys())
class TestEvery:
    """Every mutant."""

    def test_is_named_by_a_mistake_and_tells_it_in_a_sentence(self, mutant: Mutant) -> None:
        """Its row of the matrix has to make sense by itself."""
        assert re.fullmatch(r"[a-z]+(-[a-z]+)+", mutant.name)
        assert re.fullmatch(r"[A-Z][^.]+\.", mutant.mistake)

    def test_is_put_in_and_taken_out_again(self, mutant: Mutant) -> None:
        """What stood there before stands there after, to the very object."""
        places = [change.places() for change in mutant.changes]
        before = [standing(change) for change in mutant.changes]
        with mutant.put_in():
            for change, where in zip(mutant.changes, places, strict=True):
                for owner, name in where:
                    now = owner.__bases__ if name == "__bases__" else vars(owner)[name]
                    assert now == change.wrong
        after = [standing(change) for change in mutant.changes]
        assert all(
            one is other
            for each, same in zip(before, after, strict=True)
            for one, other in zip(each, same, strict=True)
            if not isinstance(one, tuple)
        )
        assert before == after

    def test_is_taken_out_whatever_happens(self, mutant: Mutant) -> None:
        """A layer that breaks must not leave a broken runtime to the next test."""
        before = [standing(change) for change in mutant.changes]
        with pytest.raises(KeyError), mutant.put_in():
            raise KeyError
        assert [standing(change) for change in mutant.changes] == before

    def test_names_scenarios_that_there_are(self, mutant: Mutant) -> None:
        """A hint that points nowhere is none; where lines are points, only what is named is searched that way."""
        assert set(mutant.first) <= set(every())
        assert mutant.first or not mutant.traced


def test_a_function_is_changed_wherever_it_was_taken_by_name() -> None:
    """The quick way of a call has taken its steps by name."""
    change = MUTANTS["one-step-too-many"].core
    assert change is not None
    real = ledger.admit
    assert ledger.admit is calls.admit
    with MUTANTS["one-step-too-many"].put_in():
        assert ledger.admit is calls.admit is change.wrong
    assert ledger.admit is calls.admit is real


def test_a_function_that_is_nowhere_is_no_change() -> None:
    """Else a mutant would survive everything by being none."""

    def nowhere() -> None:
        """Do nothing."""

    with pytest.raises(LookupError, match="nowhere"), Mutant("x", "G1", "X.", (Function(nowhere, nowhere),)).put_in():
        pass


CAUGHT = ("check-then-act", "wake-up-lost", "quick-way-without-its-lock", "approved-by-name", "events-not-chained")


@pytest.mark.parametrize("name", CAUGHT)
def test_the_schedules_catch(name: str) -> None:
    """Also where every line has to be a point."""
    assert layers.schedules(MUTANTS[name]).status == KILLED


def test_the_planners_catch_what_is_wrong_for_one_caller() -> None:
    """And tell what the witness counted."""
    finding = layers.chaos(MUTANTS["one-step-too-many"])
    assert finding.status == KILLED
    assert "6 calls dispatched under a ceiling of 5 steps" in finding.told


def test_no_proof_speaks_of_what_is_no_step_of_a_core() -> None:
    """That is for the others."""
    assert layers.models(MUTANTS["check-then-act"]).status == NOT_APPLICABLE


def test_a_matrix_is_made_by_processes_of_their_own() -> None:
    """Whatever a mutant breaks, it breaks there."""
    found = list(cells([MUTANTS["approval-not-used-up"]], ["models"], jobs=1))
    assert [(cell.mutant.name, cell.layer, cell.finding.status) for cell in found] == [
        ("approval-not-used-up", "models", KILLED)
    ]


def test_a_mutant_that_hangs_is_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not to come to an end is not to be caught."""
    monkeypatch.setattr("failstop.properties.mutants.matrix.LIMIT_S", {"chaos": 0.0})
    monkeypatch.setattr("failstop.properties.mutants.matrix._STARTING_S", 0.0)
    (cell,) = cells([MUTANTS["check-then-act"]], ["chaos"], jobs=1)
    assert cell.finding == Finding(UNDECIDED, "not done within 0 s")


def cell(name: str, layer: str, status: str) -> Cell:
    """Make one answer."""
    mutant = NO_MISTAKE if name == NO_MISTAKE.name else MUTANTS[name]
    return Cell(mutant, layer, Finding(status, "so it is"), 1.0)


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ([cell("failure-is-free", "chaos", KILLED), cell("failure-is-free", "schedules", SURVIVED)], []),
        ([cell("failure-is-free", "chaos", UNDECIDED)], ["failure-is-free: no layer catches it"]),
        (
            [cell("check-then-act", "chaos", KILLED), cell("check-then-act", "schedules", SURVIVED)],
            ["check-then-act: it does harm only where threads meet, and the schedules do not catch it"],
        ),
        ([cell("no-mistake", "chaos", SURVIVED)], []),
        ([cell("no-mistake", "chaos", KILLED)], ["no-mistake: chaos finds something wrong with it"]),
    ],
)
def test_what_is_wrong_with_a_matrix_is_told(found: list[Cell], told: list[str]) -> None:
    """A mutant that gets away, or a runtime that is blamed for nothing."""
    assert missed(found) == told


def test_a_record_says_violated_of_what_is_caught() -> None:
    """And never holds of what could not be decided."""
    records = [cell("check-then-act", "schedules", status).record() for status in (KILLED, SURVIVED, UNDECIDED)]
    assert [record.verdict for record in records] == [VIOLATED, HOLDS, INCONCLUSIVE]
    assert records[0].target == "failstop with check-then-act"
    assert records[0].replay == "python -m failstop.properties.mutants.matrix --layer schedules check-then-act"


def test_a_table_has_a_line_a_mutant() -> None:
    """For people."""
    lines = table([cell("check-then-act", "chaos", SURVIVED), cell("check-then-act", "schedules", KILLED)], ["chaos"])
    assert [line.split() for line in lines] == [["mutant", "breaks", "chaos"], ["check-then-act", "G2", "survived"]]


def test_a_mutant_that_there_is_not_makes_no_sense(capsys: pytest.CaptureFixture[str]) -> None:
    """As of any command."""
    with pytest.raises(SystemExit, match="2"):
        main(["check-then-atc"])
    assert "there is no mutant 'check-then-atc'" in capsys.readouterr().err
