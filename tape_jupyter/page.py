"""Doors room: a cassette as one page that needs nothing else: no kernel, no network, no server. `tape show NB --html`.

All it shows stands in it as JSON blocks, which the page's script reads (js/src/page/door.ts): rows at once, details
when a span is opened. Text of a recording is data: every `<` in a block is escaped, the script puts text nodes into the
page, and the page's policy lets no other script run than the two that are named by their digests.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from tape_jupyter import takes
from tape_jupyter.cassette import Cassette
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.notebook import tags
from tape_jupyter.notebook.viewer_reads import script
from tape_jupyter.spans import details
from tape_jupyter.spans.cells import notebook_of
from tape_jupyter.spans.pages import LIMIT, Spans
from tape_jupyter.spans.session import Takes

BLOCK = 200
"""Rows whose details stand in one block."""

MOST_DETAILS, MOST_BYTES = 10_000, 48 * 1024 * 1024
"""Spans whose details stand in a page, and the bytes of all of them, at most."""

RAW = 16 * 1024
_MADE = '<meta name="generator" content="tape-jupyter">'
_ABLE = {"modes": False, "override": False, "rerun": False, "step": False, "cells": False}


def write(cassette: Cassette, out: Path | None = None) -> tuple[Path, list[str]]:
    """Write the page of a cassette or take; gives the file, and what is not in it.

    `out` default: `churn.tape.html` beside the notebook. Raises TapeUsageError for a file that is no page of ours:
    nothing that a person made is overwritten.
    """
    out = default(cassette.path) if out is None else out
    if out.suffix.lower() not in (".html", ".htm"):
        raise TapeUsageError(f"--html {out}: the page is written to a file that ends in .html; nothing was written")
    if out.exists() and _MADE.encode() not in out.read_bytes()[:2_000]:
        raise TapeUsageError(f"{out} exists and is no page of tape-jupyter's; nothing was written. Give another name")
    notes: list[str] = []
    parts = list(page(cassette, notes))
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text("".join(parts), encoding="utf-8")
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


def page(cassette: Cassette, notes: list[str]) -> Iterator[str]:
    """The page, in pieces. `notes` is filled with what is left out."""
    code, side = (_inline(script(name), name) for name in ("page", "page-side"))
    spans = Spans(cassette)
    spans.refresh()
    blocks = list(_details(spans, notes))
    root = takes.cassette_of(cassette.path)
    title = f"{notebook_of(cassette.path).stem}: {' / '.join(cassette.chain)}"
    policy = "; ".join((
        "default-src 'none'", f"script-src {_digest(code)} {_digest(side)}", "style-src 'unsafe-inline'",
        "img-src data:", "base-uri 'none'", "form-action 'none'",
    ))  # fmt: skip
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n{_MADE}\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield f"<title>{escape(title)}</title>\n<style>html,body,#tape{{height:100%;margin:0}}</style>\n</head>\n<body>\n"
    yield '<div id="tape"></div>\n<noscript>This page draws a recording with the script it holds.</noscript>\n'
    yield _json("tape-state", {"state": _state(title), "session": _session(spans, root, notes), "notes": notes})
    yield from _rows(spans)
    yield from blocks
    yield f'<script type="text/plain" id="tape-side">{side}</script>\n<script>{code}</script>\n</body>\n</html>\n'


def _inline(text: str, name: str) -> str:
    if "</script" in text.lower() or "<!--" in text:
        raise TapeUsageError(f"static/{name}.js cannot stand in a page: it holds a tag. Build it again: make js")
    return text


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode()}'"


def _json(name: str, value: Any) -> str:
    """A block of data: no script to a browser, and no `<` in it that could end it."""
    told = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{told}</script>\n'


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
    """One block for each page of rows."""
    for number, start in enumerate(range(0, max(1, len(spans.nodes)), LIMIT)):
        rows = spans.page(start, LIMIT, _FOR_EVER)
        yield _json(f"tape-rows-{number}" if number else "tape-rows", rows)


_FOR_EVER = 1e9


def _details(spans: Spans, notes: list[str]) -> Iterator[str]:
    """Details of the first spans, a block for each BLOCK rows; what the page is too small for is said."""
    left = MOST_BYTES
    for start in range(0, min(len(spans.nodes), MOST_DETAILS), BLOCK):
        found = {node.id: _known(spans, node) for node in spans.nodes[start : start + BLOCK]}
        block = _json(f"tape-details-{start // BLOCK}", found)
        left -= len(block)
        if left < 0:
            break
        yield block
    else:
        start = min(len(spans.nodes), MOST_DETAILS)
    if start < len(spans.nodes):
        notes.append(
            f"The page lists all {len(spans.nodes):,} spans, and holds the requests and replies of the first "
            f"{start:,}: the others would make it too large. They are in {spans.book.path.name}"
        )


def _known(spans: Spans, node: Any) -> dict[str, Any]:
    call = details.read_call(node.told.entry if node.told is not None else None)
    raw = {side: details.raw_of(call, side, 0, RAW) for side in ("request", "reply")}
    return {"detail": details.detail(spans, node, tags.of_record, call), "raw": raw}
