"""The audit log: what is recorded is there, whole and in one chain, and whatever is not so is told."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import resource
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from failstop.runtime.audit import log as module
from failstop.runtime.audit.canonical import jsonable
from failstop.runtime.audit.event_log import NO_EVENT
from failstop.runtime.audit.log import AuditError, AuditLog, Event, load
from failstop.runtime.stops import ConfigurationError
from failstop.runtime.tests.racing import race

EVENTS = [
    ("start", {"run": "r", "goal": "a\nb"}),
    ("admit", {"call": 1, "held_nano": 5}),
    ("finish", {"value": b"\xff"}),
]


@pytest.fixture
def path(tmp_path):
    """A closed log of three events."""
    with AuditLog.create(tmp_path, "r") as log:
        for kind, data in EVENTS:
            log.record(kind, data)
    return log.path


def kinds(found):
    """The kinds of a log's events, in order."""
    return [event.kind for event in found.events]


# What is recorded is there


def test_events_come_back_as_they_were_recorded(path):
    """Numbered from zero, with values that JSON cannot say kept readable; an empty log is a log all the same."""
    assert AuditLog.create(path.parent, "empty")
    found = load(path)
    assert found.whole
    assert found.events[:2] == (Event(0, *EVENTS[0]), Event(1, *EVENTS[1]))
    assert found.events[2].data == {"value": {"$bytes": "\\xff"}}
    assert found.size == path.stat().st_size


def test_an_event_is_in_the_file_in_one_write_before_record_returns(tmp_path, monkeypatch):
    """A process killed right after has lost nothing, and one killed right before has left nothing."""
    writes = []
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: writes.append(data) or real(fd, data))
    with AuditLog.create(tmp_path, "r") as log:
        for kind, data in EVENTS:
            seq = log.record(kind, data)
            assert kinds(load(log.path))[seq:] == [kind]
            assert b"".join(writes) == log.path.read_bytes()
        assert len(writes) == len(log) == 3


@pytest.mark.parametrize("fsync", [True, False])
def test_fsync_is_asked_for_exactly_if_wanted(tmp_path, monkeypatch, fsync):
    """With it an event survives the machine and not only the process; it costs a disk's time each."""
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    with AuditLog.create(tmp_path, "r", fsync=fsync) as log:
        folder_syncs = len(synced)
        log.record("a", {})
        log.record("b", {})
    assert (folder_syncs, len(synced)) == ((1, 3) if fsync else (0, 0))


def test_a_payload_can_have_any_keys(tmp_path):
    """Also those of the record itself and of the method that takes it."""
    data = {
        "seq": 9,
        "kind": "k",
        "data": {"data": 1},
        "prev": "p",
        "hash": "h",
        "self": 1,
        "$set": [1],
        "\ud800": 2,
        1: 3,
    }
    with AuditLog.create(tmp_path, "r") as log:
        log.record("stop", data)
    (event,) = load(log.path).events
    assert (event.seq, event.kind) == (0, "stop")
    assert event.data == jsonable(data)
    assert event.data["$$set"] == [1]


def test_a_hostile_payload_is_recorded_all_the_same(tmp_path):
    """Whatever a tool returned, its event is written (field case 12)."""

    class Rude:
        def __repr__(self):
            raise SystemExit

    loop: list[object] = [float("nan"), "\ud800", {1: "a", "1": "b"}, {1, 2}, b"\0", Rude()]
    loop.append(loop)
    with AuditLog.create(tmp_path, "r") as log:
        log.record("tool_result", {"value": loop, "cost_nano": 7})
        log.record("next", {})
    assert kinds(load(log.path)) == ["tool_result", "next"]
    assert load(log.path).events[0].data["cost_nano"] == 7


def test_one_huge_field_leaves_the_others_as_they_are(tmp_path):
    """The counters beside a hundred megabytes of output stay readable, and the line stays short."""
    with AuditLog.create(tmp_path, "r") as log:
        log.record("tool_result", {"value": "x" * 10**8, "rows": ["y" * 200_000] * 50, "cost_nano": 7})
    (event,) = load(log.path).events
    assert event.data["cost_nano"] == 7
    assert event.data["value"]["length"] == 10**8
    assert "$folded" in event.data["rows"]
    assert log.path.stat().st_size < 5000


