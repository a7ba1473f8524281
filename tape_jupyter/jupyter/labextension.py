"""The labextension's line to this kernel, and the way to have cells run in the browser.

Two comms, each with one speaker, both of the target "tape-jupyter". The kernel opens the first when
the extension is loaded: that is how a page learns of it (a page that comes later finds it by its
id), and on it the kernel alone speaks, to every page that listens. A page answers by opening the
second, on which it alone speaks: ipykernel 7.4 sends a comm's messages to the thread that last
published on it, so one that was used both ways would wait behind a cell that runs. What a page says
arrives on a thread beside the main one, also while a cell runs: over the control channel where the
kernel takes it there (jupyter/labextension.py; the first comm's id says so), else in a subshell,
where there are any.

Messages of a page: {type: "path", path, root} | {type: "view", view, message} | {type: "unview",
view} | {type: "running", id} | {type: "ran", id, state, text} | {type: "stepping", id}. To a page,
each with its `client`: {view, message} | {type: "run", id, cell} | {type: "cancel", id} | {type:
"stepping", id}. What is none of these is dropped and counted.

What a page says while a cell runs: our comms over the kernel's control channel.

The shell channel waits behind the cell, and subshells are not everywhere (ipykernel 6) nor always
in reach: a page that is opened while a cell runs learns only afterwards that there are any.
ipykernel reads its control channel in a thread of its own, and takes more kinds of messages there
once it is told of them. That thread also serves the debugger and the shutdown, so it hands ours on
at once: a thread of our own does what they ask, in the order they came.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import queue
import secrets as entropy
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tape_jupyter.core.stubs import do_nothing

if TYPE_CHECKING:
    from tape_jupyter.cassette.paths import Ladder
    from tape_jupyter.jupyter.cell_runner import CellRunner
    from tape_jupyter.jupyter.viewer.server import Viewer


KINDS = ("comm_open", "comm_msg", "comm_close")

_log = logging.getLogger(__name__)


class Beside:
    """Takes comm messages of one target on the control channel of `kernel`, and gives them to the
    comm `manager`.

    Messages of other comms go to whoever took them before. `close` puts everything back.
    """

    def __init__(self, kernel: Any, manager: Any, target: str) -> None:
        self._handlers = kernel.control_handlers
        self._manager, self._target = manager, target
        self._before = {kind: self._handlers.get(kind) for kind in KINDS}
        self._ours: set[str] = set()
        self._outgoing: queue.SimpleQueue[tuple[str, Any, Any] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._taken = {kind: self._make_handler(kind) for kind in KINDS}
        self._handlers.update(self._taken)

    def adopt_comm(self, comm: str) -> None:
        """A comm of another target that is heard here too: a widget's."""
        self._ours.add(comm)

    def close(self) -> None:
        for kind, before in self._before.items():
            if self._handlers.get(kind) is not self._taken[kind]:
                continue  # somebody else has it by now
            if before is None:
                del self._handlers[kind]
            else:
                self._handlers[kind] = before
        self._outgoing.put(None)

    def _make_handler(self, kind: str) -> Callable[[Any, Any, Any], Any]:
        def handle_message(stream: Any, ident: Any, message: Any) -> Any:
            content = message.get("content", {})
            name = content.get("comm_id")
            if (
                kind == "comm_open"
                and content.get("target_name") == self._target
                and isinstance(name, str)
            ):
                self._ours.add(name)
            if name in self._ours:
                self._queue_message(kind, ident, message)
                return None
            before = self._before[kind]
            return before(stream, ident, message) if before is not None else None

        return handle_message

    def _queue_message(self, kind: str, ident: Any, message: Any) -> None:
        self._outgoing.put((kind, ident, message))
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._handle_queued_messages, name="tape pages", daemon=True
            )
            # a thread of ours takes no number among the program's
            contextvars.Context().run(self._thread.start)

    def _handle_queued_messages(self) -> None:
        while (queued := self._outgoing.get()) is not None:
            kind, ident, message = queued
            try:
                getattr(self._manager, kind)(None, ident, message)
            except Exception:
                _log.exception("tape-jupyter: a page's %s could not be heard", kind)


def listen_on_control(shell: Any, manager: Any, target: str) -> Beside | None:
    """Listen on the control channel of a shell's kernel; None where it has none that takes more
    kinds of messages.
    """
    kernel = getattr(shell, "kernel", None)
    if not isinstance(getattr(kernel, "control_handlers", None), dict):
        return None
    return Beside(kernel, manager, target)


TARGET = "tape-jupyter"
TELL = "tape-tell-"
BESIDE = "beside-"
"""Follows TELL where the kernel takes a page's messages on its control channel."""
MOST_CLIENTS = 8  # pages that were closed without a word are forgotten, the oldest first
MOST_VIEWS = 64  # of one page
MOST_TEXT = 10_000  # characters of what went wrong in a cell
ACKNOWLEDGED_SECONDS = 5.0

State = Literal["ok", "error", "missing", "canceled", "gone"]
STATES = ("ok", "error", "missing", "canceled")

