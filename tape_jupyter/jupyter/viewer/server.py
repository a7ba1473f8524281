"""The Python side of one view that is open: answers what it asks, tells it what is new.

A message is `{"type": "ask", "id", "about", ...}` and is answered by `{"type": "answer", "id",
"answer"}` or `{"type": "answer", "id", "error"}` (js/src/view/protocol.ts). Answers are functions,
registered by what they are about (`@answers("detail")`): reading ones in jupyter/viewer/read.py,
those that change a reply or run cells in modules of their own. What is no such message is dropped
and counted: it comes from a page, and may be forged. Messages come on any thread.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tape_jupyter.cassette import paths
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.cell_sources import Sources, notebook_of, source_hash
from tape_jupyter.cassette.index_entries import Entry
from tape_jupyter.cassette.takes import files
from tape_jupyter.core.disk_errors import describe_disk_error
from tape_jupyter.errors import NotebookUnknown, TapeError
from tape_jupyter.jupyter.viewer import live
from tape_jupyter.spans.rows import LIMIT, Spans, columns
from tape_jupyter.spans.session import NOTHING, Takes

if TYPE_CHECKING:
    from tape_jupyter.jupyter.cell_runner import CellRunner

Message = dict[str, Any]
Send = Callable[[Message], None]
Answer = Callable[["Viewer", Message], Any]

ANSWERS: dict[str, Answer] = {}
_MODULES = (
    "viewer.read",
    "viewer.edit",
    "viewer.rerun",
    "viewer.step",
    "export",
    "import_trace",
    "why",
)
_revisions, _openings = itertools.count(1), itertools.count(1)
PUSHED = 1_000
"""Rows that are pushed at once; where more changed, the view asks for them."""


class Forged(Exception):  # what it is: a message that no view of ours sends
    """A message with fields of the wrong type, or ids that there are not. It is dropped, and
    counted.
    """


def answers(about: str) -> Callable[[Answer], Answer]:
    """Register what answers `ask ABOUT`: a function of the viewer and the message, giving JSON.

    It raises TapeError for what a person can mend (the view shows it), Forged for a message that is
    dropped.
    """

    def register_answer(function: Answer) -> Answer:
        ANSWERS[about] = function
        return function

    return register_answer


def _load_answers() -> Mapping[str, Answer]:
    """The table, its modules imported when first needed."""
    for name in _MODULES:
        module = f"tape_jupyter.jupyter.{name}"
        if find_spec(module) is not None:
            import_module(module)
    return ANSWERS


class Viewer:
    """One open view: which cassette and take it shows, and what it was told. Safe to use from
    several threads.

    It follows the cell that runs until a person opens something else. `cells` are the hooks of its
    shell.
    """

    def __init__(self, cells: CellRunner, send: Send) -> None:
        self.cells, self.deck = cells, cells.deck
        self.dropped = 0
        self.selected = ""
        self.opened_at = 0  # which opening by a person was the last one here; 0: it follows
        self.is_widget = False
        self._send = send
        self._closed = False
        self._lock = threading.RLock()
        self._path: Path | None = None
        self._follows = True
        self._spans: Spans | None = None
        self._takes = Takes()
        self._was_read = False
        self._had = 0  # rows that the view has, from the first on
        self._last: Message = {}
        self._knows: Spans | None = None
        self._known = 0  # inputs of this session whose sources it knows
        self._numbered = 0  # executions whose numbers it knows
        live.updates_of(self.deck).add(self)

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """The view is gone; nothing is told any more."""
        self._closed = True
        live.updates_of(self.deck).remove(self)

    # ------------------------------------------------------------ messages

    def receive(self, message: Any, send: Send | None = None) -> None:
        """Answer a message, through `send` where it is given. Never raises for what a message
        holds.
        """
        send = send or self._send
        try:
            about = text_field(message, "about", longest=_LONG)
            name = text_field(message, "id", longest=_LONG)
        except Forged:
            self.dropped += 1
            return
        try:
            answer = _load_answers().get(about)
            if answer is None or message.get("type") != "ask":
                raise Forged(about)  # noqa: TRY301 - one way to drop a message
            answered = {"answer": answer(self, message)}
        except Forged:
            self.dropped += 1
            return
        except TapeError as error:
            answered = {"error": str(error)}
        except Exception as error:
            report = (
                f"this could not be answered ({type(error).__name__}: {error}); please report it"
            )
            answered = {"error": describe_disk_error(error) or report}
        send({"type": "answer", "id": name, **answered})

    def send_update(self, about: str, **body: Any) -> None:
        """Tell the view something of one's own accord; from any thread."""
        if not self._closed:
            self._send({"type": "tell", "about": about, **body})

    def changed(self) -> None:
        """Have all views look again."""
        self.deck.changed()

    # ------------------------------------------------------------ what is shown

    @property
    def path(self) -> Path | None:
        """The cassette or take that is shown; None where the notebook is not known."""
        with self._lock:
            chosen = self._choose_path()
            if chosen != self._path:
                self._path, self._spans, self._had = chosen, None, 0
            return self._path

    def _choose_path(self) -> Path | None:
        if not self._follows:
            return self._path
        active = self.deck.active
        # a take may not be there before something is changed
        if active is not None and active.path is not None:
            return active.cassette.played_path if active.cassette is not None else active.path
        if self._path is not None:
            return self._path
        used = next(
            (report.path for report in reversed(self.cells.reports) if report.path is not None),
            None,
        )
        if used is not None:
            return used
        try:
            return self.cells.cassette_path()
        except NotebookUnknown:
            return None

    @property
    def spans(self) -> Spans | None:
        """The spans as they are now; None where there is no file yet. Raises CassetteError."""
        with self._lock:
            path = self.path
            if path is None or not path.exists():
                self._spans = None
                return None
            if self._spans is None:
                self._spans = Spans(Cassette.open(path, check="marks"), Sources(notebook_of(path)))
                self._spans.revision = next(_revisions)
            return self._spans

    @property
    def book(self) -> Cassette | None:
        """The cassette or take that is shown, as it is now. Raises CassetteError."""
        spans = self.fresh()
        book = spans.book if spans is not None else None
        return book if isinstance(book, Cassette) else None

    def fresh(self) -> Spans | None:
        """The spans, the file looked at anew; the view is told by the next look."""
        with self._lock:
            spans = self.spans
            if spans is not None:
                self._refresh_spans(spans)
            return spans

    def _refresh_spans(self, spans: Spans) -> None:
        spans.book.refresh()
        self._update_sources(spans)
        first = spans.refresh(live.pending(self.deck.active, self._path))
        if first < self._had:
            self._had = first
            self.deck.changed()

    def _update_sources(self, spans: Spans) -> None:
        """Cells of this session, which the notebook's file may not hold yet, and their numbers."""
        history = self.cells.shell.history_manager
        inputs = history.input_hist_raw if history is not None else []
        executions = list(self.cells.history or ())
        fresh = spans is not self._knows
        for raw in inputs[-_SOURCES:] if fresh else inputs[self._known :]:
            source = self.cells.taker.split(raw)[1]
            spans.sources.known[source_hash(source)] = source
        for entry in executions:  # of a re-run, those that it made are taken off again
            if entry.cell and entry.number is not None:
                spans.sources.numbers[entry.cell] = entry.number
        for entry in executions if fresh else executions[self._numbered :]:
            if not entry.cell and entry.number is not None:
                cell = source_hash(self.cells.taker.split(entry.source)[1])[:12]
                spans.sources.numbers[cell] = entry.number
        self._knows, self._known, self._numbered = spans, len(inputs), len(executions)

    def entry(self, span: Any) -> Entry:
        """The recorded call of a span's id. Raises Forged where there is none."""
        book = self.book
        run, _, call = span.rpartition("/") if isinstance(span, str) else ("", "", "")
        found = book.call(run, call) if book is not None and run else None
        if found is None:
            raise Forged(span)
        return found

    def find_opened(self) -> Viewer:
        """The view in which a person opened something last, where it still shows that; else this one."""
        views = (each for each in live.updates_of(self.deck).views if isinstance(each, Viewer))
        newest = max(views, key=lambda each: each.opened_at, default=self)
        return newest if newest.opened_at else self

    def open(self, cassette: str, take: str) -> Message:
        """Show another cassette or take ("" the recording) of this notebook; gives the session.
        Raises TapeError.
        """
        cells = self.cells
        root = files.cassette_of(self._path) if self._path is not None else None
        if root is None or paths.stem(root) != cassette:
            root = cells.cassette_path(cassette)
        path = files.require_take(root, take) if take else root
        with self._lock:
            active = self.deck.active
            self._follows = active is not None and active.path == path
            self.opened_at = 0 if self._follows else next(_openings)
            if path != self._path:
                self._path, self._spans, self._had = path, None, 0
        self.changed()
        return self.session()

    def session(self) -> Message:
        """protocol.ts' `Session`. A cassette that cannot be read is a note."""
        notes: list[str] = []
        totals = NOTHING
        try:
            spans = self.fresh()
            if spans is not None:
                totals, notes = spans.totals(), list(spans.book.notes)
        except (TapeError, OSError) as error:
            notes = [str(error)]
        path = self.path
        root = files.cassette_of(path) if path is not None else None
        take = ""
        if path is not None and root is not None and path != root:
            take = files.take_name(path)
        # a cell that is said to run is told of when it ends, though it does so before the next look;
        # that none runs is told as well: the bars ask, the sidebar beside them only hears
        with self._lock:
            running = self.running()
            if running is not None:
                self._last = {**self._last, "running": {**running, "seconds": 0}}
        return {
            "mode": self.deck.session_mode,
            "typed": self.cells.mode_typed,
            "cassettes": self.cells.cassette_names(),
            "cassette": paths.stem(root) if root is not None else "",
            "take": take,
            "takes": self._takes.list_takes(root) if root is not None else [],
            "default_take": files.default_take(root) if root is not None else "",
            "totals": totals,
            "running": running,
            "notes": notes,
        }

    def running(self) -> Message | None:
        """protocol.ts' `Running`: the taped cell that runs now."""
        cell = self.deck.active
        if cell is None:
            return None
        name = cell.request.cell_id or source_hash(cell.request.source)[:12]
        going = live.list_going(cell)
        return {
            "cell": name,
            "mode": cell.mode,
            "calls": len(cell.findings.rows) + len(cell.execution.played) + len(going),
            "seconds": round(cell.start.measure_elapsed(), 2),
            "waits": live.describe_waits(going),
        }

    # ------------------------------------------------------------ live

    def page(self, start: int, limit: int) -> Message:
        """A page of rows, in answer to the view: it has them now. Raises TapeError."""
        with self._lock:
            spans, self._was_read = self.fresh(), True
            if spans is None:
                return {**_EMPTY, "from": start}
            page = spans.page(start, min(limit, LIMIT))
            if start <= self._had:
                self._had = max(self._had, start + len(page["id"]))
            return page

    def send_changes(self) -> None:
        """Tell the view what is new, if anything is. Called by the watch's thread; never raises."""
        try:
            changes = self._collect_changes()
        except (TapeError, OSError):  # the next ask says what is wrong with the file
            return
        except Exception:
            self.dropped += 1
            return
        if changes is not None:
            self.send_update("changed", **changes)

    def _collect_changes(self) -> Message | None:
        with self._lock:
            if self._closed:
                return None
            spans, running = self.fresh(), self.running()
            page = self._collect_new_rows(spans) if spans is not None else None
            total = len(spans.nodes) if spans is not None else 0
            changes = {
                "revision": spans.revision if spans is not None else 0,
                "total": total,
                "running": running,
            }
            state = {
                **changes,
                "running": running and {**running, "seconds": 0},
                "mode": self.deck.session_mode,
            }
            if state == self._last and page is None:
                return None
            self._last = state
            return {**changes, "page": page}

    def _collect_new_rows(self, spans: Spans) -> Message | None:
        """The rows that the view does not have. Where these are too many, it is to start again,
        with the first.
        """
        total = len(spans.nodes)
        if not self._was_read or (self._had == total == self._last.get("total")):
            return None
        if total - self._had > PUSHED:
            spans.revision, self._had = next(_revisions), 0
        page = spans.page(self._had, PUSHED, PUSHED)
        self._had += len(page["id"])
        return page


_EMPTY: Message = columns((), 0, 0, 0)
_SOURCES = 1_000


def text_field(
    message: Any, field: str, default: str | None = None, longest: int | None = None
) -> str:
    """A text of a message. Raises Forged where it is none, or longer than that."""
    value = message.get(field, default) if isinstance(message, dict) else None
    if not isinstance(value, str) or (longest is not None and len(value) > longest):
        raise Forged(field)
    return value


_LONG = 10_000
