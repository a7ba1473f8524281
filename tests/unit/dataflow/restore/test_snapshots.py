"""What changeable objects held can be put back into the very same objects."""

import array
import collections
import decimal
import enum
import functools
import io
import itertools
import random
import types
import weakref

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tape_jupyter.dataflow.restore.snapshots import remember_value


class Agent:
    __module__ = "__main__"
    shared = []

    def __init__(self):
        self.log = [1]


class Dice(random.Random):
    __module__ = "__main__"
    rolls = 0


class Log(io.StringIO):
    __module__ = "__main__"
    lines = 0


class Buffer(bytearray):
    __module__ = "__main__"
    writes = 0


class Numbers(array.array):
    __module__ = "__main__"
    writes = 0


class Vector(np.ndarray):
    __module__ = "__main__"
    made = 0

    def __array_finalize__(self, other):
        Vector.made += 1
        self.writes = getattr(other, "writes", 0)


class Name(str):
    __module__ = "__main__"
    seen = 0


class Mood(enum.Enum):
    __module__ = "__main__"
    GOOD = 1


Mood.GOOD.seen = 0


class Slotted:
    __slots__ = ("a", "b")


def changed_back(value, change):
    """Change it, put it back; whether it could be."""
    memento = remember_value(value)
    change(value)
    assert memento.possible(), memento.opaque
    memento.restore()
    return value


def test_containers_hold_again_what_they_held_and_stay_the_same_objects():
    inner = [1, 2]
    value = {"turns": inner, "seen": {1}, "queue": collections.deque([1], maxlen=3)}

    def change(value):
        inner.append(3)
        value["seen"].add(2)
        value["queue"].extend([2, 3, 4])
        value["new"] = value.pop("turns")

    changed_back(value, change)
    assert (
        value == {"turns": [1, 2], "seen": {1}, "queue": collections.deque([1])}
        and value["turns"] is inner
    )
    assert list(value) == ["turns", "seen", "queue"] and value["queue"].maxlen == 3


def test_subclasses_of_containers_keep_their_order_and_attributes():
    ordered = collections.OrderedDict(a=1, b=2)
    counted = collections.Counter("aab")
    changed_back(ordered, lambda o: o.move_to_end("a"))
    changed_back(counted, lambda c: c.update("zzz"))
    assert list(ordered) == ["a", "b"] and counted == {"a": 2, "b": 1}


def test_a_value_that_holds_itself():
    value = [1]
    value.append(value)
    changed_back(value, lambda v: v.clear())
    assert value[0] == 1 and value[1] is value


def test_objects_their_classes_and_slots():
    agent, slotted = Agent(), Slotted()
    slotted.a = [1]
    both = [agent, slotted]

    def change(both):
        agent.log.append(2)
        agent.mood = "angry"
        Agent.shared.append(1)
        Agent.late = lambda self: None
        slotted.a.append(2)
        slotted.b = 3

    changed_back(both, change)
    assert vars(agent) == {"log": [1]} and Agent.shared == [] and not hasattr(Agent, "late")
    assert slotted.a == [1] and not hasattr(slotted, "b")


def test_functions_with_defaults_closures_and_attributes():
    def make():
        total = 0

        def add(n, seen=[]):
            nonlocal total
            total += n
            seen.append(n)
            add.calls = len(seen)
            return total

        return add

    add = make()
    add.__module__ = "__main__"
    changed_back(add, lambda f: (f(2), f(3)))
    assert add(5) == 5 and add.__defaults__ == ([5],) and add.calls == 1


def test_a_bound_method_is_its_object():
    history = []
    changed_back(history.append, lambda push: push(1))
    assert history == []


def test_arrays_and_tables():
    array, frame, series = np.arange(3.0), pd.DataFrame({"a": [1, 2]}), pd.Series([1, 2])

    def change(value):
        array[0] = 9
        frame.loc[0, "a"] = 9
        frame["new"] = 1
        series[0] = 9

    changed_back([array, frame, series], change)
    assert (
        array.tolist() == [0, 1, 2]
        and frame.to_dict("list") == {"a": [1, 2]}
        and series.tolist() == [1, 2]
    )


DERIVED = {
    "dice": (Dice(1), lambda d: (d.random(), setattr(d, "rolls", 1)), lambda d: (d.getstate(), d.rolls)),
    "log": (Log("a"), lambda b: (b.write("bc"), setattr(b, "lines", 1)), lambda b: (b.getvalue(), b.lines)),
    "buffer": (Buffer(b"a"), lambda b: (b.append(9), setattr(b, "writes", 1)), lambda b: (bytes(b), b.writes)),
    "numbers": (Numbers("i", [1]), lambda n: (n.append(2), setattr(n, "writes", 1)), lambda n: (list(n), n.writes)),
    "vector": (
        np.arange(4).view(Vector),
        lambda v: (v.__imul__(2), setattr(v, "writes", 1)),
        lambda v: (v.tolist(), v.writes),
    ),
    "text": (Name("a"), lambda n: setattr(n, "seen", 1), lambda n: n.seen),
    "member": (Mood.GOOD, lambda m: setattr(m, "seen", 1), lambda m: m.seen),
}  # fmt: skip


@pytest.mark.parametrize("name", DERIVED)
def test_what_derives_from_a_builtin_keeps_what_that_holds_and_its_attributes(name):
    value, change, look = DERIVED[name]
    was = look(value)
    changed_back(value, change)
    assert look(value) == was


def test_a_look_at_an_array_runs_no_code_of_its_class():
    vector = np.arange(4).view(Vector)
    made = Vector.made
    changed_back(vector, lambda v: None)
    assert Vector.made == made


