"""What a tool does to functions, classes, arrays and to the process is done again in replay, or is named.

Each case gives a tool, a look at what it changed, and a way back to how that was before.
"""

from __future__ import annotations

import abc
import asyncio
import atexit
import calendar
import collections
import contextlib
import copy
import copyreg
import csv
import ctypes
import decimal
import encodings.aliases
import enum
import gc
import hashlib
import importlib
import io
import itertools
import json
import logging
import mimetypes
import mmap
import os
import shutil
import signal
import socket
import sqlite3
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pandas
import pytest

import tape_jupyter as tape

Case = tuple[Callable[[], Any], Callable[[], Any], Callable[[], Any]]


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])


# ---- done again


def defaults_of_a_function() -> Case:
    def price(amount=1, *, tax=0):
        """Old."""
        return amount + tax

    def tool():
        price.__defaults__, price.__kwdefaults__, price.__doc__ = (5,), {"tax": 2}, "New."

    def back():
        price.__defaults__, price.__kwdefaults__, price.__doc__ = (1,), {"tax": 0}, "Old."

    return tool, lambda: (price(), price.__doc__), back


def an_array_nobody_may_write_to() -> Case:
    table = numpy.arange(3)

    def tool():
        table[0] = 9
        table.setflags(write=False)

    def back():
        table.setflags(write=True)
        table[0] = 0

    return tool, lambda: (table.tolist(), table.flags.writeable), back


def permissions_of_new_files() -> Case:
    before = os.umask(0o022)
    os.umask(before)

    def look():
        now = os.umask(before)
        os.umask(now)
        return now

    return lambda: os.umask(before | 0o077), look, lambda: os.umask(before)


def how_the_interpreter_works() -> Case:
    def tool():
        sys.setrecursionlimit(3210)
        sys.setswitchinterval(0.01)
        sys.set_int_max_str_digits(9999)
        gc.set_threshold(1234, 11, 12)
        socket.setdefaulttimeout(7.5)

    asked = (
        sys.getrecursionlimit, sys.getswitchinterval, sys.get_int_max_str_digits, gc.get_threshold,
        socket.getdefaulttimeout,
    )  # fmt: skip
    limit, interval, digits, thresholds, timeout = (ask() for ask in asked)

    def back():
        sys.setrecursionlimit(limit)
        sys.setswitchinterval(interval)
        sys.set_int_max_str_digits(digits)
        gc.set_threshold(*thresholds)
        socket.setdefaulttimeout(timeout)

    return tool, lambda: [ask() for ask in asked], back


def the_name_of_a_level() -> Case:
    def back():
        logging._levelToName.pop(25, None)
        logging._nameToLevel.pop("LOUD", None)

    return lambda: logging.addLevelName(25, "LOUD"), lambda: logging.getLevelName(25), back


def what_a_member_of_an_enum_holds() -> Case:
    class Basket(enum.Enum):
        MINE = ["milk"]

    return (
        lambda: Basket.MINE.value.append("tea"),
        lambda: list(Basket.MINE.value),
        lambda: Basket.MINE.value.__delitem__(slice(1, None)),
    )


def the_first_day_of_a_week() -> Case:
    return (
        lambda: calendar.setfirstweekday(6),
        calendar.firstweekday,
        lambda: calendar.setfirstweekday(0),
    )


def the_name_and_the_attributes_of_parts_of_the_program() -> Case:
    class Room(enum.Enum):
        HALL = "hall"

    def show():
        """Do nothing."""

    name = show.__qualname__

    def tool():
        setattr(show, "__qualname__", "Page.show")  # noqa: B010 - by its text
        Room.HALL.guests = 3

    def back():
        show.__qualname__ = name
        vars(Room.HALL).pop("guests", None)

    return tool, lambda: (show.__qualname__, vars(Room.HALL).get("guests")), back


def when_a_file_was_written_and_who_may_open_a_folder() -> Case:
    file, folder = Path("a.txt"), Path("folder")

    def back():
        file.write_text("a")
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)
        os.utime(file, (1e9, 1e9))

    back()

    def tool():
        os.utime(file, (2e9, 2e9))
        folder.chmod(0o700)

    return tool, lambda: (file.stat().st_mtime, folder.stat().st_mode), back


