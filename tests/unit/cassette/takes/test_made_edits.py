"""What each kind of edit makes of a call of every provider's shape, of a tool and of a host, or why it cannot be made.

`made_edits.json` holds a digest of each. A change that is meant:

    python tests/unit/cassette/takes/test_made_edits.py > tests/unit/cassette/takes/made_edits.json

and look at the difference: `... NAME` prints what the edits of one call become.
"""

from __future__ import annotations

import dataclasses
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[4]
if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # not this folder, whose modules would stand for others of their names

from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cassette.index_entries import Entry
from tape_jupyter.cassette.takes import edits
from tape_jupyter.cassette.takes.overrides import UNSET
from tape_jupyter.core.call import FunctionCall, Reply, Request, Value
from tape_jupyter.encoding.values.registry import freeze
from tape_jupyter.errors import TapeError
from tests.harness import made_traffic
from tests.harness.made_recordings import plain, same_names
from tests.harness.readings import digest
from tests.harness.tapes import Recorder

KEPT = Path(__file__).with_name("made_edits.json")
TYPED: tuple[dict[str, Any], ...] = (
    {"form": "text", "text": "Größe 7"},
    {"form": "text", "text": ""},
    {"form": "text", "text": 7},
    {"form": "message", "message": "{}"},
    {"form": "message", "message": "[1]"},
    {"form": "message", "message": '{"content": "No."}'},
    {"form": "message", "message": '{"tool_calls": [], "refusal": "No."}'},
    {"form": "message", "message": '{"content": [{"type": "text", "text": "a"}, {"text": "b"}], "id": "other"}'},
    {"form": "message", "message": '{"choices": [{"index": 0, "message": {"role": "assistant", "content": "No."}}]}'},
    {"form": "message", "message": '{"choices": [{"index": 0, "message": 7}, 7]}'},
    {"form": "message", "message": '{"output": [{"type": "message", "content": [{"type": "output_text", "text": "No."}]}]}'},
    {"form": "message", "message": '{"output": [{"content": 7}], "status": "failed"}'},
    {"form": "fields", "fields": [{"path": "content[0].text", "value": "other"}]},
    {"form": "fields", "fields": [{"path": "nowhere", "value": "other"}]},
    {"form": "fields", "fields": "none"},
    {"form": "fields", "fields": [7]},
    {"form": "value", "value": '[1, {"a": null}]'},
    {"form": "value", "value": '{"<type>": "Nothing"}'},
    {"form": "value", "value": 7},
    {"form": "raw", "body": "plain text"},
    {"form": "raw", "body": "", "status": 503, "headers": [["retry-after", "2"], ["content-encoding", "gzip"]]},
    {"form": "raw", "body": '{"a": 1', "status": 200},
    {"form": "raw", "body": "{}", "status": 1000},
    {"form": "raw", "body": 7},
    {"form": "raw", "body": "{}", "headers": [["a\\n", "b"]]},
    {"form": "fault", "name": "none"},
    {"form": "none"},
)  # fmt: skip
GIVEN: tuple[dict[str, Any], ...] = (
    {"reply": {"größe": [1, "\u2028"]}}, {"reply": "text"}, {"reply": b"bytes"}, {"reply": {1, 2}}, {"reply": None},
    {"reply": Reply(418, (("x", "y"),), (b"tea",), (0.5,))}, {"reply": Value(7)},
    {"value": {"größe": (1, 2)}}, {"value": object()}, {"error": ValueError("no")}, {"error": "no"}, {"error": OSError},
    {"text": "a"}, {"text": "a", "value": 1}, {"text": b"a"}, {"message": [1]}, {"message": {"content": "No."}},
    {"message": {"content": [{"type": "text", "text": "No."}], "stop_reason": "max_tokens"}},
    {"message": {"usage": {"output_tokens": 1}}}, {"message": '{"id": "other"}'}, {"message": "{"},
    {"fault": "429"}, {"fault": "nothing"}, {"fault": 7}, {"fault": "rate_limit:retry_after=0.5"}, {"fault": "rate_limit:partial=no"},
    {"fault": "rate_limit:partial=maybe"}, {"fault": "rate_limit:times=0"}, {"fault": "server_error:times=3"}, {"fault": "overloaded:times=many"},
    {"fault": {"name": "reset", "after": 1, "times": 2}}, {"fault": {"name": "reset", "options": {"after": 0}}}, {"fault": {"name": "reset", "options": 7}},
    {"fault": "timeout:after=2"}, {"fault": "truncated:after=0"}, {"fault": "truncated:after=999"}, {"fault": "truncated:nothing=1"}, {"fault": "reset:after=-1"},
    {"fault": "raises"}, {"fault": "error:class=KeyError,message=no"}, {"fault": {}}, {"fault": "reset:after"}, {},
)  # fmt: skip


