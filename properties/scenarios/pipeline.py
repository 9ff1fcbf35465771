"""A step guard before a breaker: what the one took goes back when the other denies, and nothing leaks (T6)."""

from __future__ import annotations

from failstop.properties.scenario import Scenario
from failstop.properties.subjects.breaker import Call, GiveUp
from failstop.properties.subjects.chain import LetPass
from failstop.properties.subjects.pipeline import PipelineSubject
from failstop.runtime.clock import NS_PER_SECOND

_FAIL = Call(fails=True)
_OK = Call()
_COOL_DOWN = LetPass(NS_PER_SECOND)

SCENARIOS = (
    Scenario(
        "denied-step-goes-back",
        "The breaker is open, so the steps of those who ask go back",
        "T6",
        (),
        PipelineSubject(max_steps=2),
        ((_FAIL, _OK), (_OK, _OK)),
    ),
    Scenario(
        "last-step-of-a-denied-call",
        "The last step is held by a call that the breaker denies, while another asks for it",
        "T6",
        (),
        PipelineSubject(max_steps=2),
        ((_FAIL, _OK), (_COOL_DOWN, _OK)),
    ),
    Scenario(
        "report-against-evaluate",
        "A call ends, and trips or closes the breaker, while another is being let in",
        "T6",
        (),
        PipelineSubject(max_steps=4),
        ((_FAIL, _COOL_DOWN, _OK), (_OK, _OK)),
    ),
    Scenario(
        "step-given-up",
        "The last step is taken and given back undispatched, while another asks for it",
        "T6",
        (),
        PipelineSubject(max_steps=1),
        ((GiveUp(), _OK), (_OK, GiveUp())),
    ),
    Scenario(
        "probe-without-a-step",
        "A probe is denied for want of a step, and must not have taken the slot",
        "T6",
        (),
        PipelineSubject(max_steps=2),
        ((_FAIL, _COOL_DOWN, Call(neither=True)), (_OK, GiveUp())),
    ),
)

DEEP = (
    Scenario(
        "pipeline-of-three",
        "Three callers of two calls each, of whom one trips the breaker, share two steps",
        "T6",
        (),
        PipelineSubject(max_steps=2),
        ((_FAIL, _OK), (_OK, _OK), (_OK, _OK)),
    ),
    Scenario(
        "steps-for-all-of-three",
        "Three callers, for whom there are steps enough, so only the breaker denies",
        "T6",
        (),
        PipelineSubject(max_steps=4),
        ((_FAIL, _OK), (_OK,), (_OK,)),
    ),
)
