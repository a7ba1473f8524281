"""What the tests of MCP share: a session over every transport, a conversation, recording and replaying it."""

import asyncio
import logging
import sys
import warnings
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcp import Client, ClientSession, MCPError, StdioServerParameters
from mcp.client._memory import InMemoryTransport
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

import tape_jupyter as tape
from tape_jupyter.errors import UnmatchedCall
from tests.harness import mcp_server

SERVER = str(Path(mcp_server.__file__))


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    """The SDK logs what servers log, warns of what it renamed, and counts its own: none of it is ours."""
    for name in ("mcp", "client", "httpx2"):
        monkeypatch.setattr(logging.getLogger(name), "level", logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        mcp_server.done.clear()
        yield


@pytest.fixture
def path(tmp_path):
    return tmp_path / "talk.tape.yaml"


@pytest.fixture
def log(tmp_path):
    (tmp_path / "server.log").touch()
    return tmp_path / "server.log"


def stdio(log):
    return StdioServerParameters(command=sys.executable, args=[SERVER, "stdio"], env={"MCP_SERVER_LOG": str(log), "PYTHONPATH": str(Path(SERVER).parent.parent)})  # fmt: skip


@asynccontextmanager
async def session_over(transport, **options):
    async with transport as streams, ClientSession(*streams, **options) as session:
        await session.initialize()
        yield session


@asynccontextmanager
async def session_of(client):
    async with client:
        yield client.session


TRANSPORTS = {
    "stdio": lambda log, _url: session_over(stdio_client(stdio(log))),
    "http": lambda _log, url: session_over(streamable_http_client(url)),
    "sse": lambda _log, url: session_over(sse_client(url)),
    "in memory": lambda _log, _url: session_over(InMemoryTransport(mcp_server.make())),
    "client, stdio": lambda log, _url: session_of(Client(stdio(log))),
    "client, http": lambda _log, url: session_of(Client(url)),
    "client, in memory": lambda _log, _url: session_of(Client(mcp_server.make())),
    "client, in memory, legacy": lambda _log, _url: session_of(
        Client(mcp_server.make(), mode="legacy")
    ),
}


async def converse(session):
    """Everything a session can ask, with every kind of end."""
    told, steps = [session.protocol_version, session.server_capabilities], []

    async def on_progress(progress, total, message):
        steps.append((progress, total, message))

    told.append(await session.list_tools())
    told += [await session.call_tool("weather", {"city": "Oslo"}) for _ in range(2)]
    told.append(await session.call_tool("slow", {"steps": 3}, progress_callback=on_progress))
    told.append(steps)
    told.append(await session.call_tool("broken"))
    told.append(await session.read_resource("station://status"))
    told.append(await session.get_prompt("ask", {"city": "Oslo"}))
    for failing in (
        session.read_resource("station://nowhere"),
        session.call_tool("hang", read_timeout_seconds=0.2),
    ):
        with pytest.raises(MCPError) as caught:
            await failing
        told.append((type(caught.value), str(caught.value), caught.value.error))
    return told


def record(path, program):
    async def within():
        async with tape.recording(path) as block:
            result = await program()
        return result, block.report

    return asyncio.run(within())


def refusal(path, program):
    """The refusal that a replay ends with: task groups wrap it in a group each."""
    with pytest.raises(BaseException) as caught:
        replay(path, program)
    error = caught.value
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    assert isinstance(error, UnmatchedCall), repr(error)
    return str(error)


def replay(path, program, make=tape.replaying):
    async def within():
        async with make(path) as block:
            result = await program()
        return result, block.report

    return asyncio.run(within())
