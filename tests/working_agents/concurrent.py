"""Tools that are async, that stream, that run in threads, that ask models themselves, and context managers."""

from __future__ import annotations

from collections.abc import Iterator

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
from tests.harness.scripted_model import call

ASYNC_LOOP = """
async def ask(question):
    messages = [{"role": "user", "content": question}]
    while True:
        reply = await client.messages.create(model="claude-sonnet-4-6", max_tokens=500, messages=messages, tools=TOOLS)
        messages.append({"role": "assistant", "content": [block.to_dict() for block in reply.content]})
        if reply.stop_reason != "tool_use":
            return reply.content[0].text
        asked = [block for block in reply.content if block.type == "tool_use"]
        done = await asyncio.gather(*(run_tool(block.name, block.input) for block in asked))
        messages.append({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": block.id, "content": str(content)}
            for block, content in zip(asked, done)]})
"""


def notebooks() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "async_tools_gathered",
        cells(
            f"""
import asyncio
import anthropic
client = anthropic.AsyncAnthropic()
{schemas(fetch="page", store="text")}
fetched, stored, running = {{}}, [], 0
most = 0

async def fetch(page):
    global running, most
    running += 1
    most = max(most, running)
    await asyncio.sleep(0.01)
    fetched[page] = f"text of {{page}}"
    running -= 1
    print("fetched", page)
    return fetched[page]

async def store(text):
    stored.append(text)
    return len(stored)

async def run_tool(name, arguments):
    return await globals()[name](**arguments)
{ASYNC_LOOP}
""",
            taped("print(await ask('Fetch a, b and c and store them.'))"),
            "print(sorted(fetched), stored, running, most)",
        ),
        [
            [call("fetch", page="a"), call("fetch", page="b"), call("fetch", page="c")],
            [call("store", text="abc")],
            "Stored.",
        ],
    )
    yield AgentNotebook(
        "tools_in_a_thread_pool",
        cells(
            ANTHROPIC,
            f"""
import threading
from concurrent.futures import ThreadPoolExecutor
{schemas(resize="picture width:integer")}
sizes, order = {{}}, []
lock = threading.Lock()
QUESTION = "Resize all four."

def resize(picture, width):
    with lock:
        sizes[picture] = (width, width * 3 // 4)
    return sizes[picture]
""",
            taped("""
messages = [{"role": "user", "content": QUESTION}]
with ThreadPoolExecutor(4) as pool:
    while True:
        reply = client.messages.create(model="claude-sonnet-4-6", max_tokens=500, messages=messages, tools=TOOLS)
        messages.append({"role": "assistant", "content": [block.to_dict() for block in reply.content]})
        if reply.stop_reason != "tool_use":
            break
        blocks = [block for block in reply.content if block.type == "tool_use"]
        futures = [pool.submit(resize, **block.input) for block in blocks]
        messages.append({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": block.id, "content": str(future.result())}
            for block, future in zip(blocks, futures)]})
print(reply.content[0].text)
"""),
            "print(sorted(sizes.items()))",
        ),
        [[call("resize", picture=f"p{n}", width=100 * n) for n in range(1, 5)], "Resized."],
        varies=True,
    )
    yield AgentNotebook(
        "async_generator_tool",
        cells(
            f"""
import asyncio
import anthropic
client = anthropic.AsyncAnthropic()
{schemas(watch="ticker")}
prices, seen = {{"ACME": [10, 11, 9]}}, []

async def watch(ticker):
    for price in prices[ticker]:
        await asyncio.sleep(0)
        seen.append((ticker, price))
        print(ticker, price)
        yield price
    seen.append("closed")

async def run_tool(name, arguments):
    return [price async for price in watch(**arguments)]
{ASYNC_LOOP}
""",
            taped("answer = await ask('How does ACME do?')\nprint(answer)"),
            "print(seen)",
        ),
        [[call("watch", ticker="ACME")], "Down to 9."],
    )
    yield AgentNotebook(
        "generator_tool",
        cells(
            OPENAI,
            f"""
QUESTION = "Search for cats, three results."
{schemas("openai", search="query")}
pages_read = []
cursor = {{"page": 0}}

def search(query):
    for page in range(1, 6):
        cursor["page"] = page
        pages_read.append(f"{{query}}-{{page}}")
        print("reading page", page)
        yield {{"page": page, "title": f"{{query}} {{page}}"}}

def run_tool(name, arguments):
    results = []
    for result in search(**arguments):
        results.append(result)
        if len(results) == 3:
            break
    return json.dumps(results)
""",
            OPENAI_LOOP,
            "print(pages_read, cursor)",
        ),
        [[call("search", query="cats")], "Three cats."],
    )
    yield AgentNotebook(
        "worker_threads_and_a_queue",
        cells(
            OPENAI,
            f"""
import queue
import threading
QUESTION = "Print the two letters."
{schemas("openai", print_letter="text")}
jobs = queue.Queue()
printed = []
finished = threading.Event()

def print_letter(text):
    jobs.put(text)
    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
    return len(printed)

def work():
    while not jobs.empty():
        printed.append(jobs.get().upper())
    finished.set()

def run_tool(name, arguments):
    return print_letter(**arguments)
""",
            OPENAI_LOOP,
            "print(printed, jobs.qsize(), finished.is_set())",
        ),
        [
            [call("print_letter", text="dear ada")],
            [call("print_letter", text="dear bob")],
            "Printed.",
        ],
    )
    yield AgentNotebook(
        "transaction_as_context_manager",
        cells(
            ANTHROPIC,
            f"""
from contextlib import contextmanager
QUESTION = "Add 5, then 7, then something that fails."
{schemas(add="amount:integer")}
balance, journal = {{"sum": 0}}, []

@contextmanager
def transaction(name):
    before = dict(balance)
    journal.append(f"begin {{name}}")
    try:
        yield balance
    except ValueError:
        balance.clear()
        balance.update(before)
        journal.append("rolled back")
    else:
        journal.append("committed")

def add(amount):
    with transaction("add") as held:
        held["sum"] += amount
        if amount < 0:
            raise ValueError(amount)
    return balance["sum"]

def run_tool(name, arguments):
    return add(**arguments)
""",
            ANTHROPIC_LOOP,
            "print(balance, journal)",
        ),
        [[call("add", amount=5), call("add", amount=7)], [call("add", amount=-3)], "Twelve."],
    )
    yield AgentNotebook(
        "tool_that_asks_a_model",
        cells(
            ANTHROPIC,
            f"""
QUESTION = "Research whales and write two lines."
{schemas(research="topic")}
findings, asked = {{}}, 0

def research(topic):
    global asked
    asked += 1
    print("asking about", topic)
    reply = client.messages.create(model="claude-haiku-4-5", max_tokens=50,
                                   messages=[{{"role": "user", "content": f"Facts on {{topic}}"}}])
    findings[topic] = reply.content[0].text
    print("found", len(findings[topic]))
    return findings[topic]

def run_tool(name, arguments):
    return research(**arguments)
""",
            ANTHROPIC_LOOP,
            "print(findings, asked)",
        ),
        {
            "Facts on": ["Whales are mammals."],
            "Research whales": [[call("research", topic="whales")], "Whales are no fish."],
        },
    )
    yield AgentNotebook(
        "two_agents_one_board",
        cells(
            f"""
import asyncio
import anthropic
client = anthropic.AsyncAnthropic()
{schemas(post="who text")}
board, votes = {{}}, {{}}

async def post(who, text):
    board.setdefault(who, []).append(text)
    votes[who] = votes.get(who, 0) + 1
    return votes[who]

async def run_tool(name, arguments):
    return await post(**arguments)
{ASYNC_LOOP}
""",
            taped(
                "answers = await asyncio.gather(ask('You are the optimist.'), ask('You are the pessimist.'))\nprint(answers)"
            ),
            "print(sorted(board.items()), sorted(votes.items()))",
        ),
        {
            "optimist": [
                [call("post", who="optimist", text="sun")],
                [call("post", who="optimist", text="more sun")],
                "Great.",
            ],
            "pessimist": [[call("post", who="pessimist", text="rain")], "Awful."],
        },
        varies=True,
    )
    yield AgentNotebook(
        "streamed_chat_with_tools",
        cells(
            OPENAI,
            f"""
QUESTION = "Switch the lamp on, then say so."
{schemas("openai", switch="lamp state")}
lamps, words = {{"desk": "off"}}, []

def switch(lamp, state):
    lamps[lamp] = state
    print(f"[{{lamp}} {{state}}]")
    return state
""",
            taped("""
messages = [{"role": "user", "content": QUESTION}]
while True:
    calls = {}
    for chunk in client.chat.completions.create(model="gpt-4o", messages=messages, tools=TOOLS, stream=True):
        delta = chunk.choices[0].delta
        if delta.content:
            words.append(delta.content)
            print(delta.content, end="")
        for each in delta.tool_calls or []:
            found = calls.setdefault(each.index, {"id": each.id, "name": each.function.name, "arguments": ""})
            found["arguments"] += each.function.arguments
    if not calls:
        break
    messages.append({"role": "assistant", "tool_calls": [
        {"id": c["id"], "type": "function", "function": {"name": c["name"], "arguments": c["arguments"]}} for c in calls.values()]})
    for c in calls.values():
        messages.append({"role": "tool", "tool_call_id": c["id"], "content": switch(**json.loads(c["arguments"]))})
"""),
            "print(lamps, words)",
        ),
        [[call("switch", lamp="desk", state="on")], "The desk lamp is on."],
    )
