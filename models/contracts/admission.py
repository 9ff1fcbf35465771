"""What the ledger, the budget, the quota and the step counter admit, and what an ending call leaves behind (G1, G2)."""

from __future__ import annotations

from failstop.runtime.cores import budget, ledger, quota, steps


def an_admission_keeps_the_cost_ceiling(
    state: ledger.State, bounds: ledger.Bounds, asked: int, tool: bool, retry: bool, now: int
) -> bool:
    """Committed and reserved stay within the ceiling, whatever is asked, the price that is unknown included.

    pre: state[0] >= 0 and state[1] >= 0
    pre: 0 <= state[0] + state[1] <= bounds[0]
    post: _
    """
    after, _ = ledger.admit(state, bounds, asked, tool, retry, now)
    return after[0] == state[0] and state[1] <= after[1] and after[0] + after[1] <= bounds[0]


def an_admission_keeps_every_count(
    state: ledger.State, bounds: ledger.Bounds, asked: int, tool: bool, retry: bool, now: int
) -> bool:
    """Steps, tool calls and retries never pass their ceilings.

    pre: 0 <= state[2] <= bounds[1]
    pre: 0 <= state[3] <= bounds[2]
    pre: 0 <= state[4] <= bounds[3]
    post: _
    """
    after, _ = ledger.admit(state, bounds, asked, tool, retry, now)
    return after[2] <= bounds[1] and after[3] <= bounds[2] and after[4] <= bounds[3]


def an_admission_is_counted(
    state: ledger.State, bounds: ledger.Bounds, asked: int, tool: bool, retry: bool, now: int
) -> bool:
    """One step, one tool call if it is one, one retry if it is one, and what was asked for is held.

    pre: asked >= 0
    post: _
    """
    after, verdict = ledger.admit(state, bounds, asked, tool, retry, now)
    committed, reserved, taken, tool_calls, retries, halt = state
    counted = (committed, reserved + asked, taken + 1, tool_calls + tool, retries + retry, halt)
    return verdict != ledger.ADMITTED or after == counted


def a_halted_chain_admits_nothing(
    state: ledger.State, bounds: ledger.Bounds, asked: int, tool: bool, retry: bool, now: int
) -> bool:
    """It answers with the reason of its halt and is unchanged.

    pre: state[5] != ledger.ADMITTED
    post: _
    """
    return ledger.admit(state, bounds, asked, tool, retry, now) == (state, state[5])


def nothing_is_admitted_from_the_deadline_on(
    state: ledger.State, bounds: ledger.Bounds, asked: int, tool: bool, retry: bool, now: int
) -> bool:
    """The deadline itself is too late already.

    pre: 0 <= bounds[4] <= now
    post: _
    """
    after, verdict = ledger.admit(state, bounds, asked, tool, retry, now)
    return verdict == after[5] == ledger.standing(state, bounds, now) != ledger.ADMITTED


def a_refusal_halts_and_contention_changes_nothing(
    state: ledger.State, bounds: ledger.Bounds, asked: int, tool: bool, retry: bool, now: int
) -> bool:
    """The chain is over for the reason that was answered; only contention is for now.

    post: _
    """
    after, verdict = ledger.admit(state, bounds, asked, tool, retry, now)
    if verdict == ledger.ADMITTED:
        return after[5] == ledger.ADMITTED
    return after == state if verdict == ledger.CONTENDED else after == (*state[:5], verdict)


def what_fits_is_admitted(
    state: ledger.State, bounds: ledger.Bounds, asked: int, tool: bool, retry: bool, now: int
) -> bool:
    """A chain that is not over and has room under each ceiling refuses nobody.

    pre: state[5] == ledger.ADMITTED and asked >= 0
    pre: bounds[0] < 0 or state[0] + state[1] + asked <= bounds[0]
    pre: bounds[1] < 0 or state[2] < bounds[1]
    pre: bounds[2] < 0 or state[3] < bounds[2]
    pre: bounds[3] < 0 or state[4] < bounds[3]
    pre: bounds[4] < 0 or now < bounds[4]
    post: _
    """
    return ledger.admit(state, bounds, asked, tool, retry, now)[1] == ledger.ADMITTED


