"""Symbolic links that a tool makes, moves and removes come back; none that leads out of the notebook's folder."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import tape_jupyter as tape
from tests.harness.tool_runs import ran as bodies
from tests.harness.tool_runs import replayed, same


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    (tmp_path / "nb").mkdir()
    (tmp_path / "outside.txt").write_text("outside")
    monkeypatch.chdir(tmp_path / "nb")
    bodies.clear()


def lay_out():
    """Two releases, a link to the first and one to a page, and one that leads nowhere."""
    for name in [name for name in os.listdir() if not name.endswith(".yaml") and name != "assets"]:
        shutil.rmtree(name) if Path(name).is_dir() and not Path(name).is_symlink() else os.unlink(
            name
        )
    for release in ("one", "two"):
        Path("releases", release).mkdir(parents=True)
        Path("releases", release, "page.txt").write_text(f"page of {release}")
    Path("current").symlink_to("releases/one")
    Path("page.txt").symlink_to("releases/one/page.txt")
    Path("nowhere").symlink_to("gone")


def looks():
    found = {}
    for folder, folders, names in os.walk("."):
        for name in sorted({*folders, *names}):
            path = Path(folder, name)
            if path.suffix == ".yaml" or name == "assets" or "assets" in path.parts:
                continue
            if path.is_symlink():
                found[str(path)] = f"-> {path.readlink()}"
            else:
                found[str(path)] = "" if path.is_dir() else path.read_text()
    return found


def swap(to):
    Path("next").symlink_to(to)
    Path("next").replace("current")


def make_again(name, to):
    Path(name).unlink()
    Path(name).symlink_to(to)


WORKS = {
    "a link to a file": lambda: Path("new").symlink_to("page.txt"),
    "a link to a folder": lambda: os.symlink("releases/two", "new"),
    "an absolute link": lambda: Path("new").symlink_to(Path("releases/two").resolve()),
    "a link in a folder that it makes": lambda: (
        Path("a/b").mkdir(parents=True),
        os.symlink("../../page.txt", "a/b/c"),
    ),
    "a link to what is not there": lambda: os.symlink("later", "new"),
    "another release": lambda: make_again("current", "releases/two"),
    "another release at one go": lambda: swap("releases/two"),
    "another page": lambda: make_again("page.txt", "releases/two/page.txt"),
    "a link in a file's place": lambda: make_again("releases/one/page.txt", "../two/page.txt"),
    "a link renamed": lambda: Path("current").rename("former"),
    "a link removed": lambda: Path("current").unlink(),
    "a link to nothing removed": lambda: Path("nowhere").unlink(),
    "a file in a link's place": lambda: (
        Path("page.txt").unlink(),
        Path("page.txt").write_text("of its own"),
    ),
    "the same text in a link's place": lambda: (
        Path("page.txt").unlink(),
        Path("page.txt").write_text("page of one"),
    ),
    "a folder in a link's place": lambda: (Path("current").unlink(), Path("current").mkdir()),
    "a link in a folder's place": lambda: (
        shutil.rmtree("releases/one"),
        os.symlink("two", "releases/one"),
    ),
    "written through a link": lambda: Path("page.txt").write_text("through"),
    "written into a linked folder": lambda: Path("current/more.txt").write_text("more"),
    "a link that a process makes": lambda: subprocess.run(
        ["ln", "-s", "releases/two", "new"], capture_output=True, check=True
    ),
    "a link that a process points elsewhere": lambda: subprocess.run(
        ["ln", "-sfn", "releases/two", "current"], capture_output=True, check=True
    ),
    "a hard link": lambda: os.link("releases/one/page.txt", "hard.txt"),
    "a tree copied with its links": lambda: (
        os.symlink("one", "releases/last"),
        shutil.copytree("releases", "copy", symlinks=True),
    ),
}


def program_of(act):
    def program():
        lay_out()

        @tape.tool
        def publish(name):
            bodies.append("publish")
            act()
            return "ok"

        publish("a")
        return looks()

    return program


@pytest.mark.parametrize("work", WORKS)
def test_what_a_tool_does_to_links_comes_back(work):
    same(program_of(WORKS[work]))


@pytest.mark.parametrize(
    "to",
    ["../outside.txt", "/etc/hostname", "releases/../../outside.txt", "..", "current/../../.."],
)
def test_a_link_out_of_the_folder_is_said_and_not_made(to):
    live, again, recorded, report = replayed(program_of(lambda: os.symlink(to, "new")))
    assert live["new"] == f"-> {to}"
    assert "new" not in again
    said = "it made new a link that leads out of the notebook's folder"
    assert said in str(recorded.warnings) + str(recorded.unheld)
    assert said in str(report.unheld)


def test_an_absolute_link_leads_into_the_folder_where_it_is_replayed(tmp_path, monkeypatch):
    program = program_of(lambda: Path("new").symlink_to(Path("page.txt").absolute()))
    with tape.recording("a.tape.yaml"):
        program()
    shutil.copytree(".", tmp_path / "elsewhere", symlinks=True)
    monkeypatch.chdir(tmp_path / "elsewhere")
    with tape.replaying("a.tape.yaml"):
        program()
    assert Path("new").readlink() == tmp_path / "elsewhere" / "page.txt"


@pytest.mark.parametrize("target", ["../outside.txt", "/etc", "current/../../..", "a/../../x"])
def test_a_cassette_by_a_stranger_makes_no_link_out_of_the_folder(target):
    with tape.recording("a.tape.yaml"):
        program_of(lambda: os.symlink("page.txt", "new"))()
    text = Path("a.tape.yaml").read_text()
    assert "link: page.txt" in text
    Path("a.tape.yaml").write_text(text.replace("link: page.txt", f'link: "{target}"'))
    with tape.replaying("a.tape.yaml") as block:
        found = program_of(lambda: None)()
    assert "new" not in found
    assert "new" in str(block.report.warnings) + str(block.report.unheld)


def test_replayed_twice_in_one_folder_a_link_in_a_folders_place_costs_nobody_a_file():
    def program():
        @tape.tool
        def publish(name):
            bodies.append("publish")
            shutil.rmtree("releases/one")
            os.symlink("two", "releases/one")
            return "ok"

        publish("a")
        return looks()

    lay_out()
    for release in ("one", "two"):
        Path("releases", release, "page.txt").write_text("the same in both")
    with tape.recording("a.tape.yaml"):
        live = program()
    for _ in range(2):
        with tape.replaying("a.tape.yaml"):
            assert program() == live
    assert Path("releases/two/page.txt").read_text() == "the same in both"


def test_a_link_that_a_person_changed_since_is_left_as_it_is():
    program = program_of(lambda: make_again("current", "releases/two"))
    with tape.recording("a.tape.yaml"):
        program()

    def changed():
        lay_out()
        make_again("current", "releases")

        @tape.tool
        def publish(name):
            bodies.append("publish")
            return "ok"

        publish("a")
        return looks()

    with tape.replaying("a.tape.yaml") as block:
        assert changed()["current"] == "-> releases"
    assert "changed since it was recorded" in str(block.report.unheld)
