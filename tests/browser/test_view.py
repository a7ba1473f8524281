"""The view in a real Chromium, as a page of its own: hostile text, keys, what axe-core says of it.

The page is written here without the policy that `tape show --html` gives it: what is proved is the view, not the policy.
"""

import pytest
from playwright.sync_api import expect

from tape_jupyter.reports.page import fold_spans, packed_block, plain_block
from tape_jupyter.spans.rows import MARKS
from tests.browser.payloads import HOSTILE
from tests.harness.notebook import ROOT

STATIC = ROOT / "tape_jupyter" / "static"
AXE = ROOT / "js" / "node_modules" / "axe-core" / "axe.min.js"
COLUMNS = [
    "id",
    "depth",
    "kind",
    "mark",
    "start",
    "first",
    "end",
    "name",
    "note",
    "tokens",
    "cost",
    "cell",
]
CELL, MODEL, TOOL, ERROR = 0, 2, 3, 2
TABS = ["Conversation", "Request", "Reply", "Raw", "Headers", "Timing", "Kit", "Diff"]


def span(number, name, **over):
    told = {
        "id": f"r/{number}",
        "depth": 1,
        "kind": MODEL,
        "mark": 0,
        "start": number,
        "first": None,
        "end": number + 1,
    }
    return {
        **told,
        "name": name,
        "note": "claude-sonnet-5",
        "tokens": 9,
        "cost": None,
        "cell": "c1",
        **over,
    }


def detail(each, text):
    section = {"text": text, "json": False, "whole": True}
    parts = [
        {"type": "text", "text": text}, {"type": "thinking", "text": text}, {"type": "tool_use", "id": text, "name": text, "input": {text: text}},
        {"type": "tool_result", "id": text, "text": text, "error": True}, {"type": "image", "media": text, "bytes": 1, "data": text},
        {"type": "image", "media": "image/svg+xml", "bytes": 1, "data": text}, {"type": "other", "name": text, "value": text},
    ]  # fmt: skip
    return {
        "id": each["id"], "kind": "model", "title": text, "cell": text, "path": text, "line": 1, "turns": [{"role": "assistant", "parts": parts}],
        "request": {**section, "json": True}, "reply": section, "headers": {"request": [[text, text]], "reply": [[text, text]]}, "status": 200,
        "ending": text, "error": text if each["mark"] == ERROR else None, "timing": {"at": text, "seconds": 1, "first": 0.5, "chunks": 2, "rate": 3},
        "usage": {"tokens_in": 1, "tokens_out": 2, "cost": 0.1, "model": text}, "kit": [[text, text]], "tags": [[text, text]],
        "raw": {"request": 9, "reply": 9}, "overridden": {"take": text, "stale": True, "note": text}, "editable": "no", "source": text,
    }  # fmt: skip


def write(path, spans, texts, title="churn.ipynb"):
    """A page of these spans; `texts` fill each one's detail."""
    totals = {
        "spans": len(spans),
        "calls": 1,
        "errors": 0,
        "seconds": 1,
        "tokens_in": 1,
        "tokens_out": 1,
        "cost": 1,
        "partial": True,
    }
    session = {
        "mode": "off", "cassettes": [title, "b"], "cassette": title, "take": title, "takes": [], "default_take": "", "totals": totals,
        "running": None, "notes": [title, "b"],
    }  # fmt: skip
    raw = {"hex": False, "from": 0, "total": 9}
    known = {
        each["id"]: {
            "detail": detail(each, text),
            "raw": {"request": {**raw, "text": text}, "reply": {**raw, "text": text}},
        }
        for each, text in zip(spans, texts, strict=True)
    }
    rows = {name: [each[name] for each in spans] for name in COLUMNS}
    ids = list(known)
    spans_in_full = list(known.values())
    blocks = [
        plain_block("tape-state", {"state": {"title": title}, "session": session}),
        plain_block("tape-rows", {"revision": 1, "from": 0, "total": len(spans), **rows}),
        *(
            packed_block(f"tape-details-{at // 200}", fold_spans(spans_in_full[at : at + 200]))
            for at in range(0, len(spans_in_full), 200)
        ),
    ]
    side, script = ((STATIC / name).read_text() for name in ("page-side.js", "page.js"))
    path.write_text(
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>t</title><style>:root{color-scheme:light dark}html,body,#tape{height:100%;margin:0}</style>'
        f'<div id="tape"></div>{"".join(blocks)}<script type="text/plain" id="tape-side">{side}</script><script>{script}</script>'
    )
    return path.as_uri()


