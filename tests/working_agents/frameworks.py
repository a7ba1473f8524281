"""Tools that LangGraph, LangChain, LlamaIndex, OpenAI Agents, pydantic-ai and MCP run."""

from __future__ import annotations

from collections.abc import Iterator

from tests.working_agents.written import AgentNotebook, cells, taped
from tests.harness.scripted_model import call

GRAPH = """
import warnings
warnings.filterwarnings("ignore", category=DeprecationWarning)
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
"""

LLAMA_LLM = """
import json
from openai import AsyncOpenAI
from llama_index.core.agent.workflow import FunctionAgent, ToolCallResult
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata, TextBlock, ToolCallBlock
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context

class Model(FunctionCallingLLM):
    "An OpenAI-compatible endpoint, for LlamaIndex."

    @property
    def metadata(self):
        return LLMMetadata(is_function_calling_model=True, model_name="gpt-4o")

    def _prepare_chat_with_tools(self, tools, user_msg=None, chat_history=None, **kwargs):
        messages = [*(chat_history or []), *([user_msg] if user_msg else [])]
        return {"messages": messages, "tools": [each.metadata.to_openai_tool() for each in tools]}

    def get_tool_calls_from_response(self, response, error_on_no_tool_call=True, **kwargs):
        return [ToolSelection(tool_id=b.tool_call_id, tool_name=b.tool_name, tool_kwargs=b.tool_kwargs)
                for b in response.message.blocks if isinstance(b, ToolCallBlock)]

    async def achat(self, messages, tools=None, **kwargs):
        told = []
        for message in messages:
            calls = [b for b in message.blocks if isinstance(b, ToolCallBlock)]
            one = {"role": message.role.value, "content": message.content or ""}
            if calls:
                one["tool_calls"] = [{"id": b.tool_call_id, "type": "function", "function": {
                    "name": b.tool_name, "arguments": json.dumps(b.tool_kwargs)}} for b in calls]
            if message.role.value == "tool":
                one["tool_call_id"] = message.additional_kwargs["tool_call_id"]
            told.append(one)
        reply = (await AsyncOpenAI().chat.completions.create(model="gpt-4o", messages=told, tools=tools)).choices[0].message
        blocks = [TextBlock(text=reply.content)] if reply.content else []
        blocks += [ToolCallBlock(tool_call_id=c.id, tool_name=c.function.name, tool_kwargs=json.loads(c.function.arguments))
                   for c in reply.tool_calls or []]
        return ChatResponse(message=ChatMessage(role="assistant", blocks=blocks))

    async def astream_chat(self, messages, **kwargs):
        async def once():
            yield await self.achat(messages, **kwargs)
        return once()

    def chat(self, messages, **kwargs):
        raise NotImplementedError

    stream_chat = complete = acomplete = stream_complete = astream_complete = chat
"""


def notebooks() -> Iterator[AgentNotebook]:
    yield from _langgraph()
    yield from _llama_index()
    yield from _openai_agents()
    yield from _pydantic_ai()
    yield from _mcp()


