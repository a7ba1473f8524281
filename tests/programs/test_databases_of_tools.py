"""What a tool does to SQLite's files comes back: through a log that is not written back yet, into files that only
SQL names; where too many files lie to compare them, it is said.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import tape_jupyter as tape
from tests.harness.tool_runs import ran as bodies
from tests.harness.tool_runs import replayed, same


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bodies.clear()


def insert(database):
    database.execute("INSERT INTO t VALUES (1)")
    database.commit()


def attach(database):
    database.execute("ATTACH DATABASE 'b.db' AS other")
    database.execute("CREATE TABLE other.u AS SELECT 3 AS y")
    database.commit()
    database.execute("DETACH DATABASE other")


def write_to_the_attached(database):
    database.execute("INSERT INTO beside.v VALUES (9)")
    database.commit()


def back_up(database):
    with closing(sqlite3.connect("b.db")) as copy:
        database.backup(copy)


WORKS = {
    "a row": insert,
    "an attached file": attach,
    "a file attached before": write_to_the_attached,
    "a vacuum into a file": lambda database: database.execute("VACUUM INTO 'b.db'"),
    "a copy": back_up,
}


def program_of(act, *, log, keeps_open=True):
    def program():
        for name in Path().glob("*.db*"):
            name.unlink()
        database = sqlite3.connect("a.db")
        if log:
            database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE t (x)")
        database.execute("ATTACH DATABASE 'c.db' AS beside")
        database.execute("CREATE TABLE beside.v (y)")
        database.commit()
        if not keeps_open:
            database.close()

        @tape.tool
        def work(name):
            bodies.append("work")
            if keeps_open:
                act(database)
            else:
                with closing(sqlite3.connect("a.db")) as own:
                    act(own)
            return "ok"

        work("a")
        found = {name: rows(name) for name in ("a.db", "b.db", "c.db") if Path(name).exists()}
        database.close()
        return found

    return program


def rows(name):
    with closing(sqlite3.connect(name)) as database:
        return [*database.iterdump()]


@pytest.mark.parametrize("log", [False, True], ids=["rollback", "wal"])
@pytest.mark.parametrize("work", WORKS)
def test_rows_that_a_tool_wrote_come_back(work, log):
    assert "CREATE TABLE" in str(same(program_of(WORKS[work], log=log)))


@pytest.mark.parametrize("log", [False, True], ids=["rollback", "wal"])
def test_rows_written_through_a_connection_of_the_tools_own_come_back(log):
    found = same(program_of(insert, log=log, keeps_open=False))
    assert 'INSERT INTO "t" VALUES(1);' in found["a.db"]


def test_a_file_that_is_only_called_like_one_of_sqlites_own_comes_back():
    def program():
        @tape.tool
        def work(name):
            bodies.append("work")
            Path("daily-journal").write_text(name)
            return "ok"

        Path("daily-journal").unlink(missing_ok=True)
        work("rain")
        return Path("daily-journal").read_text()

    assert same(program) == "rain"


def test_a_file_made_by_sql_among_too_many_to_compare_is_said():
    Path("many").mkdir()
    for number in range(2_100):
        Path(f"many/{number}").touch()
    live, again, recorded, report = replayed(program_of(WORKS["a vacuum into a file"], log=False))
    assert live != again
    assert "where too many lie" in str(report.unheld)
    assert "where too many lie" in str(recorded.warnings) + str(recorded.unheld)
