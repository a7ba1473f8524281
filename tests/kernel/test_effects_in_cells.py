"""What tools of a notebook did is done again in a fresh kernel, without a provider: outputs, variables, files."""

import json

import pytest

from tests.notebook import Kernel, clean_env, notebook
from tests.provider import Provider

SET_UP = """%load_ext tape_jupyter
import anthropic, dataclasses, logging, os, sqlite3, sys, warnings
import pandas as pd
from IPython.display import display, Markdown, clear_output
client = anthropic.Anthropic(base_url="BASE", api_key="k")
todo, ledger, seen, records = [], {}, set(), []
frame = pd.DataFrame({"item": []})
count = 0
alias = todo
database = sqlite3.connect(":memory:")
database.execute("CREATE TABLE orders (item)")

class Keep(logging.Handler):
    def emit(self, record):
        records.append(record.getMessage())

log = logging.getLogger("shop")
log.addHandler(Keep())

@dataclasses.dataclass
class Entry:
    item: str
    price: float

class Cart:
    def __init__(self):
        self.items = []
    def add(self, item):
        self.items.append(item)
        return len(self.items)

cart = Cart()

def add_todo(item):
    global count, frame
    count += 1
    todo.append(item)
    seen.add(item)
    ledger[item] = Entry(item, 1.5)
    frame = pd.concat([frame, pd.DataFrame({"item": [item]})], ignore_index=True)
    database.execute("INSERT INTO orders VALUES (?)", (item,))
    log.warning("%s is dear", item)
    print("added", item)
    print("careful", file=sys.stderr)
    shown = display(Markdown(f"**{item}**"), display_id=True)
    shown.update(Markdown(f"*{item}*"))
    with open("todo.txt", "a") as file:
        file.write(item + "\\n")
    return "ok"

HANDLERS = {"add_todo": add_todo, "add": cart.add}
TOOLS = [{"name": n, "input_schema": {"type": "object", "properties": {"item": {"type": "string"}}}} for n in HANDLERS]
"""

AGENT = """%%tape MODE
reply = client.messages.create(model='m', max_tokens=9, messages=[{'role': 'user', 'content': 'weather in Oslo'}], tools=TOOLS)
print(HANDLERS["add_todo"]("milk"), HANDLERS["add_todo"]("eggs"), HANDLERS["add"]("tea"))"""

STATE = """print(todo, alias is todo, sorted(seen), ledger, cart.items, count, list(frame["item"]), records)
print(database.execute("SELECT item FROM orders").fetchall(), open("todo.txt").read())"""


@pytest.fixture(scope="module")
def provider():
    with Provider() as provider:
        yield provider


def session(folder, mode, provider):
    """The outputs of the three cells in a fresh kernel; files lie in the folder."""
    set_up = SET_UP.replace("BASE", provider.url)
    with Kernel(folder, {"TAPE_NOTEBOOK": str(notebook(folder / "nb.ipynb", "x"))}) as kernel:
        ran = [kernel.execute(source) for source in (set_up, AGENT.replace("MODE", mode), STATE)]
        assert all(each.ok for each in ran), [each.traceback for each in ran]
        return [
            [_plain(output) for output in each.outputs if not _is_summary(output)] for each in ran
        ], ran[1].summary


def _is_summary(output):
    return "tape" in output.get("metadata", {})


def _plain(output):
    return (
        output.get("text")
        or output.get("data", {}).get("text/markdown")
        or output.get("data", {}).get("text/plain")
    )


def test_a_notebook_in_another_folder_has_the_same_outputs_variables_and_files(tmp_path, provider):
    recorded, other = tmp_path / "recorded", tmp_path / "other"
    recorded.mkdir(), other.mkdir()
    live, _ = session(recorded, "record", provider)
    (recorded / "nb.tapes").rename(other / "nb.tapes")
    sent = len(provider.requests)
    replayed, summary = session(other, "replay", provider)
    assert replayed == live
    assert (
        "added milk" in str(live[1]) and "*milk*" in str(live[1]) and "milk is dear" in str(live[2])
    )
    assert (other / "todo.txt").read_text() == "milk\neggs\n"
    assert len(provider.requests) == sent
    assert "did not happen" not in summary


HELD = """import tape_jupyter as tape, threading
box = {}
@tape.tool
def work(name):
    box["lock"] = threading.Lock()
    return name"""


def test_tape_replay_ends_1_where_a_tool_did_what_is_not_held(tmp_path):
    import subprocess
    import sys

    path = notebook(tmp_path / "nb.ipynb", HELD, "work('a')")
    env = clean_env(tmp_path)

    def tape(*words):
        return subprocess.run(
            [sys.executable, "-m", "tape_jupyter", *words],
            env=env,
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )

    assert tape("record", str(path)).returncode == 0
    replayed = tape("replay", str(path), "--json")
    assert replayed.returncode == 1, replayed.stdout + replayed.stderr
    cells = json.loads(replayed.stdout)["cells"]
    assert "box['lock']" in str(cells) and "did not happen in this replay" in str(cells)
