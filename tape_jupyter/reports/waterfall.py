"""When what happened in a cell, in block characters: a bar a call, beside its name. Plain text.

    ▕███░░░░▏"negative"  ▕░░░█████▏lookup_order

JupyterLab's sanitiser drops drawings in a notebook that is not trusted, and a diff shows text only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

WIDTH = 8
"""Characters of a bar."""

MOST = 8
"""Bars, at most: the longest calls are shown."""

_NAME = 24
_LINE = 110


class Bar(NamedTuple):
    """A call: its name, its start and end in seconds of whatever clock."""

    name: str
    start: float
    end: float


def waterfall_lines(bars: Sequence[Bar], calls: int = 0) -> list[str]:
    """The bars of a cell in the order in which its calls began, some to a line; [] for a single
    call. `calls`: how many it made, where the bars are not those of all.
    """
    if len(bars) < 2:
        return []
    begin, end = min(bar.start for bar in bars), max(bar.end for bar in bars)
    longest = sorted(bars, key=lambda bar: bar.end - bar.start, reverse=True)[:MOST]
    shown_bars = [bar for bar in bars if bar in longest][:MOST]
    pieces = [_draw_bar(bar, begin, end) for bar in shown_bars]
    if (more := max(calls, len(bars)) - len(shown_bars)) > 0:
        pieces.append(f"and {more:,} more")
    return _fill_lines(pieces)


def _draw_bar(bar: Bar, begin: float, end: float) -> str:
    scale = WIDTH / (end - begin) if end > begin else 0.0
    first = min(WIDTH - 1, int((bar.start - begin) * scale))
    last = max(first + 1, min(WIDTH, round((bar.end - begin) * scale)))
    name = bar.name if len(bar.name) <= _NAME else f"{bar.name[: _NAME - 1]}…"
    return f"▕{'░' * first}{'█' * (last - first)}{'░' * (WIDTH - last)}▏{name}"


def _fill_lines(pieces: Sequence[str]) -> list[str]:
    """As many to a line as fit."""
    lines = [pieces[0]]
    for piece in pieces[1:]:
        if len(lines[-1]) + 2 + len(piece) <= _LINE:
            lines[-1] += f"  {piece}"
        else:
            lines.append(piece)
    return lines
