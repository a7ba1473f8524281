"""What a tool did besides returning is done again in replay: in memory, in the same objects; on the streams; in files.

Each program makes its own state, so that a replay starts from where the recording did.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import contextlib
import contextvars
import dataclasses
import functools
import io
import itertools
import logging
import os
import queue
import random
import sqlite3
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy
import pandas
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tape_jupyter as tape
from tests.harness.tool_runs import ran as bodies
from tests.harness.tool_runs import replayed, same


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bodies.clear()


class Item:
    """A plain object, as people write them."""

    def __init__(self, name):
        self.name = name

    def __eq__(self, other):
        return isinstance(other, Item) and other.name == self.name

    __hash__ = None


class Cart:
    count = 0

    def __init__(self):
        self.items, self.by_name, self.last = [], {}, None

    @tape.tool
    def add(self, name):
        bodies.append(name)
        Cart.count += 1
        item = Item(name)
        self.items.append(item)
        self.by_name[name] = self.last = item
        return item


class Slotted:
    __slots__ = ("a", "b")


class Named(dict):
    title = ""


class Guarded:
    """One that lets nobody set an attribute but itself."""

    def __init__(self):
        object.__setattr__(self, "_held", [])

    def __setattr__(self, name, value):
        raise AttributeError(name)

    def grow(self):
        self._held.append(1)
        object.__setattr__(self, "b", 2)


@dataclasses.dataclass
class Entry:
    name: str
    price: float
    tags: list = dataclasses.field(default_factory=list)


todo: list = []
total = 0
user: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="nobody")


# ---- memory


def test_a_method_changes_its_own_object_and_the_objects_it_made_are_one():
    def program():
        Cart.count = 0
        cart = Cart()
        first, second = cart.add("tea"), cart.add("milk")
        return (
            [item.name for item in cart.items], cart.items[0] is first, cart.by_name["milk"] is second is cart.last,
            Cart.count, type(first).__name__,
        )  # fmt: skip

    assert same(program) == (["tea", "milk"], True, True, 2, "Item")


def test_variables_are_bound_anew_and_an_alias_sees_what_becomes_of_a_list():
    @tape.tool
    def add(name):
        global total
        bodies.append(name)
        total += 1
        todo.append(name)
        return todo

    def program():
        global total
        todo.clear()
        total = 0
        alias = todo
        given = [add("milk"), add("eggs")]
        return total, alias is todo, list(alias), [each is todo for each in given]

    assert same(program) == (2, True, ["milk", "eggs"], [True, True])


def test_a_helper_behind_a_cache_is_within_reach():
    log = []

    @functools.lru_cache
    def look(name):
        log.append(name)
        return len(name)

    @tape.tool
    def search(name):
        bodies.append(name)
        return look(name)

    def program():
        log.clear()
        look.cache_clear()
        return search("a"), search("a"), list(log)

    live, again, _, report = replayed(program)
    assert again == live == (1, 1, ["a"])
    assert not report.unheld


def test_a_closure_keeps_what_the_tool_counted():
    def program():
        count, seen = 0, set()

        @tape.tool
        def visit(name):
            nonlocal count
            bodies.append(name)
            count += 1
            seen.add(name)
            return count

        visit("a"), visit("b")
        return count, sorted(seen)

    assert same(program) == (2, ["a", "b"])


def test_a_function_that_a_tool_calls_may_reach_further():
    book = {}

    def enter(name, price):
        book[name] = Entry(name, price)

    @tape.tool
    def buy(name):
        bodies.append(name)
        enter(name, 1.5)
        book[name].tags.append("new")
        return "ok"

    def program():
        book.clear()
        buy("tea"), buy("milk")
        buy("tea")
        return dict(book), list(book)

    assert same(program)[1] == ["tea", "milk"]


@pytest.mark.parametrize(
    ("make", "change"),
    [
        (list, lambda box: (box.extend([3, 1, 2]), box.sort(), box.remove(2))),
        (lambda: [1, 2, 3, 4], lambda box: box.__delitem__(slice(1, 3))),
        (lambda: [1, 2, 3], lambda box: box.reverse()),
        (
            lambda: {"a": 1, "b": 2},
            lambda box: (box.pop("a"), box.update(c=3), box.__setitem__("a", 9)),
        ),
        (lambda: collections.OrderedDict(a=1, b=2), lambda box: box.move_to_end("a")),
        (lambda: collections.defaultdict(list), lambda box: box["x"].append(1)),
        (collections.Counter, lambda box: box.update("hello")),
        (lambda: collections.deque([1, 2], maxlen=2), lambda box: box.append(3)),
        (lambda: {1, 2}, lambda box: (box.discard(1), box.add(5))),
        (lambda: bytearray(b"ab"), lambda box: box.extend(b"c")),
        (lambda: numpy.zeros(3), lambda box: box.__setitem__(1, 7.0)),
        (lambda: numpy.array([{"a": 1}, None]), lambda box: box.__setitem__(1, "x")),
        (lambda: pandas.DataFrame({"a": [1]}), lambda box: box.__setitem__("b", [2])),
        (lambda: pandas.DataFrame({"a": ["x"]}), lambda box: box.loc.__setitem__(1, ["y"])),
        (lambda: pandas.Series([1, 2]), lambda box: box.__setitem__(0, 5)),
        (lambda: pandas.Series([1, 2], name="a"), lambda box: setattr(box, "name", "b")),
        (lambda: random.Random(3), lambda box: box.random()),
        (lambda: numpy.random.default_rng(3), lambda box: box.random()),
        (lambda: Item("a"), lambda box: (setattr(box, "name", "b"), setattr(box, "more", [1]))),
        (lambda: Entry("a", 1.0), lambda box: box.tags.append("x")),
        (lambda: {("a", 1): []}, lambda box: box["a", 1].append(2)),
        (lambda: io.StringIO("ab"), lambda box: (box.seek(2), box.write("c"))),
        (lambda: collections.ChainMap({}, {"a": 1}), lambda box: box.update(b=2)),
        (lambda: argparse.Namespace(a=[1]), lambda box: (box.a.append(2), setattr(box, "b", 3))),
        (lambda: collections.UserDict(a=1), lambda box: box.update(b=2)),
        (lambda: queue.Queue(), lambda box: box.put("job")),
        (lambda: asyncio.Queue(), lambda box: box.put_nowait("job")),
        (lambda: itertools.count(3), lambda box: (next(box), next(box))),
        (lambda: Slotted(), lambda box: (setattr(box, "a", [1]), setattr(box, "b", 2))),
        (lambda: Named(a=1), lambda box: (box.update(b=2), setattr(box, "title", "t"))),
        (lambda: Guarded(), lambda box: box.grow()),
        (lambda: [[[]]], lambda box: box[0][0].append(box[0])),
    ],
)
def test_whatever_keeps_state_is_changed_in_place(make, change):
    box = None

    @tape.tool
    def work():
        bodies.append("work")
        change(box)
        return "done"

    def program():
        nonlocal box
        box = make()
        alias = box
        work()
        return alias is box, repr(
            getattr(box, "__dict__", box) if isinstance(box, (Item, Entry)) else _shown(box)
        )

    same(program)


def _shown(box):
    state = getattr(box, "getstate", None)
    bits = getattr(box, "bit_generator", None)
    if isinstance(box, (Slotted, Named, Guarded, queue.Queue, asyncio.Queue, io.StringIO)):
        inner = [
            getattr(box, name, None) for name in ("a", "b", "title", "_held", "queue", "_queue")
        ]
        return (
            inner,
            dict(box) if isinstance(box, Named) else "",
            box.getvalue() if isinstance(box, io.StringIO) else "",
        )
    return state() if state else bits.state if bits is not None else box


@pytest.mark.parametrize(
    ("make", "change", "why"),
    [
        (lambda: (n for n in range(9)), next, "read further"),
        (
            lambda: functools.lru_cache(len),
            lambda box: box("abc"),
            "what it caches cannot be recorded",
        ),
        (lambda: {"k": []}, lambda box: box["k"].append(threading.Lock()), "cannot freeze"),
        (lambda: Item("a"), lambda box: setattr(box, "lock", threading.Lock()), "cannot freeze"),
        (lambda: {Hashed()}, lambda box: setattr(next(iter(box)), "name", "b"), "no place"),
        (lambda: [], lambda box: box.append(_circle()), "contains itself"),
    ],
)
def test_what_cannot_be_held_is_named_while_recording_and_in_replay(make, change, why):
    box = None

    @tape.tool
    def work():
        bodies.append("work")
        change(box)
        return "done"

    def program():
        nonlocal box
        box = make()
        return work()

    live, again, recorded, report = replayed(program)
    assert live == again == "done"
    assert why in str(recorded.warnings) and "tool work" in str(recorded.warnings)
    assert why in str(report.unheld) and "did not happen in this replay" in str(report.unheld)


class Roads:
    """With a view that is made once and refers to what it shows, as networkx's graphs have them."""

    def __init__(self):
        self.towns = {}

    @functools.cached_property
    def names(self):
        return TownNames(self.towns)

    @functools.cached_property
    def lock(self):
        return threading.Lock()


