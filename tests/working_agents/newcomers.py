"""Notebooks of people who mix what they know: descriptors, buffers, views, shelves, files kept open, weak caches, queues."""

from __future__ import annotations

from collections.abc import Iterator

from tests.harness.scripted_model import call
from tests.working_agents.frameworks import GRAPH
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

BY_NAME_OR_WHY_NOT = """
def run_tool(name, arguments):
    try:
        return globals()[name](**arguments)
    except Exception as why:
        return f"{type(why).__name__}: {why}"
"""


def notebooks() -> Iterator[AgentNotebook]:
    yield from _objects()
    yield from _data()
    yield from _files()
    yield from _running()
    yield from _frameworks()


def _objects() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "cart_of_descriptors",
        cells(
            ANTHROPIC + "import functools, weakref",
            """
class Positive:
    checked = 0
    def __set_name__(self, owner, name): self.name = "_" + name; owner.fields = (*getattr(owner, "fields", ()), name)
    def __get__(self, obj, kind=None): return self if obj is None else getattr(obj, self.name)
    def __set__(self, obj, value):
        Positive.checked += 1
        if value < 0: raise ValueError(f"{self.name[1:]} must not be negative")
        setattr(obj, self.name, value)

class Line:
    __slots__ = ("item", "_price", "_count", "__weakref__", "history")
    price, count = Positive(), Positive()
    def __init__(self, item, price, count): self.item, self.price, self.count, self.history = item, price, count, []
    @property
    def total(self): return self.price * self.count
    @total.setter
    def total(self, value): self.history.append(self.total); self.price = value / self.count

class Cart:
    open_carts = weakref.WeakSet()
    def __init__(self): self.lines = {}; Cart.open_carts.add(self)
    @functools.cached_property
    def biggest(self): return max(self.lines.values(), key=lambda l: l.total)
    def __getitem__(self, item): return self.lines[item]
    def __setitem__(self, item, line): self.lines[item] = line; self.__dict__.pop("biggest", None)
    def __delitem__(self, item): del self.lines[item]; vars(self).pop("biggest", None)

cart, best = Cart(), {}
by_line = weakref.WeakKeyDictionary()
""",
            schemas(
                add="item price:number count:integer",
                reprice="item total:number",
                largest="",
                drop="item",
            )
            + """
def add(item, price, count):
    cart[item] = line = Line(item, price, count)
    by_line[line] = f"note on {item}"
    best.setdefault("first", line)
    return cart[item].total

def reprice(item, total):
    cart[item].total = total
    return cart.biggest.item

def largest():
    best["line"] = cart.biggest
    return cart.biggest.item

def drop(item):
    del cart[item]
    return sorted(cart.lines)
"""
            + BY_NAME_OR_WHY_NOT,
            "QUESTION = 'Fill the cart.'",
            ANTHROPIC_LOOP,
            "print([(l.item, l.price, l.count, l.history) for l in cart.lines.values()], Positive.checked, Line.fields)",
            "print(best['line'] is cart.lines.get('tea'), best['first'].item, len(Cart.open_carts), sorted(by_line.values()), 'biggest' in vars(cart))",
        ),
        [
            [
                call("add", item="tea", price=3.5, count=2),
                call("add", item="milk", price=1, count=1),
            ],
            [call("reprice", item="tea", total=10), call("largest")],
            [call("add", item="jam", price=-1, count=1), call("drop", item="milk")],
            "Done.",
        ],
    )
    yield AgentNotebook(
        "handlers_of_a_metaclass",
        cells(
            OPENAI
            + "import contextvars, enum, functools, heapq, bisect\nfrom collections import deque, ChainMap",
            """
class Level(enum.IntEnum):
    LOW = 1
    HIGH = 3
    @classmethod
    def _missing_(cls, value): return cls.HIGH
class Registry(type):
    handlers = {}
    def __new__(meta, name, bases, space, **options):
        cls = super().__new__(meta, name, bases, space)
        cls.calls = 0
        if bases: meta.handlers[options.get("tool", name.lower())] = cls()
        return cls
    def __call__(cls, *args):
        made = super().__call__(*args)
        made.log = deque(maxlen=3)
        return made
class Handler(metaclass=Registry):
    def __call__(self, **arguments):
        type(self).calls += 1
        token = depth.set(depth.get() + 1)
        try:
            self.log.append((depth.get(), arguments))
            return self.run(**arguments)
        finally:
            depth.reset(token)
depth = contextvars.ContextVar("depth", default=0)
queue, ranks, settings = [], [], ChainMap({}, {"limit": 2})

class Plan(Handler):
    def run(self, task, level):
        heapq.heappush(queue, (-Level(level), len(queue), task))
        bisect.insort(ranks, level)
        return len(queue)
class Take(Handler, tool="next_task"):
    def run(self):
        _, _, task = heapq.heappop(queue)
        Registry.handlers["note"](text=f"took {task}")
        return task
class Note(Handler):
    def run(self, text):
        settings["last"] = text
        settings["limit"] += 1
        return settings["limit"]
@functools.singledispatch
def spell(value): seen.append("object"); return str(value)
@spell.register
def _(value: list): seen.append("list"); return "+".join(map(spell, value))
seen = []
""",
            schemas(
                "openai",
                plan="task level:integer",
                next_task="",
                note="text",
                spelled="things:array",
            )
            + """
def run_tool(name, arguments):
    if name == "spelled":
        return spell_it(**arguments)
    return Registry.handlers[name](**arguments)

def spell_it(things):
    @spell.register
    def _(value: int): seen.append("int"); return hex(value)
    return spell(things)
""",
            "QUESTION = 'Plan my day.'",
            OPENAI_LOOP,
            "print(queue, ranks, dict(settings), seen, depth.get())",
            "print({n: (type(h).calls, list(h.log)) for n, h in Registry.handlers.items()}, spell(7))",
        ),
        [
            [
                call("plan", task="a", level=1),
                call("plan", task="b", level=9),
                call("plan", task="c", level=1),
            ],
            [call("next_task"), call("note", text="x"), call("note", text="y")],
            [call("next_task"), call("spelled", things=[1, "a", [2]])],
            "Planned.",
        ],
    )
    yield AgentNotebook(
        "averages_that_are_sent_to",
        cells(
            ANTHROPIC
            + "import itertools, types\nfrom dataclasses import dataclass, field, replace\nfrom collections import Counter, deque",
            """
def averaging():
    total, count, mean = 0.0, 0, None
    while True:
        value = yield mean
        if value is None: return
        total += value; count += 1
        mean = total / count
averages = {}
numbers = itertools.count(100)
steps = itertools.cycle("ab")

@dataclass(order=True)
class Reading:
    value: float
    tags: set = field(default_factory=set, compare=False)
    number: int = field(default_factory=lambda: next(numbers))
    meta: types.SimpleNamespace = field(default_factory=types.SimpleNamespace)
window, counts, latest = deque(maxlen=2), Counter(), None
""",
            schemas(measure="sensor value:number", tag="sensor word", summary="")
            + """
def measure(sensor, value):
    global latest
    reading = Reading(value, {next(steps)})
    window.append(reading)
    counts[sensor] += 1
    latest = replace(reading, value=-value)
    latest.meta.of = reading
    return note(sensor, value)

def note(sensor, value):
    counts.update([sensor, "notes"])
    return sum(r.value for r in window) / len(window)

def tag(sensor, word):
    for reading in window: reading.tags.add(word)
    window.rotate(1)
    return sorted(window[0].tags)

def summary():
    counts.subtract({"notes": 1})
    return dict(counts.most_common())
"""
            + BY_NAME_OR_WHY_NOT,
            "QUESTION = 'Measure.'",
            ANTHROPIC_LOOP,
            "print([(r.value, sorted(r.tags), r.number) for r in window], counts, latest.meta.of is window[1] or latest.meta.of is window[0], latest.number)",
            "print(next(numbers), next(steps))",
        ),
        [
            [call("measure", sensor="s", value=2), call("measure", sensor="t", value=4)],
            [call("measure", sensor="s", value=6), call("tag", sensor="s", word="hot")],
            [call("summary")],
            "Measured.",
        ],
    )


