"""The repository held against itself: what is shipped, what may be imported, what the documents say."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from failstop.planners.catalogue import bundled
from failstop.planners.catalogue import load as load_planners
from failstop.properties.check import check
from failstop.properties.evidence import HOLDS, NOT_OFFERED
from failstop.properties.run_audit import audit
from failstop.properties.targets import load as load_target

if TYPE_CHECKING:
    from pathlib import Path

FOLDERS = ("runtime", "planners", "properties", "models", "benchmarks", "reports")
DOCUMENTS = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")
MOST_LINES = 150


@pytest.fixture(scope="session")
def root(pytestconfig: pytest.Config) -> Path:
    """Give the root of the repository."""
    return pytestconfig.rootpath


@pytest.fixture(scope="session")
def project(root: Path) -> dict[str, Any]:
    """Give the parsed pyproject.toml."""
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))


def packages_of(root: Path) -> set[str]:
    """Give every package that stands in the six folders, tests apart."""
    inits = [init.relative_to(root).parent for folder in FOLDERS for init in (root / folder).rglob("__init__.py")]
    return {"failstop", *(f"failstop.{'.'.join(init.parts)}" for init in inits if "tests" not in init.parts)}


def imported(file: Path) -> set[str]:
    """Give the top-level name of every module that a file imports anywhere, inside functions too."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or ".")
    return {name.partition(".")[0] for name in names}


class TestTheWheel:
    """What is installed is what stands in the folders; `tox -e package` looks into the built wheel itself."""

    def test_every_package_is_listed_and_nothing_else(self, root: Path, project: dict[str, Any]) -> None:
        """A folder with an __init__.py that the list forgets would be missing from the wheel without a word."""
        listed = project["tool"]["setuptools"]["packages"]
        assert sorted(listed) == sorted(packages_of(root))

    def test_every_folder_is_mapped_to_its_place(self, project: dict[str, Any]) -> None:
        """The six folders stand at the top, not under src."""
        mapped = project["tool"]["setuptools"]["package-dir"]
        assert mapped == {"failstop": "src/failstop"} | {f"failstop.{folder}": folder for folder in FOLDERS}

    def test_python_files_stand_in_packages(self, root: Path) -> None:
        """A file in a folder without an __init__.py is neither shipped nor, in a tests folder, found."""
        for folder in FOLDERS:
            homeless = [file for file in (root / folder).rglob("*.py") if not (file.parent / "__init__.py").exists()]
            assert homeless == []

    @pytest.mark.parametrize("folder", FOLDERS)
    def test_the_package_has_a_link_to_each_folder(self, root: Path, folder: str) -> None:
        """Pytest, type checkers and editors see the folders through the links."""
        assert (root / "src" / "failstop" / folder).samefile(root / folder)

    def test_types_are_shipped(self, root: Path, project: dict[str, Any]) -> None:
        """py.typed says that the annotations are meant for users."""
        assert (root / "src" / "failstop" / "py.typed").exists()
        assert project["tool"]["setuptools"]["package-data"]["failstop"] == ["py.typed"]

    def test_the_runtime_has_no_dependency(self, project: dict[str, Any]) -> None:
        """Who needs limits only installs nothing else."""
        assert project["project"]["dependencies"] == []


class TestTheImportRule:
    """`tox -e lint` enforces the table with import-linter; this is the part that it cannot say."""

    def test_the_runtime_imports_the_standard_library_only(self, root: Path) -> None:
        """Held against the list of all standard modules, so that no third-party package needs to be thought of."""
        allowed = sys.stdlib_module_names | {"failstop"}
        for file in (root / "runtime").rglob("*.py"):
            if "tests" not in file.parts:
                assert imported(file) <= allowed, file

    def test_an_import_inside_a_function_is_seen(self, tmp_path: Path) -> None:
        """The reader that the rule rests on finds what hides."""
        file = tmp_path / "sly.py"
        file.write_text("def f():\n    from numpy.linalg import det\n    import os.path, rich\n", encoding="utf-8")
        assert imported(file) == {"numpy", "os", "rich"}

    @pytest.mark.parametrize("folder", FOLDERS)
    def test_every_folder_has_its_contract(self, root: Path, folder: str) -> None:
        """A folder without one could import anything."""
        contracts = (root / ".importlinter").read_text(encoding="utf-8")
        assert f"source_modules =\n    failstop.{folder}\n" in contracts