class TownNames:
    __slots__ = ("_towns",)

    def __init__(self, towns):
        self._towns = towns

    def __reduce_ex__(self, _):
        raise TypeError("cannot be written")

    def __iter__(self):
        return iter(self._towns)


@pytest.mark.parametrize("asked", ["names", "lock"])
def test_a_view_that_a_property_keeps_is_made_again_and_what_has_a_state_is_named(asked):
    @tape.tool
    def found(roads, town):
        bodies.append(town)
        roads.towns[town] = 1
        return str(bool(getattr(roads, asked)))

    def program():
        roads = Roads()
        return [found(roads, "ada"), found(roads, "bob")], list(roads.names)

    live, again, recorded, report = replayed(program)
    assert live == again and live[1] == ["ada", "bob"]
    said = [str(recorded.warnings), str(report.unheld)]
    assert all((asked in each) is (asked == "lock") for each in said)


def _circle():
    one, other = {}, {}
    one["other"], other["one"] = other, one
    return one


class Hashed:
    name = "a"


def test_a_database_in_memory_holds_what_the_tool_inserted():
    @tape.tool
    def order(database, name):
        bodies.append(name)
        database.execute("INSERT INTO orders VALUES (?)", (name,))
        return "ok"

    def program():
        database = sqlite3.connect(":memory:")
        database.execute("CREATE TABLE orders (name)")
        order(database, "tea"), order(database, "milk")
        rows = database.execute("SELECT name FROM orders").fetchall()
        database.close()
        return rows

    assert same(program) == [("tea",), ("milk",)]


