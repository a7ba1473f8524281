"""What a client sees of a recorded interaction: the sending half of `replay_corpus.py`. Knows nothing of tapes.

A client has `play(record)`, a coroutine that sends the record's request and gives what it saw as a plain dict. The
coroutines of synchronous clients never suspend, so that one text serves both.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

Record = dict[str, Any]
Seen = dict[str, Any]

FRAMING = {
    "host",
    "content-length",
    "connection",
    "transfer-encoding",
    "keep-alive",
    "te",
    "upgrade",
    "expect",
}
"""Request headers that a client writes itself."""


def request_body(record: Record) -> bytes:
    return _bytes(record["request"])


def reply_body(record: Record) -> bytes:
    return _bytes(record["response"])


def _bytes(part: Record) -> bytes:
    return (
        base64.b64decode(part["body_b64"])
        if "body_b64" in part
        else (part.get("body_text") or "").encode()
    )


def target(record: Record) -> str:
    """Path and query of the recorded URL."""
    parts = urlsplit(record["request"]["url"])
    return "/" + parts.path.lstrip("/") + (f"?{parts.query}" if parts.query else "")


def headers_to_send(record: Record) -> list[tuple[str, str]]:
    """The recorded headers, and the one that tells the server which answer to give."""
    kept = [
        (name, value) for name, value in record["request"]["headers"] if name.lower() not in FRAMING
    ]
    return [*kept, ("x-corpus-id", record["id"])]


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Observer:
    """Collects what one request gave: head, raw chunks, decoded body, the SDK's objects, the error."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.heads: list[list[Any]] = []
        self.chunks: list[bytes] = []
        self.decoded: bytes | None = None
        self.objects: list[Any] = []
        self.error: BaseException | None = None

    def head(self, status: int, version: str, reason: str, headers: list[tuple[str, str]]) -> None:
        self.heads.append([status, version, reason, [list(pair) for pair in headers]])

    def seen(self) -> Seen:
        dumped = [dump(value) for value in self.objects]
        return {
            "heads": self.heads,
            "sizes": [len(chunk) for chunk in self.chunks],
            "wire": sha(b"".join(self.chunks)),
            "decoded": None if self.decoded is None else sha(self.decoded),
            "objects": sha("\n".join(dumped).encode("utf-8", "surrogatepass")) if dumped else None,
            "count": len(dumped),
            "error": None if self.error is None else failure(self.error),
            "dump": dumped,
        }


def dump(value: Any) -> str:
    """An SDK's object as JSON, with the name of its class."""
    return json.dumps([type(value).__name__, value], default=_plain, sort_keys=True)


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return {"<class>": type(value).__name__, **value.model_dump(), **_private(value)}
    if isinstance(value, bytes | bytearray):
        return {"<bytes>": bytes(value).hex()}
    if hasattr(value, "isoformat"):
        return {"<time>": value.isoformat()}
    if isinstance(value, set | frozenset):
        return sorted(value)
    if type(value).__repr__ is object.__repr__:
        return {"<class>": type(value).__name__}
    return {"<class>": type(value).__name__, "<repr>": repr(value)}


def _private(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in ("_request_id",) if getattr(value, name, None)}


def failure(error: BaseException) -> dict[str, Any]:
    """Class, text and fields of an exception; fields that are no plain data count by their class."""
    fields = {name: part for name, part in vars(error).items() if not name.startswith("__")}
    text = json.dumps([list(error.args), fields], default=_shallow, sort_keys=True)
    return {
        "class": f"{type(error).__module__}.{type(error).__qualname__}",
        "text": str(error),
        "fields": text,
    }


def _shallow(value: Any) -> Any:
    return (
        _plain(value)
        if hasattr(value, "model_dump") or isinstance(value, bytes)
        else f"<{type(value).__name__}>"
    )


# ---------------------------------------------------------------- httpx and httpx2


def listening(module: Any, observer: Observer) -> Callable[[Any], None]:
    """An event hook of `module` (httpx or httpx2) that shows the observer each reply, chunk by chunk."""

    class Tee(module.SyncByteStream):
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def __iter__(self) -> Iterator[bytes]:
            for chunk in self.inner:
                observer.chunks.append(chunk)
                yield chunk

        def close(self) -> None:
            self.inner.close()

    def hook(response: Any) -> None:
        _see_head(response, observer)
        response.stream = Tee(response.stream)

    return hook


