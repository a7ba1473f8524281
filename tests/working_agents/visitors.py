"""Notebooks of people who came by once: paths kept everywhere, ledgers, handlers that rotate, maps of memory, workers."""

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
    yield from _books()
    yield from _paths_and_files()
    yield from _work()
    yield from _objects()


def _books() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "ledger_of_decimals",
        cells(
            ANTHROPIC
            + "from dataclasses import dataclass, field, replace, asdict\nfrom decimal import Decimal, ROUND_HALF_UP\nfrom enum import Enum, auto\nfrom functools import singledispatch, total_ordering\nimport itertools, datetime as dt, operator",
            """
class Side(Enum):
    DEBIT = auto(); CREDIT = auto()
    @property
    def sign(self): return 1 if self is Side.DEBIT else -1

ids = itertools.count(100)
@total_ordering
@dataclass(slots=True)
class Entry:
    account: str
    amount: Decimal
    side: Side
    id: int = field(default_factory=ids.__next__)
    tags: frozenset = frozenset()
    def __lt__(self, other): return (self.account, self.id) < (other.account, other.id)

class LedgerError(Exception):
    def __init__(self, entry, missing): super().__init__(f"{entry.account} lacks {missing}"); self.entry, self.missing = entry, missing

book, refused, balance = [], [], {}
last = None

@singledispatch
def show(value): return repr(value)
@show.register
def _(value: Decimal): return f"{value:.2f} EUR"
@show.register(Entry)
def _(value): return f"#{value.id} {value.account} {show(value.amount)}"
""",
            schemas(post="account amount side", settle="account", formats="kind")
            + """
def post(account, amount, side):
    global last
    entry = Entry(account, Decimal(amount).quantize(Decimal("0.01"), ROUND_HALF_UP), Side[side.upper()], tags=frozenset({side, account[0]}))
    now = balance.get(account, Decimal()) + entry.side.sign * entry.amount
    if now < 0:
        refused.append(LedgerError(entry, -now)); raise refused[-1]
    balance[account] = now; book.append(entry); book.sort(); last = entry
    return show(entry)

def settle(account):
    mine = [e for e in book if e.account == account]
    book[:] = [e for e in book if e.account != account]
    entry = replace(mine[0], amount=sum(map(operator.attrgetter("amount"), mine)), id=next(ids))
    book.append(entry)
    return str(asdict(entry)["amount"])

def formats(kind):
    if kind == "side":
        show.register(Side, lambda value: value.name.title())
    return show(Side.DEBIT)

def run_tool(name, arguments):
    try: return globals()[name](**arguments)
    except LedgerError as why: return f"refused: {why}, by {show(why.missing)}"
""",
            "QUESTION = 'Book my rent.'",
            ANTHROPIC_LOOP,
            "print(*map(show, book), last is book[0], {k: str(v) for k, v in balance.items()}, next(ids))",
            "print([(type(e).__name__, e.entry.id, e.missing, e.args) for e in refused], show(Side.CREDIT), {e.side for e in book} <= set(Side))",
        ),
        [
            [
                call("post", account="rent", amount="700.005", side="debit"),
                call("post", account="food", amount="12", side="debit"),
            ],
            [
                call("post", account="food", amount="20", side="credit"),
                call("formats", kind="side"),
            ],
            [
                call("post", account="food", amount="3.5", side="debit"),
                call("settle", account="food"),
            ],
            "Booked.",
        ],
    )
    yield AgentNotebook(
        "sessions_with_times_of_sql",
        cells(
            OPENAI + "import sqlite3, contextlib, datetime as dt\nfrom pathlib import Path",
            """
class Row(sqlite3.Row):
    pass
def connect():
    db = sqlite3.connect("desk.db", detect_types=sqlite3.PARSE_DECLTYPES)
    db.row_factory = sqlite3.Row
    db.execute("PRAGMA trusted_schema = OFF")
    return db
db = connect()
db.executescript("create table if not exists talks (id integer primary key, text, at timestamp default current_timestamp, day default (date('now')))")
audit = []
@contextlib.contextmanager
def change(what):
    audit.append("begin " + what)
    try:
        with db: yield db
    except sqlite3.Error as why:
        audit.append(f"{what}: {why}"); raise
    finally: audit.append("end " + what)
""",
            schemas("openai", remember="text", forget="id:integer", break_it="")
            + """
def remember(text):
    with change("remember") as d:
        key = d.execute("insert into talks (text) values (?)", [text]).lastrowid
    return key
def forget(id):
    with change("forget") as d:
        return d.execute("delete from talks where id = ?", [id]).rowcount
def break_it():
    with change("break") as d:
        d.execute("insert into talks (text) values ('lost')")
        d.execute("insert into nothing values (1)")
def run_tool(name, arguments):
    try: return globals()[name](**arguments)
    except sqlite3.Error as why: return str(why)
""",
            "QUESTION = 'Remember this.'",
            taped("""
started = db.execute("select datetime('now') as now, julianday('now') as days, strftime('%f', 'now') as part").fetchone()
messages = [{"role": "user", "content": QUESTION}]
while True:
    message = client.chat.completions.create(model="gpt-4o", messages=messages, tools=TOOLS).choices[0].message
    messages.append(message.to_dict())
    if not message.tool_calls:
        break
    for asked in message.tool_calls:
        messages.append({"role": "tool", "tool_call_id": asked.id, "content": str(run_tool(asked.function.name, json.loads(asked.function.arguments)))})
with db:
    db.execute("insert into talks (text) values (?)", [message.content])
stamps = [tuple(row) for row in db.execute("select id, text, at, day from talks")]
began = tuple(started)
"""),
            "print(len(stamps), audit, db.total_changes > 0, stamps[0][2] <= dt.datetime.utcnow())",
            "print([dict(r)['text'] for r in db.execute('select * from talks order by id')], began[0][:2])\ndb.close()",
        ),
        [
            [call("remember", text="tea"), call("remember", text="rum")],
            [call("break_it"), call("forget", id=1)],
            "Remembered.",
        ],
        varies=True,
    )