def test_context_variables_and_the_environment_are_as_the_tool_left_them(monkeypatch):
    monkeypatch.delenv("CHOSEN_REGION", raising=False)

    @tape.tool
    def choose(name):
        bodies.append(name)
        user.set(name)
        os.environ["CHOSEN_REGION"] = name
        return name

    def program():
        user.set("nobody")
        os.environ.pop("CHOSEN_REGION", None)
        choose("ada")
        return user.get(), os.environ["CHOSEN_REGION"]

    assert same(program) == ("ada", "ada")


def test_a_recording_sets_no_variable_that_leads_programs_elsewhere(tmp_path):
    @tape.tool
    def work():
        bodies.append("work")
        os.environ["CHOSEN_REGION"] = "eu"

    with tape.recording("a.tape.yaml"):
        work()
    path = tmp_path / "a.tape.yaml"
    path.write_text(path.read_text().replace("CHOSEN_REGION", "HTTPS_PROXY"))
    with tape.replaying("a.tape.yaml") as block:
        work()
    assert "HTTPS_PROXY" not in os.environ and "HTTPS_PROXY is not set by a recording" in str(
        block.report.warnings
    )
    os.environ.pop("CHOSEN_REGION", None)


def test_handlers_in_a_dict_partials_and_methods_held_elsewhere():
    log = []

    def note(kind, text):
        bodies.append(text)
        log.append((kind, text))
        return len(log)

    handlers = {
        "warn": functools.partial(tape.tool(note), "warn"),
        "note": tape.tool(functools.partial(note, "note")),
    }

    def program():
        log.clear()
        return handlers["warn"]("a"), handlers["note"]("b"), list(log)

    assert same(program) == (1, 2, [("warn", "a"), ("note", "b")])


