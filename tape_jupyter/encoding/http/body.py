"""Exact bytes of a body <-> the readable section of a record. Pure: bytes and plain structure, no
I/O.

A *body section* holds `sha256` of the exact wire bytes and one of

    json: DIALECT, body: ...    JSON, if encoding it again in that style gives the same bytes (json_style.py);
                                `head` / `tail` are white space around it
    events: | lines: | frames:  a stream, folded (encoding/http/sse.py, encoding/http/event_folding.py)
    text: | base64:             anything else; `newline: crlf` if the text's line ends were CR LF

A content-encoded body is kept decoded, so that it can be read and edited: `encoding: gzip` is the
header's word, `plain` the sha256 of the decoded bytes, `wire` the recorded bytes. As long as the
decoded form has the digest `plain`, `wire` is replayed; once it was edited, it is compressed
afresh. A recipe to compress it again would be shorter, but other machines' zlib gives other bytes.

Every section is proven when it is made: `restore(fold(x)) == (x, False)`.
"""

from __future__ import annotations

import base64
import bisect
import functools
import hashlib
import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from tape_jupyter.encoding.http import sse
from tape_jupyter.encoding.http.aws_event_stream import split_frames
from tape_jupyter.encoding.http.completion import TerminalWatch
from tape_jupyter.encoding.http.content_encoding import (
    CAP,
    Decoder,
    TooLarge,
    codings,
    decode_body,
    decoder,
    sealed,
)
from tape_jupyter.encoding.http.json_style import (
    candidate_dialects,
    check_value,
    dialect,
    load_json,
)
from tape_jupyter.encoding.http.sse import lines_of_base64
from tape_jupyter.errors import CassetteError

__all__ = [
    "CAP",
    "Decoder",
    "TerminalWatch",
    "cut",
    "decode",
    "decoder",
    "fold_body",
    "renewed",
    "restore",
]

Section = dict[str, Any]

_SPACE: Final = " \t\r\n"
_SSE_START: Final = re.compile(r"(?:data|event|id|retry)?:")
_UNREADABLE: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_SETTINGS: Final = 400  # characters
_MALFORMED: Final = (
    TypeError,
    ValueError,
    LookupError,
    AttributeError,
    OverflowError,
    RecursionError,
    MemoryError,
)


# ---------------------------------------------------------------- bytes to section


def fold_body(
    raw: bytes,
    content_type: str = "",
    content_encoding: str = "",
    parsed: Any = None,
    *,
    digest: bool = True,
) -> Section:
    """The body section of exact wire bytes; {} for no bytes. `parsed`: their JSON, where the caller
    has read it.

    `digest`: with their sha256, which nobody needs who keeps another digest of them.
    """
    if not raw:
        return {}
    section = {"sha256": _compute_digest(raw)} if digest else {}
    if not codings(content_encoding):
        return section | _fold_plain(raw, content_type, parsed)
    try:
        plain = decode_body(raw, content_encoding)
    except TooLarge:
        return {**section, "too large to open": True, "base64": lines_of_base64(raw)}
    except ValueError:
        return section | _fold_plain(raw, content_type, parsed)
    if not plain:
        return section | {"base64": lines_of_base64(raw)}
    folded = _fold_plain(plain, content_type, parsed)
    return {
        **section,
        "encoding": content_encoding,
        **folded,
        "plain": _compute_digest(plain),
        "wire": lines_of_base64(raw),
    }


def _fold_plain(plain: bytes, content_type: str, parsed: Any = None) -> Section:
    """The first section that gives the same bytes again."""
    for section in _propose_sections(plain, content_type, parsed):
        try:
            if _restore_plain(section) == plain:
                return section
        except (CassetteError, *_MALFORMED):
            continue
    return {"base64": lines_of_base64(plain)}


def _propose_sections(plain: bytes, content_type: str, parsed: Any) -> Iterator[Section]:
    if "amazon.eventstream" in content_type or next(split_frames(plain[: 2**20]), b""):
        yield from sse.event_stream_attempts(plain)
    text, rest = _decode_text(plain)
    if _SSE_START.match(text) or "event-stream" in content_type:
        yield from _filter_readable(sse.sse_attempts(text), "events", rest)
    core = text.strip(_SPACE)
    if core[:1] in ("{", "[") or "json" in content_type:
        yield from _propose_json(text, core, parsed)
        if core[:1] == "{" and "\n" in core:
            yield from _filter_readable(sse.line_attempts(text), "lines", rest)
    if not _UNREADABLE.search(text):
        yield (
            {"text": text}
            if "\r" not in text
            else {"newline": "crlf", "text": text.replace("\r\n", "\n")}
        )
        yield {"text": text}


def _propose_json(text: str, core: str, parsed: Any) -> Iterator[Section]:
    """Sections of a JSON text: of what was parsed already, then read anew, for 1.0 may have become
    1 (cassette/match_key.py).

    Such numbers are settings, which stand around the long texts; one that is overlooked costs an
    attempt that fails.
    """
    start = len(text) - len(text.lstrip(_SPACE))
    around = {"head": text[:start], "tail": text[start + len(core) :]}
    reads: tuple[Callable[[], Any], ...] = (functools.partial(load_json, core),)
    if parsed is not None and ".0" not in core[:_SETTINGS] and ".0" not in core[-_SETTINGS:]:
        reads = (functools.partial(check_value, core, parsed), *reads)
    for read in reads:
        try:
            value = read()
        except ValueError:
            continue
        for each in candidate_dialects(core):
            yield {"json": each.name, "body": value} | {
                key: space for key, space in around.items() if space
            }


