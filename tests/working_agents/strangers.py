"""Programs as strangers write them: what the other families do not hold, several habits in each."""

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
    yield from _models()
    yield from _flow()
    yield from _surroundings()


def _models() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "models_that_validate_when_assigned",
        cells(
            ANTHROPIC,
            f"""
from decimal import Decimal
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, computed_field, field_validator, model_validator
QUESTION = "Bill two hours to Ada, then half the rate."
{schemas(bill="who hours:number", rate="value:number")}

class Line(BaseModel):
    model_config = ConfigDict(frozen=True)
    who: str
    hours: Decimal = Field(gt=0)

    @field_validator("who")
    @classmethod
    def tidy(cls, value):
        seen_by_validator.append(value)
        return value.strip().title()

class Invoice(BaseModel):
    model_config = ConfigDict(validate_assignment=True)
    rate: Decimal = Decimal("80")
    lines: list[Line] = []
    _history: list = PrivateAttr(default_factory=list)
    __checks = 0

    @model_validator(mode="after")
    def checked(self):
        Invoice.checks = getattr(Invoice, "checks", 0) + 1
        return self

    @computed_field
    @property
    def total(self) -> Decimal:
        return sum((line.hours * self.rate for line in self.lines), Decimal(0))

seen_by_validator = []
invoice = Invoice()

def bill(who, hours):
    invoice.lines = [*invoice.lines, Line(who=who, hours=str(hours))]
    invoice._history.append(("bill", who))
    return str(invoice.total)

def rate(value):
    invoice.rate = str(value)
    return invoice.model_dump_json()
{BY_NAME}""",
            ANTHROPIC_LOOP,
            "print(invoice.model_dump(), invoice._history, seen_by_validator, Invoice.checks, sorted(invoice.model_fields_set))",
        ),
        [
            [call("bill", who=" ada", hours=2), call("bill", who="bob ", hours=1.5)],
            [call("rate", value=40)],
            "Billed.",
        ],
    )
    yield AgentNotebook(
        "attrs_with_converters_and_slots",
        cells(
            OPENAI,
            f"""
import attrs
from attrs import define, field, validators
QUESTION = "Plant beans and move them."
{schemas("openai", plant="name row:integer", move="name row:integer")}
watered = set()

@define
class Plant:
    name: str = field(converter=str.lower)
    row: int = field(validator=validators.ge(0), on_setattr=[attrs.setters.validate, lambda i, a, v: (moves.append((i.name, i.row, v)), v)[1]])
    notes: list = field(factory=list, repr=False)

    def __attrs_post_init__(self):
        watered.add(self.name)

moves = []
beds: dict[int, list[Plant]] = {{}}

def plant(name, row, _made=[]):
    one = Plant(name, row)
    _made.append(one)
    beds.setdefault(row, []).append(one)
    return f"{{one}} is number {{len(_made)}}"

def move(name, row):
    for place in list(beds):
        for one in list(beds[place]):
            if one.name == name.lower():
                beds[place].remove(one)
                one.row = row
                one.notes += [f"from {{place}}"]
                beds.setdefault(row, []).append(one)
    return attrs.asdict(beds[row][-1])
{BY_NAME}""",
            OPENAI_LOOP,
            "print(beds, moves, sorted(watered))\nprint(plant.__defaults__[0][0] is beds[4][0], beds[4][0].notes)\nprint(plant('Leek', 9))",
        ),
        [
            [call("plant", name="Beans", row=1), call("plant", name="Peas", row=2)],
            [call("move", name="Beans", row=4)],
            "Moved.",
        ],
    )


