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
_TURN_S = 10.0
"""Real seconds after which a turn that was not passed on is taken for a thread that hangs outside of our locks."""


class Stuck(Exception):  # noqa: N818 - it tells what happened
    """A thread did not pass its turn on in time: it waits for something that is not ours to give."""


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
        self.ended = False
        self.fresh = True
        """Whether it has touched nothing since it got its turn."""
        self.turn = _real_lock()
        self.turn.acquire()

    @property
    def ready(self) -> bool:
        """Whether it could go on."""
        return not self.ended and (self.waits_for is None or self.waits_for())


class Turns:
    """The threads of one schedule, and whose turn it is."""

    def __init__(self, choose: Callable[[Turns, Thread], Thread], traced: tuple[str, ...] = ()) -> None:
        self.threads: list[Thread] = []
        self.error: BaseException | None = None
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
        if not self._done.acquire(timeout=_TURN_S):
            self._abandon(Stuck(f"no thread passed its turn on within {_TURN_S:.0f} s"))
        if self.error is not None:
            raise self.error

    def current(self) -> Thread | None:
        """Give the thread that asks, if it is one of these."""
        return self._by_ident.get(_thread.get_ident())

    def point(self, waits_for: Callable[[], bool] | None = None) -> None:
        """Let the chooser decide who goes on; the caller comes back once it is its turn and what it waits for is so."""
        me = self.current()
        if me is None:
            return
        if self._over:
            raise Over
        me.waits_for = waits_for
        self._pass_on(me)
        me.waits_for = None
        me.fresh = True

    def before_operation(self) -> None:
        """Make a point before an operation is asked for: asked for any earlier, only more could be explained."""
        me = self.current()
        if me is not None and not me.fresh:
            self.point()

    def before_lock(self, is_free: Callable[[], bool]) -> None:
        """Make a point before a lock is taken, unless nothing was touched since the last one and it can be had."""
        me = self.current()
        if me is not None and not (me.fresh and is_free()):
            self.point(is_free)
        if me is not None:
            me.fresh = False

    def _body(self, thread: Thread, work: Callable[[], None]) -> None:
        thread.turn.acquire()
        try:
            if self._over:
                return
            if self._traced:
                sys.settrace(self._trace)
            work()
        except Over:
            return
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that runs the schedule
            self._abandon(error)
            return
        finally:
            sys.settrace(None)
        thread.ended = True
        self._pass_on(thread)

    def _pass_on(self, me: Thread | None) -> None:
        if all(thread.ended for thread in self.threads):
            self._done.release()
            return
        if not any(thread.ready for thread in self.threads):
            self._abandon(Deadlock("every thread waits for another"))
            if me is not None and not me.ended:
                raise Over
            return
        try:
            chosen = self._choose(self, me or self.threads[0])
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that runs the schedule
            self._abandon(error)
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

    def _abandon(self, error: BaseException) -> None:
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
            return self._trace if frame.f_globals.get("__name__", "").startswith(self._traced) else None
        if event == "line" and not self._over:
            self.point()
        return self._trace
