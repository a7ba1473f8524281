"""Harness: what a program does over a WebSocket, live, recorded, and replayed with the server gone.

A test module imports the fixture `server` beside what it calls.
"""

import asyncio
import json

import pytest

import tape_jupyter as tape
from tests.harness.sockets import SocketServer


@pytest.fixture
def server():
    with SocketServer() as server:
        yield server


def twice(path, server, program):
    """The program untaped, recorded, and replayed with the server gone: the same each time. Returns what it saw."""
    untaped = asyncio.run(program(server.url))
    with tape.recording(path) as block:
        recorded = asyncio.run(program(server.url))
    assert block.report.warnings == []
    server.stop()
    opened = server.opened
    with tape.replaying(path, strict=True) as block:
        replayed = asyncio.run(program(server.url))
    assert recorded == untaped
    assert replayed == recorded
    assert server.opened == opened and not block.report.misses
    return replayed


async def conversation(ws, *texts):
    """Over a client of `websockets`: what it has received once each text is answered."""
    seen = [await ws.recv()]
    for text in texts:
        await ws.send(json.dumps({"type": "ask", "text": text}))
        while True:
            seen.append(await ws.recv())
            if "response.done" in seen[-1]:
                break
    return seen
