"""What a newcomer meets in the first hour, in real kernels: the mode that was set, the line below a cell, git."""

import json
import re

import nbformat

import pytest

from tests.harness.notebook import Kernel, notebook, run_notebook
from tests.harness.tapes import ASK

LOAD = "%load_ext tape_jupyter"
LOOK = """import tape_jupyter as tape
@tape.tool
def look(n):
    return n
"""


def saved(ran):
    """The tape's own output of a cell, as a notebook file holds it."""
    return next(out for out in ran.outputs if out.get("metadata", {}).get("tape"))


def test_a_session_that_is_set_to_replay_wins_over_a_cells_record_and_says_how_to_record(
    tmp_path, provider
):
    path = notebook(tmp_path / "nb.ipynb", LOAD, "%%tape record\nask('one')")
    with Kernel(tmp_path, {"TAPE_NOTEBOOK": str(path)}) as kernel:
        for setup in (LOAD, ASK.replace("URL", provider.url)):
            assert kernel.execute(setup).ok
        first = kernel.execute("%%tape record\nask('one')", "a")
        asked = len(provider.requests)
        assert kernel.execute("%tape replay").ok
        for mode in ("record", "new_episodes", "once"):
            again = kernel.execute(f"%%tape {mode}\nask('one')", "a")
            assert again.result == first.result and again.summary.startswith("● replayed")
            assert "%tape off, then this cell again" in again.summary
        assert len(provider.requests) == asked
        missed = kernel.execute("%%tape record\nask('two')", "b")
        assert missed.ename == "UnmatchedCall"
        assert "record the cell again (%tape off, then %%tape record)" in missed.evalue
        assert len(provider.requests) == asked
        assert kernel.execute("%tape off").ok
        assert kernel.execute("%%tape record\nask('two')", "b").summary.startswith("● recorded")


def test_an_identical_replay_changes_nothing_in_the_notebook(tmp_path, provider):
    path = tmp_path / "nb.ipynb"
    ask = ASK.replace("URL", provider.url)
    notebook(
        path, LOAD, ask, "%%tape record\nask('one')", "%%tape record\nask('two'), ask('three')"
    )
    run_notebook(path, tmp_path)
    replays = []
    for _ in range(2):
        ran = run_notebook(path, tmp_path, {"TAPE_MODE": "replay"})
        assert [each.status for each in ran] == ["ok"] * 4
        replays.append(json.dumps([each.outputs for each in ran], sort_keys=True))
    assert replays[0] == replays[1]
    assert not re.search(r"\d m?s\b", ran[3].summary), "no time that changes with each run"


def test_what_is_saved_below_a_cell_of_500_calls_is_at_most_2_kb(tmp_path):
    path = notebook(tmp_path / "nb.ipynb", LOAD)
    with Kernel(tmp_path, {"TAPE_NOTEBOOK": str(path)}) as kernel:
        assert kernel.execute(LOAD).ok
        for mode in ("record", "replay"):
            cell = f"%%tape {mode}\n{LOOK}sum(map(look, range(500)))"
            out = saved(kernel.execute(cell, "many"))
            assert "500 calls" in out["data"]["text/plain"]
            assert "and 492 more" in out["data"]["text/html"]
            assert len(nbformat.from_dict(out)["data"]["text/html"].encode()) < 1_000
            assert len(json.dumps(out, ensure_ascii=False).encode()) <= 2_048


@pytest.mark.slow
def test_the_seed_of_hashes_is_named_where_only_an_order_differs(tmp_path, provider):
    path = notebook(tmp_path / "nb.ipynb", LOAD)
    env = {"TAPE_NOTEBOOK": str(path)}
    set_up = LOAD + "\n" + ASK.replace("URL", provider.url)
    plain, mixed = "ask('one')", "ask(' '.join({f'word {n}' for n in range(30)}))"
    with Kernel(tmp_path, {**env, "PYTHONHASHSEED": "1"}) as kernel:
        assert kernel.execute(set_up).ok
        assert kernel.execute(f"%%tape record\n{plain}; {mixed}", "a").ok
    with Kernel(tmp_path, {**env, "PYTHONHASHSEED": "2"}) as kernel:
        assert kernel.execute(set_up).ok
        typo = kernel.execute("%%tape replay\nask('once')", "a")
        assert typo.ename == "UnmatchedCall" and "PYTHONHASHSEED" not in typo.summary
        told = typo.traceback + typo.summary
        assert told.count("Nothing was sent") == 1 and "1 refused" in typo.summary, told
        moved = kernel.execute(f"%%tape replay\n{plain}; {mixed}", "a")
        assert moved.ename == "UnmatchedCall" and "PYTHONHASHSEED=0" in moved.summary


def test_a_recording_that_failed_says_how_to_replay_the_one_before_it_again(tmp_path, provider):
    """The newest recording counts, whatever its outcome: a bad key took a good one away without a way back."""
    path = notebook(tmp_path / "nb.ipynb", LOAD)
    with Kernel(tmp_path, {"TAPE_NOTEBOOK": str(path)}) as kernel:
        for setup in (LOAD, ASK.replace("URL", provider.url)):
            assert kernel.execute(setup).ok
        good = kernel.execute("%%tape record\nask('one')", "a")
        for _ in range(2):
            failed = kernel.execute("%%tape record\nask('one'); 1 / 0", "a")
            assert failed.ename == "ZeroDivisionError"
            command = re.search(
                r"replay the one before it again: (%tape prune --back-to r-\w+)", failed.summary
            )
            assert command, failed.summary
        assert kernel.execute("%%tape replay\nask('one'); ask('two')", "a").ename == "UnmatchedCall"
        said = kernel.execute(command[1]).stdout
        assert "dropped 2 runs with 2 calls" in said and "is replayed again" in said, said
        asked = len(provider.requests)
        again = kernel.execute("%%tape replay\nask('one')", "a")
        assert (again.result, len(provider.requests)) == (good.result, asked), again
        wrong = kernel.execute(command[1])
        assert "is replayed already. Nothing was dropped" in wrong.evalue
        assert "--back-to" not in kernel.execute("%%tape record\n1 / 0", "b").summary
