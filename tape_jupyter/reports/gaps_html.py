"""The report of gaps as a terminal and a notebook show it. No script, nothing from elsewhere, the
colours of the page around it; every recorded word is escaped. What it says is decided in
reports/gaps.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from tape_jupyter.audit.nondeterminism import AuditFinding
from tape_jupyter.core.plain_text import format_count
from tape_jupyter.reports import gaps
from tape_jupyter.reports.gaps import NO_GAPS, Report, RunReport, gaps_headline, name_runs

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

COLOURS = {"pinned": "green", "recorded": "cyan", "unpinnable": "yellow", "missing": "red"}
_MARKS = {
    "pinned": "color:var(--jp-success-color1,#2a8a3e)",
    "recorded": "color:inherit",
    "unpinnable": "color:var(--jp-warn-color0,#a60)",
    "missing": "color:var(--jp-error-color1,#d33);font-weight:600",
}
_LINE = "border-bottom:1px solid var(--jp-border-color2,rgba(128,128,128,.4))"
_CODE = "font-family:var(--jp-code-font-family,monospace)"
_CELL = "text-align:left;vertical-align:top;padding:2px 12px 2px 0;white-space:normal"
MAX_RUNS = 50
"""Runs that are told field by field in a notebook: an output is saved with it."""


# ---- the notebook


def show_gaps(gap_report: Report) -> None:
    """Display it below the cell that asked."""
    from IPython.display import publish_display_data

    publish_display_data(
        {"text/plain": gaps.gaps_text(gap_report), "text/html": gaps_html(gap_report)}
    )  # type: ignore[no-untyped-call]


def gaps_html(gap_report: Report) -> str:
    """The nine items, what is missing with the line that keeps it, the cold cases; behind it each
    run's fields.
    """
    if not gap_report.runs:
        return f"<div>{escape(gaps.gaps_text(gap_report))}</div>"
    parts = [
        f'<div style="{_CODE}">{escape(gaps_headline(gap_report))}</div>',
        _build_table(
            ("", "source of randomness", "status", "what the recording says"),
            map(_build_item_row, gap_report.budget),
        ),
        _build_missing(gap_report),
        *(f"<div>{escape(line)}</div>" for line in gap_report.untaped),
        _build_cold(gap_report),
        *map(_build_details, gap_report.runs[:MAX_RUNS]),
    ]
    if len(gap_report.runs) > MAX_RUNS:
        parts.append(
            f"<div>and {format_count(len(gap_report.runs) - MAX_RUNS, 'more run')}: tape gaps --all</div>"
        )
    style = f"font-size:90%;color:inherit;padding:2px 0 2px 8px;{_LINE}"
    return f'<div class="tape-gaps" style="{style}">{"".join(parts)}</div>'


def _build_item_row(each: AuditFinding) -> tuple[str, ...]:
    return (str(each.number), escape(each.name), _build_status(each), _build_what(each))


def _build_field_row(each: AuditFinding) -> tuple[str, ...]:
    return (escape(each.name), _build_status(each), _build_what(each))


def _build_status(each: AuditFinding) -> str:
    return f'<span style="{_MARKS[each.status]}">{each.status}</span>'


def _build_what(each: AuditFinding) -> str:
    if each.capture:
        line = f'<div style="{_CODE};opacity:.85">{escape(each.capture)}</div>'
    else:
        line = ""
    return f"{escape(each.description)}{line}"


def _build_missing(gap_report: Report) -> str:
    missing = gap_report.missing
    if not missing:
        return f"<div>{NO_GAPS}</div>"
    rows = (
        (
            escape(each.name),
            escape(each.what),
            f'<span style="{_CODE}">{escape(each.capture)}</span>',
            _build_names(runs),
        )
        for each, runs in missing
    )
    return _build_table(("missing", "what", "the line that keeps it next time", "runs"), rows)


def _build_names(runs: Sequence[str]) -> str:
    """A run's id is not broken over lines."""
    lines = name_runs(runs).replace(", ", ",\n")
    return f'<span style="white-space:pre">{escape(lines)}</span>'


