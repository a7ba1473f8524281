"""The clock of a taped cell in real kernels: readings repeat, sleeps do not wait, and the kernel keeps its own time."""

import ast
import json
import re
from datetime import UTC, datetime, timedelta

import pytest

from tests.harness.notebook import Kernel, notebook
from tests.harness.provider import Provider, Scripted

LOAD = "%load_ext tape_jupyter"
SET_UP = """
import asyncio, contextlib, datetime, functools, logging, random, sys, threading, time, timeit
import tape_jupyter as tape
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import date, datetime as moment
from time import perf_counter, sleep
@tape.tool
def work(name, seconds):
    real_sleep(seconds)
    return name
@tape.tool
async def awork(name, seconds):
    await asyncio.sleep(seconds)
    return name
"""
EARLY = "import time\nreal_time, real_sleep = time.time, time.sleep"  # before there is a tape


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    where = tmp_path_factory.mktemp("clock")
    with Kernel(
        where, {"TAPE_NOTEBOOK": str(notebook(where / "nb.ipynb", "x")), "TZ": "Europe/Paris"}
    ) as kernel:
        assert kernel.execute(EARLY).ok
        assert kernel.execute(f"{LOAD}\n{SET_UP}").ok
        yield kernel


class Both:
    """The same cell recorded, then replayed in the same kernel under the same cassette name."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.count = kernel, 0

    def __call__(self, source: str, options: str = "") -> tuple:
        self.count += 1
        name = f"c{self.count}-{abs(hash(source)) % 10**6}"
        recorded = self.kernel.execute(f"%%tape record {name}\n{source}")
        assert recorded.ok, recorded.traceback
        replayed = self.kernel.execute(f"%%tape replay {name} {options}\n{source}")
        return recorded, replayed, self.kernel.cwd / "nb.tapes" / f"{name}.tape.yaml"


@pytest.fixture
def both(kernel):
    return Both(kernel)


def seconds(kernel: Kernel, source: str) -> float:
    """How long a cell takes by the kernel's own clock."""
    kernel.execute("__started = real_time()")
    assert kernel.execute(source).ok
    return float(kernel.execute("real_time() - __started").result)


READS = {
    "time": "print(time.time(), time.time_ns(), time.monotonic(), time.perf_counter(), time.perf_counter_ns(), time.monotonic_ns())",
    "datetime": "print(moment.now(), moment.now(datetime.UTC), moment.today(), date.today(), datetime.datetime.now().astimezone())",
    "texts": "print(time.strftime('%c'), time.ctime(), time.asctime(), time.localtime(), time.gmtime(), time.localtime(5).tm_sec)",
    "taken before": "print(perf_counter(), moment.now()); sleep(0.01); print(perf_counter())",
    "clock_gettime": "print(time.clock_gettime(time.CLOCK_REALTIME), time.clock_gettime_ns(time.CLOCK_REALTIME))",
    "pandas": "import pandas as pd\nprint(pd.Timestamp.now(), pd.Timestamp.now('UTC'), pd.Timestamp.today(), pd.to_datetime('now'))",
    "logging": "logging.basicConfig(format='%(asctime)s.%(msecs)f %(message)s', stream=sys.stdout, force=True); logging.warning('x')",
    "threads": "def read(k, found={}):\n    found[k] = time.time_ns()\n    return found\nwith ThreadPoolExecutor(8) as pool: list(pool.map(read, range(40)))\nprint(sorted(read(0).items()))",
    "tasks": "async def read():\n    await asyncio.sleep(0.001)\n    return time.time_ns()\nprint(await asyncio.gather(*(read() for _ in range(20))))",
    "tqdm": "import re\nfrom tqdm import tqdm\nfor _ in tqdm(range(3), file=sys.stdout, mininterval=0): sleep(0.003)",
    "timeit": "print(timeit.default_timer())",
    "uuid1": "import uuid; print(uuid.uuid1(), uuid.uuid1().time)",
    "a class attribute": "class Timer:\n    now = time.monotonic\n    wait = sleep\nprint(Timer().now()); Timer().wait(0.001)",
    "a loop's time": "print(asyncio.get_running_loop().time())",
    "a poll loop": "until = time.monotonic() + 0.2\nlooks = 0\nwhile time.monotonic() < until:\n    sleep(0.05); looks += 1\nprint(looks)",
}


