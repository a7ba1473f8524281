"""Notebooks of people who count: data scientists, researchers, teachers; none of them thinks of a replay."""

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
    yield from _scientists()
    yield from _frames()
    yield from _teachers()
    yield from _archivists()


def _scientists() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "model_fitted_by_slotted_callables",
        cells(
            ANTHROPIC + "import numpy as np",
            """
class OnlineRegression:
    __slots__ = ("weights", "seen", "rate", "_loss", "__weakref__")

    def __init__(self, size, rate=0.1):
        self.weights = np.zeros(size)
        self.seen, self.rate, self._loss = 0, rate, []

    def partial_fit(self, x, y):
        error = y - x @ self.weights
        self.weights += self.rate * error * x
        self.seen += 1
        self._loss.append(round(float(error ** 2), 6))
        return self

    @property
    def loss(self):
        return self._loss[-1] if self._loss else None

model = OnlineRegression(2)
book = np.zeros(3, dtype=[("name", "U8"), ("x", "f8", (2,)), ("used", "?")])
row = iter(range(len(book)))
counts = np.zeros(4, dtype=np.int64)
""",
            schemas(observe="name a:number b:number y:number", tally="numbers:array")
            + """
class Observe:
    __slots__ = ("model", "last")

    def __init__(self, model): self.model, self.last = model, None

    def __call__(self, name, a, b, y):
        at = next(row)
        book[at] = (name, (a, b), True)
        self.last = self.model.partial_fit(book["x"][at], y)
        return {"loss": self.last.loss, "seen": self.model.seen}

class Tally:
    calls = 0
    def __call__(self, numbers):
        type(self).calls += 1
        np.add.at(counts, numbers, 1)
        np.maximum(counts, 1, out=floor)
        return counts.tolist()

floor = np.empty_like(counts)
floor[:] = 0
run_tools = {"observe": Observe(model), "tally": Tally()}
QUESTION = "Two observations, please, and a tally."
def run_tool(name, arguments): return run_tools[name](**arguments)
""",
            ANTHROPIC_LOOP,
            "print(model.weights, model.seen, model.loss, run_tools['observe'].last is model)",
            "print(book, counts, floor, Tally.calls, next(row, 'no more'))",
            "model.partial_fit(np.array([1.0, 1.0]), 3.0).weights.round(4)",
        ),
        [
            [call("observe", name="a", a=1, b=2, y=3), call("tally", numbers=[0, 2, 2])],
            [call("observe", name="b", a=0, b=1, y=1)],
            "Fitted.",
        ],
    )
    yield AgentNotebook(
        "study_by_pipes_and_curries",
        cells(
            OPENAI,
            """
from toolz import curry, pipe, compose, groupby, memoize, sliding_window
import networkx as nx
import operator, itertools, statistics

roads = nx.DiGraph(name="roads")
roads.add_edge("home", "mill", km=2)
kept = {}
ids = itertools.count(1)
""",
            schemas("openai", road="start end km:integer", rename="old new", route="start end")
            + """
@curry
def attach(graph, start, end, km):
    graph.add_edge(start, end, km=km, id=next(ids))
    graph.nodes[end].setdefault("seen_from", []).append(start)
    return graph

@memoize(cache=kept)
def length(start, end):
    return nx.shortest_path_length(roads, start, end, weight="km")

add_road = attach(roads)
describe = compose(" ".join, sorted, list)

def road(start, end, km):
    return pipe(add_road(start, end, km), describe)

def rename(old, new):
    nx.relabel_nodes(roads, {old: new}, copy=False)
    roads.graph.setdefault("renamed", {})[old] = new
    return describe(roads)

def route(start, end):
    path = nx.shortest_path(roads, start, end, weight="km")
    for one, other in sliding_window(2, path):
        roads[one][other]["used"] = roads[one][other].get("used", 0) + 1
    return f"{path} {length(start, end)} km"
"""
            + BY_NAME,
            "QUESTION = 'Build roads, rename the mill, find a route.'",
            OPENAI_LOOP,
            "print(list(roads.edges(data=True)), dict(roads.nodes(data=True)), roads.graph)",
            "print(kept, length('home', 'pier'), groupby(len, roads), next(ids))",
        ),
        [
            [
                call("road", start="mill", end="pier", km=5),
                call("road", start="home", end="pier", km=9),
            ],
            [call("rename", old="mill", new="bakery")],
            [call("route", start="home", end="pier")],
            "Seven kilometres.",
        ],
    )
    yield AgentNotebook(
        "simulation_that_tools_advance",
        cells(
            ANTHROPIC
            + "from collections import Counter, OrderedDict, ChainMap, defaultdict, deque, UserDict",
            """
import bisect, heapq, itertools
def engine():
    clock, total = 0, 0
    while True:
        step = yield {"clock": clock, "total": total}
        if step is None:
            step = 1
        clock += step
        total += clock * step

machine = engine(); next(machine)
letters = itertools.cycle("abc")
pairs = enumerate(zip(range(100), letters), start=10)
agenda, ranks = [], [3, 8]
recent = deque([0], maxlen=3)
seen, order = Counter(), OrderedDict(a=1, b=2, c=3)
defaults = {"speed": 1}
options = ChainMap({}, {"unit": "h"}, defaults)

class Stock(UserDict):
    def __missing__(self, key):
        self.misses = getattr(self, "misses", 0) + 1
        return 0
stock = Stock()
tree = defaultdict(lambda: defaultdict(list))
""",
            schemas(step="hours:integer", book="name at:integer", look="key")
            + """
def step(hours):
    state = machine.send(hours)
    recent.append(state["clock"]); recent.rotate(1)
    bisect.insort(ranks, state["total"])
    number, (index, letter) = next(pairs)
    order.move_to_end(letter, last=False)
    seen.update({letter: hours})
    return f"{state} {number}{letter}"

def book(name, at):
    heapq.heappush(agenda, (at, name))
    tree[name[0]][at].append(name)
    stock[name] += at
    options.maps.insert(0, {"by": name}); options["speed"] = at
    return heapq.nsmallest(1, agenda)

def look(key):
    seen.subtract(key); +seen
    defaults.update(speed=defaults["speed"] * 2)
    return f"{options.get(key)} {stock['nothing']} {heapq.heappop(agenda)}"
"""
            + BY_NAME,
            "QUESTION = 'Step twice, book, look.'\nprint(next(letters))",
            ANTHROPIC_LOOP,
            "print(agenda, ranks, recent, seen, order, options, stock, stock.misses, {k: dict(v) for k, v in tree.items()})",
            "print(next(machine), next(pairs), next(letters), options['speed'], defaults)",
        ),
        [
            [call("step", hours=2), call("step", hours=3)],
            [call("book", name="boat", at=4), call("book", name="bike", at=2)],
            [call("look", key="speed"), call("step", hours=1)],
            "Simulated.",
        ],
    )
    yield AgentNotebook(
        "seeded_survey_with_stamps",
        cells(
            OPENAI
            + "import random, uuid, time, secrets, statistics\nfrom datetime import datetime, timedelta, timezone\nimport numpy as np",
            """
people = ["ada", "bob", "cyd", "dan"]
answers = {}
rng = random.Random("survey")
bits = np.random.Generator(np.random.PCG64(5))
started = datetime.now(timezone.utc)
stopwatch = time.perf_counter()
""",
            schemas("openai", draw="count:integer", answer="who score:number", close="")
            + """
def draw(count):
    rng.shuffle(people)
    picked = rng.sample(people, count)
    answers.setdefault("ids", {}).update((who, str(uuid.uuid4())) for who in picked)
    answers["seed"] = random.getstate()[1][0] and secrets.token_hex(2)
    return picked

def answer(who, score):
    answers.setdefault(who, []).append({
        "score": score + float(bits.normal()), "at": datetime.now(timezone.utc).isoformat(), "took": time.perf_counter() - stopwatch,
        "id": uuid.uuid5(uuid.NAMESPACE_DNS, who).hex, "noise": np.random.rand(2).round(3).tolist()})
    bits.shuffle(people)
    random.seed(len(people) + score)
    return len(answers[who])

def close():
    global started
    started, before = datetime.now(timezone.utc) + timedelta(days=1), started
    answers["took"] = (started - before).days
    answers["next"] = random.random()
    return f"closed {answers['took']}"
"""
            + BY_NAME,
            "QUESTION = 'Draw two, ask ada, close.'",
            OPENAI_LOOP,
            "print(people, answers, started)",
            "print(rng.random(), bits.integers(100), random.random(), np.random.rand())",
            "print(datetime.now(timezone.utc) < started, statistics.mean(each['score'] for each in answers['ada']))",
        ),
        [
            [call("draw", count=2)],
            [call("answer", who="ada", score=4), call("answer", who="ada", score=2)],
            [call("close")],
            "Closed.",
        ],
        varies=True,
    )


