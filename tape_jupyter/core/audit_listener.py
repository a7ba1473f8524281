"""Audit events, heard without harm: what hears them may open files itself, and fails nobody's call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tape_jupyter.core.thread_number import thread_number


class Listener:
    """Hands on audit events, their names and arguments, to `callback`, but none of those that `callback`
    itself causes.
    """

    def __init__(self, callback: Callable[[str, tuple[Any, ...]], None]) -> None:
        self._on_event = callback
        self._inside: set[int] = set()
        """Threads in which somebody is being told."""

    def handle_event(self, event: str, args: tuple[Any, ...]) -> None:
        """An event. Raises nothing, whatever the callback does."""
        if (thread := thread_number()) in self._inside:
            return
        try:  # an interrupt may come at once
            self._inside.add(thread)
            self._on_event(event, args)
        except Exception:  # noqa: S110 - an audit hook that raises would fail the user's open()
            pass
        finally:
            self._inside.discard(thread)

    @contextmanager
    def deaf(self) -> Iterator[None]:
        """Nothing that this thread does in the block is heard."""
        thread = thread_number()
        self._inside.add(thread)
        try:
            yield
        finally:
            self._inside.discard(thread)
