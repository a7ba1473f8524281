"""Streams <-> entries: server-sent events, JSON lines, Amazon's event-stream frames. Pure: no I/O.

What every event has in common stands once, beside the entries: `json:` the dialect of the data
(compact if absent), `sse:` the line style ("crlf", "tight" = no space after the colon; LF and a
space if absent). An event's own fields keep their order. What does not fit is kept as it is: data
that is no JSON as `text`, an event as `raw` or `base64`. Of a frame `event` tells all three
standard headers, else `headers` stand there; `opened: DIALECT` says that the event which Bedrock
wraps in base64 (`bytes`) stands there as JSON.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from tape_jupyter.encoding.http.aws_event_stream import (
    STANDARD,
    encode_frame,
    frame_headers,
    frame_payload,
    split_frames,
)
from tape_jupyter.encoding.http.event_folding import (
    Entry,
    Piece,
    fold_stream,
    payloads,
    pieces_of,
    repeated,
)
from tape_jupyter.encoding.http.json_style import Dialect, dialect, find_dialect, load_json
from tape_jupyter.errors import CassetteError

_FIELDS: Final = ("event", "id", "retry", "comment")
_KEYS: Final = frozenset(
    {
        *_FIELDS,
        "data",
        "text",
        "json",
        "at",
        "cuts",
        "upto",
        "vary",
        "pad",
        "times",
        "raw",
        "base64",
        "headers",
        "opened",
    }
)
_WIDTH: Final = 100

Section = dict[str, Any]
Attempts = Iterator[Section]


# ---------------------------------------------------------------- common to all


def _propose_sections(
    kind: str, style: Section, spelling: Dialect, read: Callable[[bool], Iterator[Piece]]
) -> Attempts:
    """Sections to be proven, from the most readable to the safest. `read` gives pieces one by one:
    a list of them all would keep the garbage collector busy for as long as everything else takes.
    """
    head = style | ({} if spelling.name == "compact" else {"json": spelling.name})
    yield {**head, kind: fold_stream(read(False), spelling)}
    yield {**head, kind: fold_stream(read(True), spelling)}
    yield {**head, kind: fold_stream(read(True), spelling, separate=True)}


def _find_common_dialect(texts: Iterable[str], *, escaped: bool) -> Dialect:
    """The dialect of a stream: that of its first JSON, or of the first that tells which characters
    are escaped.
    """
    common: Dialect | None = None
    for text in texts:
        if text[:1] not in ("{", "[") or (common and "\\u" not in text):
            continue
        json_dialect = _find_dialect(text)
        if json_dialect and (common is None or json_dialect.escapes):
            common = json_dialect
        if common and (common.escapes or not escaped):
            break
    return common or dialect("compact")


def _find_dialect(text: str) -> Dialect | None:
    bare = _strip_padding(text)
    try:
        return find_dialect(bare, load_json(bare))
    except ValueError:
        return None


def _strip_padding(text: str) -> str:
    """Anthropic pads events with spaces before the last brace, so that their length tells nothing."""
    return text[:-1].rstrip(" ") + text[-1:] if text[-2:-1] == " " else text


class _Reader:
    """Makes pieces of data texts. Without `careful` it trusts that all are in the stream's dialect."""

    __slots__ = ("_careful", "_colon", "_spelling")

    def __init__(self, spelling: Dialect, careful: bool) -> None:
        self._spelling, self._careful = spelling, careful
        self._colon = '": ' in spelling.encode({"a": 0})

    def piece(self, fields: Entry, text: str) -> Piece:
        """`fields` has `data: None` where the data stands."""
        if text[:1] in ("{", "["):
            try:
                return self._build_json_piece(fields, text)
            except ValueError:
                pass
        return Piece(
            {
                ("text" if k == "data" else k): (text if k == "data" else v)
                for k, v in fields.items()
            }
        )

    def _build_json_piece(self, fields: Entry, text: str) -> Piece:
        bare, spelling = _strip_padding(text), self._spelling
        data = load_json(bare)
        colon = bare.find('":') + 2
        if (self._careful and spelling.encode(data) != bare) or (
            bare[colon : colon + 1] == " "
        ) is not self._colon:
            json_dialect = find_dialect(bare, data)
            if json_dialect is None:
                raise ValueError("no dialect")
            spelling = json_dialect
        return Piece(fields, data, spelling, len(text) - len(bare))


