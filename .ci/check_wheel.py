# ruff: noqa: INP001, T201 - a script of the build: no package, and its output is its purpose
"""Hold the installed wheel against the source tree given as the only argument: everything that is used, no tests."""

import sys
from importlib.metadata import files
from pathlib import Path, PurePosixPath

FOLDERS = ("runtime", "planners", "properties", "models", "benchmarks", "reports")


def expected(tree: Path) -> set[str]:
    """Give every module of the tree, as a path inside the wheel."""
    modules = {f"failstop/{file.name}" for file in (tree / "src" / "failstop").glob("*.py")} | {"failstop/py.typed"}
    for folder in FOLDERS:
        found = (file.relative_to(tree) for file in (tree / folder).rglob("*.py"))
        modules |= {f"failstop/{file.as_posix()}" for file in found if "tests" not in file.parts}
    return modules


def installed() -> set[str]:
    """Give every file of the installed distribution that is no metadata, script or bytecode."""
    paths = (PurePosixPath(file.as_posix()) for file in files("failstop") or ())
    return {str(path) for path in paths if path.parts[0] == "failstop" and path.suffix != ".pyc"}


def main() -> int:
    """Print what differs; 0 if nothing does."""
    want, have = expected(Path(sys.argv[1])), installed()
    for path in sorted(want - have):
        print(f"not in the wheel: {path}")
    for path in sorted(have - want):
        print(f"in the wheel, not meant to be: {path}")
    print(f"{len(want & have)} files of the wheel are as in the tree")
    return int(want != have)


if __name__ == "__main__":
    sys.exit(main())
