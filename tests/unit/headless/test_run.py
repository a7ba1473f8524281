"""A whole notebook in a fresh kernel: recorded, replayed, compared, and never lost."""

import importlib.util
import json
import os
import shutil
import threading

import nbformat
import pytest
from tape_jupyter.reports import doctor
from tape_jupyter.headless import run as headless_run
from tape_jupyter.bundle.proof import process, run as proof_run
from tape_jupyter.errors import TapeUsageError
from tests.harness.notebook import clean_env, notebook
from tests.harness.provider import Provider
from tests.harness.tapes import ASK


@pytest.fixture(autouse=True)
def newcomer(tmp_path, monkeypatch):
    """Kernels get this process's environment: a newcomer's, without keys."""
    wanted = clean_env(tmp_path)
    for name in set(os.environ) - set(wanted):
        monkeypatch.delenv(name)
    for name, value in wanted.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def provider():
    with Provider(vary=True) as running:
        yield running


class Heard:
    """What a run said while it ran."""

    def __init__(self):
        self.started, self.runs = [], []

    def starting(self, number, count, title):
        self.started.append((number, count, title))

    def told(self, run):
        self.runs.append(run)


def run(how, path, **more):
    heard = Heard()
    return how(path, heard.starting, heard.told, **more), heard


def statuses(runs):
    return [run.status for run in runs]


def saved_outputs(path):
    return [cell.get("outputs") for cell in nbformat.read(path, as_version=4).cells]


def test_what_was_recorded_replays_the_same_with_the_provider_gone(tmp_path):
    with Provider(vary=True) as provider:
        path = notebook(
            tmp_path / "n.ipynb",
            ASK.replace("URL", provider.url),
            "print(ask('one'))",
            "ask('two')",
        )
        (recorded, written), heard = run(headless_run.record_notebook, path)
    assert (statuses(recorded), written) == (["ok", "ok", "ok"], path)
    assert heard.started[1] == (2, 3, "print(ask('one'))") and heard.runs == recorded
    assert "1 call" in recorded[1].tape
    before = path.read_bytes()
    replayed, _ = run(headless_run.replay_notebook, path)
    assert statuses(replayed) == ["same", "same", "same"], replayed
    assert path.read_bytes() == before


@pytest.mark.slow
def test_two_notebooks_of_a_folder_that_begin_with_the_same_cell_have_a_recording_each(
    tmp_path, provider
):
    setup = ASK.replace("URL", provider.url) + "\nimport time\nstarted = time.time()"
    for name in ("churn", "sales"):
        recorded, _ = run(
            headless_run.record_notebook,
            notebook(tmp_path / f"{name}.ipynb", setup, f"ask({name!r})"),
        )
        assert statuses(recorded[0]) == ["ok", "ok"], recorded[0]
    for name in ("churn", "sales"):
        assert statuses(run(headless_run.replay_notebook, tmp_path / f"{name}.ipynb")[0]) == [
            "same",
            "same",
        ]


@pytest.mark.slow
def test_what_the_tape_is_asked_between_cells_does_not_count_and_what_a_program_prints_does(
    tmp_path, provider
):
    asks = "%tape status", "%tape show", "# how far is it?\n%tape calls\n%tape gaps", "%tape frame"
    cells = (
        ASK.replace("URL", provider.url),
        "ask('one')",
        *asks,
        "print('mode: record'); ask('two')",
        "%tape status",
    )
    path = notebook(tmp_path / "n.ipynb", *cells)
    (recorded, _), _ = run(headless_run.record_notebook, path)
    assert statuses(recorded) == ["ok"] * len(cells), recorded
    assert "mode:         record" in saved_outputs(path)[2][0]["text"]
    assert statuses(run(headless_run.replay_notebook, path)[0]) == ["same"] * len(cells)
    edited = nbformat.read(path, as_version=4)
    edited.cells[6].outputs[0].text = "mode: replay\n"
    edited.cells[7].source = "%tape show nothing-of-that-name"
    nbformat.write(edited, path)
    replayed, _ = run(headless_run.replay_notebook, path)
    assert statuses(replayed) == ["same"] * 6 + ["differs", "failed"], replayed
    assert "there is no such cassette" in "\n".join(replayed[7].messages)


