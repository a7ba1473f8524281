"""The static summary below a taped cell: says what happened, runs nothing, escapes everything."""

import contextlib
import re
from dataclasses import replace
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path

import anthropic
import pytest

import tape_jupyter as tape
from tape_jupyter.errors import UnmatchedCall
from tape_jupyter.reports import cell_summary, waterfall
from tape_jupyter.session.cell import CellReport, ReportRow
from tape_jupyter.providers.registry import Facts, Usage
from tests.harness.provider import Provider, Scripted

JSON_HEADERS = {"content-type": "application/json"}
EVIL = "</script></td><img src=x onerror=alert(1)><script>alert(2)</script>"
TOLD = Facts(
    provider="anthropic", model="claude-sonnet-4-5", usage=Usage(1204, 310)
)  # 3 and 15 dollars a million
ASK = ReportRow("78a670b1", "model", "claude-sonnet-5", TOLD, 3.21)
LOOK = ReportRow("0badcafe", "tool", "lookup", seconds=0.004, error="KeyError: 'x'")


def report(
    *calls,
    mode="record",
    misses=(),
    warnings=(),
    notes=(),
    path="churn.tapes/main.tape.yaml",
    incomplete=False,
):
    where = Path(path) if path else None
    return CellReport(
        mode, where, list(calls), list(misses), list(warnings), list(notes), 3.4, incomplete
    )


def test_one_line_says_mode_calls_models_tokens_cost_time_and_cassette():
    assert cell_summary.summary_text(report(ASK, ASK, LOOK)) == (
        "● recorded  3 calls · claude-sonnet-5 ×2, lookup · 1 failed · 3,028 tok · $0.017 · 3.40 s · churn.tapes/main"
    )


def test_a_replay_says_what_it_saved():
    assert "saved $0.0083" in cell_summary.summary_headline(report(ASK, mode="replay"))


def test_what_went_live_in_a_replay_is_said_and_is_not_what_it_saved():
    line = cell_summary.summary_headline(report(replace(ASK, live=True), ASK, ASK, mode="replay"))
    assert "3 calls · 1 went live · " in line
    assert " · $0.0083 · saved $0.017 · " in line
    alone = cell_summary.summary_headline(report(replace(ASK, live=True), mode="replay"))
    assert " · $0.0083 · " in alone and "saved" not in alone


def test_a_replay_that_is_saved_says_no_time():
    assert "3.40 s" not in cell_summary.summary_text(report(ASK, mode="replay"), timed=False)


def test_a_cell_without_calls_is_one_short_line():
    assert cell_summary.summary_text(report()) == "● recorded  no calls · 3.40 s · churn.tapes/main"
    assert (
        cell_summary.summary_text(report(mode="live", path=None)) == "● observed  no calls · 3.40 s"
    )
    assert not cell_summary.worth_showing(report())
    assert cell_summary.worth_showing(report(warnings=["w"]))


def test_an_unknown_price_is_not_told_and_a_partly_known_one_has_a_plus():
    unknown = ReportRow(
        "1", "model", "gemma", Facts(provider="local", model="gemma", usage=Usage(10, 5))
    )
    assert "15 tok · 3.40 s" in cell_summary.summary_headline(report(unknown))
    assert "$0.0083+" in cell_summary.summary_headline(report(ASK, unknown))


def test_misses_warnings_and_an_incomplete_run_are_told():
    said = cell_summary.summary_text(
        report(
            LOOK,
            misses=[UnmatchedCall("no such call\nnearest: 78a670b1")],
            warnings=["cold"],
            incomplete=True,
        )
    )
    assert said.startswith("✗ missed") and "1 refused" in said
    assert "incomplete" in said
    assert "✗ UnmatchedCall: no such call\nnearest: 78a670b1" in said
    assert "! cold" in said


def test_the_error_that_stands_above_is_named_below_and_not_told_again():
    shown, other = UnmatchedCall("one. Nothing was sent.\nwhy"), UnmatchedCall("another")
    said = cell_summary.summary_text(report(misses=[shown, other]), shown)
    assert "✗ UnmatchedCall: one.\n" in said and "2 refused" in said
    assert "Nothing was sent" not in said and "why" not in said
    assert "✗ UnmatchedCall: another" in said


