"""A tenant's quota at its limits: the last run, the last money, a window that ends meanwhile (quota)."""

from __future__ import annotations

from failstop.properties.references.chain import Advance
from failstop.properties.references.quota import DAY_NS, HOUR_NS, GiveBack, Look, Settle, Start
from failstop.properties.scenario import Scenario
from failstop.properties.subjects.quota import QuotaSubject

_ONE_RUN = QuotaSubject(max_runs=1)
_TEN_NANO = QuotaSubject(max_nano=10)
_BEFORE_MIDNIGHT = QuotaSubject(max_runs=2, max_nano=10, wall_ns=DAY_NS - 1)

SCENARIOS = (
    Scenario(
        "last-run",
        "Two runs at once ask for the last one of the hour",
        "quota",
        (),
        _ONE_RUN,
        ((Start("a"),), (Start("b"),)),
    ),
    Scenario(
        "last-money",
        "Two runs at once, of which the day holds one",
        "quota",
        (),
        _TEN_NANO,
        ((Start("a", 6),), (Start("b", 6),)),
    ),
    Scenario(
        "settle-against-start",
        "A run gives back what it did not need while others ask for it",
        "quota",
        (),
        _TEN_NANO,
        ((Start("a", 8), Settle("a", 2)), (Start("b", 6), Start("c", 2))),
    ),
    Scenario(
        "no-bound-against-start",
        "Two runs whose cost nobody knows, beside one that is bounded",
        "quota",
        (),
        _TEN_NANO,
        ((Start("a", None), Settle("a", 3)), (Start("b", 4), Start("c", None))),
    ),
    Scenario(
        "overspent-run-against-start",
        "A run costs more than it held while another starts",
        "quota",
        (),
        _TEN_NANO,
        ((Start("a", 2), Settle("a", 9)), (Start("b", 2), Start("c", 1))),
    ),
    Scenario(
        "run-given-back",
        "A run that never began gives its place back while others ask for it",
        "quota",
        (),
        _ONE_RUN,
        ((Start("a"), GiveBack("a"), Start("b")), (Start("c"), Start("d"))),
    ),
    Scenario(
        "run-ended-twice",
        "A run is settled and given back at once",
        "quota",
        (),
        QuotaSubject(max_runs=2, max_nano=10),
        ((Start("a", 6), Settle("a", 4)), (GiveBack("a"), Start("b", 6))),
    ),
    Scenario(
        "hour-against-start",
        "The hour ends while runs ask for its last one",
        "quota",
        (),
        _ONE_RUN,
        ((Start("a"), Start("b")), (Advance(HOUR_NS), Start("c"))),
    ),
    Scenario(
        "hour-against-give-back",
        "The hour ends before a run of it gives its place back",
        "quota",
        (),
        _ONE_RUN,
        ((Start("a"), GiveBack("a"), Start("b")), (Advance(HOUR_NS), Start("c"))),
    ),
    Scenario(
        "day-against-start",
        "The day ends while runs ask for its last money",
        "quota",
        (),
        _BEFORE_MIDNIGHT,
        ((Start("a", 6), Start("b", 6)), (Advance(1), Start("c", 6))),
    ),
    Scenario(
        "day-against-settle",
        "The day ends before a run of it is settled, while others hold money of the next",
        "quota",
        (),
        _BEFORE_MIDNIGHT,
        ((Start("a", 6), Settle("a", 9)), (Advance(1), Start("c", 8), Look())),
    ),
)

DEEP = (
    Scenario(
        "runs-of-three",
        "Three threads start two runs each, and there are four",
        "quota",
        (),
        QuotaSubject(max_runs=4),
        tuple((Start(f"{name}1"), Start(f"{name}2")) for name in "abc"),
    ),
    Scenario(
        "money-of-three",
        "Three threads start and settle a run each, with money for two at once",
        "quota",
        (),
        QuotaSubject(max_nano=20),
        tuple((Start(name, 8), Settle(name, cost)) for name, cost in (("a", 3), ("b", 8), ("c", 12))),
    ),
    Scenario(
        "day-of-three",
        "The day ends while two threads start and settle",
        "quota",
        (),
        _BEFORE_MIDNIGHT,
        ((Start("a", 6), Settle("a", 4)), (Start("b", 6), GiveBack("b")), (Advance(1), Start("c", 6))),
    ),
)
