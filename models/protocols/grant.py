"""An approval: one grant, a clock, a person who may answer more than once, and any number of attempts to use it.

What has to be trusted, and is tested elsewhere: that the shell makes each step atomic and reads the clock inside it,
that the clock never steps back, and that two calls of one digest are one and the same call. `said` is what a person
said first and in time, `spoiled` that an approved grant met another call; both are kept beside the core, not by it.
"""

from __future__ import annotations

from typing import NamedTuple

from failstop.models.claim import OURS
from failstop.models.specification import Goal, Invariant, Law, Specification
from failstop.runtime.cores import grant as core

NEW = 0
DISPATCHED = 1
REFUSED = 2

VERDICTS = ("granted", "pending", "approved", "denied", "used", "expired", "drifted")
ANSWERS = ("nothing", "yes", "no")
"""The words for the codes of the core."""


class Limits(NamedTuple):
    """When the grant expires; a negative time is never."""

    expires: int


class Approval(NamedTuple):
    """The core's state, and beside it the world: the time, what was said first, and what the asker was told last."""

    state: int
    expires: int
    now: int
    said: int
    spoiled: bool
    told: int


class Attempt(NamedTuple):
    """One try to dispatch a call on the grant; `same`: it is the very call that a person was shown."""

    phase: int
    verdict: int
    same: bool
    at: int


class Totals(NamedTuple):
    """Sums over all attempts."""

    dispatched: int


def start(limits: Limits) -> Approval:
    """A person is asked."""
    state = core.requested(limits.expires)
    return Approval(state[0], state[1], 0, core.NO_ANSWER, False, core.GRANTED)


def answer(world: Approval, exact: int, standing: int) -> Approval | None:
    """A person answers, for this very call, for its tool as a whole, or both."""
    if exact < core.NO_ANSWER or exact > core.NO or standing < core.NO_ANSWER or standing > core.NO:
        return None
    ruling = core.ruling(exact, standing)
    if ruling == core.NO_ANSWER:
        return world
    state, verdict = core.answer(grant(world), ruling == core.YES, world.now)
    counts = world.said == core.NO_ANSWER and not is_late(world)
    said = what_is_said(exact, standing) if counts else world.said
    return with_grant(world, state)._replace(said=said, told=verdict)


def look(world: Approval) -> Approval:
    """Somebody looks whether the grant is still alive."""
    state, verdict = core.expire(grant(world), world.now)
    return with_grant(world, state)._replace(told=verdict)


def tick(world: Approval, now: int) -> Approval | None:
    """Time passes."""
    if now < world.now:
        return None
    return world._replace(now=now)


def attempt(world: Approval, call: Attempt, same: bool) -> tuple[Approval, Attempt] | None:
    """A call tries to be dispatched on the grant."""
    if call.phase != NEW:
        return None
    state, verdict = core.use(grant(world), same, world.now)
    spoils = world.state == core.APPROVED and not is_late(world) and not same
    after = with_grant(world, state)._replace(spoiled=world.spoiled or spoils)
    return after, Attempt(DISPATCHED if verdict == core.GRANTED else REFUSED, verdict, same, world.now)


def dispatched(call: Attempt) -> int:
    """One for a call that was dispatched."""
    return 1 if call.phase == DISPATCHED else 0


def well_formed(world: Approval) -> bool:
    """A grant is in one of its five states, keeps the expiry that it was asked for, and what was said is yes or no."""
    known = core.PENDING <= world.state <= core.EXPIRED and core.NO_ANSWER <= world.said <= core.NO
    return known and world.now >= 0


def keeps_its_expiry(limits: Limits, world: Approval) -> bool:
    """A grant expires when it was asked to, whatever happens."""
    return world.expires == limits.expires


def used_once(total: Totals) -> bool:
    """One approval dispatches one call at most, however many try at once."""
    return total.dispatched <= 1


def used_is_dispatched(world: Approval, total: Totals) -> bool:
    """A grant is used up if, and only if, a call was dispatched on it."""
    return (total.dispatched == 1) == (world.state == core.USED)


def only_after_a_yes(world: Approval, call: Attempt) -> bool:
    """Nothing is dispatched unless a person's first answer was yes."""
    return call.phase != DISPATCHED or world.said == core.YES


