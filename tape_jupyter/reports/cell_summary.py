"""The short static summary below a taped cell, as text and as HTML. No script, nothing from
elsewhere, colours of the page around it; every recorded word is escaped, and none is read as TeX
(prices begin with a dollar). A saved notebook shows it without a kernel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tape_jupyter.cassette import paths
from tape_jupyter.cassette.takes import files
from tape_jupyter.core.plain_text import format_count
from tape_jupyter.errors import CassetteError
from tape_jupyter.reports import waterfall
from tape_jupyter.session import saved_output
from tape_jupyter.spans.headers import RETRIEVAL, TOOL
from tape_jupyter.spans.tree import find_retried

if TYPE_CHECKING:
    from tape_jupyter.session.cell import CellReport, ReportRow
    from tape_jupyter.spans.rows import Spans

NONE = "–"  # noqa: RUF001 - as in a printed table
MARK = {"tape": {"summary": True}}
"""Metadata of the output, so that tools that compare outputs can leave it out."""

_MISS, _WARNING, _NOTE = "✗", "!", "·"
_STYLE = {
    _MISS: "color:var(--jp-error-color1,#d33)",
    _WARNING: "color:var(--jp-warn-color0,#a60)",
    _NOTE: "color:inherit;opacity:.8",
}
# <code> has a grey ground in JupyterLab
_LOOK = "font:90% var(--jp-code-font-family,monospace);color:inherit;white-space:pre-wrap;padding-left:8px"
_NUMBERS = ("in", "out", "cost", "time")


def show_summary(
    report: CellReport,
    shown_error: BaseException | None = None,
    notebook: Path | None = None,
    number: int | None = None,
) -> None:
    """Display it. `shown_error` is the error that stands above already: it is named, not told again.
    `number` is the one beside the cell.

    What a kernel displays is saved with its notebook: there a replay, whose calls are those of its
    recording, says no time, and so writes the same each time.
    """
    from IPython.core.getipython import get_ipython
    from IPython.display import publish_display_data

    saved = hasattr(get_ipython(), "kernel")
    timed = not saved or report.mode not in _PLAYED
    taped = _read_tape(report)
    if taped is not None:
        falls = waterfall.waterfall_lines(_build_bars(taped.spans), len(report.calls))
    else:
        falls = []
    data: dict[str, Any] = {
        "text/plain": summary_text(report, shown_error, () if saved else falls, timed=timed),
        "text/html": summary_html(report, shown_error, falls, timed=timed),
    }
    if taped is not None:
        output_bundle = saved_output.bundle(taped, report.mode, notebook, number)
    else:
        output_bundle = None
    if output_bundle is not None:
        data[saved_output.MIME] = output_bundle
    remarks = {"unheld": list(report.unheld), "lost": list(report.lost)}
    mark = {"tape": {**MARK["tape"], **{kind: texts for kind, texts in remarks.items() if texts}}}
    publish_display_data(data, metadata=mark)  # type: ignore[no-untyped-call]


_PLAYED = ("replay", "new_episodes")


def _read_tape(report: CellReport) -> saved_output.OnTape | None:
    """What is on the tape of a cell; None where that cannot be read now: the cell has its summary
    all the same.
    """
    try:
        return report.on_tape()
    except (CassetteError, OSError):
        return None


def _build_bars(spans: Spans) -> list[waterfall.Bar]:
    calls = [node for node in spans.nodes if node.header is not None]
    rows = [(spans.row(node), node.header) for node in calls]
    return [
        waterfall.Bar(
            call.target if row.kind in (TOOL, RETRIEVAL) and call else row.name, row.start, row.end
        )
        for row, call in rows
    ]


def worth_showing(report: CellReport) -> bool:
    """Whether a cell that did not ask for the tape itself has anything to say."""
    return bool(report.calls or report.misses or report.warnings or report.notes)


def summary_text(
    report: CellReport,
    shown_error: BaseException | None = None,
    falls: Sequence[str] = (),
    *,
    timed: bool = True,
) -> str:
    """The line, the waterfall's below it, and what is to be said."""
    remarks = (f"  {mark} {text}" for mark, text in _list_remarks(report, shown_error))
    return "\n".join([summary_headline(report, timed=timed), *falls, *remarks])


def summary_html(
    report: CellReport,
    shown_error: BaseException | None = None,
    falls: Sequence[str] = (),
    *,
    timed: bool = True,
) -> str:
    """One line, which unfolds to the waterfall; and what is to be said."""
    head = escape(summary_headline(report, timed=timed))
    if falls:
        drawn = escape("\n".join(falls))
        head = f"<details><summary>{head}</summary>{drawn}</details>"
    remarks = "".join(
        f'<div style="{_STYLE[mark]}">{mark} {escape(text)}</div>'
        for mark, text in _list_remarks(report, shown_error)
    )
    return f'<div class="tape-summary mathjax_ignore tex2jax_ignore" style="{_LOOK}">{head}{remarks}</div>'


def summary_headline(report: CellReport, *, timed: bool = True) -> str:
    """What became of it, calls, models, tokens, cost, time: one line of plain text."""
    parts = [*_format_counts(report), *_format_usage(report)]
    if timed:
        parts.append(seconds_text(report.seconds))
    if report.misses:
        parts.insert(1, f"{len(report.misses)} refused")
    if report.incomplete:
        parts.append("incomplete")
    if report.take:
        parts.append(f"take: {report.take}")
    if report.path is not None:
        root = files.cassette_of(report.path)
        parts.append(f"{root.parent.name}/{paths.stem(root)}")
    return f"{_format_outcome(report)}  {' · '.join(parts)}"


