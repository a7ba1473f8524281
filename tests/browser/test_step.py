"""Stepping through a run in JupyterLab and Notebook 7, with the newest ipykernel and with 6.31, which has no subshells.

A cell of three calls, and one of two threads, are recorded once; each test steps them, and leaves the kernel idle and
the recording as it was.
"""

import ast
import hashlib
import json
import re

import pytest
from playwright.sync_api import expect

from tests.harness import old_kernel
from tests.browser.conftest import fresh_page
from tests.browser.jupyter import Notebook, serve, write
from tests.browser.viewing import SETUP, sidebar_of
from tests.harness.provider import Provider

pytestmark = pytest.mark.spread(3)  # by day in one front end
THREE = """%%tape record
# Three orders
answers = []
for order in ("first", "second", "third"):
    answers.append(ask(f"Where is my {order} order?"))
    print("asked for the", order)
print(answers)"""
TWO = """%%tape record
# Two at once
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(2) as pool:
    both = list(pool.map(ask, ["Here is one", "There is another"]))
print("both:", both)"""
FOUR = """%%tape record
# Four
once = claude.with_options(max_retries=0)
def said(text):
    asked = [{"role": "user", "content": text}]
    return once.messages.create(model="claude-sonnet-5", max_tokens=50, messages=asked).content[0].text
got = []
for text in ("alpha", "beta", "gamma", "delta"):
    try:
        got.append(said(text))
    except Exception as error:
        got.append(type(error).__name__)"""
PAID = """%%tape step paid --record
# Paid
paid = [said("a long question"), said("an unwise one"), said("one more")]"""


@pytest.fixture(scope="session")
def six(tmp_path_factory):
    return old_kernel.installed(tmp_path_factory.mktemp("ipykernel-6"))


@pytest.fixture(scope="module", params=["lab", "notebook7", "lab-ipykernel-6"])
def server(request, tmp_path_factory):
    if "6" not in request.param:
        yield request.getfixturevalue(request.param)
        return
    request.getfixturevalue("chromium")
    with serve("lab", tmp_path_factory.mktemp("old"), request.getfixturevalue("six")) as made:
        yield made


@pytest.fixture(scope="module")
def recorded(server, chromium, request):
    """An open notebook: cell 2 asked three times, cell 3 from two threads; one for all tests of a server."""
    folder = re.sub(r"\W+", "-", request.node.nodeid + str(server.url))
    with Provider(vary=True) as provider, fresh_page(chromium) as page:
        cells = [
            SETUP.format(url=provider.url),
            THREE,
            TWO,
            "print(len(answers), 'answers')",
            FOUR,
            PAID,
        ]
        notebook = Notebook(
            page, server, write(server.root / folder / "churn.ipynb", *cells)
        ).open()
        for number in (1, 2, 3, 4, 5):
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

    def list(self):
        """See the list of calls: where there is little room, the stop stands in front of it, once it is drawn."""
        expect(self.sidebar.get_by_label("The stop")).to_be_visible()
        show = self.sidebar.get_by_role("button", name="Show the list")
        if show.count():
            show.click()

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
    return ast.literal_eval(
        next(line for line in notebook.text(number).splitlines() if line.startswith(("['", '["')))
    )


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


FOCUS = """() => {
  const inside = document.querySelector('.tape-sidebar').contains(document.activeElement);
  return inside && Boolean(document.activeElement.shadowRoot?.activeElement);
}"""


def test_the_keys_act_after_the_toolbars_step_after_a_call_went_live_and_after_stop(story):
    """The focus is in the viewer each time, never on the page's body."""
    page, stop = story.page, story.sidebar.get_by_label("The stop")
    page.on("dialog", lambda dialog: dialog.accept())
    story.notebook.select(5)
    page.locator(".jp-NotebookPanel:visible .tape-mode select").select_option("step")
    story.at(1)
    page.wait_for_function(FOCUS)
    stop.get_by_role("button", name="Answer by hand…").click()
    stop.get_by_role("textbox", name="The text of the reply").fill("By hand.")
    stop.get_by_role("button", name="Answer with this").click()
    story.at(2)
    page.wait_for_function(FOCUS)
    live = stop.get_by_role("button", name="Let it go live")
    if live.count():
        live.focus()
        page.keyboard.press("Enter")
        story.at(3)
        page.wait_for_function(FOCUS)
    ends = story.bar.get_by_role("button", name="Stop", exact=True)
    ends.focus()
    page.keyboard.press("Enter")
    story.over()
    page.wait_for_function(FOCUS)


