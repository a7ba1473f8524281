"""A recording of another system is imported from JupyterLab's sidebar: a notebook beside this one, that replays it."""

import os
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.viewing import record, shown, sidebar_of

SAMPLES = Path(__file__).resolve().parents[3] / "shared" / "interop" / "samples"


@pytest.mark.timeout(400)
def test_a_trace_is_named_and_becomes_a_notebook_beside_this_one(lab, page, provider):
    page.set_viewport_size({"width": 1400, "height": 900})
    notebook = record(lab, page, provider.url, "imported")
    trace = next(each for each in sorted(SAMPLES.rglob("*.yaml")) if "vcr" in str(each).lower())
    shutil.copy(trace, notebook.path.with_name("failure.yaml"))
    view = sidebar_of(notebook)
    shown(view)
    view.get_by_role("button", name="the recording").click()
    card = view.get_by_role("group", name="Import")
    card.get_by_role("button", name="Import…").focus()
    page.keyboard.press("Enter")
    field = card.get_by_label("File or folder")
    expect(field).to_be_focused()
    assert card.locator("datalist option").first.get_attribute("value") == "failure.yaml"
    page.keyboard.type("gone.yaml")
    page.keyboard.press("Enter")
    expect(card.get_by_role("alert")).to_contain_text("there is no such file")
    card.get_by_role("button", name="Import…").click()
    page.keyboard.type("failure.yaml")
    if pictures := os.environ.get("TAPE_PICTURES"):
        page.screenshot(path=f"{pictures}/import-asked.png")
    page.keyboard.press("Enter")
    expect(card).to_contain_text("Imported: open failure.ipynb", timeout=60_000)
    if pictures:
        for scheme, width in (("light", 1400), ("dark", 1400), ("light", 700)):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": 900})
            page.screenshot(path=f"{pictures}/import-{scheme}-{width}.png")
    assert notebook.path.with_name("failure.ipynb").exists()
