"""The mutants: which edits are made, and that the proofs of each core notice them."""

from __future__ import annotations

import importlib

import pytest

from failstop.models import mutation
from failstop.models.claim import OURS, UNKNOWN, Answer, Claim
from failstop.models.mutants import Mutant, codes, edits, functions, mutants
from failstop.models.mutation import (
    CAUGHT,
    HARMLESS,
    SAME,
    SURVIVED,
    UNDECIDED,
    UNREADABLE,
    Harmless,
    Outcome,
    all_cores,
    is_missed,
    judge,
    judge_all,
    lines,
    main,
    mutants_of,
    not_surviving,
)
from failstop.models.readable import check_readable
from failstop.runtime.cores import ledger, steps

pytestmark = pytest.mark.once

ADMIT = '''
def admit(state: State, limit: int, asked: int) -> tuple[State, int]:
    """Spend 1 + 1, and what is asked."""
    spent, calls = state
    if 0 <= limit < spent + asked:
        return state, REFUSED
    return (spent + asked, calls + 1), ADMITTED
'''

CHOOSE = """
def choose(first: int, wanted: bool, left: bool) -> int:
    best = first
    if wanted and not left:
        best = 5
    elif wanted:
        best = NONE
    else:
        best = first if left else 7
    return best
"""

SAMPLE = [
    ("breaker", "admit", "`now < until` becomes `now <= until`"),
    ("breaker", "report", "`permit != generation or mode == OPEN` becomes `mode == OPEN`"),
    ("breaker", "reset", "`generation + 1` becomes `generation`"),
    (
        "budget",
        "spend",
        "`shut or 0 <= limit < spent + reserved + amount` becomes `0 <= limit < spent + reserved + amount`",
    ),
    ("budget", "release", "`(spent, reserved - held, calls, shut)` becomes `state`"),
    ("grant", "use", "`if not same` is dropped"),
    ("grant", "ruling", "`exact != NO_ANSWER` becomes `exact == NO_ANSWER`"),
    ("grant", "expire", "`0 <= expires_ns <= now_ns` becomes `0 <= expires_ns < now_ns`"),
    ("ledger", "settle", "`cost > held` becomes `cost >= held`"),
    ("ledger", "release", "`retries - 1` becomes `retries`"),
    ("ledger", "left", "`if rest < 0` is dropped"),
    ("ledger", "unless_closed", "`verdict == ADMITTED or verdict == CONTENDED` becomes `verdict == ADMITTED`"),
    ("quota", "roll", "`reserved = 0` is dropped"),
    ("quota", "settle", "`if day != last_day` is dropped"),
    ("repeats", "turn", "`run <= max_repeats` becomes `run < max_repeats`"),
    ("retry", "fail", "`backoff + backoff` becomes `backoff`"),
    ("retry", "jittered", "`if high > max_backoff` is dropped"),
    ("steps", "step", "`0 <= limit <= taken` becomes `0 <= limit < taken`"),
]
"""The core, its function, and the edit: one of each kind, and no core without."""


def mutant(core: str, function: str, edit: str) -> Mutant:
    """Find a mutant by its name."""
    (found,) = [each for each in mutants_of(core) if (each.function, each.edit) == (function, edit)]
    return found


def told(source: str, *given: object) -> list[str]:
    """Give the edits of a text, in words."""
    return [each.told for each in edits(source, *given)]


