"""Everything fresh: the whole notebook runs on the take in a process of its own; what changed lands in its
cells, the kernel keeps its variables, and nothing goes out or is written.
"""

import pytest

from tests.harness.notebook import Kernel, notebook
from tests.harness.provider import Provider
from tests.harness.support import CELLS, LOAD, Page, digest, record


@pytest.fixture
def provider():
    with Provider() as provider:
        yield provider


JOIN = "from tape_jupyter.jupyter import magics; from tape_jupyter.jupyter.rerun import rerunner as rerun\nrerun.rerunner_of(magics.loaded(get_ipython())).{}.join()"


def wait(page, what="freshening"):
    """Until the thread is done, and what it asked of the main thread, too."""
    assert page.execute(JOIN.format(what), "aside", silent=True, store_history=False).ok
    page.execute("pass", "aside", silent=True, store_history=False)


def fresh(page, line="%tape rerun angry --fresh"):
    assert page.execute(line, "asks").ok, page.shown["asks"].traceback
    wait(page)
    return page.text("asks")


def test_outputs_land_in_their_cells_and_the_kernel_keeps_its_variables(
    page, recorded, base, provider
):
    before = {cell: page.text(cell) for cell in CELLS}
    said = fresh(page, "%tape rerun angry --fresh --on-divergence stale")
    assert page.text("classify") == "mood: positive\n", said
    assert "the last of them 'negative'" in page.text("answer") and page.text("report").startswith(
        "report: positive/"
    )
    assert page.text("unrelated") == before["unrelated"] and page.text("setup") == before["setup"]
    assert "2 changed" in said and "-mood: negative" in said and "+mood: positive" in said, said
    assert (
        '("negative" -> "positive")' in said and "mood: 'negative' -> another value there" in said
    ), said
    assert (
        "This kernel's own variables and files are as they were" in said
        and "%tape takes default angry" in said
    )
    assert "all cells ran in a fresh process" in said
    assert page.execute("print(mood)").stdout == "negative\n"
    assert provider.requests == [] and digest(base) == recorded


def test_at_a_divergence_it_waits_for_a_person_with_the_diff(page, recorded, base, provider):
    before = {cell: page.text(cell) for cell in CELLS}
    said = fresh(page)
    assert "a call of it is not on the tape; the re-run waits here" in said, said
    assert "negative" in said and "positive" in said and "skip" not in said
    assert {cell: page.text(cell) for cell in CELLS} == before
    assert provider.requests == [] and digest(base) == recorded
    assert (
        "leaves no cell out" in (ran := page.execute("%tape rerun --on-divergence skip")).stdout
    ), ran
    page.execute("%tape rerun --cancel", "cancels")
    assert "everything is as it was" in page.text("cancels") + page.text("asks")
    assert {cell: page.text(cell) for cell in CELLS} == before


@pytest.mark.slow
def test_what_a_person_writes_there_is_in_the_take(page, recorded, base, provider):
    fresh(page)
    page.execute("%tape rerun --write 'You are welcome.'", "writes")
    wait(page)
    said = page.text("writes")
    wait(page)
    assert page.text("answer") == "answer: You are welcome.\n", said + page.text("writes")
    assert page.text("report").startswith("report: positive/You are welcome.")
    assert provider.requests == [] and digest(base) == recorded
    assert "not on the tape" not in fresh(page), "the take replays without asking"


@pytest.mark.slow
def test_what_goes_live_there_is_in_the_take(page, recorded, base, provider):
    fresh(page)
    page.execute("%tape rerun --on-divergence live", "goes")
    wait(page)
    assert "all cells ran in a fresh process" in page.text("goes"), page.text("goes")
    assert len(provider.requests) == 1 and "positive" in str(provider.requests[0])
    assert "the last of them 'positive'" in page.text("answer")
    assert "not on the tape" not in fresh(page) and len(provider.requests) == 1
    assert page.execute("print(mood)").stdout == "negative\n" and digest(base) == recorded


@pytest.mark.slow
def test_all_of_it_may_go_live_from_the_first(page, recorded, base, provider):
    fresh(page, "%tape rerun angry --fresh --on-divergence live")
    assert len(provider.requests) == 1 and "the last of them 'positive'" in page.text("answer")
    assert digest(base) == recorded


def test_a_cell_that_fails_ends_it_and_what_follows_keeps_its_outputs(page, base, provider):
    page.cells["answer"] = 'answer = {"negative": "sorry"}[mood]\nprint("answer:", answer)'
    record(page, base, provider)
    said = fresh(page)
    assert (
        page.text("classify") == "mood: positive\n" and "KeyError" in page.shown["answer"].traceback
    )
    assert page.text("report") == "report: negative/sorry\n"
    assert "stopped: [4] raised an error" in said, said


def test_it_can_be_cancelled_and_nothing_was_changed(page, base, provider, tmp_path):
    gate = tmp_path / "gate"
    page.cells["answer"] = (
        f'import os\nanswer = mood\nif mood == "positive":\n    os.mkfifo({str(gate)!r})\n    open({str(gate)!r}).read()'
    )
    record(page, base, provider)
    before = {cell: page.text(cell) for cell in CELLS}
    page.execute("%tape rerun angry --fresh", "asks")
    page.execute("%tape rerun --cancel", "cancels")
    wait(page)
    page.execute("pass", "aside", silent=True, store_history=False)
    assert "everything is as it was" in page.text("cancels") + page.text("asks")
    assert {cell: page.text(cell) for cell in CELLS} == before
    assert "Re-run 3 of" in page.execute("%tape plan angry").stdout, "and the next one can begin"


