"""What the tracker sees of a real shell, and that it never stands in a cell's way."""

import sys
import types
import contextlib
import io
import os

import pytest

import flow_score
from tape_jupyter.dataflow.tracing import ambient, variables
from tape_jupyter.dataflow.tracing.tracker import Tracker


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run cells in a fresh shell with a tracker; `run.tracker`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / ".ipython"))
    shell = flow_score._shell()
    before = ambient.take_ambient()

    def cell(source):
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            cell.result = shell.run_cell(source, store_history=True)
        return (
            cell.tracker.history[len(cell.tracker.history) - 1]
            if len(cell.tracker.history)
            else None
        )

    cell.tracker, cell.shell = Tracker(shell), shell
    cell.tracker.install()
    yield cell
    cell.tracker.uninstall()
    for part in ambient.changed_parts(before, ambient.take_ambient()):
        with contextlib.suppress(Exception):
            ambient.restore_part(part, before[part])
    assert cell.tracker.failures == []
    shell.clear_instance()


def test_a_cell_that_ran_is_an_entry_with_its_values(run):
    run("xs = [1]")
    entry = run("xs.append(2)\ny = len(xs)")
    assert (
        entry.outcome == "ok" and entry.source == "xs.append(2)\ny = len(xs)" and entry.number == 2
    )
    assert {"xs", "y"} <= entry.changed and entry.kept["xs"] == [1, 2]
    assert entry.before["xs"] != entry.after["xs"] and entry.before["y"] == ""


def test_a_function_that_is_not_called_reads_nothing(run):
    run("tone = 'hi'\ndef f(): return tone")
    assert "tone" not in run("print(f.__name__)").reads
    called = run("print(f())")
    assert "tone" in called.reads and called.steps[0].via["tone"] == "f"


def test_of_a_long_cell_too_it_is_seen_what_ran(run):
    run("tone = 'hi'\ndef f(): return tone\ndef g(): return 1")
    table = "\n".join(f"t{n} = {{'a': {n}, 'b': [{n}, {n}], 'c': ({n}, {n})}}" for n in range(80))
    read = run(f"{table}\nn = g()\nprint(f.__name__)").reads
    assert "g" in read and "tone" not in read


def test_an_error_ends_what_is_certain(run):
    entry = run("a = 1\nb = int('no')\nc = 3")
    assert entry.outcome == "error"
    assert "a" in entry.strong and not {"b", "c"} & entry.strong


def test_files_inside_and_outside_the_folder_are_seen_with_what_they_were(run, tmp_path):
    outside = tmp_path.parent / "outside.txt"
    outside.write_text("old")
    entry = run(f"from pathlib import Path\nPath({str(outside)!r}).write_text('new') and None")
    change = entry.files[str(outside)]
    assert (change.before, change.after, change.known) == (b"old", b"new", True)
    assert f"file:{outside}" in run(f"Path({str(outside)!r}).read_text()").reads


def test_ambient_state_is_seen_and_can_be_put_back(run):
    entry = run("import os, random\nos.environ['FLOW_T'] = 'x'\nrandom.seed(3)")
    assert {"environment", "random"} <= set(entry.ambient)
    ambient.restore_part("environment", entry.ambient["environment"].before)
    import os

    assert "FLOW_T" not in os.environ


def test_a_patched_module_can_be_put_back(run):
    import math

    run("import math")
    entry = run("math.pi = 3\nmath.new = 4")
    change = entry.ambient["module math"]
    assert change.after == {"pi": 3, "new": 4} and change.before["new"] is ambient.ABSENT
    ambient.restore_part("module math", change.before)
    assert 3.14 < math.pi < 3.15 and not hasattr(math, "new")


def test_what_is_deleted_is_gone_and_no_value_is_kept(run):
    run("df = [0] * 10")
    entry = run("del df")
    assert entry.after["df"] == "" and "df" in entry.strong and "df" not in entry.kept


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_file_that_is_bound_anew_is_closed_and_written_at_once(run, tmp_path):
    run("f = open('out.txt', 'w'); files = [f]; n = f.write('hello')")
    run("f = None; files.clear(); text = open('out.txt').read()")
    assert run.shell.user_ns["text"] == "hello"


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_what_does_something_when_it_goes_does_it_when_the_notebook_lets_it_go(run):
    run(
        "import tempfile, weakref, pathlib\nclass Lease:\n    def __del__(self): released.append('lease')\nreleased = []"
    )
    run(
        "lease, box, tmp, held = Lease(), {'of': [Lease()]}, tempfile.TemporaryDirectory(), {'a', 'b'}"
    )
    run(
        "class Task: pass\ntask = Task(); end = weakref.finalize(task, released.append, 'task'); where = tmp.name"
    )
    run("lease = None; del box, task; tmp = None; gone = not pathlib.Path(where).exists()")
    assert run.shell.user_ns["released"] == ["lease", "lease", "task"] and run.shell.user_ns["gone"]


