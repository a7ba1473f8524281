"""A newcomer's hour in the viewer by keys alone: never a click, and the focus is never lost."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.jupyter import RAN, Notebook, write
from tests.browser.viewing import CELLS, SETUP, record, shown

PROOF = 180_000  # ms: a fresh kernel starts for it
FOCUSED = """() => {
  let at = document.activeElement;
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
  const inside = document.querySelector('.tape-sidebar')?.contains(document.activeElement) ?? false;
  return [inside && at.getRootNode() instanceof ShadowRoot, `${at?.tagName} ${at?.className} ${at?.textContent?.slice(0, 60)}`];
}"""
CLICKS = "() => { window.clicks = 0; window.addEventListener('pointerdown', () => { window.clicks++; }, true); }"


class Keys:
    def __init__(self, page):
        self.page, self.press, self.type = page, page.keyboard.press, page.keyboard.type
        page.evaluate(CLICKS)

    def here(self):
        """The focus is in the viewer, as soon as what it was on has been replaced."""
        self.page.wait_for_function(f"() => ({FOCUSED})()[0]")

    def to(self, place, key="Tab"):
        """Walk to it as the keyboard does."""
        shown(place)
        passed = []
        for _ in range(20):
            if place.evaluate("node => node.getRootNode().activeElement === node"):
                return
            self.press(key)
            passed.append(self.page.evaluate(FOCUSED)[1])
        raise AssertionError(passed)

    def give(self, view, name, key="Tab"):
        self.to(view.get_by_role("button", name=name, exact=isinstance(name, str)), key)
        self.press("Enter")

    def command(self, name):
        """What the palette lists under this name."""
        self.press("Control+Shift+c")
        palette = self.page.get_by_role("dialog").or_(self.page.locator("#command-palette"))
        shown(palette.locator(".lm-CommandPalette-input, .lm-CommandPalette-search input").first)
        self.type(name)
        expect(self.page.locator(".lm-CommandPalette-item.lm-mod-active")).to_contain_text(name)
        self.press("Enter")


@pytest.mark.slow
@pytest.mark.timeout(500)
def test_from_the_tree_to_the_exported_file(server, page, provider, request):
    notebook = record(server, page, provider.url, request.node.name)
    notebook.select(2)
    keys = Keys(page)
    keys.command("Show the Tape")
    view = page.locator(".tape-sidebar")
    row = view.locator('[role="tree"] [tabindex="0"]')
    expect(row).to_be_focused()

    keys.press("Home")
    keys.press("ArrowDown")
    keys.press("Enter")
    change_and_hand_on(keys, view, row, notebook)


@pytest.mark.night
@pytest.mark.timeout(700)
def test_from_the_first_cell_to_the_exported_file(server, page, provider, request):
    """Record, restart, replay, read a miss, search the call; then as above."""
    folder = re.sub(r"\W+", "-", request.node.name)
    path = write(
        server.root / folder / "churn.ipynb",
        SETUP.format(url=provider.url),
        *CELLS,
        "%%tape replay\nask('never asked')",
    )
    notebook = Notebook(page, server, path).open()
    keys = Keys(page)
    expect(notebook.cell(1)).to_have_class(re.compile("jp-mod-active"))
    run_to_the_end(keys, notebook, 5)
    asked = len(provider.requests)
    assert asked == 2

    keys.command("Tape Mode: replay")
    notebook.until("%tape status", "mode: +replay")
    keys.command("Restart Kernel…")
    keys.give(page.locator(".jp-Dialog"), "Confirm Kernel Restart")
    notebook.until("1", "")
    keys.press("Escape")
    for _ in range(6):
        keys.press("ArrowUp")
    run_to_the_end(keys, notebook, 5)
    for number in (2, 3):
        expect(notebook.cell(number).locator(".tape-output")).to_contain_text("replayed")
    keys.press("Control+Enter")
    expect(notebook.output(6).first).to_contain_text("is not on the tape")
    assert len(provider.requests) == asked
    keys.press("d")
    keys.press("d")
    expect(notebook.cells).to_have_count(5)
    for _ in range(3):
        keys.press("ArrowUp")
    expect(notebook.cell(2)).to_have_class(re.compile("jp-mod-active"))

    keys.command("Show the Tape")
    view = page.locator(".tape-sidebar")
    row = view.locator('[role="tree"] [tabindex="0"]')
    expect(row).to_be_focused()
    keys.press("/")
    expect(view.get_by_role("searchbox")).to_be_focused()
    keys.type("Classify the sentiment")
    keys.press("Enter")
    keys.to(row)
    keys.press("End")
    keys.press("Enter")
    change_and_hand_on(keys, view, row, notebook)


def run_to_the_end(keys, notebook, count):
    """Run the selected cell and those below it, so many."""
    for _ in range(count):
        keys.press("Shift+Enter")
    told = {"path": notebook.name, "numbers": list(range(1, count + 1))}
    notebook.page.wait_for_function(RAN, arg=told, timeout=60_000)


def change_and_hand_on(keys, view, row, notebook):
    """From the opened call to the exported file."""
    page = keys.page
    expect(view.get_by_role("tabpanel")).to_contain_text("Classify the sentiment")
    keys.here()
    keys.press("e")
    expect(view.get_by_role("textbox", name=re.compile("^text", re.I)).first).to_be_focused()
    keys.press("Control+a")
    keys.type("furious")
    keys.to(view.get_by_label("as take"))
    keys.press("Control+a")
    keys.type("angry")
    keys.press("Enter")
    expect(view.get_by_role("heading", name=re.compile("^Re-run 3 of "))).to_be_focused()
    keys.give(view, "Re-run")
    expect(view.get_by_role("heading", name="Answer: the request has changed")).to_be_focused()
    keys.give(view, re.compile("^Go live"))
    expect(view.get_by_role("heading", name="3 cells ran, 3 changed")).to_be_focused()
    shown(view.locator(".tape-proof", has_text="proved in a fresh kernel ✓"), timeout=PROOF)
    keys.here()
    keys.give(view, "Make default…")
    keys.give(view, "Make it the default")
    expect(view.get_by_role("heading", name="3 cells ran, 3 changed")).to_have_count(0)
    keys.here()
    keys.press("Escape")
    expect(row).to_be_focused()

    keys.press(".")
    bar = view.get_by_role("group", name="Step", exact=True)
    expect(bar.get_by_role("button", name="Step", exact=True)).to_be_enabled()
    keys.here()
    keys.press("c")
    keys.give(bar, "Close", "Shift+Tab")
    expect(bar).to_have_count(0)
    notebook.idle()
    keys.here()

    keys.to(view.get_by_role("button", name="take: angry"), "Shift+Tab")
    keys.press("Enter")
    keys.give(view, "Export…")
    expect(view.get_by_text("Exported and checked")).to_be_visible(timeout=PROOF)
    keys.here()
    keys.press("Escape")
    expect(view.get_by_role("button", name="take: angry")).to_be_focused()
    assert page.evaluate("() => window.clicks") == 0
