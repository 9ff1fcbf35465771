"""Tools, their tiers and the values that are frozen for them."""

from __future__ import annotations

import contextlib
import copy
import datetime as dt
import fractions
import json
import pathlib
import uuid
import zoneinfo
from decimal import Decimal
from typing import Any

import pytest

from failstop.runtime.agent.tools import Tool, ToolRegistry
from failstop.runtime.frozen import MAX_DEPTH, TooDeepError, frozen, thawed, unfreezable
from failstop.runtime.policies.retry import RetryContainer
from failstop.runtime.risk import RiskTier, highest_of_parts, shell_tier, tier_of
from failstop.runtime.stops import ConfigurationError


def plain(**options: Any) -> Tool:
    """Make a tool with some options changed."""
    return Tool(**{"name": "t", "fn": lambda: None, "tier": RiskTier.READ, "cost": 0, **options})


# Registration --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", 3),
        ("fn", "not callable"),
        ("tier", 1),
        ("tier", None),
        ("tier", "READ"),
        ("reserve", float("nan")),
        ("reserve", -1),
        ("cost", True),
        ("isolate", "fork"),
        ("idempotent", 1),
        ("retries", -1),
        ("retries", True),
        ("retries", "3"),
    ],
)
def test_a_tool_that_makes_no_sense_is_refused_by_field(field: str, value: object) -> None:
    """Nothing of a tool is found out to be wrong only when the agent calls it (G6)."""
    with pytest.raises(ConfigurationError) as refused:
        plain(**{field: value})
    assert refused.value.field == field


def test_a_tier_must_be_declared() -> None:
    """There is no default tier: forgetting it is an error and not READ."""
    with pytest.raises(TypeError, match="tier"):
        Tool(name="t", fn=lambda: None)  # type: ignore[call-arg]  # the point of the test


@pytest.mark.parametrize("retries", [1, RetryContainer(2)])
def test_a_tool_that_is_not_idempotent_cannot_be_retried(retries: object) -> None:
    """A second call would be a second effect."""
    with pytest.raises(ConfigurationError, match="retries"):
        plain(idempotent=False, retries=retries)


def test_a_cost_read_afterwards_cannot_reserve_nothing() -> None:
    """A zero reservation would hold nothing against a cost that it may well have (G1)."""
    with pytest.raises(ConfigurationError, match="reserve"):
        plain(reserve=0, cost=lambda value: value)


async def _async_fn() -> None:
    """Do nothing."""


@pytest.mark.parametrize(
    "options", [{"with_context": True, "isolate": "process"}, {"fn": _async_fn, "isolate": "thread"}]
)
def test_isolation_that_cannot_work_is_refused(options: dict[str, Any]) -> None:
    """A context does not cross into another process, and an async tool is cancelled as it is."""
    with pytest.raises(ConfigurationError, match="isolate"):
        plain(**options)


def test_a_name_is_given_once() -> None:
    """A tool that was approved by name cannot be replaced by another of that name."""
    first = plain()
    registry = ToolRegistry([first])
    with pytest.raises(ConfigurationError, match="name"):
        registry.register(plain())
    assert registry.get("t") is first
    assert list(registry) == [first]


# Tiers ---------------------------------------------------------------------------------------------------------------


def test_tiers_are_ordered_by_harm() -> None:
    """READ < WRITE < EXTERNAL < IRREVERSIBLE."""
    assert sorted(RiskTier) == [RiskTier.READ, RiskTier.WRITE, RiskTier.EXTERNAL, RiskTier.IRREVERSIBLE]


@pytest.mark.parametrize("said", [0, None, False, "READ", 2.0])
def test_what_is_not_a_tier_is_the_highest(said: object) -> None:
    """A rule that answers 0 has not said READ."""
    assert tier_of(lambda _: said, {}) is RiskTier.IRREVERSIBLE  # type: ignore[arg-type,return-value]  # the point


def test_a_rule_that_raises_means_the_highest_tier() -> None:
    """What cannot be judged is not safe."""
    assert plain(tier=lambda args: args["missing"]).tier_for({}) is RiskTier.IRREVERSIBLE


def test_a_rule_cannot_change_the_arguments_that_it_judges() -> None:
    """It gets a copy."""
    args: dict[str, Any] = {"rows": [1]}

    def rule(given: Any) -> RiskTier:
        given["rows"].append(2)
        return RiskTier.WRITE

    assert plain(tier=rule).tier_for(args) is RiskTier.WRITE
    assert args == {"rows": [1]}


def test_a_composite_call_has_the_highest_tier_of_its_parts() -> None:
    """One risky part makes the whole call risky, wherever it stands (field case 7)."""
    rule = highest_of_parts(lambda args: args["ops"], {"get": RiskTier.READ, "put": RiskTier.WRITE}.__getitem__)
    assert tier_of(rule, {"ops": ["get", "put", "get"]}) is RiskTier.WRITE
    assert tier_of(rule, {"ops": ["get"]}) is RiskTier.READ


