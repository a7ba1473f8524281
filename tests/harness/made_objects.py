"""Objects as programs hand them to tools: one of each kind whose state is looked at, by a few words on it."""

from __future__ import annotations

import argparse
import array
import collections
import datetime
import decimal
import enum
import fractions
import functools
import io
import json
import logging
import os
import queue
import re
import string
import threading
import types
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

KEY = "sk-proj-abcdefgh12345678"
"""A secret that stands in some of them."""


class User:
    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


class Slotted:
    __slots__ = ("__weakref__", "unset", "x")

    def __init__(self, x: Any) -> None:
        self.x = x


class Below(Slotted):
    __slots__ = ("y",)

    def __init__(self, x: Any, y: Any) -> None:
        super().__init__(x)
        self.y = y


class Words(list):  # type: ignore[type-arg]
    pass


class Table(dict):  # type: ignore[type-arg]
    pass


class Pair(tuple):  # type: ignore[type-arg]
    __slots__ = ()


class Bag(set):  # type: ignore[type-arg]
    pass


class Line(collections.deque):  # type: ignore[type-arg]
    pass


class Name(str):
    __slots__ = ("kind",)


class Weight(float):
    pass


class Count(int):
    pass


class Blob(bytes):
    pass


class Lost(Exception):
    def __init__(self, *args: Any, code: int = 0) -> None:
        super().__init__(*args)
        self.code = code


class Colour(enum.Enum):
    RED = 1
    BLUE = "b"


class Flags(enum.IntFlag):
    ONE = 1
    TWO = 2


class Stream(io.StringIO):
    pass


def _with(made: Any, **fields: Any) -> Any:
    """A named object with attributes of its own."""
    vars(made).update(fields)
    return made


def _nested(depth: int, inner: Any = None) -> Any:
    for _ in range(depth):
        inner = [inner]
    return inner


def _ring() -> User:
    ring = User(name="ring")
    ring.__dict__ |= {"me": ring, "all": [ring, {"of": [ring]}]}
    return ring


def _shared() -> User:
    inner = User(n=1)
    return User(a=inner, b=inner, c=[inner, inner])


def _queue(kind: Any, *items: Any) -> Any:
    made = kind()
    for each in items:
        made.put(each)
    return made


def _name(text: str, kind: str) -> Name:
    made = Name(text)
    made.kind = kind
    return made


def _objects() -> Any:
    made = np.empty(3, object)
    made[:] = ["a", User(n=1), [1, 2]]
    return made


def _no_device() -> Any:
    with Path(os.devnull).open(encoding="utf-8") as file:
        return file


