"""Doors room: the blocks of data of a page: what is drawn first as JSON, all else packed (js/src/page/blocks.ts).

A packed block is JSON, deflated (zlib), in base64. What a call was asked mostly repeats what the one before it was
asked: texts are told as how much they share with those of the span of the same kind before them, in the same block.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

TEXTS = (("detail", "request"), ("detail", "reply"), ("raw", "request"), ("raw", "reply"))
"""The long texts of a span, in the order in which they are told."""

_WORTH = 32  # characters that must be shared before it is told


def allowed(text: str) -> str:
    """A script or style as a page's policy names it, so that no other is taken."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode()}'"


def plain(name: str, value: Any) -> str:
    """A block that is parsed as it is: no script to a browser, and no `<` in it that could end it."""
    return f'<script type="application/json" id="{name}">{_json(value)}</script>\n'


def packed(name: str, value: Any) -> str:
    """A block that is unpacked when it is asked for."""
    data = base64.b64encode(zlib.compress(_json(value).encode("ascii"))).decode("ascii")
    return f'<script type="text/plain" id="{name}">{data}</script>\n'


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def folded(known: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Spans in full (`{"detail", "raw"}`), each without what it shares with the one of its kind before it."""
    before: dict[str, tuple[list[Any], list[str]]] = {}
    out = []
    for span in known:
        detail = span["detail"]
        kind, turns, texts = detail["kind"], detail["turns"], [span[part][side]["text"] for part, side in TEXTS]
        old_turns, old_texts = before.get(kind, ([], [""] * len(TEXTS)))
        before[kind] = turns, texts
        same = next((at for at, (a, b) in enumerate(zip(old_turns, turns, strict=False)) if a != b), None)
        same = min(len(old_turns), len(turns)) if same is None else same
        without = {name: value for name, value in detail.items() if name != "turns"}
        whole = {"detail": without, "raw": dict(span["raw"])}
        for part, side in TEXTS:
            whole[part][side] = {name: value for name, value in whole[part][side].items() if name != "text"}
        told = [shared(old, text) for old, text in zip(old_texts, texts, strict=True)]
        out.append({**whole, "turns": [same, turns[same:]], "texts": told})
    return out


def shared(old: str, text: str) -> tuple[int, int, str]:
    """How much of its beginning and of its end a text shares with another, in UTF-16 units, and what lies between."""
    begin = _begin(old, text)
    end = _end(old[begin:], text[begin:]) if begin < min(len(old), len(text)) else 0
    if begin + end < _WORTH:
        return 0, 0, text
    return _units(text[:begin]), _units(text[len(text) - end :]), text[begin : len(text) - end]


def _begin(old: str, text: str) -> int:
    low, high = 0, min(len(old), len(text))
    while low < high:
        middle = (low + high + 1) // 2
        if old.startswith(text[low:middle], low):
            low = middle
        else:
            high = middle - 1
    return low


def _end(old: str, text: str) -> int:
    low, high = 0, min(len(old), len(text))
    while low < high:
        middle = (low + high + 1) // 2
        if old.endswith(text[len(text) - middle : len(text) - low], 0, len(old) - low):
            low = middle
        else:
            high = middle - 1
    return low


def _units(text: str) -> int:
    """Its length to JavaScript."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2
