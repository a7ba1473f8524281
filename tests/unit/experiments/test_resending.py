"""A recorded request goes out again, live, as it was or changed; its answer lands in a take, and plays when promoted."""

import json

import httpx
import nbformat
import pytest
from click.testing import CliRunner

import tape_jupyter as tape
from tape_jupyter.core.call import FunctionCall, Reply, Request, Value
from tape_jupyter.cassette.cassette import Cassette
from tape_jupyter.cli import tape as command
from tape_jupyter.errors import TapeUsageError
from tape_jupyter.encoding.values.registry import freeze
from tape_jupyter.experiments.resending.edited_request import edited
from tape_jupyter.experiments.resending.keys import with_key
from tape_jupyter.secrets.registry import placeholder
from tests.harness.provider import Scripted
from tests.harness.replayed import recorded
from tests.harness.tapes import JSON, Recorder, answered, asked


@pytest.fixture(autouse=True)
def keys(monkeypatch):
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "TAPE_MODE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def run(*words):
    return CliRunner().invoke(command, [str(word) for word in words])


def ask(url, text="Who?", **more):
    body = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 50,
        "messages": [{"role": "user", "content": text}],
        **more,
    }
    return Request("POST", f"{url}/v1/messages", JSON, json.dumps(body).encode())


def taped(folder, *calls):
    path = folder / "churn.tapes" / "main.tape.yaml"
    Recorder(path).run("ask()", *calls)
    return path, [call.id for call in Cassette.open(path).calls]


def said(path, request, take=None):
    with tape.replaying(path, take=take) if take else tape.replaying(path):
        reply = httpx.post(request.url, content=request.body, headers=dict(request.headers))
        return reply.json()["content"][0]["text"]


def test_the_answer_lands_in_a_take_and_plays_when_it_is_promoted(tmp_path, provider):
    request = ask(provider.url)
    path, (call,) = taped(tmp_path, (request, answered("Bo")))
    before = path.read_bytes()
    done = run("resend", path, call)
    assert done.exit_code == 0, done.output
    assert "about $" in done.stderr and "as it was recorded" in done.stderr  # what it costs, first
    assert (
        "take resend: the answer to call" in done.stdout
        and "-" in done.stdout
        and "takes promote resend" in done.stdout
    )
    assert provider.requests[0].body == request.body and path.read_bytes() == before
    assert said(path, request) == "Bo" and said(path, request, "resend") == "Bo"
    assert run("takes", path, "promote", "resend").exit_code == 0
    new = said(path, request, "resend")
    assert new != "Bo" and said(path, request) == "Bo" and path.read_bytes() == before
    assert "resend" in run("takes", path).stdout


def test_an_answer_that_is_not_promoted_is_never_played_for_a_second_call(tmp_path, provider):
    from tape_jupyter.errors import UnmatchedCall

    request = ask(provider.url)
    path, (call,) = taped(tmp_path, (request, answered("Bo")))
    assert run("resend", path, call, "--take", "mine").exit_code == 0
    with pytest.raises(UnmatchedCall, match="recorded once"), tape.replaying(path, take="mine"):
        for _ in range(2):
            httpx.post(request.url, content=request.body, headers=dict(request.headers))


def test_settings_and_the_message_are_what_is_sent_otherwise(tmp_path, provider):
    path, (call,) = taped(tmp_path, (ask(provider.url, temperature=1.0), answered("Bo")))
    words = [
        "--set",
        "model=claude-haiku-4-5",
        "--set",
        "temperature=0",
        "--set",
        "metadata.user_id=u1",
        "--message",
        "In one word: who?",
    ]
    done = run("resend", path, call, *words, "--promote", "--json")
    assert done.exit_code == 0, done.output
    told, sent = json.loads(done.stdout), provider.requests[0].json
    assert sent == {"model": "claude-haiku-4-5", "max_tokens": 50, "temperature": 0, "metadata": {"user_id": "u1"},
                    "messages": [{"role": "user", "content": "In one word: who?"}]}  # fmt: skip
    assert (
        told["promoted"]
        and told["difference"]
        and any("claude-haiku" in line for line in told["expected"]["changes"])
    )
    assert (
        said(path, ask(provider.url, temperature=1.0), told["take"]) != "Bo"
    )  # the program asks as ever


