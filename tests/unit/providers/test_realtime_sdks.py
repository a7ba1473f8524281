"""The SDKs that speak over WebSockets: OpenAI Realtime and Responses, Gemini Live, against a server that is gone in replay."""

import asyncio
import base64

import pytest
from google import genai
from google.genai import types
from openai import AsyncOpenAI, OpenAI
from websockets.sync.client import connect

import tape_jupyter as tape
from tape_jupyter.core.call import Request
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.errors import UnmatchedCall
from tape_jupyter.providers.registry import call_facts
from tests.harness.socket_runs import server
from tests.harness.sockets import UNMANAGED, SocketServer, certified
from tests.harness.taped_cells import on_tape

pytestmark = pytest.mark.filterwarnings(
    # The SDK holds the threads client as websockets 17.1 wants it no longer. The module at the end of the line: who is
    # blamed for it must be the SDK, taped or not.
    "ignore:connect.. must be used as a context manager:DeprecationWarning:openai"
)

KEY = "sk-proj-0123456789abcdefghijklmn"


def twice(path, server, program):
    """What the program saw, the same in replay with the server gone and the key another."""
    with tape.recording(path) as block:
        first = program(KEY)
    assert not block.report.warnings
    server.stop()
    opened = server.opened
    assert KEY not in path.read_text()
    with tape.replaying(path):
        again = program("another key")
    assert again == first and server.opened == opened
    return first


def user(text):
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def http(server):
    return server.url.replace("ws://", "http://") + "/v1"


def test_openai_realtime_with_threads(server, path):
    def program(key):
        client = OpenAI(api_key=key, base_url=http(server))
        seen = []
        with client.realtime.connect(model="gpt-realtime") as connection:
            connection.session.update(session={"type": "realtime", "output_modalities": ["text"]})
            for question in ("Why?", "How?"):
                connection.conversation.item.create(item=user(question))
                connection.response.create()
                for event in connection:
                    seen.append(event.to_dict())
                    if event.type == "response.done":
                        break
        return seen

    seen = twice(path, server, program)
    assert [event["type"] for event in seen].count("response.done") == 2
    assert "You asked: How?" in str(seen)


def test_openai_realtime_with_asyncio_and_audio(server, path):
    async def asked(key):
        client = AsyncOpenAI(api_key=key, base_url=http(server))
        async with client.realtime.connect(model="gpt-realtime") as connection:

            async def microphone():
                for piece in range(30):
                    await connection.input_audio_buffer.append(
                        audio=base64.b64encode(bytes([piece]) * 480).decode()
                    )
                    await asyncio.sleep(0)
                await connection.input_audio_buffer.commit()
                await connection.response.create()

            task = asyncio.create_task(microphone())
            seen = []
            async for event in connection:
                seen.append(event.to_dict())
                if event.type == "response.done":
                    await task
                    return seen

    assert "committed" in str(twice(path, server, lambda key: asyncio.run(asked(key))))


def test_a_function_that_a_realtime_model_may_call_is_taped_and_its_body_does_not_run_in_replay(
    server, path
):
    def program(key):
        client = OpenAI(api_key=key, base_url=http(server))
        tool = {"type": "function", "name": "weather", "parameters": {"type": "object"}}
        with client.realtime.connect(model="gpt-realtime") as connection:
            connection.session.update(session={"type": "realtime", "tools": [tool]})
            connection.conversation.item.create(item=user("the weather"))
            connection.response.create()
            done = next(event for event in connection if event.type == "response.done")
            call = done.response.output[0]
            output = globals()[call.name](**{"city": "Oslo"})
            connection.conversation.item.create(
                item={"type": "function_call_output", "call_id": call.call_id, "output": output}
            )
            connection.response.create()
            return (
                next(event for event in connection if event.type == "response.done")
                .response.output[0]
                .content[0]
                .text
            )

    ran.clear()
    assert "rain in Oslo 1" in twice(path, server, program)
    assert ran == ["Oslo"]


ran: list[str] = []


def test_a_function_offered_in_json_that_was_written_by_hand_is_taped_and_told_as_well(
    server, path
):
    ran.clear()
    setup = """{"type": "session.update",
        "session": {"type": "realtime", "model": "gpt-realtime-2",
                    "tools": [ {"type": "function", "name": "weather"} ]}}"""

    def program(_key):
        with connect(f"{server.url}/v1/realtime", **UNMANAGED) as ws:
            ws.recv()
            ws.send(setup)
            ws.recv()
            return weather("Oslo")

    assert twice(path, server, program) == "rain in Oslo 1"
    assert ran == ["Oslo"]
    call = next(call for call in on_tape(path).calls if isinstance(call.request(), Request))
    told = call_facts(call.request(), call.reply())
    assert told.model == "gpt-realtime-2" and [tool.name for tool in told.tools] == ["weather"]


def weather(city):
    ran.append(city)
    return f"rain in {city} {len(ran)}"


def test_openai_responses_over_a_websocket(server, path):
    def program(key):
        client = OpenAI(api_key=key, base_url=http(server))
        seen = []
        with client.responses.connect() as connection:
            for question in ("one", "two"):
                connection.response.create(model="gpt-5.2", input=question)
                for event in connection:
                    seen.append(event.to_dict())
                    if event.type == "response.completed":
                        break
        return seen

    assert [event["type"] for event in twice(path, server, program)].count(
        "response.completed"
    ) == 2