# ---------------------------------------------------------------- server-sent events


class _Style:
    """Line ends and colons of an SSE stream."""

    __slots__ = ("colon", "end", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        options = name.split()
        if not set(options) <= {"crlf", "tight"}:
            raise CassetteError(f"sse: {name!r}; it is made of the words crlf and tight")
        self.end = "\r\n" if "crlf" in options else "\n"
        self.colon = ":" if "tight" in options else ": "

    @classmethod
    def from_text(cls, text: str) -> _Style:
        line, _, _ = text.partition("\n")
        options = ["crlf"] if line.endswith("\r") else []
        if line.partition(":")[2][:1] != " ":
            options.append("tight")
        return cls(" ".join(options))

    def field(self, name: str, value: str) -> str:
        """The lines of one field; several if the value has several."""
        lines = value.split("\n")
        return "".join(f"{name}{self.colon}{line}{self.end}" for line in lines)


def sse_attempts(text: str) -> Attempts:
    style = _Style.from_text(text)
    blocks = text.split(style.end * 2)
    rest = blocks.pop()
    start = style.end.join(["", "data" + style.colon])

    def read_data_lines() -> Iterator[str]:
        for block in blocks:
            yield (style.end + block).partition(start)[2].partition(style.end)[0]

    spelling = _find_common_dialect(read_data_lines(), escaped="\\u" in text)

    def read_pieces(careful: bool) -> Iterator[Piece]:
        reader = _Reader(spelling, careful)
        seen: dict[str, dict[str, Any] | None] = {}
        for block in blocks:
            yield _read_event(block, style, reader, seen)
        if rest:
            yield Piece({"raw": rest})

    return _propose_sections(
        "events", {"sse": style.name} if style.name else {}, spelling, read_pieces
    )


def _read_event(
    block: str, style: _Style, reader: _Reader, seen: dict[str, dict[str, Any] | None]
) -> Piece:
    """One event. Nearly all are a few fields, then one line of data: the fields are parsed once and
    remembered.
    """
    mark = "data" + style.colon
    at = block.find(mark)
    if at >= 0 and (at == 0 or block[at - 1] == "\n") and "\n" not in block[at:]:
        head = block[:at]
        if head not in seen:
            seen[head] = _parse_fields(f"{head}{mark}", style)
        fields = seen[head]
        if fields is not None:
            return reader.piece(fields, block[at + len(mark) :])
    fields = _parse_fields(block, style)
    if fields is None:
        return Piece({"raw": block + style.end * 2})
    text = fields.get("data")
    if text is None:
        return Piece(fields)
    return reader.piece({**fields, "data": None}, text)


def _parse_fields(block: str, style: _Style) -> dict[str, Any] | None:
    """The fields of an event in their order, None if its lines are not all `name: value` as in this
    stream.
    """
    fields: dict[str, list[str]] = {}
    last = ""
    for line in block.split(style.end):
        name, colon, value = line.partition(style.colon)
        name = name or "comment"
        if (
            not colon
            or name not in (*_FIELDS, "data")
            or "\n" in value
            or (name in fields and name != last)
        ):
            return None
        fields.setdefault(name, []).append(value)
        last = name
    return {name: "\n".join(values) for name, values in fields.items()}


def _unfold_sse(section: Mapping[str, Any]) -> bytes:
    style, spelling = _Style(section.get("sse", "")), dialect(section.get("json", "compact"))
    return _join_entries(section, "events", lambda entry: _format_event(entry, style, spelling))


def _format_event(entry: Entry, style: _Style, spelling: Dialect) -> str:
    folded = "data" in entry
    before = after = ""
    for name in entry:
        if name == "data":
            before, after = f"{before}{after}data{style.colon}", style.end
        elif name in _FIELDS:
            after += style.field("" if name == "comment" else name, _require_text(entry, name))
        elif name == "text" and not folded:
            after += style.field("data", _require_text(entry, name))
    after += style.end
    if not folded:
        return "".join(repeated(after, pieces_of(entry)))
    return before + (after + before).join(payloads(entry, spelling)) + after


# ---------------------------------------------------------------- JSON lines


def line_attempts(text: str) -> Attempts:
    end = "\r\n" if text.partition("\n")[0].endswith("\r") else "\n"
    rows = text.split(end)
    rest = rows.pop()
    spelling = _find_common_dialect(rows, escaped="\\u" in text)

    def read_pieces(careful: bool) -> Iterator[Piece]:
        reader = _Reader(spelling, careful)
        fields: dict[str, Any] = {"data": None}
        for row in rows:
            yield reader.piece(fields, row)
        if rest:
            yield Piece({"raw": rest})

    return _propose_sections(
        "lines", {} if end == "\n" else {"newline": "crlf"}, spelling, read_pieces
    )


def _unfold_lines(section: Mapping[str, Any]) -> bytes:
    end, spelling = _Style(section.get("newline", "")).end, dialect(section.get("json", "compact"))
    return _join_entries(section, "lines", lambda entry: _format_lines(entry, end, spelling))


def _format_lines(entry: Entry, end: str, spelling: Dialect) -> str:
    if "data" in entry:
        texts = payloads(entry, spelling)
    else:
        texts = repeated(_require_text(entry, "text"), pieces_of(entry))
    return end.join([*texts, ""])


# ---------------------------------------------------------------- Amazon's event stream


def event_stream_attempts(raw: bytes) -> Attempts:
    """Frames (smithy event stream encoding): length, headers, payload, two checksums, all made anew
    when unfolded.
    """
    frames = list(split_frames(raw))
    parsed = [(frame, frame_headers(frame), frame_payload(frame)) for frame in frames]
    rest = raw[sum(map(len, frames)) :]
    texts = (payload.decode("utf-8", "replace") for _, _, payload in parsed)
    spelling = _find_common_dialect(texts, escaped=b"\\u" in raw)

    def read_pieces(careful: bool) -> Iterator[Piece]:
        reader = _Reader(spelling, careful)
        for each in parsed:
            yield _read_frame(*each, reader)
        if rest:
            yield Piece(_build_base64_entry(rest))

    return _propose_sections("frames", {}, spelling, read_pieces)


def _build_base64_entry(data: bytes) -> Entry:
    return {"base64": lines_of_base64(data)}


def lines_of_base64(raw: bytes) -> str:
    """Base64 in lines that a diff can show."""
    text = base64.b64encode(raw).decode("ascii")
    return "\n".join(text[i : i + _WIDTH] for i in range(0, len(text), _WIDTH))


def _read_frame(
    frame: bytes, headers: dict[str, str] | None, payload: bytes, reader: _Reader
) -> Piece:
    if headers is None:
        return Piece(_build_base64_entry(frame))
    try:
        text = payload.decode("utf-8")
    except UnicodeDecodeError:
        return Piece(_build_base64_entry(frame))
    piece = reader.piece({**_shorten_headers(headers), "data": None}, text)
    return _open_chunk(piece) if headers.get(STANDARD[0]) == "chunk" else piece


def _open_chunk(piece: Piece) -> Piece:
    """InvokeModelWithResponseStream wraps the model's own events in base64: {"bytes": ..., "p":
    padding}.
    """
    try:
        text = base64.b64decode(piece.data["bytes"], validate=True).decode("utf-8")
        inner = load_json(text)
    except (TypeError, KeyError, ValueError):
        return piece
    json_dialect = find_dialect(text, inner)
    if json_dialect is None or not isinstance(inner, dict):
        return piece
    return Piece(
        {**piece.fields, "opened": json_dialect.name},
        {**piece.data, "bytes": inner},
        piece.dialect,
        piece.pad,
    )


def _close_chunk(text: str, inner: Dialect, spelling: Dialect) -> str:
    data = load_json(text)
    data["bytes"] = base64.b64encode(inner.encode(data["bytes"]).encode("utf-8")).decode("ascii")
    return spelling.encode(data)


def _shorten_headers(headers: dict[str, str]) -> Entry:
    """The three headers that nearly every frame has are told by the first."""
    usual = (headers.get(STANDARD[0]), "application/json", "event")
    if tuple(headers.items()) == tuple(zip(STANDARD, usual, strict=True)):
        return {"event": usual[0]}
    return {"headers": headers}


def _unfold_frames(section: Mapping[str, Any]) -> bytes:
    spelling = dialect(section.get("json", "compact"))
    return b"".join(
        piece
        for entry in _require_entries(section, "frames")
        for piece in _encode_frames(entry, spelling)
    )


def _encode_frames(entry: Entry, spelling: Dialect) -> list[bytes]:
    kept = _decode_raw(entry)
    if kept is not None:
        return [kept]
    headers = entry.get("headers")
    if headers is None:
        headers = dict(
            zip(STANDARD, (_require_text(entry, "event"), "application/json", "event"), strict=True)
        )
    if "data" in entry:
        texts = payloads(entry, spelling)
    else:
        texts = repeated(_require_text(entry, "text"), pieces_of(entry))
    if "opened" in entry:
        texts = [_close_chunk(text, dialect(entry["opened"]), spelling) for text in texts]
    return [encode_frame(headers, text.encode("utf-8")) for text in texts]


# ---------------------------------------------------------------- back


_UNFOLD: Final[dict[str, Callable[[Mapping[str, Any]], bytes]]] = {
    "events": _unfold_sse,
    "lines": _unfold_lines,
    "frames": _unfold_frames,
}


def unfold_stream(section: Mapping[str, Any]) -> bytes:
    """The bytes of a stream. Raises CassetteError, and for what is malformed TypeError, ValueError,
    LookupError.
    """
    return _UNFOLD[next(kind for kind in _UNFOLD if kind in section)](section)


def _join_entries(section: Mapping[str, Any], kind: str, text_of: Callable[[Entry], str]) -> bytes:
    out: list[bytes] = []
    for entry in _require_entries(section, kind):
        kept = _decode_raw(entry)
        out.append(text_of(entry).encode("utf-8") if kept is None else kept)
    return b"".join(out)


def _decode_raw(entry: Entry) -> bytes | None:
    """The bytes of an entry that was kept as it was; None for any other."""
    if "raw" in entry:
        return "".join(repeated(_require_text(entry, "raw"), pieces_of(entry))).encode("utf-8")
    if "base64" in entry:
        texts = repeated(_require_text(entry, "base64").replace("\n", ""), pieces_of(entry))
        return b"".join(base64.b64decode(text, validate=True) for text in texts)
    return None


def _require_entries(section: Mapping[str, Any], kind: str) -> list[Entry]:
    entries = section[kind]
    if type(entries) is not list or not all(type(entry) is dict for entry in entries):
        raise CassetteError(f"{kind} is a list of `key: value` entries")
    for entry in entries:
        unknown = entry.keys() - _KEYS
        if unknown:
            raise CassetteError(
                f"{kind}: an entry has no {' and no '.join(sorted(map(repr, unknown)))}"
            )
    return entries


def _require_text(entry: Entry, name: str) -> str:
    value = entry[name]
    if type(value) is not str:
        raise CassetteError(f"{name}: {value!r} is not text; write it in quotes")
    return value
