"""What axe-core says of the view in the sidebar and in a widget, from the list to the comparison, in light and dark."""

import re
import threading

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import fresh_page
from tests.browser.jupyter import RAN, Notebook, write
from tests.browser.viewing import SETUP, output_of, sidebar_of
from tests.harness.notebook import ROOT
from tests.harness.provider import Provider, Scripted
from tests.harness.tapes import ASK

pytestmark = pytest.mark.night  # twenty looks of axe-core at all of JupyterLab take a minute
AXE = ROOT / "js" / "node_modules" / "axe-core" / "axe.min.js"

STORY = (
    "%load_ext tape_jupyter\n" + ASK.replace("URL", "{url}"),
    "%%tape record\nmood = ask('Classify: no access to my billing information')\nprint('mood:', mood)",
    "print('TONE', mood.upper())",
    "%tape view",
)


@pytest.fixture(scope="module")
def story(lab, chromium):
    """A notebook of one recorded reply, a cell that hangs on it, and a widget."""
    with Provider() as provider, fresh_page(chromium) as page:
        cells = [each.replace("{url}", provider.url) for each in STORY]
        notebook = Notebook(page, lab, write(lab.root / "axe" / "churn.ipynb", *cells)).open()
        page.add_script_tag(path=AXE)
        for number in range(1, len(STORY) + 1):
            notebook.run(number)
        yield notebook


VIOLATIONS = """async () => {
  const place = document.querySelector('[data-axe]');
  const { violations } = await axe.run(place);
  return violations.map(each => [each.id, each.nodes[0].html, each.nodes[0].failureSummary]);
}"""
THEME = "theme => window.jupyterapp.commands.execute('apputils:change-theme', { theme })"


def nothing_found(view, what):
    """In the light theme and in the dark one."""
    page = view.page
    view.evaluate(
        "node => { document.querySelector('[data-axe]')?.removeAttribute('data-axe'); node.dataset.axe = ''; }"
    )
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        page.evaluate(THEME, theme)
        page.wait_for_function("theme => document.body.dataset.jpThemeName === theme", arg=theme)
        assert page.evaluate(VIOLATIONS) == [], (what, theme)


@pytest.mark.parametrize("place", ["sidebar", "widget"])
def test_axe_finds_nothing_found_from_the_list_to_the_comparison(story, place):
    view = (
        sidebar_of(story)
        if place == "sidebar"
        else story.cell(len(STORY)).locator(".jp-OutputArea-output").first
    )
    view.scroll_into_view_if_needed()
    call = view.get_by_role("treeitem").nth(1)
    expect(call).to_be_visible()
    nothing_found(view, "the list")
    call.click()
    expect(view.get_by_role("tabpanel")).not_to_be_empty()
    nothing_found(view, "a call")
    view.get_by_role("button", name="Edit reply").click()
    view.get_by_label("text", exact=True).fill(f"furious in the {place}")
    expect(view.locator("ins").first).to_be_visible()
    nothing_found(view, "the edit pane")
    view.get_by_label("as take").fill(f"angry-{place}")
    view.get_by_role("button", name="Save").click()
    expect(view.get_by_role("heading", name=re.compile(r"Re-run 2 of \d cells"))).to_be_visible()
    nothing_found(view, "the plan")
    view.get_by_role("button", name="Re-run").click()
    expect(view.get_by_role("heading", name=re.compile("2 cells ran"))).to_be_visible()
    nothing_found(view, "the comparison")


HELD = """%%tape record
once = claude.with_options(max_retries=0)
asked = [{"role": "user", "content": "mood?"}]
for _ in range(2):
    once.messages.create(model="claude-sonnet-5", max_tokens=9, messages=asked)"""
REPLY = b'{"id":"m","type":"message","role":"assistant","model":"claude-sonnet-5","content":[{"type":"text","text":"negative"}],"usage":{"input_tokens":5,"output_tokens":2}}'
WRONG = b'{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}'


def test_axe_finds_nothing_in_an_empty_sidebar_a_live_cell_an_error_an_output_and_a_stop(lab, page):
    """In a narrow sidebar, and below the cell."""
    gate, head = threading.Event(), {"content-type": "application/json"}
    with Provider() as provider:
        provider.script(
            "/v1/messages",
            Scripted(200, head, [REPLY], gates={0: gate}),
            Scripted(429, head, [WRONG]),
        )
        path = write(lab.root / "axe-live" / "churn.ipynb", SETUP.format(url=provider.url), HELD)
        notebook = Notebook(page, lab, path).open()
        page.add_script_tag(path=AXE)
        notebook.run(1)
        view, cell = sidebar_of(notebook), notebook.cell(2)
        expect(view.get_by_text("Nothing recorded yet")).to_be_visible()
        nothing_found(view, "an empty sidebar")
        notebook.run(2, wait=False)
        try:
            expect(cell.locator(".tape-live")).to_contain_text("waits for claude-sonnet-5")
            expect(view.locator(".live")).to_be_visible()
            nothing_found(view, "a live cell")
            nothing_found(cell.locator(".tape-live"), "the line of a live cell")
        finally:
            gate.set()
        page.wait_for_function(RAN, arg={"path": notebook.name, "numbers": [2]})
    row = view.get_by_role("treeitem").filter(has_text="429")
    if not view.locator(".error").count():
        row.click()
    expect(view.locator(".error")).to_contain_text("429")
    nothing_found(view, "an error")
    output = output_of(notebook, 2)
    expect(output.get_by_role("treeitem").first).to_be_visible()
    nothing_found(output, "an opened output")
    view.get_by_role("button", name="Back to the list").click()
    notebook.select(2)
    view.get_by_role("button", name="Step the selected cell").click()
    expect(view.get_by_label("The stop")).to_be_visible()
    nothing_found(view, "a stop")
    nothing_found(cell.locator(".tape-live"), "the line of a stopped cell")
