"""What telemetry is answered in replay, where it is not sent: what the recording saw.

Of each endpoint the first answer stands on an end mark: status, headers, a small body; never what
was sent. Where nothing is known it is what the endpoint answers by its documentation.
"""

from __future__ import annotations

import base64
import errno
import re
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tape_jupyter.cassette import records
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.core.call import Capture, Headers, Play, Reply, Request, header_value
from tape_jupyter.encoding.http import body as http_body
from tape_jupyter.encoding.values.registry import freeze_error
from tape_jupyter.errors import CassetteError
from tape_jupyter.providers import hosts
from tape_jupyter.secrets.registry import Secrets
from tape_jupyter.session.cell import TapedCell
from tape_jupyter.session.websocket_recorder import opens_dialogue

KEY = "telemetry"
"""Of a run's end mark."""
MOST = 4096
"""Bytes of a body that are kept."""
_REFUSED = ConnectionRefusedError(errno.ECONNREFUSED, "refused: telemetry is not sent in replay")
_ID = re.compile(
    r"/(?:[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-fA-F]{32}|\d+)(?=/|$)"
)
_FRAMING = frozenset(
    {"content-encoding", "content-length", "transfer-encoding", "connection", "keep-alive", "date"}
)


def endpoint(request: Request) -> str:
    """Method and address without what differs from one post to the next."""
    parts = urlsplit(request.url)
    return f"{request.method} {parts.hostname or ''}{_ID.sub('/*', parts.path)}"


class _Book:
    """What one cassette knows: answers that came, those of them that are on the tape, and
    those that it holds.
    """

    def __init__(self) -> None:
        self.answers: dict[str, dict[str, Any]] = {}
        self.recorded: set[str] = set()
        self.held: dict[str, Reply] = {}
        self.read = 0


class Telemetry:
    """Of one session, by cassette."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._books: dict[Path, _Book] = {}

    def passing(self, request: Request, cell: TapedCell) -> Capture:
        """Lets the call go out, and hears its answer."""
        if cell.path is None:
            return Capture()
        return _AnswerObserver(self._find_book(cell.path).answers, endpoint(request))

    def _find_book(self, path: Path) -> _Book:
        with self._lock:
            return self._books.setdefault(path.absolute(), _Book())

    def extend_end_mark(
        self, cell: TapedCell, secrets: Secrets, start_run: Callable[[TapedCell], None]
    ) -> None:
        """Add what is new to the end mark of a recorded cell. Raises nothing."""
        if cell.replaying or cell.mode == "live" or cell.cassette is None or cell.path is None:
            return
        book = self._find_book(cell.path)
        new = {
            name: answer for name, answer in list(book.answers.items()) if name not in book.recorded
        }
        if not new:
            return
        try:
            if not cell.recording.run:
                start_run(cell)
        except (CassetteError, OSError) as problem:
            cell.warn(f"what telemetry was answered is not on the tape: {problem}")
            return
        cell.recording.ends[KEY] = [
            _build_record(name, answer, secrets) for name, answer in sorted(new.items())
        ]
        book.recorded |= new.keys()

    def unsent(self, request: Request, cell: TapedCell | None = None) -> Play:
        """What answers it in replay: the library that meant to send it goes on as it did."""
        if opens_dialogue(request):
            return Play(Reply(None, end="error", error=freeze_error(_REFUSED)))
        if cell is not None and cell.cassette is not None and cell.path is not None:
            books = [self._read_ends(cell.cassette, self._find_book(cell.path))]
        else:
            books = list(self._books.values())
        for book in reversed(books):
            if reply := book.held.get(endpoint(request)):
                return Play(reply)
        return Play(_build_documented_reply(request))

    def _read_ends(self, cassette: Cassette, book: _Book) -> _Book:
        if book.read == len(cassette.ended):
            return book
        book.read = len(cassette.ended)
        for end in list(cassette.ended.values()):
            for record in end.get(KEY) or ():
                if isinstance(record, Mapping) and (reply := _parse_reply(record)) is not None:
                    book.held[str(record.get("endpoint"))] = reply
        return book


class _AnswerObserver(Capture):
    """A live call of which the answer is kept."""

    def __init__(self, answers: dict[str, dict[str, Any]], name: str) -> None:
        self._replies, self._name = answers, name
        self._head: tuple[int, Headers] | None = None
        self._body = b""

    def head(
        self, status: int, headers: Headers, version: str = "HTTP/1.1", reason: str = ""
    ) -> None:
        del version, reason
        self._head = (status, headers)

    def chunk(self, data: bytes) -> None:
        self._body += data[: MOST + 1 - len(self._body)]

    def finish(self) -> None:
        self.close()

    def close(self) -> None:
        if self._head is None:
            return
        status, headers = self._head
        plain = None
        if len(self._body) <= MOST:
            plain = http_body.decode(self._body, header_value(headers, "content-encoding"))
        kept = tuple(each for each in headers if each[0].lower() not in _FRAMING)
        self._replies.setdefault(
            self._name, {"status": status, "headers": kept, "body": plain or b""}
        )


def _build_record(name: str, answer: Mapping[str, Any], secrets: Secrets) -> dict[str, Any]:
    body: bytes = answer["body"]
    record: dict[str, Any] = {"endpoint": secrets.scrub(name)[0], "status": answer["status"]}
    if headers := records.headers_record(secrets.scrub_reply_headers(answer["headers"])[0]):
        record["headers"] = headers
    if not body:
        return record
    try:
        record["body"] = secrets.scrub(body.decode())[0]
    except UnicodeDecodeError:
        record["base64"] = base64.b64encode(body).decode()
    return record


def _parse_reply(record: Mapping[str, Any]) -> Reply | None:
    """What stands on an end mark; None for what a hand has broken."""
    try:
        if "base64" in record:
            body = base64.b64decode(record["base64"])
        else:
            body = str(record.get("body", "")).encode()
        return _build_reply(
            int(record["status"]), records.section_headers(record.get("headers", {})), body
        )
    except (CassetteError, KeyError, TypeError, ValueError):
        return None


def _build_documented_reply(request: Request) -> Reply:
    status, body = hosts.telemetry_answer(request)
    return _build_reply(status, (("content-type", "application/json"),), body)


def _build_reply(status: int, headers: Headers, body: bytes) -> Reply:
    chunks = (body,) if body else ()
    length = () if status == 204 else (("content-length", str(len(body))),)
    return Reply(
        status,
        (*headers, *length),
        chunks,
        tuple(0.0 for _ in chunks),
        reason="OK" if status == 200 else "",
    )