@pytest.mark.parametrize("read", READS)
def test_what_a_cell_prints_of_the_clock_is_printed_again(both, read):
    recorded, replayed, _ = both(READS[read])
    assert replayed.ok, replayed.traceback
    assert recorded.stdout and replayed.stdout == recorded.stdout


def test_a_cell_without_a_call_is_replayed_at_its_recorded_date_by_another_kernel(kernel, both):
    recorded, _, path = both(
        "print(moment.now(), date.today(), work('a', 0.01)); print(moment.utcnow())"
    )
    calls_none, _, quiet = both("print(time.time())")
    assert quiet.exists(), "nothing was asked, and yet it is on the tape"
    with Kernel(
        kernel.cwd, {"TAPE_NOTEBOOK": str(kernel.cwd / "nb.ipynb"), "TZ": "Asia/Tokyo"}
    ) as other:
        assert other.execute(f"{EARLY}\n{LOAD}\n{SET_UP}").ok
        source = "print(moment.now(), date.today(), work('a', 0.01)); print(moment.utcnow())"
        assert (
            other.execute(f"%%tape replay {path.name.partition('.')[0]}\n{source}").stdout
            == recorded.stdout
        )
        again = other.execute(f"%%tape replay {quiet.name.partition('.')[0]}\nprint(time.time())")
        assert again.stdout == calls_none.stdout


def test_a_recording_of_before_utc_midnight_replays_over_it(kernel, both):
    """The clocks of a run stand on the tape: moved by hand, the cell is replayed over last year's end."""
    source = "print(moment.now(datetime.UTC).isoformat()); sleep(0.2); print(date.today(), moment.now(datetime.UTC).isoformat())"
    recorded, _, path = both(source)
    said_first, _, said_last = recorded.stdout.split()
    first, last = datetime.fromisoformat(said_first), datetime.fromisoformat(said_last)
    midnight = datetime(2025, 12, 31, 23, 0, 0, 0, UTC)  # in Paris
    moved = midnight - (first + (last - first) / 2)
    path.write_text(
        re.sub(
            r"wall: (\d+)",
            lambda found: f"wall: {int(found[1]) + round(moved.total_seconds() * 1e6) * 1000}",
            path.read_text(),
        )
    )
    told = kernel.execute(f"%%tape replay {path.name.partition('.')[0]}\n{source}").stdout.split()
    replayed_first, replayed_last = datetime.fromisoformat(told[0]), datetime.fromisoformat(told[2])
    assert replayed_first < midnight < replayed_last
    assert told[1] == "2026-01-01", "Paris was over midnight"
    assert abs((replayed_last - replayed_first) - (last - first)) < timedelta(microseconds=10)


def test_a_cassette_without_readings_replays_from_its_date_on(kernel, both):
    source = "print(moment.now(datetime.UTC).isoformat()); sleep(7); print(moment.now(datetime.UTC).isoformat()); work('b', 0.0)"
    _, _, path = both(source.replace("sleep(7)", "sleep(0)"))
    text = re.sub(r"pins:\n(  .*\n)+|clock:\n  __main__.*\n", "", path.read_text())
    path.write_text(text.replace('utc: "20', 'utc: "19'))
    ran = kernel.execute(f"%%tape replay {path.name.partition('.')[0]}\n{source}")
    first, second = map(datetime.fromisoformat, ran.stdout.split())
    assert first.year // 100 == 19 and 7 <= (second - first).total_seconds() < 8


def test_a_cell_says_that_numpys_now_is_not_held(both):
    recorded, _, path = both("import numpy as np; np.datetime64('now'); print(time.time())")
    assert "datetime64('now')" in recorded.summary and "cold:" in path.read_text()


