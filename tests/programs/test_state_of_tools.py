"""A tool's state may be anywhere: in iterators, weak references, classes, settings, pictures, open transactions, threads.

Each program makes its own state, so that a replay starts from where the recording did.
"""

from __future__ import annotations

import asyncio
import contextlib
import csv
import decimal
import functools
import io
import itertools
import logging
import logging.handlers
import os
import queue
import shutil
import sqlite3
import string
import subprocess
import sys
import tempfile
import threading
import time
import types
import warnings
import weakref
from pathlib import Path

import attrs
import numpy
import pandas
import pytest
from PIL import Image, ImageDraw
from rich.table import Table

import tape_jupyter as tape
from tests.harness.tool_runs import ran as bodies
from tests.harness.tool_runs import replayed, same


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bodies.clear()


class Closed:
    pass


class Open:
    pass


class Reader:
    def __init__(self, name):
        self.name, self.read = name, []


class Adder:
    def add(self, item, known=[]):  # noqa: B006
        known.append(item)
        return len(known)


def _paint(picture):
    picture.putpixel((1, 1), (255, 0, 0))
    picture.info["by"] = "ada"


def _frame_of_levels(frame):
    frame.index = pandas.MultiIndex.from_product([["x"], range(len(frame))], names=["a", "b"])
    frame.attrs["seen"] = 1


def _makes_an_iterator_of_itertools(make):
    """Of which Python tells no longer, from 3.14 on, how far it has been read."""
    return bool({"cycle", "chain"} & {*getattr(make, "__code__", _kept.__code__).co_names})


@pytest.mark.parametrize(
    ("make", "change", "look"),
    [
        (lambda: itertools.cycle("abc"), lambda box: [next(box) for _ in range(5)], next),
        (lambda: iter([1, 2, 3]), next, list),
        (lambda: iter({1: 2, 3: 4}), next, list),
        (lambda: iter(range(9)), lambda box: (next(box), next(box)), list),
        (lambda: zip("abc", itertools.count(1), strict=False), next, list),
        (lambda: enumerate("abc"), next, list),
        (lambda: itertools.chain([1], [2, 3]), lambda box: (next(box), next(box)), list),
        (lambda: reversed([1, 2, 3]), next, list),
        (threading.Event, lambda box: box.set(), lambda box: box.is_set()),
        (lambda: threading.Semaphore(3), lambda box: box.acquire(), lambda box: box._value),
        (asyncio.Event, lambda box: box.set(), lambda box: box.is_set()),
        (threading.local, lambda box: setattr(box, "a", 1), lambda box: box.a),
        (lambda: types.ModuleType("made"), lambda box: setattr(box, "a", [1]), lambda box: box.a),
        (
            lambda: numpy.ma.array([1.0, 2.0], mask=[0, 0]),
            lambda box: box.__setitem__(1, numpy.ma.masked),
            repr,
        ),
        (
            lambda: numpy.array([(1, 2.0)], dtype=[("n", "i4"), ("x", "f8")]),
            lambda box: box["x"].__setitem__(0, 7.5),
            repr,
        ),
        (
            lambda: memoryview(bytearray(4)),
            lambda box: box.__setitem__(2, 7),
            lambda box: bytes(box),
        ),
        (
            lambda: pandas.DataFrame({"a": [1, 2]}),
            _frame_of_levels,
            lambda box: (str(box), box.attrs),
        ),
        (
            lambda: Image.new("RGB", (4, 4), "white"),
            _paint,
            lambda box: (box.getpixel((1, 1)), box.info),
        ),
        (
            lambda: Image.new("RGB", (4, 4), "white"),
            lambda box: ImageDraw.Draw(box).line([(0, 0), (3, 3)], fill="blue"),
            lambda box: box.getpixel((2, 2)),
        ),
        (
            lambda: Table("name"),
            lambda box: box.add_row("tea"),
            lambda box: (box.row_count, list(box.columns[0].cells)),
        ),
        (
            lambda: weakref.WeakValueDictionary(),
            lambda box: box.__setitem__("a", _kept(Reader("a"))),
            lambda box: [each.name for each in box.values()],
        ),
        (
            Closed,
            lambda box: setattr(box, "__class__", Open),
            lambda box: type(box).__name__,
        ),
        (
            lambda: tempfile.SpooledTemporaryFile(max_size=99, mode="w+", encoding="utf-8"),  # noqa: SIM115
            lambda box: box.write("tea \u00e9"),
            lambda box: (box.write("!"), box.seek(0), box.read(), box.close()),
        ),
        (
            lambda: tempfile.SpooledTemporaryFile(),  # noqa: SIM115
            lambda box: box.write(b"tea"),
            lambda box: (box.tell(), box.seek(0), box.read(), box.close()),
        ),
        (
            lambda: io.TextIOWrapper(io.BytesIO(b"one, and more"), encoding="utf-8"),
            lambda box: (box.seek(0), box.truncate(), box.write("tea \u00e9")),
            lambda box: (box.write("!"), box.flush(), box.buffer.getvalue(), box.tell()),
        ),
        (
            lambda: Adder(),
            lambda box: (box.add(1), box.add(2)),
            lambda box: box.add.__func__.__defaults__,
        ),
    ],
)
def test_state_in_odd_objects_is_there_again(make, change, look):
    box = None

    @tape.tool
    def work():
        bodies.append("work")
        change(box)
        return "done"

    def program():
        nonlocal box
        Adder.add.__defaults__[0].clear()
        kept.clear()
        box = make()
        work()
        return look(box) if look is not next else (next(box), next(box))

    if sys.version_info >= (3, 14) and _makes_an_iterator_of_itertools(make):
        *_, recorded, report = replayed(program)
        assert "does not say how far it has been read" in recorded.warnings[0]
        assert "this did not happen" in report.warnings[0]
    elif "__defaults__" in str(look.__code__.co_names if hasattr(look, "__code__") else ""):
        assert tuple(map(list, same(lambda: [list(each) for each in program()]))) == ([1, 2],)
    else:
        same(program)