def story(path):
    cells = [
        span(0, "[2] classify", depth=0, kind=CELL, note=""),
        span(1, '"negative"'),
        span(2, "[3] answer", depth=0, kind=CELL, note="", cell="c2"),
    ]
    calls = [
        span(3, "→ lookup_order"),
        span(4, 'lookup_order("my order")', kind=TOOL, note="lookup_order"),
        span(5, "429 rate_limit", mark=ERROR),
    ]
    spans = [*cells, *calls]
    return write(path, spans, [f"what was said at {each['name']}" for each in spans])


@pytest.mark.slow
def test_no_recorded_text_is_ever_run(page, tmp_path):
    asked, boxes = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: (boxes.append(dialog.message), dialog.dismiss()))
    assert len(HOSTILE) >= 200
    spans = [
        span(number, text, note=text, cell=text, mark=number % 6)
        for number, text in enumerate(HOSTILE)
    ]
    for title in (HOSTILE[0], HOSTILE[50]):
        address = write(tmp_path / "hostile.html", spans, HOSTILE, title)
        page.goto(address)
        rows = page.get_by_role("treeitem")
        expect(rows.first).to_be_visible()
        page.keyboard.press("Tab")
        rows.first.click()
        for number in range(len(HOSTILE)):
            tab = page.get_by_role("tab", name=TABS[number % len(TABS)], exact=True)
            tab.click()
            page.locator("[role=tree] [tabindex='0']").press("ArrowDown")
        page.get_by_role("button", name="all kinds").click()
        expect(page.get_by_role("group", name="Show only")).to_be_visible()
    assert page.evaluate("globalThis.pwned") is None
    assert boxes == []
    assert {url for url in asked if not url.startswith("data:")} == {address}


@pytest.mark.spread(2)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 320])
def test_axe_finds_nothing_serious(page, tmp_path, scheme, width):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 700})
    page.goto(story(tmp_path / "story.html"))
    for state in ("an error opened by itself", "the list", "a call"):
        if state == "an error opened by itself":
            expect(page.locator(".error")).to_contain_text("429")
        elif state == "the list":
            page.get_by_role(
                "button", name="Back to the list" if width == 320 else "Close detail"
            ).click()
        else:
            page.get_by_role("treeitem").nth(1).click()
            expect(page.get_by_role("tab", name="Conversation")).to_be_visible()
        page.add_script_tag(path=AXE)
        found = page.evaluate("async () => (await axe.run(document)).violations")
        assert [
            (each["id"], each["nodes"][0]["html"])
            for each in found
            if each["impact"] in ("serious", "critical")
        ] == [], state


@pytest.mark.slow
@pytest.mark.spread(2)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 250])
def test_axe_finds_nothing_in_an_empty_list_in_ten_thousand_rows_and_in_what_opens(
    page, tmp_path, scheme, width
):
    """Of any impact; every mark that a row can have is in sight."""
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 700})

    def nothing_found(what):
        page.add_script_tag(path=AXE)
        found = page.evaluate("async () => (await axe.run(document)).violations")
        assert [(each["id"], each["nodes"][0]["html"]) for each in found] == [], what

    page.goto(write(tmp_path / "empty.html", [], []))
    expect(page.get_by_role("treeitem")).to_have_count(0)
    nothing_found("no rows")
    marks = [span(number, MARKS[number], mark=number) for number in range(len(MARKS))]
    many = [span(number, f"call {number}") for number in range(len(MARKS), 10_000)]
    page.goto(write(tmp_path / "many.html", [*marks, *many], [""] * 10_000))
    expect(page.get_by_role("treeitem").first).to_be_visible()
    page.get_by_role("button", name="Back to the list" if width == 250 else "Close detail").click()
    nothing_found("ten thousand rows")
    page.get_by_role("button", name="all kinds").click()
    expect(page.get_by_role("group", name="Show only")).to_be_visible()
    nothing_found("the filters")
    page.keyboard.press("Escape")
    page.get_by_role("searchbox").fill("nothing is like that")
    expect(page.get_by_text("No span matches.")).to_be_visible()
    nothing_found("nothing found")


