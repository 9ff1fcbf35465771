"""One schedule: threads that take turns.

Real threads, so identities, thread-local values and trace functions are what they always are; but only one runs at a
time, and it passes the turn on at its points: before it takes a lock, before an operation is asked for, and at each
line of the code that is traced. Whose turn it is next is decided by a chooser.
"""

from __future__ import annotations

import _thread
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType

_real_lock = _thread.allocate_lock
_RUN_S = 10.0
"""Real seconds after which a schedule is given up: a thread hangs outside of our locks, or goes round for ever."""
_LEAVE_S = 1.0
"""Real seconds that the threads of a schedule given up have to leave in."""


class Stuck(Exception):  # noqa: N818 - it tells what happened
    """The schedule cannot be run to its end, or not as it was run before: it shows nothing."""


class Deadlock(Exception):  # noqa: N818 - it tells what happened
    """Every thread waits for another."""


class Over(BaseException):
    """Raised in the threads of a schedule that has ended without them."""


class Thread:
    """One of the threads that take turns."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.ident = 0
        self.waits_for: Callable[[], bool] | None = None
        self.times_out = False
        """Whether it waits with a time-out, which passes only when nothing else can happen."""
        self.ended = False
        self.fresh = True
        """Whether it has taken no lock since it got its turn."""
        self.idle = True
        """Whether it has begun no operation since it got its turn."""
        self.steps = 0
        """How often it came to where a point may be: what tells two rounds of a loop apart."""
        self.turn = _real_lock()
        self.turn.acquire()
        self.gone = _real_lock()
        self.gone.acquire()

    @property
    def ready(self) -> bool:
        """Whether it could go on."""
        return not self.ended and (self.waits_for is None or self.waits_for())


class Turns:
    """The threads of one schedule, and whose turn it is."""

    def __init__(self, choose: Callable[[Turns, Thread], Thread], traced: tuple[str, ...] = ()) -> None:
        self.threads: list[Thread] = []
        self.error: BaseException | None = None
        self.judging = False
        """Whether a history is being judged, by code that may be traced for its own sake: there is no point in it."""
        self._choose = choose
        self._traced = traced
        self._by_ident: dict[int, Thread] = {}
        self._done = _real_lock()
        self._over = False

    def run(self, works: Sequence[Callable[[], None]]) -> None:
        """Run them to their end, in the order that the chooser says; raises what one of them or the chooser raised."""
        self.threads = [Thread(number) for number in range(len(works))]
        self._done.acquire()
        for thread, work in zip(self.threads, works, strict=True):
            thread.ident = _thread.start_new_thread(self._body, (thread, work))
            self._by_ident[thread.ident] = thread
        self._pass_on(None)
        if not self._done.acquire(timeout=_RUN_S):
            self.abandon(Stuck(f"the schedule did not end within {_RUN_S:g} s"))
        if self.error is not None:
            # Nothing else may happen while they leave; one that hangs is left behind.
            for thread in self.threads:
                thread.gone.acquire(timeout=_LEAVE_S)
            raise self.error

    @property
    def over(self) -> bool:
        """Whether the schedule was given up: what its threads still do means nothing."""
        return self._over

    def ready(self) -> list[Thread]:
        """Give those that could go on; where none could, those that wait with a time-out."""
        able = [thread for thread in self.threads if thread.ready]
        return able or [thread for thread in self.threads if thread.times_out and not thread.ended]

    def current(self) -> Thread | None:
        """Give the thread that asks, if it is one of these."""
        return self._by_ident.get(_thread.get_ident())

    def point(self, waits_for: Callable[[], bool] | None = None, *, times_out: bool = False) -> None:
        """Let the chooser decide who goes on; the caller comes back once it is its turn and what it waits for is so.

        If its waiting times out, it may also come back when nobody else could have gone on.
        """
        me = self.current()
        if me is None:
            return
        if self._over:
            raise Over
        me.waits_for, me.times_out = waits_for, times_out
        self._pass_on(me)
        me.waits_for, me.times_out = None, False
        me.fresh = me.idle = True

    def before_operation(self) -> None:
        """Make a point before an operation is asked for: asked for any earlier, only more could be explained."""
        me = self.current()
        if me is None:
            return
        me.steps += 1
        if not (me.fresh and me.idle):
            self.point()
        me.idle = False

    def before_lock(self, is_free: Callable[[], bool], *, times_out: bool = False) -> None:
        """Make a point before a lock is taken, unless nothing was touched since the last one and it can be had."""
        me = self.current()
        if me is None:
            return
        me.steps += 1
        if not (me.fresh and is_free()):
            self.point(is_free, times_out=times_out)
        me.fresh = False

    def _body(self, thread: Thread, work: Callable[[], None]) -> None:
        thread.turn.acquire()
        try:
            if not self._over:
                self._work(thread, work)
        finally:
            thread.gone.release()

    def _work(self, thread: Thread, work: Callable[[], None]) -> None:
        try:
            if self._traced:
                sys.settrace(self._trace)
            work()
        except Over:
            return
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that runs the schedule
            self.abandon(error)
            return
        finally:
            sys.settrace(None)
        thread.ended = True
        # What it works on may have swallowed that the schedule is over.
        if not self._over:
            self._pass_on(thread)

    def _pass_on(self, me: Thread | None) -> None:
        if all(thread.ended for thread in self.threads):
            self._done.release()
            return
        if not self.ready():
            self.abandon(Deadlock("every thread waits for another"))
            if me is not None and not me.ended:
                raise Over
            return
        try:
            chosen = self._choose(self, me or self.threads[0])
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that runs the schedule
            self.abandon(error)
            if me is not None and not me.ended:
                raise Over from None
            return
        if chosen is me:
            return
        chosen.turn.release()
        if me is not None and not me.ended:
            me.turn.acquire()
            if self._over:
                raise Over

    def abandon(self, error: BaseException) -> None:
        """End the schedule; threads that wait for their turn leave by an exception when they get it."""
        if self._over:
            return
        self._over = True
        self.error = error
        me = self.current()
        for thread in self.threads:
            if thread is not me and not thread.ended:
                thread.turn.release()
        self._done.release()

    def _trace(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "call":
            if self.judging:
                return None
            return self._trace if frame.f_globals.get("__name__", "").startswith(self._traced) else None
        me = self.current()
        if event == "line" and me is not None and not self._over:
            me.steps += 1
            self.point()
            # The line that comes now may touch anything.
            me.fresh = False
        return self._trace
