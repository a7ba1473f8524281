"""Harness: a notebook of five cells as people write them, recorded in the browser, and the places where its calls are seen."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, expect

from tests.browser.jupyter import Notebook, Server, write

SETUP = """%load_ext tape_jupyter
import plain_claude
claude = plain_claude.Claude(base_url={url!r}, api_key="sk-test")
def ask(text):
    asked = [{{"role": "user", "content": text}}]
    with claude.messages.stream(model="claude-sonnet-5", max_tokens=50, messages=asked) as stream:
        return "".join(stream.text_stream)"""
CELLS = (
    '%%tape record\n# Classify\nmood = ask("Classify the sentiment: I cannot see my billing")\nprint("mood:", mood)',
    '%%tape record\n# Answer\nanswer = ask("Answer a customer who feels " + mood)\nprint("answer:", answer)',
    'runs = globals().get("runs", 0) + 1\nprint("unrelated:", runs)',
    'print("report:", answer.upper())',
)
# By how many pixels the chosen word of a select is cut.
CUT = """select => {
  const whole = select.cloneNode(true);
  whole.value = select.value;
  whole.style.cssText = 'width: max-content; max-width: none; field-sizing: content; position: absolute';
  select.after(whole);
  const cut = whole.getBoundingClientRect().width - select.getBoundingClientRect().width;
  whole.remove();
  return cut;
}"""


def record(server: Server, page, url: str, folder: str, *more: str) -> Notebook:
    """Cells 2 and 3 are recorded, a streamed reply each; 3 asks what 2 was told, 5 reports what 3 was told; 4 stands alone.

    `more` cells follow, which are not run.
    """
    path = write(
        server.root / re.sub(r"\W+", "-", folder) / "churn.ipynb",
        SETUP.format(url=url),
        *CELLS,
        *more,
    )
    notebook = Notebook(page, server, path).open()
    notebook.run(*range(1, 2 + len(CELLS)))
    return notebook


def shown(place: Locator, *, timeout: float | None = None) -> None:
    """Wait until something is there. `expect` looks ever less often: it would add a second to what takes one."""
    place.wait_for(timeout=timeout)


def sidebar_of(notebook: Notebook) -> Locator:
    notebook.page.evaluate("() => window.jupyterapp.commands.execute('tape-jupyter:show')")
    sidebar = notebook.page.locator(".tape-sidebar")
    expect(sidebar).to_be_visible()
    return sidebar


def output_of(notebook: Notebook, number: int) -> Locator:
    """The viewer below a taped cell, opened by the click that opens it."""
    output = notebook.cell(number).locator(".tape-output")
    line = output.locator(".tape-line")
    line.scroll_into_view_if_needed()
    if line.get_attribute("aria-expanded") == "false":
        line.click()
    shown(output.locator(".tape-view"))
    return output


def widget_of(notebook: Notebook, number: int) -> Locator:
    """The viewer of `%tape view` in cell `number`."""
    notebook.run(number)
    view = notebook.cell(number).locator(".tape-view")
    expect(view).to_be_visible()
    view.scroll_into_view_if_needed()
    return view


def edit(view: Locator) -> Locator:
    """Open the first recorded call and its editor; the field of its text."""
    view.get_by_role("treeitem").nth(1).click()
    view.get_by_role("button", name="Edit reply").click()
    text = view.get_by_role("textbox", name=re.compile("^text", re.IGNORECASE)).first
    expect(text).to_be_focused()
    return text
