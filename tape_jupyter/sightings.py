"""Engine room: what an audit event says is about to happen: where a connection goes, what a child process runs.

Pure: events in, targets out; nothing is opened, resolved or refused here. Events and their arguments are those of
CPython's audit events table.
"""

from __future__ import annotations

import os
import re
import shlex
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Literal

from tape_jupyter import hosts

CONNECTIONS = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
LOOKUPS = frozenset({"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo"})
# A fork is not among them: the guard goes with it. Where the command line is among each event's arguments:
CHILDREN = {
    "subprocess.Popen": 1,
    "os.posix_spawn": 1,
    "os.exec": 1,
    "os.spawn": 2,
    "os.system": 0,
    "os.startfile": 0,
    "pty.spawn": 0,
}

_NETWORK_PROGRAMS = frozenset(
    {
        "curl",
        "wget",
        "ssh",
        "scp",
        "sftp",
        "rsync",
        "nc",
        "ncat",
        "netcat",
        "telnet",
        "ftp",
        "lftp",
        "ping",
        "dig",
        "host",
    }
    | {"nslookup", "traceroute", "aria2c", "http", "https", "xh", "grpcurl", "websocat", "socat", "sendmail", "mail"}
    | {"psql", "mysql", "redis-cli", "mongosh", "sqlcmd", "aws", "gcloud", "gsutil", "az", "gh", "kubectl", "docker"}
    | {"pip", "pip3", "uv", "conda", "mamba", "npm", "npx", "huggingface-cli", "hf", "ollama"}
)
_NETWORK_GIT = frozenset({"clone", "fetch", "pull", "push", "ls-remote", "submodule"})
_HARMLESS_PROGRAMS = frozenset(
    {"uname", "ldconfig", "lscpu", "getconf", "lsb_release", "sysctl", "stty", "tput", "locale", "which", "clear"}
)
_WRAPPERS = frozenset(
    {"sudo", "env", "nohup", "time", "timeout", "xargs", "exec", "command", "nice", "then", "do", "!"}
)


@dataclass(frozen=True, slots=True)
class Target:
    """Where something is going: a host and port, or a command line.

    `networked`: it is there to reach the network (any child may, unseen). `expected`: asked for by the standard
    library itself, and a refusal must be one that it handles.
    """

    kind: Literal["connection", "lookup", "child"]
    host: str = ""
    port: int | None = None
    command: str = ""
    networked: bool = True
    expected: bool = False

    @property
    def what(self) -> str:
        if self.kind == "child":
            return self.command
        return self.host if self.port is None else f"{self.host}:{self.port}"


def target(event: str, args: tuple[Any, ...]) -> Target | None:
    """What this event is about to reach; None if it stays on the machine without a doubt (AF_UNIX, `uname`)."""
    if event in CONNECTIONS:
        return _connection(*args[:2])
    if event in LOOKUPS:
        return _lookup(args[0], backwards=event in ("socket.gethostbyaddr", "socket.getnameinfo"))
    if event in CHILDREN:
        return _child(event, args)
    return None


def is_address(host: str) -> bool:
    """True for an IPv4 or IPv6 address in digits."""
    return bool(re.fullmatch(r"[0-9.]+|[0-9a-fA-F:]+:[0-9a-fA-F:.]*(?:%\w+)?", host))


def _connection(sock: Any, address: Any = None) -> Target | None:
    if getattr(sock, "family", None) not in (socket.AF_INET, socket.AF_INET6) or not isinstance(address, tuple):
        return None
    return Target("connection", _text(address[0]), address[1] if len(address) > 1 else None)


def _lookup(asked: Any, *, backwards: bool) -> Target | None:
    host = _text(asked[0] if isinstance(asked, tuple) else asked)
    if hosts.loopback(host) or (is_address(host) and not backwards):
        return None
    # socket.getfqdn does this wherever a server of the standard library listens; it takes an OSError for an answer.
    return Target("lookup", host, expected=backwards and host == socket.gethostname())


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, (bytes, bytearray)) else str(value or "")


def _child(event: str, args: tuple[Any, ...]) -> Target | None:
    words = _words(event, args)
    commands = [command for command in _commands(words) if command]
    names = {_program(command) for command in commands}
    if names and names <= _HARMLESS_PROGRAMS:
        return None
    networked = bool(names & _NETWORK_PROGRAMS) or any(_reaches_remote(command) for command in commands)
    return Target("child", command=shortened(words[-1] if _is_script(words) else " ".join(words)), networked=networked)


def shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 100 else f"{text[:97]}..."


def _words(event: str, args: tuple[Any, ...]) -> list[str]:
    told = args[CHILDREN[event]] if len(args) > CHILDREN[event] else ""
    if isinstance(told, (list, tuple)):
        return [_word(word) for word in told]
    return ["sh", "-c", _word(told)] if event == "os.system" else [_word(told)]


def _word(word: Any) -> str:
    return os.fsdecode(word) if isinstance(word, (bytes, os.PathLike)) else str(word)


def _is_script(words: Sequence[str]) -> bool:
    return len(words) >= 3 and PurePath(words[0]).name.endswith("sh") and re.fullmatch(r"-\w*c", words[1]) is not None


def _commands(words: Sequence[str]) -> Iterator[list[str]]:
    """The commands that a command line runs: itself, or each one of a shell's script."""
    if _is_script(words):
        for script in (words[2], *("".join(found) for found in re.findall(r"\$\(([^)]*)|`([^`]*)", words[2]))):
            yield from _script(script)
    else:
        yield _unwrapped(words if len(words) > 1 else _split(words[0] if words else ""))


def _script(text: str) -> Iterator[list[str]]:
    command: list[str] = []
    for word in _split(text.replace("\n", " ; ")):
        if re.fullmatch(r"[;&|()]+", word):
            yield _unwrapped(command)
            command = []
        else:
            command.append(word)
    yield _unwrapped(command)


def _split(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:  # an open quote
        return line.split()


def _unwrapped(words: Sequence[str]) -> list[str]:
    """`sudo FOO=1 curl x` -> `curl x`; `python -m pip x` -> `pip x`."""
    left = list(words)
    while left and (left[0] in _WRAPPERS or re.match(r"\w+=|-|\d+s?$", left[0])):
        left.pop(0)
    if len(left) > 2 and "python" in PurePath(left[0]).name and left[1] == "-m":
        return left[2:]
    return left


def _program(command: Sequence[str]) -> str:
    return PurePath(command[0]).name.removesuffix(".exe")


def _reaches_remote(command: Sequence[str]) -> bool:
    return _program(command) == "git" and any(word in _NETWORK_GIT for word in command[1:6])
