"""What a planner does wrong by itself, noted as it yields: a mistake of the script is never held against the target."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, cast

from failstop.planners.actions import Approve, Call, Close, Parallel, Refused, Spawn
from failstop.planners.toolset import MISBEHAVIOURS, TOOLS
from failstop.runtime.money import nano_up
from failstop.runtime.stops import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from failstop.planners.actions import Plan


class NoPlanError(TypeError):
    """What should have yielded actions is no generator."""


class Watch:
    """Follows the plans of one run; `mistake` tells the first thing that nobody could have played, or is None.

    Some planners do such things on purpose, so a mistake only counts where a run did not go as it must.
    """

    def __init__(self) -> None:
        self.mistake: str | None = None

    def over(self, make: Callable[..., Plan]) -> Callable[..., Plan]:
        """Give what makes the same plan, watched."""

        @functools.wraps(make)
        def made(*args: object) -> Plan:
            return self._follow(make(*args))

        return made

    def _follow(self, plan: Plan) -> Plan:
        """Pass on whatever goes in and comes out, and look at each action."""
        if not isinstance(plan, Generator):
            self._note(f"it gives {_a(plan)}, which yields nothing; is a yield missing?")
            raise NoPlanError(self.mistake)
        move, sent = plan.send, None
        while True:
            try:
                action = move(sent)
            except StopIteration as end:
                return end.value
            self._note(mistake_in(action))
            if isinstance(action, Spawn) and callable(action.agent):
                action = Spawn(self.over(action.agent))
            try:
                move, sent = plan.send, (yield action)
            except GeneratorExit:
                plan.close()
                raise
            except BaseException as error:  # noqa: BLE001 - the planner decides what becomes of it
                move, sent = cast("Callable[[object], object]", plan.throw), error

    def _note(self, mistake: str | None) -> None:
        self.mistake = self.mistake or mistake


def mistake_in(action: object) -> str | None:
    """Say what makes this something that cannot be played; None for what can."""
    if isinstance(action, Call):
        return _mistake_in_call(action)
    if isinstance(action, Parallel):
        return _mistake_in_parallel(action)
    if isinstance(action, Spawn):
        return None if callable(action.agent) else f"Spawn is given {_a(action.agent)}, which is no function"
    if isinstance(action, Approve):
        return None if isinstance(action.refusal, Refused) else f"Approve is given {_a(action.refusal)}, not a Refused"
    return None if isinstance(action, Close) else f"it yields {_a(action)}, which is no action"


def _mistake_in_call(call: Call) -> str | None:
    if not isinstance(call.tool, str) or call.tool not in TOOLS:
        return _unknown("tool", call.tool, TOOLS)
    if call.misbehaves is not None and call.misbehaves not in MISBEHAVIOURS:
        return _unknown("misbehaviour", call.misbehaves, MISBEHAVIOURS)
    if not isinstance(call.args, Mapping):
        return f"the args of {call.tool!r} are {_a(call.args)}, which is no mapping"
    if type(call.retries) is not int or call.retries < 0:
        return f"the retries of {call.tool!r} are {call.retries!r:.80}; expected a whole number from 0"
    try:
        nano_up(call.cost)
        if call.reserve is not None:
            nano_up(call.reserve, "estimate")
    except ConfigurationError as error:
        return str(error)
    return None if call.inside is None else mistake_in(call.inside)


def _mistake_in_parallel(action: Parallel) -> str | None:
    if action.on not in {"threads", "asyncio"}:
        return f"Parallel runs on {action.on!r:.80}; expected threads or asyncio"
    if not isinstance(action.calls, tuple | list):
        return f"Parallel is given {_a(action.calls)}; expected a tuple of calls"
    for call in action.calls:
        if not isinstance(call, Call):
            return f"Parallel is given {_a(call)} among its calls"
    return next((told for told in map(mistake_in, action.calls) if told is not None), None)


def _unknown(what: str, name: object, known: Iterable[str]) -> str:
    names = list(known)
    near = difflib.get_close_matches(str(name), names, n=1)
    return f"there is no {what} {name!r:.80}; {f'did you mean {near[0]}?' if near else 'there are ' + ', '.join(names)}"


def _a(value: object) -> str:
    return f"a {type(value).__name__}"
