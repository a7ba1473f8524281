"""What a tool does to SQLite's files comes back: through a log that is not written back yet, into files that only
SQL names; where too many files lie to compare them, it is said.
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

import tape_jupyter as tape
from tape_jupyter.instrumentation.tools import databases
from tests.harness.tool_runs import ran as bodies
from tests.harness.tool_runs import replayed, same


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bodies.clear()


class Connection(sqlite3.Connection):
    """As people derive one."""


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


def run(database, *statements):
    for sql in statements:
        database.execute(sql)
    database.commit()


MAKES_A_TABLE = "CREATE TABLE other.u AS SELECT 3 AS y"
MADE_OF_PARTS = "ATTACH 'b' || '.db' AS other"


def attach_in_a_connection_of_its_own(connect, name="a.db"):
    with closing(connect(name)) as own:
        own.executescript(f"ATTACH 'b.db' AS other; {MAKES_A_TABLE}")


WORKS = {
    "a row": insert,
    "SQL as arguments": lambda database: run(
        database, "ATTACH 'b.db' AS other", MAKES_A_TABLE, "DETACH other"
    ),
    "a name that SQL puts together": lambda database: run(
        database, MADE_OF_PARTS, MAKES_A_TABLE, "DETACH other"
    ),
    "an address": lambda database: attach_in_a_connection_of_its_own(
        lambda name: sqlite3.connect(f"file:{name}?mode=rwc", uri=True)
    ),
    "a connection of its own": lambda _: attach_in_a_connection_of_its_own(sqlite3.connect),
    "one in memory": lambda _: attach_in_a_connection_of_its_own(sqlite3.connect, ":memory:"),
    "one of another class": lambda _: attach_in_a_connection_of_its_own(Connection),
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


@pytest.fixture
def many_files():
    Path("many").mkdir()
    for number in range(2_100):
        Path(f"many/{number}").touch()


@pytest.mark.parametrize("work", ["a vacuum into a file", "SQL as arguments"])
def test_among_too_many_files_to_compare_one_that_sql_names_comes_back(work, many_files):
    assert "b.db" in same(program_of(WORKS[work], log=False))


def test_one_whose_name_sql_puts_together_is_said_there(many_files):
    act = WORKS["a name that SQL puts together"]
    live, again, recorded, report = replayed(program_of(act, log=False))
    assert live != again
    assert "where too many lie" in str(report.unheld)
    assert "where too many lie" in str(recorded.warnings) + str(recorded.unheld)


def test_a_text_that_speaks_of_attaching_is_no_sql(many_files):
    def act(database):
        database.execute("SELECT 'please attach the file, vacuum into the corner'").fetchall()

    same(program_of(act, log=False))


@pytest.mark.parametrize("allowed", [sqlite3.SQLITE_OK, sqlite3.SQLITE_DENY])
def test_an_authorizer_of_the_programs_is_asked_and_obeyed(allowed):
    def program():
        Path("b.db").unlink(missing_ok=True)
        heard = []
        database = sqlite3.connect(":memory:")
        database.set_authorizer(
            lambda action, *_: heard.append(action) or (allowed if action == 24 else 0)
        )

        @tape.tool
        def work():
            bodies.append("work")
            try:
                attach(database)
            except sqlite3.DatabaseError:
                return "denied"
            return "attached"

        told = work()
        database.close()
        return told, heard, Path("b.db").exists()

    told, heard, there = same(program)
    assert there == (told == "attached") and 24 in heard


def test_what_the_program_sets_instead_of_its_authorizer_stands():
    def program():
        heard = []
        database = sqlite3.connect(":memory:")
        database.set_authorizer(lambda *what: heard.append(what) or 0)

        @tape.tool
        def work():
            bodies.append("work")
            return database.execute("SELECT 1").fetchall()

        work()
        database.set_authorizer(None)
        heard.clear()
        database.execute("SELECT 2 AS two").fetchall()
        database.close()
        return heard

    assert same(program) == []


def wait_for_another_second():
    began = int(time.time())
    while int(time.time()) == began:
        time.sleep(0.01)


SCHEMA = (
    "CREATE TABLE talks (text, day DEFAULT CURRENT_DATE, at TIMESTAMP DEFAULT CURRENT_TIMESTAMP)"
)


def note(database, text):
    database.execute("INSERT INTO talks (text) VALUES (?)", [text])
    database.execute("UPDATE talks SET text = text || CURRENT_TIME")
    database.commit()


WORDS = """
SELECT *, CURRENT_TIMESTAMP, datetime('now'), date('NOW', '-1 day'), time(), strftime('%H:%M:%f', 'now', 'localtime'),
    julianday('now'), unixepoch() FROM talks
