"""The kernel stays healthy: after whatever happened in a taped cell the next one is as in a fresh kernel."""

import os
import textwrap

import pytest

from tape_jupyter.headless.kernel import REMARKS
from tests.harness.notebook import Kernel, notebook
from tests.harness.provider import Provider, Scripted

CELLS = int(os.environ.get("TAPE_CELL_COUNT", "120"))
LOAD = "%load_ext tape_jupyter"


@pytest.fixture(scope="module")
def provider():
    with Provider(vary=True) as provider:
        provider.script(
            "/v1/hangs",
            Scripted(200, {"content-type": "text/event-stream"}, [b"data: 1\n\n"], then="hang"),
        )
        yield provider


@pytest.fixture(scope="module")
def kernel(tmp_path_factory, provider):
    where = tmp_path_factory.mktemp("health")
    with Kernel(where, {"TAPE_NOTEBOOK": str(notebook(where / "nb.ipynb", "x"))}) as kernel:
        assert kernel.execute(LOAD + "\n" + SET_UP.replace("BASE", provider.url)).ok
        assert kernel.execute("%%tape record known\nask('known')").ok
        yield kernel


SET_UP = """
import asyncio, httpx, os, socket, sys, threading, time
import tape_jupyter as tape
port = int("BASE".rpartition(":")[2])
def ask(text):
    return httpx.post("BASE/v1/messages", json={"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}).json()["id"]
@tape.tool
def struck():
    raise KeyboardInterrupt
@tape.tool
def broken():
    raise ValueError("broken")
"""

HEALTHY = """
began = time.time()
with socket.create_connection(("127.0.0.1", port), timeout=5): pass
first, second = ask("untaped"), ask("untaped")
assert first != second, "the provider's answers vary: both were live"
async with httpx.AsyncClient() as client:
    assert (await client.get(f"http://127.0.0.1:{port}/")).status_code == 404
slept = time.monotonic()
await asyncio.sleep(0.02)
time.sleep(0.01)
assert 0.03 <= time.monotonic() - slept < 10
assert await asyncio.wait_for(asyncio.to_thread(lambda: 7), 5) == 7
answers = []
thread = threading.Thread(target=lambda: answers.append(ask("thread")))
thread.start(); thread.join()
assert len(answers) == 1
from tape_jupyter.session import session as deck
from tape_jupyter.core.context import ORIGIN, SENDING
assert deck.get().active is None and ORIGIN.get() is None and not SENDING.get()
assert not [name for name in os.environ if "tape-jupyter" in os.environ[name]] and "ANTHROPIC_API_KEY" not in os.environ
began
"""

FAILURES = {
    "miss": ("replay known", "ask('never recorded')", "UnmatchedCall"),
    "swallowed miss": (
        "replay known",
        "try: ask('never recorded')\nexcept BaseException: pass",
        "UnmatchedCall",
    ),
    "miss in a task": (
        "replay known",
        "await asyncio.gather(*(asyncio.to_thread(ask, f'never {i}') for i in range(3)))",
        "UnmatchedCall",
    ),
    "refused socket": (
        "replay known",
        "socket.create_connection(('127.0.0.1', port))",
        "BlockedConnection",
    ),
    "refused name": (
        "replay known",
        "socket.getaddrinfo('nowhere.example', 80)",
        "BlockedConnection",
    ),
    "missing cassette": ("replay missing", "ask('x')", "TapeUsageError"),
    "broken cassette": ("replay broken", "ask('x')", "CassetteError"),
    "exception": ("record", "ask('a'); 1 / 0", "ZeroDivisionError"),
    "exception in replay": ("replay known", "ask('known'); 1 / 0", "ZeroDivisionError"),
    "exception in a tool": ("record", "broken()", "ValueError"),
    "interrupt in a tool": ("record", "struck()", "KeyboardInterrupt"),
    "cancelled": (
        "record",
        "asyncio.current_task().cancel(); await asyncio.sleep(1)",
        "CancelledError",
    ),
    "exit": ("record", "ask('b'); sys.exit('out')", "SystemExit"),
    "exit in replay": ("replay known", "ask('known'); sys.exit(3)", "SystemExit"),
    "syntax error": ("record", "x = (", None),
    "bad line": ("recrod", "ask('x')", "TapeUsageError"),
    "group": (
        "record",
        "async with asyncio.TaskGroup() as g:\n    g.create_task(asyncio.sleep(9)); g.create_task(asyncio.to_thread(lambda: 1 / 0))",
        "ExceptionGroup",
    ),
    "open stream": (
        "record",
        "s = httpx.Client().stream('POST', f'http://127.0.0.1:{port}/v1/hangs'); r = s.__enter__(); next(r.iter_raw()); raise LookupError",
        "LookupError",
    ),
}


