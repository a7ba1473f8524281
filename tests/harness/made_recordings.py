"""Recordings made up: cassettes with several sessions, cells, modes, growing histories, tools, secrets and long texts, by
a number. The same bytes in every process.
"""

from __future__ import annotations

import dataclasses
import json
import secrets as entropy
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.index_entries import Entry
from tape_jupyter.cassette.match_key import asked_function, exact_digest, match_request
from tape_jupyter.cassette.records import Head
from tape_jupyter.core.call import FunctionCall, Reply, Request, Value, Where
from tape_jupyter.encoding.values.registry import freeze
from tape_jupyter.providers import registry
from tape_jupyter.secrets.registry import Secrets
from tests.harness import made_traffic

SECRET = "sk-ant-made-0123456789abcdefghij"
WORDS = "the region north has sold more than the south in spring, she said, and Größe 42".split()
HEADER = {"notebook": "made.ipynb", "cassette": "main", "language": "python"}


@contextmanager
def same_names() -> Iterator[None]:
    """Runs are named in turn, not at random."""
    numbers = count(1)
    with mock.patch.object(entropy, "token_hex", lambda size: f"{next(numbers):0{2 * size}x}"):
        yield


class Maker:
    """Records sessions into a cassette, as the number says."""

    def __init__(self, path: Path, number: int) -> None:
        self.random = Random(f"recording {number}")
        self.secrets = Secrets()
        self.secrets.learn("ANTHROPIC_API_KEY", SECRET)
        self.path, self.number, self.minute = path, number, 0
        self.runs: list[str] = []
        self.cells: dict[str, dict[str, str]] = {}
        self.asked: list[tuple[str, Request | FunctionCall, Reply | Value]] = []
        self.entries: list[Entry] = []

    def record(self, sessions: int) -> None:
        for _ in range(sessions):
            self._session(f"s{self.number}-{len(self.runs)}")

    def _session(self, session: str) -> None:
        cassette = Cassette.open(self.path)
        messages: list[dict[str, Any]] = []
        for _ in range(self.random.randrange(1, 4)):
            mode = self.random.choice(("record", "record", "record", "new_episodes", "replay", "resend"))  # fmt: skip
            cell = {"cell": self.random.choice(("", "c-1", "c-2")), "source": self.random.choice(("aaaa", "bbbb", "cccc"))}  # fmt: skip
            if mode == "record" or not self.cells:
                said = {"mode": "record", **cell}
            else:
                parent = self.random.choice(list(self.cells))
                said = {"mode": mode, "parent": parent, **self.cells[parent]}
            said |= {"session": session, "at": self._moment(), "count": 3}
            said |= {"title": f"asks {SECRET}"} if self.random.random() < 0.2 else {}
            run = cassette.start_run(said, HEADER, self.secrets)
            self.runs.append(run)
            if said["mode"] == "record":
                self.cells[run] = cell
            kit = {"python": "3.11.7", "packages": {"httpx": "0.28", session: "1"}, "source": said["source"]}  # fmt: skip
            cassette.add_kit(run, kit, self.secrets)
            self._calls(cassette, run, messages)
            if self.random.random() < 0.8:
                end = {"outcome": self.random.choice(("ok", "raised")), "seconds": 1.5, "calls": 2}
                cassette.end_run(run, end, self.secrets, sync=False)

    def _calls(self, cassette: Cassette, run: str, messages: list[dict[str, Any]]) -> None:
        names: dict[str, int] = {}
        for _ in range(self.random.randrange(0, 4)):
            call, reply = self._call(messages)
            if isinstance(call, FunctionCall):
                found = asked_function(call, self.secrets)
            else:
                found = match_request(call, self.secrets)
                found = found._replace(exact=exact_digest(call) if not found.hidden else "")
            names[found.match] = names.get(found.match, 0) + 1
            times = names[found.match]
            name = found.match[:8] if times == 1 else f"{found.match[:8]}-{times}"
            is_tool = isinstance(call, FunctionCall)
            lineage = self.random.choice(("", "1", "2.1"))
            head = Head(
                name, run, found.match, "tool" if is_tool else "model", Where(lineage=lineage), self._moment(), 0.5,
                {} if is_tool else registry.call_facts(call, reply).record(), call.name if is_tool else "",
                exact=found.exact, discriminator=found.discriminator,
            )  # fmt: skip
            entry = cassette.append_call(head, call, reply, self.secrets)
            self.asked.append((self.path.name, call, reply))
            self.entries.append(entry)
            if isinstance(reply, Reply) and reply.status and self.random.random() < 0.2:
                late = dataclasses.replace(reply, chunks=(b"late",), waits=(2.0,))
                cassette.append_more(entry, late, self.secrets)

    def _call(self, messages: list[dict[str, Any]]) -> tuple[Any, Any]:
        match self.random.randrange(8):
            case 0:
                place = {"place": self._words(3), "days": [1, 2.5, None], "key": SECRET}
                return FunctionCall("look_up", place), Value(freeze({"found": [self._words(2), b"raw"], "n": 7}))  # fmt: skip
            case 1:
                error = {"type": "ValueError", "module": "builtins", "args": [self._words(2)]}
                return FunctionCall("fail", {"a": (1, 2)}), Value(error=error, seconds=0.5)
            case 2:
                made = self.random.choice(made_traffic.WIRES)
                answer = made_traffic.streamed(made, made.streams[0])
                return made_traffic.request(made, made.requests[0]), answer
            case 3:
                made = self.random.choice(made_traffic.WIRES)
                odd = made_traffic.made_odd(made.requests[0], self.random)
                status = self.random.choice((200, 429, 500))
                return made_traffic.request(made, odd), made_traffic.whole(made.replies[-1], status)
            case 4:
                request = Request("GET", f"https://example.com/{self._words(1)}?key={SECRET}", (("authorization", f"Bearer {SECRET}"),))  # fmt: skip
                body = self.random.choice((b"", b"\xff\x00\x01", b"plain\r\ntext\n", b"<p>\xc3\xa9</p>"))  # fmt: skip
                error = {"type": "ReadTimeout", "module": "httpx", "args": ["slow"]}
                lost = Reply(None, end="error", error=error)
                told = Reply(200, (("content-type", "text/plain"), ("set-cookie", "a=b")), (body,) if body else (), (0.25,) if body else ())  # fmt: skip
                return request, self.random.choice((lost, told))
            case _:
                return self._turn(messages)

    def _turn(self, messages: list[dict[str, Any]]) -> tuple[Request, Reply]:
        """The next turn of a conversation that grows."""
        size = self.random.choice((5, 40, 300))
        long = "x" * 70_000 if self.random.random() < 0.05 else ""
        messages.append({"role": "user", "content": self._words(size) + long})
        body = {"model": "claude-sonnet-4-5", "max_tokens": 64, "system": "Be brief. " * 30, "messages": messages}  # fmt: skip
        text = self._words(self.random.choice((1, 30)))
        told = {**made_traffic.WIRES[0].replies[0], "content": [{"type": "text", "text": text}]}
        reply = made_traffic.whole(told)
        request = made_traffic.request(made_traffic.WIRES[0], body)
        messages.append({"role": "assistant", "content": text})
        return request, reply

    def _words(self, size: int) -> str:
        return " ".join(self.random.choices(WORDS, k=size))

    def _moment(self) -> str:
        self.minute += self.random.randrange(1, 3)
        return f"2026-11-21T{self.minute // 60:02}:{self.minute % 60:02}:00.000Z"


def spoiled(data: bytes, random: Random) -> tuple[str, bytes]:
    """A cassette as editors, git and crashes leave it, by what befell it."""
    cut = random.randrange(len(data) // 2, len(data) - 10)
    return random.choice((
        ("as it was", data),
        ("without its last line end", data.removesuffix(b"\n")),
        ("with CR LF", data.replace(b"\n", b"\r\n")),
        ("with CR LF, without the last", data.replace(b"\n", b"\r\n").removesuffix(b"\r\n")),
        ("broken off", data[:cut]),
        ("with a merge conflict", data + b"<<<<<<< ours\n"),
        ("with zeros behind it", data + b"\0" * 9),
        ("with a beginning behind it", data + b"---\ncall: 0"),
    ))  # fmt: skip


def plain(value: Any) -> Any:
    """What of a call or a reply is compared."""
    return json.loads(json.dumps(dataclasses.asdict(value), default=repr))
