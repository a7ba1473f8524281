"""Random sequences of libraries that patch and of the tape, each in a process of its own: what patches what, in any order.

    python -m tests.trials.patch_sequences [--rounds 5000] [--seed 1] [--only 17] [--tell]

A sequence is a dozen cells of a shell that was forked from a warm process: clocks, random, sockets, ssl, threads, asyncio
loops, gevent, nest_asyncio, `open`, `print` and json are replaced (by mocks, libraries, plain assignments) and put back,
the tape is loaded, unloaded, reloaded, records, replays and is taken off, and programs run, taped and not. It is a fault
where it does what it does not with nothing in the tape's place:

* dies, or hangs;
* raises in a cell, but for an error of the tape's own;
* replays another value than it recorded, where nothing was replaced between the two;
* leaves, once everything was put back and the tape unloaded, something in a module or class that is not what stood there
  before;
* leaves a clock that is not the file system's.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import json
import os
import random
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
import types
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.trials.race_rounds import provider

SECONDS = 30
"""After which a sequence hangs, of a busy machine; one takes a second."""

PLAIN_SECONDS = 10
"""After which it does by itself, without the tape."""

PREPARE = """
import asyncio, builtins, concurrent.futures, datetime, http.client, json, os, random, socket, ssl, threading, time
import urllib.request, uuid
from unittest import mock
import aiohttp, httpx, requests, urllib3
"""

# ---------------------------------------------------------------- what replaces


PATCHED = {
    "time.time": "lambda: 5.0",
    "time.time_ns": "lambda: 5_000_000_000",
    "time.sleep": "lambda seconds: None",
    "time.monotonic": "lambda real=time.monotonic: real() + 3",
    "time.perf_counter": "lambda real=time.perf_counter: real() + 3",
    "time.localtime": "lambda *a, real=time.localtime: real(*a)",
    "time.strftime": "lambda *a, real=time.strftime: real(*a)",
    "datetime.datetime": "type('Dates', (datetime.datetime,), {})",
    "datetime.date": "type('Days', (datetime.date,), {})",
    "random.random": "lambda: 0.5",
    "random.seed": "lambda *a, **k: None",
    "random.Random": "type('Dice', (random.Random,), {})",
    "os.urandom": "lambda n: b'x' * n",
    "uuid.uuid4": "lambda: uuid.UUID(int=7)",
    "uuid.getnode": "lambda: 7",
    "socket.socket": "type('Plug', (socket.socket,), {})",
    "socket.socket.connect": "lambda self, where, real=socket.socket.connect: real(self, where)",
    "socket.create_connection": "lambda *a, real=socket.create_connection, **k: real(*a, **k)",
    "socket.getaddrinfo": "lambda *a, real=socket.getaddrinfo, **k: real(*a, **k)",
    "ssl.SSLContext": "type('Trust', (ssl.SSLContext,), {})",
    "ssl.create_default_context": "lambda *a, real=ssl.create_default_context, **k: real(*a, **k)",
    "ssl.SSLSocket.read": "lambda self, *a, real=ssl.SSLSocket.read: real(self, *a)",
    "threading.Thread": "type('Green', (threading.Thread,), {})",
    "threading.Thread.start": "lambda self, real=threading.Thread.start: real(self)",
    "threading.Thread.run": "lambda self, real=threading.Thread.run: real(self)",
    "threading.Lock": "lambda real=threading.Lock: real()",
    "concurrent.futures.ThreadPoolExecutor.submit": "lambda self, f, *a, real=concurrent.futures.ThreadPoolExecutor.submit, **k: real(self, f, *a, **k)",
    "asyncio.sleep": "lambda *a, real=asyncio.sleep, **k: real(*a, **k)",
    "asyncio.create_task": "lambda *a, real=asyncio.create_task, **k: real(*a, **k)",
    "asyncio.gather": "lambda *a, real=asyncio.gather, **k: real(*a, **k)",
    "asyncio.BaseEventLoop.call_soon": "lambda self, *a, real=asyncio.BaseEventLoop.call_soon, **k: real(self, *a, **k)",
    "asyncio.BaseEventLoop.create_task": "lambda self, *a, real=asyncio.BaseEventLoop.create_task, **k: real(self, *a, **k)",
    "asyncio.BaseEventLoop.run_in_executor": "lambda self, *a, real=asyncio.BaseEventLoop.run_in_executor, **k: real(self, *a, **k)",
    "builtins.open": "lambda *a, real=open, **k: real(*a, **k)",
    "builtins.print": "lambda *a, real=print, **k: real(*a, **k)",
    "builtins.input": "lambda *a: 'said'",
    "builtins.__import__": "lambda *a, real=__import__, **k: real(*a, **k)",
    "json.dumps": "lambda *a, real=json.dumps, **k: real(*a, **k)",
    "json.loads": "lambda *a, real=json.loads, **k: real(*a, **k)",
    "json.JSONEncoder.default": "lambda self, o: str(o)",
    "httpx.Client.send": "lambda self, *a, real=httpx.Client.send, **k: real(self, *a, **k)",
    "httpx.HTTPTransport.handle_request": "lambda self, r, real=httpx.HTTPTransport.handle_request: real(self, r)",
    "requests.Session.send": "lambda self, *a, real=requests.Session.send, **k: real(self, *a, **k)",
    "urllib3.HTTPConnectionPool.urlopen": "lambda self, *a, real=urllib3.HTTPConnectionPool.urlopen, **k: real(self, *a, **k)",
    "http.client.HTTPConnection.request": "lambda self, *a, real=http.client.HTTPConnection.request, **k: real(self, *a, **k)",
    "http.client.HTTPConnection.getresponse": "lambda self, *a, real=http.client.HTTPConnection.getresponse, **k: real(self, *a, **k)",
    "aiohttp.ClientSession._request": "lambda self, *a, real=aiohttp.ClientSession._request, **k: real(self, *a, **k)",
}  # fmt: skip
"""By the name of what is replaced: what takes its place."""

HABITS = {
    "mock": ("PATCH = mock.patch('NAME', INSTEAD); PATCH.start()", "PATCH.stop()"),
    "autospec": ("PATCH = mock.patch('NAME', side_effect=INSTEAD); PATCH.start()", "PATCH.stop()"),
    "assigned": ("PATCH = NAME; NAME = INSTEAD", "NAME = PATCH"),
    "subverted": ("PATCH = NAME; setattr(OWNER, 'LAST', mock.Mock(wraps=PATCH))", "setattr(OWNER, 'LAST', PATCH)"),
}  # fmt: skip

LIBRARIES = {
    "frozen": ("import freezegun; PATCH = freezegun.freeze_time('2020-01-01', real_asyncio=True); PATCH.start()", "PATCH.stop()"),
    "ticking": ("import freezegun; PATCH = freezegun.freeze_time('2020-01-01', tick=True, real_asyncio=True); PATCH.start()", "PATCH.stop()"),
    "travelling": ("import time_machine; PATCH = time_machine.travel('2020-01-01', tick=True); PATCH.start()", "PATCH.stop()"),
    "stopped": ("import time_machine; PATCH = time_machine.travel('2020-01-01', tick=False); PATCH.start()", "PATCH.stop()"),
    "uvloop": ("import uvloop; asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())", "asyncio.set_event_loop_policy(None)"),
    "nested": ("import nest_asyncio; nest_asyncio.apply()", ""),
    "gevent": ("import gevent.monkey; gevent.monkey.patch_all()", ""),
    "gevent time": ("import gevent.monkey; gevent.monkey.patch_time()", ""),
    "gevent sockets": ("import gevent.monkey; gevent.monkey.patch_socket(); gevent.monkey.patch_ssl()", ""),
    "gevent threads": ("import gevent.monkey; gevent.monkey.patch_thread()", ""),
    "traced": ("import sys; sys.settrace(lambda *a: None); PATCH = 0", "sys.settrace(None)"),
    "seeded": ("random.seed(3)", ""),
    "collected": ("import gc; gc.collect()", ""),
    "decimal": ("import decimal; PATCH = decimal.getcontext().prec; decimal.getcontext().prec = 9", "decimal.getcontext().prec = PATCH"),
}  # fmt: skip


# ---------------------------------------------------------------- what runs


PROGRAMS = {
    "clock": "got = [round(time.time(), 3), str(datetime.datetime.now())[:19], time.monotonic() > 0, time.strftime('%Y')]",
    "sleep": "time.sleep(0.001); got = 'slept'",
    "dice": "got = [random.random(), random.randint(0, 9), os.urandom(4).hex(), str(uuid.uuid4())]",
    "httpx": "got = httpx.post(URL + '/httpx', json={'a': 1}, timeout=20).text",
    "httpx stream": "with httpx.stream('POST', URL + '/stream', json={'a': 2}, timeout=20) as reply:\n    got = reply.read().decode()",
    "httpx async": "async with httpx.AsyncClient(timeout=20) as client:\n    got = (await client.post(URL + '/async', json={'a': 3})).text",
    "requests": "got = requests.post(URL + '/requests', json={'a': 4}, timeout=20).text",
    "urllib3": "got = urllib3.PoolManager().request('POST', URL + '/urllib3', json={'a': 5}, timeout=20).data.decode()",
    "urllib": "got = urllib.request.urlopen(URL + '/urllib', b'{}', timeout=20).read().decode()",
    "http.client": "line = http.client.HTTPConnection(URL[7:], timeout=20); line.request('POST', '/plain', b'{}'); got = line.getresponse().read().decode(); line.close()",
    "aiohttp": "async with aiohttp.ClientSession() as client, client.post(URL + '/aiohttp', json={'a': 6}) as reply:\n    got = await reply.text()",
    "run": "async def ask():\n    async with httpx.AsyncClient(timeout=20) as client:\n        return (await client.post(URL + '/run', json={'a': 7})).text\ngot = asyncio.run(ask())",
    "thread": "got = []\nthread = threading.Thread(target=lambda: got.append(httpx.post(URL + '/thread', json={'a': 8}, timeout=20).text)); thread.start(); thread.join()",
    "pool": "with concurrent.futures.ThreadPoolExecutor(2) as pool:\n    got = list(pool.map(lambda n: requests.post(URL + '/pool', json={'n': n}, timeout=20).text, range(2)))",
    "tasks": "async def one(n):\n    await asyncio.sleep(0.001)\n    return n, random.random()\ngot = [list(each) for each in await asyncio.gather(*(asyncio.create_task(one(n)) for n in range(3)))]",
    "sockets": "a, b = socket.socketpair(); a.sendall(b'x'); got = b.recv(1).decode(); a.close(); b.close()",
    "ssl": "got = type(ssl.create_default_context()).__name__",
    "files": "with open('note.txt', 'w') as out:\n    print('said', file=out)\ngot = open('note.txt').read(); print(json.dumps({'a': got}))",
    "tool": "import tape_jupyter as tape\n@tape.tool\ndef add(a, b):\n    return a + b\ngot = add(1, 2)",
    "raises": "got = 1; raise KeyError('of the program')",
}  # fmt: skip

OF_CHANCE = ("clock", "dice", "tasks")
"""Programs that give the clock and chance: where a program has its own in their place, those are not replayed."""

MODULE = "def value(): return NUMBER\n"
TAPE_LINES = ("%load_ext tape_jupyter",) * 4 + (
    "%unload_ext tape_jupyter", "%reload_ext tape_jupyter", "%tape off", "%tape record NAME", "%tape replay NAME",
    "%tape once NAME", "%tape new_episodes NAME", "%tape status", "%tape live",
)  # fmt: skip
AUTORELOAD = ("%load_ext autoreload", "%autoreload 0", "%autoreload 1", "%autoreload 2", "%autoreload", "%reload_ext autoreload")  # fmt: skip


class Step(NamedTuple):
    kind: str  # patch, undo, tape, program, pair, cell
    source: str
    name: str = ""


def sequence(seed: int) -> list[Step]:
    """The steps of one number; the same each time."""
    rng = random.Random(seed)
    steps: list[Step] = []
    undone: list[Step] = []
    for number in range(rng.randint(6, 14)):
        kind = rng.choices(
            ("patch", "undo", "tape", "program", "pair", "reload"), (5, 2, 4, 2, 5, 1)
        )[0]
        if kind == "patch":
            start, stop, what = _patch(rng, f"patch_{number}")
            steps.append(Step("patch", start, what))
            if stop:
                undone.append(Step("undo", stop, what))
        elif kind == "undo" and undone:
            steps.append(undone.pop(rng.choice((-1, -1, rng.randrange(len(undone))))))
        elif kind == "tape":
            line = rng.choice(TAPE_LINES).replace("NAME", f"of-{number}")
            steps.append(Step("tape", line))
        elif kind == "program":
            name = rng.choice(list(PROGRAMS))
            steps.append(Step("program", PROGRAMS[name], name))
        elif kind == "pair":
            name = rng.choice(list(PROGRAMS))
            steps.append(Step("tape", "%reload_ext tape_jupyter"))
            steps += [
                Step("pair", f"%%tape {mode} {name.replace(' ', '-').replace('.', '-')}-{number}\n{PROGRAMS[name]}", name)
                for mode in ("record", "replay")
            ]  # fmt: skip
        elif kind == "reload":
            steps.append(Step("cell", rng.choice(AUTORELOAD)))
            steps.append(Step("cell", "import ours; got = ours.value()"))
    return steps + undone[::-1]


def _patch(rng: random.Random, variable: str) -> tuple[str, str, str]:
    """How something is replaced, how it is put back ("": it cannot be), and its name."""
    if rng.random() < 0.3:
        what = rng.choice(list(LIBRARIES))
        start, stop = LIBRARIES[what]
    else:
        what = rng.choice(list(PATCHED))
        owner, _, last = what.rpartition(".")
        of_class = owner.rpartition(".")[2][:1].isupper()  # a mock is no method
        start, stop = HABITS[rng.choice(("mock", "assigned") if of_class else list(HABITS))]
        start, stop = (
            text.replace("NAME", what).replace("INSTEAD", PATCHED[what]).replace("OWNER", owner).replace("LAST", last)
            for text in (start, stop)
        )  # fmt: skip
    return start.replace("PATCH", variable), stop.replace("PATCH", variable), what


# ---------------------------------------------------------------- in the process of one sequence


def warm(*, tape: bool) -> None:
    """Import what the sequences use; the processes of the sequences are forked from here."""
    exec(PREPARE, {})
    import IPython.core.interactiveshell
    import IPython.extensions.autoreload

    if tape:
        import tape_jupyter.jupyter.magics
        import tape_jupyter.session.api


KINDS = (types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType, type, classmethod, staticmethod, property)  # fmt: skip


def standing() -> dict[str, int]:
    """The id of each function and class that a module or a class of one has, but for ours and the shell's."""
    found: dict[str, int] = {}
    for name, module in list(sys.modules.items()):
        if not isinstance(module, types.ModuleType) or name.startswith(
            ("tape_jupyter", "tests.", "IPython.", "__main__", "gevent", "zope", "freezegun", "time_machine")
        ):  # fmt: skip
            continue
        for key, value in list(vars(module).items()):
            if isinstance(value, KINDS):
                found[f"{name}.{key}"] = id(value)
            if isinstance(value, type) and value.__module__ == name:
                found |= {
                    f"{name}.{key}.{inner}": id(each)
                    for inner, each in list(vars(value).items())
                    if isinstance(each, KINDS)
                }
    return found


