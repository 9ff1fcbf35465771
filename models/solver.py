"""One question to z3, that whoever asked it can interrupt."""

from __future__ import annotations

import z3

_INTERRUPTED = "interrupted from keyboard"


def asked(solver: z3.Solver, *assumptions: z3.BoolRef) -> z3.CheckSatResult:
    """Give z3's answer; raises KeyboardInterrupt for an interrupt, which z3 keeps to itself and calls unknown."""
    status = solver.check(*assumptions)
    if status == z3.unknown and solver.reason_unknown() == _INTERRUPTED:
        raise KeyboardInterrupt
    return status