def how_far_a_file_was_read() -> Case:
    lines = io.TextIOWrapper(io.BytesIO(b"one\ntwo\nthree\n"))
    return lambda: lines.readline(), lambda: lines.tell(), lambda: lines.seek(0)


def how_many_rows_were_read() -> Case:
    held: dict[str, Any] = {}

    def back():
        held["rows"] = csv.DictReader(io.StringIO("name,age\nada,36\nbob,41\ncy,7\n"))

    back()
    return (
        lambda: next(held["rows"]),
        lambda: (held["rows"].line_num, held["rows"].fieldnames),
        back,
    )


def what_is_changed_in_a_module_that_is_imported_in_the_body() -> Case:
    Path("stall_two.py").write_text(
        "from types import SimpleNamespace\nseen = {}\nsettings = SimpleNamespace(tax=0)\n"
        "def price(item):\n    seen[item] = settings.tax\n    return len(item)\n"
    )
    sys.path.insert(0, str(Path.cwd()))
    importlib.invalidate_caches()

    def tool():
        import stall_two

        stall_two.settings.tax += 7
        return stall_two.price("tea")

    def look():
        stall = sys.modules.get("stall_two")
        return stall and (stall.seen, stall.settings.tax)

    return tool, look, lambda: sys.modules.pop("stall_two", None)


def memory_that_is_mapped() -> Case:
    memory = mmap.mmap(-1, 16)
    return (
        lambda: memory.__setitem__(slice(0, 2), b"ab"),
        lambda: memory[:4],
        lambda: memory.__setitem__(slice(0, 2), bytes(2)),
    )


def how_a_table_is_labelled_and_an_array_typed() -> Case:
    table, numbers = pandas.DataFrame({"a": [1]}), numpy.zeros(2, dtype="i4")

    def tool():
        table.columns.name = "column"
        numbers.dtype = "f4"

    def back():
        table.columns.name = None
        numbers.dtype = "i4"

    return tool, lambda: (table.columns.name, numbers.dtype.str), back


def the_stack_of_threads() -> Case:
    def look():
        size = threading.stack_size()
        threading.stack_size(size)
        return size

    return lambda: threading.stack_size(1 << 20) and None, look, lambda: threading.stack_size(0)


def a_type_of_files() -> Case:
    mimetypes.init()

    def tool():
        from mimetypes import add_type

        add_type("text/x-shop", ".shop")

    def back():
        mimetypes._db.types_map[True].pop(".shop", None)
        mimetypes._db.types_map_inv[True].pop("text/x-shop", None)

    return tool, lambda: mimetypes.guess_type("a.shop")[0], back


def a_dialect() -> Case:
    return (
        lambda: csv.register_dialect("shop", delimiter="|"),
        lambda: "shop" in csv.list_dialects(),
        lambda: "shop" in csv.list_dialects() and csv.unregister_dialect("shop"),
    )


AGAIN = [
    a_type_of_files,
    a_dialect,
    the_name_and_the_attributes_of_parts_of_the_program,
    when_a_file_was_written_and_who_may_open_a_folder,
    how_far_a_file_was_read,
    how_many_rows_were_read,
    what_is_changed_in_a_module_that_is_imported_in_the_body,
    memory_that_is_mapped,
    how_a_table_is_labelled_and_an_array_typed,
    the_stack_of_threads,
    what_a_member_of_an_enum_holds,
    the_first_day_of_a_week,
    the_name_of_a_level,
    defaults_of_a_function,
    an_array_nobody_may_write_to,
    permissions_of_new_files,
    how_the_interpreter_works,
]


@pytest.mark.parametrize("case", AGAIN, ids=lambda case: case.__name__)
def test_it_is_done_again(case):
    tool, look, back = case()
    call = tape.tool(tool)
    try:
        with tape.recording("a.tape.yaml") as block:
            call()
        changed = look()
        assert not block.report.warnings, block.report.warnings
        back()
        assert look() != changed
        with tape.replaying("a.tape.yaml") as block:
            call()
        assert look() == changed
        assert not block.report.warnings, block.report.warnings
    finally:
        back()


def test_a_recording_takes_no_protection_from_new_files():
    """It may come from anybody."""
    before = os.umask(0o077)
    try:

        @tape.tool
        def open_all():
            os.umask(0)

        with tape.recording("a.tape.yaml"):
            open_all()
        os.umask(0o077)
        with tape.replaying("a.tape.yaml") as block:
            open_all()
        assert os.umask(0o077) == 0o077
        assert any("gives no one more rights" in each for each in block.report.warnings)
    finally:
        os.umask(before)