def _data() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "buffers_and_their_views",
        cells(
            ANTHROPIC + "import array, struct\nimport numpy as np",
            """
samples = array.array("h", range(6))
frame = bytearray(16)
view = memoryview(frame)[4:12]
grid = np.zeros((3, 4))
row, corner = grid[1], grid[:2, :2]
flat = grid.ravel()
kinds = np.array([("a", 1)], dtype=[("name", "U4"), ("count", "i4")])
masked = np.ma.masked_array([1.0, 2.0, 3.0], mask=[0, 0, 1])
rng = np.random.default_rng(7)
""",
            schemas(
                pack="place:integer value:integer",
                paint="value:number",
                count="name",
                noise="scale:number",
            )
            + """
def pack(place, value):
    struct.pack_into(">i", view, place, value)
    samples[place] = value
    samples.extend([value, -value])
    view[0:1] = b"\\x7f"
    return frame.hex()

def paint(value):
    row[:] = value
    corner += 1 if corner is None else 0
    np.add(corner, value, out=corner)
    return grid.sum()

def paint_corner(value):
    corner[...] = value

def count(name):
    kinds["count"] += 1
    kinds["name"][0] = name
    masked.mask[0] = True
    masked[1] = 9
    return int(kinds["count"][0])

def noise(scale):
    grid[2] += rng.normal(size=4).round(3) * scale
    paint_corner(scale)
    np.clip(grid, -5, 5, out=grid)
    return float(grid[2].sum().round(3))
"""
            + BY_NAME_OR_WHY_NOT,
            "QUESTION = 'Pack and paint.'",
            ANTHROPIC_LOOP,
            "print(samples, frame, bytes(view))",
            "print(grid, row, corner, flat.base is grid, kinds, masked, rng.integers(100))",
        ),
        [
            [call("pack", place=2, value=513), call("paint", value=2)],
            [call("count", name="tea"), call("noise", scale=3)],
            "Painted.",
        ],
    )
    yield AgentNotebook(
        "tables_changed_in_place",
        cells(
            OPENAI + "import pandas as pd, numpy as np",
            """
orders = pd.DataFrame({"item": ["tea", "jam", "tea"], "price": [3.0, 4.5, 3.5], "day": pd.to_datetime(["2026-01-02", "2026-01-01", "2026-01-03"])})
prices = orders["price"]
by_item = orders.groupby("item")
totals = {}
index = pd.Index([], dtype=object)
kinds = pd.Series(["a", "b", "a"], dtype="category")
""",
            schemas(
                "openai", order="item price:number", clean="", flag="above:number", rename="old new"
            )
            + """
def order(item, price):
    orders.loc[len(orders)] = [item, price, pd.Timestamp("2026-01-04")]
    global index
    index = index.append(pd.Index([item]))
    return len(orders)

def clean():
    orders.sort_values("day", inplace=True, ignore_index=True)
    orders.insert(0, "n", range(len(orders)))
    orders.eval("double = price * 2", inplace=True)
    orders["price"].attrs["unit"] = "EUR"
    orders.attrs["cleaned"] = True
    return list(orders.columns)

def flag(above):
    totals["flagged"] = orders[orders["price"] > above].copy()
    orders["flag"] = orders["price"] > above
    orders.drop(columns=["double"], inplace=True)
    kinds.cat.categories
    kinds.iloc[0] = "b"
    return int(orders["flag"].sum())

def rename(old, new):
    orders.rename(columns={old: new}, inplace=True)
    popped = orders.pop("n")
    totals["n"] = popped
    orders.index.name = "row"
    return str(by_item.size().to_dict())

def run_tool(name, arguments):
    return globals()[name](**arguments)
""",
            "QUESTION = 'Order and clean.'",
            OPENAI_LOOP,
            "print(orders, orders.attrs, orders.index.name, prices.tolist())",
            "print(totals['flagged'], totals['n'].tolist(), list(index), kinds.tolist())\norders",
        ),
        [
            [call("order", item="milk", price=1.5), call("clean")],
            [call("flag", above=3.2), call("rename", old="price", new="eur")],
            "Cleaned.",
        ],
    )


