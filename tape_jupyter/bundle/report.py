"""A bundle's replay as a page to read (`--report`) and as JUnit XML for a CI (`--junit`).

The page needs nothing else and runs nothing: no script, and a policy that lets none run. All text
of a notebook or a model stands in it as text; pictures as data.

How the report of a replay looks. In light and dark, as the reader's system says; no script, no
fonts.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from xml.etree import ElementTree as ET

from tape_jupyter.bundle.replay import BundleCell, BundleRun
from tape_jupyter.comparison.diff import REPORTED, OutputDifference
from tape_jupyter.comparison.images import Images
from tape_jupyter.comparison.tables import TableDiff
from tape_jupyter.core.atomic_write import replacing
from tape_jupyter.core.plain_text import format_count
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.reports.page import allowed

STYLE = """
:root { color-scheme: light dark; --ink: #1d2330; --soft: #5b6472; --line: #d9dde4; --paper: #fff; --pane: #f6f7f9;
  --good: #17743a; --bad: #b3261e; --warn: #8a5a00; --gone: #fdeceb; --new: #e7f6ec; --gone-ink: #8c1d18;
  --new-ink: #10602a; --good-pane: #dcf2e3; --bad-pane: #f9dedc; --warn-pane: #f7e8c8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7ec; --soft: #a2aab6; --line: #363d49; --paper: #14171d;
  --pane: #1d2129; --good: #6fd08c; --bad: #ff9b92; --warn: #e8bd6a; --gone: #3a1f1f; --new: #16301f;
  --gone-ink: #ffb4ab; --new-ink: #9be2b1; --good-pane: #17351f; --bad-pane: #4a2320; --warn-pane: #3d3113; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 72rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { margin: 0 0 .75rem; font-size: 1.5rem; line-height: 1.25; overflow-wrap: anywhere; }
h1.good { color: var(--good); } h1.bad { color: var(--bad); }
h2 { margin: 1rem 0 .25rem; font: 600 .85rem ui-monospace, monospace; color: var(--soft); overflow-wrap: anywhere; }
h2 small { font: .85rem system-ui, sans-serif; color: var(--warn); }
.over { margin: 0; color: var(--soft); overflow-wrap: anywhere; }
dl { margin: 0; font-size: .9rem; } dl div { display: flex; gap: .75rem; padding: .1rem 0; }
dt { flex: 0 0 8.5rem; color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; min-width: 0; }
nav { display: flex; flex-wrap: wrap; gap: 3px; margin: 1.25rem 0; }
nav a { min-width: 2.2em; padding: .1rem .3rem; border-radius: 3px; text-align: center;
  font: .75rem ui-monospace, monospace; text-decoration: none; color: var(--soft); background: var(--pane); }
nav a.same { color: var(--good); background: var(--good-pane); }
nav a.differs, nav a.failed, nav a.missed { color: var(--bad); background: var(--bad-pane); font-weight: 700; }
nav a.not-run { color: var(--warn); background: var(--warn-pane); }
a:focus-visible, summary:focus-visible { outline: 2px solid currentColor; outline-offset: 2px; }
.cell { border-top: 1px solid var(--line); padding: .5rem 0; scroll-margin-top: .5rem; }
.cell:target { background: var(--pane); }
section.cell { content-visibility: auto; contain-intrinsic-size: auto 2.6rem; }
summary { cursor: pointer; }
.number { color: var(--soft); font: .85rem ui-monospace, monospace; }
.title { font: .85rem ui-monospace, monospace; overflow-wrap: anywhere; unicode-bidi: isolate; }
.facts { color: var(--soft); font-size: .8rem; white-space: nowrap; }
.way { display: inline-block; padding: 0 .5rem; border-radius: 1rem; font-size: .8rem; color: var(--bad);
  background: var(--bad-pane); }
.way.same { color: var(--good); background: var(--good-pane); }
.way.not-run { color: var(--warn); background: var(--warn-pane); }
pre { margin: .25rem 0; padding: .6rem .75rem; overflow-x: auto; background: var(--pane); border-radius: 4px;
  font: .8rem/1.45 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: isolate; }
@media (max-width: 34rem) { dl div { display: block; padding: .25rem 0; } }
pre .gone, td.gone { background: var(--gone); color: var(--gone-ink); }
pre .new, td.new { background: var(--new); color: var(--new-ink); }
pre .where { color: var(--soft); }
pre.said { color: var(--bad); }
.note { color: var(--soft); font-size: .9rem; margin: .25rem 0; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font: .8rem ui-monospace, monospace; }
th, td { border: 1px solid var(--line); padding: .2rem .6rem; text-align: left; vertical-align: top; font-weight: 400;
  overflow-wrap: anywhere; unicode-bidi: isolate; }
thead th { color: var(--soft); }
.images { display: flex; flex-wrap: wrap; gap: 1rem; } figure { margin: 0; flex: 1 1 14rem; min-width: 0; }
figure img { max-width: 100%; background: #fff; border: 1px solid var(--line); }
figcaption { color: var(--soft); font-size: .8rem; }
.source { margin-top: .5rem; color: var(--soft); } .source pre { color: var(--ink); }
"""


MADE = '<meta name="generator" content="tape-jupyter replay">'
JUNIT = "tape-jupyter replay"
"""The name of the `testsuites`, by which a report is known again."""

SOURCE = 4_000
"""Characters of a cell's source that are shown."""
LONGEST = 2_000
"""Characters of one line that are shown."""
PICTURES = 24 << 20
"""Bytes of all pictures of a page together; of those after them only what is said of them."""

_WORDS = {
    "same": "same", "differs": "differs", "missed": "missed a call", "failed": "raised", "not run": "not run",
}  # fmt: skip
_BAD_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def report_path(path: Path, kind: str, page: str = "--report") -> Path:
    """The path, if a report of a kind ("html" or "xml") may be written there; asked before anything
    runs. `page` is the option that names a page.

    Raises TapeUsageError for a name of another kind, a folder that is not there, and a file that is
    no such report.
    """
    option, mark = (page, MADE) if kind == "html" else ("--junit", JUNIT)
    if path.suffix.lower() != f".{kind}":
        raise TapeUsageError(
            f"{option} {path}: the report is written to a file that ends in .{kind}"
        )
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise TapeUsageError(f"{option} {path}: there is no folder {path.absolute().parent}")
    if path.exists() and mark.encode() not in path.read_bytes()[:2_000]:
        raise TapeUsageError(
            f"{option} {path} exists and is not a report of tape-jupyter's; give another name"
        )
    return path


def write_report(path: Path, pieces: Iterator[str]) -> None:
    """Write a report in one step."""
    try:
        with replacing(path) as draft:
            with draft.open("w", encoding="utf-8", errors="backslashreplace") as file:
                file.writelines(pieces)
            draft.chmod(0o644)
    except OSError as error:
        raise TapeUsageError(f"{path} cannot be written: {error.strerror or error}") from error


# ---------------------------------------------------------------- JUnit


def report_junit(run: BundleRun) -> Iterator[str]:
    """A testsuite for the notebook, a testcase for each cell."""
    counts = _count_results(run)
    suites = ET.Element("testsuites", {"name": JUNIT, **counts})
    suite = ET.SubElement(suites, "testsuite", {"name": xml_text(run.notebook), **counts})
    properties = ET.SubElement(suite, "properties")
    for name, value in {
        "bundle": run.place,
        "sha256": run.digest,
        "environment": run.env,
        "guard": run.guard,
    }.items():
        ET.SubElement(properties, "property", {"name": name, "value": xml_text(value)})
    for cell in run.cells:
        _add_testcase(suite, run, cell)
    ET.indent(suites)
    yield '<?xml version="1.0" encoding="utf-8"?>\n'
    yield ET.tostring(suites, encoding="unicode")
    yield "\n"


def _count_results(run: BundleRun) -> dict[str, str]:
    ways = run.counts()
    return {
        "tests": str(len(run.cells)), "failures": str(ways.get("differs", 0) + ways.get("missed", 0)),
        "errors": str(ways.get("failed", 0)), "skipped": str(ways.get("not run", 0)),
        "time": f"{sum(each.seconds for each in run.cells):.3f}",
    }  # fmt: skip


def _add_testcase(suite: ET.Element, run: BundleRun, cell: BundleCell) -> None:
    name = run.notebook.rpartition("/")[2].removesuffix(".ipynb")
    about = {
        "classname": xml_text(name),
        "name": xml_text(f"[{cell.number}] {cell.title}"),
        "time": f"{cell.seconds:.3f}",
    }
    case = ET.SubElement(suite, "testcase", about)
    if cell.status == "same":
        return
    if cell.status == "not run":
        ET.SubElement(case, "skipped", {"message": "a cell before it raised"})
        return
    lines = [*cell.messages, *(line for each in cell.differences for line in each.text(REPORTED))]
    first = next(iter(lines), _WORDS[cell.status])
    tag = "error" if cell.status == "failed" else "failure"
    ET.SubElement(
        case, tag, {"type": cell.status, "message": xml_text(first)[:500]}
    ).text = xml_text("\n".join(lines))


def xml_text(text: str) -> str:
    """Without what no XML may hold, escaped or not."""
    return _BAD_XML.sub("\N{REPLACEMENT CHARACTER}", text)


# ---------------------------------------------------------------- the page


def report_html(run: BundleRun) -> Iterator[str]:
    """The page, in pieces."""
    policy = f"default-src 'none'; style-src {allowed(STYLE)}; img-src data:; base-uri 'none'; form-action 'none'"
    title = f"{run.notebook.rpartition('/')[2]}: {_format_closing(run)}"
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n{MADE}\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield f"<title>{_escape_text(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
    yield from _build_head(run)
    yield from _build_map(run)
    left = _PictureBudget(PICTURES)
    for cell in run.cells:
        yield from _build_cell(cell, left)
    yield "</main>\n</body>\n</html>\n"


class _PictureBudget:
    """How many bytes of pictures a page still takes."""

    def __init__(self, left: int) -> None:
        self.left = left

    def reserve_bytes(self, data: bytes) -> bool:
        fits = len(data) <= self.left
        self.left -= len(data) if fits else 0
        return fits


def _format_closing(run: BundleRun) -> str:
    return run.closing().replace("\n", "; ")


def _build_head(run: BundleRun) -> Iterator[str]:
    verdict = "good" if run.good else "bad"
    yield f'<header>\n<p class="over">Replay of {_escape_text(run.place)}</p>\n'
    yield f'<h1 class="{verdict}">{_escape_text(_format_closing(run))}</h1>\n<dl>\n'
    yield _build_row("Notebook", run.notebook)
    yield _build_row("Bundle", f"sha256 {run.digest}")
    yield _build_row("Take", run.take) if run.take else ""
    yield _build_row(
        "Packages",
        "of the bundle's lock" if run.env == "lock" else "of the interpreter that replayed it",
    )
    yield _build_row("Network", run.guard)
    for name, notes in (("Not as recorded", run.drift), ("Note", run.notes)):
        for each in notes:
            yield _build_row(name, each)
    yield "</dl>\n</header>\n"


def _build_row(name: str, value: str) -> str:
    return f"<div><dt>{_escape_text(name)}</dt><dd>{_escape_text(value)}</dd></div>\n"


def _build_map(run: BundleRun) -> Iterator[str]:
    """A square for each cell, to click on."""
    yield '<nav aria-label="Cells">\n'
    for cell in run.cells:
        what = _escape_text(f"[{cell.number}] {_WORDS[cell.status]}: {cell.title}")
        yield f'<a class="{_find_class(cell)}" href="#cell-{cell.number}" title="{what}">{cell.number}</a>\n'
    yield "</nav>\n"


def _find_class(cell: BundleCell) -> str:
    return cell.status.replace(" ", "-") if cell.status in _WORDS else "differs"


def _format_calls(count: int) -> str:
    if not count:
        return ""
    return format_count(count, "call")


def _build_cell(cell: BundleCell, left: _PictureBudget) -> Iterator[str]:
    duration = f"{cell.seconds:.2f} s" if cell.status != "not run" else ""
    facts = ", ".join(filter(None, [_format_calls(cell.calls), duration]))
    head = (
        f'<span class="number">[{cell.number}]</span> '
        f'<span class="way {_find_class(cell)}">{_WORDS[cell.status]}</span> '
        f'<span class="title">{_escape_text(cell.title)}</span> <span class="facts">{facts}</span>'
    )
    if cell.good:
        yield f'<section id="cell-{cell.number}" class="cell">{head}</section>\n'
        return
    yield f'<details id="cell-{cell.number}" class="cell" open>\n<summary>{head}</summary>\n'
    if cell.known:
        yield '<p class="note">The bundle says so itself: this cell differed when it was exported.</p>\n'
    if cell.messages:
        yield f'<pre class="said">{_build_lines(cell.messages)}</pre>\n'
    for each in cell.differences:
        yield from _build_difference(each, left)
    cut = cell.source if len(cell.source) <= SOURCE else f"{cell.source[:SOURCE]}\n…"
    yield f'<details class="source"><summary>The cell</summary><pre>{_escape_text(cut)}</pre></details>\n</details>\n'


def _build_difference(each: OutputDifference, left: _PictureBudget) -> Iterator[str]:
    only = {"expected": "missing in the replay", "replayed": "new in the replay"}.get(each.only, "")
    yield f"<h2>{_escape_text(each.heading)}{f' <small>{only}</small>' if only else ''}</h2>\n"
    if each.table:
        yield from _build_table(each.table)
    elif each.images:
        yield from _build_images(each.images, left)
    else:
        yield f'<pre class="diff">{_build_lines(each.lines)}</pre>\n'


def _build_lines(lines: tuple[str, ...]) -> str:
    """Each line in the colour of its sign."""
    kinds = {"+": "new", "-": "gone", "@": "where"}
    return "\n".join(
        f'<span class="{kinds[line[:1]]}">{_escape_text(line[:LONGEST])}</span>'
        if line[:1] in kinds
        else _escape_text(line[:LONGEST])
        for line in lines
    )


def _build_table(table: TableDiff) -> Iterator[str]:
    if shape := table.shape():
        yield f'<pre class="diff">{_build_lines(tuple(shape))}</pre>\n'
    if table.changed:
        yield '<div class="wide"><table>\n<thead><tr><th>row</th><th>column</th><th>expected</th><th>replayed</th></tr>'
        yield "</thead>\n<tbody>\n"
        for each in table.changed:
            before, after = _escape_text(each.before[:LONGEST]), _escape_text(each.after[:LONGEST])
            yield f"<tr><th>{_escape_text(each.row)}</th><th>{_escape_text(each.column)}</th>"
            yield f'<td class="gone">{before}</td><td class="new">{after}</td></tr>\n'
        yield "</tbody>\n</table></div>\n"
    if table.more:
        yield f'<p class="note">and {format_count(table.more, "more cell")}</p>\n'


def _build_images(images: Images, left: _PictureBudget) -> Iterator[str]:
    yield f'<pre class="diff">{_build_lines(tuple(images.text()))}</pre>\n<div class="images">\n'
    for name, kind, data in (
        ("expected", images.kind, images.expected), ("replayed", images.kind, images.replayed),
        ("what differs, in red", "image/png", images.marked),
    ):  # fmt: skip
        if data and left.reserve_bytes(data):
            source = f"data:{kind};base64,{base64.b64encode(data).decode()}"
            yield f'<figure><img alt="{name}" src="{source}"><figcaption>{name}</figcaption></figure>\n'
    yield "</div>\n"


def _escape_text(text: str) -> str:
    """Text as text: no markup, and no character that HTML does not take."""
    return escape(xml_text(text), quote=True)
