"""A fingerprint tells values apart, without running anything of them."""

import collections
import datetime
import decimal
import functools
import itertools
import sqlite3
import subprocess
import sys

import pytest

from tape_jupyter.flow.fingerprints import fingerprint


class Loud:
    """Every hook that a curious tool could set off."""

    def __init__(self):
        self.v = 1

    def _no(self, *_a, **_k):
        raise AssertionError("the user's code was run")

    __reduce__ = __reduce_ex__ = __eq__ = __hash__ = __repr__ = __len__ = __iter__ = __bool__ = __getattr__ = _no
    __getstate__ = __sizeof__ = _no
    prop = property(_no)


def test_nothing_of_an_object_is_run():
    one = Loud()
    before = fingerprint(one).digest
    one.__dict__["v"] = 2
    assert fingerprint(one).digest != before
    assert not fingerprint(one).opaque


class Tag(str):
    __str__ = __eq__ = __hash__ = Loud._no


class Count(int):
    __repr__ = __eq__ = __hash__ = Loud._no


class Share(float):
    __repr__ = __eq__ = __hash__ = Loud._no


class Raw(bytes):
    __getitem__ = __eq__ = __hash__ = Loud._no


class Buffer(bytearray):
    __getitem__ = __eq__ = Loud._no


class Day(datetime.datetime):
    __reduce__ = __reduce_ex__ = __eq__ = __hash__ = Loud._no


class Price(decimal.Decimal):
    __str__ = __reduce__ = __eq__ = __hash__ = Loud._no


class Refused(Exception):
    __str__ = __reduce__ = Loud._no


@pytest.mark.parametrize(("kind", "one", "other"), [
    (Tag, ["a"], ["b"]), (Count, [1], [2]), (Share, [0.5], [0.25]), (Raw, [b"a"], [b"b"]), (Buffer, [b"a"], [b"b"]),
    (Day, [2020, 1, 1], [2021, 1, 1]), (Price, ["1.5"], ["2.5"]), (Refused, ["no"], ["never"]),
    (ValueError, ["a"], ["b"]),
])  # fmt: skip
def test_values_of_classes_made_of_builtin_ones_are_told_apart(kind, one, other):
    assert fingerprint(kind(*one)).digest == fingerprint(kind(*one)).digest != fingerprint(kind(*other)).digest


def test_a_file_that_is_open_is_opaque_and_a_closed_one_is_not(tmp_path):
    with (tmp_path / "a").open("w") as file:
        assert fingerprint(file).opaque
    assert not fingerprint(file).opaque


class Sub(dict):
    def items(self):
        raise AssertionError

    __iter__ = items


def test_a_containers_own_methods_are_not_used():
    assert fingerprint(Sub(a=1)).digest != fingerprint(Sub(a=2)).digest


@pytest.mark.parametrize("make", [lambda: (x for x in [1, 2]), lambda: iter([1, 2]), lambda: map(str, [1, 2]),
                                  lambda: itertools.count(), lambda: zip([1], [2], strict=True)])  # fmt: skip
def test_no_generator_or_iterator_is_moved_and_all_are_opaque(make):
    value = make()
    assert fingerprint(value).opaque
    assert next(value) == next(make())


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
    yield "a frame's text", (g := pd.DataFrame({"a": ["x"]})), lambda: g.loc.__setitem__((0, "a"), "y")
    yield "a frame's attrs", (h := pd.DataFrame({"a": [1]})), lambda: h.attrs.update(n=1)
    yield "a deque", (q := collections.deque([1])), lambda: q.append(2)
    yield "a set", (s := {1}), lambda: s.add(2)
    yield "a bytearray", (b := bytearray(b"x")), lambda: b.append(1)

    class K:
        n = []

    yield "a class attribute, by an instance", K(), lambda: K.n.append(1)


@pytest.mark.parametrize(("name", "value", "change"), list(mutated()), ids=lambda v: v if isinstance(v, str) else "")
def test_a_change_in_place_is_seen(name, value, change):
    before = fingerprint(value, globals()).digest
    assert fingerprint(value, globals()).digest == before
    change()
    assert fingerprint(value, globals()).digest != before


def test_views_and_containers_share_what_they_share():
    import numpy as np

    a = np.zeros(4)
    assert fingerprint(a).ids & fingerprint(a[1:]).ids
    inner = []
    assert fingerprint({"k": inner}).ids & fingerprint(inner).ids
    d = {"a": 1}
    assert fingerprint(d).ids & fingerprint(d.keys()).ids


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


def test_equal_values_are_equal_in_another_kernel():
    text = "from tape_jupyter.flow.fingerprints import fingerprint as f; print(f({'a': {'x', 'y', 'z'}, 'b': [1.5, None]}).digest)"
    told = {
        subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    }
    assert len(told) == 1


def test_which_strings_are_one_object_does_not_matter():
    one = "".join(["a", "b"])
    assert fingerprint([one, one]).digest == fingerprint(["".join(["a", "b"]), one]).digest


BIG = 300_000


def of(value):
    return fingerprint(value, seconds=30).digest


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

    monkeypatch.setattr("tape_jupyter.flow.fingerprints.hasher", Counting)
    value = made()
    looked = fingerprint(value, seconds=0)
    assert looked.vast and looked.opaque
    assert sum(hashed) < 3 << 20 and len(hashed) < 30_000


@pytest.mark.parametrize("size", [10, 4_096, 4_097, 50_000])
@pytest.mark.parametrize("kind", [list, tuple, dict.fromkeys, collections.deque, set])
def test_equal_boxes_of_any_size_are_equal_and_one_other_item_is_a_change(kind, size):
    words = [f"word {n}" for n in range(size)]
    other = [*words[:-1], "another"]
    assert of(kind(words)) == of(kind([f"word {n}" for n in range(size)]))
    assert of(kind(words)) != of(kind(other)) and of(kind(words)) != of(kind(words[:-1]))


def test_sets_of_texts_are_equal_in_whatever_order_they_were_filled():
    assert of({"a", "b", "c"}) == of({"c", "b", "a"}) != of({"a", "b"})
    assert of({1, 2}) != of({"1", "2"}) and of({1, True}) != of({1.0})
