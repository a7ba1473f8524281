"""MCP: what a session asks is recorded over every transport, and played with the server gone."""

import asyncio
import re

import anyio
import mcp_types
import pytest
from mcp import Client
from mcp.client._memory import InMemoryTransport
from mcp.client.stdio import stdio_client

import tape_jupyter as tape
from tape_jupyter.core.call import FunctionCall
from tests.harness import mcp_server
from tests.harness.mcp_talk import (
    TRANSPORTS,
    converse,
    log,
    path,
    quiet,
    record,
    refusal,
    replay,
    session_of,
    session_over,
    stdio,
)  # noqa: F401 - fixtures among them
from tests.harness.provider import Provider


@pytest.mark.spread(4)
@pytest.mark.parametrize("over", TRANSPORTS)
def test_a_conversation_is_played_with_the_server_gone(over, path, log):
    async def program(url=""):
        async with TRANSPORTS[over](log, url) as session:
            return await converse(session)

    kind = "sse" if over == "sse" else "http"
    if "http" in over or over == "sse":
        with mcp_server.running(kind, log) as url:
            live, report = record(path, lambda: program(url))
    else:
        url = ""
        live, report = record(path, program)
    assert not report.warnings
    doings = log.read_text(), list(mcp_server.done)
    again, _ = replay(path, lambda: program(url))
    assert again == live
    assert [type(one) for one in again] == [type(one) for one in live]
    assert isinstance(live[2], mcp_types.ListToolsResult) and live[6] == [
        (1, 3, "step 1"),
        (2, 3, "step 2"),
        (3, 3, "step 3"),
    ]
    assert (log.read_text(), list(mcp_server.done)) == doings, (
        "in replay no tool runs, and no server is started"
    )
    calls = tape.open(path).calls
    assert [c.request().name for c in calls][-9:] == [
        "mcp.tools/list", "weather", "weather", "slow", "broken", "mcp.resources/read", "mcp.prompts/get", "mcp.resources/read", "hang",
    ]  # fmt: skip
    assert {c.request().kind for c in calls if not c.request().name.startswith("mcp.")} == {"tool"}
    assert calls[-8].request().arguments == {"city": "Oslo"}
    assert {type(c.request()) for c in calls} == {FunctionCall}, (
        "HTTP below MCP is not recorded again"
    )


def test_a_call_that_the_program_cancelled_is_cancelled_again(path):
    async def program():
        async with session_over(InMemoryTransport(mcp_server.make())) as session:
            with anyio.move_on_after(0.2) as scope:
                await session.call_tool("hang")
            return scope.cancelled_caught, await session.call_tool("weather", {"city": "Oslo"})

    live, _ = record(path, program)
    assert live[0]
    assert replay(path, program)[0] == live


def test_calls_side_by_side_get_their_own_results(path, log):
    async def program():
        async with session_over(stdio_client(stdio(log))) as session:
            cities = ["Oslo", "Bergen", "Oslo", "Tromso"]
            results = await asyncio.gather(
                *(session.call_tool("weather", {"city": city}) for city in cities)
            )
        return [result.structured_content for result in results]

    live, _ = record(path, program)
    assert [one["city"] for one in live] == ["Oslo", "Bergen", "Oslo", "Tromso"]
    assert replay(path, program)[0] == live


def test_a_tool_that_was_not_recorded_is_refused_in_replay(path, log):
    async def program(city):
        async with session_over(stdio_client(stdio(log))) as session:
            return await session.call_tool("weather", {"city": city})

    record(path, lambda: program("Oslo"))
    log.write_text("")
    assert re.search("(?s)weather.*Oslo.*Bergen", refusal(path, lambda: program("Bergen")))
    assert log.read_text() == ""


