"""The state of an object that cannot be written: equal for equal values in any process, another for another value."""

import collections
import enum
import io
import logging
import os
import queue
import re
import sqlite3
import subprocess
import sys
import threading
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tape_jupyter as tape
from tape_jupyter.replay import object_state
from tape_jupyter.secrets.masked_values import MaskedValues
from tape_jupyter.secrets.registry import Secrets

np = pytest.importorskip("numpy")
pd = pytest.importorskip("pandas")


class User:
    def __init__(self, **fields):
        self.__dict__.update(fields)


class Slotted:
    __slots__ = ("__hidden", "x")

    def __init__(self, x, hidden=0):
        self.x, self.__hidden = x, hidden


class Hostile:
    """Whatever of its own code is run, it tells."""

    def __init__(self, value):
        object.__setattr__(self, "value", value)

    def _refuse(self, *_):
        raise AssertionError("the object's own code ran")

    __getattr__ = __setattr__ = __eq__ = __repr__ = __str__ = __len__ = __iter__ = __reduce_ex__ = (
        __getattribute__
    ) = _refuse
    __hash__ = None
    prop = property(_refuse)


class Text(str):
    __slots__ = ()


class Color(enum.Enum):
    RED = 1


def state(value, secrets=None):
    return object_state.state_by_value(value, MaskedValues("tool f", secrets or Secrets()), "user")