def test_a_repr_that_records_does_not_deadlock(tmp_path):
    """Values are spelled before the lock is taken."""
    log = AuditLog.create(tmp_path, "r")

    class Nosy:
        def __repr__(self):
            log.record("inner", {})
            return "Nosy"

    thread = threading.Thread(target=log.record, args=("outer", {"value": Nosy()}), daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
    log.close()
    assert kinds(load(log.path)) == ["inner", "outer"]


# Where a log is made


@pytest.mark.parametrize(
    "run_id",
    ["", ".", "..", ".hidden", "a/b", "../x", "/etc/x", "a\\b", "a\0", "a\n", "é", "a b", "x" * 65, None, 5, b"r", "٣"],
)
def test_a_run_id_that_could_leave_the_folder_is_refused(tmp_path, run_id):
    """And nothing is made."""
    with pytest.raises(ConfigurationError, match="run_id"):
        AuditLog.create(tmp_path / "logs", run_id)
    assert not (tmp_path / "logs").exists()


@pytest.mark.parametrize("run_id", ["r", "x" * 64, "A.b-c_9", "_", "-"])
def test_an_ordinary_run_id_names_its_file(tmp_path, run_id):
    """In a folder that is made if need be, readable by its owner alone."""
    with AuditLog.create(tmp_path / "a" / "b", run_id) as log:
        assert log.path == tmp_path / "a" / "b" / f"{run_id}.jsonl"
        assert log.path.stat().st_mode & 0o777 == 0o600


def test_a_run_never_writes_into_the_log_of_another(path):
    """Not through a link that points nowhere yet either."""
    before = path.read_bytes()
    with pytest.raises(ConfigurationError, match="exists"):
        AuditLog.create(path.parent, "r")
    (path.parent / "link.jsonl").symlink_to(path.parent / "elsewhere")
    with pytest.raises(ConfigurationError, match="exists"):
        AuditLog.create(path.parent, "link")
    assert path.read_bytes() == before
    assert not (path.parent / "elsewhere").exists()


# Cut


def test_a_log_cut_at_any_byte_gives_every_whole_event_and_says_where(path, tmp_path):
    """At every byte: an event is whole exactly if its newline is there."""
    content = path.read_bytes()
    everything = load(path).events
    cut = tmp_path / "cut.jsonl"
    for length in range(len(content) + 1):
        cut.write_bytes(content[:length])
        found = load(cut)
        whole = content[:length].count(b"\n")
        end = content[:length].rfind(b"\n") + 1
        assert found.events == everything[:whole]
        assert found.problem is None
        assert (found.size, found.truncated_at) == (end, None if end == length else end)
        assert found.torn_bytes == length - end
        assert found.whole == (end == length)


def test_a_last_event_without_its_newline_does_not_count(path):
    """Complete as it looks, `record` had not returned, so nobody has acted on it."""
    path.write_bytes(path.read_bytes()[:-1])
    found = load(path)
    assert len(found.events) == 2
    assert found.truncated_at == found.size


def test_a_torn_tail_is_mended_before_appending_and_reported_once(path, tmp_path):
    """Cut at every byte, gone on with, read: what is new is readable, the cut is told once (field case 8)."""
    content = path.read_bytes()
    for length in range(len(content) + 1):
        cut = tmp_path / f"cut{length}.jsonl"
        cut.write_bytes(content[:length])
        torn = load(cut).torn_bytes
        for _ in range(2):
            with AuditLog.open(cut) as log:
                log.record("more", {})
        found = load(cut)
        assert found.whole
        told = [event.data for event in found.events if event.kind == "truncated"]
        assert told == ([{"at": length - torn, "dropped_bytes": torn}] if torn else [])
        assert kinds(found)[-3:].count("more") == 2


# Altered


def altered(path, content):
    """Load a file after its content was replaced."""
    path.write_bytes(content)
    return load(path)


@pytest.mark.parametrize(
    "change", [lambda byte: byte ^ 1, lambda byte: byte ^ 0x20, lambda _: ord("\n"), lambda _: 0xFF]
)
def test_every_altered_byte_is_found(path, change):
    """Each byte in turn, also in hashes and newlines; only the last newline looks like a cut, which is told too."""
    content = path.read_bytes()
    everything = load(path).events
    for place, byte in enumerate(content):
        if change(byte) == byte:
            continue
        found = altered(path, content[:place] + bytes([change(byte)]) + content[place + 1 :])
        line = content[:place].count(b"\n")
        assert not found.whole
        assert found.events == everything[:line]
        if place < len(content) - 1:
            assert f"line {line + 1}, where event {line} should be" in found.problem


def test_events_removed_inserted_or_moved_are_found(path):
    """Whole lines, each with its own right hash."""
    first, second, third = path.read_bytes().splitlines(keepends=True)
    for lines in (
        [second, third],
        [first, third],
        [second, first, third],
        [first, first, second],
        [first, third, second],
    ):
        assert altered(path, b"".join(lines)).problem is not None


def test_whole_events_cut_off_at_the_end_need_a_pin_to_be_missed(path):
    """No chain can show by itself that it was longer once."""
    pin = load(path).head
    assert load(path, pin=pin).whole
    assert load(path, pin=NO_EVENT).whole
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    assert load(path).whole
    assert "pinned" in load(path, pin=pin).problem


def test_a_pin_taken_early_is_found_in_a_log_that_went_on(tmp_path):
    """It says that the log still runs through that event."""
    with AuditLog.create(tmp_path, "r") as log:
        log.record("a", {})
        pin = log.head
        log.record("b", {})
    assert load(log.path, pin=pin).whole


def sealed(body):
    """A line with the right hash for any body."""
    return body + b',"hash":"' + hashlib.sha256(body).hexdigest().encode() + b'"}\n'


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"[", b"5", b'{"seq":0', b'{"seq":0,"kind":"a","data":[],"prev":"' + b"0" * 64 + b'"'),
        *(b'{"seq":1,"kind":"a","data":{},"prev":"' + b"0" * 64 + b'"', b'{"seq":0,"kind":"a","data":{},"prev":"x"'),
        *(b'{"seq":true,"kind":"a","data":{},"prev":"0"', b"\xff\xfe{", b'{"a":' + b"[" * 100_000),
        *(b'{"kind":"a","seq":0,"data":{},"prev":"' + b"0" * 64 + b'"', b'{"seq":0,"kind":1,"data":{},"prev":""'),
    ],
)
def test_a_line_that_is_sealed_but_is_no_event_is_reported(tmp_path, body):
    """Whatever a file holds, reading it reports and does not raise."""
    found = altered(tmp_path / "x.jsonl", sealed(body))
    assert "event 0" in found.problem
    assert found.events == ()