def _decode_text(plain: bytes) -> tuple[str, bytes]:
    """The text, and what is left of a character that was cut in two; ("", all) for bytes that are
    no text.
    """
    try:
        return plain.decode("utf-8"), b""
    except UnicodeDecodeError as error:
        if error.start < len(plain) - 3:
            return "", plain
        return plain[: error.start].decode("utf-8"), plain[error.start :]


def _filter_readable(attempts: Iterator[Section], kind: str, rest: bytes) -> Iterator[Section]:
    """Streams of which something could be read. One that was cut in the middle of a character ends
    in its bytes.
    """
    for section in attempts:
        if any("data" in entry for entry in section[kind]):
            yield (
                {**section, kind: [*section[kind], {"base64": lines_of_base64(rest)}]}
                if rest
                else section
            )


def _compute_digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def decode(raw: bytes, content_encoding: str = "") -> bytes | None:
    """The body with its content-encoding off; None if it cannot be taken off or expands past the
    cap.
    """
    try:
        return decode_body(raw, content_encoding)
    except ValueError:
        return None


# ---------------------------------------------------------------- section to bytes


def restore(section: Mapping[str, Any]) -> tuple[bytes, bool]:
    """The exact wire bytes of a section (b"" if it has no body), and whether they are not the
    recorded ones.

    Other keys may stand in the same mapping. Raises CassetteError for a section that is malformed.
    """
    try:
        raw = _restore_wire(section)
    except CassetteError:
        raise
    except _MALFORMED as error:
        raise CassetteError(
            f"this body cannot be made into bytes again: {type(error).__name__}: {error}"
        ) from error
    return raw, bool(raw or "sha256" in section) and _compute_digest(raw) != section.get("sha256")


def renewed(section: Mapping[str, Any]) -> tuple[Section, bytes]:
    """A section whose readable form was changed (secrets masked), with digests and wire bytes to
    fit; and its bytes.
    """
    kept = {key: value for key, value in section.items() if key not in ("sha256", "plain", "wire")}
    raw, _ = restore(kept)
    if "encoding" in kept:
        kept |= {"plain": _compute_digest(_restore_plain(kept)), "wire": lines_of_base64(raw)}
    return ({"sha256": _compute_digest(raw), **kept} if raw else kept), raw


def _restore_wire(section: Mapping[str, Any]) -> bytes:
    plain = _restore_plain(section)
    if "encoding" not in section:
        return plain
    if "wire" in section and _compute_digest(plain) == section.get("plain"):
        return _decode_base64(section["wire"], "wire")
    return sealed(plain, _require_text(section, "encoding"))


def _restore_plain(section: Mapping[str, Any]) -> bytes:
    forms = [form for form in _FORMS if form in section]
    if len(forms) > 1:
        raise CassetteError(
            f"one body only: {' and '.join(forms)} stand side by side; delete all but one"
        )
    if not forms:
        if section.keys() & {"sha256", "wire"}:
            raise CassetteError(f"the body is missing: none of {', '.join(_FORMS)} is there")
        return b""
    return _FORMS[forms[0]](section)


def _encode_json(section: Mapping[str, Any]) -> bytes:
    text = dialect(section.get("json", "compact")).encode(section["body"])
    return f"{section.get('head', '')}{text}{section.get('tail', '')}".encode()


def _encode_text(section: Mapping[str, Any]) -> bytes:
    text = _require_text(section, "text")
    newline = section.get("newline", "lf")
    if newline not in ("lf", "crlf"):
        raise CassetteError(f"newline: {newline!r} is neither lf nor crlf")
    return (text.replace("\n", "\r\n") if newline == "crlf" else text).encode("utf-8")


def _require_text(section: Mapping[str, Any], key: str) -> str:
    value = section[key]
    if type(value) is not str:
        raise CassetteError(f"{key}: {value!r} is not text; write it in quotes")
    return value


def _decode_base64(text: Any, key: str) -> bytes:
    if type(text) is not str:
        raise CassetteError(f"{key} is not text")
    try:
        return base64.b64decode(text.replace("\n", ""), validate=True)
    except ValueError as error:
        raise CassetteError(f"{key} is not base64: {error}") from None


_FORMS: Final[dict[str, Callable[[Mapping[str, Any]], bytes]]] = {
    "body": _encode_json,
    "events": sse.unfold_stream,
    "lines": sse.unfold_stream,
    "frames": sse.unfold_stream,
    "text": _encode_text,
    "base64": lambda section: _decode_base64(section["base64"], "base64"),
}


# ---------------------------------------------------------------- chunks


_BOUNDARY: Final = re.compile(rb"\r?\n\r?\n|\r\r")


def cut(body: bytes, reads: list[int], content_type: str = "") -> list[bytes]:
    """The body in its recorded network reads; after an edit in as many at most, in proportion,
    events kept whole.
    """
    ends = list(itertools.accumulate(reads))
    if ends and ends[-1] != len(body):
        ends = _move_ends(ends, body, content_type)
    elif not ends:
        ends = [len(body)] if body else []
    return [body[start:end] for start, end in itertools.pairwise([0, *ends])]


def _move_ends(ends: list[int], body: bytes, content_type: str) -> list[int]:
    length, total = len(body), ends[-1]
    new_ends = [end * length // total for end in ends] if total else [length]
    if "event-stream" in content_type or _SSE_START.match(body[:8].decode("latin-1")):
        borders = [match.end() for match in _BOUNDARY.finditer(body)] or [length]
        new_ends = [
            borders[min(bisect.bisect_left(borders, end), len(borders) - 1)] for end in new_ends
        ]
    new_ends[-1] = length
    return sorted({end for end in new_ends if end})