def _frames() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "categories_and_levels",
        cells(
            ANTHROPIC + "import pandas as pd",
            """
index = pd.MultiIndex.from_product([["north", "south"], [2023, 2024]], names=["region", "year"])
sales = pd.DataFrame({"units": [1, 2, 3, 4], "grade": pd.Categorical(["low", "low", "high", "high"], ["low", "high"], ordered=True)}, index=index)
sales.attrs["unit"] = "crates"
north = sales.loc["north"]
log = pd.Series(dtype="object", name="log")
windows = {}
""",
            schemas(sell="region year:integer units:integer", regrade="region grade", report="")
            + """
def sell(region, year, units):
    sales.loc[(region, year), "units"] = units
    sales.sort_index(inplace=True)
    log.loc[len(log)] = f"{region} {year}"
    return int(sales["units"].sum())

def regrade(region, grade):
    global sales
    if grade not in sales["grade"].cat.categories:
        sales["grade"] = sales["grade"].cat.add_categories([grade])
    sales.loc[pd.IndexSlice[region, :], "grade"] = grade
    extra = pd.DataFrame({"units": [0], "grade": [grade]}, index=pd.MultiIndex.from_tuples([("west", 2024)], names=sales.index.names))
    sales = pd.concat([sales, extra.astype({"grade": sales["grade"].dtype})])
    sales.attrs["regraded"] = region
    return sales.shape

def report():
    windows["roll"] = sales["units"].rolling(2, min_periods=1)
    windows["by"] = sales.groupby(level="region", observed=True)
    sales.insert(0, "share", sales["units"] / sales["units"].sum())
    sales.rename_axis(index={"year": "season"}, inplace=True)
    sales.flags.allows_duplicate_labels = False
    return sales.to_csv()
"""
            + BY_NAME,
            "QUESTION = 'Sell in the south, regrade the north, report.'",
            ANTHROPIC_LOOP,
            "sales",
            "print(sales.dtypes, sales.attrs, sales.flags, log.tolist(), north['units'].tolist())",
            "print(windows['by']['units'].sum(), windows['roll'].mean().tolist())",
        ),
        [
            [
                call("sell", region="south", year=2024, units=9),
                call("sell", region="west", year=2022, units=1),
            ],
            [call("regrade", region="north", grade="top")],
            [call("report")],
            "Reported.",
        ],
    )
    yield AgentNotebook(
        "polars_columns_and_files",
        cells(
            OPENAI + "import polars as pl\nfrom pathlib import Path",
            """
class Warehouse:
    frame = pl.DataFrame({"item": ["tea"], "left": [5]}, schema={"item": pl.String, "left": pl.Int64})
    history: list[pl.DataFrame] = []
    lazy = None

    @classmethod
    def snapshot(cls):
        cls.history.append(cls.frame.clone())
        return cls

tags = pl.Series("tags", ["hot"])
""",
            schemas("openai", store="item left:integer", sell="item", export="name")
            + """
def store(item, left):
    Warehouse.snapshot().frame.extend(pl.DataFrame({"item": [item], "left": [left]}))
    tags.append(pl.Series([item[:2]]))
    return Warehouse.frame.height

def sell(item):
    Warehouse.frame = Warehouse.snapshot().frame.with_columns(pl.when(pl.col("item") == item).then(pl.col("left") - 1).otherwise("left").alias("left"))
    Warehouse.lazy = Warehouse.frame.lazy().filter(pl.col("left") > 1)
    return Warehouse.frame.rows()

def export(name):
    Path("out").mkdir(exist_ok=True)
    Warehouse.frame.write_csv(f"out/{name}.csv")
    Warehouse.frame.write_ndjson(f"out/{name}.jsonl")
    with open("out/index.txt", "a+") as index:
        index.write(name + "\\n"); index.seek(0)
        return index.read()
"""
            + BY_NAME,
            "QUESTION = 'Store rum, sell tea, export.'",
            OPENAI_LOOP,
            "print(Warehouse.frame, len(Warehouse.history), tags)",
            "print(Warehouse.lazy.collect(), pl.read_csv('out/may.csv').equals(Warehouse.frame), sorted(map(str, Path('out').iterdir())))",
        ),
        [
            [call("store", item="rum", left=2)],
            [call("sell", item="tea"), call("sell", item="rum")],
            [call("export", name="may")],
            "Exported.",
        ],
    )


