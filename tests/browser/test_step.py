"""Stepping through a run in JupyterLab and Notebook 7, with the newest ipykernel and with 6.31, which has no subshells.

A cell of three calls, and one of two threads, are recorded once; each test steps them, and leaves the kernel idle and
the recording as it was.
"""

import hashlib
import ast
import re
import subprocess
import sys

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import fresh_page, missing
from tests.browser.jupyter import Notebook, serve, write
from tests.browser.viewing import SETUP, sidebar_of
from tests.notebook import ROOT
from tests.provider import Provider

OLD = ("ipykernel==6.31.0", "nest-asyncio")
THREE = """%%tape record
# Three orders
answers = []
for order in ("first", "second", "third"):
    answers.append(ask(f"Where is my {order} order?"))
print(answers)"""
TWO = """%%tape record
# Two at once
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(2) as pool:
    both = list(pool.map(ask, ["Here is one", "There is another"]))
print("both:", both)"""


@pytest.fixture(scope="session")
def old_kernel(tmp_path_factory):
    """ipykernel 6.31 in a folder of its own; kernels that find it first use it."""
    where = tmp_path_factory.mktemp("ipykernel-6")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(where), *OLD]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    if done.returncode:
        missing(f"no ipykernel 6.31 from the package index: {done.stderr.strip()[-300:]}")
    return where


@pytest.fixture(scope="module", params=["lab", "notebook7", "lab-ipykernel-6"])
def server(request, tmp_path_factory):
    if "6" not in request.param:
        yield request.getfixturevalue(request.param)
        return
    request.getfixturevalue("chromium")
    first = request.getfixturevalue("old_kernel")
    with serve("lab", tmp_path_factory.mktemp("old"), {"PYTHONPATH": f"{first}:{ROOT}"}) as made:
        yield made


@pytest.fixture(scope="module")
def recorded(server, chromium, request):
    """An open notebook: cell 2 asked three times, cell 3 from two threads; one for all tests of a server."""
    folder = re.sub(r"\W+", "-", request.node.nodeid + str(server.url))
    with Provider(vary=True) as provider, fresh_page(chromium) as page:
        cells = [SETUP.format(url=provider.url), THREE, TWO, "print(len(answers), 'answers')"]
        notebook = Notebook(page, server, write(server.root / folder / "churn.ipynb", *cells)).open()
        for number in (1, 2, 3, 4):
            notebook.run(number)
        yield Stepping(notebook, provider)


@pytest.fixture
def story(recorded):
    """The recorded notebook with its sidebar open; afterwards nothing runs, and the recording is as it was."""
    recorded.provider.requests.clear()
    sidebar_of(recorded.notebook)
    yield recorded
    recorded.end()
    assert recorded.sha256() == recorded.digest


class Stepping:
    """A person who steps the cells of one notebook, in its sidebar."""

    def __init__(self, notebook, provider):
        self.notebook, self.provider = notebook, provider
        self.digest = self.sha256()
        self.before = notebook.text(2)

    @property
    def page(self):
        return self.notebook.page

    @property
    def sidebar(self):
        return self.page.locator(".tape-sidebar")

    @property
    def bar(self):
        return self.sidebar.get_by_role("group", name="Step", exact=True)

    def sha256(self):
        path = self.notebook.path.with_name("churn.tapes") / "main.tape.yaml"
        return hashlib.sha256(path.read_bytes()).hexdigest()

    def begin(self, number):
        """Select a cell, and step it by the button of the viewer."""
        self.notebook.select(number)
        self.sidebar.get_by_role("button", name="Step the selected cell").click()

    def at(self, nth):
        """Wait until it stands before this call."""
        expect(self.bar.get_by_role("status")).to_contain_text(f"Stopped before call {nth}")

    def do(self, name):
        self.bar.get_by_role("button", name=name, exact=True).click()

    def over(self):
        """Wait until it has ended, and put its last word away."""
        self.do("Close")
        expect(self.bar).to_have_count(0)
        self.notebook.idle()

    def end(self):
        if self.bar.get_by_role("button", name="Stop", exact=True).count():
            self.do("Stop")
        if self.bar.count():
            self.over()
        self.notebook.idle()

    def reload(self):
        """Close the page's tab and open the notebook again, without waiting for the kernel: its cell still runs."""
        self.page.goto("about:blank")
        self.page.goto(self.notebook.server.address(self.notebook.path))
        self.page.wait_for_selector(".jp-NotebookPanel .jp-Cell", state="visible")


def said(notebook, number):
    """The list that a cell printed."""
    printed = next(line for line in notebook.text(number).splitlines() if "[" in line)
    return ast.literal_eval(printed[printed.index("[") :])


def test_three_stops_the_second_reply_is_edited_and_the_cell_goes_on_with_it(story):
    first, _, third = said(story.notebook, 2)
    story.begin(2)
    story.at(1)
    expect(story.notebook.cell(2)).to_have_class(re.compile("tape-stopped"))
    expect(story.sidebar.get_by_label("The stop")).to_contain_text(first)
    story.do("Step")
    story.at(2)
    story.sidebar.get_by_role("button", name="Edit reply").click()
    story.sidebar.get_by_role("textbox", name="text", exact=True).fill("It was never sent.")
    story.sidebar.get_by_role("button", name="Save and go on").click()
    story.at(3)
    expect(story.bar).to_contain_text("1 edit in take")
    story.do("Continue")
    story.over()
    assert said(story.notebook, 2) == [first, "It was never sent.", third]
    assert not story.provider.requests  # nothing went out