BOARD = """from IPython.display import display, update_display
import sys
print("one"); sys.stdout.flush()
print("two"); sys.stdout.flush()
display("nothing yet", display_id="board")
print("three")"""


@pytest.mark.spread(2)
@pytest.mark.parametrize("door", ["tape replay", "bundle"])
def test_a_display_that_a_later_cell_updates_is_judged_as_it_stands_in_the_end(
    tmp_path, provider, door
):
    update = "update_display(ask('one'), display_id='board')"
    path = notebook(tmp_path / "n.ipynb", ASK.replace("URL", provider.url), BOARD, update)
    run(headless_run.record_notebook, path)
    shown = saved_outputs(path)[1]
    assert [out["output_type"] for out in shown] == ["stream", "display_data", "stream"]
    assert shown[0]["text"] == "one\ntwo\n" and "nothing yet" not in str(shown[1])
    assert replayed_by(door, path, tmp_path) == [True, True, True]
    changed = nbformat.read(path, as_version=4)
    changed.cells[1].outputs[1].data["text/plain"] = "'nothing yet'"
    nbformat.write(changed, path)
    assert replayed_by(door, path, tmp_path) == [True, False, True]


CLEARS = """from IPython.display import clear_output
get_ipython().events.register("post_run_cell", lambda *_: clear_output())"""
AWAY = """import tape_jupyter as tape
@tape.tool
def note(text):
    with open("AWAY", "a") as file:
        file.write(text)
    return len(text)"""
CALLS = {
    "cleared": (CLEARS, "note('milk')"),
    "in a block": ("1", "with tape.replaying('n.tapes/main.tape.yaml'):\n    note('milk')"),
}


@pytest.mark.spread(4)
@pytest.mark.parametrize("door", ["tape replay", "bundle"])
@pytest.mark.parametrize("how", CALLS)
def test_what_a_tool_did_not_do_again_is_said_whatever_the_program_does_to_its_outputs(
    tmp_path, how, door
):
    folder, elsewhere = tmp_path / "book", tmp_path / "elsewhere.txt"
    folder.mkdir()
    before, call = CALLS[how]
    path = notebook(
        folder / "n.ipynb", AWAY.replace("AWAY", str(elsewhere)), before, "note('milk')"
    )
    assert statuses(run(headless_run.record_notebook, path)[0][0])[2] == "ok"
    changed = nbformat.read(path, as_version=4)
    changed.cells[2].source = call
    changed.cells[2].outputs = []
    nbformat.write(changed, path)
    if door == "bundle":
        outs = process.run_proof(
            process.ProofJob(str(path), str(tmp_path / "home")), lambda *_: None, lambda _: None
        ).outs
        assert "elsewhere.txt" in str(outs[2].unheld), outs[2]
        return
    cell = run(headless_run.replay_notebook, path)[0][2]
    assert (cell.status, cell.good) == ("differs", False) and "elsewhere.txt" in str(
        cell.messages
    ), cell


PLACES = """import tape_jupyter as tape
from pathlib import Path
made, root = {}, Path.cwd()
@tape.tool
def make(name):
    place = Path.cwd() / name
    place.write_text(f"in {place}")
    made[name] = [place, str(place)]
    print("made", place)
    return f"made {place}"
told = make("a.txt")
told, made["a.txt"][0].relative_to(root), made["a.txt"][0].read_text()"""


def test_a_clone_of_the_folder_replays_the_same_with_its_own_paths(tmp_path):
    folder, clone = tmp_path / "book", tmp_path / "clone of ada" / "book"
    folder.mkdir()
    path = notebook(folder / "n.ipynb", PLACES, "print(told, made)")
    assert statuses(run(headless_run.record_notebook, path)[0][0]) == ["ok", "ok"]
    shutil.move(folder, clone)
    replayed, _ = run(headless_run.replay_notebook, clone / "n.ipynb")
    assert statuses(replayed) == ["same", "same"], replayed
    assert "not as the recorded" not in "".join(each.tape for each in replayed)


WRITES = """import os, pathlib
import tape_jupyter as tape
@tape.tool
def note(text):
    return len(text)
pathlib.Path("report.txt").write_text(f"{note('milk')} of {os.environ['SHIFT']}, {pathlib.Path.cwd()}")
pathlib.Path("same.txt").write_text(f"in {pathlib.Path.cwd()}")
None"""


