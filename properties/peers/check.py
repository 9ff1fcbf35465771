"""Plays what the solver found on a peer, and says what the witness saw: one record a published sentence."""

from __future__ import annotations

import platform
import shlex
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from importlib.metadata import version
from itertools import groupby
from typing import TYPE_CHECKING

from failstop.models import catalogue
from failstop.models.claim import PROVED, PUBLISHED, REFUTED, solver_version
from failstop.models.workers import workers
from failstop.properties.evidence import HOLDS, INCONCLUSIVE, NOT_OFFERED, VIOLATED, Record
from failstop.properties.peers.ours import OurPeer
from failstop.properties.peers.performance import perform
from failstop.properties.peers.plays import NOT_PLAYED, PLAYS
from failstop.properties.peers.veronica import VeronicaPeer
from failstop.properties.peers.way import NAMES, NoWay, Way, breaks, grown, read
from failstop.properties.subject import NotOffered

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from failstop.models.claim import Claim
    from failstop.properties.peers.peer import Peer
    from failstop.properties.peers.performance import Performed
    from failstop.properties.peers.plays import Play
    from failstop.properties.peers.way import Step

REPLAYS = 10
"""How often a violation must come again before it is told."""


_ONE = {
    "dispatches": "dispatch",
    "retries": "retry",
    "steps": "step",
    "tests": "test",
    "tests at once": "test at once",
}


@dataclass(frozen=True)
class Score:
    """What is played: the trace as the solver told it, and its ways, as found and grown."""

    play: Play
    told: str
    ways: tuple[Way, ...]


@dataclass(frozen=True)
class _Seen:
    """One way and what came of it."""

    way: Way
    performed: Performed
    broken: bool


def known() -> list[str]:
    """Give the protocols of which something is played."""
    return list(dict.fromkeys(play.spec.name for play in PLAYS))


def chosen(only: Sequence[str]) -> list[Play]:
    """Give what is played of these protocols, or all of it."""
    return [play for play in PLAYS if not only or play.spec.name in only]


def not_played(only: Sequence[str]) -> list[str]:
    """Say of what else something is refuted, and why it is not played."""
    return [] if only else [f"{name}: {reason}" for name, reason in NOT_PLAYED.items()]


def veronica_records(only: Sequence[str] = ()) -> Iterator[Record]:
    """Play on veronica-core, in a process of its own: while it is imported its locks must be those that take turns."""
    with workers(1) as pool:
        for play in chosen(only):
            try:
                yield pool.submit(_on_veronica, PLAYS.index(play)).result()
            except BrokenExecutor as broken:
                yield _record(play, VeronicaPeer(), INCONCLUSIVE, f"the process that played it ended: {broken}", {}, {})


def _on_veronica(place: int) -> Record:
    return record(PLAYS[place], VeronicaPeer())


def record(play: Play, peer: Peer) -> Record:
    """Play one sentence on a peer, and on ours beside it; whatever goes wrong leaves it undecided."""
    target = peer.target
    reason = getattr(target, "not_offered", {}).get(play.promise)
    try:
        score = written(play)
    except NoWay as none:
        return _record(play, peer, INCONCLUSIVE, f"nothing could be played: {none}", {}, {})
    try:
        seen = [_play(score, way, peer) for way in score.ways]
        ours = [_play(score, way, OurPeer()) for way in score.ways]
        broken = [each for each in seen if each.broken]
        again = sum(_play(score, broken[-1].way, peer).broken for _ in range(REPLAYS)) if broken else 0
    except NotOffered as missing:
        return _record(play, peer, NOT_OFFERED, str(missing), {}, {"trace": score.told})
    except Exception as error:  # noqa: BLE001 - whatever a peer raises, nothing was shown
        told = f"it could not be played: {type(error).__name__}: {error}"
        return _record(play, peer, INCONCLUSIVE, told, {}, {"trace": score.told})
    telling = broken[-1] if broken else seen[-1]
    witness = _counts(play, telling)
    effort: dict[str, int | float] = {
        "trace_steps": len(score.ways[0].steps),
        "schedule_steps": len(telling.way.steps) + len(play.probe),
        "callers": max(1, telling.way.callers),
        **{name.replace(" ", "_"): telling.performed.counts.get(name, 0) for name in play.counted},
    }
    about = {
        "trace": score.told,
        "schedule": "\n".join(_schedule(play, telling)),
        "witness": "\n".join(f"{_size(each)}: {_counts(play, each)}" for each in seen),
        "ours": "\n".join(f"{_size(each)}: {_counts(play, each)}" for each in ours),
    }
    if reason is not None and not broken:
        return _record(play, peer, NOT_OFFERED, f"{witness}; {reason}", effort, about)
    if not broken:
        # What is proved of the print has no counterexample that could carry over.
        kept = "the trace does not carry over to" if play.along is None else "proved of what is printed, and kept by"
        carried = f"{kept} {_versioned(peer)}: {_size(telling)}: {witness}"
        return _record(play, peer, HOLDS, carried, effort, about)
    effort |= {"replays": REPLAYS, "replayed": again}
    if again < REPLAYS:
        told = f"{witness}; shown again only {again} times of {REPLAYS}"
        return _record(play, peer, INCONCLUSIVE, told, effort, about)
    told = f"{_size(telling)}: {witness}"
    if reason is not None:
        return _record(play, peer, NOT_OFFERED, f"{told}; {reason}", effort, about)
    return _record(play, peer, VIOLATED, told, effort, about)


