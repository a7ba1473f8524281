"""A stranger's notebook runs in a process that has nothing of ours: no key, no home, no network."""

import json
import os
import sys

import pytest
from tape_jupyter.headless import run as headless_run
from tape_jupyter.isolation import namespaces
from tape_jupyter.bundle.proof import process
from tape_jupyter.errors import BundleError
from tests.harness.notebook import ROOT, notebook


@pytest.fixture(autouse=True)
def found(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def run(path, tmp_path, **more):
    started, seen = [], []
    job = process.ProofJob(str(path), str(tmp_path / "home"), **more)
    done = process.run_proof(job, lambda *told: started.append(told), seen.append)
    assert tuple(seen) == done.outs
    return done.outs, started


def text(out):
    return "".join(each.get("text", "") for each in out.outputs)


def test_it_has_no_key_no_home_and_no_variable_that_was_not_chosen(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_UNUSUAL_PASSPHRASE", "tiger")
    look = "import os, json; print(json.dumps(dict(os.environ)))"
    outs, started = run(notebook(tmp_path / "n.ipynb", look, "1 / 0", "print('never')"), tmp_path)
    env = json.loads(text(outs[0]))
    assert "tiger" not in env.values() and env["HOME"] == str(tmp_path / "home")
    assert started == [(1, 3, look), (2, 3, "1 / 0")]
    assert [out.ran for out in outs] == [True, True, False]
    assert outs[1].raises == "ZeroDivisionError"


@pytest.mark.skipif(not namespaces.can_cut(), reason="needs unshare -rn")
def test_there_is_no_network_even_for_what_goes_round_the_guard(tmp_path):
    around = (
        "import subprocess, sys; print(open('/proc/net/dev').read().count(':'), '/proc/net/route')"
    )
    outs, _ = run(
        notebook(tmp_path / "n.ipynb", around, "print(len(open('/proc/net/route').readlines()))"),
        tmp_path,
    )
    assert text(outs[1]).strip() in ("0", "1")  # a heading at most: no route leads anywhere


def test_a_kernel_without_the_tape_is_refused_before_anything_runs(tmp_path, monkeypatch):
    path = notebook(tmp_path / "n.ipynb", "open('ran', 'w').close()")
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    with pytest.raises(BundleError, match="kernel|ended"):
        run(path, tmp_path, python=str(bare))
    assert not (tmp_path / "ran").exists()


def test_its_kernel_may_be_asked_something_before_the_first_cell_and_after_the_last(tmp_path):
    path = notebook(tmp_path / "n.ipynb", "told", "text = 'é' * 300_000")
    job = process.ProofJob(
        str(path), str(tmp_path / "home"), before="told = 7", after="text + str(told)"
    )
    done = process.run_proof(job, lambda *_: None, lambda _: None)
    assert done.after == "é" * 300_000 + "7"
    assert done.outs[0].outputs[0]["data"]["text/plain"] == "7" and not done.outs[0].raises


def test_after_a_cell_that_had_raised_when_it_was_saved_the_others_run(tmp_path):
    path = notebook(tmp_path / "n.ipynb", "1 / 0", "print('on')")
    nb = json.loads(path.read_text())
    nb["cells"][0]["outputs"] = [
        {"output_type": "error", "ename": "ZeroDivisionError", "evalue": "", "traceback": []}
    ]
    path.write_text(json.dumps(nb))
    outs, _ = run(path, tmp_path)
    assert outs[1].ran and text(outs[1]) == "on\n"


@pytest.mark.slow
def test_sets_are_in_the_order_of_the_recording(tmp_path):
    show = (
        "print(sorted(map(hash, 'abc'))); print({'north', 'south', 'east', 'west', 'up', 'down'})"
    )
    path = notebook(tmp_path / "n.ipynb", show)
    first, second = (text(run(path, tmp_path)[0][0]) for _ in range(2))
    assert first == second
    headless_run.record_notebook(path, lambda *_: None, lambda _: None, env={"PYTHONHASHSEED": "7"})
    assert process.hash_seed(path) == "0"  # nothing was taped
    path = notebook(
        tmp_path / "taped.ipynb",
        "%%tape record\n@tape.tool\ndef f():\n    return 1\nf()".replace(
            "@", "import tape_jupyter as tape\n@"
        ),
        show,
    )
    headless_run.record_notebook(path, lambda *_: None, lambda _: None, env={"PYTHONHASHSEED": "7"})
    assert process.hash_seed(path) == "7"
    assert text(run(path, tmp_path)[0][1]) == text(Saved(path, 1)) != first


class Saved:
    """A cell's outputs in the file."""

    def __init__(self, path, at):
        self.outputs = json.loads(path.read_text())["cells"][at]["outputs"]
        for each in self.outputs:
            each["text"] = "".join(each.get("text", ""))


def test_the_project_is_found_only_by_its_own_interpreter(tmp_path):
    assert process.isolated_environment(tmp_path)["PYTHONPATH"] == str(ROOT)
    other = process.isolated_environment(tmp_path, "/somewhere/venv/bin/python")
    assert "PYTHONPATH" not in other and other["PATH"].startswith(
        "/somewhere/venv/bin" + os.pathsep
    )


def test_cells_that_a_run_all_never_reached_are_not_run_in_a_replay(tmp_path):
    path = notebook(tmp_path / "n.ipynb", "1 / 0", "open('reached', 'w').close()")
    headless_run.record_notebook(path, lambda *_: None, lambda _: None)
    outs, _ = run(path, tmp_path)
    assert [out.ran for out in outs] == [True, False] and not (tmp_path / "reached").exists()
