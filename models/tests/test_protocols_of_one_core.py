"""Approval, quota, steps, loops and retries: every claim is proved, and none survives a bug in its core."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from dataclasses import replace
from types import FunctionType

import pytest

from failstop.models.claim import OURS, PROVED, all_of
from failstop.models.induction import Proofs
from failstop.models.protocols import grant, quota, repeats, retry, steps

pytestmark = pytest.mark.once

SPECIFICATIONS = {
    grant: grant.GRANT,
    quota: quota.QUOTA,
    steps: steps.STEPS,
    repeats: repeats.REPEATS,
    retry: retry.RETRY,
}

GRANT_EXPIRY_IN_USE = """\
    if 0 <= expires_ns <= now_ns:
        return (EXPIRED, expires_ns), EXPIRED
    if not same:"""

# The protocol, a piece of its core, what stands there instead, and the promise that must fail.
BUGS = [
    (grant, "return (PENDING, expires_ns)", "return (APPROVED, expires_ns)", grant.states_mean_what_was_said),
    (grant, "return (PENDING, expires_ns)", "return (PENDING, -1)", grant.keeps_its_expiry),
    (grant, "if exact != NO_ANSWER:", "if exact == YES:", grant.the_exact_answer_wins),
    (grant, "if exact != NO_ANSWER:", "if standing == NO_ANSWER:", grant.the_exact_answer_wins),
    (grant, "    if phase != PENDING:\n        return state, phase\n", "", grant.the_first_answer_wins),
    (grant, "    if approved:\n", "    if expires_ns < 0 or approved:\n", grant.taken_whenever_possible),
    (grant, "if phase != PENDING and phase != APPROVED:", "if phase != PENDING:", grant.a_look_only_lets_time_pass),
    (grant, "    if phase != APPROVED:\n", "    if phase == DENIED:\n", grant.used_once),
    (grant, GRANT_EXPIRY_IN_USE, "    if not same:", grant.only_in_time),
    (grant, GRANT_EXPIRY_IN_USE, GRANT_EXPIRY_IN_USE.replace("<= now", "< now"), grant.only_in_time),
    (grant, GRANT_EXPIRY_IN_USE, GRANT_EXPIRY_IN_USE.replace("0 <=", "0 <"), grant.only_in_time),
    (grant, "return (DENIED, expires_ns), DRIFTED", "return state, DRIFTED", grant.refused_for_what_is_so),
    (grant, "    if not same:", "    if expires_ns < 0 and not same:", grant.only_what_was_approved),
    (grant, "return (USED, expires_ns), GRANTED", "return state, GRANTED", grant.used_is_dispatched),
    (quota, "if hour > last_hour:", "if hour != last_hour:", quota.windows_move_forward),
    (quota, "        spent = 0\n        reserved = 0\n", "        spent = 0\n", quota.money_is_counted),
    (quota, "        runs = 0\n    if day", "        runs = runs\n    if day", quota.runs_are_counted),
    (quota, "0 <= max_runs <= runs", "0 <= max_runs < runs", quota.within_the_runs),
    (quota, "0 <= max_runs <= runs", "0 < max_runs <= runs", quota.within_the_runs),
    (quota, "0 <= max_runs <= runs", "0 <= max_runs <= runs + 1", quota.started_whenever_possible),
    (quota, "spent + reserved + asked > max_spend", "spent + asked > max_spend", quota.charges_within_the_money),
    (quota, "spent + reserved + asked > max_spend", "reserved + asked > max_spend", quota.within_the_money),
    (quota, "+ asked > max_spend", "+ asked >= max_spend", quota.started_whenever_possible),
    (quota, "asked < least or ", "", quota.started_whenever_possible),
    (quota, "spent + least > max_spend", "spent + reserved + least > max_spend", quota.kept_out_only_by_runs_in_flight),
    (quota, "(hour, runs + 1, day", "(hour, runs, day", quota.runs_are_counted),
    (quota, "    if day != last_day:\n        return state\n", "", quota.charged_what_it_cost),
    (quota, "spent + cost, reserved - held", "spent + held, reserved - held", quota.charged_what_it_cost),
    (quota, "spent + cost, reserved - held", "spent + cost, reserved", quota.money_is_counted),
    (quota, "        runs = runs - 1\n", "        runs = runs\n", quota.runs_are_counted),
    (quota, "    if hour == last_hour:\n", "    if hour <= last_hour:\n", quota.given_back_where_it_was_taken),
    (quota, "        reserved = reserved - held\n", "        reserved = 0\n", quota.given_back_where_it_was_taken),
    (steps, "0 <= limit <= taken", "0 <= limit < taken", steps.within_the_steps),
    (steps, "0 <= limit <= taken", "0 < limit <= taken", steps.within_the_steps),
    (steps, "0 <= limit <= taken", "0 <= limit <= taken + 1", steps.admitted_whenever_possible),
    (steps, "return taken + 1, True", "return taken, True", steps.steps_are_counted),
    (steps, "return taken, False", "return taken + 1, False", steps.a_step_counts_once),
    (steps, "if taken > 0:", "if taken > 1:", steps.given_back_once),
    (steps, "if taken > 0:", "if taken >= 0:", steps.nothing_comes_of_nothing),
    (repeats, "run + 1 if same else 1", "run + 1", repeats.counts_what_came),
    (repeats, "run + 1 if same else 1", "run + 1 if same else run", repeats.alternating_is_no_loop),
    (repeats, "run + 1 if same else 1", "run + 1 if same else 0", repeats.within_the_repeats),
    (repeats, "run <= max_repeats", "run < max_repeats", repeats.let_through_whenever_possible),
    (repeats, "run <= max_repeats", "run <= max_repeats + 1", repeats.within_the_repeats),
    (repeats, "max_repeats < 0", "max_repeats <= 0", repeats.within_the_repeats),
    (retry, "    if base > max_backoff:\n        return (0, max_backoff)\n", "", retry.begins_with_the_base),
    (retry, "return (0, base)", "return (1, base)", retry.retries_are_tries),
    (retry, "0 <= max_retries <= retries", "0 <= max_retries < retries", retry.within_the_retries),
    (retry, "0 <= max_retries <= retries", "0 < max_retries <= retries", retry.within_the_retries),
    (retry, "if not wanted or ", "if ", retry.repeated_whenever_possible),
    (
        retry,
        "doubled = backoff + backoff",
        "doubled = backoff + backoff + 1",
        retry.backoff_is_doubled_up_to_the_maximum,
    ),
    (retry, "        doubled = max_backoff\n", "        doubled = doubled\n", retry.a_retry_waits_twice_as_long),
    (retry, "return (retries + 1, doubled)", "return (retries, doubled)", retry.retries_are_tries),
    (retry, "        high = max_backoff\n", "        high = high\n", retry.jitter_stays_within_its_share),
    (retry, "low = backoff - ", "low = 0 - ", retry.jitter_stays_within_its_share),
    (retry, "return low + (high - low) * draw", "return low + high * draw", retry.jitter_stays_within_its_share),
    (retry, "return low + (high - low) * draw // UNIT", "return low", retry.jitter_is_even),
    (retry, "UNIT = 10**9", "UNIT = 10**6", retry.jitter_is_even),
]


@pytest.mark.parametrize("protocol", SPECIFICATIONS, ids=lambda protocol: SPECIFICATIONS[protocol].name)
def test_every_claim_about_it_is_proved(protocol):
    """For any number of callers; and all that it promises can happen."""
    claims = list(Proofs(SPECIFICATIONS[protocol]).claims())
    answers = [claim.ask() for claim in claims]
    assert [(c.sentence, a.told) for c, a in zip(claims, answers, strict=True) if a.status != PROVED] == []
    assert {claim.whose for claim in claims} == {OURS}
    assert all_of(answers).status == PROVED


@pytest.mark.parametrize(("protocol", "piece", "instead", "promise"), BUGS, ids=[bug[3].__name__ for bug in BUGS])
def test_a_bug_in_the_core_breaks_its_promise(protocol, piece, instead, promise, tmp_path, monkeypatch):
    """A guard dropped, one off, an addition or a release lost, an over-cautious refusal: none is proved."""
    plant(protocol, piece, instead, tmp_path, monkeypatch)
    # That the proof fails is enough here; no way to the failure is looked for.
    monkeypatch.setattr(Proofs, "_with_trace", lambda proofs, answer, look: answer)
    specification = replace(SPECIFICATIONS[protocol])
    sentence = specification.formulas[promise].sentence
    (claim,) = [claim for claim in Proofs(specification).claims() if claim.sentence == sentence]
    assert claim.ask().status != PROVED


def test_a_bug_is_told_as_a_way_from_the_start(tmp_path, monkeypatch):
    """A counter that lets the next one in at the limit is refuted by a trace which ends with one too many."""
    plant(steps, "0 <= limit <= taken", "0 <= limit < taken", tmp_path, monkeypatch)
    specification = replace(steps.STEPS)
    sentence = specification.formulas[steps.within_the_steps].sentence
    (claim,) = [claim for claim in Proofs(specification).claims() if claim.sentence == sentence]
    told = claim.ask().told
    assert told.endswith(f"broken: {sentence}")
    assert "a call asks for its step" in told


def test_a_tenant_begins_as_the_core_says():
    """The start of the quota is the core's own initial state."""
    assert quota.quota(quota.start()) == quota.core.INITIAL


