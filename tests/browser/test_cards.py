"""The cards (edit, plan, progress, divergence, comparison, takes) in a real Chromium, over the door of js/test/edit/stage.tsx.

What needs no notebook is proved here: typing, marks, keys, focus, narrow panes, and what axe-core says of each card.
"""

import shutil
import subprocess

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import missing
from tests.harness.notebook import ROOT

CARDS = [
    "edit",
    "value",
    "fault",
    "takes",
    "plan",
    "progress",
    "divergence",
    "comparison",
    "differs",
]
JS = ROOT / "js"


@pytest.fixture(scope="session")
def stage(bundle, tmp_path_factory):
    """The page of the stage, built from the sources as they are."""
    node = shutil.which("node")
    if node is None:
        missing("there is no node here: install node 20 or newer")
    out = tmp_path_factory.mktemp("stage")
    subprocess.run([node, "test/edit/stage.mjs", str(out)], cwd=JS, check=True, capture_output=True)
    return out / "stage.html"


@pytest.fixture
def card(stage, page):
    """Open one card; what it asks the door is `asked(about)`."""

    def card(name, *, width=560, height=760, scheme="light", plain=False):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": height})
        page.goto(f"file://{stage}?card={name}" + ("&plain" if plain else ""))
        if name == "takes":
            page.get_by_role("button", name="take:").click()
        expect(
            page.locator(".tape-edit [role=tab], .tape-popup, .tape-card h2").first
        ).to_be_visible()
        return page

    return card


def asked(page, about):
    return page.evaluate("about => door.asked.filter(each => each.about === about)", about)


def focused(page):
    """Who has the focus, in words."""
    return page.evaluate(
        "() => { const at = document.querySelector('#stage').shadowRoot.activeElement;"
        " return at && (at.getAttribute('aria-label') || at.labels?.[0]?.textContent || at.textContent) }"
    )


# ---------------------------------------------------------------- the editor


def test_json_is_edited_with_marks_against_the_recording(card):
    page = card("edit")
    editor = page.get_by_role("textbox", name="tool 1: arguments")
    expect(editor).to_have_class("cm-content cm-lineWrapping", timeout=10_000)
    editor.locator("text=my order").click()
    page.keyboard.press("End")
    page.keyboard.type(' "since": "May",')
    expect(page.locator(".cm-changedText, .cm-changedLine").first).to_be_visible()
    page.get_by_role("button", name="Save").click()
    edit = asked(page, "override")[0]["edit"]
    assert edit["form"] == "fields"
    assert '"since": "May"' in edit["fields"][0]["value"]
    expect(page.get_by_role("heading", name="Re-run 4 of 9 cells")).to_be_focused()


def test_undo_takes_back_what_was_typed_in_the_editor(card):
    page = card("value")
    editor = page.get_by_role("textbox", name="Returned value as JSON")
    editor.click()
    page.keyboard.press("Control+End")
    page.keyboard.type("oops")
    expect(page.get_by_text("Not JSON")).to_be_visible()
    expect(page.locator(".tape-mistake")).to_have_count(1)
    expect(page.get_by_role("button", name="Save")).to_be_disabled()
    page.keyboard.press("Control+z")
    expect(editor).not_to_contain_text("oops")
    expect(page.locator(".tape-mistake")).to_have_count(0)


def test_tab_leaves_the_editor_and_escape_closes_the_pane(card):
    page = card("value")
    page.get_by_role("textbox", name="Returned value as JSON").click()
    page.keyboard.press("Tab")
    assert "take" in focused(page)
    page.keyboard.press("Shift+Tab")
    assert focused(page) == "Returned value as JSON"
    page.keyboard.type("x")
    page.keyboard.press("Escape")
    expect(page.locator(".tape-edit")).to_have_count(0)


def test_enter_in_the_takes_name_saves(card):
    page = card("edit")
    page.get_by_label("text", exact=True).fill("calm")
    page.get_by_label("as take").fill("calm-customer")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Re-run")).to_be_visible()
    assert asked(page, "override")[0]["take"] == "calm-customer"