class Counter:
    def __init__(self):
        self.calls = []

    def __call__(self, name):
        bodies.append(name)
        self.calls.append(name)
        return len(self.calls)

    def count(self, name):
        return self(name)


@pytest.mark.parametrize("door", ["object", "bound method", "partial", "frozen"])
def test_the_object_that_a_tool_is_made_of_is_within_its_reach(door):
    def program():
        counter = Counter()
        tool = {
            "object": lambda: tape.tool(name="counter")(counter),
            "bound method": lambda: tape.tool(counter.count),
            "partial": lambda: tape.tool(name="count")(functools.partial(counter.count)),
            "frozen": lambda: tape.frozen(counter).count,
        }[door]()
        return tool("a"), tool("b"), counter.calls

    assert same(program) == (1, 2, ["a", "b"])


def test_a_tool_that_fails_after_it_changed_something_has_changed_it():
    @tape.tool
    def pay(amount, account):
        bodies.append(amount)
        account["tried"] = account.get("tried", 0) + 1
        print("trying")
        raise ValueError("no money")

    def program():
        account, shown = {}, io.StringIO()
        with contextlib.redirect_stdout(shown), contextlib.suppress(ValueError):
            pay(3, account)
        return account, shown.getvalue()

    assert same(program) == ({"tried": 1}, "trying\n")


def test_a_tool_that_calls_a_tool_is_done_again_once():
    log = []

    @tape.tool
    def inner(name):
        bodies.append(name)
        log.append(name)
        print("inner", name)
        return name

    @tape.tool
    def outer(name):
        log.append("before")
        inner(name)
        log.append("after")
        print("outer", name)
        return name

    def program():
        log.clear()
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            outer("a"), inner("b")
        return list(log), shown.getvalue()

    assert same(program) == (["before", "a", "after", "b"], "inner a\nouter a\ninner b\n")


def test_a_generator_does_what_it_did_between_its_items():
    log = []

    @tape.tool
    def rows(count):
        for number in range(count):
            bodies.append(number)
            log.append(number)
            print("row", number)
            yield number

    def program():
        log.clear()
        shown, seen = io.StringIO(), []
        with contextlib.redirect_stdout(shown):
            for row in rows(3):
                print("got", row)
                seen.append((row, list(log)))
        return seen, shown.getvalue()

    live = same(program)
    assert live[0] == [(0, [0]), (1, [0, 1]), (2, [0, 1, 2])]
    assert live[1] == "row 0\ngot 0\nrow 1\ngot 1\nrow 2\ngot 2\n"


# ---- several at once


def test_async_tools_that_overlap_each_do_their_part():
    log, entries = [], {}

    @tape.tool
    async def add(name, wait):
        bodies.append(name)
        log.append(f"begin {name}")
        await asyncio.sleep(wait)
        log.append(f"end {name}")
        entries[name] = Entry(name, wait)
        print("added", name)
        return name

    def program():
        log.clear(), entries.clear()
        shown = io.StringIO()

        async def main():
            return await asyncio.gather(add("a", 0.3), add("b", 0.1), add("c", 0.2))

        with contextlib.redirect_stdout(shown):
            given = asyncio.run(main())
        return given, sorted(log), sorted(entries), sorted(shown.getvalue().split("\n"))

    live, again, recorded, report = replayed(program)
    assert again == live and not recorded.warnings
    # On a machine that was busy for a tenth of a second two of them may end at once, which is said.
    assert all("could not be told apart" in each for each in report.warnings), report.warnings


