"""One run of an agent from its start to its end: who may drive it when, and what it leaves behind."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, TypeVar

from failstop.runtime.agent.approval import ApprovalError, ApprovalRequest, ApprovalRequired
from failstop.runtime.agent.faces import Engine, Pause, adrive, drive
from failstop.runtime.agent.outcome import Outcome, RunResult
from failstop.runtime.agent.planner import Action, Observation, PlannerError
from failstop.runtime.chain.dispatch import described
from failstop.runtime.money import Money

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from failstop.runtime.agent.run_log import RunLog
    from failstop.runtime.agent.trace import Trace
    from failstop.runtime.agent.turns import TurnEngine
    from failstop.runtime.chain.context import ExecutionContext
    from failstop.runtime.policies.quota import QuotaTicket
    from failstop.runtime.stops import Stop

T = TypeVar("T")


class RunClosed(Exception):  # noqa: N818 - it tells what happened
    """The run was closed before it ended by itself."""


class AgentRun:
    """A run that `AgentLoop` drives, or that a harness drives action by action.

    A harness may perform actions from several threads, and from inside a tool; each is one turn. When the run waits for
    a person, `perform` raises ApprovalRequired and `answer` goes on with that very action. `close` ends it.
    """

    def __init__(
        self,
        run_id: str,
        context: ExecutionContext,
        turns: TurnEngine,
        trace: Trace,
        log: RunLog,
        ticket: QuotaTicket | None,
    ) -> None:
        self.id = run_id
        self.context = context
        self.turns = turns
        self.trace = trace
        self.log = log
        self._ticket = ticket
        self._lock = threading.Lock()
        self._paused: dict[str, tuple[ApprovalRequest, Engine[Any]]] = {}
        self._result: RunResult | None = None

    # Action by action ----------------------------------------------------------------------------------------------

    def perform(self, action: Action) -> tuple[Observation, ...]:
        """Make the calls of one action; raises a Stop, ApprovalRequired, or PlannerError for what is not an action."""
        engine = self._performance(action)
        return self._arrived(engine, drive(engine))

    async def aperform(self, action: Action) -> tuple[Observation, ...]:
        """Make the calls of one action on the running event loop; otherwise as perform."""
        engine = self._performance(action)
        return self._arrived(engine, await adrive(engine))

    def answer(self, answers: Mapping[str, object]) -> tuple[Observation, ...]:
        """Go on with an action that waits for a person; an answer that is not True is a no. Raises ApprovalError."""
        answers = dict(answers)
        engine = self.take(answers)
        return self._arrived(engine, drive(engine, answers))

    async def aanswer(self, answers: Mapping[str, object]) -> tuple[Observation, ...]:
        """Go on with an action that waits for a person, on the running event loop."""
        answers = dict(answers)
        engine = self.take(answers)
        return self._arrived(engine, await adrive(engine, answers))

    @property
    def pending(self) -> tuple[ApprovalRequest, ...]:
        """What a person is asked now."""
        with self._lock:
            return tuple(request for request, _ in self._paused.values())

    # Pausing -------------------------------------------------------------------------------------------------------

    def pause(self, engine: Engine[Any], pause: Pause) -> None:
        """Keep an engine until its requests are answered."""
        with self._lock:
            for request in pause.requests:
                self._paused[request.id] = (request, engine)

    def take(self, answers: Mapping[str, object]) -> Engine[Any]:
        """Give the one engine that waits for these answers, to one caller only; raises ApprovalError."""
        with self._lock:
            unknown = [request_id for request_id in answers if request_id not in self._paused]
            if unknown or not self._paused:
                waiting = ", ".join(self._paused) or "nothing: it was resumed already, or it has ended"
                raise ApprovalError(f"run {self.id!r} asked nothing with the id {unknown}; it waits for {waiting}")
            engines = {id(engine): engine for _, engine in map(self._paused.__getitem__, answers or self._paused)}
            if len(engines) > 1:
                raise ApprovalError("these answers belong to several actions; answer those of one at a time")
            (engine,) = engines.values()
            self._paused = {key: waits for key, waits in self._paused.items() if waits[1] is not engine}
            return engine

    # The end -------------------------------------------------------------------------------------------------------

    def waiting(self) -> RunResult:
        """Tell that the run waits for a person; it keeps its context, its counters and its quota."""
        return self._result_now(Outcome.NEEDS_APPROVAL, pending=self.pending)

    def complete(self, value: Any = None) -> RunResult:
        """End a run that a harness drives, with its value; a chain that was stopped has not completed."""
        stop = self.context.stop
        if stop is not None:
            return self.end(Outcome.BUDGET_STOP, stop=stop)
        return self.end(Outcome.COMPLETED, value=value)

    def close(self) -> RunResult:
        """End the run as it is: nothing more is dispatched, what waits for a person is dropped; harmless when over."""
        with self._lock:
            engines = {id(engine): engine for _, engine in self._paused.values()}
            self._paused = {}
        for engine in engines.values():
            engine.close()
        stop = self.context.stop
        closed = RunClosed(f"run {self.id!r} was closed before it ended")
        return self.end(Outcome.BUDGET_STOP if stop else Outcome.FAILED, stop=stop, error=None if stop else closed)

    def end(
        self, outcome: Outcome, *, value: Any = None, stop: Stop | None = None, error: BaseException | None = None
    ) -> RunResult:
        """End the run, once; an end that cannot be written to the log is a failure, whatever it was before."""
        with self._lock:
            if self._result is not None:
                return self._result
            self._result = self._result_now(outcome, value, stop, error)
        try:
            self._record_end(self._result)
        except Exception as unwritten:  # noqa: BLE001 - nobody may take a run for whole whose log is not
            self._result = replace(self._result, outcome=Outcome.FAILED, value=None, error=unwritten)
            self.log.abandon()
        finally:
            self.context.close()
            self._settle_quota()
        return self._result

    def _record_end(self, result: RunResult) -> None:
        stop = result.stop
        if stop is not None:
            numbers = {"limit": stop.limit, "used": stop.used, "detail": stop.detail}
            self.log.record("budget_stop", {"ceiling": stop.ceiling, **numbers})
        self.context.close()
        totals = {"steps": result.snapshot.steps, "spent_nano": result.snapshot.committed_nano}
        error = None if result.error is None else described(result.error)
        self.log.end({"outcome": result.outcome.value, "value": result.value, **totals, "error": error})

    def _settle_quota(self) -> None:
        if self._ticket is not None:
            at_the_end = self.context.snapshot()
            # What is still in flight has not said yet what it costs: at most what it holds, unless it breaks its word.
            self._ticket.settle(Money(at_the_end.committed_nano + at_the_end.reserved_nano))

    def _result_now(
        self,
        outcome: Outcome,
        value: Any = None,
        stop: Stop | None = None,
        error: BaseException | None = None,
        pending: tuple[ApprovalRequest, ...] = (),
    ) -> RunResult:
        return RunResult(
            outcome=outcome,
            run_id=self.id,
            value=value,
            stop=stop,
            error=error,
            trace=self.trace.turns(),
            snapshot=self.context.snapshot(),
            pending=pending,
            run=self,
        )

    def _performance(self, given: Action) -> Engine[tuple[Observation, ...]]:
        self.turns.refuse_if_over()
        action = self.turns.take(given)
        if action.finished:
            raise PlannerError("a finish is not performed; call complete() with its value")
        return (yield from self.turns.perform(action))

    def _arrived(self, engine: Engine[T], came: T | Pause) -> T:
        if isinstance(came, Pause):
            self.pause(engine, came)
            raise ApprovalRequired(came.requests)
        return came

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