def _flow() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "queue_with_a_sentinel",
        cells(
            "import anthropic, asyncio\nclient = anthropic.AsyncAnthropic()",
            """
DONE = object()
log = []

def upper(text):
    log.append(text)
    return text.upper()

async def produce(queue, topics):
    for topic in topics:
        await queue.put(topic)
    await queue.put(DONE)

async def consume(queue, out):
    while (topic := await queue.get()) is not DONE:
        reply = await client.messages.create(model="claude-sonnet-4-6", max_tokens=50, messages=[{"role": "user", "content": topic}])
        out.append((topic, upper(reply.content[0].text)))
        queue.task_done()
    queue.task_done()
    return len(out)""",
            taped("""
queue, out = asyncio.Queue(maxsize=1), []
_, count = await asyncio.gather(produce(queue, ["tea", "milk", "rum"]), consume(queue, out))
print(count, out, queue.qsize(), queue._unfinished_tasks)"""),
            "print(log, DONE is DONE, out[0])\nqueue.put_nowait('more'); print(queue.full())",
        ),
        {"tea": ["leaves"], "milk": ["white"], "rum": ["strong"]},
    )
    yield AgentNotebook(
        "tried_again_by_tenacity",
        cells(
            ANTHROPIC,
            f"""
import functools
from tenacity import RetryError, Retrying, retry, retry_if_exception_type, stop_after_attempt, wait_none
QUESTION = "Fetch a page that fails at first."
{schemas(fetch="page", slow="page")}
attempts = []
before = []

@retry(stop=stop_after_attempt(3), wait=wait_none(), retry=retry_if_exception_type(OSError), before=lambda s: before.append(s.attempt_number))
def fetch(page):
    attempts.append(page)
    if len(attempts) < 3:
        raise ConnectionError(page)
    return f"{{page}} after {{len(attempts)}}"

def slow(page):
    try:
        for attempt in Retrying(stop=stop_after_attempt(2), wait=wait_none()):
            with attempt:
                attempts.append(f"slow {{page}}")
                raise ValueError("no")
    except RetryError:
        return "gave up"

@functools.lru_cache
def parsed(text):
    attempts.append("parsed")
    return text.split()
{BY_NAME}""",
            ANTHROPIC_LOOP,
            "print(attempts, before, fetch.statistics['attempt_number'], parsed(reply.content[0].text), parsed(reply.content[0].text), parsed.cache_info())",
        ),
        [[call("fetch", page="home")], [call("slow", page="about")], "Got it."],
    )
    yield AgentNotebook(
        "captured_and_timed_cells",
        cells(
            OPENAI,
            f"""
QUESTION = "Speak twice."
{schemas("openai", speak="text")}
import sys
from IPython.display import display, HTML
said = 0

def speak(text):
    global said
    said += 1
    print(text); print("err", text, file=sys.stderr); display(HTML(f"<b>{{text}}</b>"))
    return said
{BY_NAME}""",
            OPENAI_LOOP.replace("%%tape MODE", "%%tape MODE\n%%capture caught"),
            "print(repr(caught.stdout), repr(caught.stderr), len(caught.outputs), said)\ncaught.show()",
            taped("""
import io, contextlib
buffer = io.StringIO()
with contextlib.redirect_stdout(buffer):
    answer = client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "Again?"}]).choices[0].message.content
    print("inside", answer); speak("direct")
print(len(buffer.getvalue()))"""),
            "print(buffer.getvalue(), said)",
        ),
        {
            "Speak twice": [[call("speak", text="one"), call("speak", text="two")], "Spoken."],
            "Again?": ["No."],
        },
    )
    yield AgentNotebook(
        "callbacks_by_nonlocal_and_defaults",
        cells(
            ANTHROPIC,
            f"""
import contextvars, functools, weakref
QUESTION = "Bid twice, then close."
{schemas(bid="who amount:integer", close="")}
who_asks = contextvars.ContextVar("who_asks", default="nobody")
alive = weakref.WeakValueDictionary()

class Bid:
    def __init__(self, who, amount): self.who, self.amount = who, amount
    def __repr__(self): return f"Bid({{self.who}}, {{self.amount}})"

def auction():
    best, closed = None, False
    def bid(who, amount, _all=[], _best={{}}):
        nonlocal best
        one = Bid(who, amount)
        _all.append(one); alive[who] = one; _best[who] = max(amount, _best.get(who, 0))
        who_asks.set(who)
        bid.calls = getattr(bid, "calls", 0) + 1
        if best is None or amount > best.amount:
            best = one
        return f"{{best}} of {{len(_all)}}"
    def close():
        nonlocal closed
        closed = True
        bid.__defaults__[0].clear()
        return f"sold to {{best.who}}"
    return bid, close, lambda: (best, closed)

bid, close, look = auction()
{BY_NAME}""",
            ANTHROPIC_LOOP,
            "import gc; gc.collect()\nprint(look(), dict(alive), bid.calls, bid.__defaults__, who_asks.get())",
        ),
        [
            [call("bid", who="ada", amount=5), call("bid", who="bob", amount=9)],
            [call("close")],
            "Sold.",
        ],
    )


