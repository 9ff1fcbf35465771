"""A specification in which something can no longer happen would keep its promises for nothing: that is noticed."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from typing import TYPE_CHECKING

import pytest

from failstop.models.catalogue import specifications
from failstop.models.claim import OURS, PROVED
from failstop.models.induction import Proofs
from failstop.models.protocols import breaker, budget, family, grant, ledger, pipeline, quota

if TYPE_CHECKING:
    from types import ModuleType

pytestmark = pytest.mark.once

# The protocol, a piece of it, what stands there instead, and what can no longer happen.
WEAKENED = [
    (ledger, "halt, tick),", "halt),", "A call is refused because the deadline has passed"),
    (ledger, "asked < core.NO_ESTIMATE:", "asked < core.NO_ESTIMATE or not tool:", "dispatched: tool no"),
    (ledger, "asked < core.NO_ESTIMATE:", "asked < 0:", "dispatched: asked -1"),
    (ledger, "bill < 0 or bill > call.held:", "bill < 1 or bill > call.held:", "nobody learns its bill: bill 0"),
    (breaker, "outcome > core.NEITHER:", "outcome > core.FAILURE:", "late or not: outcome neither"),
    (budget, "if amount < 0:", "if amount <= 0:", "if the budget lets them: amount 0"),
    (quota, "asked < core.NO_BOUND:", "asked < 0:", "A run asks to start: asked -1"),
    (pipeline, "outcome > breaker.NEITHER:", "outcome > breaker.FAILURE:", "outcome neither"),
    (grant, "standing > core.NO:", "standing > core.YES:", "standing no"),
]

SEEN = {ledger: "verdict", family: "verdict", budget: "verdict", breaker: "verdict", grant: "verdict", quota: "verdict"}
UNSEEN = {
    ledger: {"ADMITTED", "CLOSED"},
    family: {"ADMITTED", "REPEATS"},
    grant: {"APPROVED"},
}
"""Verdicts that no call of a protocol is told, or that are no refusal and so are seen in what calls do."""


@pytest.mark.parametrize(("protocol", "piece", "instead", "gone"), WEAKENED, ids=[each[3] for each in WEAKENED])
def test_what_can_no_longer_happen_is_noticed(protocol, piece, instead, gone, tmp_path, monkeypatch):
    """A step, a choice or a verdict that is lost would leave promises that hold for nothing."""
    (spec,) = [
        each for each in vars(weakened(protocol, piece, instead, tmp_path, monkeypatch)).values() if is_spec(each)
    ]
    claims = [claim for claim in Proofs(spec).claims() if gone.lower() in claim.sentence.lower()]
    assert claims
    assert any(claim.ask().status != PROVED for claim in claims)


@pytest.mark.parametrize("protocol", SEEN, ids=lambda protocol: protocol.__name__)
def test_every_verdict_of_a_core_must_be_seen(protocol):
    """A new verdict that no specification asks for is noticed here."""
    (spec,) = [each for each in vars(protocol).values() if is_spec(each)]
    first = inspect.getsource(protocol.core).partition('"""The verdicts')[0].rpartition("\n\n")[2]
    verdicts = {line.partition(" = ")[0] for line in first.splitlines()}
    asked = {name for name in verdicts if getattr(protocol.core, name) in spec.outcomes[SEEN[protocol]]}
    assert verdicts - asked == UNSEEN.get(protocol, set())


def test_every_specification_of_the_runtime_asks_for_outcomes():
    """Choices that are truth values are asked for anyway."""
    without = {spec.name for spec in specifications().values() if spec.whose == OURS and not spec.outcomes}
    assert without == set()


def is_spec(value):
    """Say whether it is a specification; one of a copy has the same class."""
    return type(value).__name__ == "Specification"


def weakened(protocol: ModuleType, piece: str, instead: str, folder, monkeypatch) -> ModuleType:
    """Make a copy of a protocol with a change; it has a file, so it can be read."""
    source = inspect.getsource(protocol)
    assert piece in source
    file = folder / "weakened.py"
    file.write_text(source.replace(piece, instead))
    found = importlib.util.spec_from_file_location(f"weakened_{folder.name}", file)
    copy = importlib.util.module_from_spec(found)
    monkeypatch.setitem(sys.modules, copy.__name__, copy)
    found.loader.exec_module(copy)
    return copy
