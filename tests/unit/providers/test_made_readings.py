"""What is read of traffic of every provider's shape, odd replies among it, and what edits of it become, is what it was.

`made_readings.json` holds a digest of each. A change that is meant:

    python tests/unit/providers/test_made_readings.py > tests/unit/providers/made_readings.json

and look at the difference: `... NAME` prints what one of them reads as, before and after the change.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # not this folder, whose modules would stand for others of their names

from tape_jupyter.providers import editing, validation
from tests.harness import made_traffic
from tests.harness.made_traffic import Made
from tests.harness.readings import digest, edited, edits, facts, turns

KEPT = Path(__file__).with_name("made_readings.json")
ODD = 20
STREAMS = ("anthropic reply", "openai_chat reply", "openai_responses reply")
"""So many odd requests, replies and streams of each API."""


def readings(made: Made) -> dict[str, Any]:
    """None of them raises: what can be read is read, and an edit that cannot be made is told."""
    return {
        "facts": facts(made.request, made.reply),
        "turns": turns(made.request, made.reply),
        "edits": _odd_edits(made) if made.is_odd else edits(made.request, made.reply),
        "each": _each_changed(made) if made.name.startswith(STREAMS) else [],
    }


def _each_changed(made: Made) -> list[Any]:
    """A stream with each of its message's values changed, one at a time."""
    taken = editing.take_apart_reply(made.request, made.reply)
    return [
        edited(made.request, made.reply, lambda changed=changed: changed)
        for changed in made_traffic.each_changed(taken.message if taken and taken.streamed else {})
    ]


def _odd_edits(made: Made) -> list[Any]:
    message = editing.reply_message(made.request, made.reply)
    if message is None:
        return [edited(made.request, made.reply, dict)]
    assert editing.encoded(made.request, made.reply, message) == (made.reply, [])
    random, wire = Random(made.name), editing.take_apart_reply(made.request, made.reply).wire
    fields = validation.editable_fields(wire, message)
    changes = [
        *(lambda: made_traffic.made_odd(message, random) for _ in range(2)),
        *(
            lambda each=each: validation.with_fields(wire, message, [{**each, "value": "other"}])
            for each in fields[:2] + fields[-1:]
        ),
    ]
    return [fields, *(edited(made.request, made.reply, change) for change in changes)]


def test_replies_of_every_shape_read_as_they_did_however_odd():
    kept = json.loads(KEPT.read_text())
    now = {made.name: digest(readings(made)) for made in made_traffic.calls(ODD)}
    assert {name for name in now if now[name] != kept.get(name)} == set()
    assert len(now) > 450


def test_dialogues_read_as_they_did_however_odd():
    assert digest(list(dialogues())) == json.loads(KEPT.read_text())["dialogues"]


def dialogues() -> Iterator[Any]:
    for url, said in made_traffic.dialogues():
        yield facts(*made_traffic.dialogue(url, *said))
        random = Random(url)
        for _ in range(40):
            odd = [(by, made_traffic.made_odd(each, random)) for by, each in said]
            random.shuffle(odd)
            asked, told = made_traffic.dialogue(url, *odd[: random.randrange(1, 9)])
            told = replace(told, chunks=(*told.chunks, b'{"model": [', b'sent: "error"\n'))
            yield facts(asked, told)


def main() -> None:
    every = list(made_traffic.calls(ODD))
    for made in every:
        if made.name in sys.argv[1:]:
            print(json.dumps(readings(made), indent=1, default=str))
    if not sys.argv[1:]:
        kept = {made.name: digest(readings(made)) for made in every}
        print(json.dumps({**kept, "dialogues": digest(list(dialogues()))}, indent=0))


if __name__ == "__main__":
    main()
