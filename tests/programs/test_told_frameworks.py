"""What a tool tells the framework that runs it comes again in replay: streams, dispatched events, state, stores."""

import asyncio
import operator
from typing import Annotated, Any, TypedDict

import pytest

from tests.harness.tool_runs import ran, same


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran.clear()


def search_by_writer(city: str) -> str:
    """Search."""
    from langgraph.config import get_stream_writer

    ran.append(city)
    writer = get_stream_writer()
    writer({"progress": f"looking for {city}"})
    print("searching", city)
    writer({"progress": "done"})
    return f"rain in {city}"


def stream_of(tools, names, modes):
    """What a graph streams whose model asks for these tools, one call each."""
    from langchain_core.messages import AIMessage
    from langgraph.graph import END, START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode

    calls = [
        {"name": name, "args": {"city": "Oslo"}, "id": f"c{n}", "type": "tool_call"}
        for n, name in enumerate(names)
    ]
    graph = StateGraph(MessagesState)
    graph.add_node(
        "model", lambda _state: {"messages": [AIMessage(content="", tool_calls=calls, id="m1")]}
    )
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "model")
    graph.add_edge("model", "tools")
    graph.add_edge("tools", END)
    seen = []
    for mode, chunk in graph.compile().stream({"messages": []}, stream_mode=modes):
        if mode == "custom":
            seen.append(chunk)
        elif "tools" in chunk:
            seen += [(message.name, message.content) for message in chunk["tools"]["messages"]]
    return seen


def test_langgraphs_stream_writer():
    from langchain_core.tools import tool

    def program():
        return stream_of([tool(search_by_writer)], ["search_by_writer"], ["custom", "updates"])

    live = same(program)
    assert live == [
        {"progress": "looking for Oslo"}, {"progress": "done"}, ("search_by_writer", "rain in Oslo"),
    ]  # fmt: skip


def test_a_stream_writer_that_langgraph_hands_in():
    from langchain_core.tools import tool
    from langgraph.prebuilt import ToolRuntime

    @tool
    def search(city: str, runtime: ToolRuntime) -> str:
        """Search."""
        ran.append(city)
        runtime.stream_writer({"seen": city})
        return "rain"

    live = same(lambda: stream_of([search], ["search"], ["custom", "updates"]))
    assert live == [{"seen": "Oslo"}, ("search", "rain")]


def test_events_that_langchain_dispatches():
    from langchain_core.callbacks import BaseCallbackHandler
    from langchain_core.callbacks.manager import dispatch_custom_event
    from langchain_core.tools import tool

    class Ear(BaseCallbackHandler):
        def __init__(self):
            self.heard = []

        def on_custom_event(self, name, data, **_):
            self.heard.append((name, data))

    @tool
    def search(city: str) -> str:
        """Search."""
        ran.append(city)
        dispatch_custom_event("looking", {"city": city})
        return "rain"

    def program():
        ear = Ear()
        return search.invoke({"city": "Oslo"}, config={"callbacks": [ear]}), ear.heard

    assert same(program) == ("rain", [("looking", {"city": "Oslo"})])


def test_an_async_tool_dispatches_events_too():
    from langchain_core.callbacks.manager import adispatch_custom_event
    from langchain_core.tools import tool

    @tool
    async def search(city: str) -> str:
        """Search."""
        ran.append(city)
        await adispatch_custom_event("looking", {"city": city})
        return "rain"

    async def events():
        found = [each async for each in search.astream_events({"city": "Oslo"}, version="v2")]
        return [
            (each["name"], each["data"]) for each in found if each["event"] == "on_custom_event"
        ]

    assert same(lambda: asyncio.run(events())) == [("looking", {"city": "Oslo"})]


def test_a_command_that_updates_the_graphs_state():
    from langchain_core.messages import AIMessage, ToolMessage
    from langchain_core.tools import InjectedToolCallId, tool
    from langgraph.graph import END, START, StateGraph
    from langgraph.graph.message import add_messages
    from langgraph.prebuilt import ToolNode
    from langgraph.types import Command

    class State(TypedDict):
        messages: Annotated[list[Any], add_messages]
        seen: Annotated[list[str], operator.add]

    @tool
    def remember(city: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command:
        """Remember."""
        ran.append(city)
        return Command(
            update={"seen": [city], "messages": [ToolMessage("noted", tool_call_id=tool_call_id)]}
        )

    def program():
        call = {"name": "remember", "args": {"city": "Oslo"}, "id": "c1", "type": "tool_call"}
        graph = StateGraph(State)
        graph.add_node(
            "model", lambda _: {"messages": [AIMessage(content="", tool_calls=[call], id="m1")]}
        )
        graph.add_node("tools", ToolNode([remember]))
        graph.add_edge(START, "model")
        graph.add_edge("model", "tools")
        graph.add_edge("tools", END)
        state = graph.compile().invoke({"messages": [], "seen": []})
        return state["seen"], [message.content for message in state["messages"]]

    assert same(program) == (["Oslo"], ["", "noted"])


def test_a_store_that_a_tool_puts_something_in():
    from langgraph.store.memory import InMemoryStore

    import tape_jupyter as tape

    store = None

    @tape.tool
    def remember(city):
        ran.append(city)
        store.put(("cities",), city, {"seen": True})
        return "ok"

    def program():
        nonlocal store
        store = InMemoryStore()
        remember("Oslo"), remember("Rome")
        return [(item.key, item.value) for item in store.search(("cities",))]

    assert same(program) == [("Oslo", {"seen": True}), ("Rome", {"seen": True})]


def test_the_context_of_openai_agents():
    import dataclasses

    import tape_jupyter as tape

    agents = pytest.importorskip("agents")

    @dataclasses.dataclass
    class Deps:
        seen: list = dataclasses.field(default_factory=list)

    @tape.tool
    def note(context, city):
        ran.append(city)
        context.context.seen.append(city)
        return "ok"

    def program():
        deps = Deps()
        note(agents.RunContextWrapper(context=deps), "Oslo")
        return deps.seen

    assert same(program) == ["Oslo"]