def test_a_total_of_one_day_leaves_out_the_runs_of_another():
    """Two runs that cost the whole limit break nothing on two days, and two promises on one."""
    limits = quota.Limits(max_runs=-1, max_spend=10, hour=24, day=1)
    today = quota.Run(quota.ENDED, 0, hour=24, day=1, held=10, charged=10, bill=10)
    yesterday = today._replace(hour=23, day=0)
    world = quota.Tenant(hour=24, runs=1, day=1, spent=10, reserved=0)
    assert quota.QUOTA.total_of(limits, [today, yesterday]) == quota.Totals(1, 0, 10, 10, 0)
    assert quota.QUOTA.broken(limits, world, [today, yesterday]) == []
    broken = quota.QUOTA.broken(limits, world._replace(runs=2, spent=20), [today, today])
    assert broken == sentences(quota.QUOTA, quota.within_the_money, quota.charges_within_the_money)


def test_a_plain_state_that_breaks_a_promise_is_found():
    """The same sentences watch over plain values: a used grant, a counter that lost a step, one retry too many."""
    world = grant.Approval(grant.core.USED, 5, now=3, said=grant.core.YES, spoiled=False, told=0)
    call = grant.Attempt(grant.DISPATCHED, grant.core.GRANTED, same=True, at=2)
    assert grant.GRANT.broken(grant.Limits(5), world, [call, grant.GRANT.new]) == []
    assert grant.GRANT.broken(grant.Limits(5), world, [call, call]) == sentences(
        grant.GRANT, grant.used_once, grant.used_is_dispatched
    )

    taken = steps.Call(steps.ADMITTED, era=0, permit=0)
    assert steps.STEPS.broken(steps.Limits(2, 0), steps.Guard(2, 0), [taken, taken]) == []
    assert steps.STEPS.broken(steps.Limits(2, 0), steps.Guard(1, 0), [taken, taken]) == sentences(
        steps.STEPS, steps.steps_are_counted
    )

    row = repeats.Row(run=3, last=7, asked=3, dispatched=2, changes=0, refused=0, allowed=False)
    assert repeats.REPEATS.broken(repeats.Limits(2), row, []) == []
    assert repeats.REPEATS.broken(repeats.Limits(1), row, []) == sentences(
        repeats.REPEATS, repeats.within_the_repeats, repeats.let_through_up_to_the_limit
    )

    tried = retry.Execution(retry.TRYING, retries=2, backoff=8, tries=3, doubled=8, due=4, wait=5)
    limits = retry.Limits(max_retries=2, base=2, max_backoff=60, jitter=retry.BILLION // 4)
    assert retry.RETRY.broken(limits, retry.Container(3), [tried]) == []
    assert retry.RETRY.broken(limits._replace(max_retries=1), retry.Container(3), [tried]) == sentences(
        retry.RETRY, retry.within_the_retries
    )


def sentences(specification, *promises):
    """What these promises say."""
    return [specification.formulas[promise].sentence for promise in promises]


def plant(protocol, piece, instead, folder, monkeypatch):
    """Put a copy of the core with a bug into its place, function by function; it has a file, so it can be read."""
    core = protocol.core
    source = inspect.getsource(core)
    assert source.count(piece) == 1, piece
    file = folder / f"{folder.name}.py"
    file.write_text(source.replace(piece, instead))
    found = importlib.util.spec_from_file_location(f"planted_{folder.name}", file)
    copy = importlib.util.module_from_spec(found)
    monkeypatch.setitem(sys.modules, copy.__name__, copy)
    found.loader.exec_module(copy)
    for name, value in vars(core).items():
        if isinstance(value, FunctionType):
            monkeypatch.setattr(core, name, getattr(copy, name))
