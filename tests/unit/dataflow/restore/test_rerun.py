"""A re-run in a real shell: inputs put back, equal values cut off, everything as it was after a cancel."""

import os
import sys
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

from tape_jupyter.dataflow.isolated import worker
from tape_jupyter.dataflow.plan import plan_rerun
from tape_jupyter.dataflow.restore.rerun import Rerun
from tape_jupyter.dataflow.tracing import ambient
from tape_jupyter.dataflow.tracing.tracker import Tracker


trackers: list[Tracker] = []
"""Of a test: each has a tool of sys.monitoring, of which there are few."""


class Kernel:
    """A shell whose cells are tracked; `reply` is what `ask()` gives."""

    def __init__(self, *cells):
        InteractiveShell.clear_instance()  # other tests' shell
        self.shell = worker.shell()
        self.replies = {"q": "a"}
        replies = self.replies
        self.shell.user_ns["ask"] = lambda prompt="q": replies[prompt]
        self.plain = ambient.PARTS["shell"].capture()
        self.tracker = Tracker(self.shell)
        self.tracker.install()
        trackers.append(self.tracker)
        self.history, self.texts = self.tracker.history, {}
        for cell in cells:
            self.run(len(self.history), cell)

    def run(self, index, source):
        self.texts[index] = worker.execute_in_shell(self.shell, source)["text"]
        return self.history[-1]

    def change(self, changed, reply="b", **options):
        self.replies["q"] = reply
        self.plan = plan_rerun(self.history, [changed])
        return Rerun(self.history, self.plan, self.shell, resync=self.tracker.resync, **options)

    def step(self, rerun):
        entry = rerun.next()
        if entry is not None:
            rerun.prepare(entry)
            rerun.record_outcome(entry, self.run(entry.index, entry.source))
        return entry

    def rerun(self, changed, reply="b", **options):
        rerun = self.change(changed, reply, **options)
        while self.step(rerun) is not None:
            pass
        rerun.finish()
        return rerun

    def __getitem__(self, name):
        return self.shell.user_ns[name]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / ".ipython"))
    yield
    while trackers:
        trackers.pop().uninstall()


def test_what_depends_runs_again_and_nothing_else():
    kernel = Kernel("r = ask()", "k = object()", "print(r)", "print('k')")
    kept = kernel["k"]
    assert kernel.rerun(0).ran == [0, 2] and kernel.texts[2] == "b\n" and kernel["k"] is kept


def test_an_appended_list_holds_each_thing_once_and_stays_the_same_object():
    kernel = Kernel("xs = []; view = xs", "xs.append(ask())", "xs.append('z')", "print(view)")
    view = kernel["view"]
    kernel.rerun(1)
    assert kernel.texts[3] == "['b', 'z']\n" and kernel["view"] is kernel["xs"] is view


def test_a_key_set_by_a_cell_that_did_not_run_stays():
    kernel = Kernel("memo = {}", "memo['a'] = ask()", "memo['b'] = 'k'", "print(memo)")
    kernel.rerun(1)
    assert kernel["memo"] == {"a": "b", "b": "k"} and kernel.texts[3] == "{'a': 'b', 'b': 'k'}\n"


def test_a_value_overwritten_since_is_there_again_for_the_cell_and_gone_after_it():
    kernel = Kernel("n = 1", "r = ask() * n", "n = 7", "print(n)")
    kernel.rerun(1, "bb")
    assert kernel["r"] == "bb" and kernel["n"] == 7


def test_an_equal_value_stops_what_depends_on_it():
    kernel = Kernel("r = ask()", "n = r.count('z')", "print(n)")
    rerun = kernel.rerun(0)
    assert rerun.ran == [0, 1] and rerun.skipped == {2: "what it depends on did not change"}
    assert kernel.texts[2] == "0\n" and kernel["n"] == 0


