"""The body that a program sends, read to its end before the tape is asked; a large one into a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tape_jupyter.core.call import Request, Tape
from tape_jupyter.core.large_body import LIMIT, LargeBody
from tape_jupyter.secrets.spooling import Spool, Upload

_BLOCK = 256 * 1024


def begin_upload(tape: Tape, seen: Callable[[], Request]) -> Upload:
    """Takes the parts of a body. `seen` is what can be seen of the request without it."""

    def open_spool() -> Spool | None:
        spool: Spool | None = tape.spool(seen())
        return spool

    return Upload(open_spool, seen().header("content-type"))


def drained(tape: Tape, seen: Callable[[], Request], parts: Iterable[bytes]) -> bytes | LargeBody:
    """All of the parts."""
    upload = begin_upload(tape, seen)
    for part in parts:
        upload.add(part)
    return upload.finish_body()


def keep_body(tape: Tape, seen: Callable[[], Request], body: bytes) -> bytes | LargeBody:
    """A body that the program has in memory: a large one is put into a file to be kept."""
    return drained(tape, seen, (body,)) if len(body) > LIMIT else body


def upload_request(method: str, url: str, headers: Any, body: bytes | LargeBody) -> Request:
    """The request with its body, held or large."""
    if isinstance(body, LargeBody):
        return Request(method, url, headers, large=body)
    return Request(method, url, headers, body)


def blocks(body: LargeBody) -> Iterator[bytes]:
    """What the program sent, block by block."""
    with (body.sent or body).open() as file:
        while block := file.read(_BLOCK):
            yield block
