"""Tools that keep their state in objects of libraries: databases, graphs, pictures, tables, widgets, models."""

from __future__ import annotations

from collections.abc import Iterator

from tests.working_agents.language import BY_NAME
from tests.working_agents.written import (
    ANTHROPIC,
    ANTHROPIC_LOOP,
    OPENAI,
    OPENAI_LOOP,
    AgentNotebook,
    cells,
    schemas,
)
from tests.harness.scripted_model import call


def notebooks() -> Iterator[AgentNotebook]:
    yield from _databases()
    yield from _tables()
    yield from _shown()
    yield from _kept()


def _databases() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "sqlalchemy_in_a_file",
        cells(
            ANTHROPIC,
            f"""
from sqlalchemy import create_engine, func, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
QUESTION = "Hire ada and bob, raise ada."
{schemas(hire="name salary:integer", raise_salary="name by:integer")}

class Base(DeclarativeBase):
    pass

class Person(Base):
    __tablename__ = "people"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    salary: Mapped[int]

engine = create_engine("sqlite:///people.db")
Base.metadata.create_all(engine)

def hire(name, salary):
    with Session(engine) as session:
        session.add(Person(name=name, salary=salary))
        session.commit()
        return str(session.scalar(select(func.count()).select_from(Person)))

def raise_salary(name, by):
    with Session(engine) as session:
        person = session.scalars(select(Person).where(Person.name == name)).one()
        person.salary += by
        session.commit()
        return str(person.salary)
{BY_NAME}""",
            ANTHROPIC_LOOP,
            "with Session(engine) as session:\n    print(session.execute(select(Person.name, Person.salary).order_by(Person.name)).all())",
        ),
        [
            [call("hire", name="ada", salary=10), call("hire", name="bob", salary=9)],
            [call("raise_salary", name="ada", by=5)],
            "Hired.",
        ],
    )
    yield AgentNotebook(
        "sqlalchemy_in_memory",
        cells(
            OPENAI,
            f"""
from sqlalchemy import create_engine, text
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
QUESTION = "Note two films, and rate one."
{schemas("openai", note="title", rate="title stars:integer")}

class Base(DeclarativeBase):
    pass

class Film(Base):
    __tablename__ = "films"
    title: Mapped[str] = mapped_column(primary_key=True)
    stars: Mapped[int] = mapped_column(default=0)

engine = create_engine("sqlite://")
Base.metadata.create_all(engine)
session = Session(engine)

def note(title):
    session.add(Film(title=title))
    session.commit()
    return "noted"

def rate(title, stars):
    film = session.get(Film, title)
    film.stars = stars
    session.commit()
    return f"{{film.title}}: {{film.stars}}"
{BY_NAME}""",
            OPENAI_LOOP,
            'with engine.connect() as connection:\n    print(connection.execute(text("select * from films order by title")).all())',
        ),
        [
            [call("note", title="Alien"), call("note", title="Brazil")],
            [call("rate", title="Alien", stars=5)],
            "Rated.",
        ],
    )
    yield AgentNotebook(
        "cursor_of_a_database",
        cells(
            ANTHROPIC,
            f"""
import sqlite3
QUESTION = "Add two birds and count them."
{schemas(add="bird", count="", peek="")}
memory = sqlite3.connect(":memory:")
cursor = memory.cursor()
cursor.execute("create table birds (name text, seen int default 1)")
memory.commit()
book = sqlite3.connect("birds.db", isolation_level=None)
book.row_factory = sqlite3.Row
book.execute("create table if not exists log (word text)")
rows = cursor.execute("select 1 union select 2 union select 3")

def add(bird):
    cursor.execute("insert into birds (name) values (?)", (bird,))
    book.execute("insert into log values (?)", (bird,))
    return str(cursor.lastrowid)

def count():
    return str(cursor.execute("select count(*) from birds").fetchone()[0])

def peek():
    return str(rows.fetchone())

other = memory.cursor()
rows = other.execute("select 1 union select 2 union select 3")
{BY_NAME}""",
            ANTHROPIC_LOOP,
            "print(cursor.execute('select * from birds').fetchall(), [tuple(row) for row in book.execute('select * from log')])",
            "rows.fetchall(), memory.in_transaction",
        ),
        [
            [call("add", bird="owl"), call("add", bird="kite")],
            [call("count"), call("peek")],
            "Two birds.",
        ],
    )


