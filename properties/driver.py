"""Runs a planner against a session: each action is put to the session, what comes of it goes back to the planner."""

from __future__ import annotations

import asyncio
import threading
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from failstop.planners.actions import Approve, Call, Close, Parallel, Refused, Spawn
from failstop.properties.gate import Gate
from failstop.properties.stub import Stub
from failstop.runtime.audit.canonical import canonical, fingerprint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from failstop.planners.actions import Plan
    from failstop.properties.target import Session
    from failstop.properties.world import Asked, World

MOST_TURNS = 300
"""A planner that swallows every refusal is led out of the door after so many turns."""


NEVER = "never"
"""As an ending: the planner went on until the harness ended it."""


class AdapterError(Exception):
    """The adapter, or the runtime itself, raised what is neither a refusal nor an error of the stub."""


class NotOffered(Exception):  # noqa: N818 - it is an answer, not an error
    """The target has no such move."""


class WrongAction(Exception):  # noqa: N818 - it tells what the planner did
    """The planner yielded what is no action."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended: `completed`, `failed`, NEVER, or the stop that ended it."""

    ended_in: str
    detail: str = ""


def ending(world: World, came: str, detail: str = "") -> Ending:
    """Name the ending: a stop of the chain, once it came, is what ended the run, whatever the planner made of it."""
    return Ending(world.stopped or came, detail)


