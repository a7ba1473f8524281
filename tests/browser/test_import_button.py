"""A recording of another system is imported from JupyterLab's sidebar: a notebook beside this one, that replays it."""

import json
import os
import re

import pytest
from playwright.sync_api import expect

from tests.browser.test_axe_doors import THEME
from tests.browser.viewing import record, shown, sidebar_of

MINUTE = 60_000
ENTRY = {
    "startedDateTime": "2026-01-01T00:00:00Z",
    "time": 5,
    "request": {
        "method": "GET",
        "url": "https://example.com/a",
        "headers": [{"name": "accept", "value": "text/plain"}],
    },
    "response": {
        "status": 200,
        "headers": [{"name": "content-type", "value": "text/plain"}],
        "content": {"size": 2, "mimeType": "text/plain", "text": "hi"},
    },
}
CANCELLED = {**ENTRY, "response": {"status": 0, "headers": [], "content": {}}}


def har(path, *entries):
    path.write_text(json.dumps({"log": {"version": "1.2", "entries": entries}}))


def pictured(page, name):
    """Its picture in light, dark and narrow, where a person wants to look: TAPE_PICTURES names the folder."""
    folder = os.environ.get("TAPE_PICTURES")
    for theme, width in (("Light", 1400), ("Dark", 1400), ("Light", 700)) if folder else ():
        page.evaluate(THEME, f"JupyterLab {theme}")
        page.wait_for_function(
            "theme => document.body.dataset.jpThemeName === theme", arg=f"JupyterLab {theme}"
        )
        page.locator("#jupyterlab-splash").wait_for(state="detached")  # it covers all meanwhile
        page.set_viewport_size({"width": width, "height": 900})
        page.screenshot(path=f"{folder}/import-{name}-{theme.lower()}-{width}.png")
    page.set_viewport_size({"width": 1400, "height": 900})


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_trace_is_named_and_becomes_a_notebook_beside_this_one(lab, page, provider):
    """By the keyboard alone, from the first *Import…* on."""
    page.set_viewport_size({"width": 1400, "height": 900})
    notebook = record(lab, page, provider.url, "imported")
    folder = notebook.path.parent
    har(folder / "failure.har", ENTRY)
    har(folder / "nothing.har", CANCELLED)
    view = sidebar_of(notebook)
    shown(view)
    view.get_by_role("button", name="the recording").click()
    card = view.get_by_role("group", name="Import")

    def ask(file):
        card.get_by_role("button", name="Import…").focus()
        page.keyboard.press("Enter")
        expect(card.get_by_label("File or folder")).to_be_focused()
        page.keyboard.type(file)
        page.keyboard.press("Enter")

    card.get_by_role("button", name="Import…").focus()
    page.keyboard.press("Enter")
    assert card.locator("datalist option").first.get_attribute("value") == "failure.har"
    pictured(page, "asked")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(card.get_by_label("File or folder")).to_have_count(0)
    page.keyboard.press("Tab")  # the focus is where the form was
    expect(card.get_by_role("button", name="Import…")).to_be_focused()

    ask("gone.har")
    expect(card.get_by_role("alert")).to_contain_text("there is no such file")
    pictured(page, "gone")

    (folder / "notes.json").write_text('{"a": 1}')
    ask("notes.json")
    expect(card).to_contain_text("is in no format that is known", timeout=MINUTE)
    pictured(page, "failed")

    ask("nothing.har")
    expect(card.get_by_role("status")).to_have_text("Nothing to import", timeout=MINUTE)
    expect(card).to_contain_text("a request without a reply")
    pictured(page, "nothing")

    ask("failure.har")
    expect(card).to_contain_text("Imported: open failure.ipynb", timeout=MINUTE)
    pictured(page, "done")
    assert (folder / "failure.ipynb").exists() and not (folder / "nothing.ipynb").exists()


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_long_import_shows_how_far_it_is_and_can_be_stopped(lab, page, provider):
    page.set_viewport_size({"width": 1400, "height": 900})
    notebook = record(lab, page, provider.url, "stopped")
    folder = notebook.path.parent
    har(folder / "long.har", *[ENTRY] * 200_000)
    before = sorted(folder.iterdir())
    view = sidebar_of(notebook)
    shown(view)
    view.get_by_role("button", name="the recording").click()
    card = view.get_by_role("group", name="Import")
    card.get_by_role("button", name="Import…").click()
    page.keyboard.type("long.har")
    page.keyboard.press("Enter")
    expect(card.get_by_role("status")).to_have_text(
        re.compile(r"^reading long\.har: record \d+$"), timeout=MINUTE
    )
    pictured(page, "running")
    card.get_by_role("button", name="Stop").click()
    expect(card).to_contain_text("the import was stopped; nothing was written", timeout=MINUTE)
    pictured(page, "stopped")
    assert sorted(folder.iterdir()) == before, "no half-written cassette"
