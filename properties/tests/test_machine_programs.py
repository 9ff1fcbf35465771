"""A program as text and as a word: what is written is read back, and nothing else is."""

from __future__ import annotations

import base64
import zlib
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from failstop.properties.machines.machine import Played
from failstop.properties.machines.moves import MACHINES
from failstop.properties.machines.program import as_test, decoded, encoded, read, spelled, word
from failstop.properties.machines.replaying import Comparison, first_difference, replayed
from failstop.properties.machines.shortening import Program, shortest
from failstop.properties.references import audit
from failstop.properties.subjects.audit import AuditSubject
from failstop.properties.subjects.chain import Call, ChainSubject
from failstop.properties.targets import load
from failstop.properties.targets.failstop import FailstopTarget
from failstop.runtime.limits import Limits
from failstop.runtime.money import Money

ONE_STEP = ChainSubject(Limits(max_steps=1))


class OneTooMany(FailstopTarget):
    """Ours with one step more than it was told."""

    def open(self, limits, world):
        return super().open(Limits(max_steps=None if limits.max_steps is None else limits.max_steps + 1), world)


HERE = f"{__name__}:OneTooMany"


@settings(max_examples=30, deadline=None, database=None, derandomize=True)
@given(data=st.data(), name=st.sampled_from(sorted(MACHINES)))
def test_what_any_machine_draws_is_read_back_from_its_word(data, name):
    """Subjects and moves of every machine survive, and the word is safe in a URL and in a shell."""
    machine, target = MACHINES[name], load("failstop")
    subject = data.draw(machine.subjects(target))
    comparison = Comparison(target, subject)
    moves = []
    for _ in range(4):
        moves.append(data.draw(machine.moves(target, comparison.instrument, subject, moves)))
    comparison.close()
    token = encoded(subject, moves)
    assert decoded(token) == (subject, tuple(moves))
    assert set(token) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    assert read(word("a.b:c", subject, moves)) == ("a.b:c", subject, tuple(moves))
    namespace = {}
    exec(as_test("failstop", subject, moves), namespace)  # noqa: S102 - it is meant to be pasted and run
    namespace["test_found"]()


@pytest.mark.parametrize("text", ['a"b', "a'b", "a'\"b", "\n\0\ud800\U0001f600", "\\"])
def test_any_text_is_spelled_as_python_reads_it(text):
    """Quotes and what cannot be printed included."""
    assert eval(spelled(text)) == text  # noqa: S307 - it was spelled just now


def test_defaults_are_not_spelled():
    """The shortest program is short on the page too."""
    assert spelled(ONE_STEP) == "ChainSubject(Limits(max_steps=1))"
    assert spelled(Limits(max_cost_usd=Money(3), max_seconds=Decimal(1))) == (
        'Limits(max_cost_usd=Money(3), max_seconds=Decimal("1"))'
    )
    with pytest.raises(TypeError, match="cannot be written"):
        spelled(object())


def _packed(text):
    return base64.urlsafe_b64encode(zlib.compress(text.encode())).decode().rstrip("=")


@pytest.mark.parametrize(
    "text",
    [
        "subjects.chain:Call,ChainSubject,Limits\n__import__('os').getcwd()",
        "subjects.chain:Call,ChainSubject,Limits\n(ChainSubject(Limits()), (open('/etc/passwd'),))",
        "subjects.chain:Call,ChainSubject,Limits\n(ChainSubject(Limits()), (Call().inside,))",
        "subjects.chain:Call,ChainSubject,Limits\n(ChainSubject(Limits(max_steps=-1)), ())",
        "subjects.chain:Call,ChainSubject,Limits\n(ChainSubject(Limits(), **{}), ())",
        "subjects.chain:Call,ChainSubject,Limits\nChainSubject(Limits())",
        "subjects.chain:Call,ChainSubject,Limits\n(Limits(), ())",
        "subjects.chain:Call,ChainSubject,Limits\n(ChainSubject(Limits()), [Call()])",
        "subjects.chain:Call,ChainSubject,Limits\n(",
        "os.path\n(1, ())",
        "subjects.nowhere\n(ChainSubject(Limits()), ())",
        "",
        "subjects.chain:Call,ChainSubject,Limits\n" + "(" * 5000 + ")" * 5000,
        "subjects.chain:Call,ChainSubject,Limits\n" + " " * 2_000_000,
    ],
)
def test_a_word_runs_nothing_and_makes_nothing_but_programs(text):
    """Whatever it says besides is refused, as are words that would unpack to very much."""
    with pytest.raises(ValueError, match="is no program"):
        decoded(_packed(text))


@pytest.mark.parametrize(
    "given_word", ["", "machines", "machines/failstop", "machines//eNo", "schedules/a/b", "machines/a/%"]
)
def test_what_is_no_word_is_refused(given_word):
    """Nothing is played."""
    with pytest.raises(ValueError, match="is no program"):
        replayed(given_word)


def test_a_token_that_was_cut_is_refused():
    """A line that was copied in part does not replay as something else."""
    token = encoded(ONE_STEP, (Call(),))
    for length in range(len(token)):
        with pytest.raises(ValueError, match="is no program"):
            decoded(token[:length])


def test_a_program_is_made_as_short_as_it_can_be():
    """Moves, settings and fields that do not matter go; what is left differs, and its word says the same."""
    long = Program(
        ChainSubject(Limits(max_steps=2, max_retries=5), children=1),
        (Call("/1", 3, 2, inside=(Call(), Call(tool=True))), Call(reserve=None), Call(fails=1, retries=2)),
    )
    played = Played()
    program, difference = shortest(OneTooMany(), long, lambda *_: True, played.attempt)
    assert program == Program(ChainSubject(Limits(max_steps=0)), (Call(),))
    assert played.attempts > 3
    assert difference.told == first_difference(HERE, *program) == replayed(word(HERE, *program))
    assert shortest(load("failstop"), long, lambda *_: True, played.attempt) is None


def test_what_is_seen_only_at_the_end_is_a_difference_too():
    """A look after the last move belongs to the program."""
    assert first_difference("failstop", AuditSubject(), [audit.Append("note", "x"), audit.CloseLog()]) is None