def test_everything_is_reached_by_keys(page, tmp_path):
    page.goto(story(tmp_path / "story.html"))
    expect(page.locator(".error")).to_contain_text("429")
    page.locator("[role=tree] [tabindex='0']").focus()
    page.keyboard.press("Escape")
    expect(page.locator(".detail")).to_have_count(0)
    page.keyboard.press("Home")
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("treeitem")).to_have_count(5)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("tabpanel")).to_contain_text('what was said at "negative"')
    page.keyboard.press("d")
    expect(page.get_by_role("tab", name="Diff")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("/")
    page.keyboard.type("lookup")
    expect(page.get_by_role("treeitem")).to_have_count(3)
    page.keyboard.press("Escape")
    expect(page.get_by_role("treeitem")).to_have_count(6)


def test_enter_searches_what_was_said_too(page, tmp_path):
    page.goto(story(tmp_path / "story.html"))
    search = page.get_by_role("searchbox", name="Search spans")
    search.fill("what was SAID at lookup_order")
    expect(page.get_by_text("No span matches.")).to_be_visible()
    search.press("Enter")
    expect(page.get_by_role("treeitem")).to_have_count(3)  # two calls, and the cell above them
    search.fill("what was SAID at")
    expect(page.get_by_text("No span matches.")).to_be_visible()


def test_a_narrow_pane_gives_the_focus_back_to_its_list(page, tmp_path):
    page.set_viewport_size({"width": 320, "height": 700})
    page.goto(story(tmp_path / "story.html"))
    expect(page.locator(".error")).to_contain_text("429")
    for way in ("Escape", "Enter"):  # Enter is pressed on "Back to the list"
        page.get_by_role("button", name="Back to the list").press(way)
        row = page.locator("[role=tree] [tabindex='0']")
        expect(row).to_be_focused()
        page.keyboard.press("ArrowUp")
        page.keyboard.press("Enter")
        expect(page.get_by_role("tabpanel")).to_contain_text("what was said at")


def test_a_call_that_is_opened_in_a_narrow_pane_takes_the_focus_so_that_keys_act_on_it(
    page, tmp_path
):
    page.set_viewport_size({"width": 250, "height": 700})
    page.goto(story(tmp_path / "story.html"))
    page.get_by_role("button", name="Back to the list").click()
    for open_it in ("click", "Enter"):
        row = page.get_by_role("treeitem").nth(1)
        row.click() if open_it == "click" else (row.focus(), page.keyboard.press("Enter"))
        expect(page.get_by_role("tabpanel")).to_contain_text("what was said at")
        page.wait_for_function(
            "() => document.querySelector('#tape').shadowRoot.activeElement?.closest('.side')"
        )
        page.keyboard.press("Escape")
        expect(page.get_by_role("tabpanel")).to_have_count(0)
        expect(page.locator("[role=tree] [tabindex='0']")).to_be_focused()


@pytest.mark.parametrize("width", [1200, 400, 250])
def test_the_headings_of_a_difference_stand_beside_each_other(page, tmp_path, width):
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(story(tmp_path / "story.html"))
    expect(page.locator(".error")).to_contain_text("429")
    close = "Close detail" if width == 1200 else "Back to the list"
    page.get_by_role("button", name=close).click()
    page.get_by_role("treeitem").nth(1).click()
    page.keyboard.press("d")
    headings = page.locator("table.diff th")
    expect(headings).to_have_count(2)
    left, right = (headings.nth(number).bounding_box() for number in range(2))
    assert left["x"] + left["width"] <= right["x"] + 1
    assert right["x"] + right["width"] <= width
    for heading in headings.all():
        assert heading.evaluate("(each) => each.scrollWidth <= each.clientWidth")