def test_without_the_editor_a_plain_field_takes_its_place(card):
    page = card("value", plain=True)
    expect(page.get_by_text("plain text field")).to_be_visible()
    page.get_by_label("Returned value as JSON").fill("[]")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="Re-run")).to_be_visible()
    assert asked(page, "override")[0]["edit"] == {"form": "value", "value": "[]"}


PASTE = """(node, length) => {
  const data = new DataTransfer();
  data.setData('text/plain', 'x'.repeat(length));
  return node.dispatchEvent(new ClipboardEvent('paste', {clipboardData: data, bubbles: true, cancelable: true, composed: true}));
}"""


@pytest.mark.parametrize(("name", "field"), [("edit", "text"), ("value", "Returned value as JSON")])
def test_ten_megabytes_are_not_pasted(card, name, field):
    page = card(name)
    node = page.get_by_label(field, exact=True)
    before = node.evaluate("node => node.value ?? node.textContent")
    node.evaluate(PASTE, 10 * 2**20)
    expect(page.get_by_role("alert")).to_contain_text(
        "What you pasted is 10 MiB; an edit holds at most 4 MiB."
    )
    assert node.evaluate("node => node.value ?? node.textContent") == before


def test_save_is_in_sight_in_a_low_pane(card):
    page = card("edit", width=300, height=420)
    page.get_by_label("text", exact=True).fill("line\n" * 200)
    expect(page.get_by_role("button", name="Save")).to_be_in_viewport()


def test_the_choices_at_a_changed_request_are_in_sight_however_long_it_is(card):
    page = card("divergence", width=250, height=380)
    body = page.locator(".tape-cards")
    assert body.evaluate("node => node.scrollHeight > node.clientHeight + 100")
    for name in ("Go live", "Write the reply", "Keep the recorded one", "Skip"):
        expect(page.get_by_role("button", name=name)).to_be_in_viewport(ratio=1)
    expect(page.get_by_label("the same for the rest of this re-run")).to_be_in_viewport(ratio=1)


def compared(page, **told):
    """A re-run that ended so."""
    of = {
        "take": "angry", "ran": 1, "skipped": [], "stopped": None, "spans": [], "variables": [],
        "cells": [], "proof": {"state": "proved", "text": "", "adopt": []},
    }  # fmt: skip
    page.evaluate("told => door.tell('done', told)", of | told)


ARROWS_CUT = """() => {
  const words = document.createTreeWalker(document.querySelector('#stage').shadowRoot, NodeFilter.SHOW_TEXT);
  const top = (text, at) => {
    const range = document.createRange();
    range.setStart(text, at);
    range.setEnd(text, at + 1);
    return range.getBoundingClientRect().top;
  };
  const found = [];
  while (words.nextNode()) {
    const text = words.currentNode, at = text.data.indexOf('->');
    if (at >= 0) found.push(top(text, at) !== top(text, at + 1));
  }
  return found;
}"""


def test_no_line_ends_within_an_arrow(card):
    page = card("comparison")
    note = '"negative" -> "positive"'
    call = {"before": "r-1/1", "after": "r-2/1", "name": "model", "mark": "changed", "note": note}
    proof = {"state": "differs", "text": "[3] model (negative -> positive)", "adopt": []}
    compared(page, spans=[call], proof=proof)
    for width in range(150, 400, 4):
        page.set_viewport_size({"width": width, "height": 700})
        assert page.evaluate(ARROWS_CUT) == [False, False], width


def test_the_columns_that_changed_are_in_sight_in_a_wide_table(card):
    page = card("comparison", width=320)
    names = ["region", *(f"column {n}" for n in range(12)), "lost"]
    rows = ["north," + "same," * 12, "south," + "same," * 12]
    before, after = (
        "\n".join([",".join(names), rows[0] + lost, rows[1] + "2"]) + "\n" for lost in ("4", "9")
    )
    table = {"kind": "table", "before": before, "after": after}
    told = {"cell": "b", "number": 3, "title": "report", "same": False, "outputs": [table]}
    compared(page, cells=[told])
    expect(page.locator("table ins")).to_have_text("9")
    expect(page.locator("table ins")).to_be_in_viewport(ratio=1)
    expect(page.get_by_role("columnheader")).to_have_text(["change", "region", "lost"])
    expect(page.get_by_text("1 more row, 12 more columns")).to_be_visible()
    page.get_by_role("button", name="show those that are the same").click()
    expect(page.get_by_role("columnheader")).to_have_count(1 + len(names))