# ---------------------------------------------------------------- sleeping


SLEEPS = {
    "sleep": "sleep(40); time.sleep(40)",
    "asyncio": "await asyncio.sleep(40)",
    "many": "await asyncio.gather(*(asyncio.sleep(40 + k / 10) for k in range(100)))",
    "threads": "threads = [threading.Thread(target=sleep, args=(40 + k,)) for k in range(8)]\nfor t in threads: t.start()\nfor t in threads: t.join()",
    "pool": "with ThreadPoolExecutor(4) as pool: list(pool.map(sleep, [10] * 16))",
    "to_thread": "await asyncio.gather(asyncio.to_thread(sleep, 40), asyncio.sleep(41))",
    "run": "await asyncio.to_thread(lambda: asyncio.run(asyncio.sleep(40)))",
    "timeout": "with contextlib.suppress(TimeoutError):\n    async with asyncio.timeout(40): await asyncio.Event().wait()",
    "wait_for": "with contextlib.suppress(TimeoutError): await asyncio.wait_for(asyncio.Event().wait(), 40)",
    "wait": "await asyncio.wait([asyncio.ensure_future(asyncio.Event().wait())], timeout=40)",
    "call_later": "done = asyncio.Event(); asyncio.get_running_loop().call_later(40, done.set); await done.wait()",
    "call_at": "loop = asyncio.get_running_loop(); done = asyncio.Event(); loop.call_at(loop.time() + 40, done.set); await done.wait()",
    "anyio": "import anyio\nwith anyio.move_on_after(40): await anyio.sleep_forever()\nawait anyio.sleep(40)",
    "backoff": "for attempt in range(5): sleep(2 ** attempt + random.random())",
    "poll": "ready = threading.Event(); threading.Thread(target=lambda: (sleep(40), ready.set())).start()\nwhile not ready.is_set(): sleep(0.5)",
}


@pytest.fixture(scope="module")
def known(kernel):
    """A cassette that knows nothing but one call: any other cell replays from it."""
    assert kernel.execute("%%tape record known\nwork('known', 0)").ok
    return "%%tape replay known"


@pytest.mark.parametrize("sleep", SLEEPS)
def test_sleeps_and_timeouts_do_not_wait_in_replay(kernel, known, sleep):
    assert seconds(kernel, f"{known}\n{SLEEPS[sleep]}") < 40 / 8
    assert seconds(kernel, "time.sleep(0.05); await asyncio.sleep(0.05)") >= 0.1, (
        "in an untaped cell they do"
    )


def test_sleeps_wait_while_recording_and_where_they_are_asked_to(kernel, known):
    short = "sleep(0.15); await asyncio.sleep(0.15)"
    assert seconds(kernel, f"%%tape record\n{short}") >= 0.3
    for options in ("--no-pin sleep", "--no-pin clock", "--pace recorded"):
        assert seconds(kernel, f"{known} {options}\n{short}") >= 0.3
    assert seconds(kernel, f"%%tape replay known --pace instant\n{short}") < 0.3


def test_no_pin_clock_gives_the_real_time(kernel, both):
    recorded, replayed, _ = both("print(time.time()); sleep(0.01)", "--no-pin clock")
    assert float(replayed.stdout) > float(recorded.stdout)


def test_sleepers_wake_in_the_recorded_order(both):
    source = """
seen = []
async def wake(k):
    await asyncio.sleep(k / 20); seen.append(k)
def rise(k):
    sleep(k / 20); seen.append(k)
await asyncio.gather(*(asyncio.to_thread(rise, k) if k % 3 else wake(k) for k in [5, 1, 4, 2, 8, 6, 7, 3]))
print(seen, work("end", 0))"""
    recorded, replayed, _ = both(source)
    assert replayed.ok, replayed.traceback
    # A busy machine may wake real sleepers otherwise; a replay wakes them as they woke then.
    assert recorded.stdout == replayed.stdout
    assert sorted(recorded.stdout) == sorted("[1, 2, 3, 4, 5, 6, 7, 8] end\n")


