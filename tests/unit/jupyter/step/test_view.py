"""A held call as a person sees it: what is asked, what will be served; secrets masked, long texts cut; requests changed."""

import json
from types import SimpleNamespace

import pytest

import tape_jupyter as tape
from tape_jupyter.core.call import FunctionCall, Request
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.jupyter.step import view as shown
from tape_jupyter.session.cell import CellRequest
from tape_jupyter.replay.player import GoLive, Refuse, Stub
from tape_jupyter.secrets.registry import Secrets
from tests.harness.provider import Provider
from tests.harness.taped_cells import ask, question

TOOL = FunctionCall("lookup", {"query": "Ada", "limit": 3})
POST = Request(
    "POST", "https://api.anthropic.com/v1/messages?beta=1", (), json.dumps(question("hi")).encode()
)


def held(call, kind):
    return SimpleNamespace(
        call=call,
        kind=kind,
        cell=SimpleNamespace(request=CellRequest("replay", cell_id="c1", count=3)),
    )


@pytest.fixture
def entry(tmp_path):
    with Provider() as provider, tape.recording(tmp_path / "a.tape.yaml"):
        ask(provider, "what is it?")
    return tape.open(tmp_path / "a.tape.yaml").calls[0]


def test_a_recorded_call_has_its_span_its_model_and_its_reply(entry):
    site = shown.held_site(held(entry.request(), "model"), entry, with_text=True)
    assert (site.kind, site.name, site.span, site.would) == ("model", "m", entry.name, "play")
    assert "what is it?" in site.text and site.cell == "c1 3"
    assert "You wrote" in shown.reply_section(entry, Secrets())["text"]


def test_what_becomes_of_a_call_when_nobody_says_otherwise():
    assert [shown.would(each) for each in (Refuse(), GoLive(), Stub(1))] == [
        "refuse",
        "live",
        "play",
    ]
    assert (
        shown.reply_section(GoLive(), Secrets()) is None
        and shown.reply_section(Refuse(), Secrets()) is None
    )
    assert shown.reply_section(Stub({"ok": True}), Secrets())["text"] == '{\n  "ok": true\n}'


def test_a_tool_is_told_with_its_arguments_a_host_by_its_address():
    site = shown.held_site(held(TOOL, "tool"), Refuse(), with_text=True)
    assert (site.kind, site.title, site.arguments) == (
        "tool",
        'lookup(query="Ada", limit=3)',
        {"query": "Ada", "limit": 3},
    )
    host = shown.held_site(
        held(Request("GET", "https://a.example/x?q=1"), "asset"), GoLive(), with_text=False
    )
    assert (host.kind, host.name, host.title, host.text) == (
        "http",
        "a.example",
        "GET a.example/x",
        "",
    )


def test_secrets_are_masked_and_long_texts_cut():
    secrets = Secrets()
    secrets.learn("SERVICE_KEY", "sk-very-secret-1234567890")
    call = FunctionCall("f", {"text": "it is sk-very-secret-1234567890", "long": "x" * 9_000})
    told = shown.asked_request(call, secrets)
    assert (
        "very-secret" not in told["text"] and not told["whole"] and len(told["text"]) <= shown.MOST
    )


def test_a_request_is_changed_before_it_goes_out():
    text = shown.editable_request(POST).replace('"hi"', '"ho"')
    changed = shown.changed_request(POST, text)
    assert json.loads(changed.body)["messages"][0]["content"] == "ho" and changed.url == POST.url
    with pytest.raises(TapeUsageError, match="this is none"):
        shown.changed_request(POST, "{")
    tool = shown.changed_request(TOOL, '{"query": "Bob", "limit": 3}')
    assert tool.arguments == {"query": "Bob", "limit": 3}
    for wrong in ('{"query": 1}', "[]", "{"):
        with pytest.raises(TapeUsageError, match="arguments"):
            shown.changed_request(TOOL, wrong)
