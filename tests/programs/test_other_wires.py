"""What no tap takes (FTP, mail, raw sockets) is named while recording and refused in replay, before anything is sent."""

from __future__ import annotations

import asyncio
import ftplib
import imaplib
import poplib
import smtplib
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tape_jupyter.errors import BlockedConnection
from tape_jupyter.session.session import TapeSession
from tests.harness.taped_cells import taped
from tests.harness.tapes import Recorder, answered, asked


class Talk(socketserver.StreamRequestHandler):
    """Greets, and answers whatever is said with what says yes in its protocol."""

    greeting = b""

    def handle(self) -> None:
        self.server.asked.append(self.client_address)
        self.wfile.write(self.greeting)
        for line in self.rfile:
            is_imap = self.greeting.startswith(b"*")
            self.wfile.write(
                b"* CAPABILITY IMAP4rev1\r\n%b OK done\r\n" % line.split()[0]
                if is_imap
                else b"250 OK\r\n"
            )


@contextmanager
def talking(greeting: bytes) -> Iterator[Any]:
    handler = type("Greeting", (Talk,), {"greeting": greeting})
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads, server.asked = True, []
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def by_ftp(host: str, port: int) -> Any:
    ftp = ftplib.FTP()
    welcome = ftp.connect(host, port, timeout=5)
    ftp.close()
    return welcome


def by_smtp(host: str, port: int) -> Any:
    mail = smtplib.SMTP(host, port, local_hostname="here", timeout=5)
    answer = mail.helo()
    mail.close()
    return answer


def by_imap(host: str, port: int) -> Any:
    mail = imaplib.IMAP4(host, port, timeout=5)
    mail.shutdown()
    return mail.welcome


def by_pop(host: str, port: int) -> Any:
    mail = poplib.POP3(host, port, timeout=5)
    mail.close()
    return mail.getwelcome()


def by_socket(host: str, port: int) -> Any:
    with socket.create_connection((host, port), timeout=5) as sock:
        return sock.recv(100)


def by_streams(host: str, port: int) -> Any:
    async def run() -> Any:
        reader, writer = await asyncio.open_connection(host, port)
        line = await reader.readline()
        writer.close()
        await writer.wait_closed()
        return line

    return asyncio.run(run())


WIRES = {
    by_ftp: b"220 welcome\r\n",
    by_smtp: b"220 welcome\r\n",
    by_imap: b"* OK welcome\r\n",
    by_pop: b"+OK welcome\r\n",
    by_socket: b"220 welcome\r\n",
    by_streams: b"220 welcome\r\n",
}


@pytest.mark.parametrize("send", WIRES, ids=lambda send: send.__name__)
def test_it_is_named_while_recording_and_refused_in_replay(send, tmp_path):
    path, deck = tmp_path / "n.tapes" / "main.tape.yaml", TapeSession()
    with talking(WIRES[send]) as server:
        host, port = server.server_address
        with taped(deck, "record", path) as recorded:
            assert send(host, port)
        named = f"connection to {host}:{port}"
        assert [
            warning
            for warning in recorded.report.warnings
            if named in warning and "not on the tape" in warning
        ]
        Recorder(path).run("a cell", (asked("Which?"), answered("North")))
        with pytest.raises(BlockedConnection, match=f"{host}:{port}"), taped(deck, "replay", path):
            send(host, port)
        assert len(server.asked) == 1
    deck.unhook()
