"""A specification as text: what it starts with, what it takes for granted, and what in it is a ghost."""

from __future__ import annotations

import pytest
import z3

from failstop.models.catalogue import specifications
from failstop.models.claim import OURS, PROVED, prove
from failstop.models.reader import filled, flat, fresh
from failstop.models.show import shown

RUNTIMES = [spec for spec in specifications().values() if spec.whose == OURS]


@pytest.mark.parametrize("spec", specifications().values(), ids=lambda spec: spec.name)
def test_every_specification_fits_80_columns(spec):
    """With the records' meaning and what they are at first; no word is empty."""
    text = shown(spec, 80)
    assert max(map(len, text.splitlines())) <= 80
    assert not any(line.endswith(" ") for line in text.splitlines())
    assert "( |" not in text
    assert "at first" in text
    assert " ".join(spec.world.__doc__.split()[:3]) in " ".join(text.split())


def test_a_start_that_depends_on_the_limits_says_so():
    """A grant expires when it was asked to."""
    assert "at first  state pending, expires limits.expires, said nothing" in shown(specifications()["grant"], 80)


@pytest.mark.parametrize("spec", RUNTIMES, ids=lambda spec: spec.name)
def test_what_is_trusted_is_told(spec):
    """A proof is worth no more than what it takes for granted."""
    assert spec.trusted
    text = " ".join(shown(spec, 80).split())
    for told in spec.trusted:
        assert told[1:] in text


@pytest.mark.parametrize("spec", RUNTIMES, ids=lambda spec: spec.name)
def test_no_core_sees_a_ghost(spec):
    """Whatever is no ghost comes out of every step the same, whatever the ghosts are."""
    world, call = fresh(spec.world, "world"), fresh(spec.call, "call")
    others = fresh(spec.world, "other world"), fresh(spec.call, "other call")
    ghosts = [
        (getattr(one, name), getattr(other, name))
        for one, other in zip((world, call), others, strict=True)
        for name in set(spec.ghosts) & set(one._fields)
    ]
    for action in spec.actions:
        formula = spec.formulas[action]
        records = (world, call) if "call" in formula.parameters else (world,)
        for record in filled(records, formula.reading.leaves):
            for name in set(record._fields) - set(spec.ghosts):
                (term,) = flat(getattr(record, name))
                same = prove(term == z3.substitute(term, *ghosts)) if ghosts else None
                assert same is None or same.status == PROVED, f"{action.__name__}: {name}"
