"""Tools that keep their state in what the language offers: iterators, closures, weak references, descriptors, classes."""

from __future__ import annotations

from collections.abc import Iterator

from tests.working_agents.written import (
    ANTHROPIC,
    ANTHROPIC_LOOP,
    OPENAI,
    OPENAI_LOOP,
    RESPONSES_LOOP,
    AgentNotebook,
    cells,
    schemas,
)
from tests.harness.scripted_model import call

BY_NAME = """
def run_tool(name, arguments):
    return globals()[name](**arguments)
"""


def notebooks() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "round_robin",
        cells(
            ANTHROPIC,
            f"""
import itertools
QUESTION = "Hand out three tickets and two tables."
{schemas(ticket="", table="guest", badge="")}
workers = itertools.cycle(["ada", "bob", "eve"])
tables = iter(range(10, 20))
badges = zip("ABC", itertools.count(1))
given = {{}}

def ticket():
    who = next(workers)
    given.setdefault(who, []).append(len(given))
    return who

def table(guest):
    given[guest] = next(tables)
    return str(given[guest])

def badge():
    letter, number = next(badges)
    return f"{{letter}}{{number}}"
{BY_NAME}""",
            ANTHROPIC_LOOP,
            "print(given)\nprint(next(workers), next(tables), next(badges))",
            "list(tables), list(badges)",
        ),
        [
            [call("ticket"), call("table", guest="kim")],
            [call("ticket"), call("badge"), call("table", guest="lee")],
            "All seated.",
        ],
    )
    yield AgentNotebook(
        "running_mean_by_send",
        cells(
            OPENAI,
            f"""
QUESTION = "Add 3 and 5 to the mean."
{schemas("openai", add="value:number")}

def averager():
    total, count, mean = 0, 0, None
    while True:
        value = yield mean
        total += value
        count += 1
        mean = total / count

mean = averager()
next(mean)
log = []

def add(value):
    log.append(value)
    return mean.send(value)
{BY_NAME}""",
            OPENAI_LOOP,
            "print(log)",
            "mean.send(10)",
        ),
        [[call("add", value=3)], [call("add", value=5)], "The mean is 4."],
    )
    yield AgentNotebook(
        "methods_kept_as_names",
        cells(
            ANTHROPIC,
            f"""
import io, csv, operator
QUESTION = "Note two things, and write a row."
{schemas(note="text", row="who what", tag="word", shout="text")}
notes, tags, rows = [], set(), io.StringIO()
remember = notes.append
mark = tags.add
writer = csv.writer(rows)
loud = io.StringIO()

def note(text):
    remember(text)
    return "noted"

def row(who, what):
    writer.writerow([who, what])
    return "written"

def tag(word):
    mark(word)
    return "tagged"

def shout(text):
    print(text.upper(), file=loud)
    return "shouted"
{BY_NAME}""",
            ANTHROPIC_LOOP,
            "print(notes, sorted(tags), repr(rows.getvalue()), repr(loud.getvalue()))",
        ),
        [
            [call("note", text="buy tea"), call("note", text="call kim"), call("tag", word="todo")],
            [call("row", who="ada", what="tea"), call("shout", text="hey")],
            "Noted.",
        ],
    )
    yield AgentNotebook(
        "state_as_class",
        cells(
            ANTHROPIC,
            f"""
QUESTION = "Open the door, then lock it."
{schemas(press="button")}

class Closed:
    def press(self, button):
        if button == "open":
            self.__class__ = Open
            return "it opens"
        self.__class__ = Locked
        return "it is locked"

class Open(Closed):
    def press(self, button):
        self.__class__ = Closed
        return "it closes"

class Locked(Closed):
    def press(self, button):
        return "nothing happens"

door = Closed()
doors = [door]

def run_tool(name, arguments):
    return door.press(arguments["button"])
""",
            ANTHROPIC_LOOP,
            "type(door).__name__, doors[0] is door",
            "door.press('open')",
        ),
        [
            [call("press", button="open")],
            [call("press", button="close")],
            [call("press", button="lock")],
            "Locked.",
        ],
    )
    yield AgentNotebook(
        "listeners_and_weak_references",
        cells(
            OPENAI,
            f"""
import weakref
QUESTION = "Publish the two headlines."
{schemas("openai", publish="headline", subscribe="name")}

class Reader:
    def __init__(self, name):
        self.name, self.read = name, []
    def notify(self, headline):
        self.read.append(headline)

class Paper:
    def __init__(self):
        self.readers = weakref.WeakSet()
        self.by_name = weakref.WeakValueDictionary()
        self.listeners = []
    def add(self, reader):
        self.readers.add(reader)
        self.by_name[reader.name] = reader

paper = Paper()
ada, bob = Reader("ada"), Reader("bob")
paper.add(ada); paper.add(bob)
last = weakref.ref(ada)
seen = []
paper.listeners.append(seen.append)
paper.listeners.append(lambda headline: ada.read.append(headline.upper()))
everyone = [ada, bob]

def publish(headline):
    for reader in sorted(paper.readers, key=lambda each: each.name):
        reader.notify(headline)
    for listener in paper.listeners:
        listener(headline)
    last().last = headline
    return f"{{len(paper.readers)}} readers"

def subscribe(name):
    reader = Reader(name)
    everyone.append(reader)
    paper.add(reader)
    return "welcome"
{BY_NAME}""",
            OPENAI_LOOP,
            "print([(each.name, each.read) for each in everyone], seen, ada.last)\nsorted(paper.by_name), len(paper.readers)",
        ),
        [
            [call("publish", headline="rain")],
            [call("subscribe", name="eve")],
            [call("publish", headline="sun")],
            "Published.",
        ],
    )
    yield AgentNotebook(
        "descriptors_and_slots",
        cells(
            ANTHROPIC,
            f"""
import functools
QUESTION = "Set the temperature, rename the room."
{schemas(warm="degrees:number", rename="name", measure="")}

class Limited:
    def __init__(self, low, high):
        self.low, self.high = low, high
    def __set_name__(self, owner, name):
        self.place = "_" + name
    def __get__(self, instance, owner=None):
        return self if instance is None else getattr(instance, self.place, self.low)
    def __set__(self, instance, value):
        setattr(instance, self.place, min(max(value, self.low), self.high))

class Thing:
    __slots__ = ("name", "__weakref__")
    def __init__(self, name):
        self.name = name

class Room(Thing):
    __slots__ = ("_degrees", "_log")
    degrees = Limited(5, 30)
    def __init__(self, name):
        super().__init__(name)
        self._log = []
    @property
    def log(self):
        return tuple(self._log)

class House:
    def __init__(self, room):
        object.__setattr__(self, "rooms", [room])
        object.__setattr__(self, "changes", 0)
    def __setattr__(self, name, value):
        object.__setattr__(self, "changes", self.changes + 1)
        object.__setattr__(self, name, value)
    def __getattr__(self, name):
        return getattr(self.rooms[0], name)
    @functools.cached_property
    def size(self):
        return len(self.rooms) * 10

house = House(Room("hall"))

def warm(degrees):
    house.rooms[0].degrees = degrees
    house.rooms[0]._log.append(degrees)
    return str(house.degrees)

def rename(name):
    house.owner = "ada"
    house.rooms[0].name = name
    return house.name

def measure():
    return f"{{house.size}} m2"
{BY_NAME}""",
            ANTHROPIC_LOOP,
            "print(house.degrees, house.name, house.log, house.changes, vars(house).keys())",
        ),
        [
            [call("warm", degrees=40)],
            [call("rename", name="study"), call("measure")],
            [call("warm", degrees=21)],
            "Cosy.",
        ],
    )
    yield AgentNotebook(
        "decorators_stacked",
        cells(
            OPENAI,
            f"""
import functools, time
QUESTION = "Charge ada and bob."
{schemas("openai", charge="who amount:number", refund="who")}
calls, timings, failures = [], {{}}, {{}}

def traced(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        wrapper.depth += 1
        calls.append((function.__name__, kwargs))
        try:
            return function(*args, **kwargs)
        finally:
            wrapper.depth -= 1
            wrapper.total = getattr(wrapper, "total", 0) + 1
    wrapper.depth = 0
    return wrapper

def timed(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        began = time.perf_counter()
        result = function(*args, **kwargs)
        timings[function.__name__] = time.perf_counter() - began >= 0
        return result
    return wrapper

def retried(times):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            for attempt in range(times):
                try:
                    return function(*args, **kwargs)
                except ConnectionError as error:
                    failures[function.__name__] = failures.get(function.__name__, 0) + 1
                    problem = error
            raise problem
        return wrapper
    return decorate

class Once:
    def __init__(self, function):
        functools.update_wrapper(self, function)
        self.function, self.done = function, {{}}
    def __call__(self, *args, **kwargs):
        key = (args, tuple(kwargs.items()))
        if key not in self.done:
            self.done[key] = self.function(*args, **kwargs)
        return self.done[key]

balance = {{"ada": 0, "bob": 0}}

@traced
@timed
@retried(3)
def charge(who, amount):
    if who == "bob" and failures.get("charge", 0) < 2:
        raise ConnectionError("line is busy")
    balance[who] += amount
    return balance[who]

@Once
@traced
def refund(who):
    balance[who] -= 1
    return balance[who]
{BY_NAME}""",
            OPENAI_LOOP,
            "print(balance, calls, failures, timings, charge.total, charge.depth)",
            "print(refund.done, refund.__wrapped__.total)",
        ),
        [
            [call("charge", who="ada", amount=5), call("charge", who="bob", amount=7)],
            [call("refund", who="ada"), call("refund", who="ada")],
            "Charged.",
        ],
    )
    yield AgentNotebook(
        "dispatch_on_types",
        cells(
            ANTHROPIC,
            f"""
import functools
from dataclasses import dataclass
QUESTION = "File a letter and a parcel."
{schemas(file_item="kind text")}

@dataclass
class Letter:
    text: str

@dataclass
class Parcel:
    text: str
    weight: int = 2

archive = {{"letters": [], "parcels": [], "other": 0}}

@functools.singledispatch
def store(item):
    archive["other"] += 1
    return "stored"

@store.register
def _(item: Letter):
    archive["letters"].append(item)
    return f"letter {{len(archive['letters'])}}"

@store.register
def _(item: Parcel):
    archive["parcels"].append(item)
    return f"parcel {{len(archive['parcels'])}}"

class Desk:
    def __init__(self):
        self.handled = []
    @functools.singledispatchmethod
    def handle(self, item):
        self.handled.append(repr(item))
        return store(item)
    @handle.register
    def _(self, item: Parcel):
        self.handled.append("heavy")
        return store(item)

desk = Desk()

def file_item(kind, text):
    return desk.handle({{"letter": Letter, "parcel": Parcel}}.get(kind, str)(text))
{BY_NAME}""",
            ANTHROPIC_LOOP,
            "print(archive, desk.handled)",
        ),
        [
            [
                call("file_item", kind="letter", text="hi"),
                call("file_item", kind="parcel", text="book"),
            ],
            [call("file_item", kind="note", text="x")],
            "Filed.",
        ],
    )
    yield AgentNotebook(
        "closures_that_share",
        cells(
            OPENAI,
            f"""
QUESTION = "Deposit 10, withdraw 3."
{schemas("responses", deposit="amount:number", withdraw="amount:number", close_account="")}

def account(owner):
    balance, history, is_open = 0, [], True

    def deposit(amount):
        nonlocal balance
        balance += amount
        history.append(("in", amount))
        return balance

    def withdraw(amount):
        nonlocal balance
        if amount > balance:
            raise ValueError("not enough")
        balance -= amount
        history.append(("out", amount))
        return balance

    def close_account():
        nonlocal is_open
        is_open = False
        return "closed"

    def statement():
        return owner, balance, list(history), is_open

    return {{"deposit": deposit, "withdraw": withdraw, "close_account": close_account, "statement": statement}}

mine = account("ada")
yours = account("bob")

def run_tool(name, arguments):
    try:
        return mine[name](**arguments)
    except ValueError as error:
        return f"error: {{error}}"
""",
            RESPONSES_LOOP,
            "mine['statement'](), yours['statement']()",
            "mine['deposit'](1)",
        ),
        [
            [call("deposit", amount=10)],
            [call("withdraw", amount=30)],
            [call("withdraw", amount=3)],
            [call("close_account")],
            "7 are left.",
        ],
    )
    yield AgentNotebook(
        "results_are_parts_of_the_state",
        cells(
            ANTHROPIC,
            f"""
QUESTION = "Find the basket and the newest item."
{schemas(basket_of="who", newest="who", everything="", builder="name")}
baskets = {{"ada": {{"items": [{{"name": "tea"}}], "owner": {{"name": "ada"}}}}}}
found = []

class Builder:
    def __init__(self):
        self.parts = []
    def add(self, part):
        self.parts.append(part)
        return self

made = Builder()

def basket_of(who):
    return baskets.setdefault(who, {{"items": [], "owner": {{"name": who}}}})

def newest(who):
    baskets[who]["items"].append({{"name": f"item {{len(baskets[who]['items'])}}"}})
    return baskets[who]["items"][-1]

def everything():
    return list(baskets.values()), baskets["ada"]["owner"]

def builder(name):
    return made.add(name).add(name.upper())

def run_tool(name, arguments):
    found.append(globals()[name](**arguments))
    return str(len(found))
""",
            ANTHROPIC_LOOP,
            "found[0]['items'].append('by hand')\nfound[1]['price'] = 3\nprint(baskets)",
            "print(found[0] is baskets['ada'], found[1] is baskets['ada']['items'][1], found[2][0][0] is baskets['ada'], found[2][1] is baskets['ada']['owner'], found[3] is made)",
        ),
        [
            [call("basket_of", who="ada")],
            [call("newest", who="ada"), call("everything"), call("builder", name="a")],
            [call("basket_of", who="bob")],
            "Found.",
        ],
    )
    yield AgentNotebook(
        "enums_flags_and_metaclasses",
        cells(
            OPENAI,
            f"""
import enum
from collections import Counter
QUESTION = "Ship order 1, cancel order 2."
{schemas("openai", ship="order:integer", cancel="order:integer", allow="what")}

class Status(enum.Enum):
    NEW = "new"
    SHIPPED = "shipped"
    CANCELLED = "cancelled"

class Right(enum.Flag):
    NONE = 0
    READ = enum.auto()
    WRITE = enum.auto()

class Registered(type):
    known = {{}}
    def __new__(meta, name, bases, body):
        made = super().__new__(meta, name, bases, body)
        meta.known[name] = made
        return made

class Order(metaclass=Registered):
    count = Counter()
    last = None
    def __init__(self, number):
        self.number, self.status = number, Status.NEW
    def to(self, status):
        self.status = status
        Order.count[status] += 1
        type(self).last = self
        return status.value

class Plugin:
    plugins = {{}}
    uses = 0
    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        Plugin.plugins[cls.__name__] = cls
    @classmethod
    def use(cls):
        cls.uses += 1
        return cls.uses

class Mailer(Plugin):
    pass

orders = {{number: Order(number) for number in (1, 2)}}
rights = Right.NONE
by_status = {{status: [] for status in Status}}

def ship(order):
    Plugin.plugins["Mailer"].use()
    by_status[Status.SHIPPED].append(orders[order])
    return orders[order].to(Status.SHIPPED)

def cancel(order):
    by_status[Status.CANCELLED].append(orders[order])
    return orders[order].to(Status.CANCELLED)

def allow(what):
    global rights
    rights |= Right[what]
    return str(rights)
{BY_NAME}""",
            OPENAI_LOOP,
            "print({n: o.status for n, o in orders.items()}, Order.count, Order.last is orders[2], rights, Mailer.uses, Plugin.uses)",
            "by_status[Status.SHIPPED][0] is orders[1]",
        ),
        [
            [call("ship", order=1)],
            [call("allow", what="READ"), call("allow", what="WRITE")],
            [call("cancel", order=2)],
            "Done.",
        ],
    )
    yield AgentNotebook(
        "heaps_views_and_buffers",
        cells(
            ANTHROPIC,
            f"""
import array, bisect, heapq, struct
from collections import ChainMap, OrderedDict, UserDict, deque
from dataclasses import dataclass, field
QUESTION = "Queue two jobs and take one."
{schemas(push="job priority:integer", pop="", poke="at:integer value:integer", use="key")}

@dataclass(order=True)
class Job:
    priority: int
    name: str = field(compare=False)

class LRU(OrderedDict):
    def __init__(self, size):
        super().__init__()
        self.size = size
    def touch(self, key):
        self[key] = self.get(key, 0) + 1
        self.move_to_end(key)
        while len(self) > self.size:
            self.popitem(last=False)

class Case(UserDict):
    def __setitem__(self, key, value):
        super().__setitem__(key.lower(), value)

heap, names, recent = [], [], deque(maxlen=2)
memory = bytearray(8)
view = memoryview(memory)
half = view[4:]
numbers = array.array("d", [1.0, 2.0])
lru, case = LRU(2), Case()
defaults, own = {{"lang": "en"}}, {{}}
settings = ChainMap(own, defaults)

def push(job, priority):
    heapq.heappush(heap, Job(priority, job))
    bisect.insort(names, job)
    recent.append(job)
    recent.rotate(1)
    return str(len(heap))

def pop():
    return heapq.heappop(heap).name

def poke(at, value):
    half[at] = value
    struct.pack_into("<H", view, 0, value)
    numbers.append(value)
    numbers[0] *= 2
    return memory.hex()

def use(key):
    lru.touch(key)
    case[key.upper()] = len(case)
    settings["lang"] = key
    return str(list(lru))
{BY_NAME}""",
            ANTHROPIC_LOOP,
            "print(heap, names, recent, memory, numbers, lru, case, settings, own)",
        ),
        [
            [
                call("push", job="wash", priority=2),
                call("push", job="cook", priority=1),
                call("push", job="rest", priority=3),
            ],
            [call("pop"), call("poke", at=1, value=7), call("use", key="a"), call("use", key="b")],
            [call("use", key="a"), call("use", key="c")],
            "Cooked.",
        ],
    )
    yield AgentNotebook(
        "python_interpreter_tool",
        cells(
            ANTHROPIC,
            f"""
import contextlib, io
QUESTION = "Compute the squares and their sum."
{schemas(python="code")}
space = {{}}
ran = []

def python(code):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(code, space)
    ran.append(code)
    return out.getvalue()
{BY_NAME}""",
            ANTHROPIC_LOOP,
            "print(sorted(name for name in space if name != '__builtins__'), ran)",
            "space['squares'], space['total'], space['ratio']",
        ),
        [
            [call("python", code="squares = [n * n for n in range(4)]\nprint(squares)")],
            [
                call(
                    "python",
                    code="import math\ntotal = sum(squares)\nratio = math.sqrt(total)\nprint(total)",
                )
            ],
            "14.",
        ],
    )
    yield AgentNotebook(
        "macros_that_tools_define",
        cells(
            OPENAI,
            f"""
QUESTION = "Define double, and use it."
{schemas("openai", define="name expression", use="name value:number", python="code")}
macros, uses = {{}}, []

def define(name, expression):
    macros[name] = eval("lambda x: " + expression)
    return "defined"

def use(name, value):
    uses.append(name)
    return macros[name](value)

def python(code):
    exec(code, globals())
    return "ran"
{BY_NAME}""",
            OPENAI_LOOP,
            "print(sorted(macros), uses)",
            "macros['double'](21), thrice(2), total",
        ),
        [
            [call("define", name="double", expression="2 * x")],
            [
                call("use", name="double", value=4),
                call("python", code="total = 5\ndef thrice(x):\n    return 3 * x"),
            ],
            "8.",
        ],
    )
    yield AgentNotebook(
        "locks_events_and_semaphores",
        cells(
            ANTHROPIC,
            f"""
import asyncio, queue, threading
QUESTION = "Start the pump, take two tickets."
{schemas(start="", take="", put="item", stop="")}
started, stopped = threading.Event(), threading.Event()
stopped.set()
places = threading.Semaphore(3)
jobs = queue.PriorityQueue()
inbox = asyncio.Queue()
ready = asyncio.Event()
lock = threading.RLock()
local = threading.local()
local.count = 0
barrier_count = threading.BoundedSemaphore(2)

def start():
    started.set()
    stopped.clear()
    ready.set()
    return "running"

def take():
    with lock:
        places.acquire()
        local.count += 1
    return f"{{places._value}} left"

def put(item):
    jobs.put((len(item), item))
    inbox.put_nowait(item)
    return str(jobs.qsize())

def stop():
    started.clear()
    barrier_count.acquire()
    return "stopped"
{BY_NAME}""",
            ANTHROPIC_LOOP,
            "print(started.is_set(), stopped.is_set(), ready.is_set(), places._value, jobs.queue, inbox.qsize(), local.count, barrier_count._value)",
            "jobs.get(), inbox.get_nowait()",
        ),
        [
            [call("start"), call("take"), call("take")],
            [call("put", item="seal"), call("put", item="nut"), call("stop")],
            "Running.",
        ],
    )
    yield AgentNotebook(
        "reached_by_odd_ways",
        cells(
            OPENAI,
            f"""
import inspect, sys, types
QUESTION = "Use each way."
{schemas("openai", by_main="item", by_shell="item", by_frame="item", by_module="item", by_attr="item", by_vars="item")}
todo, seen, kept, made, loose = [], [], [], [], {{}}
space = types.ModuleType("space")
space.items = []
space.count = 0
box = types.SimpleNamespace(items=[], total=0)

def by_main(item):
    import __main__
    __main__.todo.append(item)
    __main__.added = item
    return "ok"

def by_shell(item):
    shell = get_ipython()
    shell.user_ns["seen"].append(item)
    shell.push({{"pushed": item}})
    return "ok"

def by_frame(item):
    inspect.currentframe().f_globals["kept"].append(item)
    return "ok"

def by_module(item):
    space.items.append(item)
    space.count += 1
    return "ok"

def by_attr(item):
    setattr(box, "total", box.total + 1)
    getattr(sys.modules["__main__"], "made").append(item)
    return "ok"

def by_vars(item):
    vars(box)["new"] = item
    vars(sys.modules[__name__])["loose"][item] = 1
    return "ok"
{BY_NAME}""",
            OPENAI_LOOP,
            "print(todo, added, seen, pushed, kept, space.items, space.count, box, made, loose)",
        ),
        [
            [call("by_main", item="a"), call("by_shell", item="b"), call("by_frame", item="c")],
            [call("by_module", item="d"), call("by_attr", item="e"), call("by_vars", item="f")],
            "All.",
        ],
    )
    yield AgentNotebook(
        "members_of_sets",
        cells(
            ANTHROPIC,
            f"""
QUESTION = "Promote ada and move her."
{schemas(promote="name", move="name to")}

class Person:
    def __init__(self, name):
        self.name, self.level = name, 1
    def __repr__(self):
        return f"{{self.name}}:{{self.level}}"

class Team:
    def __init__(self, *people):
        self.people = set(people)

red, blue = Team(Person("ada"), Person("bob")), Team(Person("eve"))
levels = {{person: person.level for person in [*red.people, *blue.people]}}

def find(name):
    return next(person for person in [*red.people, *blue.people] if person.name == name)

def promote(name):
    person = find(name)
    person.level += 1
    levels[person] = person.level
    return str(person.level)

def move(name, to):
    person = find(name)
    red.people.discard(person)
    blue.people.add(person)
    return "moved"
{BY_NAME}""",
            ANTHROPIC_LOOP,
            "print(sorted(map(repr, red.people)), sorted(map(repr, blue.people)), sorted((p.name, n) for p, n in levels.items()))",
        ),
        [[call("promote", name="ada")], [call("move", name="ada", to="blue")], "Moved."],
    )
    yield AgentNotebook(
        "cached_functions",
        cells(
            OPENAI,
            f"""
import functools
QUESTION = "Prices of tea, tea and milk."
{schemas("openai", price="item", route="to")}
looked_up = []

@functools.cache
def price(item):
    looked_up.append(item)
    return len(item) * 1.5

class Map:
    def __init__(self):
        self.looked = 0
    @functools.lru_cache(maxsize=2)
    def route(self, to):
        self.looked += 1
        return [to, "home"]

city = Map()

def run_tool(name, arguments):
    return price(**arguments) if name == "price" else city.route(**arguments)
""",
            OPENAI_LOOP,
            "print(looked_up, city.looked)",
            "print(price('tea'), price('milk'), city.route('park'), looked_up, city.looked)",
        ),
        [
            [call("price", item="tea"), call("price", item="tea"), call("route", to="park")],
            [call("price", item="milk"), call("route", to="park")],
            "Cheap.",
        ],
    )
    yield AgentNotebook(
        "cache_that_forgets",
        cells(
            ANTHROPIC,
            f"""
import time
from datetime import datetime, timedelta
QUESTION = "Weather in Oslo, twice, then Rome."
{schemas(weather="city", forget="")}

class Cache:
    def __init__(self, seconds):
        self.seconds, self.kept = seconds, {{}}
        self.hits = self.misses = 0
    def get(self, key, make):
        now = time.monotonic()
        if key in self.kept and self.kept[key][0] > now:
            self.hits += 1
        else:
            self.misses += 1
            self.kept[key] = (now + self.seconds, make(key))
        return self.kept[key][1]
    def __len__(self):
        return len(self.kept)
    def __bool__(self):
        return True

cache = Cache(60)
since = {{}}

def look_up(city):
    since[city] = datetime.now() + timedelta(hours=1)
    return f"rain in {{city}}"

def weather(city):
    return cache.get(city, look_up)

def forget():
    cache.kept.clear()
    return "empty"
{BY_NAME}""",
            ANTHROPIC_LOOP,
            "print(cache.hits, cache.misses, len(cache), sorted(since))",
        ),
        [
            [call("weather", city="Oslo"), call("weather", city="Oslo")],
            [call("forget"), call("weather", city="Rome")],
            "Rain.",
        ],
        varies=True,
    )
    yield AgentNotebook(
        "errors_kept",
        cells(
            ANTHROPIC,
            f"""
QUESTION = "Divide, then look at the log."
{schemas(divide="a:number b:number", check="value:number")}
errors, log = [], []

class TooLarge(ValueError):
    def __init__(self, value, limit):
        super().__init__(f"{{value}} is over {{limit}}")
        self.value, self.limit = value, limit

def divide(a, b):
    try:
        return a / b
    except ZeroDivisionError as error:
        errors.append(error)
        error.add_note("by the tool")
        raise ArithmeticError("cannot divide") from error

def check(value):
    log.append(value)
    if value > 10:
        error = TooLarge(value, 10)
        errors.append(error)
        raise error
    return "fine"

def run_tool(name, arguments):
    try:
        return globals()[name](**arguments)
    except Exception as error:
        errors.append(error)
        return f"{{type(error).__name__}}: {{error}}"
""",
            ANTHROPIC_LOOP,
            "for error in errors:\n    print(repr(error), repr(error.__cause__), getattr(error, '__notes__', None), vars(error))\nprint(errors[0] is errors[1].__cause__, errors[2] is errors[3], log)",
        ),
        [
            [call("divide", a=1, b=0)],
            [call("check", value=5), call("check", value=50)],
            "It cannot be done.",
        ],
    )