def _teachers() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "class_register_of_a_teacher",
        cells(
            "from openai import OpenAI\nimport json, csv, functools\nai = OpenAI()",
            """
@functools.total_ordering
class Student:
    count = 0
    def __init__(self, name):
        Student.count += 1
        self.name = name
        self.marks = []
    def __repr__(self): return self.name + str(self.marks)
    def __eq__(self, other): return self.name == other.name
    def __lt__(self, other): return sum(self.marks) < sum(other.marks)
    def __hash__(self): return hash(self.name)
    def __iadd__(self, mark):
        self.marks += [mark]
        return self
    def __len__(self): return len(self.marks)
    def __bool__(self): return True
    def __getitem__(self, at): return self.marks[at]
    def __setitem__(self, at, mark): self.marks[at] = mark
    def __contains__(self, mark): return mark in self.marks
    def __del__(self): Student.count -= 1

pupils = [Student("Ada"), Student("Bob")]
seats = [[None] * 3 for _ in range(2)]
present = set(pupils)
text = ""
best = pupils[0]
""",
            """
tools = []
def tool(f):
    names = f.__code__.co_varnames[:f.__code__.co_argcount]
    tools.append({"type": "function", "function": {"name": f.__name__, "description": f.__doc__, "parameters": {
        "type": "object", "properties": {n: {"type": "string"} for n in names}, "required": list(names)}}})
    return f

@tool
def mark(name, points):
    "Give points."
    global text, best
    for i in range(len(pupils)):
        if pupils[i].name == name:
            pupils[i] += int(points)
            text += name[0] + points + ";"
            best = max(pupils)
            return "now " + str(pupils[i])
    pupils.append(Student(name))
    present.add(pupils[-1])
    return mark(name, points)

@tool
def seat(name, place):
    "Seat a pupil."
    r, c = divmod(int(place), 3)
    seats[r][c], = [p for p in pupils if p.name == name]
    seats[r][c][0] = 6
    return str(seats)

@tool
def leave(name):
    "A pupil leaves."
    global pupils
    gone = [p for p in pupils if p.name == name]
    pupils = sorted([p for p in pupils if p.name != name], reverse=True)
    for r in seats:
        for c in range(3):
            if r[c] and r[c] in gone: r[c] = None
    present.difference_update(gone)
    with open("class.csv", "w", newline="") as f:
        w = csv.DictWriter(f, ["name", "sum"])
        w.writeheader()
        w.writerows({"name": p.name, "sum": sum(p.marks)} for p in pupils)
    return str(len(pupils))
""",
            taped("""
chat = [{"role": "system", "content": "You help a teacher."}, {"role": "user", "content": input("Question: ") if False else "Mark the class."}]
for turn in range(6):
    out = ai.chat.completions.create(model="gpt-4o-mini", messages=chat, tools=tools)
    chat += [out.choices[0].message]
    if out.choices[0].finish_reason != "tool_calls":
        print(out.choices[0].message.content)
        break
    for c in out.choices[0].message.tool_calls:
        print("->", c.function.name, c.function.arguments)
        try:
            answer = eval(c.function.name)(**json.loads(c.function.arguments))
        except Exception as e:
            answer = f"error: {e!r}"
        chat.append(dict(role="tool", tool_call_id=c.id, content=answer))
"""),
            "print(pupils, seats, sorted(p.name for p in present), text, best)",
            "print(open('class.csv').read())\nprint(seats[0][1] in pupils, any(seats[0][1] is p for p in pupils), turn, answer)",
            "pupils[0] += 5\nprint(max(pupils), pupils[0] is best)",
        ),
        [
            [call("mark", name="Ada", points="3"), call("mark", name="Cyd", points="5")],
            [call("seat", name="Cyd", place="1"), call("seat", name="Zoe", place="2")],
            [call("leave", name="Bob")],
            "Marked.",
        ],
    )
    yield AgentNotebook(
        "board_game_shown_in_place",
        cells(
            ANTHROPIC
            + "from IPython.display import display, HTML, Markdown, clear_output\nimport threading",
            """
class Board:
    shape = (3, 3)
    def __init__(self):
        self.cells = [["."] * 3 for _ in range(3)]
        self.handle = display(self, display_id="board")
        self.moves = []
    def _repr_html_(self): return "<pre>" + "\\n".join(map("".join, self.cells)) + "</pre>"
    def __repr__(self): return "/".join(map("".join, self.cells))
    def place(self, who, at):
        r, c = divmod(at, 3)
        if self.cells[r][c] != ".":
            raise LookupError(f"{at} is taken")
        self.cells[r][c] = who
        self.moves.append((who, at))
        t = threading.Thread(target=self.handle.update, args=(self,)); t.start(); t.join()

board = Board()
note = display(Markdown("_waiting_"), display_id=True)
undone = []
""",
            schemas(play="who at:integer", undo="", say="text")
            + """
def play(who, at):
    board.place(who, at)
    note.update(Markdown(f"{who} plays **{at}**"))
    return repr(board)

def undo():
    who, at = board.moves.pop()
    undone.append((who, at))
    board.cells[at // 3][at % 3] = "."
    board.handle.update(board)
    return f"took back {at}"

def say(text):
    clear_output(wait=True)
    display(HTML(f"<i>{text}</i>"), metadata={"text/html": {"isolated": True}})
    display({"text/plain": text, "application/json": {"said": text}}, raw=True)
    note.display(Markdown("again"))
    return "said"

def run_tool(name, arguments):
    try:
        return {"play": play, "undo": undo, "say": say}[name](**arguments)
    except LookupError as why:
        board.moves.append(why)
        return f"no: {why}"
""",
            "QUESTION = 'Play.'",
            ANTHROPIC_LOOP,
            "print(board.moves, undone)\nboard",
            "board.place('z', 8)\nnote.update(Markdown('end'))",
        ),
        [
            [call("play", who="x", at=4), call("play", who="o", at=4)],
            [call("undo")],
            [call("say", text="hm"), call("play", who="o", at=0)],
            "Good game.",
        ],
        raises=True,
    )


