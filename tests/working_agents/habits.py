"""Habits of people's own: containers, trees, buffers and objects of the standard library that tools work on."""

from __future__ import annotations

from collections.abc import Iterator

from tests.harness.scripted_model import call
from tests.working_agents.language import BY_NAME
from tests.working_agents.written import (
    ANTHROPIC,
    ANTHROPIC_LOOP,
    OPENAI,
    OPENAI_LOOP,
    RESPONSES_LOOP,
    AgentNotebook,
    cells,
    schemas,
    taped,
)


def notebooks() -> Iterator[AgentNotebook]:
    yield from _containers()
    yield from _buffers()
    yield from _objects()
    yield from _running()
    yield from _data()


def _containers() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "trees_of_xml_and_html",
        cells(
            ANTHROPIC,
            f"""
import xml.etree.ElementTree as ET
from xml.dom import minidom
from html.parser import HTMLParser
QUESTION = "Add a chapter, drop the old one, and read the page."
{schemas(add_chapter="title pages:integer", drop_chapter="title", read_page="html")}
book = ET.fromstring('<book lang="en"><chapter title="Old" pages="3"/></book>')
tree = ET.ElementTree(book)
page = minidom.parseString("<notes/>")

class Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.links = []
    def handle_starttag(self, tag, attrs):
        if tag == "a":
            self.links.append(dict(attrs).get("href"))

links = Links()

def add_chapter(title, pages):
    made = ET.SubElement(book, "chapter", title=title, pages=str(pages))
    made.text = f"of {{len(book)}}"
    note = page.createElement("note")
    note.appendChild(page.createTextNode(title))
    page.documentElement.appendChild(note)
    return "added"

def drop_chapter(title):
    for each in book.findall(f"chapter[@title='{{title}}']"):
        book.remove(each)
    book.set("edited", "yes")
    ET.indent(tree)
    tree.write("book.xml")
    return str(len(book))

def read_page(html):
    links.feed(html)
    return str(links.links)
{BY_NAME}""",
            ANTHROPIC_LOOP,
            "print(ET.tostring(book).decode()); print(page.toxml()); print(links.links, links.rawdata)\nlast = book[-1]\nlast.attrib",
        ),
        [
            [call("add_chapter", title="New", pages=12)],
            [
                call("drop_chapter", title="Old"),
                call("read_page", html="<a href='/x'>x</a><a href='/y'"),
            ],
            "Done.",
        ],
    )
    yield AgentNotebook(
        "subclassed_containers",
        cells(
            OPENAI,
            f"""
from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, defaultdict, deque
QUESTION = "Sort the stock and note the sales."
{schemas("openai", sell="item count:integer", restock="item count:integer")}

class Stock(UserDict):
    changes = 0
    def __setitem__(self, key, value):
        type(self).changes += 1
        super().__setitem__(key.lower(), value)

class Sales(UserList):
    def append(self, item):
        super().append(item)
        self.total = getattr(self, "total", 0) + item[1]

class Lru(OrderedDict):
    limit = 2
    def touch(self, key):
        self[key] = self.get(key, 0) + 1
        self.move_to_end(key, last=False)
        while len(self) > self.limit:
            self.popitem()

class Listed(list):
    def __init__(self, *args):
        super().__init__(*args)
        self.owner = None

def fresh(name="made"):
    made.append(name)
    return Listed()

made = []
stock, sales, recent = Stock(Tea=3), Sales(), Lru()
groups = defaultdict(fresh)
recent_items = deque(maxlen=3)
counts = Counter(tea=5)
settings = ChainMap({{}}, {{"vat": 7}})

def sell(item, count):
    stock[item] = stock[item.lower()] - count
    sales.append((item, count))
    recent.touch(item)
    groups[item].append(count)
    groups[item].owner = "ada"
    recent_items.extendleft([item, count])
    counts.subtract({{item: count}})
    settings["vat"] = 19
    return str(stock.data)

def restock(item, count):
    stock[item] = count
    recent.touch(item)
    recent_items.rotate(1)
    settings.maps.append({{"shop": "main"}})
    counts.update([item] * count)
    return "ok"
{BY_NAME}""",
            OPENAI_LOOP,
            "print(stock, Stock.changes, sales, sales.total, list(recent.items()), dict(groups), groups['tea'].owner, made)",
            "print(recent_items, recent_items.maxlen, counts, settings, settings.maps)",
        ),
        [
            [call("sell", item="tea", count=1)],
            [call("restock", item="rum", count=4), call("restock", item="gin", count=1)],
            "Sorted.",
        ],
    )
    yield AgentNotebook(
        "iterators_shared_by_tools_and_cells",
        cells(
            ANTHROPIC,
            f"""
import itertools
QUESTION = "Hand out three tickets and read on."
{schemas(ticket="who", read_on="lines:integer", pair="")}
numbers = itertools.count(100, 5)
colours = itertools.cycle(["red", "green"])
left, right = itertools.tee(iter("abcdef"))
lines = iter(["one", "two", "three", "four"])
pairs = zip([1, 2, 3], "xyz")
ticker = enumerate(iter("klm"))
squares = map(lambda n: n * n, range(10))
source = open("poem.txt")

def ticket(who):
    return f"{{who}} {{next(numbers)}} {{next(colours)}} {{next(left)}}"

def read_on(lines):
    return "".join(source.readline() for _ in range(int(lines))) + next(globals()["lines"])

def pair():
    return f"{{next(pairs)}} {{next(ticker)}} {{next(squares)}} {{next(squares)}}"
{BY_NAME}""",
            ANTHROPIC_LOOP,
            "print(next(numbers), next(colours), next(left), next(right), next(lines), source.readline().strip(), source.tell())",
            "print(list(pairs), list(ticker), next(squares))",
        ),
        [
            [call("ticket", who="ada"), call("ticket", who="bob")],
            [call("read_on", lines=2), call("pair")],
            "Handed out.",
        ],
        files={"poem.txt": "first\nsecond\nthird\nfourth\n"},
    )


