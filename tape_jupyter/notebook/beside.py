"""Notebook room: what a page says while a cell runs: our comms over the kernel's control channel.

The shell channel waits behind the cell, and subshells are not everywhere (ipykernel 6) nor always in reach: a page that
is opened while a cell runs learns only afterwards that there are any. ipykernel reads its control channel in a thread
of its own, and takes more kinds of messages there once it is told of them. That thread also serves the debugger and the
shutdown, so it hands ours on at once: a thread of our own does what they ask, in the order they came.
"""

from __future__ import annotations

import contextvars
import logging
import queue
import threading
from collections.abc import Callable
from typing import Any

KINDS = ("comm_open", "comm_msg", "comm_close")

_log = logging.getLogger(__name__)


class Beside:
    """Takes comm messages of one target on the control channel of `kernel`, and gives them to the comm `manager`.

    Messages of other comms go to whoever took them before. `close` puts everything back.
    """

    def __init__(self, kernel: Any, manager: Any, target: str) -> None:
        self._handlers = kernel.control_handlers
        self._manager, self._target = manager, target
        self._before = {kind: self._handlers.get(kind) for kind in KINDS}
        self._ours: set[str] = set()
        self._said: queue.SimpleQueue[tuple[str, Any, Any] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._taken = {kind: self._taker(kind) for kind in KINDS}
        self._handlers.update(self._taken)

    def take(self, comm: str) -> None:
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
        self._said.put(None)

    def _taker(self, kind: str) -> Callable[[Any, Any, Any], Any]:
        def take(stream: Any, ident: Any, message: Any) -> Any:
            content = message.get("content", {})
            name = content.get("comm_id")
            if kind == "comm_open" and content.get("target_name") == self._target and isinstance(name, str):
                self._ours.add(name)
            if name in self._ours:
                self._put(kind, ident, message)
                return None
            before = self._before[kind]
            return before(stream, ident, message) if before is not None else None

        return take

    def _put(self, kind: str, ident: Any, message: Any) -> None:
        self._said.put((kind, ident, message))
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="tape pages", daemon=True)
            contextvars.Context().run(self._thread.start)  # a thread of ours takes no number among the program's

    def _run(self) -> None:
        while (said := self._said.get()) is not None:
            kind, ident, message = said
            try:
                getattr(self._manager, kind)(None, ident, message)
            except Exception:
                _log.exception("tape-jupyter: a page's %s could not be heard", kind)


def listen(shell: Any, manager: Any, target: str) -> Beside | None:
    """Listen on the control channel of a shell's kernel; None where it has none that takes more kinds of messages."""
    kernel = getattr(shell, "kernel", None)
    return Beside(kernel, manager, target) if isinstance(getattr(kernel, "control_handlers", None), dict) else None