def _tables() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "frames_in_many_ways",
        cells(
            OPENAI,
            f"""
import numpy as np
import pandas as pd
QUESTION = "Record a sale, label it, drop one."
{schemas("openai", sale="item amount:number", label="row:integer text", drop="row:integer", total="")}
sales = pd.DataFrame({{"item": ["tea"], "amount": [3.0], "day": pd.to_datetime(["2026-03-01"])}})
sales.attrs["source"] = "shop"
amounts = sales["amount"]
by_item = sales.groupby("item")
history = [sales]
kinds = pd.Series(pd.Categorical(["a"], categories=["a", "b"]))

def sale(item, amount):
    sales.loc[len(sales)] = [item, amount, pd.Timestamp("2026-03-02")]
    sales.attrs["changed"] = len(sales)
    return str(len(sales))

def label(row, text):
    if "label" not in sales.columns:
        sales["label"] = ""
    sales.at[row, "label"] = text
    sales.rename(columns={{"day": "date"}}, inplace=True)
    return "labelled"

def drop(row):
    global kinds
    history.append(sales.copy())
    sales.drop(index=row, inplace=True)
    sales.reset_index(drop=True, inplace=True)
    kinds = pd.concat([kinds, pd.Series(["b"])], ignore_index=True)
    return "dropped"

def total():
    sales["total"] = sales["amount"].cumsum()
    sales.index = pd.MultiIndex.from_product([["x"], range(len(sales))], names=["shop", "n"])
    return float(sales["amount"].sum())
{BY_NAME}""",
            OPENAI_LOOP,
            "sales",
            "print(sales.attrs, sales.dtypes.to_dict(), len(history), history[0] is sales, list(kinds))\nhistory[1]",
        ),
        [
            [call("sale", item="milk", amount=2), call("sale", item="jam", amount=4)],
            [call("label", row=1, text="fresh"), call("drop", row=0)],
            [call("total")],
            "6.",
        ],
    )
    yield AgentNotebook(
        "arrays_and_their_views",
        cells(
            ANTHROPIC,
            f"""
import numpy as np
QUESTION = "Raise the row, mask the third, sort, and note."
{schemas(lift="row:integer by:number", hide="at:integer", tidy="", note="name value:number")}
grid = np.zeros((3, 4))
row = grid[1]
flat = grid.reshape(-1)
masked = np.ma.array([1.0, 2.0, 3.0], mask=[0, 0, 0])
table = np.array([(1, 2.0)], dtype=[("n", "i4"), ("x", "f8")])
objects = np.array([None, [1]], dtype=object)
board = np.memmap("board.bin", dtype="u1", mode="w+", shape=(8,))
rng = np.random.default_rng(3)

def lift(row, by):
    grid[row] += by
    flat[0] = -1
    board[row] = 255
    return "lifted"

def hide(at):
    masked[at] = np.ma.masked
    table["x"][0] = 7.5
    return str(masked.count())

def tidy():
    order = rng.permutation(4)
    grid[:] = grid[:, order]
    board.flush()
    return str(order.tolist())

def note(name, value):
    objects[0] = {{name: value}}
    objects[1].append(value)
    return "noted"
{BY_NAME}""",
            ANTHROPIC_LOOP,
            "print(grid, row, flat.sum(), masked, table, objects, list(board))",
            "row[0] = 9\nprint(grid[1, 0], flat[4], rng.integers(100))",
        ),
        [
            [call("lift", row=1, by=2), call("hide", at=2)],
            [call("tidy"), call("note", name="a", value=1)],
            "Done.",
        ],
    )