def listening_async(module: Any, observer: Observer) -> Callable[[Any], Any]:
    """The same for an AsyncClient."""

    class Tee(module.AsyncByteStream):
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for chunk in self.inner:
                observer.chunks.append(chunk)
                yield chunk

        async def aclose(self) -> None:
            await self.inner.aclose()

    async def hook(response: Any) -> None:
        _see_head(response, observer)
        response.stream = Tee(response.stream)

    return hook


def _see_head(response: Any, observer: Observer) -> None:
    pairs = [
        (name.decode("latin-1"), value.decode("latin-1")) for name, value in response.headers.raw
    ]
    observer.head(response.status_code, response.http_version, response.reason_phrase, pairs)


class Raw:
    """httpx or httpx2, sync: the reply streamed, its raw and its decoded bytes."""

    asynchronous = False

    def __init__(self, base: str, module: Any) -> None:
        self.base, self.observer, self.errors = base, Observer(), module.HTTPError
        hooks = {"response": [listening(module, self.observer)]}
        self.client = module.Client(event_hooks=hooks, timeout=60, trust_env=False)

    async def play(self, record: Record) -> Seen:
        self.observer.clear()
        request = record["request"]
        asked = self.client.build_request(
            request["method"],
            self.base + target(record),
            headers=headers_to_send(record),
            content=request_body(record) or None,
        )
        response = self.client.send(asked, stream=True)
        try:
            self.observer.objects = [sha(part) for part in response.iter_bytes()]
        except self.errors as error:
            self.observer.error = error
        finally:
            response.close()
        return self.observer.seen()

    async def close(self) -> None:
        self.client.close()


class RawAsync(Raw):
    """httpx or httpx2, async."""

    asynchronous = True

    def __init__(self, base: str, module: Any) -> None:
        self.base, self.observer, self.errors = base, Observer(), module.HTTPError
        hooks = {"response": [listening_async(module, self.observer)]}
        self.client = module.AsyncClient(event_hooks=hooks, timeout=60, trust_env=False)

    async def play(self, record: Record) -> Seen:
        self.observer.clear()
        request = record["request"]
        asked = self.client.build_request(
            request["method"],
            self.base + target(record),
            headers=headers_to_send(record),
            content=request_body(record) or None,
        )
        response = await self.client.send(asked, stream=True)
        try:
            self.observer.decoded = await response.aread()
        except self.errors as error:
            self.observer.error = error
        finally:
            await response.aclose()
        return self.observer.seen()

    async def close(self) -> None:
        await self.client.aclose()


# ---------------------------------------------------------------- requests


class Requests:
    """requests: once streamed, raw bytes as urllib3 gives them, and once whole and decoded."""

    asynchronous = False

    def __init__(self, base: str) -> None:
        import requests

        self.base, self.observer, self.errors = base, Observer(), requests.RequestException
        self.session = requests.Session()
        self.session.trust_env = False

    async def play(self, record: Record) -> Seen:
        self.observer.clear()
        try:
            response = self._send(record, stream=True)
            raw = response.raw
            self.observer.head(
                raw.status, raw.version_string, raw.reason, list(raw.headers.items())
            )
            self.observer.chunks = list(_raw_chunks(raw))
            response.close()
            whole = self._send(record, stream=False)
            self.observer.head(whole.status_code, "", whole.reason, list(whole.headers.items()))
            self.observer.decoded = whole.content
            self.observer.objects = [whole.encoding, whole.url, whole.ok]
        except self.errors as error:
            self.observer.error = error
        return self.observer.seen()

    def _send(self, record: Record, *, stream: bool) -> Any:
        return self.session.request(
            record["request"]["method"],
            self.base + target(record),
            headers=dict(headers_to_send(record)),
            data=request_body(record) or None,
            stream=stream,
            allow_redirects=False,
            timeout=60,
        )

    async def close(self) -> None:
        self.session.close()


def _raw_chunks(raw: Any) -> Iterator[bytes]:
    """HTTP chunks where the body has them, else what single reads give."""
    if raw.chunked:
        yield from raw.stream(1 << 20, decode_content=False)
        return
    while part := raw.read1(1 << 16, decode_content=False):
        yield part


# ---------------------------------------------------------------- http.client