def _langgraph() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "langgraph_tool_node",
        cells(
            GRAPH,
            """
stock = {"tea": 3, "milk": 0}
sold = []

@tool
def sell(item: str) -> str:
    "Sell one of an item."
    if not stock[item]:
        print("out of", item)
        return "out of stock"
    stock[item] -= 1
    sold.append(item)
    print("sold", item)
    return f"{stock[item]} left"

@tool
async def restock(item: str, amount: int) -> str:
    "Order more of an item."
    stock[item] += amount
    return "ordered"

model = ChatAnthropic(model="claude-sonnet-4-6", max_tokens=200).bind_tools([sell, restock])

async def think(state):
    return {"messages": [await model.ainvoke(state["messages"])]}

graph = StateGraph(MessagesState)
graph.add_node("think", think)
graph.add_node("tools", ToolNode([sell, restock]))
graph.add_edge(START, "think")
graph.add_conditional_edges("think", tools_condition)
graph.add_edge("tools", "think")
agent = graph.compile()
""",
            taped("""
result = await agent.ainvoke({"messages": [HumanMessage("Sell a tea and a milk, restock milk.")]})
for message in result["messages"]:
    print(type(message).__name__, message.content if isinstance(message.content, str) else message.tool_calls)
"""),
            "print(stock, sold)",
        ),
        [
            [call("sell", item="tea"), call("sell", item="milk")],
            [call("restock", item="milk", amount=5)],
            "Tea is sold, milk is on its way.",
        ],
        varies=True,
    )
    yield AgentNotebook(
        "langgraph_commands",
        cells(
            GRAPH,
            """
from typing import Annotated
from langchain_core.tools import InjectedToolCallId
from langgraph.prebuilt import InjectedState
from langgraph.types import Command

class State(MessagesState):
    plan: list
    user: str

audit = []

@tool
def add_step(step: str, call_id: Annotated[str, InjectedToolCallId], state: Annotated[dict, InjectedState]) -> Command:
    "Add a step to the plan."
    audit.append((state["user"], step))
    plan = [*state.get("plan", []), step]
    return Command(update={"plan": plan, "messages": [ToolMessage(f"{len(plan)} steps", tool_call_id=call_id)]})

model = ChatAnthropic(model="claude-sonnet-4-6", max_tokens=200).bind_tools([add_step])
graph = StateGraph(State)
graph.add_node("think", lambda state: {"messages": [model.invoke(state["messages"])]})
graph.add_node("tools", ToolNode([add_step]))
graph.add_edge(START, "think")
graph.add_conditional_edges("think", tools_condition)
graph.add_edge("tools", "think")
agent = graph.compile()
""",
            taped("""
result = agent.invoke({"messages": [HumanMessage("Plan a picnic.")], "user": "ada", "plan": []})
print(result["plan"], result["messages"][-1].content)
"""),
            "print(audit, result['user'])",
        ),
        [[call("add_step", step="buy bread")], [call("add_step", step="pack a rug")], "Two steps."],
        varies=True,
    )
    yield AgentNotebook(
        "langgraph_streams",
        cells(
            GRAPH,
            """
from langgraph.config import get_stream_writer
copied = []

@tool
def copy_files(folder: str) -> str:
    "Copy a folder."
    write = get_stream_writer()
    for number in range(3):
        write({"folder": folder, "done": number + 1})
        copied.append(f"{folder}/{number}")
    print("copied", folder)
    return "copied"

model = ChatAnthropic(model="claude-sonnet-4-6", max_tokens=200).bind_tools([copy_files])
graph = StateGraph(MessagesState)
graph.add_node("think", lambda state: {"messages": [model.invoke(state["messages"])]})
graph.add_node("tools", ToolNode([copy_files]))
graph.add_edge(START, "think")
graph.add_conditional_edges("think", tools_condition)
graph.add_edge("tools", "think")
agent = graph.compile()
progress = []
""",
            taped("""
for kind, part in agent.stream({"messages": [HumanMessage("Copy a.")]}, stream_mode=["custom", "updates"]):
    if kind == "custom":
        progress.append(part)
        print("custom", part)
    else:
        print(kind, list(part))
"""),
            "print(progress, copied)",
        ),
        [[call("copy_files", folder="a")], "Copied."],
        varies=True,
    )
    yield AgentNotebook(
        "langgraph_saver",
        cells(
            GRAPH,
            """
from langgraph.checkpoint.memory import InMemorySaver
facts = {}

@tool
def learn(name: str, value: str) -> str:
    "Remember a fact."
    facts[name] = value
    return f"{len(facts)} facts"

model = ChatAnthropic(model="claude-sonnet-4-6", max_tokens=200).bind_tools([learn])
graph = StateGraph(MessagesState)
graph.add_node("think", lambda state: {"messages": [model.invoke(state["messages"])]})
graph.add_node("tools", ToolNode([learn]))
graph.add_edge(START, "think")
graph.add_conditional_edges("think", tools_condition)
graph.add_edge("tools", "think")
saver = InMemorySaver()
agent = graph.compile(checkpointer=saver)
config = {"configurable": {"thread_id": "1"}}
""",
            taped(
                'print(agent.invoke({"messages": [HumanMessage("I am Ada.")]}, config)["messages"][-1].content)'
            ),
            "print([m.content for m in agent.get_state(config).values['messages']], facts)",
            taped(
                'print(agent.invoke({"messages": [HumanMessage("And I live in Oslo.")]}, config)["messages"][-1].content)'
            ),
            "print(len(agent.get_state(config).values['messages']), len(list(saver.list(config))), facts)",
        ),
        [
            [call("learn", name="name", value="Ada")],
            "Hello Ada.",
            [call("learn", name="city", value="Oslo")],
            "Oslo it is.",
        ],
    )
    yield AgentNotebook(
        "langchain_callbacks",
        cells(
            """
import warnings
warnings.filterwarnings("ignore", category=DeprecationWarning)
from langchain_anthropic import ChatAnthropic
from langchain_core.callbacks import BaseCallbackHandler, dispatch_custom_event
from langchain_core.messages import HumanMessage
from langchain_core.tools import StructuredTool

class Watcher(BaseCallbackHandler):
    def __init__(self):
        self.seen = []
    def on_tool_start(self, serialized, input_str, **kwargs):
        self.seen.append(("start", input_str))
    def on_custom_event(self, name, data, **kwargs):
        self.seen.append((name, data))
    def on_tool_end(self, output, **kwargs):
        self.seen.append(("end", str(output.content)))

downloads = {}

def download(url: str) -> str:
    "Download a page."
    for percent in (50, 100):
        dispatch_custom_event("progress", {"url": url, "percent": percent})
    downloads[url] = 1000
    return "1000 bytes"

tool = StructuredTool.from_function(download)
model = ChatAnthropic(model="claude-sonnet-4-6", max_tokens=200).bind_tools([tool])
watcher = Watcher()
""",
            taped("""
messages = [HumanMessage("Get a.com and b.com.")]
while True:
    reply = model.invoke(messages)
    messages.append(reply)
    if not reply.tool_calls:
        break
    for asked in reply.tool_calls:
        messages.append(tool.invoke(asked, {"callbacks": [watcher]}))
print(reply.content)
"""),
            "for each in watcher.seen:\n    print(each)\nprint(downloads)",
        ),
        [[call("download", url="a.com")], [call("download", url="b.com")], "Two kilobytes."],
        varies=True,
    )