def _shown() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "picture_painted",
        cells(
            ANTHROPIC,
            f"""
from PIL import Image, ImageDraw
QUESTION = "Paint a red dot and a line."
{schemas(dot="x:integer y:integer colour", line="to:integer", save="name")}
picture = Image.new("RGB", (16, 16), "white")
pen = ImageDraw.Draw(picture)
strokes = 0

def dot(x, y, colour):
    global strokes
    strokes += 1
    picture.putpixel((x, y), {{"red": (255, 0, 0)}}[colour])
    return "painted"

def line(to):
    pen.line([(0, 0), (to, to)], fill="blue")
    picture.info["line"] = to
    return "drawn"

def save(name):
    picture.save(name)
    return "saved"
{BY_NAME}""",
            ANTHROPIC_LOOP,
            "print(strokes, picture.getpixel((3, 4)), picture.getpixel((2, 2)), picture.info)",
            "picture",
        ),
        [
            [call("dot", x=3, y=4, colour="red"), call("line", to=5)],
            [call("save", name="dot.png")],
            "Painted.",
        ],
    )
    yield AgentNotebook(
        "rich_tables_and_progress",
        cells(
            OPENAI,
            f"""
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.tree import Tree
QUESTION = "Add two rows and a branch; advance."
{schemas("openai", row="name value:integer", branch="name", advance="by:integer")}
console = Console(width=60, force_jupyter=False)
table = Table("name", "value", title="Stock")
tree = Tree("root")
progress = Progress(console=console, disable=True)
task = progress.add_task("work", total=10)

def row(name, value):
    table.add_row(name, str(value))
    return str(table.row_count)

def branch(name):
    tree.add(name)
    return "grown"

def advance(by):
    progress.update(task, advance=by)
    return f"{{progress.tasks[0].percentage:.0f}} %"
{BY_NAME}""",
            OPENAI_LOOP,
            "print(table.row_count, len(tree.children), progress.tasks[0].completed)",
            "console.print(table)\nconsole.print(tree)",
        ),
        [
            [call("row", name="tea", value=3), call("row", name="milk", value=1)],
            [call("branch", name="leaf"), call("advance", by=4)],
            "Two rows.",
        ],
        varies=True,
    )
    yield AgentNotebook(
        "widgets_moved",
        cells(
            ANTHROPIC,
            f"""
import ipywidgets as widgets
from IPython.display import display
QUESTION = "Move the bar, then say it is done."
{schemas(progress="to:integer", say="text")}
bar = widgets.IntProgress(value=0, max=10)
label = widgets.Label("waiting")
out = widgets.Output()
changes = []
bar.observe(lambda change: changes.append(change["new"]), names="value")

def progress(to):
    bar.value = to
    return str(bar.value)

def say(text):
    label.value = text
    return "said"
{BY_NAME}""",
            ANTHROPIC_LOOP,
            "print(bar.value, label.value, changes)",
        ),
        [[call("progress", to=3)], [call("progress", to=10), call("say", text="done")], "Done."],
    )
    yield AgentNotebook(
        "figure_updated_by_tools",
        cells(
            OPENAI,
            f"""
import matplotlib.pyplot as plt
QUESTION = "Plot 1 and 4, name it."
{schemas("openai", point="y:number", name_it="title", style="colour")}
figure, axes = plt.subplots()
(line,) = axes.plot([], [])
plt.close(figure)
values = []

def point(y):
    values.append(y)
    line.set_data(range(len(values)), values)
    axes.relim()
    axes.autoscale_view()
    return str(len(values))

def name_it(title):
    axes.set_title(title)
    return "named"

def style(colour):
    line.set_color(colour)
    plt.rcParams["lines.linewidth"] = 3
    return "styled"
{BY_NAME}""",
            OPENAI_LOOP,
            "print(values, axes.get_title(), list(line.get_ydata()), line.get_color(), plt.rcParams['lines.linewidth'])",
            "figure",
        ),
        [
            [call("point", y=1), call("point", y=4)],
            [call("name_it", title="Squares"), call("style", colour="red")],
            "Plotted.",
        ],
    )
    yield AgentNotebook(
        "bars_of_the_program",
        cells(
            ANTHROPIC,
            f"""
from tqdm import tqdm
import sys
QUESTION = "Do three steps."
{schemas(step="name", finish="")}
bar = tqdm(total=3, file=sys.stdout, ncols=60, bar_format="{{desc}} {{n_fmt}}/{{total_fmt}}")
names = []

def step(name):
    bar.set_description(name)
    bar.update(1)
    names.append(name)
    return f"{{bar.n}} of {{bar.total}}"

def finish():
    bar.close()
    tqdm.write("finished")
    return "closed"
{BY_NAME}""",
            ANTHROPIC_LOOP,
            "print(bar.n, names, bar.desc)",
        ),
        [
            [call("step", name="load"), call("step", name="fit")],
            [call("step", name="save"), call("finish")],
            "Three steps.",
        ],
    )


