"""What the circuit breaker lets through, and which reports it believes (G4)."""

from __future__ import annotations

from failstop.runtime.cores import breaker


def an_open_breaker_denies_until_it_has_cooled_down(state: breaker.State, settings: breaker.Settings, now: int) -> bool:
    """A denial changes nothing and hands out no permit.

    pre: state[0] == breaker.OPEN
    pre: now < state[3]
    post: _
    """
    return breaker.admit(state, settings, now) == (state, breaker.COOLING, breaker.NO_PERMIT)


def a_cooled_breaker_lets_one_probe_through(state: breaker.State, settings: breaker.Settings, now: int) -> bool:
    """No mode is a trap, and until the probe's lease ends nobody else gets in.

    pre: state[0] in (breaker.OPEN, breaker.PROBING)
    pre: state[3] <= now
    pre: settings[2] > 0
    post: _
    """
    after, verdict, permit = breaker.admit(state, settings, now)
    last = now + settings[2] - 1
    return (
        verdict == breaker.PROBE
        and permit == state[1] + 1
        and breaker.admit(after, settings, last) == (after, breaker.PROBE_OUT, breaker.NO_PERMIT)
        and breaker.admit(after, settings, last + 1)[1] == breaker.PROBE
    )


def a_closed_breaker_admits_everyone(state: breaker.State, settings: breaker.Settings, now: int) -> bool:
    """With the permit of its generation.

    pre: state[0] == breaker.CLOSED
    post: _
    """
    return breaker.admit(state, settings, now) == (state, breaker.ADMITTED, state[1])


def a_stale_report_changes_nothing(
    state: breaker.State, settings: breaker.Settings, permit: int, outcome: int, now: int
) -> bool:
    """The permit of another generation is worth nothing, whatever it reports.

    pre: permit != state[1]
    post: _
    """
    return breaker.report(state, settings, permit, outcome, now) == state


def an_open_breaker_believes_no_report(
    state: breaker.State, settings: breaker.Settings, permit: int, outcome: int, now: int
) -> bool:
    """A late failure does not make the cooldown longer, and a late success does not end it.

    pre: state[0] == breaker.OPEN
    post: _
    """
    return breaker.report(state, settings, permit, outcome, now) == state


def only_the_probes_success_closes(
    state: breaker.State, settings: breaker.Settings, permit: int, outcome: int, now: int
) -> bool:
    """Closed is reached from elsewhere by the current probe alone.

    pre: state[0] in (breaker.OPEN, breaker.PROBING)
    post: _
    """
    closed = breaker.report(state, settings, permit, outcome, now)[0] == breaker.CLOSED
    return closed == (state[0] == breaker.PROBING and permit == state[1] and outcome == breaker.SUCCESS)


def a_failed_probe_opens_for_the_whole_recovery(state: breaker.State, settings: breaker.Settings, now: int) -> bool:
    """And its permit is stale from then on.

    pre: state[0] == breaker.PROBING
    post: _
    """
    after = breaker.report(state, settings, state[1], breaker.FAILURE, now)
    return after == (breaker.OPEN, state[1] + 1, 0, now + settings[1])


def the_threshold_opens(state: breaker.State, settings: breaker.Settings, now: int) -> bool:
    """Not one failure sooner and not one later; a success starts the count again.

    pre: state[0] == breaker.CLOSED
    pre: state[2] < settings[0]
    post: _
    """
    failed = breaker.report(state, settings, state[1], breaker.FAILURE, now)
    opened = failed == (breaker.OPEN, state[1] + 1, 0, now + settings[1])
    counted = failed == (breaker.CLOSED, state[1], state[2] + 1, state[3])
    return (opened if state[2] + 1 == settings[0] else counted) and (
        breaker.report(state, settings, state[1], breaker.SUCCESS, now)[2] == 0
    )


def a_change_of_mode_begins_a_generation(
    state: breaker.State, settings: breaker.Settings, permit: int, outcome: int, now: int
) -> bool:
    """So that no permit from before it counts after it.

    pre: breaker.CLOSED <= state[0] <= breaker.PROBING
    post: _
    """
    admitted = breaker.admit(state, settings, now)[0]
    reported = breaker.report(state, settings, permit, outcome, now)
    return all(after[0] == state[0] or after[1] == state[1] + 1 for after in (admitted, reported))


def a_reset_makes_every_permit_stale(
    state: breaker.State, settings: breaker.Settings, permit: int, outcome: int, now: int
) -> bool:
    """Those that were handed out are of this generation or an earlier one.

    pre: permit <= state[1]
    post: _
    """
    closed = breaker.reset(state)
    return closed[0] == breaker.CLOSED and breaker.report(closed, settings, permit, outcome, now) == closed