def test_tools_in_threads_each_do_their_part():
    lock, log = threading.Lock(), []

    @tape.tool
    def add(number):
        bodies.append(number)
        with lock:
            log.append(number)
        print("added", number)
        return number

    def program():
        log.clear()
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown), ThreadPoolExecutor(4) as pool:
            given = list(pool.map(add, range(12)))
        return given, sorted(log), sorted(shown.getvalue().split("\n"))

    same(program)


class Noted:
    """A descriptor that keeps something itself."""

    def __init__(self):
        self.last = None

    def __set_name__(self, _, name):
        self.name = f"_{name}"

    def __get__(self, item, _=None):
        return self if item is None else getattr(item, self.name)

    def __set__(self, item, value):
        setattr(item, self.name, value)
        self.last = value


def test_what_a_descriptor_of_the_programs_keeps_is_as_the_tool_left_it():
    def program():
        class Item:
            price = Noted()

            def __init__(self):
                self.price = 1

        item = Item()

        @tape.tool
        def change(value):
            bodies.append(value)
            item.price = value

        change(4)
        return item.price, Item.price.last

    assert same(program) == (4, 4)


# ---- output


@pytest.mark.parametrize("descriptor", [1, 2])
def test_what_a_tool_writes_to_a_descriptor_outside_of_notebooks_is_named(path, descriptor, capfd):
    @tape.tool
    def tell(words):
        os.write(descriptor, words.encode())
        return "ok"

    with tape.recording(path) as recording:
        tell("hello")
    with tape.replaying(path) as replaying:
        tell("hello")
    assert capfd.readouterr()[descriptor - 1] == "hello"
    what = "what it writes to the descriptors 1 and 2 is not recorded: only a notebook reads that"
    assert what in recording.report.warnings[0]
    assert f"{what}: this did not happen in this replay" in replaying.report.warnings[0]


def test_what_is_printed_warned_and_logged_comes_in_its_order(capsys):
    logger = logging.getLogger("shop")
    handler = logging.StreamHandler(sys.stderr)

    @tape.tool
    def buy(name):
        bodies.append(name)
        print("buying", name)
        logger.warning("%s is dear", name)
        print("bought", file=sys.stderr)
        warnings.warn("slow", UserWarning, stacklevel=2)
        return "ok"

    def program():
        records, shown = [], io.StringIO()
        listening = logging.Handler()
        listening.emit = lambda record: records.append(
            (record.levelname, record.getMessage(), record.lineno)
        )
        logger.addHandler(listening)
        with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                buy("tea")
        logger.removeHandler(listening)
        return records, shown.getvalue(), [(str(each.message), each.category) for each in caught]

    live = same(program)
    assert (
        live[1] == "buying tea\nbought\n"
        and live[2] == [("slow", UserWarning)]
        and live[0][0][1] == "tea is dear"
    )
    assert handler.stream is not None


def test_what_a_thread_of_a_tool_prints_is_the_tools():
    @tape.tool
    def work():
        bodies.append("work")
        thread = threading.Thread(target=print, args=("from a thread",))
        thread.start()
        thread.join()

    def program():
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            work()
        return shown.getvalue()

    assert same(program) == "from a thread\n"