def test_a_value_that_was_rebound_before_any_call_was_made_is_not_kept(run):
    run(
        "import weakref\nclass Frame:\n    def __init__(self): self.data = bytearray(100_000)\nframe = Frame()"
    )
    run("old = weakref.ref(frame)")
    entry = run("frame = frame.data[:10]")
    assert (
        run.shell.user_ns["old"]() is None
        and "frame" not in run.tracker.history[0].kept
        and "frame" in entry.kept
    )


def test_a_cell_that_a_cell_runs_is_part_of_it(run):
    run("tone = 'x'")
    entry = run("get_ipython().run_cell('inner = tone')")
    assert len(run.tracker.history) == 2 and "inner" in entry.changed and "tone" in entry.reads


def test_people_who_look_into_their_own_objects_see_them_unmoved(run):
    run(
        "log = []\nclass A:\n    def __getattr__(self, n):\n        log.append(n); raise AttributeError(n)\na = A()"
    )
    run("g = (i for i in range(3))\nb = a")
    run("seen, first = list(log), next(g)")
    assert run.shell.user_ns["seen"] == [] and run.shell.user_ns["first"] == 0


def test_what_fails_in_the_tracker_is_a_note_and_not_the_cells_error(run, monkeypatch):
    monkeypatch.setattr("tape_jupyter.dataflow.tracing.tracker.build", lambda seen: 1 / 0)
    entry = run("ok = 1")
    assert run.result.success and run.shell.user_ns["ok"] == 1
    assert (
        "could not be determined" in entry.notes[0] and "*" in entry.reads and "*" in entry.writes
    )
    run.tracker.failures.clear()


def test_a_loop_of_calls_is_looked_at_no_longer_than_its_first_thousands(run):
    run("def f(x): return x + 1")
    run("for i in range(100_000): f(i)")
    assert run.tracker._watch._left >= -1


def test_a_big_value_is_not_looked_at_again_each_time(run, monkeypatch):
    from tape_jupyter.dataflow.tracing import variables

    run("big = [[i] for i in range(200_000)]")
    asked = []
    real = variables.fingerprint
    monkeypatch.setattr(
        variables, "fingerprint", lambda v, *a, **k: asked.append(type(v)) or real(v, *a, **k)
    )
    before = run("z = big[0][0]")
    assert asked.count(list) <= 1 and before.outcome == "ok"


def test_the_line_of_a_call_is_known(run):
    tracker = run.tracker
    run.shell.user_ns["call"] = tracker.calling
    run("a = 1\nb = 2\ncall()\nc = 3")
    assert tracker.lines == {0: (3,)}


def test_uninstalled_it_hears_nothing(run):
    run("a = 1")
    run.tracker.uninstall()
    run("b = 2")
    assert len(run.tracker.history) == 1
    run.tracker.install()


def test_a_change_that_nobody_looked_for_at_once_is_any_cells_since(run, monkeypatch):
    monkeypatch.setattr("tape_jupyter.dataflow.tracing.variables.SPARE", -1.0)
    run(
        "import logging, io\nbuf = io.StringIO()\nlogging.getLogger('flow.t').addHandler(logging.StreamHandler(buf))"
    )
    hidden = run("logging.getLogger('flow.t').warning('x')")
    assert "buf" not in hidden.writes
    run("print(buf.getvalue())")
    assert "buf" in hidden.writes


def test_the_cell_that_installs_it_is_the_first_entry(run):
    run.tracker.uninstall()
    run.shell.user_ns["tracker"] = run.tracker = Tracker(run.shell)
    first = run("tracker.install()\ntone = 'kind'\ndef say(): return tone")
    second = run("said = say()")
    assert {"tone", "say"} <= first.changed and first.number == 1
    assert "tone" in second.reads and "tone" not in second.writes


def test_what_shows_a_plain_value_is_not_listened_to_and_all_else_is(run):
    run("log = []\ndef add(x):\n    log.append(x)\n    return x")
    run("import sys\nclass Loud:\n    def __repr__(self): return add('loud')")
    entry = run("add(1)\n[add(2), 3]")
    assert "log" in entry.reads and run.tracker._watch._ran.complete
    assert not any("displayhook" in each for each in run.tracker._watch._ran.functions)
    assert "log" in run("Loud()").reads
    assert "log" in run("[sys.displayhook(1),\nadd(3)]").reads
    assert "log" in run("exec(compile('5', 'x', 'single')), add(4)").reads


def test_the_surroundings_are_taken_once_a_cell(run, monkeypatch):
    taken, take = [], ambient.take_ambient
    monkeypatch.setattr(ambient, "take_ambient", lambda *known: taken.append(1) or take(*known))
    run("x = 1")
    taken.clear()
    assert "environment" in run("import os\nos.environ['TAPE_A'] = '1'").ambient
    assert "environment" not in run("x = 2").ambient
    assert len(taken) == 2


