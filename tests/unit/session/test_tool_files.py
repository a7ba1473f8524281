"""Files that tools made, changed and removed are put back in replay, in the notebook's folder only, never over a person's."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import warnings

import pytest

import tape_jupyter as tape
from tests.harness.tool_runs import ran as bodies
from tests.harness.tool_runs import replayed, same


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bodies.clear()


def test_files_are_made_changed_and_removed():
    @tape.tool
    def work(name):
        bodies.append(name)
        with open("log.txt", "a") as file:
            file.write(name + "\n")
        os.makedirs("out", exist_ok=True)
        with open("out/data.bin", "wb") as file:
            file.write(bytes(range(256)))
        if name == "b":
            os.remove("old.txt")
        return "ok"

    def program():
        for path in ("log.txt", "out/data.bin"):
            with contextlib.suppress(FileNotFoundError):
                os.remove(path)
        with open("old.txt", "w") as file:
            file.write("old")
        work("a")
        first = open("log.txt").read()
        work("b")
        return (
            first,
            open("log.txt").read(),
            open("out/data.bin", "rb").read() == bytes(range(256)),
            os.path.exists("old.txt"),
        )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        assert same(program) == ("a\n", "a\nb\n", True, False)


def test_a_database_in_a_file_is_written_through_the_connection_that_is_open():
    @tape.tool
    def order(name):
        bodies.append(name)
        with database:
            database.execute("INSERT INTO orders VALUES (?)", (name,))

    database = None

    def program():
        nonlocal database
        with contextlib.suppress(FileNotFoundError):
            os.remove("orders.db")
        database = sqlite3.connect("orders.db")
        database.execute("CREATE TABLE orders (name)")
        order("tea"), order("milk")
        rows = database.execute("SELECT name FROM orders").fetchall()
        database.execute("INSERT INTO orders VALUES ('own')")
        database.commit()
        database.close()
        again = sqlite3.connect("orders.db")
        rows += again.execute("SELECT count(*) FROM orders").fetchall()
        again.close()
        return rows

    assert same(program) == [("tea",), ("milk",), (3,)]


def test_a_file_that_is_open_already_is_written_where_it_stands():
    file = None

    @tape.tool
    def note(text):
        bodies.append(text)
        file.write(text + "\n")

    def program():
        nonlocal file
        with open("log.txt", "w") as file:
            file.write("begin\n")
            note("a")
            file.write("between\n")
            note("b")
        return open("log.txt").read()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        assert same(program) == "begin\na\nbetween\nb\n"


def test_a_file_that_a_person_changed_since_is_left_as_it_is():
    @tape.tool
    def work():
        bodies.append("work")
        with open("notes.txt", "w") as file:
            file.write("by the tool")

    with tape.recording("a.tape.yaml"):
        work()
    with open("notes.txt", "w") as file:
        file.write("by a person")
    with tape.replaying("a.tape.yaml") as block:
        work()
    with open("notes.txt") as file:
        assert file.read() == "by a person"
    (told,) = block.report.warnings
    assert "notes.txt" in told and "changed since it was recorded" in told
    assert block.report.unheld


def test_a_file_elsewhere_is_named_and_not_written(tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "out.txt"

    @tape.tool
    def work():
        bodies.append("work")
        elsewhere.write_text("x")

    with tape.recording("a.tape.yaml") as block:
        work()
    elsewhere.unlink()
    assert str(elsewhere) in str(block.report.warnings)
    with tape.replaying("a.tape.yaml") as block:
        work()
    assert not elsewhere.exists() and str(elsewhere) in str(block.report.warnings)


@pytest.mark.parametrize(
    "name", ["../out.txt", "/out.txt", "a.tapes/x", "nb.ipynb", "~/x", "link/x"]
)
def test_a_cassette_by_hand_writes_nothing_outside_of_the_folder(tmp_path, tmp_path_factory, name):
    outside = tmp_path_factory.mktemp("outside")
    (tmp_path / "link").symlink_to(outside)

    @tape.tool
    def work():
        bodies.append("work")
        with open("name.txt", "w") as file:
            file.write("x")

    with tape.recording("a.tape.yaml"):
        work()
    os.remove("name.txt")
    path = tmp_path / "a.tape.yaml"
    path.write_text(path.read_text().replace("file: name.txt", f'file: "{name}"'))
    with tape.replaying("a.tape.yaml") as block:
        work()
    assert (
        block.report.unheld
        and not list(outside.iterdir())
        and not (tmp_path.parent / "out.txt").exists()
    )
