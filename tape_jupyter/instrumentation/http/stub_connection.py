"""The connection of a reply that comes off the tape, for who looks at more than the bytes of it.

What a program sets on it or asks of its address does no harm. What it would read, send or prove
over it is not on the tape: that is refused in words. A connection that goes live after all is set
as the program had set this one.
"""

from __future__ import annotations

import functools
import http.client
import socket
from collections.abc import Mapping
from typing import Any, NoReturn
from weakref import WeakValueDictionary

from tape_jupyter.errors import TapeError


class Unplugged:
    """As much of a socket as a program sees of a connection that somebody else reads and writes."""

    family, type, proto = socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP
    _secure = False  # of one that is being copied

    def __init__(self, host: str, port: int, *, secure: bool) -> None:
        self._address, self._secure = (host, port), secure
        self._settings: list[tuple[str, tuple[Any, ...]]] = []
        self._timeout: float | None = None

    def __getattr__(self, name: str) -> Any:
        if not hasattr(_find_socket_class(secure=self._secure), name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return functools.partial(refuse_connection, name, *self._address)

    def settimeout(self, seconds: float | None) -> None:
        self._timeout = seconds
        self._settings.append(("settimeout", (seconds,)))

    def setblocking(self, flag: bool) -> None:
        self.settimeout(None if flag else 0.0)

    def gettimeout(self) -> float | None:
        return self._timeout

    def setsockopt(self, *args: Any) -> None:
        self._settings.append(("setsockopt", args))

    def getsockopt(self, level: int, option: int, size: int = 0) -> Any:
        """What the program set; else nothing."""
        for name, args in reversed(self._settings):
            if name == "setsockopt" and args[:2] == (level, option):
                return args[2]
        return bytes(size) if size else 0

    def getpeername(self) -> tuple[str, int]:
        """The host by the name that was asked for: nobody looked its address up."""
        return self._address

    def getsockname(self) -> tuple[str, int]:
        return "0.0.0.0", 0  # noqa: S104 - nothing is bound

    def fileno(self) -> int:
        return -1

    def shutdown(self, how: int) -> None:
        """Nothing is open."""

    def close(self) -> None:
        """Nothing is open."""

    def carry_over(self, sock: Any) -> None:
        """Set a live socket as the program had set this one."""
        for name, args in self._settings:
            getattr(sock, name)(*args)


class Stream:
    """What `extensions["network_stream"]` of a played reply is: httpcore's network stream, sync and
    async.
    """

    def __init__(self, url: Any) -> None:
        self._url = url

    @functools.cached_property
    def _socket(self) -> Unplugged:
        """The same each time it is asked for: it keeps the options that a program sets."""
        secure = self._url.scheme == "https"
        return Unplugged(self._url.host, self._url.port or (443 if secure else 80), secure=secure)

    def get_extra_info(self, info: str) -> Any:
        sock, secure = self._socket, self._url.scheme == "https"
        values: Mapping[str, Any] = {
            "server_addr": sock.getpeername(),
            "client_addr": sock.getsockname(),
            "socket": sock,
            "ssl_object": sock if secure else None,
            "is_readable": False,
        }
        return values.get(info)

    def read(self, *_args: Any, **_options: Any) -> NoReturn:
        refuse_connection("read", *self._socket.getpeername())

    def write(self, *_args: Any, **_options: Any) -> NoReturn:
        refuse_connection("write", *self._socket.getpeername())

    def start_tls(self, *_args: Any, **_options: Any) -> NoReturn:
        refuse_connection("start_tls", *self._socket.getpeername())

    def close(self) -> None:
        """Nothing is open."""

    async def aclose(self) -> None:
        """Nothing is open."""


def refuse_connection(name: str, host: str, port: int, *_args: Any, **_options: Any) -> NoReturn:
    """Raise the TapeError for what cannot be had of a connection that is not there."""
    raise TapeError(
        f"replay: {name}() on the connection to {host}:{port} was refused: the reply comes off the tape and nobody is "
        "connected; what a program reads, sends or asks there by itself was not recorded.\n"
        f"Make what does it a tool (@tape.tool), so that its result is on the tape; or let the host's calls go out "
        f"(%%tape replay --live host:{host}); or run the cell with %tape off."
    )


def _find_socket_class(*, secure: bool) -> type:
    """What a connection's socket is live."""
    if not secure:
        return socket.socket
    import ssl

    return ssl.SSLSocket


# ---- in the place of the socket of an `http.client.HTTPConnection`

_plugged: WeakValueDictionary[int, Any] = WeakValueDictionary()
"""The connections whose socket is none, by their `id`."""


def stand_in_socket(conn: Any) -> None:
    """A connection that has no socket gets one that leads nowhere."""
    if conn.sock is None:
        conn.sock = Unplugged(
            conn.host, conn.port, secure=conn.default_port == http.client.HTTPS_PORT
        )
        _plugged[id(conn)] = conn


def is_unplugged(conn: Any) -> bool:
    return isinstance(conn.sock, Unplugged)


def take_out(conn: Any) -> None:
    """A connection that has one of ours has none."""
    if is_unplugged(conn):
        conn.sock = None
        _plugged.pop(id(conn), None)


def take_all_out() -> None:
    for conn in list(_plugged.values()):
        take_out(conn)


def open_now(conn: Any) -> None:
    """What was put off: a connection that has one of ours is opened, and set as the program had set
    it.
    """
    if is_unplugged(conn):
        unplugged = conn.sock
        take_out(conn)
        conn.connect()
        unplugged.carry_over(conn.sock)