def test_a_tool_that_shows_an_object_of_attrs_is_held_without_a_word():
    made = []

    @tape.tool
    def plant(name):
        bodies.append("plant")
        made.append(Plant(name))
        return repr(made)

    def program():
        made.clear()
        return plant("bean"), [each.name for each in made]

    assert same(program) == ("[Plant(name='bean')]", ["bean"])


@attrs.define
class Plant:
    name: str


kept = []


def _kept(value):
    kept.append(value)
    return value


def test_methods_kept_under_names_of_their_own_reach_their_objects():
    notes, rows = [], io.StringIO()
    remember, writer = notes.append, csv.writer(rows)

    @tape.tool
    def note(text):
        bodies.append(text)
        remember(text)
        writer.writerow([text])
        return "noted"

    def program():
        notes.clear()
        rows.seek(0), rows.truncate()
        note("tea"), note("milk")
        return list(notes), rows.getvalue()

    assert same(program) == (["tea", "milk"], "tea\r\nmilk\r\n")


def test_members_of_weak_sets_that_something_else_leads_to_are_changed():
    readers = weakref.WeakSet()
    ada, bob = Reader("ada"), Reader("bob")
    everyone = {"ada": ada, "bob": bob}
    last = weakref.ref(ada)

    @tape.tool
    def publish(text):
        bodies.append(text)
        for each in sorted(readers, key=lambda reader: reader.name):
            each.read.append(text)
        last().last = text
        readers.discard(everyone["bob"])
        return "published"

    def program():
        readers.update([ada, bob])
        ada.read.clear(), bob.read.clear()
        publish("rain"), publish("sun")
        return ada.read[:], bob.read[:], ada.last, sorted(each.name for each in readers)

    assert same(program) == (["rain", "sun"], ["rain"], "sun", ["ada"])


