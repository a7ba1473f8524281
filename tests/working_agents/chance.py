"""Tools that draw, read the clock and make ids."""

from __future__ import annotations

from collections.abc import Iterator

from tests.working_agents.written import (
    ANTHROPIC,
    ANTHROPIC_LOOP,
    OPENAI,
    OPENAI_LOOP,
    RESPONSES_LOOP,
    AgentNotebook,
    cells,
    schemas,
)
from tests.harness.scripted_model import call


def notebooks() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "dice_of_a_seeded_generator",
        cells(
            ANTHROPIC,
            f"""
import random
QUESTION = "Roll two dice, then a third."
{schemas(roll="sides:integer")}
dice = random.Random(7)
rolled = []

def roll(sides):
    rolled.append(dice.randint(1, sides))
    return rolled[-1]

def run_tool(name, arguments):
    return roll(**arguments)
""",
            ANTHROPIC_LOOP,
            "print(rolled)",
            "print(dice.randint(1, 1000))",
        ),
        [[call("roll", sides=6), call("roll", sides=6)], [call("roll", sides=20)], "Lucky."],
    )
    yield AgentNotebook(
        "samples_of_numpy",
        cells(
            OPENAI,
            f"""
import numpy as np
QUESTION = "Draw 3 samples, bootstrap them."
{schemas("openai", sample="size:integer", bootstrap="")}
rng = np.random.default_rng(42)
samples, means = np.empty(0), []

def sample(size):
    global samples
    samples = np.concatenate([samples, rng.normal(size=size)])
    return len(samples)

def bootstrap():
    for _ in range(3):
        means.append(float(rng.choice(samples, size=len(samples)).mean()))
    return means

def run_tool(name, arguments):
    return globals()[name](**arguments)
""",
            OPENAI_LOOP,
            "print(samples.round(4), np.round(means, 4))",
            "print(rng.integers(1000))",
        ),
        [[call("sample", size=3)], [call("bootstrap")], "Drawn."],
    )
    yield AgentNotebook(
        "stamps_and_ids",
        cells(
            OPENAI,
            f"""
import datetime
import time
import uuid
QUESTION = "Open two cases."
{schemas("responses", open_case="title")}
cases, newest = {{}}, None

def open_case(title):
    global newest
    newest = uuid.uuid4()
    cases[newest] = {{"title": title, "at": datetime.datetime.now(), "epoch": time.time()}}
    return str(newest)

def run_tool(name, arguments):
    return open_case(**arguments)
""",
            RESPONSES_LOOP,
            "print(cases[newest]['title'], len(cases))",
            "for case in cases.items():\n    print(case)",
        ),
        [
            [call("open_case", title="late parcel")],
            [call("open_case", title="broken cup")],
            "Two cases.",
        ],
        varies=True,
    )
    yield AgentNotebook(
        "tokens_and_passwords",
        cells(
            ANTHROPIC,
            f"""
import random
import secrets
import string
QUESTION = "Make a login for Ada and a winner of the raffle."
{schemas(make_login="name", raffle="")}
logins, winners = {{}}, []

def make_login(name):
    logins[name] = {{"pin": secrets.randbelow(10_000), "hint": "".join(random.choices(string.ascii_lowercase, k=5))}}
    return "made"

def raffle():
    winners.append(random.choice(["red", "green", "blue"]))
    random.shuffle(winners)
    return winners[-1]

def run_tool(name, arguments):
    return globals()[name](**arguments)
""",
            ANTHROPIC_LOOP,
            "print(logins, winners)",
        ),
        [[call("make_login", name="ada")], [call("raffle"), call("raffle")], "Made."],
        varies=True,
    )
