"""Spans as a pandas frame: one row a span, typed columns. pandas is imported when it is asked for.

Of a cell or a user's span the columns that speak of one call are missing values. Text of a
recording stays text: pandas escapes it where a frame is shown as HTML.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tape_jupyter.errors import TapeUsageError
from tape_jupyter.spans.headers import KINDS
from tape_jupyter.spans.rows import MARKS, Spans

if TYPE_CHECKING:
    import pandas as pd

    from tape_jupyter.cassette.reader import Book
    from tape_jupyter.spans.tree import Node

TYPES = {
    "span": "string", "run": "string", "call": "string", "cell": "string", "number": "Int64", "depth": "Int64",
    "kind": "category", "name": "string", "mark": "category", "start": "datetime64[ns, UTC]", "seconds": "float64",
    "first": "float64", "provider": "category", "model": "string", "tokens_in": "Int64", "tokens_out": "Int64",
    "tokens_cached": "Int64", "cost": "float64", "error": "string", "url": "string",
    "path": "string", "parent": "string",
}  # fmt: skip
"""Columns and their types. `seconds` and `first` are durations in seconds (`first`: to the first
byte), `cost` is US dollars at list price. `path` are the user's spans around a call, joined by " /
", `parent` is the taped function whose body made it.
"""


def spans_frame(book: Book) -> pd.DataFrame:
    """The spans of a cassette or take, in tree order. Raises TapeUsageError where pandas is not
    installed.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise TapeUsageError(
            "a frame needs pandas, which is not installed here: pip install pandas"
        ) from error
    spans = Spans(book)
    spans.refresh()
    records = [_build_record(spans, node) for node in spans.nodes]
    closed = {"kind": pd.CategoricalDtype(list(KINDS)), "mark": pd.CategoricalDtype(list(MARKS))}
    return pd.DataFrame(records, columns=list(TYPES)).astype({**TYPES, **closed})


def _build_record(spans: Spans, node: Node) -> dict[str, Any]:
    row, header = spans.row(node), node.header
    count = node.record.get("count")
    record = {
        "span": node.id, "run": str(node.record.get("run", "")), "cell": row.cell, "depth": row.depth,
        "number": count if isinstance(count, int) else None,
        "kind": KINDS[row.kind], "name": row.name, "mark": MARKS[row.mark], "start": _to_datetime(node.begin),
        "seconds": round(max(0.0, node.end - node.begin), 4),
    }  # fmt: skip
    if header is None:
        return record
    usage = header.facts.usage
    return record | {
        "call": header.id, "first": None if row.first is None else round(row.first - row.start, 4),
        "provider": header.facts.provider or None, "model": header.facts.answered or header.facts.model or None,
        "tokens_in": usage.input if usage else None, "tokens_out": usage.output if usage else None,
        "tokens_cached": usage.cached if usage else None, "cost": row.cost,
        "error": header.error or header.failed or None, "url": header.target if "://" in header.target else None,
        "path": " / ".join(header.span) or None, "parent": header.parent or None,
    }  # fmt: skip


def _to_datetime(seconds: float) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if 0 < seconds < _LATE else None


_LATE = 9_000_000_000  # what datetime64[ns] holds ends in 2262