"""


def test_what_sql_has_of_the_clock_is_that_of_the_recording():
    """A library's session store in the notebook's own code has its times from SQL."""
    database = sqlite3.connect("talks.db")
    database.execute(SCHEMA)
    database.execute(
        "CREATE TRIGGER t AFTER INSERT ON talks BEGIN UPDATE talks SET text = text || julianday('now'); END"
    )

    def program():
        bodies.append("no tool")
        note(database, "hi")
        return database.execute(WORDS).fetchall()

    with tape.recording("a.tape.yaml"):
        live = program()
    database.execute("DELETE FROM talks")
    wait_for_another_second()
    with tape.replaying("a.tape.yaml"):
        assert program() == live
    database.close()


def test_a_connection_that_was_made_before_the_tape_is_held_as_well():
    done = subprocess.run(
        [sys.executable, "-c", EARLIER], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout == "True\n", done.stderr


EARLIER = """
import sqlite3, time
database = sqlite3.connect(":memory:")
import tape_jupyter as tape
from tape_jupyter.instrumentation.tools import databases
found = []
for mode in (tape.recording, tape.replaying):
    with mode("b.tape.yaml"):
        found.append((time.time(), database.execute("SELECT julianday('now')").fetchone()))
print(found[0] == found[1])
"""


def test_a_database_that_trusts_no_schema_has_its_default_times_and_an_index_by_the_day():
    def program():
        bodies.append("no tool")
        with closing(sqlite3.connect(":memory:")) as database:
            database.execute("PRAGMA trusted_schema = OFF")
            database.execute(SCHEMA)
            database.execute("CREATE INDEX i ON talks (date(at))")
            note(database, "hi")
            return database.execute("SELECT * FROM talks").fetchall()

    with tape.recording("a.tape.yaml"):
        live = program()
    wait_for_another_second()
    with tape.replaying("a.tape.yaml"):
        assert program() == live


def test_where_sqlite_cannot_ask_us_its_three_words_are_functions_of_ours(monkeypatch):
    monkeypatch.setattr(databases, "_hold_clock", lambda: None)
    undo = databases.patch(sqlite3)
    try:
        with closing(sqlite3.connect(":memory:")) as database, tape.recording("a.tape.yaml"):
            words = "SELECT CURRENT_DATE, CURRENT_TIME, CURRENT_TIMESTAMP"
            live = database.execute(words).fetchone()
            assert len(live) == 3 and live[2].startswith(live[0])
    finally:
        undo()


def test_without_a_tape_sql_tells_the_moment_as_sqlite_does():
    with tape.recording("a.tape.yaml"):
        database = sqlite3.connect(":memory:")
    words = "SELECT {}, {}, {}"
    ours = words.format("CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP")
    theirs = words.format("date('now')", "time('now')", "datetime('now')")
    before = database.execute(theirs).fetchone()
    told = database.execute(ours).fetchone()
    assert before <= told <= database.execute(theirs).fetchone()
    database.close()


def test_threads_that_share_a_connection_wait_for_each_other_as_without_us():
    done = subprocess.run(
        [sys.executable, "-c", SHARED], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout.startswith("done") and "check_same_thread=False" in done.stdout, done.stderr


SHARED = """
import sqlite3, threading
from contextlib import suppress
import tape_jupyter as tape

def fill(database):
    for _ in range(100):
        with suppress(sqlite3.Error):  # what SQLite tells threads that come between each other
            database.execute("INSERT INTO t (day) VALUES (date('now'))")
            database.execute("SELECT count(*), datetime('now') FROM t").fetchall()

with tape.recording("b.tape.yaml") as block:
    database = sqlite3.connect(":memory:", check_same_thread=False)
    database.execute("CREATE TABLE t (at DEFAULT CURRENT_TIMESTAMP, day)")
    threads = [threading.Thread(target=fill, args=(database,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print("done", block.report.warnings)
"""
