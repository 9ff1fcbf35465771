"""One yes, asked for at once: it is used once, in time, and for the call that it was given to (approval)."""

from __future__ import annotations

from failstop.properties.references.chain import Advance
from failstop.properties.references.grant import Answer, Approve, Ask, IsPending, Use
from failstop.properties.scenario import Scenario
from failstop.properties.subjects.grant import ApprovalSubject, GrantSubject

_FOR_A_SECOND = GrantSubject(expires_ns=1_000_000_000)
_SECOND = Advance(1_000_000_000)

SCENARIOS = (
    Scenario(
        "one-yes-two-uses",
        "Two dispatches at once use one yes",
        "approval",
        ("approval_once",),
        GrantSubject(),
        ((Answer(), Use()), (Use(),)),
    ),
    Scenario(
        "yes-against-no",
        "Two people answer at once, and a dispatch wants the answer",
        "approval",
        ("approval",),
        GrantSubject(),
        ((Answer(), Use()), (Answer(approved=False), Use())),
    ),
    Scenario(
        "answer-against-use",
        "A person answers while dispatches want the answer",
        "approval",
        ("approval",),
        GrantSubject(),
        ((Answer(),), (Use(), Use())),
    ),
    Scenario(
        "expiry-against-answer",
        "Time runs out while a person answers",
        "approval",
        ("approval",),
        _FOR_A_SECOND,
        ((Answer(), IsPending()), (_SECOND, IsPending())),
    ),
    Scenario(
        "expiry-against-use",
        "Time runs out while a dispatch uses the yes",
        "approval",
        ("approval",),
        _FOR_A_SECOND,
        ((Answer(), Use(), Use()), (_SECOND, Use())),
    ),
    Scenario(
        "drift-against-use",
        "The approved call and another one want the yes at once",
        "approval",
        ("approval_args",),
        GrantSubject(),
        ((Answer(), Use()), (Use(same=False), Use())),
    ),
    Scenario(
        "approved-twice",
        "Two people say yes to one call at once",
        "approval",
        ("approval_once",),
        ApprovalSubject(),
        ((Ask("alice"), Approve("alice")), (Approve("alice"),)),
    ),
    Scenario(
        "approved-across",
        "Two calls wait, and each is approved by both",
        "approval",
        ("approval_once",),
        ApprovalSubject(),
        ((Ask("alice"), Approve("bob"), Approve("alice")), (Ask("bob"), Approve("alice"), Approve("bob"))),
    ),
)

DEEP = (
    Scenario(
        "one-yes-of-three",
        "Three threads want one yes, twice each, while one of them answers and time runs out",
        "approval",
        ("approval_once",),
        _FOR_A_SECOND,
        ((Answer(), Use()), (Use(), _SECOND), (Use(same=False), Use())),
    ),
    Scenario(
        "approved-by-three",
        "Three people say yes to one call, one of them twice",
        "approval",
        ("approval_once",),
        ApprovalSubject(),
        ((Ask("alice"), Approve("alice")), (Approve("alice"),) * 2, (Approve("alice"),)),
    ),
)
