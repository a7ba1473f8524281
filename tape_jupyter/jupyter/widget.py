"""`%tape view`: the view as an anywidget, driven by a Viewer.

The widget's module travels with every widget that is shown, so it holds the view and nothing else:
what is needed for editing is sent when it is asked for. A front end does not save a widget, so the
output has its summary as text too.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from tape_jupyter.core.plain_text import format_count
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.jupyter import labextension
from tape_jupyter.jupyter.viewer.server import Viewer
from tape_jupyter.reports.static_assets import script

if TYPE_CHECKING:
    from anywidget import AnyWidget

    from tape_jupyter.jupyter.cell_runner import CellRunner

HEIGHT = 460
"""Pixels, as a cell's output."""

ABLE = {"modes": True, "override": True, "rerun": True, "step": True, "cells": False}
OPEN_AT_ONCE = 6
"""Views of one kernel; older ones are closed: a widget is never told that its output is gone."""

_open: list[Any] = []


def view(cells: CellRunner, name: str = "", take: str = "") -> AnyWidget:
    """A widget that shows a cassette of the notebook (default: the one that was used last), and
    follows what runs.

    Raises TapeUsageError where the view's script is not in this installation, or anywidget is not.
    """
    source = script("widget")
    widget = _load_widget_class()(cells, source)
    if name:
        widget.viewer.open(name, take)
    _open.append(widget)
    while len(_open) > OPEN_AT_ONCE:
        _open.pop(0).close()
    return widget  # type: ignore[no-any-return]  # made below


def _load_widget_class() -> Any:
    """The class, made when it is first needed: importing ipywidgets takes a while."""
    if not _made:
        try:
            import anywidget
            import traitlets
        except ImportError as error:
            raise TapeUsageError("%tape view needs anywidget: pip install anywidget") from error

        class TapeView(anywidget.AnyWidget):
            """A view. Names to keep clear of: `log` is traitlets', and a trait `open` stops a
            widget from showing.
            """

            _esm = "export default {}"
            door = traitlets.Unicode("widget").tag(sync=True)
            able = traitlets.Dict(ABLE).tag(sync=True)
            title = traitlets.Unicode("").tag(sync=True)
            span = traitlets.Unicode(None, allow_none=True).tag(sync=True)
            height = traitlets.Int(HEIGHT).tag(sync=True)
            beside = traitlets.Unicode("").tag(sync=True)

            def __init__(self, cells: CellRunner, source: str) -> None:
                title = notebook.name if (notebook := cells.notebook_or_none()) else "tape"
                super().__init__(_esm=source, title=title)
                _answer_beside_a_cell(self.comm)
                if labextension.beside_too(cells.shell, self.comm.comm_id):
                    self.beside = self.comm.comm_id
                self.viewer = Viewer(cells, self.send)
                self.viewer.is_widget = True
                self.on_msg(self._receive_message)

            def _receive_message(self, _widget: Any, content: Any, _buffers: Any) -> None:
                self.viewer.receive(content)

            def close(self) -> None:
                self.viewer.close()
                super().close()

            def _repr_mimebundle_(self, **kwargs: Any) -> Any:
                mimebundle = super()._repr_mimebundle_(**kwargs)
                if isinstance(mimebundle, tuple):
                    data, more = mimebundle
                else:
                    data, more = mimebundle or {}, {}
                text = summary(self.viewer)
                html = f'<pre style="margin:0">{escape(text)}</pre>'
                return {**data, "text/plain": text, "text/html": html}, more

        _made.append(TapeView)
    return _made[0]


_made: list[Any] = []


def _answer_beside_a_cell(comm: Any) -> None:
    """Where the front end asks on a thread beside the main one, let it be answered there, also
    while a cell runs.

    ipykernel 7.4 hands a comm's messages to the thread that last sent on it: the main one, which a
    cell may block.
    """
    if hasattr(comm, "_reply_subshell_for"):
        comm._reply_subshell_for = _return_default  # noqa: SLF001  # there is no public way


def _return_default(_data: Any, default: Any) -> Any:
    return default


def summary(viewer: Viewer) -> str:
    """What a saved notebook shows in the widget's place: which tape, how much is on it, and how to
    see it again.
    """
    session = viewer.session()
    totals = session["totals"]
    take = f", take {session['take']}" if session["take"] else ""
    calls = format_count(totals["calls"], "call")
    failed = f", {totals['errors']:,} failed" if totals["errors"] else ""
    name = session["cassette"] or "no cassette yet"
    return f"tape view of {name}{take}: {calls}{failed}. Run the cell again to open it."
