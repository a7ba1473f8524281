"""The story of a changed reply, in JupyterLab and Notebook 7: a notebook is recorded, its classification is changed in the
viewer, and what hangs on it runs again where it stands; the recording stays as it was, and what is saved can be read.
"""

import hashlib
import json
import re

import pytest
from playwright.sync_api import expect

from tests.browser.jupyter import Notebook
from tests.browser.viewing import edit, output_of, record, shown, sidebar_of, widget_of

PROOF = 60_000  # ms: a fresh kernel starts for it
WRITTEN = "You wrote 6 words, the last of them 'furious'"
CHANGED = "report: YOU WROTE 6 WORDS, THE LAST OF THEM 'FURIOUS'"


@pytest.fixture
def story(server, page, provider, request):
    """The notebook, recorded; what it was then."""
    return lambda *more: Story(
        record(server, page, provider.url, request.node.name, *more), provider
    )


class Story:
    def __init__(self, notebook, provider):
        self.notebook, self.provider = notebook, provider
        self.tapes = notebook.path.with_name("churn.tapes")
        self.digest, self.before = self.sha256(), self.cells()

    def sha256(self):
        return hashlib.sha256((self.tapes / "main.tape.yaml").read_bytes()).hexdigest()

    def cells(self):
        """By number: all that a person sees of a cell."""
        told = self.notebook.javascript("return panel.content.model.toJSON().cells;")
        return {
            number: (cell["source"], cell["execution_count"], cell["outputs"])
            for number, cell in enumerate(told, 1)
        }

    def override(self, view):
        """Change the reply, name the take, look at the plan: nothing has run yet."""
        edit(view).fill("furious")
        expect(view.locator("ins")).to_have_text("furious")
        view.get_by_label("as take").fill("angry-customer")
        view.get_by_role("button", name="Save").click()
        shown(view.get_by_role("heading", name="Re-run 3 of 5 cells"))
        plan = view.locator(".tape-plan li")
        expect(plan).to_have_text(
            [
                re.compile(r"\[2\] Classify.*holds the changed reply"),
                re.compile(r"\[3\] Answer.*reads mood, set by \[2\]"),
                re.compile(r"\[5\] .*reads answer, set by \[3\]"),
            ]
        )
        assert {n: cell for n, cell in self.cells().items() if n < 6} == {
            n: self.before[n] for n in range(1, 6)
        }

    def rerun(self, view):
        """Run it: the answer's request is another one now, which waits for a person, and nothing was sent."""
        asked = len(self.provider.requests)
        view.get_by_role("button", name="Re-run", exact=True).click()
        shown(view.get_by_role("heading", name="Answer: the request has changed"))
        row = view.get_by_role("row").filter(has_text="messages[0].content")
        expect(row.locator("ins")).to_contain_text("furious")
        expect(row.locator("del")).to_contain_text("negative")
        assert len(self.provider.requests) == asked

    def go_live(self, view):
        asked = len(self.provider.requests)
        view.get_by_role("button", name="Go live").click()
        shown(view.get_by_role("heading", name="3 cells ran, 3 changed"))
        assert len(self.provider.requests) == asked + 1

    def write_the_reply(self, view):
        self.provider.stop()
        view.get_by_role("button", name="Write the reply").click()
        reply = view.get_by_role("textbox", name="The reply")
        expect(reply).to_contain_text(
            "You wrote 8 words"
        )  # the recorded message, as JSON, to start from
        reply.fill(
            json.dumps(
                {
                    "role": "assistant",
                    "content": [{"type": "text", "text": WRITTEN}],
                    "stop_reason": "end_turn",
                }
            )
        )
        view.get_by_role("button", name="Give this reply").click()
        shown(view.get_by_role("heading", name="3 cells ran, 3 changed"))

    def compared(self, view):
        """Before | after of each cell."""
        changes = view.locator(".tape-change").filter(has_text="before")
        expect(changes.first).to_contain_text("before")
        expect(changes.first).to_contain_text("after")
        expect(
            view.locator(".tape-change", has_text="[2] Classify").locator("ins")
        ).to_contain_text("furious")

    def proved(self, view):
        """A fresh kernel comes to the same."""
        shown(view.locator(".tape-proof", has_text="proved in a fresh kernel ✓"), timeout=PROOF)

    def listed(self, view):
        """The take as it ran: what was asked otherwise in its cell, what was not asked again last, nothing twice."""
        view.get_by_role("button", name="close").click()
        view.get_by_role("button", name="back").click()
        rows = view.get_by_role("treeitem")
        expect(rows).to_have_text(
            [
                re.compile(r"\[2\] Classify"),
                re.compile(r'"furious"'),
                re.compile(r"\[3\] Answer.*1 new"),
                re.compile(r"the last of them 'furious'"),
                re.compile(r"the last of them '\d+\)'"),
            ]
        )
        for row, says in (
            (1, "model call, changed"),
            (3, "model call, diverged"),
            (4, "superseded"),
        ):
            expect(rows.nth(row).get_by_role("img")).to_have_accessible_name(re.compile(says))

    def changed_in_place(self):
        """Cells 2, 3 and 5 show the new run; the others are as they were, and so is the recording."""
        expect(self.notebook.output(5).first).to_contain_text(CHANGED)
        now, was = self.cells(), self.before
        assert [now[n][0] for n in now] == [was[n][0] for n in was]
        assert [n for n in range(1, 6) if now[n][2] != was[n][2]] == [2, 3, 5]
        assert now[4] == was[4]
        assert "furious" in self.notebook.text(3)
        assert "unrelated: 1" in self.notebook.text(4)
        assert self.notebook.python("print(runs, mood)").strip() == "1 furious"
        assert self.sha256() == self.digest
        assert [path.name for path in (self.tapes / "takes").glob("*.yaml")] == [
            "main.angry-customer.tape.yaml"
        ]

    def reopened_without_a_kernel(self, summary):
        """Saved, sent to somebody who has no such kernel: what was said can be read, and nothing is red."""
        saved = self.notebook.save()
        saved["metadata"] = {
            "kernelspec": {"name": "gone", "display_name": "gone", "language": "gone"}
        }
        copy = self.notebook.path.with_name(
            "copy.ipynb"
        )  # of no trust: this server did not save it
        copy.write_text(json.dumps(saved))
        page = self.notebook.page
        page.evaluate("() => { window.onbeforeunload = null; }")
        copied = Notebook(page, self.notebook.server, copy).open(kernel=False)
        page.locator(".jp-Dialog .jp-mod-reject").click()  # "No Kernel"
        for number in (2, 3):
            expect(copied.cell(number).locator(summary)).to_contain_text("1 call")
        expect(copied.output(5).first).to_contain_text(CHANGED)
        expect(
            copied.cells.locator(
                ".jp-RenderedText[data-mime-type$=stderr], .jp-RenderedText[data-mime-type$=error]"
            )
        ).to_have_count(0)


