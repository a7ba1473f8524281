"""What a view may ask to see: session, rows, one span in full, raw bytes, a diff; and its mode."""

from __future__ import annotations

from typing import Any

from tape_jupyter.cassette.index_entries import Entry, Overridden
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.jupyter.viewer.server import Forged, Message, Viewer, answers
from tape_jupyter.reports.static_assets import script
from tape_jupyter.session import labels, saved_output
from tape_jupyter.session.options import SESSION_MODES, parse_line
from tape_jupyter.spans import details
from tape_jupyter.spans.formatting import RAW_PAGE, sendable_text
from tape_jupyter.spans.rows import LIMIT, PATIENCE, Spans
from tape_jupyter.spans.search import search_spans
from tape_jupyter.spans.tree import Node

_FAR = 2**40
_WHOLE = 10 * PATIENCE


@answers("session")
def session(viewer: Viewer, _: Message) -> Message:
    return viewer.session()


@answers("spans")
def handle_spans(viewer: Viewer, message: Message) -> Message:
    """A page of rows."""
    return viewer.page(number(message, "from", 0), number(message, "limit", LIMIT))


@answers("spans of calls")
def spans_of_calls(viewer: Viewer, message: Message) -> Message:
    """A page of the rows of some calls of one cell, named by their places (saved_output.Places)."""
    spans, start = viewer.fresh(), number(message, "from", 0)
    if spans is not None:
        calls = saved_output.calls_at(spans.book, message.get("calls"))
    else:
        calls = []
    if spans is None or not calls:
        raise TapeUsageError("these calls are no longer in the cassette")
    mode = require_text(message, "mode") if "mode" in message else ""
    run_spans = saved_output.spans_of_run(spans.book, calls[0].run, calls, spans.sources, mode)
    return run_spans.page(start, number(message, "limit", LIMIT), _WHOLE)


@answers("detail")
def handle_detail(viewer: Viewer, message: Message) -> Message:
    spans, node = _find_node(viewer, require_text(message, "span"))
    return details.span_detail(spans, node, labels.recorded_tags)


@answers("raw")
def handle_raw(viewer: Viewer, message: Message) -> Message:
    side = require_text(message, "side")
    if side not in ("request", "reply"):
        raise Forged(side)
    entry = _require_entry(*_find_node(viewer, require_text(message, "span")))
    return details.raw_body(
        entry, side, number(message, "from", 0), number(message, "size", RAW_PAGE)
    )


@answers("diff")
def handle_diff(viewer: Viewer, message: Message) -> Message:
    """Two calls as texts; `other` is a span, or "base": the call as it was recorded."""
    right = _require_entry(*_find_node(viewer, require_text(message, "span")))
    other = require_text(message, "other")
    if other == "base":
        if not isinstance(right, Overridden):
            raise TapeUsageError(
                "this reply stands as it was recorded; there is nothing to compare it with"
            )
        return details.diff_calls(right.recorded, right)
    return details.diff_calls(_require_entry(*_find_node(viewer, other)), right)


@answers("candidates")
def handle_candidates(viewer: Viewer, message: Message) -> Message:
    spans, node = _find_node(viewer, require_text(message, "span"))
    return {"spans": details.comparable_calls(spans, node)}


@answers("find")
def handle_find(viewer: Viewer, message: Message) -> Message:
    """Calls whose bodies hold words, a stretch of rows at a time."""
    query, start, spans = require_text(message, "words"), number(message, "from", 0), viewer.spans
    if spans is None:
        return {"spans": [], "next": None, "total": 0}
    return search_spans(spans, query, start)


@answers("source")
def source(viewer: Viewer, message: Message) -> Message:
    """The source of a cell, as it stands in the notebook (or ran in this session)."""
    cell, spans = require_text(message, "cell"), viewer.spans
    cell_source = spans.sources.of_cell(cell) if spans is not None else None
    return {"text": None if cell_source is None else sendable_text(cell_source)}


@answers("select")
def select(viewer: Viewer, message: Message) -> Message:
    """The person looks at this span. A door that has cells shows it; here it is remembered."""
    viewer.selected = require_text(message, "span")
    return {}


@answers("mode")
def mode(viewer: Viewer, message: Message) -> Message:
    """The mode of every following cell, as `%tape MODE` sets it."""
    requested = require_text(message, "mode")
    if requested not in SESSION_MODES:
        raise Forged(requested)
    if viewer.deck.active is not None:
        raise TapeUsageError(
            "a taped cell is running; change the mode when it is done, or interrupt it"
        )
    problem = viewer.cells.set_session(parse_line(requested, SESSION_MODES))
    if problem:
        raise TapeUsageError(problem)
    viewer.cells.mode_typed = False
    return viewer.session()


@answers("open")
def handle_open(viewer: Viewer, message: Message) -> Message:
    """{take, cassette?}: without one, the cassette that is shown."""
    if "cassette" not in message:
        name = viewer.session()["cassette"]
    else:
        name = require_text(message, "cassette")
    return viewer.open(name, require_text(message, "take"))


@answers("editor")
def editor(_: Viewer, __: Message) -> Message:
    return {"script": script("editor")}


@answers("cards")
def cards(_: Viewer, __: Message) -> Message:
    return {"script": script("cards")}


# ---------------------------------------------------------------- fields of a message


def require_text(message: Message, field: str) -> str:
    """A text of a message. Raises Forged for anything else."""
    value = message.get(field)
    if not isinstance(value, str) or len(value) > 1_000:
        raise Forged(field)
    return value


def number(message: Message, field: str, default: int) -> int:
    """A whole number from 0 on. Raises Forged for anything else."""
    value: Any = message.get(field, default)
    if type(value) is not int or not 0 <= value < _FAR:
        raise Forged(field)
    return value


def _find_node(viewer: Viewer, span: str) -> tuple[Spans, Node]:
    spans = viewer.fresh()
    node = details.find_span(spans, span) if spans is not None else None
    if spans is None or node is None:
        raise TapeUsageError(
            f"there is no span {span[:80]} here any more; the cell was recorded again, or pruned"
        )
    return spans, node


def _require_entry(_: Spans, node: Node) -> Entry:
    if node.header is None or node.header.entry is None:
        raise TapeUsageError("this span has no bytes of its own: it is no call, or still runs")
    return node.header.entry
