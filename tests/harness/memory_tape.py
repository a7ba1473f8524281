"""A tape that lives in memory, to test the taps against: what it records first it plays second.

with taped(tape): ...          patched, this tape installed; everything undone at the end
tape.rewind()                  from now on it plays; a call it does not hold is an UnmatchedCall
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tape_jupyter import instrumentation
from tape_jupyter.core.call import Capture, FunctionCall, Headers, Play, Reply, Request, Tape
from tape_jupyter.errors import UnmatchedCall
from tape_jupyter.encoding.values.registry import freeze_error
from tape_jupyter.core.context import ORIGIN


@dataclass
class Entry:
    request: Request
    lineage: str | None
    status: int | None = None
    headers: Headers = ()
    chunks: list[bytes] = field(default_factory=list)
    end: str = ""
    error: dict[str, Any] | None = None
    version: str = "HTTP/1.1"
    reason: str = ""
    ended: int = 0
    played: bool = False
    out: int = 0

    @property
    def reply(self) -> Reply:
        error = json.loads(json.dumps(self.error))  # as it will be in a file
        waits = tuple(0.0 for _ in self.chunks)
        return Reply(
            self.status,
            self.headers,
            tuple(self.chunks),
            waits,
            self.end or "closed",
            error,
            self.version,
            self.reason,
        )


class MemoryCapture:
    def __init__(self, entry: Entry) -> None:
        self.entry = entry

    def sent(self) -> None:
        assert self.entry.status is None and not self.entry.end
        self.entry.out += 1

    def head(
        self, status: int, headers: Headers, version: str = "HTTP/1.1", reason: str = ""
    ) -> None:
        assert self.entry.status is None and not self.entry.end
        self.entry.status, self.entry.headers = status, headers
        self.entry.version, self.entry.reason = version, reason

    def chunk(self, data: bytes) -> None:
        assert self.entry.status is not None and not self.entry.end
        assert type(data) is bytes and data
        self.entry.chunks.append(data)

    def finish(self) -> None:
        self.entry.end = self.entry.end or "complete"

    def close(self) -> None:
        self.entry.end = self.entry.end or "closed"

    def fail(self, error: BaseException) -> None:
        if not self.entry.end:
            self.entry.end = "cut short" if isinstance(error, KeyboardInterrupt) else "error"
            self.entry.error = freeze_error(error)

    def value(self, value: Any) -> None:
        raise AssertionError("an HTTP call has no value")


class MemoryTape(Tape):
    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.playing = False
        self.ignored = False
        self.missed: list[Request] = []
        self.notes: list[str] = []
        self._lock = threading.Lock()

    def begin(self, call: Request | FunctionCall) -> Play | Capture | None:
        assert isinstance(call, Request)
        if self.ignored:
            return None
        origin = ORIGIN.get()
        with self._lock:
            if self.playing:
                return self._play(call, origin and origin.lineage)
            self.entries.append(Entry(call, origin and origin.lineage))
            return MemoryCapture(self.entries[-1])

    def may_decide(self) -> bool:
        return not self.ignored

    def answers(self) -> bool:
        return self.playing

    def note(self, text: str) -> None:
        self.notes.append(text)

    def _play(self, call: Request, lineage: str | None) -> Play:
        wanted = (call.method, call.url, call.body, lineage)
        for entry in self.entries:
            if not entry.played and wanted == (*key(entry.request), entry.lineage):
                entry.played = True
                return Play(entry.reply)
        self.missed.append(call)
        raise UnmatchedCall(f"no recorded {call.method} {call.url}")

    def rewind(self) -> None:
        self.playing = True
        for entry in self.entries:
            entry.played = False


def key(request: Request) -> tuple[str, str, bytes]:
    return request.method, request.url, request.body


@contextmanager
def taped(tape: MemoryTape) -> Iterator[MemoryTape]:
    instrumentation.patch_all()
    instrumentation.install(tape)
    try:
        yield tape
    finally:
        instrumentation.remove_tape()
        instrumentation.unpatch_all()
