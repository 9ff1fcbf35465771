"""What a run does with one action of its planner, as an engine that either face can carry out.

Every turn costs at least one step: each of its dispatches costs one, and a turn that dispatches nothing costs one all
the same, or an unknown tool or an empty plan could go on for ever (field case 32).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from failstop.runtime.agent.approval import as_answer
from failstop.runtime.agent.faces import Ask, Batch, Call, Engine, Pause
from failstop.runtime.agent.planner import Action, Observation, PlannerError, Seen, checked, reported_nano
from failstop.runtime.audit import canonical
from failstop.runtime.audit.event_log import Rows
from failstop.runtime.chain.dispatch import described
from failstop.runtime.cores import grant as core
from failstop.runtime.frozen import TooDeepError, frozen, thawed
from failstop.runtime.money import Money
from failstop.runtime.stops import ClosedStop, Denied, Stop

if TYPE_CHECKING:
    from failstop.runtime.agent.approval import ApprovalRequest, Approver, Grant, StandingAnswers
    from failstop.runtime.agent.awaiting import Reply
    from failstop.runtime.agent.gate import Gate, Held
    from failstop.runtime.agent.tools import Tool
    from failstop.runtime.agent.trace import OpenTurn, Trace
    from failstop.runtime.chain.context import ExecutionContext

Record: TypeAlias = Callable[[str, dict[str, Any]], None]
"""Writes one event and returns once it is on disk; raises if that is impossible, and then the run must not go on."""


class TurnEngine:
    """Performs the actions of one run; several at once, or one inside another, do not disturb each other."""

    def __init__(
        self,
        context: ExecutionContext,
        gate: Gate,
        trace: Trace,
        record: Record,
        approver: Approver | None,
        standing: StandingAnswers,
    ) -> None:
        self._context = context
        self._gate = gate
        self._trace = trace
        self._record = record
        self._approver = approver
        self._standing = standing

    def refuse_if_over(self) -> None:
        """Raise the chain's stop again if it is over: a planner that swallowed it gains nothing."""
        if self._context.stop is not None:
            raise self._context.stop.again()
        if self._context.closed:
            raise ClosedStop(detail=f"run {self._context.name!r} has ended")

    def take(self, given: object) -> Action:
        """Take a planner's answer in: first charge what it says it cost, since even what cannot be performed is paid.

        Raises PlannerError for what is not an action.
        """
        if isinstance(given, Action):
            self.charge(given.cost)
        return checked(given)

    def charge(self, cost: object) -> None:
        """Charge what the planner says its turn cost: the money is gone, so in full, even if it is more than is left.

        What is not an amount of money is charged as all that is left, and raises PlannerError: unknown is not free.
        """
        try:
            nano = reported_nano(cost)
        except PlannerError:
            self._context.charge(None, "planner")
            raise
        if nano > 0:
            self._context.charge(Money(nano), "planner")

    def perform(self, action: Action) -> Engine[tuple[Observation, ...]]:
        """Make the calls of one action in the order given, once a person has answered for those that need it."""
        turn = self._trace.open(action)
        calls = Rows({"tool": call.tool, "args": call.args} for call in action.calls)
        self._record("step", {"n": turn.number, "reasoning": action.reasoning, "calls": calls})
        self._context.turn(canonical.digest([[call.tool, call.args] for call in action.calls]))
        held = [self._gate.examine(f"{turn.number}.{place}", call) for place, call in enumerate(action.calls, start=1)]
        yield from self._get_answers([call.grant for call in held if call.grant is not None])
        steps_before = self._context.snapshot().steps
        for group in [held] if action.parallel and not _covering_more(held) else [[call] for call in held]:
            yield from self._dispatch(turn, group)
        if not held:
            turn.observations.append(Observation(f"{turn.number}.0", "", Seen.REFUSED, error=_EMPTY))
        if self._context.snapshot().steps == steps_before:
            self._context.step("turn")
        return self._trace.close(turn)

    # Approval ------------------------------------------------------------------------------------------------------

    def _get_answers(self, grants: list[Grant]) -> Engine[None]:
        """Return once every grant is answered or has expired; nothing of the turn is dispatched before."""
        for grant in grants:
            self._record("approval", _as_asked(grant.request))
        waiting = []
        for grant in grants:
            if not (yield from self._decided_at_once(grant)):
                waiting.append(grant)  # noqa: PERF401 - a comprehension cannot yield
        while waiting:
            answers: Mapping[str, object] = yield Pause(tuple(grant.request for grant in waiting))
            self._record("resume", {})
            waiting = [
                grant for grant in waiting if not self._decided(grant, as_answer(answers, grant.request.id), "person")
            ]

    def _decided_at_once(self, grant: Grant) -> Engine[bool]:
        """Let a standing answer decide, else the approver if there is one."""
        if self._decided(grant, core.NO_ANSWER, "standing"):
            return True
        if self._approver is None:
            return False
        try:
            said = yield Ask(self._approver, (grant.request,), self._context.token)
        except GeneratorExit:
            raise
        except BaseException as error:
            # An approver that breaks has not said yes (field case 5), even where its error ends the run as well.
            denied = self._decided(grant, core.NO, f"approver, which raised {described(error)}")
            if isinstance(error, Exception):
                return denied
            self.refuse_if_over()
            # The stop of another chain says nothing about this one.
            if isinstance(error, Stop):
                return denied
            raise
        return self._decided(grant, core.YES if said is True else core.NO, "approver")

    def _decided(self, grant: Grant, exact: int, by: str) -> bool:
        """Answer a grant and put that on record; False if there is no answer and still time for one."""
        request = grant.request
        standing = core.NO_ANSWER if request.in_doubt else self._standing.for_tool(request.tool)
        ruling = core.ruling(exact, standing)
        if ruling == core.NO_ANSWER and grant.pending:
            return False
        in_time = ruling != core.NO_ANSWER and grant.answer(ruling == core.YES) == core.GRANTED
        by = by if exact != core.NO_ANSWER else "standing"
        self._record(
            "decision",
            {
                "request": request.id,
                "approved": in_time and ruling == core.YES,
                "by": by if in_time else "expiry",
            },
        )
        return True

    # Dispatch ------------------------------------------------------------------------------------------------------

    def _dispatch(self, turn: OpenTurn, group: list[Held]) -> Engine[None]:
        """Make the calls of a group that may be made, and put on record what came of each."""
        ready = [held for held in group if held.refusal is None]
        replies: list[Reply] = []
        if ready:
            replies = yield Batch(tuple(self._call(held) for held in ready))
        came = {held.call_id: reply for held, reply in zip(ready, replies, strict=False)}
        for held in group:
            if held.refusal is not None:
                self._note(turn, held, held.refusal)
            elif held.call_id in came and not isinstance(came[held.call_id].error, Stop):
                self._note(turn, held, _observed(held, came[held.call_id]))
        for reply in replies:
            if reply.error is not None and not isinstance(reply.error, Exception):
                raise reply.error

    def _call(self, held: Held) -> Call:
        tool = cast("Tool", held.tool)
        given = (self._context,) if tool.with_context else ()
        options: dict[str, Any] = {
            "kind": "tool",
            "name": tool.name,
            "reserve": tool.reserve,
            "cost": tool.cost,
            # A person said yes to one dispatch, now: waiting for calls in flight could outlast the answer.
            "retries": 0 if held.grant is not None else tool.retries,
            "wait": held.grant is None,
        }
        if tool.isolate is not None:
            options["isolate"] = tool.isolate
        fn = partial(_invoke, tool.fn, given, held.args)
        # A process of its own cannot tell us that it began.
        told = fn if tool.isolate == "process" else partial(_begin, held, fn)
        return Call(self._context, told, options, partial(self._gate.lets_through, held), tool.asynchronous)

    def _note(self, turn: OpenTurn, held: Held, seen: Observation) -> None:
        turn.observations.append(seen)
        self._gate.note(held, seen)
        named = {"call_id": seen.call_id, "tool": seen.tool}
        if seen.ok:
            self._record("tool_result", {**named, "value": seen.value})
        else:
            self._record("tool_error", {**named, "error": seen.error, "unknown": seen.unknown, "seen": seen.seen.value})


