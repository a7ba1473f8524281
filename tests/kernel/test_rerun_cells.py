"""Change one reply, re-run what depends on it, in real kernels: outputs land in the cells they belong to, what does not
depend on it is left alone, the recording is never written, and a call that asks anew waits for a person.
"""

from dataclasses import replace

import pytest

import tape_jupyter as tape
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.spans.headers import CELL, MODEL
from tape_jupyter.spans.rows import Spans
from tests.harness.notebook import Kernel, Ran, notebook
from tests.harness.provider import Provider
from tests.harness.support import CELLS, LOAD, Page, digest, record


@pytest.fixture
def provider():
    with Provider() as provider:
        yield provider


def test_the_plan_says_which_cells_and_why(page, recorded):
    plan = page.execute("%tape plan angry").stdout
    assert "Re-run 3 of" in plan, plan
    lines = {line.split()[1]: line for line in plan.splitlines() if line.startswith("  x [")}
    assert list(lines) == ["[3]", "[4]", "[6]"], "not the unrelated cell"
    assert "holds the changed reply" in lines["[3]"]
    assert "reads `mood`" in lines["[4]"] and "reads `mood`" in lines["[6]"]


def test_a_divergence_goes_live_and_all_lands_in_place(page, recorded, base, provider):
    before = {cell: page.text(cell) for cell in CELLS}
    said = page.execute("%tape rerun angry --on-divergence live")
    assert page.text("classify") == "mood: positive\n", said.stdout + said.traceback
    assert "You wrote" in page.text("answer") and page.text("answer") != before["answer"]
    assert page.text("report").startswith("report: positive/You wrote")
    assert page.text("unrelated") == before["unrelated"] and len(provider.requests) == 1
    assert "went live" in said.stdout and "mood: 'negative' -> 'positive'" in said.stdout, (
        said.stdout
    )
    assert digest(base) == recorded
    assert page.execute("print(mood, other)").stdout == "positive 25\n"


def test_it_stops_at_a_divergence_with_its_diff_and_goes_on_as_it_is_told(
    page, recorded, base, provider
):
    said = page.execute("%tape rerun angry")
    assert "is not on the tape; the re-run waits here" in said.stdout and provider.requests == []
    assert (
        "negative" in said.stdout
        and "now:" in said.stdout
        and "--on-divergence stale" in said.stdout
    )
    shown = page.shown["answer"]
    assert shown.traceback == "" and "UnmatchedCall" in str(shown.outputs), (
        "a question, and what it is about"
    )
    assert page.text("report").startswith("report: negative"), "what comes after has not run"

    said = page.execute("%tape rerun --on-divergence stale")
    assert "the last of them 'negative'" in page.text("answer") and page.text("report").startswith(
        "report: positive/"
    )
    assert "stale" in said.stdout and provider.requests == [] and digest(base) == recorded


def test_a_reply_written_by_hand_is_on_the_take_and_replays_without_asking(
    page, recorded, base, provider
):
    page.execute("%tape rerun angry")
    said = page.execute("%tape rerun --write 'How lovely, dear customer.'")
    assert page.text("answer") == "answer: How lovely, dear customer.\n", said.stdout
    assert "written by hand" in said.stdout and provider.requests == []
    assert page.execute("%tape rerun angry").stdout.count("changed") >= 0
    assert (
        page.text("answer") == "answer: How lovely, dear customer.\n" and digest(base) == recorded
    )


@pytest.mark.slow
def test_a_skipped_cell_keeps_what_it_made_and_showed(page, recorded, base):
    before = page.text("answer")
    page.execute("%tape rerun angry")
    said = page.execute("%tape rerun --on-divergence skip")
    assert page.text("answer") == before and page.shown["answer"].traceback == ""
    assert page.text("report").startswith("report: positive/You wrote"), said.stdout
    assert "not run: [4] skipped at a divergence" in said.stdout


@pytest.mark.slow
def test_a_cell_that_was_left_out_stays_out_until_it_is_ticked_in_again(
    page, recorded, base, provider
):
    page.execute("%tape rerun angry")
    page.execute("%tape rerun --on-divergence skip")
    again = page.execute("%tape rerun angry")
    assert "the re-run waits here" not in again.stdout and "[4] you left it out" in again.stdout
    row = next(line for line in again.stdout.splitlines() if "[4]" in line)
    assert row.split()[0] == "[4]" and "you left it out before, in this take" in row, (
        "it is not ticked"
    )

    assert "the re-run waits here" in page.execute("%tape rerun angry --cells 3,4,6").stdout
    page.execute("%tape rerun --on-divergence live")
    assert "left out" not in page.execute("%tape plan angry").stdout and len(provider.requests) == 1

    page.execute("%tape rerun angry --cells 3,4")
    rows = [
        line.split()
        for line in page.execute("%tape plan angry").stdout.splitlines()
        if line.startswith("  ")
    ]
    assert [row[0] for row in rows if row] == ["x", "x", "[6]"], (
        "who is not ticked is not, the next time"
    )
    assert digest(base) == recorded


