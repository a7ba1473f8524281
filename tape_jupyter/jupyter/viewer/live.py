"""Live: what runs now is shown as it happens, without a call waiting for it.

The deck says that something is new to see (Deck.changed): that sets an event and no more. One
thread beside the kernel's own comes back for it, as often as it is cheap, and tells the views. It
sends while the main thread runs a cell: a comm message goes out over IOPub from whatever thread,
and a front end shows it at once; what a front end asks may have to wait until the cell is over.
Hence rows are pushed, and not only announced.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tape_jupyter.core.call import FunctionCall, Request
from tape_jupyter.core.plain_text import join_some
from tape_jupyter.core.real_clock import perf_counter
from tape_jupyter.providers import pricing, registry
from tape_jupyter.providers.registry import Facts
from tape_jupyter.spans.headers import HTTP, MODEL, RETRIEVAL, TOOL, CallHeader
from tape_jupyter.spans.titles import happened, one_line
from tape_jupyter.spans.tree import NOTHING_RUNS, Pending

if TYPE_CHECKING:
    from tape_jupyter.session.cell import TapedCell
    from tape_jupyter.session.session import TapeSession

AT_MOST = 0.15
"""Seconds between two looks."""

# a look may take a tenth of the time, and comes every two seconds in any case
_SHARE = 10
_AT_LEAST = 2.0
MOST_GOING = 200
"""Calls that run now, shown at once."""


class Watching(Protocol):
    """A view that wants to know."""

    def send_changes(self) -> None: ...


class LiveUpdates:
    """Tells the views of one deck. Its thread lives while there are views."""

    def __init__(self, deck: TapeSession) -> None:
        self._deck = deck
        self._views: list[Watching] = []
        self._news = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, view: Watching) -> None:
        with self._lock:
            self._views.append(view)
            if self._news.set not in self._deck.watchers:
                self._deck.watchers.append(self._news.set)
            if self._thread is None:
                pricing.load_libraries()
                self._thread = threading.Thread(
                    target=self._run_updates, name="tape views", daemon=True
                )
                # a thread of ours takes no number among the program's
                contextvars.Context().run(self._thread.start)

    @property
    def views(self) -> tuple[Watching, ...]:
        """Those that watch now."""
        return tuple(self._views)

    def remove(self, view: Watching) -> None:
        with self._lock:
            self._views = [other for other in self._views if other is not view]
            if not self._views and self._news.set in self._deck.watchers:
                self._deck.watchers.remove(self._news.set)
        self._news.set()

    def _run_updates(self) -> None:
        pricing.load_table()  # a while; the first view should not wait for it
        while self._may_go_on():
            self._news.wait()
            self._news.clear()
            began = perf_counter()
            for view in tuple(self._views):
                view.send_changes()
            pause = min(max(AT_MOST, _SHARE * (perf_counter() - began)), _AT_LEAST)
            threading.Event().wait(pause)

    def _may_go_on(self) -> bool:
        with self._lock:
            if not self._views:
                self._thread = None
            return bool(self._views)


_watches: list[tuple[TapeSession, LiveUpdates]] = []


def updates_of(deck: TapeSession) -> LiveUpdates:
    """The watch of a deck; made when first asked for."""
    for known, watch in _watches:
        if known is deck:
            return watch
    _watches.append((deck, LiveUpdates(deck)))
    return _watches[-1][1]


def now() -> float:
    """Seconds of the epoch, as they are outside of a taped cell."""
    return datetime.now(UTC).timestamp()


def pending(cell: TapedCell | None, path: Path | None) -> Pending:
    """What runs now and is not in the cassette or take at `path` yet."""
    if (
        cell is None
        or not cell.recording.run
        or path is None
        or cell.path is None
        or cell.path.absolute() != path.absolute()
    ):
        return NOTHING_RUNS
    return Pending(cell.recording.run, list_going(cell), now())


def list_going(cell: TapedCell) -> list[CallHeader]:
    """The calls of a cell that have begun and not ended, at most `MOST_GOING`."""
    headers = map(_build_call_header, list(cell.recording.going)[:MOST_GOING])
    return [each for each in headers if each is not None]


def describe_waits(going: Sequence[CallHeader]) -> str:
    """What these calls go to: `claude-sonnet-5, search`."""
    names = [happened(header).note or header.target for header in going]
    return join_some([one_line(name, _LONG) for name in dict.fromkeys(names)], _NAMED)


_NAMED, _LONG = 2, 60


def _build_call_header(taking: Any) -> CallHeader | None:
    """A call that runs, as a head; None for one that a take answers in a recorded call's place."""
    call = getattr(taking, "call", None) or getattr(taking, "request", None)
    if (
        taking.entry is not None
        or taking.over is not None
        or not isinstance(call, Request | FunctionCall)
    ):
        return None
    where, facts = taking.where, Facts()
    if isinstance(call, FunctionCall):
        kind = RETRIEVAL if call.kind == "retrieval" else TOOL
        method = str(call.kind)
        name = call.name
    else:
        kind, method, name = (MODEL if taking.kind == "model" else HTTP), call.method, call.url
        facts = _read_request_facts(call, taking.matched_request.json)
        name = taking.secrets.scrub_url(name)
    return CallHeader(
        None, taking.id, where.cell, kind, "", method, name, where.parent, where.span,
        taking.at.timestamp(), 0.0, "", facts, "", running=True,
    )  # fmt: skip


def _read_request_facts(request: Request, body: Any) -> Facts:
    """What is known of a model call before it is answered."""
    known = registry.identify(request)
    model = body.get("model") if isinstance(body, dict) else None
    return Facts(provider=known.provider, model=model if isinstance(model, str) else known.model)
