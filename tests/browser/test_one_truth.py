"""One thing, seen in several places: the bars, the sidebar, what a reload leaves, a take that is put aside, the theme."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import fresh_page
from tests.browser.jupyter import READY
from tests.browser.viewing import edit, output_of, record, shown, sidebar_of, widget_of
from tests.harness.provider import Provider

THEME = "theme => window.jupyterapp.commands.execute('apputils:change-theme', { theme })"


@pytest.fixture(scope="module")
def story(lab, chromium):
    """An open notebook, recorded; its last cell is `%tape view`."""
    with Provider(vary=True) as provider, fresh_page(chromium) as page:
        yield record(lab, page, provider.url, "one truth", "%tape view")


def show(view, name):
    """Open the recording or a take, from the menu of takes."""
    view.locator(".bar .menu > button").filter(
        has_text=re.compile("^(the recording|take: )")
    ).click()
    view.locator(".tape-row-button").filter(has_text=name).click()
    expect(view.locator(".tape-popup")).to_have_count(0)


def to_the_list(view):
    """In a narrow sidebar an open call lies over the list."""
    if view.locator(".side").count():
        view.get_by_role("button", name="Back to the list").click()
    expect(view.locator(".side")).to_have_count(0)


def calls_of(text):
    """The number of calls that a line tells."""
    (count,) = re.findall(r"([\d,]+)\s+calls?\b", text.replace("\u00a0", " "))
    return int(count)


def test_the_bars_say_what_the_sidebar_shows_and_all_count_the_same_calls(story):
    page = story.page
    view, status, switch = (
        sidebar_of(story),
        page.locator(".tape-status"),
        page.locator(".tape-mode select"),
    )
    expect(status).to_contain_text("main · 2 calls")
    edit(view).fill("furious")
    view.get_by_label("as take").fill("angry")
    view.get_by_role("button", name="Save").click()
    # The editor has a button of the same name.
    shown(view.get_by_role("heading", name=re.compile("^Re-run ")))
    view.get_by_role("button", name="Cancel").click()
    expect(status).to_contain_text("main · angry · 2 calls")
    expect(switch).to_have_attribute("title", re.compile("main · angry · 2 calls"))
    show(view, "the recording")
    expect(status).to_contain_text("main · 2 calls")
    expect(view.locator(".sums")).to_contain_text("calls")
    lines = [story.cell(number).locator(".tape-line").inner_text() for number in (2, 3)]
    to_the_list(view)
    listed = view.locator('[role="treeitem"].model')
    expect(listed).to_have_count(2)
    rows = listed.count()
    totals = [
        calls_of(view.locator(".sums").inner_text()),
        calls_of(status.inner_text()),
        calls_of(switch.get_attribute("title")),
    ]
    assert totals == [rows] * 3 == [sum(map(calls_of, lines))] * 3
    expect(output_of(story, 2).locator(".sums")).to_contain_text(f"{calls_of(lines[0])}\u00a0call")
    widget = widget_of(story, 6)
    expect(widget.locator(".sums")).to_contain_text("calls")
    assert calls_of(widget.locator(".sums").inner_text()) == rows


@pytest.mark.slow
def test_a_reload_keeps_the_take_and_the_call_that_were_looked_at(story):
    page = story.page
    view = sidebar_of(story)
    show(view, "angry")
    to_the_list(view)
    view.get_by_role("treeitem").nth(3).click()
    said = "Answer a customer who feels"
    expect(view.get_by_role("tabpanel")).to_contain_text(said)
    story.save()
    for opened in (True, False):
        page.reload()
        page.wait_for_function(READY, arg=story.name)
        view = sidebar_of(story)
        expect(view.get_by_role("button", name="take: angry")).to_be_visible()
        expect(page.locator(".tape-status")).to_contain_text("main · angry")
        if opened:
            expect(view.get_by_role("tabpanel")).to_contain_text(said)
            view.get_by_role("button", name="Back to the list").click()
    expect(view.get_by_role("treeitem").first).to_be_visible()
    expect(view.get_by_role("tabpanel")).to_have_count(0)


def test_put_aside_asks_whether_the_cells_go_back_too(story):
    view = sidebar_of(story)
    show(view, "angry")
    view.locator(".bar .menu > button").filter(has_text="take: angry").click()
    view.get_by_role("button", name="Re-run…").click()
    view.get_by_role("button", name="Re-run", exact=True).click()
    go = view.get_by_role("button", name=re.compile("^Go live"))
    go.click()
    shown(view.get_by_role("heading", name=re.compile("3 cells ran")))
    view.get_by_role("button", name="Keep").click()
    expect(story.cell(2).locator(".jp-OutputArea-output").first).to_contain_text("furious")
    view.locator(".bar .menu > button").filter(has_text="take: angry").click()
    view.get_by_role("button", name="Put aside").click()
    expect(
        view.get_by_text("The cells of the notebook still show what the take gave.")
    ).to_be_visible()
    view.get_by_role("button", name="Re-run them on the recording…").click()
    expect(view.get_by_role("heading", name=re.compile(r"Re-run 3 of \d"))).to_be_visible()
    view.get_by_role("button", name="Re-run", exact=True).click()
    shown(view.get_by_role("heading", name=re.compile("3 cells ran")))
    expect(story.cell(2).locator(".jp-OutputArea-output").first).not_to_contain_text("furious")
    view.get_by_role("button", name="close").click()


@pytest.mark.parametrize(("theme", "system"), [("Dark", "light"), ("Light", "dark")])
def test_the_view_in_a_cell_has_the_theme_of_the_notebook_not_of_the_system(story, theme, system):
    page = story.page
    page.emulate_media(color_scheme=system)
    page.evaluate(THEME, f"JupyterLab {theme}")
    for view in (
        widget_of(story, 6),
        output_of(story, 2).locator(".tape-view"),
        sidebar_of(story).locator(".tape-view"),
    ):
        expect(view).to_have_css("color-scheme", theme.lower())