def ours() -> list[str]:
    """Where a stand-in of the tape's still stands."""
    from tape_jupyter.instrumentation.patching import is_replacement

    found = []
    for name, module in list(sys.modules.items()):
        if isinstance(module, types.ModuleType) and not name.startswith(("tape_jupyter", "tests.")):
            for key, value in list(vars(module).items()):
                if is_replacement(value):
                    found.append(f"{name}.{key}")
                if isinstance(value, type) and value.__module__ == name:
                    found += [
                        f"{name}.{key}.{inner}"
                        for inner, each in list(vars(value).items())
                        if is_replacement(each)
                    ]
    return found


def clocks_off(folder: Path) -> list[str]:
    """The clocks that are not the file system's, which no patch reaches."""
    import datetime as dt

    mark = folder / "clock"
    with os.fdopen(os.open(mark, os.O_CREAT | os.O_WRONLY | os.O_TRUNC), "wb") as out:
        out.write(b"x")
    real = os.stat(mark).st_mtime
    read = {
        "time.time": time.time(), "time.time_ns": time.time_ns() / 1e9, "datetime.now": dt.datetime.now().timestamp(),
        "time.localtime": time.mktime(time.localtime()), "time.ctime": time.mktime(time.strptime(time.ctime())),
    }  # fmt: skip
    began = time.monotonic()
    time.sleep(0.02)
    slept = time.monotonic() - began
    return [name for name, value in read.items() if abs(value - real) > 30] + ["sleep"] * (
        slept < 0.019
    )