def test_a_generator_is_made_anew():
    kernel = Kernel("g = iter('wxyz')", "a = next(g)", "b = ask() + next(g)", "c = next(g)")
    kernel.rerun(2)
    assert (kernel["a"], kernel["b"], kernel["c"]) == ("w", "bx", "y") and next(kernel["g"]) == "z"


def test_a_cell_that_reads_what_was_never_written_before_is_taken_in():
    kernel = Kernel(
        "log = []; other = []",
        "r = ask()",
        "(log if r == 'a' else other).append(1)",
        "print(other)",
    )
    rerun = kernel.rerun(1)
    assert kernel.texts[3] == "[1]\n" and kernel["log"] == [] and 3 in rerun.ran


def test_files_and_ambient_state_are_put_back():
    kernel = Kernel(
        "import random, os; random.seed(1); os.environ['T_A'] = 'x'",
        "with open('f', 'w') as f: f.write('1')",
        "with open('f', 'a') as f: f.write(ask())\na = random.random()",
        "with open('f', 'a') as f: f.write('3')\nb = random.random(); os.environ['T_A'] = 'y'",
        "with open('f') as f: print(f.read())",
    )
    a, b = kernel["a"], kernel["b"]
    kernel.rerun(2)
    assert (
        kernel.texts[4] == "1b3\n"
        and (kernel["a"], kernel["b"]) == (a, b)
        and os.environ["T_A"] == "y"
    )


def test_out_keeps_its_numbers():
    kernel = Kernel("ask()", "x = _", "'other'", "print(Out[1], x)")
    kernel.rerun(0)
    assert kernel.texts[3] == "b b\n" and kernel["Out"][1] == "b" and kernel["_"] == "other"


def test_it_stops_at_the_first_new_error_and_later_outputs_stay():
    kernel = Kernel("r = ask()", "n = {'a': 1}[r]", "print(n)")
    rerun = kernel.rerun(0)
    assert (
        rerun.ran == [0, 1] and rerun.stopped.startswith("[2] raised") and kernel.texts[2] == "1\n"
    )


def test_a_cancel_puts_everything_back():
    kernel = Kernel(
        "xs = [1]; box = {'x': xs}",
        "xs.append(ask())",
        "new = len(xs)",
        "with open('f', 'w') as f: f.write(xs[-1])",
        "print(box)",
    )
    before, entries = dict(kernel.shell.user_ns), list(kernel.history)
    rerun = kernel.change(1)
    for _ in range(4):
        kernel.step(rerun)
    rerun.cancel()
    assert kernel["xs"] == [1, "a"]
    assert kernel["box"]["x"] is kernel["xs"] is before["xs"]
    assert Path("f").read_text() == "a" and list(kernel.history) == entries and kernel["new"] == 2


def test_a_cell_that_was_ticked_out_does_not_run():
    kernel = Kernel("r = ask()", "s = r + '!'", "print(r)")
    rerun = kernel.rerun(0, ticked=[0, 2])
    assert rerun.ran == [0, 2] and rerun.skipped == {1: "you left it out"} and kernel["s"] == "a!"


def test_a_second_change_builds_on_the_first():
    kernel = Kernel("r = ask()", "xs = []", "xs.append(r)", "print(xs)")
    kernel.rerun(0, "b")
    kernel.rerun(0, "c")
    assert kernel.texts[3] == "['c']\n" and len(kernel.history) == 4


def test_names_from_before_the_first_cell_are_never_dropped():
    kernel = Kernel("r = ask('q')", "print(r)")
    kernel.rerun(0)
    assert "ask" in kernel.shell.user_ns and kernel.texts[1] == "b\n"


def test_a_value_that_somebody_changed_unseen_is_doubted():
    kernel = Kernel("xs = [1]", "r = ask()", "print(xs, r)")
    kernel["xs"].append(2)
    assert "`xs` is not what [1] left" in kernel.change(1).doubt