def test_a_timeout_around_a_reply_goes_off_or_not_as_it_did(both):
    source = """
async def within(name, takes, limit):
    try:
        return await asyncio.wait_for(awork(name, takes), limit)
    except TimeoutError:
        return f"{name} timed out"
print(await asyncio.gather(within("a", 0.1, 0.2), within("b", 0.3, 0.15), within("c", 0.05, 0.1), within("d", 0.2, 0.1)))"""
    recorded, replayed, _ = both(source)
    assert replayed.stdout == recorded.stdout
    said = ast.literal_eval(recorded.stdout)
    assert said[1::2] == [
        "b timed out",
        "d timed out",
    ]  # on a busy machine the others may be late, too


# ---------------------------------------------------------------- order


RACES = {
    "as_completed": "with ThreadPoolExecutor(5) as pool:\n    print([f.result() for f in as_completed([pool.submit(work, k, s) for k, s in enumerate(WAITS)])])",
    "queue": "import queue; q = queue.Queue()\nfor k, s in enumerate(WAITS): threading.Thread(target=lambda k=k, s=s: q.put(work(k, s))).start()\nprint([q.get() for _ in WAITS])",
    "first wins": "done, rest = await asyncio.wait([asyncio.ensure_future(awork(k, s)) for k, s in enumerate(WAITS)], return_when=asyncio.FIRST_COMPLETED)\n[t.cancel() for t in rest]\nprint([t.result() for t in done])",
    "tasks": "print([await f for f in asyncio.as_completed([awork(k, s) for k, s in enumerate(WAITS)])])",
    "threads of tasks": "print([await f for f in asyncio.as_completed([asyncio.to_thread(work, k, s) for k, s in enumerate(WAITS)])])",
    "thread pool": "from multiprocessing.pool import ThreadPool\nwith ThreadPool(5) as pool: print(list(pool.imap_unordered(lambda a: work(*a), enumerate(WAITS))))",
    "with locks": "lock, seen = threading.Lock(), []\ndef one(k, s):\n    got = work(k, s)\n    with lock: seen.append(got)\nwith ThreadPoolExecutor(5) as pool: [pool.submit(one, k, s) for k, s in enumerate(WAITS)]\nprint(seen)",
}


@pytest.mark.parametrize("race", RACES)
def test_races_end_as_they_did(both, race):
    recorded, replayed, _ = both(RACES[race].replace("WAITS", "[0.12, 0.04, 0.16, 0.08, 0.02]"))
    order = ast.literal_eval(recorded.stdout)  # a busy machine's own
    assert order and set(order) <= set(range(5))
    assert replayed.stdout == recorded.stdout, replayed.traceback


def test_at_pace_recorded_replies_take_as_long_as_they_did(kernel, both):
    source = "print(await asyncio.gather(awork('a', 0.3), awork('b', 0.1)), work('c', 0.2))"
    recorded, _, path = both(source)
    name = path.name.partition(".")[0]
    assert seconds(kernel, f"%%tape replay {name} --pace recorded\n{source}") >= 0.45
    assert (
        kernel.execute(f"%%tape replay {name} --pace recorded\n{source}").stdout == recorded.stdout
    )


# ---------------------------------------------------------------- SDKs


MESSAGE = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": "Hello"}],
    "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
}  # fmt: skip


def limited(wait: str) -> Scripted:
    return Scripted(
        429,
        {"content-type": "application/json", "retry-after": wait},
        [b'{"type":"error","error":{"type":"rate_limit_error","message":"x"}}'],
    )