def test_a_function_that_is_chosen_by_type_reaches_what_it_names():
    numbers = []

    @functools.singledispatch
    def store(item):
        return "other"

    @store.register
    def _(item: int):
        numbers.append(item)
        return "number"

    @tape.tool
    def keep(item):
        bodies.append(item)
        return store(item)

    def program():
        numbers.clear()
        return keep(1), keep("a"), list(numbers)

    _, again, _, report = replayed(program)
    assert again == ("number", "other", [1]) and not report.unheld


found_by_name: list = []


def test_variables_that_the_code_does_not_name_are_within_reach():
    @tape.tool
    def work(item):
        bodies.append(item)
        sys.modules[__name__].found_by_name.append(item)
        exec(f"new_of_{item} = {item!r}", globals())
        return "ok"

    def program():
        found_by_name.clear()
        globals().pop("new_of_a", None)
        work("a")
        return list(found_by_name), globals()["new_of_a"]

    assert same(program) == (["a"], "a")


def test_a_result_that_was_there_before_is_that_object_though_nothing_else_happened():
    boxes = {"a": {"items": [], "owner": {"name": "ada"}}}

    @tape.tool
    def find(name):
        bodies.append(name)
        return boxes[name]

    @tape.tool
    def everything():
        bodies.append("everything")
        return list(boxes.values()), boxes["a"]["owner"]

    def program():
        found, (both, owner) = find("a"), everything()
        return found is boxes["a"], both[0] is found, owner is found["owner"]

    assert same(program) == (True, True, True)


def test_an_error_that_the_program_keeps_is_the_one_that_is_raised():
    errors = []

    @tape.tool
    def divide(a, b):
        bodies.append((a, b))
        try:
            return a / b
        except ZeroDivisionError as error:
            errors.append(error)
            raise ArithmeticError("no") from error

    @tape.tool
    def check():
        bodies.append("check")
        errors.append(ValueError("large"))
        raise errors[-1]

    def program():
        errors.clear()
        caught = []
        for work in (lambda: divide(1, 0), check):
            try:
                work()
            except Exception as error:
                caught.append(error)
        return caught[0].__cause__ is errors[0], caught[1] is errors[1], len(errors)

    assert same(program) == (True, True, 2)


def test_settings_of_libraries_and_of_the_process_are_as_the_tool_left_them(monkeypatch):
    @tape.tool
    def settle():
        bodies.append("settle")
        decimal.getcontext().prec = 5
        numpy.set_printoptions(precision=2)
        pandas.set_option("display.max_rows", 7)
        warnings.filterwarnings("ignore", message="old ways")
        logging.getLogger("of a tool").setLevel(logging.DEBUG)
        sys.path.append("plugins")
        return "settled"

    def program():
        with decimal.localcontext(), warnings.catch_warnings(), numpy.printoptions(precision=8):
            decimal.getcontext().prec = 28
            pandas.set_option("display.max_rows", 60)
            logging.getLogger("of a tool").setLevel(0)
            monkeypatch.setattr(sys, "path", [each for each in sys.path if each != "plugins"])
            settle()
            return (
                str(decimal.Decimal(1) / 3), str(numpy.array([1 / 3])), pandas.get_option("display.max_rows"),
                [each[0] for each in warnings.filters if each[1] and "old ways" in each[1].pattern],
                logging.getLogger("of a tool").level, sys.path[-1],
            )  # fmt: skip

    try:
        assert same(program) == ("0.33333", "[0.33]", 7, ["ignore"], logging.DEBUG, "plugins")
    finally:
        pandas.reset_option("display.max_rows")


