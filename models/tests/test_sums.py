"""The lemmas about sums over any number of callers, and that each of them can fail."""

from __future__ import annotations

from dataclasses import replace

import pytest
import z3

from failstop.models.claim import OURS, PROVED, REFUTED, solve
from failstop.models.theories import sums
from failstop.models.theories.natural import nothing
from failstop.models.theories.sums import CAP, MOST, NAMED, REST_G, F, G, I, J, K, Sum, over, part

LEMMAS = {
    "not negative": sums.NOT_NEGATIVE,
    "two": sums.AT_LEAST_TWO,
    "three": sums.AT_LEAST_THREE,
    "split": sums.SPLIT,
    "difference": sums.DIFFERENCE,
    "monotone": sums.MONOTONE,
    "monotone rest": sums.MONOTONE_REST,
    "nothing left": sums.NOTHING_LEFT,
    "overruns": sums.OVERRUNS,
    "reached": sums.REACHED,
}
WITHOUT_HYPOTHESIS = (
    "not negative",
    "two",
    "three",
    "monotone",
    "monotone rest",
    "nothing left",
    "overruns",
    "reached",
)


@pytest.mark.parametrize("claim", sums.claims(), ids=lambda claim: claim.sentence)
def test_each_lemma_is_proved_in_no_time(claim):
    """It is ours, and its questions take far less than a second."""
    answer = claim.ask()
    assert (answer.status, claim.whose) == (PROVED, OURS), answer.told
    assert answer.seconds < 2


def test_the_bound_is_met_by_two_who_overrun_by_five():
    """The witness names three callers, one of whom keeps to its estimate."""
    told = sums.example_of_the_bound().told
    assert told.startswith("3 callers; f = [")
    assert sorted(told.split("[")[1].split("]")[0].split(", ")) == ["0", "5", "5"]


@pytest.mark.parametrize("name", LEMMAS)
def test_what_a_lemma_assumes_can_be_of_a_sum(name):
    """Three callers satisfy it, with a sum that is not zero, so nothing is proved from a contradiction."""
    lemma = LEMMAS[name]
    wanted = z3.Sum([F[caller] for caller in range(3)]) > 0
    assert solve(*lemma.first(3), wanted)[0] == z3.sat


@pytest.mark.parametrize("name", WITHOUT_HYPOTHESIS)
def test_a_lemma_without_its_hypothesis_is_refuted(name):
    """A small case shows it."""
    answer = replace(LEMMAS[name], given=nothing).ask()
    assert answer.status == REFUTED
    assert "f = [" in answer.told


@pytest.mark.parametrize("name", ["two", "three", "split"])
def test_callers_who_may_be_the_same_are_refuted(name):
    """One term would be counted twice."""
    assert replace(LEMMAS[name], fixed=()).ask().status == REFUTED


WRONG = {
    "a sum is at least twice a term": over(lambda n: Sum(F, n) >= 2 * part((I,), n), F, given=sums.not_below_zero(F)),
    "the rest keeps a named caller": over(
        lambda n: Sum(F, n) == part(NAMED, n) + Sum(sums.without(F, (I, J)), n),
        F,
        sums.without(F, (I, J)),
        fixed=(z3.Distinct(I, J, K),),
    ),
    "a change adds the whole new term": over(
        lambda n: Sum(sums.CHANGED, n) == Sum(F, n) + z3.If(sums.among(I, n), sums.VALUE, 0), F, sums.CHANGED
    ),
    "monotone the other way": replace(sums.MONOTONE, holds=lambda n: Sum(G, n) <= Sum(F, n)),
    "strictly monotone": replace(sums.MONOTONE, holds=lambda n: Sum(F, n) < Sum(G, n)),
    "the rest of the other": replace(sums.MONOTONE_REST, holds=lambda n: Sum(REST_G, n) <= Sum(sums.REST, n)),
    "zero the other way": replace(sums.NOTHING_LEFT, holds=lambda n: z3.Implies(Sum(F, n) == 0, Sum(G, n) == 0)),
    "one less than N overrun": replace(
        sums.OVERRUNS, holds=lambda n: z3.Implies(Sum(G, n) <= CAP, Sum(F, n) <= (CAP - 1) * MOST)
    ),
    "the sum stays below e": replace(sums.OVERRUNS, holds=lambda n: Sum(F, n) <= MOST),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_lemma_is_refuted_by_a_small_case(name):
    """The counterexample shows the terms of at most four callers."""
    answer = WRONG[name].ask()
    assert answer.status == REFUTED
    assert answer.told[0] in "01234"
