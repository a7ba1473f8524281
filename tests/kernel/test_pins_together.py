"""Every pin at once, in cells that do everything at once: the kernel stays healthy and keeps its own time."""

import re
from datetime import UTC, datetime

import pytest

from tests.harness.notebook import TIMEOUT, Kernel, is_summary, notebook

LOAD = "%load_ext tape_jupyter"
EARLY = "import time\nreal_time, real_sleep = time.time, time.sleep"  # before there is a tape
SET_UP = """
%matplotlib inline
import asyncio, contextlib, os, random, secrets, sys, threading, time, uuid
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import UTC, date, datetime
import ipywidgets
import matplotlib.pyplot as plt
import numpy as np
import tape_jupyter as tape
from IPython.display import clear_output, display
from tqdm import tqdm as bar
from tqdm.auto import tqdm
@tape.tool
def work(name, seconds):
    threading.Event().wait(seconds)
    return f"{name} at {datetime.now().isoformat()} drew {random.Random().random()}"
"""
EVERYTHING = """
print(datetime.now(UTC).isoformat(), date.today(), uuid.uuid4(), secrets.token_hex(4), np.random.default_rng().random())
for step in tqdm(range(4), mininterval=0):
    await asyncio.sleep(0.02)
    time.sleep(0.01)
with ThreadPoolExecutor(3) as pool:
    for done in as_completed([pool.submit(work, name, wait) for name, wait in [("a", 0.2), ("b", 0.1), ("c", 0.01)]]):
        print(done.result(), time.monotonic(), flush=True)
async def beside(name, wait):
    await asyncio.sleep(wait)
    return name, time.time_ns(), os.urandom(3).hex()
print(await asyncio.gather(beside("x", 0.05), beside("y", 0.02), asyncio.to_thread(lambda: str(uuid.uuid4()))))
with contextlib.suppress(TimeoutError):
    async with asyncio.timeout(0.1):
        await asyncio.Event().wait()
clicks, button = [], ipywidgets.Button(description="go")
button.on_click(lambda _: clicks.append(datetime.now().isoformat()))
button.click()
slider = ipywidgets.IntSlider(); slider.observe(lambda change: clicks.append(change["new"]), "value"); slider.value = 7
display(button, slider)
print(clicks)
figure, axes = plt.subplots(figsize=(1, 1)); axes.plot(np.random.rand(9)); plt.show()
told = threading.Thread(target=lambda: print("thread", datetime.now().isoformat(), random.random())); told.start(); told.join()
print(time.strftime("%c"), file=sys.stderr)
display(random.random(), display_id="d")
work("end", 0), datetime.now().isoformat()"""
SAY_WHEN_IT_WAITS = """
def say_when_it_waits():
    main, places = threading.main_thread().ident, []
    while len(places) < 50 or len(set(places[-50:])) > 1:
        frame = sys._current_frames()[main]
        places.append((frame.f_code, frame.f_lasti))
        real_sleep(0.001)
    print("waiting", flush=True)"""
"""A lock of CPython does not hear a signal that comes just before it begins to wait, or just when it is woken."""
WAITS = (
    "threading.Thread(target=say_when_it_waits).start()\nthreading.Event().wait()",
    "print('waiting', flush=True)\nawait asyncio.Event().wait()",
)
TIMED = """%%time
print(datetime.now(UTC).isoformat(), random.random())
time.sleep(0.05)
with ThreadPoolExecutor(2) as pool: print(list(pool.map(lambda k: (time.sleep(k / 50), str(uuid.uuid4())), range(4))))
for step in bar(range(3), file=sys.stdout, ncols=40, mininterval=0): time.sleep(0.01)
work("timed", 0.01)"""
LONG_AGO = int(datetime(2001, 9, 9, 23, 59, 58, tzinfo=UTC).timestamp()) * 10**9
IDS = re.compile(r"model_id='?[0-9a-f]+'?|[0-9a-f]{32}")


