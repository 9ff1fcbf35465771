"""Put the contracts to CrossHair and say what came of each: confirmed, inconclusive or a counterexample.

    python -m failstop.models.crosshair_run [seconds for each contract]     # pip install 'failstop[check]'

CrossHair models Python and its models have gaps, so a counterexample counts only if plain Python, called with the same
arguments, breaks the contract too. Everything else that is no confirmation is inconclusive: time that ran out, a
precondition that nothing met, a contract that could not be read.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
import time
from collections import Counter
from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING, TypeAlias

from crosshair.core_and_libs import MessageType, analyze_function, run_checkables
from crosshair.options import AnalysisKind, AnalysisOptionSet

from failstop.models import contracts
from failstop.models.workers import workers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import ModuleType

    from crosshair.core_and_libs import AnalysisMessage

Contract: TypeAlias = FunctionType
"""A function with ``pre:`` and ``post:`` in its docstring."""

CONFIRMED = "confirmed"
INCONCLUSIVE = "inconclusive"
COUNTEREXAMPLE = "counterexample"

SECONDS = 20.0
"""What CrossHair may spend on one contract, in seconds of processor time."""

_REFUTES = {MessageType.POST_FAIL, MessageType.POST_ERR, MessageType.EXEC_ERR}
_CALL = re.compile(r"when calling (?P<call>.+?)(?: \(which returns .*\))?$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What came of one contract; told: the call that breaks it, or why it is not confirmed."""

    contract: str
    status: str
    told: str
    seconds: float


def all_contracts() -> list[Contract]:
    """Every contract of the package, module by module."""
    modules = [importlib.import_module(f"{contracts.__name__}.{found.name}") for found in _modules()]
    return [contract for module in modules for contract in _of(module)]


def name_of(contract: Contract) -> str:
    """Name a contract as `module.function`."""
    return f"{contract.__module__.rpartition('.')[2]}.{contract.__name__}"


def judge(contract: Contract, seconds: float = SECONDS) -> Judgement:
    """Put one contract to CrossHair."""
    options = AnalysisOptionSet(analysis_kind=[AnalysisKind.PEP316], per_condition_timeout=seconds, report_all=True)
    begun = time.monotonic()
    try:
        status, told = _read(contract, run_checkables(analyze_function(contract, options)))
    except Exception as error:  # noqa: BLE001 - a checker that crashed has confirmed nothing, and the others go on
        status, told = INCONCLUSIVE, f"CrossHair raised {error!r}"
    return Judgement(name_of(contract), status, told, time.monotonic() - begun)


def judge_all(chosen: Sequence[Contract], seconds: float = SECONDS, jobs: int | None = None) -> Iterator[Judgement]:
    """Put contracts to CrossHair in processes of their own, in the order given."""
    with workers(jobs) as pool:
        yield from pool.map(judge, chosen, [seconds] * len(chosen))


def main(arguments: Sequence[str]) -> int:
    """Judge every contract and print what came of it; 1 if there is a counterexample."""
    seconds = float(arguments[0]) if arguments else SECONDS
    chosen = all_contracts()
    judgements = []
    for judgement in judge_all(chosen, seconds):
        judgements.append(judgement)
        told = f"{judgement.status} {judgement.contract} ({judgement.seconds:.1f} s)"
        print(f"{len(judgements)}/{len(chosen)} {told}", file=sys.stderr, flush=True)  # noqa: T201
    print("\n".join(lines(judgements)))  # noqa: T201 - what the command is for
    return int(any(judgement.status == COUNTEREXAMPLE for judgement in judgements))


def lines(judgements: Sequence[Judgement]) -> list[str]:
    """Spell judgements for a terminal, one a line with what there is to tell below it, and their number at the end."""
    spelled = []
    for one in judgements:
        spelled.append(f"{one.status:14} {one.seconds:6.1f} s  {one.contract}")
        if one.told:
            spelled.append(f"{'':14} {'':6}    {one.told}")
    counted = Counter(judgement.status for judgement in judgements)
    told = ", ".join(f"{counted[status]} {status}" for status in (CONFIRMED, INCONCLUSIVE, COUNTEREXAMPLE))
    return [*spelled, f"{len(judgements)} contracts: {told}"]


def _modules() -> list[pkgutil.ModuleInfo]:
    return [found for found in pkgutil.iter_modules(contracts.__path__) if not found.ispkg]


def _of(module: ModuleType) -> list[Contract]:
    functions = [function for function in vars(module).values() if isinstance(function, FunctionType)]
    own = [function for function in functions if function.__module__ == module.__name__]
    return [function for function in own if "post:" in (function.__doc__ or "")]


def _read(contract: Contract, messages: Sequence[AnalysisMessage]) -> tuple[str, str]:
    if not messages:
        return INCONCLUSIVE, "no contract was found in its docstring"
    worst = max(messages, key=lambda message: message.state)
    if worst.state is MessageType.CONFIRMED:
        return CONFIRMED, ""
    if worst.state is MessageType.CANNOT_CONFIRM:
        return INCONCLUSIVE, "no counterexample, but not every path was finished"
    if worst.state not in _REFUTES:
        return INCONCLUSIVE, worst.message
    return _replayed(contract, worst.message)


def _replayed(contract: Contract, message: str) -> tuple[str, str]:
    """Call the contract as CrossHair says: what holds in plain Python is a gap in its models."""
    found = _CALL.search(message)
    if found is None:
        return INCONCLUSIVE, f"nothing to call again in: {message}"
    call = found["call"]
    try:
        held = eval(call, dict(vars(sys.modules[contract.__module__])))  # noqa: S307 - CrossHair's call of our function
    except Exception as error:  # noqa: BLE001 - whatever a broken contract raises is part of its counterexample
        return COUNTEREXAMPLE, f"{call} raises {error!r}"
    if held:
        return INCONCLUSIVE, f"CrossHair's counterexample holds in plain Python: {message}"
    return COUNTEREXAMPLE, call


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
