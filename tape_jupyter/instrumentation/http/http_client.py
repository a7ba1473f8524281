"""`http.client` and what sends through it: urllib.request, xmlrpc.client, anything over
HTTPConnection.

The tape is asked once the request is complete, before anything is opened: at the end of
`_send_output`, or with the last declared byte of body that the program sends by hand. A program may
open the connection first (`connect`): where the reply may come off the tape, that waits for the
same moment. What a transport above has taped already (urllib3) passes through, and so does whatever
is no taped cell's.
"""

from __future__ import annotations

import functools
import http.client
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import Any, cast

from tape_jupyter import instrumentation
from tape_jupyter.core.call import Capture, Headers, Play, Reply, Request, Tape
from tape_jupyter.core.context import SENDING
from tape_jupyter.core.large_body import LIMIT, LargeBody
from tape_jupyter.instrumentation.concurrency import threads
from tape_jupyter.instrumentation.http import http11, stub_connection, uploads
from tape_jupyter.instrumentation.http.replayed_response import pass_head, thawed
from tape_jupyter.instrumentation.patching import is_swapped, sending, sending_live, swap, undoing
from tape_jupyter.instrumentation.stepping_hook import instead

UNSENT = "while_sending"
"""Set on an error that `request` raised: urllib wraps such in URLError, and none that `getresponse`
raises.
"""

_CALL = "_tape_call"
_OPENING = "_tape_opening"


def patch(module: ModuleType) -> Callable[[], None]:
    """Tap the connections of `module` (http.client). Returns the undo."""
    connection, openers = module.HTTPConnection, _Openers()
    openers.tap_below(connection)
    return undoing(
        swap(connection, "__init__", openers.wrap_init),
        swap(connection, "send", _wrap_send),
        swap(connection, "_send_output", _wrap_send_output),
        swap(connection, "getresponse", _wrap_getresponse),
        openers.undo,
        stub_connection.take_all_out,
    )


class _Openers:
    """Who opens connections: `connect` of `HTTPConnection`, and of each class below it that has one
    of its own.

    Those that are there already are found below it, those that are defined later when they make
    their first instance.
    """

    def __init__(self) -> None:
        self._undone: list[Callable[[], None]] = []

    def tap_below(self, kind: type[Any]) -> None:
        self._tap_class(kind)
        for below in kind.__subclasses__():
            self.tap_below(below)

    def wrap_init(self, original: Callable[..., None]) -> Callable[..., None]:
        """What stands in for `HTTPConnection.__init__`."""

        @functools.wraps(original)
        def init_taped(conn: Any, *args: Any, **options: Any) -> None:
            self._tap_class(type(conn))
            original(conn, *args, **options)

        return init_taped

    def _tap_class(self, kind: type[Any]) -> None:
        if not is_swapped(kind, "connect"):
            owner = next(each for each in kind.__mro__ if "connect" in vars(each))
            self._undone.append(swap(owner, "connect", _wrap_connect))

    def undo(self) -> None:
        while self._undone:
            self._undone.pop()()


def _wrap_connect(original: Callable[[Any], None]) -> Callable[[Any], None]:
    @functools.wraps(original)
    def connect_taped(conn: Any) -> None:
        if (
            SENDING.get()
            or not hasattr(conn, "_send_output")
            or _OPENING in vars(conn)
            or instrumentation.tape_here() is None
        ):
            original(conn)
        elif instrumentation.may_answer():
            stub_connection.stand_in_socket(conn)
        else:
            _connect_live(conn, original)

    return connect_taped


def _connect_live(conn: Any, original: Callable[[Any], None]) -> None:
    """A recording cell opens the connection that its requests will take."""
    try:
        with sending_live():
            original(conn)
    except Exception as error:
        instrumentation.note(
            f"connecting to {conn.host}:{conn.port} failed before any request was made ({type(error).__name__}): that "
            "is not on the tape, and a replay goes on as if it had worked. Make what connects a tool (@tape.tool)"
        )
        raise


