"""The prover on protocols that one can count by hand: it proves what is true, and tells what is false step by step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from failstop.models.claim import OURS, PROVED, REFUTED, UNKNOWN, Answer
from failstop.models.induction import Proofs
from failstop.models.specification import Goal, Invariant, Law, Specification
from failstop.models.symbolic import Unreadable
from failstop.models.tests import toys


def answers(spec: Specification) -> dict[str, Answer]:
    """Ask everything about a specification, by its sentence."""
    return {claim.sentence: claim.ask() for claim in Proofs(spec).claims()}


def answer_to(spec: Specification, claimed: object) -> Answer:
    """Ask for one invariant, law or goal."""
    sentence = spec.formulas[claimed].sentence
    return answers(spec)[sentence]


def test_all_that_is_true_of_a_safe_protocol_is_proved() -> None:
    """Invariants, laws, totals and ways there, for any number of people."""
    assert {answer.status for answer in answers(toys.SAFE).values()} == {PROVED}


def test_a_race_is_told_as_the_shortest_story() -> None:
    """Two read the counter before either is counted: four steps, no fewer, and the broken promise last."""
    answer = answer_to(toys.RACY, toys.no_more_than_allowed)
    assert answer.status == REFUTED
    lines = answer.told.splitlines()
    story = [line.partition(": ")[2] or line for line in lines if line[0].isdigit()]
    assert [step.partition(" (")[0] for step in story] == [
        "counted 0, inside 0, bags 0",
        "somebody reads the counter, and it is below the limit",
        "somebody reads the counter, and it is below the limit",
        "somebody who was let through enters, and is counted",
        "somebody who was let through enters, and is counted",
    ]
    assert (lines[0], lines[-1]) == ("with most 1", "broken: No more are inside than the limit says")
    assert lines[-2].startswith("     counted 2, inside 2, bags ")


def test_an_effect_that_is_skipped_is_found() -> None:
    """Somebody who vanishes and stays counted breaks the count, in two steps."""
    answer = answer_to(toys.LEAKY, toys.counted)
    assert answer.status == REFUTED
    assert "2. " in answer.told
    assert "3. " not in answer.told


def test_what_is_true_but_not_inductive_is_not_proved() -> None:
    """The sum of bags needs the order of the terms; without it the solver says no more than it knows."""
    spec = replace(toys.SAFE, at_most=())
    answer = answer_to(spec, toys.bags_belong_to_people)
    assert (answer.status, answer.told.splitlines()[0]) == (
        UNKNOWN,
        "not inductive, and no way there from the start was found:",
    )


def test_what_fails_too_far_from_the_start_is_unknown_and_not_refuted() -> None:
    """A search that ends before it finds anything proves nothing, and a step from nowhere refutes nothing."""
    spec = replace(toys.SAFE, invariants=(*toys.SAFE.invariants, Invariant("G2", toys.below_a_thousand)))
    assert answer_to(spec, toys.below_a_thousand).status == UNKNOWN


def test_a_sentence_about_two_is_about_any_two() -> None:
    """With a limit of one it is true, with a limit of two it is not."""
    pairs = replace(toys.SAFE, invariants=(*toys.SAFE.invariants, Invariant("G2", toys.never_two)), laws=(), goals=())
    assert answer_to(pairs, toys.never_two).status == REFUTED
    one = replace(pairs, given=(at_most_one,))
    assert answer_to(one, toys.never_two).status == PROVED


def at_most_one(limits: toys.Limits) -> bool:
    """The limit is one or none at all may enter."""
    return 0 <= limits.most <= 1


def test_a_law_that_a_step_breaks_is_told_with_the_step() -> None:
    """The last line names the law, the line before the step that breaks it."""
    answer = answer_to(replace(toys.SAFE, laws=(Law("G2", toys.only_upwards),)), toys.only_upwards)
    assert answer.status == REFUTED
    assert answer.told.splitlines()[-1] == "broken: The counter never goes down"
    assert "somebody leaves" in answer.told.splitlines()[-3]


def test_a_law_about_one_action_is_not_held_against_others() -> None:
    """Entering never counts downwards, though leaving does."""
    law = Law("G2", toys.only_upwards, (toys.enter_at_once,))
    assert answer_to(replace(toys.SAFE, laws=(law,)), toys.only_upwards).status == PROVED


def test_a_goal_out_of_reach_is_unknown() -> None:
    """Nobody may take an empty promise for a proof."""
    answer = answer_to(replace(toys.SAFE, goals=(Goal("G2", toys.a_thousand_are_inside),)), toys.a_thousand_are_inside)
    assert (answer.status, answer.told) == (UNKNOWN, "nothing was found within 8 steps of 3 callers")


def test_what_rests_on_a_false_invariant_is_not_proved() -> None:
    """With the sentence that the counter is a thousand anything follows, until that sentence itself has failed."""
    false = Invariant("G2", toys.is_a_thousand)
    spec = replace(toys.LEAKY, invariants=(false, *toys.LEAKY.invariants))
    told = answers(spec)
    assert told["The counter is a thousand"].status == REFUTED
    assert told["The counter is the number of people inside"].status == REFUTED
    assert told["People have one bag at most, and only inside"].status == PROVED


def test_what_rests_on_totals_that_cannot_be_split_is_unknown() -> None:
    """A term below zero takes every proof with it that the solver found."""
    told = answers(replace(toys.SAFE, terms=(below_zero, toys.bags), goals=()))
    assert told["People have one bag at most, and only inside"].status == UNKNOWN


def test_an_action_that_cannot_happen_is_unknown() -> None:
    """Somebody enters after a check that nobody can make: the action is dead."""
    spec = replace(toys.SAFE, actions=(toys.enter_at_once, toys.leave, toys.enter))
    told = answers(spec)
    assert told["it can happen that somebody who was let through enters, and is counted"].status == UNKNOWN


def test_totals_are_split_only_if_their_terms_allow_it() -> None:
    """A term below zero could hide what others hold."""
    spec = replace(toys.SAFE, terms=(below_zero, toys.bags))
    assert answers(spec)["every total starts at zero, and no caller's part of it is ever negative"].status == REFUTED


def below_zero(call: toys.Person) -> int:
    """A term that is negative inside."""
    return -1 if call.place == toys.INSIDE else 0


@pytest.mark.parametrize("name", ["after", "total", "other", "call_after"])
def test_what_the_environment_chooses_has_a_name_of_its_own(name: str) -> None:
    """A parameter called like the state after the step would be taken for it by every law."""
    scope: dict[str, Any] = {"Hall": toys.Hall}
    exec(f"def moves(world: Hall, {name}: int) -> Hall:\n    return Hall({name})", scope)  # noqa: S102 - four alike
    with pytest.raises(ValueError, match=f"safe turnstile.moves: {name}; a parameter of an action is called otherwise"):
        replace(toys.SAFE, actions=(scope["moves"],))


def shift(world: toys.Hall, rest: toys.Totals) -> toys.Hall | None:
    """The counter goes down by a choice that is called like the rest of a total."""
    if rest.inside >= 0:
        return None
    return toys.Hall(world.counted - 1)


def test_what_the_environment_chooses_is_not_mistaken_for_the_rest_of_a_total() -> None:
    """A rest is never below zero, and a choice may be."""
    spec = replace(toys.SAFE, actions=(*toys.SAFE.actions, shift))
    assert answer_to(spec, toys.counted).status == REFUTED


def turned(world: toys.Pair) -> Any:
    """The numbers come back in the other order, by their names."""
    return toys.Turned(first=1, second=world.second)


def caller_first(world: toys.Hall, call: toys.Person) -> Any:
    """The caller comes back before the world."""
    return call, world


def more_than_the_world(world: toys.Hall) -> Any:
    """A caller comes back whom nobody gave."""
    return world, toys.OUTSIDE


def half_a_hall(world: toys.Hall) -> Any:
    """A truth value comes back for a number."""
    return toys.Hall(world.counted > 0)


def a_person_at_first() -> Any:
    """It begins with a person for a hall."""
    return toys.Person(0, 0)


def a_number_for_a_truth(world: toys.Hall) -> Any:
    """A promise gives a number."""
    return world.counted


def about_another(world: toys.Other) -> bool:
    """A promise takes the state for another record."""
    return world.bags >= 0


def empty_pair() -> toys.Pair:
    """Two zeros."""
    return toys.Pair(0, 0)


def first_is_zero(world: toys.Pair) -> bool:
    """The first number is zero."""
    return world.first == 0


PAIRS = Specification(
    name="pairs",
    whose=OURS,
    promise="The first number stays zero.",
    limits=toys.Limits,
    world=toys.Pair,
    start=empty_pair,
    actions=(turned,),
    invariants=(Invariant("G2", first_is_zero),),
)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (PAIRS, r"test_induction\.turned, line \d+: it gives Turned\(int, int\); expected Pair\(int, int\)"),
        (replace(toys.SAFE, actions=(caller_first,)), r"caller_first, line \d+: it gives \(Person\(.*Hall\(.*expected"),
        (
            replace(toys.SAFE, actions=(more_than_the_world,)),
            r"more_than_the_world, line \d+: .*; expected Hall\(int\)",
        ),
        (
            replace(toys.SAFE, actions=(half_a_hall,)),
            r"half_a_hall, line \d+: it gives Hall\(bool\); expected Hall\(int\)",
        ),
        (replace(toys.SAFE, start=a_person_at_first), r"a_person_at_first, line \d+: it gives Person\(.*expected Hall"),
        (replace(toys.SAFE, new=toys.Other(0, 0)), r"safe turnstile: new: it is given Other\(.*; expected Person\("),
        (replace(toys.SAFE, given=(about_another,)), r"about_another, line \d+: world is Other; expected Hall"),
        (
            replace(toys.SAFE, given=(a_number_for_a_truth,)),
            r"a_number_for_a_truth, line \d+: it gives int; expected bool",
        ),
        (replace(toys.SAFE, outcomes={"verdict": (1,)}), r"safe turnstile: outcomes of verdict, which is no field"),
        (replace(toys.SAFE, terms=(toys.inside,)), r"safe turnstile: 1 terms; expected the totals inside, bags"),
        (
            replace(toys.SAFE, laws=(Law("G2", toys.only_upwards, (toys.enter,)),)),
            r"toys\.only_upwards, line \d+: a law of enter, which is no action of safe turnstile",
        ),
    ],
)
def test_a_record_of_another_kind_is_refused_by_function_and_line(spec: Specification, said: str) -> None:
    """Told by their places alone, the numbers of one record would be taken for those of another."""
    claim = next(Proofs(spec).claims())
    with pytest.raises(Unreadable, match=said):
        claim.ask()


def test_the_monitor_names_what_plain_values_break() -> None:
    """The same sentences judge a real run."""
    inside = toys.Person(toys.INSIDE, 1)
    limits = toys.Limits(1)
    assert toys.SAFE.broken(limits, toys.Hall(1), [inside]) == []
    assert toys.SAFE.broken(limits, toys.Hall(1), [inside, inside]) == [
        "The counter is the number of people inside",
        "No more are inside than the limit says",
    ]