def only_what_can_never_fit_is_refused_for_good(state: ledger.State, max_cost: int, asked: int) -> bool:
    """What would fit if all calls in flight cost nothing may come again.

    pre: state[5] == ledger.ADMITTED and state[1] >= 0
    pre: asked >= 0 and max_cost >= 0
    post: _
    """
    verdict = ledger.admit(state, (max_cost, -1, -1, -1, -1), asked, False, False, 0)[1]
    return (verdict == ledger.COST) == (state[0] + asked > max_cost)


def an_unknown_price_runs_alone(state: ledger.State, max_cost: int) -> bool:
    """Under a ceiling it holds all that is left, and is admitted if that is something and nothing else is held.

    pre: state[5] == ledger.ADMITTED
    pre: max_cost >= 0 and state[1] >= 0
    post: _
    """
    after, verdict = ledger.admit(state, (max_cost, -1, -1, -1, -1), ledger.NO_ESTIMATE, False, False, 0)
    admitted = verdict == ledger.ADMITTED
    holds_all = after[1] > 0 and after[0] + after[1] == max_cost
    return admitted == (state[1] == 0 and state[0] < max_cost) and (holds_all or not admitted)


def a_cost_is_charged_in_full(state: ledger.State, bounds: ledger.Bounds, held: int, cost: int) -> bool:
    """Also by a chain that is over, and also above what was held: that stops a chain with a cost ceiling.

    post: _
    """
    after = ledger.settle(state, bounds, held, cost)
    charged = after[:5] == (state[0] + cost, state[1] - held, state[2], state[3], state[4])
    return charged and (cost <= held or bounds[0] < 0 or after[5] != ledger.ADMITTED)


def a_cost_within_its_hold_stops_nothing(state: ledger.State, bounds: ledger.Bounds, held: int, cost: int) -> bool:
    """And leaves committed and reserved within the ceiling that they were within.

    pre: 0 <= cost <= held <= state[1]
    post: _
    """
    after = ledger.settle(state, bounds, held, cost)
    return after[5] == state[5] and after[0] + after[1] <= state[0] + state[1]


def a_charge_above_the_ceiling_stops_the_chain(state: ledger.State, bounds: ledger.Bounds, cost: int) -> bool:
    """It is recorded in full, and one that stays within the ceiling stops nothing.

    pre: state[5] == ledger.ADMITTED
    post: _
    """
    after = ledger.charge(state, bounds, cost)
    within = bounds[0] < 0 or after[0] + after[1] <= bounds[0]
    return after == (state[0] + cost, *state[1:5], ledger.ADMITTED if within else ledger.OVERRUN)


def the_first_reason_stays(state: ledger.State, bounds: ledger.Bounds, held: int, cost: int, code: int) -> bool:
    """Nothing that ends later changes the reason of a halt.

    pre: state[5] != ledger.ADMITTED
    post: _
    """
    settled = ledger.settle(state, bounds, held, cost)
    charged = ledger.charge(state, bounds, cost)
    released = ledger.release(state, held, tool=True, retry=True)
    return settled[5] == charged[5] == released[5] == state[5] and ledger.stop(state, code) == state


def a_release_undoes_an_admission(
    state: ledger.State, bounds: ledger.Bounds, asked: int, tool: bool, retry: bool, now: int
) -> bool:
    """The chain is as it was before the call that never began.

    post: _
    """
    after, verdict = ledger.admit(state, bounds, asked, tool, retry, now)
    return verdict != ledger.ADMITTED or ledger.release(after, after[1] - state[1], tool, retry) == state


def what_is_left_is_what_fits(state: ledger.State, max_cost: int, asked: int) -> bool:
    """A chain without other ceilings admits exactly what it says is left.

    pre: state[5] == ledger.ADMITTED and asked >= 0
    pre: 0 <= state[0] + state[1] <= max_cost
    post: _
    """
    bounds = (max_cost, -1, -1, -1, -1)
    admitted = ledger.admit(state, bounds, asked, False, False, 0)[1] == ledger.ADMITTED
    return admitted == (asked <= ledger.left(state, bounds))


