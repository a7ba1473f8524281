"""Harness: what a program does over HTTP, live against the provider, and again from a tape in memory.

A test module imports the fixtures `provider` and `tape` beside what it calls.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.harness.memory_tape import MemoryTape, taped
from tests.harness.provider import Provider


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as server:
        yield server


@pytest.fixture
def tape() -> Iterator[MemoryTape]:
    with taped(MemoryTape()) as installed:
        yield installed


def twice(tape: MemoryTape, provider: Provider, run: Callable[[], Any]) -> Any:
    """Run, stop the provider, run again from the tape: the same, with nothing sent. Gives what it was."""
    live = run()
    sent = len(provider.requests)
    provider.stop()
    tape.rewind()
    assert run() == live
    assert len(provider.requests) == sent and not tape.missed
    return live


def live_source(provider: Provider) -> Iterator[bytes]:
    """A body as it comes to be: whoever asks for it is connected by then, or it says that nobody was."""
    until = time.monotonic() + 5
    while not provider.connections and time.monotonic() < until:
        time.sleep(0.001)
    yield b"somebody listens" if provider.connections else b"nobody listens"


def patience(then: str) -> float:
    """Seconds: a client is to give up on a server that hangs, and on no other however slow the machine."""
    return 0.5 if then == "hang" else 20


@contextmanager
def deaf_port() -> Iterator[int]:
    """A port whose queue of connections is full: connecting to it takes for ever."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(server.getsockname())
        try:
            yield server.getsockname()[1]
        finally:
            for each in waiting:
                each.close()