def test_a_folder_that_only_the_old_reply_made_is_gone():
    kernel = Kernel(
        "import os", "if ask() == 'a': os.makedirs('made/deep')", "print(os.path.exists('made'))"
    )
    kernel.rerun(1)
    assert kernel.texts[2] == "False\n" and not Path("made").exists()


def test_a_cell_that_was_broken_off_starts_again_from_what_it_found():
    kernel = Kernel("xs = []", "xs.append(ask())", "xs.append('z')", "print(xs)")
    rerun = kernel.change(1)
    kernel.step(rerun)
    entry = rerun.next()
    rerun.prepare(entry)
    kernel["xs"].append("half")  # and then it stopped
    rerun.prepare(entry)
    rerun.record_outcome(entry, kernel.run(entry.index, entry.source))
    while kernel.step(rerun) is not None:
        pass
    rerun.finish()
    assert kernel.texts[3] == "['b', 'z']\n"


def test_a_value_that_is_too_large_to_keep_is_still_there_after_a_re_run(monkeypatch):
    monkeypatch.setattr("tape_jupyter.dataflow.tracing.tracker.KEPT", 1_000)
    kernel = Kernel(
        "r = ask()", "big = 'x' * 5_000_000; k = object(); f = open('f', 'w')", "print(r)"
    )
    names = [kernel[name] for name in ("big", "k", "f")]
    assert kernel.rerun(0).ran == [0, 2] and all(
        kernel[n] is v for n, v in zip(("big", "k", "f"), names, strict=True)
    )


def test_a_value_that_was_let_go_is_made_anew_by_its_cell():
    kernel = Kernel("n = 'n' * 9_000", "r = ask() + n", "n = 7", "print(r[0])")
    assert "n" not in kernel.history[0].kept
    rerun = kernel.rerun(1)
    assert rerun.ran == [0, 1, 3] and kernel.texts[3] == "b\n" and kernel["n"] == 7


def test_a_name_that_nobody_asked_for_can_be_deleted_again():
    kernel = Kernel("x = [1] * 9_000; y = ask()", "r = ask(); del x", "print(r)")
    assert "x" not in kernel.history[0].kept
    assert (
        kernel.rerun(1).ran == [1, 2]
        and kernel.texts[2] == "b\n"
        and "x" not in kernel.shell.user_ns
    )


def test_an_equal_value_stops_what_depends_on_it_though_another_was_let_go():
    kernel = Kernel("t = ask(); n = len(t); u = [t]", "print(n)", "u = 3; t = 4")
    rerun = kernel.rerun(0)
    assert (
        rerun.ran == [0]
        and rerun.skipped == {1: "what it depends on did not change"}
        and kernel["u"] == 3
    )


def test_a_re_run_lets_go_of_nothing_and_the_next_cells_do():
    kernel = Kernel("r = ask() * 9_000", "print(r[0])", "r = 5")
    kernel.tracker.history[0].calls = True
    kernel.rerun(0)
    assert kernel["r"] == 5 and kernel.history[2].kept == {"r": 5}
    for source in ("a = 'a' * 9_000", "a = 'b' * 9_000", "a = 3"):
        kernel.run(0, source)
    assert [entry.kept for entry in kernel.history][-2:] == [{}, {"a": 3}]


def test_who_reads_only_a_part_that_is_as_it_was_does_not_run_again():
    kernel = Kernel(
        "log = [{'role': 'user', 'text': 'hi'}]",
        "log.append({'role': 'assistant', 'text': ask()})",
        "log.append({'role': 'user', 'text': 'bye'})",
        "print(log[0])",
        "print(log[1]['role'])",
        "print(log[1]['text'])",
        "print(len(log))",
    )
    first = kernel["log"][0]
    rerun = kernel.rerun(1)
    assert rerun.ran == [1, 2, 5] and kernel.texts[5] == "b\n" and kernel["log"][0] is first
    assert rerun.skipped[4] == "what it depends on did not change"