def _files() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "shelf_settings_and_notes",
        cells(
            ANTHROPIC + "import shelve, configparser, json, pathlib, shutil, os, dbm.dumb",
            """
settings = configparser.ConfigParser()
settings.read_string("[agent]\\nname = ada\\n")
home = pathlib.Path("state"); home.mkdir()
notes = shelve.Shelf(dbm.dumb.open("state/notes", "c"), writeback=True)
notes["todo"] = []
""",
            schemas(note="text", configure="key value", archive="name")
            + """
def note(text):
    notes["todo"].append(text)
    notes[text] = {"len": len(text)}
    notes.sync()
    (home / "notes.json").write_text(json.dumps(notes["todo"]))
    return len(notes)

def configure(key, value):
    if not settings.has_section("tools"): settings.add_section("tools")
    settings["tools"][key] = value
    settings["DEFAULT"]["debug"] = "no"
    with open(home / "agent.ini", "w") as file: settings.write(file)
    return dict(settings["tools"])

def archive(name):
    old = home / "notes.json"
    shutil.copy2(old, home / f"{name}.json")
    old.rename(home / "old.json")
    (home / name).mkdir(exist_ok=True)
    shutil.move(str(home / "old.json"), home / name)
    os.replace(home / "agent.ini", home / name / "agent.ini")
    shutil.make_archive(str(home / "all"), "tar", home / name)
    os.remove(home / "all.tar")
    return sorted(str(p.relative_to(home)) for p in home.rglob("*.json"))
"""
            + BY_NAME_OR_WHY_NOT,
            "QUESTION = 'Note and archive.'",
            ANTHROPIC_LOOP,
            "print(sorted(notes), notes['todo'], {s: dict(settings[s]) for s in settings.sections()})",
            "notes.close(); print(sorted(str(p) for p in home.rglob('*')), (home / 'first.json').read_text())",
        ),
        [
            [call("note", text="milk"), call("note", text="eggs")],
            [call("configure", key="depth", value="3"), call("archive", name="first")],
            "Archived.",
        ],
    )
    yield AgentNotebook(
        "writers_kept_open",
        cells(
            OPENAI + "import csv, gzip, io, logging, os, tempfile, zipfile, atexit",
            """
out = open("rows.csv", "w", newline="")
rows = csv.DictWriter(out, ["n", "word"]); rows.writeheader()
log_fd = os.open("agent.log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
stream = io.StringIO()
by_hand = logging.StreamHandler(stream); by_hand.setFormatter(logging.Formatter("%(levelname)s:%(message)s"))
os.mkdir("scratch")
scratch = tempfile.SpooledTemporaryFile(max_size=10, mode="w+")
packed = "out.zip"
""",
            schemas("openai", add_row="n:integer word", pack="name", audit="text")
            + """
def add_row(n, word):
    rows.writerow({"n": n, "word": word})
    out.flush()
    os.write(log_fd, f"row {n}\\n".encode())
    return out.tell()

def pack(name):
    with zipfile.ZipFile(packed, "a") as archive:
        archive.writestr(zipfile.ZipInfo(name), f"hello {name}")
        names = archive.namelist()
    with gzip.GzipFile("out.gz", "wb", mtime=0) as file: file.write(name.encode())
    with open(os.path.join("scratch", name), "w") as file: file.write(name)
    scratch.write(name)
    return names

def audit(text):
    record = logging.LogRecord("audit", logging.WARNING, "x", 1, text, None, None)
    by_hand.handle(record)
    os.lseek(log_fd, 0, os.SEEK_SET)
    return stream.getvalue()

TOOLBOX = {f.__name__: f for f in (add_row, pack, audit)}
def run_tool(name, arguments):
    return TOOLBOX[name](**arguments)
""",
            "QUESTION = 'Write rows.'",
            OPENAI_LOOP,
            "rows.writerow({'n': 9, 'word': 'end'}); out.close(); print(open('rows.csv').read(), open('agent.log').read(), stream.getvalue())",
            "os.write(log_fd, b'end'); os.close(log_fd); print(open('agent.log').read(), zipfile.ZipFile(packed).namelist(), sorted(os.listdir('scratch')))\nscratch.seek(0); print(scratch.read())",
        ),
        [
            [call("add_row", n=1, word="tea"), call("add_row", n=2, word="jam")],
            [call("pack", name="a.txt"), call("pack", name="b.txt"), call("audit", text="packed")],
            "Written.",
        ],
    )
    yield AgentNotebook(
        "processes_figures_and_bars",
        cells(
            ANTHROPIC
            + "import subprocess, sys, os\nimport matplotlib.pyplot as plt\nfrom tqdm.auto import tqdm\nfrom tqdm import tqdm as plain",
            """
done, curves = [], {}
fig, ax = plt.subplots(figsize=(2, 1)); plt.close(fig)
bar = plain(total=4, file=sys.stdout, ncols=40, bar_format="{desc}{n}/{total}")
env = {"PATH": os.environ["PATH"], "WHO": "tool"}
""",
            schemas(run="code", plot="values:array", progress="by:integer")
            + """
def run(code):
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False)
    done.append(found.returncode)
    return found.stdout or found.stderr[-40:]

def plot(values):
    (curves[len(curves)],) = ax.plot(values)
    ax.set_title(f"{len(curves)} curves")
    fig.savefig("curve.svg", metadata={"Date": None})
    print("plotted", values)
    return len(ax.lines)

def progress(by):
    bar.update(by)
    bar.set_description_str("at ")
    for _ in plain(range(2), file=sys.stderr, bar_format="{n}"): pass
    return bar.n
"""
            + BY_NAME_OR_WHY_NOT,
            "QUESTION = 'Run and plot.'",
            ANTHROPIC_LOOP,
            "print(done, bar.n, os.path.exists('made.txt') and open('made.txt').read())",
        ),
        [
            [
                call(
                    "run",
                    code="import os; print(os.environ['WHO']); open('made.txt','w').write('x')",
                )
            ],
            [call("progress", by=2), call("run", code="raise SystemExit(3)")],
            "Ran.",
        ],
        varies=True,
    )


