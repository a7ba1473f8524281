"""An agent in real cells: its model over HTTP, its tools on an MCP server that is a child process, gone in replay."""

import shutil
from pathlib import Path

import pytest

from tests.harness import mcp_server
from tests.harness.notebook import Kernel, notebook
from tests.harness.provider import Provider

AGENT = """
import sys, openai, json
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from langchain_core.retrievers import BaseRetriever
from langchain_core.documents import Document

client = openai.AsyncOpenAI(base_url=BASE + "/v1", api_key="k")
station = StdioServerParameters(command=sys.executable, args=[SERVER, "stdio"], env={"MCP_SERVER_LOG": LOG, "PYTHONPATH": ROOT})
looked_up = []

class Shelf(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        looked_up.append(query)
        return [Document(f"of {query}, {len(looked_up)}", id="d1", metadata={"page": 3})]

async def ask(question):
    found = await Shelf().ainvoke(question)
    async with stdio_client(station) as streams, ClientSession(*streams) as session:
        await session.initialize()
        tools = [{"type": "function", "function": {"name": t.name, "parameters": t.input_schema}} for t in (await session.list_tools()).tools]
        messages = [{"role": "user", "content": f"{found[0].page_content}: {question}"}]
        call = (await client.chat.completions.create(model="m", messages=messages, tools=tools)).choices[0].message.tool_calls[0]
        result = await session.call_tool(call.function.name, json.loads(call.function.arguments))
        messages += [{"role": "assistant", "tool_calls": [call.to_dict()]}, {"role": "tool", "tool_call_id": call.id, "content": result.content[0].text}]
        answer = await client.chat.completions.create(model="m", messages=messages, tools=tools)
    return found, result.structured_content, answer.choices[0].message.content
"""


@pytest.fixture
def kernel(tmp_path):
    with Kernel(tmp_path, {"TAPE_NOTEBOOK": str(notebook(tmp_path / "nb.ipynb", "x"))}) as kernel:
        assert kernel.execute("%load_ext tape_jupyter").ok
        yield kernel


@pytest.mark.slow
def test_an_agent_with_mcp_tools_is_replayed_with_its_server_gone(kernel, tmp_path):
    server, log = tmp_path / "station.py", tmp_path / "server.log"
    shutil.copy(mcp_server.__file__, server)
    with Provider(vary=True) as provider:
        places = {
            "BASE": provider.url,
            "SERVER": server,
            "LOG": log,
            "ROOT": Path(__file__).parent.parent.parent,
        }
        named = "\n".join(f"{name} = {str(value)!r}" for name, value in places.items())
        defined = kernel.execute(f"{named}\n{AGENT}")
        assert defined.ok, defined.traceback
        live = kernel.execute("%%tape record\nawait ask('weather in Oslo')")
        assert live.ok, live.traceback
    assert "not taped" not in live.summary and "warn" not in live.summary.lower(), live.summary
    assert log.read_text() == "weather Oslo\n"
    server.unlink()
    for _ in range(2):
        again = kernel.execute("%%tape replay\nawait ask('weather in Oslo')")
        assert (again.ok, again.result) == (True, live.result), again.traceback
    assert kernel.execute("looked_up").result == "['weather in Oslo']"
    assert log.read_text() == "weather Oslo\n"
    other = kernel.execute("%%tape replay\nawait ask('weather in Bergen')")
    assert not other.ok and "is not on the tape" in other.traceback