def test_a_dry_run_says_the_cost_and_sends_nothing(tmp_path, provider):
    path, (call,) = taped(tmp_path, (ask(provider.url), answered("Bo")))
    done = run("resend", path, call, "--set", "max_tokens=4000", "--dry-run")
    assert (
        done.exit_code == 0
        and "about $" in done.stdout
        and "at most $" in done.stdout
        and "nothing was sent" in done.stdout
    )
    assert not provider.requests and not (path.parent / "takes").exists()


def test_an_error_stays_in_the_take_and_is_not_put_in_the_calls_place(tmp_path, provider):
    path, (call,) = taped(tmp_path, (ask(provider.url), answered("Bo")))
    provider.script(
        "/v1/messages",
        Scripted(429, {"content-type": "application/json"}, [b'{"error":{"message":"slow"}}']),
    )
    done = run("resend", path, call, "--promote")
    assert (
        done.exit_code == 2
        and "is an error (429)" in done.stderr
        and "stays in take resend" in done.stderr
    )
    assert said(path, ask(provider.url), "resend") == "Bo"
    assert (
        run("resend", path, call).exit_code == 1
    )  # the answer is told, and the code says that it is an error


def test_a_reply_that_breaks_off_is_kept_as_far_as_it_came(tmp_path, provider):
    path, (call,) = taped(tmp_path, (ask(provider.url), answered("Bo")))
    provider.script(
        "/v1/messages",
        Scripted(
            200,
            {"content-type": "application/json", "content-length": "99"},
            [b'{"con'],
            then="close",
        ),
    )
    done = run("resend", path, call, "--json")
    told = json.loads(done.stdout)
    reply = Cassette.open(path).take(told["take"]).calls[-1].reply()
    assert reply.body == b'{"con' and reply.end == "error"
    assert "cut short" in run("takes", path, "promote", told["take"]).stderr


def test_an_edited_message_in_a_loop_goes_on_through_the_notebooks_code(tmp_path, provider):
    loop = "%%tape record\nfirst = ask('start')\nsecond = ask('you said: ' + first)\nprint(second)"
    from tests.harness.replayed import SETUP

    path = recorded(tmp_path, provider, SETUP, loop)
    calls = [each["call"] for each in json.loads(run("calls", path, "--json").stdout)]
    sent = len(provider.requests)
    done = run("resend", path, calls[0], "--message", "begin elsewhere", "--rerun", "--json")
    assert done.exit_code == 0, done.output
    live = [each.json["messages"][0]["content"] for each in provider.requests[sent:]]
    assert live[0] == "begin elsewhere" and live[1].startswith("you said: ") and len(live) == 2
    take = Cassette.open(tmp_path / "churn.tapes" / "main.tape.yaml").take(
        json.loads(done.stdout)["take"]
    )
    first = next(call for call in take.calls if call.id == calls[0]).reply()
    assert json.loads(first.body)["content"][0]["text"] in live[1]
    saved = nbformat.read(path, 4)
    assert "you said" not in str(saved.cells[1].outputs) or provider.vary


def test_the_key_goes_out_where_a_person_says_so_and_never_lands(tmp_path, provider, monkeypatch):
    path, (call,) = taped(tmp_path, (ask(provider.url), answered("Bo")))
    monkeypatch.setenv("MY_KEY", "sk-ant-" + "k9" * 20)
    assert (
        run("resend", path, call).exit_code == 0 and "x-api-key" not in provider.requests[0].headers
    )
    assert run("resend", path, call, "--key", "MY_KEY").exit_code == 0
    assert provider.requests[1].headers["x-api-key"] == "sk-ant-" + "k9" * 20
    for each in tmp_path.rglob("*.yaml"):
        assert "k9k9" not in each.read_text()