# ---- named


def a_functions_code() -> Case:
    def old():
        return "old"

    def new():
        return "new"

    code = old.__code__

    def tool():
        old.__code__ = new.__code__

    return tool, old, lambda: setattr(old, "__code__", code)


def a_method_of_pythons_own() -> Case:
    class Cart:
        pass

    def tool():
        Cart.__len__ = lambda _self: 3

    return (
        tool,
        lambda: hasattr(Cart, "__len__"),
        lambda: hasattr(Cart, "__len__") and delattr(Cart, "__len__"),
    )


def a_private_attribute_of_a_class() -> Case:
    class Cart:
        _made_by = None

    def tool():
        Cart._made_by = lambda: 3

    return tool, lambda: Cart._made_by is None, lambda: setattr(Cart, "_made_by", None)


def what_a_class_is_derived_of() -> Case:
    class One:
        pass

    class Other:
        pass

    class Cart(One):
        pass

    def tool():
        Cart.__bases__ = (Other,)

    return tool, lambda: Cart.__bases__, lambda: setattr(Cart, "__bases__", (One,))


def a_registered_class() -> Case:
    held: dict[str, Any] = {}

    def back():
        class Shape(abc.ABC):
            pass

        held["Shape"] = Shape

    class Square:
        pass

    back()
    return (
        lambda: held["Shape"].register(Square) and None,
        lambda: issubclass(Square, held["Shape"]),
        back,
    )


def a_librarys_class() -> Case:
    default = json.JSONEncoder.default

    def tool():
        json.JSONEncoder.default = lambda _self, value: str(value)

    return (
        tool,
        lambda: json.JSONEncoder.default is default,
        lambda: setattr(json.JSONEncoder, "default", default),
    )


def a_function_of_sql() -> Case:
    held: dict[str, Any] = {}

    def tool():
        held["db"].create_function("twice", 1, lambda value: 2 * value)

    def look():
        try:
            return held["db"].execute("SELECT twice(2)").fetchone()
        except sqlite3.OperationalError as error:
            return str(error)

    def back():
        if "db" in held:
            held["db"].close()
        held["db"] = sqlite3.connect(":memory:")

    back()
    return tool, look, back


def memory_of_c() -> Case:
    class Point(ctypes.Structure):
        _fields_ = (("x", ctypes.c_int),)

    point = Point(1)
    return lambda: setattr(point, "x", 5), lambda: point.x, lambda: setattr(point, "x", 1)


def what_a_stack_closes() -> Case:
    held: dict[str, Any] = {}
    closed: list[int] = []

    def look():
        held["stack"].close()
        return list(closed)

    def back():
        closed.clear()
        held["stack"] = contextlib.ExitStack()

    back()
    return lambda: held["stack"].callback(closed.append, 1) and None, look, back


def a_signal() -> Case:
    def handler(*_):
        """Do nothing."""

    def tool():
        signal.signal(signal.SIGUSR1, handler)

    return (
        tool,
        lambda: signal.getsignal(signal.SIGUSR1) is handler,
        lambda: signal.signal(signal.SIGUSR1, signal.SIG_DFL),
    )


def what_runs_at_exit() -> Case:
    def bye():
        """Do nothing."""

    count = [0]

    def back():
        atexit.unregister(bye)
        count[0] = atexit._ncallbacks()

    back()
    return lambda: atexit.register(bye) and None, lambda: atexit._ncallbacks() - count[0], back


def how_a_class_is_pickled() -> Case:
    class Point:
        pass

    def tool():
        copyreg.pickle(Point, lambda _point: (Point, ()))

    return (
        tool,
        lambda: Point in copyreg.dispatch_table,
        lambda: copyreg.dispatch_table.pop(Point, None),
    )


def the_policy_of_event_loops() -> Case:
    class Policy(type(asyncio.get_event_loop_policy())):
        pass

    before = asyncio.get_event_loop_policy()

    def tool():
        asyncio.set_event_loop_policy(Policy())

    return (
        tool,
        lambda: type(asyncio.get_event_loop_policy()) is Policy,
        lambda: asyncio.set_event_loop_policy(before),
    )


