"""When two calls are the same, and how two that are not differ. Pure: reads nothing, decides
nothing.

Same means: method, URL (secrets and volatile query keys out) and canonical JSON body; for tools the
name and the bound arguments. Headers never count: keys, retry counters, idempotency keys and trace
ids vary per run.

Two calls of one match key may still differ: in a value that was masked, in the state of an argument
that cannot be written, in a method's own object. `discriminator` is a digest of that; what takes no part in
it is named (Asked).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from operator import itemgetter
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from tape_jupyter.cassette.growing_history import BodyHistory, Canonical, GrowingBody, Spelled
from tape_jupyter.core.call import FunctionCall, Request
from tape_jupyter.core.user_code import name_cells
from tape_jupyter.encoding.http.body import decode
from tape_jupyter.encoding.http.json_style import encoder
from tape_jupyter.encoding.values.mutations import frozen_or_type
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.secrets.masked_values import MaskedValues
from tape_jupyter.secrets.registry import Secrets, is_login_query

VOLATILE_QUERY = frozenset({"api_key", "apikey", "access_token", "sig", "signature"})
_AZURE = frozenset(
    {"se", "st", "sp", "sv", "sr", "spr", "skoid", "sktid", "skt", "ske", "sks", "skv"}
)
# links that carry their own credentials
_SIGNED = (
    ("x-amz-signature", "x-amz-"),
    ("x-goog-signature", "x-goog-"),
)
TELLING_HEADERS = frozenset({"x-amz-target", "soapaction", "range"})
WHO_QUERY = frozenset({"key", "api_key", "apikey", "access_token", "auth_token", "id_token"})
_PASSING_HEADERS = re.compile(
    r"host|connection|keep-alive|te|expect|content-length|transfer-encoding|accept-encoding|user-agent|sec-websocket-key"
    r"|b3|baggage|elastic-apm|newrelic|x-stainless-.*|x-amz-.*|amz-sdk-.*|x-b3-.*|x-datadog-.*|dd-.*"
    r"|.*(?:trace|span|request-?id|correlation|idempoten|client-user-agent).*"
    r"|(?:.*-)?(?:date|time|timestamp|timeout|nonce|signature|retry|attempt)(?:-.*)?"
)
"""What a client sets anew for each request, or for a connection."""
_PASSING_COOKIES = re.compile(
    r"_?_?cf|awsalb|incap_|visid_|arraffinity|gclb|bigip|ak_bmsc", re.IGNORECASE
)
"""Cookies that the machines before a server set of their own."""
VOLATILE_BODY = frozenset({"idempotency_key", "idempotencyKey", "client_request_id"})
_BOUNDARY = re.compile(r"""boundary="?([^";]+)"?""", re.IGNORECASE)
_STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d+|\*)\]")


class IgnorePath:
    """A JSON path of `--ignore`: `$.metadata.ts`, `messages[*].id`, `input[0].id`."""

    def __init__(self, text: str) -> None:
        body = text.removeprefix("$")
        self.steps = [name or index for name, index in _STEP.findall(body)]
        if not self.steps or _STEP.sub("", body):
            raise TapeUsageError(
                f"--ignore {text!r} is not a JSON path; write it like $.metadata.ts or messages[*].id"
            )

    def drop(self, value: Any) -> Any:
        """The same value without what the path names."""
        return _remove_path(value, self.steps)


def _remove_path(value: Any, steps: Sequence[str]) -> Any:
    """`value` without what the steps lead to: each is a key, a place in a list, or `*` for all."""
    step, rest = steps[0], steps[1:]
    if isinstance(value, dict):
        kept = {}
        for name, item in value.items():
            if step not in ("*", name):
                kept[name] = item
            elif rest:
                kept[name] = _remove_path(item, rest)
        return kept
    if isinstance(value, list) and (step == "*" or step.isdigit()):
        items = []
        for place, item in enumerate(value):
            if step != "*" and place != int(step):
                items.append(item)
            elif rest:
                items.append(_remove_path(item, rest))
        return items
    return value


def match_key(
    call: Request | FunctionCall, secrets: Secrets, ignore: Sequence[IgnorePath] = ()
) -> str:
    """32 hex digits that are equal exactly when two calls are the same."""
    if isinstance(call, FunctionCall):
        return asked_function(call, secrets).match
    return match_request(call, secrets, ignore).match