def test_a_key_goes_to_its_own_provider_alone():
    environ = {
        "OPENAI_API_KEY": "sk-" + "z" * 30,
        "ANTHROPIC_API_KEY": "sk-ant-" + "y" * 30,
        "GEMINI_API_KEY": "AIza" + "x" * 35,
    }
    body = b'{"model":"gpt-4o","messages":[]}'

    def headers(url, named=""):
        return dict(with_key(Request("POST", url, JSON, body), environ, named).headers)

    assert (
        headers("https://api.openai.com/v1/chat/completions")["authorization"]
        == f"Bearer {environ['OPENAI_API_KEY']}"
    )
    assert (
        headers("https://api.anthropic.com/v1/messages")["x-api-key"]
        == environ["ANTHROPIC_API_KEY"]
    )
    gemini = "https://generativelanguage.googleapis.com/v1beta/models/m:generateContent?key=%3Csecret%3Akey%3E"
    assert headers(gemini)["x-goog-api-key"] == environ["GEMINI_API_KEY"]
    for strange in (
        "https://evil.example/v1/chat/completions",
        "https://api.openai.com.evil.example/v1/chat/completions",
        "http://127.0.0.1:9/v1/messages",
    ):
        assert headers(strange) == dict(JSON), strange
    assert headers("https://gateway.example/v1/chat/completions", "OPENAI_API_KEY")[
        "authorization"
    ].startswith("Bearer sk-")
    with pytest.raises(TapeUsageError, match="is not encrypted"):
        headers("http://api.openai.com/v1/chat/completions")
    with pytest.raises(TapeUsageError, match="is not set: MISTRAL_API_KEY"):
        headers("https://api.mistral.ai/v1/chat/completions")


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "MY_KEY"])
def test_a_placeholder_is_never_sent(tmp_path, provider, monkeypatch, name):
    path, (call,) = taped(tmp_path, (ask(provider.url), answered("Bo")))
    monkeypatch.setenv(
        name, placeholder("OPENAI_API_KEY") if name != "OPENAI_API_KEY" else placeholder(name)
    )
    done = run("resend", path, call, "--key", name)
    assert done.exit_code == 2 and "placeholder" in done.stderr and not provider.requests


BAD = {
    "a tool": (lambda url: (FunctionCall("f", {}), Value(freeze(1))), [], "only requests are sent again"),
    "no message": (lambda url: (Request("POST", f"{url}/v1/embeddings", JSON, b'{"prompt":"x"}'), answered("x")), ["--message", "y"], "has no messages"),
    "no JSON": (lambda url: (Request("POST", f"{url}/v1/x", (), b"a=1"), answered("x")), ["--set", "a=2"], "not a JSON object"),
    "no value": (lambda url: (ask(url), answered("x")), ["--set", "model"], "write NAME=VALUE"),
    "no place": (lambda url: (ask(url), answered("x")), ["--set", "model.x=1"], "the request has no model.x"),
    "masked": (lambda url: (ask(url, "it is <secret:KEY>"), answered("x")), [], "holds a masked secret"),
    "no notebook": (lambda url: (ask(url), answered("x")), ["--rerun"], "--rerun runs a notebook"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_sent_is_one_error_and_nothing_goes_out(tmp_path, provider, name):
    make, words, told = BAD[name]
    path, (call,) = taped(tmp_path, make(provider.url))
    done = run("resend", path, call, *words)
    assert done.exit_code == 2 and told in done.stderr and "Traceback" not in done.output, (
        done.output
    )
    assert not provider.requests and not (path.parent / "takes").exists()


def test_no_reply_writes_nothing(tmp_path):
    path, (call,) = taped(tmp_path, (ask("http://127.0.0.1:1"), answered("x")))
    done = run("resend", path, call)
    assert (
        done.exit_code == 2
        and "gave no reply" in done.stderr
        and not (path.parent / "takes").exists()
    )


def test_messages_of_every_wire_can_be_replaced():
    def body(url, told, *settings, message=None):
        made = edited(Request("POST", url, JSON, json.dumps(told).encode()), settings, message)
        return made.url, json.loads(made.body)

    tool = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "t", "content": "r"}],
    }
    first = {"role": "user", "content": [{"type": "text", "text": "a"}]}
    url = "https://api.anthropic.com/v1/messages"
    assert body(url, {"messages": [first, tool]}, message="b")[1]["messages"] == [
        {**first, "content": [{"type": "text", "text": "b"}]},
        tool,
    ]
    assert body(url, {"messages": [first]}, message='[{"role": "user", "content": "c"}]')[1][
        "messages"
    ] == [{"role": "user", "content": "c"}]
    assert body("https://api.openai.com/v1/responses", {"input": "a"}, message="b")[1] == {
        "input": "b"
    }
    gemini = (
        "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:generateContent"
    )
    at, told = body(
        gemini,
        {"contents": [{"role": "user", "parts": [{"text": "a"}]}]},
        "model=gemini-2.5-pro",
        message="b",
    )
    assert at.endswith("/models/gemini-2.5-pro:generateContent") and told["contents"][0][
        "parts"
    ] == [{"text": "b"}]
    bedrock = (
        "https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude-3%3A0/converse"
    )
    assert (
        "/model/amazon.nova%3A1/converse"
        in body(bedrock, {"messages": []}, "model=amazon.nova:1")[0]
    )
