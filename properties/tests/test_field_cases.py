"""FIELD_CASES.md held against the tests: whoever is sent there by a number finds an entry, and tests that exist."""

from __future__ import annotations

import ast
import functools
import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FOLDERS = ("runtime", "planners", "properties", "models", "benchmarks", "reports")
AREAS = {
    "Approval": [1, 2, 3, 4, 5, 6, 7],
    "Audit and replay": [8, 9, 10, 11, 12],
    "Breaker": [13, 14, 15, 16, 17],
    "Budget": [18, 19, 20, 21, 22, 23],
    "Configuration": [24, 25, 26],
    "Loop": [31, 32],
    "Quota": [36],
    "Retry": [37, 38, 39],
    "Steps": [40, 41],
    "Time": [42, 43],
}
MOST_LINES_OF_PROSE = 3


@pytest.fixture(scope="module")
def root(pytestconfig: pytest.Config) -> Path:
    """Give the root of the repository."""
    return pytestconfig.rootpath


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    """Give the text of the document."""
    return (root / "properties" / "FIELD_CASES.md").read_text(encoding="utf-8")


def entries(page: str) -> Iterator[tuple[str, int, str]]:
    """Give (area, number, everything that stands under the number) of each entry, in the order of the page."""
    for section in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        area, _, body = section.partition("\n")
        for number, text in re.findall(r"^(\d+)\. (.*?)(?=^\d+\. |\Z)", body, re.MULTILINE | re.DOTALL):
            yield area, int(number), text


def held_by(text: str) -> list[str]:
    """Give the tests that an entry names, as path::test or path::class::test."""
    return re.findall(r"^ +- `(\S+)`$", text, re.MULTILINE)


@functools.cache
def parsed(file: Path) -> ast.Module:
    """Give the syntax tree of a file; many entries name the same few."""
    return ast.parse(file.read_text(encoding="utf-8"))


def found(root: Path, test: str) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """Give the function or method of exactly this name in exactly this place, or None."""
    path, *names = test.split("::")
    if not names or not (root / path).is_file():
        return None
    node: ast.AST | None = parsed(root / path)
    for name in names:
        node = next((child for child in getattr(node, "body", ()) if getattr(child, "name", "") == name), None)
    return node if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else None


def told(text: str) -> set[int]:
    """Give the numbers of all field cases that a text mentions, also where it lists several."""
    lists = re.findall(r"field cases? (\d+(?:(?:, | and |, and )\d+)*)", text, re.IGNORECASE)
    return {int(number) for numbers in lists for number in re.findall(r"\d+", numbers)}


class TestTheEntries:
    """What the document says of itself."""

    def test_every_number_stands_once_in_its_area(self, page: str) -> None:
        """None is forgotten when the page is edited, and none is told twice."""
        listed: dict[str, list[int]] = {}
        for area, number, _ in entries(page):
            listed.setdefault(area, []).append(number)
        assert listed == AREAS

    def test_every_named_test_exists(self, root: Path, page: str) -> None:
        """A test that was renamed or dropped takes its claim with it."""
        missing = [
            (number, test) for _, number, text in entries(page) for test in held_by(text) if not found(root, test)
        ]
        assert missing == []

    def test_every_entry_is_held_by_a_test_and_quickly_read(self, page: str) -> None:
        """A failure in bold, its outcome, and at least one test; no line that should name one is passed over."""
        for _, number, text in entries(page):
            lines = text.strip().splitlines()
            prose = [line for line in lines if not line.lstrip().startswith("- ")]
            assert re.match(r"\*\*[^*]+\.\*\* \S", " ".join(prose)), number
            assert len(prose) <= MOST_LINES_OF_PROSE, number
            assert len(held_by(text)) == len(lines) - len(prose) > 0, number

    def test_a_test_that_names_a_case_stands_under_that_case(self, root: Path, page: str) -> None:
        """Page and docstring do not send the reader to different numbers."""
        astray = [
            (number, test)
            for _, number, text in entries(page)
            for test in held_by(text)
            if (node := found(root, test)) and number not in (told(ast.get_docstring(node) or "") or {number})
        ]
        assert astray == []


def test_every_number_that_the_code_mentions_is_in_the_document(root: Path, page: str) -> None:
    """A reader of a test or a comment who looks its number up finds it."""
    known = {number for _, number, _ in entries(page)}
    lost = {
        (file.relative_to(root).as_posix(), number)
        for folder in FOLDERS
        for file in (root / folder).rglob("*.py")
        for number in told(file.read_text(encoding="utf-8")) - known
    }
    assert lost == set()


def test_the_reader_of_numbers_sees_lists_and_the_finder_sees_places(root: Path) -> None:
    """What the other tests rest on: neither passes over what it should see."""
    assert told("(field case 5), Field cases 1, 3 and 42; case 7") == {1, 3, 5, 42}
    here = "properties/tests/test_field_cases.py"
    assert found(root, f"{here}::TestTheEntries::test_every_named_test_exists")
    for wrong in (here, f"{here}::test_every_named_test_exists", f"{here}::TestTheEntries", "no_such_file.py::test_x"):
        assert found(root, wrong) is None
