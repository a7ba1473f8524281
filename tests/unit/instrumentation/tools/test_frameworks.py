"""Tools of agent frameworks, with each framework itself: the body runs while recording and never in replay."""

import asyncio
import gc
import json
import types
import warnings
from dataclasses import dataclass

import pytest

import tape_jupyter as tape
from tape_jupyter.core.call import FunctionCall
from tape_jupyter.effects import kinds, paths
from tape_jupyter.instrumentation.tools import discovery, frameworks
from tests.harness.provider import Provider, Scripted
from tests.harness.tool_runs import Witness

pytestmark = [  # clients are dropped here as people drop them, with their connections open
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
ran = Witness()


@dataclass
class Reading:
    city: str
    nth: int


def reading(city: str) -> dict:
    """The weather."""
    ran.append(city)
    return {"city": city, "nth": len(ran)}


async def reading_async(city: str) -> dict:
    """The weather."""
    await asyncio.sleep(0)
    ran.append(city)
    return {"city": city, "nth": len(ran)}


@pytest.fixture(autouse=True)
def nothing_ran_yet():
    ran.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield
        gc.collect()  # now, while the marks above hold


@pytest.fixture
def provider():
    with Provider(vary=True) as provider:
        Provider.running = provider
        yield provider


def agents_run(url, function, **options):
    from agents import (
        Agent,
        OpenAIChatCompletionsModel,
        Runner,
        function_tool,
        set_tracing_disabled,
    )
    from openai import AsyncOpenAI

    set_tracing_disabled(True)
    tool = function_tool(function, name_override="get_weather", **options)
    model = OpenAIChatCompletionsModel("m", AsyncOpenAI(base_url=f"{url}/v1", api_key="k"))
    agent = Agent("clerk", instructions="Help.", tools=[tool], model=model)

    async def program():
        return (await Runner.run(agent, "weather in Oslo")).final_output

    return program


def openai_agents(url):
    return agents_run(url, reading)


def openai_agents_async(url):
    return agents_run(url, reading_async)


def openai_agents_with_context(url):
    from agents import RunContextWrapper

    def weather_for(context: RunContextWrapper, city: str) -> dict:
        """The weather."""
        assert context.usage is not None
        return reading(city)

    return agents_run(url, weather_for)


def openai_agents_with_timeout(url):
    return agents_run(url, reading_async, timeout=30.0)


def pydantic_ai_run(url, function, **options):
    from pydantic_ai import Agent, Tool
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIChatModel("m", provider=OpenAIProvider(base_url=f"{url}/v1", api_key="k"))
    agent = Agent(model, tools=[Tool(function, name="get_weather", **options)])

    async def program():
        return (await agent.run("weather in Oslo")).output

    return program


def pydantic_ai(url):
    return pydantic_ai_run(url, reading)


def pydantic_ai_async(url):
    return pydantic_ai_run(url, reading_async)


def pydantic_ai_with_context(url):
    from pydantic_ai import Agent, RunContext
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    agent = Agent(
        AnthropicModel("m", provider=AnthropicProvider(base_url=url, api_key="k")), deps_type=str
    )

    @agent.tool
    def get_weather(ctx: RunContext[str], city: str) -> Reading:
        """The weather."""
        reading(city)
        return Reading(f"{ctx.deps} {city}", len(ran))

    async def program():
        return (await agent.run("weather in Oslo", deps="Ada")).output

    return program


def langgraph_agent(url):
    from langchain_anthropic import ChatAnthropic
    from langchain_core.messages import HumanMessage
    from langchain_core.tools import StructuredTool
    from langgraph.graph import END, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode, tools_condition

    tool = StructuredTool.from_function(reading, name="get_weather")
    model = ChatAnthropic(model="m", base_url=url, api_key="k", max_tokens=9).bind_tools([tool])
    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("tools", ToolNode([tool]))
    graph.set_entry_point("model")
    graph.add_conditional_edges("model", tools_condition, {"tools": "tools", END: END})
    graph.add_edge("tools", "model")
    return graph.compile(), HumanMessage("weather in Oslo")


def langgraph(url):
    app, question = langgraph_agent(url)

    async def program():
        return [m.content for m in app.invoke({"messages": [question]})["messages"]]

    return program


def langgraph_async(url):
    app, question = langgraph_agent(url)

    async def program():
        return [m.content for m in (await app.ainvoke({"messages": [question]}))["messages"]]

    return program


def langgraph_with_state(url):
    from typing import Annotated

    from langchain_anthropic import ChatAnthropic
    from langchain_core.messages import HumanMessage
    from langchain_core.runnables import RunnableConfig
    from langchain_core.tools import tool
    from langgraph.prebuilt import InjectedState, ToolNode

    @tool
    def get_weather(
        city: str, state: Annotated[dict, InjectedState], config: RunnableConfig
    ) -> str:
        """The weather."""
        return str(reading(f"{city} {len(state['messages'])} {len(config['tags'])}"))

    model = ChatAnthropic(model="m", base_url=url, api_key="k", max_tokens=9).bind_tools(
        [get_weather]
    )
    node = ToolNode([get_weather])

    async def program():
        from langgraph.graph import END, MessagesState, StateGraph

        graph = StateGraph(MessagesState)
        graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
        graph.add_node("tools", node)
        graph.set_entry_point("model")
        graph.add_edge("model", "tools")
        graph.add_edge("tools", END)
        result = await graph.compile().ainvoke({"messages": [HumanMessage("weather in Oslo")]})
        return [m.content for m in result["messages"]]

    return program


def langchain_class(url):
    from langchain_anthropic import ChatAnthropic
    from langchain_core.callbacks import BaseCallbackHandler
    from langchain_core.messages import HumanMessage
    from langchain_core.tools import BaseTool

    class Weather(BaseTool):
        name: str = "get_weather"
        description: str = "The weather."

        def _run(self, city: str, run_manager=None) -> tuple:
            reading(city)
            return city, len(ran)

    class Watcher(BaseCallbackHandler):
        def __init__(self):
            self.seen = []

        def on_tool_start(self, serialized, input_str, **kwargs):
            self.seen.append(input_str)

        def on_tool_end(self, output, **kwargs):
            self.seen.append(str(output.content))

    tool = Weather()
    model = ChatAnthropic(model="m", base_url=url, api_key="k", max_tokens=9).bind_tools([tool])

    async def program():
        watcher = Watcher()
        asked = model.invoke([HumanMessage("weather in Oslo")])
        result = await asyncio.to_thread(tool.invoke, asked.tool_calls[0], {"callbacks": [watcher]})
        return result.content, watcher.seen

    return program


def llama_index_agent(url, *tools):
    import json

    from llama_index.core.agent.workflow import FunctionAgent
    from llama_index.core.base.llms.types import (
        ChatMessage,
        ChatResponse,
        LLMMetadata,
        TextBlock,
        ToolCallBlock,
    )
    from llama_index.core.llms.function_calling import FunctionCallingLLM
    from openai import AsyncOpenAI

    class Loopback(FunctionCallingLLM):
        """As small as an LLM with tools can be in LlamaIndex."""

        @property
        def metadata(self):
            return LLMMetadata(is_function_calling_model=True, model_name="m")

        def _prepare_chat_with_tools(self, tools, user_msg=None, chat_history=None, **kwargs):
            return {"messages": [*(chat_history or []), *([user_msg] if user_msg else [])], "tools": [t.metadata.to_openai_tool() for t in tools]}  # fmt: skip

        def get_tool_calls_from_response(self, response, error_on_no_tool_call=True, **kwargs):
            from llama_index.core.llms.llm import ToolSelection

            blocks = [b for b in response.message.blocks if isinstance(b, ToolCallBlock)]
            return [ToolSelection(tool_id=b.tool_call_id, tool_name=b.tool_name, tool_kwargs=b.tool_kwargs) for b in blocks]  # fmt: skip

        async def achat(self, messages, tools=None, **kwargs):
            told = []
            for m in messages:
                calls = [b for b in m.blocks if isinstance(b, ToolCallBlock)]
                one = {"role": m.role.value, "content": m.content or ""}
                if calls:
                    one["tool_calls"] = [{"id": b.tool_call_id, "type": "function", "function": {"name": b.tool_name, "arguments": json.dumps(b.tool_kwargs)}} for b in calls]  # fmt: skip
                if m.role.value == "tool":
                    one["tool_call_id"] = m.additional_kwargs["tool_call_id"]
                told.append(one)
            client = AsyncOpenAI(base_url=f"{url}/v1", api_key="k")
            message = (
                (await client.chat.completions.create(model="m", messages=told, tools=tools))
                .choices[0]
                .message
            )
            blocks = [ToolCallBlock(tool_call_id=c.id, tool_name=c.function.name, tool_kwargs=json.loads(c.function.arguments)) for c in message.tool_calls or []]  # fmt: skip
            return ChatResponse(message=ChatMessage(role="assistant", blocks=[*([TextBlock(text=message.content)] if message.content else []), *blocks]))  # fmt: skip

        async def astream_chat(self, messages, **kwargs):
            async def once():
                yield await self.achat(messages, **kwargs)

            return once()

        def chat(self, messages, **kwargs):
            raise NotImplementedError

        stream_chat = complete = acomplete = stream_complete = astream_complete = chat

    agent = FunctionAgent(tools=list(tools), llm=Loopback(), streaming=False)

    async def program():
        return str(await agent.run("weather in Oslo"))

    return program


def llama_index(url):
    from llama_index.core.tools import FunctionTool

    return llama_index_agent(url, FunctionTool.from_defaults(reading, name="get_weather"))


def llama_index_async(url):
    from llama_index.core.tools import FunctionTool

    return llama_index_agent(
        url, FunctionTool.from_defaults(async_fn=reading_async, name="get_weather")
    )


def llama_index_with_context(url):
    from llama_index.core.tools import FunctionTool
    from llama_index.core.workflow import Context

    async def weather_for(ctx: Context, city: str) -> dict:
        """The weather."""
        await ctx.store.set("asked", city)
        return reading(city)

    return llama_index_agent(
        url, FunctionTool.from_defaults(async_fn=weather_for, name="get_weather")
    )


def anthropic_tool_runner(url):
    import anthropic

    @anthropic.beta_async_tool(name="get_weather")
    async def local_weather(city: str) -> str:
        """The weather."""
        return str(reading(city))

    client = anthropic.AsyncAnthropic(base_url=url, api_key="k")

    async def program():
        runner = client.beta.messages.tool_runner(model="m", max_tokens=9, tools=[local_weather], messages=[{"role": "user", "content": "weather in Oslo"}])  # fmt: skip
        return [m.content[0].to_dict() async for m in runner]

    return program


def gemini_automatic_calling(url):
    from google import genai

    def get_weather(city: str) -> dict:
        """The weather."""
        return reading(city)

    asked = {"candidates": [{"content": {"role": "model", "parts": [{"functionCall": {"name": "get_weather", "args": {"city": "Oslo"}}}]}, "finishReason": "STOP"}]}  # fmt: skip
    said = {
        "candidates": [
            {"content": {"role": "model", "parts": [{"text": "Wet."}]}, "finishReason": "STOP"}
        ]
    }
    answers = [
        Scripted(200, {"content-type": "application/json"}, [json.dumps(body).encode()])
        for body in (asked, said)
    ]
    Provider.running.script("/v1/models/m:generateContent", *answers)

    async def program():
        client = genai.Client(api_key="k", http_options={"base_url": url})
        reply = await client.aio.models.generate_content(model="m", contents="weather in Oslo", config={"tools": [get_weather]})  # fmt: skip
        return reply.text

    return program


PROGRAMS = [
    openai_agents, openai_agents_async, openai_agents_with_context, openai_agents_with_timeout,
    pydantic_ai, pydantic_ai_async, pydantic_ai_with_context,
    langgraph, langgraph_async, langgraph_with_state, langchain_class,
    llama_index, llama_index_async, llama_index_with_context,
    anthropic_tool_runner, gemini_automatic_calling,
]  # fmt: skip


def run(block, program):
    async def within():
        async with block:
            return await program()

    return asyncio.run(within())


@pytest.mark.slow
@pytest.mark.spread(4)
@pytest.mark.parametrize("framework", PROGRAMS, ids=lambda framework: framework.__name__)
def test_a_frameworks_tool_runs_while_recording_and_never_in_replay(framework, provider, tmp_path):
    path = tmp_path / "agent.tape.yaml"
    block = tape.recording(path)
    live = run(block, framework(provider.url))
    provider.stop()
    assert len(ran) == 1 and ran[0].startswith("Oslo")
    assert not [warning for warning in block.report.warnings if "tool" in warning]
    calls = [call.request() for call in tape.open(path).calls]
    tools = [call for call in calls if isinstance(call, FunctionCall)]
    assert [call.name for call in tools] == ["get_weather"]
    assert {
        name: value for name, value in tools[0].arguments.items() if name != "run_manager" or value
    } == {"city": "Oslo"}
    sent = len(provider.requests)
    for _ in range(2):
        assert run(tape.replaying(path), framework(provider.url)) == live
    assert len(ran) == 1 and len(provider.requests) == sent


def test_a_function_that_goes_by_another_name_elsewhere_is_called_by_the_tools_name(tmp_path):
    from langchain_core.tools import StructuredTool

    tools = [StructuredTool.from_function(reading, name=name) for name in ("first", "second")]
    path = tmp_path / "names.tape.yaml"
    with tape.recording(path, tools=["reading"]):
        live = [tool.invoke({"city": "Oslo"}) for tool in tools] + [reading("Oslo")]
    assert [call.request().name for call in tape.open(path).calls] == ["first", "second", "reading"]
    with tape.replaying(path, tools=["reading"]):
        assert [tool.invoke({"city": "Oslo"}) for tool in tools] + [reading("Oslo")] == live
    assert len(ran) == 3


def test_untaped_the_tool_runs_as_ever(provider, tmp_path):
    run(tape.recording(tmp_path / "agent.tape.yaml"), langgraph(provider.url))
    asyncio.run(langgraph(provider.url)())
    assert ran == ["Oslo", "Oslo"]


def test_what_a_tool_raised_is_raised_again_inside_the_framework(provider, tmp_path):
    from pydantic_ai import ModelRetry

    def picky(city: str) -> str:
        """The weather."""
        ran.append(city)
        if len(ran) == 1:
            raise ModelRetry("say which Oslo")
        return f"{city} {len(ran)}"

    path = tmp_path / "agent.tape.yaml"
    live = run(tape.recording(path), pydantic_ai_run(provider.url, picky, max_retries=2))
    times = len(ran)
    again = run(tape.replaying(path), pydantic_ai_run(provider.url, picky, max_retries=2))
    assert again == live and times == len(ran) == 1
    tools = [call for call in tape.open(path).calls if isinstance(call.request(), FunctionCall)]
    assert tools[0].reply().error["class"].endswith(":ModelRetry")


def test_a_librarys_tool_class_is_taped_by_its_own_body(tmp_path):
    import sys
    import types

    library = types.ModuleType("station_tools")
    source = "from langchain_core.tools import BaseTool\nran = []\nclass Search(BaseTool):\n    name: str = 'search'\n    description: str = 'Search.'\n    def _run(self, query: str, run_manager=None) -> str:\n        ran.append(query)\n        return f'{query} {len(ran)}'\n"
    site = next(path for path in sys.path if path.endswith("site-packages"))
    exec(compile(source, f"{site}/station_tools.py", "exec"), library.__dict__)
    search, path = library.Search(), tmp_path / "agent.tape.yaml"
    with tape.recording(path):
        live = search.invoke({"query": "Oslo"})
    with tape.replaying(path):
        assert search.invoke({"query": "Oslo"}) == live
    assert library.ran == ["Oslo"]
    assert search.invoke({"query": "Oslo"}) == "Oslo 2"


class _Tool:
    """As smolagents, strands and ADK have theirs: it runs a function that it keeps under a name of its own."""

    def __init__(self, function):
        self.name = self.tool_name = "add"
        self.forward = self._tool_func = self.func = function

    def __call__(self, **arguments):
        return self.forward(**arguments)

    async def run_async(self, **arguments):
        return self.func(**arguments)

    async def stream(self, **arguments):
        yield "begins"
        yield self._tool_func(**arguments)


async def _stream(tool):
    return [each async for each in tool.stream(item="tea")]


RUNS = {
    "smolagents.tools": ("Tool", lambda tool: tool(item="tea")),
    "google.adk.tools.function_tool": ("FunctionTool", lambda tool: asyncio.run(tool.run_async(item="tea"))),
    "strands.tools.decorator": ("DecoratedFunctionTool", lambda tool: asyncio.run(_stream(tool))),
}  # fmt: skip


@pytest.mark.parametrize("library", RUNS)
def test_a_function_that_only_the_frameworks_tool_holds_is_taped_where_the_framework_runs_it(
    tmp_path, library
):
    kind, run = RUNS[library]
    module = types.ModuleType(library)
    setattr(module, kind, type(kind, (_Tool,), dict(vars(_Tool))))
    ran, kept = [], []

    def build():
        def added(item):
            ran.append(item)
            return len(ran)

        return getattr(module, kind)(added)

    undo = frameworks.patch(module)
    try:
        with tape.recording(tmp_path / "a.tape.yaml"):
            kept.append(run(build()))
        ran.append("again")  # a body that ran in replay would give another number
        with tape.replaying(tmp_path / "a.tape.yaml"):
            kept.append(run(build()))
    finally:
        undo()
    assert kept[0] == kept[1]


def test_what_a_tool_sets_in_the_state_that_adk_hands_it_is_within_reach():
    """Though `google` is a package of clients, which are not looked into."""
    state = type("State", (), {"__module__": "google.adk.sessions.state"})
    context = type("ReadonlyContext", (), {"__module__": "google.adk.agents.readonly_context"})
    assert paths.handed_on(type("ToolContext", (context,), {})) == ("state", "actions")
    assert discovery.is_frameworks(context())
    assert kinds.kind_of_type(state) is not None
