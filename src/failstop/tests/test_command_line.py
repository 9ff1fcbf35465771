"""The commands as a user meets them: exit codes, pure JSON, and errors that say what to write instead."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import threading
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner, Result

from failstop.__main__ import app
from failstop.planners import catalogue
from failstop.planners.catalogue import bundled
from failstop.properties.check import check
from failstop.properties.evidence import Record, read
from failstop.runtime.audit.log import load

if TYPE_CHECKING:
    from collections.abc import Iterator

UNLIMITED = "failstop.properties.tests.canaries:UNLIMITED"
CRASHING = "failstop.properties.tests.canaries:CRASHING"

TEN_LINES = '''\
from failstop.planners.actions import Call
from failstop.planners.catalogue import planner
from failstop.runtime.limits import Limits

@planner(Limits(max_steps=2), ends_in="steps", dispatches=2)
def searches_for_cats():
    """Search for cats without end."""
    while True:
        yield Call("search", {"query": "cats"})
'''


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Evidence goes there, modules are looked for there, and the planners enrolled from it are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    bundled()
    monkeypatch.setattr(catalogue, "_known", dict(catalogue._known))
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def ran(*words: str) -> Result:
    """Run the command line."""
    return CliRunner().invoke(app, list(words))


class TestCheck:
    """The main job."""

    def test_all_as_promised_is_zero(self) -> None:
        """With a table, a sum, and evidence that holds the same."""
        result = ran("check", "failstop", "--planner", "never-finishes", "--planner", "hangs")
        assert result.exit_code == 0, result.output
        assert "2 planners, 2 holds" in result.stdout.splitlines()[-1]
        assert [record.subject for record in read(Path("evidence/chaos-failstop.json"))] == ["never-finishes", "hangs"]
        assert sorted(path.name for path in Path("evidence/runs/failstop").iterdir()) == [
            "hangs.jsonl",
            "never-finishes.jsonl",
        ]

    def test_a_violation_is_one_and_its_command_shows_it_again(self) -> None:
        """The replay line is an interface: it is read from the output and run."""
        first = ran("check", UNLIMITED, "--planner", "never-finishes", "--seed", "3")
        assert first.exit_code == 1
        (command,) = [line for line in first.stdout.splitlines() if line.startswith("  failstop check ")]
        again = ran(*shlex.split(command)[1:], "--json")
        assert again.exit_code == 1
        (record,) = json.loads(again.stdout)["records"]
        assert record["verdict"] == "violated"
        assert record["detail"] in " ".join(first.stdout.split())
        assert shlex.split(record["replay"]) == shlex.split(command)

    def test_inconclusive_alone_is_three(self) -> None:
        """Neither success nor a violation."""
        assert ran("check", CRASHING, "--planner", "never-finishes").exit_code == 3

    def test_a_violation_outweighs_what_is_inconclusive(self) -> None:
        """The worst wins."""
        assert (
            ran("check", CRASHING, "--planner", "never-finishes", "--planner", "repeats-an-empty-plan").exit_code == 1
        )

    def test_json_is_one_document_and_nothing_else(self) -> None:
        """What can be read as records must be all that is there."""
        result = ran("check", "failstop", "--planner", "never-finishes", "--json")
        (record,) = json.loads(result.stdout)["records"]
        assert Record.from_json(record).subject == "never-finishes"
        assert result.stderr == ""

    def test_bad_tools_are_put_around_every_call_and_stand_in_the_record(self) -> None:
        """With a deadline where nothing else would end the run."""
        result = ran("check", "--planner", "well-behaved", "--tools", "hangs", "--seed", "5", "--json")
        (record,) = json.loads(result.stdout)["records"]
        assert (record["about"]["tools"], record["about"]["ended_in"]) == ("hangs", "time")
        assert record["effort"]["seed"] == 5

    def test_a_users_planner_is_played_with_the_others(self) -> None:
        """From a module in the current folder."""
        Path("cat_planners.py").write_text(TEN_LINES)
        result = ran("check", "--planners", "cat_planners", "--planner", "searches-for-cats")
        assert result.exit_code == 0, result.output

    def test_a_users_target_is_named_by_module_and_attribute(self) -> None:
        """As the canaries are."""
        assert ran("check", UNLIMITED, "--planner", "well-behaved").exit_code == 0


class TestEvidence:
    """What is written down, and what stays."""

    FILE = Path("evidence/chaos-failstop.json")

    def subjects(self) -> list[tuple[str, str]]:
        """Name what the file holds."""
        return [(record.subject, record.about.get("tools", "")) for record in read(self.FILE)]

    def test_a_part_keeps_what_else_was_found(self) -> None:
        """Playing one planner again must not lose the others."""
        ran("check", "--planner", "never-finishes", "--planner", "expensive")
        ran("check", "--planner", "never-finishes", "--seed", "7")
        assert self.subjects() == [("never-finishes", ""), ("expensive", "")]
        assert [record.effort["seed"] for record in read(self.FILE)] == [7, 0]

    def test_bad_tools_are_another_finding(self) -> None:
        """The same planner under misbehaving tools says nothing about it under good ones."""
        ran("check", "--planner", "never-finishes")
        ran("check", "--planner", "never-finishes", "--tools", "slow")
        assert self.subjects() == [("never-finishes", ""), ("never-finishes", "slow")]

    def test_the_whole_suite_drops_planners_that_are_gone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A violation of a planner that nobody has any more would stay for ever."""
        ran("check", "--planner", "never-finishes", "--planner", "expensive")
        ran("check", "--planner", "expensive", "--tools", "slow")
        known = {"expensive": bundled()["expensive"]}
        monkeypatch.setattr(catalogue, "bundled", lambda: known)
        assert ran("check").exit_code == 0
        assert self.subjects() == [("expensive", "slow"), ("expensive", "")]

    def test_two_checks_at_once_do_not_disturb_each_other(self) -> None:
        """They may share a folder of evidence: each log is one whole run, whoever came last."""
        results: list[str] = []
        words = [part for name in ("never-finishes", "expensive", "hangs") for part in ("--planner", name)]
        command = [sys.executable, "-m", "failstop", "check", *words]

        def work() -> None:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
            results.append(done.stdout.splitlines()[-1])

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert [result.partition(", ")[2] for result in results] == ["3 holds, 0 violated"] * 3
        assert len(self.subjects()) == 3
        assert [ran("audit", str(log)).exit_code for log in Path("evidence/runs/failstop").iterdir()] == [0, 0, 0]

    def test_a_log_that_is_in_use_is_not_written_into(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """While a run goes on its log stands apart; the old one is there until the new one is whole."""
        seen: list[str] = []

        def watched(*args: Any) -> Record:
            record = check(*args)
            seen.extend(str(path) for path in Path("evidence/runs/failstop").glob("*.jsonl"))
            return record

        monkeypatch.setattr("failstop.__main__.check", watched)
        ran("check", "--planner", "never-finishes")
        assert seen == []
        assert [path.name for path in Path("evidence/runs/failstop").iterdir()] == ["never-finishes.jsonl"]

    def test_nothing_judged_is_three(self) -> None:
        """A target that promises nothing has kept nothing."""
        Path("modest.py").write_text(TARGET.replace("PROMISES", "{}"))
        result = ran("check", "modest:Mine", "--planner", "never-finishes")
        assert result.exit_code == 3
        assert result.stdout.splitlines()[-1].endswith("1 not offered; nothing was judged")


TARGET = """\
class Mine:
    name = "mine"
    promises = PROMISES
    real_time = False

    def versions(self):
        return {}

    def open(self, limits, world):
        raise NotImplementedError
"""


class TestBadUsage:
    """Exit code 2, the value named, the next move said."""

    @pytest.mark.parametrize(
        ("words", "told"),
        [
            (["check", "veronica-cor"], ["'veronica-cor'", "veronica-core"]),
            (["check", "failstop", "--planner", "never-finish"], ["'never-finish'", "never-finishes"]),
            (["check", "--planner", "hangs", "--planner", "hangs"], ["'hangs'", "2 times"]),
            (["check", "failstop", "--tools", "hang"], ["'hang'", "hangs"]),
            (["check", "no.such.module:TARGET"], ["no.such.module:TARGET", "No module named"]),
            (["check", "failstop.properties.tests.canaries:NOTHING"], ["canaries:NOTHING"]),
            (["check", "--planners", "no_such_planners"], ["no_such_planners"]),
            (["check", "--planners", "json"], ["'json'", "decorator"]),
            (["replay", "missing.jsonl"], ["missing.jsonl", "does not exist"]),
            (["audit", "missing.jsonl"], ["missing.jsonl", "does not exist"]),
            (["chek"], ["chek"]),
        ],
    )
    def test_it_is_two_and_says_what_is_meant(self, words: list[str], told: list[str]) -> None:
        """On standard error, so that a reader of JSON sees nothing."""
        result = ran(*words)
        assert result.exit_code == 2
        shown = " ".join(result.stderr.replace("│", " ").split())
        assert [part for part in told if part not in shown] == []
        assert result.stdout == ""

    @pytest.mark.parametrize(
        ("old", "new", "told"),
        [
            ("PROMISES", "['steps']", "promises is ['steps']"),
            ("PROMISES", "{'stepz': 'README'}", "promises is 'stepz'"),
            ("PROMISES", "{'steps': 3}", "promises['steps'] is 3"),
            ("PROMISES", "{}; not_offered = 3", "not_offered is 3"),
            ('"mine"', "None", "name is None"),
            ("real_time", "unreal_time", "real_time is None"),
            ("def open", "def opened", "open or drive is None"),
            ("def versions", "def version", "versions is None"),
            ("return {}", "return None", "versions() is None"),
            ("return {}", "return {'mine': 1}", "versions() is {'mine': 1}"),
            ("return {}", "raise OSError('no disk')", "OSError: no disk (mine.py:"),
            ("return {}", "return {", "SyntaxError"),
            ("class Mine", "raise OSError('no disk')\nclass Mine", "OSError: no disk (mine.py:1)"),
            ("class Mine", "import sys; sys.exit(0)\nclass Mine", "SystemExit: 0"),
        ],
    )
    def test_what_is_no_target_is_named_before_anything_is_played(self, old: str, new: str, told: str) -> None:
        """An adapter is written by hand, so half of one is what one meets."""
        Path("mine.py").write_text(TARGET.replace(old, new, 1).replace("PROMISES", "{}"))
        self.is_one_line(ran("check", "mine:Mine"), "TARGET", told)

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("def broken(:", "SyntaxError"),
            ("1 / 0", "ZeroDivisionError: division by zero (mine.py:1)"),
            ("raise SystemExit(0)", "SystemExit: 0"),
            ("import no_such_module", "No module named 'no_such_module'"),
            (TEN_LINES.replace("searches_for_cats", "never_finishes"), "planner is 'never-finishes'"),
            (TEN_LINES + TEN_LINES, "planner is 'searches-for-cats'"),
            (TEN_LINES.replace("dispatches=2", "spent='a lot'"), "spent is 'a lot'"),
            (TEN_LINES.replace("    def", "    async def").replace("\ndef", "\nasync def"), "yields its actions"),
            (TEN_LINES.replace("yield", "return"), "yields its actions"),
        ],
    )
    def test_planners_that_cannot_be_loaded_are_named_before_anything_is_played(self, text: str, told: str) -> None:
        """With the place where it broke, and no traceback."""
        Path("mine.py").write_text(text)
        self.is_one_line(ran("check", "--planners", "mine"), "--planners", told)
        self.is_one_line(ran("planners", "--planners", "mine"), "--planners", told)

    @pytest.mark.parametrize("path", ["a_file", "a_file/below", "/dev/null", "with_a_file"])
    def test_a_folder_that_cannot_be_written_is_named_before_anything_is_played(self, path: str) -> None:
        """Half an hour of checks must not end in a lost result."""
        Path("a_file").write_text("mine")
        Path("with_a_file").mkdir()
        Path("with_a_file/runs").write_text("mine")
        self.is_one_line(ran("check", "--planner", "hangs", "--evidence", path), "--evidence", repr(path))

    @pytest.mark.parametrize("text", ["", "[]", "{}", '{"records": [{"schema": 2}]}'])
    def test_a_file_that_is_no_evidence_is_not_overwritten(self, text: str) -> None:
        """It may be somebody's."""
        Path("evidence").mkdir()
        file = Path("evidence/chaos-failstop.json")
        file.write_text(text)
        self.is_one_line(ran("check", "--planner", "hangs"), "--evidence", "move it away")
        assert file.read_text() == text

    def is_one_line(self, result: Result, *told: str) -> None:
        """See what bad usage has to look like."""
        assert result.exit_code == 2, result.output
        assert result.stdout == ""
        assert result.stderr.count("\n") == 1
        assert [part for part in ("failstop: ", *told) if part not in result.stderr] == []
        assert not list(Path().glob("evidence/runs/*/*"))

    def test_without_the_extra_it_says_what_to_install(self, tmp_path: Path) -> None:
        """The runtime needs nothing; the command line needs typer and rich."""
        (tmp_path / "typer.py").write_text("raise ModuleNotFoundError(\"No module named 'typer'\", name='typer')")
        command = [sys.executable, "-c", "import sys; sys.path.insert(0, '.'); import failstop.__main__"]
        result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False, timeout=60)
        assert result.returncode == 2
        assert result.stderr == "the command line needs the package typer; pip install 'failstop[cli]'\n"

    def test_a_target_that_is_not_installed_says_what_to_install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Before anything is played."""
        monkeypatch.setitem(sys.modules, "veronica_core", None)
        result = ran("check", "veronica-core")
        assert result.exit_code == 2
        assert "failstop[peers]" in " ".join(result.stderr.replace("│", " ").split())


class TestOutput:
    """Who reads it, and who stops reading."""

    def test_the_version_is_said(self) -> None:
        """As the package has it."""
        assert ran("--version").stdout == f"failstop {version('failstop')}\n"

    @pytest.mark.parametrize("words", [["planners"], ["planners", "--json"], ["check", "--planner", "expensive"]])
    def test_a_reader_that_has_left_gets_no_traceback(self, words: list[str]) -> None:
        """As `| head` does, and what was found stays what it is."""
        read_end, write_end = os.pipe()
        os.close(read_end)
        command = [sys.executable, "-m", "failstop", *words]
        result = subprocess.run(command, stdout=write_end, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
        os.close(write_end)
        assert (result.returncode, result.stderr) == (0, "")

    @pytest.mark.parametrize("words", [["planners"], ["planners", "--json"]])
    def test_an_output_that_cannot_be_written_is_named(self, words: list[str]) -> None:
        """It is no violation."""
        command = [sys.executable, "-m", "failstop", *words]
        with Path(os.devnull).open() as read_only:
            result = subprocess.run(
                command, stdout=read_only, stderr=subprocess.PIPE, text=True, check=False, timeout=60
            )
        assert (result.returncode, result.stderr.count("\n")) == (2, 1)
        assert "Bad file descriptor" in result.stderr


class TestReading:
    """What runs left behind."""

    def test_planners_are_listed_for_readers_and_for_programs(self) -> None:
        """Both say the same."""
        listed = json.loads(ran("planners", "--json").stdout)["records"]
        assert len(listed) > 40
        text = ran("planners").stdout
        assert [each["name"] for each in listed if each["name"] not in text] == []

    def test_a_run_is_told_again_from_its_log(self) -> None:
        """No planner is played for it."""
        ran("check", "failstop-loop", "--planner", "asks-and-is-approved")
        log = "evidence/runs/failstop-loop/asks-and-is-approved.jsonl"
        told = ran("replay", log)
        assert told.exit_code == 0
        assert 'calls "send_email" with {"to":"alice"}' in told.stdout
        (record,) = json.loads(ran("replay", log, "--json").stdout)["records"]
        assert record["about"]["outcome"] == "completed"

    def test_a_log_that_is_whole_passes_its_audit(self) -> None:
        """Each guarantee by itself."""
        ran("check", "failstop", "--planner", "expensive")
        log = "evidence/runs/failstop/expensive.jsonl"
        assert ran("audit", log).exit_code == 0
        records = json.loads(ran("audit", log, "--json").stdout)["records"]
        assert {record["guarantee"] for record in records} == {
            "audit",
            "G1",
            "G2",
            "G3",
            "G5",
            "loop",
            "halt",
            "approval",
        }

    def test_a_log_with_one_byte_changed_does_not(self) -> None:
        """And the changed event is named."""
        ran("check", "failstop", "--planner", "expensive")
        log = Path("evidence/runs/failstop/expensive.jsonl")
        log.write_bytes(log.read_bytes().replace(b'"max_cost_usd":"1', b'"max_cost_usd":"9', 1))
        result = ran("audit", str(log))
        assert result.exit_code == 1
        assert "line 1" in result.stdout
        assert ran("replay", str(log)).exit_code == 1

    def test_a_log_cut_off_in_the_middle_is_judged_up_to_there_and_says_so(self) -> None:
        """A kill leaves whole events and a torn tail; a pin tells it from a log whose end was removed."""
        ran("check", "failstop", "--planner", "expensive")
        log = Path("evidence/runs/failstop/expensive.jsonl")
        pin = load(log).head
        log.write_bytes(log.read_bytes()[:-200])
        result = ran("audit", str(log))
        assert result.exit_code == 0
        assert [ran(command, str(log), "--pin", pin).exit_code for command in ("audit", "replay")] == [1, 1]
        assert "cut off in the middle of an event" in " ".join(result.stdout.split())