def every_new_decimal_context() -> Case:
    def tool():
        decimal.DefaultContext.prec = 7

    return (
        tool,
        lambda: decimal.DefaultContext.prec,
        lambda: setattr(decimal.DefaultContext, "prec", 28),
    )


def a_variable_no_recording_sets() -> Case:
    def tool():
        os.environ["AGENT_URL"] = "https://example.org"

    return tool, lambda: os.environ.get("AGENT_URL"), lambda: os.environ.pop("AGENT_URL", None)


def what_finds_modules() -> Case:
    class Finder:
        def find_spec(self, *_):
            return None

    finder = Finder()

    def back():
        if finder in sys.meta_path:
            sys.meta_path.remove(finder)

    return lambda: sys.meta_path.append(finder), lambda: finder in sys.meta_path, back


def a_lock_that_is_left_held() -> Case:
    lock = threading.Lock()
    return lambda: lock.acquire() and None, lock.locked, lambda: lock.locked() and lock.release()


def what_is_made_of_a_missing_key() -> Case:
    found: dict[str, Any] = collections.defaultdict(list)

    def tool():
        found.default_factory = int

    return tool, lambda: found.default_factory, lambda: setattr(found, "default_factory", list)


def the_name_of_a_class() -> Case:
    class Cart:
        pass

    return (
        lambda: setattr(Cart, "__name__", "Basket"),
        lambda: Cart.__name__,
        lambda: setattr(Cart, "__name__", "Cart"),
    )


def what_profiles_threads() -> Case:
    def profile(*_):
        """Do nothing."""

    return (
        lambda: threading.setprofile(profile),
        lambda: threading.getprofile() is profile,
        lambda: threading.setprofile(None),
    )


def what_parameters_are_said_to_be() -> Case:
    def price(amount):
        return amount

    return (
        lambda: price.__annotations__.update(amount=int),
        lambda: dict(price.__annotations__),
        lambda: price.__annotations__.clear(),
    )


def an_accessor_of_tables() -> Case:
    def tool():
        @pandas.api.extensions.register_dataframe_accessor("shop")
        class Shop:
            def __init__(self, table):
                self.table = table

    def back():
        if "shop" in vars(pandas.DataFrame):
            del pandas.DataFrame.shop
        pandas.DataFrame._accessors.discard("shop")

    return tool, lambda: hasattr(pandas.DataFrame, "shop"), back


def a_format_of_archives() -> Case:
    def look():
        return any(name == "shop" for name, _ in shutil.get_archive_formats())

    return (
        lambda: shutil.register_archive_format("shop", lambda *_: ""),
        look,
        lambda: look() and shutil.unregister_archive_format("shop"),
    )


def a_table_of_a_library() -> Case:
    aliases = encodings.aliases.aliases
    return (
        lambda: encodings.aliases.aliases.__setitem__("shop", "utf_8"),
        lambda: aliases.get("shop"),
        lambda: aliases.pop("shop", None),
    )


def a_librarys_function_by_its_text() -> Case:
    dumps = json.dumps
    return (
        lambda: setattr(json, "dumps", len),
        lambda: json.dumps is dumps,
        lambda: setattr(json, "dumps", dumps),
    )


def a_digest_that_goes_on() -> Case:
    held: dict[str, Any] = {}

    def back():
        held["digest"] = hashlib.sha256()

    back()
    return lambda: held["digest"].update(b"a"), lambda: held["digest"].hexdigest(), back


def one_of_several_readers() -> Case:
    held: dict[str, Any] = {}

    def back():
        held["reader"], held["other"] = itertools.tee("abc")

    back()
    return lambda: next(held["reader"]), lambda: "".join(copy.copy(held["reader"])), back


def a_file_elsewhere_that_is_removed() -> Case:
    file = Path(tempfile.mkdtemp()) / "a.txt"
    file.write_text("a")
    return lambda: file.unlink(), file.exists, lambda: file.write_text("a")


def a_module_that_registers_what_it_has() -> Case:
    Path("stand.py").write_text("COMMANDS = {}\n")
    Path("stand_one.py").write_text("import stand\nstand.COMMANDS['one'] = 1\n")
    sys.path.insert(0, str(Path.cwd()))
    importlib.invalidate_caches()
    stand = importlib.import_module("stand")

    def tool():
        importlib.import_module("stand_one")

    def back():
        sys.modules.pop("stand_one", None)
        stand.COMMANDS.clear()

    return tool, lambda: sorted(stand.COMMANDS), back


