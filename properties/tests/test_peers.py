"""From proof to peer: which sentences are played, how traces become schedules, and that records say what was seen."""

from types import MappingProxyType

import pytest

from failstop.models import catalogue
from failstop.models.published import budget, cost, steps
from failstop.properties.evidence import HOLDS, INCONCLUSIVE, NOT_OFFERED, VIOLATED, worst
from failstop.properties.peers import check
from failstop.properties.peers.ours import OurPeer
from failstop.properties.peers.performance import perform
from failstop.properties.peers.plays import NOT_PLAYED, PLAYS
from failstop.properties.peers.stage import ChainStage
from failstop.properties.peers.way import Growth, NoWay, Step, Way, breaks, grown, read
from failstop.properties.target import Refused

STEPS, STEPS_FAILED = (play for play in PLAYS if play.spec is steps.STEPS)
COST = next(play for play in PLAYS if play.spec is cost.COST)
BUDGET = next(play for play in PLAYS if play.spec is budget.BUDGET)

TOGETHER = Way(
    (("max_steps", 1),),
    (Step("asks", 0), Step("asks", 1), Step("succeeds", 0), Step("succeeds", 1)),
)


class Chain:
    """A chain that checks, runs, and then counts; or counts when it checks."""

    def __init__(self, max_steps, *, at_once):
        self.left = max_steps
        self.at_once = at_once

    def call(self, work):
        if self.left <= 0:
            raise Refused("steps")
        if self.at_once:
            self.left -= 1
        value = work.run().value
        if not self.at_once:
            self.left -= 1
        return value

    def close(self):
        pass


class ToyTarget:
    name = "toy"
    promises = MappingProxyType({"steps_parallel": "its docstring"})
    real_time = False

    def versions(self):
        return {"toy": "1.0"}


class ToyPeer:
    """A peer of chains only; how each is made in turn is said by what is given, the last one for all that follow."""

    def __init__(self, *at_once):
        self.target = ToyTarget()
        self._at_once = list(at_once)

    def open(self, limits, world):
        at_once = self._at_once.pop(0) if len(self._at_once) > 1 else self._at_once[0]
        if at_once is None:
            raise RuntimeError("out of order")
        return Chain(limits.max_steps, at_once=at_once)


@pytest.mark.once
def test_every_published_sentence_that_is_refuted_is_played_or_has_a_reason():
    """What the solver refutes is in the mapping, by the very sentence, or its protocol is among those not played."""
    refuted = {(claim.protocol, claim.sentence) for claim in check.refuted()}
    played = {(play.spec.name, play.sentence) for play in PLAYS if play.along is None}
    assert {protocol for protocol, _ in refuted - played} == set(NOT_PLAYED)
    assert played <= refuted
    assert not {protocol for protocol, _ in played} & set(NOT_PLAYED)


@pytest.mark.once
def test_each_trace_is_played_on_the_real_peer():
    """On veronica-core 3.10.0 these carry over and these do not, and every violation came again each time."""
    records = list(check.veronica_records())
    assert [record.subject for record in records] == [play.subject for play in PLAYS]
    assert all(record.versions["veronica-core"] == "3.10.0" for record in records)
    assert {record.about["sentence"] for record in records if record.verdict == HOLDS} == {
        "The retries of a chain never pass the retry ceiling",
        "An open breaker denies every request until the recovery time has passed since the last failure",
        "Once the recovery time has passed since the last failure, whoever asks an open breaker may test",
        "A limit that is made is neither NaN nor infinite",
        "A limit that is made and counts something is no fraction",
    }
    assert [record.about["protocol"] for record in records if record.verdict == NOT_OFFERED] == ["published steps"]
    broken = [record for record in records if record.verdict == VIOLATED]
    assert len(broken) == 13
    assert all(record.effort["replayed"] == record.effort["replays"] == 10 for record in broken)
    assert worst(record.verdict for record in records) == VIOLATED
    deadline = next(record for record in broken if record.guarantee == "G5")
    assert deadline.about["schedule"].startswith("veronica-timeout-pool, a thread of the peer's own")


def test_sixteen_callers_under_a_ceiling_of_five_are_all_dispatched_by_the_peer():
    """All check before anyone counts: 16 dispatches where 5 are allowed, and 5 by ours under the very same schedule."""
    together, failed = check.veronica_records(["published steps"])
    assert (together.verdict, together.target, together.layer) == (VIOLATED, "veronica-core", "schedules")
    assert together.detail == "max_steps 5, 16 callers: 16 dispatches, 16 succeeded"
    assert (together.effort["dispatches"], together.effort["callers"], together.effort["replayed"]) == (16, 16, 10)
    assert together.about["schedule"].splitlines() == [
        "1-16. A to P each asks: its stub runs",
        "17-32. A to P each succeeds: returns",
    ]
    assert together.about["ours"].splitlines()[-1] == "max_steps 5, 16 callers: 5 dispatches, 5 succeeded"
    assert together.replay == "failstop peers --only 'published steps'"
    assert (failed.verdict, failed.effort["dispatches"]) == (NOT_OFFERED, 16)
    assert "Maximum number of successful wrap calls" in failed.detail