OBJECTS: dict[str, Callable[[], Any]] = {
    "plain fields": lambda: User(a=None, b=True, c=1, d=1.5, e="text", f=b"bytes", g=[1, "x"], h={"k": (2,)}),
    "none": lambda: User(),
    "number kinds": lambda: User(a=0, b=-0.0, c=float("nan"), d=float("inf"), e=10**30, f=1j),
    "short and long texts": lambda: User(a="x" * 400, b="x" * 401, c="é" * 401),
    "half characters": lambda: User(a="\ud83e", b="\ud83e" * 500),
    "names that look like marks": lambda: User(**{"<object>": 1, "\\a": 2, "a<": 3, "": 4}),
    "texts that look like secrets' names": lambda: User(password="hunter2", api_key="", token="<secret:TOKEN>", my_secret="x", tokens="shown", passphrase="p" * 500),
    "strong masked value": lambda: User(token="q8Zt-Xw3v-99Lm-PzRa-0d7e-Kf5y-71Gh"),
    "a known secret": lambda: User(note=f"with {KEY} in it", keys=[KEY, KEY], long=f"{KEY} " * 30),
    "numbers": lambda: User(few=list(range(8)), more=list(range(9)), mixed=[*range(9), "x"], floats=[0.5] * 20, nones=[None, True] * 6),
    "fifty and more": lambda: User(fifty=[[n] for n in range(50)], more=[[n] for n in range(51)], words=[f"w{n}" for n in range(51)]),
    "many fields": lambda: User(**{f"f{n:02}": n for n in range(60)}),
    "fifty fields": lambda: User(inner=User(**{f"f{n:02}": n for n in range(50)}), more={f"f{n:02}": n for n in range(51)}),
    "quiet inside": lambda: User(many=[User(a=[n, "x"]) for n in range(60)], after=[User(a="shown")]),
    "wide previews": lambda: User(a=["x" * 130, "y" * 130, "z" * 129], b=["x" * 130, "y" * 130, "z" * 140]),
    "nested": lambda: User(a=_nested(5), b=_nested(3, User(x=1)), c={"a": {"b": {"c": [User(d=1)]}}}),
    "at the depth that is looked at": lambda: User(a=_nested(49), b=_nested(50), c=_nested(51)),
    "as many as are looked at": lambda: User(a=[[n] for n in range(4_998)], b="after"),
    "one too many": lambda: User(a=[[n] for n in range(4_999)], b="after"),
    "tuples": lambda: User(a=(), b=(1,), c=((1, 2), "x"), d=Pair((1, 2))),
    "sets": lambda: User(a={3, 1, 2}, b=frozenset("xy"), c={("a", 1), ("b", 2)}, d=Bag({1}), e=set(range(20))),
    "dicts": lambda: User(a={1: "x", "y": 2}, b={("t", 1): [1]}, c={}, d={None: 1, True: 2}, e={n: n for n in range(60)}),
    "deques": lambda: User(a=collections.deque([1, "x"]), b=collections.deque(maxlen=3), c=Line([1])),
    "dict kinds": lambda: User(a=collections.OrderedDict(b=1, a=2), b=collections.defaultdict(list, x=[1]), c=collections.Counter("aab"), d=Table(x=1)),
    "own containers with fields": lambda: User(a=_with(Words(["a"]), note="n"), b=_with(Table(x=1), note="n"), c=_with(Bag({1}), note=[2]), d=Words()),
    "text and number kinds": lambda: User(a=_name("a", "k"), b=Weight(2.5), c=Count(7), d=Blob(b"xyz"), e=_with(Count(7), unit="kg")),
    "a text kind alone": lambda: _name("a", "k"),
    "slots": lambda: User(a=Slotted(1), b=Below([2], "y")),
    "errors": lambda: User(a=Lost("gone", 3, code=4), b=ValueError("no", [1]), c=KeyError()),
    "an error alone": lambda: Lost("gone", code=2),
    "enums": lambda: User(a=Colour.RED, b=Colour.BLUE, c=Flags.TWO),
    "moments and the like": lambda: User(a=datetime.date(2026, 3, 1), b=decimal.Decimal("1.50"), c=fractions.Fraction(1, 3), d=datetime.timedelta(seconds=5), e=range(1, 9, 2), f=Path("a/b"), g=slice(1, 2)),
    "namespaces": lambda: User(a=types.SimpleNamespace(x=[1], y="z"), b=types.MappingProxyType({"p": [1]}), c=types.MappingProxyType({1: 2})),
    "a namespace alone": lambda: types.SimpleNamespace(x=[1], y="z"),
    "patterns": lambda: User(a=re.compile("a+"), b=re.compile(b"a+", re.DOTALL), c=re.compile("a", re.IGNORECASE)),
    "buffers": lambda: User(a=b"", b=bytearray(b"abc"), c=array.array("i", [1, 2]), d=memoryview(b"abc"), e=b"x" * 500),
    "large buffers": lambda: User(a=bytes(3 << 20), b=bytes(1 << 20), c=b"\1" * (1 << 20), d=b"\1" * 100),
    "large texts": lambda: User(a="a" * (1 << 20), b="b" * 5_000, c="c" * 500),
    "a text that is too large": lambda: User(a="ab" * (1 << 20), b="b" * 500),
    "texts in memory": lambda: User(a=io.StringIO("text"), b=io.BytesIO(b"bytes"), c=Stream("more")),
    "a text in memory alone": lambda: io.StringIO("text"),
    "queues": lambda: User(a=_queue(queue.Queue, 1, "x"), b=_queue(queue.LifoQueue, 1), c=_queue(queue.PriorityQueue, 2, 1), d=_queue(queue.SimpleQueue, 1)),
    "locks": lambda: User(a=threading.Lock(), b=threading.Event(), c=threading.RLock(), d=threading.local(), e=threading.Semaphore(2)),
    "weak": lambda: User(a=weakref.ref(User), b=weakref.proxy(User)),
    "loggers": lambda: User(a=logging.getLogger("a.b"), b=logging.getLogger()),
    "classes and modules": lambda: User(a=User, b=int, c=json, d=Colour),
    "a class alone": lambda: User,
    "functions of C": lambda: User(a=max, b=[].append, c={"x": 1}.get, d=json.dumps.__class__),
    "bound to an object": lambda: functools.partial(max, 1, key=None),
    "partials": lambda: User(a=functools.partial(max, 1), b=functools.partial(sorted, reverse=True)),
    "handles": lambda: User(a=iter([1]), b=(n for n in [1]), c=object(), d=re.match("a", "a"), e=threading.Thread()),
    "a handle alone": lambda: iter([1]),
    "a handle in a list": lambda: {"a": [object(), {"b": object()}]},
    "objects of libraries": lambda: User(a=string.Template("$x"), b=argparse.Namespace(x=1, y=[User(z=2)]), c=logging.Formatter("%(msg)s")),
    "an object of a library alone": lambda: argparse.Namespace(x=1),
    "a library's object that holds a handle": lambda: User(a=argparse.Namespace(x=1, f=object()), b=argparse.Namespace(lock=threading.Lock()), c=1),
    "a library's object that holds secrets": lambda: User(a=argparse.Namespace(note=KEY, password="hunter2")),
    "libraries' objects in one another": lambda: User(a=argparse.Namespace(b=string.Template("$x"), c=argparse.Namespace(d=1))),
    "a library's object with much in it": lambda: User(a=argparse.Namespace(x=[[n] for n in range(998)]), b=argparse.Namespace(x=[[n] for n in range(999)])),
    "a library's object with much below it": lambda: User(a=argparse.Namespace(x=_nested(49)), b=argparse.Namespace(x=_nested(50))),
    "no device": _no_device,
    "arrays": lambda: User(a=np.arange(3), b=np.zeros((2, 2), "f4"), c=np.float64(1.5), d=np.array(["a", "bc"]), e=np.arange(6).reshape(2, 3).T),
    "arrays of objects": lambda: User(a=_objects()),
    "cycles": _ring,
    "shared": _shared,
    "a list": lambda: [1, "x", User(a=1)],
    "a dict": lambda: {"a": User(b=1), "c": [1]},
    "a dict with other keys": lambda: {1: User(b=1)},
    "a set": lambda: {1, 2},
    "paths": lambda: User(here="in /made/folder/a.csv", key={"/made/folder": 1}, other="/made/folders", when=Path("/made/folder/b")),
}  # fmt: skip
