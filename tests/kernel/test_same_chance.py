"""Recorded in one kernel, replayed in a fresh one: every draw is the same, and the kernel's own ids stay apart."""

import re
import textwrap

import pytest

from tests.harness.notebook import Kernel, notebook
from tests.harness.provider import Provider, Scripted

LOAD = "%load_ext tape_jupyter"

SET_UP = """
import asyncio, concurrent.futures, json, os, random, secrets, sys, tempfile, threading, time, uuid
import numpy as np
import ipywidgets
from datetime import datetime
import tape_jupyter as tape
from tape_jupyter.session import session as deck
rng, dice, pool = np.random.default_rng(), random.Random(), concurrent.futures.ThreadPoolExecutor(2)
def draws():
    return [
        str(uuid.uuid4()), uuid.uuid1().node, secrets.token_hex(8), os.urandom(5).hex(), tempfile.mktemp(),
        random.random(), random.gauss(0, 1), random.Random().random(), random.SystemRandom().random(),
        float(np.random.rand()), float(np.random.normal()), float(np.random.default_rng().random()),
        float(np.random.RandomState().rand()), float(rng.random()), dice.random(), time.localtime(0).tm_hour,
    ]
def threaded():
    found = {}
    threads = [threading.Thread(target=lambda i=i: found.__setitem__(i, str(uuid.uuid4()))) for i in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    return [found, list(pool.map(lambda _: random.SystemRandom().random(), range(5)))]
async def awaited():
    async def one(): 
        await asyncio.sleep(0)
        return str(uuid.uuid4())
    return await asyncio.gather(*(one() for _ in range(5)), asyncio.to_thread(lambda: os.urandom(4).hex()))
"""

CELLS = {
    "draws": "print(json.dumps([draws(), draws()]))",
    "threads": "print(json.dumps(threaded()))",
    "tasks": "print(json.dumps(await awaited()))",
    "an async cell": "before = draws()\nawait asyncio.sleep(0.01)\nprint(json.dumps([before, draws(), await awaited(), threaded()]))",
    "widgets and displays": textwrap.dedent("""\
        first = str(uuid.uuid4())
        widget = ipywidgets.IntSlider()
        handle = display("shown", display_id=True)
        print(json.dumps([first, str(uuid.uuid4()), draws()]))
        print(widget.model_id, handle.display_id, file=sys.stderr)"""),
    "a cell that imports": "import colorsys, numpy.polynomial\nprint(json.dumps(draws()))",
    "timed": "%%time\nprint(json.dumps(draws()), file=sys.stderr)",
}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The cells run taped in one kernel; where, and what each gave."""
    where = tmp_path_factory.mktemp("chance")
    env = {
        "TAPE_NOTEBOOK": str(notebook(where / "nb.ipynb", "x")),
        "TZ": "Asia/Tokyo",
        "PYTHONHASHSEED": "1",
    }
    with Kernel(where, env) as kernel:
        assert kernel.execute(f"{LOAD}\n{SET_UP}").ok
        ran = {
            name: kernel.execute(f"%%tape record {slug(name)}\n{code}")
            for name, code in CELLS.items()
        }
    return where, ran


@pytest.fixture(scope="module")
def replayed(recorded):
    where, _ = recorded
    env = {"TAPE_NOTEBOOK": str(where / "nb.ipynb"), "TZ": "America/Lima", "PYTHONHASHSEED": "2"}
    with Kernel(where, env) as kernel:
        assert kernel.execute(f"{LOAD}\n{SET_UP}\nrandom.seed(99); np.random.seed(99)").ok
        ran = {
            name: kernel.execute(f"%%tape replay {slug(name)}\n{code}")
            for name, code in CELLS.items()
        }
        ran["after"] = kernel.execute(
            "print(uuid.uuid4(), secrets.token_hex(), time.localtime(0).tm_hour)"
        )
    return ran


def slug(name):
    return name.replace(" ", "-")


def told(ran):
    return (ran.stdout if ran.stdout.startswith("[") else ran.stream("stderr")).splitlines()[0]


@pytest.mark.parametrize("name", CELLS)
def test_every_draw_is_that_of_the_recording(recorded, replayed, name):
    before, after = recorded[1][name], replayed[name]
    assert before.ok and after.ok, after.traceback
    assert len(told(before)) > 100
    assert told(after) == told(before)


def test_ids_of_comms_and_displays_are_the_kernels_own(recorded, replayed):
    name = "widgets and displays"
    one, other = (ran.stream("stderr").split() for ran in (recorded[1][name], replayed[name]))
    assert len(one) == len(other) == 2 and not set(one) & set(other)


def test_after_a_replay_the_kernel_draws_for_real_in_its_own_zone(replayed, recorded):
    assert replayed["after"].ok
    seen = replayed["after"].stdout.split()
    assert seen[2] == "19" and seen[0] not in recorded[1]["draws"].stdout


def test_message_ids_of_recording_and_replay_are_all_different(tmp_path):
    """Jupyter's ids are uuids: two kernels that gave out the same would confuse a front end."""
    env = {"TAPE_NOTEBOOK": str(notebook(tmp_path / "nb.ipynb", "x"))}
    code = "import uuid\nfor _ in range(5):\n    print(uuid.uuid4(), flush=True)"
    seen = []
    for mode in ("record", "replay"):
        with Kernel(tmp_path, env) as kernel:
            assert kernel.execute(f"{LOAD}\n{SPY}").ok
            assert kernel.execute(f"%%tape {mode}\n{code}").ok
            seen.append(set(kernel.execute("print(*ids)").stdout.split()))
    assert min(map(len, seen)) > 5 and not seen[0] & seen[1]