INSIDE = {
    "arguments of an error": (ValueError("a"), lambda e: setattr(e, "args", ("b",)), lambda e: e.args),
    "a decimal context": (
        decimal.Context(prec=9),
        lambda c: (setattr(c, "prec", 3), c.traps.__setitem__(decimal.Inexact, True)),
        lambda c: (c.prec, c.traps[decimal.Inexact]),
    ),
    "arguments of a partial": (
        functools.partial(print, sep="-"),
        lambda p: p.keywords.update(end="!"),
        lambda p: p.keywords,
    ),
    "the shape and type of an array": (
        np.arange(4),
        lambda a: (setattr(a, "shape", (2, 2)), setattr(a, "dtype", "u8")),
        lambda a: (a.tolist(), str(a.dtype)),
    ),
    "names of an index": (
        pd.MultiIndex.from_tuples([(1, 2)]),
        lambda i: setattr(i, "names", ["a", "b"]),
        lambda i: list(i.names),
    ),
    "a column of its own": (pd.array([1, 2]), lambda c: c.__setitem__(0, 9), lambda c: c.tolist()),
    "lists in a table": (
        pd.DataFrame({"x": [[1], [2]]}),
        lambda t: t.x[0].append(9),
        lambda t: t.x.tolist(),
    ),
    "the table of groups": (
        pd.DataFrame({"g": [1, 1], "n": [1, 2]}).groupby("g"),
        lambda g: g.obj.__setitem__("n", 9),
        lambda g: g.obj.n.tolist(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", INSIDE)
def test_what_no_dict_of_attributes_holds_is_put_back_too(name):
    value, change, look = INSIDE[name]
    was = repr(look(value))
    changed_back(value, change)
    assert repr(look(value)) == was


def test_a_table_put_back_twice_is_not_changed_in_between():
    frame = pd.DataFrame({"a": [1, 2]})
    memento = remember_value(frame)
    for _ in range(2):
        memento.restore()
        frame.loc[0, "a"] = 9
    memento.restore()
    assert frame["a"].tolist() == [1, 2]


def test_random_generators_and_buffers():
    dice, rng, buffer = random.Random(1), np.random.default_rng(1), io.StringIO()
    buffer.write("a")
    first = []
    changed_back(
        [dice, rng, buffer],
        lambda _: first.extend([dice.random(), rng.random(), buffer.write("b")]),
    )
    assert [dice.random(), rng.random()] == first[:2] and buffer.getvalue() == "a"


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ((n for n in [1]), "generator"),
        (itertools.count(), "count"),
        (iter([1]), "list_iterator"),
        (zip([1]), "zip"),
    ],
)
def test_what_cannot_be_wound_back_is_named(value, name):
    memento = remember_value({"deep": [value]})
    assert not memento.possible() and name in memento.opaque[0]


def test_a_buffer_closed_since_cannot_be_put_back():
    buffer = io.StringIO("a")
    memento = remember_value(buffer)
    buffer.close()
    assert memento.is_complete and not memento.possible()


def test_a_connection_and_a_cache_cannot():
    import functools
    import sqlite3

    connection = sqlite3.connect(":memory:")
    assert (
        not remember_value(connection).possible()
        and not remember_value(functools.lru_cache(abs)).possible()
    )
    connection.close()


def test_what_is_vast_is_not_kept():
    assert not remember_value(np.zeros(1000), size=100).possible()
    assert remember_value([[n] for n in range(100)], nodes=10).opaque == ["something vast"]


def test_modules_and_plain_values_hold_nothing():
    plain = [types, 1, "a", None, 2.5, (1, 2), frozenset([1]), object()]
    assert remember_value(plain).possible()


def test_where_only_a_whole_memento_is_wanted_nothing_is_looked_at_after_what_cannot_be_kept():
    generator, later = (n for n in [1]), [[n] for n in range(100)]
    assert len(remember_value([generator, later]).puts) > 100
    brief = remember_value([generator, later], complete_only=True)
    assert "generator" in brief.opaque[0] and len(brief.puts) < 10


class Lease:
    def __del__(self):
        pass


def test_what_does_something_when_it_goes_is_told_and_can_still_be_wound_back():
    agent, awaited = Agent(), Agent()
    weakref.finalize(awaited, print).atexit = False
    agent.lease = Lease()
    seen = weakref.ref(agent.lease)
    for value in (agent, [awaited]):
        memento = remember_value(value)
        assert memento.is_complete and memento.ends and not memento.possible()
        assert memento.bare().puts == [] and not memento.bare().possible()
    assert not remember_value([io.StringIO(), io.BytesIO(), Agent, seen, weakref.ref(awaited)]).ends


def test_a_weak_reference_of_the_program_tells_when_what_it_refers_to_goes():
    agent = Agent()
    assert not remember_value([agent]).ends
    watching = weakref.ref(agent)
    assert remember_value([agent]).ends and watching() is agent


def test_a_memento_tells_what_it_copied_and_what_its_value_weighs():
    assert remember_value(np.zeros(10_000)).size == 80_000
    assert 8_000 <= remember_value(list(range(1_000))).size < 10_000
    assert (
        remember_value("x").size == 0
        and remember_value([[n] for n in range(1_000)]).weight >= 100_000
    )


def test_frames_of_polars_hold_again_what_they_held_as_often_as_it_is_asked():
    frame = pl.DataFrame({"a": [1, 2]})
    held = {"frame": frame, "column": frame["a"], "query": frame.lazy()}
    memento = remember_value(held)
    for _ in range(2):
        frame.extend(frame)
        frame[0, "a"] = 9
        frame.columns = ["b"]
        held["column"][0] = 7
        memento.restore()
        assert frame.to_dict(as_series=False) == {"a": [1, 2]} and held["frame"] is frame
        assert held["column"].to_list() == [1, 2]
