"""What the README and the pages of docs/ name is there."""

import os
import re
import subprocess

import click
import pytest

import tape_jupyter
from tape_jupyter import cli
from tape_jupyter.jupyter.line_commands import ASKS
from tape_jupyter.session.options import CELL_MODES, SESSION_MODES, USAGE
from tests.harness.notebook import ROOT

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted(DOCS.rglob("*.md"))]
MADE = DOCS / "tutorials"  # copied by conf.py while the pages are built


def text(page):
    return page.read_text(encoding="utf-8")


ALL = "\n".join(text(page) for page in PAGES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_its_links_and_pictures_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", text(page)):
        place = (page.parent / target).resolve()
        if MADE in place.parents:
            place = ROOT / "example_notebooks" / place.relative_to(MADE)
        assert target.startswith("http") or place.is_file(), target


def test_the_readme_is_read_in_a_sitting():
    assert len(text(ROOT / "README.md").encode()) <= 6_000


def test_make_targets_are_in_the_makefile():
    targets = re.findall(r"^([a-z-]+):.*## ", text(ROOT / "Makefile"), re.MULTILINE)
    named = re.findall(r"make (demo|test|bench|docs|lint|examples|[a-z]+-[a-z]+)\b", ALL)
    assert set(named) <= set(targets)


def test_the_readme_says_how_to_run_the_examples_and_how_long_the_tests_take():
    readme = text(ROOT / "README.md")
    assert "make lab " in readme
    assert re.search(r"make test .*minutes", readme)


@pytest.mark.parametrize(("user", "allowed"), [("0", True), ("1000", False)])
def test_make_lab_starts_for_root_too(tmp_path, user, allowed):
    who = tmp_path / "id"
    who.write_text(f"#!/bin/sh\necho {user}\n")
    who.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    said = subprocess.run(
        ["make", "--no-print-directory", "--dry-run", "lab"],
        cwd=ROOT, env={**os.environ, "PATH": path}, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert ("--allow-root" in said.stdout.splitlines()[-1].split()) is allowed


def test_the_glossary_has_the_words_of_options_and_pages_in_order():
    rows = re.findall(
        r"^\| ([a-z ]+) \|", text(DOCS / "contributing" / "glossary.md"), re.MULTILINE
    )
    words = {"bundle", "candidate", "cold case", "divergence", "drift", "freeze", "pace", "stub"}
    assert words - set(rows) == set()
    assert rows[1:] == sorted(rows[1:])


def test_the_commands_are_those_of_the_command_line():
    named = re.findall(
        r"^tape ([a-z]+)", text(DOCS / "reference" / "command-line.md"), re.MULTILINE
    )
    assert set(named) == set(cli.tape.commands)
    for command in cli.tape.commands.values():
        options = [each for each in command.params if isinstance(each, click.Option)]
        assert any(option.name == "as_json" for option in options)


def test_every_word_and_option_of_the_magics_is_told():
    for word in (*CELL_MODES, *SESSION_MODES, *ASKS):
        assert word in ALL
    for option in re.findall(r"--[a-z-]+", USAGE):
        assert f"`{option}" in ALL


@pytest.mark.parametrize(
    "name", re.findall(r"\btape\.([a-z]+)\b(?=[(\n ])", text(DOCS / "reference" / "python.md"))
)
def test_every_python_name_is_public(name):
    assert hasattr(tape_jupyter, name)


def test_the_map_names_every_package():
    named = text(DOCS / "contributing" / "map.md")
    folders = [path.parent.name for path in (ROOT / "tape_jupyter").glob("*/__init__.py")]
    assert [name for name in folders if not re.search(rf"(?<!\w){name}(?!\w)", named)] == []


def test_the_readmes_first_command_installs_it():
    readme = text(ROOT / "README.md")
    first = re.search(r"^```\w*\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    assert first is not None and first[1] == "pip install tape-jupyter\n"
    assert readme.index("```") < readme.index("\n## ")


@pytest.mark.parametrize("command", ["record", "replay", "rerun"])
def test_commands_that_run_a_notebook_take_a_kernel_by_name(command):
    (option,) = [each for each in cli.tape.commands[command].params if each.name == "kernel_name"]
    assert option.opts == ["--kernel"]