SURROUNDINGS = {
    "called": ("random", "import random", "random.random()"),
    "called by C": ("random", "import random", "sorted([2, 1], key=lambda _: random.random())"),
    "handed to C": ("random", "import random", "list(map(random.uniform, [1], [2]))"),
    "C handed to C": ("random", "import random", "list(map(random.getrandbits, [8]))"),
    "held in a list": ("random", "import random\nways = [random.getrandbits]", "list(map(ways[0], [8]))"),
    "a method that was kept": ("random", "import random\ndraw = random.Random.random", "draw(random._inst)"),
    "imported again": ("random", "import random", "from random import seed as start\nstart(3)"),
    "by numpy, C handed to C": ("numpy random", "import numpy as np, numpy.random", "list(map(np.random.rand, [1]))"),
    "by a package of tables": ("numpy random", "import pandas as pd\nt = pd.DataFrame({'a': range(9)})", "t.sample(2)"),
    "an option": ("numpy", "import numpy as np", "np.set_printoptions(precision=3)"),
    "an option by its attribute": ("pandas", "import pandas as pd", "pd.options.display.precision = 3"),
    "an attribute alone": ("logging", "import logging\nlog = logging.getLogger('flow.tracker')", "log.level = 10"),
    "of something inside": (
        "logging", "import logging\nclass Box: pass\nbox = Box()\nbox.log = logging.getLogger('flow.t')",
        "box.log.disabled = True",
    ),
    "a setting": ("process", "import sys", "sys.setrecursionlimit(sys.getrecursionlimit() + 3)"),
    "a setting by a function": (
        "process", "import gc\ndef quiet():\n    gc.disable() if gc.isenabled() else gc.enable()", "quiet()",
    ),
    "a default of sockets": ("process", "from socket import setdefaulttimeout as wait", "wait(77)"),
    "by a thread that goes on": (
        "random",
        "import random, threading\ngo, done = threading.Event(), threading.Event()\n"
        "def work():\n    go.wait(60); random.random(); done.set()\nthreading.Thread(target=work).start()",
        "go.set(); done.wait(60)",
    ),
    "after many calls": ("random", "import random\nways = []", "for n in range(9000): str(n)\nrandom.random()"),
    "by eval": ("random", "import random", "eval('random.random()')"),
}  # fmt: skip


@pytest.mark.parametrize("how", SURROUNDINGS)
def test_what_changed_around_a_cell_is_seen_by_whatever_way_it_was_done(run, how):
    part, before, source = SURROUNDINGS[how]
    run(before)
    run("quiet_one = 1")
    entry = run(source)
    assert entry.outcome == "ok" and part in entry.ambient
    assert part not in run("quiet_one = 2").ambient


def test_what_a_taped_cells_pins_hold_is_no_change_of_any_cell(run, monkeypatch):
    run("import os")

    def pinned(_info):
        run.tracker.taped()
        os.environ["TAPE_PINNED"] = "1"

    run.shell.events.register("pre_run_cell", pinned)
    try:
        taped = run("os.environ['TAPE_PINNED']")
    finally:
        run.shell.events.unregister("pre_run_cell", pinned)
    del os.environ["TAPE_PINNED"]
    assert "environment" not in taped.ambient and "environment" not in run("x = 1").ambient


def test_of_taped_cells_too_each_has_its_own_changes_of_the_process(run):
    def pinned(_info):
        run.tracker.taped()

    run("import logging, sys, types\nlog = logging.getLogger('flow.taped')")
    run.shell.events.register("pre_run_cell", pinned)
    try:
        both = run("sys.modules['stub'] = types.ModuleType('stub')\nlog.setLevel(10)")
        one = run("del sys.modules['stub']")
        assert {"modules", "logging"} <= both.ambient.keys()
        assert "modules" in one.ambient and "logging" not in one.ambient
        assert not {"modules", "logging"} & run("x = 1").ambient.keys()
    finally:
        run.shell.events.unregister("pre_run_cell", pinned)


def test_after_values_were_put_back_the_surroundings_are_taken_anew(run):
    run("import os")
    os.environ["TAPE_B"] = "1"
    run.tracker.resync(set())
    try:
        assert "environment" not in run("x = 1").ambient
    finally:
        del os.environ["TAPE_B"]


def test_what_a_cell_writes_through_an_older_handle_is_its_own(run, tmp_path):
    run("f = open('log.txt', 'w')")
    entry = run("_ = f.write('a'); f.flush()")
    change = entry.files[str(tmp_path / "log.txt")]
    assert (change.before, change.after, change.known) == (b"", b"a", True)
    assert run("x = 1").files == {}
    assert run("f.close()").files == {}
    (tmp_path / "log.txt").write_text("by a person")
    assert run("del f").files == {}


