"""Urllib3 2 and all that sends through it: requests, boto3.

The tap lies below the retry loop, at `HTTPConnectionPool._make_request`, so a replayed 429 is
retried as a live one was. The tunnel through a proxy is the one thing urllib3 opens before that: it
waits until the tape has decided.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from types import ModuleType, SimpleNamespace
from typing import Any, cast

from tape_jupyter import instrumentation
from tape_jupyter.core.call import Capture, Gate, Headers, Play, Reply, Request, Tape
from tape_jupyter.core.context import SENDING
from tape_jupyter.core.large_body import LargeBody
from tape_jupyter.instrumentation.concurrency import threads
from tape_jupyter.instrumentation.http import http11, stub_connection, uploads
from tape_jupyter.instrumentation.http.replayed_response import pass_head, thawed
from tape_jupyter.instrumentation.patching import sending, swap, undoing
from tape_jupyter.instrumentation.stepping_hook import instead

_PORTS = {"http": 80, "https": 443}
_TUNNEL = "_tape_tunnel"
_log = logging.getLogger("urllib3.connectionpool")
"""urllib3's own: in replay it says what it said of a live reply."""


def patch(module: ModuleType) -> Callable[[], None]:
    """Tap the connection pools of `module` (urllib3.connectionpool). Returns the undo."""
    return undoing(
        swap(module.HTTPConnectionPool, "_make_request", _wrap_make_request),
        swap(module.HTTPConnectionPool, "_put_conn", _wrap_put_conn),
        swap(module.HTTPSConnectionPool, "_prepare_proxy", _wrap_prepare_proxy),
    )


