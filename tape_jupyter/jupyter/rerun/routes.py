"""Ways to run a cell again so that its outputs land in the cell itself.

In the browser, where the labextension is (jupyter/labextension.py). Else here, in the name of the
message that last asked for the cell: a front end that still listens for its outputs puts them in
their place (JupyterLab and Notebook 7 do until the page is loaded again). Else, as in a terminal,
what a cell shows comes below whatever runs it.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, Protocol

from tape_jupyter.jupyter import labextension
from tape_jupyter.jupyter.rerun.outputs import Output

State = Literal["ok", "error", "missing", "canceled", "gone"]
Done = Callable[[State, str], None]
Message = Mapping[str, Any]


class CellRoute(Protocol):
    """Runs one cell at a time; `done` is called exactly once, on the kernel's main thread."""

    def run(self, entry: int, source: str, done: Done) -> None: ...
    def cancel(self) -> None: ...


class Parents:
    """Which message asked last for each entry of the history, and how to speak in its name."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.kernel: Any = getattr(shell, "kernel", None)
        self._by_entry: dict[int, Message] = {}

    def remember_message(self, entry: int, message: Message) -> None:
        """Remember who asked for the entry."""
        if message:
            self._by_entry[entry] = message

    def now(self) -> Message:
        return self.kernel.get_parent("shell") if self.kernel is not None else {}

    def read_current_id(self) -> str:
        """The id of the message whose cell runs; "" without a kernel."""
        return _read_message_id(self.now())

    def find_message(self, entry: int) -> Message:
        return self._by_entry.get(entry, {})

    def cell_id(self, entry: int) -> str | None:
        """The front end's id of the cell."""
        found: str | None = (self.find_message(entry).get("metadata") or {}).get("cellId")
        return found

    def listens(self, entry: int) -> bool:
        """Whether the page that asked for the entry is the one that spoke last: a page that was
        loaded again has a session of its own, and outputs of the old one's messages are shown
        nowhere.
        """
        return _read_session(self.find_message(entry)) == _read_session(self.now()) != ""

    @contextmanager
    def speaking_for(self, message: Message) -> Iterator[None]:
        """What is shown meanwhile is that message's; {} changes nothing."""
        if (
            not message
            or self.kernel is None
            or _read_message_id(message) == _read_message_id(self.now())
        ):
            yield
            return
        kernel, before = self.kernel, (self._find_parent_ident(), self.now())
        kernel.set_parent([b"tape"], message, channel="shell")
        kernel._publish_status("busy", "shell")  # noqa: SLF001 - as ipykernel's own handlers do
        try:
            yield
        finally:
            _flush_streams()
            kernel._publish_status("idle", "shell")  # noqa: SLF001
            kernel.set_parent(*before, channel="shell")

    def replace_outputs(self, entry: int, outputs: Iterable[Output]) -> None:
        """Put outputs back into an entry's cell, in place of those that it shows."""
        message = self.find_message(entry)
        if not message or not self.listens(entry):
            return
        with self.speaking_for(message):
            self.shell.display_pub.clear_output()
            for output in outputs:
                self._send_output(message, output)

    def show_below(self, parent: Message, heading: str, outputs: Iterable[Output]) -> None:
        """Add outputs to the cell of another message, under a heading."""
        if not parent or self.kernel is None:
            return
        with self.speaking_for(parent):
            for output in ({"output_type": "stream", "name": "stdout", "text": heading}, *outputs):
                self._send_output(parent, output)

    def _send_output(self, message: Message, output: Output) -> None:
        content = {k: v for k, v in output.items() if k not in ("output_type", "display_id")}
        if "display_id" in output:
            content["transient"] = {"display_id": output["display_id"]}
        self.kernel.session.send(
            self.kernel.iopub_socket, output["output_type"], content, parent=message
        )

    def _find_parent_ident(self) -> Any:
        return getattr(self.kernel, "_parent_ident", {}).get("shell", [b"tape"])


def _read_message_id(message: Message) -> str:
    return str((message.get("header") or {}).get("msg_id", ""))


