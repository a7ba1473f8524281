"""A cassette as one page that needs nothing else: no kernel, no network, no server. `tape show NB
--html`.

All it shows stands in it as blocks of data (reports/page.py): first what is drawn at once, then the
script, then the other rows, then each span in full, unpacked when one is opened: a page of 100,000
spans opens like one of ten. Text of a recording is data: no block holds a `<`, the script puts text
nodes into the page, and the page's policy lets no other script run than the two that are named by
their digests.

A page is written piece by piece; only heads and rows of all spans are held.

The blocks of data of a page: what is drawn first as JSON, all else packed (js/src/page/blocks.ts).

A packed block is JSON, deflated (zlib), in base64. What a call was asked mostly repeats what the
one before it was asked: texts are told as how much they share with those of the span of the same
kind before them, in the same block.
"""

from __future__ import annotations

import base64
import hashlib
import json
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import islice
from pathlib import Path
from typing import IO, Any

from tape_jupyter.cassette import paths
from tape_jupyter.cassette.cassette import Cassette, Overridden
from tape_jupyter.cassette.cell_sources import notebook_of
from tape_jupyter.cassette.takes import files
from tape_jupyter.core.atomic_write import replacing
from tape_jupyter.core.parse_limits import ReadBudget
from tape_jupyter.core.stubs import do_nothing
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.reports.static_assets import script
from tape_jupyter.session import labels
from tape_jupyter.spans import details
from tape_jupyter.spans.rows import LIMIT, Spans
from tape_jupyter.spans.session import Takes
from tape_jupyter.spans.tree import Node

TEXTS = (("detail", "request"), ("detail", "reply"), ("raw", "request"), ("raw", "reply"))
"""The long texts of a span, in the order in which they are told."""

_WORTH = 32  # characters that must be shared before it is told


def allowed(text: str) -> str:
    """A script or style as a page's policy names it, so that no other is taken."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode()}'"


def plain_block(name: str, value: Any) -> str:
    """A block that is parsed as it is: no script to a browser, and no `<` in it that could end it."""
    return f'<script type="application/json" id="{name}">{_dump_json(value)}</script>\n'


def packed_block(name: str, value: Any) -> str:
    """A block that is unpacked when it is asked for."""
    data = base64.b64encode(zlib.compress(_dump_json(value).encode("ascii"))).decode("ascii")
    return f'<script type="text/plain" id="{name}">{data}</script>\n'


def _dump_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False).replace(
        "<", "\\u003c"
    )


def fold_spans(known: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Spans in full (`{"detail", "raw"}`), each without what it shares with the one of its kind
    before it.
    """
    before: dict[str, tuple[list[Any], list[str]]] = {}
    out = []
    for span in known:
        detail = span["detail"]
        kind = detail["kind"]
        turns = detail["turns"]
        texts = [span[part][side]["text"] for part, side in TEXTS]
        old_turns, old_texts = before.get(kind, ([], [""] * len(TEXTS)))
        before[kind] = turns, texts
        same = next(
            (at for at, (a, b) in enumerate(zip(old_turns, turns, strict=False)) if a != b), None
        )
        same = min(len(old_turns), len(turns)) if same is None else same
        without = {name: value for name, value in detail.items() if name != "turns"}
        folded = {"detail": without, "raw": dict(span["raw"])}
        for part, side in TEXTS:
            folded[part][side] = {
                name: value for name, value in folded[part][side].items() if name != "text"
            }
        text_changes = [shared(old, text) for old, text in zip(old_texts, texts, strict=True)]
        out.append({**folded, "turns": [same, turns[same:]], "texts": text_changes})
    return out


def shared(old: str, text: str) -> tuple[int, int, str]:
    """How much of its beginning and of its end a text shares with another, in UTF-16 units, and
    what lies between.
    """
    begin = _count_shared_start(old, text)
    if begin < min(len(old), len(text)):
        end = _count_shared_end(old[begin:], text[begin:])
    else:
        end = 0
    if begin + end < _WORTH:
        return 0, 0, text
    return (
        _count_units(text[:begin]),
        _count_units(text[len(text) - end :]),
        text[begin : len(text) - end],
    )


def _count_shared_start(old: str, text: str) -> int:
    low, high = 0, min(len(old), len(text))
    while low < high:
        middle = (low + high + 1) // 2
        if old.startswith(text[low:middle], low):
            low = middle
        else:
            high = middle - 1
    return low


def _count_shared_end(old: str, text: str) -> int:
    low, high = 0, min(len(old), len(text))
    while low < high:
        middle = (low + high + 1) // 2
        if old.endswith(text[len(text) - middle : len(text) - low], 0, len(old) - low):
            low = middle
        else:
            high = middle - 1
    return low


