"""What a request is found by is what it always was: old cassettes answer the same requests.

`made_keys.json` tells it of one request of each kind. A change that is meant, after which old recordings of such requests
match no more:

    python tests/unit/cassette/test_made_keys.py > tests/unit/cassette/made_keys.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # not this folder, whose modules would stand for others of their names

from tape_jupyter.cassette import match_key
from tape_jupyter.core.call import FunctionCall, Request
from tape_jupyter.secrets.registry import Secrets
from tests.harness import made_traffic
from tests.harness.made_objects import User

KEPT = Path(__file__).with_name("made_keys.json")
SECRET = "sk-ant-made-0123456789abcdefghij"
FORM = b'--%s\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--%s--\r\n'
BUCKET = "https://bucket.s3.amazonaws.com/a"
STORE = "https://acct.blob.core.windows.net/c/b"
PAGE = "https://example.com/a"
GZIP = bytes.fromhex("1f8b0800000000000203ab564a54b25230ac0500978ea1fb08000000")
"""`{"a": 1}`; another library would spell it otherwise."""


def _post(body: Any, *headers: tuple[str, str], url: str = PAGE) -> Request:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Request("POST", url, headers, data)


def _get(url: str, *headers: tuple[str, str]) -> Request:
    return Request("GET", url, headers)


REQUESTS: dict[str, Request | FunctionCall] = {
    "a page": _get(PAGE),
    "no path": _get("https://EXAMPLE.com"),
    "a name and a password": _get("https://ann:secret@example.com/a"),
    "a query in another order": _get(f"{PAGE}?b=2&a=1&b=1&A=&c"),
    "a query that says nothing": _get(f"{PAGE}?api_key=k1&Access_Token=x&sig=y&signature=z&q=1"),
    "a key that is a word": _get(f"{PAGE}?key=value"),
    "Google's key": _get("https://maps.googleapis.com/a?key=AIza1&q=1"),
    "a secret in the query": _get(f"{PAGE}?token={SECRET}&q=1"),
    "a secret that says who asks": _get(f"{PAGE}?key={SECRET}&q=1"),
    "a marker in the query": _get(f"{PAGE}?token=%3Csecret%3AANTHROPIC_API_KEY%3E&q=%3Ca%3E"),
    "bytes in the query": _get(f"{PAGE}?q=%FF%FE&r=%C3%A9"),
    "signed by Amazon": _get(f"{BUCKET}?X-Amz-Signature=a&X-Amz-Date=b&x-amz-other=c&versionId=1"),
    "not signed by Amazon": _get(f"{BUCKET}?X-Amz-Date=b&x-amz-other=c&versionId=1"),
    "signed by Google": _get("https://storage.example.com/a?X-Goog-Signature=a&x-goog-date=b&alt=media"),
    "signed by Azure": _get(f"{STORE}?sv=2020&se=2026&sp=r&sig=abc&comp=list"),
    "not signed by Azure": _get(f"{STORE}?sv=2020&se=2026&sp=r&comp=list"),
    "signed by CloudFront": _get(f"{PAGE}?Key-Pair-Id=K1&Signature=abc&Expires=1"),
    "a signature of nobody's": _get(f"{PAGE}?signature=abc"),
    "no URL": _get("https://[broken"),
    "a range": _get(PAGE, ("Range", "bytes=0-9")),
    "an operation in a header": _post({}, ("X-Amz-Target", "Dynamo.Get"), ("SOAPAction", "urn:x")),
    "who asks, in headers": _get(
        PAGE, ("Authorization", "Bearer b"), ("X-Team", "red"), ("User-Agent", "x"), ("traceparent", "0"), ("X-Request-Id", "1"),
        ("Cookie", "__cf_bm=1; session=2; AWSALB=3; theme=dark"), ("Date", "today"), ("x-retry-count", "1"), ("Accept", "*/*")),
    "signatures in headers": _get(PAGE, ("Authorization", "AWS4-HMAC-SHA256 x"), ("Proxy-Authorization", "Digest y"), ("cookie", "_cfduid=1")),
    "a form's type": _get(PAGE, ("Content-Type", "multipart/form-data; boundary=xyz")),
    "nothing in it": _post(b""),
    "text": _post(b"plain"),
    "text with a secret": _post(f"token: {SECRET}".encode()),
    "bytes that are no text": _post(b"\xff\xfe\x00"),
    "a form": _post(FORM % (b"one", b"one"), ("content-type", "multipart/form-data; boundary=one")),
    "a form with another boundary": _post(FORM % (b"two", b"two"), ("content-type", 'multipart/form-data; boundary="two"')),
    "compressed": _post(GZIP, ("content-encoding", "gzip")),
    "no gzip, though it says so": _post(b"plain", ("content-encoding", "gzip")),
    "numbers": _post(b'{"a": 1.0, "b": 1e3, "c": 1.5, "d": 1e15, "e": 1e14, "f": -0.0, "g": 12345678901234567890}'),
    "keys in another order": _post(b'{"b": [1, {"d": 2, "c": 3}], "a": "\\u00e9"}'),
    "what is drawn anew": _post({"idempotency_key": "1", "client_request_id": "2", "idempotencyKey": "3", "a": {"idempotency_key": 4}}),
    "secrets in JSON": _post({"token": SECRET, "password": "hunter2", "list": [f"a {SECRET}"], "strong": "x"}),
    "a strong value under a secret's name": _post({"password": "q8ZtXw3v99LmPzRa0d7eKf5y71Gh"}),
    "a marker in JSON": _post({"key": "<secret:ANTHROPIC_API_KEY>"}),
    "a list": _post([1, "x", None]),
    "a word of JSON": _post(b'"text"'),
    "broken JSON": _post(b'{"a": '),
    "too deep": _post(b"[" * 100_000 + b"]" * 100_000),
    "deep, with a secret": _post(b'{"a": "%s", "b": %s%s}' % (SECRET.encode(), b"[" * 700, b"]" * 700)),
    "UTF-16": _post('{"a": "é"}'.encode("utf-16")),
    "half a character": _post(b'{"a": "\\ud83e"}'),
    "a long text": _post({"text": "word " * 3_000}),
    "a tool": FunctionCall("look_up", {"place": "here", "days": (1, 2.0), "of": {"b": 1, "a": None}}),
    "a retriever": FunctionCall("search", {"query": "rain"}, kind="retrieval"),
    "a tool with a secret": FunctionCall("look_up", {"token": SECRET, "note": f"a {SECRET}"}),
    "a tool with an object": FunctionCall("look_up", {"user": User(name="ann")}, instance=User(x=1)),
    **{f"{wire.name} {number}": made_traffic.request(wire, body) for wire in made_traffic.WIRES for number, body in enumerate(wire.requests)},
}  # fmt: skip


def _secrets() -> Secrets:
    secrets = Secrets()
    secrets.learn("ANTHROPIC_API_KEY", SECRET)
    return secrets


def told(call: Request | FunctionCall) -> dict[str, Any]:
    secrets = _secrets()
    if isinstance(call, FunctionCall):
        found = match_key.asked_function(call, secrets)
        return {"match": found.match, "recorded": "", **_rest(found)}
    found = match_key.match_request(call, secrets)
    ignored = match_key.match_key(call, secrets, IGNORED)
    return {
        "match": found.match,
        "ignored": ignored if ignored != found.match else "",
        "exact": match_key.exact_digest(call),
        "who": match_key.read_identity_headers(call),
        **_rest(found),
    }


IGNORED = [match_key.IgnorePath(text) for text in ("$.messages[0].content", "a", "b[1].c", "list[*]", "x[0]")]  # fmt: skip


def _rest(found: match_key.MatchedRequest) -> dict[str, Any]:
    names = ("discriminator", "masked", "given", "by_value", "plain", "by_type")
    told = {name: value for name in names if (value := getattr(found, name))}
    return told | ({"clean": True} if found.clean else {})


def _differences() -> Iterator[Any]:
    """How each differs from the one before it, in words and in numbers."""
    fields = [
        match_key.compared_fields(call, secrets=_secrets())
        for name, call in REQUESTS.items()
        if not name.startswith("deep")
    ]
    for one, other in pairwise(fields):
        yield [round(match_key.likeness(one, other), 6), match_key.field_diff(one, other)]
    texts = [{"text": "a" * 90 + end, "n": n} for n, end in enumerate(("b" * 90, "c" * 90, "", "b"))]  # fmt: skip
    for one, other in pairwise(texts):
        yield [match_key.likeness(one, other), match_key.field_diff(one, other)]
    yield match_key.nearest(texts[0], list(enumerate(texts[1:])))
    yield match_key.nearest(texts[0], [])
    recorded = FunctionCall("f", {"user": {"<opaque>": "m.User", "fields": {"a": 1}}, "db": {"<opaque>": "m.Db"}})  # fmt: skip
    yield match_key.compared_fields(recorded, recorded=True)
    yield match_key.recorded_key(recorded)


def every() -> dict[str, Any]:
    made = {name: told(call) for name, call in REQUESTS.items()}
    made["differences"] = list(_differences())
    return json.loads(json.dumps(made))  # type: ignore[no-any-return]


def test_a_request_is_found_by_what_it_always_was():
    kept, now = json.loads(KEPT.read_text()), every()
    assert {name: now[name] for name in now if now[name] != kept.get(name)} == {}


def main() -> None:
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in every().items()]
    print("{", ",\n".join(lines), "}", sep="\n")


if __name__ == "__main__":
    main()