def _running() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "async_tools_with_queues",
        cells(
            OPENAI.replace("openai.OpenAI()", "openai.AsyncOpenAI()")
            + "import asyncio, contextlib, time",
            """
inbox, done, order = asyncio.Queue(), [], []
lock, slots, ready = asyncio.Lock(), asyncio.Semaphore(2), asyncio.Event()
class Session:
    opened = 0
    async def __aenter__(self): Session.opened += 1; self.calls = []; return self
    async def __aexit__(self, *error): self.calls.append("closed"); last.append(self)
last = []
@contextlib.asynccontextmanager
async def timing(name):
    order.append(f"+{name}")
    try: yield order
    finally: order.append(f"-{name}")
""",
            schemas("openai", fetch="page:integer", post="text", drain="")
            + """
async def fetch(page):
    async with slots, Session() as session, timing(f"fetch {page}"):
        session.calls.append(page)
        await asyncio.sleep(0)
        await inbox.put(f"page {page}")
        return inbox.qsize()

async def post(text):
    async with lock:
        ready.set()
        done.append(text)
        async for word in words(text): done.append(word)
    return len(done)

async def words(text):
    for word in text.split():
        await asyncio.sleep(0)
        yield word.upper()

async def drain():
    while not inbox.empty(): done.append(inbox.get_nowait()); inbox.task_done()
    await asyncio.wait_for(ready.wait(), 1)
    return done[-1]

HANDLERS = dict(fetch=fetch, post=post, drain=drain)
""",
            taped("""
messages = [{"role": "user", "content": "Fetch pages."}]
while True:
    message = (await client.chat.completions.create(model="gpt-4o", messages=messages, tools=TOOLS)).choices[0].message
    messages.append(message.to_dict())
    if not message.tool_calls: break
    async with asyncio.TaskGroup() as group:
        asked = {each.id: group.create_task(HANDLERS[each.function.name](**json.loads(each.function.arguments))) for each in message.tool_calls}
    messages += [{"role": "tool", "tool_call_id": key, "content": str(task.result())} for key, task in asked.items()]
print(message.content)
"""),
            "print(done, order, inbox.qsize(), ready.is_set(), lock.locked(), slots._value, Session.opened, [s.calls for s in last])",
        ),
        [
            [call("fetch", page=1), call("fetch", page=2)],
            [call("post", text="all is well")],
            [call("drain")],
            "Fetched.",
        ],
    )
    yield AgentNotebook(
        "threads_with_shared_books",
        cells(
            ANTHROPIC
            + "import threading, queue, functools, sqlite3, time, collections\nfrom concurrent.futures import ThreadPoolExecutor",
            """
book = sqlite3.connect("book.db", check_same_thread=False, isolation_level=None)
book.execute("CREATE TABLE entries (n INTEGER PRIMARY KEY, who TEXT, cents INT, at TIMESTAMP DEFAULT CURRENT_TIMESTAMP)")
book.row_factory = sqlite3.Row
guard, jobs, totals = threading.RLock(), queue.PriorityQueue(), collections.OrderedDict()
ledger = collections.defaultdict(functools.partial(collections.deque, maxlen=2))
stop = threading.Event()
""",
            schemas(enter="who cents:integer", balance="who", plan="job rank:integer")
            + """
def enter(who, cents):
    with guard, book:
        book.execute("INSERT INTO entries (who, cents) VALUES (?, ?)", (who, cents))
    ledger[who].append(cents)
    balance.cache_clear()
    return book.total_changes

@functools.lru_cache(maxsize=4)
def balance(who):
    row = book.execute("SELECT sum(cents) AS total FROM entries WHERE who = ?", (who,)).fetchone()
    totals[who] = row["total"]; totals.move_to_end(who, last=False)
    return row["total"]

def plan(job, rank):
    jobs.put((rank, job))
    if jobs.qsize() > 1: stop.set()
    return jobs.qsize()

def run_tool(name, arguments):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(globals()[name], **arguments).result()
""",
            "QUESTION = 'Keep the book.'",
            ANTHROPIC_LOOP,
            "print([tuple(r)[:3] for r in book.execute('SELECT * FROM entries')], {k: list(v) for k, v in ledger.items()}, list(totals.items()), balance.cache_info())",
            "print(jobs.get_nowait(), jobs.qsize(), stop.is_set(), balance('ada'), balance.cache_info().hits)",
        ),
        [
            [call("enter", who="ada", cents=5), call("enter", who="bob", cents=7)],
            [
                call("balance", who="ada"),
                call("balance", who="bob"),
                call("enter", who="ada", cents=1),
            ],
            [
                call("plan", job="b", rank=2),
                call("plan", job="a", rank=1),
                call("balance", who="ada"),
            ],
            "Kept.",
        ],
    )
    yield AgentNotebook(
        "errors_logged_with_tracebacks",
        cells(
            OPENAI + "import json, logging, traceback, io, warnings, sys",
            """
text = io.StringIO()
logger = logging.getLogger("agent"); logger.propagate = False; logger.setLevel(logging.DEBUG)
logger.handlers[:] = [logging.StreamHandler(text)]
failures, notes = [], {}
class BadInput(ValueError):
    def __init__(self, text, place): super().__init__(text); self.place = place
""",
            schemas("openai", parse="text", divide="a:integer b:integer", nest="depth:integer")
            + """
def parse(text):
    try:
        return json.loads(text)
    except json.JSONDecodeError as why:
        logger.exception("cannot parse %r", text)
        raise BadInput(f"not JSON: {why}", why.pos) from why

def divide(a, b):
    logger.debug("dividing", stack_info=False)
    return a / b

def nest(depth):
    if depth: return nest_deeper(depth - 1)
    try: {}["missing"]
    except KeyError as why:
        why.add_note("deep down"); notes[depth] = why
        raise

nest_deeper = lambda depth: nest(depth)

def run_tool(name, arguments):
    try:
        return globals()[name](**arguments)
    except BadInput as why:
        failures.append(traceback.format_exc())
        return f"at {why.place}"
    except Exception as why:
        failures.append(why)
        logger.error("failed", exc_info=True)
        return traceback.format_exc(limit=-2)
""",
            "QUESTION = 'Parse these.'",
            OPENAI_LOOP,
            "print(text.getvalue())",
            "for each in failures: print(each if isinstance(each, str) else ''.join(traceback.format_exception(each)))",
            "print(notes[0].__notes__, notes[0] is failures[-1], [f.name for f in traceback.extract_tb(notes[0].__traceback__)])",
        ),
        [
            [call("parse", text="[1, 2]"), call("parse", text="[1, 2")],
            [call("divide", a=1, b=0), call("nest", depth=2)],
            "Parsed.",
        ],
    )


