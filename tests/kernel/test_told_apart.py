"""Calls whose arguments cannot be written, in real kernels: recorded in one, asked in another order in a fresh one."""

import pytest

from tests.harness.notebook import Kernel, notebook
from tests.harness.provider import Provider, Scripted

DEFINE = """%load_ext tape_jupyter
import threading, urllib3, tape_jupyter as tape
class User:
    def __init__(self, name, plan):
        self.name, self.plan, self.lock, self.tags = name, plan, threading.Lock(), {name, plan, "user"}
class Wallet:
    def __init__(self, owner): self.owner, self.coins = owner, {"a": 1}
    @tape.tool
    def worth(self): return f"{self.owner} {len(self.owner)}"
@tape.tool
def balance(user): return f"balance of {user.name}"
def kv(key): return urllib3.PoolManager().request("GET", "URL/kv", fields={"key": key}, retries=False).json()["nth"]
ADA, BOB = "8f3kd92Qx71Wm4Tz9aPq", "1b7zz04Lm55Ry2Gh6cVn"
"""
CELLS = {
    "objects": (
        "who = {n: balance(User(n, 'pro')) for n in NAMES}\nwho",
        ("['ada', 'bob']", "['bob', 'ada']"),
    ),
    "methods": (
        "who = {n: Wallet(n).worth() for n in NAMES}\nwho",
        ("['ada', 'bob']", "['bob', 'ada']"),
    ),
    "keys": ("who = {n: kv(n) for n in NAMES}\nwho", ("[ADA, BOB]", "[BOB, ADA]")),
}
"""By cassette: the cell, and what NAMES is when it is recorded and when it is replayed."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("apart")
    notebook(where / "nb.ipynb", "x")
    return where


@pytest.fixture(scope="module")
def recorded(folder):
    """What each cell showed while it was recorded; the provider is gone."""
    with Provider() as provider:
        for n in range(2):
            provider.script(
                "/kv",
                Scripted(headers={"content-type": "application/json"}, chunks=[b'{"nth": %d}' % n]),
            )
        define = DEFINE.replace("URL", provider.url)
        with Kernel(folder, _env(folder, "1")) as kernel:
            assert kernel.execute(define).ok
            live = {}
            for name, (cell, (names, _)) in CELLS.items():
                ran = kernel.execute(f"%%tape record {name}\nNAMES = {names}\n{cell}")
                assert ran.ok, ran.traceback
                assert kernel.execute("who = dict(sorted(who.items()))").ok
                live[name] = kernel.execute("who").result
    return define, live


def _env(folder, seed):
    return {"TAPE_NOTEBOOK": str(folder / "nb.ipynb"), "PYTHONHASHSEED": seed}


def test_a_fresh_kernel_gives_each_its_own_answer_in_another_order_even_under_strict(
    folder, recorded
):
    define, live = recorded
    with Kernel(folder, _env(folder, "2")) as kernel:
        assert kernel.execute(define).ok
        for name, (cell, (_, names)) in CELLS.items():
            ran = kernel.execute(f"%%tape replay {name} --strict\nNAMES = {names}\n{cell}")
            assert ran.ok, ran.traceback
            assert kernel.execute("who = dict(sorted(who.items()))\nwho").result == live[name]


def test_what_is_not_on_the_tape_is_refused_by_name(folder, recorded):
    define, _ = recorded
    with Kernel(folder, _env(folder, "3")) as kernel:
        assert kernel.execute(define).ok
        ran = kernel.execute("%%tape replay objects\nbalance(User('cyd', 'pro'))")
        assert ran.ename == "UnmatchedCall" and "user.name" in ran.evalue and "'cyd'" in ran.evalue
        ran = kernel.execute("%%tape replay keys\nkv(ADA[::-1])")
        assert ran.ename == "UnmatchedCall" and "?key=" in ran.evalue
