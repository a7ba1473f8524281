"""The house stands: layers import downwards only, the root is small, every package has its tests."""

import ast
import graphlib
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
