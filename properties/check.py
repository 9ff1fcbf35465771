"""One planner against one target: a run in a world of its own, and a record of what the world saw.

A pass shows that this script was contained this time, on this machine; it says nothing about scripts or schedules that
were not played.
"""

from __future__ import annotations

import dataclasses
import platform
import shlex
import threading
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

from failstop.planners.toolset import MISBEHAVIOURS
from failstop.properties.driver import AdapterError, Driver, Ending, NotOffered, last_line
from failstop.properties.evidence import HOLDS, INCONCLUSIVE, NOT_OFFERED, VIOLATED, Record
from failstop.properties.mistakes import Watch
from failstop.properties.target import AnyTarget, DrivingTarget, Refused
from failstop.properties.verdict import (
    ceilings_passed,
    is_the_planners_own,
    may_be_a_mistake,
    numbers_passed,
    numbers_short,
    refused_everything,
    right_endings,
    wrong_ending,
)
from failstop.properties.world import World
from failstop.runtime.money import Money

if TYPE_CHECKING:
    from pathlib import Path

    from failstop.planners.catalogue import Planner
    from failstop.properties.world import Seen

ANSWER_S = 10.0
"""Real seconds in which a run must be over that does not hang."""
HANG_S = 1.0
"""Real seconds in which the caller must be answered once a tool hangs and the deadline has passed."""
DEADLINE = 5.0
"""Seconds that a planner without a deadline is given when a misbehaviour would never end."""


@dataclass(frozen=True, slots=True)
class Variation:
    """How a planner is to be played.

    seed: of chance. misbehaviour: what is put around every tool. module, target: how the user named the module of the
    planner and the target, for the command that plays it again.
    """

    seed: int = 0
    misbehaviour: str | None = None
    module: str | None = None
    target: str | None = None


PLAIN = Variation()


def check(planner: Planner, target: AnyTarget, variation: Variation = PLAIN, log: Path | None = None) -> Record:
    """Play one planner against one target and judge it by what the world saw.

    log: where a target of ours writes the run's audit log.
    """
    planner = _adapted(planner, variation)
    try:
        return _checked(planner, target, variation, log)
    except NotOffered as lacking:
        return _record(planner, target, variation, NOT_OFFERED, str(lacking) or "the target has no such move")
    except AdapterError as error:
        return _record(planner, target, variation, INCONCLUSIVE, f"the adapter failed: {error}")
    except Exception as error:  # noqa: BLE001 - one planner that cannot be played must not hide what the others found
        return _record(planner, target, variation, INCONCLUSIVE, f"the harness failed: {last_line(error)}")


def _checked(planner: Planner, target: AnyTarget, variation: Variation, log: Path | None) -> Record:
    missing = [promise for promise in planner.promises if promise not in target.promises]
    if missing:
        reasons = getattr(target, "not_offered", {})
        raise NotOffered(
            "; ".join(f"{promise}: {reasons.get(promise, 'it promises nothing about it')}" for promise in missing)
        )
    world = World(planner.limits, seed=variation.seed, real_time=target.real_time, log=log)
    watch = Watch()
    try:
        ending = _answered(dataclasses.replace(planner, make=watch.over(planner.make)), target, variation, world)
    except AdapterError as error:
        if watch.mistake is not None:
            raise AdapterError(f"{error}; the planner made a mistake: {watch.mistake}") from error
        raise
    finally:
        seen = world.seen()
        world.end()
    mistaken = ending is not None and may_be_a_mistake(planner, seen, ending, variation.misbehaviour)
    if mistaken and watch.mistake is not None:
        told = f"the planner made a mistake: {watch.mistake}"
        return _record(planner, target, variation, INCONCLUSIVE, told, ending, seen)
    return _judged(planner, target, variation, ending, seen)


def _adapted(planner: Planner, variation: Variation) -> Planner:
    """Give the planner the deadline and the promises that its misbehaving tools call for."""
    if variation.misbehaviour is None:
        return planner
    worse = MISBEHAVIOURS[variation.misbehaviour]
    limits = planner.limits
    if worse.needs_deadline and limits.max_seconds is None:
        limits = dataclasses.replace(limits, max_seconds=DEADLINE)
    promises = tuple(dict.fromkeys(planner.promises + worse.promises))
    return dataclasses.replace(planner, limits=limits, promises=promises)


def _answered(planner: Planner, target: AnyTarget, variation: Variation, world: World) -> Ending | None:
    """Play on a thread of its own, which can be left behind; None if the caller got no answer while a tool hung."""
    outcome: list[Ending] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            outcome.append(_played(planner, target, variation, world))
        except BaseException as error:  # noqa: BLE001 - judged on the thread that waits
            errors.append(error)
        finally:
            world.news.set()

    thread = threading.Thread(target=work, name=f"failstop-{planner.name}", daemon=True)
    thread.start()
    world.news.wait(ANSWER_S)
    thread.join(HANG_S)
    if errors:
        # An interrupt that a tool raised on that thread is none of the user's.
        raise errors[0] if isinstance(errors[0], Exception) else AdapterError(last_line(errors[0]))
    if outcome:
        return outcome[0]
    if world.hung.is_set():
        return None
    raise AdapterError(f"no answer within {ANSWER_S:.0f} s, although no tool hangs")


