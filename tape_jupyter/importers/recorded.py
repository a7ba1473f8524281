"""What HTTP recordings share: headers as maps, bodies in several spellings, an exchange as a call."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from tape_jupyter.core.call import Headers, Reply, Request
from tape_jupyter.importers import rebuild, yaml
from tape_jupyter.importers.source import Source, TraceError, needs
from tape_jupyter.importers.trace import Call, Grade, Item, Origin, Skipped

LOST = "chunk borders and pace"
_CODED = ("content-encoding", "content-length", "transfer-encoding")


def document(source: Source) -> Any:
    """A JSON document, or a YAML one. Raises TraceError naming the line."""
    if source.head_text[:1] in ("{", "["):
        return source.json()
    try:
        return yaml.load_document(source.text(), needs("yaml", "YAML recordings", source.name))
    except yaml.YamlError as error:
        raise TraceError(error.reason, path=source.name, line=error.line) from None


def has_key(source: Source, name: str) -> bool:
    """Whether it is YAML with this key at its top, after whatever comments."""
    return re.search(rf"^{name}:\s", source.head_text + "\n", re.MULTILINE) is not None


def read_headers(headers: Any) -> Headers:
    """Headers from a map of names to a value or to values, or from a list of pairs."""
    if isinstance(headers, Mapping):
        return tuple((_to_text(name), _to_text(each)) for name, each in _iterate_pairs(headers))
    return tuple((_to_text(each[0]), _to_text(each[1])) for each in headers or () if len(each) == 2)


def _iterate_pairs(headers: Mapping[Any, Any]) -> Iterator[tuple[Any, Any]]:
    for name, values in headers.items():
        yield from ((name, each) for each in (values if isinstance(values, list) else [values]))


def _to_text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def data_of(body: Any) -> bytes:
    """A body's bytes: text, bytes, nothing, a map with `string` or `base64_string`, or JSON."""
    if body is None:
        return b""
    if isinstance(body, Mapping):
        if body.get("base64_string") is not None:
            return base64.b64decode(data_of(body["base64_string"]))
        is_told = not body or {"string", "encoding"} & body.keys()
        return data_of(body.get("string")) if is_told else rebuild.compact(body)
    if isinstance(body, bytes):
        return body
    if isinstance(body, str):
        return body.encode("utf-8", "surrogatepass")
    return rebuild.compact(body)


def without_coding(headers: Headers) -> Headers:
    """The headers of a body whose content-encoding was taken off."""
    return tuple((name, value) for name, value in headers if name.lower() not in _CODED)


def decoded_headers(headers: Headers, body: bytes) -> Headers:
    """The headers that are true of the body: recorders take the content-encoding off, and leave its
    header.
    """
    lowered = {name.lower(): value for name, value in headers}
    coding = lowered.get("content-encoding", "").strip().lower()
    starts = {"gzip": (b"\x1f\x8b",), "deflate": (b"\x78",), "zstd": (b"\x28\xb5\x2f\xfd",)}
    if not coding or not body:
        return headers
    if coding in starts:
        if body.startswith(starts[coding]):
            return headers
        return without_coding(headers)
    if body[:1] in (b"{", b"[", b"e", b"d", b"<"):
        return without_coding(headers)
    return headers


def parse_moment(value: Any) -> float:
    """Seconds of the epoch of an ISO or RFC 2822 time; 0.0 for none."""
    text = str(value or "")
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            at = read(text)
        except (ValueError, TypeError, OverflowError, IndexError):
            continue
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    return 0.0


def recorded_exchange(  # noqa: PLR0913 - what an exchange is
    source: Source, number: int, system: str, request: Request, reply: Reply, *, grade: Grade = "W",
    missing: list[str] | None = None, assumed: list[str] | None = None, start: float = 0.0, line: int = 0,
) -> Item:  # fmt: skip
    """One request with its reply as a call; a URL that is none is a Skipped."""
    if "://" not in request.url:
        return Skipped("an interaction without a whole URL", line=line)
    lost = [LOST] if missing is None else missing
    if start == 0.0:  # the reply says when it was made
        start = parse_moment(reply.header("date"))
    return Call(
        f"{number}", "http", request, reply, grade, Origin(system, source.name, f"{number}", line), start=start,
        missing=lost, assumed=assumed or [],
    )  # fmt: skip


def status_of(value: Any) -> int:
    """A status; 200 where it is none that can be."""
    code = str((value.get("code") if isinstance(value, Mapping) else value) or "")
    if code.isdigit() and len(code) == 3 and code[0] != "0":
        return int(code)
    return 200
