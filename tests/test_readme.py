"""What the README names is there."""

import re

import click
import pytest

import tape_jupyter
from tape_jupyter import cli
from tape_jupyter.notebook.magics import ASKS
from tape_jupyter.notebook.words import CELL_MODES, SESSION_MODES, USAGE
from tests.notebook import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
MAP = README.partition("## Map of the repository")[2]


def test_its_links_and_pictures_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert target.startswith("http") or (ROOT / target).is_file(), target


def test_its_make_targets_are_in_the_makefile():
    targets = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(re.findall(r"make (demo|test|bench|lint|examples|[a-z]+-[a-z]+)\b", README)) <= set(targets)


def test_its_commands_are_those_of_the_command_line():
    named = set(re.findall(r"^tape ([a-z]+)", README, re.MULTILINE))
    assert named == set(cli.tape.commands)
    for command in cli.tape.commands.values():
        assert any(isinstance(option, click.Option) and option.name == "as_json" for option in command.params)


def test_every_word_and_option_of_the_magics_is_told():
    for word in (*CELL_MODES, *SESSION_MODES, *ASKS):
        assert word in README
    for option in re.findall(r"--[a-z-]+", USAGE):
        assert f"`{option}" in README


@pytest.mark.parametrize(
    "name", re.findall(r"\btape\.([a-z]+)\b(?=[(\n ])", README.partition("## Python")[2].partition("## Not")[0])
)
def test_every_python_name_is_public(name):
    assert hasattr(tape_jupyter, name)


def test_the_map_names_every_module():
    house = ROOT / "tape_jupyter"
    modules = [path.stem for path in house.glob("*.py") if not path.stem.startswith("__")]
    folders = [f"{path.name}/" for path in house.iterdir() if (path / "__init__.py").exists()]
    missing = [name for name in (*modules, *folders) if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", MAP)]
    assert not missing