def _paths_and_files() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "reports_by_their_full_paths",
        cells(
            ANTHROPIC
            + "import os, json, zipfile, logging, logging.handlers, glob, fnmatch\nfrom pathlib import Path\nfrom dataclasses import dataclass, field",
            """
HERE = Path.cwd()
OUT = HERE / "reports"
@dataclass
class Written:
    path: Path
    uri: str
    parts: list = field(default_factory=list)
written, by_path = {}, {}
index = {"root": str(HERE), "files": []}
log = logging.getLogger("reports"); log.setLevel("INFO"); log.propagate = False
log.addHandler(logging.handlers.RotatingFileHandler(HERE / "run.log", maxBytes=90, backupCount=2))
""",
            schemas(write="title text", bundle="pattern", tree="", where="title")
            + """
def write(title, text):
    OUT.mkdir(exist_ok=True)
    path = OUT / f"{title.lower().replace(' ', '-')}.md"
    path.write_text(f"# {title}\\n\\n{text}\\n\\nwritten to {path}\\n")
    written[title] = Written(path, path.as_uri(), list(path.relative_to(HERE).parts))
    by_path[str(path)] = written[title]
    index["files"].append(str(path)); (OUT / "index.json").write_text(json.dumps(index))
    log.info("wrote %s", path)
    print(f"-> {path}")
    return f"wrote {path}"

def bundle(pattern):
    goal = HERE / "all.zip"
    with zipfile.ZipFile(goal, "w") as pack:
        for each in sorted(OUT.glob(pattern)):
            pack.writestr(zipfile.ZipInfo(each.name), each.name)
    os.environ["LAST_BUNDLE"] = str(goal)
    return {"path": str(goal), "files": pack.namelist()}

def tree():
    return "\\n".join(str(p) for p in sorted(OUT.rglob("*")))

def where(title):
    return os.path.abspath(written[title].path)
"""
            + BY_NAME,
            "QUESTION = 'Write two reports.'",
            ANTHROPIC_LOOP,
            "for title, one in written.items(): print(title, one.path.exists(), one.path.relative_to(HERE), one.uri == one.path.as_uri(), by_path[str(one.path)] is one)",
            "print(open(by_path and next(iter(by_path))).read().count(str(HERE)), json.load(open(OUT / 'index.json'))['root'] == str(HERE), os.environ['LAST_BUNDLE'] == str(HERE / 'all.zip'))",
            "print(sorted(p.name for p in HERE.glob('run.log*')), log.handlers[0].baseFilename == str(HERE / 'run.log'))\nlog.info('more')",
        ),
        [
            [
                call("write", title="First Day", text="rain"),
                call("write", title="Second", text="sun"),
            ],
            [call("bundle", pattern="*.md"), call("tree")],
            [call("where", title="Second")],
            "Both are written.",
        ],
        varies=True,
    )
    yield AgentNotebook(
        "maps_shelves_and_dumb_dbm",
        cells(
            OPENAI
            + "import numpy as np, shelve, dbm.dumb, mmap, pickle, struct, os, tempfile\nfrom pathlib import Path",
            """
grid = np.memmap("grid.bin", dtype="float64", mode="w+", shape=(3, 4))
shelf = shelve.open("shelf", flag="c", writeback=True)
names = dbm.dumb.open("names", "c")
raw = open("raw.bin", "w+b"); raw.write(b"\\0" * 16); raw.flush()
view = mmap.mmap(raw.fileno(), 16)
totals = grid.sum(axis=1)
""",
            schemas(
                "openai",
                fill="row:integer value:number",
                keep="key value",
                poke="at:integer value:integer",
                snapshot="name",
            )
            + """
def fill(row, value):
    grid[row, :] = value; grid.flush()
    totals[:] = grid.sum(axis=1)
    return totals.tolist()
def keep(key, value):
    shelf.setdefault(key, []).append(value); shelf.sync()
    names[key.encode()] = value.encode(); names.sync()
    return len(shelf)
def poke(at, value):
    struct.pack_into("<i", view, at, value); view.flush()
    raw.seek(0)
    return raw.read(8).hex()
def snapshot(name):
    np.savez(name, grid=np.asarray(grid), totals=totals)
    Path(name + ".pkl").write_bytes(pickle.dumps({"shape": grid.shape, "names": sorted(shelf)}))
    return os.path.exists(name + ".npz")
"""
            + BY_NAME,
            "QUESTION = 'Fill the grid.'",
            OPENAI_LOOP,
            "print(grid.tolist(), totals, dict(shelf), {k: names[k] for k in names.keys()}, view[:8])",
            "print(np.load('s.npz')['totals'], pickle.load(open('s.pkl', 'rb')), np.fromfile('grid.bin').sum())",
            "shelf.close(); names.close(); view.close(); raw.close()\nprint(sorted(os.listdir('.'))[:0])",
        ),
        [
            [call("fill", row=1, value=2.5), call("keep", key="ada", value="tea")],
            [call("poke", at=4, value=513), call("keep", key="bob", value="rum")],
            [call("snapshot", name="s")],
            "Filled.",
        ],
    )
    yield AgentNotebook(
        "folders_entered_and_left",
        cells(
            ANTHROPIC
            + "import os, sys, contextlib, shutil, importlib, signal, subprocess\nfrom pathlib import Path",
            """
BASE = os.getcwd()
visited, handlers = [BASE], []
@contextlib.contextmanager
def inside(folder):
    before = os.getcwd(); os.makedirs(folder, exist_ok=True); os.chdir(folder)
    try: yield Path.cwd()
    finally: os.chdir(before)
class Workspace:
    def __init__(self, root): self.root, self.files, self._open = Path(root).resolve(), {}, None
    def path(self, name):
        found = (self.root / name).resolve()
        if not found.is_relative_to(self.root): raise PermissionError(f"{found} is outside of {self.root}")
        return found
work = Workspace("space")
""",
            schemas(create="name text", read="name", enter="folder", configure="key value")
            + """
def create(name, text):
    path = work.path(name); path.parent.mkdir(parents=True, exist_ok=True); path.write_text(text)
    work.files[name] = path
    return f"created {path}"
def read(name):
    return work.path(name).read_text() + f" ({work.path(name)})"
def enter(folder):
    with inside(folder) as here:
        visited.append(str(here)); Path("mark").touch()
        done = subprocess.run(["pwd"], capture_output=True, text=True)
    return done.stdout.strip()
def configure(key, value):
    os.environ[key] = f"{BASE}/{value}"
    sys.path.insert(0, os.path.join(BASE, value)); Path(value).mkdir(exist_ok=True); Path(value, "agent_conf.py").write_text(f"WHERE = {os.path.join(BASE, value)!r}\\nSEEN = []\\n")
    return os.environ[key]
def run_tool(name, arguments):
    try: return globals()[name](**arguments)
    except Exception as why: return f"{type(why).__name__}: {why}"
""",
            "QUESTION = 'Set up my space.'",
            ANTHROPIC_LOOP,
            "print([os.path.relpath(p, BASE) for p in visited], {k: v.read_text() for k, v in work.files.items()}, os.environ['CONF_DIR'] == BASE + '/conf')",
            "import agent_conf\nprint(agent_conf.WHERE == os.path.join(BASE, 'conf'), os.path.relpath(agent_conf.__file__, BASE), messages[-2]['content'][0]['content'].count(BASE))",
        ),
        [
            [
                call("create", name="a/one.txt", text="1"),
                call("create", name="../../two.txt", text="2"),
            ],
            [call("enter", folder="deep/er"), call("read", name="a/one.txt")],
            [call("configure", key="CONF_DIR", value="conf")],
            "All set up.",
        ],
        varies=True,
    )


