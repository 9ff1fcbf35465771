"""Real threads that start together and are preempted often, so that a missing lock shows."""

from __future__ import annotations

import sys
import threading


def race(count, act):
    """Run ``act(index)`` on `count` threads that start together; their answers in order."""
    barrier = threading.Barrier(count)
    awake = []
    answers = [None] * count

    def run(index):
        barrier.wait(10)
        # A barrier wakes its threads one after the other; spinning until all are awake makes them really collide.
        awake.append(index)
        while len(awake) < count:
            pass
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