def _buffers() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "texts_and_archives_in_memory",
        cells(
            ANTHROPIC,
            f"""
import array, csv, gzip, io, struct, zipfile
QUESTION = "Write two rows, pack them, and set the bits."
{schemas(write_row="name amount:number", pack="name", set_bits="index:integer value:integer")}
out = io.StringIO()
writer = csv.DictWriter(out, ["name", "amount"])
writer.writeheader()
parcel = io.BytesIO()
levels = array.array("h", [0] * 4)
raw = bytearray(8)
view = memoryview(raw)

def write_row(name, amount):
    writer.writerow({{"name": name, "amount": amount}})
    return str(out.tell())

def pack(name):
    with zipfile.ZipFile(parcel, "a") as packed:
        packed.writestr(zipfile.ZipInfo(name), out.getvalue())
    with gzip.GzipFile("rows.gz", "wb", mtime=0) as zipped:
        zipped.write(out.getvalue().encode())
    return "packed"

def set_bits(index, value):
    levels[index] = value
    struct.pack_into("<h", view, index * 2, value)
    levels.append(value)
    return levels.tobytes().hex()
{BY_NAME}""",
            ANTHROPIC_LOOP,
            "print(out.getvalue(), out.tell(), levels, raw, bytes(view[2:4]))\nprint(zipfile.ZipFile(parcel).namelist(), parcel.tell() > 0)",
            "writer.writerow({'name': 'last', 'amount': 0}); print(out.getvalue().splitlines()[-1])",
        ),
        [
            [call("write_row", name="ada", amount=2.5), call("write_row", name="bob", amount=1)],
            [call("pack", name="rows.csv"), call("set_bits", index=1, value=7)],
            "Packed.",
        ],
    )
    yield AgentNotebook(
        "shelves_and_settings_files",
        cells(
            OPENAI,
            f"""
import configparser, pickle, shelve, tomllib
from pathlib import Path
QUESTION = "Remember two facts and switch the mode."
{schemas("responses", remember="key value", switch="mode", forget="key")}
config = configparser.ConfigParser()
config.read_string("[run]\\nmode = slow\\n[old]\\nx = 1")
shelf = shelve.open("facts", writeback=True)
shelf["notes"] = []

def remember(key, value):
    shelf[key] = value
    shelf["notes"].append((key, value))
    shelf.sync()
    return str(len(shelf))

def switch(mode):
    config["run"]["mode"] = mode
    config.remove_section("old")
    config.add_section("new")
    config.set("new", "when", "later")
    with open("run.ini", "w") as file:
        config.write(file)
    Path("run.toml").write_text(f'mode = "{{mode}}"\\n')
    return mode

def forget(key):
    del shelf[key]
    Path("seen.pkl").write_bytes(pickle.dumps(sorted(shelf)))
    return "gone"
{BY_NAME}""",
            RESPONSES_LOOP,
            "print(sorted(shelf), shelf['notes'], {s: dict(config[s]) for s in config.sections()}, tomllib.loads(Path('run.toml').read_text()))",
            "shelf.close(); print(sorted(p.name for p in Path().iterdir() if p.suffix in ('.ini', '.toml', '.pkl')))",
        ),
        [
            [call("remember", key="city", value="Bern"), call("remember", key="sea", value="none")],
            [call("switch", mode="fast"), call("forget", key="sea")],
            "Kept.",
        ],
    )


