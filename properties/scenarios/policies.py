"""The breaker alone, asked by several threads, and pipelines of several policies, asked by one (G4, T6)."""

from __future__ import annotations

from failstop.properties.references.chain import Advance
from failstop.properties.scenario import Scenario
from failstop.properties.subjects.policies import Ask, Finish, GiveBack, PolicySubject

_BREAKER = PolicySubject(("breaker",))
_TRIPS = (Ask("a"), Finish("a", "failed"), Advance(10))

SCENARIOS = (
    Scenario(
        "one-probe",
        "The breaker has cooled down, and two calls at once want to be its probe",
        "G4",
        (),
        _BREAKER,
        ((*_TRIPS, Ask("b")), (Ask("c"), Ask("d"))),
    ),
    Scenario(
        "late-success",
        "A call from before the breaker opened succeeds while its probe is out",
        "G4",
        (),
        _BREAKER,
        ((Ask("z"), *_TRIPS, Ask("b"), Finish("z"), Ask("c")), (Ask("d"),)),
    ),
    Scenario(
        "lost-probe",
        "A probe is never heard of, and others ask before and after the end of its lease",
        "G4",
        (),
        _BREAKER,
        ((*_TRIPS, Ask("b"), Advance(15), Ask("c"), Advance(5), Ask("d")), (Ask("e"),)),
    ),
    Scenario(
        "probe-that-says-nothing",
        "A probe is denied further on, or not dispatched, and says nothing of the health of what it was to probe",
        "G4",
        (),
        _BREAKER,
        ((*_TRIPS, Ask("b"), Finish("b", "neither"), Ask("c"), Ask("d")), (GiveBack("b"), Ask("e"))),
    ),
    Scenario(
        "failures-at-once",
        "Two calls fail at once, which is one failure too many",
        "G4",
        (),
        PolicySubject(("breaker",), threshold=2),
        ((Ask("a"), Finish("a", "failed")), (Ask("b"), Finish("b", "failed"))),
    ),
    Scenario(
        "success-between-failures",
        "A success comes between two failures",
        "G4",
        (),
        PolicySubject(("breaker",), threshold=2),
        ((Ask("a"), Finish("a", "failed"), Ask("b"), Finish("b"), Ask("c"), Finish("c", "failed")), (Ask("d"),)),
    ),
    Scenario(
        "denied-by-the-second",
        "The second policy denies a call, and the first gives its step back",
        "T6",
        (),
        PolicySubject(("steps", "budget"), max_steps=3, max_nano=10),
        ((Ask("a", 6), Ask("b", 6), Finish("a", "ok", 1), Ask("c", 6), Ask("d", 2), Ask("e", 1)), (Advance(1),)),
    ),
    Scenario(
        "denied-by-both",
        "Two policies would deny a call, and the first answers",
        "T6",
        (),
        PolicySubject(("steps", "budget"), max_steps=1, max_nano=10),
        ((Ask("a", 6), Ask("b", 20), GiveBack("a"), Ask("c", 6)), (Advance(1),)),
    ),
    Scenario(
        "probe-denied-by-the-second",
        "A probe is denied by the next policy, and the breaker lets another one go",
        "T6",
        (),
        PolicySubject(("breaker", "steps"), max_steps=1),
        ((*_TRIPS, Ask("b"), Ask("c")), (Advance(1),)),
    ),
)