@pytest.mark.parametrize("ops", [[], ["get", "drop"], None])
def test_a_composite_call_that_is_not_understood_has_the_highest_tier(ops: object) -> None:
    """No part, an unknown part, or nothing that can be split."""
    rule = highest_of_parts(lambda args: args["ops"], {"get": RiskTier.READ}.__getitem__)
    assert tier_of(rule, {"ops": ops}) is RiskTier.IRREVERSIBLE


def test_a_part_whose_tier_is_a_bare_number_makes_the_call_the_highest() -> None:
    """The parts are held to the same rule as the whole."""
    tiers: Any = {"get": RiskTier.READ, "put": 0}
    rule = highest_of_parts(lambda args: args["ops"], tiers.__getitem__)
    assert tier_of(rule, {"ops": ["put"]}) is RiskTier.IRREVERSIBLE
    assert tier_of(rule, {"ops": ["get", "put"]}) is RiskTier.IRREVERSIBLE


SHELL = shell_tier({"ls": RiskTier.READ, "sort": RiskTier.READ, "touch": RiskTier.WRITE})


@pytest.mark.parametrize("command", ["ls", "ls -l /tmp", "ls -l | sort", "ls; ls;", " ls ", "ls 'my file'"])
def test_shell_text_of_listed_commands_has_their_tier(command: str) -> None:
    """A rule that gated everything would be of no use."""
    assert tier_of(SHELL, {"command": command}) is RiskTier.READ


@pytest.mark.parametrize("command", ["ls; touch x", "ls\ntouch x", "ls | touch x", "ls && touch x", "ls & touch x"])
def test_shell_text_has_the_highest_tier_of_its_commands(command: str) -> None:
    """Whatever joins the commands."""
    assert tier_of(SHELL, {"command": command}) is RiskTier.WRITE


@pytest.mark.parametrize(
    "command",
    [
        "ls; rm -rf /",
        "ls\nrm -rf /",
        "ls | sh",
        "ls || rm x",
        "ls $(rm x)",
        "ls `rm x`",
        "ls > /etc/passwd",
        "ls <(rm x)",
        "ls \\\n; rm x",
        "ls\rrm x",
        "ls\u2028rm x",
        "ls\x00rm",
        "(rm x)",
        "{ rm x; }",
        "X=1 rm x",
        "./ls",
        'ls "a;b"',
        "",
        "  ;; ",
    ],
)
def test_shell_text_that_may_do_more_has_the_highest_tier(command: str) -> None:
    """A safe prefix lends nothing to its tail, and what is not plainly parsed is not safe (field case 7)."""
    assert tier_of(SHELL, {"command": command}) is RiskTier.IRREVERSIBLE


@pytest.mark.parametrize("args", [{}, {"command": None}, {"command": ["ls"]}, {"command": b"ls"}])
def test_shell_text_that_is_no_text_has_the_highest_tier(args: dict[str, Any]) -> None:
    """Nothing to parse is not nothing to fear."""
    assert tier_of(SHELL, args) is RiskTier.IRREVERSIBLE


# Frozen values -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "edit",
    [
        lambda value: value.clear(),
        lambda value: value.update(a=1),
        lambda value: value.__setitem__("a", 1),
        lambda value: value.pop("rows"),
        lambda value: value.setdefault("b", 1),
        lambda value: value["rows"].append(3),
        lambda value: value["rows"].__setitem__(0, 9),
        lambda value: value["rows"].sort(),
        lambda value: value["rows"].__iadd__([1]),
        lambda value: value["rows"][0].pop(),
    ],
)
def test_a_frozen_value_refuses_every_edit(edit: Any) -> None:
    """An edit raises and changes nothing."""
    value = frozen({"rows": [[1], 2]})
    with pytest.raises(TypeError, match="read-only"):
        edit(value)
    assert value == {"rows": [[1], 2]}


def test_a_frozen_value_does_not_follow_its_original() -> None:
    """Whoever kept a reference keeps a reference to something else."""
    original: dict[str, Any] = {"rows": [1]}
    value = frozen(original)
    original["rows"].append(2)
    original["new"] = 1
    assert value == {"rows": [1]}


def test_a_frozen_value_can_be_written_as_json_and_copied_for_editing() -> None:
    """A planner that writes its history into a prompt is not hindered."""
    value = frozen({"rows": [1, {"a": None}]})
    assert json.loads(json.dumps(value)) == value
    editable = copy.deepcopy(value)
    editable["rows"][1]["a"] = 1
    assert value["rows"][1]["a"] is None


