"""Notebooks of people who build: web developers, people who run machines, people who glue services together."""

from __future__ import annotations

from collections.abc import Iterator

from tests.harness.scripted_model import call
from tests.working_agents.language import BY_NAME
from tests.working_agents.written import (
    ANTHROPIC,
    ANTHROPIC_LOOP,
    OPENAI,
    OPENAI_LOOP,
    AgentNotebook,
    cells,
    schemas,
    taped,
)


def notebooks() -> Iterator[AgentNotebook]:
    yield from _web()
    yield from _own_loops()
    yield from _operations()


def _web() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "routes_of_a_small_server",
        cells(
            ANTHROPIC
            + "import dataclasses, inspect, re, json\nfrom http import HTTPStatus\nfrom pydantic import TypeAdapter\nfrom pydantic.dataclasses import dataclass\nfrom typing import Annotated, Literal, get_type_hints",
            """
class App:
    def __init__(self):
        self.routes, self.state, self.before, self.hits = [], {}, [], {}
    def route(self, method, path):
        pattern = re.compile("^" + re.sub(r"<(\\w+)>", r"(?P<\\1>[^/]+)", path) + "$")
        def keep(handler):
            self.routes.append((method, pattern, handler))
            return handler
        return keep
    def before_request(self, hook): self.before.append(hook); return hook
    def handle(self, request):
        for method, pattern, handler in self.routes:
            found = pattern.match(request["path"])
            if method == request["method"] and found:
                for hook in self.before: hook(request)
                self.hits[handler.__name__] = self.hits.get(handler.__name__, 0) + 1
                return handler(**found.groupdict(), body=request.get("body"))
        return {"error": "not found"}, HTTPStatus.NOT_FOUND

app = App()

@dataclass
class Item:
    name: str
    price: float = 0.0
    kind: Literal["book", "toy"] = "toy"
    def __post_init__(self): app.state.setdefault("made", []).append(self.name)

Items = TypeAdapter(dict[str, Item])

@app.before_request
def count(request): request["n"] = app.state["n"] = app.state.get("n", 0) + 1

@app.route("PUT", "/items/<id>")
def put(id, body):
    item = TypeAdapter(Item).validate_python(body)
    app.state.setdefault("items", {})[id] = item
    return dataclasses.asdict(item), HTTPStatus.CREATED

@app.route("PATCH", "/items/<id>")
def patch(id, body):
    item = app.state["items"][id]
    for name, value in body.items(): setattr(item, name, value)
    return Items.dump_json(app.state["items"]).decode(), HTTPStatus.OK

@app.route("DELETE", "/items/<id>")
def delete(id, body):
    return app.state["items"].pop(id, None), HTTPStatus.NO_CONTENT

requests_seen = []
""",
            schemas(request="method path body:object")
            + """
async def request(method, path, body=None):
    seen = {"method": method, "path": path, "body": body}
    requests_seen.append(seen)
    answer, status = app.handle(seen)
    seen["status"] = status
    return f"{status.value} {answer}"
""",
            taped("""
talk = [{"role": "user", "content": "Put a bear in the shop."}]
while (reply := client.messages.create(model="claude-haiku-4-5", max_tokens=99, messages=talk, tools=TOOLS)).stop_reason == "tool_use":
    talk.append({"role": "assistant", "content": reply.content})
    talk.append({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": use.id, "content": await request(**use.input)} for use in reply.content if use.type == "tool_use"]})
print(reply.content[0].text)
"""),
            "print(app.state, app.hits, requests_seen)",
            "print(app.handle({'method': 'PATCH', 'path': '/items/1', 'body': {'price': 2}}), talk[1]['content'][0].name, app.state['n'])",
        ),
        [
            [
                call("request", method="PUT", path="/items/1", body={"name": "bear", "price": "5"}),
                call("request", method="PUT", path="/items/2", body={"name": "x", "kind": "toy"}),
            ],
            [call("request", method="PATCH", path="/items/1", body={"kind": "book"})],
            [
                call("request", method="DELETE", path="/items/2", body={}),
                call("request", method="GET", path="/", body={}),
            ],
            "The bear is in the shop.",
        ],
    )
    yield AgentNotebook(
        "helper_written_and_reloaded",
        cells(
            OPENAI,
            """
%%writefile shop_helpers.py
import itertools
STOCK = {"tea": 3}
_ids = itertools.count(1)
debug = False
class Basket:
    made = 0
    def __init__(self): self.lines = []; Basket.made += 1
    def add(self, item):
        self.lines.append((next(_ids), item)); STOCK[item] = STOCK.get(item, 0) - 1
        return len(self.lines)
def add(item, basket): return basket.add(item)
current = Basket()
""",
            "import importlib, sys\nimport shop_helpers\nfrom shop_helpers import *\nfrom shop_helpers import STOCK as stock, _ids\nbasket = shop_helpers.current",
            schemas("openai", put="item", improve="", switch="on:boolean")
            + """
def put(item):
    return f"{shop_helpers.add(item, basket)} {stock}"

def improve():
    with open("shop_helpers.py", "a") as out:
        out.write("\\ndef total(): return sum(STOCK.values())\\n")
    shop_helpers.__dict__.setdefault("generation", 0)
    shop_helpers.generation += 1
    return "written"

def switch(on):
    shop_helpers.debug = on
    shop_helpers.current, before = Basket(), shop_helpers.current
    setattr(shop_helpers, "before", before)
    Basket.colour = "blue"
    return str(Basket.made)
"""
            + BY_NAME,
            "QUESTION = 'Fill my basket, improve the shop.'",
            OPENAI_LOOP,
            "print(basket.lines, stock, shop_helpers.debug, shop_helpers.before is basket, debug, Basket.made, Basket.colour, shop_helpers.generation)",
            "shop_helpers = importlib.reload(shop_helpers)\nprint(shop_helpers.total(), stock is shop_helpers.STOCK, isinstance(basket, shop_helpers.Basket), next(_ids))",
            taped(
                "print(client.chat.completions.create(model='gpt-4o', messages=[{'role': 'user', 'content': 'Bye'}]).choices[0].message.content, put('rum'))"
            ),
            "print(stock, shop_helpers.STOCK, basket.lines)",
        ),
        {
            "Fill my": [
                [call("put", item="tea"), call("put", item="jam")],
                [call("improve"), call("switch", on=True)],
                "Filled.",
            ],
            "Bye": ["Bye."],
        },
    )
    yield AgentNotebook(
        "errors_kept_with_tracebacks",
        cells(
            ANTHROPIC + "import traceback, warnings, sys",
            """
errors, cleaned, causes = [], [], {}
last = None
class ToolError(Exception):
    raised = 0
    def __init__(self, tool, code=1):
        super().__init__(f"{tool} failed")
        self.tool, self.code = tool, code
        ToolError.raised += 1
class Half(ToolError): pass
account = {"a": 10, "b": 0}
""",
            schemas(move="amount:integer", many="names:array", risky="word")
            + """
def move(amount):
    account["a"] -= amount
    try:
        if account["a"] < 0:
            raise Half("move", code=account["a"])
        account["b"] += amount
    finally:
        cleaned.append(dict(account))
    return account

def many(names):
    problems = []
    for name in names:
        try:
            {"ok": 1}[name]
        except KeyError as why:
            why.add_note(f"while looking at {name}")
            problems.append(why); causes[name] = why
    if problems:
        raise ExceptionGroup("several", problems)

def risky(word):
    global last
    try:
        try:
            int(word)
        except ValueError as why:
            raise RuntimeError("no number") from why
    except RuntimeError as why:
        last = why
        warnings.warn(f"{word} is no number", stacklevel=2)
        return "".join(traceback.format_exception_only(why)).strip()
    return word

def run_tool(name, arguments):
    try:
        return globals()[name](**arguments)
    except* (ToolError, KeyError) as group:
        errors.extend(group.exceptions)
        errors.append(group)
    return f"error {errors[-1]}"
""",
            "QUESTION = 'Move money.'",
            ANTHROPIC_LOOP,
            "print(account, cleaned, [type(e).__name__ for e in errors], ToolError.raised, [getattr(e, 'code', None) for e in errors])",
            "print(errors[0].__traceback__ is not None, causes['x'].__notes__, last.__cause__, [f.name for f in traceback.extract_tb(last.__traceback__)])",
            "print(repr(last), errors[-1].exceptions[0] is causes['x'] if hasattr(errors[-1], 'exceptions') else '')\nraise last",
        ),
        [
            [call("move", amount=7), call("move", amount=7)],
            [call("many", names=["ok", "x", "y"])],
            [call("risky", word="ten"), call("risky", word="10")],
            "Moved.",
        ],
        raises=True,
    )
    yield AgentNotebook(
        "workers_in_task_groups",
        cells(
            "import anthropic, asyncio, anyio, contextlib\nfrom collections import defaultdict\nclient = anthropic.AsyncAnthropic()",
            """
jobs: asyncio.Queue = asyncio.Queue()
results, board = {}, defaultdict(list)
limit = anyio.CapacityLimiter(2)
ready = asyncio.Event()
lock = asyncio.Lock()
session = {"open": 0}

@contextlib.asynccontextmanager
async def desk(name):
    session["open"] += 1
    try:
        yield board[name]
    finally:
        session["open"] -= 1
        board["closed"].append(name)

def slow_lookup(topic):
    results[topic] = results.get(topic, 0) + len(topic)
    return topic[::-1]

async def note(topic, text):
    async with lock, desk(topic) as lines:
        lines.append(text)
        lines.append(await anyio.to_thread.run_sync(slow_lookup, topic, limiter=limit))
    ready.set()
    return len(board)
""",
            """
async def worker(name):
    while not jobs.empty():
        topic = jobs.get_nowait()
        reply = await client.messages.create(model="claude-sonnet-4-6", max_tokens=20, messages=[{"role": "user", "content": topic}],
            tools=[{"name": "note", "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}}}])
        use = reply.content[0]
        await note(topic, use.input["text"])
        jobs.task_done()
    return name
""",
            taped("""
for topic in ("lamp", "mug", "hat"):
    jobs.put_nowait(topic)
async with asyncio.TaskGroup() as group:
    tasks = [group.create_task(worker(n), name=f"w{n}") for n in range(2)]
await jobs.join()
print([t.result() for t in tasks], sorted(results.items()))
"""),
            "print(sorted((k, sorted(v)) for k, v in board.items()), session, ready.is_set(), lock.locked(), limit.borrowed_tokens)",
            taped("""
send, receive = anyio.create_memory_object_stream(5)
async def feed(topic):
    reply = await client.messages.create(model="claude-sonnet-4-6", max_tokens=20, messages=[{"role": "user", "content": topic}])
    await send.send(reply.content[0].text)
async with anyio.create_task_group() as tg:
    for topic in ("red", "blue"):
        tg.start_soon(feed, topic)
with anyio.move_on_after(5) as scope:
    got = {await receive.receive(), receive.receive_nowait()}
print(sorted(got), scope.cancelled_caught)
"""),
            "print(await note('more', 'x'), dict(results), send.statistics().current_buffer_used)",
        ),
        {
            "lamp": [[call("note", text="light")]],
            "mug": [[call("note", text="tea")]],
            "hat": [[call("note", text="felt")]],
            "red": ["rot"],
            "blue": ["blau"],
        },
        varies=True,
    )


