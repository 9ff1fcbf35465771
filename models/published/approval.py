"""Approval as published: a tool above the autonomous ceiling pauses the run, and approval lets the same run continue.

Modelled: one gated tool in one run. The text says "Approval lets the same run continue" and not what a yes covers; the
reading modelled is that the tool is approved by its name, from then on and for this run, since risk is said to be a
property of the tool. Where each single call is asked about again, the two sentences that are refuted here hold.
Arguments are numbered; 0 stands for none.
"""

from __future__ import annotations

from typing import NamedTuple

from failstop.models.claim import PUBLISHED
from failstop.models.specification import Goal, Invariant, Law, Specification


class Nothing(NamedTuple):
    """A protocol without limits."""


class Run(NamedTuple):
    """One run: the arguments that wait for an answer, whether the tool is approved, and ghosts.

    seen: the arguments that the person who approved saw; runs: how often the tool really ran.
    """

    waiting: int
    approved: bool
    seen: int
    runs: int


def start() -> Run:
    """A run begins."""
    return Run(0, False, 0, 0)


def calls(world: Run, arguments: int) -> Run | None:
    """The agent calls the gated tool, which runs if it is approved, and else pauses the run."""
    if arguments < 1 or world.waiting != 0:
        return None
    if world.approved:
        return world._replace(runs=world.runs + 1)
    return world._replace(waiting=arguments)


def approves(world: Run) -> Run | None:
    """A person sees the call that waits and approves; the run continues."""
    if world.waiting == 0:
        return None
    return Run(0, True, world.waiting, world.runs)


def denies(world: Run) -> Run | None:
    """A person denies the call that waits."""
    if world.waiting == 0:
        return None
    return world._replace(waiting=0)


def nothing_runs_unapproved(world: Run) -> bool:
    """A gated tool never runs before a person has approved it."""
    return world.runs == 0 or world.approved


def a_pause_is_a_pause(world: Run, after: Run) -> bool:
    """Nothing runs while a call waits for its answer."""
    return world.waiting == 0 or after.runs == world.runs


def runs_as_approved(world: Run, after: Run, arguments: int) -> bool:
    """A gated tool runs only with the arguments that a person has seen."""
    return after.runs == world.runs or arguments == world.seen


def runs_once(world: Run, after: Run) -> bool:
    """One approval lets a gated tool run once."""
    return after.runs == world.runs or world.runs == 0


def runs(world: Run) -> bool:
    """An approved tool runs."""
    return world.runs > 0


APPROVAL = Specification(
    name="published approval",
    whose=PUBLISHED,
    promise="A gated tool runs only for what a person has approved.",
    limits=Nothing,
    world=Run,
    start=start,
    actions=(calls, approves, denies),
    invariants=(Invariant("approval", nothing_runs_unapproved),),
    laws=(
        Law("approval", a_pause_is_a_pause),
        Law("approval", runs_as_approved, (calls,)),
        Law("approval", runs_once, (calls,)),
    ),
    goals=(Goal("approval", runs),),
    max_depth=5,
    callers=1,
)

SPECIFICATIONS = (APPROVAL,)