@pytest.fixture
def noting(run):
    """The same in a session that tapes nothing before a cell that says `tape`."""
    run.tracker._tapes = lambda source: "tape" in source
    return run


def test_cells_before_the_first_taped_one_are_told_from_their_text(noting):
    for source in (
        "import os\ntodo = []\nn = 0",
        "def add(x): todo.append(x)",
        "it = (i for i in range(9))",
        "add('a'); os.environ['T_NOTED'] = '1'",
        "n = 5\nold = 1",
        "del old; next(it)",
    ):
        run_entry = noting(source)
        assert run_entry.changed == frozenset() and run_entry.outcome == "ok"
    noting("tape = 1")
    first, add, maker, adds, again, last, taped = noting.tracker.history
    assert {"os", "todo", "n"} <= first.changed and "it" in maker.changed & last.changed
    assert "todo" in adds.changed and adds.kept["todo"] == ["a"] and "todo" in first.unkept
    assert again.kept["n"] == 5 and last.after["old"] == "" and "it" in last.opaque
    assert last.ambient["environment"].after["T_NOTED"] == "1"
    assert taped.changed == {"tape"} and first.before["todo"] == ""


def test_a_noted_cell_that_calls_all_the_same_may_have_done_anything(noting, monkeypatch):
    calls = types.ModuleType("t_noted_calls")
    calls.call = noting.tracker.calling
    monkeypatch.setitem(sys.modules, calls.__name__, calls)
    noting("import t_noted_calls\na = 1")
    entry = noting("t_noted_calls.call()")
    assert entry.calls and entry.reads and "could not be determined" in entry.notes[-1]
    assert noting("b = a").changed == {"b"}


def test_a_cell_within_a_noted_cell_is_part_of_it(noting):
    noting("get_ipython().run_cell('x = 1')")
    noting("tape = 1")
    assert len(noting.tracker.history) == 2 and "x" in noting.tracker.history[0].changed


def test_a_cell_that_never_runs_touches_no_file_watched_or_noted(run, tmp_path):
    path = tmp_path / "a.txt"
    write = f"with open({str(path)!r}, 'w') as f: f.write('a')"
    assert run(write).files and not run("x = = 1").files
    path.unlink()
    run.tracker.uninstall()
    run.tracker = Tracker(run.shell, tapes=lambda source: "tape" in source)
    run.tracker.install()
    assert run(write).files and not run("x = = 1").files


def test_what_a_person_writes_before_a_cell_that_never_runs_is_theirs(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tape_jupyter.files.first_contents.CLOCKS", 0)
    run.tracker.uninstall()
    run.tracker = Tracker(run.shell, tapes=lambda source: "tape" in source)
    run.tracker.install()
    (tmp_path / "a_persons.csv").write_text("a")
    for source in ("x = = 1", "tape = 1"):
        run(source)
    assert list(run.tracker.firsts.changed(str(tmp_path))) == []


SHARED = """
import threading, types
a = [1]
alias = {"a": a}
class Cart: pass
cart = Cart(); cart.items = [1]; view = [cart.items]
box = types.SimpleNamespace(lock=threading.Lock()); lock = [box.lock]
def add(): a.append(2)
def client(): pass
client.sent = []; one = [client]; two = [client]
"""


@pytest.mark.parametrize(
    ("cell", "name"),
    [
        ("a.append(2)", "alias"),
        ("a.append(2)\na = []", "alias"),
        ("a = a.append(2)", "alias"),
        ("add()\na = []", "alias"),
        ("if not a: a = [0]\na.append(2)\na = []", "alias"),
        ("for a in (): pass\na.append(2)\na = []", "alias"),
        ("globals()['a'].append(2)\na = []", "alias"),
        ("del alias['a'][:]\na = []", "alias"),
        ("old = cart.items; cart.items = list(old); old.append(2); del old", "view"),
        ("box.lock.acquire()", "lock"),
        ("one[0].sent.append(1)", "two"),
    ],
)
def test_what_holds_an_object_too_is_seen_to_change_with_it(run, cell, name):
    run(SHARED)
    assert name in run(cell).changed


@pytest.mark.parametrize(
    "cell", ["one.append(client)", "one = [client, 4]", "for one in [1]: pass", "len(one)"]
)
def test_what_shares_only_what_is_unchanged_is_not_looked_at(run, monkeypatch, cell):
    run(SHARED)
    looked = []
    real = variables.fingerprint
    monkeypatch.setattr(variables, "SPARE", 0)
    run("1")
    monkeypatch.setattr(
        variables,
        "fingerprint",
        lambda value, *a, **k: looked.append(value) or real(value, *a, **k),
    )
    two = run.shell.user_ns["two"]
    run(cell)
    assert not any(each is two for each in looked)