class TestTheEdits:
    """What is changed in a function."""

    def test_every_part_of_a_function_is_changed_once(self):
        """Guards, operators, operands, numbers, codes and the state; the docstring and the signature stay."""
        assert told(ADMIT, [("ADMITTED", "REFUSED")], ("int", "int")) == [
            "`if 0 <= limit < spent + asked` is dropped",
            "`0 <= limit < spent + asked` becomes `not 0 <= limit < spent + asked`",
            "`0 <= limit < spent + asked` becomes `0 < limit < spent + asked`",
            "`0 <= limit < spent + asked` becomes `0 <= limit <= spent + asked`",
            "`0 <= limit < spent + asked` becomes `limit < spent + asked`",
            "`0 <= limit < spent + asked` becomes `0 <= limit`",
            "`0 <= limit < spent + asked` becomes `-1 <= limit < spent + asked`",
            "`spent + asked` becomes `spent - asked`",
            "`spent + asked` becomes `spent`",
            "`(state, REFUSED)` becomes `(state, ADMITTED)`",
            "`((spent + asked, calls + 1), ADMITTED)` becomes `(state, ADMITTED)`",
            "`(spent + asked, calls + 1)` becomes `(calls + 1, spent + asked)`",
            "`spent + asked` becomes `spent - asked` (2)",
            "`spent + asked` becomes `spent` (2)",
            "`calls + 1` becomes `calls - 1`",
            "`calls + 1` becomes `calls`",
            "`calls + 1` becomes `calls + 2`",
            "`((spent + asked, calls + 1), ADMITTED)` becomes `((spent + asked, calls + 1), REFUSED)`",
        ]

    def test_every_branch_can_be_dropped(self):
        """An `elif` goes alone, its `else` with what it assigns, and what nothing else sets stays."""
        assert told(CHOOSE, [("NONE",)]) == [
            "`if wanted and (not left)` is dropped",
            "`wanted and (not left)` becomes `not (wanted and (not left))`",
            "`wanted and (not left)` becomes `wanted or not left`",
            "`wanted and (not left)` becomes `not left`",
            "`wanted and (not left)` becomes `wanted`",
            "`not left` becomes `left`",
            "`best = 5` is dropped",
            "`best = 5` becomes `best = 6`",
            "`best = 5` becomes `best = 4`",
            "`if wanted` is dropped",
            "`wanted` becomes `not wanted`",
            "the `else` of `wanted` is dropped",
            "`best = NONE` is dropped",
            "`best = NONE` becomes `best = NONE + 1`",
            "`best = NONE` becomes `best = NONE - 1`",
            "`first if left else 7` becomes `first if not left else 7`",
            "`first if left else 7` becomes `first`",
            "`first if left else 7` becomes `7`",
            "`first if left else 7` becomes `first if left else 8`",
            "`first if left else 7` becomes `first if left else 6`",
            "`best` becomes `first`",
        ]

    def test_a_change_is_made_once_however_it_is_come_by(self):
        """Two edits with one text are one, and so are `x < 1` and `x <= 0`, and to add nothing and not to add."""
        assert told("def f(x: int) -> int:\n    if x < 0:\n        return x\n    return x + 1\n") == [
            "`if x < 0` is dropped",
            "`x < 0` becomes `x >= 0`",
            "`x < 0` becomes `x <= 0`",
            "`x < 0` becomes `x < -1`",
            "`x + 1` becomes `x`",
            "`x + 1` becomes `x - 1`",
            "`x + 1` becomes `x + 2`",
        ]

    def test_the_same_words_are_numbered(self):
        """So that a table can name the second of two."""
        found = told("def f(x: int) -> int:\n    if x == 5:\n        return x * 7\n    return x * 7\n")
        assert "`x * 7` becomes `x`" in found
        assert "`x * 7` becomes `x` (2)" in found

    def test_an_edit_knows_its_line(self):
        """It is the line of what is changed."""
        assert [each.line for each in edits(ADMIT, [("ADMITTED", "REFUSED")])] == [5] * 9 + [6] + [7] * 7

    def test_every_edit_changes_the_text(self):
        """None is left as it was, and no two are the same."""
        texts = [each.text for each in edits(ADMIT, [("ADMITTED", "REFUSED")], ("int", "int"))]
        assert len({*texts, ADMIT}) == len(texts) + 1

    def test_more_than_a_function_is_refused(self):
        """The text is that of one function."""
        with pytest.raises(TypeError, match="expected one function"):
            edits("x = 1")

    def test_codes_are_grouped_as_they_stand(self):
        """What is written between two groups parts them."""
        source = "A: State = 1\nB = 0\nC = -1\n'''Said.'''\nD = 10**9\nE = 'text'\nF = True\n"
        assert codes(source) == [("B", "C"), ("D",)]


