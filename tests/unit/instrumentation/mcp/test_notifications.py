"""What an MCP server says and asks reaches the program again."""

import asyncio
import re

import anyio
import mcp_types
from mcp import Client
from mcp.client._memory import InMemoryTransport
from mcp.client.stdio import stdio_client

import tape_jupyter as tape
from tests.harness.mcp_talk import log, path, quiet, record, refusal, replay, session_over, stdio  # noqa: F401 - fixtures among them


class Person:
    """Answers what servers ask; counts."""

    def __init__(self, word="fine"):
        self.word, self.asked, self.logged = word, [], []

    async def sample(self, context, params):
        self.asked.append(params.messages[0].content.text)
        return mcp_types.CreateMessageResult(
            role="assistant",
            content=mcp_types.TextContent(type="text", text=self.word),
            model="m",
            stop_reason="endTurn",
        )

    async def elicit(self, context, params):
        self.asked.append(params.message)
        return mcp_types.ElicitResult(action="accept", content={"sure": True})


def asking(person, log):
    async def program():
        answers = {"sampling_callback": person.sample, "elicitation_callback": person.elicit}
        async with session_over(stdio_client(stdio(log)), **answers) as session:
            return [
                await session.call_tool("judge", {"text": "x"}),
                await session.call_tool("erase", {"path": "y"}),
            ]

    return program


def test_what_the_server_asks_of_the_program_is_asked_again(path, log):
    person, again = Person(), Person()
    live, report = record(path, asking(person, log))
    assert "fine #" in live[0].content[0].text and "accept" in live[1].content[0].text
    assert not report.warnings
    assert replay(path, asking(again, log))[0] == live
    assert again.asked == person.asked == ["Judge: x", "Erase y?"]
    assert log.read_text().splitlines() == ["judge x", "erase y"]


def test_a_program_that_answers_the_server_otherwise_is_stopped(path, log):
    record(path, asking(Person("fine"), log))
    said = refusal(path, asking(Person("bad"), log))
    assert re.search("(?s)sampling/createMessage.*recorded:.*fine.*now:.*bad", said)


def test_a_log_message_reaches_the_program_again(path):
    """A notification comes with the request under way."""
    from mcp.server.mcpserver import Context, MCPServer

    server, seen = MCPServer("chatty"), []

    @server.tool()
    async def chat(ctx: Context) -> str:
        await ctx.session.send_log_message("info", "half way")
        await ctx.session.send_tool_list_changed()
        return "done"

    async def on_log(params):
        seen.append(params.data)

    async def on_message(message):
        seen.append(type(message).__name__)

    async def program():
        seen.clear()
        async with session_over(
            InMemoryTransport(server), logging_callback=on_log, message_handler=on_message
        ) as session:
            result = await session.call_tool("chat")
            await asyncio.sleep(0)
        return result, list(seen)

    live, _ = record(path, program)
    assert live[1] == ["half way", "LoggingMessageNotification", "ToolListChangedNotification"]
    assert replay(path, program)[0] == live


def test_a_subscription_is_heard_again(path):
    from mcp.server.mcpserver import Context, MCPServer

    server = MCPServer("changing")

    @server.tool()
    async def change(ctx: Context) -> str:
        await ctx.notify_resource_updated("station://status")
        return "changed"

    async def program():
        async with (
            Client(server) as client,
            client.listen(resource_subscriptions=["station://status"]) as events,
        ):
            await client.call_tool("change")
            with anyio.fail_after(20):
                event = await anext(events)
            return event, events.honored

    live, _ = record(path, program)
    assert live[0].uri == "station://status"
    assert replay(path, program)[0] == live
    assert replay(path, program)[0] == live, "and again, with another id of the subscription"


def test_what_comes_while_nothing_is_asked_is_named_as_a_gap(path):
    from mcp.server.mcpserver import Context, MCPServer

    server, late = MCPServer("late"), []

    @server.tool()
    async def start(ctx: Context) -> str:
        session = ctx.session

        async def tell():
            await session.send_log_message("info", "late news")
            await session.send_tool_list_changed()

        late.append(tell)
        return "started"

    async def on_log(params):
        heard.append(params.data)

    async def program():
        heard.clear()
        async with session_over(InMemoryTransport(server), logging_callback=on_log) as session:
            await session.call_tool("start")
            if late:
                await late.pop()()
                with anyio.fail_after(20):
                    while not heard:
                        await asyncio.sleep(0.001)
            await session.send_ping()
            await asyncio.sleep(0)
        return list(heard)

    heard = []
    live, report = record(path, program)
    assert live == ["late news"]
    assert any(
        "notifications/message came while no request was under way" in warning
        for warning in report.warnings
    )
    late.clear()
    assert replay(path, program)[0] == ["late news"], "it comes with the next request"


def test_what_a_callback_calls_is_a_child_of_the_request_and_is_played(path, log):
    pondered = []

    @tape.tool
    def ponder(text):
        pondered.append(text)
        return f"pondered {len(pondered)}"

    class Ponderer(Person):
        async def sample(self, context, params):
            self.word = await asyncio.to_thread(ponder, params.messages[0].content.text)
            return await super().sample(context, params)

    live, _ = record(path, asking(Ponderer(), log))
    assert "pondered 1 #" in live[0].content[0].text
    calls = {call.request().name: call for call in tape.open(path).calls}
    assert calls["ponder"].head()["parent"] == calls["judge"].id
    assert replay(path, asking(Ponderer(), log))[0] == live
    assert pondered == ["Judge: x"]


def test_a_question_while_nothing_is_asked_is_named_as_a_gap(path):
    from mcp.server.mcpserver import Context, MCPServer
    from mcp_types import SamplingMessage, TextContent

    server, late, person = MCPServer("late"), [], Person()

    @server.tool()
    async def start(ctx: Context) -> str:
        session = ctx.session
        message = SamplingMessage(
            role="user", content=TextContent(type="text", text="still there?")
        )
        late.append(lambda: session.create_message([message], max_tokens=9))
        return "started"

    async def program():
        person.asked.clear()
        async with session_over(
            InMemoryTransport(server), sampling_callback=person.sample
        ) as session:
            result = await session.call_tool("start")
            if late:
                await late.pop()()
            return result, list(person.asked)

    live, report = record(path, program)
    assert live[1] == ["still there?"]
    assert any(
        "sampling/createMessage while no request was under way" in warning
        for warning in report.warnings
    )
    late.clear()
    assert replay(path, program)[0] == (live[0], []), "in replay it is not asked"