def _work() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "async_workers_and_priorities",
        cells(
            "import anthropic, asyncio, heapq, itertools, contextvars, time\nclient = anthropic.AsyncAnthropic()",
            """
queue, done, order = asyncio.PriorityQueue(), [], itertools.count()
who = contextvars.ContextVar("who", default="nobody")
gate = asyncio.Semaphore(2)
class Job:
    made = 0
    def __init__(self, name, level): self.name, self.level, self.n = name, level, next(order); Job.made += 1
    def __lt__(self, other): return (self.level, self.n) < (other.level, other.n)
    def __repr__(self): return f"{self.name}@{self.level}"
schedule = []
results = {}
""",
            schemas(
                submit="name level:integer", drain="workers:integer", later="name seconds:integer"
            )
            + """
async def submit(name, level):
    job = Job(name, level)
    await queue.put(job); heapq.heappush(schedule, job)
    return queue.qsize()
async def worker(name, found):
    who.set(name)
    while True:
        try: job = queue.get_nowait()
        except asyncio.QueueEmpty: return
        async with gate:
            await asyncio.sleep(0)
            found.append(job); results.setdefault(who.get(), []).append(job.name); queue.task_done()
async def drain(workers):
    found = []
    await asyncio.gather(*(worker(f"w{n}", found) for n in range(workers)))
    await queue.join()
    done.extend(found); print("drained", found)
    while schedule: heapq.heappop(schedule)
    return [repr(j) for j in found]
async def later(name, seconds):
    who.set("later " + name)
    async with asyncio.timeout(seconds):
        await asyncio.sleep(0.001)
        await submit(name, 9)
    return who.get()
TABLE = {"submit": submit, "drain": drain, "later": later}
""",
            taped("""
messages = [{"role": "user", "content": "Run my jobs."}]
while True:
    reply = await client.messages.create(model="claude-haiku-4-5", max_tokens=100, messages=messages, tools=TOOLS)
    messages.append({"role": "assistant", "content": [b.to_dict() for b in reply.content]})
    uses = [b for b in reply.content if b.type == "tool_use"]
    if not uses:
        break
    answers = await asyncio.gather(*(TABLE[u.name](**u.input) for u in uses))
    messages.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": u.id, "content": str(a)} for u, a in zip(uses, answers)]})
print(reply.content[0].text, who.get())
"""),
            "print(done, results, queue.qsize(), Job.made, schedule, next(order), gate._value)",
            "print(await submit('extra', 1), queue.get_nowait())",
        ),
        [
            [call("submit", name="b", level=2), call("submit", name="a", level=1)],
            [call("drain", workers=2)],
            [call("later", name="z", seconds=5)],
            "Ran.",
        ],
        varies=True,
    )
    yield AgentNotebook(
        "bars_tables_and_live_text",
        cells(
            OPENAI
            + "from tqdm import tqdm\nfrom tqdm.auto import trange\nfrom rich.console import Console\nfrom rich.table import Table\nfrom rich.progress import Progress\nfrom IPython.display import display, Markdown, HTML, update_display\nimport io, sys, matplotlib.pyplot as plt, networkx as nx",
            """
console = Console(width=50, file=io.StringIO(), record=True)
table = Table("step", "state", title="run")
bar = tqdm(total=4, file=sys.stdout, ncols=40, bar_format="{desc}|{n_fmt}/{total_fmt}")
progress = Progress(console=console, auto_refresh=False); task = progress.add_task("all", total=3)
handle = display(Markdown("*idle*"), display_id=True)
graph = nx.DiGraph(name="deps"); graph.add_node("start", level=0)
fig, axes = plt.subplots(1, 2, figsize=(3, 2)); plt.close(fig)
lines = [ax.plot([], [])[0] for ax in axes]
""",
            schemas(
                "openai",
                step="name state",
                link="a b",
                plot="which:integer value:number",
                finish="",
            )
            + """
def step(name, state):
    table.add_row(name, state); console.print(f"[bold]{name}[/bold] {state}")
    bar.update(1); bar.set_description(name); progress.advance(task)
    handle.update(Markdown(f"**{name}**: {state}"))
    return len(table.rows)
def link(a, b):
    graph.add_edge(a, b, weight=len(a) + len(b)); nx.set_node_attributes(graph, {b: graph.nodes["start"]["level"] + 1}, "level")
    return nx.is_directed_acyclic_graph(graph), list(nx.topological_sort(graph))
def plot(which, value):
    line = lines[which]
    line.set_data([*line.get_xdata(), len(line.get_xdata())], [*line.get_ydata(), value])
    axes[which].set_title(f"{value:g}"); axes[which].relim(); axes[which].autoscale_view(); axes[which].axhline(value, ls=":")
    return len(axes[which].lines)
def finish():
    bar.close(); console.print(table); display(HTML("<b>done</b>")); display(fig)
    return progress.finished
"""
            + BY_NAME,
            "QUESTION = 'Run the steps.'",
            OPENAI_LOOP,
            "print(len(table.rows), bar.n, progress.tasks[0].completed, sorted(graph.edges(data='weight')), graph.nodes(data=True))",
            "print(console.file.getvalue().count('\\n'), [list(map(float, l.get_ydata())) for l in lines], [a.get_title() for a in axes], [len(a.lines) for a in axes])",
        ),
        [
            [call("step", name="load", state="ok"), call("link", a="start", b="load")],
            [
                call("plot", which=0, value=2),
                call("plot", which=1, value=3.5),
                call("plot", which=0, value=4),
            ],
            [call("step", name="fit", state="ok"), call("finish")],
            "All steps ran.",
        ],
        varies=True,
    )
    yield AgentNotebook(
        "handlers_signals_and_threads",
        cells(
            ANTHROPIC
            + "import logging, logging.handlers, signal, threading, queue, atexit, os, warnings, io, time\nfrom concurrent.futures import ThreadPoolExecutor",
            """
stream = io.StringIO()
logger = logging.getLogger("agent.v"); logger.setLevel(logging.DEBUG); logger.propagate = False
buffer = logging.handlers.MemoryHandler(10, target=logging.StreamHandler(stream)); logger.addHandler(buffer)
class Tag(logging.Filter):
    def filter(self, record): record.tag = current.name if hasattr(current, "name") else "none"; return True
buffer.addFilter(Tag()); buffer.target.setFormatter(logging.Formatter("%(levelname)s %(tag)s %(message)s"))
current = threading.local(); current.name = "main"
inbox, seen, caught = queue.Queue(), [], []
flag, lock = threading.Event(), threading.RLock()
def on_user(number, frame): seen.append(number)
signal.signal(signal.SIGUSR1, on_user)
""",
            schemas(note="text", poke="", fan="names:array", quiet="on:boolean")
            + """
def note(text):
    current.name = text[:3]
    logger.info("noted %s", text); logger.debug("size %d", len(text))
    inbox.put(text)
    return inbox.qsize()
def poke():
    os.kill(os.getpid(), signal.SIGUSR1)
    for _ in range(1000):
        if seen: break
        time.sleep(0.001)
    flag.set()
    return len(seen)
def fan(names):
    def one(name):
        current.name = name
        with lock: seen.append(name.upper())
        return len(name)
    with ThreadPoolExecutor(1) as pool:
        return list(pool.map(one, names))
def quiet(on):
    logging.disable(logging.INFO if on else logging.NOTSET)
    warnings.simplefilter("ignore" if on else "default")
    with warnings.catch_warnings(record=True) as got:
        warnings.simplefilter("always"); warnings.warn("old", DeprecationWarning); caught.extend(str(w.message) for w in got)
    return logger.isEnabledFor(logging.INFO)
"""
            + BY_NAME,
            "QUESTION = 'Note this.'",
            ANTHROPIC_LOOP,
            "print(seen, inbox.qsize(), current.name, flag.is_set(), caught, len(buffer.buffer), logger.isEnabledFor(20))",
            "buffer.flush(); print(stream.getvalue().splitlines(), inbox.get_nowait(), warnings.filters[0][0], logging.root.manager.disable)\nlogging.disable(0); warnings.simplefilter('default')",
        ),
        [
            [call("note", text="tea is out"), call("poke")],
            [call("fan", names=["ab", "cde"]), call("quiet", on=True)],
            "Noted.",
        ],
    )