def test_a_len_of_the_notebooks_own_may_read_all_of_a_value():
    kernel = Kernel(
        "def len(log): return log[0]",
        "log = [ask()]",
        "print(len(log))",
    )
    assert kernel.rerun(1).ran == [1, 2] and kernel.texts[2] == "b\n"


def test_the_last_of_a_list_that_grew_is_another_part():
    kernel = Kernel(
        "log = ['x']\nr = ask()\nlog += [1, 2] if r == 'a' else [1, 2, 3]",
        "print(log[-1])",
        "print(log[1])",
    )
    kernel.rerun(0)
    assert kernel.texts[1] == "3\n" and kernel.texts[2] == "1\n"


def test_who_keeps_an_equal_part_of_a_new_object_has_the_new_one():
    kernel = Kernel(
        "rows = [{'k': 1}, {'v': ask()}]",
        "first = rows[0]",
        "print(rows[0])",
        "first['n'] = 2",
        "print(rows)",
    )
    rerun = kernel.rerun(0)
    assert kernel["first"] is kernel["rows"][0] and rerun.ran == [0, 1, 3, 4]
    assert kernel.texts[4] == "[{'k': 1, 'n': 2}, {'v': 'b'}]\n"


def test_two_equal_parts_that_were_one_object_are_told_apart():
    kernel = Kernel(
        "one = []\nd = {'a': one, 'b': one if ask() == 'a' else []}",
        "print(d['a'] is d['b'])",
    )
    kernel.rerun(0)
    assert kernel.texts[1] == "False\n"


def test_a_look_at_what_a_part_was_leaves_every_object_as_it_is():
    kernel = Kernel(
        "inner = {'n': 0}\nbox = {'in': inner, 'free': [1]}",
        "inner['n'] = ask(); box['in'] = None if ask() == 'b' else inner",
        "print(box['free'])",
        "print(inner)",
    )
    rerun = kernel.rerun(1)
    assert rerun.ran == [1, 3] and kernel["inner"] == {"n": "b"} and kernel["box"]["in"] is None


def test_an_equal_value_that_holds_an_object_of_one_that_differs_is_not_put_back():
    kernel = Kernel(
        "a = {'r': ask(), 'items': []}",
        "b = {'same': a['items']}",
        "a['items'].append('z')",
        "print(b)",
    )
    kernel.rerun(0)
    assert kernel.texts[3] == "{'same': ['z']}\n" and kernel["b"]["same"] is kernel["a"]["items"]


def test_an_equal_object_that_a_logger_was_given_too_is_the_one_that_it_has():
    kernel = Kernel(
        "import logging\nlog = logging.getLogger('tq.rerun')",
        "h = logging.Handler(len(ask())); log.addHandler(h)",
        "log.removeHandler(h)",
        "print(len(log.handlers))",
    )
    kernel.rerun(1)
    assert kernel.texts[3] == "0\n"


def test_a_module_that_a_cell_takes_out_is_there_again_for_those_before_it():
    kernel = Kernel(
        "import sys\nwith open('tq_out.py', 'w') as f: f.write('SEEN = []')\nsys.path.insert(0, '')",
        "import tq_out",
        "tq_out.SEEN.append(ask())",
        "import tq_out\nprint(tq_out.SEEN)",
        "del sys.modules['tq_out'], tq_out; sys.path.remove('')",
    )
    rerun = kernel.rerun(2)
    assert rerun.doubt is None and kernel.texts[3] == "['b']\n" and "tq_out" not in sys.modules


def test_what_finds_modules_is_there_again_for_those_that_import():
    kernel = Kernel(
        "import sys, types, importlib.abc, importlib.machinery as m\n"
        "class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        return m.ModuleSpec(name, self) if name.startswith('tq_made') else None\n"
        "    def exec_module(self, module): module.NAME = module.__name__\n"
        "sys.meta_path.append(Finder())",
        "made = __import__('tq_made_' + ask())",
        "print(made.NAME)",
        "_ = sys.meta_path.pop(); del sys.modules[made.__name__], made",
    )
    kernel.rerun(1)
    assert kernel.texts[2] == "tq_made_b\n"