def test_no_content_makes_reading_raise(tmp_path):
    """An empty file is an empty log; binary rubbish is reported."""
    assert altered(tmp_path / "x", b"").whole
    for content in (b"\0" * 100, b"\n\n", b"{}\n", bytes(range(256)) * 3, b"[" * 10_000 + b"\n"):
        assert not altered(tmp_path / "x", content).whole


def test_an_altered_log_takes_no_more_events(path):
    """To append would give an alteration a valid continuation."""
    content = path.read_bytes().replace(b"held_nano", b"paid_nano")
    path.write_bytes(content)
    with pytest.raises(AuditError, match="line 2"):
        AuditLog.open(path)
    assert path.read_bytes() == content


# One chain


@pytest.fixture
def eager_switching():
    """Threads change places at nearly every bytecode, so that a missing lock shows."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("eager_switching")
def test_threads_that_append_at_once_make_one_chain(tmp_path):
    """Every event of every thread, each once, in one linear order (field case 9)."""
    log = AuditLog.create(tmp_path, "r")
    start = threading.Barrier(2)

    def write(name):
        start.wait(10)
        return [log.record(name, {"n": n}) for n in range(100)]

    with ThreadPoolExecutor(2) as threads:
        seqs = [future.result(20) for future in [threads.submit(write, name) for name in "ab"]]
    log.close()
    found = load(log.path)
    assert found.whole
    assert sorted(seqs[0] + seqs[1]) == list(range(200))
    for name, own in zip("ab", seqs, strict=True):
        assert [(event.seq, event.data["n"]) for event in found.events if event.kind == name] == list(
            zip(own, range(100), strict=True)
        )


def test_a_thread_that_comes_between_the_look_and_the_write_waits(tmp_path, monkeypatch):
    """The one place where two events could take one number, entered on purpose (field case 9)."""
    log = AuditLog.create(tmp_path, "r")
    moved = threading.Event()

    class Door:
        def __init__(self):
            self.lock = threading.Lock()

        def __enter__(self):
            if self.lock.locked():
                moved.set()
            self.lock.acquire()

        def __exit__(self, *_):
            self.lock.release()

    def come_between(fd):
        monkeypatch.undo()
        other.start()
        assert moved.wait(20)
        return os.fstat(fd)

    log._lock = Door()
    other = threading.Thread(target=lambda: (log.record("second", {}), moved.set()), daemon=True)
    monkeypatch.setattr(os, "fstat", come_between)
    assert log.record("first", {}) == 0
    other.join(20)
    assert not other.is_alive()
    log.close()
    assert kinds(load(log.path)) == ["first", "second"]


def test_a_second_writer_is_refused_while_the_first_has_the_log(path):
    """In this process and in another, on a new log too; afterwards it may (field case 9)."""
    program = "import sys; from failstop.runtime.audit.log import AuditLog; AuditLog.open(sys.argv[1]).record('b', {})"
    command = [sys.executable, "-c", program, str(path)]
    with AuditLog.open(path) as log:
        log.record("a", {})
        with pytest.raises(AuditError, match="another"):
            AuditLog.open(path)
        other = subprocess.run(command, capture_output=True, check=False, timeout=60)
        assert b"AuditError" in other.stderr
    subprocess.run(command, check=True, timeout=60)
    assert kinds(load(path))[3:] == ["a", "b"]
    with AuditLog.create(path.parent, "new") as log, pytest.raises(AuditError, match="another"):
        AuditLog.open(log.path)


def test_of_many_that_want_an_empty_log_at_once_one_gets_it(tmp_path):
    """To begin it, then to open it while it has no event yet; what the one writes is a whole chain (field case 9)."""

    def attempt(get):
        try:
            return get()
        except (AuditError, ConfigurationError):
            return None

    for round_number in range(10):
        name = f"r{round_number}"
        path = tmp_path / f"{name}.jsonl"
        for get in (lambda name=name: AuditLog.create(tmp_path, name), lambda path=path: AuditLog.open(path)):
            (log,) = filter(None, race(8, lambda _, get=get: attempt(get)))
            assert len(log) == 0
            log.close()
        with AuditLog.open(path) as log:
            log.record("first", {})
        assert load(path).whole


def test_the_hash_is_of_the_bytes_that_are_stored(path):
    """Worked out here from the file alone, over values that a second spelling could change (field case 9)."""
    odd = [-0.0, 1e22, 0.1, 10**30, "\u00e9", "e\u0301", "\ud800", {"b": 1, "a": 2}, {2, 1}, float("nan")]
    with AuditLog.open(path) as log:
        log.record("odd", {"values": odd, "z": 1, "a": 2})
    head = NO_EVENT
    for line in path.read_bytes().splitlines():
        body, _, rest = line.rpartition(b',"hash":"')
        assert json.loads(line)["prev"] == head
        head = hashlib.sha256(body).hexdigest()
        assert rest == head.encode() + b'"}'
    assert load(path).whole
    assert load(path).head == head


def test_a_forked_child_can_neither_write_the_log_nor_keep_it_locked(path):
    """It inherits the descriptor and with it the lock; both are given up at once."""
    context = multiprocessing.get_context("fork")
    log = AuditLog.open(path)
    told, holding, done = context.Queue(), context.Event(), context.Event()

    def child():
        try:
            log.record("child", {})
        except AuditError as error:
            told.put(str(error))
        holding.set()
        done.wait(30)

    process = context.Process(target=child)
    process.start()
    assert "closed" in told.get(timeout=30)
    assert holding.wait(30)
    log.record("parent", {})
    log.close()
    with AuditLog.open(path):
        done.set()
    process.join(30)
    assert process.exitcode == 0
    assert kinds(load(path))[3:] == ["parent"]


# When it cannot be written


def test_a_write_that_fits_in_part_leaves_nothing_and_raises(tmp_path):
    """On a file size limit, as on a full device: the log is as before, and goes on once there is room."""
    log = AuditLog.create(tmp_path, "r")
    log.record("first", {})
    before = log.path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 20, limits[1]))
    try:
        for _ in range(2):
            with pytest.raises(AuditError, match="only 20 of the event's"):
                log.record("second", {"value": "x" * 300})
            assert log.path.read_bytes() == before
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert log.record("third", {}) == 1
    log.close()
    assert load(log.path).whole
    assert kinds(load(log.path)) == ["first", "third"]


@pytest.mark.parametrize(
    ("call", "raised", "expected"),
    [
        ("write", OSError(28, "No space left on device"), AuditError),
        ("fsync", OSError(5, "Input/output error"), AuditError),
        ("fsync", KeyboardInterrupt(), KeyboardInterrupt),
    ],
)
def test_an_event_that_was_not_recorded_leaves_no_trace(tmp_path, monkeypatch, call, raised, expected):
    """Neither in the file nor in the count, whether the device refused it or a signal came in the middle."""
    log = AuditLog.create(tmp_path, "r", fsync=True)
    log.record("first", {})

    def fail(*_):
        raise raised

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(expected):
            log.record("second", {})
    assert len(log) == 1
    assert log.record("third", {}) == 1
    log.close()
    assert load(log.path).whole
    assert kinds(load(log.path)) == ["first", "third"]


def test_a_signal_right_after_the_event_was_complete_does_not_break_the_chain(tmp_path, monkeypatch):
    """The event is in the file and in the count, or in neither."""
    log = AuditLog.create(tmp_path, "r")

    class Interrupted(AuditLog):
        @property
        def _tip(self):
            return self.__dict__["_tip"]

        @_tip.setter
        def _tip(self, value):
            self.__dict__["_tip"] = value
            raise KeyboardInterrupt

    log.__class__ = Interrupted
    with pytest.raises(KeyboardInterrupt):
        log.record("first", {})
    log.__class__ = AuditLog
    log.record("second", {})
    log.close()
    assert kinds(load(log.path)) == ["first", "second"]


@pytest.mark.parametrize(
    "harm",
    [
        lambda path: path.write_bytes(path.read_bytes()[:-10]),
        lambda path: path.write_bytes(path.read_bytes() + b"x"),
        lambda path: path.unlink(),
    ],
)
def test_a_file_that_another_changed_or_deleted_takes_no_more_events(path, harm):
    """What came after would be unreadable or nowhere, and the run would go on without a log."""
    with AuditLog.open(path) as log:
        harm(path)
        with pytest.raises(AuditError, match="changed or deleted"):
            log.record("more", {})
        assert len(log) == 3


def test_a_closed_log_records_nothing(path):
    """Closing twice is harmless."""
    log = AuditLog.open(path)
    log.close()
    log.close()
    with pytest.raises(AuditError, match="closed"):
        log.record("more", {})
    assert len(load(path).events) == 3


def test_an_open_that_fails_gives_the_lock_back(path, monkeypatch):
    """Or nobody could mend the log before this process ends."""
    path.write_bytes(path.read_bytes()[:-3])
    with monkeypatch.context() as patch:
        patch.setattr(AuditLog, "record", lambda *_: pytest.fail("full"))
        with pytest.raises(pytest.fail.Exception):
            AuditLog.open(path)
    good = path.read_bytes()
    path.write_bytes(b"rubbish\n")
    with pytest.raises(AuditError, match="altered"):
        AuditLog.open(path)
    path.write_bytes(good)
    AuditLog.open(path).close()


def test_a_missing_log_is_an_os_error(tmp_path):
    """Nothing is made up for it."""
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.jsonl")
    with pytest.raises(FileNotFoundError):
        AuditLog.open(tmp_path / "none.jsonl")


def test_recording_takes_microseconds(tmp_path):
    """It stands before every dispatch; a hundred times slower than measured would be a mistake in kind."""
    event = {"call": 1, "context": "run", "held_nano": 1000, "retry": False, "at_ns": 123456789}
    with AuditLog.create(tmp_path, "r") as log:
        began = time.perf_counter()
        for _ in range(500):
            log.record("admit", event)
        assert time.perf_counter() - began < 1.5


def test_a_line_is_plain_json_for_other_tools(path):
    """Each line by itself, ASCII, with the names that the module documents."""
    for line in path.read_bytes().splitlines():
        assert list(json.loads(line.decode("ascii"))) == ["seq", "kind", "data", "prev", "hash"]
    assert module.__all__ == ["AuditError", "AuditLog", "Event", "LoadedLog", "load"]