_labs: list[Lab] = []


class CellOutcome(NamedTuple):
    """How a cell fared that the browser was asked to run.

    "missing": the notebook has no such cell (any more); "gone": no page took the ask. `text` tells
    of an error.
    """

    cell: str
    state: State
    text: str = ""


Done = Callable[[CellOutcome], None]


class BrowserRoute:
    """Runs cells of the notebook in the browser, so that their outputs land where they belong.

    The kernel must be idle meanwhile: the cells run in it. Not tied to one page: the newest is
    asked.
    """

    def __init__(self, lab: Lab) -> None:
        self._lab = lab

    def run(self, cell: str, done: Done) -> None:
        """Ask for one cell. `done` is called exactly once, on another thread than the main one."""
        self._lab.run(cell, done)

    def cancel(self) -> None:
        """Withdraw what waits, and interrupt what runs; each `done` still comes."""
        self._lab.cancel()


def browser_route() -> BrowserRoute | None:
    """The way to run cells in the browser; None where no labextension is connected to this kernel."""
    return next((BrowserRoute(lab) for lab in _labs if lab.clients), None)


def has_pages() -> bool:
    """Whether a page of this kernel has the labextension."""
    return any(lab.clients for lab in _labs)


def knock(name: str, answered: Callable[[], None]) -> None:
    """Ask all pages whether somebody is there; one that is answers, on another thread: then
    `answered` is called.
    """
    for lab in _labs:
        lab.answered = answered
        lab.knock(name)


def beside_too(shell: Any, comm: str) -> bool:
    """Hear that comm too on the kernel's control channel, where one is listened to; whether it is."""
    return next((lab.adopt_comm(comm) for lab in _labs if lab.shell is shell), False)


def on_main(do: Callable[[], object]) -> None:
    """Do something on the kernel's main thread: at once when called there, else when the main
    thread is idle next.
    """
    loop = _labs[-1].loop if _labs else None
    if loop is None or threading.current_thread() is threading.main_thread():
        do()
    else:
        loop.call_soon_threadsafe(do)


def start_lab(shell: Any, ladder: Ladder, cells: Callable[[], CellRunner]) -> None:
    """Announce to the pages of this kernel that the extension is loaded. Nothing happens where
    there is no kernel. `cells` is asked once a page wants to see something.
    """
    if getattr(shell, "kernel", None) is None or any(lab.shell is shell for lab in _labs):
        return
    with contextlib.suppress(ImportError):  # a kernel without comms
        _labs.append(Lab(shell, ladder, cells))


def stop_lab(shell: Any) -> None:
    """Close the line."""
    for lab in [lab for lab in _labs if lab.shell is shell]:
        lab.close()
        _labs.remove(lab)


@dataclass(slots=True)
class ConnectedPage:
    """A page that is connected, with the views that are open there."""

    id: str
    views: dict[str, Viewer] = field(default_factory=dict)


@dataclass(slots=True)
class CellTask:
    """A cell that a page was asked to run."""

    id: str
    cell: str
    client: str
    done: Done
    watch: threading.Timer