def calls() -> Iterator[tuple[str, Any, Any]]:
    for wire in made_traffic.WIRES:
        if wire.name == "mistral":  # whose replies are OpenAI's
            continue
        asked = made_traffic.request(wire, wire.requests[0])
        yield f"{wire.name} reply", asked, made_traffic.whole(wire.replies[0])
        for number, events in enumerate(wire.streams[:2]):
            yield f"{wire.name} stream {number}", asked, made_traffic.streamed(wire, events)
        yield f"{wire.name} error", asked, made_traffic.whole(wire.replies[-1], 429)
    tool = FunctionCall("look_up", {"place": "here"})
    yield "tool", tool, Value(freeze({"found": [1, "x"], "of": (1, 2)}))
    yield "tool of a text", tool, Value("It rains.")
    yield "tool of JSON in a text", tool, Value('{"a": [1]}')
    yield "tool that failed", tool, Value(error={"type": "ValueError", "module": "builtins"})
    page = Request("GET", "https://example.com/page")
    html = (("content-type", "text/html; charset=latin-1"),)
    yield "page", page, Reply(200, html, (b"<p>Gr\xf6\xdfe</p>",), (0.1,))
    yield (
        "bytes",
        page,
        Reply(200, (("content-type", "image/png"),), (b"\x89PNG\r\n\x1a\n",), (0.1,)),
    )
    yield "nothing", page, Reply(204, ())
    yield "lost", page, Reply(None, end="error", error={"type": "ReadTimeout", "module": "httpx"})


def edited(entry: Entry) -> Iterator[Any]:
    editable = edits.editable_of(entry).record()
    yield editable
    fields = editable.get("fields") or []
    typed = [{"form": "fields", "fields": [{"path": each["path"], "value": value}]}
             for each in fields for value in ("", f"{each['value']}!")]  # fmt: skip
    faults = [{"form": "fault", "name": each["name"]} for each in editable["faults"]]
    for edit in (*TYPED, *typed, *faults):
        yield edits.problems_of(entry, edit)
        yield _tried(lambda edit=edit: _made(edits.apply_edit(entry, edit)))
    for edit in (*TYPED[1:4], *typed[-3:]):
        for accept in (False, True):
            yield _tried(lambda edit=edit, accept=accept: _made(edits.accept_edit(entry, edit, accept=accept)))  # fmt: skip
    unset = dict.fromkeys(("text", "message", "fault", "reply", "value", "error"), UNSET)
    for given in GIVEN:
        answer = _tried(lambda given=given: edits.given_edit(entry, **(unset | given)))
        if isinstance(answer, str):
            yield answer
        else:
            yield [_made(answer), edits.warnings(entry, answer)]


def _made(answer: edits.EditedReply) -> Any:
    return [plain(answer.reply), answer.details, answer.notes, [plain(each) for each in answer.again]]  # fmt: skip


def _tried(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except (TapeError, TypeError) as error:
        # how JSON is refused is Python's to say
        return re.sub(r"0x\w+|\((?:Expecting|Extra|Unterminated|Invalid|Illegal).*", "", str(error))


def told(folder: Path) -> Iterator[tuple[str, list[Any]]]:
    path = folder / "main.tape.yaml"
    with same_names():
        recorder = Recorder(path)
        every = list(calls())
        for number, (_, call, reply) in enumerate(every):
            recorder.run(f"{number:04}", (call, reply))
    entries = Cassette.open(path, check="whole").calls
    for (name, _, _), entry in zip(every, entries, strict=True):
        yield name, json.loads(json.dumps(list(edited(entry)), default=_shown))
    yield "overridden", json.loads(json.dumps(list(overridden(path)), default=_shown))


def overridden(path: Path) -> Iterator[Any]:
    """What the editor gets of calls that another answer took the place of: a text, or a whole reply."""
    unset = dict.fromkeys(("text", "message", "fault", "reply", "value", "error"), UNSET)
    take = main = Cassette.open(path)
    for number, entry in enumerate(main.calls):
        given = {"reply": "other"} if number % 3 else {"text": "other"}
        answer = _tried(lambda entry=entry, given=given: edits.given_edit(entry, **(unset | given)))
        if not isinstance(answer, str):
            take = take.commit_reply(entry, answer, "" if take is not main else "t")
    for each in take.overrides:
        yield [edits.editable_of(each).record(), plain(each.reply()), each.recorded.id]


def _shown(value: Any) -> str:
    return repr(dataclasses.asdict(value)) if dataclasses.is_dataclass(value) else type(value).__name__  # fmt: skip


def test_edits_of_every_kind_become_what_they_did(tmp_path):
    kept = json.loads(KEPT.read_text())
    now = {name: digest(values) for name, values in told(tmp_path)}
    assert {name for name in now if now[name] != kept.get(name)} == set()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        made = dict(told(Path(folder)))
    for name in sys.argv[1:]:
        print(json.dumps(made[name], indent=1))
    if not sys.argv[1:]:
        print(json.dumps({name: digest(values) for name, values in made.items()}, indent=0))


if __name__ == "__main__":
    main()
