# ruff: noqa: INP001 - a script of the build, no package
"""Put the tests of the source tree, the only argument, beside the installed package.

Tests are not shipped, but a process that a test starts has to import the test's functions by their name, and must get
the installed failstop with them.
"""

import sys
from pathlib import Path

import failstop


def main() -> None:
    """Link each tests folder into its place; one that is there already is left alone."""
    source, installed = Path(sys.argv[1]) / "src" / "failstop", Path(failstop.__file__).parent
    for tests in (source / "tests", *source.glob("*/tests")):
        place = installed / tests.relative_to(source)
        if not place.exists():
            place.symlink_to(tests.resolve())


if __name__ == "__main__":
    main()
