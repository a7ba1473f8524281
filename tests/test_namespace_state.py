"""The comparer of sessions sees each kind of difference, names it by its place, and sees none where there is none."""

import collections
import contextvars
import functools
import io
import json
import logging
import queue
import random
import sqlite3
import sys
import types
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pytest

from tests.harness import namespace_state
from tests.harness.namespace_state import differences, names, root, told


def state(source, **names):
    """The state after some source ran in a notebook's namespace."""
    module = types.ModuleType("__main__")
    namespace = vars(module)
    namespace.update(names)
    exec(compile(source, "<cell>", "exec"), namespace)
    return told({name: value for name, value in namespace.items() if not name.startswith("__")})


def changed(first, second):
    return differences(state(first), state(second))


PAIRS = {
    "a member is missing": (
        "todo = ['milk', 'eggs']",
        "todo = ['milk']",
        "todo[1]: 'eggs' != missing",
    ),
    "a value": ("count = 2", "count = 0", "count: 2 != 0"),
    "a type": ("count = 2", "count = 2.0", "count: 2 != 2.0"),
    "a truth and a number": ("flag = True", "flag = 1", "flag: True != 1"),
    "a name is missing": ("left = 1", "", "left: 1 != missing"),
    "a name is new": ("", "left = 1", "left: missing != 1"),
    "an order": ("a = [1, 2]", "a = [2, 1]", "a[0]: 1 != 2"),
    "a dict's order": (
        "a = {1: 1, 2: 2}",
        "a = {2: 2, 1: 1}",
        "a (keys): ['1', '2'] != ['2', '1']",
    ),
    "a list and a tuple": ("a = [1]", "a = (1,)", "a: list of 1 != tuple of 1"),
    "an alias": ("a = []; b = a", "a = []; b = []", "b: the same object as a != list of 0"),
    "an alias within": (
        "a = []; d = {'x': [a]}",
        "a = []; d = {'x': [[]]}",
        "d['x'][0]: the same object as a != list of 0",
    ),
    "a set": ("a = {1, 2}", "a = {1, 3}", "a[1]: 2 != 3"),
    "a deque's limit": (
        "from collections import deque as d; a = d([1], 2)",
        "from collections import deque as d; a = d([1], 3)",
        "a: collections.deque of 1, at most 2 != collections.deque of 1, at most 3",
    ),
    "a field": (
        "class A: pass\na = A(); a.x = 1",
        "class A: pass\na = A(); a.x = 2",
        "a.x: 1 != 2",
    ),
    "a slot": (
        "class A: __slots__ = ('x',)\na = A(); a.x = 1",
        "class A: __slots__ = ('x',)\na = A()",
        "a.x: 1 != missing",
    ),
    "a class's attribute": ("class A:\n    made = 1", "class A:\n    made = 2", "A.made: 1 != 2"),
    "a cycle": (
        "class A: pass\na = A(); a.up = a",
        "class A: pass\na = A(); a.up = A()",
        "a.up: the same object as a != A object",
    ),
    "a closure's variable": (
        "def make(n):\n    def f(): return n\n    return f\nf = make([1])",
        "def make(n):\n    def f(): return n\n    return f\nf = make([2])",
        "f.<n>[0]: 1 != 2",
    ),
    "a function's attribute": (
        "def f(): pass\nf.calls = 1",
        "def f(): pass\nf.calls = 0",
        "f.calls: 1 != 0",
    ),
    "a partial's argument": (
        "import functools; f = functools.partial(print, [1])",
        "import functools; f = functools.partial(print, [2])",
        "f.args[0][0]: 1 != 2",
    ),
    "a long text": ("a = 'x' * 5000", "a = 'x' * 4999 + 'y'", "a: "),
    "a module's attribute": (
        "import types; m = types.ModuleType('m'); m.x = 1",
        "import types; m = types.ModuleType('m'); m.x = 2",
        "m.x: 1 != 2",
    ),
    "an error's text": ("e = ValueError('a')", "e = ValueError('b')", "e.args[0]: 'a' != 'b'"),
    "an environment variable": (
        "import os; os.environ['APP_X'] = '1'",
        "import os; os.environ['APP_X'] = '2'",
        "os.environ['APP_X']: '1' != '2'",
    ),
}


@pytest.mark.parametrize("kind", PAIRS)
def test_a_difference_is_told_by_its_place(kind, monkeypatch):
    monkeypatch.setenv("APP_X", "")
    first, second, expected = PAIRS[kind]
    found = changed(first, second)
    assert any(line.startswith(expected) for line in found), found


