"""`failstop prove` as a user meets it: a line an obligation, a table, traces on request, records, exit codes."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner, Result

from failstop.__main__ import app
from failstop.models import catalogue
from failstop.models.claim import OURS, PROVED, REFUTED, UNKNOWN, Answer
from failstop.models.proving import Finding
from failstop.properties import proofs
from failstop.properties.evidence import HOLDS, INCONCLUSIVE, VIOLATED, Record, read
from failstop.runtime.cores import repeats

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Evidence goes to the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return


def ran(*words: str) -> Result:
    """Run the command line."""
    return CliRunner().invoke(app, list(words))


def test_what_is_proved_is_zero_with_a_table_and_evidence() -> None:
    """A row a guarantee with both columns, and a last line that sums up."""
    result = ran("prove", "loop", "--jobs", "1")
    assert result.exit_code == 0, result.output
    row = next(line.split() for line in result.stdout.splitlines() if line.startswith("loop"))
    grounds = next(line.split() for line in result.stdout.splitlines() if line.startswith("grounds "))
    assert [row[0], row[1], row[5]] == ["loop", "holds,", "holds,"]
    records = read(Path("evidence/models.json"))
    assert sum(int(count) for each in (row, grounds) for count in (each[4], each[8])) == len(records)
    assert "failstop: " in result.stdout.splitlines()[-1]
    assert "0 violated; as published: " in result.stdout.splitlines()[-1]
    assert {(record.layer, record.guarantee, record.verdict) for record in records} == {("models", "loop", HOLDS)}


def test_every_obligation_has_its_line_and_none_is_too_long() -> None:
    """Progress goes to standard error; the count in front ends at the number of all."""
    result = ran("prove", "loop", "--jobs", "1")
    lines = result.stderr.splitlines()
    total = len(read(Path("evidence/models.json")))
    assert [line.split("/")[0].strip() for line in lines] == [str(number) for number in range(1, total + 1)]
    assert max(map(len, lines)) < 80


def test_json_is_one_document_and_nothing_else() -> None:
    """The records are those of the evidence, in the order of the claims."""
    result = ran("prove", "loop", "--jobs", "1", "--json")
    told = [Record.from_json(record) for record in json.loads(result.stdout)["records"]]
    assert told == read(Path("evidence/models.json"))
    assert all(record.effort["questions"] >= 1 for record in told)
    assert {"z3", "python", "failstop"} == set(told[0].versions)


@pytest.mark.once
def test_a_counterexample_is_told_on_request_and_its_command_tells_it_again() -> None:
    """The trace is numbered, the broken promise stands last, and the replay line can be pasted."""
    result = ran("prove", "approval", "--published", "--jobs", "1")
    assert result.exit_code == 0, "what is published is not what is judged"
    assert "0. start: " in result.stdout
    (command, *_) = [line for line in result.stdout.splitlines() if line.startswith("  failstop prove approval ")]
    again = ran(*shlex.split(command)[1:], "--jobs", "1")
    assert "broken: " in again.stdout
    without = ran("prove", "approval", "--jobs", "1")
    assert "0. start" not in without.stdout
    assert "(--published tells the counterexamples)" in without.stdout


def wrong_turn(run: int, same: bool, max_repeats: int) -> tuple[int, bool]:
    """Let one too many through."""
    run = run + 1 if same else 1
    return run, max_repeats < 0 or run <= max_repeats + 1


def test_a_broken_core_is_one_with_its_counterexample(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table says so, the way there is told without being asked for, and the record has a replay command."""
    monkeypatch.setattr(repeats, "turn", wrong_turn)
    fresh = {name: replace(spec) for name, spec in catalogue.specifications().items()}
    monkeypatch.setattr(catalogue, "specifications", lambda: fresh)
    result = ran("prove", "loop", "--protocol", "repeats", "--jobs", "1")
    assert result.exit_code == 1, result.output
    assert "violated, " in result.stdout
    assert "broken: " in result.stdout
    broken = [record for record in read(Path("evidence/models.json")) if record.verdict == VIOLATED]
    assert broken[0].replay == "failstop prove loop --protocol repeats"


def test_a_specification_that_does_not_fit_together_is_three_and_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """A law of a step that there is not decides nothing; the reason is told once for each obligation."""
    spec = catalogue.specifications()["repeats"]
    broken = replace(spec, laws=(spec.laws[0]._replace(of=(spec.start,)),))
    monkeypatch.setattr(catalogue, "specifications", lambda: {"repeats": broken})
    result = ran("prove", "loop", "--protocol", "repeats", "--jobs", "1")
    assert (result.exit_code, result.exception.__class__) == (3, SystemExit), result.output
    text = " ".join(result.stdout.split())
    assert "repeats.let_through_whenever_possible, line" in text
    assert "a law of start, which is no action of repeats" in text
    records = read(Path("evidence/models.json"))
    assert {record.verdict for record in records} == {INCONCLUSIVE}
    assert text.count("a law of start") == len(records)
    assert " at 0x" not in result.output


