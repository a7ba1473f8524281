"""Engine room: how a forked process tells the one it was forked from what it did. Judges nothing.

A page of memory that both share: it takes no descriptor, so a child that closes all of its own before `exec` (as
pseudo-terminals do) can still write, and nothing leaks. A note that finds no room is lost; the child has been refused
all the same.
"""

from __future__ import annotations

import json
import mmap
import os
from typing import Any

_SLOTS = 128
_SIZE = 2048  # bytes of a slot: its state, its length, then JSON
_FREE, _READY, _TAKEN = 0, 1, 2
_TEXT = 1200  # characters of a note
_SHORT = 150  # of one whose characters take up to 12 bytes each


class Board:
    """Notes of the children of the process that made it. One child writes one slot at a time."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._page = mmap.mmap(-1, _SLOTS * _SIZE)

    def post(self, kind: str, text: str, cell: int, *, refused: bool) -> None:
        """Leave a note. `cell` is the `id` of the cell it came from (0: unknown), the same on both sides of a fork."""
        note = {"kind": kind, "text": text[:_TEXT], "cell": cell, "refused": refused}
        data = json.dumps(note, ensure_ascii=False).encode("utf-8", "replace")
        if len(data) > _SIZE - 3:
            data = json.dumps({**note, "text": text[:_SHORT]}).encode()
        for number in range(_SLOTS):
            at = (os.getpid() + number) % _SLOTS * _SIZE
            if self._page[at] == _FREE:
                self._page[at] = _TAKEN
                self._page[at + 1 : at + 3 + len(data)] = len(data).to_bytes(2, "little") + data
                self._page[at] = _READY
                return

    def take(self) -> list[dict[str, Any]]:
        """The notes left since asked; their slots are free again."""
        notes = []
        for at in range(0, _SLOTS * _SIZE, _SIZE):
            if self._page[at] == _READY:
                length = int.from_bytes(self._page[at + 1 : at + 3], "little")
                notes.append(json.loads(self._page[at + 3 : at + 3 + length]))
                self._page[at] = _FREE
        return notes


_board: list[Board] = []


def open_board() -> None:
    """Give this process a board of its own; it has one only."""
    if not _board or in_child():
        _board[:] = [Board()]


def in_child() -> bool:
    """Whether this process was forked from the one whose board it knows."""
    return bool(_board) and _board[0].pid != os.getpid()


def post(kind: str, text: str, cell: Any = None, *, refused: bool) -> None:
    """Tell the process this one was forked from."""
    if _board:
        _board[0].post(kind, text, 0 if cell is None else id(cell), refused=refused)


def take() -> list[dict[str, Any]]:
    """What children told this process since asked."""
    return _board[0].take() if _board and not in_child() else []
