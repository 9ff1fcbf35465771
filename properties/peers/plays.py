"""Which published sentence is played on a peer, how its trace is grown, and what the witness must see for it to break.

The sentences are the catalogue's, by the functions that say them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from failstop.models.published import (
    breaker,
    budget,
    configuration,
    container,
    cost,
    deadline,
    guard,
    pipeline,
    retries,
    steps,
)
from failstop.properties.peers.stage import (
    BreakerStage,
    BudgetStage,
    ChainStage,
    ConfigurationStage,
    ContainerStage,
    GuardStage,
    PipelineStage,
)
from failstop.properties.peers.way import Growth, Step, Way

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from failstop.models.specification import Specification
    from failstop.properties.peers.peer import Peer
    from failstop.properties.peers.stage import Stage

CALLERS = 16
_CEILING = 5
_RETRIES = 3
_DAY_S = 86_400


@dataclass(frozen=True)
class Play:
    """How one published sentence is played.

    broken: whether these counts, under the way's limits, break it. counted: the counts that are told. promise: the
    target's promise that it comes under, if the targets have a name for it. along: where the sentence is proved of what
    is printed, a goal whose way is taken, or a way. probe: steps after the way that show what it led to.
    """

    spec: Specification
    holds: Callable[..., bool]
    make: Callable[[Peer, Way], Stage]
    broken: Callable[[Mapping[str, int], Way], bool]
    counted: tuple[str, ...]
    promise: str | None = None
    growth: Growth | None = None
    probe: tuple[Step, ...] = ()
    along: Callable[..., bool] | Way | None = None

    @property
    def sentence(self) -> str:
        """The sentence as the catalogue has it."""
        return self.spec.formulas[self.holds].sentence

    @property
    def guarantee(self) -> str:
        """The guarantee that the sentence is about."""
        laws = {each.holds: each.guarantee for each in self.spec.laws}
        return laws.get(self.holds) or {each.holds: each.guarantee for each in self.spec.invariants}[self.holds]

    @property
    def subject(self) -> str:
        """What the records call it."""
        return f"{self.spec.name}: {self.sentence}"


PLAYS = (
    Play(
        steps.STEPS,
        steps.successes_stay_within,
        ChainStage,
        lambda seen, way: seen["succeeded"] > way.limit("max_steps"),
        ("dispatches", "succeeded"),
        promise="steps_parallel",
        growth=Growth("together", CALLERS, (("max_steps", _CEILING),)),
    ),
    Play(
        steps.STEPS,
        steps.steps_stay_within,
        ChainStage,
        lambda seen, way: seen["dispatches"] > way.limit("max_steps"),
        ("dispatches",),
        promise="steps_failed",
        growth=Growth("in turn", CALLERS, (("max_steps", _CEILING),)),
    ),
    Play(
        retries.RETRIES,
        retries.total_calls_stay_within,
        ChainStage,
        lambda seen, way: seen["dispatches"] > 1 + way.limit("max_retries_total"),
        ("dispatches", "retries"),
        growth=Growth("together", CALLERS, (("max_retries_total", _RETRIES),)),
    ),
    Play(
        retries.RETRIES,
        retries.total_retries_stay_within,
        ChainStage,
        lambda seen, way: seen["retries"] > way.limit("max_retries_total"),
        ("dispatches", "retries"),
        promise="retries",
        growth=Growth("together", CALLERS, (("max_retries_total", _RETRIES),)),
        along=retries.the_ceiling_is_reached,
    ),
    Play(
        cost.COST,
        cost.total_cost_stays_below,
        ChainStage,
        lambda seen, way: seen["billed"] > way.limit("max_cost"),
        ("dispatches", "billed"),
        promise="cost",
        growth=Growth("together", CALLERS, (("max_cost", _CEILING),), (("cost", 1),)),
    ),
    Play(
        deadline.DEADLINE,
        deadline.halted_once_late,
        ChainStage,
        lambda seen, _: seen["late"] > 0,
        ("dispatches", "late"),
        promise="deadline",
        growth=Growth("together", CALLERS),
    ),
    Play(
        guard.ASKED_BEFORE,
        guard.stopped_at_the_ceiling_only,
        GuardStage,
        lambda seen, way: seen["refused"] > 0 and seen["steps"] < way.limit("max_steps"),
        ("steps",),
        growth=Growth("in turn", _CEILING, (("max_steps", _CEILING),)),
    ),
    Play(
        container.CONTAINER,
        container.total_retries_stay_within,
        ContainerStage,
        lambda seen, way: seen["retries"] > way.limit("max_retries"),
        ("dispatches", "retries"),
        growth=Growth("in turn", CALLERS, (("max_retries", _RETRIES),)),
    ),
    Play(
        budget.BUDGET,
        budget.a_refusal_halts,
        BudgetStage,
        lambda seen, _: seen["accepted after a refusal"] > 0,
        ("refused", "accepted after a refusal"),
    ),
    Play(
        pipeline.PIPELINE,
        pipeline.the_slot_is_given_back,
        PipelineStage,
        lambda seen, _: seen["denied by the breaker"] > 0 and seen["dispatches"] == 0,
        ("dispatches", "denied by the breaker"),
        probe=(Step("asks_breaker", 2, (("cost", 1),)),),
    ),
    Play(
        pipeline.PIPELINE,
        pipeline.a_half_open_breaker_tests,
        PipelineStage,
        lambda seen, _: seen["denied by the breaker"] > 0 and seen["dispatches"] == 0,
        ("dispatches", "denied by the breaker"),
    ),
    Play(
        breaker.BREAKER,
        breaker.one_test_request,
        BreakerStage,
        lambda seen, _: seen["tests at once"] > 1,
        ("tests at once",),
    ),
    Play(
        breaker.BREAKER,
        breaker.closed_by_its_test,
        BreakerStage,
        lambda seen, _: seen["tests at once"] > 1,
        ("tests at once",),
        probe=(Step("asks", 2),),
    ),
    Play(
        breaker.BREAKER,
        breaker.no_trap,
        BreakerStage,
        lambda seen, _: seen["denied"] > 1,
        ("tests", "denied"),
        probe=(Step("time_passes", None, (("time", _DAY_S),)), Step("asks", 2)),
    ),
    Play(
        breaker.WALL_CLOCK,
        breaker.open_denies,
        BreakerStage,
        lambda seen, _: seen["tests"] > 0,
        ("tests", "denied"),
    ),
    Play(
        breaker.WALL_CLOCK,
        breaker.open_tests_in_time,
        BreakerStage,
        lambda seen, _: seen["denied"] > 0,
        ("tests", "denied"),
    ),
    Play(
        configuration.CONFIGURATION,
        configuration.finite,
        ConfigurationStage,
        lambda seen, _: seen["made"] > 0,
        ("made", "refused"),
        along=Way((), (Step("configures", None, (("is_count", True), ("value", 0), ("negative", False))),)),
    ),
    Play(
        configuration.CONFIGURATION,
        configuration.counts_are_whole,
        ConfigurationStage,
        lambda seen, _: seen["made"] > 0,
        ("made", "refused"),
    ),
    Play(
        configuration.CONFIGURATION,
        configuration.no_truth_values,
        ConfigurationStage,
        lambda seen, _: seen["made"] > 0,
        ("made", "refused"),
    ),
)

NOT_PLAYED: Mapping[str, str] = {
    "published approval": "it is published of another runtime; veronica-core asks nobody about a call",
    "amplification": "a theory of how calls multiply: it has numbers and no steps",
    "epsilon": "a theory of floating-point dollars: it has numbers and no steps",
    "not a number": "a theory of floating-point dollars: it has numbers and no steps",
    "rounding": "a theory of floating-point dollars: it has numbers and no steps",
}
"""Protocols and theories of which something is refuted and nothing is played, with the reason."""
