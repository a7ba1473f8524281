"""Anything that can be called can be taped: methods, classes, context managers, partials, objects of somebody else's."""

import asyncio
import contextlib
import copy
import csv
import dataclasses
import enum
import functools
import inspect
import io
import logging
import pickle
import sqlite3
import subprocess
import sys
import threading
from fractions import Fraction

import pytest

import tape_jupyter as tape
from tape_jupyter.errors import TapeUsageError, UnmatchedCall
from tests.harness.taped_cells import on_tape
from tests.harness.tool_runs import both, nothing_ran_yet, path, ran


def names(path):
    return [call.head()["name"] for call in on_tape(path).calls]


# ---------------------------------------------------------------- methods and classes


@tape.tool
class Shop:
    """A shop."""

    currency = "EUR"

    def __init__(self, name):
        self.name, self.lock = name, threading.Lock()

    def price(self, item, *, pieces=1):
        ran.append(item)
        return self._of(item) * pieces

    def _of(self, item):
        ran.append("private")
        return len(item)

    @classmethod
    def known(cls, name):
        ran.append(name)
        return (cls.__name__, cls.currency, name)

    @staticmethod
    def tax(amount):
        ran.append(amount)
        return amount // 5

    async def order(self, item):
        await asyncio.sleep(0)
        ran.append(item)
        return {item}

    def shelves(self):
        ran.append("shelves")
        yield from ("tea", "rice")

    def sorted_by(self, key):
        """Fluent: gives the shop itself, which cannot be written."""
        ran.append(key)
        return self

    @property
    def label(self):
        return f"Shop {self.name}"


def test_the_public_methods_of_a_class_are_taped_and_the_class_stays_what_it_is(path):
    assert isinstance(Shop("a"), Shop) and Shop.__name__ == "Shop" and Shop.__doc__ == "A shop."
    assert str(inspect.signature(Shop.price)) == "(self, item, *, pieces=1)"

    def program():
        shop = Shop("a")
        return [
            shop.price("tea", pieces=2), Shop.known("x"), Shop.tax(10), shop.tax(15), asyncio.run(shop.order("rice")),
            list(shop.shelves()), shop.sorted_by("name") is shop, shop.label,
        ]  # fmt: skip

    live, report = both(path, program)
    assert live == [6, ("Shop", "EUR", "x"), 2, 3, {"rice"}, ["tea", "rice"], True, "Shop a"]
    assert sorted(set(names(path))) == [
        f"Shop.{n}" for n in ("known", "order", "price", "shelves", "sorted_by", "tax")
    ]
    assert not [text for text in report.warnings if "Shop" in text]


def test_methods_that_a_taped_class_inherits_from_the_users_own_are_taped_there_alone(path):
    class Base:
        def ask(self, question):
            ran.append(question)
            return f"base {question}"

        def other(self):
            return "other"

    @tape.tool(name="child")
    class Child(Base):
        def ask(self, question):
            return super().ask(question) + "!"

    live, _ = both(path, lambda: [Child().ask("q"), Child().other()])
    assert live == ["base q!", "other"] and names(path) == ["child.ask", "child.other"]
    with tape.recording(path):
        Base().ask("untaped")
    assert len(names(path)) == 2


def test_the_objects_of_a_callable_class_are_tools(path):
    class Doubler:
        def __init__(self, factor):
            self.factor = factor

        def __call__(self, number):
            ran.append(number)
            return number * self.factor

    class Later:
        async def __call__(self, number):
            ran.append(number)
            return (number,)

    class Counter:
        def __call__(self, count):
            ran.append(count)
            yield from range(count)

    double, later, count = (
        tape.tool(name="double")(Doubler(2)),
        tape.tool(Later()),
        tape.tool(Counter()),
    )
    live, _ = both(path, lambda: [double(4), asyncio.run(later(1)), list(count(2))])
    assert live == [8, (1,), [0, 1]] and names(path) == ["double", "Later", "Counter"]


def test_a_dataclass_keeps_its_methods_and_its_state(path):
    @tape.tool
    @dataclasses.dataclass
    class Basket:
        items: list

        def total(self):
            ran.append("total")
            return len(self.items)

    assert both(path, lambda: [Basket([1, 2]).total(), Basket([1]) == Basket([1])])[0] == [2, True]


def test_a_partial_is_asked_with_what_it_gives_its_function(path):
    def look_up(region, name, unit="C"):
        ran.append(region)
        return f"{name} in {region}, {unit}"

    north = tape.tool(functools.partial(look_up, "north", unit="K"))
    south = tape.tool(functools.partial(functools.partial(look_up, "south"), name="rain"))
    live, _ = both(path, lambda: [north("sun"), south()])
    assert live == ["sun in north, K", "rain in south, C"]
    (first, second) = [call.request() for call in on_tape(path).calls]
    assert first.name == second.name == "look_up"
    assert first.arguments == {"region": "north", "name": "sun", "unit": "K"}
    assert second.arguments == {"region": "south", "name": "rain", "unit": "C"}