def _llama_index() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "llama_index_tools",
        cells(
            LLAMA_LLM,
            """
shelf = []
borrowed = {}

def lend(book: str, who: str) -> str:
    "Lend a book."
    borrowed[book] = who
    shelf.append(book)
    print(book, "->", who)
    return f"{len(borrowed)} books are out"

async def give_back(book: str) -> str:
    "Take a book back."
    who = borrowed.pop(book)
    return f"thanks, {who}"

agent = FunctionAgent(
    tools=[FunctionTool.from_defaults(lend), FunctionTool.from_defaults(async_fn=give_back)], llm=Model(), streaming=False)
""",
            taped(
                "answer = str(await agent.run('Ada wants Emma and Dune; Emma is back.'))\nprint(answer)"
            ),
            "print(shelf, borrowed)",
        ),
        [
            [call("lend", book="Emma", who="Ada")],
            [call("lend", book="Dune", who="Ada")],
            [call("give_back", book="Emma")],
            "Dune is out.",
        ],
    )
    yield AgentNotebook(
        "llama_index_context",
        cells(
            LLAMA_LLM,
            """
from llama_index.core.workflow import Event

class Progress(Event):
    step: str

names = []

async def set_name(ctx: Context, name: str) -> str:
    "Remember the user's name."
    ctx.write_event_to_stream(Progress(step=f"name {name}"))
    state = await ctx.store.get("state", default={})
    state["name"] = name
    await ctx.store.set("state", state)
    names.append(name)
    return "ok"

async def add_point(ctx: Context, amount: int) -> str:
    "Add points."
    async with ctx.store.edit_state() as whole:
        whole["points"] = whole.get("points", 0) + amount
        return str(whole["points"])

agent = FunctionAgent(tools=[set_name, add_point], llm=Model(), streaming=False)
ctx = Context(agent)
steps = []
""",
            taped("""
handler = agent.run("I am Ada, give me 3 and 4 points.", ctx=ctx)
async for event in handler.stream_events():
    if isinstance(event, Progress):
        steps.append(event.step)
        print("progress:", event.step)
    elif isinstance(event, ToolCallResult):
        print("tool:", event.tool_name, event.tool_output.content)
print(str(await handler))
"""),
            "print(steps, names, await ctx.store.get('state'), await ctx.store.get('points', default=None))",
        ),
        [
            [call("set_name", name="Ada")],
            [call("add_point", amount=3)],
            [call("add_point", amount=4)],
            "Seven points, Ada.",
        ],
    )


def _openai_agents() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "openai_agents_tools",
        cells(
            """
from agents import Agent, Runner, function_tool, set_tracing_disabled
set_tracing_disabled(True)
alarms = []

@function_tool
def set_alarm(time: str) -> str:
    "Set an alarm."
    alarms.append(time)
    print("alarm at", time)
    return f"{len(alarms)} alarms"

@function_tool
async def clear_alarms() -> str:
    "Remove all alarms."
    alarms.clear()
    with open("alarms.log", "a") as file:
        file.write("cleared\\n")
    return "cleared"

agent = Agent("clock", instructions="Help.", tools=[set_alarm, clear_alarms], model="gpt-4o")
""",
            taped(
                "result = await Runner.run(agent, 'Clear all, then wake me at 6 and 7.')\nprint(result.final_output)"
            ),
            "print(alarms, open('alarms.log').read(), len(result.new_items))",
        ),
        [
            [call("clear_alarms")],
            [call("set_alarm", time="06:00"), call("set_alarm", time="07:00")],
            "Sleep well.",
        ],
    )
    yield AgentNotebook(
        "openai_agents_context",
        cells(
            """
from dataclasses import dataclass, field
from agents import Agent, RunContextWrapper, RunHooks, Runner, function_tool, set_tracing_disabled
set_tracing_disabled(True)

@dataclass
class Customer:
    name: str
    points: int = 0
    history: list = field(default_factory=list)

class Hooks(RunHooks):
    def __init__(self):
        self.events = []
    async def on_tool_start(self, context, agent, tool):
        self.events.append(f"{tool.name} starts")
    async def on_tool_end(self, context, agent, tool, result):
        self.events.append(f"{tool.name}: {result}")

@function_tool
async def give_points(wrapper: RunContextWrapper[Customer], amount: int) -> str:
    "Give points to the customer."
    wrapper.context.points += amount
    wrapper.context.history.append(amount)
    return f"{wrapper.context.points} points"

customer = Customer("Ada")
hooks = Hooks()
agent = Agent[Customer]("shop", instructions="Help.", tools=[give_points], model="gpt-4o")
""",
            taped(
                "result = await Runner.run(agent, 'Ten points, then five.', context=customer, hooks=hooks)\nprint(result.final_output)"
            ),
            "print(customer, hooks.events)",
        ),
        [[call("give_points", amount=10)], [call("give_points", amount=5)], "Fifteen."],
    )