def written(play: Play) -> Score:
    """Ask the solver for the trace, and grow it; each way is taken on plain values first. Raises NoWay."""
    claims = {claim.sentence: claim for claim in catalogue.claims_of(play.spec.name)}
    claim = claims[play.sentence]
    answer = claim.ask()
    if play.along is None:
        if answer.status != REFUTED:
            raise NoWay(f"the sentence is {answer.status}")
        told = answer.told
    else:
        if answer.status != PROVED:
            raise NoWay(f"the sentence is {answer.status}, and was proved")
        told = f"{_along(claims, play)}\nproved of what is printed: {play.sentence}"
    found = read(play.spec, told)
    ways = [found] if play.growth is None else [found, grown(found, play.growth)]
    for way in ways:
        if breaks(play.spec, way, play.sentence) is (play.along is not None):
            raise NoWay(f"on plain values the way {'breaks' if play.along else 'keeps'} the sentence")
    return Score(play, told, tuple(ways))


def refuted() -> Iterator[Claim]:
    """Give every published claim that the solver refutes."""
    for name in catalogue.names():
        for claim in catalogue.claims_of(name):
            if claim.whose == PUBLISHED and claim.kind not in {"totals", "reachable"} and claim.ask().status == REFUTED:
                yield claim


def _along(claims: dict[str, Claim], play: Play) -> str:
    """Tell the way that is taken where a sentence is proved, and so has no counterexample."""
    formulas = play.spec.formulas
    if not isinstance(play.along, Way):
        assert play.along is not None  # noqa: S101 - the caller asked
        return claims[formulas[play.along].sentence].ask().told
    sentences = {action.__name__: formulas[action].sentence for action in play.spec.actions}
    lines = [
        f"{place}. {sentences[step.action]} ({', '.join(f'{name} {value}' for name, value in step.chosen)})"
        for place, step in enumerate(play.along.steps, start=1)
    ]
    return "\n".join(lines)


def _play(score: Score, way: Way, peer: Peer) -> _Seen:
    play = score.play
    performed = perform(way, play.probe, peer, play.make)
    return _Seen(way, performed, play.broken({**dict.fromkeys(play.counted, 0), **performed.counts}, way))


def _record(
    play: Play, peer: Peer, verdict: str, detail: str, effort: dict[str, int | float], about: dict[str, str]
) -> Record:
    target = peer.target
    place = target.promises.get(play.promise or "")
    promised = {} if place is None else {"promised": place}
    versions = {"failstop": version("failstop"), "python": platform.python_version(), "z3": solver_version()}
    return Record(
        guarantee=play.guarantee,
        target=target.name,
        layer="schedules",
        subject=play.subject,
        verdict=verdict,
        detail=detail,
        effort=effort,
        replay=f"failstop peers --only {shlex.quote(play.spec.name)}" if verdict == VIOLATED else None,
        versions={**versions, **target.versions()},
        about={"protocol": play.spec.name, "sentence": play.sentence, **promised, **about},
    )


def _schedule(play: Play, seen: _Seen) -> Iterator[str]:
    """Tell who went on at each point and what came of it; what several did alike is one line."""
    steps, came = [*seen.way.steps, *play.probe], seen.performed.came
    yield from (f"{name}, a thread of the peer's own, does not get its turn" for name in seen.performed.held)
    size = len(_round(seen.way)) or 1
    found = len(seen.way.steps)
    rounds = [(place, place + size) for place in range(0, found, size)]
    rounds += [(place, place + 1) for place in range(found, len(steps))]
    for (told, probes), alike in groupby(rounds, lambda each: (_told(steps, came, *each), each[0] >= found)):
        parts = list(alike)
        first, last = parts[0][0], parts[-1][1]
        numbers = f"{last}" if last == first + 1 else f"{first + 1}-{last}"
        yield f"{numbers}. {_who(steps[first:last])}{told}{' (to see it)' if probes else ''}"


def _round(way: Way) -> list[Step]:
    """Give what the first caller does, if every caller does that whole before the next one begins."""
    first = [step for step in way.steps if step.caller == way.steps[0].caller]
    same = [each.action for each in first] * (len(way.steps) // len(first))
    in_turn = [step.action for step in way.steps] == same and way.steps[: len(first)] == tuple(first)
    return first if in_turn and way.callers > 1 else []


def _told(steps: Sequence[Step], came: Sequence[str], start: int, stop: int) -> str:
    pairs = zip(steps[start:stop], came[start:stop], strict=True)
    return "; ".join(f"{step.action.replace('_', ' ')}: {told}" for step, told in pairs)


def _who(steps: Sequence[Step]) -> str:
    named = list(dict.fromkeys(NAMES[step.caller] for step in steps if step.caller is not None))
    if len(named) < 2:  # noqa: PLR2004 - one, or the surroundings
        return f"{named[0]} " if named else ""
    in_order = "".join(named) in NAMES and len(named) > 2  # noqa: PLR2004 - two are told by name
    return f"{named[0]} to {named[-1]} each " if in_order else f"{' and '.join(named)} each "


def _size(seen: _Seen) -> str:
    limits = ", ".join(f"{name} {value}" for name, value in seen.way.limits)
    callers = f"{seen.way.callers} caller{'s' if seen.way.callers > 1 else ''}" if seen.way.callers else ""
    return ", ".join(part for part in (limits, callers) if part) or "as found"


def _counts(play: Play, seen: _Seen) -> str:
    counted = {name: seen.performed.counts.get(name, 0) for name in play.counted}
    return ", ".join(f"{number} {_ONE.get(name, name) if number == 1 else name}" for name, number in counted.items())


def _versioned(peer: Peer) -> str:
    told = peer.target.versions().get(peer.target.name)
    return peer.target.name if told is None else f"{peer.target.name} {told}"
