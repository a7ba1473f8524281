"""Editing a reply in JupyterLab and Notebook 7: what is typed in the viewer stays in the viewer, and the changed reply
re-runs the cells that depend on it, where they stand.
"""

import hashlib
import re

import pytest
from playwright.sync_api import expect

from tests.browser.jupyter import Notebook, write

SETUP = """%load_ext tape_jupyter
import anthropic
client = anthropic.Anthropic(base_url={url!r}, api_key='sk-test')
def ask(text):
    with client.messages.stream(model="claude-sonnet-5", max_tokens=50, messages=[{{"role": "user", "content": text}}]) as s:
        return "".join(s.text_stream)"""
CELLS = (
    "%%tape record\nmood = ask('Classify: no access to my billing information')\nprint('mood:', mood)",
    "tone = 'TONE ' + mood.upper()\nprint(tone)",
    "other = globals().get('other', 0) + 1\nprint('other', other)",
    "print('report:', tone)",
)


@pytest.fixture
def recorded(server, page, request, provider):
    """A notebook whose cell 2 was recorded; 3 and 5 hang on its reply, 4 does not; more cells may follow."""

    def recorded(*more):
        folder = server.root / re.sub(r"\W+", "-", request.node.name)
        path = write(folder / "churn.ipynb", SETUP.format(url=provider.url), *CELLS, *more)
        notebook = Notebook(page, server, path).open()
        for number in range(1, 6):
            notebook.run(number)
        return notebook

    return recorded


def sidebar_of(notebook):
    notebook.page.evaluate("() => window.jupyterapp.commands.execute('tape-jupyter:show')")
    sidebar = notebook.page.locator(".tape-sidebar")
    expect(sidebar).to_be_visible()
    return sidebar


def widget_of(notebook, number):
    """The viewer of `%tape view` in cell `number`."""
    notebook.run(number)
    view = notebook.cell(number).locator(".tape-view")
    expect(view).to_be_visible()
    view.scroll_into_view_if_needed()
    return view


def edit(view):
    """Open the recorded call and its editor."""
    view.get_by_role("treeitem").nth(1).click()
    view.get_by_role("button", name="Edit reply").click()
    text = view.get_by_role("textbox", name=re.compile("^text", re.IGNORECASE)).first
    expect(text).to_be_focused()
    return text


def cells_of(notebook):
    """All that a person sees of the cells, and which one is the active one."""
    return notebook.javascript(
        "return [panel.content.model.toJSON().cells.map(({source, outputs, execution_count}) => [source, outputs, execution_count]), panel.content.activeCellIndex];"
    )


KEYS = (
    "a", "b", "d", "d", "x", "m", "ArrowDown", "ArrowUp", "Control+a", "Control+c", "Control+z", "Control+Shift+z",
    "Shift+Enter", "Control+Enter", "Alt+Enter", "Enter", "Control+/", "Control+]", "Shift+Tab", "Tab",
)  # fmt: skip


def press_all(notebook, field, keys=KEYS):
    for key in keys:
        field.focus()
        notebook.page.keyboard.press(key)


@pytest.mark.parametrize("place", ["sidebar", "widget"])
def test_keys_typed_in_the_editor_touch_no_cell(recorded, place):
    notebook = recorded("%tape view")
    view = sidebar_of(notebook) if place == "sidebar" else widget_of(notebook, 6)
    text = edit(view)
    before = cells_of(notebook)
    press_all(notebook, text)
    press_all(notebook, view.get_by_label("as take"), [key for key in KEYS if "Enter" not in key])  # Enter saves there
    view.get_by_role("tab", name="JSON").click()
    editor = view.locator(".cm-content")
    expect(editor).to_be_visible()
    press_all(notebook, editor)
    assert cells_of(notebook) == before

    # Typing and undo work in the editor itself; Tab leaves it; Escape closes it, and what was typed is kept.
    editor.focus()
    notebook.page.keyboard.press("Control+End")
    notebook.page.keyboard.type("zebra")
    expect(editor).to_contain_text("zebra")
    notebook.page.keyboard.press("Control+z")
    expect(editor).not_to_contain_text("zebra")
    notebook.page.keyboard.type("okapi")
    notebook.page.keyboard.press("Tab")
    expect(editor).not_to_be_focused()
    notebook.page.keyboard.press("Escape")
    expect(editor).to_have_count(0)
    expect(view.get_by_role("button", name="Edit reply")).to_be_focused()
    notebook.page.keyboard.press("e")
    expect(editor).to_contain_text("okapi")
    assert cells_of(notebook) == before


def changed_story(notebook, view):
    """Edit the reply, look at the plan, re-run: cells 3 and 5 change where they stand, 4 does not."""
    cassette = notebook.path.with_name("churn.tapes") / "main.tape.yaml"
    digest = hashlib.sha256(cassette.read_bytes()).hexdigest()
    before = {number: notebook.text(number) for number in range(2, 6)}
    edit(view).fill("furious")
    expect(view.locator("ins")).to_have_text("furious")
    view.get_by_label("as take").fill("angry-customer")
    view.get_by_role("button", name="Save").click()

    expect(view.get_by_role("heading", name=re.compile(r"Re-run 3 of \d cells"))).to_be_visible()
    plan = view.locator(".tape-plan li")
    expect(plan).to_have_count(3)
    expect(plan.nth(0)).to_contain_text("holds the changed reply")
    expect(plan.nth(1)).to_contain_text("mood")
    assert {number: notebook.text(number) for number in range(2, 6)} == before  # nothing has run yet
    view.get_by_role("button", name="Re-run").click()

    expect(view.get_by_role("heading", name=re.compile("3 cells ran, 3 changed"))).to_be_visible(timeout=60_000)
    expect(notebook.output(3).first).to_have_text("TONE FURIOUS")
    expect(notebook.output(5).first).to_have_text("report: TONE FURIOUS")
    assert notebook.text(4) == before[4]
    assert hashlib.sha256(cassette.read_bytes()).hexdigest() == digest
    assert [path.name for path in (cassette.parent / "takes").glob("*.yaml")] == ["main.angry-customer.tape.yaml"]


def test_a_changed_reply_re_runs_what_depends_on_it_in_place(recorded):
    notebook = recorded()
    changed_story(notebook, sidebar_of(notebook))


def test_the_same_without_the_labextension(recorded, server):
    with server.without_extension():
        notebook = recorded("%tape view")
        changed_story(notebook, widget_of(notebook, 6))