def _read_session(message: Message) -> str:
    return str((message.get("header") or {}).get("session", ""))


def _flush_streams() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()


class Here:
    """The kernel runs the cell itself, in the name of the message that asked for it last, if
    anybody still listens.
    """

    def __init__(self, parents: Parents) -> None:
        self._parents, self._shell = parents, parents.shell
        self._task: asyncio.Task[Any] | None = None
        self._runs = False

    def run(self, entry: int, source: str, done: Done) -> None:
        loop = _find_running_loop()
        code = self._shell.transform_cell(source) if loop is not None else ""
        if loop is not None and self._shell.should_run_async(source, transformed_cell=code):
            self._schedule_run(loop, entry, source, done)
            return
        with self._show_in_place(entry):
            result = self._shell.run_cell(
                source, store_history=True, cell_id=self._parents.cell_id(entry)
            )
        done("ok" if result.success else "error", "")

    def _schedule_run(
        self, loop: asyncio.AbstractEventLoop, entry: int, source: str, done: Done
    ) -> None:
        """A cell that awaits takes its turn among the messages, so that no other cell runs
        meanwhile: by the lock of ipykernel 7, else in the queue of ipykernel 6.
        """
        kernel = self._parents.kernel
        lock: asyncio.Lock | None = getattr(kernel, "_main_asyncio_lock", None)
        if lock is None and hasattr(kernel, "schedule_dispatch"):
            kernel.schedule_dispatch(lambda: self._await_cell(entry, source, done))
        else:
            self._task = loop.create_task(
                self._run_under_lock(lock or asyncio.Lock(), entry, source, done)
            )

    async def _run_under_lock(
        self, lock: asyncio.Lock, entry: int, source: str, done: Done
    ) -> None:
        async with lock:
            await self._await_cell(entry, source, done)

    async def _await_cell(self, entry: int, source: str, done: Done) -> None:
        """As the kernel runs a cell that awaits: the stop button cancels it."""
        cell = self._parents.cell_id(entry)
        state: State = "canceled"
        try:
            with self._show_in_place(entry):
                reply = await self._parents.kernel.do_execute(
                    source, silent=False, store_history=True, cell_id=cell
                )
            state = "ok" if reply.get("status") == "ok" else "error"
        except asyncio.CancelledError:
            pass
        done(state, "")

    @contextmanager
    def _show_in_place(self, entry: int) -> Iterator[None]:
        message = self._parents.find_message(entry) if self._parents.listens(entry) else {}
        self._runs = True
        before = signal.getsignal(signal.SIGINT)
        if before is signal.SIG_IGN:  # as between two messages
            signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with self._parents.speaking_for(message):
                if message:
                    self._shell.display_pub.clear_output()
                yield
        finally:
            self._runs = False
            if before is signal.SIG_IGN:
                signal.signal(signal.SIGINT, before)

    def cancel(self) -> None:
        """Interrupt the cell that runs, as the stop button does; from whatever thread."""
        if self._runs:
            signal.raise_signal(signal.SIGINT)


class InBrowser:
    """The front end runs the cell, as if a person had (jupyter/labextension.py)."""

    def __init__(self, route: labextension.BrowserRoute, parents: Parents) -> None:
        self._route, self._parents = route, parents

    # the front end has the source
    def run(self, entry: int, source: str, done: Done) -> None:  # noqa: ARG002
        cell = self._parents.cell_id(entry)
        if cell is None:
            done("missing", "the front end did not tell which cell this is")
            return
        self._route.run(
            cell, lambda outcome: labextension.on_main(lambda: done(outcome.state, outcome.text))
        )

    def cancel(self) -> None:
        self._route.cancel()


def best_route(parents: Parents, *, browser: bool = True) -> CellRoute:
    """The best way there is now. `browser`: the kernel will be idle, so that the front end can run
    cells.
    """
    route = labextension.browser_route() if browser else None
    return InBrowser(route, parents) if route is not None else Here(parents)


def _find_running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
