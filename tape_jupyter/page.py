"""Doors room: a cassette as one page that needs nothing else: no kernel, no network, no server. `tape show NB --html`.

All it shows stands in it as blocks of data (page_blocks.py): first what is drawn at once, then the script, then the
other rows, then each span in full, unpacked when one is opened: a page of 100,000 spans opens like one of ten. Text of
a recording is data: no block holds a `<`, the script puts text nodes into the page, and the page's policy lets no other
script run than the two that are named by their digests.

A page is written piece by piece; only heads and rows of all spans are held.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from typing import IO, Any

from tape_jupyter import assets, takes
from tape_jupyter.cassette import Cassette
from tape_jupyter.drafts import replacing
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.notebook import tags
from tape_jupyter.notebook.viewer_reads import script
from tape_jupyter.page_blocks import allowed, folded, packed, plain
from tape_jupyter.spans import details
from tape_jupyter.spans.cells import notebook_of
from tape_jupyter.spans.pages import LIMIT, Spans
from tape_jupyter.spans.session import Takes
from tape_jupyter.spans.tree import Node

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

_PIECE = 1024 * 1024
_MADE = '<meta name="generator" content="tape-jupyter">'
_ABLE = {"modes": False, "override": False, "rerun": False, "step": False, "cells": False}


def _nobody(_done: int, _total: int) -> None:
    pass


def write(cassette: Cassette, out: Path | None = None, tell: Tell = _nobody) -> tuple[Path, list[str]]:
    """Write the page of a cassette or take; gives the file, and what is not in it.

    It takes about a millisecond a span; `tell` hears how it gets on. `out` default: `churn.tape.html` beside the
    notebook. Raises TapeUsageError for a file that is no page of ours: nothing that a person made is overwritten.
    """
    out = default(cassette.path) if out is None else out
    if out.suffix.lower() not in (".html", ".htm"):
        raise TapeUsageError(f"--html {out}: the page is written to a file that ends in .html; nothing was written")
    if out.exists() and _MADE.encode() not in out.read_bytes()[:2_000]:
        raise TapeUsageError(f"{out} exists and is no page of tape-jupyter's; nothing was written. Give another name")
    notes: list[str] = []
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with replacing(out) as draft, draft.open("w", encoding="utf-8") as file:
            file.writelines(page(cassette, notes, tell))
    except OSError as error:
        raise TapeUsageError(f"{out} cannot be written: {error.strerror or error}") from error
    return out, notes


def default(cassette: Path) -> Path:
    """`churn.tapes/main.tape.yaml` gives `churn.tape.html`, a take `churn.angry.tape.html`."""
    notebook, root = notebook_of(cassette), takes.cassette_of(cassette)
    names = [notebook.stem if notebook.stem != ".ipynb" else takes.stem(root)]
    names += [takes.stem(root)] if takes.stem(root) not in ("main", *names) else []
    names += [takes.name_of(cassette)] if cassette != root else []
    return notebook.parent / f"{'.'.join(names)}.tape.html"


def page(cassette: Cassette, notes: list[str], tell: Tell = _nobody) -> Iterator[str]:
    """The page, in pieces. `notes` is filled with what is left out, before the first of them."""
    spans = Spans(cassette)
    spans.refresh()
    with tempfile.TemporaryFile("w+", encoding="ascii") as aside:
        aside.writelines(_details(spans, notes, tell))
        yield from _page(cassette, spans, notes, _pieces(aside))


def streamed(cassette: Cassette, notes: list[str], tell: Tell = _nobody) -> Iterator[str]:
    """The page, in pieces that are made while it is being read: its rows are drawn long before the last is there.

    What it is too small for is in `notes` only after the last piece, and not in the page.
    """
    spans = Spans(cassette)
    spans.refresh()
    yield from _page(cassette, spans, [], _details(spans, notes, tell))


def _page(cassette: Cassette, spans: Spans, notes: list[str], rest: Iterator[str]) -> Iterator[str]:
    code, side = (_inline(script(name), name) for name in ("page", "page-side"))
    yield from _head(cassette, code, side)
    root, title = takes.cassette_of(cassette.path), _title(cassette)
    yield plain("tape-state", {"state": _state(title), "session": _session(spans, root, notes), "notes": notes})
    yield plain("tape-rows", spans.page(0, FIRST, _FOR_EVER))
    yield f'<script type="text/plain" id="tape-side">{side}</script>\n<script>{code}</script>\n'
    yield from _rows(spans)
    yield from rest
    yield "</body>\n</html>\n"


def _head(cassette: Cassette, code: str, side: str) -> Iterator[str]:
    policy = "; ".join((
        "default-src 'none'", f"script-src {allowed(code)} {allowed(side)}", "style-src 'unsafe-inline'",
        "img-src data:", "base-uri 'none'", "form-action 'none'",
    ))  # fmt: skip
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n{_MADE}\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield f"<title>{escape(_title(cassette))}</title>\n"
    yield "<style>html,body,#tape{height:100%;margin:0}</style>\n</head>\n<body>\n"
    yield '<div id="tape"></div>\n<noscript>This page draws a recording with the script it holds.</noscript>\n'


def _title(cassette: Cassette) -> str:
    return f"{notebook_of(cassette.path).stem}: {' / '.join(cassette.chain)}"


def _pieces(file: IO[str]) -> Iterator[str]:
    file.seek(0)
    while piece := file.read(_PIECE):
        yield piece


def _inline(text: str, name: str) -> str:
    if "</script" in text.lower() or "<!--" in text:
        raise TapeUsageError(f"static/{name}.js cannot stand in a page: it holds a tag. Build it again: make js")
    return text


def _state(title: str) -> dict[str, Any]:
    return {"door": "page", "able": _ABLE, "title": title, "span": None, "height": 0}


def _session(spans: Spans, root: Path, notes: list[str]) -> dict[str, Any]:
    """protocol.ts' `Session`, of a page: nothing runs, and this one cassette or take is all there is."""
    path = spans.book.path
    return {
        "mode": "off", "cassettes": [takes.stem(root)], "cassette": takes.stem(root),
        "take": takes.name_of(path) if path != root else "", "takes": Takes().of(root), "default_take": "",
        "totals": spans.totals(), "running": None, "notes": [*spans.book.notes, *notes],
    }  # fmt: skip