NAMED = {
    what_parameters_are_said_to_be: "the annotations of price",
    an_accessor_of_tables: "the classes or the column types of pandas",
    a_format_of_archives: "shutil._ARCHIVE_FORMATS",
    a_table_of_a_library: "encodings.aliases.aliases, which belongs to a library",
    a_librarys_function_by_its_text: "json.dumps, which belongs to a library",
    a_digest_that_goes_on: "digest",
    **({one_of_several_readers: "reader"} if sys.version_info < (3, 14) else {}),
    a_file_elsewhere_that_is_removed: "it removed",
    a_module_that_registers_what_it_has: "it imported stand_one",
    a_lock_that_is_left_held: "it acquired or released lock",
    what_is_made_of_a_missing_key: "it changed what found does for a missing key",
    the_name_of_a_class: "Cart",
    what_profiles_threads: "what traces or profiles code",
    a_functions_code: "old",
    a_method_of_pythons_own: "Cart.__len__",
    a_private_attribute_of_a_class: "Cart._made_by",
    what_a_class_is_derived_of: "Cart",
    a_registered_class: "it registered a class with",
    a_librarys_class: "it set json.JSONEncoder.default, which belongs to a library",
    a_function_of_sql: "a function, and code is not recorded",
    memory_of_c: "memory of C code",
    what_a_stack_closes: "stack",
    a_signal: "how a signal is handled",
    what_runs_at_exit: "what is called at exit",
    how_a_class_is_pickled: "how a class is pickled",
    the_policy_of_event_loops: "the policy of event loops",
    every_new_decimal_context: "decimal.DefaultContext",
    a_variable_no_recording_sets: "AGENT_URL, which a recording does not set",
    what_finds_modules: "what finds modules",
}


@pytest.mark.filterwarnings("ignore:.*event_loop_policy' is deprecated:DeprecationWarning")
@pytest.mark.parametrize(
    ("case", "word"), NAMED.items(), ids=lambda case: getattr(case, "__name__", "")
)
def test_it_is_named(case, word):
    tool, look, back = case()
    call = tape.tool(tool)
    before = look()
    back()
    try:
        with tape.recording("a.tape.yaml"):
            call()
        assert look() != before
        back()
        with tape.replaying("a.tape.yaml") as block:
            call()
        assert any(word in each for each in block.report.warnings), block.report.warnings
    finally:
        back()


def test_a_tool_whose_libraries_clean_up_at_exit_lacks_nothing():
    """The first temporary folder of a process registers what removes it."""
    import weakref

    @tape.tool
    def counts_in_a_folder():
        with tempfile.TemporaryDirectory() as folder:
            return len(os.listdir(folder))

    weakref.finalize._registered_with_atexit = False  # as in a new process
    with tape.recording("a.tape.yaml") as block:
        counts_in_a_folder()
    assert not [each for each in block.report.warnings if "exit" in each]


def test_a_module_that_only_defines_things_lacks_nothing_where_a_tool_imports_it():
    Path("stall.py").write_text(
        "import json, logging, re\nfrom dataclasses import dataclass\n\nlog = logging.getLogger('stall')\n"
        "WORD = re.compile('a')\nPRICES = {}\nPRICES['tea'] = 3\n\n@dataclass\nclass Item:\n    name: str\n\n"
        "def main():\n    print(json.dumps(PRICES))\n\nif __name__ == '__main__':\n    main()\n"
    )
    sys.path.insert(0, str(Path.cwd()))
    importlib.invalidate_caches()

    @tape.tool
    def price(item):
        from stall import PRICES

        return PRICES[item]

    with tape.recording("a.tape.yaml") as block:
        price("tea")
    assert "stall" in sys.modules and not block.report.warnings


def test_a_tool_that_imports_something_for_itself_lacks_nothing():
    @tape.tool
    def imports():
        import colorsys

        return colorsys.rgb_to_hsv(0, 0, 0)[0]

    sys.modules.pop("colorsys", None)
    with tape.recording("a.tape.yaml") as block:
        imports()
    assert not block.report.warnings