@pytest.mark.parametrize(
    ("dollars", "said"),
    [
        (None, "–"),
        ("0", "$0.00"),
        ("0.00000234", "$0.0000023"),
        ("0.0999", "$0.100"),
        ("0.5", "$0.50"),
        ("12.346", "$12.35"),
    ],
)
def test_money_shows_two_figures_that_count(dollars, said):
    assert cell_summary.money(None if dollars is None else Decimal(dollars)) == said


class Tags(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.names, self.attributes, self.words = set(), [], ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.words += data


def test_recorded_text_stays_text():
    hostile = ReportRow(
        EVIL, EVIL, EVIL, Facts(provider=EVIL, model=EVIL, usage=Usage(1, 1)), 0.1, EVIL
    )
    page = cell_summary.summary_html(
        report(
            hostile, misses=[UnmatchedCall(EVIL)], warnings=[EVIL], notes=[EVIL], path=f"{EVIL}/x"
        ),
        None,
        [EVIL],
    )
    tags = Tags(page)
    assert tags.names <= {"div", "details", "summary"}
    assert {name for name, _ in tags.attributes} <= {"style", "class"}
    assert tags.words.count(EVIL) >= 5


def test_the_summary_loads_nothing_and_follows_the_pages_colours():
    page = cell_summary.summary_html(report(ASK, LOOK, warnings=["w"]))
    assert not re.search(r"url\(|src=|href=|@import|<style", page)
    assert "color:inherit" in page
    assert "background" not in page


def test_the_page_of_a_cell_with_many_calls_is_a_few_hundred_bytes():
    falls = waterfall.waterfall_lines([waterfall.Bar("lookup", n, n + 1) for n in range(200)], 500)
    page = cell_summary.summary_html(report(*[ASK] * 500), None, falls)
    assert falls[-1].endswith("and 492 more")
    assert len(page.encode()) < 1_200


def test_calls_are_listed_in_columns():
    lines = cell_summary.plain_table([ASK, LOOK]).splitlines()
    assert lines[0].split()[:2] == ["call", "kind"]
    assert lines[1].split() == [
        "78a670b1",
        "model",
        "claude-sonnet-5",
        "1,204",
        "310",
        "$0.0083",
        "3.21",
        "s",
    ]
    assert "KeyError: 'x'" in lines[2]


def test_columns_that_tell_nothing_are_left_out():
    quick = ReportRow("0badcafe", "tool", "lookup", seconds=0.0004)
    assert cell_summary.plain_table([quick]).split() == [
        "call",
        "kind",
        "model",
        "or",
        "name",
        "time",
        "0badcafe",
        "tool",
        "lookup",
        "<1",
        "ms",
    ]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(None, "–"), (0.0004, "<1 ms"), (0.031, "31 ms"), (3.4, "3.40 s"), (12.3, "12 s")],
)
def test_a_time_reads_like_a_time(seconds, said):
    assert cell_summary.seconds_text(seconds) == said


def test_attempts_that_an_sdk_sent_again_are_no_calls_that_failed(tmp_path):
    """Recorded and replayed: 429, 500, then the answer; and a request that is refused for good."""
    answer = '{"id":"m","type":"message","role":"assistant","model":"claude-sonnet-5","content":[{"type":"text","text":"fine"}],"usage":{"input_tokens":5,"output_tokens":2}}'
    wrong = '{"type":"error","error":{"type":"api_error","message":"m"}}'
    told = [(429, wrong), (500, wrong), (200, answer), (400, wrong)]
    with Provider() as provider:
        scripted = [Scripted(status, JSON_HEADERS, [text.encode()]) for status, text in told]
        provider.script("/v1/messages", *scripted)
        client = anthropic.Anthropic(base_url=provider.url, api_key="sk-test")
        for made in (tape.recording, tape.replaying):
            with made(tmp_path / "main.tape.yaml") as block:
                for words in ("one", "two"):
                    with contextlib.suppress(anthropic.BadRequestError):
                        client.messages.create(
                            model="claude-sonnet-5",
                            max_tokens=9,
                            messages=[{"role": "user", "content": words}],
                        )
            assert (
                "4 calls · claude-sonnet-5 ×4 · 2 retried · 1 failed · "
                in cell_summary.summary_headline(block.report)
            )
            assert repr(block.report.calls).count("name='claude-sonnet-5'") == 4