@pytest.mark.slow
@pytest.mark.parametrize("limits", [1, 2])
@pytest.mark.parametrize("client", ["Anthropic", "AsyncAnthropic"])
def test_a_rate_limit_of_20_seconds_is_over_at_once(kernel, tmp_path, client, limits):
    name = f"limited-{client.lower()}-{limits}"
    with Provider() as provider:
        answer = Scripted(200, {"content-type": "application/json"}, [json.dumps(MESSAGE).encode()])
        provider.script("/v1/messages", *[limited("0.3")] * limits, answer)
        awaits = "await " if client.startswith("Async") else ""
        source = f"""
import anthropic
client = anthropic.{client}(api_key="k", base_url="{provider.url}", max_retries=3)
random.seed(5)
began = time.monotonic()
reply = {awaits}client.messages.create(model="m", max_tokens=9, messages=[{{"role": "user", "content": "hi"}}])
print(reply.content[0].text, time.monotonic() - began, random.random())"""
        recorded = kernel.execute(f"%%tape record {name}\n{source}")
        assert recorded.ok, recorded.traceback
    path = kernel.cwd / "nb.tapes" / f"{name}.tape.yaml"
    assert path.read_text().count('retry-after: "0.3"') == limits
    replayed = kernel.execute(f"%%tape replay {name}\n{source}")
    assert replayed.stdout == recorded.stdout, "text, time told and the user's own random sequence"
    path.write_text(path.read_text().replace('retry-after: "0.3"', 'retry-after: "20"'))
    assert seconds(kernel, f"%%tape replay {name}\n{source}") < 20 / 8


# ---------------------------------------------------------------- the kernel's own time


def dates(kernel: Kernel, source: str) -> list[datetime]:
    """The dates of every message that a cell makes the kernel send."""
    asked, found = kernel.send(source), []
    while True:
        message = kernel._client.get_iopub_msg(timeout=20)
        if message["parent_header"].get("msg_id") == asked:
            found.append(message["header"]["date"])
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                break
    while (reply := kernel._client.get_shell_msg(timeout=20))["parent_header"].get(
        "msg_id"
    ) != asked:
        pass
    assert reply["content"]["status"] == "ok", reply["content"]
    return [*found, reply["header"]["date"]]


def test_messages_of_the_kernel_keep_their_real_dates(kernel, both):
    source = """
import ipywidgets
from IPython.display import display, clear_output, update_display
for k in range(3):
    print(k, moment.now(), flush=True); display(k, display_id=f"d{k}"); sleep(0.01); await asyncio.sleep(0.01)
update_display(9, display_id="d0")
slider = ipywidgets.IntSlider(); display(slider); slider.value = 3; clear_output(wait=True)
threading.Thread(target=lambda: print("from a thread", moment.now())).start()
sys.stderr.write("e\\n"); sys.stderr.flush(); work("dates", 0)
moment.now()"""
    _, _, path = both(source)
    text = path.read_text()
    old = int(datetime(2001, 1, 1, tzinfo=UTC).timestamp()) * 10**9
    path.write_text(re.sub(r"wall: \d+", f"wall: {old}", text))
    name, before = path.name.partition(".")[0], datetime.now(UTC)
    found = dates(kernel, f"%%tape replay {name}\n{source}")
    assert len(found) > 15
    assert all(
        before.timestamp() - 1 <= date.timestamp() <= datetime.now(UTC).timestamp() + 1
        for date in found
    )
    shown = kernel.execute(f"%%tape replay {name}\n{source}")
    assert "2001, 1, 1" in shown.result


