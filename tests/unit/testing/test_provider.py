"""A provider that answers as a test's script says, for the SDKs that people use."""

import json
import urllib.request

import anthropic
import openai
import pytest

from tape_jupyter import testing
from tests.harness.notebook import clean_env, notebook

ASK = {"model": "claude-test", "max_tokens": 50}
QUESTION = [{"role": "user", "content": "Where is my order?"}]


def test_the_answers_come_in_turn_in_anthropics_form_plain_and_streamed():
    with testing.FakeProvider(
        "one", testing.uses("look_up", id=7), "two", testing.uses("look_up", id=8)
    ) as provider:
        client = anthropic.Anthropic(base_url=provider.url, api_key="k", max_retries=0)
        assert client.messages.create(**ASK, messages=QUESTION).content[0].text == "one"
        used = client.messages.create(**ASK, messages=QUESTION)
        assert (used.stop_reason, used.content[0].name, used.content[0].input) == (
            "tool_use",
            "look_up",
            {"id": 7},
        )
        with client.messages.stream(**ASK, messages=QUESTION) as stream:
            assert "".join(stream.text_stream) == "two"
        with client.messages.stream(**ASK, messages=QUESTION) as stream:
            assert stream.get_final_message().content[0].input == {"id": 8}
        client.close()
    assert [each.json["messages"] for each in provider.requests] == [
        QUESTION
    ] * 4 and provider.left == 0
    assert (
        provider.requests[0].method == "POST"
        and "anthropic-version" in provider.requests[0].headers
    )


def test_the_answers_come_in_openais_form_plain_and_streamed():
    answers = ("one", testing.uses("look_up", id=7), "two", testing.uses("look_up", id=8))
    with testing.FakeProvider(*answers) as provider:
        client = openai.OpenAI(base_url=f"{provider.url}/v1", api_key="k", max_retries=0)
        asked = {"model": "gpt-5", "messages": QUESTION}
        assert client.chat.completions.create(**asked).choices[0].message.content == "one"
        (call,) = client.chat.completions.create(**asked).choices[0].message.tool_calls
        assert (call.function.name, json.loads(call.function.arguments)) == ("look_up", {"id": 7})
        told = list(
            client.chat.completions.create(
                **asked, stream=True, stream_options={"include_usage": True}
            )
        )
        assert (
            "".join(each.choices[0].delta.content or "" for each in told if each.choices) == "two"
        )
        assert told[-1].usage.total_tokens == 15
        (call,) = (
            next(iter(client.chat.completions.create(**asked, stream=True)))
            .choices[0]
            .delta.tool_calls
        )
        assert json.loads(call.function.arguments) == {"id": 8}
        client.close()


def test_a_failure_is_the_sdks_own_error_with_its_headers():
    with testing.FakeProvider(testing.fails(429, "slow down", retry_after="2")) as provider:
        client = anthropic.Anthropic(base_url=provider.url, api_key="k", max_retries=0)
        with pytest.raises(anthropic.RateLimitError, match="slow down") as caught:
            client.messages.create(**ASK, messages=QUESTION)
        assert caught.value.response.headers["retry-after"] == "2"
        client.close()


def test_any_other_path_gets_the_very_bytes():
    with testing.FakeProvider(
        testing.sends({"rows": [1]}), testing.sends(b"\0\1", content_type="image/x")
    ) as provider:
        with urllib.request.urlopen(f"{provider.url}/orders?id=7") as reply:
            assert json.load(reply) == {"rows": [1]}
        with urllib.request.urlopen(f"{provider.url}/picture") as reply:
            assert (reply.read(), reply.headers["content-type"]) == (b"\0\1", "image/x")
    assert [each.path for each in provider.requests] == ["/orders?id=7", "/picture"]


def test_a_function_may_answer_each_request_from_what_it_asks():
    def last(asked):
        return f"you said {asked.json['messages'][-1]['content']}"

    with testing.FakeProvider(every=last) as provider:
        client = anthropic.Anthropic(base_url=provider.url, api_key="k")
        for text in ("a", "b"):
            said = client.messages.create(**ASK, messages=[{"role": "user", "content": text}])
            assert said.content[0].text == f"you said {text}"
        client.close()


def test_a_request_beyond_the_script_fails_the_test_and_says_which():
    with pytest.raises(AssertionError, match="no answer for 1 of the requests: POST /v1/messages"):
        with testing.FakeProvider() as provider:
            client = anthropic.Anthropic(base_url=provider.url, api_key="k", max_retries=0)
            with pytest.raises(anthropic.InternalServerError, match="no answer left"):
                client.messages.create(**ASK, messages=QUESTION)
            client.close()


def test_a_bug_report_becomes_a_regression_test(tmp_path):
    """The story of the README: record against a script, then assert on what was done with it."""
    env = clean_env(tmp_path)
    cells = (
        "import os, urllib3, tape_jupyter as tape\n"
        "def ask(text):\n"
        "    body = {'model': 'm', 'max_tokens': 9, 'messages': [{'role': 'user', 'content': text}]}\n"
        "    return urllib3.request('POST', os.environ['MODEL'] + '/v1/messages', json=body).json()['content'][0]\n"
        "@tape.tool\ndef lookup_order(id):\n    return {'user': 'ada', 'state': 'late'}",
        "use = ask('Where is my order?')\nprint(ask(str(lookup_order(**use['input'])))['text'])",
    )
    path = notebook(tmp_path / "support.ipynb", *cells)
    with testing.FakeProvider(testing.uses("lookup_order", id=7), "It is late.") as provider:
        run = testing.run_notebook(path, "record", env={**env, "MODEL": provider.url})
    assert run.good and "'state': 'late'" in provider.requests[1].json["messages"][0]["content"]
    (order,) = run.named("lookup_order")
    assert order.asked == {"id": 7} and order.answered["user"] == "ada"
    again = testing.assert_replays(path, env={**env, "MODEL": provider.url})
    assert [each.text for each in again.calls if each.kind == "model"] == ["", "It is late."]
    assert again.calls[0].uses == (testing.Use("lookup_order", {"id": 7}),)