def _objects() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "mocks_namespaces_and_cached_properties",
        cells(
            ANTHROPIC,
            f"""
import argparse, functools, types
from unittest import mock
QUESTION = "Send the mail and measure the room."
{schemas(send="to text", widen="by:number")}
mailer = mock.MagicMock(name="mailer")
mailer.send.return_value = "queued"
options = argparse.Namespace(dry=True)
state = types.SimpleNamespace(sent=[], last=None)

class Room:
    def __init__(self, wide):
        self.wide, self.measured = wide, 0
    @functools.cached_property
    def area(self):
        self.measured += 1
        return self.wide * 3
    def __repr__(self):
        return f"Room({{self.wide}})"

room = Room(4)
room.area

@functools.singledispatch
def shown(value):
    return f"thing {{value}}"

class Post:
    @functools.singledispatchmethod
    def put(self, value):
        self.kind = "any"
    @put.register
    def _(self, value: str):
        self.kind, self.text = "text", value

post = Post()

def send(to, text):
    with mock.patch.object(Room, "wide", 9, create=True):
        result = mailer.send(to, body=text)
    post.put(text)
    state.sent.append(to)
    state.last = room
    options.dry = False
    shown.register(int, lambda value: f"number {{value}}")
    return result

def widen(by):
    room.wide += by
    del room.area
    return str(room.area)
{BY_NAME}""",
            ANTHROPIC_LOOP,
            "print(mailer.send.call_args_list, mailer.send.call_count, options, state, state.last is room, vars(post))",
            "print(room.__dict__, room.area, room.measured, shown(3), shown('x'))",
        ),
        [
            [call("send", to="ada", text="hello")],
            [call("widen", by=2)],
            "Sent.",
        ],
    )
    yield AgentNotebook(
        "clean_up_that_comes_later",
        cells(
            ANTHROPIC,
            f"""
import atexit, contextlib, weakref
QUESTION = "Open two doors and one window."
{schemas(open_door="name", open_window="name")}
closed, rooms = [], weakref.WeakValueDictionary()
stack = contextlib.ExitStack()

class Door:
    def __init__(self, name):
        self.name = name
    def __enter__(self):
        closed.append(f"opened {{self.name}}")
        return self
    def __exit__(self, *_):
        closed.append(f"closed {{self.name}}")

doors, keepers = [], []

def open_door(name):
    door = stack.enter_context(Door(name))
    rooms[name] = door
    doors.append(door)
    keepers.append(weakref.finalize(door, closed.append, f"gone {{name}}"))
    return f"{{len(rooms)}} open"

def open_window(name):
    stack.callback(closed.append, f"window {{name}}")
    stack.push(lambda kind, error, trace: closed.append("pushed") and False)
    return "open"
{BY_NAME}""",
            ANTHROPIC_LOOP,
            "print(closed, sorted(rooms), [k.alive for k in keepers], rooms['front'] is doors[0])",
            "stack.close(); print(closed)",
            "doors.clear(); print(sorted(rooms), closed[-2:])",
        ),
        [
            [call("open_door", name="front"), call("open_door", name="back")],
            [call("open_window", name="east")],
            "Open.",
        ],
    )
    yield AgentNotebook(
        "frozen_values_and_slots",
        cells(
            OPENAI,
            f"""
from dataclasses import dataclass, field, replace, InitVar, KW_ONLY
from enum import Enum, Flag, auto
from typing import NamedTuple
QUESTION = "Move the pieces and mark the board."
{schemas("openai", move="piece x:integer y:integer", mark="word")}

class Mark(Flag):
    SEEN = auto(); TOLD = auto()

class Side(Enum):
    WHITE = "w"; BLACK = "b"
    def __init__(self, code):
        self.moves = 0

class Point(NamedTuple):
    x: int
    y: int = 0

@dataclass(frozen=True, slots=True)
class Piece:
    name: str
    at: Point
    _: KW_ONLY
    past: tuple = ()
    seen: list = field(default_factory=list, compare=False)

@dataclass(slots=True, weakref_slot=True)
class Board:
    seed: InitVar[int] = 1
    marks: Mark = Mark(0)
    pieces: dict = field(default_factory=dict)
    def __post_init__(self, seed):
        self.pieces["king"] = Piece("king", Point(seed))

board = Board(seed=5)
king = board.pieces["king"]

def move(piece, x, y):
    old = board.pieces[piece]
    old.seen.append((x, y))
    object.__setattr__(old, "past", (*old.past, "left"))
    board.pieces[piece] = replace(old, at=old.at._replace(x=x, y=y))
    Side.WHITE.moves += 1
    return str(board.pieces[piece].at)

def mark(word):
    board.marks |= Mark[word]
    board.pieces["queen"] = Piece("queen", Point(0), past=("born",))
    return str(board.marks)
{BY_NAME}""",
            OPENAI_LOOP,
            "print(board, king, king.past, king.seen is board.pieces['king'].seen, Side.WHITE.moves, board.marks)",
        ),
        [
            [call("move", piece="king", x=2, y=3), call("mark", word="SEEN")],
            [call("mark", word="TOLD"), call("move", piece="king", x=2, y=4)],
            "Moved.",
        ],
    )