def the_narrowest_ceiling_of_a_path_counts(above: int, rest: int, asked: int) -> bool:
    """What fits into the lesser of two rests fits into both; no ceiling is no rest.

    pre: above >= ledger.NO_CEILING and rest >= ledger.NO_CEILING and asked >= 0
    post: _
    """
    both = ledger.narrower(above, rest)
    fits = (above < 0 or asked <= above) and (rest < 0 or asked <= rest)
    return (both < 0 or asked <= both) == fits


def one_refusal_of_a_path_is_a_refusal(above: int, verdict: int) -> bool:
    """A call is admitted if every ledger admits it, waits if none stops it, and is told the highest stop.

    pre: ledger.ADMITTED <= above <= ledger.CONTENDED and ledger.ADMITTED <= verdict <= ledger.CONTENDED
    post: _
    """
    both = ledger.joined(above, verdict)
    no_stops = (ledger.ADMITTED, ledger.CONTENDED)
    if above not in no_stops:
        return both == above
    if verdict not in no_stops:
        return both == verdict
    return both == max(above, verdict)


def a_closed_context_admits_nothing(verdict: int, closed: bool) -> bool:
    """A stop of its ledgers is told all the same, and an open context changes no verdict.

    post: _
    """
    told = ledger.unless_closed(verdict, closed)
    if closed and verdict in (ledger.ADMITTED, ledger.CONTENDED):
        return told == ledger.CLOSED
    return told == verdict


def a_budget_keeps_its_limit(state: budget.State, limit: int, amount: int) -> bool:
    """Whether spent at once or held first; a hold without an estimate included.

    pre: state[0] >= 0 and state[1] >= 0 and state[0] + state[1] <= limit
    post: _
    """
    spent = budget.spend(state, limit, amount)
    held, _, grew = budget.hold(state, limit, amount)
    return spent[0] + spent[1] <= limit and held[0] + held[1] <= limit and held[1] == state[1] + grew


def a_shut_budget_admits_nothing(state: budget.State, limit: int, amount: int) -> bool:
    """Not even a smaller amount than the one that was refused.

    pre: state[3]
    post: _
    """
    refused = (state, budget.REFUSED, 0)
    return budget.spend(state, limit, amount) == state and budget.hold(state, limit, amount) == refused


def a_refused_budget_is_shut(state: budget.State, limit: int, amount: int) -> bool:
    """A refusal stays; contention changes nothing.

    post: _
    """
    after, verdict, held = budget.hold(state, limit, amount)
    if verdict == budget.ADMITTED:
        return not after[3]
    return held == 0 and (after == state if verdict == budget.CONTENDED else after == (*state[:3], True))


def a_budget_spends_what_fits(state: budget.State, limit: int, amount: int) -> bool:
    """In full and beside what is held; what does not fit is recorded nowhere and shuts it.

    pre: not state[3]
    post: _
    """
    spent, reserved, calls, _ = state
    fits = limit < 0 or spent + reserved + amount <= limit
    wanted = (spent + amount, reserved, calls + 1, False) if fits else (spent, reserved, calls, True)
    return budget.spend(state, limit, amount) == wanted


def a_budget_holds_what_fits(state: budget.State, limit: int, asked: int) -> bool:
    """What other holds alone keep out may come again; what can never fit shuts it.

    pre: not state[3]
    pre: asked >= 0 and state[1] >= 0
    post: _
    """
    spent, reserved, calls, _ = state
    if limit < 0 or spent + reserved + asked <= limit:
        wanted = (spent, reserved + asked, calls, False), budget.ADMITTED, asked
    elif spent + asked <= limit:
        wanted = state, budget.CONTENDED, 0
    else:
        wanted = (spent, reserved, calls, True), budget.REFUSED, 0
    return budget.hold(state, limit, asked) == wanted


def an_unknown_price_takes_what_is_left_of_a_budget(state: budget.State, limit: int) -> bool:
    """It waits for other holds, and is refused if nothing is left.

    pre: not state[3]
    pre: limit >= 0 and state[1] >= 0
    post: _
    """
    _, verdict, held = budget.hold(state, limit, budget.NO_ESTIMATE)
    if state[1] > 0:
        return (verdict, held) == (budget.CONTENDED, 0)
    left = limit - state[0]
    return (verdict, held) == ((budget.ADMITTED, left) if left > 0 else (budget.REFUSED, 0))