def test_thawed_values_are_ordinary_and_separate() -> None:
    """A tool may change its arguments; the frozen ones stay."""
    value = frozen({"rows": [1], "raw": bytearray(b"x")})
    args = thawed(value)
    args["rows"].append(2)
    assert (type(args), type(args["rows"])) == (dict, list)
    assert value == {"rows": [1], "raw": b"x"}


def test_a_value_inside_itself_keeps_its_shape() -> None:
    """A cycle is copied as a cycle."""
    loop: dict[str, Any] = {"a": []}
    loop["a"].append(loop)
    copied = frozen(loop)
    assert copied["a"][0] is copied
    assert copied is not loop


def test_a_dict_that_answers_differently_each_time_is_read_once() -> None:
    """What a subclass overrides is not asked."""

    class Liar(dict[str, Any]):
        def items(self) -> Any:
            raise AssertionError("asked")

        def __getitem__(self, key: str) -> Any:
            raise AssertionError("asked")

    assert frozen(Liar(a=1)) == {"a": 1}


def test_what_cannot_be_frozen_is_named() -> None:
    """An object could be changed behind a copy's back."""

    class Account:
        pass

    assert unfreezable({"to": [Account()]}) == "Account"
    assert unfreezable({"to": ["x", 1, 2.5, None, b"", (1,), {2}]}) == ""


def _inside(value: Any, slot: str, other: Any) -> Any:
    object.__setattr__(value, slot, other)
    return value


def test_values_that_python_only_calls_unchangeable_are_made_anew() -> None:
    """Fractions, UUIDs and paths keep what they are in slots that anybody with a reference can set."""
    half, name, path = fractions.Fraction(1, 2), uuid.UUID(int=7), pathlib.PurePosixPath("/home/scratch")
    value = frozen({"amount": half, "id": [name], "where": path})
    _inside(half, "_numerator", 10**6)
    _inside(name, "int", 8)
    _inside(path, "_str", "/etc")
    assert str(path) == "/etc"
    assert value["amount"] == fractions.Fraction(1, 2)
    assert value["id"] == [uuid.UUID(int=7)]
    assert str(value["where"] / "data") == "/home/scratch/data"


def test_a_path_that_shows_another_than_it_opens_is_made_into_the_one_it_shows() -> None:
    """What was approved is the text that the person saw."""
    path = pathlib.PurePosixPath("/home/scratch")
    assert str(path) == "/home/scratch"
    for slot, parts in (("_parts", ["/", "etc"]), ("_tail_cached", ["etc"])):
        with contextlib.suppress(AttributeError):
            _inside(path, slot, parts)
    value = frozen([path])[0]
    assert (str(value), str(value / "data")) == ("/home/scratch", "/home/scratch/data")


@pytest.mark.parametrize(
    "value",
    [
        pathlib.PurePosixPath("/a//b/../c"),
        pathlib.PureWindowsPath("c:/a"),
        pathlib.Path(),
        fractions.Fraction(-3, 9),
        uuid.UUID(int=2**128 - 1),
        dt.datetime(2030, 1, 1, tzinfo=zoneinfo.ZoneInfo("UTC"), fold=1),
        dt.datetime(2030, 1, 1, tzinfo=dt.UTC),
        dt.time(1, 2, 3, 4),
        dt.timedelta(1),
        Decimal("1.20"),
    ],
    ids=repr,
)
def test_what_is_made_anew_is_the_same(value: Any) -> None:
    """And needs no person to judge whether it is."""
    copied = frozen([value])
    assert (copied, repr(copied[0]), unfreezable([value])) == ([value], repr(value), "")


class _Drifting(dt.tzinfo):
    """A zone whose offset somebody can change."""

    def utcoffset(self, _: Any) -> dt.timedelta:
        return dt.timedelta(0)


@pytest.mark.parametrize(
    "value",
    [
        dt.datetime(2030, 1, 1, tzinfo=_Drifting()),
        dt.time(tzinfo=_Drifting()),
        _inside(fractions.Fraction(1), "_numerator", 0.5),
        _inside(fractions.Fraction(1), "_denominator", 0),
        _inside(uuid.UUID(int=1), "int", "7"),
    ],
    ids=["datetime", "time", "numerator", "denominator", "uuid"],
)
def test_what_cannot_be_made_anew_cannot_be_approved(value: Any) -> None:
    """A time zone of anybody's own may answer differently each time, and so may a value that was tampered with."""
    assert unfreezable({"when": [value]}) == type(value).__name__


def test_values_too_deep_to_copy_are_refused_and_not_a_crash() -> None:
    """The interpreter's stack is no limit to lean on."""
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(TooDeepError):
        frozen(deep)
    nested: list[Any] = []
    for _ in range(MAX_DEPTH - 1):
        nested = [nested]
    assert frozen(nested) == nested
