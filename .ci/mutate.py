# ruff: noqa: INP001, S603, S607, T201 - a script of the build: no package, runs the tool of its environment, and prints
"""Run mutmut over the runtime, in a copy of the source tree, and print the edits that no test and no type noticed.

    mutate.py TREE COPY [MODULE ...]

A module is named below failstop.runtime: chain.ledger, "policies.*"; without any it is all but the cores. Kill what
lives with a test in runtime/tests/, unless it is one of these, which do no harm:

- the wording of a message, in other letters or with XX around it: its field, value and numbers are tested;
- the text of `Queued`, which `waiting` catches, and the key names inside a digest that is only compared with another;
- `retries or True` in `acall`: with no retries both ways make one try;
- steps of `AgentStepGuard._era` other than one, or a `permit` emptied to "": an era is only compared for equality;
- `_swept_hour` begun at 1: no clock is that early;
- "no tests" for what runs in a forked process only, where mutmut does not see which test calls it.

A mutant that hangs ends in "timeout": that counts as killed.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path


def main() -> int:
    """Copy, mutate and tell; 0 if mutmut came to its end, whatever survived."""
    tree, copy = Path(sys.argv[1]), Path(sys.argv[2])
    # mutmut takes the folders that it finds, so there are folders in the copy where the tree has links.
    shutil.copytree(tree / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(tree / "pyproject.toml", copy)
    os.chdir(copy)
    # For the processes that a test starts; in its own mutmut sees to it that the mutants are imported.
    os.environ["PYTHONPATH"] = str(copy / "mutants" / "src")
    ended = subprocess.run(["mutmut", "run", *(f"failstop.runtime.{name}.x*" for name in sys.argv[3:])], check=False)
    if ended.returncode == 0:
        tell()
    return ended.returncode


def tell() -> None:
    """Print each mutant that lived, as the lines that differ, and how many came to what end."""
    results = subprocess.run(["mutmut", "results", "--all", "true"], check=True, capture_output=True, text=True)
    counts: dict[str, int] = {}
    for line in results.stdout.splitlines():
        mutant, _, end = line.strip().rpartition(": ")
        counts[end] = counts.get(end, 0) + 1
        if end not in {"killed", "caught by type check", "not checked"}:
            show = subprocess.run(["mutmut", "show", mutant], check=True, capture_output=True, text=True).stdout
            edit = (row for row in show.splitlines() if row[:1] in {"-", "+"} and row[:3] not in {"---", "+++"})
            print(f"{mutant}: {end}", *edit, sep="\n")
    print(", ".join(f"{count} {end}" for end, count in sorted(counts.items())))


if __name__ == "__main__":
    sys.exit(main())