class TestTheMutants:
    """Functions of a module with an edit."""

    def test_every_function_of_every_core_has_mutants(self):
        """None is left out."""
        for core in all_cores():
            module = importlib.import_module(f"failstop.runtime.cores.{core}")
            assert {each.function for each in mutants_of(core)} == set(functions(module))

    def test_a_mutant_is_at_home_in_its_module(self):
        """It calls the others there, can be read, and is no longer what it was."""
        built = mutant("ledger", "admit", "`if 0 <= max_steps <= steps` is dropped").built(ledger)
        assert built.__module__ == ledger.__name__
        assert built.__globals__ is vars(ledger)
        check_readable(built)
        assert ledger.admit(ledger.INITIAL, (-1, 0, -1, -1, -1), 0, False, False, 0)[1] == ledger.STEPS
        assert built(ledger.INITIAL, (-1, 0, -1, -1, -1), 0, False, False, 0)[1] == ledger.ADMITTED

    def test_a_mutant_has_a_name(self):
        """It says where, and what is changed."""
        first = mutants(steps, "step")[0]
        assert first.name == f"steps.step line {first.line}: `if 0 <= limit <= taken` is dropped"


class TestJudging:
    """What comes of a mutant."""

    @pytest.mark.parametrize("core", all_cores())
    def test_mutants_of_each_core_are_caught(self, core):
        """Those of a sample; `tox -e mutants` judges all."""
        chosen = [mutant(*each) for each in SAMPLE if each[0] == core]
        assert chosen
        assert [outcome.mutant.name for outcome in map(judge, chosen) if outcome.status != CAUGHT] == []

    def test_the_core_is_put_back(self):
        """Nobody is left with a broken one, even if it could not be read."""
        original = steps.step
        judge(mutant(*SAMPLE[-1]))
        judge(Mutant(steps.__name__, "step", 1, "a loop", "def step(taken: int, limit: int):\n    while True: pass\n"))
        assert steps.step is original

    def test_what_cannot_be_read_is_not_caught(self):
        """The reader refuses it, and that says nothing about the proofs."""
        broken = "def step(taken: int, limit: int) -> tuple[int, bool]:\n    return max(taken, limit), True\n"
        outcome = judge(Mutant(steps.__name__, "step", 1, "max", broken))
        assert (outcome.status, "a call of max" in outcome.told) == (UNREADABLE, True)

    def test_what_gives_the_same_is_no_mistake(self):
        """The solver says so of whatever it is given, reachable or not."""
        same = "def step(taken: int, limit: int) -> tuple[int, bool]:\n    if limit < 0 or taken < limit:\n"
        same += "        return taken + 1, True\n    return taken, False\n"
        assert judge(Mutant(steps.__name__, "step", 1, "the other way round", same)).status == SAME

    def test_what_nobody_speaks_of_survives(self, monkeypatch):
        """A core without a specification is not held to anything."""
        monkeypatch.setattr(mutation, "_affected", lambda module, name: ())
        assert judge(mutant(*SAMPLE[-1])).status == SURVIVED

    @pytest.mark.parametrize("kind", ["law", "reachable"])
    def test_an_unanswered_claim_catches_nothing(self, kind, monkeypatch):
        """A solver that ran out of time, or a search that found nothing, has not seen a mistake."""
        unanswered = Claim("G2", OURS, "steps", kind, "steps count", lambda: Answer(UNKNOWN, "timeout", 1, 10.0))

        class Silent:
            def read_the_rest(self):
                pass

            def claims(self):
                return [unanswered] if kind == "law" else []

            def reachable(self):
                return [unanswered] if kind == "reachable" else []

        monkeypatch.setattr(mutation, "_affected", lambda module, name: (Silent(),))
        outcome = judge(mutant(*SAMPLE[-1]))
        assert outcome.status == UNDECIDED
        assert "steps count: timeout" in outcome.told

    def test_processes_judge_as_one_does(self):
        """Each mutant comes back once, judged on its own."""
        chosen = [each for each in mutants_of("steps") if each.function == "give_back"]
        outcomes = list(judge_all(chosen, jobs=2))
        assert {outcome.mutant for outcome in outcomes} == set(chosen)
        assert {outcome.status for outcome in outcomes} == {CAUGHT}


