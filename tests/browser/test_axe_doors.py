"""What axe-core says of the view in the sidebar and in a widget, from the list to the comparison, in light and dark."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import fresh_page
from tests.browser.jupyter import Notebook, write
from tests.browser.viewing import sidebar_of
from tests.notebook import ROOT
from tests.provider import Provider
from tests.tapes import ASK

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