@pytest.mark.slow
def test_what_was_left_out_counts_for_nobody_who_reads_the_take(page, recorded, base):
    page.execute("%tape rerun angry")
    page.execute("%tape rerun --on-divergence skip")
    take = Cassette.open(base).take("angry")
    assert [end["outcome"] for run, end in take.ended.items() if run not in take.base.ended] == [
        "skipped"
    ]
    spans = Spans(take)
    spans.refresh()
    assert [row.kind for row in spans.rows()] == [CELL, MODEL, CELL, MODEL]


def test_cancelling_puts_values_and_outputs_back(page, recorded, base):
    before = {cell: page.text(cell) for cell in CELLS}
    page.execute("%tape rerun angry")
    assert page.text("classify") == "mood: positive\n"
    said = page.execute("%tape rerun --cancel")
    assert "everything is as it was" in said.stdout
    assert {cell: page.text(cell) for cell in CELLS} == before
    assert page.execute("print(mood)").stdout == "negative\n" and digest(base) == recorded


def test_an_error_stops_the_re_run_and_what_follows_keeps_its_outputs(page, base, provider):
    page.cells["answer"] = 'answer = {"negative": "sorry"}[mood]\nprint("answer:", answer)'
    before = record(page, base, provider)
    said = page.execute("%tape rerun angry")
    assert (
        page.text("classify") == "mood: positive\n" and "KeyError" in page.shown["answer"].traceback
    )
    assert page.text("report") == "report: negative/sorry\n"
    assert "stopped: [4] raised an error" in said.stdout and digest(base) == before


@pytest.mark.slow
def test_a_tables_changes_are_told_as_a_table(page, base, provider):
    page.cells["report"] = 'import pandas\npandas.DataFrame({"mood": [mood, "any"], "n": [1, 2]})'
    page.cells["answer"] = 'answer = ""'
    record(page, base, provider)
    said = page.execute("%tape rerun angry")
    assert "-0,negative,1" in said.stdout and "+0,positive,1" in said.stdout, said.stdout


ASYNC_ANSWER = """import asyncio
await asyncio.sleep(0)
answer = f"so {mood}"
await asyncio.sleep(0.01)
print("answer:", answer)"""


@pytest.mark.slow
def test_cells_that_await_are_run_again_too_one_at_a_time(page, base, provider):
    page.cells["answer"] = ASYNC_ANSWER
    record(page, base, provider)
    page.execute("%tape rerun angry", "asks")
    assert page.execute("print(mood)").stdout == "positive\n", "the next cell waits for the re-run"
    assert "+answer: so positive" in page.text("asks"), page.text("asks")
    assert (
        page.text("answer") == "answer: so positive\n"
        and page.text("report") == "report: positive/so positive\n"
    )


@pytest.mark.slow
def test_again_and_again(page, recorded, base, provider):
    """A second re-run of the take asks nobody; a take of the take runs from what the first one left."""
    page.execute("%tape rerun angry --on-divergence live")
    first = {cell: page.text(cell) for cell in CELLS}
    assert len(provider.requests) == 1
    page.execute("%tape rerun angry")
    assert {cell: page.text(cell) for cell in CELLS} == first and len(provider.requests) == 1

    taken = tape.open(base).take("angry")
    chunks = tuple(
        chunk.replace(b"positive", b"neutral") for chunk in taken.calls[0].reply().chunks
    )
    taken.override(
        taken.calls[0], reply=replace(taken.calls[0].reply(), chunks=chunks), take="calm"
    )
    said = page.execute("%tape rerun calm --on-divergence stale")
    assert page.text("classify") == "mood: neutral\n", said.stdout
    assert page.text("report").startswith("report: neutral/") and digest(base) == recorded


def test_the_take_replays_afterwards_offline(page, recorded, base, provider):
    page.execute("%tape rerun angry --on-divergence live")
    live = page.text("answer")
    provider.requests.clear()
    for cell in CELLS:
        page.cells[cell] = page.cells[cell].replace("%%tape record", "%%tape replay --take angry")
        assert page.run(cell).ok, page.shown[cell].traceback
    assert page.text("answer") == live and provider.requests == []


