"""The decorator enrols; what nothing could check is refused when it is written, not when it is played."""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, cast

import pytest

from failstop.planners import catalogue
from failstop.planners.actions import Call
from failstop.planners.catalogue import ENDINGS, GUARANTEES, bundled, load, planner
from failstop.runtime.limits import Limits
from failstop.runtime.stops import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from failstop.planners.actions import Plan

TEN_LINES = '''\
from failstop.planners.actions import Call
from failstop.planners.catalogue import planner
from failstop.runtime.limits import Limits

@planner(Limits(max_steps=2), ends_in="steps", dispatches=2)
def my_own():
    """Search without end."""
    while True:
        yield Call("search", {"query": "cats"})
'''


@pytest.fixture(autouse=True)
def own_catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test enrols is gone after it; what enrols itself on import, once a process, is not lost."""
    bundled()
    monkeypatch.setattr(catalogue, "_known", dict(catalogue._known))


class TestEnrolling:
    """One decorator is all it takes."""

    def test_the_name_comes_from_the_function_and_the_purpose_from_its_docstring(self) -> None:
        """Nothing is said twice."""

        @planner(Limits(max_steps=1), ends_in="steps")
        def does_this_and_that() -> Plan:
            """Do this and that.

            And much more.
            """
            yield Call("search")

        known = catalogue._known["does-this-and-that"]
        assert known.tries == "Do this and that"
        assert known.limits == Limits(max_steps=1)

    @pytest.mark.parametrize(
        ("ends_in", "promise", "guarantee"),
        [
            ("cost", "cost", "G1"),
            ("steps", "steps", "G2"),
            ("retries", "retries", "G3"),
            ("time", "deadline", "G5"),
            ("repeats", "repeats", "loop"),
            ("approval", "approval", "approval"),
            ("failed", "planner_errors", "loop"),
            ("completed", "happy", "happy-path"),
        ],
    )
    def test_the_ending_implies_promise_and_guarantee(self, ends_in: str, promise: str, guarantee: str) -> None:
        """A planner that says only where it must end says enough."""

        @planner(Limits(), ends_in=ends_in)
        def is_short() -> Plan:
            """Be short."""
            yield Call("search")

        known = catalogue._known["is-short"]
        assert (known.promises, known.guarantee) == ((promise,), guarantee)

    def test_a_planner_that_takes_an_argument_is_given_the_source_of_chance(self) -> None:
        """Chance is passed in, so a seed replays it."""

        @planner(Limits(), ends_in="completed")
        def gambles(random: Random) -> Plan:
            """Gamble."""
            yield random.random()

        chance = [Random(7) for _ in range(3)]
        assert {next(catalogue._known["gambles"].plan(each)) for each in chance} == {0.32383276483316237}


class TestRefusals:
    """A claim that nothing can check is a mistake in the planner."""

    def test_an_unknown_promise_is_refused_by_name(self) -> None:
        """A misspelt promise would make every target `not offered`."""
        with pytest.raises(ConfigurationError, match="stepz"):
            planner(Limits(), ends_in="steps", promises=["stepz"])

    def test_an_unknown_ending_is_refused_by_name(self) -> None:
        """No run could ever end so."""
        with pytest.raises(ConfigurationError, match="stepss"):
            planner(Limits(), ends_in="stepss")

    def test_a_planner_without_a_purpose_is_refused(self) -> None:
        """The docstring is what everybody reads."""
        with pytest.raises(ConfigurationError, match="silent"):

            @planner(Limits(), ends_in="steps")
            def silent() -> Plan:
                yield Call("search")

    def test_a_name_that_another_module_uses_is_refused(self) -> None:
        """One would silently replace the other."""
        with pytest.raises(ConfigurationError, match="never-finishes"):

            @planner(Limits(), ends_in="steps")
            def never_finishes() -> Plan:
                """Pretend to be another."""
                yield Call("search")

    @pytest.mark.parametrize(
        ("field", "claims"),
        [
            ("limits", {"limits": {"max_steps": 5}}),
            ("ends_in", {"ends_in": None}),
            ("ends_in", {"ends_in": "never"}),
            ("promises", {"promises": "steps"}),
            ("promises", {"promises": 5}),
            ("promises", {"promises": [["steps"]]}),
            ("guarantee", {"guarantee": "G7"}),
            ("spent", {"spent": "a lot"}),
            ("spent", {"spent": float("nan")}),
            ("dispatches", {"dispatches": "5"}),
            ("dispatches", {"dispatches": True}),
            ("dispatches", {"dispatches": (5, 2)}),
            ("retries", {"retries": -1}),
            ("irreversible", {"irreversible": (1, 2, 3)}),
        ],
    )
    def test_a_claim_of_the_wrong_type_is_refused_by_name(self, field: str, claims: dict[str, Any]) -> None:
        """It would crash the check, or be held against a target."""
        with pytest.raises(ConfigurationError, match=f"^{field} is"):
            planner(**{"limits": Limits(), "ends_in": "steps", **claims})

    def test_a_function_that_yields_nothing_is_refused(self) -> None:
        """A forgotten yield, a returned list and a coroutine are mistakes of the planner and no breach of a target."""

        def forgets() -> list[Call]:
            """Return what should be yielded."""
            return [Call("search")]

        async def waits() -> None:
            """Be a coroutine."""

        async def streams() -> AsyncIterator[Call]:
            """Be an asynchronous generator."""
            yield Call("search")

        for wrong in (forgets, waits, streams, Call("search")):
            with pytest.raises(ConfigurationError, match="yields its actions"):
                planner(Limits(), ends_in="steps")(cast("Any", wrong))

    def test_a_planner_that_asks_for_two_arguments_is_refused(self) -> None:
        """Only the source of chance is handed out."""
        with pytest.raises(ConfigurationError, match="source of chance"):

            @planner(Limits(), ends_in="steps")
            def asks_too_much(random: Random, clock: object) -> Plan:
                """Ask for the time as well."""
                yield Call("search")

    def test_two_planners_of_one_name_in_one_module_are_refused(self) -> None:
        """The second would silently replace the first."""

        def first() -> Plan:
            """Be the first."""
            yield Call("search")

        def second() -> Plan:
            """Be the second."""
            yield Call("search")

        second.__name__, second.__qualname__ = first.__name__, first.__qualname__
        enrol = planner(Limits(), ends_in="steps")
        enrol(first)
        enrol(first)
        with pytest.raises(ConfigurationError, match="a name of its own"):
            enrol(second)

    @pytest.mark.parametrize("ending", ENDINGS)
    def test_every_ending_stands_for_a_guarantee(self, ending: str) -> None:
        """One that does not would crash the check that plays it."""

        @planner(Limits(), ends_in=ending)
        def is_brief() -> Plan:
            """Be brief."""
            yield Call("search")

        assert catalogue._known["is-brief"].guarantee in GUARANTEES


class TestLoading:
    """Bundled planners are found by their file, a user's by their module."""

    def test_every_bundled_planner_says_what_the_witness_must_see(self) -> None:
        """Without a number of dispatches, a target that refuses everything could pass."""
        for known in bundled().values():
            assert known.expected.dispatches is not None or known.expected.retries is not None, known.name

    def test_the_bundled_planners_are_all_there(self) -> None:
        """A family that is not imported any more would be missed by nobody."""
        folder = Path(catalogue.__file__).parent
        families = {path.stem for path in folder.glob("*.py") if "\n@planner(" in path.read_text()}
        assert {known.module.rpartition(".")[2] for known in bundled().values()} == families
        assert len(bundled()) >= 60

    def test_ten_lines_make_a_planner(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A user's module is loaded by its name, and is no part of what is bundled."""
        (tmp_path / "ten_lines_of_a_user.py").write_text(TEN_LINES)
        monkeypatch.syspath_prepend(tmp_path)
        try:
            theirs = load("ten_lines_of_a_user")
        finally:
            sys.modules.pop("ten_lines_of_a_user", None)
        assert len(TEN_LINES.splitlines()) <= 10
        assert list(theirs) == ["my-own"]
        assert "my-own" not in bundled()