class Lab:
    """One kernel's line to its pages."""

    def __init__(self, shell: Any, ladder: Ladder, cells: Callable[[], CellRunner]) -> None:
        from comm import create_comm, get_comm_manager

        self.shell, self._ladder, self._cells = shell, ladder, cells
        self.loop = _find_running_loop()
        self.clients: dict[str, ConnectedPage] = {}  # the newest last
        self.dropped = 0
        self.answered: Callable[[], None] = do_nothing
        self._cell_tasks: dict[str, CellTask] = {}
        self._lock = threading.Lock()
        self._manager = get_comm_manager()
        self._manager.register_target(TARGET, self._connect_page)
        self._control_channel = listen_on_control(shell, self._manager, TARGET)
        self._comm = create_comm(
            TARGET, comm_id=TELL + (BESIDE if self._control_channel else "") + entropy.token_hex(8)
        )
        # A front end without the labextension closes what it does not know; a page that comes later
        # must find it.
        self._comm.on_close(lambda _: self._reregister_comm())

    def close(self) -> None:
        if self._control_channel is not None:
            self._control_channel.close()
        with contextlib.suppress(KeyError):
            self._manager.unregister_target(TARGET, self._connect_page)
        self._comm.on_close(None)
        self._comm.close()
        for client in list(self.clients):
            self._forget_page(client)

    def adopt_comm(self, comm: str) -> bool:
        """Take a comm of another target on the control channel, if we listen there."""
        if self._control_channel is not None:
            self._control_channel.adopt_comm(comm)
        return self._control_channel is not None

    def _reregister_comm(self) -> None:
        self._manager.register_comm(self._comm)

    # ------------------------------------------------------------ pages

    def _connect_page(self, comm: Any, message: dict[str, Any]) -> None:
        name = _read_data(message).get("client")
        if not isinstance(name, str):
            self.dropped += 1
            return
        self._forget_page(name)
        self.clients[name] = ConnectedPage(name)
        comm.on_msg(lambda comm_message: self._handle_page_message(name, _read_data(comm_message)))
        comm.on_close(lambda _: self._forget_page(name))
        for oldest in list(self.clients)[:-MOST_CLIENTS]:
            self._forget_page(oldest)

    def _forget_page(self, name: str) -> None:
        client = self.clients.pop(name, None)
        for viewer in client.views.values() if client else ():
            viewer.close()
        for task in [each for each in list(self._cell_tasks.values()) if each.client == name]:
            with contextlib.suppress(KeyError):  # it ended just now
                self._settle_task(task.id, name, "gone", "the page was closed")

    def _handle_page_message(self, name: str, data: dict[str, Any]) -> None:
        handlers: dict[Any, Callable[[ConnectedPage, dict[str, Any]], None]] = {
            "path": self._handle_path,
            "view": self._handle_view,
            "unview": self._handle_unview,
            "running": self._handle_running,
            "ran": self._handle_ran,
            "stepping": self._handle_stepping,
        }
        try:
            handlers[data.get("type")](self.clients[name], data)
        except (TypeError, KeyError):
            self.dropped += 1

    def _handle_stepping(self, _: ConnectedPage, _data: dict[str, Any]) -> None:
        """A page is there, and answers."""
        self.answered()

    def knock(self, name: str) -> None:
        """Ask the pages whether somebody is there: a cell is about to be stepped."""
        for client in list(self.clients):
            self._send_message(client, {"type": "stepping", "id": name})

    def _send_message(self, client: str, message: dict[str, Any]) -> None:
        if client in self.clients:
            self._comm.send({**message, "client": client})

    def _handle_path(self, _: ConnectedPage, data: dict[str, Any]) -> None:
        """The notebook's path as the server names it, and the server's root.

        Notebook 7 does not say the root: it is the folder that the kernel started in, or one above
        it.
        """
        path = _require_text(data["path"])
        root = _require_text(data["root"])
        ladder = self._ladder
        for folder in (Path(root).expanduser(),) if root else (ladder.start, *ladder.start.parents):
            ladder.set_notebook(folder / path)
            if ladder.hint is not None:
                return

    # ------------------------------------------------------------ views

    def _handle_view(self, client: ConnectedPage, data: dict[str, Any]) -> None:
        name, message = _require_text(data["view"]), data["message"]
        if not isinstance(message, dict):
            raise TypeError
        viewer = client.views.get(name)
        if viewer is None:
            if len(client.views) >= MOST_VIEWS:
                raise KeyError(name)
            viewer = client.views[name] = self._make_viewer(client.id, name)
        viewer.receive(message)

    def _make_viewer(self, client: str, view: str) -> Viewer:
        from tape_jupyter.jupyter.viewer.server import Viewer

        return Viewer(
            self._cells(),
            lambda message: self._send_message(client, {"view": view, "message": message}),
        )

    def _handle_unview(self, client: ConnectedPage, data: dict[str, Any]) -> None:
        viewer = client.views.pop(_require_text(data["view"]), None)
        if viewer is not None:
            viewer.close()

    # ------------------------------------------------------------ cells that run in the browser

    def run(self, cell: str, done: Done) -> None:
        client = next(reversed(self.clients), None)
        if client is None:
            done(CellOutcome(cell, "gone", "no labextension is connected"))
            return
        name = entropy.token_hex(8)
        watch = threading.Timer(
            ACKNOWLEDGED_SECONDS, lambda: self._settle_unanswered_task(name, client)
        )
        watch.daemon = True
        self._cell_tasks[name] = CellTask(name, cell, client, done, watch)
        watch.start()
        self._send_message(client, {"type": "run", "id": name, "cell": cell})

    def cancel(self) -> None:
        for task in list(self._cell_tasks.values())[::-1]:  # what waits first: else it would begin
            self._send_message(task.client, {"type": "cancel", "id": task.id})

    def _handle_running(self, client: ConnectedPage, data: dict[str, Any]) -> None:
        task = self._cell_tasks[_require_text(data["id"])]
        if task.client == client.id:
            task.watch.cancel()

    def _handle_ran(self, client: ConnectedPage, data: dict[str, Any]) -> None:
        state = data["state"]
        if state not in STATES:
            raise TypeError
        self._settle_task(
            _require_text(data["id"]), client.id, state, _require_text(data["text"])[:MOST_TEXT]
        )

    def _settle_unanswered_task(self, name: str, client: str) -> None:
        with contextlib.suppress(KeyError):  # it answered just now
            self._settle_task(name, client, "gone", "the page does not answer: reload it")
            self._forget_page(client)

    def _settle_task(self, name: str, client: str, state: State, text: str) -> None:
        with self._lock:  # the answer and the watch may come at once
            task = self._cell_tasks.get(name)
            if task is None or task.client != client:
                raise KeyError(name)
            del self._cell_tasks[name]
        task.watch.cancel()
        task.done(CellOutcome(task.cell, state, text))


def _read_data(message: dict[str, Any]) -> dict[str, Any]:
    data = message.get("content", {}).get("data")
    return data if isinstance(data, dict) else {}


def _require_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _find_running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
