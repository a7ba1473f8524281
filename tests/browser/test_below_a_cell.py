"""Below a taped cell: the line while it runs, and the view that opens there: how high it is, and when its controls are seen."""

import re
import threading

import pytest
from playwright.sync_api import expect

from tests.browser.jupyter import RAN, Notebook, write
from tests.browser.viewing import SETUP, output_of, record, sidebar_of
from tests.harness.provider import Provider, Scripted

REPLY = b'{"id":"m","type":"message","role":"assistant","model":"claude-sonnet-5","content":[{"type":"text","text":"negative"}],"usage":{"input_tokens":5,"output_tokens":2}}'
ASKS = """%%tape record
for text in ("first", "second"):
    asked = [{"role": "user", "content": text}]
    print(claude.messages.create(model="claude-sonnet-5", max_tokens=9, messages=asked).content[0].text)"""
WORKS = "%%tape record\nimport os, time\nwhile not os.path.exists('go'):\n    time.sleep(0.05)"


def ran(notebook, *numbers):
    notebook.page.wait_for_function(RAN, arg={"path": notebook.name, "numbers": numbers})


@pytest.mark.slow
def test_a_cell_that_runs_says_its_calls_so_far_and_what_it_waits_for(server, page):
    """Held at its second call; the line is gone with the cell, and below no other one."""
    gate = threading.Event()
    head = {"content-type": "application/json"}
    with Provider() as provider:
        provider.script(
            "/v1/messages",
            Scripted(200, head, [REPLY]),
            Scripted(200, head, [REPLY], gates={0: gate}),
        )
        path = write(
            server.root / "live-line" / "churn.ipynb", SETUP.format(url=provider.url), ASKS, WORKS
        )
        notebook = Notebook(page, server, path).open()
        notebook.run(1)
        notebook.run(2, wait=False)
        try:
            line = notebook.cell(2).locator(".tape-live")
            expect(line).to_contain_text(
                "● recording · 2 calls so far · waits for claude-sonnet-5 · "
            )
            expect(page.locator(".tape-live")).to_have_count(1)
            sums = sidebar_of(notebook).locator(".sums")
            expect(sums).to_contain_text("2\u00a0calls")
            expect(line.get_by_role("status")).to_have_text(
                "● recording · 2 calls so far · waits for claude-sonnet-5"
            )
        finally:
            gate.set()
        ran(notebook, 2)
        expect(page.locator(".tape-live")).to_have_count(0)
        expect(notebook.cell(2).locator(".tape-line")).to_contain_text("2 calls")
    notebook.run(3, wait=False)
    line = notebook.cell(3).locator(".tape-live")
    expect(line).to_contain_text(re.compile("● recording · 0 calls so far · [0-9]"))
    path.with_name("go").touch()
    ran(notebook, 3)
    expect(page.locator(".tape-live")).to_have_count(0)


@pytest.mark.slow
def test_a_stopped_cell_says_so_below_it(lab, page, provider, request):
    notebook = record(lab, page, provider.url, request.node.name)
    view = sidebar_of(notebook)
    notebook.select(2)
    view.get_by_role("button", name="Step the selected cell").click()
    line = notebook.cell(2).locator(".tape-live")
    expect(line).to_contain_text("▶ replaying · 0 calls so far · stopped: step on, or continue")
    view.get_by_role("button", name="Continue", exact=True).click()
    ran(notebook, 2)
    expect(page.locator(".tape-live")).to_have_count(0)


SEEN = """button => {
  let seen = 1;
  for (let at = button; at; at = at.parentElement) seen *= Number(getComputedStyle(at).opacity);
  return seen;
}"""


@pytest.mark.spread(3)
@pytest.mark.parametrize("width", [620, 760, 1400])
def test_every_row_of_an_opened_output_is_in_sight_however_its_bar_wraps(
    lab, page, provider, width, request
):
    page.set_viewport_size({"width": width, "height": 900})
    notebook = record(lab, page, provider.url, request.node.name)
    output = output_of(notebook, 2)
    expect(output.get_by_role("treeitem")).to_have_count(2)
    scroll = output.locator(".scroll")
    page.wait_for_function("node => node.clientHeight >= 48", arg=scroll.element_handle())
    assert scroll.evaluate("node => node.scrollHeight <= node.clientHeight")
    if width == 1400:
        assert output.bounding_box()["height"] < 180, "of one call"
    page.set_viewport_size({"width": 1500 - width // 2, "height": 900})
    page.wait_for_function("node => node.clientHeight >= 48", arg=scroll.element_handle())


def test_the_controls_of_an_output_are_seen_when_it_is_pointed_at_or_has_the_focus(
    lab, page, provider, request
):
    """By keys alone: Tab from its line comes to them; nothing moves as they come."""
    notebook = record(lab, page, provider.url, request.node.name)
    output = output_of(notebook, 2)
    errors, row = output.get_by_role("button", name="errors"), output.get_by_role("treeitem").first
    notebook.select(1)
    page.mouse.move(5, 800)
    assert errors.evaluate(SEEN) == 0
    expect(output.locator(".bar .title")).to_be_visible()
    at = row.bounding_box()
    output.hover()
    assert errors.evaluate(SEEN) == 1 and row.bounding_box() == at
    page.mouse.move(5, 800)
    assert errors.evaluate(SEEN) == 0
    output.locator(".tape-line").focus()
    passed = []
    for _ in range(8):
        page.keyboard.press("Tab")
        passed.append(
            output.locator(".tape-door").evaluate(
                "door => { const at = door.shadowRoot.activeElement; return at ? at.textContent || at.placeholder || at.role : ''; }"
            )
        )
        if passed[-1] == "errors":
            break
    assert passed[-1] == "errors" and any("recording" in each for each in passed), passed
    assert errors.evaluate(SEEN) == 1
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")


@pytest.mark.slow
def test_a_view_that_was_opened_is_open_again_after_a_reload_of_the_page(
    lab, page, provider, request
):
    notebook = record(lab, page, provider.url, request.node.name)
    output_of(notebook, 2)
    notebook.save()
    page.reload()
    opened, closed = (notebook.cell(number).locator(".tape-line") for number in (2, 3))
    expect(opened).to_have_attribute("aria-expanded", "true")
    expect(closed).to_have_attribute("aria-expanded", "false")
    expect(notebook.cell(2).locator(".tape-view")).to_be_visible()
    opened.click()
    page.reload()
    expect(opened).to_have_attribute("aria-expanded", "false")