def _wrap_prepare_proxy(original: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    @functools.wraps(original)
    def prepare_proxy(pool: Any, conn: Any) -> None:
        if SENDING.get() or instrumentation.tape_here() is None:
            return original(pool, conn)
        setattr(conn, _TUNNEL, functools.partial(original, pool, conn))
        return None

    return prepare_proxy


def _wrap_put_conn(original: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    @functools.wraps(original)
    def put_conn(pool: Any, conn: Any) -> None:
        if conn is not None:
            stub_connection.take_out(conn)
        return original(pool, conn)

    return put_conn


def _wrap_make_request(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def make_request(
        pool: Any,
        conn: Any,
        method: str,
        url: str,
        body: Any = None,
        headers: Any = None,
        **options: Any,
    ) -> Any:
        called = functools.partial(_Call, pool, conn, method, url, headers, options)
        tape = None
        if not SENDING.get():
            tape = instrumentation.tape_here(lambda: called().request(_get_body_in_memory(body)))
        if tape is None:
            return original(pool, conn, method, url, body, headers, **options)
        call = called()
        read = call.read(body, tape)
        threads.settle_origin()
        decision = tape.begin(call.request(read))
        sent: Any = read
        if isinstance(read, LargeBody):
            content = _get_body_in_memory(body)
            sent = (read.sent or read).open() if content is None else content
        if isinstance(decision, Play):
            pass_head(decision)
            return call.play(cast("Reply", decision.reply), decision.gate)
        if decision is None:
            call.open_tunnel()
            return original(pool, conn, method, url, sent, headers, **options)
        other = instead(decision)
        if other is not None:
            sent, headers = call.changed(other)
        return call.record(
            functools.partial(original, pool, conn, method, url, sent, headers), decision
        )

    return make_request


def _get_body_in_memory(body: Any) -> bytes | None:
    """A body that can be seen without reading it."""
    if isinstance(body, str):
        return body.encode()
    return body if isinstance(body, bytes) else None


class _Call:
    """One request as `_make_request` was asked to make it."""

    def __init__(
        self, pool: Any, conn: Any, method: str, url: str, headers: Any, options: dict[str, Any]
    ) -> None:
        self.pool, self.conn, self.method, self.url = pool, conn, method, url
        self.headers: Headers = _decode_headers(headers or {})
        self.options = options

    def read(self, body: Any, tape: Tape) -> bytes | LargeBody | None:
        """The body, to be shown to the tape and sent. A body without a length keeps going out
        chunked.
        """
        if body is None or isinstance(body, (bytes, str)):
            content = _get_body_in_memory(body)
            if content is None:
                return None
            return uploads.keep_body(tape, lambda: self.request(b""), content)
        framed = {name.lower() for name, _ in self.headers} & {
            "content-length",
            "transfer-encoding",
        }
        if not hasattr(body, "read"):
            with suppress(TypeError):  # not a buffer
                return bytes(memoryview(body))
        if not framed:
            self.options["chunked"] = True
        return uploads.drained(
            tape, lambda: self.request(b""), _read_parts(body, self.conn.blocksize)
        )

    def changed(self, other: Request) -> tuple[bytes, dict[str, str]]:
        """Body and headers that go out in place of the program's: a person changed the body."""
        self.options.pop("chunked", None)
        return other.body, dict(other.headers)

    def request(self, body: bytes | LargeBody | None) -> Request:
        return uploads.upload_request(
            self.method.upper(), self._build_absolute_url(), self.headers, body or b""
        )

    def _build_absolute_url(self) -> str:
        if not self.url.startswith("/"):
            return self.url  # through a forwarding proxy, urllib3 names the target in full
        host = f"[{self.pool.host}]" if ":" in self.pool.host else self.pool.host
        if self.pool.port in (None, _PORTS.get(self.pool.scheme)):
            port = ""
        else:
            port = f":{self.pool.port}"
        return f"{self.pool.scheme}://{host}{port}{self.url}"

    def open_tunnel(self) -> None:
        """What `urlopen` asked for and `_prepare_proxy` put off. Errors become what `urlopen` makes
        of them.
        """
        tunnel = vars(self.conn).pop(_TUNNEL, None)
        if tunnel is None:
            return
        try:
            tunnel()
        except OSError as error:  # ssl.SSLError and TimeoutError are OSErrors
            self.pool._raise_timeout(  # noqa: SLF001
                err=error, url=self.pool.proxy.url, timeout_value=self.conn.timeout
            )
            raise

    def record(self, send: Callable[..., Any], capture: Capture) -> Any:
        """Send, and listen to the reply. urllib3 would read the whole body before we can listen, so
        we ask later.
        """
        preload = self.options.pop("preload_content", True)
        with sending(capture):
            self.open_tunnel()
            response = send(preload_content=False, **self.options)
        source = getattr(response, "_original_response", None)
        headers = _decode_headers(response.headers if source is None else source.msg)
        capture.head(
            response.status, headers, _format_version(response.version), response.reason or ""
        )
        if source is None:  # urllib3's HTTP/2, which has the whole body by now
            capture.chunk(response.data)
            capture.finish()
        else:
            http11.capture_response(source, capture)
        return self._preload_body(response) if preload else response

    def _preload_body(self, response: Any) -> Any:
        """What HTTPResponse.__init__ does when asked to preload: it knows neither pool nor
        connection then.
        """
        pool, connection = response._pool, response._connection  # noqa: SLF001
        response._pool = response._connection = None  # noqa: SLF001
        response._body = response.read(decode_content=self.options.get("decode_content", True))  # noqa: SLF001
        response._pool, response._connection = pool, connection  # noqa: SLF001
        return response

    def play(self, reply: Reply, gate: Gate | None) -> Any:
        """The recorded reply as urllib3 makes one of a connection's, without a connection."""
        vars(self.conn).pop(_TUNNEL, None)
        self.pool.num_requests += 1
        error = self._build_unanswered_error(reply) if reply.status is None else None
        if self.pool.scheme == "https" and not _is_before_tls(error):
            self._warn_of_a_doubtful_host()
        if error is not None:
            raise error
        from urllib3 import HTTPHeaderDict, HTTPResponse

        stub_connection.stand_in_socket(self.conn)
        source = http11.replayed_http_response(reply, self.method, self._build_error, gate)
        response = HTTPResponse(
            body=source,
            headers=HTTPHeaderDict(source.msg.items()),
            status=source.status,
            version=source.version,
            version_string=_format_version(source.version),
            reason=source.reason,
            preload_content=self.options.get("preload_content", True),
            decode_content=self.options.get("decode_content", True),
            original_response=source,
            enforce_content_length=self.options.get("enforce_content_length", True),
            request_method=self.method,
            request_url=self.url,
        )
        response.retries = self.options.get("retries")
        response._connection = self.options.get("response_conn")  # noqa: SLF001
        response._pool = self.pool  # noqa: SLF001
        details = (response.version_string, response.status, response.length_remaining)
        place = (self.pool.scheme, self.pool.host, self.pool.port, self.method, self.url)
        _log.debug('%s://%s:%s "%s %s %s" %s %s', *place, *details)
        return response

    def _warn_of_a_doubtful_host(self) -> None:
        """urllib3's own warning where nobody looks at the host's certificate, from its own line."""
        import ssl

        from urllib3.util.ssl_ import resolve_cert_reqs

        cert_reqs = resolve_cert_reqs(getattr(self.conn, "cert_reqs", None))
        verified = cert_reqs == ssl.CERT_REQUIRED or bool(
            getattr(self.conn, "assert_fingerprint", None)
        )
        connected = SimpleNamespace(
            host=self.conn.host, is_closed=False, is_verified=verified, proxy_is_verified=None
        )
        self.pool._validate_conn(connected)  # noqa: SLF001

    def _build_unanswered_error(self, reply: Reply) -> BaseException:
        """What is raised where no reply came. A bare TimeoutError (an injected fault) is told in
        urllib3's words.
        """
        error = self._build_error(reply)
        if type(error) is not TimeoutError:
            return error
        from urllib3.exceptions import ReadTimeoutError

        timeout = getattr(self.pool._get_timeout(self.options.get("timeout")), "read_timeout", None)  # noqa: SLF001
        return ReadTimeoutError(self.pool, self.url, f"Read timed out. (read timeout={timeout})")

    def _build_error(self, reply: Reply) -> BaseException:
        """The recorded error. Those of urllib3 hold the pool or the connection they come from: they
        get this one.
        """
        from urllib3.exceptions import ConnectTimeoutError, NewConnectionError, PoolError

        # `text` has the address of the old connection in it; with the new one in place the class
        # says the rest itself.
        error = thawed({name: part for name, part in (reply.error or {}).items() if name != "text"})
        if isinstance(error, PoolError):
            error.pool = self.pool
        elif isinstance(error, NewConnectionError):
            error.conn = self.conn
        elif isinstance(error, ConnectTimeoutError) and len(error.args) > 1:
            error.args = (self.conn, *error.args[1:])
        if not isinstance(error, ConnectTimeoutError):
            # Else `urlopen`, which sees no connection, would blame the proxy.
            with suppress(AttributeError):
                self.conn._has_connected_to_proxy = bool(self.conn.proxy)  # noqa: SLF001
        return error


def _is_before_tls(error: BaseException | None) -> bool:
    from urllib3.exceptions import ConnectTimeoutError, NewConnectionError, ProxyError, SSLError

    return isinstance(error, (ConnectTimeoutError, NewConnectionError, ProxyError, SSLError))


def _read_parts(body: Any, size: int) -> Iterator[bytes]:
    """All of a file or an iterable, text as UTF-8, read as urllib3's `body_to_chunks` does: `size`
    at a time.
    """
    parts = iter(lambda: body.read(size) or None, None) if hasattr(body, "read") else body
    return (part.encode() if isinstance(part, str) else bytes(part) for part in parts)


def _decode_headers(headers: Mapping[Any, Any]) -> Headers:
    from urllib3.util import SKIP_HEADER

    return tuple(
        (_decode_text(name), _decode_text(value))
        for name, value in headers.items()
        if value != SKIP_HEADER
    )


def _decode_text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _format_version(version: int) -> str:
    return {10: "HTTP/1.0", 20: "HTTP/2"}.get(version, "HTTP/1.1")