@pytest.mark.parametrize(
    "server", ["notebook7", pytest.param("lab", marks=pytest.mark.night)], indirect=True
)
def test_in_the_sidebar(story):
    told = story()
    view = sidebar_of(told.notebook)
    told.override(view)
    told.rerun(view)
    told.go_live(view)
    told.compared(view)
    told.proved(view)
    told.listed(view)
    told.changed_in_place()
    told.reopened_without_a_kernel(".tape-output")


@pytest.mark.night  # by day: tests/browser/test_one_truth.py puts one aside
@pytest.mark.parametrize("server", ["lab"], indirect=True)
def test_a_take_that_is_put_aside_leaves_the_notebook_as_it_was_if_one_wants(story):
    told = story()
    view = sidebar_of(told.notebook)
    told.override(view)
    told.rerun(view)
    told.go_live(view)
    view.get_by_role("button", name="show the original").click()
    expect(view.get_by_role("button", name="the recording")).to_be_visible()
    view.get_by_role("button", name="show angry-customer again").click()
    expect(view.get_by_role("button", name="take: angry-customer")).to_be_visible()
    view.get_by_role("button", name="Discard").click()
    shown(view.get_by_text("The cells of the notebook still show what the take gave."))
    view.get_by_role("button", name="Re-run them on the recording…").click()
    shown(view.get_by_role("heading", name="Re-run 3 of 5 cells"))
    view.get_by_role("button", name="Re-run", exact=True).click()
    shown(view.get_by_role("heading", name="3 cells ran, 3 changed"))
    assert "negative" in told.notebook.text(2) and "furious" not in told.notebook.text(5)
    assert told.notebook.python("print(runs, mood)").startswith("1 negative")
    assert told.sha256() == told.digest
    view.get_by_role("button", name="close").click()
    shown(view.get_by_role("treeitem").first)
    told.notebook.idle()