def test_where_it_stands_is_seen_its_frames_its_line_its_variables(story):
    story.begin(2)
    story.at(1)
    stop = story.sidebar.get_by_label("The stop")
    frames = stop.get_by_role("option")
    expect(frames.first).to_contain_text("in ask")
    expect(stop.locator(".step-here")).to_contain_text("claude.messages.stream")
    expect(stop.locator(".step-variables")).to_contain_text("'Where is my first order?'")
    frames.nth(1).click()
    expect(stop.locator(".step-here")).to_contain_text("answers.append(ask(")
    expect(stop.locator(".step-variables")).to_contain_text("order")
    expect(story.notebook.page.locator(".tape-stopped-line")).to_contain_text("claude.messages.stream")


def test_a_step_back_stands_before_the_call_as_it_did_and_two_stops_are_compared(story):
    story.begin(2)
    for nth in (1, 2, 3):
        story.at(nth)
        if nth < 3:
            story.do("Step")
    story.do("Back")
    story.at(2)
    stop = story.sidebar.get_by_label("The stop")
    expect(stop.locator(".step-variables")).to_contain_text("'Where is my second order?'")
    since = stop.get_by_label("changed since")
    since.select_option(index=since.locator("option").count() - 1)  # the earliest
    expect(stop.get_by_role("row").filter(has_text="answers")).to_be_visible()
    story.do("Continue")
    story.over()


def test_keys_step_and_no_key_reaches_a_cell(story):
    story.begin(2)
    story.at(1)
    cells = story.notebook.javascript("return panel.content.model.toJSON().cells.map(cell => cell.source);")
    story.bar.get_by_role("button", name="Step", exact=True).focus()
    for key, nth in ((".", 2), ("m", 3), (",", 2)):
        story.page.keyboard.press(key)
        story.at(nth)
    story.page.keyboard.press("c")
    story.over()
    assert story.notebook.javascript("return panel.content.model.toJSON().cells.map(cell => cell.source);") == cells


def test_stop_ends_the_cell_and_leaves_the_variables_as_they_were(story):
    story.notebook.python("answers = ['kept']")
    story.begin(2)
    story.at(1)
    story.do("Step")
    story.at(2)
    story.do("Stop")
    story.over()
    assert story.notebook.python("print(answers)").strip() == "['kept']"
    story.notebook.run(4)
    assert "1 answers" in story.notebook.text(4)


def test_an_interrupt_while_stopped_ends_the_step_and_the_kernel_goes_on(story):
    story.begin(2)
    story.at(1)
    story.notebook.javascript("await panel.sessionContext.session.kernel.interrupt();")
    story.over()
    assert story.notebook.python("print(6 * 7)").strip() == "42"
    expect(story.notebook.cell(2)).not_to_have_class(re.compile("tape-stopped"))


def test_two_threads_stand_still_and_each_is_stepped_by_itself(story):
    story.begin(3)
    strands = story.bar.get_by_role("tab")
    expect(strands).to_have_count(2)
    strands.nth(1).click()
    second = strands.nth(1).inner_text()
    stop = story.sidebar.get_by_label("The stop")
    expect(stop.locator(".step-variables")).to_contain_text(re.compile("Here is one|There is another"))
    story.do("Step")  # the other one stays where it is
    expect(strands).to_have_count(0)
    expect(story.bar.get_by_role("status")).to_contain_text("Stopped before call")
    assert second
    story.do("Continue")
    story.over()
    assert "Here" in story.notebook.text(3) or "both:" in story.notebook.text(3)


def test_a_tab_that_was_closed_at_a_stop_shows_it_again_and_goes_on_from_there(story):
    story.begin(2)
    story.at(1)
    story.do("Step")
    story.at(2)
    story.reload()
    story.at(2)  # the sidebar opens by itself
    expect(story.notebook.cell(2)).to_have_class(re.compile("tape-stopped"))
    story.do("Step")
    story.at(3)
    story.do("Continue")
    story.over()
    assert story.notebook.python("print(len(answers))").strip() == "3"


def test_the_kernel_is_the_one_that_is_meant(recorded, request):
    version = recorded.notebook.python("import ipykernel; print(ipykernel.__version__)")
    assert version.startswith("6.31" if "ipykernel-6" in request.node.name else "7.")


def test_without_the_labextension_the_widget_steps_the_cell_that_runs_next(lab, provider, chromium):
    cells = [SETUP.format(url=provider.url), THREE, "%tape view"]
    path = write(lab.root / "step-widget" / "churn.ipynb", *cells)
    with lab.without_extension(), fresh_page(chromium) as page:
        notebook = Notebook(page, lab, path).open()
        for number in (1, 2, 3):
            notebook.run(number)
        view = notebook.cell(3).locator(".tape-view")
        view.get_by_role("button", name="Step the next cell").click()
        expect(view.get_by_text("The next cell that you run is stepped.")).to_be_visible()
        notebook.run(2, wait=False)
        bar = view.get_by_role("group", name="Step", exact=True)
        for nth in (1, 2):
            expect(bar.get_by_role("status")).to_contain_text(f"Stopped before call {nth}")
            bar.get_by_role("button", name="Step", exact=True).click()
        expect(bar.get_by_role("status")).to_contain_text("Stopped before call 3")
        bar.get_by_role("button", name="Continue").click()
        bar.get_by_role("button", name="Close").click()
        notebook.idle()
        assert len(said(notebook, 2)) == 3


def test_the_toolbar_steps_the_selected_cell_with_the_sidebar_shut(story):
    story.notebook.select(2)
    story.page.locator(".tape-mode select").select_option("step")
    story.at(1)
    expect(story.page.locator(".tape-mode select")).to_have_value("step")
    story.do("Continue")
    story.over()
    expect(story.page.locator(".tape-mode select")).to_have_value("off")
