"""A person's yes, and what it is good for (approval)."""

# ruff: noqa: ARG001 - a wrong variant forgets to look

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from failstop.properties.mutants.mutant import Function, Method, Mutant
from failstop.runtime.agent.approval import Grant
from failstop.runtime.audit.canonical import digest
from failstop.runtime.cores import grant as core
from failstop.runtime.cores.grant import APPROVED, GRANTED, PENDING, answer, ruling, use

if TYPE_CHECKING:
    from collections.abc import Callable


def _any_arguments(self: Grant, digest: str) -> int:
    return self._step(lambda state, now_ns: core.use(state, True, now_ns))


def _names_of_arguments_only(value: object) -> str:
    return digest(_without_values(value))


def _without_values(value: object) -> object:
    if isinstance(value, list):
        return [_without_values(each) for each in value]
    if isinstance(value, Mapping):
        return {**value, "args": sorted(value["args"])} if "args" in value else sorted(value)
    return value


def _good_for_ever(state: core.Grant, same: bool, now_ns: int) -> tuple[core.Grant, int]:
    after, verdict = use(state, same, now_ns)
    if verdict == GRANTED:
        return state, verdict
    return after, verdict


def _used_before_it_is_answered(state: core.Grant, same: bool, now_ns: int) -> tuple[core.Grant, int]:
    phase, expires_ns = state
    if phase == PENDING:
        return use((APPROVED, expires_ns), same, now_ns)
    return use(state, same, now_ns)


def _never_too_late(state: core.Grant, same: bool, now_ns: int) -> tuple[core.Grant, int]:
    return use(state, same, -1)


def _last_answer_counts(state: core.Grant, approved: bool, now_ns: int) -> tuple[core.Grant, int]:
    phase, expires_ns = state
    if phase == core.DENIED:
        return answer((PENDING, expires_ns), approved, now_ns)
    return answer(state, approved, now_ns)


def _standing_beats_the_exact(exact: int, standing: int) -> int:
    return ruling(standing, exact)


def _looked_at_then_marked(self: Grant, step: Callable[[core.Grant, int], tuple[core.Grant, int]]) -> int:
    with self._lock:
        after, verdict = step(self._state, self._elapsed_ns())
    with self._lock:
        self._state = after
    return verdict


MUTANTS = (
    Mutant(
        "approved-by-name",
        "approval",
        "A yes for a tool opens it for whatever arguments come.",
        (Method(Grant, "use", _any_arguments),),
        first=("drift-against-use",),
    ),
    Mutant(
        "arguments-hashed-by-name",
        "loop",
        "Two calls are taken for equal if the names of their arguments are.",
        (Function(digest, _names_of_arguments_only),),
    ),
    Mutant(
        "approval-not-used-up",
        "approval",
        "A yes is good for any number of dispatches.",
        (Function(use, _good_for_ever),),
        first=("one-yes-two-uses",),
    ),
    Mutant(
        "approval-used-before-it-is-answered",
        "approval",
        "A question that nobody has answered is as good as a yes.",
        (Function(use, _used_before_it_is_answered),),
        first=("answer-against-use",),
    ),
    Mutant(
        "approval-never-expires",
        "approval",
        "A yes is good however late it is used.",
        (Function(use, _never_too_late),),
        first=("expiry-against-use",),
    ),
    Mutant(
        "no-is-taken-back",
        "approval",
        "A second answer counts in place of the first.",
        (Function(answer, _last_answer_counts),),
        first=("yes-against-no",),
    ),
    Mutant(
        "standing-answer-beats-the-exact-one",
        "approval",
        "What a person said of the tool as a whole counts more than what they said of this very call.",
        (Function(ruling, _standing_beats_the_exact),),
    ),
    Mutant(
        "approval-checked-then-marked",
        "approval",
        "A grant is looked at under its lock, and marked as used in a second section.",
        (Method(Grant, "_step", _looked_at_then_marked),),
        concurrent=True,
        first=("one-yes-two-uses",),
    ),
)