def _objects() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "models_private_and_cached",
        cells(
            OPENAI
            + "import attrs, weakref, functools\nfrom pydantic import BaseModel, PrivateAttr, Field, computed_field, field_validator\nfrom functools import cached_property",
            """
class Item(BaseModel):
    model_config = {"validate_assignment": True, "extra": "allow"}
    name: str
    price: float = Field(gt=0)
    _seen: int = PrivateAttr(0)
    _notes: list = PrivateAttr(default_factory=list)
    @field_validator("name")
    @classmethod
    def clean(cls, value): return value.strip().lower()
    @computed_field
    @property
    def label(self) -> str: return f"{self.name}:{self.price}"
@attrs.define(eq=False)
class Shelf:
    items: dict = attrs.field(factory=dict)
    _count: int = attrs.field(default=0, alias="count")
    owner: object = attrs.field(default=None, repr=False)
@attrs.frozen
class Mark:
    n: int
    tags: tuple = attrs.field(default=(), converter=tuple)
class Store:
    live = weakref.WeakSet()
    def __init__(self): self.shelves, self.by_item = [Shelf(owner=self)], weakref.WeakKeyDictionary(); Store.live.add(self)
    @cached_property
    def index(self): return {name: shelf for shelf in self.shelves for name in shelf.items}
    @functools.lru_cache(maxsize=4)
    def price(self, name): return self.index[name].items[name].price
store = Store()
first, marks = store.shelves[0], []
""",
            schemas("openai", add="name price:number", touch="name note", shelf="")
            + """
def add(name, price):
    item = Item(name=name, price=price, colour="red")
    first.items[item.name] = item; first._count += 1
    store.__dict__.pop("index", None); store.price.cache_clear()
    return item.label
def touch(name, note):
    item = store.index[name].items[name]
    item._seen += 1; item._notes.append(note); item.price = item.price + 1; item.size = len(note)
    marks.append(Mark(item._seen, [note])); marks[-1] = attrs.evolve(marks[-1], n=9)
    return store.price(name)
def shelf():
    made = Shelf({"box": Item(name=" Box ", price=2)}, 1, owner=store)
    store.shelves.append(made); del store.index
    return sorted(store.index)
def run_tool(name, arguments):
    try: return globals()[name](**arguments)
    except Exception as why: return type(why).__name__
""",
            "QUESTION = 'Add tea.'",
            OPENAI_LOOP,
            "print(first, first.items['tea']._seen, first.items['tea']._notes, first.items['tea'].model_extra, marks, sorted(store.__dict__))",
            "print(store.price('tea'), store.price.cache_info(), len(Store.live), store.shelves[1].owner is store, store.index['box'] is store.shelves[1])",
        ),
        [
            [call("add", name=" Tea", price=3), call("touch", name="tea", note="green")],
            [call("add", name="rum", price=-1), call("shelf")],
            [call("touch", name="tea", note="black")],
            "Added.",
        ],
    )
    yield AgentNotebook(
        "groups_of_a_frame",
        cells(
            ANTHROPIC + "import pandas as pd, numpy as np\nfrom pathlib import Path",
            """
sales = pd.DataFrame({"shop": ["a", "b", "a", "c"], "item": list("xyzx"), "n": [1, 2, 3, 4], "day": pd.date_range("2026-01-01", periods=4)})
sales["shop"] = sales["shop"].astype("category")
view = sales.set_index(["shop", "item"]).sort_index()
summary, log = {}, []
alias = sales
rng = np.random.default_rng(3)
style = None
""",
            schemas(
                total="by",
                scale="shop factor:number",
                append="shop item n:integer",
                pivot="",
                export="name",
            )
            + """
def total(by):
    done = sales.groupby(by, observed=True).apply(lambda g: pd.Series({"n": g["n"].sum(), "most": g["item"].max()}), include_groups=False)
    summary[by] = done; log.append(done.shape)
    return done.to_dict()
def scale(shop, factor):
    sales["n"] = sales["n"].astype(float)
    sales.loc[sales["shop"] == shop, "n"] *= factor
    sales.insert(2, "noise", rng.normal(size=len(sales)).round(3)); sales.attrs["scaled"] = shop
    return float(sales["n"].sum())
def append(shop, item, n):
    if shop not in sales["shop"].cat.categories: sales["shop"] = sales["shop"].cat.add_categories([shop])
    sales.loc[len(sales)] = {"shop": shop, "item": item, "noise": 0.0, "n": n, "day": pd.Timestamp("2026-02-01")}
    return len(sales)
def pivot():
    global view
    view = sales.pivot_table(index="shop", columns="item", values="n", aggfunc="sum", observed=False).fillna(0)
    view.columns.name = None
    return view.shape
def export(name):
    goal = Path.cwd() / name
    summary["shop"].to_csv(goal); sales.to_json(goal.with_suffix(".json"), orient="split", date_format="iso")
    return str(goal)
"""
            + BY_NAME,
            "QUESTION = 'Total by shop.'",
            ANTHROPIC_LOOP,
            "print(sales, sales.dtypes.to_dict(), sales.attrs, alias is sales, log)",
            "print(view, summary['shop'], rng.integers(100))\nsales.head(2)",
            "print(pd.read_csv(messages[-2]['content'][0]['content']).shape)",
        ),
        [
            [call("total", by="shop"), call("scale", shop="a", factor=2)],
            [call("append", shop="d", item="w", n=7), call("pivot")],
            [call("export", name="totals.csv")],
            "Totals are done.",
        ],
        varies=True,
    )
    yield AgentNotebook(
        "tools_that_yield_and_are_entered",
        cells(
            OPENAI + "import contextlib, collections, typing, types\nimport tape_jupyter as tape",
            """
events = collections.deque(maxlen=12)
totals = collections.Counter()
class Budget(contextlib.AbstractContextManager):
    open_ = []
    def __init__(self, limit): self.limit, self.spent = limit, 0
    @tape.tool
    def __enter__(self): Budget.open_.append(self.limit); events.append("in"); return self.limit
    @tape.tool
    def __exit__(self, kind, why, trace): Budget.open_.pop(); events.append(f"out {kind.__name__ if kind else None}"); return kind is KeyError
class Over(Exception):
    def __init__(self, by, at): super().__init__(by, at); self.by, self.at = by, at; self.add_note(f"over by {by}")
budget = Budget(10)
history = []
@tape.tool
def spend(limit):
    total, got = 0, None
    while True:
        try: got = yield total
        except ValueError as why: events.append(f"caught {why}"); got = 0
        if got is None: return total
        total += got; history.append(total); totals["spent"] += got
        if total > limit: raise Over(total - limit, len(history))
@tape.tool
def parts(text):
    "Parts of a text."
    for n, word in enumerate(text.split()):
        totals[word] += 1
        yield word if n % 2 else (n, word)
    events.append("read")
""",
            schemas("openai", plan="text")
            + """
def plan(text):
    events.append(text)
    return list(reversed(text.split()))
"""
            + BY_NAME,
            "QUESTION = 'Plan: buy tea.'",
            OPENAI_LOOP.replace(
                "print(message.content)",
                """spending = spend(5)
first = next(spending)
steps = [spending.send(2), spending.throw(ValueError("bad")), spending.send(1)]
failed = None
with budget as limit, contextlib.suppress(StopIteration):
    try: spending.send(4)
    except Over as why: failed = why
reading = parts("tea and rum and tea")
some = [next(reading), next(reading)]
with budget: raise KeyError("x")
print(message.content, steps, limit, some)""",
            ),
            "print(first, history, totals, list(events), Budget.open_, type(failed).__name__, failed.by, failed.at, failed.__notes__)",
            taped("rest = list(reading)\nprint(rest)"),
            "print(totals, list(events), budget.limit)",
        ),
        [[call("plan", text="buy tea")], "Planned."],
    )
    yield AgentNotebook(
        "registry_kept_by_weak_names",
        cells(
            ANTHROPIC
            + "import weakref, sys, types, copy, operator, abc, inspect, collections.abc\nfrom functools import partial, partialmethod, reduce",
            """
class Meta(abc.ABCMeta):
    made = []
    def __call__(cls, *args, **kwargs):
        obj = super().__call__(*args, **kwargs); Meta.made.append(cls.__name__); cls.all[obj.name] = obj
        return obj
class Agent(metaclass=Meta):
    all = weakref.WeakValueDictionary()
    __slots__ = ("name", "_links", "__weakref__", "mood")
    def __init__(self, name, mood="calm"): self.name, self._links, self.mood = name, [], mood
    def link(self, other, how="knows"): self._links.append((weakref.ref(other), how)); return self
    def __iadd__(self, other): return self.link(other, "likes")
    def __matmul__(self, other): return any(r() is other for r, _ in self._links)
    def __len__(self): return len(self._links)
    calm = partialmethod(setattr, "mood", "calm") if False else (lambda self: setattr(self, "mood", "calm"))
ada, bob = Agent("ada"), Agent("bob", "loud")
team = types.MappingProxyType(people := {"ada": ada, "bob": bob})
space = types.SimpleNamespace(step=0, path=[], last=None)
class Trail(collections.abc.MutableSequence):
    def __init__(self): self._all = []
    def __getitem__(self, at): return self._all[at]
    def __setitem__(self, at, value): self._all[at] = value
    def __delitem__(self, at): del self._all[at]
    def __len__(self): return len(self._all)
    def insert(self, at, value): self._all.insert(at, value); space.step += 1
trail = Trail()
bump = partial(operator.iadd, space.path)
""",
            schemas(meet="a b", hire="name mood", fire="name", walk="steps:array")
            + """
def meet(a, b):
    global ada
    one = people[a]; one += people[b]
    if a == "ada": ada = one
    space.last = (weakref.proxy(one).name, one @ people[b]); trail.append(a + b)
    return len(one)
def hire(name, mood):
    people[name] = Agent(name, mood).link(ada)
    people[name].__class__.rank = lambda self: len(self.name) if False else None
    del Agent.rank
    return sorted(Agent.all)
def fire(name):
    gone = people.pop(name); gone.calm(); trail.insert(0, copy.copy(gone.mood))
    for each in people.values(): each._links[:] = [(r, h) for r, h in each._links if r() is not gone]
    return len(team)
def walk(steps):
    bump(steps); trail.extend(reversed(steps)); trail.pop()
    return reduce(lambda a, b: f"{a}>{b}", space.path)
"""
            + BY_NAME,
            "QUESTION = 'Let them meet.'",
            ANTHROPIC_LOOP,
            "print([(p.name, p.mood, len(p), [(r().name, h) for r, h in p._links]) for p in team.values()], Meta.made, sorted(Agent.all), people['ada'] is ada)",
            "print(space, list(trail), bump.args[0] is space.path, ada @ people['cyd'], people['cyd'] @ ada, hasattr(Agent, 'rank'))",
        ),
        [
            [call("meet", a="ada", b="bob"), call("hire", name="cyd", mood="keen")],
            [call("meet", a="cyd", b="bob"), call("meet", a="ada", b="cyd")],
            [call("fire", name="bob"), call("walk", steps=["n", "e"])],
            "They met.",
        ],
    )
