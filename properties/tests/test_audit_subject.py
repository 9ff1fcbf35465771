"""The schedules of the audit log: what is on disk is one chain of every event once, and a wrong one is found."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from failstop.properties.linearizable import Begin, End, first_gap
from failstop.properties.references.audit import Append, AuditReference, Read
from failstop.properties.scenarios import catalogue
from failstop.properties.scenarios.audit import DEEP, SCENARIOS
from failstop.properties.schedules.picture import Picture
from failstop.properties.schedules.turns import Turns
from failstop.properties.subject import Lane, NotOffered
from failstop.properties.subjects.audit import AuditSubject, Folder
from failstop.properties.targets.failstop import FailstopTarget
from failstop.properties.targets.veronica import VeronicaCore
from failstop.properties.tests.searching import by_name, caught, searched, without_its_lock
from failstop.runtime.audit import log
from failstop.runtime.audit.canonical import canonical
from failstop.runtime.audit.event_log import payload_text
from failstop.runtime.audit.log import AuditLog

ALL = by_name(SCENARIOS + DEEP)


@pytest.fixture(autouse=True)
def nothing_left_behind(monkeypatch, tmp_path):
    """Every run deletes its folder."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ALL)
def test_every_schedule_of_our_log_can_be_explained(name):
    """Searched to its end, with more than one schedule."""
    search = searched(ALL[name])
    assert search.violation is None
    assert search.finished
    assert search.schedules > 1


@pytest.mark.parametrize("name", ["read-against-append"])
def test_it_can_be_interrupted_at_every_line(name):
    """Not only where it takes a lock, so that what it does without one is seen."""
    search = searched(ALL[name], (log.__name__,))
    assert search.violation is None
    assert search.finished
    assert search.schedules > searched(ALL[name]).schedules


def test_the_scenarios_have_names_of_their_own():
    """Whoever asks for one by its name gets it."""
    assert all(catalogue.every()[name] is scenario for name, scenario in ALL.items())


def test_an_append_without_the_lock_is_found(monkeypatch):
    """Two events continue the same one, or one of them has no number."""
    monkeypatch.setattr(AuditLog, "__init__", without_its_lock(AuditLog.__init__))
    caught(ALL["append-against-append"], (log.__name__,))


def test_a_chain_that_forks_is_found(monkeypatch):
    """What a writer continues is read under the lock, and written under it, but in between it is free."""

    def record(self, kind, data, /):
        with self._lock:
            seq, prev, _ = self._tip
        line, sealed = log.line_of(seq, canonical(kind), payload_text(data), prev)
        with self._lock:
            size = self.path.stat().st_size
            self._append(line, size, (seq + 1, sealed, size + len(line)))
        return seq

    monkeypatch.setattr(AuditLog, "record", record)
    caught(ALL["append-against-append"])


def test_an_event_that_is_told_but_not_written_is_found(monkeypatch):
    """After the log was closed nothing is on record any more."""
    right = AuditLog._append

    def append(self, line, size, tip):
        if self._fd != -1:
            right(self, line, size, tip)

    monkeypatch.setattr(AuditLog, "_append", append)
    caught(ALL["close-against-append"])


def test_an_event_written_later_is_found(monkeypatch):
    """Whoever reads when it was told to be on record does not see it."""
    late = []
    right = AuditLog.record

    def record(self, kind, data, /):
        late.append((kind, data))
        if len(late) % 2 == 0:
            for each in late[-2:]:
                right(self, *each)
        return len(late) - 1

    monkeypatch.setattr(AuditLog, "record", record)
    assert "cannot be" not in caught_at_the_first(ALL["read-against-append"], late).told


def caught_at_the_first(scenario, late):
    """Search with a memory that each run has for itself."""
    opened = AuditSubject.open

    def open_afresh(self, target):
        late.clear()
        return opened(self, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AuditSubject, "open", open_afresh)
        return caught(scenario)


def test_a_log_that_cannot_be_read_is_told():
    """One byte that is not as it was written, and nothing explains what is read."""
    instrument = AuditSubject().open(FailstopTarget())
    history = []
    lane = Lane(0, history.append)
    instrument.play(Append("admit", "a1"), lane)
    path = next(instrument._folder.path.iterdir())
    path.write_bytes(path.read_bytes().replace(b"a1", b"a2"))
    instrument.look(lane)
    instrument.close()
    assert "cannot be read" in str(history[-1])
    assert first_gap(AuditReference(exact=True), history, 1).place == 3


def test_an_event_with_another_payload_is_told():
    """What is read has to be what was written, field by field."""
    reference = AuditReference(exact=True)
    written = [Begin(0, Append("admit", "a")), End(0, 0), Begin(0, Read())]
    assert first_gap(reference, [*written, End(0, (("admit", "a"),))], 1) is None
    assert first_gap(reference, [*written, End(0, (("admit", '{"text": "a", "more": 1}'),))], 1).place == 3


def test_two_states_with_other_files_are_not_taken_for_one():
    """What lies on the disk decides what is read, though no object in memory tells it."""
    folder = Folder()
    picture = Picture(Turns(lambda turns, me: me), (Path,)).of(folder)
    assert Picture(Turns(lambda turns, me: me), (Path,)).of(folder) == picture
    (folder.path / "run.jsonl").write_bytes(b"one byte")
    assert Picture(Turns(lambda turns, me: me), (Path,)).of(folder) != picture
    folder.remove()


def test_a_target_of_less_may_refuse_and_tell_no_number():
    """Not exact, an append may be refused, and is then not on record."""
    read = [Begin(0, Append("admit", "a")), End(0, "denied"), Begin(0, Append("admit", "b")), End(0, None)]
    read = [*read, Begin(0, Read()), End(0, (("admit", "b"),))]
    assert first_gap(AuditReference(exact=False), read, 1) is None
    assert first_gap(AuditReference(exact=True), read, 1).place == 1


def test_a_target_without_a_log_is_told():
    """It is not judged by what it does not offer."""
    with pytest.raises(NotOffered, match="audit"):
        AuditSubject().open(VeronicaCore())
