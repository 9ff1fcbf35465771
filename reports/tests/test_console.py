"""What a reader sees: whole at 80 columns, plain without a terminal, and a command that can be copied."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from failstop.properties.evidence import HOLDS, INCONCLUSIVE, NOT_OFFERED, VIOLATED, Record
from failstop.reports.console import print_audit, print_check, print_planners, print_story, summary, witness

COMMAND = "failstop check package.of.mine:a_target_with_quite_a_long_name --planner expensive-on-threads --seed 12345"


def record(**changes: Any) -> Record:
    """Make a record of a chaos check."""
    fields: dict[str, Any] = {
        "guarantee": "G1",
        "target": "veronica-core",
        "layer": "chaos",
        "subject": "expensive-on-threads",
        "verdict": HOLDS,
        "detail": "it ended in cost",
        "effort": {"dispatches": 3, "spent_nano": 900_000_000, "retries": 0},
        "versions": {"veronica-core": "3.10.0"},
        "about": {"tries": "Think 20 thoughts of 30 cents at once", "must_end_in": "cost", "ended_in": "cost"},
    }
    return Record(**{**fields, **changes})


def printed(function: Any, *args: Any, width: int = 80, terminal: bool = False) -> str:
    """Print to a text."""
    file = io.StringIO()
    function(Console(file=file, width=width, force_terminal=terminal), *args)
    return file.getvalue()


BROKEN = record(verdict=VIOLATED, detail="[20] calls dispatched", replay=COMMAND)


class TestTheTable:
    """One row a planner."""

    def test_it_fits_into_eighty_columns(self) -> None:
        """All but the command, which must stay in one piece."""
        text = printed(print_check, [record(), BROKEN, record(verdict=NOT_OFFERED, effort={})], "seed 0")
        assert [line for line in text.splitlines() if len(line) > 80] == [f"  {COMMAND}"]

    @pytest.mark.parametrize("width", [40, 60, 79, 80])
    def test_no_name_is_broken_apart(self, width: int) -> None:
        """Where a table has no room the planners stand one below the other."""
        long = record(subject="fans-out-over-the-tool-ceiling", about=BROKEN.about | {"must_end_in": "tool_calls"})
        lines = printed(print_check, [long, BROKEN, record(verdict=INCONCLUSIVE)], "seed 0", width=width).splitlines()
        assert sum("fans-out-over-the-tool-ceiling" in line for line in lines) == 1
        assert sum("expensive-on-threads" in line and "--planner" not in line for line in lines) == 4
        assert all(len(line) <= width for line in lines[:-1] if "failstop check" not in line)
        assert all(any(word in line for line in lines) for word in ("tool_calls", "3 calls,", "$0.90", "inconclusive"))

    def test_that_nothing_was_judged_is_said(self) -> None:
        """A target that promises nothing has not withstood anything."""
        assert summary([record(verdict=NOT_OFFERED)]).endswith("1 not offered; nothing was judged")
        assert "judged" not in summary([record(verdict=NOT_OFFERED), record()])

    def test_a_violation_is_told_below_with_its_command(self) -> None:
        """Text from elsewhere is not taken for markup."""
        text = printed(print_check, [record(), BROKEN], "seed 0")
        assert "violated expensive-on-threads (G1): [20] calls dispatched" in text
        assert text.count(COMMAND) == 1

    def test_the_last_line_sums_it_up(self) -> None:
        """With the version of what was tested."""
        records = [record(), record(), BROKEN, record(verdict=INCONCLUSIVE), record(verdict=NOT_OFFERED)]
        last = printed(print_check, records, "seed 0").splitlines()[-1]
        assert last == "veronica-core 3.10.0: 5 planners, 2 holds, 1 violated, 1 inconclusive, 1 not offered"
        assert last == summary(records)

    def test_colours_are_for_terminals_only(self) -> None:
        """A file gets plain text."""
        assert "\x1b" not in printed(print_check, [BROKEN], "seed 0")
        assert "\x1b" in printed(print_check, [BROKEN], "seed 0", terminal=True)

    def test_the_witness_is_told_in_few_letters(self) -> None:
        """What is zero and always there is left out."""
        assert witness(record()) == "3 calls, $0.90"
        assert witness(record(effort={"dispatches": 1, "spent_nano": 0, "irreversible": 1})) == "1 call, 1 sent"
        assert witness(record(effort={"dispatches": 2, "retries": 1})) == "2 calls, 1 retry"
        assert witness(record(effort={})) == "-"


class TestTheOthers:
    """The list of planners, an audit, a story."""

    def test_planners_are_listed_with_limits_and_ending(self) -> None:
        """As `failstop planners` shows them."""
        described = {"name": "hangs", "tries": "Hang", "limits": {"max_seconds": 5.0}, "must_end_in": "time"}
        text = printed(print_planners, [described])
        assert all(part in text for part in ("hangs", "Hang", "seconds 5.0", "time", "1 planner"))

    @pytest.mark.parametrize("width", [40, 79, 80])
    def test_the_list_breaks_no_name_apart(self, width: int) -> None:
        """As in the table of a check."""
        name = "fans-out-over-the-tool-ceiling"
        described = {"name": name, "tries": "Call 20", "limits": {"max_tool_calls": 5}, "must_end_in": "tool_calls"}
        text = printed(print_planners, [described], width=width)
        assert all(part in text for part in (name, "Call 20", "tool_calls 5", "1 planner\n"))

    def test_an_audit_ends_with_the_worst_verdict(self) -> None:
        """One line a guarantee, one for all."""
        text = printed(print_audit, [record(guarantee="audit"), BROKEN])
        assert text.splitlines()[-1] == "expensive-on-threads: violated"

    def test_a_story_is_printed_as_it_is(self) -> None:
        """What tools wrote into it is no markup."""
        text = printed(print_story, record(about={"story": "1  run [bold]x[/bold]"}))
        assert "1  run [bold]x[/bold]" in text