def recorded_key(call: Request | FunctionCall, ignore: Sequence[IgnorePath] = ()) -> str:
    """`match_key` of a call as it stands in a cassette: masked, the arguments of a function frozen."""
    if isinstance(call, FunctionCall):
        arguments = {name: _reduce_opaque_to_type(value) for name, value in call.arguments.items()}
        return _compute_digest(f"{call.kind} {call.name}", canonical(arguments))
    return match_key(call, Secrets(), ignore)


def _compute_digest(what: str, text: str) -> str:
    return hashlib.sha256(f"{what}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()[:_MATCH]


_MATCH = 32  # hex digits


class MatchedRequest(NamedTuple):
    """A request as it is matched, with what was found out on the way, so that no body is read
    twice.

    `match` and `exact` are its digests, `json` its parsed body where that was needed, `clean` the
    Secrets.version that had nothing to hold back in its body (0: not known).

    `discriminator` tells calls with the same match key apart, "" where they are the same; `by_value` names
    what it is made of, a credential's name and a method's object aside. What takes no part in it is
    named: `by_type` what counts by its type or in samples, `masked` weak values that were masked,
    `given` what a replay gave the program a marker for. `plain` is what tells calls apart that are
    the same else, by name; it is never written. `spelled` is its body as a record shows it, where that is proven,
    `news` as much of `json` as is new, where it goes on from an earlier request.
    """

    match: str
    exact: str = ""
    json: Any = None
    clean: int = 0
    discriminator: str = ""
    by_type: tuple[str, ...] = ()
    masked: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    by_value: tuple[str, ...] = ()
    plain: tuple[tuple[str, Any], ...] = ()
    spelled: Spelled | None = None
    news: Any = None

    @property
    def hidden(self) -> bool:
        """Whether there is more to the call than its match key."""
        return bool(self.discriminator or self.given or self.untold)

    @property
    def untold(self) -> tuple[str, ...]:
        """What of the call is not on the tape."""
        return (*self.by_type, *self.masked)


def match_request(
    request: Request,
    secrets: Secrets,
    ignore: Sequence[IgnorePath] = (),
    exact: str = "",
    growing: GrowingBody | None = None,
) -> MatchedRequest:
    """`match_key` of a request, and what it was made from. `growing`: its body, where that may go on
    from the one of an earlier request.
    """
    version = secrets.version
    masked = MaskedValues(f"{request.method} {request.url.partition('?')[0]}", secrets)
    address = _build_address(request, secrets)
    read = spelled = news = None
    if growing is not None and not (ignore or request.large or "content-encoding" in request.named):
        read = growing.read(address, _CANONICAL, secrets)
    if read is not None:
        match, value, clean, spelled, news = read
        match = match[:_MATCH]
    else:
        text, value, clean = _read_counted_body(request, secrets, ignore, masked)
        match = _compute_digest(address, text)
    in_query = "?" in request.url and _note_masked_query(request.url, masked)
    matched_request = MatchedRequest(
        match, exact, value, version if clean else 0, spelled=spelled, news=news
    )
    matched_request = _add_masked_values(matched_request, masked)
    # a digest of it would help to guess it
    return (
        matched_request._replace(exact="")
        if in_query or matched_request.hidden
        else matched_request
    )


def _add_masked_values(matched_request: MatchedRequest, masked: MaskedValues) -> MatchedRequest:
    if not (masked.parts or masked.weak or masked.given or masked.asking):
        return matched_request
    return matched_request._replace(
        discriminator=_digest_parts(masked.parts),
        masked=tuple(masked.weak),
        given=tuple(masked.given),
        by_value=tuple(masked.keyed),
        plain=(*masked.weak.items(), *masked.asking.items()),
    )


def _digest_parts(parts: Sequence[str]) -> str:
    return _compute_digest("apart", "\n".join(sorted(parts)))[:16] if parts else ""


def _note_masked_query(url: str, masked: MaskedValues) -> bool:
    """Tell of the query's values that are masked; whether there are any. Those that only say who
    asks take no part.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    query = parse_qsl(parts.query, keep_blank_values=True, errors=_BYTES)
    names = {name.lower() for name, _ in query}
    volatile = _find_volatile_names(names, parts.netloc)
    if "key-pair-id" not in names:  # CloudFront's signature is another one each time; others count
        volatile -= {"signature"}
    any_masked = False
    for name, value in query:
        counts = name.lower() not in volatile and not is_login_query(name)
        is_masked = masked.secrets.masks_query(name, value) or value.startswith("<secret:")
        if is_masked or masked.secrets.suspicious(value):
            any_masked = True
            if counts:
                masked.add(f"?{name}=", value)
            elif name.lower() in WHO_QUERY:
                masked.asking[f"?{name}="] = value
        elif counts and name.lower() == "signature":  # which the match key is without
            masked.parts.append(f"?{name}={value}")
            masked.keyed[f"?{name}="] = None
    return any_masked


def asked_function(
    call: FunctionCall, secrets: Secrets, states: Sequence[str] = ()
) -> MatchedRequest:
    """`match_key` of a function call. `states` tell apart what of it cannot be written
    (function_capture.as_asked).
    """
    frozen: Any = {}
    for name, value in call.arguments.items():
        frozen[name] = _reduce_opaque_to_type(frozen_or_type(value))
    label = f"{call.kind} {call.name}"
    text = canonical(frozen)
    masked = MaskedValues(label, secrets)
    if secrets.suspicious(text):
        clean = secrets.scrub_structure(frozen)[0]
        masked.compare(frozen, clean)
        text = canonical(clean)
    masked.parts += states
    return _add_masked_values(MatchedRequest(_compute_digest(label, text)), masked)


def _reduce_opaque_to_type(structure: Any) -> Any:
    """An argument as it counts for the match key: one that cannot be written by its type."""
    opaque = type(structure) is dict and "<opaque>" in structure
    return {"<opaque>": structure["<opaque>"]} if opaque else structure


def read_identity_headers(request: Request) -> tuple[tuple[str, str], ...]:
    """The headers of a request that say who asks, for what, or in which form. They do not count,
    since they vary by who runs a program; where one program asks in two ways, that is said.

    A signature is another one each time.
    """
    told = []
    for name, value in sorted(request.named.items()):
        if _passes(name):
            continue
        rest = _drop_passing_parts(name, value)
        if rest and not rest.startswith(_SIGNATURES):
            told.append((name, rest))
    return tuple(told)


@lru_cache(1024)
def _passes(name: str) -> bool:
    return _PASSING_HEADERS.fullmatch(name) is not None


def _drop_passing_parts(name: str, value: str) -> str:
    """The boundary of a form, and cookies of nobody's."""
    if name == "content-type":
        return value.partition("boundary=")[0]
    if name != "cookie":
        return value
    cookies = (each.strip() for each in value.split(";"))
    return "; ".join(each for each in cookies if not _PASSING_COOKIES.match(each))


_SIGNATURES = (
    "AWS4-",
    "AWS ",
    "Digest ",
    "OAuth ",
    "Signature ",
    "Hawk ",
    "SharedKey ",
    "NTLM ",
    "Negotiate ",
)


def exact_digest(request: Request, growing: GrowingBody | None = None) -> str:
    """16 hex digits of method, URL and body as they are: equal requests are found by it without
    reading their JSON.
    """
    body = growing or BodyHistory().build_growing_body(request.body)
    return body.digest(_build_exact_head(request))


def _build_exact_head(request: Request) -> bytes:
    large = "" if request.large is None else f" large {request.large.sha256}"
    head = f"{request.method} {request.url} {told_by_headers(request) or ''}{large}\n"
    return head.encode("utf-8", "surrogatepass")


def _build_address(request: Request, secrets: Secrets) -> str:
    url = canonical_url(request.url, secrets)
    header_lines = "".join(f"\n{name}: {value}" for name, value in told_by_headers(request))
    return f"{request.method} {url}{header_lines}"


def told_by_headers(request: Request) -> list[tuple[str, str]]:
    """The few headers that say what is asked: AWS and SOAP name the operation there, and a range is
    another answer.
    """
    if TELLING_HEADERS.isdisjoint(request.named):
        return []
    return [
        (name.lower(), value) for name, value in request.headers if name.lower() in TELLING_HEADERS
    ]


def canonical_url(url: str, secrets: Secrets) -> str:
    """The URL as it counts: without query keys that say nothing, or whose value is held back as a
    secret.
    """
    clean = secrets.scrub_url(url)
    # a marker that the program was given in a key's place, as a client spells it
    if "%3C" in clean:
        clean = _SPELLED_MARKER.sub(r"<secret:\1>", clean)
    return _canonicalize_url(clean)


_SPELLED_MARKER = re.compile(r"%3Csecret(?::|%3A)([\w.\-]+)%3E")


@lru_cache(maxsize=256)
def _canonicalize_url(clean: str) -> str:
    try:
        parts = urlsplit(clean)
    except ValueError:  # a record edited by hand; no client sends such a URL
        return clean
    query = parse_qsl(parts.query, keep_blank_values=True, errors=_BYTES)
    volatile = _find_volatile_names({name.lower() for name, _ in query}, parts.netloc)
    kept = [
        (name, value)
        for name, value in query
        if name.lower() not in volatile and not value.startswith("<secret:")
    ]
    kept.sort(key=itemgetter(0))  # repeated keys keep their order
    host = parts.netloc.rpartition("@")[2].lower()
    address = f"{parts.scheme}://{host}{parts.path or '/'}"
    if not kept:
        return address
    return f"{address}?{urlencode(kept, quote_via=quote, errors=_BYTES)}"


_BYTES = "surrogateescape"
"""A query may be spelled in whatever bytes: unlike ones stay unlike."""


def _find_volatile_names(names: set[str], host: str) -> set[str]:
    """Of these query keys, those that do not count. `key=` may be anybody's word: only Google's is
    a credential.
    """
    volatile = names & VOLATILE_QUERY
    for sign, prefix in _SIGNED:
        if sign in names:
            volatile |= {name for name in names if name.startswith(prefix)}
    if "sig" in names:
        volatile |= names & _AZURE
    if host.endswith(".googleapis.com"):
        volatile |= {"key"}
    return volatile


def _read_counted_body(
    request: Request, secrets: Secrets, ignore: Sequence[IgnorePath], masked: MaskedValues
) -> tuple[str, Any, bool]:
    """The text of what counts of a body, its JSON or None, and whether it certainly holds no
    secret.
    """
    if request.large is not None:  # by what is kept of it: what was masked takes no part
        boundary = _BOUNDARY.search(request.header("content-type"))
        mark = boundary[1].encode("latin-1", "replace") if boundary else b""
        return f"large {request.large.counted(mark)}", None, False
    body = decode(request.body, request.header("content-encoding"))
    if body is None:
        return request.body.hex(), None, False
    value = json_value(body)
    if value is None:
        text = body.decode("utf-8", "surrogateescape")
        # a form's boundary is drawn anew for each request
        boundary = _BOUNDARY.search(request.header("content-type"))
        if boundary:
            text = text.replace(boundary[1], "BOUNDARY")
        clean = secrets.scrub(text)[0]
        masked.compare(text, clean, "body")
        return clean, None, False
    suspicious = secrets.suspicious(body)
    try:
        counted = _drop_uncounted(value, ignore)
        if suspicious:
            clean = secrets.scrub_structure(counted)[0]
            masked.compare(counted, clean)
            return canonical(clean), value, False
        return canonical(counted), value, b"\\u" not in body
    except RecursionError:
        return body.decode("utf-8", "surrogateescape"), value, False


def _drop_uncounted(value: Any, ignore: Sequence[IgnorePath]) -> Any:
    """What counts of a JSON body, before its secrets are masked."""
    if isinstance(value, dict) and not VOLATILE_BODY.isdisjoint(value):
        value = {k: v for k, v in value.items() if k not in VOLATILE_BODY}
    for path in ignore:
        value = path.drop(value)
    return value


def json_value(body: bytes) -> Any:
    """The JSON in `body`, whole floats as ints (1.0 and 1 are the same number), or None where there
    is none.
    """
    if body[:1] not in (b"{", b"["):
        return None
    try:
        return _decoder.decode(body.decode(json.detect_encoding(body), "surrogatepass"))
    except (ValueError, RecursionError):
        return None


def _parse_number(text: str) -> float | int:
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < 1e15 else value


_decoder = json.JSONDecoder(parse_float=_parse_number)
"""Made once: `json.loads` makes one for each body."""


_encode = encoder(encode_basestring_ascii, ",", ":", sort_keys=True, allow_nan=True)


def canonical(value: Any) -> str:
    """The text of a plain structure that is the same for equal ones; tracebacks in it name the code of
    cells as in any kernel.
    """
    return name_cells(_encode(value))


_CANONICAL = Canonical(canonical, VOLATILE_BODY, _decoder.raw_decode)


# ---------------------------------------------------------------- how two calls differ


def scalar_leaves(value: Any) -> Iterator[tuple[str, Any]]:
    """(path, scalar) of each leaf; empty containers are leaves too. However deep: no recursion."""
    stack = [("", value)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, dict) and value:
            stack += [
                (f"{path}.{key}" if path else str(key), item)
                for key, item in reversed(value.items())
            ]
        elif isinstance(value, list) and value:
            stack += [(f"{path}[{index}]", value[index]) for index in reversed(range(len(value)))]
        else:
            yield path, value


def compared_fields(
    call: Request | FunctionCall, *, recorded: bool = False, secrets: Secrets | None = None
) -> dict[str, Any]:
    """A call as flat fields for comparing: method, url, the body's leaves. A recorded call's
    arguments are frozen.

    With `secrets` they are scrubbed: a diff is shown, and saved with the notebook.
    """
    if isinstance(call, FunctionCall):
        named_values = dict(call.arguments)
        if call.instance is not None:
            named_values["self"] = call.instance
        arguments = {}
        for name, value in named_values.items():
            structure = value if recorded else frozen_or_type(value)
            arguments[name] = _expand_opaque_fields(structure)
        return {"tool": call.name, **dict(scalar_leaves(_scrub_value(arguments, secrets)))}
    body = decode(call.body, call.header("content-encoding"))
    if call.large is not None:
        body = f"{call.large.size:,} bytes, sha256 {call.large.sha256}".encode()
    value = json_value(body) if body else None
    if value is not None:
        content = value
    else:
        content = {"body": (body or b"").decode("utf-8", "replace")}
    rest = dict(scalar_leaves(_scrub_value(content, secrets)))
    url = secrets.scrub_url(call.url) if secrets else call.url
    fields = {"method": call.method, "url": url, **dict(told_by_headers(call))}
    return fields | {
        f"body.{name}" if name in fields else name: leaf for name, leaf in rest.items()
    }


def _expand_opaque_fields(structure: Any) -> Any:
    """An argument for people to compare: one that could not be written by its fields, if these are
    known.
    """
    if type(structure) is not dict or "<opaque>" not in structure:
        return structure
    fields = structure.get("fields") or {"state": structure.get("state", "unknown")}
    return {"type": structure["<opaque>"], **fields}


def _scrub_value(value: Any, secrets: Secrets | None) -> Any:
    return secrets.scrub_structure(value)[0] if secrets else value


def likeness(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> float:
    """Share of fields that are equal, 0 to 1; long texts that begin alike count for half."""
    if not ours or not theirs:
        return 0.0
    score = 0.0
    for name, value in ours.items():
        other = theirs.get(name)
        if other == value:
            score += 1.0
        elif isinstance(value, str) and isinstance(other, str) and value[:24] == other[:24]:
            score += 0.5
    return score / max(len(ours), len(theirs))


def field_diff(recorded: Mapping[str, Any], now: Mapping[str, Any], limit: int = 8) -> list[str]:
    """Readable lines: each differing field with its recorded and its present value, cut around the
    difference.
    """
    lines: list[str] = []
    differences = differing_fields(recorded, now)
    for name, before, after in differences[:limit]:
        lines += [f"  {name}", f"    recorded: {before}", f"    now:      {after}"]
    if len(differences) > limit:
        lines.append(f"  ... and {len(differences) - limit} more fields differ")
    return lines


def differing_fields(
    recorded: Mapping[str, Any], now: Mapping[str, Any], width: int = 100
) -> list[tuple[str, str, str]]:
    """Each differing field: its name, its recorded and its present value, cut to `width` around the
    difference.
    """
    differing = []
    for name in dict.fromkeys((*recorded, *now)):
        before, after = recorded.get(name, _ABSENT), now.get(name, _ABSENT)
        if before != after:
            differing.append((name, *_cut_around_difference(before, after, width)))
    return differing


class _Absent:
    def __repr__(self) -> str:
        return "(absent)"


_ABSENT = _Absent()


def _cut_around_difference(before: Any, after: Any, width: int) -> tuple[str, str]:
    if not (isinstance(before, str) and isinstance(after, str)):
        return _shorten_text(repr(before), width), _shorten_text(repr(after), width)
    start = parting(before, after, width, width // 3)
    return _cut_text(before, start, width), _cut_text(after, start, width)


def _cut_text(text: str, start: int, width: int) -> str:
    cut = _shorten_text(repr(text[start : start + width]), width + 8)
    return f"...{cut}" if start else cut


def parting(before: str, after: str, width: int, lead: int) -> int:
    """Where to begin so that `width` characters show what parts two texts, with `lead` of them
    before it.
    """
    if max(len(before), len(after)) <= width:
        return 0
    same = 0
    for one, other in zip(before, after, strict=False):
        if one != other:
            break
        same += 1
    return max(0, same - lead)


def _shorten_text(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def nearest(
    ours: Mapping[str, Any], others: Iterable[tuple[Any, Mapping[str, Any]]]
) -> tuple[Any, float] | None:
    """The (thing, likeness) whose fields are most like ours; the first of equals."""
    best: tuple[Any, float] | None = None
    for thing, theirs in others:
        score = likeness(ours, theirs)
        if best is None or score > best[1]:
            best = (thing, score)
    return best