_EMPTY = "the plan is empty; call a tool, or finish"


def _covering_more(held: list[Held]) -> bool:
    """Say whether an approval covers more than arguments: a call made beside that one could rewrite what it covers."""
    return any(call.grant is not None and call.tool is not None and call.tool.digest_of is not None for call in held)


def _begin(held: Held, fn: Callable[[], Any]) -> Any:
    held.began = True
    return fn()


def _invoke(fn: Callable[..., Any], given: tuple[Any, ...], args: Mapping[str, Any]) -> Any:
    """Call a tool with arguments of its own; a retry gets fresh ones, whatever the first try did to its."""
    return fn(*given, **thawed(args))


def _as_asked(request: ApprovalRequest) -> dict[str, Any]:
    return {
        "request": request.id,
        "tool": request.tool,
        "tier": request.tier.name,
        "args": request.args,
        "digest": request.digest,
        "expires_ns": request.expires_ns,
        "reason": request.reason,
    }


def _observed(held: Held, reply: Reply) -> Observation:
    if reply.error is not None:
        return _failed(held, reply.error)
    try:
        return Observation(held.call_id, held.name, Seen.OK, frozen(reply.value))
    except TooDeepError as error:
        return _failed(held, error)


def _failed(held: Held, error: BaseException) -> Observation:
    tool = cast("Tool", held.tool)
    if held.began or (tool.isolate == "process" and not isinstance(error, Denied)):
        error_text, in_doubt = described(error), not tool.idempotent
        return Observation(held.call_id, held.name, Seen.ERROR, error=error_text, unknown=in_doubt)
    advice = error.degradation if isinstance(error, Denied) else None
    return Observation(held.call_id, held.name, Seen.REFUSED, error=described(error), degradation=advice)
