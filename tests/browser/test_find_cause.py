"""Which reply makes two takes differ is asked and answered in JupyterLab's sidebar, among the takes, by keyboard alone."""

import os

import pytest
from playwright.sync_api import expect

import tape_jupyter as tape
from tests.browser.viewing import record, shown, sidebar_of


THEME = "theme => window.jupyterapp.commands.execute('apputils:change-theme', { theme })"


def in_theme(page, name):
    page.evaluate(THEME, f"JupyterLab {name}")
    page.wait_for_function(
        "theme => document.body.dataset.jpThemeName === theme", arg=f"JupyterLab {name}"
    )
    expect(page.locator("#jupyterlab-splash")).to_have_count(0)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_reply_that_makes_the_check_fail_is_found_and_opened(lab, page, provider):
    page.set_viewport_size({"width": 1400, "height": 900})
    notebook = record(lab, page, provider.url, "caused")
    notebook.save()
    base = tape.open(notebook.path.with_suffix(".tapes") / "main.tape.yaml")
    asked = [entry for entry in base.calls if entry.head()["kind"] == "model"]
    base.override(asked[0], text="calm", take="patient")
    view = sidebar_of(notebook)
    shown(view)
    view.get_by_role("button", name="the recording").click()
    card = view.get_by_role("group", name="Find the cause")
    start = card.get_by_role("button", name="Find the cause…")
    expect(start).to_be_enabled(timeout=60_000)
    start.focus()
    page.keyboard.press("Enter")
    field = card.get_by_label("What must hold")
    expect(field).to_be_focused()
    expect(card.get_by_label("It passes with")).to_have_value("patient")
    page.keyboard.press("Enter")
    expect(card.get_by_role("alert")).to_contain_text("say what must hold")
    pictures = os.environ.get("TAPE_PICTURES")
    card.get_by_role("button", name="Find the cause…").press("Enter")
    page.keyboard.type("nobody > 1")
    page.keyboard.press("Enter")
    expect(card).to_contain_text("the check raised NameError", timeout=240_000)
    if pictures:
        in_theme(page, "Dark")
        page.screenshot(path=f"{pictures}/cause-failed-dark.png")
        in_theme(page, "Light")
    card.get_by_role("button", name="Find the cause…").press("Enter")
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("mood == 'calm'")
    if pictures:
        page.screenshot(path=f"{pictures}/cause-asked.png")
    page.keyboard.press("Enter")
    expect(card.get_by_role("status")).to_contain_text(
        "1 difference makes `mood == 'calm'` fail in main", timeout=240_000
    )
    if pictures:
        for scheme, width in (("light", 1400), ("dark", 1400), ("light", 700)):
            in_theme(page, scheme.title())
            page.set_viewport_size({"width": width, "height": 900})
            page.screenshot(path=f"{pictures}/cause-{scheme}-{width}.png")
        page.set_viewport_size({"width": 1400, "height": 900})
    culprit = card.get_by_role("listitem").filter(has=page.get_by_label("the cause"))
    expect(culprit).to_contain_text(asked[0].id)
    culprit.get_by_role("button").press("Enter")
    expect(view.get_by_role("treeitem", selected=True)).to_have_count(1)