def test_ours_dispatches_five_under_the_same_schedule():
    """Put in the place of the peer, our own runtime keeps the sentence, and the record says so."""
    record = check.record(STEPS, OurPeer())
    assert record.verdict == HOLDS
    assert record.detail.startswith("the trace does not carry over to failstop: ")
    assert record.effort["dispatches"] == 5
    assert record.replay is None


def test_a_peer_that_counts_after_the_call_is_caught():
    """A toy that does as published shows what the solver found, and is told with the command to show it again."""
    record = check.record(STEPS, ToyPeer(False))
    assert (record.verdict, record.effort["dispatches"]) == (VIOLATED, 16)
    assert record.about["promised"] == "its docstring"


def test_a_peer_that_counts_at_once_holds():
    """A toy that counts as it checks lets no more in than allowed: the trace does not carry over to it."""
    record = check.record(STEPS, ToyPeer(True))
    assert (record.verdict, record.effort["dispatches"]) == (HOLDS, 5)
    assert "does not carry over to toy 1.0" in record.detail


def test_what_does_not_come_again_is_not_told_as_a_violation():
    """A peer that misbehaves only sometimes leaves the sentence undecided."""
    record = check.record(STEPS, ToyPeer(False, False, True))
    assert record.verdict == INCONCLUSIVE
    assert "shown again only 0 times of 10" in record.detail


def test_a_peer_that_breaks_shows_nothing():
    """Whatever a peer raises of its own is no verdict about the sentence."""
    record = check.record(STEPS, ToyPeer(None))
    assert (record.verdict, record.detail) == (INCONCLUSIVE, "it could not be played: RuntimeError: out of order")


def test_a_call_that_has_to_wait_does_not_hold_up_the_schedule():
    """Where a runtime makes callers wait, the way goes on without them, and they are dispatched when they can be."""
    way = Way(
        (("max_cost", 2),),
        (
            Step("asks", 0),
            Step("asks", 1),
            Step("returns", 0, (("cost", 1),)),
            Step("returns", 1, (("cost", 1),)),
        ),
    )
    performed = perform(way, (), OurPeer(), ChainStage)
    assert performed.came == ("its stub runs", "waits, its stub runs", "returns", "returns")
    assert performed.counts["billed"] == 2


def test_a_trace_is_read_as_the_solver_told_it():
    """The steps that are read are those of the protocol, and break on plain values what the solver says they break."""
    score = check.written(STEPS)
    found, large = score.ways
    assert [step.action for step in found.steps] == ["asks", "asks", "succeeds", "succeeds"]
    assert (large.callers, large.limit("max_steps"), len(large.steps)) == (16, 5, 32)
    assert all(breaks(steps.STEPS, way, STEPS.sentence) for way in score.ways)


def test_a_trace_of_another_protocol_is_refused():
    """Steps that a protocol does not have are not read as nothing."""
    told = check.written(BUDGET).told
    with pytest.raises(NoWay, match="has no step 'somebody spends'"):
        read(steps.STEPS, told)
    with pytest.raises(NoWay, match="no way of published steps"):
        read(steps.STEPS, "nothing was found")


def test_a_way_that_breaks_nothing_is_known():
    """On plain values one call under a ceiling of one keeps the sentence, and a step that cannot be taken is told."""
    alone = Way((("max_steps", 1),), (Step("asks", 0), Step("succeeds", 0)))
    assert not breaks(steps.STEPS, alone, STEPS.sentence)
    with pytest.raises(NoWay, match="step 1, succeeds, cannot be taken"):
        breaks(steps.STEPS, Way(alone.limits, (Step("succeeds", 0),)), STEPS.sentence)
    with pytest.raises(NoWay, match="takes no limits"):
        breaks(steps.STEPS, Way((("max_steps", 0),), alone.steps), STEPS.sentence)


def test_a_way_grows_step_by_step_or_caller_by_caller():
    """Together, all do a step before anybody does the next; in turn, each does all of it before the next one begins."""
    together = grown(TOGETHER, Growth("together", 3, (("max_steps", 2),)))
    assert [step.action for step in together.steps] == ["asks"] * 3 + ["succeeds"] * 3
    assert [step.caller for step in together.steps] == [0, 1, 2] * 2
    assert together.limit("max_steps") == 2
    in_turn = grown(TOGETHER, Growth("in turn", 2))
    assert [(step.action, step.caller) for step in in_turn.steps] == [
        ("asks", 0),
        ("succeeds", 0),
        ("asks", 1),
        ("succeeds", 1),
    ]


def test_every_action_of_a_played_protocol_is_played():
    """No step that the solver may take is one that a stage does not know."""
    # Once the timer has fired nothing runs any more, so that no counterexample needs it.
    single = {"time_passes", "clock_is_set", "timer_fires"}
    for play in PLAYS:
        make = play.make
        known = make.begins | make.ends | make.during | single
        acts = "act" in vars(make)
        assert acts or {action.__name__ for action in play.spec.actions} <= known, play.subject
        assert play.spec.name in catalogue.specifications()
