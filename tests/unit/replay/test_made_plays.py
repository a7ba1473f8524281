"""What answers each call of programs made up, over recordings made up, is what always did: under every mode, with words
of --live, --freeze and --stub, in any order; and what a recorded connection gives a program that talks to it in any order.

`made_plays.json` holds a digest of each hundred. A change that is meant:

    python tests/unit/replay/test_made_plays.py > tests/unit/replay/made_plays.json

and look at the difference: `... NUMBER` prints one of them.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # not this folder, whose modules would stand for others of their names

from tape_jupyter.cassette.runs import CellIdentity
from tape_jupyter.core.call import FunctionCall, Request
from tape_jupyter.core.websocket import WebSocketFrame
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.replay.player import Player
from tape_jupyter.replay.selection import CallOrigin, Selection, Selector, call_origin
from tape_jupyter.replay.websocket_script import Missing, Script, message_key
from tape_jupyter.secrets.registry import Secrets
from tests.harness.readings import digest

KEPT = Path(__file__).with_name("made_plays.json")
GROUPS, EACH = 8, 25
WORDS = (
    "llm", "tools", "tool:look_up", "tool:send", "host:api.example.com", "host:API.example.com:8443", "host:example.com", "call:k1", "call:r1/k1-2",
    "call:k2", "cell:c1", "cell:beef", "cell:bee", "cell:c2",
)  # fmt: skip
ODD_WORDS = ("", ":", "llm:x", "tools:x", "tool", "tool:", "host", "x:y", " tool:a:b ", "call", "z" * 99)  # fmt: skip
SITES = (("model", "api.example.com", 443), ("model", "api.example.com", 8443), ("host", "sub.example.com", 80), ("tool", "look_up", None), ("tool", "Mail.send", None), ("retrieval", "look_up", None))  # fmt: skip
MODES = ("record", "replay", "replay", "replay", "new_episodes", "once", "live")


@dataclasses.dataclass(frozen=True)
class Call:
    id: str
    run: str
    match: str
    lineage: str = ""
    order: int = 1
    discriminator: str = ""


class Program:
    """Recordings, and cells that are executed over them."""

    def __init__(self, number: int) -> None:
        self.random = Random(f"plays {number}")
        self.runs: list[dict[str, Any]] = []
        self.calls: list[Call] = []
        self.player = Player(self._matching, lambda: self.runs)
        self.shelves: list[list[Call]] = []

    def _matching(self, key: str) -> list[Call]:
        return [call for call in self.calls if call.match == key]

    def _cell(self) -> dict[str, str]:
        cell = self.random.choice(("", "c1", "c2"))
        return {"cell": cell, "source": self.random.choice(("beef1", "beef2", "cafe"))}

    def record(self) -> None:
        run = f"r{len(self.runs)}"
        told: dict[str, Any] = {"run": run, "session": self.random.choice(("s1", "s2", "s3")), **self._cell()}  # fmt: skip
        told["mode"] = self.random.choice(("record", "record", "new_episodes", "replay", "resend"))
        if self.runs and told["mode"] != "record":
            parent = self.random.choice(self.runs)
            told |= {"parent": parent["run"]} | ({key: parent[key] for key in ("cell", "source")} if self.random.random() < 0.7 else {})  # fmt: skip
        if self.random.random() < 0.95:
            self.runs.append(told)
        counts: dict[str, int] = {}
        for _ in range(self.random.randrange(5)):
            key = self.random.choice(("k1", "k2", "k3"))
            counts[key] = order = counts.get(key, 0) + 1
            name = key if order == 1 else f"{key}-{order}"
            self.calls.append(Call(name, run, key, self.random.choice(("", "", "1", "2.1")), order, self.random.choice(("", "", "d1", "d2"))))  # fmt: skip

    def execute(self) -> Iterator[Any]:
        cell = self._cell()
        identity = CellIdentity(cell["cell"], cell["source"], self.random.choice(("s1", "s9")))
        selection = None
        if self.random.random() < 0.5:
            stub = {self.random.choice(("look_up", "tool:send")): 7} if self.random.random() < 0.3 else {}  # fmt: skip
            lives, freezes = self.random.sample(WORDS, 2), self.random.sample(WORDS, 1)
            try:
                selection = Selection.parse(lives, freezes, stub)
            except TapeUsageError as error:
                yield str(error)
        repeats = self.random.choice((*(run["run"] for run in self.runs), "", "", "r99"))
        player = self.player
        played = player.start(identity, self.random.choice(MODES), None, selection, repeats)
        played.on_divergence = self.random.choice(("stop", "stop", "live", "stale"))
        played.decided = {"k3": "live"} if self.random.random() < 0.2 else {}
        yield [player.repeats(played), player.recording_of(played), player.has_recording(identity)]
        for _ in range(self.random.randrange(8)):
            kind, name, port = self.random.choice(SITES)
            site = CallOrigin(kind, name, port, identity) if self.random.random() < 0.8 else None  # type: ignore[arg-type]
            key = self.random.choice(("k1", "k1", "k2", "k3", "k4"))
            apart = self.random.choice((None, None, "", "d1"))
            yield player.decide(
                played, key, self.random.choice(("", "1", "9")), ended=self.random.random() < 0.05, site=site,
                discriminator=apart, has_body=self.random.random() < 0.2,
            )  # fmt: skip
            yield [player.times(played, key, apart), sorted(player.groups(played, key))]
            if self.calls and self.random.random() < 0.1:
                yield player.claim(played, self.random.choice(self.calls))
        yield [played.mode, sorted(player.repeated(played)), sorted(run.id for run in player.current())]  # fmt: skip

    def told(self) -> Iterator[Any]:
        for _ in range(self.random.randrange(2, 6)):
            self.record()
        for _ in range(4):
            yield list(self.execute())
            if self.random.random() < 0.3:
                self.record()
            if self.random.random() < 0.1:
                self.runs = self.runs[:-1]
                self.player.forget()


def words() -> Iterator[Any]:
    """What each word is for, what it is not; and what is refused."""
    cells = [CellIdentity("c1", "beef1"), CellIdentity("", "beef2"), CellIdentity()]
    calls = [None, Call("k1", "r1", "k1"), Call("k1-2", "r1", "k1")]
    for word in (*WORDS, *ODD_WORDS):
        try:
            selector = Selector.parse(word)
        except TapeUsageError as error:
            yield str(error)
            continue
        yield [str(selector), [selector.selects(CallOrigin(*site, cell), call) for site in SITES for cell in cells for call in calls]]  # type: ignore[arg-type]  # fmt: skip
    for given in (
        {"live": ["tools"], "freeze": ["tools"]}, {"live": ["tool:a"], "stub": {"a": 1}}, {"freeze": ["tool:a"], "stub": {"tool:a": 1}},
        {"stub": {"host:a": 1}}, {"stub": {"": 1}}, {"stub": {"tool:": 1}}, {"stub": {"a": object()}}, {"live": ["llm", "llm", "host:A"], "stub": {"a": {"b": (1,)}}},
        {"freeze": ["tool:x", "cell:c1"], "live": ["tool:y", "host:z:1"]}, {},
    ):  # fmt: skip
        try:
            made = Selection.parse(**given)  # type: ignore[arg-type]
        except TapeUsageError as error:
            yield str(error)
        else:
            yield [made.record(), bool(made), made.changes, sorted(made.hosts), made.held_tools, made.tools, made.without_stubs().record()]  # fmt: skip
    for url in ("https://A.example.com/x", "ws://h:81", "http://h", "ftp://h", "https://[x", "https://h:port", "wss://h/"):  # fmt: skip
        yield repr(call_origin(Request("GET", url), "host", cells[0]))
    yield repr(call_origin(FunctionCall("Mail.send", {}), "tool", cells[0]))


FRAMES = (
    ("text", b'{"type": "session.update", "session": {"a": 1}}'), ("text", b'{"type": "input_audio_buffer.append", "audio": "AA"}'),
    ("text", b'{"type": "input_audio_buffer.append", "audio": "BB"}'), ("text", b'{"type": "response.create", "event_id": "e1"}'), ("text", b'{"type": "response.create", "event_id": "e2"}'),
    ("text", b'{"setup": {"model": "m"}}'), ("text", b'{"realtimeInput": {"mediaChunks": []}}'), ("text", b"plain"), ("binary", b"\x00\x01"), ("text", b"[1]"), ("text", b"{}"),
)  # fmt: skip


def dialogue(number: int) -> Iterator[Any]:
    """A recorded connection, and a program that says what was said in some order, or something else."""
    random, secrets = Random(f"dialogue {number}"), Secrets()
    frames = [
        WebSocketFrame("sent" if random.random() < 0.5 else "got", *random.choice(FRAMES))  # type: ignore[arg-type]
        for _ in range(random.randrange(1, 9))
    ]
    if random.random() < 0.5:
        place = random.randrange(len(frames) + 1)
        by, kind = random.choice((("sent", "close"), ("got", "close"), ("sent", "failed")))
        frames.insert(place, WebSocketFrame(by, kind, b"bye", 1000))  # type: ignore[arg-type]
    waits = [round(n * random.random(), 3) for n in range(random.randrange(len(frames) + 1))]
    script = Script(
        frames, waits, lambda frame: message_key(frame, secrets), _refusal, lost=random.random() < 0.2
    )  # fmt: skip
    for _ in range(14):
        match random.randrange(5):
            case 0 | 1:
                yield repr(script.take_due_frame())
            case 2 if random.random() < 0.2:
                yield repr(script.receive_frame(WebSocketFrame("sent", "close", b"", 1001)))
            case 2 | 3:
                said = [each for each in frames if each.by == "sent" and each.is_message]
                other = WebSocketFrame("sent", *random.choice(FRAMES))  # type: ignore[arg-type]
                yield _received(script, random.choice(said) if said and random.random() < 0.8 else other)  # fmt: skip
            case _:
                missing = script.missing()
                assert isinstance(missing, Missing)
                yield [repr(missing), round(script.patience(), 3)]


def _refusal(now: WebSocketFrame, recorded: WebSocketFrame | None, place: int) -> Exception:
    return LookupError(repr((now, recorded, place)))


def _received(script: Script, frame: WebSocketFrame) -> str:
    try:
        return repr(script.receive_frame(frame))
    except LookupError as error:
        return str(error)


def every() -> dict[str, str]:
    made = {"words": digest(list(words()))}
    for group in range(GROUPS):
        numbers = range(group * EACH, (group + 1) * EACH)
        made[f"plays {group}"] = digest([repr(list(Program(number).told())) for number in numbers])
        made[f"dialogues {group}"] = digest([list(dialogue(number)) for number in numbers])
    return made


def test_what_answers_is_what_always_did():
    assert every() == json.loads(KEPT.read_text())


def main() -> None:
    for number in map(int, sys.argv[1:]):
        print("\n".join(map(repr, [*Program(number).told(), *dialogue(number)])))
    if not sys.argv[1:]:
        print(json.dumps(every(), indent=0))


if __name__ == "__main__":
    main()
