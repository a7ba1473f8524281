"""How two tables of text/html differ, cell by cell: by the names of their rows and columns, as a
frame of pandas has them, else by their numbers. The page is read, never shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from html.parser import HTMLParser

from tape_jupyter.comparison.outputs import format_more

MOST = 200
"""Changed cells that are told."""
LONG = 80
"""Characters of a cell that are told."""
LARGEST = 20_000_000
"""Characters of HTML that are read at all."""


@dataclass(frozen=True)
class Changed:
    """A cell of both tables that differs: the names of its row and column, and its text before and
    after.
    """

    row: str
    column: str
    before: str
    after: str


@dataclass(frozen=True)
class TableDiff:
    """Two tables that differ. Sizes are (rows, columns) without headings; `more` cells changed
    besides `changed`.
    """

    before: tuple[int, int]
    after: tuple[int, int]
    changed: tuple[Changed, ...] = ()
    more: int = 0
    rows_gone: tuple[str, ...] = ()
    rows_new: tuple[str, ...] = ()
    columns_gone: tuple[str, ...] = ()
    columns_new: tuple[str, ...] = ()

    def text(self) -> list[str]:
        """A line for each thing that differs."""
        lines = self.shape()
        for each in self.changed:
            lines += [
                f"@@ row {each.row}, column {each.column}",
                f"-{_shorten_text(each.before)}",
                f"+{_shorten_text(each.after)}",
            ]
        return [*lines, *([format_more(self.more, "cell")] if self.more else [])]

    def shape(self) -> list[str]:
        """Of those lines the ones about sizes, rows and columns."""
        lines = []
        if self.before != self.after:
            lines.append(
                f"@@ {_format_size(self.before)} expected, {_format_size(self.after)} replayed"
            )
        for sign, what, names in (
            ("-", "column", self.columns_gone), ("+", "column", self.columns_new),
            ("-", "row", self.rows_gone), ("+", "row", self.rows_new),
        ):  # fmt: skip
            lines += [f"{sign} {what} {name}" for name in names[:MOST]]
            if len(names) > MOST:
                lines.append(f"{sign} and {len(names) - MOST:,} more {what}s")
        return lines


@dataclass(frozen=True)
class HtmlTable:
    """Names of the columns, names of the rows, and the cells."""

    columns: tuple[str, ...]
    rows: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]


def may_hold_table(mime: str) -> bool:
    """Whether such a part may hold a table."""
    return mime == "text/html"


def compare_tables(before: str, after: str) -> TableDiff | None:
    """How the first tables of two pieces of HTML differ; None where one holds no table, or they
    hold the same.
    """
    one, other = read_table(before), read_table(after)
    if one is None or other is None or one == other:
        return None
    columns_gone, new, columns = _match_names(one.columns, other.columns)
    rows_gone, rows_new, rows = _match_names(one.rows, other.rows)
    changed = [
        Changed(one.rows[r], one.columns[c], one.cells[r][c], other.cells[s][d])
        for r, s in rows
        for c, d in columns
        if one.cells[r][c] != other.cells[s][d]
    ]
    table_diff = TableDiff(
        (len(one.rows), len(one.columns)), (len(other.rows), len(other.columns)), tuple(changed[:MOST]),
        max(0, len(changed) - MOST), rows_gone, rows_new, columns_gone, new,
    )  # fmt: skip
    if changed or columns_gone or new or rows_gone or rows_new:
        return table_diff
    return None


def read_table(html: str) -> HtmlTable | None:
    """The first table in a piece of HTML; None where there is none."""
    if len(html) > LARGEST or "<table" not in html.lower():
        return None
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return _build_table(reader.rows)


class _Reader(HTMLParser):
    """Rows of the first table: for each whether it stands in the head, and its cells (is it a
    heading, its text).
    """

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.rows: list[tuple[bool, list[tuple[bool, str]]]] = []
        self._inside, self._done, self._head, self._cell = 0, False, False, False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self._inside += 1
        if not self._inside or self._done or self._inside > 1:
            return
        if tag in ("thead", "tbody"):
            self._head = tag == "thead"
        elif tag == "tr":
            self.rows.append((self._head, []))
        elif tag in ("th", "td") and self.rows:
            span = next((value for name, value in attrs if name == "colspan"), None) or "1"
            blanks = min(int(span), 1_000) - 1 if span.isdecimal() and len(span) < 5 else 0
            self.rows[-1][1].extend([(tag == "th", "")] * blanks)
            self.rows[-1][1].append((tag == "th", ""))
            self._cell = True

    def handle_endtag(self, tag: str) -> None:
        if tag in ("th", "td"):
            self._cell = False
        elif tag == "table" and self._inside:
            self._inside -= 1
            self._done = self._done or not self._inside

    def handle_data(self, data: str) -> None:
        if self._cell and not self._done and self.rows and self.rows[-1][1]:
            heading, text = self.rows[-1][1][-1]
            self.rows[-1][1][-1] = (heading, text + data)


def _build_table(rows: list[tuple[bool, list[tuple[bool, str]]]]) -> HtmlTable | None:
    head = [[_squeeze_space(text) for _, text in row] for in_head, row in rows if in_head]
    body = [row for in_head, row in rows if not in_head]
    if not head and body and all(heading for heading, _ in body[0]):
        head = [[_squeeze_space(text) for _, text in body.pop(0)]]
    if not body and not head:
        return None
    names = [" ".join(_squeeze_space(text) for heading, text in row if heading) for row in body]
    cells = [tuple(_squeeze_space(text) for heading, text in row if not heading) for row in body]
    width = max([len(row) for row in cells], default=len(head[-1]) if head else 0)
    cells = [row + ("",) * (width - len(row)) for row in cells]
    columns = [
        " ".join(filter(None, (row[-width:][at] for row in head if len(row) >= width)))
        for at in range(width)
    ]
    return HtmlTable(_make_names_distinct(columns), _make_names_distinct(names), tuple(cells))


def _squeeze_space(text: str) -> str:
    return " ".join(text.split())


def _make_names_distinct(names: list[str]) -> tuple[str, ...]:
    """The names where they tell things apart, else numbers from 0, as pandas counts."""
    distinct = len(set(names)) == len(names) and all(names)
    if distinct:
        return tuple(names)
    return tuple(f"{at} ({name})" if name else str(at) for at, name in enumerate(names))


def _match_names(
    one: tuple[str, ...], other: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...], list[tuple[int, int]]]:
    """Names that are gone, names that are new, and the places of those in both."""
    places = {name: at for at, name in enumerate(other)}
    kept = [(at, places[name]) for at, name in enumerate(one) if name in places]
    known = set(one)
    return (
        tuple(name for name in one if name not in places), tuple(name for name in other if name not in known), kept
    )  # fmt: skip


def _format_size(shape: tuple[int, int]) -> str:
    return f"{shape[0]:,} rows x {shape[1]:,} columns"


def _shorten_text(text: str) -> str:
    return text if len(text) <= LONG else f"{text[: LONG - 1]}…"