def test_a_file_that_a_cell_writes_otherwise_counts_as_an_output_does(tmp_path, monkeypatch):
    folder, clone = tmp_path / "book", tmp_path / "clone" / "book"
    folder.mkdir()
    path = notebook(folder / "n.ipynb", WRITES)
    monkeypatch.setenv("SHIFT", "night")
    assert statuses(run(headless_run.record_notebook, path)[0][0]) == ["ok"]
    assert statuses(run(headless_run.replay_notebook, path)[0]) == ["same"]
    monkeypatch.setenv("SHIFT", "day")
    shutil.copytree(folder, clone)
    for each in (path, clone / "n.ipynb"):
        cell = run(headless_run.replay_notebook, each)[0][0]
        assert (cell.status, cell.good) == ("differs", False)
        told = "".join(cell.messages)
        assert "recorded cell left them: the file report.txt" in told and "same.txt" not in told


def replayed_by(door, path, tmp_path):
    """Whether each cell is as it was saved."""
    if door == "tape replay":
        return [cell.good for cell in run(headless_run.replay_notebook, path)[0]]
    saved = nbformat.read(path, as_version=4).cells
    outs = process.run_proof(
        process.ProofJob(str(path), str(tmp_path / "home")), lambda *_: None, lambda _: None
    ).outs
    return [not proof_run.judge(cell, out, {}).why for cell, out in zip(saved, outs, strict=True)]


def test_a_stream_that_is_read_on_in_the_next_cell_replays_the_same(tmp_path):
    begin = """import httpx
body = {"model": "m", "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "all of it"}]}
client = httpx.Client()
pieces = client.send(client.build_request("POST", "URL/v1/messages", json=body), stream=True).iter_text()
first = next(pieces)"""
    with Provider() as provider:
        path = notebook(
            tmp_path / "n.ipynb",
            begin.replace("URL", provider.url),
            "print(len(first + ''.join(pieces)))",
        )
        run(headless_run.record_notebook, path)
    assert "tape: a call ended after its cell did" in str(saved_outputs(path)[1])
    assert statuses(run(headless_run.replay_notebook, path)[0]) == ["same", "same"]


def test_a_reply_edited_by_hand_shows_as_a_difference(tmp_path, provider):
    path = notebook(
        tmp_path / "n.ipynb",
        ASK.replace("URL", provider.url),
        "text = ask('one'); print('said:', text)",
    )
    run(headless_run.record_notebook, path)
    said = saved_outputs(path)[1][0]["text"].removeprefix("said: ").strip()
    tape = tmp_path / "n.tapes" / "main.tape.yaml"
    tape.write_text(tape.read_text().replace(said, "something else"))
    replayed, _ = run(headless_run.replay_notebook, path)
    assert statuses(replayed) == ["same", "differs"]
    assert (
        f"-said: {said}" in replayed[1].messages and "+said: something else" in replayed[1].messages
    )


def test_a_call_that_was_never_recorded_is_missed_and_the_rest_is_not_run(tmp_path, provider):
    path = notebook(
        tmp_path / "n.ipynb", ASK.replace("URL", provider.url), "print(ask('one'))", "print('end')"
    )
    run(headless_run.record_notebook, path)
    changed = nbformat.read(path, as_version=4)
    changed.cells[1].source = "print(ask('another'))"
    nbformat.write(changed, path)
    replayed, _ = run(headless_run.replay_notebook, path)
    assert statuses(replayed) == ["same", "missed", "not run"]
    assert "UnmatchedCall" in replayed[1].messages[0] and len(provider.requests) == 1


def test_a_recorded_raise_replays_as_the_same_raise(tmp_path, provider):
    path = notebook(
        tmp_path / "n.ipynb",
        ASK.replace("URL", provider.url),
        "raise ValueError(ask('one'))",
        "print(1)",
    )
    (recorded, _), _ = run(headless_run.record_notebook, path)
    assert statuses(recorded) == ["ok", "failed", "not run"]
    assert [bool(out) for out in saved_outputs(path)] == [False, True, False]
    replayed, _ = run(headless_run.replay_notebook, path)
    assert statuses(replayed) == ["same", "same", "not run"], replayed
    assert [each.good for each in replayed] == [True, True, True]
    assert (
        headless_run.behind(replayed) == "[2] raised as recorded; [3] was not run, as when recorded"
    )


