"""Doors room: a bundle's replay as a page to read (`--report`) and as JUnit XML for a CI (`--junit`).

The page needs nothing else and runs nothing: no script, and a policy that lets none run. All text of a notebook or a
model stands in it as text; pictures as data.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from xml.etree import ElementTree as ET

from tape_jupyter.bundle.comparing import REPORTED, Difference
from tape_jupyter.bundle.images import Images
from tape_jupyter.bundle.replaying import BundleCell, BundleRun
from tape_jupyter.bundle.report_style import STYLE
from tape_jupyter.bundle.tables import TableDiff
from tape_jupyter.drafts import replacing
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.page_blocks import allowed

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


def goal(path: Path, kind: str) -> Path:
    """The path, if a report of a kind ("html" or "xml") may be written there; asked before anything runs.

    Raises TapeUsageError for a name of another kind, a folder that is not there, and a file that is no such report.
    """
    option, mark = ("--report", MADE) if kind == "html" else ("--junit", JUNIT)
    if path.suffix.lower() != f".{kind}":
        raise TapeUsageError(f"{option} {path}: the report is written to a file that ends in .{kind}")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise TapeUsageError(f"{option} {path}: there is no folder {path.absolute().parent}")
    if path.exists() and mark.encode() not in path.read_bytes()[:2_000]:
        raise TapeUsageError(f"{option} {path} exists and is no report of tape-jupyter's; give another name")
    return path


def write(path: Path, pieces: Iterator[str]) -> None:
    """Write a report in one step."""
    try:
        with replacing(path) as draft:
            with draft.open("w", encoding="utf-8", errors="backslashreplace") as file:
                file.writelines(pieces)
            draft.chmod(0o644)
    except OSError as error:
        raise TapeUsageError(f"{path} cannot be written: {error.strerror or error}") from error


# ---------------------------------------------------------------- JUnit


def junit(run: BundleRun) -> Iterator[str]:
    """A testsuite for the notebook, a testcase for each cell."""
    counts = _counts(run)
    suites = ET.Element("testsuites", {"name": JUNIT, **counts})
    suite = ET.SubElement(suites, "testsuite", {"name": _xml(run.notebook), **counts})
    properties = ET.SubElement(suite, "properties")
    for name, value in {"bundle": run.place, "sha256": run.digest, "environment": run.env, "guard": run.guard}.items():
        ET.SubElement(properties, "property", {"name": name, "value": _xml(value)})
    for cell in run.cells:
        _testcase(suite, run, cell)
    ET.indent(suites)
    yield '<?xml version="1.0" encoding="utf-8"?>\n'
    yield ET.tostring(suites, encoding="unicode")
    yield "\n"


def _counts(run: BundleRun) -> dict[str, str]:
    ways = run.counts()
    return {
        "tests": str(len(run.cells)), "failures": str(ways.get("differs", 0) + ways.get("missed", 0)),
        "errors": str(ways.get("failed", 0)), "skipped": str(ways.get("not run", 0)),
        "time": f"{sum(each.seconds for each in run.cells):.3f}",
    }  # fmt: skip


def _testcase(suite: ET.Element, run: BundleRun, cell: BundleCell) -> None:
    name = run.notebook.rpartition("/")[2].removesuffix(".ipynb")
    about = {"classname": _xml(name), "name": _xml(f"[{cell.number}] {cell.title}"), "time": f"{cell.seconds:.3f}"}
    case = ET.SubElement(suite, "testcase", about)
    if cell.status == "same":
        return
    if cell.status == "not run":
        ET.SubElement(case, "skipped", {"message": "a cell before it raised"})
        return
    lines = [*cell.said, *(line for each in cell.differences for line in each.text(REPORTED))]
    first = next(iter(lines), _WORDS[cell.status])
    tag = "error" if cell.status == "failed" else "failure"
    ET.SubElement(case, tag, {"type": cell.status, "message": _xml(first)[:500]}).text = _xml("\n".join(lines))


def _xml(text: str) -> str:
    """Without what no XML may hold, escaped or not."""
    return _BAD_XML.sub("\N{REPLACEMENT CHARACTER}", text)


# ---------------------------------------------------------------- the page


def html(run: BundleRun) -> Iterator[str]:
    """The page, in pieces."""
    policy = f"default-src 'none'; style-src {allowed(STYLE)}; img-src data:; base-uri 'none'; form-action 'none'"
    title = f"{run.notebook.rpartition('/')[2]}: {_closing(run)}"
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n{MADE}\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield f"<title>{_text(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
    yield from _head(run)
    yield from _map(run)
    left = _Room(PICTURES)
    for cell in run.cells:
        yield from _cell(cell, left)
    yield "</main>\n</body>\n</html>\n"


class _Room:
    """How many bytes of pictures a page still takes."""

    def __init__(self, left: int) -> None:
        self.left = left

    def takes(self, data: bytes) -> bool:
        fits = len(data) <= self.left
        self.left -= len(data) if fits else 0
        return fits


def _closing(run: BundleRun) -> str:
    return run.closing().replace("\n", "; ")


def _head(run: BundleRun) -> Iterator[str]:
    verdict = "good" if run.good else "bad"
    yield f'<header>\n<p class="over">Replay of {_text(run.place)}</p>\n'
    yield f'<h1 class="{verdict}">{_text(_closing(run))}</h1>\n<dl>\n'
    yield _row("Notebook", run.notebook)
    yield _row("Bundle", f"sha256 {run.digest}")
    yield _row("Take", run.take) if run.take else ""
    yield _row("Packages", "of the bundle's lock" if run.env == "lock" else "of the interpreter that replayed it")
    yield _row("Network", run.guard)
    for name, told in (("Not as recorded", run.drift), ("Note", run.notes)):
        for each in told:
            yield _row(name, each)
    yield "</dl>\n</header>\n"


def _row(name: str, value: str) -> str:
    return f"<div><dt>{_text(name)}</dt><dd>{_text(value)}</dd></div>\n"


def _map(run: BundleRun) -> Iterator[str]:
    """A square for each cell, to click on."""
    yield '<nav aria-label="Cells">\n'
    for cell in run.cells:
        what = _text(f"[{cell.number}] {_WORDS[cell.status]}: {cell.title}")
        yield f'<a class="{_class(cell)}" href="#cell-{cell.number}" title="{what}">{cell.number}</a>\n'
    yield "</nav>\n"


def _class(cell: BundleCell) -> str:
    return cell.status.replace(" ", "-") if cell.status in _WORDS else "differs"


def _cell(cell: BundleCell, left: _Room) -> Iterator[str]:
    calls = "" if not cell.calls else "1 call" if cell.calls == 1 else f"{cell.calls:,} calls"
    facts = ", ".join(filter(None, [calls, f"{cell.seconds:.2f} s" if cell.status != "not run" else ""]))
    head = (
        f'<span class="number">[{cell.number}]</span> <span class="way {_class(cell)}">{_WORDS[cell.status]}</span> '
        f'<span class="title">{_text(cell.title)}</span> <span class="facts">{facts}</span>'
    )
    if cell.good:
        yield f'<section id="cell-{cell.number}" class="cell">{head}</section>\n'
        return
    yield f'<details id="cell-{cell.number}" class="cell" open>\n<summary>{head}</summary>\n'
    if cell.known:
        yield '<p class="note">The bundle says so itself: this cell differed when it was exported.</p>\n'
    if cell.said:
        yield f'<pre class="said">{_lines(cell.said)}</pre>\n'
    for each in cell.differences:
        yield from _difference(each, left)
    cut = cell.source if len(cell.source) <= SOURCE else f"{cell.source[:SOURCE]}\n…"
    yield f'<details class="source"><summary>The cell</summary><pre>{_text(cut)}</pre></details>\n</details>\n'


def _difference(each: Difference, left: _Room) -> Iterator[str]:
    only = {"expected": "missing in the replay", "replayed": "new in the replay"}.get(each.only, "")
    yield f"<h2>{_text(each.heading)}{f' <small>{only}</small>' if only else ''}</h2>\n"
    if each.table:
        yield from _table(each.table)
    elif each.images:
        yield from _images(each.images, left)
    else:
        yield f'<pre class="diff">{_lines(each.lines)}</pre>\n'


def _lines(lines: tuple[str, ...]) -> str:
    """Each line in the colour of its sign."""
    kinds = {"+": "new", "-": "gone", "@": "where"}
    return "\n".join(
        f'<span class="{kinds[line[:1]]}">{_text(line[:LONGEST])}</span>'
        if line[:1] in kinds
        else _text(line[:LONGEST])
        for line in lines
    )


def _table(table: TableDiff) -> Iterator[str]:
    if shape := table.shape():
        yield f'<pre class="diff">{_lines(tuple(shape))}</pre>\n'
    if table.changed:
        yield '<div class="wide"><table>\n<thead><tr><th>row</th><th>column</th><th>expected</th><th>replayed</th></tr>'
        yield "</thead>\n<tbody>\n"
        for each in table.changed:
            before, after = _text(each.before[:LONGEST]), _text(each.after[:LONGEST])
            yield f"<tr><th>{_text(each.row)}</th><th>{_text(each.column)}</th>"
            yield f'<td class="gone">{before}</td><td class="new">{after}</td></tr>\n'
        yield "</tbody>\n</table></div>\n"
    if table.more:
        yield f'<p class="note">and {table.more:,} more cells</p>\n'


def _images(images: Images, left: _Room) -> Iterator[str]:
    yield f'<pre class="diff">{_lines(tuple(images.text()))}</pre>\n<div class="images">\n'
    for name, kind, data in (
        ("expected", images.kind, images.expected), ("replayed", images.kind, images.replayed),
        ("what differs, in red", "image/png", images.marked),
    ):  # fmt: skip
        if data and left.takes(data):
            source = f"data:{kind};base64,{base64.b64encode(data).decode()}"
            yield f'<figure><img alt="{name}" src="{source}"><figcaption>{name}</figcaption></figure>\n'
    yield "</div>\n"


def _text(text: str) -> str:
    """Text as text: no markup, and no character that HTML does not take."""
    return escape(_xml(text), quote=True)
