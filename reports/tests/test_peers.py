"""What is told of a published sentence on a peer, in columns or one under the other."""

import io

from rich.console import Console

from failstop.properties.evidence import Record
from failstop.reports.peers import print_peers

RECORD = Record(
    guarantee="G2",
    target="peer",
    layer="schedules",
    subject="published steps: No more than five",
    verdict="violated",
    detail="16 dispatches",
    replay="failstop peers --only 'published steps'",
    versions={"peer": "1.0"},
    about={
        "trace": "1. A: a call [is] checked",
        "schedule": "1-16. A to P each asks: its stub runs",
        "witness": "16 dispatches",
        "ours": "5 dispatches",
        "promised": "its paper",
    },
)


def test_trace_schedule_and_witness_stand_side_by_side_where_there_is_room():
    """In 100 columns they are in one row, and both witnesses in the same column."""
    lines = _printed(100)
    titles = next(line for line in lines if line.startswith("trace"))
    assert titles.split() == ["trace", "schedule", "witness"]
    place = titles.index("witness")
    assert [line[place:].strip() for line in lines if "dispatches" in line[place:]] == ["16 dispatches", "5 dispatches"]
    row = lines[lines.index(titles) + 1]
    assert row.startswith("1. A: a call [is] checked")
    assert "1-16. A to P" in row


def test_they_stand_one_under_the_other_where_there_is_none():
    """In 80 columns each has its title above it, and nothing is cut off."""
    lines = [line.strip() for line in _printed(80)]
    assert [line for line in lines if line in {"trace", "schedule", "witness"}] == ["trace", "schedule", "witness"]
    assert lines.index("1-16. A to P each asks: its stub runs") == lines.index("schedule") + 1
    assert lines.index("16 dispatches") == lines.index("witness") + 1
    assert lines.index("5 dispatches") == lines.index("ours, under the same schedule:") + 1


def test_what_is_not_played_is_told_with_the_sum():
    """The last lines say what was left out, where the evidence is, and how many of each verdict there are."""
    lines = _printed(80)
    assert "  approval: nobody is asked" in lines
    assert lines[-2:] == ["evidence in a file", "peer 1.0, as published: 1 sentence, 0 holds, 1 violated"]


def _printed(width):
    out = io.StringIO()
    print_peers(Console(file=out, width=width), [RECORD], ["approval: nobody is asked"], "evidence in a file")
    return out.getvalue().splitlines()