SPY = """
import jupyter_client.session as session
ids, plain = [], session.Session.msg_header
def spied(self, msg_type):
    header = plain(self, msg_type)
    ids.append(header["msg_id"])
    return header
session.Session.msg_header = spied
"""


def test_numbers_of_a_seed_go_on_over_taped_and_untaped_cells(tmp_path):
    env = {"TAPE_NOTEBOOK": str(notebook(tmp_path / "nb.ipynb", "x"))}
    cells = [
        "random.seed(1)",
        "%%tape {mode} a\nprint(random.random())",
        "print(random.random())",
        "%%tape {mode} b\nprint(random.random())",
    ]
    plain = __import__("random").Random(1)
    expected = [plain.random() for _ in range(3)]
    for mode in ("record", "replay"):
        with Kernel(tmp_path, env) as kernel:
            assert kernel.execute(f"{LOAD}\nimport random").ok
            ran = [kernel.execute(code.format(mode=mode)) for code in cells]
            assert [float(each.stdout) for each in ran[1:]] == expected
            if mode == "replay":  # a taped cell alone, out of its order, is the recording's too
                assert float(kernel.execute(cells[3].format(mode=mode)).stdout) == expected[2]


# ---- SDK retries


ANTHROPIC = """
import anthropic, random, uuid
client = anthropic.Anthropic(base_url="BASE", api_key="k", max_retries=3)
def ask():
    told = client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}])
    return told.content[0].text
"""
OPENAI = """
import openai, random, uuid
client = openai.OpenAI(base_url="BASE/v1", api_key="k", max_retries=3)
def ask():
    return client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}]).choices[0].message.content
"""


@pytest.mark.slow
@pytest.mark.spread(2)
@pytest.mark.parametrize(
    ("sdk", "path"), [(ANTHROPIC, "/v1/messages"), (OPENAI, "/v1/chat/completions")]
)
def test_retries_of_an_sdk_leave_the_persons_numbers_as_recorded(tmp_path, sdk, path):
    """The jitter of a retry is drawn from the person's own `random`: the 429s are played below the retry loop."""
    env = {"TAPE_NOTEBOOK": str(notebook(tmp_path / "nb.ipynb", "x"))}
    code = "print([random.random(), ask(), random.random(), str(uuid.uuid4()), ask(), random.random()])"
    with Provider() as provider:
        body = b'{"error": {"type": "rate_limit_error", "message": "slow down"}}'
        again = Scripted(429, {"content-type": "application/json", "retry-after-ms": "1"}, [body])
        base, seed = provider.url, "random.seed(5); print([random.random() for _ in range(3)])"
        with Kernel(tmp_path, env) as kernel:
            assert kernel.execute(f"{LOAD}\n{sdk.replace('BASE', base)}").ok
            good = kernel.execute("ask()")
            assert good.ok, good.traceback
            answer = provider.answer(provider.requests[-1])
            provider.script(path, again, again, answer, again, answer)
            plain = kernel.execute(seed).stdout
            recorded = kernel.execute(f"%%tape record\n{code}")
            assert recorded.ok, recorded.traceback
            assert recorded.summary.startswith("● recorded  5 calls")
    with Kernel(tmp_path, env) as kernel:
        assert kernel.execute(f"{LOAD}\n{sdk.replace('BASE', base)}\nrandom.seed(7)").ok
        replayed = kernel.execute(f"%%tape replay\n{code}")
    assert replayed.ok, replayed.traceback
    assert replayed.stdout == recorded.stdout and plain


# ---- --no-pin


def test_what_is_not_pinned_is_left_to_chance(tmp_path):
    env = {"TAPE_NOTEBOOK": str(notebook(tmp_path / "nb.ipynb", "x"))}
    with Kernel(tmp_path, env) as kernel:
        assert kernel.execute(
            f"{LOAD}\nimport uuid, tape_jupyter as tape\n@tape.tool\ndef t(): return 1"
        ).ok
        cell = "t()\nprint(uuid.uuid4())"
        one = kernel.execute(f"%%tape record\n{cell}")
        assert kernel.execute(f"%%tape replay\n{cell}").stdout == one.stdout
        assert (
            kernel.execute(f"%%tape replay --no-pin random,timezone\n{cell}").stdout != one.stdout
        )
        wrong = kernel.execute(f"%%tape replay --no-pin randon\n{cell}")
        assert (
            wrong.ename == "TapeUsageError"
            and "did you mean random?" in wrong.evalue
            and not wrong.stdout
        )


def test_a_kernel_whose_pin_is_broken_still_runs_cells(tmp_path):
    env = {"TAPE_NOTEBOOK": str(notebook(tmp_path / "nb.ipynb", "x"))}
    with Kernel(tmp_path, env) as kernel:
        assert kernel.execute(
            f"{LOAD}\nimport uuid, random, tape_jupyter as tape\n@tape.tool\ndef t(): return 1"
        ).ok
        assert kernel.execute("%%tape record\nt(); print(uuid.uuid4())").ok
        path = next((tmp_path / "nb.tapes").glob("*.yaml"))
        path.write_text(re.sub(r"seed: \S+", "seed: nothing", path.read_text()))
        ran = kernel.execute("%%tape replay\nt(); print(uuid.uuid4(), random.random())")
        assert ran.ok and "random is not replayed" in ran.summary
        assert kernel.execute("uuid.uuid4()").ok