def test_a_call_fails_the_next_is_answered_by_hand_one_goes_live_and_one_is_refused(story):
    story.begin(5)
    story.at(1)
    stop = story.sidebar.get_by_label("The stop")
    stop.get_by_role("button", name="Fault…").click()
    stop.get_by_role("radio", name="500, internal error").check()
    stop.get_by_role("button", name="Save and go on").click()
    story.at(2)
    stop.get_by_role("button", name="Answer by hand…").click()
    stop.get_by_role("textbox", name="The text of the reply").fill("From my own hand.")
    stop.get_by_role("button", name="Answer with this").click()
    story.at(3)
    assert not story.provider.requests
    stop.get_by_role("button", name="Let it go live").click()
    story.at(4)
    assert len(story.provider.requests) == 1
    stop.get_by_role("button", name="Refuse").click()
    story.over()
    assert len(story.provider.requests) == 1
    failed, by_hand, live = ast.literal_eval(story.notebook.python("print(got)"))
    assert (failed, by_hand) == ("StatusError", "From my own hand.") and "gamma" in live
    assert "BlockedConnection" in story.notebook.text(5)


def test_where_a_call_is_not_on_the_tape_the_stop_shows_what_is_asked_otherwise(story):
    story.notebook.python("kept = ask\ndef ask(text): return kept(text.replace('second', 'lost'))")
    try:
        story.begin(2)
        story.at(1)
        story.do("Step")
        story.at(2)
        stop = story.sidebar.get_by_label("The stop")
        changed = stop.get_by_label("Fields that differ")
        expect(changed.locator("del")).to_have_text("second")
        expect(changed.locator("ins")).to_have_text("lost")
        stop.get_by_role("button", name="Refuse").click()
        story.over()
        assert not story.provider.requests
    finally:
        story.notebook.python("ask = kept")


def test_run_to_the_call_that_is_selected_ahead_and_back(story):
    story.begin(2)
    story.at(1)
    calls = story.sidebar.locator("[role=treeitem].model")
    for row, nth in ((2, 3), (0, 1), (1, 2)):
        story.list()
        calls.nth(row).click()
        story.do("To here")
        story.at(nth)
    story.do("Continue")
    story.over()


def test_a_recording_waits_before_money_is_spent_its_request_is_changed_and_one_is_answered(story):
    story.notebook.run(6, wait=False)
    story.at(1)
    stop = story.sidebar.get_by_label("The stop")
    expect(stop).to_contain_text("goes out when you step")
    assert not story.provider.requests
    stop.get_by_role("button", name="Change the request…").click()
    stop.get_by_role("textbox", name="The request's body").click()
    story.page.keyboard.press("Control+a")
    body = {
        "model": "claude-sonnet-5",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "short"}],
    }
    story.page.keyboard.insert_text(json.dumps(body))
    stop.get_by_role("button", name="Change the request", exact=True).click()
    expect(story.bar).to_contain_text("the request is changed")
    story.do("Step")
    story.at(2)
    assert [asked.json for asked in story.provider.requests] == [body]
    stop.get_by_role("button", name="Answer by hand…").click()
    stop.get_by_role("textbox", name="The text of the reply").fill("Unspent.")
    stop.get_by_role("button", name="Answer with this").click()
    story.at(3)
    expect(story.bar).to_contain_text("1 edit in take")
    stop.get_by_role("button", name="Fault…").click()  # it can also fail
    expect(stop.get_by_role("radio", name="timeout")).to_be_visible()
    stop.get_by_role("button", name="Cancel").click()
    story.do("Step")
    story.over()
    assert len(story.provider.requests) == 2  # what was answered by hand was never sent
    tapes = story.notebook.path.with_name("churn.tapes")
    assert "Unspent." not in (tapes / "paid.tape.yaml").read_text()
    assert "Unspent." in "".join(take.read_text() for take in (tapes / "takes").glob("paid.*"))


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
    expect(story.notebook.page.locator(".tape-stopped-line")).to_contain_text(
        "claude.messages.stream"
    )


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
    cells = story.notebook.javascript(
        "return panel.content.model.toJSON().cells.map(cell => cell.source);"
    )
    story.bar.get_by_role("button", name="Step", exact=True).focus()
    for key, nth in ((".", 2), ("m", 3), (",", 2)):
        story.page.keyboard.press(key)
        story.at(nth)
    story.page.keyboard.press("c")
    story.over()
    assert (
        story.notebook.javascript(
            "return panel.content.model.toJSON().cells.map(cell => cell.source);"
        )
        == cells
    )


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
    expect(stop.locator(".step-variables")).to_contain_text(
        re.compile("Here is one|There is another")
    )
    story.do("Step")  # the other one stays where it is
    expect(strands).to_have_count(0)
    expect(story.bar.get_by_role("status")).to_contain_text("Stopped before call")
    assert second
    story.do("Continue")
    story.over()
    assert "Here" in story.notebook.text(3) or "both:" in story.notebook.text(3)


