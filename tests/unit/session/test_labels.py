"""Whom a run serves: told with `%tape set`, or found in baggage, flags and the requests themselves."""

import json

import httpx
import pytest

from tape_jupyter.reports import listing
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.session.labels import CellTags, Tags, baggage, flags_of
from tape_jupyter.secrets.registry import Secrets
from tests.harness.provider import Provider
from tests.harness.taped_cells import ask, on_tape, taped


@pytest.fixture
def carried():
    """What the program's baggage says, while the test runs."""
    from opentelemetry import baggage, context

    tokens = []

    def carry(key, value):
        tokens.append(context.attach(baggage.set_baggage(key, value)))

    yield carry
    for token in reversed(tokens):
        context.detach(token)


def test_what_was_told_is_stamped_on_the_run_and_on_every_call(deck, path):
    for pair in (
        {"user_id": "ada"},
        {"tenant_id": "acme"},
        {"session_id": "s1"},
        {"flags": "new_prompt,tone=warm"},
    ):
        deck.set(*next(iter(pair.items())))
    with Provider() as provider, taped(deck, "record", path) as running:
        ask(provider, "hi")
    whole = {
        "user_id": "ada",
        "tenant_id": "acme",
        "session_id": "s1",
        "flags": {"new_prompt": True, "tone": "warm"},
    }
    cassette = on_tape(path)
    assert {key: cassette.runs[0]["kit"][key] for key in whole} == whole
    assert running.report.calls[0].tags == whole
    (row,) = listing.call_records(cassette)
    assert row["tags"] == whole and json.dumps(row)
    assert "tags" not in cassette.calls[0].head()["kit"], "it stands on the run already"
    with Provider() as provider, taped(deck, "replay", path) as again:
        pass
    assert list(again.report.calls) == []


def test_a_replayed_call_is_stamped_as_it_was_recorded(deck, path):
    deck.set("user_id", "ada")
    with Provider() as provider:
        with taped(deck, "record", path):
            ask(provider, "hi")
        deck.set("user_id", "bob")
        with taped(deck, "replay", path) as running:
            ask(provider, "hi")
    assert running.report.calls[0].tags == {"user_id": "ada"}


def test_the_user_a_request_names_is_stamped_on_that_call_where_the_run_has_another(deck, path):
    deck.set("user_id", "ada")
    with Provider() as provider, taped(deck, "record", path) as running:
        ask(provider, "one", metadata={"user_id": "ada"})
        ask(provider, "two", metadata={"user_id": "bob"})
        httpx.post(
            f"{provider.url}/v1/chat/completions",
            json={"model": "m", "user": "eve", "messages": []},
        )
    assert [row.tags["user_id"] for row in running.report.calls] == ["ada", "bob", "eve"]
    cassette = on_tape(path)
    assert [entry.head()["kit"].get("tags") for entry in cassette.calls] == [
        None,
        {"user_id": "bob"},
        {"user_id": "eve"},
    ]
    assert [row["tags"]["user_id"] for row in listing.call_records(cassette)] == [
        "ada",
        "bob",
        "eve",
    ]


def test_baggage_is_found_and_a_call_that_carries_other_baggage_says_so(deck, path, carried):
    carried("user.id", "ada")
    carried("tenant", "acme")
    carried("experiment", 7)
    with Provider() as provider, taped(deck, "record", path) as running:
        ask(provider, "one")
        carried("user.id", "bob")
        ask(provider, "two")
    kit = on_tape(path).runs[0]["kit"]
    assert (kit["user_id"], kit["tenant_id"], kit["baggage"]) == ("ada", "acme", {"experiment": 7})
    assert [row.tags["user_id"] for row in running.report.calls] == ["ada", "bob"]


def test_what_was_told_wins_over_what_was_found(carried):
    carried("user_id", "found")
    tags = Tags()
    tags.set("user_id", "told", Secrets())
    assert tags.start().run()["user_id"] == "told"


def test_without_the_library_there_is_no_baggage_and_nothing_is_imported(monkeypatch):
    import sys

    monkeypatch.delitem(sys.modules, "opentelemetry.baggage", raising=False)
    assert baggage() == {} and CellTags().of_call() == {}
    assert "opentelemetry.baggage" not in sys.modules
    monkeypatch.setitem(sys.modules, "opentelemetry.baggage", object())
    assert baggage() == {}, "half imported"


def test_of_a_pattern_only_its_name_is_remembered(deck, path):
    deck.set("redact.mail", r"\w+@example\.com")
    deck.set("redact", r"\d{6}")
    with Provider() as provider, taped(deck, "record", path):
        ask(provider, "ada@example.com has 123456")
    text = path.read_text()
    assert on_tape(path).runs[0]["kit"]["redact"] == ["mail", "redacted"]
    assert "<secret:mail> has <secret:redacted>" in text and "example.com" not in text
    assert listing.call_records(on_tape(path))[0]["tags"] == {}


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("new", {"new": True}),
        ("a, b=2 ,", {"a": True, "b": "2"}),
        ('{"a": false, "n": 1, "deep": [1]}', {"a": False, "n": 1, "deep": "[1]"}),
    ],
)
def test_flags_are_told_as_words_or_as_json(text, flags):
    assert flags_of(text) == flags


@pytest.mark.parametrize(
    "pair", [("flags", "{broken"), ("user id", "x"), ("redact.", "x"), ("redact", "[")]
)
def test_what_cannot_be_set_is_refused(pair):
    with pytest.raises(TapeUsageError):
        Tags().set(*pair, Secrets())
