"""The page and the JUnit file of a replay: everything a person asks is there, and nothing of a stranger's runs."""

import re
from xml.etree import ElementTree as ET

import pytest

from tape_jupyter.comparison import diff
from tape_jupyter.bundle import report
from tape_jupyter.bundle.replay import BundleCell, BundleRun
from tape_jupyter.errors import TapeUsageError
from tests.unit.comparison.test_diff import frame, png, shown, stream

EVIL = "</pre></script><script>window.ran = 1</script><img src=x onerror='window.ran = 1'>\x00\x1b\u202e"


def cell(number, status="same", title="print(1)", before=(), after=(), **more):
    differences = tuple(diff.compare_cells(before, after))
    return BundleCell(
        number,
        status,
        title,
        0.25,
        2 if number == 2 else 0,
        "a" * 64,
        "b" * 64,
        differences,
        source=title,
        **more,
    )


def some_run(*cells, **more):
    return BundleRun(
        "shared/churn.tape.zip",
        "c" * 64,
        "session/churn.ipynb",
        "lock",
        cells,
        ("no network", "the guard"),
        **more,
    )


def all_kinds():
    import pandas as pd

    table = pd.DataFrame({"region": ["north", "south"], "lost": [3, 9]})
    return some_run(
        cell(1),
        cell(2, "differs", "print('a')", [stream("one\ntwo\n")], [stream("one\n2\n")]),
        cell(3, "differs", "table", [frame(table)], [frame(table.assign(lost=[3, 8]))]),
        cell(4, "differs", "plot()", [shown(image_png=png("navy"))], [shown(image_png=png("navy", spot=9))]),
        cell(5, "missed", "ask()", messages=("UnmatchedCall: POST https://api.example/v1 is not on the tape", "  now: x")),
        cell(6, "failed", "1 / 0", [], [{"output_type": "error", "ename": "ZeroDivisionError", "evalue": "", "traceback": []}],
             messages=("ZeroDivisionError: division by zero",)),
        cell(7, "not run", "never()"),
        drift=("python 3.12.1 in the bundle, 3.11.2 here",), notes=("a note",), take="angry",
    )  # fmt: skip


def page(run):
    return "".join(report.report_html(run))


def test_the_page_says_which_cells_differ_and_how():
    text = page(all_kinds())
    for wanted in (
        "1 of 7 cells as the bundle says; 3 differ, 1 raised, 1 missed, 1 not run", "c" * 64, "no network; the guard",
        "of the bundle&#x27;s lock", "python 3.12.1 in the bundle", "a note", "angry",
        '<span class="gone">-two</span>', '<span class="new">+2</span>',
        '<th>1</th><th>lost</th><td class="gone">9</td><td class="new">8</td>',
        "40 x 30 pixels", "6.75% of the pixels differ", "what differs, in red", "UnmatchedCall: POST",
    ):  # fmt: skip
        assert wanted in text, wanted
    assert text.count("<img ") == 3 and text.count('id="cell-') == 7


def test_it_has_no_script_and_a_policy_that_lets_none_run():
    text = page(all_kinds())
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)[1]
    assert policy.startswith("default-src 'none'; style-src 'sha256-") and "img-src data:" in policy
    assert (
        "<script" not in text
        and "style=" not in text
        and "http-equiv" in text.partition("<title>")[0]
    )


def test_text_of_a_model_is_text_wherever_it_stands():
    run = some_run(
        cell(1, "differs", EVIL, [stream(EVIL), shown(text_html=f"<table><tr><td>{EVIL}</td></tr></table>")], [stream("x")]),
        cell(2, "missed", EVIL, messages=(EVIL,)), cell(3, title=EVIL),
        notes=(EVIL,), drift=(EVIL,),
    )  # fmt: skip
    text = page(run)
    assert (
        "<script>" not in text
        and "<img src=x" not in text
        and "\x00" not in text
        and "\x1b" not in text
    )
    "".join(report.report_junit(run)).encode()


def test_a_page_of_a_thousand_cells_is_short_and_has_them_all():
    text = page(some_run(*(cell(n) for n in range(1, 1001))))
    assert text.count('class="cell"') == 1000 and len(text) < 600_000
    assert "1,000 of 1,000 cells as the bundle says" in text


def test_junit_is_what_a_ci_reads():
    text = "".join(report.report_junit(all_kinds()))
    suites = ET.fromstring(text.encode())
    (suite,) = suites
    assert suites.tag == "testsuites" and suite.get("name") == "session/churn.ipynb"
    assert {k: suite.get(k) for k in ("tests", "failures", "errors", "skipped", "time")} == {
        "tests": "7", "failures": "4", "errors": "1", "skipped": "1", "time": "1.750",
    }  # fmt: skip
    cases = suite.findall("testcase")
    assert [(each.get("classname"), each.get("name")) for each in cases][1] == (
        "churn",
        "[2] print('a')",
    )
    assert [[child.tag for child in each] for each in cases] == [
        [], ["failure"], ["failure"], ["failure"], ["failure"], ["error"], ["skipped"],
    ]  # fmt: skip
    assert "-two" in cases[1][0].text and cases[4][0].get("message").startswith("UnmatchedCall")
    assert {each.get("name") for each in suite.find("properties")} == {
        "bundle",
        "sha256",
        "environment",
        "guard",
    }


def test_junit_holds_no_character_that_xml_does_not_take():
    run = some_run(cell(1, "differs", EVIL, [stream(EVIL + "\ud800")], [stream("\x0b\x0c")]))
    ET.fromstring("".join(report.report_junit(run)).encode())


def test_a_report_replaces_a_report_and_nothing_else(tmp_path):
    path, xml = tmp_path / "r.html", tmp_path / "r.xml"
    for kind, goal, pieces in (
        ("html", path, report.report_html),
        ("xml", xml, report.report_junit),
    ):
        for _ in range(2):
            report.write_report(report.report_path(goal, kind), pieces(all_kinds()))
        goal.write_text("mine")
        with pytest.raises(TapeUsageError, match="give another name"):
            report.report_path(goal, kind)
    with pytest.raises(TapeUsageError, match=r"ends in \.html"):
        report.report_path(tmp_path / "r.txt", "html")
    with pytest.raises(TapeUsageError, match="no folder"):
        report.report_path(tmp_path / "no" / "r.xml", "xml")