@pytest.mark.slow
def test_a_tab_that_was_closed_at_a_stop_shows_it_again_and_goes_on_from_there(story):
    story.begin(2)
    story.at(1)
    story.do("Step")
    story.at(2)
    story.reload()
    story.at(2)  # the sidebar opens by itself
    expect(story.notebook.cell(2)).to_have_class(re.compile("tape-stopped"))
    shown = story.notebook.cell(2).locator(".jp-OutputArea")
    expect(shown).to_contain_text("asked for the first")  # what it had printed is there again
    expect(shown).not_to_contain_text("asked for the second")
    story.do("Back")
    story.at(1)
    expect(shown).not_to_contain_text("asked for the first")
    for nth in (2, 3):
        story.do("Step")
        story.at(nth)
    expect(shown).to_contain_text("asked for the second")  # and what it prints from now on
    story.do("Continue")
    story.over()
    assert said(story.notebook, 2) == ast.literal_eval(story.notebook.python("print(answers)"))
    assert story.notebook.text(2).count("asked for the") == 3
    expect(story.notebook.cell(2).locator(".jp-InputPrompt")).to_have_text(re.compile(r"\[\d+\]"))


def test_the_kernel_is_the_one_that_is_meant(recorded, request):
    version = recorded.notebook.python("import ipykernel; print(ipykernel.__version__)")
    assert version.startswith("6.31" if "ipykernel-6" in request.node.name else "7.")


@pytest.mark.slow
def test_without_the_labextension_the_widget_steps_the_cell_that_runs_next(
    server, provider, chromium
):
    cells = [SETUP.format(url=provider.url), THREE, "%tape view"]
    path = write(server.root / "step-widget" / "churn.ipynb", *cells)
    with server.without_extension(), fresh_page(chromium) as page:
        notebook = Notebook(page, server, path).open()
        for number in (1, 2, 3):
            notebook.run(number)
        view = notebook.cell(3).locator(".tape-view")
        view.get_by_role("button", name="Step the next cell").click()
        expect(view.get_by_text("The next cell that you run stops at each call.")).to_be_visible()
        notebook.run(2, wait=False)
        bar = view.get_by_role("group", name="Step", exact=True)
        for name, nth in (("Step", 1), ("Step", 2), ("Back", 3), ("Step", 2), ("Continue", 3)):
            expect(bar.get_by_role("status")).to_contain_text(f"Stopped before call {nth}")
            bar.get_by_role("button", name=name, exact=True).click()
        bar.get_by_role("button", name="Close").click()
        notebook.idle()
        assert len(said(notebook, 2)) == 3


@pytest.mark.slow
def test_without_any_view_it_is_asked_below_the_cell(server, provider, chromium):
    cells = [SETUP.format(url=provider.url), THREE, *[THREE.replace("record", "step")] * 2]
    path = write(server.root / "step-prompt" / "churn.ipynb", *cells)
    with server.without_extension(), fresh_page(chromium) as page:
        notebook = Notebook(page, server, path).open()
        notebook.run(1, 2)
        first, _, third = said(notebook, 2)
        notebook.run(3, wait=False)
        shown, line = (
            notebook.cell(3).locator(".jp-OutputArea"),
            notebook.cell(3).locator("input.jp-Stdin-input"),
        )
        for nth, typed in ((1, "n"), (2, "e It was never sent."), (3, "b"), (2, "n"), (3, "c")):
            expect(shown).to_contain_text(f"stopped before call {nth}")
            if nth == 1:
                expect(shown).to_contain_text("no view of this notebook is open: asking here")
            expect(line.last).to_have_value("")  # the one before goes in its own time
            line.last.fill(typed)
            line.last.press("Enter")
        notebook.idle()
        assert said(notebook, 3) == [first, "It was never sent.", third]
        expect(line).to_have_count(0)  # the keys go back to its cell as it goes
        notebook.run(4, wait=False)
        shown = notebook.cell(4).locator(".jp-OutputArea")
        expect(shown).to_contain_text("stopped before call 1")
        notebook.javascript("await panel.sessionContext.session.kernel.interrupt();")
        expect(shown).to_contain_text("stepping was stopped")
        notebook.idle()
        assert notebook.python("print(6 * 7)").strip() == "42"


@pytest.mark.slow
def test_the_toolbar_steps_the_selected_cell_with_the_sidebar_shut(story):
    story.notebook.select(2)
    story.page.locator(".tape-mode select").select_option("step")
    story.at(1)
    expect(story.page.locator(".tape-mode select")).to_have_value("step")
    story.do("Continue")
    story.over()
    expect(story.page.locator(".tape-mode select")).to_have_value("off")


@pytest.mark.slow
def test_a_dot_on_the_selected_cell_steps_it_and_the_keys_are_the_stops(story):
    """By keyboard alone: the focus goes to the stop, and a second dot in the notebook begins no second run."""
    story.notebook.select(2)
    story.page.keyboard.press(".")
    story.at(1)
    expect(story.bar.get_by_role("button", name="Step", exact=True)).to_be_focused()
    story.page.keyboard.press(".")
    story.at(2)
    story.notebook.javascript("panel.content.node.focus(); panel.content.activeCell.node.focus();")
    story.page.keyboard.press(".")
    story.at(3)
    story.sidebar.get_by_role("button", name="Continue", exact=True).focus()
    story.page.keyboard.press("c")
    story.over()
    assert said(story.notebook, 2) == said_before(story)


def said_before(story):
    return ast.literal_eval(next(li for li in story.before.splitlines() if li.startswith("[")))
