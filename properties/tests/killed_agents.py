"""Run agents in child processes and kill each at a random point: ``python -m ... FOLDER KILLS SEED``.

A process of its own, without threads, so that it may fork: a fork costs a millisecond where a fresh interpreter costs
a hundred. The parent watches the log grow and kills with SIGKILL once it has passed a random size, wherever in a write
that is. Each agent appends a line to a file of its own for every tool that really ran: the witness.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from pathlib import Path

from failstop.runtime.agent.loop import AgentLoop
from failstop.runtime.agent.planner import Action
from failstop.runtime.agent.tools import Tool, ToolRegistry
from failstop.runtime.limits import Limits
from failstop.runtime.risk import RiskTier

LARGEST_LOG = 12_000


class Busy:
    """A planner that never finishes and varies its calls."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def next_action(self, history: object) -> Action:
        """Call the tool, sometimes twice, sometimes one that is not there."""
        drawn = self._random.random()
        if drawn < 0.1:
            return Action.use("missing", n=drawn)
        return Action.use("work", text="x" * self._random.randrange(200), n=drawn)


def run_agent(folder: Path, run_id: str, seed: int) -> None:
    """Run until killed, or until the ceilings stop it."""
    with (folder / f"{run_id}.witness").open("ab", buffering=0) as witness:

        def work(text: str, n: float) -> str:
            witness.write(b"ran\n")
            return f"{n}:{text}"

        tools = ToolRegistry([Tool(name="work", fn=work, tier=RiskTier.READ, cost="0.001")])
        limits = Limits(max_cost_usd="0.05", max_steps=60, max_tool_calls=55, max_repeats=3)
        AgentLoop(tools, limits, audit_folder=folder).run(Busy(seed), "stay busy", run_id=run_id)


def kill_one(folder: Path, run_id: str, draw: random.Random) -> bool:
    """Fork an agent and kill it; True if the kill came before it was done."""
    seed = draw.randrange(2**32)
    target = draw.randrange(LARGEST_LOG)
    pid = os.fork()
    if pid == 0:
        try:
            run_agent(folder, run_id, seed)
        finally:
            os._exit(0)
    log = folder / f"{run_id}.jsonl"
    while True:
        ended, _ = os.waitpid(pid, os.WNOHANG)
        if ended:
            return False
        if log.exists() and log.stat().st_size >= target:
            os.kill(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
            return os.WIFSIGNALED(status)


def main() -> None:
    """Kill agents and print how many were killed in the middle."""
    folder, kills, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    draw = random.Random(seed)
    killed = 0
    number = 0
    while killed < kills:
        killed += kill_one(folder, f"run-{number}", draw)
        number += 1
    print(killed, number)


if __name__ == "__main__":
    main()