@pytest.mark.parametrize("kind", PAIRS)
def test_the_same_source_gives_the_same_state(kind, monkeypatch):
    monkeypatch.setenv("APP_X", "")
    for source in PAIRS[kind][:2]:
        assert changed(source, source) == []


def test_functions_are_told_apart_by_their_code_and_not_by_where_they_stand():
    assert changed("def f(x): return x + 1", "\n\ndef f(x): return x + 1") == []
    assert "f.__code__" in str(changed("def f(x): return x + 1", "def f(x): return x + 2"))


def cached():
    function = functools.lru_cache(len)
    function("a")
    return function


def logged(*texts):
    class Keep(logging.Handler):
        def __init__(self):
            super().__init__()
            self.records = []

        def emit(self, record):
            self.records.append(record)

    log = logging.Logger("log")
    log.addHandler(Keep())
    for text in texts:
        log.warning(text)
    return log


def queued(*items):
    made = queue.Queue()
    for item in items:
        made.put(item)
    return made


def database(*items):
    made = sqlite3.connect(":memory:")
    made.execute("CREATE TABLE t (item)")
    made.executemany("INSERT INTO t VALUES (?)", [(item,) for item in items])
    made.commit()
    return made


def figure(*values):
    from matplotlib.figure import Figure

    made = Figure()
    made.add_subplot().plot(values)
    return made


def drawn(times):
    made = random.Random(7)
    for _ in range(times):
        made.random()
    return made


def numpy_drawn(times):
    made = np.random.default_rng(7)
    made.random(times)
    return made


def in_context(value):
    made = contextvars.ContextVar("made")
    made.set(value)
    return made


def begun(times):
    made = (n for n in range(2))
    for _ in range(times):
        next(made)
    return made


@dataclass
class Entry:
    amount: int
    tags: list = field(default_factory=list)


LIBRARIES = {
    "array": (lambda: np.array([1, 2]), lambda: np.array([1, 3])),
    "array's dtype": (lambda: np.array([1, 2]), lambda: np.array([1.0, 2.0])),
    "large array": (lambda: np.zeros(1000), lambda: np.concatenate([np.zeros(999), [1]])),
    "frame": (lambda: pd.DataFrame({"a": [1]}), lambda: pd.DataFrame({"a": [2]})),
    "frame's row": (lambda: pd.DataFrame({"a": [1, 2]}), lambda: pd.DataFrame({"a": [1]})),
    "frame's column": (lambda: pd.DataFrame({"a": [1]}), lambda: pd.DataFrame({"b": [1]})),
    "frame's index": (
        lambda: pd.DataFrame({"a": [1]}),
        lambda: pd.DataFrame({"a": [1]}, index=[5]),
    ),
    "series": (lambda: pd.Series([1]), lambda: pd.Series([2])),
    "dataclass": (lambda: Entry(1), lambda: Entry(2)),
    "dataclass's list": (lambda: Entry(1, [1]), lambda: Entry(1)),
    "cache": (cached, lambda: functools.lru_cache(len)),
    "logger": (lambda: logged("a"), lambda: logged("b")),
    "queue": (lambda: queued(1), queued),
    "database": (lambda: database("a"), lambda: database("b")),
    "figure": (lambda: figure(1, 2), lambda: figure(1, 3)),
    "generator of numbers": (lambda: drawn(1), lambda: drawn(2)),
    "numpy's generator": (lambda: numpy_drawn(1), lambda: numpy_drawn(2)),
    "context variable": (lambda: in_context([1]), lambda: in_context([2])),
    "generator": (lambda: begun(0), lambda: begun(1)),
    "text buffer": (lambda: io.StringIO("a"), lambda: io.StringIO("b")),
    "counter": (lambda: collections.Counter("ab"), lambda: collections.Counter("aab")),
    "default dict": (
        lambda: collections.defaultdict(list, a=[1]),
        lambda: collections.defaultdict(list, a=[]),
    ),
    "chain": (lambda: collections.ChainMap({"a": 1}), lambda: collections.ChainMap({"a": 2})),
}


@pytest.mark.parametrize("kind", LIBRARIES)
def test_objects_of_libraries_are_compared_by_what_they_hold(kind):
    one, other = LIBRARIES[kind]
    assert differences(told({"x": one()}), told({"x": other()}))
    assert differences(told({"x": one()}), told({"x": one()})) == []
    assert differences(told({"x": other()}), told({"x": other()})) == []


