"""Code of the program's that shows what a tool tells (filters, formatters, handlers, lists that catch) runs in replay,
too: it finds what it found then, and each catches what it caught.
"""

from __future__ import annotations

import sys
import threading
import types

import pytest

import tape_jupyter as tape
from tests.harness.tool_runs import ran as bodies
from tests.harness.tool_runs import program_of, replayed, same

LOGS = """
import contextvars, io, itertools, logging, logging.handlers, queue, threading
name = contextvars.ContextVar("name", default="-")
now = {"name": "-"}
local = threading.local()
numbers = itertools.count(1)
out, seen = io.StringIO(), []

class Marks(logging.Filter):
    def filter(self, record):
        record.mark = READ
        return True

class Writes(logging.Formatter):
    def format(self, record):
        return f"{READ} {record.getMessage()}"

class Keeps(logging.Handler):
    def emit(self, record):
        seen.append((READ, record.getMessage(), sorted(vars(record).keys() & {"mark"})))

handler = logging.StreamHandler(out)
handler.setFormatter(logging.Formatter("%(mark)s %(message)s"))
log = logging.getLogger("shown through code")
log.propagate = False
log.handlers[:], log.filters[:] = [handler], []
"""

STATES = {
    "a context variable": ("name.get()", "token = name.set('r1')", "name.reset(token)"),
    "a dict": ("now['name']", "now['name'] = 'r2'", "now['name'] = '-'"),
    "a new dict": ("now['name']", "global now; now = {'name': 'r3'}", "now['name'] = 'r4'"),
    "what a thread keeps": ("getattr(local, 'name', '-')", "local.name = 'r5'", "del local.name"),
    "a counter": ("next(numbers)", "next(numbers)", "next(numbers)"),
}

READERS = {
    "a filter": "handler.addFilter(Marks())",
    "a filter of each of two": (
        "log.addHandler(logging.StreamHandler(out))\nfor each in log.handlers:\n    each.addFilter(Marks())"
    ),
    "a filter of the logger": "log.addFilter(Marks())",
    "a formatter": "handler.setFormatter(Writes())",
    "a handler": "log.handlers[:] = [Keeps()]",
    "what keeps for later": (
        "log.handlers[:] = [logging.handlers.MemoryHandler(3, target=Keeps())]\n"
        "log.handlers[0].addFilter(Marks())"
    ),
    "a queue": (
        "log.handlers[:] = [logging.handlers.QueueHandler(queue.Queue())]\n"
        "log.handlers[0].addFilter(Marks())"
    ),
}


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bodies.clear()


WORK = """
@tape.tool
def work():
    bodies.append(1)
    log.warning("zero")
    BEFORE
    log.warning("one %s", "a")
    AFTER
    log.warning("two")

work()

def found():
    log.warning("last")
    waits = [each.queue for each in log.handlers if isinstance(each, logging.handlers.QueueHandler)]
    queued = [(each.mark, each.getMessage()) for queue in waits for each in queue.queue]
    return out.getvalue(), seen, queued, READ
"""


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("reader", READERS)
def test_what_shows_a_log_record_finds_what_it_found_then(reader, state, monkeypatch):
    read, before, after = STATES[state]
    text = f"{LOGS}\n{READERS[reader]}\n{WORK}"
    for word, code in (("READ", read), ("BEFORE", before), ("AFTER", after)):
        text = text.replace(word, code)
    shown = same(program_of(text, monkeypatch))
    assert any(shown[:3])


CATCHES = """
import pytest, warnings, contextlib
from concurrent.futures import ThreadPoolExecutor
ends = []

def wait_for_each_other():
    vars(pytest)["together"].wait()  # no name leads there

@contextlib.contextmanager
def catching():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        wait_for_each_other()
        yield caught
        wait_for_each_other()

def warn(number):
    warnings.warn(f"first {number}")
    wait_for_each_other()
    warnings.warn(f"second {number}")
    wait_for_each_other()

def in_threads(function):
    with ThreadPoolExecutor(3) as pool:
        return list(pool.map(function, range(3)))

def texts(caught):
    return sorted(str(each.message) for each in caught)
"""

