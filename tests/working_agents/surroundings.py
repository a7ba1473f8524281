"""Tools that change what is around the program: settings of libraries and of the process, loggers, files, processes."""

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
    taped,
)
from tests.harness.scripted_model import call


def notebooks() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "loggers_and_handlers",
        cells(
            ANTHROPIC,
            f"""
import io, logging
QUESTION = "Log two lines, louder the second time."
{schemas(log="text level", louder="", keep="")}

class Keeper(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines, self.count = [], 0
    def emit(self, record):
        self.count += 1
        self.lines.append((record.levelname, self.format(record)))

logger = logging.getLogger("agent")
logger.setLevel(logging.WARNING)
logger.propagate = False
keeper, text = Keeper(), io.StringIO()
keeper.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
stream = logging.StreamHandler(text)
logger.addHandler(keeper)
logger.addHandler(stream)
written = logging.FileHandler("agent.log", delay=True)
logger.addHandler(written)

def log(text, level):
    logger.log(getattr(logging, level), "said %s", text)
    return "logged"

def louder():
    logger.setLevel(logging.DEBUG)
    stream.setLevel(logging.ERROR)
    return str(logger.level)

def keep():
    logger.removeHandler(written)
    logging.getLogger("agent.child").info("a child")
    return str(len(logger.handlers))
{BY_NAME}""",
            ANTHROPIC_LOOP,
            "print(keeper.lines, keeper.count, repr(text.getvalue()), logger.level, stream.level, len(logger.handlers))",
            "logger.info('after')\nprint(keeper.lines[-1], open('agent.log').read())",
        ),
        [
            [call("log", text="a", level="INFO"), call("log", text="b", level="WARNING")],
            [call("louder"), call("log", text="c", level="INFO")],
            [call("keep"), call("log", text="d", level="ERROR")],
            "Logged.",
        ],
    )
    yield AgentNotebook(
        "settings_of_libraries",
        cells(
            OPENAI,
            f"""
import decimal, json, locale, sys, warnings
import numpy as np
import pandas as pd
QUESTION = "Set the precision, and the display."
{schemas("openai", precision="digits:integer", show="rows:integer", quiet="", recursion="limit:integer")}
decimal.getcontext().prec = 28
warnings.simplefilter("default")

def precision(digits):
    decimal.getcontext().prec = digits
    np.set_printoptions(precision=digits)
    return str(decimal.Decimal(1) / 3)

def show(rows):
    pd.set_option("display.max_rows", rows)
    pd.options.display.precision = 2
    return "set"

def quiet():
    warnings.filterwarnings("ignore", message="old")
    return "quiet"

def recursion(limit):
    sys.setrecursionlimit(limit)
    sys.path.append("plugins")
    return str(limit)
{BY_NAME}""",
            OPENAI_LOOP,
            "print(decimal.Decimal(1) / 7, np.array([1 / 3]), pd.get_option('display.max_rows'), pd.options.display.precision)",
            "print(sys.getrecursionlimit(), 'plugins' in sys.path)\nwarnings.warn('old ways')",
        ),
        [
            [call("precision", digits=4)],
            [call("show", rows=7), call("quiet")],
            [call("recursion", limit=2500)],
            "Set.",
        ],
    )
    yield AgentNotebook(
        "seeds_and_global_chance",
        cells(
            ANTHROPIC,
            f"""
import random
import numpy as np
QUESTION = "Seed, draw, shuffle."
{schemas(seed="number:integer", draw="", deal="")}
cards = list(range(8))
drawn = []

def seed(number):
    random.seed(number)
    np.random.seed(number)
    return "seeded"

def draw():
    drawn.append(random.randint(1, 100))
    return str(drawn[-1])

def deal():
    random.shuffle(cards)
    np.random.shuffle(cards)
    return str(cards[:3])
{BY_NAME}""",
            ANTHROPIC_LOOP,
            "print(drawn, cards)",
            "print(random.random(), np.random.rand())",
        ),
        [[call("seed", number=4), call("draw")], [call("deal"), call("draw")], "Dealt."],
    )
    yield AgentNotebook(
        "files_by_low_ways",
        cells(
            OPENAI,
            f"""
import configparser, dbm.dumb, json, mmap, os, shelve, shutil, tempfile, zipfile
from pathlib import Path
QUESTION = "Store, pack, patch."
{schemas("openai", low="text", store="key value", pack="name", patch="at:integer", settings="key value", atomic="text", links="")}
Path("data.bin").write_bytes(bytes(16))

def low(text):
    handle = os.open("low.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(handle, text.encode())
    os.close(handle)
    return "written"

def store(key, value):
    with dbm.dumb.open("table", "c") as table:
        table[key] = value
        return str(len(table))

def pack(name):
    Path("packed").mkdir(exist_ok=True)
    with zipfile.ZipFile("packed/all.zip", "a") as archive:
        archive.writestr(name, name * 3)
        return str(len(archive.namelist()))

def patch(at):
    with open("data.bin", "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        memory[at] = 255
    return "patched"

def settings(key, value):
    parser = configparser.ConfigParser()
    parser.read("settings.ini")
    parser.setdefault("main", {{}})
    parser["main"][key] = value
    with open("settings.ini", "w") as file:
        parser.write(file)
    return "set"

def atomic(text):
    with tempfile.NamedTemporaryFile("w", dir=".", delete=False) as file:
        file.write(text)
    os.replace(file.name, "atomic.txt")
    return "replaced"

def links():
    os.symlink("low.txt", "link.txt")
    os.link("atomic.txt", "hard.txt")
    shutil.copytree("packed", "copy")
    os.chmod("low.txt", 0o600)
    os.rename("data.bin", "moved.bin")
    os.truncate("atomic.txt", 3)
    return str(sorted(os.listdir()))[:20]
{BY_NAME}""",
            OPENAI_LOOP,
            "print(open('low.txt').read(), list(open('moved.bin', 'rb').read()), open('settings.ini').read(), open('atomic.txt').read())",
            "print(oct(os.stat('low.txt').st_mode & 0o777), os.path.islink('link.txt'), os.listdir('copy'))",
        ),
        [
            [call("low", text="a"), call("low", text="b"), call("store", key="k", value="v")],
            [call("pack", name="x"), call("patch", at=3), call("settings", key="lang", value="en")],
            [call("atomic", text="whole"), call("links")],
            "Packed.",
        ],
        varies=True,
    )
    yield AgentNotebook(
        "processes_that_write",
        cells(
            ANTHROPIC,
            f"""
import os, subprocess, sys
QUESTION = "Run the script and count."
{schemas(run="text", shell="text", magic="text")}

def run(text):
    done = subprocess.run([sys.executable, "-c", f"open('out.txt', 'a').write({{text!r}}); print({{text!r}})"], capture_output=True, text=True)
    return done.stdout.strip()

def shell(text):
    return str(os.system(f"echo {{text}} >> shell.txt"))

def magic(text):
    get_ipython().system(f"echo {{text}} > magic.txt; echo said {{text}}")
    return "done"
{BY_NAME}""",
            ANTHROPIC_LOOP,
            "print(open('out.txt').read(), open('shell.txt').read(), open('magic.txt').read())",
        ),
        [
            [call("run", text="one"), call("shell", text="two")],
            [call("run", text="three"), call("magic", text="four")],
            "Ran.",
        ],
    )
    yield AgentNotebook(
        "work_that_goes_on",
        cells(
            ANTHROPIC,
            f"""
import threading
from concurrent.futures import ThreadPoolExecutor
QUESTION = "Start two jobs and wait."
{schemas(start="job", wait="")}
done, threads = [], []
pool = ThreadPoolExecutor(1)
futures = {{}}
go = threading.Event()

def work(job):
    go.wait(5)
    done.append(job)
    print("did", job)

def start(job):
    thread = threading.Thread(target=work, args=(job,))
    thread.start()
    threads.append(thread)
    futures[job] = pool.submit(len, job)
    return "started"

def wait():
    go.set()
    for thread in threads:
        thread.join()
    return f"{{len(done)}} done, {{sum(each.result() for each in futures.values())}}"
{BY_NAME}""",
            ANTHROPIC_LOOP,
            "print(sorted(done), len(threads), sorted(futures))",
        ),
        [[call("start", job="a")], [call("start", job="bb")], [call("wait")], "Both."],
        varies=True,
    )
    yield AgentNotebook(
        "work_that_outlives_its_tool",
        cells(
            ANTHROPIC,
            f"""
import threading
QUESTION = "Start a job."
{schemas(start="job")}
done = []
go = threading.Event()

def work(job):
    go.wait(20)
    done.append(job)

def start(job):
    threading.Thread(target=work, args=(job,), name=job).start()
    return "started"
{BY_NAME}""",
            ANTHROPIC_LOOP,
            "go.set()\n[each.join() for each in threading.enumerate() if each.name == 'a']\nprint(done)",
        ),
        [[call("start", job="a")], "Started."],
        varies=True,
    )
    yield AgentNotebook(
        "async_tools_with_locks",
        cells(
            """
import anthropic
client = anthropic.AsyncAnthropic()
""",
            f"""
import asyncio
from contextlib import asynccontextmanager
from contextvars import ContextVar
QUESTION = "Move money twice, and ask for the sum."
{schemas(move="source target amount:integer", total="", later="what")}
accounts = {{"a": 10, "b": 5}}
lock, gate = asyncio.Lock(), asyncio.Semaphore(2)
inside, log, tasks = [], asyncio.Queue(), set()
user = ContextVar("user", default="nobody")

@asynccontextmanager
async def booking(name):
    inside.append(name)
    try:
        yield name
    finally:
        inside.append(f"end {{name}}")

async def move(source, target, amount):
    async with lock, booking(source):
        await asyncio.sleep(0)
        accounts[source] -= amount
        accounts[target] += amount
    await log.put((source, target))
    user.set(source)
    return str(accounts)

async def total():
    async with gate:
        async with asyncio.TaskGroup() as group:
            parts = [group.create_task(asyncio.sleep(0, value)) for value in accounts.values()]
    return str(sum(part.result() for part in parts))

async def later(what):
    async def note():
        await asyncio.sleep(0)
        inside.append(what)
    task = asyncio.create_task(note())
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    await task
    return "noted"
""",
            taped("""
messages = [{"role": "user", "content": QUESTION}]
while True:
    reply = await client.messages.create(model="claude-sonnet-4-6", max_tokens=500, messages=messages, tools=TOOLS)
    messages.append({"role": "assistant", "content": [block.to_dict() for block in reply.content]})
    if reply.stop_reason != "tool_use":
        break
    used = [block for block in reply.content if block.type == "tool_use"]
    answers = await asyncio.gather(*(globals()[block.name](**block.input) for block in used))
    messages.append({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": block.id, "content": answer} for block, answer in zip(used, answers)]})
print(reply.content[0].text)
"""),
            "print(accounts, inside, log.qsize(), user.get(), len(tasks), lock.locked())",
            "await log.get(), gate._value",
        ),
        [
            [
                call("move", source="a", target="b", amount=3),
                call("move", source="b", target="a", amount=1),
            ],
            [call("total"), call("later", what="x")],
            "15.",
        ],
        varies=True,
    )
