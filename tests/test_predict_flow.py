"""`tests/predict_flow.py`: what depends on a change is found, the live kernel comes out right, the proof sees where not.

The truth is a plain shell that runs the whole history with the changed reply. TAPE_NIGHTLY=1 takes every case.
"""

import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import predict_flow
import pytest

HERE = Path(__file__).parent
EVERY = 1 if os.environ.get("TAPE_NIGHTLY") else 4
CASES = json.loads((HERE / "flow_cases.json").read_text(encoding="utf-8"))[::EVERY]


def plainly(case, answer):
    """In a process of its own: what every cell shows in the changed world."""
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    import tapereplies

    from tape_jupyter.dataflow.isolated import worker

    prompt = next(iter(case["perturb"]))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.chdir(os.path.realpath(folder))
        tapereplies.set_replies(case["responses"], {prompt: case["perturb"][prompt][0]})
        shell, texts = worker.shell(), {}
        for each in case["history"]:
            source = each.get(
                "source", case["cells"][each["cell"]] if isinstance(each["cell"], int) else ""
            )
            texts[str(each["cell"])] = worker.execute_in_shell(shell, source)["text"]
        answer.send(texts)
        os.chdir("/")
    answer.close()
    os._exit(0)


def truth(case):
    here, there = predict_flow.CONTEXT.Pipe(duplex=False)
    process = predict_flow.CONTEXT.Process(target=plainly, args=(case, there))
    process.start()
    there.close()
    texts = here.recv()
    process.join()
    return texts


@pytest.fixture(scope="module")
def scored():
    """(case, prediction, whether every cell shows what it should)."""
    before = {key: os.environ.get(key) for key in predict_flow.SETTING}
    os.environ.update(predict_flow.SETTING)
    try:
        said = list(predict_flow.predictions(CASES))
        with ThreadPoolExecutor(2) as pool:
            true = list(pool.map(truth, CASES))
    finally:
        for key, value in before.items():
            os.environ.pop(key) if value is None else os.environ.__setitem__(key, value)
    assert not [each for each in said if "error" in each]
    shown = [
        {cell: text for cell, text in each.items() if not cell.startswith("d")} for each in true
    ]
    return [(case, each, all(each["text"][c] == t for c, t in texts.items())) for case, each, texts in zip(CASES, said, shown, strict=True)]  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_cell_that_depends_is_found_and_few_that_do_not(scored):
    wanted = [set(case["expected"]) for case, _, _ in scored]
    found = [
        {cell for cell in each["downstream"] if isinstance(cell, int)} for _, each, _ in scored
    ]
    missed = {
        case["name"]: want - got
        for (case, _, _), want, got in zip(scored, wanted, found)
        if want - got
    }
    right = sum(len(want & got) for want, got in zip(wanted, found))
    assert not missed and right / sum(map(len, found)) >= 0.8


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_live_kernel_comes_out_right(scored):
    wrong = {
        case["name"]: each["proof"]
        for case, each, right in scored
        if not right or each["strategy"] != "in place"
    }
    assert len(wrong) <= 0.06 * len(scored), wrong


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_proof_sees_what_came_out_wrong_and_nothing_else(scored):
    unseen = [
        case["name"] for case, each, right in scored if not right and each["verdict"] != "differs"
    ]
    alarmed = [
        case["name"] for case, each, right in scored if right and each["verdict"] == "differs"
    ]
    assert not unseen and len(alarmed) <= 0.02 * len(scored), (unseen, alarmed)


@pytest.mark.timeout(600)
def test_the_script_prints_a_line_for_a_case_and_for_what_is_none(tmp_path):
    (tmp_path / "cases.json").write_text(json.dumps([CASES[0], {"name": "broken"}, 7]))
    asked = [sys.executable, str(HERE / "predict_flow.py"), str(tmp_path / "cases.json")]
    done = subprocess.run(asked, capture_output=True, text=True, check=True, cwd=tmp_path)
    good, broken, none = map(json.loads, done.stdout.splitlines())
    assert (
        good["name"] == CASES[0]["name"]
        and {"downstream", "cells_run", "text", "strategy", "verdict", "ms"} <= good.keys()
    )
    assert broken["name"] == "broken" and "error" in broken and "error" in none