def only_what_was_approved(call: Attempt) -> bool:
    """Nothing is dispatched but the very call that a person was shown."""
    return call.phase != DISPATCHED or call.same


def only_in_time(limits: Limits, call: Attempt) -> bool:
    """Nothing is dispatched when the grant has expired."""
    return call.phase != DISPATCHED or limits.expires < 0 or call.at < limits.expires


def states_mean_what_was_said(world: Approval) -> bool:
    """A grant waits until an answer, is approved by a yes, and is denied by a no or by another call than approved."""
    if world.state == core.PENDING:
        return world.said == core.NO_ANSWER and not world.spoiled
    if world.state == core.APPROVED or world.state == core.USED:
        return world.said == core.YES and not world.spoiled
    if world.state == core.DENIED:
        return world.said == core.NO or (world.said == core.YES and world.spoiled)
    return not world.spoiled


def expired_is_late(world: Approval) -> bool:
    """No grant expires before its time."""
    return world.state != core.EXPIRED or is_late(world)


def the_dead_stay_dead(world: Approval, after: Approval) -> bool:
    """A grant that was denied, used or has expired never lives again."""
    return is_alive(world) or after.state == world.state


def the_first_answer_wins(world: Approval, after: Approval) -> bool:
    """Only the first answer counts; a later one changes nothing and is told what the grant has come to."""
    if world.said == core.NO_ANSWER:
        return True
    return after == world._replace(told=after.told)


def taken_whenever_possible(world: Approval, after: Approval, exact: int, standing: int) -> bool:
    """An answer is taken if, and only if, the grant still waits for one and has not expired."""
    said = what_is_said(exact, standing)
    if said == core.NO_ANSWER:
        return after == world
    if world.state != core.PENDING:
        return after == world._replace(told=world.state)
    if is_late(world):
        return after == world._replace(state=core.EXPIRED, told=core.EXPIRED)
    outcome = core.APPROVED if said == core.YES else core.DENIED
    return after == world._replace(state=outcome, said=said, told=core.GRANTED)


def the_exact_answer_wins(world: Approval, after: Approval, exact: int, standing: int) -> bool:
    """A yes to the very call beats a standing no, and a no to it a standing yes; a standing one counts alone."""
    if world.state != core.PENDING or is_late(world):
        return True
    if exact == core.YES or (exact == core.NO_ANSWER and standing == core.YES):
        return after.state == core.APPROVED
    if exact == core.NO or standing == core.NO:
        return after.state == core.DENIED
    return after.state == core.PENDING


def a_look_only_lets_time_pass(world: Approval, after: Approval) -> bool:
    """A look ends a living grant if, and only if, it is late; else it changes nothing, and it says which."""
    if not is_alive(world):
        return after == world._replace(told=world.state)
    if is_late(world):
        return after == world._replace(state=core.EXPIRED, told=core.EXPIRED)
    return after == world._replace(told=core.GRANTED)


def dispatched_whenever_possible(world: Approval, total: Totals, call_after: Attempt, same: bool) -> bool:
    """A call is dispatched if, and only if, a yes to it came first, is unspoiled, unused and not expired."""
    approved = world.said == core.YES and not world.spoiled and total.dispatched == 0
    in_time = world.state != core.EXPIRED and not is_late(world)
    return (call_after.phase == DISPATCHED) == (approved and in_time and same)


def refused_for_what_is_so(world: Approval, after: Approval, call_after: Attempt, same: bool) -> bool:
    """A refusal says the truth: nobody answered, a no, used, late, or another call, which alone spoils the grant."""
    verdict = call_after.verdict
    if call_after.phase == DISPATCHED:
        return verdict == core.GRANTED and after == world._replace(state=core.USED)
    if world.state != core.APPROVED:
        return verdict == world.state and after == world
    if is_late(world):
        return verdict == core.EXPIRED and after == world._replace(state=core.EXPIRED)
    return verdict == core.DRIFTED and not same and after == world._replace(state=core.DENIED, spoiled=True)


def one_is_dispatched_and_others_are_not(total: Totals, call: Attempt) -> bool:
    """One attempt is dispatched, and another comes too late because the grant is used."""
    return total.dispatched == 1 and call.verdict == core.USED


def nobody_has_answered(call: Attempt) -> bool:
    """An attempt is refused because nobody has answered."""
    return call.verdict == core.PENDING