def test_outputs_of_a_run_that_raised_are_kept_and_those_of_an_earlier_run_moved_beside(tmp_path):
    path = notebook(tmp_path / "n.ipynb", "print('new')", "1 / 0", "print('later')", "2")
    old = nbformat.read(path, as_version=4)
    old.cells[2].outputs = [nbformat.v4.new_output("stream", name="stdout", text="kept\n")]
    old.cells[3].execution_count = 4
    nbformat.write(old, path)
    whole, notes = path.read_bytes(), []
    (recorded, _), _ = run(headless_run.record_notebook, path, note=notes.append)
    assert statuses(recorded) == ["ok", "failed", "not run", "not run"] and recorded[
        1
    ].messages == ("ZeroDivisionError: division by zero",)
    assert headless_run.behind(recorded) == "[2] raised; [3], [4] were not run"
    first, _, *unrun = saved_outputs(path)
    assert first[0]["text"] == "new\n" and unrun == [[], []]
    assert nbformat.read(path, as_version=4).cells[3].execution_count is None
    assert (tmp_path / "n.before.ipynb").read_bytes() == whole
    assert notes == [
        "[3] was not run: the outputs that stood there, of an earlier run, are now in n.before.ipynb"
    ]


def test_an_interrupt_keeps_what_ran(tmp_path):
    path = notebook(tmp_path / "n.ipynb", "print('new')", "print('never')")
    heard = Heard()

    def starting(number, *_):
        if number == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        headless_run.record_notebook(path, starting, heard.told)
    assert saved_outputs(path)[0][0]["text"] == "new\n" and saved_outputs(path)[1] == []


def test_a_notebook_saved_meanwhile_is_not_overwritten(tmp_path):
    path = notebook(tmp_path / "n.ipynb", "print('new')")
    heard = Heard()

    def starting(*_):
        path.write_text(path.read_text() + "\n")

    before = path.read_text() + "\n"
    _, written = headless_run.record_notebook(path, starting, heard.told)
    assert written == tmp_path / "n.recorded.ipynb" and path.read_text() == before
    assert saved_outputs(written)[0][0]["text"] == "new\n"


def test_a_failed_write_leaves_the_notebook_and_no_litter(tmp_path, monkeypatch):
    path = notebook(tmp_path / "n.ipynb", "print('new')")
    whole, nb = path.read_bytes(), nbformat.read(path, as_version=4)

    def fail(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        headless_run.write_notebook(nb, path, headless_run._read_stamp(path))
    assert path.read_bytes() == whole and [p.name for p in tmp_path.glob("*n*.tmp")] == []


def test_a_link_to_a_notebook_stays_a_link(tmp_path):
    real = notebook(tmp_path / "real" / "n.ipynb", "print(1)")
    real.chmod(0o640)
    link = tmp_path / "link.ipynb"
    link.symlink_to(real)
    headless_run.write_notebook(
        nbformat.read(real, as_version=4), link, headless_run._read_stamp(link)
    )
    assert link.is_symlink() and real.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("n.txt", "", "not a notebook"),
        ("none.ipynb", None, "no such notebook"),
        ("n.ipynb", "{", "cannot|not a notebook"),
        ("n.ipynb", "[]", "not a notebook"),
        (
            "n.ipynb",
            json.dumps(
                {
                    "nbformat": 4,
                    "nbformat_minor": 5,
                    "metadata": {},
                    "cells": [{"cell_type": "code"}],
                }
            ),
            "not a",
        ),
    ],
)
def test_what_is_no_notebook_is_said_in_one_line(tmp_path, name, text, said):
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    with pytest.raises(TapeUsageError, match=said) as caught:
        headless_run.read_notebook(path)
    assert "\n" not in str(caught.value)


