"""One schedule as a word that can be pasted: layer, target, scenario, and who went on at each choice."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from failstop.properties.schedules.explorer import Schedule

LAYER = "schedules"

_RUNS = re.compile(r"(\d)(?:x(\d+))?")


class Token(NamedTuple):
    """What a word says."""

    target: str
    scenario: str
    schedule: Schedule


def spelled(target: str, scenario: str, schedule: Schedule) -> str:
    """Spell a schedule, runs of one thread in short: 0,0,0,1 is 0x3.1."""
    runs: list[list[int]] = []
    for number in schedule:
        if runs and runs[-1][0] == number:
            runs[-1][1] += 1
        else:
            runs.append([number, 1])
    told = ".".join(f"{number}x{count}" if count > 1 else f"{number}" for number, count in runs)
    return f"{LAYER}/{target}/{scenario}/{told}"


def read(word: str) -> Token:
    """Read a word; raises ValueError for what is none."""
    layer, _, rest = word.partition("/")
    target, _, rest = rest.partition("/")
    scenario, slash, told = rest.partition("/")
    if layer != LAYER or not slash or not target or not scenario:
        raise ValueError(f"{word!r} is no token; expected {LAYER}/TARGET/SCENARIO/SCHEDULE")
    schedule: list[int] = []
    for part in told.split(".") if told else ():
        run = _RUNS.fullmatch(part)
        if run is None:
            raise ValueError(f"{part!r} is no part of a schedule; expected a thread's number, such as 0 or 1x3")
        schedule += [int(run[1])] * int(run[2] or 1)
    return Token(target, scenario, tuple(schedule))