def _build_cold(gap_report: Report) -> str:
    if not gap_report.cold:
        return ""
    rows = ((escape(case.run), "<br>".join(map(escape, case.reasons))) for case in gap_report.cold)
    head = (
        f"<div>{len(gap_report.cold)} of {format_count(len(gap_report.runs), 'run')} "
        "cannot be replayed fully</div>"
    )
    return head + _build_table(("cold case", "why"), rows) + _build_patterns(gap_report.patterns)


def _build_patterns(patterns: Mapping[str, list[dict[str, object]]]) -> str:
    rows = (
        (name, escape(gaps.coldest(findings))) for name, findings in patterns.items() if findings
    )
    return _build_table(("by", "runs without it"), rows)


def _build_details(run: RunReport) -> str:
    cell = f" [{run.count}]" if run.count is not None else ""
    title = f"{run.run}{cell} {run.at} {run.outcome}, {format_count(len(run.calls), 'call')}"
    fields = _build_table(
        ("field", "status", "what"), map(_build_field_row, (*run.budget, *run.kit))
    )
    calls = "".join(
        f'<details style="margin-left:12px"><summary style="cursor:pointer">{escape(call.id)} {escape(call.name)}'
        f"</summary>{_build_table(('field', 'status', 'what'), map(_build_field_row, (*items, *fields_)))}</details>"
        for call, items, fields_ in run.calls[:MAX_RUNS]
    )
    return f'<details><summary style="cursor:pointer">{escape(title)}</summary>{fields}{calls}</details>'


def _build_table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Rows hold markup already."""
    head = "".join(f'<th scope="col" style="{_CELL};{_LINE}">{name}</th>' for name in names)
    body = "".join(f"<tr>{_build_cells(row)}</tr>" for row in rows)
    style = "margin:4px 0;border-collapse:collapse"
    return f'<table style="{style}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _build_cells(row: Iterable[str]) -> str:
    return "".join(f'<td style="{_CELL}">{cell}</td>' for cell in row)


# ---- the terminal


def print_it(gap_report: Report, *, full: bool = False) -> None:
    """On stdout, in colours where that is a terminal. `full`: every field of every run and call."""
    from rich.console import Console

    console = Console(highlight=False, markup=False, soft_wrap=False)
    for problem in gap_report.broken.values():
        console.print(f"! {problem}", style="red", soft_wrap=True)
    if not gap_report.runs:
        console.print(NO_GAPS if not gap_report.broken else "nothing to report")
        return
    console.print(gaps_headline(gap_report), soft_wrap=True)
    console.print(_build_item_table(gap_report.budget))
    _print_missing(console, gap_report)
    for line in (*gap_report.untaped, *gaps.cold_lines(gap_report)):
        console.print(line, soft_wrap=True)
    if full:
        _print_runs(console, gap_report.runs)


def _build_item_table(findings: Iterable[AuditFinding]) -> Table:
    table = _build_columns("", "source of randomness", "status", "what the recording says")
    for each in findings:
        table.add_row(str(each.number), each.name, _colour_status(each), each.what)
    return table


def _print_missing(console: Console, gap_report: Report) -> None:
    missing = gap_report.missing
    if not missing:
        console.print(NO_GAPS)
        return
    console.print(f"missing ({len(missing)}), and the line that keeps it next time:")
    for each, runs in missing:
        console.print(f"  {each.name}: {each.what}  ({name_runs(runs)})", soft_wrap=True)
        console.print(f"      {each.capture}", style="bold", soft_wrap=True)


def _print_runs(console: Console, runs: Iterable[RunReport]) -> None:
    for run in runs:
        console.print(
            f"{run.run} {run.at} {run.outcome} ({run.cassette})", style="bold", soft_wrap=True
        )
        console.print(_build_field_table((*run.budget, *run.kit)))
        for call, items, fields in run.calls:
            console.print(f"  {call.id} {call.kind} {call.name}", style="bold", soft_wrap=True)
            console.print(_build_field_table((*items, *fields)))


def _build_field_table(findings: Iterable[AuditFinding]) -> Table:
    table = _build_columns("field", "status", "what", "next time")
    for each in findings:
        table.add_row(each.name, _colour_status(each), each.description, each.capture)
    return table


def _build_columns(*names: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE, pad_edge=False)
    for name in names:
        table.add_column(name, overflow="fold")
    return table


def _colour_status(each: AuditFinding) -> Text:
    from rich.text import Text

    return Text(each.status, COLOURS[each.status])