def _count_units(text: str) -> int:
    """Its length to JavaScript."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


Tell = Callable[[int, int], None]
"""Hears how many of how many spans are done."""

FIRST = 1_000
"""Rows that are drawn before the rest of the page is there."""

BLOCK = 200
"""Rows whose details stand in one block."""

MOST_BYTES = 128 * 1024 * 1024
"""Bytes of all details together, as they are packed, at most."""

RAW = 64 * 1024
"""Bytes of each body that the raw tab shows."""

CHANGED = 100
"""Calls of a take that stand in its page as they were recorded, too."""

_PIECE = 1024 * 1024
_MADE = '<meta name="generator" content="tape-jupyter">'
_ABLE = {"modes": False, "override": False, "rerun": False, "step": False, "cells": False}


def write_page(
    cassette: Cassette, out: Path | None = None, on_progress: Tell = do_nothing
) -> tuple[Path, list[str]]:
    """Write the page of a cassette or take; gives the file, and what is not in it.

    It takes about a millisecond a span; `on_progress` hears how it gets on. `out` default:
    `churn.tape.html` beside the notebook. Raises TapeUsageError for a file that is no page of ours:
    nothing that a person made is overwritten.
    """
    out = default_page(cassette.path) if out is None else out
    if out.suffix.lower() not in (".html", ".htm"):
        raise TapeUsageError(
            f"--html {out}: the page is written to a file that ends in .html; nothing was written"
        )
    if out.exists() and _MADE.encode() not in out.read_bytes()[:2_000]:
        raise TapeUsageError(
            f"{out} exists and is not a page of tape-jupyter's; nothing was written. Give another name"
        )
    notes: list[str] = []
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with replacing(out) as draft, draft.open("w", encoding="utf-8") as file:
            file.writelines(page_pieces(cassette, notes, on_progress))
    except OSError as error:
        raise TapeUsageError(f"{out} cannot be written: {error.strerror or error}") from error
    return out, notes


def default_page(cassette: Path) -> Path:
    """`churn.tapes/main.tape.yaml` gives `churn.tape.html`, a take `churn.angry.tape.html`."""
    notebook, root = notebook_of(cassette), files.cassette_of(cassette)
    names = [notebook.stem if notebook.stem != ".ipynb" else paths.stem(root)]
    names += [paths.stem(root)] if paths.stem(root) not in ("main", *names) else []
    names += [files.take_name(cassette)] if cassette != root else []
    return notebook.parent / f"{'.'.join(names)}.tape.html"


def page_pieces(
    cassette: Cassette, notes: list[str], on_progress: Tell = do_nothing
) -> Iterator[str]:
    """The page, in pieces. `notes` is filled with what is left out, before the first of them."""
    spans = Spans(cassette)
    spans.refresh()
    with tempfile.TemporaryFile("w+", encoding="ascii") as aside:
        aside.writelines(_pack_details(spans, notes, on_progress))
        aside.flush()  # closing it, whenever that is, has nothing left that could fail
        yield from _build_page(cassette, spans, notes, _read_pieces(aside))


def stream_page(
    cassette: Cassette, notes: list[str], on_progress: Tell = do_nothing
) -> Iterator[str]:
    """The page, in pieces that are made while it is being read: its rows are drawn long before the
    last is there.

    What it is too small for is in `notes` only after the last piece, and not in the page.
    """
    spans = Spans(cassette)
    spans.refresh()
    yield from _build_page(cassette, spans, [], _pack_details(spans, notes, on_progress))


def _build_page(
    cassette: Cassette, spans: Spans, notes: list[str], rest: Iterator[str]
) -> Iterator[str]:
    code, side = (_require_inlineable(script(name), name) for name in ("page", "page-side"))
    yield from _build_head(cassette, code, side)
    root = files.cassette_of(cassette.path)
    title = _format_title(cassette)
    changed = _find_changed(spans)
    yield plain_block(
        "tape-state",
        {
            "state": _build_state(title, changed),
            "session": _build_session(spans, root, notes),
            "notes": notes,
        },
    )
    yield plain_block("tape-rows", spans.page(0, FIRST, _FOR_EVER))
    yield f'<script type="text/plain" id="tape-side">{side}</script>\n<script>{code}</script>\n'
    yield from _pack_rows(spans)
    yield packed_block("tape-base", {node.id: _diff_from_base(node) for node in changed})
    yield from rest
    yield "</body>\n</html>\n"


def _build_head(cassette: Cassette, code: str, side: str) -> Iterator[str]:
    policy = "; ".join((
        "default-src 'none'", f"script-src {allowed(code)} {allowed(side)}", "style-src 'unsafe-inline'",
        "img-src data:", "base-uri 'none'", "form-action 'none'",
    ))  # fmt: skip
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n{_MADE}\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield f"<title>{escape(_format_title(cassette))}</title>\n"
    yield "<style>:root{color-scheme:light dark}html,body,#tape{height:100%;margin:0}</style>\n</head>\n<body>\n"
    yield '<div id="tape"></div>\n<noscript>This page draws a recording with the script it holds.</noscript>\n'


def _format_title(cassette: Cassette) -> str:
    name, chain = notebook_of(cassette.path).stem, " / ".join(cassette.chain)
    return chain if name == ".ipynb" else f"{name}: {chain}"


def _read_pieces(file: IO[str]) -> Iterator[str]:
    file.seek(0)
    while piece := file.read(_PIECE):
        yield piece


def _require_inlineable(text: str, name: str) -> str:
    if "</script" in text.lower() or "<!--" in text:
        raise TapeUsageError(
            f"static/{name}.js cannot stand in a page: it holds a tag. Build it again: make ui"
        )
    return text


def _build_state(title: str, changed: Sequence[Node]) -> dict[str, Any]:
    """A take's page is opened where it is another than the recording."""
    span = changed[0].id if changed else None
    able = {**_ABLE, "recorded": bool(changed)}
    return {"door": "page", "able": able, "title": title, "span": span, "height": 0}