class HttpClient:
    """http.client on one connection: what single reads of the body give."""

    asynchronous = False

    def __init__(self, base: str) -> None:
        self.observer, self.errors = Observer(), (OSError, http.client.HTTPException)
        self.connection = http.client.HTTPConnection(urlsplit(base).netloc, timeout=60)

    async def play(self, record: Record) -> Seen:
        self.observer.clear()
        try:
            self._send(record)
            reply = self.connection.getresponse()
            self.observer.head(reply.status, str(reply.version), reply.reason, reply.getheaders())
            self.observer.chunks = list(iter(lambda: reply.read1(1 << 20), b""))
            self._send(record)
            whole = self.connection.getresponse()
            self.observer.objects = [len(line) for line in whole]
        except self.errors as error:
            self.observer.error = error
            self.connection.close()
        return self.observer.seen()

    def _send(self, record: Record) -> None:
        body = request_body(record) or None
        self.connection.putrequest(
            record["request"]["method"], target(record), skip_accept_encoding=True
        )
        for name, value in headers_to_send(record):
            self.connection.putheader(name, value)
        if body is not None:
            self.connection.putheader("content-length", str(len(body)))
        self.connection.endheaders(body)

    async def close(self) -> None:
        self.connection.close()


# ---------------------------------------------------------------- aiohttp


class Aiohttp:
    """aiohttp: once as it comes, packed, and once whole and unpacked."""

    asynchronous = True

    def __init__(self, base: str) -> None:
        import aiohttp

        self.base, self.observer, self.errors = (
            base,
            Observer(),
            (aiohttp.ClientError, TimeoutError),
        )
        self.session = aiohttp.ClientSession(base)

    async def play(self, record: Record) -> Seen:
        self.observer.clear()
        try:
            async with self._send(record, auto_decompress=False) as reply:
                pairs = [
                    (name.decode("latin-1"), value.decode("latin-1"))
                    for name, value in reply.raw_headers
                ]
                self.observer.head(reply.status, str(reply.version), reply.reason or "", pairs)
                async for chunk in reply.content.iter_any():
                    self.observer.chunks.append(chunk)
            async with self._send(record) as whole:
                self.observer.decoded = await whole.read()
                self.observer.objects = [
                    str(whole.url),
                    whole.ok,
                    whole.method,
                    whole.get_encoding(),
                ]
        except self.errors as error:
            self.observer.error = error
        return self.observer.seen()

    def _send(self, record: Record, **options: Any) -> Any:
        return self.session.request(
            record["request"]["method"],
            target(record),
            headers=headers_to_send(record),
            data=request_body(record) or None,
            allow_redirects=False,
            **options,
        )

    async def close(self) -> None:
        await self.session.close()


# ---------------------------------------------------------------- lm15


class Lm15:
    """lm15's blocking transport, which DSPy has a copy of: chunks as they come, unpacked."""

    asynchronous = False

    def __init__(self, base: str) -> None:
        from lm15 import transports

        self.base, self.observer, self.errors = base, Observer(), transports.TransportError
        self._request, self.transport = transports.TransportRequest, transports.StdlibTransport()

    async def play(self, record: Record) -> Seen:
        self.observer.clear()
        try:
            with self.transport.stream(self._build_request(record)) as reply:
                self._note_head(reply)
                for chunk in reply:
                    self._note_chunk(reply, chunk)
        except self.errors as error:
            self.observer.error = error
        return self.observer.seen()

    def _note_head(self, reply: Any) -> None:
        self.observer.head(reply.status, reply.http_version, reply.reason, reply.headers)

    def _note_chunk(self, reply: Any, chunk: bytes) -> None:
        packed = reply.header("content-encoding") not in {None, "identity"}
        (self.observer.objects if packed else self.observer.chunks).append(chunk)

    def _build_request(self, record: Record) -> Any:
        method, url = record["request"]["method"], self.base + target(record)
        return self._request(method, url, headers_to_send(record), request_body(record))

    async def close(self) -> None:
        self.transport.close()


class Lm15Async(Lm15):
    """The same, on asyncio."""

    asynchronous = True

    def __init__(self, base: str) -> None:
        from lm15 import transports

        super().__init__(base)
        self.transport = transports.StdlibAsyncTransport()

    async def play(self, record: Record) -> Seen:
        self.observer.clear()
        try:
            async with self.transport.stream(self._build_request(record)) as reply:
                self._note_head(reply)
                async for chunk in reply:
                    self._note_chunk(reply, chunk)
        except self.errors as error:
            self.observer.error = error
        return self.observer.seen()

    async def close(self) -> None:
        await self.transport.aclose()