def test_a_folder_outside_of_the_notebooks_is_not_put_on_the_path_and_it_is_said(monkeypatch):
    @tape.tool
    def settle():
        bodies.append("settle")
        sys.path.append("/elsewhere")
        return "settled"

    def program():
        monkeypatch.setattr(sys, "path", [each for each in sys.path if each != "/elsewhere"])
        return settle()

    _, _, _, report = replayed(program)
    assert "/elsewhere" not in sys.path
    assert "`sys.path`" in str(report.unheld)


def test_the_working_directory_is_the_one_that_the_tool_went_to(tmp_path, monkeypatch):
    @tape.tool
    def go(name):
        bodies.append(name)
        os.makedirs(name, exist_ok=True)
        os.chdir(name)
        return "went"

    def program():
        monkeypatch.chdir(tmp_path)
        go("below")
        went = os.path.relpath(os.getcwd(), tmp_path)
        monkeypatch.chdir(tmp_path)
        return went

    assert same(program) == "below"


@pytest.mark.parametrize("ends", ["commit", "rollback"])
def test_what_a_tool_did_not_commit_may_still_be_committed_or_taken_back(ends):
    connection = sqlite3.connect(":memory:")
    cursor = connection.cursor()
    cursor.execute("create table birds (id integer primary key, name text)")
    connection.commit()

    @tape.tool
    def add(name):
        bodies.append(name)
        cursor.execute("insert into birds (name) values (?)", (name,))
        return "added"

    def program():
        connection.execute("delete from birds")
        connection.commit()
        add("owl"), add("kite")
        was_open = connection.in_transaction
        getattr(connection, ends)()
        return was_open, connection.execute("select name from birds order by name").fetchall()

    try:
        expected = [("kite",), ("owl",)] if ends == "commit" else []
        assert same(program) == (True, expected)
    finally:
        connection.close()


def test_rows_that_a_tool_reads_on_with_a_cursor_of_the_programs_are_said():
    connection = sqlite3.connect(":memory:")
    rows = connection.cursor()

    @tape.tool
    def peek():
        bodies.append("peek")
        return rows.fetchone()

    def program():
        rows.execute("select 1 union select 2")
        return peek()

    try:
        _, _, _, report = replayed(program)
        assert "rows" in str(report.unheld) and "read" in str(report.unheld)
    finally:
        connection.close()


def test_what_goes_on_after_a_tool_returned_is_said():
    done, go = [], threading.Event()

    def work(item):
        go.wait(20)
        done.append(item)

    @tape.tool
    def start(item):
        bodies.append(item)
        thread = threading.Thread(target=work, args=(item,))
        thread.start()
        kept.append(thread)
        return "started"

    def program():
        go.clear()
        result = start("a")
        go.set()
        for each in kept:
            if isinstance(each, threading.Thread):
                each.join()
        return result

    _, _, recorded, report = replayed(program)
    assert "after it returned" in " ".join(recorded.warnings)
    assert "after it returned" in str(report.unheld)
    assert "what work (" in str(report.unheld) and "done" in str(report.unheld)


def test_what_a_thread_shows_while_another_tool_runs_is_shown_again(capsys):
    go = threading.Event()
    threads = []

    def work(item):
        go.wait(20)
        print("did", item)

    @tape.tool
    def start(item):
        bodies.append(item)
        threads.append(threading.Thread(target=work, args=(item,)))
        threads[-1].start()
        return "started"

    @tape.tool
    def wait():
        bodies.append("wait")
        go.set()
        threads[-1].join()
        return "ended"

    def program():
        go.clear()
        threads.clear()
        start("a"), wait()
        return capsys.readouterr().out

    live, again, _, _ = replayed(program)
    assert again == live == "did a\n"


