"""Puts claims to the solver on several processors at once, and hands out each answer as it comes.

A protocol is proved by one process, since its claims share what was read of its core. A claim that cannot be put to the
solver, and those that a process which dies leaves unanswered, are told as unknown: nothing is lost on the way to a
verdict, and nothing is taken for a broken promise.
"""

from __future__ import annotations

import os
import queue
import re
import traceback
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, Any, NamedTuple

from failstop.models.catalogue import claims_of, names
from failstop.models.claim import GROUNDS, UNKNOWN, Answer
from failstop.models.symbolic import Unreadable
from failstop.models.workers import context, workers

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from concurrent.futures import Future

    from failstop.models.claim import Claim

_POLL_S = 0.1
_NOT_PUT = "it could not be put to the solver"


class Finding(NamedTuple):
    """A claim, by its words, and its answer."""

    guarantee: str
    whose: str
    protocol: str
    kind: str
    sentence: str
    answer: Answer


def wanted(guarantees: Collection[str] = (), protocols: Collection[str] = ()) -> dict[str, list[Claim]]:
    """Give the claims about these guarantees and protocols, or about all, by protocol, where there are any."""
    chosen = {name: _named(name, guarantees) for name in names() if not protocols or name in protocols}
    return {name: claims for name, claims in chosen.items() if claims}


def _named(name: str, guarantees: Collection[str]) -> list[Claim]:
    """Choose from the claims of a protocol; raises Unreadable, with its name, if it cannot say what it claims."""
    try:
        return _chosen(name, guarantees)
    except Exception as error:
        raise Unreadable(f"{name}: {reason(error)}") from error


def prove_all(
    claims: dict[str, list[Claim]], guarantees: Collection[str] = (), jobs: int | None = None
) -> Iterator[Finding]:
    """Answer claims that `wanted` gave for the same guarantees; jobs: processes, by default one a processor."""
    jobs = min(jobs or os.cpu_count() or 1, len(claims))
    if jobs <= 1:
        for each in claims.values():
            yield from (_finding(claim, _answer(claim)) for claim in each)
        return
    yield from _on_processes(claims, tuple(guarantees), jobs)


def _on_processes(claims: dict[str, list[Claim]], guarantees: tuple[str, ...], jobs: int) -> Iterator[Finding]:
    answers = context.Queue()
    waiting = {(name, number): claim for name, each in claims.items() for number, claim in enumerate(each)}
    # The largest first, or one process would end long after the others.
    order = sorted(claims, key=lambda name: len(claims[name]), reverse=True)
    with workers(jobs, _start, (answers,)) as pool:
        running = [pool.submit(_prove_one, name, guarantees) for name in order]
        while waiting:
            over = all(future.done() for future in running)
            try:
                name, number, answer = answers.get(timeout=_POLL_S)
            except queue.Empty:
                if over:
                    break
                continue
            yield _finding(waiting.pop((name, number)), answer)
    lost = Answer(UNKNOWN, _failure(running), 0, 0.0)
    yield from (_finding(claim, lost) for claim in waiting.values())


_answers: Any = None
"""Where a worker puts its answers; set when it starts."""


def _start(answers: Any) -> None:
    global _answers  # noqa: PLW0603 - a pool gives its workers no other place
    _answers = answers


def _prove_one(name: str, guarantees: tuple[str, ...]) -> None:
    for number, claim in enumerate(_chosen(name, guarantees)):
        _answers.put((name, number, _answer(claim)))


def _answer(claim: Claim) -> Answer:
    try:
        return claim.ask()
    except Exception as error:  # noqa: BLE001 - whatever is wrong with it, it is not answered
        return Answer(UNKNOWN, f"{_NOT_PUT}: {reason(error)}", 0, 0.0)


def reason(error: BaseException) -> str:
    """Say in a line what went wrong, and where unless it says so itself."""
    told = re.sub(r"<function (\S+) at 0x[0-9a-f]+>", r"\1", " ".join(str(error).split()))
    if isinstance(error, Unreadable):
        return told
    places = [
        f"{frame.f_globals['__name__']}.{frame.f_code.co_qualname}, line {line}: "
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_globals.get("__name__", "").startswith("failstop.")
    ]
    return f"{places[-1] if places else ''}{type(error).__name__}{f': {told}' if told else ''}"


def _chosen(name: str, guarantees: Collection[str]) -> list[Claim]:
    """Choose by guarantee, and with any promise of a protocol all that keeps it from being empty."""
    claims = claims_of(name)
    if not guarantees or not any(claim.guarantee in guarantees for claim in claims):
        return [] if guarantees else claims
    return [claim for claim in claims if claim.guarantee in guarantees or claim.kind in GROUNDS]


def _finding(claim: Claim, answer: Answer) -> Finding:
    return Finding(claim.guarantee, claim.whose, claim.protocol, claim.kind, claim.sentence, answer)


def _failure(running: list[Future[None]]) -> str:
    errors = [future.exception() for future in running if future.done() and not future.cancelled()]
    error = next((each for each in errors if each is not None), None)
    if isinstance(error, BrokenProcessPool):
        return "the process that was to prove it died"
    return _NOT_PUT if error is None else f"{_NOT_PUT}: {reason(error)}"