def a_hold_becomes_what_the_call_cost(state: budget.State, limit: int, held: int, cost: int) -> bool:
    """In full; a cost above it shuts a limited budget, and a call that never began costs nothing.

    post: _
    """
    spent, reserved, calls, shut = state
    settled = (spent + cost, reserved - held, calls + 1, shut or (cost > held and limit >= 0))
    released = (spent, reserved - held, calls, shut)
    return budget.settle(state, limit, held, cost) == settled and budget.release(state, held) == released


def a_started_run_fits_its_quota(state: quota.State, limits: quota.Limits, asked: int) -> bool:
    """Runs stay within the hour's and money within the day's; a refusal changes nothing.

    pre: state[3] >= 0 and state[4] >= 0
    post: _
    """
    after, verdict, held = quota.start(state, limits, asked)
    if verdict != quota.STARTED:
        return after == state and held == 0
    counted = after == (state[0], state[1] + 1, state[2], state[3], state[4] + held)
    return (
        counted
        and held >= 0
        and (limits[0] < 0 or after[1] <= limits[0])
        and (limits[1] < 0 or after[3] + after[4] <= limits[1])
    )


def a_run_that_fits_is_started(state: quota.State, limits: quota.Limits, asked: int) -> bool:
    """What runs in flight alone keep out may come again; with no money left, the day is over for it.

    pre: asked >= quota.NO_BOUND and state[4] >= 0
    pre: limits[0] < 0 or state[1] < limits[0]
    post: _
    """
    _, verdict, held = quota.start(state, limits, asked)
    spent, reserved, most = state[3], state[4], limits[1]
    least = 1 if asked < 0 else asked
    if most < 0:
        return verdict == quota.STARTED and held == max(asked, 0)
    if spent + reserved + least <= most:
        return verdict == quota.STARTED and held == (most - spent - reserved if asked < 0 else asked)
    return held == 0 and verdict == (quota.CONTENDED if spent + least <= most else quota.SPEND)


def a_start_after_which_nothing_ran_is_undone(state: quota.State, limits: quota.Limits, asked: int, hour: int) -> bool:
    """In the same hour and day it is as if nothing had been; a run of another hour is not given back.

    post: _
    """
    after, verdict, held = quota.start(state, limits, asked)
    if verdict != quota.STARTED:
        return True
    released = quota.release(after, hour, state[2], held)
    return released == (state if hour == state[0] else (state[0], state[1] + 1, *state[2:]))


def a_run_is_charged_in_full_to_its_day(state: quota.State, held: int, cost: int) -> bool:
    """In the place of what it held.

    post: _
    """
    hour, runs, day, spent, reserved = state
    return quota.settle(state, day, held, cost) == (hour, runs, day, spent + cost, reserved - held)


def windows_only_move_forward(state: quota.State, hour: int, day: int) -> bool:
    """A clock that steps back opens no fresh window.

    post: _
    """
    after = quota.roll(state, hour, day)
    runs_kept = after[:2] == state[:2] if hour <= state[0] else after[:2] == (hour, 0)
    money_kept = after[2:] == state[2:] if day <= state[2] else after[2:] == (day, 0, 0)
    return runs_kept and money_kept


def a_day_that_is_over_is_closed(state: quota.State, hour: int, day: int, held: int, cost: int) -> bool:
    """What ends after its day neither charges the next one nor frees money in it.

    pre: day != state[2]
    post: _
    """
    return quota.settle(state, day, held, cost) == state and quota.release(state, hour, day, held)[2:] == state[2:]


def steps_are_admitted_up_to_exactly_their_limit(taken: int, limit: int) -> bool:
    """The last step is admitted and the one after it is not; without a limit every one is.

    post: _
    """
    after, admitted = steps.step(taken, limit)
    return admitted == (limit < 0 or taken < limit) and after == taken + admitted


def a_step_is_given_back_once(taken: int) -> bool:
    """And never more of them than were taken.

    pre: taken >= 0
    post: _
    """
    return steps.give_back(taken) == max(taken - 1, 0)