@pytest.mark.spread(3)
@pytest.mark.parametrize("failure", FAILURES)
def test_after_a_failure_the_next_cell_is_live_with_real_time(kernel, failure):
    line, body, ename = FAILURES[failure]
    (kernel.cwd / "nb.tapes" / "broken.tape.yaml").write_text("---\ntape: 99\n...\n")
    ran = kernel.execute(f"%%tape {line}\n{body}")
    assert ran.status == "error", ran.outputs
    assert ename is None or ran.ename == ename, ran.traceback
    healthy = kernel.execute(HEALTHY)
    assert healthy.ok, healthy.traceback
    assert kernel.execute(f"abs(time.time() - {healthy.result}) < 60").result == "True"


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["record", "replay known"])
@pytest.mark.parametrize(
    "wait",
    ["time.sleep(30)", "await asyncio.sleep(30)", "httpx.get(f'http://127.0.0.1:{port}/v1/hangs')"],
)
def test_after_an_interrupt_the_next_cell_is_live_with_real_time(kernel, mode, wait):
    if mode != "record":  # sleeps do not wait there
        wait = "await asyncio.Event().wait()" if "await" in wait else "threading.Event().wait(30)"
    asked = kernel.send(f"%%tape {mode}\nprint('waiting', flush=True)\n{wait}")
    kernel.wait_for(asked, "waiting")
    kernel.interrupt()
    assert kernel.collect(asked).status == "error"
    healthy = kernel.execute(HEALTHY)
    assert healthy.ok, healthy.traceback


LEAVING = """
go = threading.Event()
said = []
def late():
    go.wait(20)
    try: said.append(type(ask("known")).__name__)
    except BaseException as error: said.append(type(error).__name__)
async def later():
    while not go.is_set(): await asyncio.sleep(0.01)
    late()
leaver = threading.Thread(target=late)
leaver.start()
task = asyncio.get_running_loop().create_task(later())
ask("known")
"""


@pytest.mark.parametrize(("mode", "late"), [("record", "str"), ("replay known", "UnmatchedCall")])
def test_threads_and_tasks_that_a_cell_leaves_behind_harm_no_later_cell(kernel, mode, late):
    assert kernel.execute(f"%%tape {mode}\n{LEAVING}").ok
    healthy = kernel.execute(HEALTHY)
    assert healthy.ok, healthy.traceback
    assert kernel.execute("go.set(); leaver.join(); await task\nsaid").result == repr([late, late])
    assert kernel.execute(HEALTHY).ok


# ---------------------------------------------------------------- many cells

MEASURE = """
import gc, psutil
for _ in range(3): gc.collect()
process = psutil.Process()
(process.memory_full_info().uss, process.num_fds(), threading.active_count(),
 len(get_ipython().events.callbacks["pre_run_cell"]), len(get_ipython().events.callbacks["post_run_cell"]),
 len(get_ipython().input_transformers_cleanup), len(get_ipython().ast_transformers))
"""

