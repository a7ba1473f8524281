"""What happened in a call, in one line: `→ lookup_order`, `"negative"`, `429 rate_limit`.

That stands in its bodies, so it is read when its row is shown, and never for a cassette as a whole:
the text of the record is looked at, not its bytes restored. A reply edited by hand is told as it
stands now.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tape_jupyter.cassette import records
from tape_jupyter.cassette.index_entries import Entry
from tape_jupyter.cassette.reader import Book
from tape_jupyter.core.call import Reply
from tape_jupyter.core.parse_limits import MOST_IN_RECORD
from tape_jupyter.encoding.http import event_folding
from tape_jupyter.errors import CassetteError
from tape_jupyter.providers import conversation, http
from tape_jupyter.providers.conversation import whole_blocks
from tape_jupyter.spans.headers import (
    HTTP,
    MODEL,
    RETRIEVAL,
    TOOL,
    CallHeader,
    host_and_path,
    read_call_headers,
)

LONG = 160
"""Characters of a row's name, at most."""

_MALFORMED = (
    CassetteError,
    TypeError,
    ValueError,
    LookupError,
    AttributeError,
    RecursionError,
    OSError,
)
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb]+"
)


class RowSummary(NamedTuple):
    """A row's name, what is dimmed behind it, seconds to the first byte (None without one), whether
    it failed.
    """

    name: str
    note: str
    first: float | None
    failed: bool


def one_line(text: str, size: int = LONG) -> str:
    """A text as one line that shows all it holds: no control characters, none that turn the writing
    round.
    """
    line = " ".join(_UNSEEN.sub(" ", text[: size * 4]).split())
    return line if len(line) <= size else f"{line[: size - 1]}…"


def happened(header: CallHeader) -> RowSummary:
    """Never raises: what cannot be read says so."""
    note = one_line(_build_note(header), 80)
    if header.error:
        return RowSummary(one_line(header.error), note, None, failed=True)
    if header.entry is None:
        return RowSummary(one_line(_format_request_title(header, {})), note, None, failed=False)
    try:
        section = _read_reply_section(header)
        name = _build_title(header, section)
        first = _find_first_wait(section)
    except _MALFORMED as error:
        return RowSummary(one_line(str(error)), note, None, failed=True)
    failed = bool(header.failed) or _find_status(section) >= 400
    return RowSummary(one_line(name), note, first, failed)


def summarise_call(entry: Entry) -> str:
    """What happened in a call, in a few words; "" where that cannot be read."""
    return next((happened(each).name for each in read_call_headers([entry])), "")


def _build_note(header: CallHeader) -> str:
    if header.kind == MODEL:
        return header.facts.answered or header.facts.model or host_and_path(header.target)[0]
    return host_and_path(header.target)[0] if header.kind == HTTP else ""


def _read_reply_section(header: CallHeader) -> Mapping[str, Any]:
    entry = header.entry
    if entry is None or not isinstance(entry.book, Book):
        return {}
    if entry.more:  # bytes that came later belong to it: restored, and folded to nothing
        reply = entry.reply()
        return {"reply": reply} if isinstance(reply, Reply) else {}
    if entry.length > MOST_IN_RECORD and entry.book.count_values(entry) > MOST_IN_RECORD:
        return {}
    return entry.book.section(entry, "response")


def _find_first_wait(section: Mapping[str, Any]) -> float | None:
    reply = section.get("reply")
    waits = reply.waits if isinstance(reply, Reply) else section.get("waits")
    wait = next(iter(waits), None) if isinstance(waits, list | tuple) else None
    return float(wait) if isinstance(wait, int | float) and wait >= 0 else None


def _find_status(section: Mapping[str, Any]) -> int:
    reply = section.get("reply")
    status = reply.status if isinstance(reply, Reply) else section.get("status")
    return status if isinstance(status, int) else 0


def _build_title(header: CallHeader, section: Mapping[str, Any]) -> str:
    if header.kind in (TOOL, RETRIEVAL):
        return _format_call(header)
    status = _find_status(section)
    if status >= 400:
        return f"{status} {_find_error_kind(section) or records.phrase(status)}".strip()
    if header.failed:
        return header.failed
    if header.kind != MODEL or status == 101:
        return _format_request_title(header, section)
    return conversation.gist(_read_turns(section), LONG) or _format_request_title(header, section)


def _format_request_title(header: CallHeader, _section: Mapping[str, Any]) -> str:
    """`GET orders/search?q=my order`; of a function, its name."""
    if header.kind in (TOOL, RETRIEVAL):
        return f"{header.target}(…)"
    return f"{header.method.upper()} {host_and_path(header.target)[1]}"


def _format_call(header: CallHeader) -> str:
    """`lookup_order(query="my order")`"""
    entry = header.entry
    if entry is None or not isinstance(entry.book, Book):
        return header.target
    arguments = entry.book.request_section(entry).get("arguments")
    pairs = arguments.items() if isinstance(arguments, Mapping) else ()
    return f"{header.target}({', '.join(f'{name}={_format_argument(value)}' for name, value in pairs)})"


def _format_argument(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value[:LONG]}"'
    if isinstance(value, Mapping):
        return f"{{{', '.join(map(str, list(value)[:4]))}}}"
    return f"[{len(value)}]" if isinstance(value, list) else str(value)[:40]


# ---------------------------------------------------------------- what a reply says


def _read_turns(section: Mapping[str, Any]) -> list[conversation.Turn]:
    if "body" in section:
        return conversation.reply_turns(section["body"])
    events = _read_events(section)
    if events is not None:
        return conversation.reply_turns(whole_blocks(events))
    reply = _read_reply(section)
    data = http.decoded_body(reply.headers, reply.readable) if reply is not None else None
    if reply is not None and data:
        return conversation.reply_body_turns(reply.headers, data)
    return []


def _read_events(section: Mapping[str, Any]) -> list[Any] | None:
    """The JSON of a stream's events, each folded group as one; None where its bytes must be
    restored.
    """
    entries = section.get("events", section.get("lines"))
    if not isinstance(entries, list):
        return None
    events = list(_merge_events(entries))
    return None if None in events else events


def _merge_events(entries: Iterable[Any]) -> Iterator[Any]:
    for entry in entries:
        events = event_folding.merged_json(entry)
        yield from [None] if events is None else events


def _read_reply(section: Mapping[str, Any]) -> Reply | None:
    reply = section.get("reply")
    if reply is None and "large" not in section:
        reply = records.section_reply(dict(section))[0]
    return reply if isinstance(reply, Reply) else None


def _find_error_kind(section: Mapping[str, Any]) -> str:
    """`rate_limit` of Anthropic's and OpenAI's error bodies; "" where the body names no kind."""
    body = section.get("body")
    if "body" not in section:
        reply = _read_reply(section)
        body = None
        if reply is not None:
            body = http.loads(http.decoded_body(reply.headers, reply.readable) or b"")
    details = _get_error_details(body)
    kind = next(
        (
            details[name]
            for name in ("type", "status", "code", "__type")
            if isinstance(details.get(name), str)
        ),
        "",
    )
    return kind.rpartition("#")[2].removesuffix("_error").removesuffix("Exception")


def _get_error_details(body: Any) -> Mapping[str, Any]:
    if not isinstance(body, dict):
        return {}
    error = body.get("error")
    return error if isinstance(error, dict) else body
