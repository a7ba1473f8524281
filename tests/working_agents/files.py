"""Tools that make, change and remove files, and keep databases."""

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
)
from tests.harness.scripted_model import call


def notebooks() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "diary_appended",
        cells(
            ANTHROPIC,
            f"""
QUESTION = "Note that it rained and that the cat came home."
{schemas(write_diary="entry", read_diary="")}

def write_diary(entry):
    with open("diary.txt", "a") as file:
        file.write(entry + "\\n")
    return "written"

def read_diary():
    return open("diary.txt").read()

def run_tool(name, arguments):
    return {{"write_diary": write_diary, "read_diary": read_diary}}[name](**arguments)
""",
            ANTHROPIC_LOOP,
            "print(open('diary.txt').read())",
        ),
        [
            [call("write_diary", entry="it rained")],
            [call("write_diary", entry="the cat is home")],
            [call("read_diary")],
            "Noted.",
        ],
        files={"diary.txt": "monday: sun\n"},
    )
    yield AgentNotebook(
        "json_rewritten",
        cells(
            OPENAI,
            f"""
from pathlib import Path
QUESTION = "Set volume to 7 and forget the alarm."
{schemas("openai", set_value="key value:integer", forget="key")}
FILE = Path("state.json")

def load():
    return json.loads(FILE.read_text())

def save(state):
    FILE.write_text(json.dumps(state, indent=1))

def set_value(key, value):
    state = load()
    state[key] = value
    state["writes"] = state.get("writes", 0) + 1
    save(state)
    return state

def forget(key):
    state = load()
    state.pop(key)
    save(state)
    return sorted(state)

def run_tool(name, arguments):
    return globals()[name](**arguments)
""",
            OPENAI_LOOP,
            "load()",
        ),
        [[call("set_value", key="volume", value=7)], [call("forget", key="alarm")], "Done."],
        files={"state.json": '{"volume": 3, "alarm": "07:00"}'},
    )
    yield AgentNotebook(
        "csv_rows",
        cells(
            OPENAI,
            f"""
import csv
import os
QUESTION = "Log 5 km and 7 km of running."
{schemas("responses", log_run="day km:number")}

def log_run(day, km):
    new = not os.path.exists("data/runs.csv")
    os.makedirs("data", exist_ok=True)
    with open("data/runs.csv", "a", newline="") as file:
        writer = csv.DictWriter(file, ["day", "km"])
        if new:
            writer.writeheader()
        writer.writerow({{"day": day, "km": km}})
    return "logged"

def run_tool(name, arguments):
    return log_run(**arguments)
""",
            RESPONSES_LOOP,
            "with open('data/runs.csv') as file:\n    rows = list(csv.DictReader(file))\nrows",
        ),
        [
            [call("log_run", day="mon", km=5)],
            [call("log_run", day="tue", km=7)],
            "Twelve kilometres.",
        ],
    )
    yield AgentNotebook(
        "sqlite_file",
        cells(
            ANTHROPIC,
            f"""
import sqlite3
QUESTION = "Order two lamps and a desk; cancel the desk."
{schemas(order="item amount:integer", cancel="item")}
db = sqlite3.connect("shop.db")
db.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, item TEXT, amount INTEGER)")
db.commit()

def order(item, amount):
    with db:
        cursor = db.execute("INSERT INTO orders (item, amount) VALUES (?, ?)", (item, amount))
    return cursor.lastrowid

def cancel(item):
    with db:
        return db.execute("DELETE FROM orders WHERE item = ?", (item,)).rowcount

def run_tool(name, arguments):
    return globals()[name](**arguments)
""",
            ANTHROPIC_LOOP,
            "print(db.execute('SELECT * FROM orders').fetchall())",
            "db.close()\nprint(sqlite3.connect('shop.db').execute('SELECT count(*) FROM orders').fetchone())",
        ),
        [
            [call("order", item="lamp", amount=2), call("order", item="desk", amount=1)],
            [call("cancel", item="desk")],
            "Two lamps.",
        ],
    )
    yield AgentNotebook(
        "sqlite_opened_by_each_tool",
        cells(
            OPENAI,
            f"""
import sqlite3
from contextlib import closing
QUESTION = "Add Ada and Bob, then list."
{schemas("openai", add_user="name", list_users="")}

def add_user(name):
    with closing(sqlite3.connect("users.sqlite")) as db, db:
        db.execute("CREATE TABLE IF NOT EXISTS users (name TEXT)")
        db.execute("INSERT INTO users VALUES (?)", (name,))
    return "added"

def list_users():
    with closing(sqlite3.connect("users.sqlite")) as db:
        return [row[0] for row in db.execute("SELECT name FROM users ORDER BY name")]

def run_tool(name, arguments):
    return globals()[name](**arguments)
""",
            OPENAI_LOOP,
            "list_users()",
        ),
        [
            [call("add_user", name="Ada")],
            [call("add_user", name="Bob")],
            [call("list_users")],
            "Ada and Bob.",
        ],
    )
    yield AgentNotebook(
        "sqlite_in_memory",
        cells(
            ANTHROPIC,
            f"""
import sqlite3
QUESTION = "Log the two temperatures and tell the mean."
{schemas(measure="celsius:number", mean="")}
db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE readings (n INTEGER PRIMARY KEY, celsius REAL)")

def measure(celsius):
    db.execute("INSERT INTO readings (celsius) VALUES (?)", (celsius,))
    db.commit()
    return db.total_changes

def mean():
    return db.execute("SELECT avg(celsius) FROM readings").fetchone()[0]

def run_tool(name, arguments):
    return globals()[name](**arguments)
""",
            ANTHROPIC_LOOP,
            "print(db.execute('SELECT * FROM readings').fetchall(), mean())",
        ),
        [
            [call("measure", celsius=19.5), call("measure", celsius=20.5)],
            [call("mean")],
            "20 degrees.",
        ],
    )
    yield AgentNotebook(
        "files_moved_and_removed",
        cells(
            ANTHROPIC,
            f"""
import shutil
from pathlib import Path
QUESTION = "Tidy the inbox: archive a, delete b, make a readme."
{schemas(archive="name", delete="name", readme="text")}
inbox, shelf = Path("inbox"), Path("archive")

def archive(name):
    shelf.mkdir(exist_ok=True)
    shutil.move(inbox / name, shelf / f"old-{{name}}")
    return sorted(path.name for path in shelf.iterdir())

def delete(name):
    (inbox / name).unlink()
    return sorted(path.name for path in inbox.iterdir())

def readme(text):
    (shelf / "deep" / "er").mkdir(parents=True)
    (shelf / "deep" / "README.md").write_text(text)
    return "written"

def run_tool(name, arguments):
    return globals()[name](**arguments)
""",
            ANTHROPIC_LOOP,
            "print(sorted(str(path) for path in Path('.').rglob('*') if path.parts[0] in ('inbox', 'archive')))",
        ),
        [
            [call("archive", name="a.txt"), call("delete", name="b.txt")],
            [call("readme", text="# Old mail")],
            "Tidy.",
        ],
        files={"inbox/a.txt": "a", "inbox/b.txt": "b", "inbox/c.txt": "c"},
    )
    yield AgentNotebook(
        "pickled_state",
        cells(
            GEMINI,
            f"""
import pickle
QUESTION = "Learn that fire is hot and ice is cold, and save."
{schemas("gemini", learn="thing quality", save="")}

class Knowledge:
    def __init__(self):
        self.facts, self.saves = {{}}, 0

knowledge = Knowledge()

def learn(thing, quality):
    knowledge.facts[thing] = quality
    return len(knowledge.facts)

def save():
    knowledge.saves += 1
    with open("knowledge.pkl", "wb") as file:
        pickle.dump(vars(knowledge), file)
    return "saved"

def run_tool(name, arguments):
    return globals()[name](**arguments)
""",
            GEMINI_LOOP,
            "with open('knowledge.pkl', 'rb') as file:\n    back = pickle.load(file)\nback == vars(knowledge), back",
        ),
        [
            [
                call("learn", thing="fire", quality="hot"),
                call("learn", thing="ice", quality="cold"),
            ],
            [call("save")],
            "Saved.",
        ],
    )
    yield AgentNotebook(
        "report_with_pictures",
        cells(
            OPENAI,
            f"""
import matplotlib
import matplotlib.pyplot as plt
from pathlib import Path
QUESTION = "Draw the squares and write the report."
{schemas("openai", draw="name power:integer", report="title")}
pictures = []

def draw(name, power):
    fig, ax = plt.subplots(figsize=(2, 2))
    ax.plot([n ** power for n in range(5)])
    Path("out").mkdir(exist_ok=True)
    fig.savefig(f"out/{{name}}.png", metadata={{"Software": None}})
    plt.close(fig)
    pictures.append(f"out/{{name}}.png")
    return pictures[-1]

def report(title):
    body = "\\n".join(f"![]({{picture}})" for picture in pictures)
    return Path("report.md").write_text(f"# {{title}}\\n{{body}}\\n")

def run_tool(name, arguments):
    return globals()[name](**arguments)
""",
            OPENAI_LOOP,
            "print(Path('report.md').read_text(), Path('out/squares.png').stat().st_size > 1000)",
        ),
        [
            [call("draw", name="squares", power=2)],
            [call("report", title="Powers")],
            "See report.md.",
        ],
    )
    yield AgentNotebook(
        "log_file_held_open",
        cells(
            ANTHROPIC,
            f"""
QUESTION = "Log in, buy, log out."
{schemas(event="name")}
log = open("events.log", "w", buffering=1)
count = 0

def event(name):
    global count
    count += 1
    print(count, name, file=log)
    return count

def run_tool(name, arguments):
    return event(**arguments)
""",
            ANTHROPIC_LOOP,
            "log.write('end\\n')\nlog.close()\nprint(open('events.log').read())",
        ),
        [
            [call("event", name="login"), call("event", name="buy")],
            [call("event", name="logout")],
            "Logged.",
        ],
    )
    yield AgentNotebook(
        "text_editor_tool",
        cells(
            ANTHROPIC,
            f"""
from pathlib import Path
QUESTION = "Fix the bug in calc.py and add a test."
{schemas(view="path", str_replace="path old new", create="path text")}
edits = []

class Editor:
    def __init__(self, root):
        self.root, self.history = Path(root), {{}}

    def view(self, path):
        return (self.root / path).read_text()

    def str_replace(self, path, old, new):
        text = self.view(path)
        self.history.setdefault(path, []).append(text)
        (self.root / path).write_text(text.replace(old, new))
        return "edited"

    def create(self, path, text):
        target = self.root / path
        target.parent.mkdir(exist_ok=True)
        target.write_text(text)
        edits.append(target)
        return f"created {{path}}"

editor = Editor("project")

def run_tool(name, arguments):
    return getattr(editor, name)(**arguments)
""",
            ANTHROPIC_LOOP,
            "print(editor.view('calc.py'), editor.history, edits)",
            "namespace = {}\nexec(editor.view('calc.py'), namespace)\nnamespace['add'](2, 3)",
        ),
        [
            ["Let me look.", call("view", path="calc.py")],
            [call("str_replace", path="calc.py", old="a - b", new="a + b")],
            [
                call(
                    "create",
                    path="tests/test_calc.py",
                    text="from calc import add\n\ndef test(): assert add(1, 1) == 2\n",
                )
            ],
            "Fixed.",
        ],
        files={"project/calc.py": "def add(a, b):\n    return a - b\n"},
    )
    yield AgentNotebook(
        "arrays_and_archives",
        cells(
            OPENAI,
            f"""
import gzip
import numpy as np
import zipfile
QUESTION = "Store the matrix, zip it."
{schemas("responses", store="name size:integer", pack="name")}

def store(name, size):
    np.save(f"{{name}}.npy", np.arange(size * size).reshape(size, size))
    return size

def pack(name):
    with zipfile.ZipFile("all.zip", "w") as archive:
        archive.writestr(zipfile.ZipInfo(f"{{name}}.npy"), open(f"{{name}}.npy", "rb").read())
    with open("raw.bin", "wb") as file:
        file.write(bytes(range(256)) * 300)
    return "packed"

def run_tool(name, arguments):
    return globals()[name](**arguments)
""",
            RESPONSES_LOOP,
            "print(np.load('m.npy').sum(), zipfile.ZipFile('all.zip').namelist(), len(open('raw.bin', 'rb').read()))",
        ),
        [[call("store", name="m", size=4)], [call("pack", name="m")], "Packed."],
    )