def test_an_iterator_goes_on_over_the_list_that_grows():
    kernel = Kernel(
        "import itertools\nrows = [['x'], ['y']]; flat = itertools.chain.from_iterable(rows)",
        "rows.append([ask()]); first = next(flat)",
        "print(list(flat))",
    )
    kernel.rerun(1)
    assert kernel.texts[2] == "['y', 'b']\n"


def test_what_a_cell_might_have_changed_and_did_not_is_as_it_was():
    kernel = Kernel(
        "class P:\n    def __init__(self): self.parts = []\n"
        "    def add(self, s):\n        self.parts.append(s)\n        return self",
        "one, two = P().add('1'), P().add('2')",
        "two.add(ask()).add('end');",
        "one.add('rules');",
        "print(two.parts)",
    )
    assert kernel.rerun(2).ran == [2, 4] and kernel.texts[4] == "['2', 'b', 'end']\n"


def test_what_shows_nothing_of_what_it_holds_may_have_changed():
    kernel = Kernel(
        "import threading\nlocal = threading.local()", "local.v = ask()", "print(local.v)"
    )
    kernel.rerun(1)
    assert kernel.texts[2] == "b\n"


def test_a_file_that_is_there_after_all_is_no_change_of_its_folder():
    kernel = Kernel(
        "from pathlib import Path\nPath('runs').mkdir()",
        "Path('runs/a.txt').write_text(ask());",
        "print(sorted(p.name for p in Path('runs').iterdir()))",
        "print(Path('runs/a.txt').read_text())",
    )
    assert kernel.rerun(1).ran == [1, 3] and kernel.texts[3] == "b\n"


def test_a_folder_with_another_file_has_changed():
    kernel = Kernel(
        "from pathlib import Path\nPath('runs').mkdir()",
        "Path('runs', ask() + '.txt').write_text('k');",
        "print(sorted(p.name for p in Path('runs').iterdir()))",
    )
    kernel.rerun(1)
    assert kernel.texts[2] == "['b.txt']\n"


def test_the_environment_counts_by_its_variables():
    kernel = Kernel(
        "import os\nos.environ.pop('TAPE_A', None); os.environ.pop('TAPE_B', None)",
        "name, value = 'TAPE_A', ask()\nos.environ.update({name: value, 'TAPE_B': 'k'})",
        "print(os.environ['TAPE_B'])",
        "print(os.environ['TAPE_A'])",
        "del os.environ['TAPE_A'], os.environ['TAPE_B']",
    )
    rerun = kernel.rerun(1)
    assert 2 not in rerun.ran and kernel.texts[3] == "b\n" and "TAPE_A" not in os.environ


@pytest.mark.parametrize(
    "make",
    [
        "from dataclasses import dataclass, field\n@dataclass\nclass R:\n    n: int = 0\n"
        "    tags: list = field(default_factory=list, metadata={'k': 1})\nx, y = R(), R()",
        "from collections import namedtuple\nT = namedtuple('T', 'n tags')\nclass R(T):\n    pass\n"
        "x, y = R(0, []), R(0, [])",
    ],
)
def test_objects_of_dataclasses_and_named_tuples_are_put_back(make):
    kernel = Kernel(
        make, "x.tags.append(ask())", "y.tags.append(1)", "print(y.tags)", "print(x.tags)"
    )
    y = kernel["y"]
    rerun = kernel.rerun(1)
    assert rerun.ran == [1, 4] and not rerun.plan.hermetic
    assert kernel.texts[4] == "['b']\n" and kernel["y"] is y and y.tags == [1]


def test_a_table_that_was_put_back_has_nothing_in_common_with_another():
    kernel = Kernel(
        "import pandas as pd\ndf, ref = pd.DataFrame({'a': [1, 2]}), pd.DataFrame({'a': [0]})",
        "df.loc[1, 'a'] = len(ask()) + (ask() == 'b')",
        "ref.loc[0, 'a'] = 5",
        "print(df['a'].sum())",
    )
    assert kernel.rerun(1).ran == [1, 3] and kernel.texts[3] == "3\n"