def test_each_of_them_can_be_left_out():
    @tape.tool
    def add(box):
        bodies.append("add")
        box.append(1)
        print("added")
        with open("note.txt", "w") as file:
            file.write("x")
        return 1

    def program():
        box, shown = [], io.StringIO()
        with contextlib.suppress(FileNotFoundError):
            os.remove("note.txt")
        with contextlib.redirect_stdout(shown):
            add(box)
        return box, shown.getvalue(), os.path.exists("note.txt")

    nothing = ([], "", False)
    assert replayed(program, no_effects=["output", "memory", "files"])[1] == nothing
    assert replayed(program, no_effects=["memory"])[1] == ([], "added\n", True)


# ---- whatever a tool does to plain containers

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(VALUES, max_size=4), st.lists(VALUES, max_size=4), st.randoms(use_true_random=False)
)
def test_any_change_of_nested_lists_and_dicts_comes_out_as_it_was(
    tmp_path_factory, before, after, chance
):
    import copy

    mixed = [*before, *after]
    chance.shuffle(mixed)
    kept = [
        each for each in mixed if chance.random() < 0.8
    ]  # not in the tool: hypothesis writes files of its own

    @tape.tool
    def change(box):
        bodies.append("change")
        box[:] = kept if box is not None else []
        box.append(box[0] if box else None)
        return "ok"

    def program():
        box = copy.deepcopy(before)
        alias = box
        change(box)
        return alias is box, repr(box), isinstance(box[0], (list, dict)) and box[-1] is box[0]

    path = tmp_path_factory.mktemp("any") / "a.tape.yaml"
    with tape.recording(path):
        live = program()
    with tape.replaying(path) as block:
        assert program() == live
    assert not block.report.warnings


def test_what_a_thread_shows_late_is_recorded_where_it_was_shown(tmp_path, monkeypatch):
    """A thread that gets no processor as it writes is not overtaken by one that writes after it."""

    class Page:
        """What is written to it; the first text waits for whoever would overtake it."""

        def __init__(self):
            self.texts = []

        def write(self, text):
            if text == "first" and threading.current_thread().name == "one":
                began.set()
                overtaken.wait(0.3)
            self.texts.append(text)
            if text == "second":
                overtaken.set()

        def flush(self):
            """Nothing waits."""

    began, overtaken = threading.Event(), threading.Event()
    path = tmp_path / "a.tape.yaml"

    @tape.tool
    def say(text):
        if text == "second":
            began.wait()
        sys.stdout.write(text)

    def program():
        page = Page()
        with monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", page)
            threads = [
                threading.Thread(target=say, args=[text], name=name)
                for name, text in (("one", "first"), ("other", "second"))
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        return page.texts

    with tape.recording(path):
        live = program()
    with tape.replaying(path):
        assert program() == live


def test_what_a_tool_of_a_script_writes_to_the_streams_of_its_process_is_written_again(
    capfd, monkeypatch
):
    @tape.tool
    def write(name):
        bodies.append(name)
        sys.__stdout__.write(f"{name} raw\n")
        print(name, "error", file=sys.__stderr__)
        sys.stdout.buffer.write(f"{name} ü\n".encode())
        sys.stdout.flush()

    def program():
        with monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", sys.__stdout__)
            patched.setattr(sys, "stderr", sys.__stderr__)
            write("a")
        sys.__stdout__.flush()
        return capfd.readouterr()

    live = same(program)
    assert live.out.splitlines() == ["a raw", "a ü"]
    assert live.err == "a error\n"


def test_what_a_tool_writes_past_the_programs_redirect_or_as_no_text_is_said(capfd):
    @tape.tool
    def write(name):
        print(name, file=sys.__stdout__)

    @tape.tool
    def write_bytes(name):
        sys.__stdout__.buffer.write(b"\xff\n")

    with tape.recording("a.tape.yaml") as block, contextlib.redirect_stdout(io.StringIO()):
        write("a")
        write_bytes("a")
    capfd.readouterr()
    past, bytes_ = block.report.warnings
    assert past.startswith("tool write: what it wrote past `redirect_stdout`")
    assert bytes_.startswith("tool write_bytes: bytes that it wrote")