def played(steps: list[Step], folder: Path, url: str, before: dict[str, int], *, taped: bool) -> dict[str, Any]:  # fmt: skip
    """Run the cells, with the tape or with nothing in its place, and look at what is left."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.xmode = "Minimal"
    (folder / "ours.py").write_text(MODULE.replace("NUMBER", "1"))
    sys.path.insert(0, str(folder))
    shell = InteractiveShell.instance(config=config)
    exec(PREPARE, shell.user_ns)
    shell.user_ns["URL"] = url
    raised: list[str] = []
    unlike: list[str] = []
    replaced: Counter[str] = Counter()
    got: Any = None
    for number, step in enumerate(steps):
        source = step.source
        if not taped and step.kind == "tape":
            source = "pass"
        elif not taped and step.kind == "pair":
            source = source.partition("\n")[2]
        print(f"## {number} {step.kind} {step.name}: {source}", flush=True)
        replaced[step.name] += {"patch": 1, "undo": -1}.get(step.kind, 0)
        done = shell.run_cell(source)
        error = done.error_before_exec or done.error_in_exec
        raised.append(_kind(error))
        value = shell.user_ns.pop("got", None)
        if (
            step.kind == "pair"
            and error is None
            and (step.name not in OF_CHANCE or not replaced.total())
        ):
            if source.startswith("%%tape replay") and raised[number - 1] == "" and value != got:
                unlike.append(f"{number} {step.name}: {got!r} replayed as {value!r}")
            got = value
    if taped:
        for line in ("%reload_ext tape_jupyter", "%tape off", "%unload_ext tape_jupyter"):
            done = shell.run_cell(line)
            raised.append(_kind(done.error_before_exec or done.error_in_exec))
    after = standing()
    left = sorted(name for name in before if after.get(name) != before[name])
    return {
        "raised": raised,
        "unlike": unlike,
        "left": left,
        "ours": ours() if taped else [],
        "clocks": clocks_off(folder),
        "hooks": [name for name in ("trace", "profile") if getattr(sys, f"get{name}")() is not None],
    }  # fmt: skip


def _kind(error: BaseException | None) -> str:
    if error is None:
        return ""
    own = type(error).__module__.startswith("tape_jupyter") or (
        "`%tape` not found" in str(error) or "`%%tape` not found" in str(error)
    )
    return f"{'tape ' if own else ''}{type(error).__name__}: {str(error)[:120]}"


# ---------------------------------------------------------------- processes


def forked(work: Any, folder: Path, seconds: int) -> tuple[int, int, Path]:
    """Have a fork do this work and write what it gives as JSON; its process, the pipe to read from, and its log."""
    reader, writer = os.pipe()
    log = folder / "log"
    process = os.fork()
    if process:
        os.close(writer)
        return process, reader, log
    try:
        os.close(reader)
        out = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        os.dup2(out, 1)
        os.dup2(out, 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w", 1, closefd=False), os.fdopen(2, "w", 1, closefd=False)  # fmt: skip
        os.chdir(folder)
        faulthandler.enable(sys.stderr)
        faulthandler.dump_traceback_later(seconds, exit=True)
        write, text = os.write, json.dumps
        try:
            found = work()
        except BaseException:
            traceback.print_exc()
            found = {"harness": traceback.format_exc()}
        data = text(found).encode()
        while data:
            data = data[write(writer, data) :]
        os.close(writer)
    finally:
        os.kill(os.getpid(), signal.SIGCONT)
        os._exit(0)


def awaited(process: int, reader: int) -> dict[str, Any]:
    """What the fork gave, or how it ended."""
    text = b""
    while part := os.read(reader, 1 << 16):
        text += part
    os.close(reader)
    _, status = os.waitpid(process, 0)
    if os.WIFSIGNALED(status):
        return {"died": signal.Signals(os.WTERMSIG(status)).name}
    if not text:
        return {"died": f"exit {os.WEXITSTATUS(status)}"}
    return json.loads(text)


def judged(seed: int, url: str, before: dict[str, int], scratch: Path, *, tell: bool = False) -> list[str]:  # fmt: skip
    """The faults of one sequence."""
    steps = sequence(seed)

    def run(*, taped: bool) -> dict[str, Any]:
        folder = scratch / f"{seed}-{taped}"
        folder.mkdir()
        work = lambda: played(steps, folder, url, before, taped=taped)  # noqa: E731
        process, reader, log = forked(work, folder, SECONDS if taped else PLAIN_SECONDS)
        ended = awaited(process, reader)
        if tell:
            print(
                f"==== {'with' if taped else 'without'} the tape\n{log.read_text(errors='replace')}"
            )
        shutil.rmtree(folder, ignore_errors=True)
        return ended

    taped = run(taped=True)
    harmless = {"raised": [""] * len(steps), "left": [], "clocks": [], "hooks": []}
    if not tell and not faults(steps, harmless, taped):
        return []
    return faults(steps, run(taped=False), taped)


def faults(steps: list[Step], plain: dict[str, Any], taped: dict[str, Any]) -> list[str]:
    """What the tape did; where the program ends by itself, nothing."""
    if "raised" not in plain:
        return [f"by itself: {how}: {what}" for how, what in plain.items()]
    if "raised" not in taped:
        return [f"{how}: {what}" for how, what in taped.items()]
    found = [
        f"raised: {number} {step.kind} {step.name}: {after} (without the tape: {before or 'nothing'})"
        for number, (step, before, after) in enumerate(
            zip(steps, plain["raised"], taped["raised"], strict=False)
        )
        if after.partition(":")[0] != before.partition(":")[0] and after and not after.startswith("tape ")
    ]  # fmt: skip
    found += [f"raised: at the end: {each}" for each in taped["raised"][len(steps) :] if each]
    found += [f"replayed otherwise: {each}" for each in taped["unlike"]]
    found += [f"left: {each}" for each in taped["left"] if each not in plain["left"]]
    found += [f"ours: {each}" for each in taped["ours"]]
    found += [f"clock: {each}" for each in taped["clocks"] if each not in plain["clocks"]]
    return found + [f"hook: {each}" for each in taped["hooks"] if each not in plain["hooks"]]


def rounds(
    count: int, seed: int, *, jobs: int = 1, tape: bool = True
) -> Iterator[tuple[int, list[str]]]:
    """The number and the faults of each sequence. The tape is imported before (`tape`), or by the sequence."""
    with provider(apart=0) as url, tempfile.TemporaryDirectory() as scratch:
        readers = {}
        for job in range(jobs):
            reader, writer = os.pipe()
            process = os.fork()
            if not process:
                try:
                    os.close(reader)
                    warm(tape=tape)
                    before = standing()
                    for number in range(seed + job, seed + count, jobs):
                        found = judged(number, url, before, Path(scratch))
                        os.write(writer, json.dumps([number, found]).encode() + b"\n")
                finally:
                    os._exit(0)
            os.close(writer)
            readers[reader] = (process, b"")
        try:
            while readers:
                for reader in select.select(list(readers), [], [])[0]:
                    process, rest = readers[reader]
                    part = os.read(reader, 1 << 16)
                    *lines, rest = (rest + part).split(b"\n")
                    readers[reader] = process, rest
                    for line in lines:
                        yield tuple(json.loads(line))
                    if not part:
                        os.close(reader)
                        del readers[reader]
                        os.waitpid(process, 0)
        finally:
            for process, _ in readers.values():
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--rounds", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--cold", action="store_true", help="the tape is imported by %%load_ext")
    parser.add_argument("--warm", dest="cold", action="store_false", help="it was before (default)")
    parser.add_argument("--only", type=int, help="one sequence, with all that it said")
    asked = parser.parse_args()
    if asked.only is not None:
        with provider(apart=0) as url, tempfile.TemporaryDirectory() as scratch:
            warm(tape=not asked.cold)
            found = judged(asked.only, url, standing(), Path(scratch), tell=True)
        print("==== faults", *found, sep="\n")
        return 1 if found else 0
    began, bad, kinds = time.monotonic(), 0, Counter()
    for done, (number, found) in enumerate(rounds(asked.rounds, asked.seed, jobs=asked.jobs, tape=not asked.cold), 1):  # fmt: skip
        bad += any(not each.startswith("by itself") for each in found)
        kinds.update({each.partition(":")[0] for each in found})
        for each in [each for each in found if not each.startswith("by itself")][:5]:
            print(f"{number}: {each}", flush=True)
        if done % 100 == 0:
            print(f"  {done} sequences, {bad} at fault, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)  # fmt: skip
    print(json.dumps({"sequences": asked.rounds, "at_fault": bad, "kinds": kinds, "seconds": round(time.monotonic() - began)}))  # fmt: skip
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