def digest(value):
    return state(value).digest


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=9)
    | st.binary(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


def copied(value):
    if isinstance(value, list):
        return [copied(each) for each in value]
    if isinstance(value, dict):
        return {key: copied(value[key]) for key in reversed(value)}
    return value


@settings(deadline=None)
@given(plain)
def test_equal_values_have_one_digest_whatever_their_address_and_order(value):
    assert digest(User(value=value)) == digest(User(value=copied(value)))


@settings(deadline=None)
@given(plain, plain)
def test_other_values_have_another_digest(one, other):
    if repr(one) != repr(other) and (one != other or type(one) is not type(other)):
        assert digest(User(value=one)) != digest(User(value=other))


PAIRS = [
    (User(name="ada"), User(name="bob")),
    (User(x=1), User(x=True)),
    (User(x=1), User(x=1.0)),
    (User(x=1), User(x="1")),
    (User(x=[1]), User(x=(1,))),
    (User(x=None), User()),
    (User(a=1, b=2), User(a=2, b=1)),
    (User(x={1: 2}), User(x={1: 3})),
    (User(x={"a", "b"}), User(x={"a", "c"})),
    (User(x={"a"}), User(x=frozenset({"a"}))),
    (User(x=User(name="ada")), User(x=User(name="bob"))),
    (User(x=b"a"), User(x=b"b")),
    (User(x="a" * 5_000), User(x="a" * 4_999 + "b")),
    (User(x=np.arange(3)), User(x=np.arange(4))),
    (User(x=np.arange(3)), User(x=np.arange(3.0))),
    (User(x=pd.DataFrame({"a": [1]})), User(x=pd.DataFrame({"a": [2]}))),
    (User(x=pd.DataFrame({"a": ["x"]})), User(x=pd.DataFrame({"b": ["x"]}))),
    (User(x=Color.RED), User(x=1)),
    (User(x=ValueError("a")), User(x=ValueError("b"))),
    (User(x=collections.deque([1])), User(x=collections.deque([2]))),
    (User(x=range(3)), User(x=range(4))),
    (Text("a"), Text("b")),
    (Slotted(1), Slotted(2)),
    (Slotted(1, hidden=1), Slotted(1, hidden=2)),
    (lambda x: x + 1, lambda x: x + 2),
    (partial(max, 1), partial(max, 2)),
    (User(x=1).__init__, User(x=2).__init__),
    (logging.getLogger("a"), logging.getLogger("b")),
    (re.compile("a"), re.compile("b")),
    (io.StringIO("a"), io.StringIO("b")),
    ([User(name="ada")], [User(name="bob")]),
    (
        {"user": User(name="ada"), "db": sqlite3.connect(":memory:")},
        {"user": User(name="bob"), "db": None},
    ),
    (os, sys),
    (User, Slotted),
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_what_differs_in_value_differs(one, other):
    assert digest(one) != digest(other)


def test_none_of_an_objects_own_code_runs():
    told = state(Hostile([1]))
    assert not told.less and told.fields == {"value": [1]}
    assert digest(Hostile(1)) == digest(Hostile(1)) != digest(Hostile(2))


def test_locks_have_no_value_and_do_not_weigh():
    one, other = (User(name="ada", lock=threading.Lock(), done=threading.Event()) for _ in range(2))
    assert state(one) == state(other) and not state(one).less


@pytest.mark.parametrize(
    "handle",
    [
        lambda: sqlite3.connect(":memory:"),
        lambda: (n for n in [1]),
        lambda: iter([1]),
        object,
        lambda: re.match("a", "a"),
    ],
)
def test_what_holds_no_value_counts_by_its_type_and_is_named(handle):
    handle = handle()
    told = state(User(name="ada", tool=handle))
    assert list(told.less) == [f"user.tool ({object_state.object_type_name(handle)})"]
    assert told.digest == state(User(name="ada", tool=handle)).digest


def test_a_client_of_a_library_counts_by_its_type_and_another_library_object_by_its_value():
    httpx = pytest.importorskip("httpx")
    assert list(state(httpx.Client(base_url="http://a.example")).less) == ["user (httpx.Client)"]
    one, same, other = (logging.Formatter(text) for text in ("%(msg)s", "%(msg)s", "%(name)s"))
    assert digest(one) == digest(same) != digest(other) and not state(one).less


def test_cycles_shared_objects_and_depth_end():
    ring = User(name="ring")
    ring.me, ring.all = ring, [ring, {"of": ring}]
    assert digest(ring) == digest(ring)
    wide = [1]
    for _ in range(40):
        wide = [wide, wide]
    assert state(User(x=wide)).digest == state(User(x=wide)).digest
    deep = []
    for _ in range(100_000):
        deep = [deep]
    assert state(User(x=deep)).less


def test_what_is_too_large_is_sampled_and_named():
    one, other = (User(x=np.full(4 << 20, n, np.uint8)) for n in (1, 2))
    one.more = other.more = np.zeros(1 << 20, np.uint8)
    assert "too large" in " ".join(state(one).less) and digest(one) != digest(other)
    many = state(User(x=[User(n=n) for n in range(object_state.NODES)]))
    assert "too large" in " ".join(many.less)


def test_fields_are_shown_as_far_as_they_are_short():
    told = state(User(name="ada", bag=list(range(5_000)), friend=User(name="bob"))).fields
    assert told["name"] == "ada" and told["friend"]["fields"] == {"name": "bob"}
    assert set(told["bag"]) == {"<digest>", "of"}


def test_no_secret_is_shown():
    secrets = Secrets()
    secrets.learn("OPENAI_API_KEY", "sk-proj-abcdefgh12345678")
    user = User(note="with sk-proj-abcdefgh12345678", password="hunter2", api_token="t-1")
    text = repr(state(user, secrets).fields)
    assert "sk-proj" not in text and "hunter2" not in text and "t-1" not in text
    assert "<secret:OPENAI_API_KEY>" in text


def test_a_key_of_the_environment_counts_by_its_name_and_a_weak_password_not_at_all():
    ours, theirs = Secrets(), Secrets()
    ours.learn_environment({"OPENAI_API_KEY": "sk-proj-abcdefgh12345678"})
    theirs.learn_environment({"OPENAI_API_KEY": "sk-proj-zyxwvuts87654321"})
    one = state(User(key="sk-proj-abcdefgh12345678"), ours)
    assert one.digest == state(User(key="sk-proj-zyxwvuts87654321"), theirs).digest
    assert digest(User(password="hunter2")) == digest(User(password="hunter3"))


PROGRAM = """
import threading
from tests.unit.replay.test_object_state import *
made = User(name="ada", tags={"x", "y", "z"}, by={("a", 1): {"q"}, "b": 2}, lock=threading.Lock(), q=queue.Queue(),
            when=Color.RED, f=len, table=pd.DataFrame({"a": ["u", "v"], "n": [1.5, float("nan")]}))
print(digest(made))
"""


def test_a_digest_is_the_same_in_every_process_and_hash_seed():
    told = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(told) == 1 and len(told.pop().strip()) == 16


def test_a_queue_is_what_waits_in_it():
    one, other = queue.Queue(), queue.Queue()
    one.put(1)
    assert digest(one) != digest(other)


def test_a_taped_generator_that_an_object_holds_counts_as_the_one_that_was_written():
    def stream(topic):
        yield topic

    plain, taped = User(tools=[stream]), User(tools=[tape.tool(stream)])
    assert digest(plain) == digest(taped)


def test_our_wrappers_keep_the_names_that_older_recordings_know_them_by():
    """The digest of an argument that holds a taped function is made of the code that its wrapper had
    when recordings began, names too: with others, what was recorded before is not found.
    """

    def plain(x):
        return x

    async def later(x):
        return x

    wrappers = [tape.tool(plain), tape.tool(later), tape.span("s")(plain), tape.span("s")(later)]
    codes = [object_state.find_recorded_code(each) for each in wrappers]
    assert [(each.co_name, each.co_names) for each in codes] == [
        ("forward", ("call",)),
        ("wait", ("call_async",)),
        ("within", ()),
        ("within_async", ()),
    ]

    def forward(*args, **kwargs):
        return record.call(*args, **kwargs)

    async def wait(*args, **kwargs):
        return await record.call_async(*args, **kwargs)

    record = None
    then = [forward.__code__, wait.__code__]
    assert [each.co_code for each in codes[:2]] == [each.co_code for each in then]
    assert [each.co_consts for each in codes[:2]] == [each.co_consts for each in then]
