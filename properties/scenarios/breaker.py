"""A breaker that trips, cools down and probes, and results that come too late to say anything (G4)."""

from __future__ import annotations

from failstop.properties.scenario import Scenario
from failstop.properties.subjects.breaker import BreakerSubject, Call, GiveUp
from failstop.properties.subjects.chain import LetPass
from failstop.runtime.clock import NS_PER_SECOND

_FAIL = Call(fails=True)
_OK = Call()
_COOL_DOWN = LetPass(NS_PER_SECOND)
_LEASE = LetPass(10 * NS_PER_SECOND)
_TRIPS_AT_ONE = BreakerSubject()
_TRIPS_AT_TWO = BreakerSubject(threshold=2)

SCENARIOS = (
    Scenario(
        "trip",
        "Two failures at once are the last that the breaker lets pass",
        "G4",
        (),
        _TRIPS_AT_TWO,
        ((_FAIL, _OK), (_FAIL, _OK)),
    ),
    Scenario(
        "failures-in-a-row",
        "A success comes between two failures, or beside them",
        "G4",
        (),
        _TRIPS_AT_TWO,
        ((_FAIL, _FAIL, _OK), (_OK, _OK)),
    ),
    Scenario(
        "probe-at-the-cooldown",
        "Two callers at once find the breaker cooled down",
        "G4",
        (),
        _TRIPS_AT_ONE,
        ((_FAIL, _COOL_DOWN, _OK), (_OK,)),
    ),
    Scenario(
        "failing-probe",
        "A probe fails while others ask, and the cooldown begins anew",
        "G4",
        (),
        _TRIPS_AT_ONE,
        ((_FAIL, _COOL_DOWN, _FAIL), (_OK, _OK)),
    ),
    Scenario(
        "stale-success",
        "A slow success from before the breaker opened comes while it is open, or while a probe is out",
        "G4",
        (),
        _TRIPS_AT_ONE,
        ((_OK, _OK), (_FAIL, _COOL_DOWN, _OK)),
    ),
    Scenario(
        "stale-failure",
        "A slow failure from before the breaker opened comes while a probe is out",
        "G4",
        (),
        _TRIPS_AT_ONE,
        ((_FAIL, _COOL_DOWN, _OK), (_FAIL, _COOL_DOWN, _OK)),
    ),
    Scenario(
        "probe-never-heard-of",
        "A probe is never heard of, and its slot goes to another at the end of its lease",
        "G4",
        (),
        _TRIPS_AT_ONE,
        ((_FAIL, _COOL_DOWN, Call(hangs=True)), (_LEASE, _OK)),
    ),
    Scenario(
        "probe-after-its-lease",
        "A probe comes back after its lease, while the next one is out",
        "G4",
        (),
        _TRIPS_AT_ONE,
        ((_FAIL, _COOL_DOWN, _OK, _OK), (_LEASE, _FAIL)),
    ),
    Scenario(
        "cancelled-probe",
        "A probe is cancelled, which says nothing, and its slot is free again",
        "G4",
        (),
        _TRIPS_AT_ONE,
        ((_FAIL, _COOL_DOWN, Call(neither=True)), (_OK, _OK)),
    ),
    Scenario(
        "probe-given-up",
        "A probe is let in and not dispatched, and its slot is free again",
        "G4",
        (),
        _TRIPS_AT_ONE,
        ((_FAIL, _COOL_DOWN, GiveUp()), (_OK, _OK)),
    ),
)

DEEP = (
    Scenario(
        "trip-of-three",
        "Three callers of two calls each, of which two failures trip the breaker",
        "G4",
        (),
        _TRIPS_AT_TWO,
        ((_FAIL, _OK), (_FAIL, _OK), (_FAIL, _OK)),
    ),
    Scenario(
        "herd-at-the-cooldown",
        "Three callers find the breaker cooled down, and the probe fails",
        "G4",
        (),
        _TRIPS_AT_ONE,
        ((_FAIL, _COOL_DOWN, _FAIL), (_OK, _OK), (_OK, _OK)),
    ),
)
