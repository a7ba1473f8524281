"""A walk through a value ends: in time, at its depth, and where it has been."""

import collections
import sqlite3

import pytest

from tape_jupyter.dataflow.fingerprint.fingerprint import fingerprint

BIG = 300_000


@pytest.mark.parametrize(
    "made",
    [
        lambda: list(range(BIG)),
        lambda: tuple(range(BIG)),
        lambda: dict.fromkeys(range(BIG), "text"),
        lambda: collections.deque(range(BIG)),
        lambda: set(range(BIG)),
        lambda: [[], *range(BIG)],
        lambda: [[n] for n in range(BIG)],
        lambda: {"deep": [{}, *range(BIG)]},
        lambda: collections.OrderedDict.fromkeys(range(BIG)),
        lambda: "text " * BIG * 10,
        lambda: ["text " * BIG * 10],
    ],
)
def test_a_value_takes_no_longer_than_it_may_whatever_it_is_made_of(made, monkeypatch):
    hashed = []

    class Counting:
        def __init__(self):
            self.update = lambda data: hashed.append(len(data))

        def hexdigest(self):
            return "0"

    monkeypatch.setattr("tape_jupyter.dataflow.fingerprint.walker.hasher", Counting)
    value = made()
    looked = fingerprint(value, seconds=0)
    assert looked.vast and looked.opaque
    assert sum(hashed) < 3 << 20 and len(hashed) < 30_000


def test_connections_are_opaque_and_what_takes_too_long_is_vast():
    assert fingerprint(sqlite3.connect(":memory:")).opaque
    assert (
        fingerprint(list(range(3_000_000)), seconds=-1.0).vast
        or fingerprint([[[i]] for i in range(9999)], seconds=-1.0).vast
    )


def test_loops_end():
    loop = []
    loop.append(loop)
    deep = []
    for _ in range(10_000):
        deep = [deep]
    assert fingerprint(loop).digest
    assert fingerprint(deep).opaque