def _own_loops() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "actions_found_in_text",
        cells(
            OPENAI + "import re, ast, inspect, textwrap",
            """
PROMPT = "Answer with 'Action: tool[arg]' or 'Final: text'."
ACTION = re.compile(r"Action:\\s*(\\w+)\\[(.*?)\\]")
class Scratch(list):
    def __str__(self): return "\\n".join(map(str, self))
    def add(self, kind, text):
        self.append(f"{kind}: {text}"); self.last = kind
        return self

class Agent:
    max_steps: int = 6
    tools: dict = {}
    def __init__(self): self.memory = Scratch(); self.steps = 0
    def __init_subclass__(cls):
        cls.tools = {n[5:]: f for n, f in vars(cls).items() if n.startswith("tool_")}
    def step(self, question):
        self.steps += 1
        text = client.chat.completions.create(model="gpt-4o", messages=[{"role": "system", "content": PROMPT}, {"role": "user", "content": f"{question}\\n{self.memory}"}]).choices[0].message.content
        self.memory.add("model", text)
        if found := ACTION.search(text):
            name, argument = found.groups()
            self.memory.add("seen", self.tools[name](self, argument))
            return None
        return text.removeprefix("Final: ")
    def run(self, question):
        for _ in range(self.max_steps):
            if (answer := self.step(question)) is not None:
                return answer
""",
            """
class Pantry(Agent):
    stock = {"egg": 2}
    def tool_take(self, what):
        self.stock[what] -= 1
        self.max_steps += 1
        return f"{self.stock[what]} {what} left"
    def tool_calc(self, expression):
        value = eval(expression, {"__builtins__": {}}, vars(self))
        self.value = value
        return value
    def tool_define(self, source):
        scope = {}
        exec(f"answer = {source}", scope)
        self.__dict__.update(answer=scope["answer"])
        return ast.unparse(ast.parse(source))
pantry = Pantry()
""",
            taped("print(pantry.run('Take an egg.'))"),
            "print(pantry.memory, pantry.memory.last, pantry.steps, pantry.value, pantry.answer, Pantry.stock)",
            "pantry.tool_take('egg'), pantry.max_steps, Agent.max_steps",
        ),
        {
            "41 + 1": ["Final: done"],
            "seen: 3": ["Action: define[41 + 1]"],
            "seen: 1 egg": ["Action: calc[steps + 1]"],
            "Take an": ["Action: take[egg]"],
        },
    )
    yield AgentNotebook(
        "streamed_parts_put_together",
        cells(
            OPENAI + "import sys, collections",
            """
printed = []
calls = collections.defaultdict(lambda: {"name": "", "arguments": ""})
class Conversation:
    def __init__(self): self.messages, self.tokens = [], 0
    def __lshift__(self, message): self.messages.append(message); return self
    def __iter__(self): yield from self.messages
talk = Conversation()
inventory = bytearray(b"....")
view = memoryview(inventory)
""",
            schemas("openai", fill="at:integer char", swap="")
            + """
def fill(at, char):
    view[at] = ord(char)
    fill.history = (*getattr(fill, "history", ()), at)
    sys.stdout.write(f"[{inventory.decode()}]\\n")
    return inventory.decode()

def swap():
    inventory[:2], inventory[2:] = inventory[2:], inventory[:2]
    return bytes(view[::-1]).decode()
DISPATCH = dict(fill=lambda **a: fill(**a), swap=lambda: swap())
""",
            taped("""
talk << {"role": "user", "content": "Fill and swap."}
while True:
    calls.clear(); text = ""
    for chunk in client.chat.completions.create(model="gpt-4o", messages=list(talk), tools=TOOLS, stream=True, stream_options={"include_usage": True}):
        talk.tokens += 1
        for choice in chunk.choices:
            if choice.delta.content:
                text += choice.delta.content
                print(choice.delta.content, end="", flush=True); printed.append(choice.delta.content)
            for part in choice.delta.tool_calls or ():
                one = calls[part.index]
                one["id"] = part.id or one.get("id")
                one["name"] += part.function.name or ""
                one["arguments"] += part.function.arguments or ""
    if not calls:
        break
    talk << {"role": "assistant", "content": text or None, "tool_calls": [{"id": c["id"], "type": "function", "function": {"name": c["name"], "arguments": c["arguments"]}} for c in calls.values()]}
    for c in calls.values():
        talk << {"role": "tool", "tool_call_id": c["id"], "content": DISPATCH[c["name"]](**json.loads(c["arguments"] or "{}"))}
"""),
            "print(inventory, fill.history, printed, talk.tokens > 3, len(talk.messages))",
            taped("""
first = client.responses.create(model="gpt-4o", input="Remember 4.", store=True)
second = client.responses.create(model="gpt-4o", input="Which number?", previous_response_id=first.id)
with client.responses.stream(model="gpt-4o", input="Stream it.") as stream:
    parts = [event.delta for event in stream if event.type == "response.output_text.delta"]
print(first.output_text, second.output_text, "".join(parts), swap())
"""),
            "print(bytes(view), second.previous_response_id == first.id)",
        ),
        {
            "Fill and": [
                [call("fill", at=0, char="a"), call("fill", at=3, char="z")],
                ["Now I swap.", call("swap")],
                "All is filled.",
            ],
            "Remember": ["Yes.", "Four."],
            "Stream it": ["As it flows."],
        },
    )
    yield AgentNotebook(
        "cached_and_tried_again_over_requests",
        cells(
            "import requests, os, json, functools, cachetools\nfrom functools import lru_cache\nfrom tenacity import retry, stop_after_attempt, wait_none",
            """
class LLM:
    url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
    def __init__(self):
        self.session = requests.Session()
        self.session.headers.update({"x-api-key": os.environ.get("ANTHROPIC_API_KEY", "none"), "anthropic-version": "2023-06-01"})
        self.log = []
        self.session.hooks["response"].append(lambda r, **k: self.log.append(r.status_code))
    def __call__(self, messages, tools):
        r = self.session.post(self.url, json={"model": "claude-haiku-4-5", "max_tokens": 100, "messages": messages, "tools": tools}, timeout=30)
        r.raise_for_status()
        return r.json()
    def __enter__(self): return self
    def __exit__(self, *why): self.log.append("closed"); self.session.close()

tries, prices = [], {"tea": 2}
seen = cachetools.LRUCache(2)
""",
            schemas(price="item", order="item count:integer", cheaper="item")
            + """
@lru_cache(maxsize=8)
@retry(stop=stop_after_attempt(3), wait=wait_none(), reraise=True)
def price(item):
    tries.append(item)
    if len(tries) % 2:
        raise TimeoutError(item)
    return prices.setdefault(item, len(item))

@cachetools.cached(seen, key=lambda item, count: item)
def order(item, count):
    order.total += price(item) * count
    return order.total
order.total = 0

def cheaper(item):
    prices[item] -= 1
    price.cache_clear(); seen.clear()
    price.retry_with = None if False else getattr(price, "retry_with", None)
    return price(item)
TABLE = {f.__name__: f for f in (price, order, cheaper)}
""",
            taped("""
with LLM() as llm:
    history = [{"role": "user", "content": "Order tea."}]
    for _ in range(5):
        answer = llm(history, TOOLS)
        history.append({k: answer[k] for k in ("role", "content")})
        match answer["content"]:
            case [{"type": "text", "text": text}]:
                print(text)
                break
            case uses:
                history.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": u["id"], "content": str(TABLE[u["name"]](**u["input"]))} for u in uses]})
"""),
            "print(tries, prices, order.total, dict(seen), price.cache_info(), llm.log)",
            "print(price('tea'), price('rum'), price.cache_info().hits, tries)",
        ),
        [
            [call("price", item="tea"), call("order", item="tea", count=2)],
            [call("order", item="tea", count=9), call("order", item="jam", count=1)],
            [call("cheaper", item="tea")],
            "Ordered.",
        ],
        varies=True,
    )
    yield AgentNotebook(
        "graph_that_asks_a_person",
        cells(
            """
from typing import Annotated, TypedDict
import operator
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, ToolMessage, trim_messages
from langchain_core.tools import tool, BaseTool, StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, interrupt
""",
            """
sent, asked = [], 0
store, saver = InMemoryStore(), InMemorySaver()
class State(TypedDict):
    messages: Annotated[list, add_messages]
    approved: Annotated[list[str], operator.add]
    count: int

class SendMail(BaseTool):
    name: str = "send_mail"
    description: str = "Send a mail."
    sent: int = 0
    def _run(self, to: str) -> str:
        self.sent += 1
        sent.append(to)
        store.put(("mails",), to, {"n": self.sent})
        return f"sent {self.sent}"

def _draft(to: str, text: str) -> str:
    "Draft a mail."
    _draft.drafts[to] = text
    return f"draft for {to}"
_draft.drafts = {}
send_mail, draft = SendMail(), StructuredTool.from_function(_draft, name="draft")
by_name = {t.name: t for t in (send_mail, draft)}
model = ChatAnthropic(model="claude-sonnet-4-6").bind_tools([send_mail, draft])
""",
            """
def think(state):
    return {"messages": [model.invoke(state["messages"])], "count": state.get("count", 0) + 1}

def act(state):
    global asked
    done, ok = [], []
    for use in state["messages"][-1].tool_calls:
        if use["name"] == "send_mail":
            asked += 1
            if interrupt({"to": use["args"]["to"]}) != "yes":
                done.append(ToolMessage("refused", tool_call_id=use["id"])); continue
            ok.append(use["args"]["to"])
        done.append(by_name[use["name"]].invoke(use))
    return {"messages": done, "approved": ok}

graph = (StateGraph(State).add_node(think).add_node(act).add_edge(START, "think").add_edge("act", "think")
    .add_conditional_edges("think", lambda s: "act" if s["messages"][-1].tool_calls else END).compile(checkpointer=saver, store=store))
config = {"configurable": {"thread_id": "1"}}
""",
            taped("""
out = graph.invoke({"messages": [HumanMessage("Write to bob.")], "approved": []}, config)
print(out["__interrupt__"][0].value, graph.get_state(config).next)
"""),
            "print(sent, _draft.drafts, asked)",
            taped("""
out = graph.invoke(Command(resume="yes"), config)
print(out["messages"][-1].content, out["approved"], out["count"])
"""),
            "print(sent, send_mail.sent, asked, [i.value for i in store.search(('mails',))], len(list(graph.get_state_history(config))))",
            taped("""
other = {"configurable": {"thread_id": "2"}}
for mode, part in graph.stream({"messages": [HumanMessage("Write to cyd.")]}, other, stream_mode=["updates", "values"]):
    if mode == "updates": print(sorted(part))
graph.update_state(other, {"approved": ["nobody"]})
for part in graph.stream(Command(resume="no"), other, stream_mode="updates"):
    print(sorted(part))
"""),
            "print(sent, asked, graph.get_state(other).values['approved'], graph.get_state(other).values['messages'][-1].content)",
        ),
        {
            "bob": [
                [call("draft", to="bob", text="hi")],
                [call("send_mail", to="bob")],
                "Bob has mail.",
            ],
            "cyd": [[call("send_mail", to="cyd")], "As you wish."],
        },
        varies=True,
    )
    yield AgentNotebook(
        "agents_that_hand_over",
        cells(
            """
from agents import Agent, Runner, RunConfig, SQLiteSession, function_tool, handoff, set_tracing_disabled, ItemHelpers, AgentHooks, RunContextWrapper
from pydantic import BaseModel
import asyncio, json
set_tracing_disabled(True)
""",
            """
class Refund(BaseModel):
    order: str
    cents: int

tickets, refunds, calls = {}, [], []
class Watch(AgentHooks):
    async def on_start(self, context, agent): calls.append(("start", agent.name))
    async def on_handoff(self, context, agent, source): calls.append(("from", source.name))

@function_tool(name_override="open", strict_mode=False)
def open_ticket(ctx: RunContextWrapper[dict], order: str) -> str:
    "Open a ticket."
    tickets[order] = len(tickets) + 1
    ctx.context["last"] = order
    return json.dumps(tickets)

@function_tool
async def refund(what: Refund) -> str:
    "Refund."
    refunds.append(what)
    await asyncio.sleep(0)
    tickets.pop(what.order)
    return f"{sum(each.cents for each in refunds)}"

clerk = Agent("clerk", instructions="Refund.", tools=[refund], model="gpt-4o", hooks=Watch())
front = Agent("front", instructions="Front desk.", tools=[open_ticket], handoffs=[handoff(clerk, on_handoff=lambda ctx: calls.append("handed"))], model="gpt-4o", hooks=Watch())
session = SQLiteSession("ada", "talks.db")
place = {}
""",
            taped("""
result = await Runner.run(front, "My order 7 broke.", session=session, context=place)
print(result.final_output, result.last_agent.name)
"""),
            "print(tickets, refunds, calls, place)",
            taped("""
streamed = Runner.run_streamed(front, "Order 8 as well.", session=session, context=place)
async for event in streamed.stream_events():
    if event.type == "run_item_stream_event":
        print(event.name)
print(streamed.final_output)
"""),
            "print(tickets, place, [i.get('role') or i.get('type') for i in await session.get_items()])",
        ),
        {
            "Order 8": ["Noted earlier.", "x"][:1] * 6,
            "order 7": [
                [call("open", order="7")],
                [call("transfer_to_clerk")],
                [call("refund", what={"order": "7", "cents": 250})],
                "Refunded.",
            ],
        },
        varies=True,
    )