def _format_outcome(report: CellReport) -> str:
    """`● recorded`, `● replayed`, `≠ diverged at call 3`, `✗ missed`."""
    if report.divergences and report.mode == "replay":
        return f"≠ diverged at call {len(report.calls) + 1}"
    if report.misses:
        return f"{_MISS} missed"
    return f"● {_WORDS.get(report.mode, report.mode)}"


_WORDS = {
    "record": "recorded", "replay": "replayed", "once": "recorded", "new_episodes": "played, new calls recorded",
    "live": "observed",
}  # fmt: skip


def seconds_text(value: float | None) -> str:
    if value is None:
        return NONE
    if value >= 1:
        return f"{value:.0f} s" if value >= 10 else f"{value:.2f} s"
    return f"{value * 1000:.0f} ms" if value >= 0.001 else "<1 ms"


def money(value: Decimal | None) -> str:
    """US dollars: cents from a dollar on, else two figures that count."""
    if value is None:
        return NONE
    if value >= 1 or not value:
        return f"${value:.2f}"
    return f"${value:.{1 - value.adjusted()}f}"


def tokens_text(value: int | None) -> str:
    return NONE if value is None else f"{value:,}"


def summary_rows(calls: Iterable[ReportRow]) -> list[tuple[str, ...]]:
    """The calls as rows of text: id, kind, name, tokens in, tokens out, cost, time, error."""
    return [
        (
            row.id, row.kind, row.name or NONE, tokens_text(row.tokens_in), tokens_text(row.tokens_out),
            money(row.cost), seconds_text(row.seconds), row.error or "",
        )
        for row in calls
    ]  # fmt: skip


COLUMNS = ("call", "kind", "model or name", "in", "out", "cost", "time", "error")


def plain_table(calls: Iterable[ReportRow]) -> str:
    """The calls as columns of text, numbers to the right."""
    lines = _select_columns(calls)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    aligned = [str.rjust if name in _NUMBERS else str.ljust for name in lines[0]]
    return "\n".join(
        "  ".join(
            align(cell, width) for align, cell, width in zip(aligned, line, widths, strict=True)
        ).rstrip()
        for line in lines
    )


def _select_columns(calls: Iterable[ReportRow]) -> list[tuple[str, ...]]:
    """Heading and rows, without the columns that tell nothing of any call."""
    lines = summary_rows(calls)
    indexes = [
        index
        for index in range(len(COLUMNS))
        if any(line[index] not in ("", NONE) for line in lines)
    ]
    return [tuple(line[index] for index in indexes) for line in (COLUMNS, *lines)]


def _list_remarks(report: CellReport, shown_error: BaseException | None) -> list[tuple[str, str]]:
    return [
        *((_MISS, _format_miss(miss, full=miss is not shown_error)) for miss in report.misses),
        *((_WARNING, warning) for warning in report.warnings),
        *((_NOTE, note) for note in report.notes),
    ]


def _format_miss(miss: BaseException, *, full: bool) -> str:
    """What is not on the tape; `full`: with what became of it, and why."""
    text = f"{type(miss).__name__}: {miss}"
    if full:
        return text
    return text.partition("\n")[0].partition(" Nothing was sent.")[0]


def _format_counts(report: CellReport) -> list[str]:
    """`5 calls`, `1 went live`, `claude-sonnet-5 x4, lookup`, `2 retried`, `1 failed`"""
    calls = report.calls
    if not calls:
        return ["no calls"]
    names = Counter(row.name or row.kind for row in calls).most_common()
    # as in a bill
    listed = ", ".join(f"{name} ×{count}" if count > 1 else name for name, count in names[:4])  # noqa: RUF001
    more = f", {format_count(len(names) - 4, 'more name')}" if len(names) > 4 else ""
    failed = sum(1 for row in calls if row.error)
    made = _read_tape(report) if failed else None
    retried = len(find_retried(made.entries)) if made is not None else 0
    failed -= retried
    live = sum(1 for row in calls if row.live)
    return [
        format_count(len(calls), "call"),
        *([f"{live} went live"] if live else []),
        f"{listed}{more}",
        *([f"{retried} retried"] if retried else []),
        *([f"{failed} failed"] if failed else []),
    ]


def _format_usage(report: CellReport) -> list[str]:
    """Tokens and cost, when any call has a usage."""
    used = [row for row in report.calls if row.tokens_in is not None or row.tokens_out is not None]
    if not used:
        return []
    total = sum((row.tokens_in or 0) + (row.tokens_out or 0) for row in used)
    paid = [row for row in used if row.live or report.mode != "replay"]
    played = [row for row in used if not row.live and report.mode == "replay"]
    prices = [*_format_price(paid), *(f"saved {price}" for price in _format_price(played))]
    return [f"{tokens_text(total)} tok", *prices]


def _format_price(rows: Sequence[ReportRow]) -> list[str]:
    """What they cost together, `+` where not all is known; nothing where none is."""
    known = [row.cost for row in rows if row.cost is not None]
    more = "+" if len(known) < len(rows) else ""
    return [f"{money(sum(known, start=Decimal()))}{more}"] if known else []
