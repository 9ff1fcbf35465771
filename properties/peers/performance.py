"""One way, performed on a peer: threads that go on in its order, and what came of each step."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from unittest.mock import patch

from failstop.properties.peers.conductor import Conductor
from failstop.properties.schedules.locks import active, turn_locks
from failstop.properties.subjects.chain import StubFailed
from failstop.properties.subjects.moved_time import moved_time
from failstop.properties.target import Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from failstop.properties.peers.peer import Peer
    from failstop.properties.peers.stage import Stage
    from failstop.properties.peers.way import Step, Way

SAME_GO = "asked in the same go"


@dataclass(frozen=True, slots=True)
class Performed:
    """What came of each step in words, what the witness counted, and which threads of the peer's had no turn."""

    came: tuple[str, ...]
    counts: dict[str, int]
    held: tuple[str, ...] = ()


def perform(way: Way, probe: tuple[Step, ...], peer: Peer, make: Callable[[Peer, Way], Stage]) -> Performed:
    """Perform a way, and then a probe that shows what it led to; raises Stuck, Deadlock, or what the peer raises."""
    steps = (*way.steps, *probe)
    actors = 1 + max((step.caller for step in steps if step.caller is not None), default=-1)
    owners = [actors if step.caller is None else step.caller for step in steps]
    conductor = Conductor(owners)
    with turn_locks(), ExitStack() as stack:
        stage = make(peer, way)
        if peer.target.real_time:
            stack.enter_context(moved_time(stage.clock))
        stack.callback(stage.close)
        held: list[str] = []
        # A thread that the peer starts now, such as its timer, does not get its turn as long as the schedule lasts.
        with patch.object(threading.Thread, "start", lambda thread: held.append(thread.name)):
            stage.open()
        played = _Played(conductor, steps, stage)
        with active(conductor):
            conductor.run([partial(played.program, who) for who in range(actors + 1)])
    return Performed(tuple(played.came), dict(stage.counts), tuple(held))


class _Played:
    """The programs of all threads, and what they say."""

    def __init__(self, conductor: Conductor, steps: tuple[Step, ...], stage: Stage) -> None:
        self.conductor = conductor
        self._steps = steps
        self._stage = stage
        self._said: list[list[str]] = [[] for _ in steps]

    @property
    def came(self) -> list[str]:
        return [
            ", ".join((["waits"] if k in self.conductor.waited and said else []) + said) or "cannot be done"
            for k, said in enumerate(self._said)
        ]

    def program(self, who: int) -> None:
        while (k := self.conductor.take(who)) is not None:
            step = self._steps[k]
            if step.action in self._stage.begins:
                _Call(self, who, k).go()
            elif step.action in self._stage.during:
                self.say(k, SAME_GO)
            elif step.action in self._stage.ends:
                self.say(k, "nothing of it runs")
            else:
                self.say(k, self._stage.act(step))

    def say(self, k: int, told: str) -> None:
        self._said[k].append(told)

    def step(self, k: int) -> Step:
        return self._steps[k]

    def stage(self) -> Stage:
        return self._stage

    def is_lost(self, who: int) -> bool:
        coming = self.conductor.coming(who)
        return coming is not None and self._steps[coming].action in self._stage.losses


class _Call:
    """One call through the peer; its stub waits for the step that ends it."""

    def __init__(self, played: _Played, who: int, k: int) -> None:
        self._played = played
        self._who = who
        self._k: int | None = k
        self._step = played.step(k)
        self._entries = 0

    def go(self) -> None:
        stage = self._played.stage()
        lost = self._played.is_lost(self._who)
        try:
            stage.dispatch(self._step, self._stub, lost=lost)
        except Refused as refusal:
            self._say(f"refused ({refusal.stop})")
        except StubFailed:
            self._say("raises")
        else:
            self._say("nobody hears of it" if lost else "returns" if self._entries else "returns without a call")

    def _stub(self) -> object:
        stage, conductor = self._played.stage(), self._played.conductor
        self._entries += 1
        mark = stage.entered(again=self._entries > 1)
        self._say("its stub runs" if self._entries == 1 else "its stub raises, and runs again")
        step = None
        while (k := conductor.take(self._who)) is not None:
            step = self._played.step(k)
            if step.action not in stage.during:
                break
            self._played.say(k, SAME_GO)
            step = None
        self._k = k
        fails = step is not None and step.action in stage.failures
        stage.left(mark, step, fails=fails)
        if fails:
            raise StubFailed
        return stage.reply(step)

    def _say(self, told: str) -> None:
        if self._k is not None:
            self._played.say(self._k, told)