def _surroundings() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "contexts_of_numbers_and_words",
        cells(
            OPENAI,
            f"""
import decimal, locale, random, warnings, numpy as np
from decimal import Decimal
QUESTION = "Set the precision, draw, warn."
{schemas("openai", precision="digits:integer", draw="", careful="")}
rng = np.random.default_rng(7)
own = random.Random(3)
random.seed(1); np.random.seed(1)
drawn = []

def precision(digits):
    decimal.getcontext().prec = digits
    decimal.getcontext().rounding = decimal.ROUND_UP
    locale.setlocale(locale.LC_NUMERIC, "C")
    np.set_printoptions(precision=2)
    return str(Decimal(1) / Decimal(3))

def draw():
    drawn.append((own.randint(1, 9), int(rng.integers(9)), random.randint(1, 9), int(np.random.randint(9))))
    return str(drawn[-1])

def careful():
    warnings.filterwarnings("error", category=DeprecationWarning, module="nowhere")
    warnings.simplefilter("ignore", ResourceWarning)
    np.seterr(divide="ignore")
    return str(len(drawn))
{BY_NAME}""",
            OPENAI_LOOP,
            "print(Decimal(2) / Decimal(7), drawn, own.random(), rng.random(), random.random(), np.random.rand(), np.array([1 / 3]), np.geterr()['divide'])\nprint(warnings.filters[0][0], warnings.filters[1][0], warnings.filters[1][2].__name__)",
        ),
        [[call("precision", digits=4), call("draw")], [call("careful"), call("draw")], "Done."],
    )
    yield AgentNotebook(
        "locks_threads_and_thread_locals",
        cells(
            ANTHROPIC,
            f"""
import threading, queue, collections
from concurrent.futures import ThreadPoolExecutor
QUESTION = "Reserve two seats, release one."
{schemas(reserve="seat", release="seat")}
lock = threading.RLock()
seats = collections.OrderedDict.fromkeys("ABC")
local = threading.local(); local.count = 0
free = threading.BoundedSemaphore(3)
changed = threading.Event()
waiting = queue.PriorityQueue()
history = collections.deque(maxlen=3)
totals = collections.Counter(); view = collections.ChainMap({{}}, totals)

def reserve(seat):
    with lock:
        free.acquire()
        seats[seat] = "taken"; seats.move_to_end(seat)
        local.count += 1; changed.set(); waiting.put((len(history), seat))
        history.append(seat); totals[seat] += 1; view["last"] = seat
    return list(seats)

def release(seat):
    def work():
        with lock:
            seats[seat] = None
            free.release(); history.appendleft("-" + seat); totals.subtract([seat])
    thread = threading.Thread(target=work); thread.start(); thread.join()
    return str(thread.is_alive())
{BY_NAME}""",
            ANTHROPIC_LOOP,
            "print(list(seats.items()), local.count, free._value, changed.is_set(), waiting.get_nowait(), waiting.qsize(), list(history), totals, dict(view))\nprint(lock.acquire(blocking=False)); lock.release()",
        ),
        [
            [call("reserve", seat="A"), call("reserve", seat="C")],
            [call("release", seat="A")],
            "Done.",
        ],
    )
