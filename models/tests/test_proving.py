"""Claims on several processors: the answers are those of one, and none gets lost on the way."""

from __future__ import annotations

import os
import re
from typing import Any

import pytest

from failstop.models import proving
from failstop.models.catalogue import claims_of, names, specifications
from failstop.models.claim import GROUNDS, OURS, PUBLISHED, UNKNOWN, Answer, Claim
from failstop.models.symbolic import Unreadable

SMALL = ("repeats", "path", "published loop detection")


@pytest.mark.once
def test_two_processes_answer_as_one_does() -> None:
    """The order may be another, the answers may not."""
    alone, together = (
        sorted(
            (each.protocol, each.kind, each.sentence, each.answer.status)
            for each in proving.prove_all(claims, jobs=jobs)
        )
        for claims, jobs in [(proving.wanted(protocols=SMALL), 1), (proving.wanted(protocols=SMALL), 2)]
    )
    assert alone == together
    assert {protocol for protocol, *_ in alone} == set(SMALL)


def test_only_what_is_asked_for_is_proved() -> None:
    """By guarantee, by protocol, or by both; what has no claim left is not started."""
    chosen = proving.wanted(["halt"], ["ledger", "repeats"])
    assert list(chosen) == ["ledger"]
    assert {claim.guarantee for claim in chosen["ledger"] if claim.kind not in GROUNDS} == {"halt"}


def test_a_promise_is_never_asked_for_without_what_it_rests_on() -> None:
    """Whatever is chosen, its protocol's steps and goals must be reachable: else it may hold for nothing."""
    for guarantee in ("T3", "G5", "halt"):
        for name, claims in proving.wanted([guarantee]).items():
            grounds = [claim.sentence for claim in claims_of(name) if claim.kind in GROUNDS]
            assert [claim.sentence for claim in claims if claim.kind in GROUNDS] == grounds


def cannot_be_asked() -> Answer:
    """Do what a claim does whose specification does not fit together."""
    return {}[names]  # type: ignore[return-value]


BROKEN = Claim("G2", OURS, "toy", "law", "A promise", cannot_be_asked)


class Kept(list[Any]):
    """A queue in this process."""

    put = list.append


def test_a_claim_that_cannot_be_asked_is_unknown_in_one_process_and_in_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """It breaks no promise; the reason says where, and shows no address."""
    (alone,) = proving.prove_all({"toy": [BROKEN]}, jobs=1)
    answers = Kept()
    monkeypatch.setattr(proving, "_answers", answers)
    monkeypatch.setattr(proving, "claims_of", lambda name: [BROKEN])
    proving._prove_one("toy", ())
    ((_, _, answer),) = answers
    assert alone.answer == answer
    assert answer.status == UNKNOWN
    assert re.fullmatch(
        r"it could not be put to the solver: \S+\.cannot_be_asked, line \d+: KeyError: names", answer.told
    )


def test_what_cannot_say_what_it_claims_is_told_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function whose types are not known has no formula."""
    monkeypatch.setattr(proving, "names", lambda: ["toy"])
    monkeypatch.setattr(proving, "claims_of", lambda name: cannot_be_asked())
    with pytest.raises(Unreadable, match=r"^toy: \S+\.cannot_be_asked, line \d+: KeyError"):
        proving.wanted()


def dies(name: str, guarantees: tuple[str, ...]) -> None:
    """Do what a worker does that the system kills."""
    os._exit(1)


def raises(name: str, guarantees: tuple[str, ...]) -> None:
    """Do what a worker does whose claim cannot be put."""
    raise RuntimeError(f"{name} cannot be read")


@pytest.mark.parametrize(
    ("work", "reason"), [(dies, "the process that was to prove it died"), (raises, "cannot be read")]
)
def test_a_worker_that_does_not_answer_leaves_its_claims_unknown(
    work: object, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is silently dropped: every claim comes back, and none as proved."""
    monkeypatch.setattr(proving, "_prove_one", work)
    claims = proving.wanted(protocols=SMALL[:2])
    found = list(proving.prove_all(claims, jobs=2))
    assert sorted(each.sentence for each in found) == sorted(
        claim.sentence for each in claims.values() for claim in each
    )
    assert {each.answer.status for each in found} == {UNKNOWN}
    assert all(reason in each.answer.told for each in found)


def test_no_two_claims_of_a_protocol_are_told_alike() -> None:
    """A record is found by its words."""
    for name in names():
        told = [claim.sentence for claim in claims_of(name)]
        assert len(told) == len(set(told)), name


def test_every_sentence_is_the_first_line_of_a_docstring() -> None:
    """A function without one would be told by its name; sentences begin with a capital letter and fit a line."""
    for spec in specifications().values():
        for function, formula in spec.formulas.items():
            assert function.__doc__, f"{spec.name}: {function.__name__}"
            assert formula.sentence[0].isupper(), formula.sentence


def test_both_columns_are_filled() -> None:
    """The runtime's own protocols and the published ones are both there."""
    whose = {spec.whose for spec in specifications().values()}
    assert whose == {OURS, PUBLISHED}