def test_a_fresh_kernel_proves_it_in_the_background(page, recorded):
    page.execute("%tape rerun angry --on-divergence live", "asks")
    page.execute(
        "from tape_jupyter.jupyter import magics; from tape_jupyter.jupyter.rerun import rerunner as rerun\nrerun.rerunner_of(magics.loaded(get_ipython())).proving.join()"
    )
    assert "proved in a fresh kernel" in page.text("asks"), page.text("asks")


WHOLE_SETUP = """%load_ext tape_jupyter
import json, urllib3
EXAMPLES = "Is the sentiment positive or negative?"
MESSAGE = "I cannot open my invoice."
pool = urllib3.PoolManager()
def complete(text):
    body = {"model": "claude-sonnet-4-5", "max_tokens": 50, "messages": [{"role": "user", "content": text}]}
    reply = pool.request("POST", "URL/v1/messages", json=body, retries=False)
    return reply.json()["content"][0]["text"]"""


@pytest.mark.slow
def test_a_notebook_that_loads_the_tape_in_its_set_up_cell(tmp_path, provider, base):
    cells = {
        "setup": WHOLE_SETUP,
        "classify": '%%tape record\nmood = complete(f"{EXAMPLES} {MESSAGE}")\nprint(mood)',
        "answer": '%%tape record\nanswer = complete(f"Answer: {MESSAGE}")\nprint(answer, mood)',
        "hours": 'hours = 3\nprint("hours", hours)',
        "report": 'print(f"{mood}: {answer}")',
    }
    notebook(
        tmp_path / "support.ipynb",
        *(source.replace("URL", provider.url) for source in cells.values()),
    )
    with Kernel(tmp_path, {"TAPE_NOTEBOOK": str(tmp_path / "support.ipynb")}) as kernel:
        page = Page(kernel, provider, cells)
        for cell in cells:
            assert page.run(cell).ok, page.shown[cell].traceback
        tape.open(base).override(tape.open(base).calls[0], text="positive", take="angry")
        plan = page.execute("%tape plan angry").stdout
        assert [line.split()[1] for line in plan.splitlines() if line.startswith("  x [")] == [
            "[2]",
            "[3]",
            "[5]",
        ], plan
        said = page.execute("%tape rerun angry").stdout
    assert page.text("classify") == "positive\n", said + page.shown["classify"].traceback
    assert page.text("answer").endswith("positive\n")
    assert page.text("report").startswith("positive: ") and page.text("hours") == "hours 3\n"


@pytest.mark.slow
@pytest.mark.parametrize("wait", ["gate.wait(60)", "await asyncio.to_thread(gate.wait, 60)"])
def test_the_stop_button_puts_everything_back(page, base, provider, wait):
    page.cells["answer"] = (
        'import asyncio, threading\ngate = threading.Event()\nprint("waits")\nanswer = mood\n'
        f'if mood == "positive":\n    {wait}  # a sleep would be the tape\'s'
    )
    record(page, base, provider)
    before = page.text("classify")
    asked = page.kernel.send("%tape rerun angry", "asks")
    page.asked[asked], page.shown["asks"] = "asks", Ran()
    page.until_shown("classify", "positive")
    page.until_cleared("answer")
    page.until_shown("answer", "waits")
    page.kernel.interrupt()
    page.until_shown("asks", "everything is as it was")
    assert page.execute("print(mood)").stdout == "negative\n" and page.text("classify") == before


@pytest.mark.slow
def test_cells_that_were_run_again_before_are_followed_by_their_newest_run_and_proved(
    page, recorded, base
):
    assert page.execute("%tape replay").ok
    for cell in ("classify", "answer", "report"):
        assert page.run(cell).ok
    plan = page.execute("%tape plan angry").stdout
    assert "Re-run 3 of" in plan, plan
    said = page.execute("%tape rerun angry --on-divergence live")
    assert page.text("classify") == "mood: positive\n", said.stdout + said.traceback
    page.until_shown("said", "proved in a fresh kernel")
    assert "differs" not in page.text("said")


@pytest.mark.slow
def test_what_read_a_cell_before_that_cell_was_run_again_depends_on_it_all_the_same(
    page, recorded, base
):
    assert page.execute("%tape replay").ok
    assert page.run("classify").ok
    plan = page.execute("%tape plan angry").stdout
    assert "Re-run 4 of 6 runs" in plan, plan
    said = page.execute("%tape rerun angry --on-divergence live")
    assert page.text("classify") == "mood: positive\n", said.stdout + said.traceback
    assert page.text("report").startswith("report: positive/You wrote")
    page.until_shown("said", "proved in a fresh kernel")
    assert page.execute("print(mood)").stdout == "positive\n"