def _wrap_send_output(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def send_output(conn: Any, message_body: Any = None, encode_chunked: bool = False) -> None:
        tape = None
        if not SENDING.get():
            tape = instrumentation.tape_here(lambda: _build_visible_request(conn, message_body))
        if tape is None:
            return original(conn, message_body, encode_chunked)
        call = _Call(conn, tape, original, encode_chunked=encode_chunked)
        vars(conn)[_CALL] = call
        call.begin(message_body)
        return None

    return send_output


def _wrap_send(original: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    @functools.wraps(original)
    def send_taped(conn: Any, data: Any) -> None:
        call: _Call | None = vars(conn).get(_CALL)
        if (
            SENDING.get()
            or _OPENING in vars(conn)
            or (call is None and instrumentation.tape_here() is None)
        ):
            stub_connection.open_now(conn)
            original(conn, data)
        elif call is None:
            if conn.sock is not None and not stub_connection.is_unplugged(conn):
                instrumentation.note(_describe_unrecorded_bytes(conn))
            with _mark_opening(conn):
                stub_connection.open_now(conn)
                original(conn, data)
        elif not call.asked:
            call.add(_drain_body(conn, data))
        else:
            call.send_more(functools.partial(original, conn, data))

    return send_taped


def _wrap_getresponse(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    @functools.wraps(original)
    def getresponse_taped(conn: Any) -> Any:
        call: _Call | None = None if SENDING.get() else vars(conn).pop(_CALL, None)
        if call is None:
            return original(conn)
        return call.response(functools.partial(original, conn))

    return getresponse_taped


def _build_visible_request(conn: Any, body: Any) -> Request:
    """What can be seen of a request without reading its body."""
    first, *lines = (bytes(line).decode("latin-1") for line in conn._buffer)  # noqa: SLF001
    method, target, _ = first.split(" ", 2)
    content = body if isinstance(body, bytes) else b""
    return Request(
        method.upper(), _build_absolute_url(conn, target), tuple(map(_parse_header, lines)), content
    )


def _describe_unrecorded_bytes(conn: Any) -> str:
    return (
        f"bytes sent directly to {conn.host}:{conn.port}, outside of any request, and what they bring back are not on "
        "the tape. Make the function that sends them a tool (@tape.tool)"
    )


@contextmanager
def _mark_opening(conn: Any) -> Iterator[None]:
    """Inside, the connection is opened when it is asked for: the guard sees it."""
    setattr(conn, _OPENING, True)
    try:
        yield
    finally:
        delattr(conn, _OPENING)


class _Call:
    """One request on a connection, from its head to its response."""

    def __init__(
        self, conn: Any, tape: Tape, output: Callable[..., None], *, encode_chunked: bool
    ) -> None:
        self.conn, self.tape = conn, tape
        self.asked = False
        self.decision: Play | Capture | None = None
        first, *lines = (bytes(line).decode("latin-1") for line in conn._buffer)  # noqa: SLF001
        self.method, target, _ = first.split(" ", 2)
        self.headers: Headers = tuple(_parse_header(line) for line in lines)
        self.url = _build_absolute_url(conn, target)
        self._encode_chunked = encode_chunked and conn._http_vsn == 11  # noqa: SLF001
        self._output = output
        self._sent: list[bytes] = []
        self._body: list[bytes] = []
        self._large: LargeBody | None = None
        self._framing = self._build_framing()

    def _build_framing(self) -> http11.Framing | None:
        """What finds the body among the bytes that are sent; None where all of it comes with the
        head.
        """
        headers = {name.lower(): value for name, value in self.headers}
        if self._encode_chunked or not headers.keys() & {"transfer-encoding", "content-length"}:
            return None
        if "chunked" in headers.get("transfer-encoding", "").lower():
            return http11.Chunked()
        length = headers.get("content-length", "")
        return http11.Sized(int(length)) if length.isdigit() else None

    def begin(self, body: Any) -> None:
        """The body that comes with the head; None for no body."""
        if body is None or (isinstance(body, bytes) and len(body) <= LIMIT):
            return self.add(body)
        drained = uploads.drained(
            self.tape, lambda: self._build_request(b""), _read_parts(self.conn, body)
        )
        if isinstance(drained, LargeBody) and self._is_whole_body(drained):
            self._large = drained
            return self._ask_tape()
        return self.add(
            b"".join(uploads.blocks(drained)) if isinstance(drained, LargeBody) else drained
        )

    def _is_whole_body(self, body: LargeBody) -> bool:
        """Whether the head declares nothing else."""
        size = (body.sent or body).size
        return self._framing is None or (
            isinstance(self._framing, http11.Sized) and self._framing.length == size
        )

    def _build_request(self, body: bytes | LargeBody) -> Request:
        return uploads.upload_request(self.method.upper(), self.url, self.headers, body)

    def add(self, data: bytes | None) -> None:
        """Bytes of body that the program sends; None for no body. With the last ones the tape is
        asked.
        """
        if data is not None:
            self._sent.append(data)
            self._body += [data] if self._framing is None else self._framing.feed(data)
        if self._framing is None or self._framing.done:
            self._ask_tape()

    def _ask_tape(self) -> None:
        self.asked = True
        threads.settle_origin()
        request = self._build_request(b"".join(self._body) if self._large is None else self._large)
        try:
            self.decision = decision = self.tape.begin(request)
            if isinstance(decision, Play):
                self._play_sending(decision)
            else:
                self._send_request(decision)
        except BaseException:
            self._forget_call(idle=self.decision is None)
            raise

    def _forget_call(self, *, idle: bool) -> None:
        """A refused request was never made: the connection is as before it."""
        vars(self.conn).pop(_CALL, None)
        if idle:
            del self.conn._buffer[:]  # noqa: SLF001
            self.conn._HTTPConnection__state = http.client._CS_IDLE  # type: ignore[attr-defined]  # noqa: SLF001

    def _send_request(self, capture: Capture | None) -> None:
        other = instead(capture)
        if other is not None:
            self._change_request(other)
        send = functools.partial(
            self._output, self.conn, self._collect_body(), self._encode_chunked
        )
        if capture is None:
            with _mark_opening(self.conn):
                return send()
        try:
            with sending_live():
                return send()
        except BaseException as error:
            with suppress(AttributeError):
                setattr(error, UNSENT, True)
            capture.fail(error)
            raise

    def _change_request(self, other: Request) -> None:
        """What goes out in place of the program's request: a person changed its body."""
        self.conn._buffer[1:] = [  # noqa: SLF001
            f"{name}: {value}".encode("latin-1") for name, value in other.headers
        ]
        self._sent, self._encode_chunked, self._large = [other.body], False, None

    def _collect_body(self) -> bytes | Iterator[bytes] | None:
        if self._large is not None:
            return uploads.blocks(self._large)
        return b"".join(self._sent) if self._sent else None

    def _play_sending(self, decision: Play) -> None:
        """Nothing goes out; what failed while it was sent fails again."""
        del self.conn._buffer[:]  # noqa: SLF001
        reply = cast("Reply", decision.reply)
        if reply.status is None and _has_failed_sending(reply):
            pass_head(decision)
            raise thawed(reply.error)
        stub_connection.stand_in_socket(self.conn)

    def send_more(self, send: Callable[[], None]) -> None:
        """Bytes past those that the head declared."""
        if self.decision is None:
            send()
        elif not isinstance(self.decision, Play):
            with sending(self.decision):
                send()

    def response(self, receive: Callable[[], Any]) -> Any:
        """What `getresponse` gives."""
        if not self.asked:  # the program sent less than it declared
            self._ask_tape()
        if self.decision is None:
            return receive()
        if isinstance(self.decision, Play):
            return self._play_response(self.decision, receive)
        with sending(self.decision):
            response = receive()
        version = "HTTP/1.0" if response.version == 10 else "HTTP/1.1"
        self.decision.head(
            response.status, tuple(response.msg.items()), version, response.reason or ""
        )
        http11.capture_response(response, self.decision, in_parts=True)
        return response

    def _play_response(self, decision: Play, receive: Callable[[], Any]) -> Any:
        """The connection makes its own response, of recorded bytes; a socket it has open stays as
        it was.
        """
        reply = cast("Reply", decision.reply)
        pass_head(decision)
        if reply.status is None:
            raise thawed(reply.error)
        kept = self.conn.sock
        self.conn.sock = http11.replayed_socket(
            reply, lambda recorded: thawed(recorded.error), decision.gate
        )
        try:
            return receive()
        finally:
            closed = self.conn.sock is None and isinstance(kept, stub_connection.Unplugged)
            self.conn.sock = None if closed else kept


def _has_failed_sending(reply: Reply) -> bool:
    """Whether `request` raised the recorded error; of an injected one, whether it would have."""
    attributes = (reply.error or {}).get("attributes", {})
    return bool(attributes.get(UNSENT)) or isinstance(
        thawed(reply.error), (ConnectionRefusedError, socket.gaierror)
    )


def _drain_body(conn: Any, data: Any) -> bytes:
    return b"".join(_read_parts(conn, data))


def _read_parts(conn: Any, data: Any) -> Iterable[bytes]:
    """All that `http.client` would send of a body: bytes, a file (text as Latin-1), an iterable."""
    if hasattr(data, "read"):
        return cast("Iterable[bytes]", conn._read_readable(data))  # noqa: SLF001
    try:
        return (bytes(memoryview(data)),)
    except TypeError:
        return cast("Iterable[bytes]", data)


def _parse_header(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name, value.strip()


def _build_absolute_url(conn: Any, target: str) -> str:
    if target.startswith(("http://", "https://")):
        return target  # to a forwarding proxy, which is told the target in full
    scheme = "https" if conn.default_port == http.client.HTTPS_PORT else "http"
    host, port = conn.host, conn.port
    if conn._tunnel_host:  # noqa: SLF001
        host, port = conn._tunnel_host, conn._tunnel_port  # noqa: SLF001
    name = f"[{host}]" if ":" in host else host
    return f"{scheme}://{name}{'' if port in (None, conn.default_port) else f':{port}'}/{target.removeprefix('/')}"