@pytest.mark.night  # by day: test_labextension.py runs cells in place behind another tab
@pytest.mark.parametrize("server", ["lab"], indirect=True)
def test_with_another_tab_in_front(story):
    told = story()
    view = sidebar_of(told.notebook)
    told.override(view)
    page = told.notebook.page
    page.evaluate("() => window.jupyterapp.commands.execute('launcher:create')")
    expect(page.locator(".jp-Launcher")).to_be_visible()
    told.rerun(view)
    told.write_the_reply(view)
    told.compared(view)
    expect(page.locator(".jp-Launcher")).to_be_visible()
    page.evaluate("() => window.jupyterapp.shell.currentWidget.close()")
    told.changed_in_place()


@pytest.mark.slow
def test_below_the_cell(story):
    told = story()
    view = output_of(told.notebook, 2)
    told.override(view)
    told.rerun(view)
    told.write_the_reply(view)
    told.compared(view)
    told.changed_in_place()


@pytest.mark.night  # by day: tests/kernel/test_viewer_rerun.py cancels one
@pytest.mark.parametrize("server", ["lab"], indirect=True)
def test_cancelled_below_the_cell_all_is_as_it_was(story):
    told = story()
    view = output_of(told.notebook, 2)
    told.override(view)
    told.rerun(view)
    expect(view.get_by_role("heading", name="Answer: the request has changed")).to_be_focused()
    assert "Traceback" not in told.notebook.text(3)
    view.get_by_role("button", name="Cancel the re-run").click()
    shown(view.get_by_role("button", name="Edit reply"))
    told.notebook.idle()
    now = told.cells()
    assert {n: cell[2] for n, cell in now.items()} == {
        n: cell[2] for n, cell in told.before.items()
    }
    expect(told.notebook.cell(2).locator(".tape-output")).to_have_count(1)
    assert told.notebook.python("print(runs, mood)").startswith("1 negative")


@pytest.mark.slow
@pytest.mark.parametrize("server", ["lab"], indirect=True)
def test_a_page_that_is_loaded_again_goes_on_with_the_question(story):
    told = story()
    view = sidebar_of(told.notebook)
    told.override(view)
    told.rerun(view)
    told.notebook.save()
    told.notebook.page.evaluate("() => { window.onbeforeunload = null; }")
    told.notebook.open()
    view = sidebar_of(told.notebook)
    shown(view.get_by_role("heading", name="Answer: the request has changed"))
    told.go_live(view)
    expect(told.notebook.output(5).first).to_contain_text(CHANGED)


@pytest.mark.night  # by day: tests/kernel/test_viewer_rerun.py, and its HTML in test_labextension.py
def test_without_the_labextension(story, server):
    with server.without_extension():
        told = story("%tape view")
        view = widget_of(told.notebook, 6)
        told.override(view)
        told.rerun(view)
        told.go_live(view)
        told.compared(view)
        told.proved(view)
        told.changed_in_place()
        told.reopened_without_a_kernel(".jp-RenderedHTMLCommon")