PATCHED = """
import httpx2, urllib3, requests, concurrent.futures
def attributes():
    owners = [httpx.HTTPTransport, httpx.AsyncHTTPTransport, httpx2.HTTPTransport, httpx2.AsyncHTTPTransport,
              urllib3.connectionpool.HTTPConnectionPool, urllib3.connectionpool.HTTPSConnectionPool, threading.Thread,
              concurrent.futures.ThreadPoolExecutor, asyncio.BaseEventLoop, asyncio, threading, socket.socket, time]
    return {(owner, name): value for owner in owners for name, value in vars(owner).items() if callable(value)}
meta_path = list(sys.meta_path)
before = attributes()
"""

CELL_KINDS = [
    "%%tape record loop{n}\nask('same'); ask('same')",
    "%%tape replay loop{last}\nask('same'); ask('same')",
    "%%tape replay loop{last}\ntry: ask('a miss {n}')\nexcept BaseException: pass",
    "%%tape replay loop{last}\nawait asyncio.gather(*(asyncio.to_thread(ask, 'same') for _ in range(2)))",
    "%%tape record loop{n}\nraise ValueError(ask('same'))",
    "%%tape record\nawait asyncio.sleep(0)",
]


@pytest.mark.night
def test_many_taped_cells_leak_nothing_and_off_puts_everything_back(tmp_path, provider):
    with Kernel(tmp_path, {"TAPE_NOTEBOOK": str(notebook(tmp_path / "nb.ipynb", "x"))}) as kernel:
        assert kernel.execute(SET_UP.replace("BASE", provider.url)).ok
        assert kernel.execute(PATCHED).ok
        assert kernel.execute(LOAD).ok
        kernel.execute("%config InteractiveShell.cache_size = 0")
        figures, last = {}, 0
        for number in range(CELLS):
            kind = CELL_KINDS[number % len(CELL_KINDS)]
            last = (
                number % 12 if "{n}" in kind and "record" in kind and "raise" not in kind else last
            )
            kernel.execute(kind.format(n=last if "raise" not in kind else "raise", last=last))
            if number == CELLS * 2 // 5 or number == CELLS - 1:
                asked = kernel.execute(MEASURE)
                figures[number] = eval(asked.result)
        (uss, *counts), (uss_later, *counts_later) = figures.values()
        growth = (uss_later - uss) / 2**20
        print(
            f"{CELLS} cells: {growth:+.1f} MB over the last {CELLS * 3 // 5}, {counts} -> {counts_later}"
        )
        assert counts_later == counts
        assert growth < 10
        assert kernel.execute("attributes() == before").result == "False"
        assert kernel.execute("%tape off").ok
        same = "[key for key, value in attributes().items() if before.get(key) is not value], sys.meta_path == meta_path"
        listening = "_ = before.update({(threading, '_profile_hook'): threading._profile_hook})"  # to the cell that asks: history
        assert kernel.execute(f"{listening}\n{same}").result == "([], True)"
        assert kernel.execute("%tape record").ok
        assert kernel.execute("%unload_ext tape_jupyter").ok
        assert kernel.execute("threading._profile_hook is None").result == "True"
        assert kernel.execute(same).result == "([], True)"
        assert (
            kernel.execute("[type(t).__name__ for t in get_ipython().ast_transformers]").result
            == "[]"
        )


def test_a_disk_that_does_not_hold_what_a_cell_recorded_is_said(tmp_path):
    with Kernel(tmp_path, {"TAPE_NOTEBOOK": str(tmp_path / "nb.ipynb")}) as kernel:
        assert kernel.execute("%load_ext tape_jupyter\nimport os, tape_jupyter as tape").ok
        fails = "def fail(file): raise OSError(5, 'Input/output error')\nreal, os.fsync = os.fsync, fail"
        assert kernel.execute(fails).ok
        assert kernel.execute("%%tape record\n@tape.tool\ndef look(): return 1\nlook()").ok
        asked = kernel.execute(f"os.fsync = real; print({REMARKS})")
        assert "cannot be brought to the disk: Input/output error" in asked.stdout
        assert kernel.execute("%%tape replay\nlook()").ok
