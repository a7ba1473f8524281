"""Tools that change what the program keeps in memory: lists, carts, ledgers, caches, counters, trees, histories."""

from __future__ import annotations

from collections.abc import Iterator

from tests.working_agents.written import (
    ANTHROPIC,
    ANTHROPIC_LOOP,
    GEMINI,
    GEMINI_LOOP,
    OPENAI,
    OPENAI_LOOP,
    RESPONSES_LOOP,
    AgentNotebook,
    cells,
    schemas,
    taped,
)
from tests.harness.scripted_model import call


def notebooks() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "todo_list",
        cells(
            ANTHROPIC,
            f"""
QUESTION = "Put milk, eggs and bread on my list, then tick off the milk."
{schemas(add_todo="item", finish_todo="item")}
todo = []
done = []
alias = todo
by_name = {{"today": todo, "finished": done}}

def add_todo(item):
    todo.append(item)
    return f"{{len(todo)}} on the list"

def finish_todo(item):
    todo.remove(item)
    done.append(item)
    return "done"

def run_tool(name, arguments):
    if name == "add_todo":
        return add_todo(arguments["item"])
    if name == "finish_todo":
        return finish_todo(arguments["item"])
    raise ValueError(name)
""",
            ANTHROPIC_LOOP,
            "print(todo, done, alias is todo, by_name)",
            "alias.append('tea')\ntodo",
        ),
        [
            [call("add_todo", item="milk"), call("add_todo", item="eggs")],
            [call("add_todo", item="bread")],
            [call("finish_todo", item="milk")],
            "Eggs and bread are left.",
        ],
    )
    yield AgentNotebook(
        "shopping_cart",
        cells(
            OPENAI,
            f"""
QUESTION = "Two coffees and a cake please, and take one coffee back."
{schemas("openai", add="item price:number", remove="item", total="")}

class Cart:
    def __init__(self, owner):
        self.owner = owner
        self.items = []
        self.prices = {{}}

    def add(self, item, price):
        self.items.append(item)
        self.prices[item] = price
        return {{"items": len(self.items)}}

    def remove(self, item):
        self.items.remove(item)
        return {{"items": len(self.items)}}

    def total(self):
        self.last_total = sum(self.prices[item] for item in self.items)
        return self.last_total

cart = Cart("Ada")
carts = {{"Ada": cart}}

def run_tool(name, arguments):
    return json.dumps(getattr(cart, name)(**arguments))
""",
            OPENAI_LOOP,
            "print(cart.items, cart.last_total)\ncarts['Ada'] is cart",
            "vars(cart)",
        ),
        [
            [
                call("add", item="coffee", price=3.5),
                call("add", item="coffee", price=3.5),
                call("add", item="cake", price=4),
            ],
            [call("remove", item="coffee")],
            [call("total")],
            "That makes 7.50.",
        ],
    )
    yield AgentNotebook(
        "ledger_of_dataclasses",
        cells(
            OPENAI,
            f"""
from dataclasses import dataclass, field
from decimal import Decimal
from datetime import date
QUESTION = "Book 12.50 of lunch and 40 of books; lunch was 13.00 in the end."
{schemas("responses", book="account amount note", correct="number:integer amount")}

@dataclass
class Entry:
    number: int
    account: str
    amount: Decimal
    when: date = date(2026, 3, 1)
    notes: list = field(default_factory=list)

@dataclass
class Ledger:
    entries: list[Entry] = field(default_factory=list)
    balances: dict[str, Decimal] = field(default_factory=dict)
    latest: Entry | None = None

ledger = Ledger()

def book(account, amount, note):
    entry = Entry(len(ledger.entries) + 1, account, Decimal(amount), notes=[note])
    ledger.entries.append(entry)
    ledger.balances[account] = ledger.balances.get(account, Decimal(0)) + entry.amount
    ledger.latest = entry
    return entry.number

def correct(number, amount):
    entry = ledger.entries[number - 1]
    ledger.balances[entry.account] += Decimal(amount) - entry.amount
    entry.amount = Decimal(amount)
    entry.notes.append("corrected")
    return str(entry)

def run_tool(name, arguments):
    return {{"book": book, "correct": correct}}[name](**arguments)
""",
            RESPONSES_LOOP,
            "for entry in ledger.entries:\n    print(entry)\nprint(ledger.balances)",
            "ledger.latest is ledger.entries[1]",
        ),
        [
            [call("book", account="food", amount="12.50", note="lunch")],
            [call("book", account="study", amount="40", note="books")],
            [call("correct", number=1, amount="13.00")],
            "Booked.",
        ],
    )
    yield AgentNotebook(
        "cache_of_lookups",
        cells(
            ANTHROPIC,
            f"""
import functools
QUESTION = "What are the capitals of Norway and Chad? And Norway again?"
{schemas(capital="country")}
cache = {{}}
hits = 0

@functools.lru_cache(maxsize=8)
def normalise(country):
    return country.strip().title()

def capital(country):
    global hits
    country = normalise(country)
    if country in cache:
        hits += 1
    else:
        cache[country] = {{"Norway": "Oslo", "Chad": "N'Djamena"}}.get(country)
    return cache[country]

def run_tool(name, arguments):
    return globals()[name](**arguments)
""",
            ANTHROPIC_LOOP,
            "print(cache, hits, normalise.cache_info())",
        ),
        [
            [call("capital", country="norway"), call("capital", country="chad ")],
            [call("capital", country="norway")],
            "Oslo and N'Djamena.",
        ],
    )
    yield AgentNotebook(
        "counters",
        cells(
            GEMINI,
            f"""
QUESTION = "Count three sheep and one wolf."
{schemas("gemini", count="animal")}
total = 0

def make_counter():
    seen = 0
    per_animal = {{}}

    def count(animal):
        nonlocal seen
        global total
        seen += 1
        total += 1
        per_animal[animal] = per_animal.get(animal, 0) + 1
        count.calls += 1
        return seen

    def so_far():
        return seen, per_animal

    count.calls = 0
    return count, so_far

count, so_far = make_counter()

def run_tool(name, arguments):
    return globals()[name](**arguments)
""",
            GEMINI_LOOP,
            "print(total, so_far(), count.calls)",
        ),
        [
            [call("count", animal="sheep"), call("count", animal="sheep")],
            [call("count", animal="sheep")],
            [call("count", animal="wolf")],
            "Three sheep, one wolf.",
        ],
    )
    yield AgentNotebook(
        "class_attributes",
        cells(
            ANTHROPIC,
            f"""
QUESTION = "Open tickets for the printer and the lamp."
{schemas(open_ticket="what")}

class Ticket:
    opened = 0
    index = {{}}

    def __init__(self, what):
        type(self).opened += 1
        self.number, self.what = Ticket.opened, what
        Ticket.index[self.number] = self

    def __repr__(self):
        return f"<Ticket {{self.number}} {{self.what}}>"

    @classmethod
    def open_ticket(cls, what):
        cls.latest = cls(what)
        return cls.latest.number

TOOLBOX = {{"open_ticket": Ticket.open_ticket}}

def run_tool(name, arguments):
    return TOOLBOX[name](**arguments)
""",
            ANTHROPIC_LOOP,
            "print(Ticket.opened, Ticket.index, Ticket.latest is Ticket.index[2])",
        ),
        [
            [call("open_ticket", what="printer")],
            [call("open_ticket", what="lamp")],
            "Two tickets are open.",
        ],
    )
    yield AgentNotebook(
        "settings_module",
        cells(
            OPENAI,
            f"""
import types
import settings
QUESTION = "Dark theme, font 14, and the file as a favourite."
{schemas("openai", set_option="name value", favourite="path")}
runtime = types.ModuleType("runtime")
runtime.changed = []

def set_option(name, value):
    old = getattr(settings, name, None)
    setattr(settings, name, value)
    settings.HISTORY.append((name, old, value))
    runtime.changed.append(name)
    return "set"

def favourite(path):
    settings.FAVOURITES.add(path)
    settings.remember(path)
    return "ok"

def run_tool(name, arguments):
    return globals()[name](**arguments)
""",
            OPENAI_LOOP,
            "print(settings.theme, settings.font, settings.HISTORY, settings.FAVOURITES, settings.recent, runtime.changed)",
        ),
        [
            [call("set_option", name="theme", value="dark")],
            [call("set_option", name="font", value="14"), call("favourite", path="a.txt")],
            "All set.",
        ],
        files={
            "settings.py": "theme = 'light'\nHISTORY = []\nFAVOURITES = set()\nrecent = None\n\n"
            "def remember(path):\n    global recent\n    recent = path\n"
        },
    )
    yield AgentNotebook(
        "collections_of_all_kinds",
        cells(
            ANTHROPIC,
            f"""
from collections import Counter, OrderedDict, defaultdict, deque
QUESTION = "Visit a, b, c, a."
{schemas(visit="page")}
visited = set()
recent = deque(maxlen=3)
links = defaultdict(list)
counts = Counter()
order = OrderedDict()
grid = [[0] * 3 for _ in range(2)]
log = bytearray()

def visit(page):
    if recent:
        links[recent[-1]].append(page)
    visited.add(page)
    recent.append(page)
    counts[page] += 1
    order[page] = len(order)
    order.move_to_end(page, last=False)
    grid[len(page) % 2][ord(page) - 97] += 1
    log.extend(page.encode())
    return sorted(visited)

def run_tool(name, arguments):
    return {{"visit": visit}}[name](**arguments)
""",
            ANTHROPIC_LOOP,
            "print(sorted(visited), recent, dict(links), counts.most_common(), list(order), grid, log)",
        ),
        [
            [call("visit", page="a"), call("visit", page="b")],
            [call("visit", page="c"), call("visit", page="a")],
            "Visited.",
        ],
    )
    yield AgentNotebook(
        "returns_the_list_it_changed",
        cells(
            ANTHROPIC,
            f"""
QUESTION = "Pack a tent and a stove."
{schemas(pack="thing")}
bag = []
states = []

def pack(thing):
    bag.append({{"thing": thing, "packed": True}})
    return bag

def run_tool(name, arguments):
    result = pack(**arguments)
    states.append(result)
    return [each["thing"] for each in result]
""",
            ANTHROPIC_LOOP,
            "print(states[0] is bag, states[1] is states[0], len(states[0]))",
            "states[-1].append({'thing': 'map', 'packed': False})\nbag",
        ),
        [[call("pack", thing="tent")], [call("pack", thing="stove")], "Packed."],
    )
    yield AgentNotebook(
        "tree_of_nodes",
        cells(
            OPENAI,
            f"""
QUESTION = "Plan the trip: book the train, then pack; under pack: shoes."
{schemas("responses", add_step="parent title", close_step="title")}

class Step:
    __slots__ = ("title", "parent", "children", "closed")

    def __init__(self, title, parent=None):
        self.title, self.parent, self.children, self.closed = title, parent, [], False
        if parent is not None:
            parent.children.append(self)

root = Step("trip")
index = {{"trip": root}}
current = root

def add_step(parent, title):
    global current
    current = index[title] = Step(title, index[parent])
    return title

def close_step(title):
    step = index[title]
    step.closed = True
    step.parent.children.sort(key=lambda child: child.closed)
    return "closed"

def run_tool(name, arguments):
    return globals()[name](**arguments)

def outline(step, depth=0):
    print("  " * depth + ("[x] " if step.closed else "[ ] ") + step.title)
    for child in step.children:
        outline(child, depth + 1)
""",
            RESPONSES_LOOP,
            "outline(root)",
            "print(current is index['shoes'], current.parent.parent is root)",
        ),
        [
            [
                call("add_step", parent="trip", title="train"),
                call("add_step", parent="trip", title="pack"),
            ],
            [call("add_step", parent="pack", title="shoes")],
            [call("close_step", title="train")],
            "Planned.",
        ],
    )
    yield AgentNotebook(
        "chat_memory",
        cells(
            ANTHROPIC,
            f"""
{schemas(remember="fact", recall="word")}

class Memory:
    def __init__(self, size):
        self.size, self.turns, self.facts = size, [], {{}}

    def remember(self, fact):
        self.facts[f"fact-{{len(self.facts) + 1}}"] = fact
        return f"fact-{{len(self.facts)}}"

    def recall(self, word):
        return [fact for fact in self.facts.values() if word in fact]

    def append(self, role, content):
        self.turns.append({{"role": role, "content": content}})

class Chat:
    def __init__(self, client, memory):
        self.client, self.memory = client, memory

    def ask(self, question):
        self.memory.append("user", question)
        while True:
            reply = self.client.messages.create(
                model="claude-sonnet-4-6", max_tokens=200, messages=self.memory.turns, tools=TOOLS)
            self.memory.append("assistant", [block.to_dict() for block in reply.content])
            if reply.stop_reason != "tool_use":
                return reply.content[0].text
            self.memory.append("user", [
                {{"type": "tool_result", "tool_use_id": block.id, "content": str(getattr(self.memory, block.name)(**block.input))}}
                for block in reply.content])

memory = Memory(4)
chat = Chat(client, memory)
""",
            taped("print(chat.ask('My cat is called Tom.'))"),
            "print(memory.facts, len(memory.turns))",
            taped("print(chat.ask('What is my cat called?'))"),
            "print(len(chat.memory.turns), chat.memory is memory)\nmemory.turns[-1]",
        ),
        [
            [call("remember", fact="the cat is called Tom")],
            "Noted.",
            [call("recall", word="cat")],
            "Tom.",
        ],
    )
    yield AgentNotebook(
        "vector_store",
        cells(
            OPENAI,
            f"""
import numpy as np
QUESTION = "Store the three notes, then find what is like 'sea'."
{schemas("openai", store="text", search="text")}

def embed(text):
    vector = np.zeros(26)
    for letter in text.lower():
        if letter.isalpha():
            vector[ord(letter) - 97] += 1
    return vector / np.linalg.norm(vector)

class Store:
    def __init__(self):
        self.matrix = np.empty((0, 26))
        self.texts = []
        self.searches = []

    def store(self, text):
        self.matrix = np.vstack([self.matrix, embed(text)])
        self.texts.append(text)
        return len(self.texts)

    def search(self, text):
        best = int(np.argmax(self.matrix @ embed(text)))
        self.searches.append((text, best))
        return self.texts[best]

store = Store()

def run_tool(name, arguments):
    return getattr(store, name)(**arguments)
""",
            OPENAI_LOOP,
            "print(store.matrix.shape, store.texts, store.searches)\nstore.search('hill')",
        ),
        [
            [call("store", text="the sea is calm"), call("store", text="hills are green")],
            [call("search", text="sea")],
            "The sea is calm.",
        ],
    )
    yield AgentNotebook(
        "order_states",
        cells(
            OPENAI,
            f"""
import enum
from typing import NamedTuple
QUESTION = "Pay and ship order 7."
{schemas("openai", advance="order:integer event")}

class State(enum.Enum):
    NEW = "new"
    PAID = "paid"
    SHIPPED = "shipped"

class Event(NamedTuple):
    order: int
    name: str
    state: State

class Order:
    __slots__ = ("number", "state", "events", "locked_by")
    def __init__(self, number):
        self.number, self.state, self.events = number, State.NEW, ()

orders = {{7: Order(7), 8: Order(8)}}

def advance(order, event):
    found = orders[order]
    found.state = {{"pay": State.PAID, "ship": State.SHIPPED}}[event]
    found.events += (Event(order, event, found.state),)
    found.locked_by = event
    return found.state.value

def run_tool(name, arguments):
    return advance(**arguments)
""",
            OPENAI_LOOP,
            "print(orders[7].state, orders[7].events, orders[7].locked_by, orders[8].state)",
        ),
        [
            [call("advance", order=7, event="pay")],
            [call("advance", order=7, event="ship")],
            "Order 7 is on its way.",
        ],
    )
    yield AgentNotebook(
        "context_variables",
        cells(
            ANTHROPIC,
            f"""
import contextvars
QUESTION = "Log in as Ada and note the visit."
{schemas(login="user", note="text")}
user = contextvars.ContextVar("user", default="nobody")
notes = contextvars.ContextVar("notes", default=())

def login(user_name=None, **given):
    user.set(user_name or given["user"])
    return "hello"

def note(text):
    notes.set((*notes.get(), (user.get(), text)))
    return len(notes.get())

def run_tool(name, arguments):
    return {{"login": login, "note": note}}[name](**arguments)
""",
            taped(
                ANTHROPIC_LOOP.partition("\n")[2] + "\nprint(user.get(), notes.get())",
            ),
            "print(user.get(), notes.get())",
        ),
        [[call("login", user="ada")], [call("note", text="first visit")], "Welcome, Ada."],
    )
    yield AgentNotebook(
        "undo_stack",
        cells(
            ANTHROPIC,
            f"""
import copy
QUESTION = "Write one, write two, undo, write three, redo nothing."
{schemas(write="text", undo="")}
document = {{"lines": [], "cursor": 0}}
undo_stack = []
redo_stack = []

def write(text):
    undo_stack.append(copy.deepcopy(document))
    redo_stack.clear()
    document["lines"].append(text)
    document["cursor"] = len(document["lines"])
    return document["cursor"]

def undo():
    redo_stack.append(copy.deepcopy(document))
    before = undo_stack.pop()
    document.clear()
    document.update(before)
    return len(undo_stack)

def run_tool(name, arguments):
    return globals()[name](**arguments)
""",
            ANTHROPIC_LOOP,
            "print(document, len(undo_stack), len(redo_stack))",
            "undo()\nprint(document)",
        ),
        [
            [call("write", text="one"), call("write", text="two")],
            [call("undo")],
            [call("write", text="three")],
            "One and three.",
        ],
    )
    yield AgentNotebook(
        "stock_taken_away",
        cells(
            OPENAI,
            f"""
QUESTION = "Sell all pears, two apples, and sort the shelf."
{schemas("responses", sell="fruit amount:integer", tidy="")}
stock = {{"apple": 5, "pear": 2, "plum": 9}}
shelf = ["plum", "pear", "apple", "apple"]
sold = {{}}
nested = {{"by_row": [["apple", "pear"], ["plum"]], "owner": {{"name": "Bo", "tags": {{"new", "vip"}}}}}}

def sell(fruit, amount):
    stock[fruit] -= amount
    if not stock[fruit]:
        del stock[fruit]
        while fruit in shelf:
            shelf.remove(fruit)
        for row in nested["by_row"]:
            if fruit in row:
                row.remove(fruit)
    sold.setdefault(fruit, []).append(amount)
    nested["owner"]["tags"].discard("new")
    return stock.get(fruit, 0)

def tidy():
    shelf.sort()
    del shelf[1:]
    shelf[:0] = ["label"]
    return shelf

def run_tool(name, arguments):
    return {{"sell": sell, "tidy": tidy}}[name](**arguments)
""",
            RESPONSES_LOOP,
            "print(stock, shelf, sold, nested)",
        ),
        [
            [call("sell", fruit="pear", amount=2), call("sell", fruit="apple", amount=2)],
            [call("tidy")],
            "Sold and sorted.",
        ],
    )
    yield AgentNotebook(
        "numbers_handed_out",
        cells(
            ANTHROPIC,
            f"""
import itertools
QUESTION = "Give Ada and Bob a number."
{schemas(take_number="who")}
numbers = itertools.count(1)
colours = itertools.cycle(["red", "green"])

def lines():
    while True:
        who = yield
        register.append(who)

register = []
line = lines()
next(line)
taken = {{}}

def take_number(who):
    taken[who] = (next(numbers), next(colours))
    line.send(who)
    return taken[who]

def run_tool(name, arguments):
    return take_number(**arguments)
""",
            ANTHROPIC_LOOP,
            "print(taken, register)",
            "print(next(numbers), next(colours))",
        ),
        [[call("take_number", who="Ada")], [call("take_number", who="Bob")], "Done."],
    )
    yield AgentNotebook(
        "accounts_with_locks",
        cells(
            OPENAI,
            f"""
import threading
QUESTION = "Move 30 from Ada to Bob."
{schemas("openai", transfer="source target amount:integer")}

class Account:
    def __init__(self, owner, balance):
        self.owner, self.balance = owner, balance
        self.lock = threading.Lock()
        self.history = []

accounts = {{name: Account(name, 100) for name in ("Ada", "Bob")}}
audit = []

def transfer(source, target, amount):
    with accounts[source].lock, accounts[target].lock:
        accounts[source].balance -= amount
        accounts[target].balance += amount
        for account in (accounts[source], accounts[target]):
            account.history.append(account.balance)
        audit.append((accounts[source], accounts[target], amount))
    return accounts[source].balance

def run_tool(name, arguments):
    return transfer(**arguments)
""",
            OPENAI_LOOP,
            "print([(a.owner, a.balance, a.history) for a in accounts.values()], audit[0][0] is accounts['Ada'])",
        ),
        [[call("transfer", source="Ada", target="Bob", amount=30)], "Moved."],
    )
