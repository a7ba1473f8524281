"""Tools that fail after they changed something, that are tried again, that change the process."""

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
)
from tests.harness.scripted_model import call


def notebooks() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "raises_after_it_changed_state",
        cells(
            ANTHROPIC,
            f"""
QUESTION = "Charge 20, then 900."
{schemas(charge="amount:integer")}
attempts, charged, errors = [], [], []

class Declined(Exception):
    def __init__(self, amount, limit):
        super().__init__(f"{{amount}} is above {{limit}}")
        self.amount, self.limit = amount, limit

def charge(amount):
    attempts.append(amount)
    print("charging", amount)
    with open("audit.log", "a") as file:
        file.write(f"{{amount}}\\n")
    if amount > 100:
        raise Declined(amount, 100)
    charged.append(amount)
    return "charged"

def run_tool(name, arguments):
    try:
        return charge(**arguments)
    except Declined as error:
        errors.append(error)
        return f"error: {{error}}"
""",
            ANTHROPIC_LOOP,
            "print(attempts, charged, errors, errors[0].limit, open('audit.log').read())",
        ),
        [[call("charge", amount=20)], [call("charge", amount=900)], "The second was declined."],
    )
    yield AgentNotebook(
        "tried_again",
        cells(
            OPENAI,
            f"""
import time
QUESTION = "Send the letter."
{schemas("openai", send="letter")}
tries, sent, waits = {{}}, [], []

def send(letter):
    tries[letter] = tries.get(letter, 0) + 1
    if tries[letter] < 3:
        raise ConnectionError(f"try {{tries[letter]}}")
    sent.append(letter)
    return "sent"

def run_tool(name, arguments):
    for number in range(5):
        try:
            return send(**arguments)
        except ConnectionError as error:
            waits.append((number, str(error)))
            time.sleep(0.01)
    return "gave up"
""",
            OPENAI_LOOP,
            "print(tries, sent, waits)",
        ),
        [[call("send", letter="to Ada")], "Sent, at the third try."],
    )
    yield AgentNotebook(
        "cell_ends_in_an_error",
        cells(
            ANTHROPIC,
            f"""
QUESTION = "Import rows 1 and 2."
{schemas(import_row="number:integer")}
rows, bad = [], None

def import_row(number):
    global bad
    rows.append(number)
    print("row", number)
    if number == 2:
        bad = number
        raise KeyError(f"row {{number}} has no name")
    return "ok"

def run_tool(name, arguments):
    return import_row(**arguments)
""",
            ANTHROPIC_LOOP,
            "print(rows, bad)",
        ),
        [[call("import_row", number=1)], [call("import_row", number=2)], "Imported."],
        raises=True,
    )
    yield AgentNotebook(
        "environment_and_paths",
        cells(
            OPENAI,
            f"""
import os
import sys
QUESTION = "Use the staging profile and the plugins folder, work in tmp."
{schemas("openai", use_profile="name", add_path="path", work_in="path")}
changes = []

def use_profile(name):
    os.environ["APP_PROFILE"] = name
    os.environ.pop("APP_DEBUG", None)
    changes.append("profile")
    return name

def add_path(path):
    sys.path.insert(0, os.path.join(os.getcwd(), path))
    changes.append("path")
    return "added"

def work_in(path):
    os.makedirs(path, exist_ok=True)
    os.chdir(path)
    open("here.txt", "w").write("x")
    changes.append("cwd")
    return os.path.basename(os.getcwd())

os.environ["APP_DEBUG"] = "1"

def run_tool(name, arguments):
    return globals()[name](**arguments)
""",
            OPENAI_LOOP,
            "print(os.environ.get('APP_PROFILE'), os.environ.get('APP_DEBUG'), os.path.basename(os.getcwd()), os.listdir('.'))",
            "import greet\nprint(greet.HELLO, changes)",
        ),
        [
            [call("use_profile", name="staging"), call("add_path", path="plugins")],
            [call("work_in", path="tmp")],
            "Ready.",
        ],
        files={"plugins/greet.py": "HELLO = 'hello from a plugin'\n"},
    )
    yield AgentNotebook(
        "tools_that_read_what_others_wrote",
        cells(
            ANTHROPIC,
            f"""
import os
QUESTION = "Draft, review, publish."
{schemas(draft="text", review="", publish="")}
drafts, reviews, published = [], {{}}, set()

def draft(text):
    drafts.append({{"text": text, "version": len(drafts) + 1}})
    open("draft.txt", "w").write(text)
    return drafts[-1]["version"]

def review():
    text = open("draft.txt").read()
    reviews[drafts[-1]["version"]] = len(text.split())
    drafts[-1]["reviewed"] = reviews
    return reviews

def publish():
    os.rename("draft.txt", "published.txt")
    published.add(drafts[-1]["version"])
    return sorted(published)

def run_tool(name, arguments):
    return globals()[name](**arguments)
""",
            ANTHROPIC_LOOP,
            "print(drafts, reviews, published, drafts[0]['reviewed'] is reviews, os.path.exists('draft.txt'))",
            "review_again = open('published.txt').read().upper()\nreview_again",
        ),
        [
            [call("draft", text="whales are no fish")],
            [call("review")],
            [call("publish")],
            "Published.",
        ],
    )