def test_files_that_a_library_writes_unheard_are_there_again(tmp_path, monkeypatch):
    """SQLite opens what it writes itself, as polars and duckdb do: Python hears of no file."""
    monkeypatch.setitem(sys.modules, "polars", types.ModuleType("polars"))

    @tape.tool
    def save(name):
        bodies.append("save")
        with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
            database.execute("CREATE TABLE prices (item TEXT)")
            database.execute("INSERT INTO prices VALUES (?)", (name,))
            database.execute("VACUUM INTO 'prices.db'")
        return "saved"

    def program():
        (tmp_path / "prices.db").unlink(missing_ok=True)
        save("tea")
        with contextlib.closing(sqlite3.connect("prices.db")) as database:
            return database.execute("SELECT item FROM prices").fetchall()

    assert same(program) == [("tea",)]


def test_what_a_process_wrote_among_too_many_files_is_said_not_to_be_known(tmp_path):
    for number in range(2_001):
        (tmp_path / f"{number}.txt").touch()

    @tape.tool
    def write(name):
        bodies.append("write")
        subprocess.run([sys.executable, "-S", "-c", f"open({name!r}, 'w').close()"], check=True)
        return "ok"

    _, _, recorded, report = replayed(lambda: write("made.csv"))
    for said in (recorded.warnings, report.unheld):
        assert "too many files" in str(said)


def _registered(names):
    while True:
        names.append((yield))


@pytest.mark.parametrize("sort", ["generator", "map", "chain"])
def test_what_the_code_of_an_iterator_changed_is_there_again(sort):
    register, line = [], None

    def note(name):
        register.append(name)
        return name

    @tape.tool
    def take(name):
        bodies.append(name)
        if sort == "generator":
            line.send(name)
        else:
            next(line)
        return "taken"

    def program():
        nonlocal line
        register.clear()
        line = {
            "generator": lambda: _registered(register),
            "map": lambda: map(note, ["Ada", "Bob"]),
            "chain": lambda: itertools.chain([], (note(each) for each in ["Ada", "Bob"])),
        }[sort]()
        if sort == "generator":
            next(line)
        take("Ada")
        return list(register)

    live, again, _, report = replayed(program)
    assert again == live == ["Ada"]
    assert "line" in str(report.unheld)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
@pytest.mark.parametrize("made", [True, False])
def test_who_may_run_a_file_is_there_again(made, tmp_path):
    @tape.tool
    def allow():
        bodies.append("allow")
        if made:
            (tmp_path / "run.sh").write_text("echo 1")
        (tmp_path / "run.sh").chmod(0o750)
        return "done"

    def program():
        (tmp_path / "run.sh").unlink(missing_ok=True)
        if not made:
            (tmp_path / "run.sh").write_text("echo 1")
        allow()
        return (tmp_path / "run.sh").stat().st_mode & 0o777, (tmp_path / "run.sh").read_text()

    assert same(program) == (0o750, "echo 1")


_made_below = []


class Plugin:
    def __init_subclass__(cls, **_):
        _made_below.append(cls.__name__)


def _subclassed():
    @tape.tool
    def work():
        bodies.append("work")
        type("Made", (Plugin,), {})
        return "done"

    _made_below.clear()
    return work(), list(_made_below)


def _counted_by_the_tool_itself():
    @tape.tool
    def work():
        bodies.append("work")
        work.calls = getattr(work, "calls", 0) + 1
        return "done"

    return work(), work(), work.calls


def _rows_of_another_shape():
    connection = sqlite3.connect(":memory:")

    @tape.tool
    def work():
        bodies.append("work")
        connection.row_factory = sqlite3.Row
        return "done"

    work()
    return dict(connection.execute("SELECT 7 AS a").fetchone())


def _another_time_zone():
    before = os.environ.get("TZ")

    @tape.tool
    def work():
        bodies.append("work")
        os.environ["TZ"] = "Asia/Tokyo"
        time.tzset()
        return "done"

    try:
        return work(), time.localtime(0).tm_hour
    finally:
        os.environ.pop("TZ", None) if before is None else os.environ.__setitem__("TZ", before)
        time.tzset()