def _find_changed(spans: Spans) -> list[Node]:
    """The first calls of a take that stand otherwise in its recording."""
    changed = (
        node for node in spans.nodes if node.header and isinstance(node.header.entry, Overridden)
    )
    return list(islice(changed, CHANGED))


def _diff_from_base(node: Node) -> dict[str, str]:
    assert node.header is not None
    assert isinstance(node.header.entry, Overridden)
    return details.diff_calls(node.header.entry.recorded, node.header.entry)


def _build_session(spans: Spans, root: Path, notes: list[str]) -> dict[str, Any]:
    """protocol.ts' `Session`, of a page: nothing runs, and this one cassette or take is all there
    is.
    """
    path = spans.book.path
    return {
        "mode": "off", "cassettes": [paths.stem(root)], "cassette": paths.stem(root),
        "take": files.take_name(path) if path != root else "", "takes": Takes().list_takes(root), "default_take": "",
        "totals": spans.totals(), "running": None, "notes": [*spans.book.notes, *notes],
    }  # fmt: skip


def _pack_rows(spans: Spans) -> Iterator[str]:
    """The rows after the first ones, a block for each page of them."""
    for number, start in enumerate(range(FIRST, len(spans.nodes), LIMIT), 1):
        yield packed_block(f"tape-rows-{number}", spans.page(start, LIMIT, _FOR_EVER))


_FOR_EVER = 1e9


def _pack_details(spans: Spans, notes: list[str], on_progress: Tell) -> Iterator[str]:
    """Details, a block for each BLOCK rows, as long as there is room; what the page is too small
    for is said.
    """
    left, total, start, budget = MOST_BYTES, len(spans.nodes), 0, ReadBudget()
    while start < total:
        nodes = spans.nodes[start : start + BLOCK]
        block = packed_block(
            f"tape-details-{start // BLOCK}",
            fold_spans(_build_span(spans, node, budget) for node in nodes),
        )
        left -= len(block)
        if left < 0:
            notes.append(
                f"The page lists all {total:,} spans, and holds the requests and replies of the first {start:,}: the "
                f"others would make it too large. They are in {spans.book.path.name}"
            )
            return
        yield block
        start += len(nodes)
        on_progress(start, total)


def _build_span(spans: Spans, node: Node, budget: ReadBudget) -> dict[str, Any]:
    call = details.read_call(node.header.entry if node.header is not None else None, budget)
    raw = {side: details.raw_of(call, side, 0, RAW) for side in ("request", "reply")}
    detail = details.span_detail(spans, node, labels.recorded_tags, call)
    return {"detail": {**detail, "path": _to_relative(spans, detail.get("path"))}, "raw": raw}


def _to_relative(spans: Spans, path: Any) -> str:
    """A cassette's path from its notebook's folder on: a page tells nothing of where it was made."""
    folder = files.cassette_of(spans.book.path).absolute().parent.parent
    try:
        return Path(str(path)).absolute().relative_to(folder).as_posix()
    except ValueError:
        return Path(str(path)).name
