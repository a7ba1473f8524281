"""How our errors look below a cell: a person's own lines and our words, no frames of SDKs or of
ours.

IPython asks an exception that has `_render_traceback_` for its lines. The traceback itself stays
whole.
"""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from tape_jupyter.errors import TapeRefusal

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_LIBRARIES = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
_NOT_THEIRS = (
    *(f"{folder}{os.sep}" for folder in (Path(__file__).parents[1], *_LIBRARIES)),
    "<frozen ",
)


def short_traceback(error: BaseException) -> list[str]:
    """An error as IPython shows a traceback, but only what a person needs: its name and its
    message.
    """
    return [f"{type(error).__name__}: {error}"]


def own_lines(error: BaseException) -> TracebackType | None:
    """The error's traceback with only the frames of cells and of a person's own modules, outermost
    first.
    """
    frames = []
    tb = error.__traceback__
    while tb is not None:
        if not tb.tb_frame.f_code.co_filename.startswith(_NOT_THEIRS):
            frames.append(tb)
        tb = tb.tb_next
    kept: TracebackType | None = None
    for tb in reversed(frames):
        kept = TracebackType(kept, tb.tb_frame, tb.tb_lasti, tb.tb_lineno)
    return kept


def show_refusals_briefly(shell: InteractiveShell) -> Callable[[], None]:
    """A refusal raised in a cell shows that cell's lines and the report; gives what undoes it.

    Thirty frames of SDK and HTTP library would otherwise stand between the cell's line and what to
    do about it.
    """

    def render_refusal(error: TapeRefusal) -> list[str]:
        kept = own_lines(error)
        if kept is None:
            return short_traceback(error)
        lines: list[str] = shell.InteractiveTB.structured_traceback(
            type(error), error, kept, tb_offset=0
        )
        return lines

    def undo_rendering() -> None:
        if getattr(TapeRefusal, "_render_traceback_", None) is render_refusal:
            delattr(TapeRefusal, "_render_traceback_")

    TapeRefusal._render_traceback_ = render_refusal  # type: ignore[attr-defined]  # IPython's protocol
    return undo_rendering
