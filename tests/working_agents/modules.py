"""Tools that import files of the notebook's own, read on in files, and set up what other tools use."""

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
)


def notebooks() -> Iterator[AgentNotebook]:
    yield AgentNotebook(
        "module_imported_in_a_tool",
        cells(
            ANTHROPIC,
            f"""
QUESTION = "What is tea, and what with tax?"
{schemas(price="item", tax="percent:integer")}

def price(item):
    import pricing
    return pricing.price_of(item)

def tax(percent):
    from pricing import settings
    settings.tax = percent
    return f"{{percent}} %"
{BY_NAME}""",
            ANTHROPIC_LOOP,
            "import pricing\nprint(pricing.seen, pricing.settings.tax, pricing.price_of('milk'))",
        ),
        [
            [call("price", item="tea")],
            [call("tax", percent=7), call("price", item="tea")],
            "It costs more with tax.",
        ],
        {
            "pricing.py": "from types import SimpleNamespace\n\nseen = {}\nsettings = SimpleNamespace(tax=0)\n\n\n"
            "def price_of(item):\n    seen[item] = seen.get(item, 0) + 1\n"
            "    return len(item) * (100 + settings.tax) / 100\n"
        },
    )
    yield AgentNotebook(
        "plugins_loaded_by_name",
        cells(
            OPENAI,
            f"""
import importlib, registry
QUESTION = "Load shout, and use it."
{schemas("openai", load="name", use="name text")}

def load(name):
    importlib.import_module(f"plugins.{{name}}")
    return sorted(registry.COMMANDS)

def use(name, text):
    return registry.COMMANDS[name](text)
{BY_NAME}""",
            OPENAI_LOOP,
            "print(sorted(registry.COMMANDS))",
        ),
        [[call("load", name="shout")], [call("use", name="shout", text="hi")], "HI."],
        {
            "registry.py": "COMMANDS = {}\n\n\ndef command(function):\n"
            "    COMMANDS[function.__name__] = function\n    return function\n",
            "plugins/__init__.py": "",
            "plugins/shout.py": "from registry import command\n\n\n@command\ndef shout(text):\n    return text.upper()\n",
        },
    )
    yield AgentNotebook(
        "rows_read_on_by_tools",
        cells(
            OPENAI,
            f"""
import csv
QUESTION = "Who are the first two?"
{schemas("openai", following="", left="")}
file = open("people.csv", newline="")
reader = csv.DictReader(file)
script = open("script.txt")
people = []

def following():
    people.append(next(reader))
    return people[-1]["name"] + script.readline()

def left():
    return reader.line_num
{BY_NAME}""",
            OPENAI_LOOP,
            "print(people, reader.line_num, script.tell())\nprint(list(reader), script.read())",
        ),
        [[call("following"), call("left")], [call("following")], "Ada and Bob."],
        {
            "people.csv": "name,age\nada,36\nbob,41\ncy,7\ndee,60\n",
            "script.txt": "one\ntwo\nthree\nfour\n",
        },
    )
    yield AgentNotebook(
        "logging_set_up_by_a_tool",
        cells(
            ANTHROPIC,
            f"""
import logging, logging.config
QUESTION = "Set the log up, and say two things."
{schemas(set_up="level", say="text")}

def set_up(level):
    logging.config.dictConfig({{
        "version": 1, "disable_existing_loggers": False, "formatters": {{"f": {{"format": "%(levelname)s:%(message)s"}}}},
        "handlers": {{"file": {{"class": "logging.FileHandler", "filename": "run.log", "formatter": "f"}}}},
        "loggers": {{"shop": {{"handlers": ["file"], "level": level, "propagate": False}}}},
    }})
    return "set up"

def say(text):
    logging.getLogger("shop").info(text)
    return "said"
{BY_NAME}""",
            ANTHROPIC_LOOP,
            "print(open('run.log').read(), logging.getLogger('shop').level, len(logging.getLogger('shop').handlers))",
        ),
        [
            [call("set_up", level="INFO")],
            [call("say", text="one"), call("say", text="two")],
            "Said.",
        ],
    )