WHO_CATCHES = {
    "each tool": """
@tape.tool
def work(number):
    bodies.append(number)
    with catching() as caught:
        warn(number)
    return texts(caught)

def run():
    return in_threads(work)
""",
    "threads of a tool": """
def one(number):
    with catching() as caught:
        warn(number)
    return texts(caught)

@tape.tool
def run():
    bodies.append(1)
    return in_threads(one)
""",
    "the program around each": """
@tape.tool
def work(number):
    bodies.append(number)
    warn(number)

def one(number):
    with catching() as caught:
        work(number)
    ends.append(texts(caught))

def run():
    in_threads(one)
    return sorted(ends)
""",
    "a tool what another one in it warns of": """
@tape.tool
def inner(number):
    bodies.append(number)
    warnings.warn(f"inner {number}")

@tape.tool
def run():
    bodies.append(1)
    warnings.warn("before")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        inner(3)
    return texts(caught)
""",
}


@pytest.mark.parametrize("who", WHO_CATCHES)
def test_each_catches_the_warnings_that_it_caught(who, monkeypatch):
    text = f"""{CATCHES}
{WHO_CATCHES[who]}
with warnings.catch_warnings(record=True) as around:
    warnings.simplefilter("always")
    result = run()

def found():
    return result, texts(around)
"""
    monkeypatch.setitem(vars(pytest), "together", threading.Barrier(3))
    same(program_of(text, monkeypatch))


def test_a_line_written_when_another_tool_no_longer_catches_is_shown(monkeypatch):
    text = """
import asyncio, contextlib, io
began, left = asyncio.Event(), asyncio.Event()

@tape.tool
async def catches():
    bodies.append("catches")
    with contextlib.redirect_stdout(io.StringIO()) as own:
        await began.wait()
        print("kept")
    left.set()
    return own.getvalue()

@tape.tool
async def writes():
    bodies.append("writes")
    began.set()
    await left.wait()
    print("shown")

async def run():
    return await asyncio.gather(catches(), writes())

with contextlib.redirect_stdout(io.StringIO()) as around:
    result = asyncio.run(run())

def found():
    return result, around.getvalue()
"""
    live, again, _, report = replayed(program_of(text, monkeypatch))
    assert again == live == (["kept\n", None], "shown\n")
    assert not report.unheld


def test_a_stream_of_the_programs_is_written_to_as_it_was_then(monkeypatch):
    text = """
import contextlib, io
now, seen = {"step": 0}, []

class Notes(io.StringIO):
    def write(self, text):
        seen.append((now["step"], text))
        return super().write(text)

@tape.tool
def work():
    bodies.append(1)
    for now["step"] in (1, 2):
        print("at", now["step"])
    now["step"] = 0

with contextlib.redirect_stdout(Notes()):
    work()

def found():
    return seen, now
"""
    seen, now = same(program_of(text, monkeypatch))
    assert [each for each in seen if each[1] == "at"] == [(1, "at"), (2, "at")] and now == {
        "step": 0
    }


HANDED = """
import io, logging, sys
out, seen = io.StringIO(), []
class Counts(logging.StreamHandler):
    count = 0
    def emit(self, record):
        self.count += 1
        super().emit(record)
class Marks(logging.Filter):
    def filter(self, record):
        seen.append(record.getMessage())
        return True
handler = HANDLER
record = logging.LogRecord("by hand", 20, "x.py", 1, "hello %s", ("you",), None)

@tape.tool
def work():
    bodies.append(1)
    HANDS

def found():
    work()
    return out.getvalue(), seen, getattr(handler, "count", 0)
"""


@pytest.mark.parametrize("handler", ["logging.StreamHandler(out)", "Counts(out)"])
@pytest.mark.parametrize(
    "hands",
    [
        "handler.handle(record)",
        "handler.emit(record)",
        "handler.addFilter(Marks())\n    handler.handle(record)",
        "logging.StreamHandler(out).handle(record)",
    ],
)
def test_a_log_record_that_a_tool_hands_to_a_handler_itself_is_shown_again(
    handler, hands, monkeypatch
):
    text = HANDED.replace("HANDLER", handler).replace("HANDS", hands)
    shown, _, _ = same(program_of(text, monkeypatch))
    assert shown == "hello you\n"
