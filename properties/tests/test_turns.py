"""Threads that take turns: who may go on, what is waited for, and how a schedule that is given up ends."""

import threading

import pytest

from failstop.properties.schedules.locks import TurnLock, TurnRLock, active, turn_locks
from failstop.properties.schedules.turns import Deadlock, Stuck, Turns


def stays(turns, me):
    """Stay with a thread as long as it can go on."""
    return me if me in turns.ready() else turns.ready()[0]


def switches(turns, me):
    """Go on with another thread whenever there is one."""
    return next((thread for thread in turns.ready() if thread is not me), me)


def run(works, choose=stays):
    turns = Turns(choose)
    with turn_locks(), active(turns):
        turns.run(works)
    return turns


def test_one_thread_runs_at_a_time_and_in_the_order_chosen():
    """The turn is passed on at points only, so what lies between two of them is not interrupted."""
    seen = []

    def work(name):
        turns = []

        def body():
            for step in range(3):
                seen.append((name, step, "before"))
                seen.append((name, step, "after"))
                turns[0].point()

        return body, turns

    pairs = [work("a"), work("b")]
    turns = Turns(switches)
    for _, place in pairs:
        place.append(turns)
    turns.run([body for body, _ in pairs])
    assert [each[:2] for each in seen[::2]] == [each[:2] for each in seen[1::2]]
    # The last point of a thread is behind its last step.
    assert [name for name, _, _ in seen[::2]] == ["b", "a"] * 3


def test_a_lock_lets_one_in_and_the_next_when_it_is_free():
    """Whoever wants a lock that is held waits, and comes when it is given back."""
    with turn_locks():
        lock, between, inside = threading.Lock(), threading.Lock(), []

    def work():
        with lock:
            inside.append(1)
            assert len(inside) == 1
            with between:
                inside.pop()

    assert isinstance(lock, TurnLock)
    run([work] * 3, switches)


def test_a_condition_and_a_semaphore_are_made_of_the_same_locks():
    """What threading builds from its locks takes turns too: a waiter is woken by the one who notifies."""
    with turn_locks():
        condition, semaphore = threading.Condition(), threading.Semaphore(0)
    seen = []

    def waits():
        with condition:
            while not seen:
                condition.wait()
        semaphore.release()

    def tells():
        with condition:
            seen.append("told")
            condition.notify_all()
        semaphore.acquire()
        seen.append("let in")

    for choose in (stays, switches):
        seen.clear()
        run([waits, tells], choose)
        assert seen == ["told", "let in"]


def test_only_the_owner_gives_a_reentrant_lock_back():
    """As with threading's own."""
    with turn_locks():
        lock, between, seen = threading.RLock(), threading.Lock(), []

    def takes():
        lock.acquire()
        lock.acquire()
        with between:
            lock.release()

    def gives():
        with pytest.raises(RuntimeError, match="un-acquired"):
            lock.release()
        seen.append("refused")

    assert isinstance(lock, TurnRLock)
    run([takes, gives])
    assert (seen, lock.count) == (["refused"], 1)


def test_a_time_out_passes_only_when_nothing_else_can_happen():
    """A lock that somebody else gives back in the end is had, however long that takes; one that nobody does is not."""
    with turn_locks():
        held, other, had = threading.Lock(), threading.Lock(), []

    def holds():
        with held:
            for _ in range(5):
                with other:
                    pass

    def wants():
        had.append(held.acquire(timeout=0.001))
        had.append(held.acquire(timeout=0.001))
        held.release()

    run([holds, wants], switches)
    assert had == [True, False]
    event = []

    def waits():
        event.append(threading.Event().wait(timeout=5))

    run([waits, waits])
    assert event == [False, False]


def test_every_thread_has_left_when_a_deadlock_is_told():
    """So what is looked at afterwards does not change any more, and the locks that were held are free."""
    with turn_locks():
        first, second = threading.Lock(), threading.Lock()

    def work(one, other):
        with one, other:
            pass

    for _ in range(50):
        with pytest.raises(Deadlock, match="every thread waits"):
            run([lambda: work(first, second), lambda: work(second, first)], switches)
        assert not first.locked()
        assert not second.locked()


def test_what_a_thread_or_the_chooser_raises_is_raised():
    """It is not lost in the thread, and the others leave."""

    def fails():
        raise ZeroDivisionError("on purpose")

    def confused(turns, me):
        raise LookupError("nobody")

    with pytest.raises(ZeroDivisionError):
        run([fails, int])
    with pytest.raises(LookupError):
        run([int, int], confused)


def test_a_thread_of_its_own_is_refused():
    """It would take no turns; the schedule is given up with that reason."""
    with pytest.raises(Stuck, match="takes no turns"):
        run([lambda: threading.Thread(target=int).start()])
    started = threading.Thread(target=int)
    started.start()
    started.join()


def test_threading_is_as_before_when_it_is_over():
    """Its locks are given out by itself again."""
    names = ("Lock", "RLock", "Event", "_allocate_lock")
    before = [getattr(threading, name) for name in names], threading.Thread.start
    with turn_locks():
        assert threading.Lock is TurnLock
    assert ([getattr(threading, name) for name in names], threading.Thread.start) == before