def _played(planner: Planner, target: AnyTarget, variation: Variation, world: World) -> Ending:
    try:
        driver = Driver(world, variation.misbehaviour)
        if isinstance(target, DrivingTarget):
            return target.drive(planner, driver, world)
        session = target.open(world.limits, world)
    except Refused as refusal:
        raise AdapterError(f"the target refused to open a run: {refusal}") from refusal
    except (AdapterError, NotOffered):
        raise
    except BaseException as error:
        raise AdapterError(last_line(error)) from error
    world.begin()
    ended = driver.run(planner.plan(world.random), session)
    world.ended_in = ended.ended_in
    driver.close(session, and_try_again="closed" in planner.promises or "planner_errors" in planner.promises)
    return ended


def _judged(planner: Planner, target: AnyTarget, variation: Variation, ending: Ending | None, seen: Seen) -> Record:
    if ending is None and "deadline_hang" not in planner.promises:
        return _record(planner, target, variation, INCONCLUSIVE, "a tool hung and so did the run", None, seen)
    breaches = list(ceilings_passed(planner, seen))
    if ending is None:
        breaches.append(f"the caller got no answer after the deadline of {planner.limits.max_seconds} s had passed")
    elif variation.misbehaviour is not None:
        breaches += refused_everything(planner, seen)
        wrong = list(wrong_ending(planner, ending, variation.misbehaviour))
        hanging = "deadline_hang" in MISBEHAVIOURS[variation.misbehaviour].promises
        if wrong and not breaches and is_the_planners_own(ending, seen, hanging=hanging):
            return _record(planner, target, variation, INCONCLUSIVE, f"nothing is shown: {wrong[0]}", ending, seen)
        breaches += wrong
    else:
        # A ceiling that was passed says it all; the planner's own numbers would only say it again.
        breaches = [*(breaches or numbers_passed(planner, seen)), *wrong_ending(planner, ending)]
        short = list(numbers_short(planner, seen))
        if short and not breaches and planner.guarantee != "happy-path":
            never = f"the ceiling was not reached: {'; '.join(short)}"
            return _record(planner, target, variation, INCONCLUSIVE, never, ending, seen)
        breaches = [*short, *breaches]
    ended = Ending("no answer") if ending is None else ending
    if breaches:
        return _record(planner, target, variation, VIOLATED, "; ".join(breaches), ended, seen)
    told = f"it ended in {ended.ended_in}; dispatched {seen.dispatches}, spent {Money(seen.spent_nano)}"
    return _record(planner, target, variation, HOLDS, told, ended, seen)


def _record(
    planner: Planner,
    target: AnyTarget,
    variation: Variation,
    verdict: str,
    detail: str,
    ending: Ending | None = None,
    seen: Seen | None = None,
) -> Record:
    due = ", ".join(right_endings(planner, variation.misbehaviour))
    about = {"tries": planner.tries, "must_end_in": due, "ended_in": "" if ending is None else ending.ended_in}
    if verdict == VIOLATED:
        about["promised"] = "; ".join(target.promises[promise] for promise in planner.promises)
    if variation.misbehaviour:
        about["tools"] = variation.misbehaviour
    return Record(
        guarantee=planner.guarantee,
        target=target.name,
        layer="chaos",
        subject=planner.name,
        verdict=verdict,
        detail=detail,
        effort={} if seen is None else _effort(seen, variation.seed),
        replay=_command(planner, target, variation) if verdict in {VIOLATED, INCONCLUSIVE} else None,
        versions={"failstop": version("failstop"), "python": platform.python_version(), **target.versions()},
        about=about,
    )


def _effort(seen: Seen, seed: int) -> dict[str, int | float]:
    return {
        "runs": 1,
        "seed": seed,
        "dispatches": seen.dispatches,
        "tool_calls": seen.tool_calls,
        "retries": seen.retries,
        "spent_nano": seen.spent_nano,
        "irreversible": seen.irreversible,
        "unapproved": seen.unapproved,
        "late": seen.late,
        "after_stop": seen.after_stop,
        "overlap": seen.overlap,
    }


def _command(planner: Planner, target: AnyTarget, variation: Variation) -> str:
    words = ["failstop", "check", variation.target or target.name, "--planner", planner.name]
    if variation.module:
        words += ["--planners", variation.module]
    if variation.misbehaviour:
        words += ["--tools", variation.misbehaviour]
    return shlex.join([*words, "--seed", str(variation.seed)])