def test_openai_responses_over_a_websocket_with_asyncio(server, path):
    async def asked(key):
        client = AsyncOpenAI(api_key=key, base_url=http(server))
        async with client.responses.connect() as connection:
            await connection.response.create(model="gpt-5.2", input="one")
            return [event.to_dict() async for event in until_completed(connection)]

    assert twice(path, server, lambda key: asyncio.run(asked(key)))


async def until_completed(connection):
    async for event in connection:
        yield event
        if event.type == "response.completed":
            return


TLS = certified()


@pytest.fixture
def secure():
    """Gemini's SDK speaks TLS only."""
    with SocketServer(TLS[0]) as server:
        yield server


def live(server, key):
    options = types.HttpOptions(
        base_url=server.url.replace("wss://", "https://"), async_client_args={"ssl": TLS[1]}
    )
    return genai.Client(api_key=key, http_options=options)


def test_gemini_live_with_two_turns(secure, path):
    async def asked(key):
        seen = []
        async with live(secure, key).aio.live.connect(
            model="gemini-live", config={"response_modalities": ["TEXT"]}
        ) as session:
            for question in ("Why?", "How?"):
                await session.send_client_content(
                    turns={"role": "user", "parts": [{"text": question}]}, turn_complete=True
                )
                seen += [
                    message.model_dump(exclude_none=True) async for message in session.receive()
                ]
        return seen

    seen = twice(path, secure, lambda key: asyncio.run(asked(key)))
    assert sum("turn_complete" in message.get("server_content", {}) for message in seen) == 2


def test_gemini_live_that_calls_a_function(secure, path):
    async def asked(key):
        tools = [{"function_declarations": [{"name": "weather"}]}]
        async with live(secure, key).aio.live.connect(
            model="gemini-live", config={"tools": tools}
        ) as session:
            await session.send_client_content(
                turns={"role": "user", "parts": [{"text": "weather"}]}, turn_complete=True
            )
            async for message in session.receive():
                if message.tool_call:
                    call = message.tool_call.function_calls[0]
                    result = {
                        "id": call.id,
                        "name": call.name,
                        "response": {"result": globals()[call.name](**call.args)},
                    }
                    await session.send_tool_response(function_responses=result)
                if message.server_content and message.server_content.turn_complete:
                    return message.usage_metadata.total_token_count

    ran.clear()
    assert twice(path, secure, lambda key: asyncio.run(asked(key))) == 20
    assert ran == ["Oslo"]


def test_another_setup_of_gemini_live_is_refused_with_the_difference(secure, path):
    async def asked(key, instruction):
        config = {"system_instruction": instruction}
        async with live(secure, key).aio.live.connect(model="gemini-live", config=config):
            pass

    with tape.recording(path):
        asyncio.run(asked(KEY, "Be brief."))
    with (
        pytest.raises(UnmatchedCall, match=r"(?s)the program's first.*Be brief\..*Be long\."),
        tape.replaying(path),
    ):
        asyncio.run(asked(KEY, "Be long."))


def test_the_recording_reads_as_a_conversation(secure, path):
    async def asked(key):
        async with live(secure, key).aio.live.connect(model="gemini-live") as session:
            await session.send_client_content(
                turns={"role": "user", "parts": [{"text": "Why?"}]}, turn_complete=True
            )
            return [message async for message in session.receive()]

    with tape.recording(path):
        asyncio.run(asked(KEY))
    text = path.read_text()
    assert "          turnComplete: true" in text and "indent 2" in text and "base64" not in text
    assert Cassette.open(path, check="whole").calls[0].reply().status == 101


def test_tokens_and_model_are_counted_over_all_turns(server, path):
    client = OpenAI(api_key=KEY, base_url=http(server))

    def program():
        with client.realtime.connect(model="gpt-realtime") as connection:
            for question in ("one", "two", "three"):
                connection.conversation.item.create(item=user(question))
                connection.response.create()
                next(event for event in connection if event.type == "response.done")

    with tape.recording(path) as block:
        program()
    [row] = block.report.calls
    assert (row.kind, row.provider, row.name, row.tokens_in, row.tokens_out) == (
        "model",
        "openai",
        "gpt-realtime",
        60,
        30,
    )
    with tape.replaying(path) as block:
        program()
    assert block.report.calls[0].facts.usage == row.facts.usage


def test_what_a_live_session_of_gemini_cost_and_asked_is_told(secure, path):
    async def asked(key):
        config = {"tools": [{"function_declarations": [{"name": "weather"}]}], "temperature": 0.5}
        async with live(secure, key).aio.live.connect(
            model="gemini-live", config=config
        ) as session:
            for question in ("Why?", "How?"):
                await session.send_client_content(
                    turns={"role": "user", "parts": [{"text": question}]}, turn_complete=True
                )
                [None async for _ in session.receive()]

    with tape.recording(path) as block:
        asyncio.run(asked(KEY))
    [row] = block.report.calls
    assert (row.kind, row.provider, row.facts.model, row.tokens_in, row.tokens_out) == (
        "model",
        "gemini",
        "gemini-live",
        24,
        16,
    )
    assert [tool.name for tool in row.facts.tools] == ["weather"] and row.facts.sampling[
        "temperature"
    ] == 0.5