def test_a_method_of_a_builtin_class_is_a_value_like_another():
    kernel = Kernel(
        "ops = {'up': str.upper, 'low': str.lower}\ncurrent = {'op': 'low'}",
        "current['op'] = 'up' if ask() == 'b' else 'low'",
        "print(ops[current['op']]('aB'))",
        "print(sorted(ops))",
    )
    assert kernel.rerun(1).ran == [1, 2] and kernel.texts[2] == "AB\n"


@pytest.mark.parametrize(
    ("make", "change", "same", "other"),
    [
        ("log = [{'role': 'u', 'text': 'hi'}]", "log.append({'role': 'a', 'text': ask()})", "[m['role'] for m in log]", "[m for m in log]"),
        ("log = []", "log.append({'role': 'a', 'text': ask()})", "sum(len(m.get('text')) for m in log)", "[m.get('text') for m in log]"),
        ("class C:\n    mode, depth = 'x', 1\nc = C()", "C.mode = ask()", "c.depth", "c.mode"),
        ("class C:\n    a, b = 'x', 1\n    @property\n    def both(self): return self.a, self.b\nc = C()", "c.a = ask()", "c.b", "c.both"),
        ("from dataclasses import dataclass, replace\n@dataclass(frozen=True)\nclass C:\n    m: str = 'm'\n    t: float = 0.5", "c = replace(C(), m=ask())", "c.t", "c.m"),
        ("from collections import namedtuple\nP = namedtuple('P', 'id text')", "rows = [P(1, 'k'), P(2, ask())]", "[p.id for p in rows]", "[p.text for p in rows]"),
        ("d = {'a': 1, 'b': 2}", "d['a' if ask() == 'a' else 'c'] = 1", "d.get('b')", "d.get('c')"),
        ("import types\nd = types.SimpleNamespace(x=[1, 2])", "d.y = ask()", "d.x[-1]", "d.y"),
    ],
)  # fmt: skip
def test_what_an_expression_reads_is_compared_by_its_parts(make, change, same, other):
    kernel = Kernel(make, change, f"print({same})", f"print({other})")
    was = kernel.texts[2]
    rerun = kernel.rerun(1)
    assert rerun.ran == [1, 3] and kernel.texts[2] == was
    shown = worker.execute_in_shell(kernel.shell, f"print({same}); print({other})")["text"]
    assert shown == kernel.texts[2] + kernel.texts[3]


def test_a_name_that_a_function_reads_too_is_read_as_a_whole():
    kernel = Kernel(
        "d = {'a': 1, 'r': ask()}\ndef f(x): return x, d['r']", "print(f(d['a']))", "print(d['a'])"
    )
    assert kernel.rerun(0).ran == [0, 1] and kernel.texts[1] == "(1, 'b')\n"


@pytest.mark.parametrize(
    "setting",
    [
        "%pprint",
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "InteractiveShell.ast_node_interactivity = 'all'",
        "get_ipython().ast_node_interactivity = 'all'",
    ],
)
def test_a_cell_shows_its_results_as_it_did_whatever_was_set_since(setting):
    shows = "d['r']\nd"
    kernel = Kernel(
        "d = {n: 'x' * 30 for n in range(6)}; d['r'] = 'a'", "d['r'] = ask()", shows, setting, shows
    )
    before, after = kernel.texts[2], kernel.texts[4]
    kernel.rerun(1)
    try:
        assert before != after and kernel.texts[2] == before.replace("'a'", "'b'")
        assert kernel.texts[4] == after.replace("'a'", "'b'")
        shown = worker.execute_in_shell(kernel.shell, shows)["text"]
        assert shown == kernel.texts[4]
    finally:
        ambient.PARTS["shell"].restore(kernel.plain)
