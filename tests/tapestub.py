"""Stand-in for a recorded provider, for cells of the flow cases: deterministic, replayed, overridable.

The replies lie in the module `tape_replies` (tapereplies.py makes it), which has no file, as a library's state has none:
that a reply changes is nothing that a cell did. This module itself is imported by the cells.
"""

import asyncio
import json
import sys


def _reply(key):
    return sys.modules["tape_replies"].reply(key)


def llm(prompt):
    return _reply(str(prompt))


def llm_json(prompt):
    return json.loads(_reply(str(prompt)))


async def allm(prompt):
    await asyncio.sleep(0)
    return _reply(str(prompt))


def tool(name, **arguments):
    return _reply(name + ":" + ",".join(f"{key}={arguments[key]}" for key in sorted(arguments)))


def stream(prompt):
    yield from _reply(str(prompt)).split()


class Message:
    def __init__(self, content):
        self.content = content
        self.role = "assistant"


class Client:
    def __init__(self, model="m1"):
        self.model = model

    def chat(self, messages):
        return Message(_reply(messages[-1]["content"]))