def _future_of_a_loop():
    async def main():
        future = asyncio.get_running_loop().create_future()

        @tape.tool
        async def work():
            bodies.append("work")
            future.set_result(["milk"])
            return "done"

        await work()
        return await asyncio.wait_for(future, 5)

    return asyncio.run(main())


def _closed_before_its_end():
    log = []

    @tape.tool
    def work():
        bodies.append("work")
        try:
            yield 1
            yield 2
        finally:
            log.append("closed")

    reading = work()
    next(reading)
    reading.close()
    return log


def _folder_that_was_moved():
    for name in ("one", "two"):
        shutil.rmtree(name, ignore_errors=True)
    os.mkdir("one")
    Path("one/a.txt").write_text("1")

    @tape.tool
    def work():
        bodies.append("work")
        os.rename("one", "two")
        return "done"

    return work(), os.path.exists("one"), Path("two/a.txt").read_text()


@pytest.mark.parametrize(
    "program",
    [
        _subclassed,
        _counted_by_the_tool_itself,
        _rows_of_another_shape,
        pytest.param(
            _another_time_zone, marks=pytest.mark.skipif(os.name == "nt", reason="has no tzset")
        ),
        _future_of_a_loop,
        _closed_before_its_end,
        _folder_that_was_moved,
    ],
)
def test_what_was_changed_in_an_unusual_way_is_there_again(program):
    same(program)


@pytest.mark.parametrize("what", ["a library's function", "a module's function", "a method"])
def test_code_that_a_tool_exchanged_is_said(what):
    module = types.ModuleType("made")
    module.hello = len

    @tape.tool
    def work():
        bodies.append("work")
        if what == "a library's function":
            string.capwords = str.upper
        elif what == "a module's function":
            module.hello = lambda _: 2
        else:
            Adder.more = lambda _: 2
        return "done"

    before = string.capwords
    try:
        _, _, recorded, _ = replayed(work)
    finally:
        string.capwords = before
        if hasattr(Adder, "more"):
            del Adder.more
    names = {"a library's function": "string.capwords", "a module's function": "module.hello"}
    assert names.get(what, "Adder.more") in str(recorded.warnings)


def keep_record(handler, text):
    record = logging.LogRecord("kept", logging.INFO, "a.py", 3, text, (), None)
    buffer = getattr(handler, "buffer", None)
    handler.queue.put(record) if buffer is None else buffer.append(record)


HANDLERS = {
    "memory": lambda: logging.handlers.MemoryHandler(
        3, target=logging.StreamHandler(io.StringIO())
    ),
    "buffering": lambda: logging.handlers.BufferingHandler(3),
    "queue": lambda: logging.handlers.QueueHandler(queue.Queue()),
}


@pytest.mark.parametrize("name", HANDLERS)
def test_records_that_a_tool_puts_into_a_handler_itself_are_there_beside_those_that_it_logs(name):
    def program():
        handler, logger = HANDLERS[name](), logging.getLogger("kept")
        logger.handlers[:] = [handler]
        logger.setLevel(logging.INFO)

        @tape.tool
        def put(text):
            bodies.append("put")
            keep_record(handler, text)

        @tape.tool
        def log(text):
            bodies.append("log")
            logger.info(text)

        seen = []
        for each in (put, log, put, log):
            each("a")
            records = handler.queue.queue if name == "queue" else handler.buffer
            target = getattr(handler, "target", None)
            seen.append((len(records), target and target.stream.getvalue()))
        return seen

    same(program)


def test_records_that_one_tool_both_puts_and_logs_come_back():
    def program():
        handler, logger = logging.handlers.BufferingHandler(9), logging.getLogger("kept")
        logger.handlers[:] = [handler]
        logger.setLevel(logging.INFO)

        @tape.tool
        def put_and_log(text):
            bodies.append("put")
            keep_record(handler, text)
            logger.info(text)

        put_and_log("a")
        return [(each.levelno, each.pathname, each.getMessage()) for each in handler.buffer]

    assert len(same(program)) == 2
