"""frontrun and our own explorer agree where both can go, and both find what was planted."""

import sys

import pytest

from failstop.properties.schedules import opcodes
from failstop.properties.schedules.explorer import Reach, explore
from failstop.properties.schedules.opcodes import LEDGER, NotRun, explore_opcodes
from failstop.properties.subject import Lane
from failstop.properties.targets.failstop import FailstopTarget
from failstop.properties.tests import opcode_scenarios

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(sys.version_info >= (3, 15), reason="frontrun has no wheel for it"),
]
TOYS = ("failstop.properties.tests.toys",)


def under_frontrun(name, packages, **options):
    scenario = f"{opcode_scenarios.__name__}:{name}"
    return explore_opcodes(scenario, "failstop", exact=True, seconds=15, packages=packages, **options)


def in_turns(name, reach):
    """Search with our own explorer; gives the answers too."""
    scenario, answers = getattr(opcode_scenarios, name), set()
    target = FailstopTarget()

    class Noting:
        """The subject, with the answers of each schedule kept."""

        def __init__(self, subject):
            self._subject = subject
            self.ignored = subject.ignored

        def __getattr__(self, attribute):
            return getattr(self._subject, attribute)

        def open(self, target):
            return Noted(self._subject.open(target), answers, len(scenario.programs))

    watched = scenario.__class__(scenario.name, "", "G2", (), Noting(scenario.subject), scenario.programs)
    return explore(watched, target, reach, exact=True), answers


class Noted:
    """An instrument that keeps what its lanes are told."""

    def __init__(self, instrument, answers, lanes):
        self._instrument, self._answers = instrument, answers
        self._told = [[] for _ in range(lanes + 1)]

    def _lane(self, lane):
        outer = self

        class Telling(Lane):
            def end(self, answer):
                super().end(answer)
                outer._told[lane.number].append(answer)

        return Telling(lane.number, lane._note, lane.pause)

    def play(self, move, lane):
        self._instrument.play(move, self._lane(lane))

    def look(self, lane):
        self._instrument.look(self._lane(lane))

    def close(self):
        self._answers.add(repr(self._told))
        self._instrument.close()


@pytest.mark.parametrize(
    ("name", "packages"),
    [("RIGHT", TOYS), ("STEPS", LEDGER), ("COST", LEDGER), ("STEPS_2X2", LEDGER), ("STEPS_3X1", LEDGER)],
)
def test_both_search_to_the_end_and_see_the_same_answers(name, packages):
    """The verdict is the same, and so is every set of answers that any schedule gave."""
    theirs = under_frontrun(name, packages)
    ours, answers = in_turns(name, Reach(merge=False))
    assert (theirs.finished, theirs.told, theirs.unfinished) == (True, "", "")
    assert (ours.finished, ours.violation) == (True, None)
    assert set(theirs.answers) == answers
    assert len(answers) > 1


@pytest.mark.parametrize(("name", "reach"), [("CHECK_THEN_ACT", Reach()), ("COUNTS_OUTSIDE", Reach(traced=TOYS))])
def test_both_find_what_was_planted(name, reach):
    """A check that is not held to, and a write outside of the lock."""
    theirs = under_frontrun(name, TOYS)
    ours, _ = in_turns(name, reach)
    assert theirs.told.endswith("is wrong")
    assert not theirs.finished
    assert ours.violation is not None


def test_one_schedule_shows_nothing():
    """A search in which there was nothing to order is not called finished, though frontrun says that it holds."""
    found = under_frontrun("ALONE", TOYS)
    assert (found.schedules, found.finished) == (1, False)
    assert found.unfinished.startswith("one schedule only")


def test_what_was_cut_short_is_not_finished():
    """Frontrun answers that the property holds when its time is over, too."""
    result = type("Result", (), {"property_holds": True, "num_explored": 500, "inconclusive_reason": None})
    assert opcodes._unfinished(result, 10.0, 10.0) == "its 10 s were over"
    assert opcodes._unfinished(result, 9.0, 10.0) == ""
    result.property_holds, result.inconclusive_reason = None, "a run timed out"
    assert opcodes._unfinished(result, 9.0, 10.0) == "a run timed out"


def test_what_goes_wrong_in_its_process_is_raised():
    """With what that process said."""
    with pytest.raises(NotRun, match="no attribute 'MISSING'"):
        under_frontrun("MISSING", TOYS)
