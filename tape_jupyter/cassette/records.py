"""Calls <-> records. Both directions of what a `call:` record says, in one file; no file is touched
here.

The order of the head keys matters: opening a cassette reads `call`, `run`, `match`, `exact` and
`lineage` from a record's first lines and parses nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from http import HTTPStatus
from pathlib import Path
from typing import Any, get_args

from tape_jupyter.cassette import external_texts
from tape_jupyter.cassette.growing_history import Spelled
from tape_jupyter.core import large_body
from tape_jupyter.core.call import (
    End,
    FunctionCall,
    Headers,
    Reply,
    Request,
    Value,
    Where,
    header_value,
)
from tape_jupyter.encoding.http import body as http_body
from tape_jupyter.encoding.http.content_encoding import decode_body
from tape_jupyter.encoding.values import generators
from tape_jupyter.encoding.values.mutations import frozen_or_type
from tape_jupyter.errors import CassetteError
from tape_jupyter.secrets.registry import Secrets


def moment_text(at: datetime) -> str:
    """A moment (UTC) as records tell it: `2026-03-01T12:00:00.000Z`."""
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(slots=True)
class Head:
    """What a record says of a call besides its request and its reply.

    `clean` is not written: the Secrets.version that found nothing in the request (match_key.MatchedRequest);
    nor are `request_json` and `reply_json`, the JSON of the two bodies where they were read on the way, and
    `spelled`, the request's as a record shows it, where that is proven. `frozen`
    says that the call did not go out: "stub", or the recorded call that answered it ("RUN/ID").
    `diverged` says what became of a replayed call that was not recorded: "live", "stale" (`frozen`
    names what answered it), "hand" (a person's reply).
    """

    call: str
    run: str
    match: str
    kind: str
    where: Where
    at: str
    seconds: float
    kit: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    failed: str = ""
    exact: str = ""
    clean: int = 0
    frozen: str = ""
    diverged: str = ""
    request_json: Any = None
    reply_json: Any = None
    discriminator: str = ""
    spelled: Spelled | None = None

    def record(self) -> dict[str, Any]:
        span = list(self.where.span)
        optional = {
            "exact": self.exact,
            "lineage": self.where.lineage,
            "apart": self.discriminator,
            "kind": self.kind,
            "name": self.name,
            "parent": self.where.parent,
            "span": " / ".join(span),
            "at": self.at,
            "seconds": round(self.seconds, 4),
            "failed": self.failed,
            "frozen": self.frozen,
            "diverged": self.diverged,
            "kit": dict(self.kit),
        }
        fields = {key: value for key, value in optional.items() if value not in ("", [], {})}
        return {"call": self.call, "run": self.run, "match": self.match, **fields}

    def answered(self) -> dict[str, Any]:
        """What an override says of a live answer to a recorded call: everything that is not that
        call's own.
        """
        kept = ("at", "seconds", "failed", "frozen", "kit")
        return {
            "by": self.run,
            **{key: value for key, value in self.record().items() if key in kept},
        }


def scrubbed_head(head: Head, secrets: Secrets) -> dict[str, Any]:
    """The head keys without known secrets: errors quote keys, tags and names are people's own
    words.
    """
    record = replace(head, exact="").record()  # a digest of what is masked would help to guess it
    for key, value in record.items():
        if key not in ("call", "run", "match", "apart"):
            record[key] = secrets.scrub_structure(value)[0]
    return record


def masked_record(record: dict[str, Any], secrets: Secrets | None) -> dict[str, Any]:
    """A run or end record without known secrets: errors quote keys, kits name people. What runs and
    cells are told apart by is ours, and stays as it is: people's patterns may well be found in a
    digest.
    """
    clean = secrets.scrub_structure(record)[0] if secrets is not None else record
    kept = {key: record[key] for key in _OURS if key in record}
    return {**clean, **kept} if isinstance(clean, dict) else record


_OURS = (
    "run",
    "source",
    "session",
    "parent",
    "alike",
    "alike in",
    "ran",
    "order",
    "timers",
    "shown",
    "left",
    "wrote",
)


def kit_like(run: str, kit: Mapping[str, Any], base: Mapping[str, Any] | None) -> dict[str, Any]:
    """A `kit:` record; beside a `base` run, what differs from that one's kit, and null for what it
    had more.
    """
    if base is None:
        return {"kit": run, "has": dict(kit)}
    before = base.get("kit", {})
    has = {name: value for name, value in kit.items() if before.get(name) != value}
    for name in before:
        if name not in kit and name not in FAST and before[name] is not None:
            has[name] = None
    return {"kit": run, "like": base["run"], "has": has}


FAST = ("clock", "random")
"""Parts of a kit that stand in the `run:` record itself (audit/environment.py)."""


def kit_whole(
    record: Mapping[str, Any], run_record: Mapping[str, Any], base: Mapping[str, Any] | None
) -> dict[str, Any]:
    """A run's whole kit: what its own record says, its `kit:` record, and the kit that one is
    `like`.
    """
    before = _require_mapping(base.get("kit", {}), "kit") if base is not None else {}
    like = {name: value for name, value in before.items() if name not in FAST}
    kit = {
        **_require_mapping(run_record.get("kit", {}), "kit"),
        **like,
        **_require_mapping(record.get("has", {}), "has"),
    }
    return {name: value for name, value in kit.items() if value is not None}


def request_section(
    call: Request | FunctionCall,
    secrets: Secrets,
    parsed: Any = None,
    *,
    digest: bool = True,
    spelled: Spelled | None = None,
) -> dict[str, Any]:
    """`request:` of a record: what was asked, without what may not be kept. `parsed` is its JSON,
    where it was read, `spelled` its body where that is proven to be these bytes.

    `digest`: with the sha256 of its body.
    """
    if isinstance(call, FunctionCall):
        return _build_function_section(call)
    if call.large is not None:
        body = large_section(call.large)
    elif spelled is not None and not digest:
        body = spelled._asdict()
    else:
        kinds = call.header("content-type"), call.header("content-encoding")
        body = http_body.fold_body(call.body, *kinds, parsed, digest=digest)
    section: dict[str, Any] = {method_key(call): secrets.scrub_url(call.url)}
    headers = headers_record(secrets.safe_request_headers(call.headers))
    if headers:
        section["headers"] = headers
    return {**section, **body}


def _build_function_section(call: FunctionCall) -> dict[str, Any]:
    arguments = {name: frozen_or_type(value) for name, value in call.arguments.items()}
    section: dict[str, Any] = {call.kind: call.name, "arguments": arguments}
    if call.instance is not None:
        section["self"] = frozen_or_type(call.instance)
    return section


def method_key(call: Request) -> str:
    """What the URL of a request stands under: its method in lower case, unless that is a word of
    the format.
    """
    lower = call.method.lower()
    # `head`: white space before a JSON body
    taken = lower in _TAKEN or (lower == "head" and call.body)
    return call.method if taken else lower


_TAKEN = frozenset({
    "tool", "retrieval", "arguments", "headers", "scrubbed", "reads", "sha256", "json", "body", "tail", "events",
    "lines", "frames", "text", "newline", "base64", "encoding", "plain", "wire", "large",
})  # fmt: skip


def response_section(reply: Reply | Value, secrets: Secrets, parsed: Any = None) -> dict[str, Any]:
    """`response:` of a record: a reply (`parsed`: its JSON, where it was read), or a function's
    value or exception.
    """
    if isinstance(reply, Value):
        return _build_value_section(reply)
    section: dict[str, Any] = {}
    if reply.status is not None:
        section = _build_head_section(reply, secrets)
        section |= _build_body_section(reply, parsed)
    if len(reply.chunks) > 1:
        chunks = reply.chunks
        if isinstance(chunks, large_body.LargeChunks):
            section["reads"] = chunks.sizes
        else:
            section["reads"] = list(map(len, chunks))
    if reply.waits:
        section["waits"] = [round(wait, 4) for wait in reply.waits]
    if reply.end != "complete":
        section["end"] = reply.end
    if reply.error is not None:
        section["error"] = dict(reply.error)
    return section


def _build_value_section(value: Value) -> dict[str, Any]:
    """What a function gave or raised, and what it did; of a value that could not be kept, why."""
    section: dict[str, Any] = {}
    if value.unkept:
        section["unkept"] = value.unkept
        if value.did:
            section["did"] = dict(value.did)
        return section
    if value.error is not None:
        section["error"] = dict(value.error)
    else:
        section["value"] = value.value
    if value.effects:
        section["effects"] = dict(value.effects)
    if value.moved:
        section["moved"] = dict(value.moved)
    if value.did:
        section["did"] = dict(value.did)
    if value.changed:
        section["changed"] = list(value.changed)
    return section


def _build_body_section(reply: Reply, parsed: Any) -> dict[str, Any]:
    if isinstance(reply.chunks, large_body.LargeChunks):
        return large_section(reply.chunks.body)
    return http_body.fold_body(
        reply.body, reply.header("content-type"), reply.header("content-encoding"), parsed
    )


def large_section(body: large_body.LargeBody) -> dict[str, Any]:
    """What stands for a large body: its digest, and where it lies."""
    masked = {"scrubbed": True} if body.masked else {}
    return {"sha256": body.sha256, "large": {external_texts.BYTES: body.sha256}, **masked}


def _build_head_section(reply: Reply, secrets: Secrets) -> dict[str, Any]:
    _require_status(reply.status)
    secrets.learn_cookies(reply.headers, lambda: _decode_body(reply))
    headers, masked = secrets.scrub_reply_headers(reply.headers)
    section: dict[str, Any] = {"status": reply.status}
    if reply.version != "HTTP/1.1":
        section["version"] = reply.version
    if reply.reason != phrase(reply.status):
        section["reason"] = reply.reason
    if headers:
        section["headers"] = headers_record(headers)
    if masked:
        section["scrubbed"] = True
    return section


def _decode_body(reply: Reply) -> bytes:
    coding = reply.header("content-encoding")
    try:
        return decode_body(reply.readable, coding) if coding else reply.readable
    except ValueError:  # also where it is too large
        return reply.readable


@lru_cache(maxsize=64)
def phrase(status: int | None) -> str:
    try:
        return HTTPStatus(status or 0).phrase
    except ValueError:
        return ""


def headers_record(headers: Headers) -> dict[str, str] | list[dict[str, str]]:
    """One map, or a list of maps where a name repeats. A value folded over lines is one line (RFC
    9112, 5.2).
    """
    pairs = [(_FOLDED.sub(" ", name), _FOLDED.sub(" ", value)) for name, value in headers]
    once = dict(pairs)
    if len(once) == len(pairs):
        return once
    return [{name: value} for name, value in pairs]


_FOLDED = re.compile(r"[\r\n\0]+[ \t]*")


def scrubbed(section: dict[str, Any], secrets: Secrets) -> dict[str, Any]:
    """A `request:` or `response:` without known secrets; its digests and reads are then of the
    masked bytes.
    """
    masked, changed = secrets.scrub_structure(
        {k: v for k, v in section.items() if k not in ("sha256", "plain", "wire")}
    )
    if not changed or not isinstance(masked, dict):
        return section
    if "large" in section:  # what lies in its file was masked on its way there
        kept = {key: section[key] for key in ("sha256", "large")}
        return {**masked, **kept, "scrubbed": True}
    if "sha256" in section:
        fresh, raw = http_body.renewed(masked)
        masked = {**masked, **fresh}
        if "reads" in masked:
            chunks = http_body.cut(raw, masked["reads"], _read_content_type(masked))
            masked["reads"] = list(map(len, chunks))
    return {**masked, "scrubbed": True}


def _read_content_type(section: Mapping[str, Any]) -> str:
    return header_value(section_headers(section.get("headers")), "content-type")


# ---------------------------------------------------------------- back


def section_request(
    section: Mapping[str, Any], folder: Path | None = None
) -> Request | FunctionCall:
    """The call that a (resolved) `request:` describes. Function arguments stay frozen.

    `folder`: where large bodies lie.
    """
    for kind in ("tool", "retrieval"):
        if kind in section:
            arguments = _require_mapping(section.get("arguments", {}), "arguments")
            instance = section.get("self")
            if instance is not None:
                instance = _require_mapping(instance, "self")
            return FunctionCall(str(section[kind]), arguments, kind, instance=instance)
    method, url = _read_method_and_url(section)
    headers = section_headers(section.get("headers"))
    if "large" in section:
        return Request(method.upper(), url, headers, large=_read_large_body(section, folder))
    body, _ = http_body.restore(section)
    return Request(method.upper(), url, headers, body)


def _read_method_and_url(section: Mapping[str, Any]) -> tuple[str, str]:
    method = next(iter(section), "")
    url = section.get(method)
    if not isinstance(url, str) or "://" not in url:
        raise CassetteError("a request begins with its method and URL, like `post: https://...`")
    return method, url


def require_address(section: Mapping[str, Any]) -> None:
    """Raises CassetteError for a `request:` whose URL was masked: no reader would know it for a
    request.
    """
    if section.keys() & {"tool", "retrieval"}:
        return
    try:
        _read_method_and_url(section)
    except CassetteError:
        method, url = next(iter(section.items()), ("", ""))
        masked = f"its URL was taken for a secret and masked ({method!r:.80}: {url!r:.80})"
        told = masked if "<secret:" in str(url) else f"{method!r:.80}: {url!r:.80} is no address"
        raise CassetteError(told) from None


def without_body(section: Mapping[str, Any]) -> dict[str, Any]:
    """A `request:` with its method, URL and headers alone."""
    method = next(iter(section), "")
    return {key: value for key, value in section.items() if key in (method, "headers")}


def _read_large_body(section: Mapping[str, Any], folder: Path | None) -> large_body.LargeBody:
    if folder is None:
        raise CassetteError("a large body lies beside its cassette, and is read with it only")
    return external_texts.read_large_body(section["large"], folder)


def section_reply(
    section: Mapping[str, Any], folder: Path | None = None
) -> tuple[Reply | Value, bool]:
    """The reply that a (resolved) `response:` describes, and whether its body was edited by hand.

    `folder`: where large bodies lie.
    """
    if _is_value(section):
        return _read_value(section), False
    if "status" not in section:
        end, error = _read_end(section), _read_error(section)
        return Reply(None, end=end, error=error, waits=_read_waits(section)), False
    status = section["status"]
    _require_status(status)
    headers = section_headers(section.get("headers"))
    chunks, edited = _read_chunks(section, headers, folder)
    # an edit may have left more chunks than waits: the last wait is that of all the others
    waits = _read_waits(section)
    waits = waits[: len(chunks)] + (waits[-1:] or (0.0,)) * (len(chunks) - len(waits))
    reply = Reply(
        status,
        headers,
        chunks,
        waits,
        _read_end(section),
        _read_error(section),
        str(section.get("version", "HTTP/1.1")),
        str(section.get("reason", phrase(status))),
    )
    return reply, edited


def _is_value(section: Mapping[str, Any]) -> bool:
    """Whether a `response:` is a function's. An HTTP reply may have an error too, but then it says
    when or how it ended.
    """
    if {"status", "waits", "end"} & section.keys():
        return False
    return bool({"value", "error", "unkept"} & section.keys())


def _read_value(section: Mapping[str, Any]) -> Value:
    effects = _require_mapping(section.get("effects", {}), "effects")
    moved = _require_mapping(section.get("moved", {}), "moved")
    did = _require_mapping(section.get("did", {}), "did")
    changed = section.get("changed", [])
    if not isinstance(changed, list):
        raise CassetteError("`changed` lists types, each on its line")
    return Value(
        section.get("value"),
        _read_error(section),
        0.0,
        str(section.get("unkept", "")),
        effects,
        moved,
        did,
        tuple(map(str, changed)),
    )


def _read_chunks(
    section: Mapping[str, Any], headers: Headers, folder: Path | None
) -> tuple[Sequence[bytes], bool]:
    if "large" in section:
        body = _read_large_body(section, folder)
        sizes = _read_chunk_sizes(section) if "reads" in section else [body.size]
        if sum(sizes) >= 1 << 62:
            raise CassetteError("reads: more bytes than any body has")
        return large_body.LargeChunks(body, sizes), body.sha256 != section.get("sha256")
    raw, edited = http_body.restore(section)
    if "reads" in section:
        content_type = header_value(headers, "content-type")
        return tuple(http_body.cut(raw, _read_chunk_sizes(section), content_type)), edited
    return ((raw,) if raw else ()), edited


def _require_status(status: Any) -> None:
    """What no reader takes is not written either: one such record would close the whole file to it."""
    if type(status) is not int or not 100 <= status <= 999:
        raise CassetteError(f"status {status!r:.80} is not a number from 100 to 999")


def true_length(reply: Reply, edited: bool) -> Reply:
    """The declared length follows the body where all of it is there: after an edit, a mask, or
    where it is not true.

    A reply without a body keeps its own (HEAD, 304), and one that broke off promised more than
    came.
    """
    if reply.end != "complete" or not (reply.chunks or edited):
        return reply
    length = str(reply.size)
    if header_value(reply.headers, "content-length", length) == length:
        return reply
    headers = tuple((k, length if k.lower() == "content-length" else v) for k, v in reply.headers)
    return replace(reply, headers=headers)


_splits = re.compile("[\r\n\0]").search


def section_headers(section: Any) -> Headers:
    """Header pairs from their record. Raises CassetteError for a name or value that would split a
    response.
    """
    if section is None:
        return ()
    maps = [section] if isinstance(section, dict) else section
    if not isinstance(maps, list) or not all(isinstance(one, dict) for one in maps):
        raise CassetteError("headers are written as `name: value` lines")
    pairs = tuple((name, value) for one in maps for name, value in one.items())
    for name, value in pairs:
        if type(value) is not str:
            raise CassetteError(
                f'the value of header {name!r} is not text; write it in quotes: "{value}"'
            )
        if _splits(name) or _splits(value):
            raise CassetteError(
                f"header {name[:80]!r} holds a line break or NUL; write its value on one line"
            )
    return pairs


def _read_chunk_sizes(section: Mapping[str, Any]) -> list[int]:
    reads = section["reads"]
    if not isinstance(reads, list) or not all(type(n) is int and n >= 0 for n in reads):
        raise CassetteError("reads is a list of byte counts")
    return reads


def _read_waits(section: Mapping[str, Any]) -> tuple[float, ...]:
    waits = section.get("waits", [])
    if not isinstance(waits, list) or not all(
        type(n) in (int, float) and 0 <= n < _FOR_EVER for n in waits
    ):
        raise CassetteError("waits is a list of seconds")
    return tuple(float(n) for n in waits)


_FOR_EVER = 1e9


_ENDS = get_args(End)


def _read_end(section: Mapping[str, Any]) -> End:
    end = section.get("end", "complete")
    if end not in _ENDS:
        raise CassetteError(f"end is one of {', '.join(_ENDS)}, not {end!r}")
    return end  # type: ignore[no-any-return]  # just checked


def _read_error(section: Mapping[str, Any]) -> Mapping[str, Any] | None:
    error = section.get("error")
    return None if error is None else _require_mapping(error, "error")


def _require_mapping(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise CassetteError(f"`{name}:` holds `key: value` lines")
    return value


def with_late(
    reply: Reply, parts: Sequence[Mapping[str, Any]], folder: Path | None = None
) -> tuple[Reply, bool]:
    """A reply and the `more:` records after it (bytes that came after its terminal event) as one;
    whether edited.
    """
    any_edited = False
    for part in parts:
        late, edited = section_reply({"status": reply.status, **part}, folder)
        if not isinstance(late, Reply):
            raise CassetteError("a `more:` record holds late bytes of an HTTP reply, or its error")
        chunks = large_body.join_chunks(reply.chunks, late.chunks)
        waits = (*reply.waits, *late.waits)
        reply = replace(reply, chunks=chunks, waits=waits, end=late.end, error=late.error)
        any_edited = any_edited or edited
    return reply, any_edited


def with_late_steps(value: Value, parts: Sequence[Mapping[str, Any]]) -> Value:
    """What a generator did, and what it did after its cell had ended (the `more:` records after
    it), as one.
    """
    for part in parts:
        effects = {**value.effects, **_require_mapping(part.get("effects", {}), "effects")}
        did = {**value.did, **_require_mapping(part.get("did", {}), "did")}
        steps = generators.join_states(value.value, part.get("value"))
        value = replace(value, value=steps, effects=effects, did=did)
    return value
