"""A sweep as JSON lines, as JUnit XML for a CI, and as one page to read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from pathlib import Path
from xml.etree import ElementTree as ET

from tape_jupyter.bundle.archive import locations
from tape_jupyter.bundle.report import JUNIT, MADE, STYLE, xml_text
from tape_jupyter.core.plain_text import format_count
from tape_jupyter.experiments.sweep.candidate import AS_RECORDED
from tape_jupyter.experiments.sweep.store import Row
from tape_jupyter.experiments.sweep.sweep import Sweep

_HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
{made}
<title>Candidates over recorded runs</title><style>"""
_MORE = """table { width: 100%; } td.passes { color: var(--good); } td.fails, td.unresolved { color: var(--bad); }
td.number { text-align: right; font-variant-numeric: tabular-nums; } table a { color: inherit; }
td pre { margin: .4em 0 0; white-space: pre-wrap; } td summary { cursor: pointer; margin: .4em 0 0; }
.added { color: var(--good); } .removed { color: var(--bad); }"""


def sweep_lines(sweep: Sweep) -> Iterator[str]:
    """A row a line."""
    for row in sweep.rows():
        yield json.dumps(row, ensure_ascii=False) + "\n"


def sweep_junit(sweep: Sweep) -> Iterator[str]:
    """A testsuite a candidate, a testcase a run."""
    suites: dict[str, list[Row]] = {name: [] for name in sweep.summary.names}
    for row in sweep.rows():
        suites[row["candidate"]].append(row)
    root = ET.Element("testsuites", {"name": JUNIT})
    for name, rows in suites.items():
        about = {
            "name": xml_text(name), "tests": str(len(rows)),
            "failures": str(sum(row["verdict"] == "fails" for row in rows)),
            "errors": str(sum(row["verdict"] == "unresolved" for row in rows)),
            "time": f"{sum(row['seconds'] for row in rows):.3f}",
        }  # fmt: skip
        suite = ET.SubElement(root, "testsuite", about)
        for row in rows:
            attributes = {
                "classname": xml_text(name),
                "name": xml_text(row["place"]),
                "time": f"{row['seconds']:.3f}",
            }
            case = ET.SubElement(suite, "testcase", attributes)
            if row["verdict"] != "passes":
                tag = "failure" if row["verdict"] == "fails" else "error"
                ET.SubElement(case, tag, {"message": xml_text(row["why"] or row["verdict"])})
    ET.indent(root)
    yield '<?xml version="1.0" encoding="utf-8"?>\n'
    yield ET.tostring(root, encoding="unicode")
    yield "\n"


def sweep_html(sweep: Sweep, out: Path) -> Iterator[str]:
    """The page; a run's name leads to its calls in the viewer, where they were written, and what a
    candidate has otherwise in the run's code stands below it.
    """
    summary = sweep.summary
    yield f"{_HEAD.format(made=MADE)}{STYLE}{_MORE}</style></head><body><main>\n"
    good = "good" if summary.good else "bad"
    tried = len(summary.names) - 1
    yield f'<h1 class="{good}">{format_count(summary.runs, "run")}, {format_count(tried, "candidate")}</h1>\n'
    yield from _format_table(
        ["candidate", "pass", "now pass", "no longer", "unresolved", "runs changed"],
        [
            [
                name, str(summary.count(name, "passes")),
                "" if name == AS_RECORDED else str(summary.now_pass(name)),
                "" if name == AS_RECORDED else str(summary.no_longer(name)),
                str(summary.count(name, "unresolved")),
                "" if name == AS_RECORDED else str(summary.fits[name]),
            ]
            for name in summary.names
        ],
    )  # fmt: skip
    names = [name for name in summary.names if name != AS_RECORDED]
    clusters = [
        [str(each.runs), each.label, *(f"{each.passing[name]} of {each.runs}" for name in names)]
        for each in summary.clusters()
    ]
    yield "<h2>What does not pass as recorded</h2>\n"
    yield from _format_table(["runs", "alike in", *names], clusters)
    notes = [line for line in summary.lines() if line.startswith("!")]
    yield "".join(f'<p class="note">{escape(note)}</p>\n' for note in notes)
    yield '<h2>Rows</h2>\n<div class="wide"><table><thead><tr>'
    yield "".join(f"<th>{name}</th>" for name in ("run", "candidate", "", "why", "calls", "s"))
    yield "</tr></thead><tbody>\n"
    for row in sweep.rows():
        yield _format_row(sweep, row, out)
    yield "</tbody></table></div></main></body></html>\n"


def _format_row(sweep: Sweep, row: Row, out: Path) -> str:
    place = escape(locations.shown_place(row["place"]))
    page = _find_page(sweep.store.place, row["key"], out)
    run = f'<a href="{escape(page)}">{place}</a>' if page else place
    verdict = row["end"] or row["verdict"]
    return (
        f"<tr><td>{run}</td><td>{escape(row['candidate'])}{_format_code(sweep, row['key'])}</td>"
        f'<td class="{row["verdict"]}">{escape(verdict)}</td><td>{escape(row["why"])}</td>'
        f'<td class="number">{row["calls"] if row["calls"] is not None else ""}</td>'
        f'<td class="number">{row["seconds"]:.1f}</td></tr>\n'
    )


def _format_code(sweep: Sweep, key: str) -> str:
    """The difference of its code, to be opened; "" where there is none."""
    name = f"pages/{key}.diff"
    if not sweep.store.has(name):
        return ""
    pieces = []
    for line in sweep.store.get(name).decode("utf-8", "replace").splitlines():
        kind = {"+": "added", "-": "removed"}.get(line[:1], "")
        text = escape(line)
        pieces.append(f'<span class="{kind}">{text}</span>' if kind else text)
    lines = "\n".join(pieces)
    return f"<details><summary>its code</summary><pre>{lines}</pre></details>"


def _find_page(results: str, key: str, out: Path) -> str:
    """Where the viewer's page of a row is, from the report."""
    if locations.is_url(results):
        return ""
    page = Path(results, "pages", f"{key}.html")
    if not page.is_file():
        return ""
    try:
        return page.resolve().relative_to(out.resolve().parent).as_posix()
    except ValueError:
        return page.resolve().as_uri()


def _format_table(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    yield '<div class="wide"><table><thead><tr>'
    yield "".join(f"<th>{escape(name)}</th>" for name in head)
    yield "</tr></thead><tbody>\n"
    for row in rows:
        yield "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>\n"
    yield "</tbody></table></div>\n"
