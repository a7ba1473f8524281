"""The report of gaps as a notebook and a terminal show it."""

import re
from html.parser import HTMLParser

import pytest

from tape_jupyter.reports import gaps_html, gaps
from tests.harness.seen_runs import chat, recorded, said, tool


class Page(HTMLParser):
    """Text and tags of a page."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.words, self.open = [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag not in ("br", "meta"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


@pytest.fixture
def report(tmp_path):
    path = tmp_path / "n.tapes" / "main.tape.yaml"
    cold = ["<script>alert(1)</script> went past the tape"]
    recorded(
        path,
        (chat(), said()),
        tool("<img src=x>", {"a": 1}),
        end={"cold": cold},
        kit={"tenant_id": "<b>"},
    )
    return gaps.report_gaps([path])


def test_the_page_tells_items_missing_lines_and_cold_cases(report):
    page = Page(gaps_html.gaps_html(report))
    text = " ".join(page.words)
    for word in (
        "sampling",
        "clock logic",
        "%tape set user_id=...",
        "1 of 1 run cannot",
        "requested model",
    ):
        assert word in text
    assert page.open == [], "every tag is closed"


def test_recorded_words_never_become_markup(report):
    page = Page(gaps_html.gaps_html(report))
    assert not {"script", "img", "b"} & set(page.tags)
    assert "<script>alert(1)</script> went past the tape" in page.words


def test_the_page_takes_its_colours_from_the_page_around_it(report):
    html = gaps_html.gaps_html(report)
    assert "http" not in re.sub(r"api\.openai\.com", "", html) and "<style" not in html
    assert not re.search(r"(?<!,)#[0-9a-f]{3,6}", html), "a colour of its own is only a fallback"


def test_an_empty_report_is_one_line():
    assert gaps.NO_GAPS in gaps_html.gaps_html(gaps.Report())


def test_many_runs_are_not_all_told_in_a_saved_notebook(report):
    many = gaps.Report(report.runs * 60, report.cassettes)
    assert "and 10 more runs" in gaps_html.gaps_html(many)
    assert len(gaps_html.gaps_html(many)) < 2_000_000


def test_a_terminal_shows_the_same_without_markup_being_taken_for_it(report, capsys):
    gaps_html.print_it(report, full=True)
    shown = capsys.readouterr().out
    assert "[" not in shown.partition("cold cases")[0] or "sampling" in shown
    assert "<script>alert(1)</script> went past the tape" in shown and "execution count" in shown
    gaps_html.print_it(gaps.Report(broken={"x": "x: cannot be read"}))
    assert "! x: cannot be read" in capsys.readouterr().out


def test_a_notebook_gets_text_and_page(report, monkeypatch):
    shown = {}
    monkeypatch.setattr("IPython.display.publish_display_data", shown.update)
    gaps_html.show_gaps(report)
    assert set(shown) == {"text/plain", "text/html"} and "missing (" in shown["text/plain"]