def a_person_said_no(world: Approval, call: Attempt) -> bool:
    """An attempt is refused because a person said no."""
    return call.verdict == core.DENIED and world.said == core.NO


def the_answer_came_to_nothing(world: Approval, call: Attempt) -> bool:
    """A yes expires before the call comes."""
    return call.verdict == core.EXPIRED and world.said == core.YES


def the_call_drifted(call: Attempt) -> bool:
    """An attempt is refused because it is not the call that was approved."""
    return call.verdict == core.DRIFTED


def the_right_call_comes_after_a_wrong_one(call: Attempt, other: Attempt) -> bool:
    """A drifted call spoils the grant for the right one too."""
    return call.verdict == core.DRIFTED and other.same and other.verdict == core.DENIED


def used_just_before_it_expires(limits: Limits, total: Totals, call: Attempt) -> bool:
    """A call is dispatched in the last moment before the grant expires."""
    return total.dispatched == 1 and call.phase == DISPATCHED and call.at == limits.expires - 1


def grant(world: Approval) -> core.Grant:
    """The core's part of the state."""
    return (world.state, world.expires)


def with_grant(world: Approval, state: core.Grant) -> Approval:
    """The same world with another state of the core."""
    return world._replace(state=state[0], expires=state[1])


def what_is_said(exact: int, standing: int) -> int:
    """What a person means by an answer to the very call and a standing one."""
    return standing if exact == core.NO_ANSWER else exact


def is_alive(world: Approval) -> bool:
    """Whether a grant may still come to a dispatch."""
    return world.state == core.PENDING or world.state == core.APPROVED


def is_late(world: Approval) -> bool:
    """Whether the clock reads the expiry or later."""
    return 0 <= world.expires <= world.now


GRANT = Specification(
    name="grant",
    whose=OURS,
    promise="A yes lets the very call that it was given for happen once, in time, and no other call ever.",
    limits=Limits,
    world=Approval,
    start=start,
    call=Attempt,
    new=Attempt(NEW, 0, False, 0),
    actions=(answer, look, tick, attempt),
    totals=Totals,
    terms=(dispatched,),
    ghosts=(
        "said",
        "spoiled",
        "told",
        "same",
        "at",
    ),
    trusted=(
        "each step is atomic, and reads the clock inside it",
        "the clock never steps back",
        "two calls of one digest are the same call",
    ),
    invariants=(
        Invariant("approval", well_formed),
        Invariant("approval", keeps_its_expiry),
        Invariant("approval", used_once),
        Invariant("approval", used_is_dispatched),
        Invariant("approval", only_after_a_yes),
        Invariant("approval", only_what_was_approved),
        Invariant("approval", only_in_time),
        Invariant("approval", states_mean_what_was_said),
        Invariant("approval", expired_is_late),
    ),
    laws=(
        Law("approval", the_dead_stay_dead),
        Law("approval", the_first_answer_wins, (answer,)),
        Law("approval", taken_whenever_possible, (answer,)),
        Law("approval", the_exact_answer_wins, (answer,)),
        Law("approval", a_look_only_lets_time_pass, (look,)),
        Law("approval", dispatched_whenever_possible, (attempt,)),
        Law("approval", refused_for_what_is_so, (attempt,)),
    ),
    goals=(
        Goal("approval", one_is_dispatched_and_others_are_not),
        Goal("approval", nobody_has_answered),
        Goal("approval", a_person_said_no),
        Goal("approval", the_answer_came_to_nothing),
        Goal("approval", the_call_drifted),
        Goal("approval", the_right_call_comes_after_a_wrong_one),
        Goal("approval", used_just_before_it_expires),
    ),
    words={
        "phase": ("new", "dispatched", "refused"),
        **dict.fromkeys(("state", "verdict", "told"), VERDICTS),
        **dict.fromkeys(("said", "exact", "standing"), ANSWERS),
    },
    outcomes={
        "state": (core.PENDING, core.APPROVED, core.DENIED, core.USED, core.EXPIRED),
        "told": (core.GRANTED, core.APPROVED, core.DENIED, core.USED, core.EXPIRED),
        "verdict": (core.GRANTED, core.PENDING, core.DENIED, core.USED, core.EXPIRED, core.DRIFTED),
        **dict.fromkeys(("said", "exact", "standing"), (core.NO_ANSWER, core.YES, core.NO)),
    },
)