def _rows(spans: Spans) -> Iterator[str]:
    """The rows after the first ones, a block for each page of them."""
    for number, start in enumerate(range(FIRST, len(spans.nodes), LIMIT), 1):
        yield packed(f"tape-rows-{number}", spans.page(start, LIMIT, _FOR_EVER))


_FOR_EVER = 1e9


def _details(spans: Spans, notes: list[str], tell: Tell) -> Iterator[str]:
    """Details, a block for each BLOCK rows, as long as there is room; what the page is too small for is said."""
    left, total, start, budget = MOST_BYTES, len(spans.nodes), 0, assets.Budget()
    while start < total:
        nodes = spans.nodes[start : start + BLOCK]
        block = packed(f"tape-details-{start // BLOCK}", folded(_known(spans, node, budget) for node in nodes))
        left -= len(block)
        if left < 0:
            notes.append(
                f"The page lists all {total:,} spans, and holds the requests and replies of the first {start:,}: the "
                f"others would make it too large. They are in {spans.book.path.name}"
            )
            return
        yield block
        start += len(nodes)
        tell(start, total)


def _known(spans: Spans, node: Node, budget: assets.Budget) -> dict[str, Any]:
    call = details.read_call(node.told.entry if node.told is not None else None, budget)
    raw = {side: details.raw_of(call, side, 0, RAW) for side in ("request", "reply")}
    detail = details.detail(spans, node, tags.of_record, call)
    return {"detail": {**detail, "path": _below(spans, detail.get("path"))}, "raw": raw}


def _below(spans: Spans, path: Any) -> str:
    """A cassette's path from its notebook's folder on: a page tells nothing of where it was made."""
    folder = takes.cassette_of(spans.book.path).absolute().parent.parent
    try:
        return Path(str(path)).absolute().relative_to(folder).as_posix()
    except ValueError:
        return Path(str(path)).name