def test_what_has_nothing_to_call_is_refused_in_words():
    for wrong in (3, "text", ["a"], enum.Enum("Colour", "RED"), type("Plain", (), {}), ValueError):
        with pytest.raises(TapeUsageError, match="tape.tool"):
            tape.tool(wrong)
    for wrong in (3, "text", ["a"], logging, None, type("Plain", (), {}), bool):
        with pytest.raises(TapeUsageError, match=r"tape\."):
            tape.frozen(wrong)


# ---------------------------------------------------------------- context managers


@tape.tool
@contextlib.contextmanager
def opened(name, *, fails=False):
    ran.append(f"open {name}")
    try:
        yield {"name": name}
    except KeyError as error:
        ran.append("swallowed")
        if fails:
            raise LookupError(name) from error
    finally:
        ran.append(f"close {name}")


@contextlib.asynccontextmanager
@tape.tool
async def session(name):
    ran.append(f"open {name}")
    await asyncio.sleep(0)
    yield [name]
    ran.append(f"close {name}")


def inside(manager, error=None):
    try:
        with manager as value:
            if error is not None:
                raise error
    except Exception as raised:
        return type(raised), raised.args, raised is error
    return value


@pytest.mark.parametrize(
    "error", [None, KeyError("k"), ZeroDivisionError("z")], ids=["well", "swallowed", "raised"]
)
@pytest.mark.parametrize("fails", [False, True])
def test_a_context_manager_gives_and_does_in_replay_what_it_did(path, error, fails):
    plain = inside(
        opened.__wrapped__
        and contextlib.contextmanager(opened.__wrapped__.__wrapped__)("a", fails=fails),
        error,
    )
    live, _ = both(path, lambda: inside(opened("a", fails=fails), error))
    assert live == plain


def test_a_block_that_now_fails_where_it_went_well_is_refused_and_shows_its_error(path):
    with tape.recording(path):
        inside(opened("a"))
    with (
        tape.replaying(path),
        pytest.raises(UnmatchedCall, match="opened: after 1 items .* read on, and now it throws"),
    ):
        inside(opened("a"), ZeroDivisionError("z"))


def test_an_interrupt_or_a_refusal_within_a_block_is_not_the_managers_to_answer(path):
    with tape.recording(path):
        inside(opened("a"))
    for error in (KeyboardInterrupt(), UnmatchedCall("of something else")):
        with tape.replaying(path), pytest.raises(type(error)) as raised, opened("a"):
            raise error
        assert raised.value is error


def test_an_async_context_manager_replays(path):
    async def program():
        async with session("s") as value, session("t") as other:
            return value, other

    assert both(path, lambda: asyncio.run(program()))[0] == (["s"], ["t"])


def test_a_manager_made_of_an_async_generator_is_taped_under_its_decorator_too(path):
    @tape.tool
    @contextlib.asynccontextmanager
    async def held(name):
        ran.append(name)
        yield name

    async def program():
        async with held("x") as value:
            return value

    assert both(path, lambda: asyncio.run(program()))[0] == "x"
    assert names(path) == ["held"]


def test_a_class_with_enter_and_exit_is_taped_as_one(path):
    @tape.tool
    class Connection:
        def __init__(self, name):
            self.name, self.lock = name, threading.Lock()

        def __enter__(self):
            ran.append("enter")
            return self

        def __exit__(self, kind, error, trace):
            ran.append("exit")
            return kind is KeyError

        async def __aenter__(self):
            ran.append("aenter")
            return [self.name]

        async def __aexit__(self, *_):
            ran.append("aexit")

        def query(self, text):
            ran.append(text)
            return [text]

    async def wait():
        async with Connection("b") as value:
            return value

    def program():
        with Connection("a") as connection:
            rows = connection.query("select")
            raise KeyError("swallowed")
        return connection.name, rows, asyncio.run(wait())

    assert both(path, program)[0] == ("a", ["select"], ["b"])


def test_a_handle_that_a_manager_gives_may_be_handed_to_taped_functions(path):
    @tape.tool
    @contextlib.contextmanager
    def database():
        ran.append("connect")
        with contextlib.closing(sqlite3.connect(":memory:")) as connection:
            yield connection

    @tape.tool
    def rows(connection, sql):
        ran.append(sql)
        return connection.execute(sql).fetchall()

    def program():
        with database() as connection:
            return rows(connection, "select 1, 'a'")

    _, report = both(path, program)
    assert any("database" in text and "sqlite3.Connection" in text for text in report.warnings)
    with (
        tape.replaying(path),
        pytest.raises(UnmatchedCall, match="uses it.execute"),
        database() as connection,
    ):
        connection.execute("select 2")


def test_a_manager_used_as_a_decorator_is_entered_for_each_call(path):
    @opened("decorated")
    def work(number):
        return number

    assert both(path, lambda: [work(1), work(2)])[0] == [1, 2]
    assert names(path) == ["opened", "opened"]


