"""Tools that are found in dicts, registries, by name, as partials, as methods, behind decorators."""

from __future__ import annotations

from collections.abc import Iterator

from tests.working_agents.written import (
    ANTHROPIC,
    ANTHROPIC_LOOP,
    GEMINI,
    OPENAI,
    OPENAI_LOOP,
    RESPONSES_LOOP,
    AgentNotebook,
    cells,
    schemas,
    taped,
)
from tests.harness.scripted_model import call


def notebooks() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "handlers_in_a_dict",
        cells(
            ANTHROPIC,
            f"""
QUESTION = "Lights on in the hall, heating at 21, play jazz."
{schemas(light="room", heat="degrees:number", play="music")}
house = {{"lights": [], "heating": 18, "playing": None}}

def light(room):
    house["lights"].append(room)
    print("light in the", room)
    return "on"

HANDLERS = {{
    "light": light,
    "heat": lambda degrees: house.update(heating=degrees),
    "play": lambda music: house.__setitem__("playing", music) or f"playing {{music}}",
}}

def run_tool(name, arguments):
    return HANDLERS[name](**arguments)
""",
            ANTHROPIC_LOOP,
            "house",
        ),
        [
            [call("light", room="hall"), call("heat", degrees=21)],
            [call("play", music="jazz")],
            "Cosy.",
        ],
    )
    yield AgentNotebook(
        "registry_of_dataclasses",
        cells(
            OPENAI,
            """
import inspect
from dataclasses import dataclass, field
from typing import Callable
QUESTION = "Roll out to staging, then to production."

@dataclass
class Tool:
    name: str
    fn: Callable
    calls: int = 0
    results: list = field(default_factory=list)

    @property
    def schema(self):
        names = list(inspect.signature(self.fn).parameters)
        return {"type": "function", "function": {"name": self.name, "description": self.fn.__doc__ or "", "parameters": {
            "type": "object", "properties": {name: {"type": "string"} for name in names}, "required": names}}}

    def __call__(self, **arguments):
        self.calls += 1
        self.results.append(self.fn(**arguments))
        return self.results[-1]

class Registry:
    def __init__(self):
        self.tools = {}
    def tool(self, fn):
        self.tools[fn.__name__] = Tool(fn.__name__, fn)
        return fn

registry = Registry()
deployed = {}

@registry.tool
def deploy(service, stage):
    "Deploy a service."
    deployed.setdefault(stage, []).append(service)
    return f"{service} is on {stage}"

@registry.tool
def stages():
    "What is where."
    return deployed

TOOLS = [tool.schema for tool in registry.tools.values()]

def run_tool(name, arguments):
    return registry.tools[name](**arguments)
""",
            OPENAI_LOOP,
            "print(deployed, {name: (tool.calls, tool.results) for name, tool in registry.tools.items()})",
            "registry.tools['stages'].results[0] is deployed",
        ),
        [
            [call("deploy", service="api", stage="staging")],
            [call("deploy", service="api", stage="production"), call("stages")],
            "Rolled out.",
        ],
    )
    yield AgentNotebook(
        "by_name_in_globals",
        cells(
            OPENAI,
            f"""
QUESTION = "Note that the roof leaks, and call a roofer."
{schemas("responses", take_note="text", phone="whom")}
notes, phoned = [], {{}}

def take_note(text):
    notes.append(text)
    return "noted"

def phone(whom):
    phoned[whom] = phoned.get(whom, 0) + 1
    notes.append(f"phoned {{whom}}")
    return "no answer"

def run_tool(name, arguments):
    return globals()[name](**arguments)
""",
            RESPONSES_LOOP,
            "print(notes, phoned)",
        ),
        [
            [call("take_note", text="the roof leaks")],
            [call("phone", whom="roofer")],
            "Nobody answers.",
        ],
    )
    yield AgentNotebook(
        "partials",
        cells(
            ANTHROPIC,
            f"""
from functools import partial
QUESTION = "Milk on the shopping list, dentist on the calendar."
{schemas(add_to_shopping="what", add_to_calendar="what")}
lists = {{"shopping": [], "calendar": ["birthday"]}}

def add(where, what, *, log):
    where.append(what)
    log.append((what, len(where)))
    return where[-1]

log = []
TOOL_FUNCTIONS = {{
    "add_to_shopping": partial(add, lists["shopping"], log=log),
    "add_to_calendar": partial(add, lists["calendar"], log=log),
}}

def run_tool(name, arguments):
    return TOOL_FUNCTIONS[name](**arguments)
""",
            ANTHROPIC_LOOP,
            "print(lists, log, TOOL_FUNCTIONS['add_to_shopping'].args[0] is lists['shopping'])",
        ),
        [[call("add_to_shopping", what="milk"), call("add_to_calendar", what="dentist")], "Added."],
    )
    yield AgentNotebook(
        "marked_with_tape_tool",
        cells(
            """
import anthropic
import tape_jupyter as tape
client = anthropic.Anthropic()
inbox = [{"id": 1, "read": False}, {"id": 2, "read": False}]
sent = []

@tape.tool
def mark_read(id):
    for mail in inbox:
        if mail["id"] == id:
            mail["read"] = True
    return inbox

@tape.tool
def send(to, body):
    sent.append({"to": to, "body": body})
    print(f"sent to {to}")
    return len(sent)
""",
            taped("""
reply = client.messages.create(model="claude-sonnet-4-6", max_tokens=99, messages=[{"role": "user", "content": "Answer Ada."}])
answer = reply.content[0].text
now = mark_read(1)
number = send("ada@example.com", answer)
"""),
            "print(inbox, sent, number, now is inbox)",
        ),
        ["Dear Ada, yes."],
    )
    yield AgentNotebook(
        "behind_own_decorators",
        cells(
            OPENAI,
            f"""
import functools
QUESTION = "Water the fern and the fig."
{schemas("openai", water="plant millilitres:integer")}
calls = []
timings = {{}}

def logged(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        calls.append((fn.__name__, kwargs))
        result = fn(*args, **kwargs)
        timings.setdefault(fn.__name__, []).append(len(calls))
        return result
    return wrapper

def validated(**types):
    def decorate(fn):
        @functools.wraps(fn)
        def wrapper(**kwargs):
            return fn(**{{name: types[name](value) for name, value in kwargs.items()}})
        return wrapper
    return decorate

plants = {{"fern": 0, "fig": 0}}

@logged
@validated(plant=str, millilitres=int)
def water(plant, millilitres):
    plants[plant] += millilitres
    return plants

def run_tool(name, arguments):
    return globals()[name](**arguments)
""",
            OPENAI_LOOP,
            "print(plants, calls, timings)",
        ),
        [
            [call("water", plant="fern", millilitres=200)],
            [call("water", plant="fig", millilitres=100)],
            "Watered.",
        ],
    )
    yield AgentNotebook(
        "toolkit_by_getattr",
        cells(
            ANTHROPIC,
            f"""
QUESTION = "Go north twice, take the lamp, look."
{schemas(go="direction", take="thing", look="")}

class World:
    def __init__(self):
        self.position = [0, 0]
        self.rooms = {{(0, 0): ["rug"], (0, 2): ["lamp", "key"]}}
        self.visited = {{(0, 0)}}

class Toolkit:
    def __init__(self, world):
        self.world = world
        self.carried = []

    def dispatch(self, name, arguments):
        return getattr(self, f"tool_{{name}}")(**arguments)

    def tool_go(self, direction):
        self.world.position[1] += 1 if direction == "north" else -1
        self.world.visited.add(tuple(self.world.position))
        return self.world.position

    def tool_take(self, thing):
        room = self.world.rooms[tuple(self.world.position)]
        room.remove(thing)
        self.carried.append(thing)
        return self.carried

    def tool_look(self):
        return self.world.rooms.get(tuple(self.world.position), [])

world = World()
toolkit = Toolkit(world)
go, take, look = toolkit.tool_go, toolkit.tool_take, toolkit.tool_look
run_tool = toolkit.dispatch
""",
            ANTHROPIC_LOOP,
            "print(world.position, world.rooms, sorted(world.visited), toolkit.carried, toolkit.world is world)",
        ),
        [
            [call("go", direction="north"), call("go", direction="north")],
            [call("take", thing="lamp")],
            [call("look")],
            "There is a key.",
        ],
    )
    yield AgentNotebook(
        "callable_objects",
        cells(
            OPENAI,
            f"""
QUESTION = "Translate hello and bye."
{schemas("openai", translate="word")}

class Translate:
    name = "translate"

    def __init__(self, words):
        self.words, self.asked = words, []

    def __call__(self, word):
        self.asked.append(word)
        return self.words.get(word, "?")

translate = Translate({{"hello": "hei", "bye": "ha det"}})
TOOLS_BY_NAME = {{tool.name: tool for tool in [translate]}}

def run_tool(name, arguments):
    return TOOLS_BY_NAME[name](**arguments)
""",
            OPENAI_LOOP,
            "translate.asked",
        ),
        [[call("translate", word="hello"), call("translate", word="bye")], "Hei; ha det."],
    )
    yield AgentNotebook(
        "static_and_inherited",
        cells(
            ANTHROPIC,
            f"""
from abc import ABC, abstractmethod
QUESTION = "Store k=v in both stores."
{schemas(put="store key value")}

class Base(ABC):
    def __init__(self):
        self.writes = 0
        self.data = {{}}

    def put(self, key, value):
        self.writes += 1
        self.data[self.key_of(key)] = value
        return self.writes

    @abstractmethod
    def key_of(self, key): ...

class Plain(Base):
    @staticmethod
    def key_of(key):
        return key

class Upper(Base):
    def key_of(self, key):
        self.last = key.upper()
        return self.last

    def put(self, key, value):
        count = super().put(key, value)
        self.data["count"] = count
        return count

stores = {{"plain": Plain(), "upper": Upper()}}

def put(store, key, value):
    return stores[store].put(key, value)

def run_tool(name, arguments):
    return put(**arguments)
""",
            ANTHROPIC_LOOP,
            "print({name: vars(store) for name, store in stores.items()})",
        ),
        [
            [
                call("put", store="plain", key="k", value="v"),
                call("put", store="upper", key="k", value="v"),
            ],
            "Stored.",
        ],
    )
    yield AgentNotebook(
        "pydantic_models",
        cells(
            OPENAI,
            f"""
from pydantic import BaseModel, Field
QUESTION = "Ada, 36, lives in Oslo; Bob moved to Rome."
{schemas("responses", upsert="name age:integer city")}

class Address(BaseModel):
    city: str
    since: int = 2026

class Person(BaseModel):
    name: str
    age: int | None = None
    addresses: list[Address] = Field(default_factory=list)

class Book(BaseModel):
    people: dict[str, Person] = Field(default_factory=dict)
    version: int = 0

book = Book()

def upsert(name, age, city):
    person = book.people.setdefault(name, Person(name=name))
    if age:
        person.age = age
    person.addresses.append(Address(city=city))
    book.version += 1
    return person.model_dump_json()

def run_tool(name, arguments):
    return upsert(**arguments)
""",
            RESPONSES_LOOP,
            "print(book.model_dump_json(indent=1))",
        ),
        [
            [call("upsert", name="Ada", age=36, city="Oslo")],
            [call("upsert", name="Bob", age=0, city="Rome")],
            "Both are in.",
        ],
    )
    yield AgentNotebook(
        "gemini_automatic_functions",
        cells(
            GEMINI,
            """
bookings = []
seats = {"A1", "A2", "B1"}

def free_seats() -> list[str]:
    "The seats that are free."
    return sorted(seats)

def book_seat(seat: str, name: str) -> dict:
    "Book a seat for somebody."
    seats.discard(seat)
    bookings.append((seat, name))
    print("booked", seat)
    return {"seat": seat, "left": len(seats)}
""",
            taped("""
reply = client.models.generate_content(
    model="gemini-2.5-flash", contents="Book a seat for Ada.",
    config=types.GenerateContentConfig(tools=[free_seats, book_seat]))
print(reply.text)
"""),
            "print(bookings, sorted(seats))",
        ),
        [[call("free_seats")], [call("book_seat", seat="A2", name="Ada")], "Ada has A2."],
    )
    yield AgentNotebook(
        "anthropic_tool_runner",
        cells(
            """
import anthropic
from anthropic import beta_tool
client = anthropic.Anthropic()
weights = []
best = {}

@beta_tool
def log_weight(kilograms: float) -> str:
    \"\"\"Log a weight.

    Args:
        kilograms: What the scale says.
    \"\"\"
    weights.append(kilograms)
    best["low"] = min(weights)
    return f"{len(weights)} entries"
""",
            taped("""
runner = client.beta.messages.tool_runner(
    model="claude-sonnet-4-6", max_tokens=200, tools=[log_weight],
    messages=[{"role": "user", "content": "I weighed 71 on Monday and 70.5 today."}])
for message in runner:
    print(message.stop_reason)
"""),
            "print(weights, best)",
        ),
        [
            [call("log_weight", kilograms=71.0)],
            [call("log_weight", kilograms=70.5)],
            "Half a kilo less.",
        ],
    )