UNLIKE = """node => {
  const light = text => {
    const [r, g, b] = text.match(/[\\d.]+/g).map(each => { const c = each / 255; return c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4; });
    return .2126 * r + .7152 * g + .0722 * b + .05;
  };
  const {color, backgroundColor} = getComputedStyle(node), [one, other] = [light(color), light(backgroundColor)];
  return Math.max(one, other) / Math.min(one, other);
}"""


def test_a_button_that_is_hovered_can_be_read_whether_it_can_be_pressed_or_not(card):
    for scheme in ("light", "dark"):
        page = card("edit", scheme=scheme)
        save = page.get_by_role("button", name="Save")
        expect(save).to_be_disabled()
        for pressed in ("false", "true"):  # as a mode that is on, and cannot be changed meanwhile
            save.evaluate("(node, on) => node.setAttribute('aria-pressed', on)", pressed)
            save.hover(force=True)
            assert save.evaluate("node => node.matches(':hover')")
            assert save.evaluate(UNLIKE) > 4.5, (scheme, pressed)


# ---------------------------------------------------------------- all cards


TOO_WIDE = """() => [...document.querySelector('#stage').shadowRoot.querySelectorAll('.tape-card, .tape-edit, .tape-fields, .tape-popup')]
  .filter(each => each.scrollWidth > each.clientWidth + 1 || each.getBoundingClientRect().right > innerWidth + 1)
  .map(each => each.className + ' ' + each.scrollWidth)"""


@pytest.mark.parametrize("name", CARDS)
def test_nothing_is_cut_off_at_the_side(card, name):
    """Tables may scroll inside their own box; the card itself has no more width than its pane."""
    page = card(name)
    for width in (250, 300, 400, 900):
        page.set_viewport_size({"width": width, "height": 760})
        assert page.evaluate(TOO_WIDE) == [], width


@pytest.mark.spread(3)
@pytest.mark.parametrize("name", CARDS)
def test_axe_finds_nothing_wrong_with_a_card(card, name):
    page = card(name)
    if name == "edit":
        page.get_by_label("text", exact=True).fill("The customer sounds delighted.")
        page.get_by_label("tool 1: name").fill("lookup_invoice")
        expect(page.get_by_text("keep it as it is")).to_be_visible()
    page.add_script_tag(path=JS / "node_modules" / "axe-core" / "axe.min.js")
    rules = (
        "{rules: {'page-has-heading-one': {enabled: false}}}"  # the view around the cards has it
    )
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        ground = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
        assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(17, 17, 17)"}[scheme]
        found = page.evaluate(f"async () => (await axe.run(document, {rules})).violations")
        assert [
            (each["id"], each["nodes"][0]["html"], each["nodes"][0]["failureSummary"])
            for each in found
        ] == [], scheme


def test_the_plan_is_worked_by_keyboard_alone(card):
    page = card("plan")
    expect(page.get_by_role("heading", name="Re-run 4 of 9 cells")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    expect(page.get_by_role("heading", name="Re-run 3 of 9 cells")).to_be_visible()
    expect(page.get_by_text("[3] needs it, and will read what is there now.")).to_be_visible()
    page.keyboard.press("Space")
    for _ in range(8):
        page.keyboard.press("Tab")
    assert focused(page) == "Re-run"
    page.keyboard.press("Enter")
    expect(page.locator(".tape-card-plan")).to_have_count(0)
    assert asked(page, "rerun")[0]["entries"] == [1, 2, 4, 6]


def test_escape_closes_the_takes_and_gives_the_focus_back(card):
    page = card("takes")
    page.keyboard.press("Escape")
    expect(page.locator(".tape-popup")).to_have_count(0)
    expect(page.get_by_role("button", name="take:")).to_be_focused()
