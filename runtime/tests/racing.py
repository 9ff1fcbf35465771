"""Real threads that start together, and pure steps slowed down so that a missing lock shows in the first rounds."""

from __future__ import annotations

import functools
import sys
import threading
import time


def race(count, act):
    """Run ``act(index)`` on `count` threads that leave one barrier together; their answers in order."""
    barrier = threading.Barrier(count)
    answers = [None] * count

    def run(index):
        barrier.wait(10)
        answers[index] = act(index)

    threads = [threading.Thread(target=run, args=(index,), daemon=True) for index in range(count)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
            assert not thread.is_alive()
    finally:
        sys.setswitchinterval(interval)
    return answers


def slowed(monkeypatch, module, *names):
    """Let every other thread have a turn after the shell has read its state and before it writes the next one."""
    for name in names:
        monkeypatch.setattr(module, name, _yielding(getattr(module, name)))


def _yielding(step):
    @functools.wraps(step)
    def yielding(*args):
        after = step(*args)
        # It lasts no time: zero only gives up the interpreter.
        time.sleep(0)
        return after

    return yielding
