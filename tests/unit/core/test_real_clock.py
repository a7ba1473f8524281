"""A program that puts another clock, other dates or other chance in place, before the tape or amid it, is taped
like any other: the kernel lives, its stand-ins stay, and afterwards the clock is real.
"""

import json
import subprocess
import sys
import time
from datetime import datetime

import pytest

PATCHES = {
    "time": "p = mock.patch('time.time', lambda: 5.0)",
    "time_ns": "p = mock.patch('time.time_ns', lambda: 5)",
    "localtime": "p = mock.patch('time.localtime', lambda *a, real=time.localtime: real(0))",
    "sleep": "p = mock.patch('time.sleep')",
    "monotonic": "p = mock.patch('time.monotonic', side_effect=time.monotonic)",
    "mocked dates": "p = mock.patch('datetime.datetime')",
    "other dates": "p = mock.patch('datetime.datetime', type('Fake', (datetime.datetime,), {}))",
    "travelling": "import time_machine; p = time_machine.travel('2020-01-01', tick=False)",
    "random": "p = mock.patch('random.random', lambda: 0.5)",
    "seed": "p = mock.patch('random.seed')",
    "urandom": "p = mock.patch('os.urandom', lambda n: b'x' * n)",
    "threads": "p = mock.patch('threading.Thread', type('Green', (threading.Thread,), {}))",
}
PROGRAM = """
import datetime, json, os, random, sys, threading, time
from unittest import mock
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
shell.user_ns.update(globals())
sleep, clock = time.sleep, time.time
cell = "import time\\nwhen = time.time(); time.sleep(0); dice = random.random(); made = datetime.datetime.now()"
patch, first = sys.argv[1:]
steps = ["%load_ext tape_jupyter", f"{patch}; p.start()"]
steps = steps[::-1] if first == "before" else steps
steps += ["%%tape record first\\n" + cell, "one = when", "%%tape replay first\\n" + cell, "two = when", "p.stop()"]
steps += ["%%tape record other\\n" + cell, "%%tape replay other\\n" + cell, "%unload_ext tape_jupyter"]
for step in steps:
    ran = shell.run_cell(step)
    ran.raise_error()
print(json.dumps([shell.user_ns["one"], shell.user_ns["two"], clock(), time.sleep is sleep and time.time is clock]))
"""


@pytest.mark.spread(6)
@pytest.mark.parametrize("first", ["before", "after"])
@pytest.mark.parametrize("name", PATCHES)
def test_a_program_with_stand_ins_of_its_own_is_taped_and_its_kernel_lives(name, first, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, PATCHES[name], first],
        cwd=tmp_path, env={"HOME": str(tmp_path), "IPYTHONDIR": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    recorded, replayed, now, own = json.loads(done.stdout.splitlines()[-1])
    assert recorded == replayed
    assert abs(now - time.time()) < 60, "the clock is real afterwards"
    assert own, "and Python's own"


def test_a_frozen_clock_is_not_what_a_cell_took(tmp_path):
    """Freezegun replaces the clocks that modules have by name, ours too: a cell then took fifty years."""
    program = """
import freezegun, tape_jupyter as tape
with freezegun.freeze_time("2020-01-01"), tape.recording("frozen.tape.yaml") as block:
    pass
print(block.report.seconds < 60)
"""
    done = subprocess.run(
        [sys.executable, "-c", "import tape_jupyter.session.api\n" + program],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == "True\n", done.stderr


def test_when_a_call_was_made_is_told_by_the_real_clock(tmp_path):
    program = """
import datetime, freezegun
from tape_jupyter.core.real_clock import utc_now
with freezegun.freeze_time("2001-02-03"):
    print(datetime.datetime.now().year, type(utc_now()).__name__, utc_now().isoformat())
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    year, kind, told = done.stdout.split()
    assert (year, kind) == ("2001", "datetime"), done.stderr
    assert abs(datetime.fromisoformat(told).timestamp() - time.time()) < 60
