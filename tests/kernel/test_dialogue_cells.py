"""Models over WebSockets in real cells: a connection of one cell, spoken on in the next, replayed in a fresh kernel."""

import pytest

from tests.harness.notebook import Kernel, notebook
from tests.harness.sockets import SocketServer

SET_UP = """
%load_ext tape_jupyter
import openai
from tests.harness.tool_runs import Witness
ran = Witness()
def weather(city):
    ran.append(city)
    return f"rain in {city}"
client = openai.AsyncOpenAI(api_key="k", base_url="BASE/v1")
plain = openai.OpenAI(api_key="k", base_url="BASE/v1")
def say(text):
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
"""

CELLS = (
    "connection = await client.realtime.connect(model='gpt-realtime').enter()\n"
    "tool = {'type': 'function', 'name': 'weather', 'parameters': {'type': 'object'}}\n"
    "await connection.session.update(session={'type': 'realtime', 'tools': [tool]})\n"
    "async def ask(item):\n"
    "    await connection.conversation.item.create(item=item)\n"
    "    await connection.response.create()\n"
    "    async for event in connection:\n"
    "        if event.type == 'response.done':\n"
    "            return event.response\n"
    "(await ask(say('Why?'))).output[0].content[0].text",
    "call = (await ask(say('the weather'))).output[0]\n"
    "output = weather('Oslo')\n"
    "reply = await ask({'type': 'function_call_output', 'call_id': call.call_id, 'output': output})\n"
    "await connection.close()\n"
    "reply.output[0].content[0].text",
    "with plain.responses.connect() as connection:\n"
    "    connection.response.create(model='gpt-5.2', input='one')\n"
    "    text = ''.join(event.delta for event in until(connection) if event.type == 'response.output_text.delta')\n"
    "text",
)
UNTIL = """
def until(connection):
    for event in connection:
        yield event
        if event.type == "response.completed":
            return
"""


@pytest.mark.slow
@pytest.mark.spread(2)
@pytest.mark.parametrize("pins", ["", " --no-pin clock"])
def test_a_conversation_over_cells_replays_in_a_fresh_kernel_without_the_server(tmp_path, pins):
    with (
        SocketServer() as server,
        Kernel(tmp_path, {"TAPE_NOTEBOOK": str(notebook(tmp_path / "nb.ipynb", "x"))}) as kernel,
    ):
        start = SET_UP.replace("BASE", server.url.replace("ws://", "http://")) + UNTIL

        def run(mode):
            assert kernel.execute(start).ok
            ran = [kernel.execute(f"%%tape {mode}\n{cell}") for cell in CELLS]
            assert all(each.ok for each in ran), [each.traceback for each in ran]
            return (
                [each.result for each in ran],
                kernel.execute("ran").result,
                [each.summary for each in ran],
            )

        live, asked, summary = run("record")
        assert asked == "['Oslo']" and "gpt-realtime" in summary[0] and "cold" not in str(summary)
        server.stop()
        kernel.restart()
        again, asked, _ = run(f"replay{pins}")
        assert again == live and asked == "[]"
        assert kernel.execute("1 + 1").result == "2"
