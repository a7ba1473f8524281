"""The house stands: imports point one way, every room is named, every module has its tests."""

import ast
import graphlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HOUSE = ROOT / "tape_jupyter"
ROOMS = {  # what each may import besides itself; a module's docstring says which room it is in
    "values": "",
    "text": "values",
    "providers": "values text",
    "store": "values text providers",
    "engine": "values text providers store",
    "taps": "values text",
    "notebook": "values text providers store engine taps",
    "doors": "values text providers store engine taps notebook",
}
PATHS = {".".join(p.relative_to(HOUSE).with_suffix("").parts): p for p in sorted(HOUSE.rglob("*.py"))}
TREES = {module: ast.parse(path.read_text(encoding="utf-8")) for module, path in PATHS.items()}
MODULES = [m for m in PATHS if m != "__init__" and TREES[m].body]
TESTED = [m for m in MODULES if len(TREES[m].body) > 1 and m != "__main__"]
TESTS = {p.stem for p in (ROOT / "tests").rglob("test_*.py")}


def room(module: str) -> str:
    """From the first words of its docstring: "Text room: ..."."""
    first = (ast.get_docstring(TREES[module]) or "").partition(":")[0].lower()
    return next((name for name in ROOMS if first in (f"{name} room", f"{name.rstrip('s')} room")), first)


def imports(module: str) -> set[str]:
    """The modules of the house that one imports, early or late. The package itself comes with any of them."""
    found = set()
    package = [HOUSE.name, *module.split(".")[:-1]]
    for node in ast.walk(TREES[module]):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            names = [".".join([*base, *filter(None, [node.module]), alias.name]) for alias in node.names]
        elif isinstance(node, ast.Constant) and node.value in {f"{HOUSE.name}.{each}" for each in PATHS}:
            names = [node.value]  # for import_module
        else:
            continue
        for name in (name.partition(".")[2] for name in names if name.split(".")[0] == HOUSE.name):
            guesses = [name, f"{name}.__init__", name.rpartition(".")[0], f"{name.rpartition('.')[0]}.__init__"]
            found.add(next((guess for guess in guesses if guess in PATHS), "__init__"))
    return found - {module, "__init__"}


@pytest.mark.parametrize("module", MODULES)
def test_a_reader_knows_from_the_first_words_which_room_it_is(module):
    assert room(module) in ROOMS, f"{module}'s docstring begins with no room's name: {room(module)!r}"


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_one_way(module):
    allowed = {room(module), *ROOMS[room(module)].split()}
    breaches = {other: room(other) for other in imports(module) & set(MODULES) if room(other) not in allowed}
    assert not breaches, f"{module} ({room(module)}) may not import {breaches}"


def test_no_module_imports_itself_by_way_of_another():
    tuple(graphlib.TopologicalSorter({module: imports(module) for module in PATHS}).static_order())


def test_the_house_is_really_walked():
    assert "calls" in imports("cassette") and "providers.wire" in imports("providers.__init__")
    assert len(MODULES) > 30


@pytest.mark.parametrize("module", TESTED)
def test_every_module_has_its_tests(module):
    *folder, name = module.removesuffix(".__init__").split(".")
    own = {f"test_{f}_{name}" for f in folder}
    if folder != ["bundle"]:  # too large a folder for one file to stand for all of it
        own |= {f"test_{name}", *(f"test_{f}" for f in folder)}
    assert own & TESTS, f"tape_jupyter/{module}: none of {sorted(own)} in tests/"


def test_test_files_have_names_of_their_own():
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(names) == sorted(set(names)), sorted({name for name in names if names.count(name) > 1})
