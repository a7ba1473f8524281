"""Transports of MCP: not opened in replay, opened when something must go live, failing as they failed."""

import asyncio

import pytest
from mcp import Client, ClientSession, MCPError, StdioServerParameters
from mcp.client._memory import InMemoryTransport
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.lowlevel import Server
from mcp_types import CallToolResult, ListToolsResult, TextContent

import tape_jupyter as tape
from tests.harness import mcp_server
from tests.harness.mcp_talk import log, path, quiet, record, replay, session_of, session_over, stdio  # noqa: F401 - fixtures among them


def test_a_server_that_cannot_be_started_fails_the_same_way(path):
    async def program():
        with pytest.raises(FileNotFoundError) as caught:
            async with session_over(stdio_client(StdioServerParameters(command="no-such-server"))):
                pass
        return str(caught.value), caught.value.errno

    live, _ = record(path, program)
    assert replay(path, program)[0] == live


def test_a_server_that_nobody_listens_for_takes_the_session_down_again(path):
    url = f"http://127.0.0.1:{mcp_server.free_port()}/mcp"

    def shape(error):
        return (type(error), [shape(e) for e in error.exceptions] if isinstance(error, BaseExceptionGroup) else str(error))  # fmt: skip

    async def program(make):
        with pytest.raises(BaseExceptionGroup) as caught:
            async with make() as session:
                await session.list_tools()
        return shape(caught.value)

    for make in (
        lambda: session_over(streamable_http_client(url)),
        lambda: session_of(Client(url)),
    ):
        path.unlink(missing_ok=True)
        live, _ = record(path, lambda: program(make))
        assert "ConnectError" in repr(live)
        assert replay(path, lambda: program(make))[0] == live


def test_a_server_that_dies_amid_a_call_dies_again(path, log):
    async def program():
        async with stdio_client(stdio(log)) as streams, ClientSession(*streams) as session:
            await session.initialize()
            with pytest.raises(MCPError) as caught:
                await session.call_tool("leave")
            return caught.value.error

    live, _ = record(path, program)
    assert live.message == "Connection closed"
    assert replay(path, program)[0] == live


def test_a_tool_that_was_not_recorded_wakes_the_server_and_only_then(path, log):
    async def first():
        async with session_over(stdio_client(stdio(log))) as session:
            return await session.call_tool("weather", {"city": "Oslo"})

    async def more():
        async with session_over(stdio_client(stdio(log))) as session:
            return [
                await session.call_tool("weather", {"city": city}) for city in ("Oslo", "Bergen")
            ]

    live, _ = record(path, first)
    log.write_text("")
    both, _ = replay(path, more, lambda path: tape.replaying(path, mode="new_episodes"))
    assert both[0] == live and both[1].structured_content["city"] == "Bergen"
    assert log.read_text().splitlines() == ["weather Bergen"]
    assert replay(path, more)[0] == both


def test_a_client_wakes_too(path):
    async def program(*cities):
        async with Client(mcp_server.make()) as client:
            return [await client.call_tool("weather", {"city": city}) for city in cities]

    record(path, lambda: program("Oslo"))
    mcp_server.done.clear()
    both, _ = replay(
        path,
        lambda: program("Oslo", "Bergen"),
        lambda path: tape.replaying(path, mode="new_episodes"),
    )
    assert mcp_server.done == ["weather Bergen"]
    assert replay(path, lambda: program("Oslo", "Bergen"))[0] == both


def test_what_the_tools_of_a_server_in_this_process_did_happens_again(path):
    program_ran = []

    async def program():
        mcp_server.seen.clear()
        async with Client(mcp_server.make()) as client:
            await client.call_tool("weather", {"city": "Oslo"})
            program_ran.append(list(mcp_server.seen))

    record(path, program)
    _, report = replay(path, program)
    assert program_ran == [["weather Oslo"], ["weather Oslo"]] and not report.warnings


def test_what_the_handler_of_a_plain_server_did_happens_again(path, capsys):
    async def handle(_context, asked):
        print("asked for", asked.arguments["city"])
        mcp_server.seen.append(asked.name)
        return CallToolResult(content=[TextContent(type="text", text="fine")])

    async def listed(_context, _asked):
        return ListToolsResult(tools=[])

    server = Server("plain", on_call_tool=handle, on_list_tools=listed)

    async def program():
        mcp_server.seen.clear()
        async with Client(server) as client:
            await client.call_tool("weather", {"city": "Oslo"})
        return list(mcp_server.seen), capsys.readouterr().out

    live, _ = record(path, program)
    assert replay(path, program)[0] == live == (["weather"], "asked for Oslo\n")


def test_a_session_made_before_anything_was_taped_is_taped_too(path):
    async def program():
        async with session_over(InMemoryTransport(mcp_server.make())) as session:
            async with tape.recording(path):
                live = await session.call_tool("weather", {"city": "Oslo"})
            async with tape.replaying(path):
                again = await session.call_tool("weather", {"city": "Oslo"})
        return live, again

    live, again = asyncio.run(program())
    assert live == again and len(mcp_server.done) == 1


def test_untaped_everything_is_as_ever(path):
    async def program():
        async with session_over(InMemoryTransport(mcp_server.make())) as session:
            return await session.call_tool("weather", {"city": "Oslo"})

    first = record(path, program)[0]
    second = asyncio.run(program())
    assert (first.structured_content["nth"], second.structured_content["nth"]) == (1, 2)


def test_one_tool_runs_live_and_the_rest_is_played(path, log):
    async def program():
        async with session_over(stdio_client(stdio(log))) as session:
            status = await session.read_resource("station://status")
            return (
                status,
                await session.call_tool("weather", {"city": "Oslo"}),
                await session.get_prompt("ask", {"city": "x"}),
            )

    live, _ = record(path, program)
    log.write_text("")
    again, report = replay(path, program, lambda path: tape.replaying(path, live="tool:weather"))
    assert (again[0], again[2]) == (live[0], live[2])
    assert again[1].structured_content == {"city": "Oslo", "nth": 1} != live[1].structured_content
    assert log.read_text().splitlines() == ["weather Oslo"], (
        "a server was started for that one call"
    )


def test_taken_off_a_session_talks_as_if_nothing_had_been_there(path):
    from tape_jupyter.session import session as session_session

    async def program():
        async with session_over(InMemoryTransport(mcp_server.make())) as session:
            async with tape.recording(path):
                first = await session.call_tool("weather", {"city": "Oslo"})
            session_session.get().unhook()
            assert "_dispatcher" not in vars(ClientSession)
            assert type(session._dispatcher).__module__.startswith("mcp.")
            return first, await session.call_tool("weather", {"city": "Oslo"})

    first, second = asyncio.run(program())
    assert (first.structured_content["nth"], second.structured_content["nth"]) == (1, 2)
    assert stdio_client.__closure__[0].cell_contents is stdio_client.__wrapped__


def test_all_tools_live_talk_to_a_server_of_their_own(path, log):
    async def program():
        async with session_over(stdio_client(stdio(log))) as session:
            await session.list_tools()
            return [
                await session.call_tool("weather", {"city": city}) for city in ("Oslo", "Bergen")
            ]

    record(path, program)
    log.write_text("")
    again, report = replay(path, program, lambda path: tape.replaying(path, live="tools"))
    assert [one.structured_content["city"] for one in again] == ["Oslo", "Bergen"]
    assert log.read_text().splitlines() == ["weather Oslo", "weather Bergen"]
    assert not [warning for warning in report.warnings if "process" in warning]