HEALTHY = {
    "asyncio": "await asyncio.sleep(0.01); await asyncio.wait_for(asyncio.to_thread(lambda: 1), 5); print('done')",
    "threads": "t = threading.Thread(target=lambda: (sleep(0.01), print('thread'))); t.start(); t.join(); print('done')",
    "timer": "t = threading.Timer(0.05, lambda: print('timer')); t.start(); t.join(); print('done')",
    "matplotlib": "import matplotlib; matplotlib.use('agg')\nimport matplotlib.pyplot as plt; import io\nfig, ax = plt.subplots(); ax.plot([1, 2]); fig.savefig(io.BytesIO(), format='pdf'); plt.close(fig); print('done')",
    "widgets": "import ipywidgets as w; b = w.Button(); b.on_click(lambda _: print('clicked')); b.click(); display(b); print('done')",
    "tqdm": "from tqdm.auto import tqdm\nfor _ in tqdm(range(5)): sleep(0.001)\nprint('done')",
    "%%time": "%%time\nsleep(0.01); print('done')",
    "%timeit": "%timeit -n 2 -r 2 sum(range(9))\nprint('done')",
    "subprocess": "!echo shell\nimport subprocess; print(subprocess.run(['true'], timeout=10).returncode); print('done')",
    "queue timeout": "import queue\nwith contextlib.suppress(queue.Empty): queue.Queue().get(timeout=0.05)\nthreading.Event().wait(0.05); print('done')",
    "sched": "import sched; s = sched.scheduler(); s.enter(0.02, 1, print, ('sched',)); s.run(); print('done')",
    "tempfile": "import tempfile, os; f = tempfile.NamedTemporaryFile(); print(os.path.getmtime(f.name) > 0, 'done')",
    "rich": "from rich.progress import track\nfor _ in track(range(3)): sleep(0.01)\nprint('done')",
    "new loop": "print(await asyncio.to_thread(asyncio.run, asyncio.sleep(0.02, 'done')))",
    "signal": "import signal; signal.setitimer(signal.ITIMER_REAL, 5); print(signal.setitimer(signal.ITIMER_REAL, 0)[0] > 0, 'done')",
    "executor timeout": "with ThreadPoolExecutor(1) as pool: print(pool.submit(lambda: 'done').result(timeout=9))",
}


@pytest.mark.parametrize("what", HEALTHY)
@pytest.mark.parametrize("mode", ["record", "replay known"])
def test_a_taped_cell_does_what_an_untaped_one_does(kernel, known, what, mode):
    ran = kernel.execute(f"%%tape {mode}\n{HEALTHY[what]}")
    assert ran.ok, ran.traceback
    assert "done" in ran.stdout
    assert (
        kernel.execute("abs(time.time() - real_time()) < 5 and time.monotonic() > 0").result
        == "True"
    )


def test_a_subshell_beside_a_taped_cell_has_real_time(kernel, known):
    asked = kernel.send(
        "%%tape replay known\nprint('running', flush=True)\nthreading.Event().wait(3)\ntime.time() - real_time()"
    )
    kernel.wait_for(asked, "running")
    client = kernel._client
    created = client.session.msg("create_subshell_request", {})
    client.control_channel.send(created)
    while (reply := client.get_control_msg(timeout=20))["parent_header"].get("msg_id") != created[
        "header"
    ]["msg_id"]:
        pass
    message = client.session.msg(
        "execute_request",
        {
            "code": "began = time.monotonic(); time.sleep(0.2); print('sub', time.monotonic() - began)",
            "silent": False,
            "store_history": False,
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": True,
        },
    )
    message["header"]["subshell_id"] = reply["content"]["subshell_id"]
    client.shell_channel.send(message)
    told = ""
    while "sub" not in told:
        seen = client.get_iopub_msg(timeout=20)
        if (
            seen["msg_type"] == "stream"
            and seen["parent_header"].get("msg_id") == message["header"]["msg_id"]
        ):
            told += seen["content"]["text"]
    assert float(told.split()[1]) >= 0.2
    kernel.collect(asked)


def test_what_a_cell_leaves_behind_sleeps_on_in_real_time(kernel, known):
    source = """
woken = []
task = asyncio.get_running_loop().create_task(asyncio.sleep(0.4)); task.add_done_callback(lambda _: woken.append("task"))
def later():
    threading.Event().wait(0.05); sleep(0.3); woken.append("thread")
thread = threading.Thread(target=later); thread.start()"""
    assert kernel.execute(f"{known}\n{source}").ok
    assert kernel.execute("print(woken)").stdout == "[]\n"
    assert (
        kernel.execute("await task; await asyncio.to_thread(thread.join); sorted(woken)").result
        == "['task', 'thread']"
    )