def _operations() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "pools_of_threads_and_processes",
        cells(
            ANTHROPIC
            + "import concurrent.futures as cf, multiprocessing as mp, threading, os, math, subprocess, sys",
            """
done, sums, order = [], {}, []
lock = threading.Lock()
executor = cf.ThreadPoolExecutor(3, thread_name_prefix="tool", initializer=order.append, initargs=("up",))
local = threading.local()
total = mp.Value("i", 0)
progress = iter([])
""",
            schemas(check="hosts:array", power="numbers:array", run="word", share="amount:integer")
            + """
def probe(host):
    with lock:
        sums[host] = sums.get(host, 0) + len(host)
    local.host = host
    return f"{host} is up"

def check(hosts):
    return list(executor.map(probe, hosts, timeout=20))

def power(numbers):
    with mp.get_context("fork").Pool(2) as pool:
        result = pool.map(math.factorial, numbers)
    future = executor.submit(sum, result)
    future.add_done_callback(lambda f: done.append(f.result()))
    finished, waiting = cf.wait([future])
    order.append((len(finished), len(waiting)))
    return result

def run(word):
    ran = subprocess.run([sys.executable, "-c", f"open('{word}.txt','w').write('{word}'); print('{word}')"], capture_output=True, text=True, check=True)
    os.environ["LAST_WORD"] = ran.stdout.strip()
    timer = threading.Timer(0, done.append, args=[word]); timer.start(); timer.join()
    return ran.stdout

def share(amount):
    with total.get_lock():
        total.value += amount
    return total.value
"""
            + BY_NAME,
            "QUESTION = 'Check my hosts.'",
            ANTHROPIC_LOOP,
            "print(sums, done, order.count('up') > 0, order[-1], total.value)",
            "print(os.environ['LAST_WORD'], open('cat.txt').read(), hasattr(local, 'host'))\nexecutor.shutdown()",
        ),
        [
            [call("check", hosts=["db", "web"]), call("power", numbers=[3, 4])],
            [call("run", word="cat"), call("share", amount=5)],
            "All up.",
        ],
        varies=True,
    )
    yield AgentNotebook(
        "shift_of_an_operator",
        cells(
            OPENAI
            + "import os, signal, atexit, locale, shutil, tempfile, time, sys, gc, datetime as dt, socket, platform, resource\nfrom pathlib import Path",
            """
root = Path.cwd()
alarms, runbook = [], {}
def on_alarm(number, frame): alarms.append(number)
before = signal.getsignal(signal.SIGALRM)
workdir = None
os.environ.setdefault("STAGE", "dev")
pid_file = Path("agent.pid")
""",
            schemas(
                "openai",
                deploy="service",
                go="folder",
                guard="seconds:integer",
                stage="name",
                backup="",
            )
            + """
def deploy(service):
    runbook[service] = runbook.get(service, "") + "d"
    pid_file.write_text(service); pid_file.chmod(0o600)
    Path("releases", service).mkdir(parents=True, exist_ok=True)
    Path("releases", service, "v1").write_text("v1")
    os.symlink(f"releases/{service}", "current") if not os.path.lexists("current") else None
    return os.readlink("current")

def go(folder):
    os.makedirs(folder, exist_ok=True)
    os.chdir(folder)
    Path("here.txt").write_text("here")
    return os.path.relpath(os.getcwd(), root)

def guard(seconds):
    signal.signal(signal.SIGALRM, on_alarm)
    signal.raise_signal(signal.SIGALRM)
    signal.signal(signal.SIGALRM, before)
    return len(alarms)

def stage(name):
    os.environ["STAGE"], old = name, os.environ["STAGE"]
    os.environ.pop("UNUSED", None); os.environ["PATH"] += os.pathsep + str(root / "bin")
    sys.path.append(str(root / "lib"))
    os.umask(0o077)
    return f"{old} -> {name}"

def backup():
    global workdir
    workdir = root / "backup"
    shutil.copytree(root / "releases", workdir, symlinks=True)
    shutil.move(workdir / "web", workdir / "web-old")
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch, "x").write_text("x")
        shutil.make_archive(str(root / "all"), "tar", workdir) if False else None
    shutil.rmtree(root / "releases" / "web")
    return sorted(p.name for p in workdir.rglob("*"))
"""
            + BY_NAME,
            "QUESTION = 'Take the shift.'",
            OPENAI_LOOP,
            "print(os.path.relpath('.', root), alarms, runbook, os.environ['STAGE'], os.environ['PATH'].endswith('bin'), sys.path[-1].endswith('lib'))",
            "print(sorted(str(p.relative_to(root)) for p in root.glob('[!.n_]*')), pid_file, workdir.relative_to(root))",
            "os.chdir(root); print(pid_file.read_text(), oct(pid_file.stat().st_mode), os.path.exists('current'))",
        ),
        [
            [call("deploy", service="web"), call("deploy", service="db")],
            [call("guard", seconds=1), call("stage", name="prod")],
            [call("backup"), call("go", folder="logs/today")],
            "Shift done.",
        ],
    )
    yield AgentNotebook(
        "widgets_and_live_output",
        cells(
            ANTHROPIC
            + "import ipywidgets as widgets\nfrom IPython.display import display\nfrom rich.live import Live\nfrom rich.table import Table\nfrom tqdm.auto import tqdm\nimport io",
            """
out = widgets.Output()
status = widgets.HTML("idle")
level = widgets.IntSlider(1, 0, 10)
box = widgets.VBox([status, level, out])
changes = []
level.observe(lambda change: changes.append((change["old"], change["new"])), "value")
link = widgets.jslink((level, "value"), (widgets.IntText(), "value"))
button = widgets.Button(description="go")
@button.on_click
def clicked(b): changes.append("click")
display(box)
""",
            schemas(raise_level="to:integer", print_in="text", add_button="label")
            + """
def raise_level(to):
    level.value = to
    status.value = f"<b>{to}</b>"
    level.style.handle_color = "red"
    button.click()
    return level.value

def print_in(text):
    with out:
        print("in the widget", text)
        display({"text/plain": text}, raw=True)
    out.append_stdout("appended\\n")
    return len(out.outputs)

@out.capture(clear_output=False)
def captured(label): print("captured", label)

def add_button(label):
    made = widgets.ToggleButton(value=True, description=label)
    box.children = (*box.children, made)
    captured(label)
    for _ in tqdm(range(2), desc=label, file=io.StringIO()): pass
    return len(box.children)
"""
            + BY_NAME,
            "QUESTION = 'Raise it.'",
            ANTHROPIC_LOOP,
            "print(level.value, status.value, changes, len(box.children), level.style.handle_color)",
            "print(box.children[-1].description if len(box.children) > 3 else 'none', out.outputs)",
            "level.value = 9; print(changes)",
        ),
        [
            [call("raise_level", to=4), call("print_in", text="hello")],
            [call("add_button", label="more"), call("raise_level", to=7)],
            "Raised.",
        ],
        varies=True,
    )
