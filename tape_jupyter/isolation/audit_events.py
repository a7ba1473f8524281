"""What an audit event says is about to happen: where a connection goes, what a child process runs.

Pure: events in, targets out; nothing is opened, resolved or refused here. Events and their
arguments are those of CPython's audit events table.
"""

from __future__ import annotations

import os
import re
import socket
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Literal
from urllib.parse import urlsplit

from tape_jupyter.core import shell_commands
from tape_jupyter.providers import hosts

# raised by taps (grpc, pycurl, websockets_open) for what goes out without an event
CLIENT = "tape_jupyter.client"
CONNECTIONS = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg", CLIENT})
LOOKUPS = frozenset(
    {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo"}
)
# Where the command line is among each event's arguments:
CHILDREN = {
    "subprocess.Popen": 1,
    "os.posix_spawn": 1,
    "os.exec": 1,
    "os.spawn": 2,
    "os.system": 0,
    "os.startfile": 0,
    "pty.spawn": 0,
}
# the guard goes with it; of a terminal's fork (os.forkpty) the child tells what it runs
FORK = "os.fork"
# raised by instrumentation/concurrency/processes.py: Python has no event for multiprocessing's
# children
PROCESS = "tape_jupyter.process"


@dataclass(frozen=True, slots=True)
class Target:
    """Where something is going: a host and port, or a command line.

    `networked`: it may reach the network, as every child may that is not known to stay on the
    machine. `expected`: asked for by the standard library itself, and a refusal must be one that it
    handles. `through`: the library that would connect, where it is one that no tap can record;
    `telemetry`: what it would send is told to be that; `taped`: while recording it is recorded.
    """

    kind: Literal["connection", "lookup", "child", "fork"]
    host: str = ""
    port: int | None = None
    command: str = ""
    networked: bool = True
    expected: bool = False
    through: str = ""
    telemetry: bool = False
    taped: bool = False

    @property
    def what(self) -> str:
        if self.kind in ("child", "fork"):
            return self.command
        place = self.host if self.port is None else f"{self.host}:{self.port}"
        return f"{place} through {self.through}" if self.through else place


def event_target(event: str, args: tuple[Any, ...]) -> Target | None:
    """What this event is about to reach; None if it stays on the machine without a doubt (AF_UNIX,
    `uname`).
    """
    if event == CLIENT:
        return _parse_client(*args[:4])
    if event in CONNECTIONS:
        return _parse_connection(*args[:2])
    if event in LOOKUPS:
        return _parse_lookup(
            args[0], backwards=event in ("socket.gethostbyaddr", "socket.getnameinfo")
        )
    if event in CHILDREN:
        return _parse_child(event, args)
    if event == FORK:
        return Target("fork", command="a forked process", networked=False)
    return (
        Target("child", command=f"multiprocessing ({args[0]}) {args[1]}")
        if event == PROCESS
        else None
    )


def is_address(host: str) -> bool:
    """True for an IPv4 or IPv6 address in digits."""
    return bool(re.fullmatch(r"[0-9.]+|[0-9a-fA-F:]+:[0-9a-fA-F:.]*(?:%\w+)?", host))


def _parse_connection(sock: Any, address: Any = None) -> Target | None:
    if getattr(sock, "family", None) not in (socket.AF_INET, socket.AF_INET6) or not isinstance(
        address, tuple
    ):
        return None
    return Target("connection", _decode_text(address[0]), address[1] if len(address) > 1 else None)


_LOCAL = ("unix:", "unix-abstract:", "vsock:")
_COLLECTOR = "/opentelemetry.proto.collector."


def _parse_client(
    library: str, address: str, method: str = "", taped: bool = False
) -> Target | None:
    """`address` as a URL has it, or gRPC: `host:443`, `dns:///host:443`, `ipv4:10.0.0.1:443`,
    `unix:/run/x`.
    """
    if address.startswith(_LOCAL):
        return None
    if address.startswith(("dns:", "xds:", "ipv4:", "ipv6:")) or "://" not in address:
        address = "grpc://" + re.sub(r"^(?:ipv[46]:|.*/)", "", address)
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:  # an address that no library takes; it says where all the same
        host, port = address, None
    return Target(
        "connection",
        host,
        port,
        through=library,
        telemetry=method.startswith(_COLLECTOR),
        taped=taped,
    )


def _parse_lookup(address: Any, *, backwards: bool) -> Target | None:
    host = _decode_text(address[0] if isinstance(address, tuple) else address)
    if hosts.loopback(host) or (is_address(host) and not backwards):
        return None
    # socket.getfqdn does this wherever a server of the standard library listens; it takes an
    # OSError for an answer.
    return Target("lookup", host, expected=backwards and host == socket.gethostname())


def _decode_text(value: Any) -> str:
    if isinstance(value, (bytes, bytearray)):
        return value.decode("utf-8", "replace")
    return str(value or "")


def command_line(event: str, args: tuple[Any, ...]) -> str:
    """The command line of a child process."""
    return shortened(" ".join(_read_command_words(event, args)))


def _parse_child(event: str, args: tuple[Any, ...]) -> Target | None:
    command = _read_command_words(event, args)
    if shell_commands.silent(command):
        return None
    text = command[-1] if shell_commands.is_script(command) else " ".join(command)
    return Target("child", command=shortened(text), networked=not shell_commands.harmless(command))


def shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 100 else f"{text[:97]}..."


def _read_command_words(event: str, args: tuple[Any, ...]) -> list[str]:
    """The command line; it begins with the program that really runs, whatever the line says it is."""
    at = CHILDREN[event]
    command = args[at] if len(args) > at else ""
    if not isinstance(command, (list, tuple)):
        if event == "os.system":
            return ["sh", "-c", _to_text(command)]
        return [_to_text(command)]
    parts = [_to_text(part) for part in command]
    program = _to_text(args[at - 1]) if at and args[at - 1] is not None else ""
    if program and parts and PurePath(program).name != PurePath(parts[0]).name:
        return [program, *parts[1:]]
    return parts


def _to_text(value: Any) -> str:
    if isinstance(value, (bytes, os.PathLike)):
        return os.fsdecode(value)
    return str(value)
