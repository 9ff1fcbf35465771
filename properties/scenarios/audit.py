"""Several writers of one log: what is on disk is one chain, with every event once, in an order that time allows."""

from __future__ import annotations

from failstop.properties.references.audit import Append, CloseLog, Read
from failstop.properties.scenario import Scenario
from failstop.properties.subjects.audit import AuditSubject

_LOG = AuditSubject()

SCENARIOS = (
    Scenario(
        "append-against-append",
        "Two threads put events on record at once",
        "audit",
        (),
        _LOG,
        ((Append("admit", "a1"), Append("settle", "a2")), (Append("admit", "b1"), Append("settle", "b2"))),
    ),
    Scenario(
        "read-against-append",
        "The log is read while two threads write to it",
        "audit",
        (),
        _LOG,
        ((Append("admit", "a1"), Read()), (Append("admit", "b1"), Read())),
    ),
    Scenario(
        "close-against-append",
        "The log is closed while events come in",
        "audit",
        (),
        _LOG,
        ((Append("admit", "a1"), Append("settle", "a2")), (Append("admit", "b1"), CloseLog(), Read())),
    ),
)

DEEP = (
    Scenario(
        "append-of-three",
        "Three threads put two events each on record",
        "audit",
        (),
        _LOG,
        tuple((Append("admit", f"{name}1"), Append("settle", f"{name}2")) for name in "abc"),
    ),
)