class TestTheDocuments:
    """What they name exists, and they stay short enough to be read."""

    @pytest.mark.parametrize("document", ["README.md", "ARCHITECTURE.md"])
    def test_every_folder_is_explained(self, root: Path, document: str) -> None:
        """A newcomer finds out what each folder is for."""
        text = (root / document).read_text(encoding="utf-8")
        assert [folder for folder in FOLDERS if f"`{folder}/`" not in text] == []

    @pytest.mark.parametrize("document", DOCUMENTS)
    def test_every_planner_that_is_named_exists(self, root: Path, document: str) -> None:
        """A command that names a planner can be pasted."""
        text = (root / document).read_text(encoding="utf-8")
        commands = re.findall(r"^.*failstop check .*$", text, re.MULTILINE)
        named = {name for command in commands if "--planners" not in command for name in planners_in(command)}
        assert named <= set(bundled())

    @pytest.mark.parametrize("document", DOCUMENTS)
    def test_every_link_leads_to_a_file(self, root: Path, document: str) -> None:
        """Links between the documents, and into the tree."""
        targets = re.findall(r"\]\((?!https?:)([^)#]+)", (root / document).read_text(encoding="utf-8"))
        assert [target for target in targets if not (root / target).exists()] == []

    @pytest.mark.parametrize("document", DOCUMENTS)
    def test_a_document_can_be_read_in_a_few_minutes(self, root: Path, document: str) -> None:
        """Longer than this, nobody reads it to the end."""
        assert len((root / document).read_text(encoding="utf-8").splitlines()) <= MOST_LINES


class TestTheReadme:
    """What the first minute promises."""

    def test_the_code_prints_what_its_comments_say(
        self, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Both examples, pasted and run; the log that the second leaves behind passes its audit."""
        text = (root / "README.md").read_text(encoding="utf-8")
        examples = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        monkeypatch.chdir(tmp_path)
        for example in examples:
            exec(compile(example, "README.md", "exec"), {"__name__": "readme"})  # noqa: S102 - it is our own page
            said = re.findall(r"print\(.*\)  # ([\w:, ]+)", example)
            printed = capsys.readouterr().out.splitlines()
            assert [line.startswith(out) for line, out in zip(said, printed, strict=True)] == [True] * len(said)
        assert len(examples) == 2
        assert {record.verdict for record in audit(tmp_path / "runs" / "demo.jsonl")} == {HOLDS}

    def test_the_number_of_planners_is_todays(self, root: Path) -> None:
        """The output shown is a real one."""
        text = (root / "README.md").read_text(encoding="utf-8")
        assert set(re.findall(r": (\d+) planners, ", text)) == {str(len(bundled()))}


class TestTheTests:
    """Tests are claims."""

    def test_every_test_says_in_one_sentence_what_it_claims(self, root: Path) -> None:
        """The name is the claim, the docstring its sentence."""
        silent = [
            f"{path.name}::{node.name}"
            for path in root.glob("*/tests/test_*.py")
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
            if not ast.get_docstring(node)
        ]
        assert silent == []


class TestTheExamples:
    """The code in CONTRIBUTING.md is pasted and run."""

    @pytest.fixture(autouse=True)
    def examples(self, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Write each block of code into the file that its first line names."""
        text = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
        for name, code in re.findall(r"^```python\n# (\w+)\.py\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            (tmp_path / f"{name}.py").write_text(code, encoding="utf-8")
            monkeypatch.delitem(sys.modules, name, raising=False)
        monkeypatch.syspath_prepend(str(tmp_path))

    def test_the_planner_is_contained(self) -> None:
        """It ends where the text says, with the numbers that the decorator states."""
        planner = load_planners("my_planners")["asks-for-second-opinions"]
        record = check(planner, load_target("failstop"))
        assert (record.verdict, record.effort["dispatches"]) == (HOLDS, 4), record.detail

    def test_the_target_is_judged(self) -> None:
        """The toy keeps what it promises, and is not judged by what it does not."""
        target = load_target("my_target:MyTarget")
        verdicts = {
            name: check(bundled()[name], target).verdict for name in ("never-finishes", "fails-for-ever", "slow")
        }
        assert verdicts == {"never-finishes": HOLDS, "fails-for-ever": HOLDS, "slow": NOT_OFFERED}


def planners_in(command: str) -> list[str]:
    """Give the planners that a command names."""
    return re.findall(r"--planner[ =]([\w-]+)", command)