def _running() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "workers_on_a_queue_of_tasks",
        cells(
            "import asyncio\nimport anyio\nimport anthropic\nclient = anthropic.AsyncAnthropic()",
            f"""
QUESTION = "Fetch three pages and count them."
{schemas(enqueue="url", drain="")}
todo, results, events = asyncio.Queue(), {{}}, []
gate = asyncio.Event()

async def enqueue(url):
    await todo.put(url)
    gate.set()
    events.append(("queued", todo.qsize()))
    return str(todo.qsize())

async def worker(number):
    while not todo.empty():
        url = todo.get_nowait()
        await asyncio.sleep(0)
        results[url] = number
        todo.task_done()

async def drain():
    async with anyio.create_task_group() as group:
        for number in range(2):
            group.start_soon(worker, number)
    async with asyncio.TaskGroup() as group:
        done = [group.create_task(asyncio.sleep(0, n)) for n in range(3)]
    events.append(("drained", [d.result() for d in done]))
    return str(len(results))
""",
            taped("""
messages = [{"role": "user", "content": QUESTION}]
while True:
    reply = await client.messages.create(model="claude-sonnet-4-6", max_tokens=500, messages=messages, tools=TOOLS)
    messages.append({"role": "assistant", "content": [block.to_dict() for block in reply.content]})
    asked = [block for block in reply.content if block.type == "tool_use"]
    if not asked:
        break
    found = [await globals()[block.name](**block.input) for block in asked]
    messages.append({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": b.id, "content": c} for b, c in zip(asked, found)]})
print(reply.content[0].text)
"""),
            "print(sorted(results), events, todo.qsize(), gate.is_set(), todo._unfinished_tasks)",
            "await asyncio.wait_for(todo.join(), 5); print('joined')",
        ),
        [
            [call("enqueue", url="a"), call("enqueue", url="b"), call("enqueue", url="c")],
            [call("drain"), call("enqueue", url="d")],
            [call("drain")],
            "Counted.",
        ],
    )
    yield AgentNotebook(
        "displays_changed_by_threads",
        cells(
            ANTHROPIC,
            f"""
import threading, time
import ipywidgets as widgets
from IPython.display import HTML, DisplayHandle, Pretty, clear_output, display, update_display
QUESTION = "Show the board and fill it."
{schemas(show="title", fill="rows:integer")}
out = widgets.Output()
label = widgets.Label(value="empty")
handle = DisplayHandle("board")
log = []

def show(title):
    handle.display(HTML(f"<b>{{title}}</b>"))
    with out:
        print("in the widget:", title)
    display(Pretty("side"), display_id="side")
    return "shown"

def fill(rows):
    def work(number):
        update_display(Pretty(f"row {{number}}"), display_id="side")
        label.value = f"{{number}} rows"
        log.append(number)
    for number in range(int(rows)):
        thread = threading.Thread(target=work, args=[number])
        thread.start(); thread.join()
    out.append_stdout("filled\\n")
    handle.update(HTML("<i>full</i>"))
    return str(len(log))
{BY_NAME}""",
            ANTHROPIC_LOOP,
            "print(label.value, log, [o.get('text') for o in out.outputs])",
            "handle.update(Pretty('again'))",
        ),
        [[call("show", title="Board")], [call("fill", rows=3)], "Filled."],
    )
    yield AgentNotebook(
        "modules_written_and_loaded_again",
        cells(
            "%%writefile pricing.py\nRATES = {'de': 19}\ncalls = []\ndef vat(country, net):\n    calls.append(country)\n    return net * RATES[country] / 100\nclass Basket:\n    made = 0\n    def __init__(self):\n        type(self).made += 1\n        self.lines = []",
            ANTHROPIC,
            f"""
import importlib, sys
from pathlib import Path
import pricing
from pricing import Basket
QUESTION = "Price a lamp, change the rate, price again."
{schemas(price="country net:number", set_rate="country rate:number", learn="name body")}
basket = Basket()

def price(country, net):
    basket.lines.append((country, net, pricing.vat(country, net)))
    return str(basket.lines[-1])

def set_rate(country, rate):
    pricing.RATES[country] = rate
    pricing.updated = True
    return "set"

def learn(name, body):
    Path(f"{{name}}.py").write_text(body)
    importlib.invalidate_caches()
    sys.path[:] = [*sys.path, str(Path("lib").resolve())] if "lib" not in sys.path[-1] else sys.path
    module = importlib.import_module(name)
    globals()[name] = module
    return str(module.run(2))
{BY_NAME}""",
            ANTHROPIC_LOOP,
            "print(basket.lines, pricing.RATES, pricing.calls, pricing.updated, Basket.made, skill.run(5), sys.path[-1].endswith('lib'))",
            "importlib.reload(pricing); print(pricing.RATES, pricing.calls, isinstance(basket, pricing.Basket))",
        ),
        [
            [call("price", country="de", net=10)],
            [call("set_rate", country="fr", rate=20), call("price", country="fr", net=10)],
            [
                call(
                    "learn",
                    name="skill",
                    body="uses = []\ndef run(n):\n    uses.append(n)\n    return n * 3\n",
                )
            ],
            "Priced.",
        ],
    )


