"""Editing a reply in JupyterLab and Notebook 7: what is typed in the viewer stays in the viewer."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import fresh_page
from tests.browser.viewing import edit, record, sidebar_of, widget_of
from tests.harness.provider import Provider


@pytest.fixture(scope="module", params=["lab", pytest.param("notebook7", marks=pytest.mark.night)])
def recorded(request, chromium):
    """One notebook an application: what is typed changes nothing in it."""
    with Provider() as provider, fresh_page(chromium) as page:
        yield record(
            request.getfixturevalue(request.param), page, provider.url, "editing", "%tape view"
        )


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


@pytest.mark.slow
@pytest.mark.spread(2)
@pytest.mark.parametrize("place", ["sidebar", "widget"])
def test_keys_typed_in_the_editor_touch_no_cell(recorded, place):
    notebook = recorded
    view = sidebar_of(notebook) if place == "sidebar" else widget_of(notebook, 6)
    text = edit(view)
    before = cells_of(notebook)
    press_all(notebook, text)
    press_all(
        notebook, view.get_by_label("as take"), [key for key in KEYS if "Enter" not in key]
    )  # Enter saves there
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