def test_a_kernel_without_tape_jupyter_runs_nothing(tmp_path, monkeypatch):
    """Its extension does not load, which IPython only warns of: in replay it would go live."""
    path = notebook(tmp_path / "n.ipynb", "open('ran', 'w')")
    (tmp_path / "tape_jupyter.py").write_text("raise ImportError('an older Python')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(TapeUsageError, match="Nothing was run"):
        run(headless_run.replay_notebook, path)
    assert not (tmp_path / "ran").exists()


def test_a_kernel_that_is_not_installed_is_named(tmp_path):
    path = notebook(tmp_path / "n.ipynb", "1")
    nb = nbformat.read(path, as_version=4)
    nb.metadata["kernelspec"] = {"name": "fortran", "display_name": "F", "language": "fortran"}
    nbformat.write(nb, path)
    with pytest.raises(TapeUsageError, match="'fortran' is not installed"):
        run(headless_run.replay_notebook, path)


@pytest.mark.slow
def test_a_cell_that_takes_too_long_and_a_kernel_that_dies_are_failures(tmp_path):
    before = threading.active_count()
    slow = notebook(tmp_path / "slow.ipynb", "import threading; threading.Event().wait()", "1")
    (runs, _), _ = run(headless_run.record_notebook, slow, timeout=2)
    assert statuses(runs) == ["failed", "not run"] and "Timeout" in runs[0].messages[0]
    dead = notebook(tmp_path / "dead.ipynb", "import os; os._exit(3)", "1")
    (runs, _), _ = run(headless_run.record_notebook, dead)
    assert statuses(runs) == ["failed", "not run"] and "DeadKernel" in runs[0].messages[0]
    assert threading.active_count() <= before + 2


def older(path, kernel="python3"):
    """The notebook as some tools write it: version 4.0, though its cells have ids, odd and the same; an
    output of a stream without its name, a cell without a list of outputs, none with a count.
    """
    told = json.loads(path.read_text())
    told["nbformat_minor"] = 0
    told["metadata"]["kernelspec"] = {"name": kernel, "display_name": "K", "language": "python"}
    for cell in told["cells"]:
        cell["id"] = "a b"
        del cell["outputs"], cell["execution_count"]
    told["cells"][0]["outputs"] = [{"output_type": "stream", "text": "said before"}]
    path.write_text(json.dumps(told))


def test_a_notebook_that_is_valid_for_nbclient_only_is_recorded_and_replayed(tmp_path, provider):
    setup = "%load_ext tape_jupyter\n" + ASK.replace("URL", provider.url)
    path = notebook(tmp_path / "old.ipynb", setup, "%%tape record\nprint(ask('one'))")
    older(path)
    (runs, _), _ = run(headless_run.record_notebook, path)
    assert statuses(runs) == ["ok", "ok"]
    replayed, _ = run(headless_run.replay_notebook, path)
    assert statuses(replayed) == ["same", "same"] and len(provider.requests) == 1


def test_without_ipykernel_the_sentence_names_its_installation(tmp_path, monkeypatch):
    path = notebook(tmp_path / "far.ipynb", "1")
    older(path, "not-here")
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *more: name != "ipykernel" and find(name, *more) or None,
    )
    with pytest.raises(TapeUsageError, match=r"is not installed \(pip install ipykernel\)"):
        run(headless_run.record_notebook, path)
    assert "pip install ipykernel" in doctor.check_kernel().text


@pytest.mark.slow
def test_another_kernel_runs_a_notebook_whose_own_is_not_installed(tmp_path, provider):
    setup = "%load_ext tape_jupyter\n" + ASK.replace("URL", provider.url)
    path = notebook(tmp_path / "far.ipynb", setup, "%%tape record\nprint(ask('one'))")
    older(path, "not-here")
    with pytest.raises(TapeUsageError, match=r"'not-here' is not installed .* --kernel NAME"):
        run(headless_run.record_notebook, path)
    other = {"TAPE_KERNEL": "python3"}
    (runs, _), _ = run(headless_run.record_notebook, path, env=other)
    replayed, _ = run(headless_run.replay_notebook, path, env=other)
    assert statuses(runs) == ["ok", "ok"] and statuses(replayed) == ["same", "same"]
    assert json.loads(path.read_text())["metadata"]["kernelspec"]["name"] == "not-here"


@pytest.mark.parametrize(
    ("source", "line"),
    [("", ""), ("\n \n", ""), ("%%tape record\n\nx = 1\n", "x = 1"), ("%%tape\n", "%%tape")],
)
def test_a_cell_is_named_by_its_first_line_and_an_empty_one_by_nothing(source, line):
    assert headless_run.first_line(source) == line
