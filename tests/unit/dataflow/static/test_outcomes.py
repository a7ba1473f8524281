"""What databases and child processes gave comes back as what it was; a structure reaches SQL as a quoted name at most."""

import contextlib
import sqlite3
import subprocess

import pytest

from tape_jupyter.errors import CassetteError
from tape_jupyter.encoding.values.registry import CannotFreeze, freeze, thaw
from tape_jupyter.encoding.values.stdlib_results import RecordedCursor, recorded_cursor


@pytest.fixture
def database():
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        database.row_factory = sqlite3.Row
        yield database


@pytest.mark.parametrize(
    "sql",
    [
        "select 1 as a, 'x' as b, 2.5 as c, null as d, x'00ff' as e",
        "select 1 as a, 2 as a",
        'select 1 as "a ""quoted"" name", 2 as "drop table; --", 3 as "ü"',
    ],
)
def test_a_row_comes_back_as_a_row(sql, database):
    (row,) = database.execute(sql).fetchall()
    again = thaw(freeze(row))
    assert type(again) is sqlite3.Row and again == row and hash(again) == hash(row)
    assert again.keys() == row.keys() and tuple(again) == tuple(row) and again[0] == row[0]


def test_rows_in_a_list_come_back_together(database):
    found = database.execute("select 1 as a union select 2").fetchall()
    assert [dict(row) for row in thaw(freeze(found))] == [{"a": 1}, {"a": 2}]


def test_a_cursor_is_read_to_its_end_and_comes_back_unread(database):
    cursor = recorded_cursor(database.execute("select 1 as a union select 2"))
    again = thaw(freeze(cursor))
    assert next(again)["a"] == 1 and [row["a"] for row in again] == [2]
    assert isinstance(again, sqlite3.Cursor) and again.description == cursor.description == (
        ("a", *[None] * 6),
    )
    assert len(cursor.fetchall()) == 2 and cursor.fetchone() is None


def test_a_statement_without_rows_has_its_numbers(database):
    database.execute("create table t (a)")
    again = thaw(freeze(recorded_cursor(database.execute("insert into t values (1), (2)"))))
    assert (again.rowcount, again.lastrowid, again.description, again.fetchall()) == (
        2,
        2,
        None,
        [],
    )


def test_a_live_cursor_and_a_connection_cannot_be_written(database):
    with pytest.raises(CannotFreeze):
        freeze([database.execute("select 1")])
    with pytest.raises(CannotFreeze):
        freeze(database)


def test_a_class_that_somebody_derived_from_one_of_these_is_not_taken_for_it(database):
    class Row(sqlite3.Row):
        pass

    database.row_factory = Row
    with pytest.raises(CannotFreeze):
        freeze(database.execute("select 1").fetchone())
    assert RecordedCursor.__mro__[1] is sqlite3.Cursor


@pytest.mark.parametrize(
    "done",
    [
        subprocess.CompletedProcess(["ls", "-l"], 0, "out", ""),
        subprocess.CompletedProcess("ls", -9, b"\xff", None),
        subprocess.CompletedProcess(("a", 1), 3),
    ],
)
def test_a_completed_process_comes_back(done):
    again = thaw(freeze(done))
    assert type(again) is subprocess.CompletedProcess and vars(again) == vars(done)


@pytest.mark.parametrize(
    "structure",
    [
        {"<type>": "sqlite3 row", "columns": ["a", "b"], "values": [1]},
        {"<type>": "sqlite3 row", "columns": [], "values": []},
        {"<type>": "sqlite3 row", "columns": "a", "values": [1]},
        {"<type>": "sqlite3 row", "columns": ["a\0b"], "values": [1]},
        {"<type>": "sqlite3 row", "columns": ["a"] * 5000, "values": [1] * 5000},
        {"<type>": "sqlite3 cursor", "columns": [1], "rows": []},
        {"<type>": "sqlite3 cursor", "columns": ["a"]},
    ],
)
def test_a_structure_that_is_none_is_refused(structure):
    with pytest.raises(CassetteError):
        thaw(structure)