@pytest.mark.slow
def test_what_a_cell_shows_comes_in_its_order(page, base, provider):
    page.cells["answer"] = (
        'answer = ""\nprint("one")\nfrom IPython.display import display\ndisplay({mood})\nprint("two")'
    )
    record(page, base, provider)
    fresh(page)
    assert [each["output_type"] for each in page.shown["answer"].outputs] == [
        "stream",
        "display_data",
        "stream",
    ]
    assert page.shown["answer"].outputs[1]["data"]["text/plain"] == "{'positive'}"


@pytest.mark.slow
def test_a_cell_that_was_run_again_meanwhile_keeps_what_it_shows(page, base, provider):
    page.cells["answer"] = 'answer = mood\nprint("answer:", answer)'
    record(page, base, provider)
    page.execute("%tape rerun angry --fresh", "asks")
    page.cells["report"] = 'report = "mine"\nprint(report)'
    page.run("report")
    wait(page)
    assert page.text("report") == "mine\n" and page.text("answer") == "answer: positive\n"


@pytest.mark.slow
def test_a_page_that_was_loaded_again_gets_them_below_the_asking_cell(page, base, provider):
    page.cells["answer"] = 'answer = mood\nprint("answer:", answer)'
    record(page, base, provider)
    page.kernel._client.session.session = "another-page"
    said = fresh(page)
    assert page.text("classify") == "mood: negative\n", "nobody listens there any more"
    assert (
        "[3]\nmood: positive\n" in said
        and "Not shown in place, since the page was loaded again: [3]" in said
    ), said


def test_where_the_kernel_may_come_out_wrong_it_runs_fresh_by_itself(page, base, provider):
    page.cells["answer"] = 'answer = f"{mood}: {message}"\nprint("answer:", answer)'
    record(page, base, provider)
    page.execute("message = 'changed behind the back'", "aside", silent=True, store_history=False)
    said = fresh(page, "%tape rerun angry")
    assert "run fresh, since `message` is not what [2] left" in said, said
    assert page.text("answer") == "answer: positive: I cannot open my invoice.\n"


@pytest.mark.slow
def test_what_was_made_before_the_tape_is_not_there(tmp_path, base, provider):
    cells = {**CELLS, "answer": "answer = mood + next(lines)\nprint(answer)"}
    notebook(
        tmp_path / "support.ipynb",
        LOAD,
        *(source.replace("URL", provider.url) for source in cells.values()),
    )
    with Kernel(tmp_path, {"TAPE_NOTEBOOK": str(tmp_path / "support.ipynb")}) as kernel:
        page = Page(kernel, provider, cells)
        assert page.execute("lines = (line for line in 'ab')", "early").ok
        assert page.execute(LOAD, "load").ok
        record(page, base, provider)
        plan, before = page.execute("%tape plan angry").stdout, page.text("classify")
        assert "only a fresh kernel gets this right" in plan, plan
        said = fresh(page, "%tape rerun angry")
    assert "needs `lines`, which is from before the tape was loaded" in said, said
    assert "run fresh, since `lines`" in said and page.text("classify") == before


STORY = {
    "setup": """%load_ext tape_jupyter
import anthropic
claude = anthropic.Anthropic(base_url="URL", api_key="sk-test")
def ask(text):
    asked = [{"role": "user", "content": text}]
    with claude.messages.stream(model="claude-sonnet-5", max_tokens=50, messages=asked) as stream:
        return "".join(stream.text_stream)""",
    "classify": '%%tape record\nmood = ask("Classify the sentiment: positive or negative?")\nprint("mood:", mood)',
    "answer": 'answer = "so " + mood\nprint("answer:", answer)',
    "unrelated": 'print("unrelated")\nother = 1',
    "report": 'print("report:", answer.upper())',
}


@pytest.mark.slow
def test_the_story_with_an_sdk_in_the_set_up_cell_is_proved(tmp_path, provider, base):
    """Its set-up cell loads the tape, imports the SDK and makes the client, as most notebooks do."""
    import tape_jupyter as tape

    notebook(
        tmp_path / "support.ipynb",
        *(source.replace("URL", provider.url) for source in STORY.values()),
    )
    with Kernel(tmp_path, {"TAPE_NOTEBOOK": str(tmp_path / "support.ipynb")}) as kernel:
        page = Page(kernel, provider, STORY)
        for cell in STORY:
            assert page.run(cell).ok, page.shown[cell].traceback
        tape.open(base).override(tape.open(base).calls[0], text="positive", take="angry")
        page.execute("%tape rerun angry", "asks")
        wait(page, "proving")
        assert page.text("report") == "report: SO POSITIVE\n", page.text("asks")
        assert "proved in a fresh kernel" in page.text("asks"), page.text("asks")
        said = fresh(page)
    assert "all cells ran in a fresh process" in said and "0 changed" in said, said
