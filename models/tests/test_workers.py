"""Processes side by side: an interrupt ends them, and is never taken for an answer of the solver."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time

import pytest
import z3

from failstop.models.solver import asked
from failstop.models.workers import workers


def is_deaf_to_interrupts() -> bool:
    """Say what a worker does with the interrupt that the terminal sends to all."""
    return signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_an_exception_ends_workers_in_the_middle_of_their_work() -> None:
    """Who waits for an hour of proofs and interrupts it gets the terminal back."""
    others = set(multiprocessing.active_children())
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt), workers(2) as pool:
        waiting = [pool.submit(time.sleep, 3600) for _ in range(5)]
        raise KeyboardInterrupt
    assert set(multiprocessing.active_children()) == others
    assert all(future.exception() for future in waiting)
    assert time.monotonic() - began < 60


def test_a_worker_leaves_interrupts_to_whoever_waits() -> None:
    """It would take it for an error of what it is at."""
    with workers(1) as pool:
        assert pool.submit(is_deaf_to_interrupts).result()


def test_workers_that_were_there_before_are_left_alone() -> None:
    """They are somebody else's."""
    with workers(1) as outer:
        number = outer.submit(os.getpid).result()
        with pytest.raises(KeyboardInterrupt), workers(1) as inner:
            inner.submit(os.getpid).result()
            raise KeyboardInterrupt
        assert outer.submit(os.getpid).result() == number


def test_an_interrupt_while_the_solver_thinks_is_one() -> None:
    """The solver catches it and calls it unknown; a claim that nobody thought through would be told as undecided."""
    solver = z3.Solver()
    a, b, c = z3.Ints("a b c")
    solver.add(a * a * a + b * b * b + c * c * c == 42, a > 1000)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            asked(solver)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