def _pydantic_ai() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "pydantic_ai_deps",
        cells(
            """
from dataclasses import dataclass, field
from pydantic_ai import Agent, RunContext

@dataclass
class Desk:
    owner: str
    tickets: dict[int, str] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)

agent = Agent("anthropic:claude-sonnet-4-6", deps_type=Desk)

@agent.tool
def open_ticket(ctx: RunContext[Desk], title: str) -> int:
    "Open a ticket."
    number = len(ctx.deps.tickets) + 1
    ctx.deps.tickets[number] = title
    ctx.deps.log.append(f"opened {number}")
    print("opened", number)
    return number

@agent.tool
async def close_ticket(ctx: RunContext[Desk], number: int) -> str:
    "Close a ticket."
    ctx.deps.log.append(f"closed {ctx.deps.tickets.pop(number)}")
    return "closed"

desk = Desk("Ada")
""",
            taped(
                "result = await agent.run('Lamp and door are broken; the lamp is mended.', deps=desk)\nprint(result.output)"
            ),
            "print(desk, len(result.all_messages()))",
        ),
        [
            [call("open_ticket", title="lamp")],
            [call("open_ticket", title="door")],
            [call("close_ticket", number=1)],
            "The door is still open.",
        ],
        varies=True,
    )
    yield AgentNotebook(
        "pydantic_ai_plain_tools",
        cells(
            """
from pydantic_ai import Agent, ModelRetry
agent = Agent("openai-chat:gpt-4o")
guesses, secret = [], 7
scores = {"tries": 0}

@agent.tool_plain(retries=3)
def guess(number: int) -> str:
    "Guess the number."
    guesses.append(number)
    scores["tries"] += 1
    if number != secret:
        raise ModelRetry("higher" if number < secret else "lower")
    return "right"
""",
            taped("result = await agent.run('Find my number.')\nprint(result.output)"),
            "print(guesses, scores)",
        ),
        [
            [call("guess", number=5)],
            [call("guess", number=9)],
            [call("guess", number=7)],
            "It is 7.",
        ],
        varies=True,
    )


def _mcp() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "mcp_server_in_the_notebook",
        cells(
            """
import anthropic
from mcp import Client
from mcp.server.mcpserver import Context, MCPServer
model = anthropic.AsyncAnthropic()
server = MCPServer("kitchen")
pots = {}

@server.tool()
async def cook(dish: str, minutes: int, ctx: Context) -> str:
    "Cook a dish."
    for minute in range(minutes):
        await ctx.report_progress(minute + 1, minutes, f"{dish} boils")
    pots[dish] = minutes
    print("cooked", dish)
    return f"{dish} is ready"

progress = []

async def on_progress(done, total, message):
    progress.append((done, total, message))
""",
            taped("""
messages = [{"role": "user", "content": "Cook soup."}]
async with Client(server) as kitchen:
    TOOLS = [{"name": t.name, "input_schema": t.input_schema} for t in (await kitchen.list_tools()).tools]
    while True:
        reply = await model.messages.create(model="claude-sonnet-4-6", max_tokens=200, messages=messages, tools=TOOLS)
        messages.append({"role": "assistant", "content": [block.to_dict() for block in reply.content]})
        if reply.stop_reason != "tool_use":
            break
        results = []
        for block in reply.content:
            done = await kitchen.call_tool(block.name, block.input, progress_callback=on_progress)
            results.append({"type": "tool_result", "tool_use_id": block.id, "content": done.content[0].text})
        messages.append({"role": "user", "content": results})
print(reply.content[0].text)
"""),
            "print(pots, progress)",
        ),
        [[call("cook", dish="soup", minutes=3)], "Soup is ready."],
        varies=True,
    )