class Watched:
    """A cell's messages as the front end gets them, whichever shell it ran in."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.client = kernel, kernel._client
        self.dates: list[datetime] = []

    def subshell(self) -> str:
        asked = self.client.session.msg("create_subshell_request", {})
        self.client.control_channel.send(asked)
        while (reply := self.client.get_control_msg(timeout=TIMEOUT))["parent_header"].get(
            "msg_id"
        ) != asked["header"]["msg_id"]:
            pass
        self.dates.append(reply["header"]["date"])
        return reply["content"]["subshell_id"]

    def send(self, code: str, subshell: str) -> str:
        asked = {
            "code": code,
            "silent": False,
            "store_history": False,
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": True,
        }
        message = self.client.session.msg("execute_request", asked)
        message["header"]["subshell_id"] = subshell
        self.client.shell_channel.send(message)
        return message["header"]["msg_id"]

    def until_idle(self, *asked: str) -> dict[str, str]:
        """What each printed, once all of them are over."""
        told, left = dict.fromkeys(asked, ""), set(asked)
        while left:
            message = self.client.get_iopub_msg(timeout=TIMEOUT)
            self.dates.append(message["header"]["date"])
            parent, content = message["parent_header"].get("msg_id"), message["content"]
            if parent in told and message["msg_type"] in ("stream", "error"):
                told[parent] += content.get("text") or content["evalue"]
            if parent in left and content.get("execution_state") == "idle":
                left.remove(parent)
        for _ in asked:
            self.dates.append(self.client.get_shell_msg(timeout=TIMEOUT)["header"]["date"])
        return told


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The cell recorded in one kernel; then its clock on the tape is put to a midnight of 2001."""
    where = tmp_path_factory.mktemp("together")
    env = {
        "TAPE_NOTEBOOK": str(notebook(where / "nb.ipynb", "x")),
        "TZ": "Asia/Tokyo",
        "MPLCONFIGDIR": str(where),
    }
    with Kernel(where, env) as kernel:
        assert kernel.execute(f"{EARLY}\n{LOAD}").ok and kernel.execute(SET_UP).ok
        ran = kernel.execute(f"%%tape record{EVERYTHING}")
        timed = kernel.execute(f"%%tape record timed\n{TIMED}")
        assert ran.ok and timed.ok, ran.traceback + timed.traceback
    return where, {**env, "TZ": "America/Lima"}, ran, timed


@pytest.fixture(scope="module")
def kernel(recorded):
    where, env, *_ = recorded
    with Kernel(where, env) as kernel:
        assert kernel.execute(f"{EARLY}\n{LOAD}").ok and kernel.execute(SET_UP).ok
        assert kernel.execute("random.seed(4); np.random.seed(4)").ok
        yield kernel


@pytest.fixture(scope="module")
def long_ago(recorded):
    """The same recording under another name, with its clock at a midnight of 2001."""
    where, *_ = recorded
    text = (where / "nb.tapes" / "main.tape.yaml").read_text()
    (where / "nb.tapes" / "old.tape.yaml").write_text(
        re.sub(r"wall: \d+", f"wall: {LONG_AGO}", text)
    )
    return "%%tape replay old"


def outputs(ran):
    """All that was shown, with the ids that the kernel gives out and %%time's and tqdm's own measures taken out."""
    kept = [
        {**out, "execution_count": None, "transient": None}
        for out in ran.outputs
        if not is_summary(out)
    ]
    return re.sub(r"CPU times: .*?\\n|Wall time: .*?\\n", "", IDS.sub("id", repr(kept)))


@pytest.mark.slow
def test_a_cell_that_does_everything_shows_the_same_again(recorded, kernel):
    before, after = recorded[2], kernel.execute(f"%%tape replay{EVERYTHING}")
    assert after.ok, after.traceback
    assert len(before.outputs) > 8
    assert "image/png" in repr(before.outputs)
    assert outputs(after) == outputs(before)


def test_a_timed_cell_shows_the_same_again_but_for_its_own_time(recorded, kernel):
    before, after = recorded[3], kernel.execute(f"%%tape replay timed\n{TIMED}")
    assert after.ok, after.traceback
    assert (
        "Wall time: " in before.stdout and "Wall time: " in after.stdout and "3/3" in after.stdout
    )
    assert outputs(after) == outputs(before)