def test_a_tool_that_is_stubbed_never_runs_and_says_the_stubs_value(path, log):
    async def program():
        async with session_over(stdio_client(stdio(log))) as session:
            return [
                await session.call_tool("erase", {"path": "/"}),
                await session.call_tool("weather", {"city": "Oslo"}),
            ]

    stubs = {"tool:erase": "left alone", "tool:weather": {"city": "Oslo", "nth": 0}}
    results, _ = replay(path, program, lambda path: tape.recording(path, stub=stubs))
    assert [one.structured_content for one in results] == [
        {"result": "left alone"},
        {"city": "Oslo", "nth": 0},
    ]
    assert results[0].content[0].text == "left alone" and not results[0].is_error
    assert log.read_text() == ""


def test_what_a_tool_of_a_server_in_this_process_calls_is_its_child(path):
    from mcp.server.mcpserver import MCPServer

    server, looked = MCPServer("near"), []

    @tape.tool
    def look_up(city):
        looked.append(city)
        return len(looked)

    @server.tool()
    def weather(city: str) -> str:
        return f"{city} {look_up(city)}"

    for over in (
        lambda: session_over(InMemoryTransport(server)),
        lambda: session_of(Client(server)),
    ):
        path.unlink(missing_ok=True)
        looked.clear()

        async def program():
            async with over() as session:
                return await session.call_tool("weather", {"city": "Oslo"})

        live, _ = record(path, program)
        calls = {call.request().name: call for call in tape.open(path).calls}
        assert calls["look_up"].head()["parent"] == calls["weather"].id
        assert replay(path, program)[0] == live and looked == ["Oslo"]
        again, _ = replay(path, program, lambda path: tape.replaying(path, live="tool:weather"))
        assert again == live and looked == ["Oslo"], "the tool ran, what it calls was played"


def openai_agents(server):
    from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
    from agents.mcp import MCPServerStdio
    from openai import AsyncOpenAI

    set_tracing_disabled(True)

    async def program(url):
        async with MCPServerStdio(params=server.model_dump(exclude_none=True), client_session_timeout_seconds=60) as held, AsyncOpenAI(base_url=f"{url}/v1", api_key="k") as client:  # fmt: skip
            agent = Agent(
                "clerk", mcp_servers=[held], model=OpenAIChatCompletionsModel("m", client)
            )
            return (await Runner.run(agent, "weather in Oslo")).final_output

    return program


def pydantic_ai(server):
    from fastmcp.client.transports import StdioTransport
    from openai import AsyncOpenAI
    from pydantic_ai import Agent
    from pydantic_ai.mcp import MCPToolset
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    async def program(url):
        tools = MCPToolset(
            StdioTransport(server.command, server.args, env=server.env, keep_alive=False)
        )
        async with AsyncOpenAI(base_url=f"{url}/v1", api_key="k") as client:
            agent = Agent(
                OpenAIChatModel("m", provider=OpenAIProvider(openai_client=client)),
                toolsets=[tools],
            )
            async with agent:
                return (await agent.run("weather in Oslo")).output

    return program


def llama_index(server):
    from llama_index.tools.mcp import BasicMCPClient, McpToolSpec

    async def program(_url):
        client = BasicMCPClient(server.command, args=server.args, env=server.env)
        (tool,) = await McpToolSpec(client=client, allowed_tools=["weather"]).to_tool_list_async()
        return str((await tool.acall(city="Oslo")).raw_output)

    return program


@pytest.mark.spread(3)
@pytest.mark.parametrize(
    "framework", [openai_agents, pydantic_ai, llama_index], ids=lambda framework: framework.__name__
)
def test_an_agent_frameworks_mcp_tools_need_no_server_in_replay(path, log, framework):
    program = framework(stdio(log))
    with Provider(vary=True) as provider:
        live, report = record(path, lambda: program(provider.url))
    assert not report.warnings
    assert log.read_text() == "weather Oslo\n"
    tools = [
        call.request().name
        for call in tape.open(path).calls
        if isinstance(call.request(), FunctionCall)
    ]
    assert [name for name in tools if not name.startswith("mcp.")] == ["weather"], "once, not twice"
    assert replay(path, lambda: program(provider.url))[0] == live
    assert log.read_text() == "weather Oslo\n"