def test_below_what_is_missing_nothing_more_is_told():
    assert changed("a = {'x': [1, 2, 3], 'y': 1}", "a = {'y': 1}") == [
        "a: dict of 2 != dict of 1",
        "a (keys): [\"'x'\", \"'y'\"] != [\"'y'\"]",
        "a['x']: list of 3 != missing",
    ]


def test_addresses_and_objects_of_libraries_are_no_difference():
    source = (
        "import threading\nclass A: pass\na = {'lock': threading.RLock(), 'of': object(), 'a': A()}"
    )
    assert changed(source, source) == []
    assert not [words for words in state(source).values() if "0x7" in words]


def test_the_order_of_an_ordered_dict_is_its_own():
    one = collections.OrderedDict(a=1, b=2)
    other = collections.OrderedDict(b=2, a=1)
    assert differences(told({"x": one}), told({"x": other}))
    one.move_to_end("a")  # the dict inside of it keeps its own order
    assert differences(told({"x": one}), told({"x": other})) == []


def test_looking_runs_nothing_of_the_programs_and_changes_nothing():
    source = """
class Touchy:
    ran = []
    @property
    def size(self): self.ran.append('size')
    def __len__(self): self.ran.append('len'); return 3
    def __iter__(self): self.ran.append('iter'); return iter(())
    def __getattr__(self, name): self.ran.append(name); raise AttributeError(name)
    def __eq__(self, other): self.ran.append('eq'); return True
    def __hash__(self): return 1
    def __repr__(self): self.ran.append('repr'); return 'x'
touchy = Touchy()
held = {'a': touchy, 'b': {touchy}, touchy: 1}
"""
    module = types.ModuleType("__main__")
    exec(source, vars(module))
    told({name: value for name, value in vars(module).items() if not name.startswith("__")})
    assert vars(module)["Touchy"].ran == []


def test_large_and_deep_and_cyclic_states_end():
    deep = []
    for _ in range(100):
        deep = [deep]
    deep_dict = {}
    deep_dict["self"] = deep_dict
    many = told({"deep": deep, "cycle": deep_dict, "many": list(range(10**5))})
    assert len(many) < 25_000 and many["cycle['self']"] == "the same object as cycle"


def test_the_root_of_a_difference_is_a_variable():
    lines = [
        "todo[1]: 1 != 2",
        "cart.items: 1 != 2",
        "a (keys): 1 != 2",
        "n: 1 != 2",
        "f.<n>[0]: 1 != 2",
    ]
    assert [root(line) for line in lines] == ["todo", "cart", "a", "n", "f"]
    assert root("os.environ['A']: 1 != 2") == "os"


def test_a_difference_goes_by_the_name_of_every_variable_that_holds_the_object():
    held = state("todo = ['milk', 'eggs']\nalias = todo\nlists = {'today': todo}\nother = []")
    lost = state("todo = ['milk']\nalias = todo\nlists = {'today': todo}\nother = []")
    (line,) = [each for each in differences(held, lost) if "eggs" in each]
    assert root(line) == "alias" and names(line, held) == {"alias", "todo", "lists"}


def test_what_is_written_by_a_kernel_is_what_is_told(tmp_path):
    from tests.harness.notebook import Kernel

    file = tmp_path / "state.json"
    look = f"__import__('tests.harness.namespace_state', fromlist=['write']).write({str(file)!r}, get_ipython())"
    with Kernel(tmp_path) as kernel:
        kernel.execute("todo = ['milk']\nalias = todo\nclass Cart:\n    items = []\ncart = Cart()")
        before = kernel.execute("sorted(globals())").result
        for _ in range(2):
            assert kernel.execute(look, silent=True, store_history=False).ok
        written = json.loads(file.read_text())
        after = kernel.execute("sorted(globals())").result
    assert written["alias[0]"] == "'milk'" and written["todo"] == "the same object as alias"
    assert written["Cart.items"] == "list of 0" and written["cart"] == "Cart object"
    assert "_1" not in written and "In" not in written
    new = set(json.loads(after.replace("'", '"'))) - set(json.loads(before.replace("'", '"')))
    assert new <= {"_", "_i2", "_2", "_i3", "__", "_ii", "_i"}


def test_the_namespaces_own_module_is_the_only_one_that_is_followed():
    assert (
        "json.loads" not in told({"json": json}) and told({"json": json})["json"] == "module json"
    )
    assert namespace_state.__name__ in sys.modules