def test_every_message_meanwhile_has_its_real_date_in_all_shells(kernel, long_ago):
    """The cell lives in 2001; beside it another shell of the same kernel sleeps, draws and asks the time."""
    watched, before = Watched(kernel), datetime.now(UTC)
    beside = watched.subshell()
    taped = kernel.send(
        f"{long_ago}{EVERYTHING}\nthreading.Event().wait(1)\nprint('still in', datetime.now().year)"
    )
    other = watched.send(
        "import time as t\nbegan = t.time()\nfor _ in range(3):\n    t.sleep(0.1); print('beside', t.time() - real_time(), flush=True)\n"
        "print('slept', t.time() - began)",
        beside,
    )
    told = watched.until_idle(taped, other)
    assert "2001-09-1" in told[taped] and "still in 2001" in told[taped]
    lines = [
        line.split() for line in told[other].splitlines()
    ]  # ipykernel puts prints of threads to the newest request
    apart = [abs(float(line[1])) for line in lines if line[0] == "beside"]
    assert len(apart) == 3 and max(apart) < 60
    assert [float(line[1]) >= 0.3 for line in lines if line[0] == "slept"] == [True]
    assert len(watched.dates) > 30
    assert all(
        before.timestamp() - 1 <= date.timestamp() <= datetime.now(UTC).timestamp() + 1
        for date in watched.dates
    )


def test_afterwards_the_kernel_is_as_it_was(kernel, long_ago):
    assert kernel.execute(f"{long_ago}{EVERYTHING}").ok
    threads = set(kernel.execute("sorted(t.name for t in threading.enumerate())").result)
    assert (
        kernel.execute(
            "abs(time.time() - real_time()) < 60 and datetime.now(UTC).year > 2001"
        ).result
        == "True"
    )
    assert (
        kernel.execute(
            "began = real_time(); time.sleep(0.1); await asyncio.sleep(0.1); real_time() - began >= 0.2"
        ).result
        == "True"
    )
    assert kernel.execute("str(uuid.uuid4())").result != kernel.execute("str(uuid.uuid4())").result
    assert kernel.is_complete("for _ in range(3):") == "incomplete"
    assert "seed" in kernel.complete("random.se")
    assert kernel.execute(f"{long_ago}{EVERYTHING}").ok
    assert set(kernel.execute("sorted(t.name for t in threading.enumerate())").result) == threads


def test_a_taped_cell_that_sleeps_in_many_ways_can_be_interrupted(kernel, long_ago):
    """Sleeps that nothing ends: the stop button does, and the next cell is live."""
    assert kernel.execute(SAY_WHEN_IT_WAITS).ok
    for wait in WAITS:
        asked = kernel.send(f"{long_ago}\n{wait}")
        kernel.wait_for(asked, "waiting")
        kernel.interrupt()
        ran = kernel.collect(asked)
        assert ran.ename in ("KeyboardInterrupt", "CancelledError")
        assert (
            kernel.execute(
                "began = real_time(); await asyncio.sleep(0.05); real_time() - began >= 0.05"
            ).result
            == "True"
        )


def test_a_click_in_the_page_between_taped_cells_reaches_python_in_real_time(kernel, long_ago):
    """A widget that a taped cell made is used after it: its callback is no part of the cell."""
    made = "box = ipywidgets.IntText(); clicked = []\nbox.observe(lambda change: clicked.append((change['new'], time.time() - real_time(), str(uuid.uuid4()))), 'value')\nprint(box.model_id)"
    told = kernel.execute(f"{long_ago}\n{made}")
    assert told.ok, told.traceback
    change = {"method": "update", "state": {"value": 5}, "buffer_paths": []}
    message = kernel._client.session.msg(
        "comm_msg", {"comm_id": told.stdout.strip(), "data": change}
    )
    kernel._client.shell_channel.send(message)
    found = kernel.execute("clicked[0][0], abs(clicked[0][1]) < 60")
    assert found.result == "(5, True)", found.traceback
