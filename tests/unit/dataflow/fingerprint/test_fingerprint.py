"""A fingerprint tells values apart, without running anything of them."""

import collections
import functools
import io
import subprocess
import sys

import pytest

from tape_jupyter.dataflow.fingerprint.fingerprint import fingerprint


def mutated():
    import numpy as np
    import pandas as pd

    def add(x, acc=[]):
        acc.append(x)

    def closure():
        box = []
        return box.append

    put = closure()
    cached = functools.cache(len)
    yield "a list in a dict", (d := {"a": [1]}), lambda: d["a"].append(2)
    yield "a default", add, lambda: add(1)
    yield "a closure", put, lambda: put(1)
    yield "a cache", cached, lambda: cached("abc")
    yield "an array", (a := np.zeros(3)), lambda: a.__setitem__(0, 1)
    yield "a frame", (f := pd.DataFrame({"a": [1]})), lambda: f.__setitem__("b", 2)
    yield (
        "a frame's text",
        (g := pd.DataFrame({"a": ["x"]})),
        lambda: g.loc.__setitem__((0, "a"), "y"),
    )
    yield "a frame's attrs", (h := pd.DataFrame({"a": [1]})), lambda: h.attrs.update(n=1)
    yield "a deque", (q := collections.deque([1])), lambda: q.append(2)
    yield "a set", (s := {1}), lambda: s.add(2)
    yield "a bytearray", (b := bytearray(b"x")), lambda: b.append(1)

    class K:
        n = []

    yield "a class attribute, by an instance", K(), lambda: K.n.append(1)


@pytest.mark.parametrize(
    ("name", "value", "change"), list(mutated()), ids=lambda v: v if isinstance(v, str) else ""
)
def test_a_change_in_place_is_seen(name, value, change):
    before = fingerprint(value, globals()).digest
    assert fingerprint(value, globals()).digest == before
    change()
    assert fingerprint(value, globals()).digest != before


def test_equal_values_are_equal_in_another_kernel():
    text = "from tape_jupyter.dataflow.fingerprint.fingerprint import fingerprint as f; print(f({'a': {'x', 'y', 'z'}, 'b': [1.5, None]}).digest)"
    told = {
        subprocess.run(
            [sys.executable, "-c", text], capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    }
    assert len(told) == 1


def test_a_traceback_is_the_same_text_whichever_kernel_its_cells_ran_in():
    """ipykernel names the code of cells by its process: a replay of what a cell left compares two of them."""

    def texts(process):
        text = f'  File "/tmp/ipykernel_{process}/77.py", line 3, in f'
        return [text, [text, "x"], {"a": text}, io.StringIO(text)]

    for one, other in zip(texts(7), texts(31564), strict=True):
        assert fingerprint(one).digest == fingerprint(other).digest
    assert fingerprint("ipykernel_7").digest != fingerprint("ipykernel_8").digest