class Driver:
    """Plays the planners of one run; `misbehaviour` is put around every tool."""

    def __init__(self, world: World, misbehaviour: str | None = None) -> None:
        self._world = world
        self._misbehaviour = misbehaviour
        self._turns_left = MOST_TURNS
        self._questions: list[tuple[Refused, str, Mapping[Any, Any]]] = []

    def run(self, plan: Plan, session: Session) -> Ending:
        """Play one planner to its end; raises AdapterError or NotOffered."""
        try:
            finished = self._play(plan, session)
        except (AdapterError, NotOffered):
            raise
        except Refused as refusal:
            return ending(self._world, refusal.stop, str(refusal))
        except BaseException as error:  # noqa: BLE001 - whatever a planner raises is its failure
            return ending(self._world, "failed", f"{type(error).__name__}: {error}")
        return ending(self._world, "completed" if finished else NEVER)

    def close(self, session: Session, *, and_try_again: bool) -> None:
        """End the run, whoever ended it before; a call that is tried after that must not be dispatched."""
        self._ask(session.close)
        if and_try_again:
            try:
                self._call(Call("search", {"query": "is anybody there?"}), session, None)
            except (AdapterError, NotOffered):
                raise
            except BaseException:  # noqa: BLE001, S110 - refused, or a stub raised it: the world has counted which
                pass

    def stub(self, call: Call, asked: Asked, session: Session) -> Stub:
        """Make the stub of a call; what its tool does inside goes through the same session."""
        return Stub(call, asked, self._world, self._misbehaviour, lambda: self._perform(call.inside, session))

    def _play(self, plan: Plan, session: Session) -> bool:
        """Give True if the planner finished, False if it never does; raises what the planner lets through."""
        move, sent = plan.send, None
        while self._turns_left > 0:
            self._turns_left -= 1
            try:
                action = move(sent)
            except StopIteration:
                return True
            try:
                move, sent = plan.send, self._turn(action, session)
            except (AdapterError, NotOffered, WrongAction):
                plan.close()
                raise
            except BaseException as error:  # noqa: BLE001 - the planner decides what becomes of it
                move, sent = plan.throw, error
        plan.close()
        return False

    def _turn(self, action: object, session: Session) -> object:
        # Only loop detection needs to be told of turns; elsewhere the calls alone must hold, as a user would make them.
        if self._world.limits.max_repeats is not None and isinstance(action, Call | Parallel | Spawn):
            self._ask(session.turn, action_fingerprint(action))
        return self._perform(action, session)

    def _perform(self, action: object, session: Session) -> object:
        if isinstance(action, Call):
            return self._call(action, session, None)
        if isinstance(action, Parallel):
            return self._parallel(action, session)
        if isinstance(action, Spawn):
            return self._spawn(action, session)
        if isinstance(action, Approve):
            return self._approve(action, session)
        if isinstance(action, Close):
            return self._ask(session.close)
        raise WrongAction(f"the planner yielded a {type(action).__name__}, which is no action")

    def _call(self, call: Call, session: Session, gate: Gate | None) -> object:
        args = dict(call.args)
        asked = self._world.ask(call, gate)
        try:
            return self._ask(session.call, self.stub(call, asked, session).work())
        except Refused as refusal:
            self._questions.append((refusal, call.tool, args))
            raise
        finally:
            self._world.answered(asked)

    async def _acall(self, call: Call, session: Session, gate: Gate) -> object:
        asked = self._world.ask(call, gate)
        try:
            return await session.acall(self.stub(call, asked, session).work())
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - judged by its kind
            raise self._judged(error) from None
        finally:
            self._world.answered(asked)

    def _parallel(self, action: Parallel, session: Session) -> list[object]:
        gate = Gate(len(action.calls), action.patience_s)
        results = asyncio.run(self._on_loop(action, session, gate)) if action.on == "asyncio" else None
        if results is None:
            results = self._on_threads(action, session, gate)
        for kind in (AdapterError, NotOffered, Refused):
            for result in results:
                if isinstance(result, kind):
                    raise result
        return results

    def _on_threads(self, action: Parallel, session: Session, gate: Gate) -> list[object]:
        results: list[object] = [None] * len(action.calls)

        def work(place: int, call: Call) -> None:
            try:
                results[place] = self._call(call, session, gate)
            except BaseException as error:  # noqa: BLE001 - part of what came of the fan-out
                results[place] = error

        threads = [threading.Thread(target=work, args=numbered, daemon=True) for numbered in enumerate(action.calls)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results

    async def _on_loop(self, action: Parallel, session: Session, gate: Gate) -> list[object]:
        calls = [self._acall(call, session, gate) for call in action.calls]
        return list(await asyncio.gather(*calls, return_exceptions=True))

    def _spawn(self, action: Spawn, session: Session) -> object:
        child = self._ask(session.child)
        self._play(action.agent(), child)  # type: ignore[arg-type]  # child() gives a Session
        return None

    def _approve(self, action: Approve, session: Session) -> object:
        """Let a person allow the call as it was when it was asked about: once, however often the planner says so."""
        for question in self._questions:
            if question[0] is action.refusal:
                self._questions.remove(question)
                self._world.allow(question[1], question[2])
        return self._ask(session.approve, action.refusal.request)

    def _ask(self, fn: Any, *args: object) -> object:
        try:
            return fn(*args)
        except BaseException as error:  # noqa: BLE001 - judged by its kind
            raise self._judged(error) from None

    def _judged(self, error: BaseException) -> BaseException:
        if isinstance(error, Refused):
            self._world.refused(error.stop)
            return error
        if isinstance(error, AdapterError | NotOffered) or self._world.raised_here(error):
            return error
        return AdapterError(last_line(error))


def action_fingerprint(action: Call | Parallel | Spawn) -> str:
    """Identify a turn as the runtime's loop detection sees it: tools and canonical arguments, nothing else."""
    if isinstance(action, Call):
        return fingerprint(action.tool, action.args)
    if isinstance(action, Parallel):
        return canonical([fingerprint(call.tool, call.args) for call in action.calls])
    return "spawn"


def last_line(error: BaseException) -> str:
    """Tell an error in one line, with the place where it was raised."""
    told = traceback.format_exception_only(error)[-1].strip()
    places = traceback.extract_tb(error.__traceback__)
    return f"{told} ({Path(places[-1].filename).name}:{places[-1].lineno})" if places else told