# ---------------------------------------------------------------- tape.frozen


def test_frozen_goes_around_functions_of_others_and_leaves_them_as_they_are(path):
    run, count = tape.frozen(subprocess.run, name="shell"), tape.frozen(len)
    command = [sys.executable, "-c", "import os, sys; print(os.getpid()); sys.exit(3)"]

    def program():
        done = run(command, capture_output=True, text=True, check=False)
        ran.append("ran") if not count([]) else None
        return type(done), done.args, done.returncode, done.stdout, done.stderr, count("abc")

    with tape.recording(path) as block:
        live = program()
    with tape.replaying(path):
        assert program() == live
    assert live[0] is subprocess.CompletedProcess and live[2] == 3
    assert names(path) == ["shell", "len", "len"] and not hasattr(subprocess.run, "__tape_tool__")
    assert not [text for text in block.report.warnings if "child process" in text], (
        "its result is on the tape"
    )


def test_errors_of_a_child_process_come_back_as_they_were(path):
    run = tape.frozen(subprocess.run)

    def program():
        told = []
        for command, more in (
            ("import sys; print(1); sys.exit(4)", {}),
            ("import time; time.sleep(60)", {"timeout": 0.3}),
        ):
            try:
                run([sys.executable, "-c", command], check=True, capture_output=True, **more)
            except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
                told.append(
                    (
                        type(error),
                        str(error),
                        error.cmd,
                        error.output,
                        getattr(error, "returncode", None),
                    )
                )
        return told

    with tape.recording(path):
        live = program()
    with tape.replaying(path):
        assert program() == live
    assert [kind.__name__ for kind, *_ in live] == ["CalledProcessError", "TimeoutExpired"]


@pytest.mark.parametrize("factory", [None, sqlite3.Row])
def test_a_frozen_query_gives_its_cursor_again(path, factory, tmp_path):
    connection = sqlite3.connect(tmp_path / "shop.db")
    connection.row_factory = factory
    connection.execute("create table stock (item, pieces)")
    query = tape.frozen(connection.execute, name="query")

    def program():
        added = query("insert into stock values (?, ?)", ("tea", 3))
        query("insert into stock values ('rice', null)")
        cursor = query("select * from stock order by item")
        rows = [dict(row) if factory else row for row in cursor]
        one = query("select item from stock").fetchone()
        many = query("select item from stock")
        names = [column[0] for column in cursor.description]
        left = [len(many.fetchmany(1)), len(many.fetchall()), many.fetchone()]
        return (
            rows,
            tuple(one),
            names,
            added.rowcount,
            added.lastrowid,
            left,
            isinstance(many, sqlite3.Cursor),
        )

    with tape.recording(path):
        live = program()
    connection.close()
    with tape.replaying(path):
        assert program() == live
    assert live[2:] == (["item", "pieces"], 1, 1, [1, 1, None], True)


def test_a_frozen_object_can_be_copied(path):
    frozen = tape.frozen(Shop("corner"))
    for copied in (copy.copy(frozen), pickle.loads(pickle.dumps(tape.frozen(Fraction(1, 3))))):
        assert type(copied) is type(frozen)
    assert (
        copied.limit_denominator(2) == Fraction(1, 3).limit_denominator(2)
        and copy.copy(frozen).currency == "EUR"
    )


def test_frozen_makes_a_subclass_of_a_class_and_leaves_the_class_alone(path):
    class Client:
        def __init__(self, name):
            self.name = name

        def fetch(self, query):
            ran.append(query)
            return [self.name, query]

    frozen = tape.frozen(Client)
    assert issubclass(frozen, Client) and frozen.__name__ == "Client" and frozen is not Client
    assert both(path, lambda: frozen("a").fetch("q"))[0] == ["a", "q"]
    assert names(path) == ["Client.fetch"] and Client("b").fetch("x") == ["b", "x"]


def test_frozen_goes_around_an_object_whose_methods_are_then_taped(path):
    connection = sqlite3.connect(":memory:")
    database = tape.frozen(connection, name="db")
    database.row_factory = sqlite3.Row
    assert (
        connection.row_factory is sqlite3.Row
        and database.total_changes == 0
        and "Connection" in repr(database)
    )

    def program():
        return [dict(row) for row in database.execute("select ? as a", (1,)).fetchall()]

    with tape.recording(path):
        live = program()
    connection.close()
    with tape.replaying(path):
        assert program() == live == [{"a": 1}]
    assert names(path) == ["db.execute"]


def test_frozen_goes_around_lazy_readers(path):
    reader = tape.frozen(lambda text: (row for row in csv.reader(io.StringIO(text))), name="read")
    with tape.recording(path):
        live = list(reader("a,b\n1,2"))
    with tape.replaying(path):
        assert list(reader("a,b\n1,2")) == live == [["a", "b"], ["1", "2"]]