class TestTheAccount:
    """What is told of all mutants."""

    ONE, OTHER = mutants(steps, "give_back")[:2]
    REASON = Harmless("steps", "give_back", ONE.edit, "it gives back nothing that was taken")

    def test_a_survivor_without_a_reason_is_missed(self):
        """So is one of which the solver says nothing; what is caught, the same or unreadable is not."""
        statuses = (CAUGHT, SAME, SURVIVED, UNDECIDED, UNREADABLE)
        missed = [status for status in statuses if is_missed(Outcome(self.ONE, status, "", 1.0))]
        assert missed == [SURVIVED, UNDECIDED]

    def test_a_survivor_with_a_reason_is_harmless(self, monkeypatch):
        """The reason is listed for this edit of this function."""
        monkeypatch.setattr(mutation, "HARMLESS", (self.REASON,))
        assert not is_missed(Outcome(self.ONE, SURVIVED, "", 1.0))
        assert is_missed(Outcome(self.OTHER, SURVIVED, "", 1.0))

    def test_a_reason_for_what_is_caught_is_told(self, monkeypatch):
        """The list cannot say more than is true, or name what is no mutant any more."""
        gone = Harmless("steps", "give_back", "`x` becomes `y`", "there is no x")
        monkeypatch.setattr(mutation, "HARMLESS", (self.REASON, gone))
        assert not_surviving([Outcome(self.ONE, SURVIVED, "", 1.0)]) == [gone]
        assert not_surviving([Outcome(self.ONE, CAUGHT, "", 1.0)]) == [self.REASON, gone]

    def test_what_is_not_caught_is_named_with_the_reason(self, monkeypatch):
        """The reason of the list, or what the solver says."""
        monkeypatch.setattr(mutation, "HARMLESS", (self.REASON,))
        outcomes = [Outcome(self.OTHER, SAME, "always equal", 1.0), Outcome(self.ONE, SURVIVED, "", 1.0)]
        _, row, _, harmless, same = lines(outcomes)
        assert row.split() == ["steps", "2", "0", "1", "1", "0", "0", "0", "-", "2"]
        assert harmless == f"harmless: {self.ONE.name}: {self.REASON.reason}"
        assert same == f"same: {self.OTHER.name}: always equal"

    def test_the_table_counts_them_all(self):
        """A line a core, one for all, and what is missed by name."""
        outcomes = [Outcome(self.ONE, CAUGHT, "a law", 1.0), Outcome(self.OTHER, SURVIVED, "", 2.0)]
        head, row, everything, missed = lines(outcomes)
        assert head.split()[:3] == ["core", "mutants", "caught"]
        assert row.split() == ["steps", "2", "1", "0", "0", "1", "0", "0", "50.0%", "3"]
        assert everything.split()[1:] == row.split()[1:]
        assert missed == f"survived: {self.OTHER.name}"

    @pytest.mark.parametrize(("status", "code"), [(CAUGHT, 0), (SAME, 0), (SURVIVED, 1), (UNDECIDED, 1)])
    def test_the_command_fails_for_what_is_missed(self, status, code, monkeypatch, capsys):
        """And tells each mutant as it comes."""
        monkeypatch.setattr(mutation, "judge_all", lambda chosen: [Outcome(each, status, "", 0.0) for each in chosen])
        assert main(["steps"]) == code
        out, err = capsys.readouterr()
        assert out.splitlines()[1].startswith("steps")
        assert len(err.splitlines()) == len(mutants_of("steps"))

    def test_every_reason_is_about_a_mutant(self):
        """A line of the list that names none is out of date."""
        for one in HARMLESS:
            assert one.reason
            assert mutant(*one[:3])
