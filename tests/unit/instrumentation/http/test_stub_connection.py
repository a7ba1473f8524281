"""The connection of a reply off the tape: settings and addresses do no harm, what was not recorded is refused."""

from __future__ import annotations

import asyncio
import copy
import http.client
import socket
import ssl
from contextlib import closing

import httpx
import pytest

from tape_jupyter.errors import TapeError
from tape_jupyter.instrumentation.http import stub_connection
from tape_jupyter.instrumentation.http.stub_connection import Stream, Unplugged


def test_what_a_program_sets_it_reads_again():
    sock = Unplugged("example.invalid", 80, secure=False)
    assert (
        sock.gettimeout() is None and sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 0
    )
    sock.settimeout(3)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    assert sock.gettimeout() == 3 and sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8) == bytes(8)
    sock.setblocking(False)
    assert sock.gettimeout() == 0.0
    assert (
        sock.getpeername() == ("example.invalid", 80)
        and sock.getsockname()[1] == 0
        and sock.fileno() == -1
    )
    sock.shutdown(socket.SHUT_RDWR)
    sock.close()


def test_a_live_socket_is_set_as_it_was():
    sock = Unplugged("example.invalid", 80, secure=False)
    sock.settimeout(3)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    with socket.socket() as real:
        sock.carry_over(real)
        assert real.gettimeout() == 3 and real.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


@pytest.mark.parametrize(
    "name", ["recv", "send", "sendall", "makefile", "connect", "getpeercert", "version"]
)
def test_what_was_not_recorded_is_refused_with_what_to_do(name):
    asked = getattr(Unplugged("example.invalid", 443, secure=True), name)
    with pytest.raises(
        TapeError, match=rf"{name}\(\) on the connection to example.invalid:443 was refused"
    ) as refused:
        asked(1, binary_form=True)
    assert "@tape.tool" in str(refused.value) and "--live host:example.invalid" in str(
        refused.value
    )


def test_it_has_no_more_than_a_socket_has():
    plain = Unplugged("example.invalid", 80, secure=False)
    assert (
        hasattr(plain, "recv")
        and not hasattr(plain, "getpeercert")
        and not hasattr(plain, "nonsense")
    )
    assert hasattr(ssl.SSLSocket, "getpeercert")
    assert copy.copy(plain).getpeername() == plain.getpeername()


@pytest.mark.parametrize(
    ("url", "address"), [("https://a.invalid/x", ("a.invalid", 443)), ("http://b:81", ("b", 81))]
)
def test_a_stream_of_httpcore_tells_whom_it_stands_for(url, address):
    stream = Stream(httpx.URL(url))
    assert (
        stream.get_extra_info("server_addr") == address
        and stream.get_extra_info("is_readable") is False
    )
    assert (stream.get_extra_info("ssl_object") is not None) == url.startswith("https")
    for refused in (stream.read, stream.write, stream.start_tls):
        with pytest.raises(TapeError, match=f"{address[0]}:{address[1]} was refused"):
            refused(10, timeout=1)
    stream.close()
    asyncio.run(stream.aclose())


def test_a_connection_keeps_its_own_socket_and_loses_only_ours():
    with closing(http.client.HTTPConnection("example.invalid")) as conn, socket.socket() as real:
        stub_connection.stand_in_socket(conn)
        assert stub_connection.is_unplugged(conn)
        stub_connection.take_all_out()
        assert conn.sock is None
        conn.sock = real
        stub_connection.stand_in_socket(conn)
        stub_connection.take_out(conn)
        stub_connection.open_now(conn)
        assert conn.sock is real