def test_what_cannot_even_be_asked_is_three_with_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A core or a specification that cannot be loaded breaks no promise."""

    def gone() -> None:
        raise ZeroDivisionError("integer division by zero")

    monkeypatch.setattr(catalogue, "specifications", gone)
    for words in (["loop"], ["--show", "budget"], []):
        result = ran("prove", *words)
        assert (result.exit_code, result.stdout) == (3, "")
        assert result.stderr.startswith("failstop: prove: nothing could be asked: ")
        assert "gone, line" in result.stderr
        assert "ZeroDivisionError: integer division by zero" in result.stderr


@pytest.mark.parametrize("redirection", ["2>/dev/full", "2>&1 | true"])
def test_whether_anybody_reads_the_progress_changes_no_verdict(redirection: str) -> None:
    """A full disk or a reader that is gone is no broken promise."""
    command = f"{sys.executable} -m failstop prove loop --protocol repeats --jobs 1"
    script = f"set -o pipefail; {{ {command}; }} {redirection}"
    run = subprocess.run(["/bin/bash", "-c", script], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    if "|" not in redirection:
        assert "0 violated" in run.stdout


def test_bad_usage_is_two_even_if_that_cannot_be_said() -> None:
    """One is a broken promise, and nothing else."""
    command = f"{sys.executable} -m failstop prove G9 2>/dev/full"
    assert subprocess.run(["/bin/bash", "-c", command], check=False).returncode == 2


def test_a_part_keeps_the_rest_of_the_evidence() -> None:
    """What was not proved this time stays on file."""
    ran("prove", "loop", "--protocol", "repeats", "--jobs", "1")
    ran("prove", "loop", "--protocol", "published loop detection", "--jobs", "1")
    protocols = {record.about["protocol"] for record in read(Path("evidence/models.json"))}
    assert protocols == {"repeats", "published loop detection"}


def test_a_specification_is_shown_on_one_screen() -> None:
    """State, steps and promises, and nothing is proved."""
    result = ran("prove", "--show", "budget")
    assert result.exit_code == 0
    for words in ("limits", "state", "steps", "always, for any number of calls", "world.reserved == total.held"):
        assert words in result.stdout
    assert "spent, reserved, calls, shut, paid*, times*, over*" in result.stdout
    assert "Each step is atomic, and each hold is settled or given back once" in result.stdout
    assert "at first" in result.stdout
    assert "core." not in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert len(result.stdout.splitlines()) <= 80
    assert not Path("evidence").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["G9"], "GUARANTEE: 'G9' is not known; did you mean"),
        (["--show", "budgets"], "--show: 'budgets' is not known; did you mean budget"),
        (["--show", "amplification"], "is a theory without a specification; --protocol amplification proves it"),
        (["--show", "budget", "--json"], "--show: prints a text; leave out --json"),
        (["g2"], "GUARANTEE: 'g2' is not known; did you mean G2?\n"),
        (["--protocol", "nope"], "there are breaker, budget, "),
        (["--protocol", "nope"], "'published step guard, asked before each step', "),
        (["--protocol", "ledgers"], "--protocol: 'ledgers' is not known; did you mean ledger"),
        (["G4", "--protocol", "quota"], "--protocol: quota claims nothing about G4"),
    ],
)
def test_what_makes_no_sense_is_two_before_anything_is_proved(words: list[str], said: str) -> None:
    """The line names the option and the value, and what would do."""
    result = ran("prove", *words)
    assert (result.exit_code, said in result.stderr) == (2, True), result.output
    assert not Path("evidence").exists()


def test_without_the_solver_it_says_what_to_install() -> None:
    """The other commands need none, so it is no dependency of theirs."""
    script = "import sys; sys.modules['z3'] = None; sys.argv[1:] = ['prove']; import failstop.__main__ as m; m.main()"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == "failstop: prove: needs the package z3; pip install 'failstop[prove]'\n"


@pytest.mark.parametrize(
    ("statuses", "whose", "verdict"),
    [
        ([PROVED, REFUTED], "published", HOLDS),
        ([PROVED, UNKNOWN], "published", INCONCLUSIVE),
        ([PROVED, UNKNOWN], OURS, INCONCLUSIVE),
        ([REFUTED, UNKNOWN], OURS, VIOLATED),
    ],
)
def test_the_exit_code_is_about_the_runtime(statuses: list[str], whose: str, verdict: str) -> None:
    """What others published may be broken; it may not be undecided."""
    answers = [Answer(status, "told", 1, 0.1) for status in statuses]
    records = [
        proofs.record(Finding("G1", whose, "toy", "invariant", f"Sentence {number}", answer))
        for number, answer in enumerate(answers)
    ]
    assert proofs.verdict(records) == verdict


def test_an_unknown_is_told_with_its_reason() -> None:
    """A time-out is no proof, and the record says why."""
    record = proofs.record(Finding("G1", OURS, "toy", "invariant", "A sentence", Answer(UNKNOWN, "timeout", 1, 10.0)))
    assert (record.verdict, record.detail) == (INCONCLUSIVE, "not decided: timeout")


def test_a_count_that_is_wrong_is_told_as_counted() -> None:
    """No solver was asked, so none has found anything."""
    record = proofs.record(Finding("T1", OURS, "executions", "count", "A count", Answer(REFUTED, "told", 3, 0.1)))
    assert (record.verdict, record.detail) == (VIOLATED, "counted otherwise: 3 real executions, 0.10 s")


def test_why_something_is_undecided_is_told_once() -> None:
    """Its first line is the detail; only what follows is a trace."""
    told = proofs.record(Finding("G1", OURS, "toy", "law", "A sentence", Answer(UNKNOWN, "why\nand how", 1, 0.1)))
    assert (told.detail, told.about["trace"]) == ("not decided: why", "and how")
