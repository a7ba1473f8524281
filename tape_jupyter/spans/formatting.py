"""Bodies and values as a person reads them, cut where they are too long. Pure: values in, values
out.

Everything here may come from anywhere: what goes to a view is JSON that every browser reads (no
halves of surrogate pairs, no NaN), as deep and as long as the caps allow.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from tape_jupyter.core.call import Headers, header_value
from tape_jupyter.core.plain_text import format_count, is_text
from tape_jupyter.encoding.http.content_encoding import TooLarge, decode_body

CUT = 200_000
"""Characters of one section; the raw tab shows the rest."""

RAW_PAGE = 65_536
"""Bytes of one page of raw bytes, at most."""

_DEEP, _WIDE, _LONG = 24, 1_000, 50_000
_LONE = re.compile("[\ud800-\udfff]")
_HEX_ROW = 16


def sendable_text(value: Any, size: int = CUT) -> str:
    """A text as it may be sent: lone halves of surrogate pairs replaced, cut at `size`."""
    return _LONE.sub("\ufffd", str(value)[:size])


def section_of(value: str, *, is_json: bool = False, complete: bool = True) -> dict[str, Any]:
    """protocol.ts' `Section`."""
    return {
        "text": sendable_text(value),
        "json": is_json and len(value) <= CUT,
        "whole": complete and len(value) <= CUT,
    }


def value_section(value: Any) -> dict[str, Any]:
    """A frozen value as indented JSON."""
    return section_of(indented(value), is_json=True)


def body_section(data: bytes, headers: Headers) -> dict[str, Any]:
    """A body: JSON indented, other text as it is; bytes, and what expands past the cap, are named
    with their size.
    """
    plain = decode_for_display(data, headers)
    if isinstance(plain, str):
        return section_of(plain, complete=False)
    if not plain:
        return section_of("")
    kind = header_value(headers, "content-type")
    if len(plain) <= 8 * CUT and plain.lstrip()[:1] in (b"{", b"["):
        try:
            return section_of(indented(json.loads(plain)), is_json=True)
        except (ValueError, RecursionError):
            pass
    try:
        return section_of(
            plain[: 4 * CUT].decode("utf-8", "strict" if len(plain) <= 4 * CUT else "ignore")
        )
    except UnicodeDecodeError:
        return section_of(
            f"({format_count(len(plain), 'byte')}{f' of {kind}' if kind else ''}: no text; see the raw bytes)"
        )


def decode_for_display(data: bytes, headers: Headers) -> bytes | str:
    """The body with its content-encoding off; a sentence where it stays closed."""
    coding = header_value(headers, "content-encoding")
    try:
        return decode_body(data, coding) if coding and data else data
    except TooLarge:
        return f"({len(data):,} bytes of {coding}: too large to open)"
    except ValueError as error:
        return f"({len(data):,} bytes of {coding} that cannot be opened: {error})"


def indented(value: Any) -> str:
    """Indented JSON; Python's own words for what is none."""
    try:
        return json.dumps(value, indent=2, ensure_ascii=False, default=repr)
    except (ValueError, TypeError, RecursionError):
        return json.dumps(safe_json(value), indent=2, ensure_ascii=False)


def safe_json(value: Any, deep: int = 0) -> Any:
    """A value as JSON that every browser reads, cut where it is too deep, wide or long."""
    if isinstance(value, Mapping) and deep < _DEEP:
        return {
            sendable_text(key, 1_000): safe_json(each, deep + 1)
            for key, each in list(value.items())[:_WIDE]
        }
    if isinstance(value, list | tuple) and deep < _DEEP:
        return [safe_json(each, deep + 1) for each in value[:_WIDE]]
    return _to_safe_scalar(value)


def _to_safe_scalar(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        exact = math.isfinite(value) if isinstance(value, float) else abs(value) < 2**53
        return value if exact else str(value)[:400]
    if isinstance(value, Mapping | list | tuple):
        return "…"
    if isinstance(value, str):
        return sendable_text(value, _LONG)
    return sendable_text(repr(value), 1_000)


def raw_page(data: bytes, start: int, size: int) -> dict[str, Any]:
    """A page of bytes, as text where all of them are UTF-8, else as a hex dump: protocol.ts' `Raw`.

    A character belongs to the page that its first byte lies in, so pages join without a seam.
    """
    size = max(0, min(size, RAW_PAGE))
    start = max(0, min(start, len(data)))
    if not is_text(data):
        return {
            "text": hex_dump(data[start : start + size], start),
            "hex": True,
            "from": start,
            "total": len(data),
        }
    piece = data[_find_edge(data, start) : _find_edge(data, min(len(data), start + size))]
    return {
        "text": sendable_text(piece.decode("utf-8")),
        "hex": False,
        "from": start,
        "total": len(data),
    }


def _find_edge(data: bytes, at: int) -> int:
    """The next place at or after `at` where a character begins."""
    while at < len(data) and data[at] & 0xC0 == 0x80:
        at += 1
    return at


def hex_dump(data: bytes, start: int) -> str:
    """Lines of offset, sixteen bytes, and what of them is ASCII."""
    lines = []
    for at in range(0, len(data), _HEX_ROW):
        row = data[at : at + _HEX_ROW]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        lines.append(f"{start + at:08x}  {row.hex(' '):<47}  {text}")
    return "\n".join(lines)


def name_text_pairs(
    values: Mapping[str, Any], size: int = 300, deep: int = 2, before: str = ""
) -> list[list[str]]:
    """A map as name and text; maps in it by dotted names."""
    pairs: list[list[str]] = []
    for key, value in list(values.items())[:_WIDE]:
        name = f"{before}{sendable_text(key, 100)}"
        if isinstance(value, Mapping) and value and deep:
            pairs += name_text_pairs(value, size, deep - 1, f"{name}.")
        elif isinstance(value, list | tuple):
            pairs.append(
                [
                    name,
                    sendable_text(
                        ", ".join(sendable_text(each, size) for each in value[:_WIDE]), 20 * size
                    ),
                ]
            )
        else:
            pairs.append(
                [name, sendable_text(value if isinstance(value, str) else indented(value), size)]
            )
    return pairs
