"""The schedules of approvals: one yes lets one call through, and every wrong one is found."""

from __future__ import annotations

import pytest

from failstop.properties.linearizable import Begin, End, first_gap
from failstop.properties.references.grant import ApprovalReference, Approve, Ask, GrantReference, Use
from failstop.properties.scenarios import catalogue
from failstop.properties.scenarios.grant import DEEP, SCENARIOS
from failstop.properties.subject import NotOffered
from failstop.properties.subjects.grant import ApprovalSubject, GrantSubject
from failstop.properties.targets.failstop import ContextSession
from failstop.properties.targets.failstop_loop import LoopTarget
from failstop.properties.targets.veronica import VeronicaCore
from failstop.properties.tests.searching import by_name, caught, searched, without_its_lock
from failstop.runtime.agent import approval
from failstop.runtime.agent.approval import Grant
from failstop.runtime.cores import grant as core

ALL = by_name(SCENARIOS + DEEP)

right_use = core.use


@pytest.mark.parametrize("name", ALL)
def test_every_schedule_of_our_approvals_can_be_explained(name):
    """Searched to its end, with more than one schedule."""
    search = searched(ALL[name])
    assert search.violation is None
    assert search.finished
    assert search.schedules > 1


@pytest.mark.parametrize("name", ["one-yes-two-uses", "expiry-against-answer"])
def test_it_can_be_interrupted_at_every_line(name):
    """Not only where it takes a lock, so that what it does without one is seen."""
    search = searched(ALL[name], (approval.__name__,))
    assert search.violation is None
    assert search.finished
    assert search.schedules > searched(ALL[name]).schedules


def test_the_scenarios_have_names_of_their_own():
    """Whoever asks for one by its name gets it."""
    assert all(catalogue.every()[name] is scenario for name, scenario in ALL.items())


@pytest.mark.parametrize("name", ["one-yes-two-uses", "approved-twice"])
def test_a_yes_that_is_not_marked_used_is_found(monkeypatch, name):
    """It lets a second dispatch through, of a grant and of a session."""

    def use(state, same, now_ns):
        after, verdict = right_use(state, same, now_ns)
        return (state, verdict) if verdict == core.GRANTED else (after, verdict)

    monkeypatch.setattr(core, "use", use)
    caught(ALL[name])


@pytest.mark.parametrize("name", ["one-yes-two-uses", "approved-twice"])
def test_a_use_that_looks_and_then_marks_is_found(monkeypatch, name):
    """Each of the two has the lock, but between them it is free."""

    def use(self, digest):
        with self._lock:
            after, verdict = core.use(self._state, digest == self.request.digest, self._elapsed_ns())
        with self._lock:
            self._state = after
        return verdict

    monkeypatch.setattr(Grant, "use", use)
    caught(ALL[name])


def test_a_use_without_the_lock_is_found(monkeypatch):
    """Two dispatches read the yes before one of them uses it up."""
    monkeypatch.setattr(Grant, "__init__", without_its_lock(Grant.__init__))
    assert "was told 'granted'" in caught(ALL["one-yes-two-uses"], (approval.__name__,)).told


def test_a_yes_that_does_not_expire_is_found(monkeypatch):
    """It was given for a while."""
    monkeypatch.setattr(core, "use", lambda state, same, now_ns: right_use((state[0], -1), same, now_ns))
    caught(ALL["expiry-against-use"])


def test_an_answer_that_comes_too_late_is_found(monkeypatch):
    """Nobody waits for it any more."""
    right = core.answer
    monkeypatch.setattr(core, "answer", lambda state, approved, now_ns: right(state, approved, 0))
    caught(ALL["expiry-against-answer"])


def test_a_second_answer_that_counts_is_found(monkeypatch):
    """The first one was taken, be it yes or no."""
    right = core.answer

    def answer(state, approved, now_ns):
        return right((core.PENDING, state[1]), approved, now_ns)

    monkeypatch.setattr(core, "answer", answer)
    caught(ALL["yes-against-no"])


def test_a_yes_for_whatever_call_is_found(monkeypatch):
    """It was given for one call."""
    monkeypatch.setattr(core, "use", lambda state, same, now_ns: right_use(state, True, now_ns))
    caught(ALL["drift-against-use"])


def test_a_gate_that_stands_open_is_found(monkeypatch):
    """A call was dispatched that nobody had approved."""
    monkeypatch.setattr(ContextSession, "call", ContextSession._dispatch)
    assert "was told 'dispatched'" in caught(ALL["approved-twice"]).told


def test_one_yes_that_dispatches_twice_is_found(monkeypatch):
    """The second effect is told by the stub, whatever the session says."""
    right = ContextSession._dispatch

    def twice(self, work):
        right(self, work)
        return right(self, work)

    monkeypatch.setattr(ContextSession, "_dispatch", twice)
    assert "was told 'dispatched'" in caught(ALL["approved-twice"]).told


def test_a_target_of_less_may_refuse_but_not_let_in():
    """Not exact, a refusal is always explained, and a second dispatch never."""
    asked = [Begin(0, Ask("a")), End(0, "approval"), Begin(0, Approve("a"))]
    once = [*asked, End(0, "dispatched")]
    for exact in (True, False):
        assert first_gap(ApprovalReference(exact=exact), once, 1) is None
        assert first_gap(ApprovalReference(exact=exact), [*once, *once[2:]], 1).place == 5
    assert first_gap(ApprovalReference(exact=False), [*asked, End(0, "halt")], 1) is None
    assert first_gap(ApprovalReference(exact=True), [*asked, End(0, "halt")], 1).place == 3
    used = [Begin(0, Use()), End(0, "expired")]
    assert first_gap(GrantReference(None, exact=False), used, 1) is None
    assert first_gap(GrantReference(None, exact=True), used, 1).place == 1
    assert first_gap(GrantReference(None, exact=False), [Begin(0, Use()), End(0, "granted")], 1).place == 1


def test_a_target_without_approvals_of_its_own_is_told():
    """It is not judged by what it does not offer."""
    with pytest.raises(NotOffered, match="grant"):
        GrantSubject().open(VeronicaCore())
    with pytest.raises(NotOffered, match="loop"):
        ApprovalSubject().open(LoopTarget())
