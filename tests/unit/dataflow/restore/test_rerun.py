"""A re-run in a real shell: inputs put back, equal values cut off, everything as it was after a cancel."""

import os
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

from tape_jupyter.dataflow.isolated import worker
from tape_jupyter.dataflow.plan import plan_rerun
from tape_jupyter.dataflow.restore.rerun import Rerun
from tape_jupyter.dataflow.tracing.tracker import Tracker


class Kernel:
    """A shell whose cells are tracked; `reply` is what `ask()` gives."""

    def __init__(self, *cells):
        InteractiveShell.clear_instance()  # other tests' shell
        self.shell = worker.shell()
        self.replies = {"q": "a"}
        replies = self.replies
        self.shell.user_ns["ask"] = lambda prompt="q": replies[prompt]
        self.tracker = Tracker(self.shell)
        self.tracker.install()
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
    kernel = Kernel("r = ask()", "n = len(r)", "print(n)")
    rerun = kernel.rerun(0)
    assert rerun.ran == [0, 1] and rerun.skipped == {2: "what it depends on did not change"}
    assert kernel.texts[2] == "1\n" and kernel["n"] == 1


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