def _kept() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "graph_of_nodes",
        cells(
            OPENAI,
            f"""
import networkx as nx
QUESTION = "Connect a and b, then b and c."
{schemas("openai", connect="one other weight:number", cut="node", degree="node")}
graph = nx.DiGraph(name="roads")
graph.add_node("a", kind="town")
undirected = nx.Graph()

def connect(one, other, weight):
    graph.add_edge(one, other, weight=weight)
    undirected.add_edge(one, other)
    graph.nodes[one]["seen"] = graph.nodes[one].get("seen", 0) + 1
    return str(graph.number_of_edges())

def cut(node):
    graph.remove_node(node)
    graph.graph["cut"] = node
    return "cut"

def degree(node):
    return str(graph.degree(node))
{BY_NAME}""",
            OPENAI_LOOP,
            "print(graph.nodes(data=True), graph.edges(data=True), graph.graph, undirected.edges)",
            "nx.shortest_path(graph, 'a', 'c'), list(graph.adj['a']), list(graph.pred['c'])",
        ),
        [
            [
                call("connect", one="a", other="b", weight=2),
                call("connect", one="b", other="c", weight=1),
            ],
            [call("connect", one="c", other="d", weight=1), call("degree", node="b")],
            [call("cut", node="d")],
            "Connected.",
        ],
    )
    yield AgentNotebook(
        "caches_and_sorted_lists",
        cells(
            ANTHROPIC,
            f"""
import time
from cachetools import LRUCache, TTLCache, cached
from sortedcontainers import SortedDict, SortedList
QUESTION = "Score ada and bob."
{schemas(score="who points:number", best="", ask="what")}
scores, ranking = SortedDict(), SortedList(key=lambda pair: -pair[1])
recent = LRUCache(maxsize=2)
fresh = TTLCache(maxsize=10, ttl=300)
looked_up = []

def score(who, points):
    scores[who] = points
    ranking.add((who, points))
    recent[who] = points
    fresh[who] = points
    return str(ranking[0])

def best():
    return ranking[0][0]

@cached(LRUCache(maxsize=8))
def ask(what):
    looked_up.append(what)
    return what.upper()
{BY_NAME}""",
            ANTHROPIC_LOOP,
            "print(scores, list(ranking), list(recent), recent.currsize, sorted(fresh), looked_up)",
            "print(ask('tea'), looked_up, ranking.pop(0))",
        ),
        [
            [call("score", who="bob", points=1), call("score", who="ada", points=5)],
            [call("best"), call("ask", what="tea"), call("ask", what="tea")],
            [call("score", who="eve", points=3)],
            "Ada leads.",
        ],
        varies=True,
    )
    yield AgentNotebook(
        "models_with_private_parts",
        cells(
            OPENAI,
            f"""
import attrs
from typing import Any, Literal
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, computed_field, field_validator
QUESTION = "Add two lines and pay."
{schemas("openai", add_line="what price:number", pay="", extra="name value", adjust="what by:number")}

class Line(BaseModel):
    model_config = ConfigDict(validate_assignment=True)
    what: str
    price: float = Field(ge=0)
    @field_validator("what")
    @classmethod
    def strip(cls, value):
        return value.strip().lower()

class Bill(BaseModel):
    model_config = ConfigDict(extra="allow")
    lines: list[Line] = []
    status: Literal["open", "paid"] = "open"
    _changes: int = PrivateAttr(0)
    _log: list[str] = PrivateAttr(default_factory=list)
    @computed_field
    @property
    def total(self) -> float:
        return sum(line.price for line in self.lines)

@attrs.define
class Wallet:
    money: float = 100
    notes: list = attrs.field(factory=list)
    parent: Any = attrs.field(default=None, repr=False)

bill, wallet = Bill(), Wallet()
child = Wallet(parent=wallet)
copies = []

def add_line(what, price):
    bill.lines.append(Line(what=what, price=price))
    bill._changes += 1
    bill._log.append(what)
    return bill.model_dump_json()

def pay():
    bill.status = "paid"
    wallet.money -= bill.total
    child.parent.notes.append("paid")
    copies.append(bill.model_copy(deep=True))
    return str(wallet.money)

def extra(name, value):
    setattr(bill, name, value)
    return "set"

def adjust(what, by):
    next(line for line in bill.lines if line.what == what).price += by
    return "adjusted"
{BY_NAME}""",
            OPENAI_LOOP,
            "print(bill, bill.total, bill._changes, bill._log, sorted(bill.model_fields_set), wallet, child.parent is wallet, copies)",
            "bill.model_extra, copies[0].lines[0] is bill.lines[0]",
        ),
        [
            [call("add_line", what=" Tea ", price=3), call("add_line", what="Cake", price=4)],
            [call("extra", name="table", value="7"), call("adjust", what="tea", by=1)],
            [call("pay")],
            "Paid.",
        ],
    )