def _frameworks() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "graph_with_reducers_and_streams",
        cells(
            GRAPH
            + "import operator\nfrom typing import Annotated, TypedDict\nfrom langgraph.config import get_stream_writer",
            """
class State(MessagesState):
    seen: Annotated[list, operator.add]
basket, told = {"total": 0}, []
@tool
def put(item: str, price: float) -> str:
    "Put an item into the basket."
    get_stream_writer()({"put": item})
    basket[item] = price; basket["total"] += price
    told.append(f"put {item}")
    return f"{basket['total']}"
@tool
def undo() -> str:
    "Take the last item out."
    item = next(reversed([k for k in basket if k != "total"]))
    basket["total"] -= basket.pop(item)
    print("undone", item)
    return item
model = ChatAnthropic(model="claude-sonnet-4-6", max_tokens=100).bind_tools([put, undo])
def think(state): return {"messages": [model.invoke(state["messages"])], "seen": [len(state["messages"])]}
graph = StateGraph(State)
graph.add_node("think", think); graph.add_node("tools", ToolNode([put, undo]))
graph.add_edge(START, "think"); graph.add_conditional_edges("think", tools_condition); graph.add_edge("tools", "think")
agent = graph.compile()
""",
            taped("""
for mode, part in agent.stream({"messages": [HumanMessage("Shop.")], "seen": []}, stream_mode=["custom", "values"]):
    print(part if mode == "custom" else (part["seen"], len(part["messages"])))
"""),
            "print(basket, told)",
        ),
        [
            [call("put", item="tea", price=3.5)],
            [call("put", item="jam", price=2.0)],
            [call("undo")],
            "Shopped.",
        ],
    )
    yield AgentNotebook(
        "pydantic_agent_with_a_desk",
        cells(
            """
from dataclasses import dataclass, field
from pydantic import BaseModel, PrivateAttr
from pydantic_ai import Agent, ModelRetry, RunContext
from pydantic_ai.models.openai import OpenAIChatModel
""",
            """
class Ticket(BaseModel):
    number: int
    words: list[str] = []
    _opened: int = PrivateAttr(default=0)
    def open(self): self._opened += 1; return self
@dataclass
class Desk:
    tickets: dict = field(default_factory=dict)
    tries: list = field(default_factory=list)
desk = Desk()
agent = Agent(OpenAIChatModel("gpt-4o"), deps_type=Desk)
@agent.tool
def open_ticket(ctx: RunContext[Desk], words: str) -> int:
    "Open a ticket."
    ticket = Ticket(number=len(ctx.deps.tickets) + 1).open()
    ticket.words.extend(words.split())
    ctx.deps.tickets[ticket.number] = ticket
    return ticket.number
@agent.tool(retries=2)
async def close_ticket(ctx: RunContext[Desk], number: int) -> str:
    "Close a ticket."
    ctx.deps.tries.append(number)
    if number not in ctx.deps.tickets:
        raise ModelRetry("no such ticket")
    return " ".join(ctx.deps.tickets.pop(number).words)
""",
            taped("""
result = await agent.run("Open two, close one.", deps=desk)
print(result.output)
"""),
            "print(desk, [t._opened for t in desk.tickets.values()], len(result.all_messages()))",
        ),
        [
            [call("open_ticket", words="no tea"), call("open_ticket", words="no jam")],
            [call("close_ticket", number=9)],
            [call("close_ticket", number=1)],
            "Closed.",
        ],
        varies=True,
    )
    yield AgentNotebook(
        "agents_with_context_and_hooks",
        cells(
            """
from agents import Agent, Runner, RunContextWrapper, RunHooks, function_tool, set_tracing_disabled
from dataclasses import dataclass, field
import itertools
set_tracing_disabled(True)
""",
            """
@dataclass
class Trip:
    stops: list[str] = field(default_factory=list)
    budget: float = 100.0
trip, seen, numbers = Trip(), [], itertools.count(1)
class Watch(RunHooks):
    def __init__(self): self.events = []
    async def on_tool_start(self, context, agent, tool): self.events.append(("start", tool.name))
    async def on_tool_end(self, context, agent, tool, result): self.events.append(("end", tool.name, result))
@function_tool
def add_stop(ctx: RunContextWrapper[Trip], city: str, cost: float) -> str:
    "Add a stop."
    ctx.context.stops.append(city)
    ctx.context.budget -= cost
    seen.append((next(numbers), city))
    return f"{ctx.context.budget:.2f} left"
@function_tool(failure_error_function=lambda ctx, error: f"sorry: {error}")
def drop_stop(ctx: RunContextWrapper[Trip], city: str) -> str:
    "Drop a stop."
    ctx.context.stops.remove(city)
    return ",".join(ctx.context.stops)
watch = Watch()
guide = Agent("guide", instructions="Plan.", tools=[add_stop, drop_stop], model="gpt-4o")
""",
            taped("""
result = await Runner.run(guide, "Plan a trip.", context=trip, hooks=watch)
print(result.final_output)
"""),
            "print(trip, seen, watch.events, next(numbers))",
        ),
        [
            [call("add_stop", city="Rome", cost=40.5), call("add_stop", city="Pisa", cost=20)],
            [call("drop_stop", city="Oslo")],
            [call("drop_stop", city="Rome")],
            "Planned.",
        ],
        varies=True,
    )
