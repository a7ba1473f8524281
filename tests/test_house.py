"""The house stands: layers import downwards only, the root is small, every package has its tests."""

import ast
import graphlib
import itertools
import re
from pathlib import Path

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

ROOT = Path(__file__).parents[1]
HOUSE = ROOT / "tape_jupyter"
PACKAGES = sorted(path.parent for path in HOUSE.glob("*/__init__.py"))
AT_ROOT = {"__init__", "__main__", "errors"}
"""`errors` stays at its path: cassettes name exceptions by it."""


def test_imports_point_downwards(monkeypatch):
    monkeypatch.chdir(ROOT)
    assert lint_imports(no_cache=True) == EXIT_STATUS_SUCCESS


def test_the_root_holds_what_has_no_layer():
    assert {path.stem for path in HOUSE.glob("*.py")} == AT_ROOT


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_every_package_says_what_it_is_for(package):
    assert ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8")))


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_every_package_has_its_tests(package):
    assert list((ROOT / "tests" / "unit" / package.name).rglob("test_*.py"))


def test_no_module_of_the_ui_imports_itself_by_way_of_others_types_included():
    scripts = [path for path in (ROOT / "js" / "src").rglob("*.ts*") if ".d." not in path.name]
    imported = re.compile(r'(?:import|export)\b[^"]*?from\s+"(\.[^"]+)"')
    graphlib.TopologicalSorter(
        {
            script: [
                (script.parent / name).resolve()
                for name in imported.findall(script.read_text(encoding="utf-8"))
            ]
            for script in scripts
        }
    ).prepare()


NOUNS = (
    "call", "candidate", "cassette", "cell", "file", "gap", "line", "order", "package", "place", "recording",
    "replie", "request", "row", "run", "sample", "span", "trial",
)  # fmt: skip
PLURAL = re.compile(rf" (?:(?:more|recorded|model|cold) )?(?:{'|'.join(NOUNS)})s\b")
OF_MANY = (
    "at most", "a bundle has no more", "overlapped", "together make", "differ", "of this run are", "of it were", "among them",
    "lists all", " rows x ", "spans searched", " files)", "in {len",
)  # fmt: skip
"""Sentences that are said of more than one only, and pandas' own `1 rows x 2 columns`."""
TEXTS = {"kind", "format", "title", "name", "known", "total"}


def test_a_counted_noun_is_written_by_the_helper_that_knows_of_one():
    """`1 runs` stood wherever a count was put before a plural by hand."""
    found = []
    for path in sorted(HOUSE.rglob("*.py")):
        for text in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(text, ast.JoinedStr) and counts_by_hand(text):
                found.append(f"{path.relative_to(ROOT)}:{text.lineno} {ast.unparse(text)[:80]}")
    assert found == []


def counts_by_hand(text):
    return any(
        isinstance(number, ast.FormattedValue)
        and getattr(number.value, "attr", getattr(number.value, "id", "")) not in TEXTS
        and isinstance(words, ast.Constant)
        and PLURAL.match(words.value)
        and not any(each in ast.unparse(text) for each in OF_MANY)
        for number, words in itertools.pairwise(text.values)
    )