def _data() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "warehouse_of_duckdb",
        cells(
            ANTHROPIC,
            f"""
import duckdb
QUESTION = "Insert two orders, and sum them."
{schemas(insert="who amount:number", total="who")}
db = duckdb.connect()
db.execute("create table orders (who text, amount double)")
store = duckdb.connect("store.duckdb")
store.execute("create table if not exists seen (who text)")

def insert(who, amount):
    db.execute("insert into orders values (?, ?)", [who, amount])
    store.execute("insert into seen values (?)", [who])
    return "ok"

def total(who):
    return str(db.execute("select sum(amount) from orders where who = ?", [who]).fetchone()[0])
{BY_NAME}""",
            ANTHROPIC_LOOP,
            "print(db.execute('select * from orders order by 1').fetchall(), store.execute('select count(*) from seen').fetchone())",
            "store.close()",
        ),
        [
            [call("insert", who="ada", amount=2), call("insert", who="bob", amount=3.5)],
            [call("total", who="bob")],
            "Summed.",
        ],
    )
    yield AgentNotebook(
        "frames_with_indexes_and_categories",
        cells(
            OPENAI,
            f"""
import numpy as np
import pandas as pd
QUESTION = "Book two sales and grade them."
{schemas("openai", book="shop item amount:number", grade="limit:number", store="table")}
sales = pd.DataFrame({{"amount": pd.Series(dtype="float64")}}, index=pd.MultiIndex.from_tuples([], names=["shop", "item"]))
grades = pd.Series(pd.Categorical(["low"], categories=["low"]))
daily = pd.Series([1.0, 2.0], index=pd.period_range("2024-01", periods=2, freq="M"), name="daily")
kinds = np.array([("a", 1)], dtype=[("name", "U5"), ("count", "i4")])
window = np.lib.stride_tricks.sliding_window_view(np.arange(6), 3)
generator = np.random.default_rng(7)
same = sales

def book(shop, item, amount):
    sales.loc[(shop, item), "amount"] = amount
    sales.attrs["last"] = item
    kinds["count"] += 1
    daily.iloc[0] += amount
    generator.integers(10)
    return sales.to_string()

def grade(limit):
    global grades
    grades = grades.cat.add_categories(["high"])
    grades.loc[len(grades)] = "high" if sales["amount"].max() > limit else "low"
    sales["share"] = sales["amount"] / sales["amount"].sum()
    sales.sort_index(inplace=True)
    return str(list(grades))

def store(table):
    import sqlite3
    with sqlite3.connect("shop.db") as db:
        sales.reset_index().to_sql(table, db, index=False)
    sales.to_csv("sales.csv")
    np.savez("kinds.npz", kinds=kinds)
    return "stored"
{BY_NAME}""",
            OPENAI_LOOP,
            "print(sales, sales.attrs, same is sales, grades.cat.categories.tolist(), daily, kinds, generator.integers(10))",
            "import sqlite3; print(sqlite3.connect('shop.db').execute('select count(*) from sales').fetchall(), np.load('kinds.npz')['kinds'])",
        ),
        [
            [
                call("book", shop="x", item="tea", amount=2),
                call("book", shop="a", item="rum", amount=5),
            ],
            [call("grade", limit=3), call("store", table="sales")],
            "Booked.",
        ],
    )
    yield AgentNotebook(
        "results_cached_on_disk",
        cells(
            ANTHROPIC,
            f"""
import cachetools, joblib
from sortedcontainers import SortedDict
from toolz import curry, pipe
QUESTION = "Look up two words twice."
{schemas(look_up="word", rank="word score:number")}
memory = joblib.Memory("cache", verbose=0)
ran = []

@memory.cache
def expensive(word):
    ran.append(word)
    return word[::-1]

recent = cachetools.LRUCache(maxsize=2)
timed = cachetools.TTLCache(maxsize=3, ttl=600, timer=lambda: 0)
best = SortedDict()

@cachetools.cached(recent, key=lambda word: word.lower())
def quick(word):
    return pipe(word, str.upper, lambda text: text + "!")

@curry
def scaled(by, value):
    return by * value

double = scaled(2)

def look_up(word):
    timed[word] = len(word)
    return expensive(word) + quick(word)

def rank(word, score):
    best[double(score)] = word
    return str(best.peekitem(-1))
{BY_NAME}""",
            ANTHROPIC_LOOP,
            "print(ran, dict(recent), dict(timed), best, recent.currsize)",
            "print(expensive('tea'), ran, quick('tea'))",
        ),
        [
            [call("look_up", word="tea"), call("look_up", word="tea"), call("look_up", word="rum")],
            [call("rank", word="tea", score=2), call("rank", word="rum", score=1)],
            "Looked up.",
        ],
    )