def _archivists() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "shelves_and_settings_on_disk",
        cells(
            ANTHROPIC
            + "import configparser, csv, dbm.dumb, gzip, json, os, pickle, shelve, tempfile, tomllib, zipfile\nfrom pathlib import Path",
            """
base = Path("archive"); base.mkdir()
settings = configparser.ConfigParser()
settings.read_string("[main]\\nlevel = 1\\n")
catalogue = dbm.dumb.open("archive/cat", "c")
project = tomllib.loads(Path("project.toml").read_text())
paths = {}
""",
            schemas(store="key value", setting="name value", publish="title", drop="key")
            + """
def store(key, value):
    with gzip.open(base / "log.jsonl.gz", "at", mtime=0) if False else open(base / "log.jsonl", "a") as log:
        print(json.dumps({key: value}), file=log)
    catalogue[key] = value.encode(); catalogue.sync()
    with shelve.open(str(base / "things")) as things:
        things[key] = {"value": value, "n": len(things)}
    paths[key] = (base / f"{key}.pkl")
    paths[key].write_bytes(pickle.dumps({key: value}))
    return sorted(k.decode() for k in catalogue.keys())

def setting(name, value):
    if not settings.has_section("extra"):
        settings.add_section("extra")
    settings["extra"][name] = value
    settings.set("main", "level", str(settings.getint("main", "level") + 1))
    with open("settings.ini", "w") as out:
        settings.write(out)
    project["tool"]["names"].append(name)
    return dict(settings["extra"])

def publish(title):
    descriptor, name = tempfile.mkstemp(dir=base, suffix=".part")
    with os.fdopen(descriptor, "w") as out:
        out.write(title.upper())
    os.replace(name, base / "page.txt")
    paths["latest"] = base / "latest"
    if paths["latest"].is_symlink():
        paths["latest"].unlink()
    paths["latest"].symlink_to("page.txt")
    (base / "done").touch()
    os.utime(base / "done", (1_000_000_000, 1_000_000_000))
    return paths["latest"].read_text()

def drop(key):
    del catalogue[key]
    old = paths.pop(key)
    paths[key + "_old"] = old.rename(old.with_suffix(".old"))
    with zipfile.ZipFile(base / "old.zip", "w") as pack:
        pack.writestr(zipfile.ZipInfo(old.name), b"x")
    return str(paths[key + "_old"])
"""
            + BY_NAME,
            "QUESTION = 'Store two, set, publish, drop one.'",
            ANTHROPIC_LOOP,
            "print(sorted(os.listdir(base)), paths, project)",
            "print({s: dict(settings[s]) for s in settings}, Path('settings.ini').read_text())",
            "print(dict((k, catalogue[k]) for k in sorted(catalogue.keys())), (base / 'done').stat().st_mtime, os.readlink(base / 'latest'))",
            "with shelve.open(str(base / 'things')) as things:\n    print(dict(things))\ncatalogue.close()",
        ),
        [
            [call("store", key="a", value="one"), call("store", key="b", value="two")],
            [call("setting", name="colour", value="red")],
            [call("publish", title="news"), call("drop", key="a"), call("publish", title="late")],
            "Archived.",
        ],
        {"project.toml": "[tool]\nnames = ['x']\n"},
    )
    yield AgentNotebook(
        "frozen_records_changed_anyway",
        cells(
            OPENAI
            + "import enum, types\nfrom dataclasses import InitVar, dataclass, field, replace, asdict, fields\nfrom typing import NamedTuple, ClassVar",
            """
class Right(enum.Flag):
    READ = enum.auto(); WRITE = enum.auto(); ADMIN = READ | WRITE

class Level(enum.IntEnum):
    LOW = 1; HIGH = 2
    @property
    def up(self): return Level(min(self + 1, 2))

class Point(NamedTuple):
    x: int = 0
    y: int = 0
    tags: tuple = ()

@dataclass(frozen=True, slots=True)
class User:
    name: str
    rights: Right = Right(0)
    at: Point = Point()
    level: Level = Level.LOW
    extra: dict = field(default_factory=dict, compare=False)
    salt: InitVar[int] = 0
    total: ClassVar[list] = []
    def __post_init__(self, salt):
        object.__setattr__(self, "name", self.name.title())
        self.total.append(salt)

users = {"ada": User("ada", salt=3)}
view = types.MappingProxyType(users)
names = frozenset(users)
space = types.SimpleNamespace(owner=users["ada"], last=None)
history = ()
""",
            schemas("openai", grant="name right", move="name x:integer", promote="name")
            + """
def grant(name, right):
    global names
    user = users.setdefault(name, User(name, salt=len(users)))
    object.__setattr__(user, "rights", user.rights | Right[right])
    user.extra[right] = Right[right]
    names |= {name}
    return str(user.rights)

def move(name, x):
    global history
    user = view[name]
    users[name] = replace(user, at=user.at._replace(x=x, tags=(*user.at.tags, name)), salt=7)
    history += ((name, user.at, users[name].at),)
    space.last = users[name].at
    return str(space.last)

def promote(name):
    users[name] = replace(users[name], level=users[name].level.up, salt=0)
    space.__dict__["promoted"] = [*getattr(space, "promoted", ()), users[name]]
    Right.READ._owners = [*getattr(Right.READ, "_owners", []), name]
    return repr(users[name].level)
"""
            + BY_NAME,
            "QUESTION = 'Grant, move, promote.'",
            OPENAI_LOOP,
            "print(users, dict(view) == users, sorted(names), User.total)",
            "print(space, history, space.owner is users['ada'], space.promoted[0] is users['ada'], Right.READ._owners)",
            "print(users['bob'].rights is Right.ADMIN, users['ada'].level is Level.HIGH, asdict(users['bob']))",
        ),
        [
            [call("grant", name="bob", right="READ"), call("grant", name="bob", right="WRITE")],
            [call("grant", name="ada", right="READ"), call("move", name="ada", x=4)],
            [call("promote", name="ada")],
            "Granted.",
        ],
    )
    yield AgentNotebook(
        "runs_traced_by_contexts",
        cells(
            ANTHROPIC + "import contextlib, contextvars, logging, sys, functools, time",
            """
run_id = contextvars.ContextVar("run_id", default="-")
spans = []
tokens = {}

class Records(logging.Handler):
    def __init__(self):
        super().__init__(logging.INFO)
        self.records = []
    def emit(self, record):
        self.records.append((record.run, record.levelname, self.format(record)))

class Runs(logging.Filter):
    dropped = 0
    def filter(self, record):
        record.run = run_id.get()
        Runs.dropped += record.msg.startswith("skip")
        return not record.msg.startswith("skip")

logger = logging.getLogger("lab"); logger.setLevel(logging.DEBUG); logger.propagate = False
keeper = Records(); keeper.addFilter(Runs()); keeper.setFormatter(logging.Formatter("%(name)s|%(message)s"))
logger.addHandler(keeper)
screen = logging.StreamHandler(sys.stdout); screen.setFormatter(logging.Formatter("%(levelname)s %(message)s")); logger.addHandler(screen)
adapter = logging.LoggerAdapter(logger, {"who": "ada"})
stack = contextlib.ExitStack()
""",
            schemas(open_run="name", measure="value:number", close_run="", loud="")
            + """
@contextlib.contextmanager
def span(name):
    spans.append([name, "open"])
    here = spans[-1]
    try:
        yield here
    finally:
        here[1] = "closed"
        logger.info("span %s of %d", name, len(spans))

def traced(f):
    @functools.wraps(f)
    def inner(*a, **k):
        with span(f.__name__) as here:
            here.append(f(*a, **k))
            return here[-1]
    inner.calls = []
    return inner

@traced
def open_run(name):
    tokens[name] = run_id.set(name)
    stack.callback(spans.append, f"end of {name}")
    adapter.warning("run %s", name)
    return name

@traced
def measure(value):
    measure.calls.append(value)
    logger.debug("skip me"); logger.info("value %.1f", value)
    if value < 0:
        raise ValueError("negative")
    return value * 2

@traced
def close_run():
    stack.close()
    (name, token), = tokens.items()
    run_id.reset(token); tokens.clear()
    return name

@traced
def loud():
    logger.setLevel(logging.ERROR); screen.setLevel(logging.CRITICAL)
    logger.getChild("sub").disabled = True
    logger.addFilter(lambda record: True) if False else None
    return "quiet"

def run_tool(name, arguments):
    try:
        return globals()[name](**arguments)
    except ValueError:
        logger.exception("failed")
        return "failed"
""",
            "QUESTION = 'Open a run, measure, close.'",
            ANTHROPIC_LOOP,
            "print(spans, measure.calls, tokens, run_id.get())",
            "print([(r, l, t.splitlines()[0]) for r, l, t in keeper.records], Runs.dropped)",
            "logger.info('not shown'); logger.error('shown'); print(logging.getLogger('lab.sub').disabled, screen.level)",
        ),
        [
            [call("open_run", name="r1"), call("measure", value=2)],
            [call("measure", value=-1)],
            [call("close_run"), call("loud")],
            "Traced.",
        ],
        varies=True,
    )
    yield AgentNotebook(
        "dispatching_methods_and_proxies",
        cells(
            OPENAI + "import functools, weakref, abc, collections.abc",
            """
class Tracked:
    def __set_name__(self, owner, name): self.name = name; owner.tracked = [*getattr(owner, "tracked", []), name]
    def __get__(self, instance, owner): return self if instance is None else instance.__dict__.get(self.name, 0)
    def __set__(self, instance, value):
        instance.changes.append((self.name, self.__get__(instance, None), value))
        instance.__dict__[self.name] = value

class Plugin(abc.ABC):
    registry = {}
    def __init_subclass__(cls, /, label=None, **kw):
        super().__init_subclass__(**kw)
        Plugin.registry[label or cls.__name__.lower()] = cls
    @abc.abstractmethod
    def run(self, text): ...

class LogMixin:
    def note(self, *words): self.__dict__.setdefault("notes", []).append(" ".join(map(str, words))); return self

class Ledger(LogMixin, Plugin, label="ledger"):
    balance = Tracked()
    limit = Tracked()
    def __init__(self): self.changes = []; self._name = "main"
    @property
    def name(self): return self._name
    @name.setter
    def name(self, value): self._name, self.renamed = value.strip(), True
    @name.deleter
    def name(self): self._name = None
    @functools.cached_property
    def digest(self): self.note("digest"); return len(self.changes) * 100
    @functools.singledispatchmethod
    def add(self, what): raise TypeError(type(what))
    @add.register
    def _(self, what: int): self.balance += what; return self
    @add.register
    def _(self, what: str): return self.add(int(what)).note("text", what)
    @add.register(list)
    def _(self, what): return [self.add(each) for each in what][-1]
    def run(self, text): return f"{self.name}: {self.balance}"

class Proxy:
    def __init__(self, target): object.__setattr__(self, "_target", target); object.__setattr__(self, "_asked", [])
    def __getattr__(self, name): self._asked.append(name); return getattr(self._target, name)
    def __setattr__(self, name, value): self._asked.append("=" + name); setattr(self._target, name, value)
    def __delattr__(self, name): delattr(self._target, name)

ledger = Plugin.registry["ledger"]()
proxy = Proxy(ledger)
alive = weakref.WeakSet([ledger])
ended = []
""",
            schemas("openai", add="what:array", rename="name", freeze="")
            + """
def add(what): return proxy.add(what).run("")

def rename(name):
    proxy.name = f" {name} "
    if not name:
        del proxy.name
    proxy.limit = proxy.digest + 1
    return str(proxy.name)

def freeze():
    other = Plugin.registry["ledger"]()
    other.balance = 1
    alive.add(other); ended.append(other)
    weakref.finalize(other, ended.append, "gone")
    ledger.__dict__.pop("digest", None)
    return sorted(Plugin.registry)
"""
            + BY_NAME,
            "QUESTION = 'Add, rename.'",
            OPENAI_LOOP,
            "print(ledger.__dict__, proxy._asked, Plugin.registry, len(alive))",
            "print(ledger.run(''), ledger.digest, ended[0].changes, Ledger.tracked)",
        ),
        [
            [call("add", what=[5, "7"]), call("add", what=[{}])][:1],
            [call("rename", name="petty cash"), call("rename", name="")],
            [call("freeze"), call("add", what=[1])],
            "Added.",
        ],
    )
