"""What a record begins with is made while the network answers, and is as if it had been made at the end."""

import itertools
import json
import random

import pytest

from tape_jupyter.cassette import external_texts
from tape_jupyter.encoding.yaml import emitter
from tape_jupyter.cassette.prepared_requests import begin_record
from tape_jupyter.core.call import Reply, Where
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.errors import CassetteError
from tape_jupyter.cassette.match_key import match_request as matched
from tape_jupyter.cassette.records import Head
from tape_jupyter.secrets.registry import Secrets
from tape_jupyter.cassette.request_refs import RequestFolder
from tests.harness.tapes import answered, asked

LONG = "Which region lost most customers, and why did nobody say so? " * 8


class Recording:
    """A run in a cassette whose calls are begun, committed or both, in any order."""

    def __init__(self, path):
        self.tape, self.secrets = Cassette.open(path), Secrets()
        self.run = self.tape.start_run({"mode": "record"}, {"notebook": "n.ipynb"})
        self.names = (f"{n:08x}" for n in itertools.count(1))

    def begin(self, call):
        return self.tape.begin_call(self.run, call, matched(call, self.secrets), self.secrets)

    def commit(self, call, beginning=None, text="North."):
        found = matched(call, self.secrets)
        at = "2026-11-21T20:41:07.600Z"
        head = Head(
            next(self.names), self.run, found.match, "model", Where(), at, 1.0, clean=found.clean
        )
        return self.tape.append_call(head, call, answered(text), self.secrets, beginning)


def text_of(path):
    """Without what differs from run to run."""
    return "\n".join(line for line in path.read_text().splitlines() if not line.startswith("run:"))


@pytest.mark.parametrize("early", [(True, True, True), (True, False, True), (False, True, True)])
def test_the_file_is_the_same_whenever_a_call_was_begun(tmp_path, early):
    """Calls that were under way together refer to each other as calls do that came one after the other."""
    calls = [
        asked(LONG),
        asked(LONG, "North.", "And then?"),
        asked(LONG, "North.", "And then?", "South.", LONG),
    ]
    texts = []
    for name, flags in (("late", (False,) * 3), ("early", early)):
        path = tmp_path / f"{name}.tape.yaml"
        recording = Recording(path)
        beginnings = [
            recording.begin(call) if flag else None for call, flag in zip(calls, flags, strict=True)
        ]
        for call, beginning in zip(calls, beginnings, strict=True):
            recording.commit(call, beginning)
        texts.append(text_of(path))
        again = Cassette.open(path, check="whole")
        assert [entry.request().body for entry in again.calls] == [call.body for call in calls]
    assert texts[0] == texts[1] and texts[0].count("<from>") == 3


def test_a_key_that_is_learned_while_the_network_answers_is_masked_in_what_was_asked(tmp_path):
    path, key = tmp_path / "main.tape.yaml", "n0t-known-when-1t-went-out-93471"
    recording = Recording(path)
    call = asked(f"my key is {key}")
    beginning = recording.begin(call)
    recording.secrets.learn("LATE_KEY", key)
    recording.commit(call, beginning)
    assert key not in path.read_text() and "<secret:LATE_KEY>" in path.read_text()


def test_a_pattern_is_looked_for_in_what_was_begun_before_it_was_told(tmp_path):
    path = tmp_path / "main.tape.yaml"
    recording = Recording(path)
    call = asked("from Ada Roy, customer 118-22")
    beginning = recording.begin(call)
    recording.secrets.pattern(r"\d{3}-\d{2}", "customer")
    recording.commit(call, beginning)
    assert "118-22" not in path.read_text() and "<secret:customer>" in path.read_text()


def test_a_file_that_was_replaced_while_the_network_answered_holds_nothing_that_refers_to_what_is_gone(
    tmp_path,
):
    path = tmp_path / "main.tape.yaml"
    recording = Recording(path)
    recording.commit(asked(LONG))
    later = asked(LONG, "North.", "And then?")
    beginning = recording.begin(later)
    assert "<from>" in beginning.text
    path.write_text("---\ntape: 1\nnotebook: n.ipynb\ncassette: main\nmade by: hand\n...\n")
    recording.commit(later, beginning)
    (entry,) = Cassette.open(path, check="whole").calls
    assert entry.request().body == later.body and "<from>" not in path.read_text()


def test_a_long_text_is_put_beside_the_cassette_though_it_was_begun_early(tmp_path):
    path = tmp_path / "main.tape.yaml"
    recording = Recording(path)
    call = asked("word " * external_texts.LIMIT)
    recording.commit(call, recording.begin(call))
    assert (
        path.stat().st_size < external_texts.LIMIT
        and len(list((tmp_path / "assets").iterdir())) == 1
    )
    assert Cassette.open(path, check="whole").calls[0].request().body == call.body


def test_parts_one_below_the_other_are_the_record():
    """Of any two maps without a common key, whatever texts, lists and numbers they end with."""
    r = random.Random(5)
    leaves = [
        "",
        "word",
        "a b",
        " x",
        "two\nlines",
        "ends\n",
        "ends\n\n",
        "\n",
        "...",
        "---",
        "a: b",
        0,
        1.5,
        [],
        {},
        [1, 2],
    ]

    def value(depth):
        if depth and r.random() < 0.5:
            items = [value(depth - 1) for _ in range(r.randrange(1, 4))]
            return items if r.random() < 0.5 else {f"k{n}": item for n, item in enumerate(items)}
        return r.choice([*leaves, "long words " * 20 + "\n" * r.randrange(4)])

    for _ in range(2000):
        first, second = (
            {f"{name}{n}": value(3) for n in range(r.randrange(1, 3))} for name in "ab"
        )
        text = emitter.whole_record(emitter.part_lines(first), emitter.part_lines(second))
        assert text == emitter.emit({**first, **second})
        parts = [
            emitter.parse_record(emitter.whole_record(emitter.part_lines(part)))
            for part in (first, second)
        ]
        assert parts == [first, second] and emitter.parse_record(text) == {**first, **second}


def test_what_reads_back_otherwise_than_it_was_written_is_not_begun(monkeypatch):
    monkeypatch.setattr(emitter, "parse_record", lambda text: {"request": {}})
    secrets = Secrets()
    with pytest.raises(CassetteError, match="did not survive"):
        begin_record(
            "r-1", asked("hello"), matched(asked("hello"), secrets), secrets, RequestFolder()
        )


def test_an_answer_that_reads_back_otherwise_is_not_committed(tmp_path, monkeypatch):
    recording = Recording(tmp_path / "main.tape.yaml")
    call = asked("hello")
    beginning = recording.begin(call)
    monkeypatch.setattr(emitter, "parse_record", lambda text: json.loads("{}"))
    with pytest.raises(CassetteError, match="did not survive"):
        recording.commit(call, beginning)


def test_a_reply_without_a_body_has_its_beginning_too(tmp_path):
    recording = Recording(tmp_path / "main.tape.yaml")
    call = asked("hello")
    head = Head(
        "0000000a", recording.run, "a" * 32, "model", Where(), "2026-11-21T20:41:07.600Z", 1.0
    )
    recording.tape.append_call(
        head,
        call,
        Reply(None, end="error", error={"class": "x:Y"}),
        recording.secrets,
        recording.begin(call),
    )
    assert (
        Cassette.open(tmp_path / "main.tape.yaml", check="whole").calls[0].request().body
        == call.body
    )
