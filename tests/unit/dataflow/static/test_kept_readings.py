"""What a cell keeps of the clock and of chance, as its text tells."""

import pytest

from tape_jupyter.dataflow.static.kept_readings import KeptReadings

SET_UP = """
import datetime as dt, json, numpy as np, os, random, secrets, time, uuid
import pandas as pd
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from functools import lru_cache
from time import perf_counter as tick
from tenacity import retry, stop_after_attempt
log, state, seen = [], {}, set()

def now():
    return datetime.now(timezone.utc).isoformat()

def note(text):
    local = time.time()
    log.append((text, time.time()))

def restart():
    global began
    began = now()

short = lambda: uuid.uuid4().hex[:8]

@dataclass
class Job:
    name: str
    at: float = field(default_factory=time.time)

class Run:
    def __init__(self):
        self.id = uuid.uuid4()

@lru_cache
@retry(stop=stop_after_attempt(3))
def price(item):
    return len(item)
"""


def kept(source, *before):
    readings = KeptReadings()
    for each in (SET_UP, *before):
        readings.of_cell(each)
    return readings.of_cell(source)


@pytest.mark.parametrize(
    "source, names",
    {
        "started = time.time()": {"started": "clock"},
        "began: float = tick()": {"began": "clock"},
        "name = f'run-{datetime.now():%H%M}.csv'": {"name": "clock"},
        "day, n = date.today(), 3": {"day": "clock"},
        "state['at'] = {'when': [now()]}": {"state": "clock"},
        "state.at = round(time.time() - 3, 2)": {"state": "clock"},
        "log.append({'at': time.time()})": {"log": "clock"},
        "%%time\nuntil = dt.datetime.now() + dt.timedelta(1)": {"until": "clock"},
        "with open('x') as file:\n    t = time.time()": {"t": "clock"},
        "at = pd.Timestamp.now()": {"at": "clock"},
        "stamp = time.strftime('%H:%M')": {"stamp": "clock"},
        "note('x')": {"log": "clock"},
        "restart()": {"began": "clock"},
        "job = Job('a')": {"job": "clock"},
        "jobs = [Job('a'), Job('b')]": {"jobs": "clock"},
        "job = Job('a', at=time.time())": {"job": "clock"},
        "print(price('tea'))": {"price": "clock"},
        "run = Run()": {"run": "chance"},
        "run_id = short()": {"run_id": "chance"},
        "name = str(uuid.uuid4())": {"name": "chance"},
        "token = secrets.token_hex(4)": {"token": "chance"},
        "n = random.randint(1, 6)": {"n": "chance"},
        "rows = np.random.rand(3)": {"rows": "chance"},
    }.items(),
)
def test_a_reading_that_a_cell_keeps_is_told(source, names):
    assert kept(source) == names


@pytest.mark.parametrize(
    "source",
    [
        "print(time.time())",
        "print(f'{time.time() - 3:.1f} s')",
        "time.sleep(0)",
        "ok = time.time() > 0",
        "if state:\n    started = time.time()",
        "def later():\n    global at\n    at = time.time()",
        "text = time.strftime('%H', (2026, 1, 1, 0, 0, 0, 0, 1, 0))",
        "when = time.gmtime(0)",
        "when = datetime(2026, 1, 1)",
        "answer = ask(time.time())",
        "draw = random.Random(7).random()",
        "random.seed(3)\nn = random.random()",
        "time = len\nn = time.time('x')",
        "started =",
        "!date",
    ],
)
def test_what_keeps_nothing_for_certain_is_not_told(source):
    assert kept(source) == {}


def test_a_seed_of_an_earlier_cell_counts():
    assert kept("n = random.random(), np.random.rand()", "random.seed(3)\nnp.random.seed(3)") == {}
